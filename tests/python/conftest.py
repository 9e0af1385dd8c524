"""Shared by all Python tests: where the zoo lies, fresh compiler state, and a disk cache of their own."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
# Before cresset is imported: tests neither read nor fill the user's cache.
_CACHE = tempfile.TemporaryDirectory(prefix="cresset-test-cache-")
os.environ["CRESSET_CACHE_DIR"] = _CACHE.name

import torch  # noqa: E402

import cresset  # noqa: E402

FULL = os.environ.get("CRESSET_TEST_FULL") == "1"
# Lines that tests want shown at the end of the run, whatever the capture mode.
SUMMARY: list[str] = []


@pytest.fixture
def full() -> bool:
    """Whether this run is `make test-full`."""
    return FULL


@pytest.fixture
def summary() -> list[str]:
    return SUMMARY


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


def pytest_terminal_summary(terminalreporter):
    for line in SUMMARY:
        terminalreporter.write_line(line)
