"""Source positions in the user's program, as the front end reports them: in errors, in tracebacks, to the program
itself; and the cost of recording them."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import sys
import time
import traceback

import pytest
import torch

import cresset


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if text in line)


def breaks_at_once(x):
    print("hello")
    return x + 1


def breaks_late(x):
    y = x + 1

    def inner(t):
        return float(t.sum())  # here

    return inner(y)


@pytest.mark.parametrize("function, text", [(breaks_at_once, "print"), (breaks_late, "# here")])
def test_what_cannot_be_captured_is_told_with_its_line(function, text):
    place = f"{__file__}:{line_of(function, text)} in"
    with contextlib.redirect_stdout(io.StringIO()):
        cresset.compile(function)(torch.ones(3))
        assert place in cresset.stats()["graph_break_reasons"][0]


def test_fullgraph_names_the_line_before_any_operator():
    place = f"{__file__}:{line_of(breaks_at_once, 'print')} in"
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(cresset.CaptureError, match=re.escape(place)):
        cresset.compile(breaks_at_once, fullgraph=True)(torch.ones(3))


def test_an_effect_in_a_branch_does_not_happen_where_it_is_an_error():
    log = []

    def f(x):
        def branch(t):
            log.append(1)  # here
            return t + 1

        return torch.cond(x.sum() > 0, branch, lambda t: t - 1, (x,))

    with pytest.raises(cresset.CaptureError) as error:
        cresset.compile(f, fullgraph=True)(torch.ones(3))
    assert log == [] and f"{__file__}:{line_of(f, '# here')} in" in str(error.value)
    assert torch.equal(cresset.compile(f)(torch.ones(3)), torch.full((3,), 2.0)) and log == [1]


def test_a_condition_that_is_decided_names_the_users_line():
    def f(x):
        return torch.cond(x.sum() > 0, lambda t: t[:1], lambda t: t, (x,))  # here

    cresset.compile(f)(torch.ones(3))
    assert f"{__file__}:{line_of(f, '# here')} in" in cresset.stats()["graph_break_reasons"][0]


def raises(x, depth):
    if depth:
        return [
            raises(t, depth - 1)  # the frames in between
            for t in (x + 1, x)
        ]
    return x.view(-1) @ torch.ones(
        7,
        7,
    )


def looks_around(x, seen):
    def inner(t):
        t = t * 2
        seen.append(sys._getframe(1).f_lineno)
        seen.append([(f.function, f.lineno) for f in inspect.stack()[:2]])
        print("a break")
        seen.append([(f.name, f.lineno) for f in traceback.extract_stack()][-2:])
        return t

    return [
        inner(t)
        for t in x  # the second line
    ]


def test_tracebacks_and_stacks_are_those_of_the_program():
    def told(f):
        try:
            f(torch.ones(2, 3), 2)
        except RuntimeError as error:
            frames = traceback.extract_tb(error.__traceback__)[1:]
            return str(error), [(f.filename, f.name, f.lineno, f.colno, f.end_colno) for f in frames]

    compiled, expected, got = cresset.compile(raises), [], []
    for _ in range(3):
        assert told(compiled) == told(raises)
    compiled = cresset.compile(looks_around)
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(3):
            looks_around(torch.ones(2, 2), expected)
            compiled(torch.ones(2, 2), got)
    assert got == expected


def test_recording_places_is_cheap():
    """Twenty times cheaper than formatting a stack, however deep it is."""
    operators = 1000

    def work(x, depth):
        if depth:
            return work(x, depth - 1)
        started = time.perf_counter()
        for _ in range(operators):
            x = x + 1
        TIMES.append(time.perf_counter() - started)
        return x

    def formatted(depth):
        if depth:
            return formatted(depth - 1)
        started = time.perf_counter()
        for _ in range(20):
            traceback.format_stack()
        return (time.perf_counter() - started) / 20

    TIMES = []
    per_operator = {}
    for depth in (0, 60) * 3:
        TIMES.clear()
        cresset.compile(work)(torch.ones(2), depth)
        per_operator[depth] = min(per_operator.get(depth, 1.0), TIMES[0] / operators)
    assert 20 * (per_operator[60] - per_operator[0]) < formatted(60)


def test_facts_are_stated_while_capturing():
    def f(x):
        u = x.sum().item()

        @cresset.comptime
        def _(ctx):
            cresset.check(ctx.get_local("u").as_fake() > 2)

        return torch.ones(u) if u > 1 else torch.zeros(1)

    compiled = cresset.compile(f, fullgraph=True)
    for values in ([3, 4], [5, 6], [1, 2]):
        assert torch.equal(compiled(torch.tensor(values)), torch.ones(sum(values)))
    assert cresset.stats()["graphs"] == 1


def test_a_piece_is_ended_while_capturing():
    def f(x):
        y = x + 1
        cresset.comptime.graph_break()
        return y * 2

    compiled = cresset.compile(f)
    for n in (2, 3):
        assert torch.equal(compiled(torch.ones(n)), torch.full((n,), 4.0))
    assert cresset.stats()["graph_breaks"] == 1
