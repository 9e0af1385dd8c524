"""Floats made of sizes: factors that are no binary fractions, comparisons, whole numbers of them."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from test_shapes_python import sweep


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


def test_a_product_that_rounds_down_to_another_integer_is_another_variant():
    """90 * 0.7 is 62.99999999999999 in doubles, so eager's image has 62 columns and not 63."""
    rows = [*MANY, *images((5, 90), (5, 100))]
    reasons = sweep(lambda x: F.interpolate(x, scale_factor=0.7), rows, compilations=3)
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


def test_int_pins_the_whole_number_only():
    rows = images((3, 10), (3, 11), (3, 12))
    reasons = sweep(lambda x: x[..., : int(x.size(3) * 0.5)].sum(-1), rows, compilations=2)
    assert "//2 == 5" in reasons[0]


@pytest.mark.parametrize("function", [lambda x: x[..., : round(x.size(3) * 0.5)] + 1, lambda x: x * (x.size(3) * 1.3)])
def test_values_that_are_needed_pin(function):
    sweep(function, images((3, 10), (3, 11)), compilations=2)


def test_is_integer():
    sweep(lambda x: x * 2 if (x.size(3) / 2).is_integer() else x * 3, images((3, 10), (3, 11)), compilations=2)
