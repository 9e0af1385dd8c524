"""Data that a run leaves for the next run: programs, kernels, profiles. None of it can do harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_shapes_auto import in_process

SET_UP = """
import sys, torch, cresset
def f(x, y):
    return torch.softmax(torch.relu(x) @ y, -1) + x.size(0)
def g(x):
    return torch.where(x > 0, x, x * 2).view(-1, 4).sum(1) / x.size(0)
def run(function, *shapes, **settings):
    compiled = cresset.compile(function, **settings)
    for shape in shapes:
        args = [torch.randn(s) for s in shape]
        torch.testing.assert_close(compiled(*args), function(*args))
    s = cresset.stats()
    print(s["graphs"], s["programs_from_disk"], "lowered" if s["ms_lowering"] else "not-lowered",
          s["kernels_generated"])
"""


def test_a_warm_process_neither_lowers_nor_generates(tmp_path):
    code = SET_UP + 'run(f, [(3, 8), (8, 5)], [(6, 8), (8, 5)], dynamic="auto")'
    first = in_process(code, tmp_path)
    assert first[:3] == ["2", "0", "lowered"] and int(first[3]) > 0
    again = SET_UP + 'run(f, [(9, 8), (8, 5)], [(4, 8), (8, 5)], dynamic="auto")'
    assert in_process(again, tmp_path) == ["1", "1", "not-lowered", "0"]


def test_symbols_of_another_first_call_are_the_same_program(tmp_path):
    assert in_process(SET_UP + "run(g, [(6, 8)])", tmp_path)[:2] == ["1", "0"]
    assert in_process(SET_UP + "run(g, [(9, 12)], [(2, 2)])", tmp_path)[:2] == ["1", "1"]


def test_programs_with_data_dependent_sizes(tmp_path):
    code = SET_UP + "run(lambda x: torch.relu(x)[x > 0] * 2 + x.sum(), [(6, 8)], [(3, 5)])"
    assert in_process(code, tmp_path)[1] == "0"
    warm = in_process(code, tmp_path)
    assert int(warm[1]) >= 1 and warm[2:] == ["not-lowered", "0"]


def test_a_profile_that_says_too_much_changes_neither_graph_nor_key(tmp_path):
    """The profile says that x.size(1) varies, and the program specializes it to 8: the same program as with a static
    size."""
    shape = '[(3, 8), (8, 5)], dynamic="auto"'
    program = SET_UP.replace("torch.relu(x) @ y", "(torch.relu(x) + torch.ones(8)) @ y") + f"run(f, {shape})"
    assert in_process(program, tmp_path)[:2] == ["1", "0"]
    (profile,) = Path(tmp_path, "profiles").glob("*.sizes")
    profile.write_text("cresset sizes 1\nargs[0].size(1)\tvaried\t8,9\nargs[1].size(0)\tvaried\t8,9\n")
    assert in_process(program, tmp_path)[:2] == ["1", "1"]
    assert "varied,pinned" in profile.read_text()


@pytest.mark.parametrize("damage", ["truncated", "empty", "other bytes", "no kernels"])
def test_damaged_files_cost_time_only(tmp_path, damage):
    code = SET_UP + "run(f, [(3, 8), (8, 5)])"
    assert in_process(code, tmp_path)[1] == "0"
    programs, kernels = list(Path(tmp_path, "programs").iterdir()), list(Path(tmp_path).glob("*.o"))
    assert len(programs) == 1 and kernels
    content = programs[0].read_bytes()
    if damage == "no kernels":
        for kernel in kernels:
            kernel.unlink()
    else:
        changed = {"truncated": content[:-9], "empty": b"", "other bytes": content[:40] + b"\xff" * 9 + content[49:]}
        programs[0].write_bytes(changed[damage])
    assert in_process(code, tmp_path)[1] == "0"
    assert in_process(code, tmp_path)[1] == "1"


def test_options_are_part_of_the_key(tmp_path):
    assert in_process(SET_UP + "run(g, [(6, 8)])", tmp_path)[1] == "0"
    assert in_process(SET_UP + 'run(g, [(6, 8)], options={"fuse": False})', tmp_path)[1] == "0"


def test_processes_at_the_same_time_lose_nothing(tmp_path):
    """Each process saves a size of its own at the same time: the final profile has all sizes."""
    code = """
import os, sys, torch, cresset
def f(x):
    return torch.relu(x) + 1
cresset.compile(f, dynamic="auto")(torch.randn(int(sys.argv[1]), 4))
"""
    env = {**os.environ, "CRESSET_CACHE_DIR": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", code, str(n)], env=env) for n in (3, 5, 7)]
    assert [p.wait(timeout=300) for p in running] == [0, 0, 0]
    (profile,) = Path(tmp_path, "profiles").glob("*.sizes")
    (line,) = [row for row in profile.read_text().splitlines() if row.startswith("args[0].size(0)\t")]
    assert line.split("\t")[1] == "varied" and sorted(line.split("\t")[2].split(",")) == ["3", "5", "7"]


def test_a_number_that_was_pinned_leaves_no_trace(tmp_path):
    """An int argument, needed as a constant, gives the same program as the constant itself."""
    template = (
        SET_UP
        + """
def h(x, n):
    return torch.softmax(x.relu() * 3, n).sum(n) + x.size(0)
x = torch.randn(4, 6)
c = cresset.compile({function})
torch.testing.assert_close(c({arguments}), h(x, 1))
print(cresset.stats()["graphs"], cresset.stats()["programs_from_disk"])
"""
    )
    assert in_process(template.format(function="lambda x: h(x, 1)", arguments="x"), tmp_path) == ["1", "0"]
    assert in_process(template.format(function="h", arguments="x, 1"), tmp_path) == ["1", "1"]


def test_symbols_that_were_pinned_do_not_change_the_key(tmp_path):
    """Three more symbols are tried and specialized, in a single one of two processes."""
    template = (
        SET_UP
        + """
def h(x, y, *numbers):
    for n in numbers:
        if n != 7:
            return x
    return torch.softmax(x @ y, -1) + x.size(0)
x, y = torch.randn(4, 6), torch.randn(6, 5)
cresset.compile(h)(x, y, *{numbers})
print(cresset.stats()["graphs"], cresset.stats()["programs_from_disk"])
"""
    )
    assert in_process(template.format(numbers=()), tmp_path) == ["1", "0"]
    assert in_process(template.format(numbers=(7, 7, 7)), tmp_path) == ["1", "1"]


def test_a_program_for_other_sizes_leaves_its_guards_where_it_is(tmp_path):
    """Guards from lowering go with each program, even if the program on disk was for other sizes."""
    code = """
import sys, torch, cresset
def f(x):
    return x.cummax(1)[0], x.flip(0), x.roll(1, 1), x.cumsum(0), x.cumprod(1), x.logcumsumexp(2), x.diff(dim=0)
compiled = cresset.compile(f)
x = torch.randn(int(sys.argv[1]), 3, 2, requires_grad=True)
for fn in (f, compiled):
    x.grad = None
    torch.autograd.backward(fn(x), [torch.ones_like(t) for t in f(x)])
    print(*x.grad.flatten().mul(1000).round().int().tolist())
""".replace("x = torch.randn", "torch.manual_seed(0); x = torch.randn")
    for rows in ("1", "4", "1", "2"):
        found = in_process(code.replace("sys.argv[1]", repr(rows)), tmp_path)
        assert found[: len(found) // 2] == found[len(found) // 2 :]
