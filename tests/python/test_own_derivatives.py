"""Derivatives that autograd computes by asking for sizes as numbers, or for data: ours hold for all of them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same

import cresset

REDUCING = {
    "max": lambda x: x.max() * x,
    "min": lambda x: x.min().exp(),
    "median": lambda x: x.median() + x,
    "nanmedian": lambda x: x.nanmedian() * 2,
    "prod": lambda x: x.prod(),
    "prod of a dimension": lambda x: x.prod(-1),
    "prod kept": lambda x: x.prod(0, keepdim=True),
    "cumprod": lambda x: x.cumprod(-1),
    "cumprod of the first": lambda x: x.cumprod(0),
    "cumsum": lambda x: x.cumsum(-1),
    "spread": lambda x: x[x > -9].var() + x[x < 9].std(unbiased=False) + x[x[:, 0] > -9].var(0).sum(),
    "sums of selected": lambda x: x[x > -9].cumsum(0) * x[x[:, 0] < 9].cumsum(1).sum(),
    "selected": lambda x: x[x > -9].prod() + x[x > -9].max() + x[x < 9].cumprod(0),
}


def gradients(f, x, *numbers):
    x = x.detach().requires_grad_()
    y = f(x, *numbers)
    (found,) = torch.autograd.grad(y, x, torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view(y.shape))
    return y.detach(), found


def with_zeros(*shape):
    x = torch.randn(shape)
    x.view(-1)[:: max(2, shape[-1])] = 0
    x.view(-1)[shape[-1] :] = x.view(-1)[shape[-1] :].relu()  # rows of several zeros
    return x


def with_ties(*shape):
    return torch.randint(-2, 3, shape).float()


@pytest.mark.parametrize("front_end", ["trace", "evaluate"])
@pytest.mark.parametrize("name", REDUCING)
def test_one_compilation_for_all_sizes_and_data(name, front_end):
    f = REDUCING[name]
    compiled = cresset.compile(f, options={"frontend": front_end})
    for make in (torch.randn, with_zeros, with_ties):
        for shape in ((4, 6), (5, 7), (3, 9), (8, 4), (2, 2)):
            x = make(*shape)
            for a, b in zip(gradients(compiled, x), gradients(f, x), strict=True):
                torch.testing.assert_close(a, b)
                assert a.stride() == b.stride()
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_numbers_that_are_none(name):
    f = REDUCING[name]
    x = torch.randn(4, 6)
    x[1, 2] = x[3, 3] = float("nan")
    for a, b in zip(gradients(cresset.compile(f), x), gradients(f, x), strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize("name", ["max", "prod", "prod of a dimension", "cumprod"])
def test_derivatives_of_derivatives(name):
    def f(x):
        (first,) = torch.autograd.grad(REDUCING[name](x).square().sum(), x, create_graph=True)
        return first.sin().sum()

    x = torch.rand(3, 4, dtype=torch.float64) + 0.5
    for a, b in zip(gradients(cresset.compile(f), x), gradients(f, x), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["max", "prod", "prod of a dimension", "cumprod"])
def test_derivatives_forwards(name):
    f = REDUCING[name]
    x, tangent = torch.randn(3, 4), torch.randn(3, 4)
    compiled = cresset.compile(lambda x, t: torch.func.jvp(f, (x,), (t,)))
    assert_same(compiled(x, tangent), torch.func.jvp(f, (x,), (tangent,)))
    per_row = torch.func.vmap(torch.func.grad(lambda row: f(row[None]).sum()))
    torch.testing.assert_close(cresset.compile(per_row)(x), per_row(x))


BY_FLOATS = {
    "elu": lambda x, a: F.elu(x, a),
    "softplus": lambda x, a: F.softplus(x, a),
    "softplus turns": lambda x, a: F.softplus(x, 1.5, a),
    "leaky_relu": lambda x, a: F.leaky_relu(x, a),
    "leaky_relu in place": lambda x, a: F.leaky_relu(x * 2, a, inplace=True),
    "hardtanh": lambda x, a: F.hardtanh(x, -a, a),
    "threshold": lambda x, a: F.threshold(x, a, 20.0),
    "threshold's value": lambda x, a: F.threshold(x, 0.5, a),
    "hardshrink": lambda x, a: F.hardshrink(x, a),
    "lerp": lambda x, a: torch.lerp(x, x * 2 + 1, a),
    "pow": lambda x, a: x.abs().pow(a),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", BY_FLOATS)
def test_one_compilation_for_all_floats(name, dtype):
    f = BY_FLOATS[name]
    compiled = cresset.compile(f)
    torch.manual_seed(0)
    for i, a in enumerate((0.5, 1.25, 2.75, 0.1, 3.3)):
        x = torch.randn(4, 6 + i).to(dtype)
        tolerance = dict(rtol=2e-2, atol=2e-2) if dtype == torch.bfloat16 else dict(rtol=1e-5, atol=1e-6)
        for mine, its in zip(gradients(compiled, x, a), gradients(f, x, a), strict=True):
            torch.testing.assert_close(mine, its, **tolerance)
            assert mine.stride() == its.stride()
    stats = cresset.stats()
    assert (stats["graphs"], stats["eager_calls"]) == (2, 0), stats  # the first float is taken as it is
