"""Iterators in state, advanced by a loop with a graph break: the same object, at the same position."""

from __future__ import annotations

import pytest
import torch

import cresset


class Holder:
    pass


def of(make):
    def loop(h, x, n):
        h.it, out = make(n), []
        for k in h.it:
            k = k if isinstance(k, int) else k[1]
            if x[k] > 0:
                next(h.it, None)
            out.append(k)
        return out

    return loop


def inside_a_list(h, x, n):
    it = iter(range(n))
    h.pair, out = [it, 1], []
    for k in it:
        if x[k] > 0:
            next(h.pair[0], None)
        out.append(k)
    return out


def from_call_to_call(h, x, n):
    if not hasattr(h, "it"):
        h.it = iter(range(100))
    out = []
    for k in h.it:
        if x[k % 50] > 0:
            break
        out.append(k)
    return out


def one_at_a_time(h, x, n):
    if not hasattr(h, "it"):
        h.it = iter(list(range(100)))
    k = next(h.it)
    if x[k % 50] > 0:
        k += next(h.it)
    return k


LOOPS = {
    "range": of(lambda n: iter(range(n))),
    "list": of(lambda n: iter(list(range(n)))),
    "enumerate": of(lambda n: enumerate(list(range(n)))),
    "dict": of(lambda n: iter(dict.fromkeys(range(n)))),
    "zip": of(lambda n: zip(range(n), range(n), strict=True)),
    "generator": of(lambda n: (k for k in range(n))),
    "inside a list": inside_a_list,
    "from call to call": from_call_to_call,
    "one at a time": one_at_a_time,
}


@pytest.mark.parametrize("name", LOOPS)
def test_one_object_at_one_place(name):
    function, mine, theirs = LOOPS[name], Holder(), Holder()
    compiled = cresset.compile(lambda x, n: function(mine, x, n))
    for i in range(8):
        x = torch.randn(60, generator=torch.Generator().manual_seed(i))
        assert compiled(x, 6 + i) == function(theirs, x, 6 + i)
    if hasattr(mine, "it"):
        assert list(mine.it) == list(theirs.it)
