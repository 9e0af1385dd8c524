"""The disk cache: its size, what its log says, and caches which travel in a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROGRAM = """
import sys, torch, cresset
{before}
def f(x, y):
    return torch.softmax(torch.relu(x) @ y, -1) + x.size(0)
compiled = cresset.compile(f, dynamic="auto", options={options})
x, y = torch.randn(3, 8), torch.randn(8, 5)
torch.testing.assert_close(compiled(x, y), f(x, y))
s = cresset.stats()
print(s["programs_from_disk"], s["kernels_generated"])
{after}
"""


def run(folder, before="", after="", options=None, **environment):
    program = PROGRAM.format(before=before, after=after, options=options)
    environment = {**os.environ, "CRESSET_CACHE_DIR": str(folder), **environment}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout.split(), done.stderr


def misses(folder, **more):
    _, err = run(folder, CRESSET_LOG="cache", **more)
    return [line.partition(": ")[2] for line in err.splitlines() if line.startswith("[cresset:cache] miss of ")]


# ---- Files which travel


def test_a_saved_cache_serves_another_folder(tmp_path):
    one, other, file = tmp_path / "one", tmp_path / "other", tmp_path / "model.cache"
    out, _ = run(one, after=f"print(cresset.save_cache({str(file)!r}))")
    assert out[0] == "0" and int(out[1]) > 0 and int(out[2]) >= 3
    warm, err = run(other, before=f"print(cresset.load_cache({str(file)!r}))")
    assert warm == [out[2], "1", "0"] and err == ""
    again, _ = run(other, before=f"print(cresset.load_cache({str(file)!r}))")
    assert again[0] == "0", "files that are there stay"


def test_only_what_the_process_used(tmp_path):
    file = tmp_path / "model.cache"
    run(tmp_path / "cache")
    run(tmp_path / "cache", after="cresset.compile(lambda x: x.cumsum(0))(torch.ones(5))", options={"fuse": False})
    run(tmp_path / "cache", after=f"print(cresset.save_cache({str(file)!r}))")
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    everything = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert 4 <= len(names) < len(everything)


def test_another_machine_is_a_clear_miss(tmp_path):
    file, changed = tmp_path / "model.cache", tmp_path / "changed.cache"
    run(tmp_path / "one", after=f"cresset.save_cache({str(file)!r})", CRESSET_VECTOR_BITS="128")
    with zipfile.ZipFile(file) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        rest = {n: archive.read(n) for n in archive.namelist() if n != "manifest.json"}
    out, err = run(tmp_path / "two", before=f"cresset.load_cache({str(file)!r})", CRESSET_VECTOR_BITS="256")
    assert "is of another machine: bits is 256 and was 128. Its code is not used here" in err
    assert out[0] == "0" and int(out[1]) > 0
    (why,) = misses(tmp_path / "three", before=f"cresset.load_cache({str(file)!r})", CRESSET_VECTOR_BITS="256")
    assert why.startswith("it was made for another processor or LLVM: ") and "bits 128" in why and "bits 256" in why
    manifest["machine"]["architecture"] = "sparc"
    with zipfile.ZipFile(changed, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, contents in rest.items():
            archive.writestr(name, contents)
    _, err = run(tmp_path / "four", before=f"cresset.load_cache({str(changed)!r})")
    assert "and was sparc" in err


def test_a_damaged_file_inside_is_a_miss(tmp_path):
    file, changed = tmp_path / "model.cache", tmp_path / "changed.cache"
    run(tmp_path / "one", after=f"cresset.save_cache({str(file)!r})")
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(changed, "w") as out:
        for name in archive.namelist():
            contents = archive.read(name)
            out.writestr(name, contents[:-1] + b"x" if name.startswith("programs/") else contents)
    assert run(tmp_path / "two", before=f"cresset.load_cache({str(changed)!r})")[0][0] == "0"


ERRORS = """
import zipfile, cresset, pathlib
folder = pathlib.Path({folder!r})
(folder / "text").write_text("no cache")
with zipfile.ZipFile(folder / "other.zip", "w") as archive:
    archive.writestr("x", "y")
with zipfile.ZipFile(folder / "later.zip", "w") as archive:
    archive.writestr("manifest.json", '{{"format": 99}}')
with zipfile.ZipFile(folder / "outside.zip", "w") as archive:
    archive.writestr("manifest.json", '{{"format": 1, "machine": {{"architecture": "x", "code": ""}}}}')
    archive.writestr("../escaped", "y")
for call, name in ((cresset.load_cache, "text"), (cresset.load_cache, "other.zip"), (cresset.load_cache, "later.zip"),
                   (cresset.load_cache, "absent"), (cresset.save_cache, "no/such/folder/file")):
    try:
        call(folder / name)
        print("no error")
    except (ValueError, OSError) as e:
        print(type(e).__name__, str(e).replace(str(folder), ""))
print(cresset.load_cache(folder / "outside.zip"), (folder / "escaped").exists(), (folder.parent / "escaped").exists())
"""


def test_errors(tmp_path):
    environment = {**os.environ, "CRESSET_CACHE_DIR": str(tmp_path / "cache")}
    program = ERRORS.format(folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    lines = done.stdout.splitlines()
    assert lines[0] == "ValueError cresset.load_cache: /text was not written by cresset.save_cache", done.stderr
    assert lines[1] == "ValueError cresset.load_cache: /other.zip was not written by cresset.save_cache"
    assert lines[2] == "ValueError cresset.load_cache: /later.zip has format 99; this cresset reads 1"
    assert lines[3].startswith("FileNotFoundError") and lines[4].startswith("FileNotFoundError")
    assert lines[5] == "0 False False"


def test_without_a_disk_cache(tmp_path):
    program = "import cresset\ntry: cresset.save_cache('x')\nexcept RuntimeError as e: print(e)"
    environment = {**os.environ, "CRESSET_NO_DISK_CACHE": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert "cresset.save_cache: the disk cache is off" in done.stdout, done.stderr


# ---- The log


def test_the_log_says_why_an_entry_missed(tmp_path):
    cache = tmp_path / "cache"
    assert misses(cache) == ["no program of this graph is known"]
    assert misses(cache) == []
    assert misses(cache, options={"fuse": False}) == [
        "the options were other: rounding false fuse true apart false, now rounding false fuse false apart false"
    ]
    for kernel in cache.glob("*.o"):
        kernel.unlink()
    assert misses(cache) == ["the file of a kernel was deleted, or cannot be linked"]
    for program in (cache / "programs").glob("*"):
        if program.is_file():
            program.unlink()
    run(cache, options={"fuse": False})
    run(cache)
    for program in (cache / "programs").glob("*"):
        if program.is_file():
            program.unlink()
    assert misses(cache) == ["its file was deleted, or is damaged"]


def test_the_log_says_why_there_is_no_file(tmp_path):
    _, err = run(tmp_path, CRESSET_LOG="cache", CRESSET_NO_DISK_CACHE="1")
    assert "[cresset:cache] no file: the disk cache is off" in err


OPAQUE = """
@torch.library.custom_op("test::opaque", mutates_args=())
def opaque(x: torch.Tensor) -> torch.Tensor:
    return x * {by}
@opaque.register_fake
def _(x):
    return torch.empty_like(x)
g = cresset.compile(lambda x: opaque(x + 1) * 2)
assert torch.equal(g(torch.ones(3)), torch.full((3,), {by} * 4.0))
print(cresset.stats()["programs_from_disk"])
"""


def test_an_opaque_function_is_called_by_name(tmp_path):
    """Its code is no part of a program, so another body hits and is the one which runs."""
    assert run(tmp_path, after=OPAQUE.format(by=3))[0][2] == "0"
    assert run(tmp_path, after=OPAQUE.format(by=5))[0][2] == "2"


HOOKS = """
def packed(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * {by}, lambda t: t / {by}):
        return (x.sin() * x).sum()
x = torch.ones(3, requires_grad=True)
before = cresset.stats()["programs_from_disk"]
cresset.compile(packed)(x).backward()
print(cresset.stats()["programs_from_disk"] - before)
"""


def test_hooks_on_saved_tensors_are_part_of_the_key(tmp_path):
    def found(by):
        return int(run(tmp_path, after=HOOKS.format(by=by))[0][2])

    assert found(2) == 0
    assert found(4) == 0
    assert found(2) > 0


# ---- The size


def size_of(folder):
    return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())


def test_the_files_used_longest_ago_go_first(tmp_path):
    for i in range(10):
        file = tmp_path / "programs" / f"{i}"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x" * 1000)
        os.utime(file, (1000 + i, 1000 + i))
    program = f"import cresset; print(cresset._C.bound_cache({str(tmp_path)!r}, 5000))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "6", done.stderr
    assert sorted(p.name for p in (tmp_path / "programs").iterdir()) == ["6", "7", "8", "9"]


def test_a_process_keeps_the_bound(tmp_path):
    old = tmp_path / "programs" / "old"
    old.parent.mkdir()
    old.write_bytes(b"x" * (3 << 20))
    os.utime(old, (1000, 1000))
    run(tmp_path, CRESSET_CACHE_SIZE="1")
    assert not old.exists() and 0 < size_of(tmp_path) <= 1 << 20


def test_reading_is_a_use(tmp_path):
    run(tmp_path)
    files = [p for p in tmp_path.rglob("*") if p.is_file() and (p.suffix == ".o" or p.parent.name == "programs")]
    for file in files:
        os.utime(file, (1000, 1000))
    run(tmp_path)
    assert files and all(file.stat().st_mtime > 2000 for file in files)


@pytest.mark.parametrize("value", ["0", "-3", "many"])
def test_a_wrong_size_is_an_error_of_the_import(value):
    environment = {**os.environ, "CRESSET_CACHE_SIZE": value}
    done = subprocess.run([sys.executable, "-c", "import cresset"], capture_output=True, text=True, env=environment)
    assert done.returncode != 0 and f"CRESSET_CACHE_SIZE={value!r}" in done.stderr
