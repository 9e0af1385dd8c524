"""cresset: a compiler for PyTorch programs.

    import cresset
    model = cresset.compile(model)          # or @cresset.compile on a function

A single compilation serves every shape; code that cannot be captured runs eagerly. See the README.
"""

import torch as _torch  # loads libtorch, which the native module links against

from . import _environment  # before any variable is read  # noqa: F401

# isort: split
from . import _substitutes as _patches  # substitutes for captures, loaded before the first capture
from ._api.cache_files import load_cache, save_cache
from ._api.compile import (
    BreakReason,
    CaptureError,
    ConstraintError,
    Explanation,
    compile,
    compile_in_place,
    explain,
    mark_dynamic,
    mark_static,
    mark_unbacked,
    maybe_mark_dynamic,
    reset,
    stats,
    trace,
)
from ._api.control import (
    allow_in_graph,
    comptime,
    disable,
    graph_break,
    is_compiling,
    substitute_in_graph,
)
from ._api.control_flow_ops import cond, while_loop
from ._api.export import ExportedProgram, ExportError, export
from ._api.guard_entries import GuardEntry
from ._api.install import install, uninstall
from ._api.minify import minify
from ._api.report import report
from ._api.shapes import check, shapes, solve
from ._api.trace_rules import call_table
from ._decompositions import arithmetic as _arithmetic

__version__ = "0.1.0"
__all__ = [
    "BreakReason",
    "CaptureError",
    "ConstraintError",
    "Explanation",
    "ExportError",
    "ExportedProgram",
    "GuardEntry",
    "allow_in_graph",
    "call_table",
    "check",
    "compile",
    "compile_in_place",
    "comptime",
    "cond",
    "disable",
    "explain",
    "export",
    "graph_break",
    "install",
    "is_compiling",
    "load_cache",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "minify",
    "report",
    "reset",
    "save_cache",
    "shapes",
    "solve",
    "stats",
    "substitute_in_graph",
    "trace",
    "uninstall",
    "while_loop",
]

del _torch, _patches, _arithmetic
