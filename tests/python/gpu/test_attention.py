"""Attention on a GPU: keys and values that were repeated for groups of queries are read where they lie."""

from __future__ import annotations

import cuda_device
import pytest
import torch
import torch.nn.functional as F
from test_programs import assert_same, cuda

import cresset

simulated = cuda_device.use()


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()
    torch.manual_seed(0)


def repeated(t, times):
    batch, heads, length, features = t.shape
    return t[:, :, None].expand(batch, heads, times, length, features).reshape(batch, heads * times, length, features)


def masked(q, k):
    return torch.ones(q.shape[-2], k.shape[-2], device=q.device, dtype=torch.bool).tril(k.shape[-2] - q.shape[-2])


# name: (program of queries, keys and values, whether the repeated tensors are left out)
PROGRAMS = {
    "repeat_kv": (lambda q, k, v: F.scaled_dot_product_attention(q, repeated(k, 4), repeated(v, 4)), True),
    "contiguous": (
        lambda q, k, v: F.scaled_dot_product_attention(q, repeated(k, 4).contiguous(), repeated(v, 4).contiguous()),
        True,
    ),
    "interleaved": (
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k.repeat_interleave(4, dim=1), v.repeat_interleave(4, dim=1), is_causal=True
        ),
        True,
    ),
    "mask": (
        lambda q, k, v: F.scaled_dot_product_attention(q, repeated(k, 4), repeated(v, 4), attn_mask=masked(q, k)),
        True,
    ),
    "computed": (
        lambda q, k, v: F.scaled_dot_product_attention(q, repeated(k.sin(), 4), repeated(v + 1, 4), scale=0.3),
        True,
    ),
    "read_elsewhere": (
        lambda q, k, v: (F.scaled_dot_product_attention(q, r := repeated(k, 4), repeated(v, 4)), r * 2),
        True,
    ),
    "keys_alone": (
        lambda q, k, v: F.scaled_dot_product_attention(q, repeated(k, 4), torch.cat((v, v, v, v), 1)),
        False,
    ),
    "blocks": (  # head h reads keys h % 2, not h // 4
        lambda q, k, v: F.scaled_dot_product_attention(q, k.repeat(1, 4, 1, 1), v.repeat(1, 4, 1, 1)),
        False,
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, dtype):
    program, left_out = PROGRAMS[name]
    compiled = cresset.compile(program, fullgraph=True)
    with torch.no_grad():
        for batch, rows, length in ((2, 6, 6), (1, 1, 9), (3, 4, 16)):
            q, k, v = cuda(batch, 8, rows, 16), cuda(batch, 2, length, 16), cuda(batch, 2, length, 16)
            given = [t.to(dtype) for t in (q, k, v)]
            assert_same(compiled(*given), program(*given), strides=False)
    assert cresset.stats()["graph_breaks"] == 0
    if simulated is not None and name in ("repeat_kv", "keys_alone"):
        assert (cresset.stats()["kernels"] == 0) == left_out


def test_gradients():
    program = PROGRAMS["repeat_kv"][0]
    compiled = cresset.compile(program, fullgraph=True)
    given = [t.requires_grad_() for t in (cuda(2, 8, 6, 16), cuda(2, 2, 6, 16), cuda(2, 2, 6, 16))]
    results = [torch.autograd.grad(f(*given).square().sum(), given) for f in (compiled, program)]
    assert_same(*results, strides=False)


def kernels_of_a_token(layers):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).cuda().eval()
    compiled = cresset.compile(lambda ids, at, cache: model(ids, position_ids=at, past_key_values=cache).logits)
    caches = [transformers.StaticCache(config=config, max_cache_len=16) for _ in range(2)]
    prompt = torch.arange(4, device="cuda")[None]
    with torch.no_grad():
        for cache in caches:
            model(prompt, past_key_values=cache)
        cresset.reset()
        for at in range(4, 7):
            given = torch.tensor([[at]], device="cuda"), torch.tensor([[at]], device="cuda")
            expected = model(given[0], position_ids=given[1], past_key_values=caches[1]).logits
            torch.testing.assert_close(compiled(*given, caches[0]), expected, rtol=2e-2, atol=2e-2)
    assert (cresset.stats()["graphs"], cresset.stats()["graph_breaks"]) == (1, 0)
    return cresset.stats()["kernels"]


def test_kernels_of_a_layer_while_text_is_generated():
    """Rotations of queries and of keys, the place in the cache, the activation, and two norms."""
    assert kernels_of_a_token(3) - kernels_of_a_token(2) == 6
