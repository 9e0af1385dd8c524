"""Indices computed from floats into a computed tensor, whose kernel may be fused with the indexing."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same_call

import cresset


def gathered(p, f):
    p = p.exp() * 2
    i = (f * 5).floor().long().clamp(0, p.shape[0] - 1)
    return p[i] + p, p.gather(0, i) * 2, p.sigmoid()


def of_a_concatenation(p, f):
    both = torch.cat([p.exp(), p])
    i = f.long().remainder(both.shape[0])
    return both[i].relu() + f, (both * 2)[i] - p, both


def of_rows(p, f):
    table = p.unsqueeze(1) * p
    i = f.long().remainder(p.shape[0])
    return torch.softmax(table[i], -1) + table, table.t()[i] * f


@pytest.mark.parametrize("function", [gathered, of_a_concatenation, of_rows])
def test_indices_from_floats(function):
    compiled = cresset.compile(function)
    for n in (7, 33, 64):
        given = torch.randn(n), torch.rand(n) * 20
        assert_same_call(function, compiled, *given)
