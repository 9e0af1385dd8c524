"""cresset.save_cache() and cresset.load_cache(): the disk cache of a process as one file, for another machine."""

import json
import os
import platform
import re
import tempfile
import zipfile

from .. import _C

_FORMAT = 1
_MANIFEST = "manifest.json"
_AUTOTUNE = "autotune.json"
_NAMES = re.compile(r"[0-9a-f]{32}\.(o|cubin|ptx)|(programs|graphs)/[0-9a-f]{32}|profiles/[\w.\-]+")


def _folder(what):
    folder = _C.cache_folder()
    if not folder:
        raise RuntimeError(f"cresset.{what}: the disk cache is off (CRESSET_NO_DISK_CACHE, or no folder for it)")
    return folder


def _machine():
    """The machine of compiled code: the architecture, and the text in the keys of kernels."""
    return {"architecture": platform.machine(), "code": _C.target_text()}


def save_cache(file):
    """Writes the programs, kernels and profiles that this process has read from or written to the disk cache into one file.

    ``file``: a path. Returns the number of cache files in it. Raises RuntimeError where the disk cache is off. See
    :func:`load_cache`.
    """
    folder = _folder("save_cache")
    names = {os.path.relpath(path, folder) for path in _C.used_cache_files()}
    names = sorted(name for name in names if _NAMES.fullmatch(name) and os.path.isfile(os.path.join(folder, name)))
    if os.path.isfile(os.path.join(folder, _AUTOTUNE)):
        names.append(_AUTOTUNE)
    target = os.path.abspath(os.fspath(file))
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".cresset-cache-")
    try:
        with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_MANIFEST, json.dumps({"format": _FORMAT, "machine": _machine(), "files": len(names)}))
            for name in names:
                archive.write(os.path.join(folder, name), name)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return len(names)


def _manifest_of(archive, file):
    try:
        manifest = json.loads(archive.read(_MANIFEST))
        known = manifest["format"] == _FORMAT
    except (KeyError, ValueError, TypeError):
        raise ValueError(f"cresset.load_cache: {file} was not written by cresset.save_cache") from None
    if not known:
        raise ValueError(f"cresset.load_cache: {file} has format {manifest['format']}; this cresset reads {_FORMAT}")
    return manifest


def _differences(there, here):
    """The differences between the machines, in a few words; empty where all code can be used."""
    if there["architecture"] != here["architecture"]:
        return f"the architecture is {here['architecture']} and was {there['architecture']}"
    one, other = there["code"].split(), here["code"].split()
    if one == other:
        return ""
    words = dict(zip(other[::2], other[1::2], strict=False))
    parts = []
    for key, value in zip(one[::2], one[1::2], strict=False):
        now = words.get(key, "")
        if key == "features":
            lost, new = set(value.split(",")) - set(now.split(",")), set(now.split(",")) - set(value.split(","))
            parts += [f"features {', '.join(sorted(lost))} became {', '.join(sorted(new))}"] if lost or new else []
        elif now != value:
            parts.append(f"{key} is {now} and was {value}")
    return "; ".join(parts)


def _merge_autotune(path, bytes_):
    """Decisions are kept by machine; those already here stay."""
    try:
        with open(path, encoding="utf-8") as stream:
            here = json.load(stream)
    except (OSError, ValueError):
        here = {}
    for machine, rows in json.loads(bytes_).items():
        here[machine] = {**rows, **here.get(machine, {})}
    _write(path, json.dumps(here, indent=1).encode())


def _write(path, bytes_):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "wb") as stream:
        stream.write(bytes_)
    os.replace(temporary, path)


def load_cache(file):
    """Adds the contents of a file of :func:`save_cache` to the disk cache. Files that are there already stay.

    Code is found by its processor, its features and cresset's version. On a machine with others it is generated anew;
    a line of the logger ``cresset`` names the differences. Load files from trusted sources alone: they have machine code.
    Returns the number of added files. Raises ValueError for another file, and RuntimeError where the disk cache is off.
    """
    folder = _folder("load_cache")
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise ValueError(f"cresset.load_cache: {file} was not written by cresset.save_cache") from None
    with archive:
        different = _differences(_manifest_of(archive, file)["machine"], _machine())
        added = 0
        for name in archive.namelist():
            path = os.path.join(folder, name)
            if name == _AUTOTUNE:
                _merge_autotune(path, archive.read(name))
            elif _NAMES.fullmatch(name) and not os.path.exists(path):
                _write(path, archive.read(name))
                added += 1
    if different:
        import logging

        text = f"cresset.load_cache: {file} is of another machine: {different}. Its code is not used here"
        logging.getLogger("cresset").warning(text)
    return added
