"""Reasons for graph breaks and eager calls: their kinds, places and remedies, and the table of kinds in the docs."""

import contextlib
import contextvars
import functools
import inspect
import json
import operator
import re
import statistics
import sys
from pathlib import Path

import pytest
import torch

import cresset
from cresset import _C

ROOT = Path(__file__).resolve().parents[3]
KINDS = {name: (description, remedy) for name, description, remedy in _C.break_kinds()}


def line_of(function, text="# here"):
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if text in line)


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()


# ------------------------------------------------------------------------------------------------------ the table


def test_the_docs_have_a_row_for_each_kind():
    text = (ROOT / "docs/graph_breaks.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert {name: (description, remedy) for name, description, remedy in rows} == KINDS
    assert [name for name, _, _ in rows] == list(KINDS)


def test_the_table_is_the_def_file():
    rows = re.findall(r"CRESSET_BREAK_KIND\((\w+),", (ROOT / "src/cresset/base/break_reasons.def").read_text())
    assert rows == list(KINDS)


# ------------------------------------------------------------------------------------------------------- programs


def branches(x):
    if x.sum() > 0:  # here
        return x * 2
    return x - 1


def reads_a_float(x):
    y = x + 1
    return float(y.sum())  # here


def prints(x):
    y = x + 1
    print("hello")  # here
    return y * 2


def asks_for_a_break(x):
    y = x * 2
    cresset.graph_break("on purpose")  # here
    return y + 1


@cresset.disable
def kept_out(x):
    return x * 3


def calls_a_disabled_function(x):
    return kept_out(x + 1) - 1  # here


def writes_json(x):
    return x * len(json.dumps({"a": 1}))  # here


def averages(x):
    return x * statistics.pstdev([1, 2.5])  # here


def seeds(x):
    torch.manual_seed(3)  # here
    return x + torch.rand(3)


def raises(x):
    raise ValueError("no")


def takes_a_row_that_is_not_there(x):
    return x[(x * 9).long()]  # here


def multiplies_what_does_not_fit(x):
    return torch.mm(x.view(1, 3), x.view(1, 3))  # here


PROGRAMS = [
    (branches, "DataDependentValue"),
    (reads_a_float, "DataDependentValue"),
    (prints, "UntraceableFunction"),
    (asks_for_a_break, "UserRequest"),
    (calls_a_disabled_function, "UserRequest"),
    (writes_json, "UntraceableFunction"),
    (averages, "UntraceableFunction"),
    (seeds, "RandomNumbers"),
    (takes_a_row_that_is_not_there, "DataDependentError"),
    (multiplies_what_does_not_fit, "InvalidArguments"),
]


def called(function, *args):
    """The details of the reasons for the breaks of a call, which may raise."""
    with contextlib.suppress(IndexError, RuntimeError, ValueError):
        cresset.compile(function)(*args)
    return cresset.stats()["graph_break_details"]


@pytest.mark.parametrize("function, kind", PROGRAMS, ids=lambda p: getattr(p, "__name__", p))
def test_kind_place_and_remedy(function, kind, capsys):
    reason = called(function, torch.ones(3))[0]
    assert reason["kind"] == kind, reason
    assert reason["location"].startswith(f"{__file__}:{line_of(function)} in "), reason
    assert (reason["description"], reason["remedy"]) == KINDS[kind]
    assert reason["function"] == function.__name__
    assert reason["text"].startswith(f"{reason['detail']} at {reason['location']}")
    (text, *_) = cresset.stats()["graph_break_reasons"]
    assert (
        text == f"{function.__name__}: {reason['text']} [{kind}: {reason['description']}; remedy: {reason['remedy']}]"
    )


def test_a_call_that_raises():
    (reason,) = called(raises, torch.ones(3))
    assert (reason["kind"], reason["text"]) == ("Raised", "the call raised")


def test_gradients_that_cannot_be_captured():
    box = {}

    def hooked(x):
        h = x * 2
        h.grad_fn.register_hook(functools.partial(operator.setitem, box))
        return (h.sin() + x).sum()

    reasons = called(hooked, torch.randn(3, requires_grad=True))
    assert reasons[0]["kind"] == "RequiredGradients", reasons
    assert reasons[0]["text"].startswith("gradients are wanted, and ")


def test_a_tool_that_watches():
    compiled = cresset.compile(lambda x: x + 1)
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        compiled(torch.ones(3))
    finally:
        sys.settrace(before)
    (reason,) = cresset.stats()["graph_break_details"]
    assert reason["kind"] == "Debugger" and "somebody watches" in reason["text"]


class Box:
    n = 2


def test_state_that_no_guard_covers():
    variable = contextvars.ContextVar("test_break_reasons")
    variable.set(Box())

    def f(x):
        found = [v for v in contextvars.copy_context().values() if isinstance(v, Box)]
        return x * found[0].n

    reasons = called(f, torch.ones(1))
    assert reasons[0]["kind"] == "UnguardedState", reasons
    assert "found in a way that is not known" in reasons[0]["text"]


# ---------------------------------------------------------------------------------------------- where reasons are shown


def test_explain_has_reasons_as_data():
    explanation = cresset.explain(branches)(torch.ones(3))
    (reason,) = explanation.break_reasons
    assert isinstance(reason, cresset.BreakReason)
    assert (reason.kind, reason.remedy) == ("DataDependentValue", KINDS["DataDependentValue"][1])
    assert explanation.graph_breaks == [reason.text]
    shown = str(explanation)
    assert shown.index("ends: ") < shown.index("DataDependentValue: ") < shown.index(f"remedy: {reason.remedy}")
    assert cresset.explain(lambda x: x + 1)(torch.ones(3)).break_reasons == []


def test_fullgraph_names_kind_place_and_remedy():
    with pytest.raises(cresset.CaptureError) as error:
        cresset.compile(branches, fullgraph=True)(torch.ones(3))
    text = str(error.value)
    assert "branches cannot be captured whole: " in text
    assert f"{__file__}:{line_of(branches)} in " in text
    assert "; remedy: change that line, or drop fullgraph=True" in text
    assert text.endswith(f"[DataDependentValue: {'; remedy: '.join(KINDS['DataDependentValue'])}]")
