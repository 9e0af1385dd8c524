"""Runs the other test files of this folder, each in a process of its own: a process with simulated CUDA devices has them
for good, and the tests of other folders expect a machine without a GPU. pytest collects those files themselves only if
all its arguments lie in this folder (conftest.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import simulator

FILES = [path for path in sorted(Path(__file__).parent.glob("test_*.py")) if path.name != Path(__file__).name]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_file(file, summary):
    if reason := simulator.reason_to_skip():
        pytest.skip(reason)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # small tensors; autograd's threads have teams of their own
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = done.stdout.splitlines()
    summary.append(f"{file.name}: {lines[-1] if lines else 'no output'}")
    assert done.returncode == 0, "\n".join(lines[-200:]) + done.stderr[-4000:]
