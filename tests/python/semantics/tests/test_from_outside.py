"""Inputs of a graph segment from outside of it: numbers in native operators, attributes of its tensors, gradients
through values from before it, classes queried by code of the program."""

from __future__ import annotations

import types

import pytest
import torch
from compare import assert_same

import cresset


class Lazy:
    """Its operators are called by C code, so that no graph break is possible inside of them."""

    def __init__(self, of):
        self.of = of

    def __mul__(self, by):
        print("times")
        return Lazy(lambda t: self.of(t) * by)

    def __getitem__(self, at):
        print("item")
        return Lazy(lambda t: self.of(t) * at[0] + at[1])


class Memo(dict):
    def __missing__(self, key):
        value = self[key] = torch.full((key[0],), float(key[1]))
        print("made")
        return value


def number_of_an_operator(w, x):
    return (Lazy(lambda t: t) * w.n).of(x)


def numbers_of_a_subscript(w, x):
    return Lazy(lambda t: t)[w.n, x.shape[0]].of(x)


def numbers_as_a_key(w, x):
    return x.sum(1) + w.memo[x.shape[0], w.n], list(w.memo)


def dictionary(w, x):
    return dict(vars(x)), x.__dict__["n"] * x


def items_of_the_dictionary(w, x):
    return sorted(x.__dict__.items()), "n" in x.__dict__, x + 1


def dictionary_of_an_attribute(w, x):
    y = x + 1
    y.notes = {"n": w.n}
    print("between")
    return vars(y), y


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, by):
        ctx.by = by
        return t * by

    @staticmethod
    def backward(ctx, g):
        return g * ctx.by, None


@cresset.disable
def scaled_outside(t, by):
    return Scaled.apply(t, by)


@cresset.disable
def sine_outside(t, by):
    return (t * by).sin()


def through_a_function(w, x):
    t = x.detach().requires_grad_()
    return torch.autograd.grad(scaled_outside(t, w.n).sum(), t)[0]


def through_operators(w, x):
    t = x.detach().requires_grad_()
    return torch.autograd.grad(sine_outside(t, w.n).sum() * 2, t)[0]


def through_what_is_given(w, x):
    return torch.autograd.grad(w.given.sum() * 2, w.leaf)[0]


def up_to_what_is_given(w, x):
    return torch.autograd.grad((w.given * w.n).cos().sum(), w.given)[0]


ASKED = []


class Meta(type):
    def __instancecheck__(cls, thing):
        ASKED.append(thing)
        return thing == 5


class Five(metaclass=Meta):
    pass


def asks_a_class(w, x):
    return isinstance(x.shape[0], Five), isinstance(x.shape[0] + 1, (str, Five)), x + 1


PROGRAMS = [
    number_of_an_operator,
    numbers_of_a_subscript,
    numbers_as_a_key,
    dictionary,
    items_of_the_dictionary,
    dictionary_of_an_attribute,
    through_a_function,
    through_operators,
    through_what_is_given,
    up_to_what_is_given,
    asks_a_class,
]


def world(i):
    w = types.SimpleNamespace(n=i + 1, memo=Memo())
    w.leaf = torch.linspace(0, 1, 12).reshape(3, 4).requires_grad_()
    w.given = Scaled.apply(w.leaf, i + 2).sin()
    x = torch.linspace(-1, 1, 4 * (i + 3)).reshape(i + 3, 4)
    x.n = i * 3
    return w, x


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_eager(program, capsys):
    cresset.reset()
    compiled = cresset.compile(program)
    for i in range(6):
        results = []
        for call in (program, compiled):
            ASKED.clear()
            results.append((call(*world(i)), list(ASKED), capsys.readouterr().out))
        assert_same(results[1], results[0], tolerance=1e-5)
    if program is up_to_what_is_given:
        assert cresset.stats()["graph_breaks"] == 0
