"""Programs of programs.language and its kin: results, side effects, exceptions, over several calls, against eager."""

from __future__ import annotations

import sys
import textwrap
import types

import programs.language as programs_language
import programs.language_312 as programs_language_312
import programs.language_312_breaks as programs_language_312_breaks
import programs.language_313 as programs_language_313
import programs.language_flow as programs_language_flow
import programs.language_objects as programs_language_objects
import programs.language_torch as programs_language_torch
import pytest
import torch
from compare import assert_same, clone, outcome
from programs.effects import ramp

import cresset

INPUTS = [lambda: ramp(3, 4), lambda: ramp(3, 4), lambda: -ramp(3, 4), lambda: ramp(5, 4)]

# Differences from eager today: program, and reason.
KNOWN: dict[str, str] = {}


SOURCES = [
    programs_language.PROGRAMS,
    programs_language_objects.PROGRAMS,
    programs_language_flow.PROGRAMS,
    programs_language_torch.PROGRAMS,
]
if sys.version_info >= (3, 12):
    SOURCES += [programs_language_312.PROGRAMS, programs_language_312_breaks.PROGRAMS]
if sys.version_info >= (3, 13):
    SOURCES.append(programs_language_313.PROGRAMS)


def programs():
    for text in "\n\n".join(SOURCES).replace("\n##", "\n\n##").split("\n\n"):
        lines = [line for line in text.strip("\n").split("\n") if not line.startswith("##")]
        if len(lines) > 1:
            yield lines[0], "\n".join(lines[1:])


ROWS = list(programs())


def load(name, body):
    source = programs_language.PRELUDE + f"\ndef {name}(w, x):\n" + textwrap.indent(body, "    ") + "\n"
    module = sys.modules["program"] = types.ModuleType("program")
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def run(name, body, wrap):
    """The results of the calls, and their side effects."""
    module = load(name, body)
    w = module.make()
    call = wrap(getattr(module, name))
    out = []
    torch.manual_seed(0)
    for make in INPUTS:
        x = clone(make())
        result, raised = outcome(call, (w, x), {})
        out.append([result, None if raised is None else [type(raised).__name__, str(raised)], x])
    net = w.__dict__.pop("net")
    w.__dict__.pop("gen", None)
    state = {k: v for k, v in vars(w).items() if not callable(v)}
    w.box.__dict__.pop("fns", None)
    return out, state, net.count, dict(net.state_dict())


def evaluated(f):
    return cresset.compile(f, options={"frontend": "evaluate"})


@pytest.mark.parametrize("name,body", ROWS, ids=[r[0] for r in ROWS])
@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
def test_language(request, name, body, grad):
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    cresset.reset()
    with torch.set_grad_enabled(grad):
        expected = run(name, body, lambda f: f)
        got = run(name, body, evaluated)
    assert_same(got, expected)


def test_names_are_different():
    names = [name for name, _ in ROWS]
    assert len(set(names)) == len(names) and all(name.isidentifier() for name in names)


def test_a_cached_property_ends_no_piece():
    module = load("f", "return x * Square(2).area + square.area")
    compiled = cresset.compile(module.f)
    cresset.reset()
    for _ in range(2):  # the second call reads the value left by the first
        torch.testing.assert_close(compiled(None, torch.ones(2)), torch.full((2,), 13.0))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"]) == (2, 0), stats["graph_break_reasons"]
