"""Cache entries of a function compiled in several ways, and of many conds: each has its own."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same

import cresset

EVALUATE = {"frontend": "evaluate"}


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()
    with torch.no_grad():
        yield


def graphs():
    return cresset.stats()["graphs"]


def test_each_way_of_compiling_has_its_entries():
    scale = {"by": 2.0}

    def f(x, n):
        return x.relu() * scale["by"] + n

    ways = [
        cresset.compile(f, options=EVALUATE),
        cresset.compile(f, fullgraph=True, options=EVALUATE),
        cresset.compile(f, dynamic=False, options=EVALUATE),
        cresset.trace(f),
    ]
    x = torch.linspace(-1, 1, 6)
    for way in ways:
        assert_same(way(x, 3), f(x, 3))
    made = graphs()
    for way in ways * 2:
        assert_same(way(x, 3), f(x, 3))
    assert graphs() == made, "going back to one way compiles nothing"
    scale["by"] = 5.0
    for i, way in enumerate(ways[:3]):
        assert_same(way(x, 3), f(x, 3))
        assert graphs() == made + i + 1, "each finds out for itself"


def test_fullgraph_is_another_entry():
    def f(x):
        return x + x.sum().item()

    pieces, whole = cresset.compile(f, options=EVALUATE), cresset.compile(f, fullgraph=True, options=EVALUATE)

    def g(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    pieces_g, whole_g = cresset.compile(g, options=EVALUATE), cresset.compile(g, fullgraph=True, options=EVALUATE)
    x = torch.ones(3)
    for _ in range(2):
        assert_same(pieces(x), f(x))
        assert_same(whole(x), f(x))
        assert_same(pieces_g(x), g(x))
        with pytest.raises(cresset.CaptureError):
            whole_g(x)
    made = graphs()
    assert_same(pieces_g(x), g(x))
    assert_same(pieces(x), f(x))
    assert graphs() == made


@pytest.mark.parametrize("count", [3, 30])
def test_many_conds(count):
    """Nested and in sequence, with closures: a single program, whatever branches are taken."""

    def f(x, ps):
        for i in range(count):

            def inner(y, i=i):
                return torch.cond(y.sum() > i, lambda y: y - i, lambda y: y * 0.5, (y,))

            x = torch.cond(ps[i], inner, lambda y, i=i: y + i, (x,))
        return x

    compiled = cresset.compile(f, fullgraph=True, options=EVALUATE)
    random = torch.Generator().manual_seed(0)
    for call in range(4):
        ps = [torch.rand((), generator=random) > 0.5 for _ in range(count)]
        x = torch.rand(4, generator=random)
        with torch.compiler.set_stance("force_eager"):
            expected = f(x, ps)
        assert_same(compiled(x, ps), expected)
        if call == 0:
            made = graphs()
    assert graphs() == made
