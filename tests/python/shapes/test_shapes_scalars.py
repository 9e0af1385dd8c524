"""Floats: varying arguments and unbacked scalars are symbols where they flow into arithmetic alone."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset

EVALUATE = {"frontend": "evaluate"}


def affine(x, f):
    return x * f + f, x - f, f - x, x / f


def scaled_linear(x, f):
    return F.linear(x, torch.ones(5, x.shape[-1])) * f


def by_alpha(x, f):
    return torch.add(x, x * 2, alpha=f), x.sub(x + 1, alpha=f)


def in_place(x, f):
    y = x * 1
    y *= f
    y += f
    return y


def computed(x, f):
    g = f * 2 + 1
    return x * g - f / 4, (1 - f) * x


def with_sizes(x, f):
    return x * (f * x.shape[0]), x + (x.shape[1] - f)


def returned(x, f):
    return x * f, f, [f * 2]


def asked_for_its_type(x, f):
    return x * f if isinstance(f, (int, float)) and type(f) is float else x


def filled(x, f):
    return torch.full((3,), f), x.masked_fill(x > 0, f), x.clone().fill_(f), torch.where(x > 0, x, f)


SYMBOLIC = [affine, scaled_linear, by_alpha, in_place, computed, with_sizes, returned, asked_for_its_type]
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


@pytest.mark.parametrize("function", SYMBOLIC, ids=lambda f: f.__name__)
def test_a_float_that_varies_is_compiled_for_once(function):
    compiled = cresset.compile(function, options=EVALUATE)
    for f in (0.5, 0.7, -1.25, 3.0, 1e-3):
        assert_same_call(function, compiled, torch.randn(4, 3), f)
    stats = cresset.stats()
    assert stats["graphs"] <= 2, stats["recompiles"]
    assert stats["graph_break_reasons"] == []


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64, torch.bool])
def test_type_promotion_is_that_of_a_number(dtype):
    def function(x, y, f):
        return x * f, x + f, y * f, (x * f).sum()

    compiled = cresset.compile(function, options=EVALUATE)
    x, y = torch.tensor([[0.3, 1.0, -2.0]]).to(dtype), torch.tensor(3).to(dtype)
    for f in (0.5, 0.7, -1.25, 3.0):
        assert_same_call(function, compiled, x, y, f)
    half = dtype is torch.bfloat16  # beside a number in half precision, a float is a graph break
    assert half or cresset.stats()["graphs"] <= 2


@pytest.mark.parametrize("function", [filled], ids=lambda f: f.__name__)
def test_a_float_where_no_tensor_may_stand(function):
    compiled = cresset.compile(function, options=EVALUATE)
    for f in (0.5, 0.7, -1.25):
        assert_same_call(function, compiled, torch.randn(4, 3), f)


def steering(x, f):
    return x * f if f > 0.6 else x - f


def measured(x, f):
    return x * math.sqrt(f) + round(f, 1)


@pytest.mark.parametrize("function", [steering, measured], ids=lambda f: f.__name__)
def test_a_float_that_steers_is_specialized(function):
    compiled = cresset.compile(function, options=EVALUATE)
    for f in (0.5, 0.7, 0.25, 3.0, 0.7, 0.25):
        assert_same_call(function, compiled, torch.randn(4, 3), f)


def test_each_float_is_judged_alone():
    def function(x, f, g):
        return x * f + g if g > 0 else x * f

    compiled = cresset.compile(function, options=EVALUATE)
    for f, g in ((0.5, 1.0), (0.7, 1.0), (0.8, 1.0), (0.9, 1.0), (0.9, -1.0), (0.3, -1.0), (0.2, -1.0)):
        assert_same_call(function, compiled, torch.randn(4, 3), f, g)
    assert cresset.stats()["graphs"] <= 4


def test_floats_beside_ints_and_tensors():
    def function(x, n, f, y, m, g):
        return x * f + y * n, x.repeat(m) * g

    compiled = cresset.compile(function, options=EVALUATE)
    for i in range(1, 6):
        assert_same_call(function, compiled, torch.randn(3), i, 0.5 * i, torch.randn(3), i + 1, 0.25 * i)
    assert cresset.stats()["graphs"] <= 2, cresset.stats()["recompiles"]


# ---- Unbacked scalars


def item_in_arithmetic(x, t):
    f = t.item()
    return x * f + (f * 2 - 1), f


def float_of_a_mean(x, t):
    return x / (float(x.abs().mean()) + 1.0) if False else x * float(t)


@pytest.mark.parametrize("dtype", DTYPES)
def test_item_of_a_float_tensor_is_captured_whole(dtype):
    compiled = cresset.compile(item_in_arithmetic, fullgraph=True, options=EVALUATE)
    for f in (0.5, 0.7, -1.25):
        assert_same_call(item_in_arithmetic, compiled, torch.randn(4, 3), torch.tensor(f, dtype=dtype))
    assert cresset.stats()["graphs"] == 1


def test_item_of_a_float_tensor_is_an_error_where_it_is_no_symbol():
    compiled = cresset.compile(item_in_arithmetic, fullgraph=True, options={"frontend": "trace"})
    with pytest.raises(cresset.CaptureError, match=r"number read from tensor data.*test_shapes_scalars\.py"):
        compiled(torch.randn(4, 3), torch.tensor(0.5))


def test_float_of_a_tensor():
    compiled = cresset.compile(float_of_a_mean, fullgraph=True, options=EVALUATE)
    for f in (0.5, 0.7, -1.25):
        assert_same_call(float_of_a_mean, compiled, torch.randn(4, 3), torch.tensor(f))
    assert cresset.stats()["graphs"] == 1


def test_a_branch_on_a_float_of_data():
    def function(x, t):
        f = t.item()
        return x * f if f > 0.6 else x - f

    compiled = cresset.compile(function, options={"frontend": "evaluate", "capture_scalar_outputs": True})
    for f in (0.5, 0.7, 0.25, 3.0):
        assert_same_call(function, compiled, torch.randn(4, 3), torch.tensor(f))
    strict = cresset.compile(function, fullgraph=True, options=EVALUATE)
    for f in (0.5, 0.7, 0.25, 3.0):  # known at the start of the call: guards
        assert_same_call(function, strict, torch.randn(4, 3), torch.tensor(f))
    computed = cresset.compile(lambda x, t: function(x, t.sin()), fullgraph=True, options=EVALUATE)
    with pytest.raises(cresset.CaptureError, match=r"test_shapes_scalars\.py"):
        computed(torch.randn(4, 3), torch.tensor(0.7))


def test_an_item_flows_into_a_later_piece():
    def function(x, t):
        f = t.item()
        return x * f + 1

    compiled = cresset.compile(function, options=EVALUATE)
    for f in (0.5, 0.7, 0.25, 3.0):
        assert_same_call(function, compiled, torch.randn(4, 3), torch.tensor(f))
    assert cresset.stats()["graphs"] <= 3


def test_numbers_of_a_later_piece_in_live_frames_are_plain():
    def function(x, t):
        n = t.item()
        return x * n + 1

    compiled = cresset.compile(function, options=EVALUATE)
    for dtype in (torch.float32, torch.float64, torch.int64):
        for n in (3, 5, 7):
            assert_same_call(function, compiled, torch.randn(4, 3).to(dtype), torch.tensor(n))


def test_a_number_keeps_its_value_when_its_tensor_is_written():
    def function(x, t):
        f = t.item()
        t.mul_(2)
        return x * f, t

    compiled = cresset.compile(function, fullgraph=True, options=EVALUATE)
    for f in (0.5, 0.7):
        assert_same_call(function, compiled, torch.randn(4), torch.tensor(f))
