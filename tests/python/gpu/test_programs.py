"""Compiled programs on CUDA tensors beside eager mode."""

from __future__ import annotations

import re

import cuda_device
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves, tree_map

import cresset

simulated = cuda_device.use()
HOST = torch.tensor(3.0)
HOST_ROW = torch.tensor([1.0, 2.0, 3.0])


def cuda(*sizes, **kwargs):
    return torch.randn(*sizes, device="cuda", **kwargs)


# name: (program, arguments of a call with n rows)
PROGRAMS = {
    "pointwise": (lambda x, y: F.silu(x + y) * 2, lambda n: (cuda(n, 5), cuda(5))),
    "number_on_the_host": (lambda x: x * HOST + 1, lambda n: (cuda(n, 5),)),
    "computed_on_the_host": (lambda x, a: x * (a.sin() + 1) - a, lambda n: (cuda(n, 5), torch.tensor(0.5 * n))),
    "element_on_the_host": (lambda x: x + HOST_ROW[1], lambda n: (cuda(n, 5),)),
    "integer_on_the_host": (lambda x, a: x * a, lambda n: (cuda(n, 5), torch.tensor(n))),
    "sum_with_the_host": (lambda x, a: (x * a).sum(1), lambda n: (cuda(n, 5), torch.tensor(2.0, dtype=torch.float64))),
    "halves": (lambda x, y: (x @ y).relu().softmax(-1), lambda n: (cuda(n, 8).half(), cuda(8, 8).half())),
    "bfloats": (lambda x: F.layer_norm(x, (16,)).float().sum(0), lambda n: (cuda(n, 16).bfloat16(),)),
    "doubles": (lambda x: torch.lgamma(x.abs() + 1) + x.exp(), lambda n: (cuda(n, 5, dtype=torch.float64),)),
    "factories": (
        lambda x: x + torch.arange(x.shape[0], device="cuda")[:, None] + torch.zeros(5, device=x.device).fill_(2),
        lambda n: (cuda(n, 5),),
    ),
    "like": (lambda x: torch.ones_like(x) + torch.full((x.shape[0], 1), 3.0, device=x.device), lambda n: (cuda(n, 5),)),
    "to_the_host": (lambda x: (x + 1).cpu() * 2, lambda n: (cuda(n, 5),)),
    "from_the_host": (lambda x, y: x + y.to(x.device).sin(), lambda n: (cuda(n, 5), torch.randn(n, 5))),
    "on_both": (
        lambda x, y: (x.sin(), y.sin(), (x + 1).sum(), (y + 1).sum()),
        lambda n: (cuda(n, 5), torch.randn(n, 5)),
    ),
    "there_and_back": (lambda x: (x.cpu().sin().cuda() + x).cumsum(1), lambda n: (cuda(n, 5),)),
    "constant_tensor": (lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], device="cuda"), lambda n: (cuda(n, 5),)),
    "indices": (lambda x, i: x[i] + x.gather(0, i[:, None]), lambda n: (cuda(9, 5), torch.arange(n, device="cuda"))),
    "indices_on_the_host": (lambda x, i: x[i] * 2, lambda n: (cuda(9, 5), torch.arange(n))),
    "embedding": (lambda w, i: F.embedding(i, w).sum(0), lambda n: (cuda(9, 5), torch.arange(n, device="cuda"))),
    "mask": (lambda x: x[x > 0].sum() + (x > 0).sum(), lambda n: (cuda(n, 5),)),
    "nonzero": (lambda x: x.sign().nonzero().float().mean(0), lambda n: (cuda(n, 5),)),
    "item": (lambda x: x * x.shape[0] + x.sum().ge(1e9).item(), lambda n: (cuda(n, 5),)),
    "branch": (lambda x: x.sin() if x.sum() > 1e9 else x.cos(), lambda n: (cuda(n, 5),)),
    "writes": (lambda x: x[1:].mul_(2).add_(x[0]), lambda n: (cuda(n + 1, 5),)),
    "writes_columns": (lambda x: x.t()[1:3].copy_(x.t()[0]) + x.sum(), lambda n: (cuda(n, 5),)),
    "resized_images": (lambda x: F.interpolate(x, scale_factor=2).mean((2, 3)), lambda n: (cuda(n, 2, 4, 4),)),
    "cross_entropy": (F.cross_entropy, lambda n: (cuda(n, 7), torch.arange(n, device="cuda") % 7)),
    "sorted": (lambda x: (x.sort(1).values + x.topk(2, 1).values.sum(), x.argmax(1)), lambda n: (cuda(n, 5),)),
    "scans": (lambda x: x.cumsum(0) + x.cumprod(1) + x.logcumsumexp(0), lambda n: (cuda(n, 5),)),
    "complex": (lambda x: torch.view_as_complex(x).conj().abs(), lambda n: (cuda(n, 5, 2),)),
    "linalg": (lambda x: torch.linalg.solve(x @ x.mT + 5 * torch.eye(4, device="cuda"), x), lambda n: (cuda(n, 4, 4),)),
    "concatenated": (lambda x, y: torch.cat([x, y, x * 2]).softmax(0), lambda n: (cuda(n, 5), cuda(3, 5))),
    "batch_norm_statistics": (
        lambda x, mean, variance: torch.native_batch_norm(x, None, None, mean, variance, False, 0.1, 1e-5),
        lambda n: (cuda(n, 5, 3), cuda(5), cuda(5).abs()),
    ),
    "batch_norm_statistics_of_halves": (
        lambda x, mean, variance: torch.native_batch_norm(x, None, None, mean[::2], variance, False, 0.1, 1e-5),
        lambda n: (cuda(n, 5, 3).half(), cuda(10), cuda(5).abs()),
    ),
    "embedding_bags": (
        lambda w, i, o: [torch.embedding_bag(w, i, o, mode=mode) for mode in range(3)],
        lambda n: (cuda(9, 5), torch.arange(2 * n, device="cuda") % 9, 2 * torch.arange(n, device="cuda")),
    ),
    "embedding_bags_with_the_end": (
        lambda w, i, o: [torch.embedding_bag(w, i, o, False, mode, False, None, True, 1)[::3] for mode in range(3)],
        lambda n: (
            cuda(9, 5).bfloat16(),
            torch.arange(2 * n, device="cuda", dtype=torch.int32) % 9,
            2 * torch.arange(n + 1, device="cuda"),
        ),
    ),
    "margin_losses": (
        lambda x, classes: (
            F.multi_margin_loss(x, classes[:, 0], reduction="none"),
            F.multilabel_margin_loss(x.bfloat16(), classes, reduction="none"),
        ),
        lambda n: (cuda(n, 5).half(), (torch.arange(n, device="cuda")[:, None] + torch.arange(5, device="cuda")) % 5),
    ),
    "dropout": (lambda x: F.dropout(x, 0.5) + torch.rand_like(x), lambda n: (cuda(n, 5),)),
    "images": (
        lambda x, w: F.max_pool2d(F.conv2d(x, w, padding=1).relu(), 2),
        lambda n: (cuda(n, 3, 8, 8), cuda(4, 3, 3, 3)),
    ),
    "channels_last": (
        lambda x, w: F.conv2d(x, w).relu() + 1,
        lambda n: (cuda(n, 3, 8, 8).to(memory_format=torch.channels_last), cuda(4, 3, 3, 3)),
    ),
    "attention": (
        F.scaled_dot_product_attention,
        lambda n: tuple(cuda(2, n + 1, 4, 8).transpose(1, 2) for _ in range(3)),
    ),
    "causal_attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda n: tuple(cuda(2, 3, n + 1, 8) for _ in range(3)),
    ),
    "masked_attention": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        lambda n: (*(cuda(2, 3, n + 1, 8) for _ in range(3)), torch.ones(n + 1, n + 1, device="cuda").tril().bool()),
    ),
    "attention_of_odd_features": (
        lambda q, k, v, m: (
            F.scaled_dot_product_attention(q, k, v, is_causal=True)
            + F.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=0.3)
        ),
        lambda n: (
            *(cuda(2, 3, n + 1, 20).half() for _ in range(3)),
            torch.ones(n + 1, n + 1, device="cuda").tril().bool(),
        ),
    ),
    "shared_mask_attention": (
        lambda q, k, v, keys, queries: (
            F.scaled_dot_product_attention(q, k, v, attn_mask=keys.expand(-1, 3, -1, -1))
            + F.scaled_dot_product_attention(q, k, v, attn_mask=queries.expand(-1, -1, -1, q.shape[2]))
        ),
        lambda n: (
            *(cuda(2, 3, n + 1, 8) for _ in range(3)),
            cuda(2, 1, 1, n + 1) > -9,
            cuda(2, 1, n + 1, 1) > -9,
        ),
    ),
    "grouped_attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        lambda n: (cuda(2, 4, n + 1, 8), cuda(2, 2, n + 1, 8), cuda(2, 2, n + 1, 8)),
    ),
}
GRAPH_BREAKS = {"branch", "item"}  # at a number that only data can give
# Eager mode's kernel, which depends on the device and the sizes, decides about these strides.
STRIDES_BY_KERNEL = {name for name in PROGRAMS if "attention" in name}
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float64: 1e-10}


def copied(tree):
    return tree_map(lambda t: t.detach().clone().requires_grad_(t.requires_grad), tree)


def assert_same(got, expected, strides=True):
    got, expected = tree_leaves(got), tree_leaves(expected)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert (a.device, a.dtype, a.shape) == (b.device, b.dtype, b.shape)
        if strides and b.numel() > 1:
            assert a.stride() == b.stride()
        tolerance = TOLERANCE.get(a.dtype, 1e-4)
        torch.testing.assert_close(a.detach(), b.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    program, arguments = PROGRAMS[name]
    compiled = cresset.compile(program)
    for n in (4, 7, 1, 4):
        given = arguments(n)
        beside = copied(given)
        torch.manual_seed(n)
        expected = program(*beside)
        torch.manual_seed(n)
        got = compiled(*given)
        assert_same(got, expected, strides=name not in STRIDES_BY_KERNEL)
        assert_same(given, beside)
    stats = cresset.stats()
    assert (stats["graph_breaks"] > 0) <= (name in GRAPH_BREAKS), stats["graph_break_reasons"]
    assert stats["eager_calls"] == 0


def masked(make):
    """Attention with the mask make(queries, keys)."""
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=make(q, k))


def positions(t):
    return torch.arange(t.shape[2], device=t.device)


def expanded(mask, q, k):
    return mask.expand(q.shape[0], 1, q.shape[2], k.shape[2])


# Masks which keep everything, for all sizes.
IDLE_MASKS = {
    "ones": lambda q, k: torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device),
    "queries": lambda q, k: expanded(positions(q)[:, None] >= 0, q, k),
    "all_positions": lambda q, k: (positions(q)[:, None] >= 0) & (positions(k) < k.shape[2]),
    "from_an_offset": lambda q, k: expanded((positions(q) + k.shape[2] > 0)[:, None], q, k),
    "and_new_ones": lambda q, k: expanded(
        q.new_ones((), dtype=torch.bool) & (positions(q)[:, None] >= 0).to(q.device), q, k
    ),
    "not_negative": lambda q, k: expanded(~(positions(k) < 0), q, k),
    "either": lambda q, k: (positions(q)[:, None] >= 0) | (k[0, 0, :, 0] > 0),
    "distance": lambda q, k: (positions(q)[:, None] - positions(k)).abs() < q.shape[2] + k.shape[2],
    "last_query": lambda q, k: positions(k) <= (positions(q[:, :, -1:]) + k.shape[2] - 1)[:, None],
    "in_vmap": lambda q, k: torch.vmap(lambda i: torch.vmap(lambda j: (i >= 0) & (j >= 0))(positions(k)))(positions(q)),
}


def in_one_document(q):
    """The mask of a library that looks for documents in positions, which begin anew with each."""
    given = positions(q)[None].expand(q.shape[0], -1)
    document = (torch.cat([given[:, :1] - 1, given], -1).diff(dim=-1) != 1).cumsum(-1)
    batch, query, key = torch.arange(q.shape[0], device=q.device), positions(q), positions(q)
    batch, query, key = batch[:, None, None, None], query[None, None, :, None], key[None, None, None]
    return (given[batch, key] <= given[batch, query]) & (document[batch, query] == document[batch, key])


# Masks of causal attention.
CAUSAL_MASKS = {
    "causal": lambda q, k: positions(q)[:, None] >= positions(k),
    "causal_of_heads": lambda q, k: expanded(positions(k) < positions(q)[:, None] + 1, q, k),
    "causal_and_idle": lambda q, k: (
        (positions(k)[None, None, None] <= positions(q)[None, None, :, None]) & (positions(q) >= 0).view(1, 1, -1, 1)
    ),
    "causal_at_an_offset": lambda q, k: positions(k) + q.shape[2] <= (positions(q) + q.shape[2]).reshape(-1, 1),
    "causal_in_one_document": lambda q, k: in_one_document(q),
    "causal_in_vmap": lambda q, k: torch.vmap(lambda i: torch.vmap(lambda j: j <= i)(positions(k)))(positions(q)),
}
# Masks which hide something, or may.
OTHER_MASKS = {
    "next_too": lambda q, k: positions(q)[:, None] + 1 >= positions(k),
    "anticausal": lambda q, k: positions(q)[:, None] <= positions(k),
    "every_other": lambda q, k: 2 * positions(q)[:, None] >= positions(k) * 2,
    "transposed": lambda q, k: (positions(q) >= positions(k)[:, None]).t().contiguous().t(),
    "joined_out_of_order": lambda q, k: (
        torch.cat([positions(q), positions(q)])[q.shape[2] // 2 :][: q.shape[2], None] >= positions(k)
    ),
    "every_second_key": lambda q, k: positions(q)[:, None] >= torch.arange(2 * k.shape[2], device=q.device)[::2],
    "all_but_the_first": lambda q, k: expanded(positions(k) > 0, q, k),
    "of_data": lambda q, k: (positions(q)[:, None] >= 0) & (k[0, 0, :, 0] > -9),
    "of_floats": lambda q, k: expanded(positions(k).float() >= 0, q, k),
    "window": lambda q, k: (positions(q)[:, None] - positions(k)).abs() < 3,
    "none_at_all": lambda q, k: expanded(positions(k) < 0, q, k),
}


def attention_operand(explained):
    lines = [line for line in explained.segments[0]["graph"].splitlines() if not line.strip().startswith("#")]
    (line,) = [line for line in lines if re.search(r"attention\w*\(", line)]
    operands = re.search(r"attention\w*\((.*)\)", line).group(1).split(", ")
    return operands[3] if "cresset::" in line else operands[5]


# The CPU's kernel gives NaN for queries of NaN with a mask alone.
@pytest.mark.parametrize(
    "device, dtype", [("cuda", torch.float32), ("cuda", torch.bfloat16), ("cpu", torch.float32)], ids=str
)
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("name", [*IDLE_MASKS, *CAUSAL_MASKS, *OTHER_MASKS])
def test_masks(name, gradients, device, dtype):
    program = masked({**IDLE_MASKS, **CAUSAL_MASKS, **OTHER_MASKS}[name])
    compiled = cresset.compile(program)
    for n in (4, 7, 1, 4) if name.endswith("in_vmap") else (4, 7, 1, 0, 4):  # eager mode's vmap takes no empty tensors
        given = [torch.randn(2, 3, n, 8, device=device, dtype=dtype, requires_grad=gradients) for _ in range(3)]
        given[0].data[:, :, :2] = float("nan") if n == 7 else 1.0
        beside = copied(given)
        got = compiled(*given)
        with sdpa_kernel(SDPBackend.MATH):  # GPUs' kernels differ about queries that see no key
            expected = program(*beside)
        tolerance = TOLERANCE.get(dtype, 1e-4)
        torch.testing.assert_close(got, expected, equal_nan=True, rtol=tolerance, atol=tolerance)
        if gradients and n != 7:
            for t in (got, expected):
                t.sum().backward()
            assert_same([t.grad for t in given], [t.grad for t in beside], strides=False)
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]
    if not gradients:
        explained = cresset.explain(program)(*(torch.randn(2, 3, 5, 8, device=device) for _ in range(3)))
        assert (attention_operand(explained) == "none") == (name not in OTHER_MASKS and device == "cuda")


def test_a_guard_decides_about_a_mask():
    program = masked(lambda q, k: (positions(q)[:, None] - positions(k)).abs() < 16)
    compiled = cresset.compile(program)
    for n in (4, 9, 40, 16, 17, 4):
        given = [cuda(2, 3, n, 8) for _ in range(3)]
        torch.testing.assert_close(compiled(*given), program(*given), rtol=1e-4, atol=1e-4)
    assert cresset.stats()["graphs"] == 2
    explained = cresset.explain(program)(*(cuda(2, 3, 5, 8) for _ in range(3)))
    assert attention_operand(explained) == "none"


class Block(nn.Module):
    def __init__(self, features=16):
        super().__init__()
        self.norm, self.out = nn.LayerNorm(features), nn.Linear(features, features)
        self.qkv = nn.Linear(features, 3 * features)
        self.mlp = nn.Sequential(nn.RMSNorm(features), nn.Linear(features, 32), nn.GELU(), nn.Linear(32, features))

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.head = nn.Linear(72, 5)

    def forward(self, x):
        return self.head(self.body(x))


MODELS = {"block": (Block, lambda n: cuda(n, 6, 16)), "images": (Images, lambda n: cuda(n, 3, 8, 8))}


def steps(model, step, batches, optimizer):
    torch.manual_seed(3)
    return [step(model, batch, optimizer).detach() for batch in batches]


def plain_step(model, batch, optimizer):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def autocast_step(dtype):
    def step(model, batch, optimizer):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype):
            loss = model(batch).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW], ids=lambda o: o.__name__)
@pytest.mark.parametrize(
    "step, dtype",
    [
        (plain_step, torch.float32),
        (plain_step, torch.bfloat16),
        (autocast_step(torch.bfloat16), torch.float32),
    ],
    ids=["f32", "bf16", "autocast"],
)
@pytest.mark.parametrize("whole", [False, True], ids=["model", "whole_step"])
@pytest.mark.parametrize("name", MODELS)
def test_training(name, whole, step, dtype, optimizer):
    make, batch = MODELS[name]
    torch.manual_seed(0)
    models = [make().cuda().to(dtype) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    initial = [p.detach().clone() for p in models[0].parameters()]
    batches = [batch(n).to(dtype) for n in (4, 6, 4)]
    expected = steps(models[0], step, batches, optimizer(models[0].parameters(), lr=0.01))
    mine = optimizer(models[1].parameters(), lr=0.01)
    compiled = models[1] if whole else cresset.compile(models[1])
    got = steps(compiled, cresset.compile(step) if whole else step, batches, mine)
    exact = dtype is torch.float32 and step is plain_step
    tolerance = 1e-4 if exact else 3e-2 if dtype is torch.bfloat16 else 2e-2
    torch.testing.assert_close(torch.stack(got), torch.stack(expected), rtol=tolerance, atol=tolerance)
    # AdamW divides gradients by their size: single small gradients may go either way in 16 bits.
    if exact or optimizer is torch.optim.SGD:
        for a, b in zip(models[1].state_dict().values(), models[0].state_dict().values(), strict=True):
            torch.testing.assert_close(a, b, rtol=2e-3 if exact else 0.1, atol=2e-2)
    for a, b in zip(models[1].buffers(), models[0].buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    updates = [torch.cat([(p - q).flatten() for p, q in zip(m.parameters(), initial, strict=True)]) for m in models]
    assert (updates[1] - updates[0]).norm() <= (0.05 if exact else 0.25) * updates[0].norm()


@pytest.mark.parametrize(
    "columns, bias, dtype",
    [
        (1001, False, torch.float32),
        (1001, True, torch.bfloat16),
        (1002, False, torch.bfloat16),
        (1008, True, torch.float32),
    ],
)
def test_products_with_odd_rows(columns, bias, dtype):
    inner = 1024
    weight, added = cuda(columns, inner, dtype=dtype) / 32, cuda(columns, dtype=dtype) if bias else None
    weights = [weight.clone().requires_grad_() for _ in range(2)]
    program = lambda x, w: F.linear(x.tanh(), w, added) + 1  # noqa: E731
    compiled = cresset.compile(program)
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        for rows in (520, 1, 0):
            x = cuda(rows, inner, dtype=dtype, requires_grad=True)
            y = x.detach().clone().requires_grad_()
            got, expected = compiled(x, weights[0]), program(y, weights[1])
            assert_same(got, expected)
            gradient = cuda(rows, columns, dtype=dtype)
            for result in (got, expected):
                result.backward(gradient)
            for a, b in ((x.grad, y.grad), (weights[0].grad, weights[1].grad)):
                assert (a - b).float().norm() <= 0.02 * b.float().norm()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def test_scaled_gradients():
    def run(compile):
        torch.manual_seed(0)
        model = Block().cuda()
        call = cresset.compile(model) if compile else model
        optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
        for n in (3, 4):
            torch.manual_seed(n)
            with torch.autocast("cuda", torch.float16):
                loss = call(cuda(n, 6, 16)).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return loss.detach()

    torch.testing.assert_close(run(True), run(False), rtol=2e-2, atol=2e-2)


def test_gradients_of_gradients():
    def penalty(x):
        (gradient,) = torch.autograd.grad((x.sin() * x).sum(), x, create_graph=True)
        return gradient.square().sum()

    x = cuda(4, 5, requires_grad=True)
    expected = torch.autograd.grad(penalty(x), x)
    assert_same(torch.autograd.grad(cresset.compile(penalty)(x), x), expected)
    y = cresset.compile(lambda x: (x.exp() * x).sum())(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, (x.exp() * (x + 2)).detach())


@pytest.mark.parametrize("grid", ["cudnn_grid_sampler", "grid_sampler_2d", "grid_sampler_3d"])
def test_grid_sampler(grid):
    volumes = grid == "grid_sampler_3d"
    compiled = cresset.compile(F.grid_sample)
    if simulated is not None:
        simulated.set_cudnn(True)
    try:
        for n in (2, 3):
            images = cuda(n, 2, 4, 5, 6) if volumes else cuda(n, 2, 4, 5)
            places = cuda(n, 3, 4, 2, 3) if volumes else cuda(n, 3, 4, 2)
            options = {"align_corners": grid == "cudnn_grid_sampler"}
            assert_same(compiled(images, places, **options), F.grid_sample(images, places, **options))
    finally:
        if simulated is not None:
            simulated.set_cudnn(False)
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]


@pytest.mark.parametrize(
    "unused", [lambda x, i: F.embedding(i, x), lambda x, i: x[i], lambda x, i: x.gather(0, i[:, None])]
)
def test_indices_that_nobody_reads_by(unused):
    def program(x, i):
        unused(x, i)
        return x + 1

    x, i = cuda(9, 5), torch.arange(4, device="cuda")
    compiled = cresset.compile(program)
    for _ in range(3):
        assert_same(compiled(x, i), program(x, i))
    assert cresset.stats()["graph_breaks"] == 0
    if simulated is not None:  # a GPU's own check of indices ends its context
        for call in (program, compiled):
            with pytest.raises((IndexError, RuntimeError), match="index"):
                call(x, i + 7)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus():
    on_second = cresset.compile(lambda x: x.softmax(-1) + 1)
    x = torch.randn(3, 4, device="cuda:1")
    assert_same(on_second(x), x.softmax(-1) + 1)
    assert cresset.stats()["graph_breaks"] == 0
    across = cresset.compile(lambda x: (x.sin().to("cuda:0") + 1, x.cos()))
    assert_same(across(x), (x.sin().to("cuda:0") + 1, x.cos()))
    made = cresset.compile(lambda x: x + torch.ones(4, device="cuda"))
    with torch.cuda.device(1):
        assert made(x).device == x.device
    assert made(x.to("cuda:0")).device == torch.device("cuda:0")


def test_mixed_devices_raise_as_in_eager_mode():
    x, y = cuda(3), torch.randn(3)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        cresset.compile(lambda x, y: x.sin() + y)(x, y)


def test_results_outlive_later_calls():
    compiled = cresset.compile(lambda x: (x.sin(), x.cumsum(0)))
    inputs = [cuda(n, 3) for n in (4, 5, 4, 4)]
    kept = [compiled(x) for x in inputs]
    for x, results in zip(inputs, kept, strict=True):
        assert_same(results, (x.sin(), x.cumsum(0)))


def test_side_stream():
    compiled = cresset.compile(lambda x: (x * 2).softmax(-1))
    x = cuda(64, 64)
    expected = compiled(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        got = compiled(x)
    torch.cuda.current_stream().wait_stream(side)
    assert_same(got, expected)


@pytest.mark.skipif(simulated is None, reason="a limit on memory, by the simulator")
def test_out_of_memory_leaves_the_function_usable():
    compiled = cresset.compile(lambda x: (x[:, None] * x).cumsum(0).sum())
    small = cuda(8)
    expected = compiled(small)
    simulated.set_memory_limit(0, simulated.memory(0)["live_bytes"] + (1 << 16))
    try:
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
            compiled(torch.ones(2048).to("cuda"))
        assert_same(compiled(small), expected)
    finally:
        simulated.set_memory_limit(0, 0)


def test_results_of_a_device_lend_no_memory_to_another():
    """Intermediates lie in memory of results that are made later: only on their own device."""

    def program(on_cpu, on_gpu):
        mean = on_gpu.softmax(-1).cumsum(0).mean(1)
        total = on_cpu.softmax(-1).cumsum(0).mean(1)
        return (on_cpu * 2).exp(), (on_gpu + mean[:, None]).sin(), mean, total

    compiled = cresset.compile(program)
    for n in (64, 128, 64):
        inputs = torch.rand(n, n), torch.rand(n, n).to("cuda")
        assert_same(compiled(*inputs), program(*inputs))
