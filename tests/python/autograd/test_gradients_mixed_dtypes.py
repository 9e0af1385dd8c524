"""Backward passes of operators with tensors of several dtypes: CPU kernels return other dtypes than meta kernels, and
raise where meta kernels do not."""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch
import torch.nn.functional as F

import cresset

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}


def loss(function, **more):
    return lambda x, t: function(x, t, **more)


OPERATORS = {
    **{
        f"{name}_{reduction}": loss(getattr(F, name), reduction=reduction)
        for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
        for reduction in ("mean", "none")
    },
    "soft_margin": loss(F.soft_margin_loss),
    "poisson": loss(F.poisson_nll_loss),
    "bce": lambda x, t: F.binary_cross_entropy(x.sigmoid(), t.sigmoid()),
    "bce_logits": lambda x, t: F.binary_cross_entropy_with_logits(x, t.sigmoid()),
    "kl_div": lambda x, t: F.kl_div(x.log_softmax(1), t.softmax(1), reduction="sum"),
    "cross_entropy": lambda x, t: F.cross_entropy(x, t.softmax(1)),
    "cosine": lambda x, t: F.cosine_similarity(x, t),
    "distance": lambda x, t: F.pairwise_distance(x, t),
    "dist": lambda x, t: torch.dist(x, t),
    "gaussian": lambda x, t: F.gaussian_nll_loss(x, t, t.square() + 1),
    "group_norm": lambda x, t: F.group_norm(x, 2, t[0], t[1]),
    "layer_norm": lambda x, t: F.layer_norm(x, (8,), t[0], t[1]),
    "rms_norm": lambda x, t: F.rms_norm(x, (8,), t[0]),
    "batch_norm": lambda x, t: F.batch_norm(x, None, None, t[0], t[1], training=True),
    "instance_norm": lambda x, t: F.instance_norm(x[None], weight=t[:, 0], bias=t[:, 1]),
    "prelu": lambda x, t: F.prelu(x, t[0, :1]),
    "where": lambda x, t: torch.where(x > 0, x, t),
    "lerp": lambda x, t: torch.lerp(x, t, 0.3),
    "addcmul": lambda x, t: torch.addcmul(x, t, t),
    "addcdiv": lambda x, t: torch.addcdiv(x, t, t.square() + 1),
    "maximum": lambda x, t: torch.maximum(x, t),
    "atan2": lambda x, t: torch.atan2(x, t),
    "pow": lambda x, t: torch.pow(x.square() + 1, t),
    "hypot": lambda x, t: torch.hypot(x, t),
    "cat": lambda x, t: torch.cat([x, t]),
    "stack": lambda x, t: torch.stack([x, t]),
    "matmul": lambda x, t: x @ t.mT,
    "linear": lambda x, t: F.linear(x, t, t[:, 0]),
    "embedding_bag": lambda x, t: F.embedding_bag(torch.arange(4)[None], x, per_sample_weights=t[None, 0, :4], mode="sum"),
    "index_put": lambda x, t: x.index_put((torch.tensor([0, 2]),), t[:2]),
    "index_add": lambda x, t: x.index_add(0, torch.tensor([0, 2]), t[:2]),
    "scatter_add": lambda x, t: x.scatter_add(0, torch.zeros(1, 8, dtype=torch.int64), t),
    "masked_scatter": lambda x, t: x.masked_scatter(x > 0, t),
    "copied": lambda x, t: x.clone().copy_(t) * x,
    "added_in_place": lambda x, t: (x * 1).add_(t),
    "cdist": lambda x, t: torch.cdist(x, t + 1),
    "tensordot": lambda x, t: torch.tensordot(x, t, ([1], [1])),
    "attention": lambda x, t: F.scaled_dot_product_attention(x[None, None], t[None, None], t[None, None]),
    "conv": lambda x, t: F.conv1d(x[None], t[:, :4, None]),
    "grid_sample": lambda x, t: F.grid_sample(x.reshape(1, 2, 4, 4), t.reshape(1, 4, 4, 2).tanh(), align_corners=False),
}  # fmt: skip


def observed(f, first, second, scale):
    """Result and gradients, or the error."""
    generator = torch.Generator().manual_seed(1)
    leaves = [torch.randn(4, 8, generator=generator).to(d).requires_grad_() for d in (first, second)]
    try:
        out = f(*leaves)
        (out.float() * scale).sum().backward()
    except Exception as error:
        return [type(error).__name__, str(error).split("\n")[0]]
    return [out.detach(), *(t.grad for t in leaves)]


@pytest.mark.filterwarnings("error:cresset")
@pytest.mark.parametrize("where", ["plain", "behind_region"])
@pytest.mark.parametrize("name", OPERATORS)
def test_two_dtypes(name, where):
    operator = OPERATORS[name]

    def behind_region(x, t):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = x @ torch.eye(8, dtype=x.dtype)
        return operator(h, t)

    f = behind_region if where == "behind_region" else operator
    several = [("f32", "bf16"), ("bf16", "f32")]
    for first, second in itertools.permutations(DTYPES, 2) if where == "plain" else several:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="(?!cresset)")
            warnings.filterwarnings("error", message="cresset")
            expected = observed(f, DTYPES[first], DTYPES[second], 0.5)
            cresset.reset()
            compiled = cresset.compile(f)
            for _ in range(2):
                got = observed(compiled, DTYPES[first], DTYPES[second], 0.5)
                assert len(got) == len(expected), (first, second, got, expected)
                for g, e in zip(got, expected, strict=True):
                    if not isinstance(e, torch.Tensor):
                        assert g == e or (g is None and e is None), (first, second)
                        continue
                    assert (g.dtype, g.shape) == (e.dtype, e.shape), (first, second)
                    low = any(d in (torch.bfloat16, torch.float16) for d in (DTYPES[first], DTYPES[second], e.dtype))
                    loose = (
                        dict(rtol=3e-2, atol=3e-2) if low or where == "behind_region" else dict(rtol=1e-4, atol=1e-5)
                    )
                    torch.testing.assert_close(g, e, **loose)
