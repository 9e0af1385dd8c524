"""Functions of torch.compiler in captured programs."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import torch
import torch._dynamo

import cresset

X = torch.ones(4)


@torch.compiler.allow_in_graph
def allowed(x):
    return x.sin() + 1


@torch.compiler.nested_compile_region
def region(x):
    return x.cos() * 2


def steps(x):
    torch.compiler.cudagraph_mark_step_begin()
    return x + 1


def exporting(x):
    return x + (1 if torch.compiler.is_exporting() else 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: allowed(x) * 2,
        lambda x: region(x) + region(x * 2),
        steps,
        exporting,
    ],
    ids=["allow_in_graph", "nested_compile_region", "cudagraph_mark_step_begin", "is_exporting"],
)
def test_functions_of_torchs_compiler(function):
    compiled = cresset.compile(function, fullgraph=True)
    for _ in range(4):
        torch.testing.assert_close(compiled(X), function(X))
    assert cresset.stats()["eager_calls"] == 0 and cresset.stats()["graphs"] <= 2


def test_substitute_in_graph():
    @torch.compiler.substitute_in_graph(operator.indexOf)
    def index_of(a, b, /):
        for i, item in enumerate(a):
            if item is b or item == b:
                return i
        raise ValueError("sequence.index(x): x not in sequence")

    compiled = cresset.compile(lambda x: x + operator.indexOf([1, 2, 3], 3), fullgraph=True)
    assert torch.equal(compiled(X), X + 2)


def test_specialize_on_is_accepted():
    """One program serves every size, so the named sizes need no program of their own."""
    compiled = cresset.compile(lambda x: x * 2, fullgraph=True)
    for size in (8, 6, 8):
        x = torch.ones(size, 4)
        torch._dynamo.mark_dynamic(x, 0, specialize_on=[lambda n: n == 8])
        assert torch.equal(compiled(x), x * 2)
    assert cresset.stats()["graphs"] == 1


def test_wrap_numpy():
    function = torch.compiler.wrap_numpy(lambda a: np.sin(a) + 1)
    torch.testing.assert_close(cresset.compile(lambda x: function(x) * 2)(X), function(X) * 2)
