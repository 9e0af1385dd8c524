"""Fails when a lower layer includes a higher layer, or when the core includes torch or Python. It also fails when too many
modules of a folder include each other in a cycle, and when a source uses a function which this build replaces by a
different implementation.

The order is the order of the tree: an entry of LAYERS may include itself and everything below it. Two folders in an
entry do not see each other. Link targets enforce most of this too; headers without a .cpp need this check.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# From the bottom.
LAYERS = [
    {"base"},
    {"sym"},
    {"guard"},
    {"graph", "loop"},
    {"ops", "runtime"},
    {"fuse", "codegen"},
    {"lower", "passes"},
    {"compile"},
]
# Includes forbidden by the order but allowed, each with its reason.
ALLOWED: set[tuple[str, str]] = set()
# Folders above the core, from the bottom: a folder includes itself and the folders before it.
FOLDERS = {
    "bridge": [
        "aten",
        "symbolic",
        "capture",
        "device",
        "executor",
        "extern_kernels",
        "decompositions",
        "dispatch",
        "autograd",
        "guarded_program",
        "cpp_api",
    ],
    "frontend": [
        "eval",
        "cpython",
        "values",
        "feedback",
        "frames",
        "guards",
        "replay",
        "cache_entries",
        "trace_rules",
        "session",
        "segments",
        "api",
    ],
}
# A module is a header with its source. In a folder above the core, at most this many modules may include each other in a
# cycle. CYCLES_FILE lists the modules of larger cycles, with the reasons: modules leave the list and never join it.
MOST_IN_CYCLE = 5
CYCLES_FILE = ROOT / "tools/include_cycles.txt"
# Includes forbidden in a folder above the core.
FORBIDDEN_ABOVE = {
    "src/bridge": re.compile(r"^(Python\.h|pybind11/|torch/csrc/(?!api|autograd/(?!.*python))|frontend/|python/)"),
    "src/frontend": re.compile(r"^python/"),
}
# Names which compile, but behave differently in this build.
FORBIDDEN_WORDS = {
    "at::parallel_for": "without OpenMP it is one thread's: run_on_ranges (bridge/device/cpu/thread_pool.h)",
    "std::filesystem": "libtorch exports functions of another compiler's: base/files.h",
}
FOREIGN = re.compile(r"^(torch/|ATen/|c10/|caffe2/|Python\.h|pybind11/|bridge/|frontend/|python/)")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def rank_of(folder: str) -> int | None:
    return next((i for i, layer in enumerate(LAYERS) if folder in layer), None)


def core_violations(path: Path, folder: str, include: str) -> str | None:
    if FOREIGN.match(include):
        return "the core includes neither torch nor Python nor what lies above it"
    target = include.split("/")[0]
    mine, its = rank_of(folder), rank_of(target)
    if its is None or target == folder or (folder, include) in ALLOWED:
        return None
    if mine is None:
        return f"folder {folder} has no place in the order: add it to LAYERS"
    if its > mine:
        return f"{folder} is below {target}"
    return f"{folder} and {target} do not see each other" if its == mine else None


def folder_violation(path: Path, include: str) -> str | None:
    """Why a file of src/bridge or src/frontend may not include a file of its own half; None where it may."""
    half, folder = path.relative_to(ROOT / "src").parts[:2]
    parts = include.split("/")
    if len(parts) < 3 or parts[0] != half:
        return None
    order = FOLDERS[half]
    if folder not in order:
        return f"folder {half}/{folder} has no place in the order: add it to FOLDERS"
    if order.index(parts[1]) <= order.index(folder):
        return None
    return f"{half}/{folder} is below {half}/{parts[1]}"


def sources(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix in {".h", ".cpp", ".c", ".def"})


def line_of(text: str, include: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if include in line and "#" in line)


def module_graph(folder: Path) -> dict[str, set[str]]:
    """The modules of a folder, each with the modules of the same folder which it includes."""
    graph: dict[str, set[str]] = {}
    for path in sources(folder):
        module = str(path.relative_to(ROOT / "src").with_suffix(""))
        included = graph.setdefault(module, set())
        for include in INCLUDE.findall(path.read_text()):
            other = str(Path(include).with_suffix(""))
            if other != module and (ROOT / "src" / include).is_relative_to(folder):
                included.add(other)
    return graph


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    open_ = [start]
    while open_:
        for module in graph.get(open_.pop(), set()) - seen:
            seen.add(module)
            open_.append(module)
    return seen


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected components which have more than one module."""
    found: list[set[str]] = []
    reach = {module: reached(graph, module) for module in graph}
    for module in sorted(graph):
        if module in reach[module] and not any(module in cycle for cycle in found):
            found.append({other for other in reach[module] if module in reach.get(other, set())})
    return [cycle for cycle in found if len(cycle) > 1]


def cycle_violations() -> list[str]:
    lines = CYCLES_FILE.read_text().splitlines() if CYCLES_FILE.exists() else []
    listed = {line for line in lines if line and not line.startswith("#")}
    found, large = [], set()
    for half, folders in FOLDERS.items():
        for folder in folders:
            for cycle in cycles(module_graph(ROOT / "src" / half / folder)):
                if len(cycle) <= MOST_IN_CYCLE:
                    continue
                large |= cycle
                if not cycle <= listed:
                    names = ", ".join(sorted(cycle - listed))
                    found.append(
                        f"src/{half}/{folder}: {len(cycle)} modules include each other in a cycle, more than "
                        f"{MOST_IN_CYCLE}; not listed: {names}"
                    )
    name = CYCLES_FILE.relative_to(ROOT)
    return found + [f"{name}: {module} is in no large cycle: remove the line" for module in sorted(listed - large)]


def check() -> list[str]:
    found = cycle_violations()
    core = ROOT / "src/cresset"
    for path in sources(core):
        folder = path.relative_to(core).parts[0]
        text = path.read_text()
        for include in INCLUDE.findall(text):
            why = core_violations(path, folder, include)
            if why:
                found.append(f"{path.relative_to(ROOT)}:{line_of(text, include)}: includes {include}: {why}")
    for name, pattern in FORBIDDEN_ABOVE.items():
        for path in sources(ROOT / name):
            text = path.read_text()
            for include in INCLUDE.findall(text):
                why = folder_violation(path, include)
                if why:
                    found.append(f"{path.relative_to(ROOT)}:{line_of(text, include)}: includes {include}: {why}")
                if pattern.match(include):
                    found.append(
                        f"{path.relative_to(ROOT)}:{line_of(text, include)}: {name} must not include {include}"
                    )
    for path in sources(ROOT / "src"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for word, why in FORBIDDEN_WORDS.items():
                if word in line.partition("//")[0]:
                    found.append(f"{path.relative_to(ROOT)}:{number}: {word}: {why}")
    return found


if __name__ == "__main__":
    problems = check()
    print("\n".join(problems) or "layers: in order", file=sys.stderr if problems else sys.stdout)
    sys.exit(1 if problems else 0)
