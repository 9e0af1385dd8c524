"""CRESSET_LOG: areas, their list, Python's `logging`; warnings and errors under tools that watch."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch, cresset
@cresset.compile
def f(x):
    y = x + 1
    print("data", y.sum().item() > 0)
    return y * 2
with torch.no_grad():
    f(torch.ones(3))
    f(torch.ones(3, dtype=torch.double))
    f(torch.ones(2, 2))
"""


def run(program, areas="") -> tuple[str, str]:
    environment = {**os.environ, "CRESSET_LOG": areas}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def lines_of(text, start):
    return [line.removeprefix(start) for line in text.splitlines() if line.startswith(start)]


def test_graph_breaks_have_line_reason_and_remedy():
    _, err = run(PROGRAM, "graph_breaks")
    lines = lines_of(err, "[cresset:graph_breaks] ")
    assert lines and not lines_of(err, "[cresset:recompiles] ")
    first = lines[0]
    assert first.startswith("f: graph break: a number read from tensor data at <string>:6 in f [DataDependentValue: ")
    assert "; remedy: keep the decision in tensors" in first


def test_recompiles_alone():
    _, err = run(PROGRAM, "recompiles")
    assert lines_of(err, "[cresset:recompiles] ")[0] == "f: argument x: dtype Float -> Double"
    assert not lines_of(err, "[cresset:graph_breaks] ")


def test_all_areas():
    _, err = run(PROGRAM, "all")
    for area in ("graph", "guards", "recompiles", "graph_breaks", "passes", "program"):
        assert lines_of(err, f"[cresset:{area}] "), area


def test_help_lists_the_areas_and_the_program_runs():
    out, err = run(PROGRAM, "help")
    assert out.startswith("data True") and "CRESSET_LOG: areas, separated by commas, or all\n" in err
    for area in ("graph ", "kernels ", "graph_breaks ", "memory "):
        assert f"\n  {area}" in err
    assert "[cresset:" not in err
    out, err = run(PROGRAM, "help,recompiles")
    assert "CRESSET_LOG: areas" in err and lines_of(err, "[cresset:recompiles] ")


HANDLED = "import logging, sys\nlogging.basicConfig(level=logging.WARNING, stream=sys.stdout)\n"


def test_lines_go_to_the_programs_handlers():
    out, err = run(HANDLED + PROGRAM, "recompiles,graph_breaks")
    assert "[cresset:" not in err
    recompiles = lines_of(out, "INFO:cresset.recompiles:")
    assert recompiles[0] == "f: argument x: dtype Float -> Double"
    assert lines_of(out, "INFO:cresset.graph_breaks:")
    # A call's lines come at its end, after the program's own output.
    assert out.index("data True") < out.index("INFO:cresset.graph_breaks:")


def test_the_programs_level_and_its_handler_of_one_area_are_kept():
    quiet = HANDLED + "logging.getLogger('cresset').setLevel(logging.ERROR)\n"
    out, err = run(quiet + PROGRAM, "recompiles,graph_breaks")
    assert "cresset" not in out and "[cresset:" not in err
    one = "import logging, sys\nlogging.getLogger('cresset.recompiles').addHandler(logging.StreamHandler(sys.stdout))\n"
    out, _ = run(one + PROGRAM, "recompiles")
    assert "\nf: argument x: dtype Float -> Double\n" in out


def test_a_handler_may_call_compiled_functions_and_may_raise():
    program = """
import logging
class Handler(logging.Handler):
    def emit(self, record):
        assert torch.equal(g(torch.ones(2)), torch.zeros(2))
        seen.append(record.getMessage())
        raise ValueError("from a handler")
seen = []
logging.getLogger("cresset").addHandler(Handler())
"""
    program = PROGRAM.replace(
        "import torch, cresset\n", "import torch, cresset\n" + program + "g = cresset.compile(lambda x: x - 1)\n"
    )
    out, _ = run(program + "print(len(seen) > 0)", "recompiles")
    assert out.splitlines()[-1] == "True"


WATCHED = """
import sys, warnings, torch, cresset
def tracer(frame, event, arg):
    events.append(frame.f_code.co_name)
    return tracer
events = []
def f(x): return x + 1
def g(x): return x - 1
compiled = [cresset.compile(f), cresset.compile(g), cresset.compile(f, fullgraph=True)]
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    {start}
    try:
        for one in compiled[:2] * 2:
            one(torch.ones(2))
        try:
            compiled[2](torch.ones(2))
        except cresset.CaptureError as error:
            failed = str(error)
    finally:
        {stop}
print(len([w for w in seen if w.category is RuntimeWarning]))
print(seen[0].message)
print(failed)
print(sorted(set(events) - {{"f", "g"}} - {{"<module>"}}))
compiled[2](torch.ones(2))
print(cresset.stats()["graphs"])
"""


@pytest.mark.parametrize("tool", ["settrace", "setprofile"])
def test_a_watched_process_is_warned_once(tool):
    start, stop = f"sys.{tool}(tracer)", f"sys.{tool}(None)"
    out, _ = run(WATCHED.format(start=start, stop=stop))
    count, warning, error, others, graphs = out.splitlines()
    assert count == "1"
    assert warning.startswith("cresset: f runs eagerly: somebody watches what runs (a debugger, a profiler, coverage)")
    assert error.startswith("cresset: fullgraph=True, but f cannot be captured: somebody watches what runs")
    assert "warn" not in others  # the tool sees the program's calls
    assert graphs == "1"  # without the tool the function is captured
