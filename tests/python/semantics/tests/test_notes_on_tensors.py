"""Attributes that programs set on tensors from before the call: they are read and written as attributes of other
objects."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import cresset


def by_default(p, x):
    return x * getattr(p, "rate", 1.0)


def by_question(p, x):
    return x * 2 if hasattr(p, "rate") else x


def counted(p, x):
    p.count = getattr(p, "count", 0) + 1
    return x * p.count


def by_setattr(p, x):
    setattr(p, "last", x * 2)  # noqa: B010
    return p.last + 1


def deleted(p, x):
    if hasattr(p, "rate"):
        x = x * p.rate
        del p.rate
    return x


def over_break(p, x):
    p.seen = float(x.sum())
    y = x + p.seen
    p.seen += 1
    return y


def in_c_code(p, x):
    class Key:
        def __lt__(self, other):
            p.asked = getattr(p, "asked", 0) + 1
            return False

    sorted([Key(), Key(), Key()])
    return x + p.asked


def listed(p, x):
    return x, sorted(k for k in vars(p) if not k.startswith("_"))


def by_dictionary(p, x):
    p.__dict__["rate"] = p.__dict__.get("rate", 0.0) + 0.5
    return x * p.rate


PROGRAMS = [by_default, by_question, counted, by_setattr, deleted, over_break, in_c_code, listed, by_dictionary]


@pytest.mark.parametrize("kind", [nn.Parameter, lambda t: t], ids=["parameter", "tensor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_in_eager(program, kind):
    def run(compiled):
        p = kind(torch.ones(2))
        f = compiled(lambda x: program(p, x))
        seen = []
        for i in range(9):
            if i in (3, 4, 6):
                p.rate = 2.0 + i
            if i == 7 and hasattr(p, "rate"):
                del p.rate
            out = f(torch.arange(3.0) + i)
            notes = {k: v for k, v in vars(p).items() if not k.startswith("_")}
            seen.append(copy.deepcopy((out, notes)))
        return repr(seen)

    expected = run(lambda f: f)
    cresset.reset()
    assert run(cresset.compile) == expected
    assert cresset.stats()["eager_calls"] == 0, cresset.stats()["graph_break_reasons"]


def test_of_a_tensor_that_is_an_argument_too():
    p = torch.ones(2)

    @cresset.compile
    def f(x):
        x.count = getattr(p, "count", 0) + 1
        return x * p.count if p is x else x

    for i in range(5):
        assert f(p).tolist() == [i + 1.0] * 2
        assert f(torch.ones(2)).tolist() == [1.0, 1.0]
