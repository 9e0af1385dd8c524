"""Identity of arguments: guards cover the properties of arguments, and their identity where a program depends on it."""

from __future__ import annotations

import dataclasses
import weakref

import pytest
import torch
from torch import nn

import cresset


class Plain:
    def __init__(self, value):
        self.value = value


@dataclasses.dataclass(eq=False)
class Record:
    value: torch.Tensor
    n: int = 0


KINDS = {
    "tensor": lambda i: torch.ones(2) * i,
    "parameter": lambda i: nn.Parameter(torch.ones(2) * i),
    "object": lambda i: Plain(i + 0.5),
    "record": lambda i: Record(torch.ones(2) * i),
}


class World:
    def __init__(self, kind):
        self.things = [KINDS[kind](i) for i in range(4)]
        self.values = {self.things[0]: torch.tensor(5.0), self.things[1]: torch.tensor(7.0)}
        self.by_pair = {(self.things[0], "m"): 2.0, (self.things[1], "m"): 3.0}
        self.members = {self.things[0]}
        self.listed = [self.things[0], self.things[2]]
        self.marked = weakref.WeakSet() if kind in ("object", "record") else set()
        self.marked.add(self.things[1])
        self.counts, self.hashes = {}, {}


def item(w, p, x):
    return x + w.values[p]


def got(w, p, x):
    return x + w.values.get(p, torch.tensor(0.5))


def in_keys(w, p, x):
    return x * 2 if p in w.values else x


def not_in_set(w, p, x):
    return x * 2 if p not in w.members else x


def in_weak_set(w, p, x):
    return x * 2 if p in w.marked else x


def by_is(w, p, x):
    return x * 2 if any(p is q for q in w.listed) else x


def is_first(w, p, x):
    return x * 2 if p is w.listed[0] else x


def equal_to_one(w, p, x):
    return x * 2 if isinstance(p, (Plain, Record)) and p == w.listed[1] else x


def of_pair(w, p, x):
    return x * w.by_pair.get((p, "m"), 1.0)


def by_hash(w, p, x):
    w.hashes.setdefault(hash(p), x.sum())
    return x * w.hashes[hash(p)]


def by_address(w, p, x):
    if id(p) not in w.hashes:
        w.hashes[id(p)] = x.sum()
    return x * w.hashes[id(p)]


def set_default(w, p, x):
    return x * w.values.setdefault(p, torch.tensor(9.0))


def stored(w, p, x):
    w.values[p] = x.sum()
    return x


def counted(w, p, x):
    w.counts[p] = w.counts.get(p, 0) + 1
    return x * w.counts[p]


def taken_out(w, p, x):
    return x * w.values.pop(p, torch.tensor(0.25))


def deleted(w, p, x):
    if p in w.values:
        del w.values[p]
    return x * len(w.values)


def discarded(w, p, x):
    w.members.discard(p)
    return x * len(w.members)


def place_in_list(w, p, x):
    return x * next(k for k, q in enumerate(w.things) if q is p)


PROGRAMS = [
    item,
    got,
    in_keys,
    not_in_set,
    in_weak_set,
    by_is,
    is_first,
    equal_to_one,
    of_pair,
    by_hash,
    by_address,
    set_default,
    stored,
    counted,
    taken_out,
    deleted,
    discarded,
    place_in_list,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_in_eager(program, kind):
    def run(compiled):
        w, seen = World(kind), []
        f = compiled(lambda p, x: program(w, p, x))
        for i in range(11):
            p = w.things[(0, 1, 2, 0, 3, 1, 1, 2, 0, 3, 3)[i]]
            try:
                out = f(p, torch.arange(2.0) + i).tolist()
            except KeyError:
                out = "no such key"
            at = {id(t): i for i, t in enumerate(w.things)}
            values = {at[id(k)]: float(v) for k, v in w.values.items()}
            counts = {at[id(k)]: v for k, v in w.counts.items()}
            seen.append((out, values, counts, sorted(at[id(m)] for m in w.members)))
        return seen

    expected = run(lambda f: f)
    cresset.reset()
    assert run(cresset.compile) == expected


class Numbers:
    """Numbers that are addresses of some objects, and strings of the addresses."""

    def __init__(self, things):
        self.things, self.last, self.met = things, None, set()
        self.texts, self.listed = {str(id(things[0])): 5.0}, [id(t) for t in things[:2]]
        self.known, self.by_number, self.by_pair = (
            set(self.listed),
            {id(things[1]) + 1: 3.0},
            {(id(things[0]), "m"): 8.0},
        )


def address_equals(w, p, x):
    return x * 2 if id(p) == id(w.things[0]) else x * 3 if id(p) != w.listed[1] else x


def address_below(w, p, x):
    return x if id(p) < id(w.things[1]) else -x


def address_remainder(w, p, x):
    return x * (id(p) // 16 % 7)


def address_and_one(w, p, x):
    return x * w.by_number.get(id(p) + 1, 9.0)


def address_as_text(w, p, x):
    return x * w.texts.get(str(id(p)), 9.0)


def address_formatted(w, p, x):
    return x * w.texts.get(f"{id(p)}", 9.0)


def address_in_state(w, p, x):
    return x * 2 if id(p) in w.known else x * (1 + w.listed.count(id(p)))


def address_in_own_set(w, p, x):
    known = {id(t) for t in w.things[:2]}
    return x * 2 if id(p) in known else x


def address_in_own_dictionary(w, p, x):
    places = {id(t): float(k) for k, t in enumerate(w.things[:3])}
    return x * places.get(id(p), 7.0)


def address_in_a_pair(w, p, x):
    return x * w.by_pair.get((id(p), "m"), 3.0) * (2 if (id(p), 1) == (w.listed[0], 1) else 1)


def address_is_kept(w, p, x):
    same = id(p) == w.last
    w.last = id(p)
    return x * 2 if same else x


def addresses_are_collected(w, p, x):
    w.met.add(id(p))
    return x * len(w.met)


def hash_of_a_pair(w, p, x):
    return x * (hash((p, "m")) % 5)


def greater_address(w, p, x):
    return x if max(id(w.things[1]), id(p)) == id(p) else -x


ADDRESSES = [
    address_equals,
    address_below,
    address_remainder,
    address_and_one,
    address_as_text,
    address_formatted,
    address_in_state,
    address_in_own_set,
    address_in_own_dictionary,
    address_in_a_pair,
    address_is_kept,
    addresses_are_collected,
    hash_of_a_pair,
    greater_address,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", ADDRESSES, ids=lambda f: f.__name__)
def test_addresses_are_those_of_the_call(program, kind):
    """Beside eager on the very same objects: the number differs from run to run."""
    things = [KINDS[kind](i) for i in range(4)]
    mine, its = Numbers(things), Numbers(things)
    f = cresset.compile(lambda p, x: program(mine, p, x))
    for i in range(24):
        p, x = things[(0, 1, 2, 0, 3, 1, 1, 2, 0, 3, 3, 1)[i % 12]], torch.arange(2.0) + i
        assert f(p, x).tolist() == program(its, p, x).tolist(), i
        assert (mine.last, mine.met) == (its.last, its.met)
    assert cresset.stats()["eager_calls"] <= 1, cresset.stats()["graph_break_reasons"]


def test_addresses_of_fresh_objects_are_no_program_each():
    """A kept or formatted number is an input of later code."""
    w = Numbers([torch.ones(2), torch.ones(2)])
    f = cresset.compile(lambda p, x: (address_is_kept(w, p, x), f"{id(p)}", address_remainder(w, p, x)))
    held = [torch.ones(2) * i for i in range(20)]
    graphs = []
    for p in held:
        kept, text, rest = f(p, torch.ones(2))
        assert (kept.tolist(), text, rest.tolist()) == ([1.0, 1.0], str(id(p)), [float(id(p) // 16 % 7)] * 2)
        graphs.append(cresset.stats()["graphs"])
    assert graphs[-1] == graphs[12], graphs
    assert cresset.stats()["eager_calls"] <= 2


def test_other_objects_are_one_program():
    """A fresh object is equal to no known object, and no guard on its identity is needed."""
    known = {torch.ones(2): 1.0}
    first = torch.ones(2)

    @cresset.compile
    def f(x):
        if x in known or x is first:
            return x * 5
        return x * 2

    for i in range(5):
        assert f(torch.ones(2) * i).tolist() == [2.0 * i] * 2
    assert cresset.stats()["graphs"] == 1
    assert f(first).tolist() == [5.0, 5.0]
    assert f(torch.ones(2)).tolist() == [2.0, 2.0]
    assert f(next(iter(known))).tolist() == [5.0, 5.0]


def test_arguments_that_are_told_apart():
    def both(p, q, x):
        return x * 2 if p is q else x

    def listed(things, p, x):
        return x * sum(1 for t in things if t is p)

    def seen(p, q, x):
        known = set()
        for one in (p, q):
            if one in known:
                x = x * 3
            known.add(one)
        return x

    def in_given(p, q, x):
        return x * {p: 2.0}.get(q, 5.0)

    def equal(things, p, x):
        return x * 2 if not isinstance(p, torch.Tensor) and p == things[0] else x

    def run(compiled, kind):
        things, out = [KINDS[kind](i) for i in range(4)], []
        fs = [compiled(f) for f in (both, seen, in_given)]
        in_list, equals = compiled(listed), compiled(equal)
        for i in range(12):
            p, q = things[i % 3], things[(i // 2) % 4]
            out += [f(p, q, torch.ones(2)).tolist() for f in fs]
            out += [f(things[1:3], p, torch.ones(2)).tolist() for f in (in_list, equals)]
        return out

    for kind in KINDS:
        cresset.reset()
        assert run(cresset.compile, kind) == run(lambda f: f, kind), kind


def test_tensors_that_state_exchanges():
    """An attribute, a gradient, and identity: of the present tensor."""

    def run(compiled):
        w, out = World("tensor"), []
        w.now = w.things[0]
        leaf = [torch.ones(2, requires_grad=True) for _ in range(3)]
        w.leaf = leaf[0]
        fs = [
            compiled(lambda x: x * getattr(w.now, "gain", 1.0)),
            compiled(lambda x: x * w.values.get(w.now, 3.0)),
            compiled(lambda x: x if w.leaf.grad is None else x + w.leaf.grad),
        ]
        for i in range(12):
            w.now, w.leaf = w.things[i % 4], leaf[i % 3]
            if i % 5 == 2:
                w.now.gain = 2.0 + i
                w.leaf.grad = torch.ones(2) * i
            out.append([f(torch.ones(2)).tolist() for f in fs])
        return out

    expected = run(lambda f: f)
    cresset.reset()
    assert run(cresset.compile) == expected


def test_frozen_records_as_keys():
    @dataclasses.dataclass(frozen=True)
    class Key:
        n: int
        name: str

    table = {Key(0, "q"): 5.0, Key(1, "q"): 7.0}
    f = cresset.compile(lambda key, x: x * table.get(key, 1.0))
    for i in range(9):
        assert f(Key(i % 3, "q"), torch.ones(2)).tolist() == [(5.0, 7.0, 1.0)[i % 3]] * 2
    assert cresset.stats()["eager_calls"] == 0, cresset.stats()["graph_break_reasons"]


@pytest.mark.parametrize("ask", ["hasattr", "getattr", "direct"])
def test_attributes_that_only_some_tensors_have(ask):
    asks = {
        "hasattr": lambda x: x * 2 if hasattr(x, "flag") else x,
        "getattr": lambda x: x * getattr(x, "flag", 1.0),
        "direct": lambda x: x * x.flag if "flag" in vars(x) else x,
    }

    def run(compiled):
        f, seen = compiled(asks[ask]), []
        for i in range(9):
            x = torch.ones(2) * i
            if i % 3 == 2:
                x.flag = 3.0 + i
            seen.append(f(x).tolist())
        return seen

    expected = run(lambda f: f)
    cresset.reset()
    assert run(cresset.compile) == expected
    assert cresset.stats()["eager_calls"] == 0, cresset.stats()["graph_break_reasons"]


def keyed_by_argument(x):
    d = {x: 1}
    print(end="")
    return d[x]


def keyed_by_result(x):
    y = x + 1
    d = {(y, "m"): 1, "other": y}
    print(end="")
    return d[y, "m"], d["other"]


def keyed_by_both(x):
    d = {x: 1}
    print(end="")
    y = x + 1
    d[y] = 2
    s = {x, y, x}
    return d[x], d[y], len(s), x in d, (x + 1) in d


@pytest.mark.parametrize("program", [keyed_by_argument, keyed_by_result, keyed_by_both])
def test_tensors_as_keys_over_a_break(program):
    """Keys are constants of a reconstruction: a dictionary with the call's own tensors as keys cannot be rebuilt."""
    compiled = cresset.compile(program)
    for _ in range(3):
        x = torch.randn(3)
        for got, expected in zip([compiled(x)], [program(x)], strict=True):
            torch.testing.assert_close(got, expected)


DEFAULT = (0, 0)


def same_two(x, a, b):
    return x * 2, a is b


def same_by_address(x, a, b):
    return x * 2, id(a) == id(b)


def same_item(x, a, b):
    return x * 2, a[0] is b[0]


def fresh(value):
    return "".join(list(value)) if isinstance(value, str) else tuple(list(value))


@pytest.mark.parametrize("f", [same_two, same_by_address, same_item])
def test_which_of_equal_constants(f):
    """Equal tuples of numbers and strings, varying or not: the same object, or two objects."""
    t, s, x = fresh((1, 2)), fresh("abcd"), torch.ones(2)
    pairs = [(t, t), (t, fresh(t)), (fresh(t), fresh(t)), (t, t), (DEFAULT, DEFAULT), (DEFAULT, fresh(DEFAULT))]
    pairs += [((t, 1), (t, 2)), ((t, 1), (fresh(t), 2)), ((t, 1), (t, 2))]
    if f is not same_by_address:
        pairs += [(s, s), (s, fresh(s)), (fresh(s), fresh(s)), (s, s)]
    cresset.reset()
    compiled = cresset.compile(f)
    for a, b in pairs * 2:
        expected, got = f(x, a, b), compiled(x, a, b)
        assert got[1] == expected[1] and torch.equal(got[0], expected[0]), (a, b)
    assert cresset.stats()["eager_calls"] == 0, cresset.stats()["graph_break_reasons"]
