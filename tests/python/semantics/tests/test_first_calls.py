"""The captures of a single call: all code on its way, also after places that it passes again, so that the next call
finds everything compiled."""

import inspect
import sys

import numpy as np
import pytest
import torch
from torch import nn

import cresset


def counts():
    s = cresset.stats()
    return s["graphs"], s["graph_breaks"], s["eager_fallbacks"], s["eager_calls"], s["operators_captured"]


def assert_first_call_captures_all(function, *args):
    cresset.reset()
    compiled = cresset.compile(function)
    with torch.no_grad():
        expected = function(*args)
        assert torch.allclose(compiled(*args), expected)
        first = counts()
        assert torch.allclose(compiled(*args), expected)
    assert counts() == first
    assert first[2:4] == (0, 0)
    assert cresset.stats()["recompiles"] == []
    return first


def broken_rounds(x, rounds):
    for _ in range(rounds):
        x = x + float(x.sum()) / 1000
    return torch.relu(x) * 2


def test_what_follows_a_loop():
    assert_first_call_captures_all(broken_rounds, torch.randn(3, 4), 12)


def test_not_without_end():
    cresset.reset()
    compiled, x = cresset.compile(broken_rounds), torch.randn(3, 4)
    with torch.no_grad():
        assert torch.equal(compiled(x, 1100), broken_rounds(x, 1100))
        assert cresset.stats()["eager_fallbacks"] == 1
        for _ in range(3):
            assert torch.equal(compiled(x, 1100), broken_rounds(x, 1100))
    assert cresset.stats()["eager_fallbacks"] == 1


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})

    def table(self, rows):
        return np.zeros((rows, 2))

    def attend(self, x, rows):
        y = x * 2
        tables = [self.table(rows)[: rows // 2 - 2] for _ in range(4)]
        return y + torch.tensor(np.stack(tables, axis=0)).sum() + rows

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = self.attend(layer(x), x.size(0)) + i
        for name, layer in self.named.items():
            print(name, end="")
            x = layer(x)
        for name in self.named:
            x = x + float(x.sum()) / 1000 + len(name)
        return x


def test_breaks_in_a_loop_over_modules():
    graphs, breaks, *_ = assert_first_call_captures_all(Layers(), torch.randn(8, 4))
    assert graphs == breaks + 1


def by_c_code(x):
    y = x + 1
    table = np.apply_along_axis(lambda row: row * 2, 0, np.ones((2, 2)))  # runs Python code before it is done
    return y * 2 + float(table.sum())


def test_behind_a_c_function_that_runs_python():
    assert_first_call_captures_all(by_c_code, torch.randn(3))


@pytest.mark.parametrize("view", ["keys", "values", "items"])
def test_iterators_of_dictionaries(view):
    """After a graph break they continue over the dictionary itself: writes of the program are visible."""

    def program(d, x):
        seen = []
        walk = iter(getattr(d, view)())
        seen.append(next(walk))
        x = x + float(x.sum())
        d["b"] = 7
        seen += list(walk)
        return seen, x

    def grows(d, x):
        walk = iter(getattr(d, view)())
        next(walk)
        x = x + float(x.sum())
        d["new"] = 1
        try:
            next(walk)
        except RuntimeError as e:
            return str(e), x

    x = torch.randn(3)
    for function in (program, grows):
        compiled = cresset.compile(function)
        for entries in ({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}, {"b": 5, "a": 1}):
            mine, its = dict(entries), dict(entries)
            got, expected = compiled(mine, x), function(its, x)
            assert got[0] == expected[0] and torch.equal(got[1], expected[1])
            assert mine == its


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4))

    def forward(self, x):
        return x * self.weight / (1 + abs(float(x.sum())))


def test_many_modules_break_at_one_place():
    graphs, *_ = assert_first_call_captures_all(nn.Sequential(*[Scaled() for _ in range(80)]), torch.randn(3, 4))
    assert graphs == 81


def split(x, lengths):
    parts = lengths.tolist()
    return [p * n for p, n in zip(x.split(parts), parts)], sum(parts), max(parts)


def sliced(x, lengths):
    n, m = lengths.tolist()[:2]
    return x[:n] + m, n * 2, (n, m)


def by_rows(x, lengths):
    rows = lengths.view(2, -1).float().tolist()
    return [x * r[0] + r[1] for r in rows], rows


def one_by_one(x, lengths):
    n, scale = int(lengths[0]), x.abs().sum().item()
    return x[: n + 1] / scale, n, scale


@pytest.mark.parametrize("function", [split, sliced, by_rows, one_by_one])
def test_numbers_that_data_gives_are_inputs(function):
    """Other values need no other graph segment, from the first call on."""
    cresset.reset()
    compiled = cresset.compile(function)
    for seed in range(5):
        lengths = torch.randint(0, 5, (4,), generator=torch.Generator().manual_seed(seed))
        x = torch.randn(int(lengths.sum()), 3)
        torch.testing.assert_close(compiled(x, lengths), function(x, lengths))
    s = cresset.stats()
    assert s["graphs"] == s["graph_breaks"] + 1 <= 3 and s["recompiles"] == []


@pytest.mark.parametrize("breaks", ["data", "print", "none"])
def test_a_recursion_without_end_raises_what_eager_raises(breaks, capsys):
    """Also where every frame has a graph break, and each break comes closer to the limit."""

    def f(n, t):
        if breaks == "print":
            print(n)
        if breaks == "data":
            t = t * float(t.sum())
        return f(n + 1, t)

    def program(x):
        try:
            return f(0, x)
        except RecursionError as e:
            return str(e)[:30], x * 2

    compiled, x, limit = cresset.compile(program), torch.ones(3), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        for _ in range(3):
            said, doubled = compiled(x)
            assert said == "maximum recursion depth exceed" and torch.equal(doubled, x * 2)
    finally:
        sys.setrecursionlimit(limit)
