"""Environment variables: wrong values are reported when cresset is imported, all at once, and not in the user's first
call."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch, cresset
f = cresset.compile(lambda x: (x * 2).relu())
assert f(torch.ones(3)).tolist() == [2.0] * 3
print("ran")
"""


def run(tmp_path, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CRESSET_")}
    environment |= {"CRESSET_CACHE_DIR": str(tmp_path)} | variables
    return subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120)


WRONG = [
    ("CRESSET_VECTOR_BITS", "300", "0, 128, 256, 512"),
    ("CRESSET_VECTOR_BITS", "wide", "0, 128, 256, 512"),
    ("CRESSET_CACHE_ENTRY_LIMIT", "x", "a whole number of at least 1"),
    ("CRESSET_CACHE_ENTRY_LIMIT", "0", "a whole number of at least 1"),
    ("CRESSET_LOG", "grapes", "some of graph, kernels, guards"),
    ("CRESSET_VERIFY", "yes", "1, true, on, 0, false, off"),
    ("CRESSET_NO_DISK_CACHE", "2", "1, true, on, 0, false, off"),
]


@pytest.mark.parametrize("name, value, allowed", WRONG, ids=lambda v: v if isinstance(v, str) else "")
def test_a_wrong_value_is_an_error_of_the_import(tmp_path, name, value, allowed):
    done = run(tmp_path, **{name: value})
    assert done.returncode == 1 and "ran" not in done.stdout
    last = done.stderr.strip().splitlines()
    assert any(line.startswith("ValueError: cresset: environment variables") for line in last)
    assert last[-1].strip().startswith(f"{name}='{value}': expected {allowed}")


def test_all_wrong_values_are_told_together(tmp_path):
    done = run(tmp_path, CRESSET_VECTOR_BITS="300", CRESSET_CACHE_ENTRY_LIMIT="x", CRESSET_LOG="nothing")
    assert done.returncode == 1
    for name in ("CRESSET_VECTOR_BITS", "CRESSET_CACHE_ENTRY_LIMIT", "CRESSET_LOG"):
        assert f"{name}=" in done.stderr


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(tmp_path, CRESSET_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert done.returncode == 0 and "ran" in done.stdout, done.stderr
    assert done.stderr.count("nothing can be written in") == 1


@pytest.mark.parametrize("value", ["128", "256", ""])
def test_right_values_run_without_a_word(tmp_path, value):
    done = run(tmp_path, CRESSET_VECTOR_BITS=value, CRESSET_VERIFY="on", CRESSET_CACHE_ENTRY_LIMIT="2")
    assert done.returncode == 0 and done.stdout == "ran\n" and done.stderr == ""
