"""Calls under observation: a trace or profile function, a tool of sys.monitoring. The observed events are eager's, each
time, and nothing is captured. Without observers, calls are captured again."""

from __future__ import annotations

import contextlib
import sys
import types

import pytest
import torch
from compare import assert_same

import cresset


def tracer(frame, event, arg):
    return tracer


@contextlib.contextmanager
def traced():
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(None)


@contextlib.contextmanager
def profiled():
    sys.setprofile(tracer)
    try:
        yield
    finally:
        sys.setprofile(None)


@contextlib.contextmanager
def monitored(code=None):
    """By a tool for line events; of a single function, where its code is given."""
    monitoring = sys.monitoring
    monitoring.use_tool_id(4, "a test")
    monitoring.register_callback(4, monitoring.events.LINE, lambda code, line: None)
    if code is None:
        monitoring.set_events(4, monitoring.events.LINE)
    else:
        monitoring.set_local_events(4, code, monitoring.events.LINE)
    try:
        yield
    finally:
        if code is None:
            monitoring.set_events(4, 0)
        else:
            monitoring.set_local_events(4, code, 0)
        monitoring.register_callback(4, monitoring.events.LINE, None)
        monitoring.free_tool_id(4)


WATCHES = [traced, profiled] + ([monitored] if sys.version_info >= (3, 12) else [])


def helper(w, x):
    w.log.append("helper")
    return x * w.n


def program(w, x):
    w.log.append("program")
    return helper(w, x + 1) - 1


def within(watch):
    """A part of the call is observed."""

    def partly(w, x):
        w.log.append("begin")
        y = x + 1
        with watch():
            y = helper(w, y)
            w.log.append("watched")
        w.log.append("end")
        return helper(w, y)

    return partly


def run(function, watch=contextlib.nullcontext, calls=4):
    """The outcomes of calls in the same world, whose state changes between them, and their side effects."""
    w, out = types.SimpleNamespace(log=[], n=1), []
    for n in range(calls):
        w.n = n
        with torch.no_grad(), watch():
            out.append(function(w, torch.arange(3.0)))
    return out, w.log


def evaluated(function):
    return cresset.compile(function, options={"frontend": "evaluate"})


@pytest.mark.parametrize("watch", WATCHES)
def test_whole_calls(watch):
    compiled = evaluated(program)
    assert_same(run(compiled, watch), run(program))
    stats = cresset.stats()
    assert (stats["graphs"], stats["eager_calls"]) == (0, 4)
    assert len(stats["graph_break_reasons"]) == 1
    assert "somebody watches" in stats["graph_break_reasons"][0]
    assert_same(run(compiled), run(program))
    assert cresset.stats()["graphs"] > 0
    assert cresset.stats()["eager_calls"] == 4


@pytest.mark.parametrize("watch", WATCHES)
def test_captured_before(watch):
    w, x = types.SimpleNamespace(log=[], n=2), torch.ones(3)
    compiled = evaluated(program)
    with torch.no_grad():
        expected = compiled(w, x)
        with watch():
            assert_same(compiled(w, x), expected)
    assert w.log == ["program", "helper"] * 2
    assert (cresset.stats()["graphs"], cresset.stats()["eager_calls"]) == (1, 0)


@pytest.mark.parametrize("watch", WATCHES)
def test_from_the_middle_on(watch):
    compiled = evaluated(within(watch))
    assert_same(run(compiled), run(within(watch)))
    assert cresset.stats()["eager_fallbacks"] > 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with CPython 3.12")
def test_one_function_alone():
    compiled = evaluated(program)
    assert_same(run(compiled, lambda: monitored(helper.__code__)), run(program))
    assert cresset.stats()["eager_calls"] == 4
    assert_same(run(compiled), run(program))
    assert cresset.stats()["eager_calls"] == 4
    assert cresset.stats()["graphs"] > 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with CPython 3.12")
def test_lines_are_told_from_the_first():
    """The frame that requests tracing continues in CPython's loop at once, which reports the next line."""
    lines = []
    monitoring = sys.monitoring

    def asks(x):
        y = x + 1
        monitoring.set_events(4, monitoring.events.LINE)
        y = y * 2
        y = y + helper(types.SimpleNamespace(log=[], n=2), y)
        monitoring.set_events(4, 0)
        return y

    def told(function):
        lines.clear()
        monitoring.use_tool_id(4, "a test")
        mine = (asks.__code__, helper.__code__)
        note = lambda code, line: lines.append((code.co_name, line)) if code in mine else None  # noqa: E731
        monitoring.register_callback(4, monitoring.events.LINE, note)
        try:
            with torch.no_grad():
                return function(torch.ones(3)), list(lines)
        finally:
            monitoring.set_events(4, 0)
            monitoring.register_callback(4, monitoring.events.LINE, None)
            monitoring.free_tool_id(4)

    assert_same(told(evaluated(asks)), told(asks))
