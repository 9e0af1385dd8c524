"""cresset: a compiler for PyTorch programs.

    import cresset
    model = cresset.compile(model)          # or @cresset.compile on a function

A single compilation serves every shape; code that cannot be captured runs eagerly. See the README.
"""

import torch as _torch  # loads libtorch, which the native module links against

from . import _environment  # before any variable is read  # noqa: F401

# isort: split
from . import _capture_patches as _patches  # substitutes for captures, loaded before the first capture
from ._api import (
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
from ._call_table import call_table
from ._control import (
    GuardEntry,
    allow_in_graph,
    comptime,
    disable,
    graph_break,
    is_compiling,
    substitute_in_graph,
)
from ._forms import arithmetic as _arithmetic
from ._places import cond, while_loop
from ._shapes import check, shapes, solve

__version__ = "0.1.0"
__all__ = [
    "BreakReason",
    "CaptureError",
    "ConstraintError",
    "Explanation",
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
    "graph_break",
    "is_compiling",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "reset",
    "shapes",
    "solve",
    "stats",
    "substitute_in_graph",
    "trace",
    "while_loop",
]

del _torch, _patches, _arithmetic
