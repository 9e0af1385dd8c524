"""Facts that a program states about sizes, and dimensions excluded from decisions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset


@pytest.fixture(params=["trace", "evaluate"])
def compiled(request):
    def compile(function, **settings):
        return cresset.compile(function, options={"frontend": request.param}, **settings)

    return compile


def one_graph():
    stats = cresset.stats()
    assert stats["graphs"] == 1, stats["recompiles"]
    assert stats["recompiles"] == [] and stats["graph_break_reasons"] == []


def same(function, compiled, *args):
    """Like assert_same_call, on the tensors themselves: copies have no marks."""

    def outcome(f):
        try:
            return f(*args)
        except RuntimeError as error:
            return str(error)

    expected, got = outcome(function), outcome(compiled)
    if isinstance(expected, str):
        assert got == expected
    else:
        torch.testing.assert_close(got, expected)


def unbacked(*sizes):
    x = torch.randn(*sizes)
    cresset.mark_unbacked(x, 0)
    return x


# ---- cresset.check on the size of an input


@pytest.mark.parametrize("state", [cresset.check, lambda c, m: torch._check(c, lambda: m)], ids=["cresset", "torch"])
def test_a_fact_about_a_size_is_asserted_not_guarded(compiled, state):
    def function(x):
        state(x.shape[0] <= 6, "at most six rows")
        return x * 2

    f = compiled(function)
    for rows in (3, 1, 6):
        assert_same_call(function, f, torch.randn(rows, 2))
    for rows in (7, 100):
        with pytest.raises(RuntimeError, match="at most six rows"):
            f(torch.randn(rows, 2))
    assert_same_call(function, f, torch.randn(4, 2))
    one_graph()
    (variant,) = cresset._C.cache_entries(f)
    assert variant["guards"] == []


def test_a_message_made_of_sizes_pins_nothing_where_a_function_makes_it(compiled):
    def function(x, n):
        cresset.check(x.shape[0] <= n, lambda: f"{x.shape[0]} rows, of at most {n}")
        return x * 2

    f = compiled(function)
    for rows in (3, 1, 6):
        assert_same_call(function, f, torch.randn(rows, 2), 6)
    with pytest.raises(RuntimeError, match="7 rows, of at most 6"):
        f(torch.randn(7, 2), 6)
    one_graph()


def test_a_stated_size_settles_a_branch(compiled):
    def function(x):
        cresset.check(x.shape[0] > 2)
        return x + 1 if x.shape[0] > 1 else x - 1

    f = compiled(function)
    for rows in (3, 9):
        assert_same_call(function, f, torch.randn(rows, 2))
    with pytest.raises(RuntimeError):
        f(torch.randn(1, 2))
    one_graph()


def test_a_fact_that_fails_at_the_first_call_is_not_learned(compiled):
    def function(x):
        cresset.check(x.shape[0] > 2, "three rows")
        return x + 1

    f = compiled(function)
    with pytest.raises(RuntimeError, match="three rows"):
        f(torch.randn(1, 2))
    for rows in (3, 9):
        assert_same_call(function, f, torch.randn(rows, 2))
    assert cresset.stats()["graphs"] == 1


def test_a_caught_failure_is_a_branch(compiled):
    def function(x):
        try:
            cresset.check(x.shape[0] > 2)
        except RuntimeError:
            return x - 1
        return x + 1

    f = compiled(function)
    for rows in (1, 3, 2, 9):
        assert_same_call(function, f, torch.randn(rows, 2))


def test_a_fact_selects_nothing():
    with pytest.raises(TypeError, match=r"torch\.cond"):
        if cresset.check(3 > 2):
            pass


def test_a_fact_selects_nothing_in_a_compiled_program(compiled):
    def function(x):
        return x + 1 if cresset.check(x.shape[0] > 2) else x - 1

    with pytest.raises(TypeError, match=r"torch\.cond"):
        compiled(function)(torch.randn(4))


# ---- mark_unbacked


def test_no_guard_on_a_marked_dimension(compiled):
    def function(x, w):
        y = F.layer_norm(x @ w, (4,))
        return torch.cat([y, y * 2]).softmax(-1), y.sum(0), x.shape[0] * 3

    f = compiled(function, fullgraph=True)
    w = torch.randn(3, 4)
    for rows in (5, 1, 0, 2, 64):
        same(function, f, unbacked(rows, 3), w)
    one_graph()
    (variant,) = cresset._C.cache_entries(f)
    assert not any("u" in guard.split(" ")[0] for guard in variant["guards"])


def test_sizes_that_operators_need_are_asserted(compiled):
    def function(x, y):
        return x + y

    f = compiled(function)
    same(function, f, unbacked(5, 3), torch.randn(5, 3))
    same(function, f, unbacked(2, 3), torch.randn(2, 3))
    same(function, f, unbacked(2, 3), torch.randn(3, 3))  # raises
    one_graph()


def branches(x):
    return x + 1 if x.shape[0] > 2 else x - 1


def test_a_decision_ends_the_piece(compiled):
    f = compiled(branches)
    for rows in (3, 1, 5):
        same(branches, f, unbacked(rows, 2))


def test_a_decision_under_fullgraph_is_an_error(compiled):
    with pytest.raises(cresset.CaptureError) as error:
        compiled(branches, fullgraph=True)(unbacked(3, 2))
    text = str(error.value)
    for part in ("args[0].size(0)", "test_shapes_facts.py", "cresset.check("):
        assert part in text, text


def test_a_stated_fact_settles_the_decision(compiled):
    def function(x):
        cresset.check(x.shape[0] > 2, "three rows")
        return branches(x)

    f = compiled(function, fullgraph=True)
    for rows in (3, 9):
        same(function, f, unbacked(rows, 2))
    with pytest.raises(RuntimeError, match="three rows"):
        f(unbacked(1, 2))
    one_graph()


def test_misuse_of_mark_unbacked():
    with pytest.raises(IndexError):
        cresset.mark_unbacked(torch.zeros(2), 1)
    with pytest.raises(TypeError):
        cresset.mark_unbacked(3, 0)
