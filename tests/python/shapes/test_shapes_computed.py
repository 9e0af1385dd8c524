"""Integers computed from floats and sizes by arithmetic without an expression: a single compilation, as for sizes."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset

RATES = (0.3, 0.45, 0.6, 0.75, 0.9, 0.2)
COUNTS = (2, 3, 4, 5, 6, 7)


def vector():
    return torch.randn(12)


def check(function, calls, most=2):
    compiled = cresset.compile(function)
    for arguments in calls:
        assert_same_call(function, compiled, *arguments)
    stats = cresset.stats()
    assert stats["graphs"] <= most, stats["recompiles"]
    assert stats["graph_breaks"] == 0, stats["graph_break_reasons"]
    assert stats["eager_calls"] == 0


OF_FLOATS = {
    "rows kept": lambda x, rate: x[: int(12 * rate)] * 2,
    "rows kept of those there are": lambda x, rate: x[: int(x.shape[0] * rate)] * 2,
    "largest": lambda x, rate: x.topk(max(1, int(rate * x.shape[0]))),
    "floor": lambda x, rate: (x * 1, torch.zeros(math.floor(10 * rate))),
    "ceil": lambda x, rate: (x * 1, torch.zeros(math.ceil(10 * rate), 3)),
    "round": lambda x, rate: (x * 1, torch.zeros(round(10 * rate))),
    "truncated, below 0": lambda x, rate: x * int(-10 * rate),
    "the same twice": lambda x, rate: x[: int(12 * rate)] + x[-int(12 * rate) :],
    "a remainder": lambda x, rate: (x * (rate % 0.17), x * (rate // 0.17), x * (7 % rate)),
    "of a size": lambda x, rate: (x * (x.shape[0] // rate), x * (x.shape[0] % rate)),
    "masked": lambda x, rate: x.masked_fill(torch.arange(12) < int(12 * rate), 0.0),
    "steps": lambda x, rate: (x * 1, torch.linspace(-rate, rate, int(10 * rate))),
}
OF_INTS = {
    "a power of two": lambda x, n: (x * 2**n, torch.zeros(2**n)),
    "a shift": lambda x, n: (x * (1 << n), torch.zeros(1 << n), torch.zeros(100 >> n)),
    "bits": lambda x, n: (x * (n & 1), x * (n | 1), x * (n ^ 5), x * (6 & n), torch.ones(n & 3)),
    "a root": lambda x, n: (
        x * 1,
        torch.zeros(math.isqrt(n)),
        torch.zeros(int(math.sqrt(n))),
        torch.zeros(int(n**0.5)),
    ),
    "common divisor": lambda x, n: (x * 1, torch.zeros(math.gcd(n, 12)), torch.zeros(math.gcd(8, n))),
    "rounded": lambda x, n: (x * 1, torch.zeros(round(n * 0.3)), torch.zeros(int((n - 1) * 0.3 + 2))),
    "digits": lambda x, n: x * n.bit_length(),
    "levels": lambda x, n: (x * 1, torch.zeros(math.ceil(math.log2(n)) + 1)),
    "pairs": lambda x, n: x * math.comb(n, 2),
}


@pytest.mark.parametrize("name", OF_FLOATS)
def test_of_floats(name):
    check(OF_FLOATS[name], [(vector(), rate) for rate in RATES])


@pytest.mark.parametrize("name", OF_FLOATS)
def test_of_floats_of_any_value(name):
    """Eager's exceptions, and eager's results for numbers that are no sizes."""
    function = OF_FLOATS[name]
    compiled = cresset.compile(function)
    for rate in (0.5, 0.25, 0.0, 1.0, -0.5, 1e300, 3.5, float("inf"), float("nan"), 0.75):
        if not ((abs(rate) > 2 and "round" in name) or abs(rate) > 1e9):  # sizes beyond any memory
            assert_same_call(function, compiled, vector(), rate)


@pytest.mark.parametrize("name", OF_INTS)
def test_of_ints(name):
    check(OF_INTS[name], [(vector(), n) for n in COUNTS])


@pytest.mark.parametrize("name", OF_INTS)
def test_of_ints_of_any_value(name):
    function = OF_INTS[name]
    compiled = cresset.compile(function)
    for n in (5, 1, 0, -1, -6, 3, 12, 20):
        assert_same_call(function, compiled, vector(), n)


def test_of_a_size():
    """A square image from a row of patches: a guard requires an integer root."""

    def unflattened(x):
        side = int(x.shape[1] ** 0.5)
        return x.view(x.shape[0], side, side, -1).transpose(1, 2).flatten(1, 2) * 2

    compiled = cresset.compile(unflattened)
    for side in (4, 3, 5, 7, 2, 1):
        assert_same_call(unflattened, compiled, torch.randn(2, side * side, 3))
    assert cresset.stats()["graphs"] <= 2, cresset.stats()["recompiles"]


def test_beyond_what_a_double_holds():
    def shifted(x, n):
        return x.double() * (3 << n)

    compiled = cresset.compile(shifted)
    for n in (2, 51, 52, 60, 3):
        assert_same_call(shifted, compiled, vector(), n)


def test_a_number_that_steers_is_a_guard():
    def repeated(x, rate):
        for _ in range(int(4 * rate)):
            x = x * 2
        return x

    compiled = cresset.compile(repeated)
    for rate in (0.3, 0.35, 0.4, 0.6, 0.65):
        assert_same_call(repeated, compiled, vector(), rate)
    assert cresset.stats()["graphs"] == 3, cresset.stats()["recompiles"]  # the first float, then 1 and 2 rounds


def test_with_gradients():
    def kept(x, rate):
        return x.topk(int(rate * x.shape[0])).values.square().sum()

    compiled = cresset.compile(kept)
    for rate in RATES:
        given = vector()
        found = []
        for f in (kept, compiled):
            x = given.clone().requires_grad_()
            f(x, rate).backward()
            found.append(x.grad)
        torch.testing.assert_close(found[1], found[0])
    assert cresset.stats()["graphs"] <= 2, cresset.stats()["recompiles"]
    assert cresset.stats()["eager_calls"] == 0


def test_in_a_later_piece():
    def masked(x, rate):
        count = int(x.abs().sum().item()) + 1
        return x[: int(x.shape[0] * rate)] * count

    compiled = cresset.compile(masked)
    for rate in RATES:
        assert_same_call(masked, compiled, vector(), rate)


def test_of_a_module():
    class Dropping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.keep = 0.9

        def forward(self, x):
            return x[:, : int(x.shape[1] * self.keep)] * 2

    module = Dropping()
    compiled = cresset.compile(module)
    for module.keep in RATES:
        assert_same_call(module, compiled, torch.randn(3, 10))
    assert cresset.stats()["graphs"] <= 2, cresset.stats()["recompiles"]


IMAGES = {
    "nearest": 4,
    "nearest-exact": 4,
    "bilinear": 4,
    "bicubic": 4,
    "area": 4,
    "linear": 3,
    "trilinear": 5,
}


@pytest.mark.parametrize("recompute", [None, True])
@pytest.mark.parametrize("mode", IMAGES)
def test_images_by_a_factor(mode, recompute):
    rank = IMAGES[mode]

    def resized(x, factor):
        return F.interpolate(x, scale_factor=factor, mode=mode, recompute_scale_factor=recompute)

    shape = (2, 3, *(7, 8, 5)[: rank - 2])
    check(resized, [(torch.randn(shape), 1.7 + f) for f in RATES])
    compiled = cresset.compile(resized)
    for factor in (0.5, 1.0, 1.05, 2.0, 2.05, 0.31, 3.3, 0.9):
        for x in (torch.randn(shape), torch.randn(2, 3, *(1, 1, 1)[: rank - 2])):
            if math.floor(factor * x.shape[2]) > 0:
                assert_same_call(resized, compiled, x, factor)


def test_images_by_a_factor_with_gradients():
    def resized(x, factor):
        return F.interpolate(x, scale_factor=factor, mode="bilinear").square().sum()

    compiled = cresset.compile(resized)
    for factor in (1.3, 0.7, 2.2, 1.9, 0.45):
        given = torch.randn(2, 3, 8, 9)
        found = []
        for f in (resized, compiled):
            x = given.clone().requires_grad_()
            f(x, factor).backward()
            found.append(x.grad)
        torch.testing.assert_close(found[1], found[0])
    assert cresset.stats()["graphs"] <= 2, cresset.stats()["recompiles"]


RANGES = {
    "half steps": (lambda x, n: torch.arange(0, n, 0.5), COUNTS),
    "odd steps": (lambda x, n: torch.arange(1, n + 1, 0.3), COUNTS),
    "half an end": (lambda x, n: torch.arange(n / 2), COUNTS),
    "a float of an int": (lambda x, n: torch.arange(float(n), dtype=torch.float64), COUNTS),
    "down": (lambda x, n: torch.arange(n, -n, -0.7), COUNTS),
    "a step": (lambda x, rate: torch.arange(0, 3, rate), RATES),
    "an end": (lambda x, rate: torch.arange(10 * rate), RATES),
    "whole numbers": (lambda x, rate: torch.arange(0, 10 * rate, 1, dtype=torch.int64), RATES[:2]),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges(name):
    function, numbers = RANGES[name]
    check(lambda x, n: (x * 1, function(x, n)), [(vector(), n) for n in numbers])


@pytest.mark.parametrize("name", RANGES)
def test_ranges_that_are_empty_or_raise(name):
    function, _ = RANGES[name]
    compiled = cresset.compile(function)
    for n in (3, 0, -1, 1, 2.5, -0.5):
        assert_same_call(function, compiled, vector(), n)
