"""The evaluator of bytecode against CPython's own: CPython's test suite, reports to hooks, resuming anywhere."""

from __future__ import annotations

import collections
import gc
import json
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import evaluator_programs as programs
import evaluator_replaced as replaced
import pytest

from cresset import _C

pytestmark = pytest.mark.skipif(_C._eval_unsupported() is not None, reason=str(_C._eval_unsupported()))

# Left out: test_sys_settrace, test_sys_setprofile, test_bdb (a frame under a trace function continues in CPython's
# loop), and the tests of specialized instructions in test_dis (evaluated code is not specialized).
CPYTHON_FILES = """
    test_generators test_with test_scope test_unpack test_unpack_ex test_call test_super test_exceptions test_dict
    test_list test_contextlib test_functools test_dataclasses test_enum test_grammar test_patma test_coroutines
    test_asyncgen test_descr test_class test_decorators test_extcall test_keywordonlyarg test_listcomps test_genexps
    test_named_expressions test_raise test_traceback test_except_star test_exception_variations test_contextlib_async
    test_types test_property test_dynamic test_iter test_builtin test_richcmp test_frame test_fstring
    test_positional_only_arg test_metaclass test_yield_from test_opcodes test_augassign test_binop test_subclassinit
    test_setcomps test_dictcomps test_string_literals test_type_annotations test_global test_print
""".split()  # noqa: SIM905
# Minutes on two cores: only in make test-full.
SLOW_FILES = """
    test_inspect test_typing test_collections test_itertools test_weakref test_copy test_pickle test_gc test_import
    test_warnings test_json test_re test_unittest test_heapq test_random test_statistics test_threading test_signal
    test_sys test_context test_doctest test_set test_abc test_operator
""".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def cpython():
    """Runs a test file in a fork of one process, so that torch is imported once."""
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("cpython_suite.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(name: str, mode: str) -> dict[str, str]:
        server.stdin.write(f"{name} {mode}\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())

    yield run
    server.stdin.close()
    server.wait()


def check_cpython_file(cpython, name: str) -> None:
    plain = cpython(name, "plain")
    assert "crashed" not in plain, plain["crashed"]
    evaluated = cpython(name, "evaluated")
    assert "crashed" not in evaluated, evaluated["crashed"]
    differing = {test: (was, evaluated.get(test)) for test, was in plain.items() if evaluated.get(test) != was}
    differing |= {test: (None, now) for test, now in evaluated.items() if test not in plain}
    assert not differing
    assert plain


@pytest.mark.parametrize("name", CPYTHON_FILES)
def test_cpython_file(cpython, name):
    check_cpython_file(cpython, name)


@pytest.mark.skipif(os.environ.get("CRESSET_TEST_FULL") != "1", reason="minutes: only in make test-full")
@pytest.mark.parametrize("name", SLOW_FILES)
def test_cpython_file_slow(cpython, name):
    check_cpython_file(cpython, name)


def evaluated(function, *args):
    _C._eval_begin()
    try:
        return function(*args)
    finally:
        _C._eval_end()


def outcome(function):
    try:
        return repr(function())
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.__name__)
def test_program(program):
    assert outcome(lambda: evaluated(program)) == outcome(program)


@pytest.mark.parametrize("natively", [False, True], ids=["evaluated", "natively"])
@pytest.mark.parametrize("program", programs.RESUMABLE, ids=lambda p: p.__name__)
def test_resume_at_every_instruction(program, natively):
    """At each step all frames are copied and the copies run to the end: the result is the program's."""
    expected = outcome(program)
    finished = step = 0
    while True:
        what, result, frames = _C._eval_break_at(step, natively, program)
        if what == "ended":
            break
        if what == "finished":
            finished += 1
            assert result == expected, f"step {step}, in {frames}"
        step += 1
    assert finished > step / 3, "most points can be resumed"


@pytest.mark.parametrize("everything", [False, True], ids=["frame", "all"])
@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.__name__)
def test_leave_at_every_instruction(program, everything):
    """The frame, or all frames, go on in CPython's loop from any instruction: the result is the program's."""
    expected = outcome(program)
    step = seen = 0
    while step <= seen:
        seen, result = _C._eval_leave_at(step, everything, program)
        assert repr(result) == expected, f"step {step}"
        step += 1
    assert step > 5


@pytest.mark.parametrize(("program", "expected"), programs.EVENTS, ids=lambda p: getattr(p, "__name__", ""))
def test_hooks_are_told(program, expected):
    _, events = _C._eval_record(program)
    told = [tuple(repr(part) if not isinstance(part, (str, int)) else part for part in event) for event in events]
    position = 0
    for event in expected:
        assert event in told[position:], f"{event} is not told after {told[:position]}: {told}"
        position = told.index(event, position) + 1


def equal_number(value):
    equal = object.__new__(replaced.Number)
    vars(equal).update(vars(value))
    return equal


# Makers of equal objects. CPython shares bytes of length 1 and empty tuples.
EQUALS = {
    float: lambda value: value * 1.0,
    complex: lambda value: complex(value.real, value.imag),
    bytes: lambda value: bytes(bytearray(value)) if len(value) > 1 else value,
    tuple: lambda value: tuple(list(value)),
    replaced.Number: lambda value: equal_number(value) if "n" in vars(value) else value,
}


def references_from(objects):
    """The number of references to each object from the objects and everything reachable from them, except through
    modules."""
    held, seen, left = collections.Counter(), set(), list(objects)
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, types.ModuleType) or (type(one) is dict and "__builtins__" in one):
            continue
        seen.add(id(one))
        inside = gc.get_referents(one)
        held.update(map(id, inside))
        left += inside
    return held


@pytest.mark.parametrize("program", programs.ALL + replaced.REPLACED, ids=lambda p: p.__name__)
def test_hooks_may_replace_what_frames_hold(program):
    """At every report, equal objects replace all values: the result is the same, no foreign reference is dropped, no
    reference leaks."""
    expected = outcome(program)
    kept, made = [], []

    def replacement(value):
        equal = EQUALS[type(value)](value) if type(value) in EQUALS else value
        if equal is not value:
            kept.extend((value, equal))
            made.append(len(kept) - 1)
        return equal

    assert outcome(lambda: _C._eval_replace(replacement, program)) == expected
    gc.collect()
    held = references_from([kept])
    wrong = [(sys.getrefcount(kept[i]) - 1 - held[id(kept[i])], kept[i]) for i in made]
    assert {count for count, _ in wrong} <= {0}, [w for w in wrong if w[0]]


def test_hooks_change_nothing():
    for program in programs.ALL:
        expected = outcome(program)
        assert outcome(lambda p=program: _C._eval_record(p)[0]) == expected, program.__name__


def test_other_threads_are_left_alone():
    seen = []

    def work():
        seen.append(sum(programs.generator_of_squares(50)))

    def start():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    evaluated(start)
    assert seen == [sum(i * i for i in range(50))]


def test_recursion_is_limited_as_ever():
    def deep(n):
        return 1 + deep(n + 1)

    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        evaluated(deep, 0)
    assert evaluated(programs.fibonacci, 12) == 144


def test_begin_nests():
    assert evaluated(lambda: evaluated(programs.fibonacci, 10)) == 55


def test_a_trace_function_takes_over():
    lines = []

    def tracer(frame, event, arg):
        lines.append((frame.f_code.co_name, event))
        return tracer

    def traced():
        total = 0
        for i in range(3):
            total += i
        return total

    def program():
        sys.settrace(tracer)
        try:
            return traced()
        finally:
            sys.settrace(None)

    assert evaluated(program) == 3
    assert ("traced", "line") in lines
    assert ("traced", "return") in lines
