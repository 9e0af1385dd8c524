"""Objects of each call's own, whatever their origin: plain numbers where a capture ends for good inside of code called
by C functions, arguments of exceptions, dictionaries after a graph break."""

from collections import OrderedDict

import pytest
import torch

import cresset


class Key:
    def __init__(self, x):
        self.x = x

    def __hash__(self):
        return int(self.x.sum().item() > 100)

    def __eq__(self, other):
        return self is other


class Position:
    def __init__(self, x):
        self.x = x

    def __index__(self):
        return int(self.x.sum().item() > 100)


class State:
    def __init__(self):
        self.of, self.items = {}, []


def set_default(w, x, n):
    return w.of.setdefault(Key(x), n + x.shape[0])


def insert(w, x, n):
    w.items.insert(Position(x), n + x.shape[0])


def default_of_next(w, x, n):
    w.items.append(next((i for i in [1] if i > x.sum().item() + 20), n + x.shape[0]))


def get(w, x, n):
    return w.of.get(Key(x), n + x.shape[0])


def pop(w, x, n):
    return [w.of.pop(Key(x), n + x.shape[0])]


def from_keys(w, x, n):
    w.items.append(list(dict.fromkeys((Key(x) for _ in range(2)), n + x.shape[0]).values()))


def index(w, x, n):
    w.items.append(n)
    return w.items.index(n + 0 * x.shape[0], Position(x))


PROGRAMS = [set_default, insert, default_of_next, get, pop, from_keys, index]


def types_in(value):
    if isinstance(value, list | tuple):
        return [found for item in value for found in types_in(item)]
    return [type(value)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_numbers_held_by_c_code(program):
    compiled, expected_state, state = cresset.compile(program), State(), State()
    for call in range(4):
        x = torch.randn(2 + call, 3)
        expected, got = program(expected_state, x, call), compiled(state, x, call)
        assert (got, state.items, list(state.of.values())) == (
            expected,
            expected_state.items,
            list(expected_state.of.values()),
        )
        assert set(types_in([got, state.items, list(state.of.values())])) <= {int, type(None)}


def raise_in_a_group(x, n):
    try:
        raise ExceptionGroup("g", [ValueError(n), TypeError("t")])
    except* ValueError as e:
        _ = e.exceptions[0].args, x.sum().item()
    except* TypeError as e:
        kept = e.exceptions[0]
    return kept


def test_each_call_makes_its_own_arguments_of_exceptions():
    compiled = cresset.compile(raise_in_a_group)
    made = [compiled(torch.randn(2 + call), call) for call in range(5)]
    assert len({id(e.args) for e in made}) == 5
    assert all(e.args == ("t",) for e in made)


def annotated(x, n):
    def scale(t):
        return t

    cresset.graph_break()
    scale.__annotations__["t"] = n
    cresset.graph_break()
    return scale.__annotations__


def ordered(x, n):
    found = OrderedDict(a=x)
    found.notes = {"": {"version": 1}}
    cresset.graph_break()
    return found.notes[""]


@pytest.mark.parametrize("program", [annotated, ordered])
def test_each_call_makes_its_own_dictionaries(program):
    compiled = cresset.compile(program)
    made = [compiled(torch.randn(2), call) for call in range(5)]
    assert len({id(d) for d in made}) == 5
    assert made == [program(torch.randn(2), call) for call in range(5)]


def static_method(made):
    class Made:
        @staticmethod
        def use():
            made.append(1)

    return Made, Made.use


def of_instances(made):
    class Made:
        @property
        def used(self):
            return made.append(1)

        def use(self):
            return self.used

    return Made, Made().use


def of_a_base(made):
    class Base:
        def use(self):
            made.append(1)

    class Made(Base):
        pass

    return Made, Made().use


def by_a_default(made):
    class Made:
        @classmethod
        def use(cls, into=made):
            into.append(1)

    return Made, Made.use


def by_a_function(made):
    def inner():
        made.append(1)

    class Made:
        def use(self):
            inner()

    return Made, Made().use


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("make", [static_method, of_instances, of_a_base, by_a_default, by_a_function])
def test_a_class_that_holds_what_the_call_made(make, breaks):
    """Calls may share a class from the first call as long as no object in it belongs to a single call."""

    def program(x):
        made = []
        cls, use = make(made)
        if breaks:
            cresset.graph_break()
        return x * 2, made, cls, use

    compiled = cresset.compile(program)
    for rows in (2, 3, 4):
        doubled, made, _, use = compiled(torch.ones(rows))
        use()
        assert made == [1] and doubled.shape == (rows,)
