"""A graph break in a running generator, around a suspended generator, while an exception is handled, in a call made by
C code. Results are eager's, each side effect happens once. Calls after the first run compiled, unless the table has a
reason."""

from __future__ import annotations

import sys
import traceback

import programs.exceptions_over_breaks as programs_handled
import programs.generators as programs_generators
import programs.generators_driven as programs_generators_driven
import pytest
import torch
from compare import assert_same
from programs.effects import ramp, world
from test_effects import _evaluated, run

import cresset

ROWS = programs_generators.ROWS + programs_generators_driven.ROWS + programs_handled.ROWS

# Programs with native parts from a graph break on, and the reasons.
BY_C = "C code drives the generator, or calls the function, that asks for data"
NATIVE = dict.fromkeys(
    [
        "added_in_place",
        "thrown_through_delegation",
        "operator_breaks",
        "length_breaks",
        "equality_breaks",
        "lru_cache_breaks",
        "torch_function_breaks",
    ],
    BY_C,
) | {
    "handed_out": "a generator that state holds is another one at each call",
    "kept_in_state": "a generator that state holds is another one at each call",
    "getattr_breaks": "an opaque call is found by a call with an eager fallback",
    "post_init_breaks": "an opaque call is found by a call with an eager fallback",
    "exit_handles": "a class that the call makes, around what is the call's own, is another one at each call",
}


NATIVE_WITH_GRADIENTS = {"checkpointed": "a break where autograd packs what it saves by functions of the call's own"}


@pytest.mark.parametrize("name,make,function,inputs", ROWS, ids=[r[0] for r in ROWS])
@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
def test_generators(name, make, function, inputs, grad):
    cresset.reset()
    with torch.set_grad_enabled(grad):
        expected = run(lambda f, w: lambda x: f(w, x), function, make, inputs)
        got = run(_evaluated, function, make, inputs)
    assert_same(got, expected)
    stats = cresset.stats()
    native = stats["eager_fallbacks"] + stats["eager_calls"] > 0
    assert native == (name in NATIVE or (grad and name in NATIVE_WITH_GRADIENTS)), stats["graph_break_reasons"]


def lines_of(error):
    """The path of an exception, and the exceptions in its context chain."""
    out = []
    while error is not None:
        out.append((type(error).__name__, [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return out


def raises_in_a_handler(w, x):
    def inner():
        try:
            raise KeyError("first")
        except KeyError:
            w.log.append(x.sum().item())
            w.log.append(sys.exc_info()[0])
            raise ValueError("second")  # noqa: B904

    try:
        inner()
    except ValueError as e:
        w.log.append(x.max().item())
        w.log.append(lines_of(e))
        raise
    finally:
        w.log.append(sys.exc_info()[0])


def passes_through_a_generator(w, x):
    def steps():
        try:
            yield x.sum().item()
            raise ValueError("inside")
        finally:
            w.log.append(x.min().item())

    for n in steps():
        w.log.append(n)


def reads_what_is_handled(w, x):
    before = sys.exc_info()[1]
    w.log.append((x.sum().item(), type(before).__name__))
    try:
        raise KeyError("own")
    except KeyError as e:
        w.log.append((x.sum().item(), type(e.__context__).__name__, e.__context__ is before))
        w.log.append(x.max().item())
    w.log.append((sys.exc_info()[1] is before, x.min().item()))
    if before is not None:
        raise
    return x + 1


@pytest.mark.parametrize("function", [raises_in_a_handler, passes_through_a_generator, reads_what_is_handled])
def test_handled_outside_and_tracebacks(function):
    """Calls alone, and while their caller handles an exception: the same exceptions, contexts and lines."""

    def history(wrap):
        w = world()
        compiled = wrap(function, w)
        out = []
        for outside in (None, KeyError("outside"), None, TypeError("other"), TypeError("other")):
            try:
                if outside is None:
                    out.append(compiled(ramp(3, 4)))
                else:
                    try:
                        raise outside
                    except Exception:
                        out.append(compiled(ramp(3, 4)))
            except Exception as error:
                error.__traceback__ = error.__traceback__.tb_next
                names = {"<lambda>", "history", "compiled"}
                out.append([(k, [f for f in frames if f[0] not in names]) for k, frames in lines_of(error)])
        return out, w.log

    cresset.reset()
    with torch.no_grad():
        assert_same(history(_evaluated), history(lambda f, w: lambda x: f(w, x)))


def test_a_generator_is_finalized_when_the_program_drops_it():
    class Told:
        def __init__(self, log):
            self.log = log

        def __del__(self):
            self.log.append("gone")

    def f(w, x):
        def steps():
            told = Told(w.log)
            try:
                yield x
                yield told
            finally:
                w.log.append("finally")

        for y in steps():
            w.log.append(y.sum().item())
            break
        w.log.append("after")
        return x + 1

    logs = []
    for wrap in (lambda f, w: lambda x: f(w, x), _evaluated):
        cresset.reset()
        w = world()
        call = wrap(f, w)
        for _ in range(4):
            call(ramp(3, 4))
        logs.append([entry for entry in w.log if entry != "gone"])
    assert logs[0] == logs[1]
