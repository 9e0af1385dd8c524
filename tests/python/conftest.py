"""Shared by all Python tests: the zoo's folder, fresh compiler state, and a disk cache for the tests."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

# Tests and helpers import each other by their names alone, and programs/ by its package.
FOLDERS = [p for p in Path(__file__).resolve().parent.glob("**/") if p.name not in ("programs", "__pycache__")]
sys.path[:0] = sorted(map(str, FOLDERS))
# Before cresset is imported: tests neither read nor fill the user's cache.
_CACHE = tempfile.TemporaryDirectory(prefix="cresset-test-cache-")
os.environ["CRESSET_CACHE_DIR"] = _CACHE.name

import torch  # noqa: E402

import cresset  # noqa: E402

FULL = os.environ.get("CRESSET_TEST_FULL") == "1"
# Lines for the end of the run, whatever the capture mode, including lines of xdist's workers.
SUMMARY: list[str] = []


collect_ignore = (
    []
    if FULL
    else [
        line
        for line in (Path(__file__).parent / "full_only.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
)


GPU = Path(__file__).resolve().parent / "gpu"


def pytest_ignore_collect(collection_path, config):
    """Tests with simulated CUDA devices need processes of their own: gpu/test_in_processes.py starts them, unless the
    whole run is such a process."""
    if collection_path.parent != GPU or collection_path.suffix != ".py":
        return None
    arguments = [(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args]
    is_gpu_run = all(path.is_relative_to(GPU) for path in arguments)
    return True if is_gpu_run == (collection_path.name == "test_in_processes.py") else None


def known_failures() -> dict[str, tuple[str, bool]]:
    """Test id -> (reason, whether it ends the process), from known_failures.txt."""
    rows = {}
    for line in (Path(__file__).parent / "known_failures.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, reason = line.split("  # ")
            rows[name.removeprefix("! ").strip()] = (reason, name.startswith("! "))
    return rows


def pytest_collection_modifyitems(items):
    known = known_failures()
    for item in items:
        row = known.get(f"{item.path.name}::{item.name}")
        if row:
            item.add_marker(pytest.mark.xfail(reason=row[0], run=not row[1], strict=False))


@pytest.fixture
def full() -> bool:
    """Whether this run is `make test-full`."""
    return FULL


@pytest.fixture
def summary() -> list[str]:
    return SUMMARY


@pytest.fixture(params=[False, True], ids=["no_grad", "grad"])
def grad(request):
    """Both grad modes."""
    with torch.set_grad_enabled(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def fresh_state():
    """Each test starts with no compiled code, fixed random numbers and default modes."""
    cresset.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["summary"] = SUMMARY


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    SUMMARY.extend(getattr(node, "workeroutput", {}).get("summary", ()))


def pytest_terminal_summary(terminalreporter):
    for line in SUMMARY:
        terminalreporter.write_line(line)
