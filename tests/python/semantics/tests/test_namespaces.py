"""Instances of types.SimpleNamespace, a class in C code: made, changed, passed on, across graph breaks, new at each
call."""

import copy  # noqa: F401
import types

import pytest
import torch

import cresset

SN = types.SimpleNamespace


class Total(types.SimpleNamespace):
    def total(self):
        return self.a + 1


class Slotted(types.SimpleNamespace):
    __slots__ = ("q",)


# Bodies of f(x, n, w, a): w lives on, a differs at each call.
BODIES = {
    "read": "return x * a.n if a.n > 2 else x",
    "written": "a.n += n; a.y = x * a.n; return a.y, a",
    "compared": "return x, w == SN(n=3), SN(a=n) == SN(a=3), w != a",
    "made": "s = SN(a=x, b=n); k = int(s.a.sum()); s.c = k; return s, s.a * s.b",
    "made in a loop": "for i in range(3):\n  s = SN(i=i, v=x.sum().item()); x = x + s.v\nreturn x",
    "of a class": "s = Total(a=x); k = int(s.a.sum()); return s, s.total() * k, isinstance(s, SN), type(s)",
    "with slots": "s = Slotted(a=x); s.q = n; k = int(s.a.sum()); return s.q, s.a * k",
    "nested": "c = SN(model=SN(d=n, h=[1, n]), lr=0.1); c.model.k = x.sum().item(); return c, vars(c.model)",
    "state that is replaced": "w.s = SN(h=x, step=getattr(w.s, 'step', 0) + 1); return w.s.h * w.s.step",
    "copied": "c = copy.copy(a); c.z = 1; d = copy.deepcopy(a); d.z = 2; return c, d, a",
    "of a dictionary": "return SN(**{'a': n, 'b': x}), dict(vars(SN(a=n))), SN(**vars(a))",
    "held": "b = SN(a=a); k = x.sum().item(); return b.a is a, b, k",
}


def outcomes(f):
    w, results, graphs = SN(n=1, s=SN()), [], []
    for i in range(10):
        w.n = i if i % 3 == 0 else w.n
        a = SN(n=i, last=None)
        results.append(repr((f(torch.arange(3.0) + i, 3 + i % 4, w, a), a, w)))
        graphs.append(cresset.stats()["graphs"])
    return results, graphs


def function(body):
    names = dict(globals())
    exec("def f(x, n, w, a):\n " + body.replace("\n", "\n "), names)
    return names["f"]


@pytest.mark.parametrize("name", BODIES)
def test_namespace(name):
    expected, _ = outcomes(function(BODIES[name]))
    cresset.reset()
    got, graphs = outcomes(cresset.compile(function(BODIES[name])))
    assert got == expected
    assert graphs[-1] == graphs[5], graphs
    assert cresset.stats()["eager_fallbacks"] == cresset.stats()["eager_calls"] == 0
