"""dynamic="auto": static first, dynamic on the second size, remembered between runs and merged between processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import torch
from compare import assert_same_call

import cresset


def scale(x, y):
    return (x * 2 + y).sum(-1)


def test_static_first_then_dynamic_where_it_varied():
    compiled = cresset.compile(lambda x, y: (x * 2 + y).sum(-1), dynamic="auto")
    for n in (3, 5, 8, 13):
        assert_same_call(scale, compiled, torch.randn(n, 4), torch.randn(4))
    stats = cresset.stats()
    assert stats["graphs"] == 2, stats["recompiles"]
    assert_same_call(scale, compiled, torch.randn(3, 7), torch.randn(7))
    assert cresset.stats()["graphs"] == 3, "the second dimension was static until now"


def in_process(code, cache):
    env = {**os.environ, "CRESSET_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


PROGRAM = """
import torch, cresset
def f(x):
    return torch.relu(x) + 1
c = cresset.compile(f, dynamic="auto")
for n in {sizes}:
    torch.testing.assert_close(c(torch.randn(n, 4)), c(torch.randn(n, 4)) * 0 + c(torch.randn(n, 4)), rtol=1e9, atol=1e9)
print(cresset.stats()["graphs"])
"""


def test_the_next_run_starts_dynamic(tmp_path):
    assert in_process(PROGRAM.format(sizes=[3, 5]), tmp_path) == ["2"]
    (profile,) = Path(tmp_path, "profiles").glob("*.sizes")
    assert "args[0].size(0)\tvaried\t3,5" in profile.read_text()
    assert in_process(PROGRAM.format(sizes=[9, 4, 6]), tmp_path) == ["1"]


def test_processes_with_one_size_each_merge(tmp_path):
    for n in (3, 4):
        assert in_process(PROGRAM.format(sizes=[n]), tmp_path) == ["1"]
    assert in_process(PROGRAM.format(sizes=[7, 8, 9]), tmp_path) == ["1"]


def test_a_wrong_profile_costs_time_only(tmp_path):
    assert in_process(PROGRAM.format(sizes=[3, 5]), tmp_path) == ["2"]
    (profile,) = Path(tmp_path, "profiles").glob("*.sizes")
    profile.write_text("cresset sizes 1\nargs[0].size(9)\tvaried\t1,2\nnonsense\n")
    assert in_process(PROGRAM.format(sizes=[3, 5, 6]), tmp_path) == ["2"]


def test_numbers_that_varied_are_remembered(tmp_path):
    program = """
import torch, cresset
def f(x, n, scale, steers):
    return x[:n] * scale if steers > 1 else x
c = cresset.compile(f, dynamic="auto")
x = torch.randn(9)
for n, scale, steers in {calls}:
    torch.testing.assert_close(c(x, n, scale, steers), f(x, n, scale, steers))
print(cresset.stats()["graphs"])
"""
    assert in_process(program.format(calls=[(3, 0.5, 2), (4, 0.25, 2)]), tmp_path) == ["2"]
    (profile,) = Path(tmp_path, "profiles").glob("*.sizes")
    text = profile.read_text()
    assert "args[1]\tvaried\t3,4" in text and "args[3]\tsteady\t2" in text
    assert in_process(program.format(calls=[(5, 0.75, 2), (6, 1.5, 2), (1, -1.0, 2)]), tmp_path) == ["1"]


def test_a_float_that_was_pinned_is_not_tried_again(tmp_path):
    program = """
import math, torch, cresset
def f(x, scale):
    return x * math.gamma(scale)
c = cresset.compile(f, dynamic="auto")
for scale in {scales}:
    torch.testing.assert_close(c(torch.ones(3), scale), f(torch.ones(3), scale))
"""
    in_process(program.format(scales=[0.5, 1.5]), tmp_path)
    (profile,) = Path(tmp_path, "profiles").glob("*.sizes")
    assert "args[1]\tvaried,pinned\t" in profile.read_text()


def test_a_profile_is_good_on_another_machine(tmp_path):
    """Files of profiles alone, in another place."""
    assert in_process(PROGRAM.format(sizes=[3, 5]), tmp_path / "here") == ["2"]
    shutil.copytree(tmp_path / "here" / "profiles", tmp_path / "there" / "profiles")
    assert in_process(PROGRAM.format(sizes=[9, 4, 6]), tmp_path / "there") == ["1"]
