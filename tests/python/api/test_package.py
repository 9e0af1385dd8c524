"""The package as others meet it: its native module, its types, its versions, its demo, and the environment of set-up."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cresset

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(cresset.__file__).parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
needs_binutils = pytest.mark.skipif(shutil.which("nm") is None, reason="no binutils")


def run(*command, **environment) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported(library) -> list[str]:
    return [line.split(maxsplit=2)[-1] for line in run("nm", "-DC", "--defined-only", library).splitlines()]


def needed(library) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library)))


# ---------------------------------------------------------------------------------------------- the native module

SYSTEM = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}
# The names of glibc before 2.34, which sanitizers and older systems bring.
SYSTEM |= {"libdl.so.2", "libpthread.so.0", "librt.so.1", "libasan.so.8", "libubsan.so.1"}
TORCH = {"libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libc10.so"}


@needs_binutils
def test_the_module_exports_one_symbol_and_needs_torch_alone():
    assert exported(cresset._C.__file__) == ["PyInit__C"]
    assert needed(cresset._C.__file__) <= SYSTEM | TORCH


@needs_binutils
def test_the_library_exports_the_api_and_needs_torch_alone():
    library = ROOT / "build/release/lib/libcresset.so"
    if not library.exists():
        pytest.skip("not built")
    assert all(name.startswith(("cresset::", "typeinfo for cresset::")) for name in exported(library))
    assert "cresset::compile_function" in str(exported(library))
    assert needed(library) <= SYSTEM | TORCH
    assert f"[libcresset.so.{cresset.__version__.rpartition('.')[0]}]" in run("readelf", "-d", library)


VALIDATED = """
import torch, cresset
def loaded():
    return "libz3" in open("/proc/self/maps").read()
before = loaded()
f = cresset.compile(lambda x: x.reshape(-1, 2) + x.shape[0] // 3)
assert torch.equal(f(torch.ones(6, 4)), torch.ones(12, 2) + 2)
print(before, loaded(), cresset.stats()["steps_proved"], cresset.stats()["steps_not_proved"])
"""


def validated(**environment) -> tuple[bool, bool, int, int]:
    """Whether Z3 was loaded before the compilation and after it; the numbers of steps proved and not proved."""
    before, after, proved, not_proved = run(sys.executable, "-c", VALIDATED, **environment).split()
    return before == "True", after == "True", int(proved), int(not_proved)


def test_z3_is_opened_when_validation_asks_for_it():
    assert validated(CRESSET_VALIDATE="") == (False, False, 0, 0)
    before, after, _, not_proved = validated(CRESSET_VALIDATE="1")
    assert not before and after == (not_proved == 0)


def test_without_z3_nothing_is_proved_and_all_works():
    before, after, _, not_proved = validated(CRESSET_VALIDATE="1", CRESSET_Z3_LIBRARY="/nowhere/libz3.so")
    assert not before and not after and not_proved > 0


# ---------------------------------------------------------------------------------------------- versions, licenses


def test_one_version_everywhere():
    version = re.search(r"project\(cresset VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert cresset.__version__ == PYPROJECT["project"]["version"] == version
    assert f"## {version}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert f"find_package(cresset {version.rpartition('.')[0]} " in (ROOT / "examples/cpp/CMakeLists.txt").read_text()


def test_the_license_and_the_notices_of_linked_libraries_are_named():
    project = PYPROJECT["project"]
    assert project["license"] == "BSD-3-Clause" and project["license-files"] == ["LICENSE", "NOTICES"]
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License\n\nCopyright (c)")
    notices = (ROOT / "NOTICES").read_text()
    for name in ("LLVM", "Zstandard", "zlib", "xxHash", "{fmt}", "JSON for Modern C++"):
        assert f"\n{name} (" in notices


def test_the_line_to_install_it_is_the_one_that_the_build_supports():
    """The build needs one package of an index; torch is the environment's own, also in isolation."""
    assert "`pip install torch && pip install .`" in (ROOT / "README.md").read_text()
    requires = PYPROJECT["build-system"]["requires"]
    assert [re.match(r"[\w-]+", r).group() for r in requires] == ["scikit-build-core"]


# ---------------------------------------------------------------------------------------------- types


def stub_functions() -> dict[str, list[ast.FunctionDef]]:
    out: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            out.setdefault(node.name, []).append(node)
    return out


def test_every_public_name_has_a_type():
    assert (PACKAGE / "py.typed").exists()
    names = set()
    for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    assert {name for name in names if not name.startswith("_")} == set(cresset.__all__)


@pytest.mark.parametrize("name", sorted(stub_functions()))
def test_types_have_the_parameters_of_the_functions(name):
    function = getattr(cresset, name)
    if name == "is_compiling":  # of C
        return
    expected = list(inspect.signature(function).parameters)
    for node in stub_functions()[name]:
        arguments = node.args
        found = [a.arg for a in arguments.posonlyargs + arguments.args]
        found += [arguments.vararg.arg] if arguments.vararg else []
        found += [a.arg for a in arguments.kwonlyargs] + ([arguments.kwarg.arg] if arguments.kwarg else [])
        if name in ("compile", "trace"):  # their keywords are those of _Settings
            assert found[0] == expected[0]
        else:
            assert found == expected


def test_the_settings_of_compile_have_types():
    [settings] = [
        node
        for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "_Settings"
    ]
    assert [node.target.id for node in settings.body] == list(inspect.signature(cresset.compile).parameters)[1:]


TYPED = """
from typing import Any
import cresset

@cresset.compile
def plain(x: int, n: int = 2) -> str: return ""

@cresset.compile(fullgraph=True, dynamic="auto")
def with_settings(x: int) -> bytes: return b""

reveal_type(plain)
reveal_type(with_settings)
reveal_type(cresset.explain(plain))
plain("wrong")
cresset.compile(plain, unknown=1)
"""


def test_a_compiled_function_keeps_its_signature(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "typed.py").write_text(TYPED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports", "typed.py"],
        cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent)},
    )  # fmt: skip
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    # Versions of mypy write builtins with and without their module.
    revealed = [text.replace("builtins.", "") for text in revealed]
    assert revealed[:2] == ["def (x: int, n: int =) -> str", "def (x: int) -> bytes"], done.stdout
    assert revealed[2] == "def (x: int, n: int =) -> cresset.Explanation"
    errors = {int(line) for line in re.findall(r"typed.py:(\d+): error", done.stdout)}
    lines = TYPED.splitlines()
    assert [lines[n - 1] for n in sorted(errors)] == lines[-2:]


# ---------------------------------------------------------------------------------------------- the environment


def test_the_demo_prints_a_row_a_model():
    out = run(sys.executable, "-m", "cresset.demo", "--small", "--seconds", "0.1", "--no-torch-compile")
    rows = [line for line in out.splitlines() if line.startswith(("encoder", "conv net"))]
    assert len(rows) == 2 and "torch.compile" not in out
    for row in rows:
        assert re.search(r" 1 +\d\.\de-\d\d$", row), row  # one compilation, a small difference


@pytest.mark.parametrize("line", ["import timm", "import torchvision", "from transformers import BertModel"])
def test_the_models_can_be_imported_as_they_are(line):
    pytest.importorskip(line.split()[1])
    run(sys.executable, "-c", line)
