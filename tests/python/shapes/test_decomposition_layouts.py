"""Varying numbers, with tensors that are not row-major: results have eager's layout, and random numbers are drawn in
eager's order."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same_call
from test_shapes_decompositions import (
    DRAWN,
    FLOATS_OF,
    LENGTHS,
    NUMBERS,
    OF_POWERS,
    OFFSETS,
    PLACES,
    SIX,
    WINDOWS,
    matrix,
    numbers_of,
)

import cresset


def turned(x):
    """The tensor with its dimensions reversed in memory."""
    order = tuple(reversed(range(x.dim())))
    return x.permute(order).contiguous().permute(order)


def with_channels_last(x):
    if x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def rows():
    for name in [*NUMBERS, *OF_POWERS]:
        yield name, *numbers_of(name)
    for name, function in DRAWN.items():
        yield name, function, matrix, FLOATS_OF
    for table, numbers in ((WINDOWS, SIX), (PLACES, OFFSETS), (LENGTHS, SIX)):
        for name, (function, make) in table.items():
            yield name, function, make, numbers


@pytest.mark.parametrize("lie", [turned, with_channels_last])
@pytest.mark.parametrize("name,function,make,numbers", [pytest.param(*row, id=row[0]) for row in rows()])
def test_layouts(name, function, make, numbers, lie):
    compiled = cresset.compile(function)
    for number in numbers[:4]:
        assert_same_call(function, compiled, lie(make()), number)


@pytest.mark.parametrize("name", ["bernoulli_", "normal_", "uniform_", "exponential_"])
def test_what_is_drawn_in_place(name):
    def f(x, p):
        return getattr(x.clone(), name)(*((0, p) if name in ("normal_", "uniform_") else (p,)))

    compiled = cresset.compile(f)
    for p in FLOATS_OF:
        assert_same_call(f, compiled, turned(matrix()), p)
