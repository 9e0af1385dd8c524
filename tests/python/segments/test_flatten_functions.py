"""Functions of the program for decomposing an object (`register_pytree_node`), with graph breaks or reads of data."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.utils._pytree as pytree

import cresset


class Breaks:
    def __init__(self, a):
        self.a = a


class Reads(Breaks):
    pass


class Computes(Breaks):
    pass


class Raises(Breaks):
    pass


seen = []


def breaking(held):
    cresset.graph_break()
    return [held.a], None


def reading(held):
    seen.append(held.a.sum().item())
    return [held.a], None


def computing(held):
    return [held.a + 0], None


def raising(held):
    raise KeyError("not now")


for cls, flatten in ((Breaks, breaking), (Reads, reading), (Computes, computing), (Raises, raising)):
    pytree.register_pytree_node(cls, flatten, lambda parts, context, cls=cls: cls(*parts))


def held_over_a_break(cls, x):
    held = cls(x * 2)
    y = x.sum().item()
    return held.a + y


def given_back(cls, x):
    held = cls(x * 2)
    held.b = x.sum().item() > 0
    return held


def given_back_whole(cls, x):
    return cls(x * 2)


@pytest.mark.parametrize("cls", [Breaks, Reads, Computes, Raises])
@pytest.mark.parametrize("program", [held_over_a_break, given_back, given_back_whole])
def test_made_by_the_call(program, cls):
    compiled = cresset.compile(lambda x: program(cls, x))
    for n in (2, 3, 4, 4):
        x = torch.arange(float(n)) - 1
        expected, got = program(cls, x), compiled(x)
        if isinstance(expected, Breaks):
            assert type(got) is cls and vars(got).keys() == vars(expected).keys()
            expected, got = expected.a, got.a
        assert torch.equal(got, expected)


@pytest.mark.parametrize("cls", [Breaks, Reads, Computes, Raises])
def test_among_the_arguments(cls):
    compiled = cresset.compile(lambda held: held.a * 3 + held.a.sum().item())
    for n in (2, 3, 4, 4):
        held = cls(torch.arange(float(n)) - 1)
        assert torch.equal(compiled(held), held.a * 3 + held.a.sum().item())


@pytest.mark.parametrize("cls", [Breaks, Reads, Computes])
def test_called_by_the_program(cls):
    program = lambda x: pytree.tree_map(lambda t: t * 3, [cls(x + 1)])[0].a + 1  # noqa: E731
    compiled = cresset.compile(program)
    for n in (2, 3, 4, 4):
        x = torch.arange(float(n)) - 1
        assert torch.equal(compiled(x), program(x))


class Held(functools.partial):
    """Only its registered functions decompose it, so a graph break calls them."""

    __slots__ = ("a",)


asked = []


def flatten_held(held):
    asked.append(1)
    cresset.graph_break()
    return [held.a, held.a.sum().item()], None


def make_held(parts, context=None):
    held = Held(len)
    held.a = parts[0]
    return held


pytree.register_pytree_node(Held, flatten_held, make_held)


@pytest.mark.parametrize("lives_on", ["over a break", "in the result"])
def test_the_piece_ends_where_it_is_asked(lives_on):
    def program(x):
        held = make_held([x * 2])
        y = x.sum().item() if lives_on == "over a break" else 1.0
        return held.a + y, held

    compiled = cresset.compile(program)
    asked.clear()
    for n in (2, 3, 4, 4):
        x = torch.arange(float(n)) - 1
        (expected, _), (got, held) = program(x), compiled(x)
        assert torch.equal(got, expected) and type(held) is Held and torch.equal(held.a, x * 2)
    assert asked
