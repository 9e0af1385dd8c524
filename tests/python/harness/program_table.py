"""Notation for small programs in tests: a table of (name, function, maker of its arguments)."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same_call

import cresset


def a(*shape, dtype=torch.float32):
    """Distinct values, positive and negative, none of them special."""
    n = 1
    for s in shape:
        n *= s
    values = torch.arange(n, dtype=torch.float32).mul_(0.37).sub_(1.1)
    return values.reshape(shape).to(dtype)


def table(*rows):
    """Parametrizes a test over (name, function, argument makers)."""
    return pytest.mark.parametrize(("function", "make"), [r[1:] for r in rows], ids=[r[0] for r in rows])


def check(function, make, repeat: int = 2) -> None:
    compiled = cresset.compile(function)
    for _ in range(repeat):
        assert_same_call(function, compiled, *make())
