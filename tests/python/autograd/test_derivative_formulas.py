"""Derivative formulas for operators whose autograd formulas ask for sizes as numbers, or for data: these hold for all
sizes."""

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
    assert (stats["graphs"], stats["eager_calls"]) == (2, 0), stats  # the first float is specialized


BY_WHOLE_NUMBERS = {
    "pow": lambda x, n: x**n,
    "pow of a size": lambda x, n: x.abs() ** x.shape[1] * x.shape[1] ** x,
    "pow of a number": lambda x, n: n**x,
    "float_power": lambda x, n: x.float_power(n),
    "pow_": lambda x, n: (x * 1).pow_(n),
    "lerp": lambda x, n: torch.lerp(x, x * 2 + 1, n),
    "repeat": lambda x, n: x.repeat(n, 2) * 2,
    "repeat, new dimensions": lambda x, n: x[:1].repeat(n, 1, x.shape[1], 1).sin(),
    "tile": lambda x, n: x.tile((n, 1, 1)).exp(),
}


@pytest.mark.parametrize("name", BY_WHOLE_NUMBERS)
def test_one_compilation_for_all_whole_numbers(name):
    f = BY_WHOLE_NUMBERS[name]
    compiled = cresset.compile(f)
    for n in (5, 7, 9, 6, 8):
        x = torch.randn(4, n)
        for mine, its in zip(gradients(compiled, x, n), gradients(f, x, n), strict=True):
            torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-5)
            assert mine.stride() == its.stride()
    stats = cresset.stats()
    assert stats["eager_calls"] == 0 and stats["graph_breaks"] == 0, stats["graph_break_reasons"]
    assert stats["graphs"] == (5 if name == "pow_" else 1), stats["recompiles"]


@pytest.mark.parametrize("first", [2, 1, 0, -1])
@pytest.mark.parametrize("name", BY_WHOLE_NUMBERS)
def test_whole_numbers_that_are_special(name, first):
    f = BY_WHOLE_NUMBERS[name]
    compiled = cresset.compile(f)
    for n in (first, 3, 0, 1, 2, 4, -2):
        if n < 0 and name in ("repeat", "repeat, new dimensions", "tile"):
            continue
        x = torch.randn(3, abs(n))
        for mine, its in zip(gradients(compiled, x, n), gradients(f, x, n), strict=True):
            torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert cresset.stats()["eager_calls"] == 0, cresset.stats()["graph_break_reasons"]


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap", "complex"])
def test_powers_in_transforms_of_functions(transform):
    def f(x, n):
        if transform == "grad":
            return torch.func.grad(lambda y: (y**n).sum() + (n**y).sum())(x)
        if transform == "jvp":
            return torch.func.jvp(lambda y: y**n, (x,), (x,))
        if transform == "vmap":
            return torch.vmap(lambda y: y**n)(x)
        return torch.view_as_real((x + 1j) ** n).sum(-1)

    compiled = cresset.compile(f)
    for n in (5, 2, 7, 0, 1, 6):
        x = torch.randn(3, 4)
        assert_same(compiled(x, n), f(x, n))
        if transform == "complex":
            torch.testing.assert_close(gradients(compiled, x, n), gradients(f, x, n))
    stats = cresset.stats()
    assert stats["eager_calls"] == 0, stats["graph_break_reasons"]


def test_repeats_that_turn_out_to_be_one():
    """Symbolic to the program, and a plain number by the facts about the sizes."""

    def f(x, image):
        return x.repeat(1, image.shape[-1] // x.shape[-1], 1 + image.shape[0] - image.shape[0]).sin()

    compiled = cresset.compile(f)
    for width in (4, 4, 7):
        found = []
        given = torch.randn(2, 3, width)
        for call in (f, compiled):
            x = given.clone().requires_grad_()
            call(x, given).sum().backward()
            found.append(x.grad)
        torch.testing.assert_close(found[1], found[0])
