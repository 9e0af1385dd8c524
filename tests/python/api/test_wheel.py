"""A wheel built from this checkout, in an environment with nothing but torch's packages. `make test-full` builds it, which
takes as long as a build of the module."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(not os.environ.get("CRESSET_TEST_FULL"), reason="builds the module anew")


def run(*command, **options) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that passes the audit of tools/wheels.py: its size, its contents, no library that a system lacks."""
    printed = run(sys.executable, "tools/wheels.py", cwd=ROOT)
    return ROOT / re.search(r"^(dist/.*\.whl):", printed, re.MULTILINE).group(1)


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """An interpreter with the wheel and this environment's torch."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
    site = Path(run(folder / "bin/python", "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
    (site / "zz_torch.pth").write_text(sysconfig.get_paths()["purelib"])  # after the wheel's own package
    return folder / "bin/python"


def test_the_wheel_names_its_oldest_system_and_its_torch(wheel):
    assert re.search(r"-manylinux_2_\d+_x86_64\.whl$", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    assert re.search(r"^Requires-Dist: torch<2\.\d+,>=2\.\d+$", text, re.MULTILINE)
    assert "License-Expression: BSD-3-Clause" in text


def test_the_installed_package_compiles(python, tmp_path):
    program = "import torch, cresset; print(cresset.__file__); print(cresset.compile(lambda x: x + 1)(torch.ones(2)))"
    file, value = run(python, "-c", program, cwd=tmp_path).split("\n")[:2]
    assert str(python.parent.parent) in file and value == "tensor([2., 2.])"


def test_the_demo_runs_from_the_wheel(python, tmp_path):
    out = run(python, "-m", "cresset.demo", "--small", "--seconds", "0.1", "--no-torch-compile", cwd=tmp_path)
    assert "encoder" in out and "conv net" in out


def test_the_backend_of_torch_compile_is_found(python, tmp_path):
    program = (
        "import importlib.metadata as m; print(*m.entry_points(group='torch_dynamo_backends').select(name='cresset'))"
    )
    assert "cresset._backend:backend" in run(python, "-c", program, cwd=tmp_path)
