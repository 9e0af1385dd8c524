"""Floats made of sizes: factors without a finite binary fraction, comparisons, rounding to integers."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same
from test_shapes_python import sweep

import cresset


def images(*sides):
    return [(torch.randn(2, 3, h, w),) for h, w in sides]


MANY = images((10, 12), (7, 9), (33, 20), (48, 31), (4, 5))


@pytest.mark.parametrize("scale", [1.3, 0.6, 1 / 3, 2.2])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_interpolation_by_any_fraction(scale, mode):
    sweep(lambda x: F.interpolate(x, scale_factor=scale, mode=mode), MANY, compilations=1)


def test_interpolation_by_a_recomputed_scale():
    options = dict(scale_factor=1.3, mode="bilinear", recompute_scale_factor=True)
    sweep(lambda x: F.interpolate(x, **options), MANY, compilations=1)


def test_a_product_that_rounds_down_to_another_integer_is_computed():
    """90 * 0.7 is 62.99999999999999 in doubles, so eager's image has 62 columns and not 63."""
    rows = [*MANY, *images((5, 90), (5, 100))]
    reasons = sweep(lambda x: F.interpolate(x, scale_factor=0.7), rows, compilations=2)
    assert "<= 89" in reasons[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, :, : math.floor(x.size(2) * 0.37) + 1] * 2,
        lambda x: torch.arange(math.ceil(x.size(3) * 1.7)),
        lambda x: torch.arange(math.ceil(1.7 * x.size(3))),
        lambda x: x[..., : math.trunc(x.size(3) * 0.5)].sum(-1),
        lambda x: x + min(x.size(3), 2.5),
        lambda x: x * 2 if x.size(3) * 1.3 > 5 else x,
        lambda x: x * 2 if not x.size(3) * 1.3 < 5.5 else x,
        lambda x: x * 2 if x.size(3) > 2.5 else x,
    ],
)
def test_no_size_is_pinned(function):
    sweep(function, MANY, compilations=1)


def test_comparisons_split_where_they_turn():
    rows = images((3, 10), (3, 4), (3, 3), (3, 2))
    reasons = sweep(lambda x: x * 2 if x.size(3) * 1.3 > 5 else x * 3, rows, compilations=2)
    assert ">= 4" in reasons[0]


@pytest.mark.parametrize("factor", [0.5, 0.75, 0.3])
def test_int_rounds_down_to_a_symbol(factor):
    rows = images((3, 10), (3, 11), (3, 12), (2, 5), (1, 1))
    sweep(lambda x: (x[..., : int(x.size(3) * factor)].sum(-1), int(x.size(2) / 2)), rows, compilations=1)


def test_floats_of_sizes_are_given_back():
    """As results, in the program's state, and at a graph break."""

    def f(x):
        n, m = x.size(2), x.size(3)
        return x * 2, n / (m + 1), m * 0.3, [float(n), (n / 2, {"a": 1 / m})]

    sweep(f, MANY, compilations=1)

    def g(x):
        ratio = x.size(2) / x.size(3)
        y = x.abs().sum().item()  # no cancellation
        return ratio, x * y

    compiled = cresset.compile(g)
    for (x,) in MANY:
        assert_same(compiled(x), g(x))


def test_rounding_to_the_nearest():
    sweep(lambda x: x[..., : round(x.size(3) * 0.5)] + 1, images((3, 10), (3, 11)), compilations=1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * (x.size(3) * 1.3),
        lambda x: x * (1 / (x.size(2) + 1)) + x.size(3) / 7,
        lambda x: x / math.sqrt(x.size(3)) - math.sqrt(x.size(2) / 3),
        lambda x: x.clamp(-x.size(2) / 10, x.size(3) * 0.05),
        lambda x: x.clamp(max=0.3 * x.size(2)).clamp_min(-1 / x.size(3)),
        lambda x: x.abs() ** (1 / x.size(2)),
        lambda x: (1 + 1 / x.size(2)) ** x,
        lambda x: torch.where(x > 1 / x.size(3), x, -0.5 / x.size(2)),
        lambda x: torch.full((x.size(2),), 1 / x.size(3)),
        lambda x: x.new_full((2, x.size(2)), x.size(2) * 0.7 - 1),
        lambda x: torch.full_like(x, 0.1 * x.size(3)),
        lambda x: torch.lerp(x, x * 2, 1 / x.size(3)),
        lambda x: F.leaky_relu(x, 1 / x.size(3)),
        lambda x: x.masked_fill(x > 0, x.size(2) / x.size(3)),
        lambda x: x * 1 < x.size(2) / 20,
        lambda x: (2 * (x.size(2) - 1) / x.size(3) - 1) * x + (1.5 + x.size(2) / 3) * (x.size(3) / 4 + 0.25),
        lambda x: x.add(x, alpha=1 / x.size(2)),
        lambda x: (x * 1).fill_(x.size(3) / 3) + x * x.size(2) ** 0.5,
    ],
)
def test_arithmetic_of_floats_made_of_sizes_is_a_part_of_the_program(function):
    sweep(function, MANY, compilations=1)


def test_a_float_made_of_sizes_that_steers_is_guarded_by_the_outcome():
    def f(x):
        scale = 1 / x.size(2) + x.size(3) * 0.3
        return x * scale if scale > 3 else x - scale

    compiled = cresset.compile(f)
    for (x,) in MANY:
        assert_same(compiled(x), f(x))
    stats = cresset.stats()
    assert stats["graph_break_reasons"] == [] and stats["graphs"] == 2
    assert "((1 / args[0].size(2)) + (args[0].size(3) * 0.3)) > 3" in stats["recompiles"][0], stats["recompiles"]


def test_sizes_and_floats_that_steer_together():
    def f(x, rate):
        steps = math.ceil(rate * x.size(2) / 7 + 0.5) + round(x.size(3) * 0.1 + 0.25)
        return x * steps if math.sqrt(x.size(2)) * rate <= 3.5 else x - steps

    compiled = cresset.compile(f)
    for rate in (0.5, 0.7, 1.3, 0.51, 0.69):
        for (x,) in MANY:
            assert_same(compiled(x, rate), f(x, rate))
    assert cresset.stats()["eager_calls"] == 0


def test_division_by_a_float_that_is_zero():
    def f(x):
        return x * (1.5 / (x.size(0) / 2)), 2.0 / (x.size(0) * 0.3)

    compiled = cresset.compile(f)
    for n in (2, 3, 0, 4):
        x = torch.randn(n, 2)
        if n:
            assert_same(compiled(x), f(x))
        else:
            with pytest.raises(ZeroDivisionError, match="float division by zero"):
                compiled(x)


def test_is_integer():
    sweep(lambda x: x * 2 if (x.size(3) / 2).is_integer() else x * 3, images((3, 10), (3, 11)), compilations=2)
