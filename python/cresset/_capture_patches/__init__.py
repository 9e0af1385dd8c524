"""What cannot work as it is on what stands in for tensors and sizes, replaced: for good, or while something is captured.

Of numbers: `integers`, `numpy_integers`, `floats`, `ranges` (`foreign` leaves others' alone); of numpy's `arrays`; of tensors and torch's functions: `tensors`,
`functions`; of those that would start another compiler: `compilers`; the rest: `outside`.
"""

import builtins
import functools
import gc
import logging
import sys
import threading
import types

import torch
import torch.nn.functional as F

from .. import _C, _autograd, _control_flow, _equivalents, _forms, _loops, _wrappers  # noqa: F401  (in use from then on)
from . import compilers, floats, foreign, functions, integers, outside, ranges
from .arrays import copy_of_array, place_of_view, view_of_array  # noqa: F401  (which the front end asks for here)
from .numpy_integers import NumpyInt, of_numpy, plain  # noqa: F401  (likewise, as the next ones)
from .outside import place_of_warning, warn_again, warn_caller  # noqa: F401
from .ranges import (  # noqa: F401
    RangeIterator,
    _iterator_over_items,
    _iterator_over_keys,
    _iterator_over_values,
    _reduced_quietly,
    _rest_of_set,
    _set_state_quietly,
)
from .tensors import get_item, is_contiguous, product, set_item, stride  # noqa: F401

foreign.leave_alone()
_lock = threading.Lock()
_depth = 0

for _symbolic, _plain in ((torch.SymInt, int), (torch.SymFloat, float), (torch.SymBool, bool)):
    _C._show_as(_symbolic, _plain)

# (where, name, what stands there while capturing)
_REPLACED = [
    (builtins, "range", ranges.Range),
    (builtins, "min", ranges.extremum(builtins.min, torch.sym_min)),
    (builtins, "max", ranges.extremum(builtins.max, torch.sym_max)),
    (logging.Logger, "_log", outside.log),
    (gc, "isenabled", outside.of_gc("isenabled")),
    (gc, "enable", outside.of_gc("enable", True)),
    (gc, "disable", outside.of_gc("disable", False)),
    (torch.SymInt, "__name__", "int"),  # which is what messages of C code say
    (torch.SymFloat, "__name__", "float"),
    (torch.SymBool, "__name__", "bool"),
    (torch, "_check_with", functions.check_with),
    (torch, "_check_tensor_all_with", functions.check_tensor_all_with),
    (torch.backends.opt_einsum, "get_opt_einsum", functions.get_opt_einsum),
    (torch, "linspace", functions.linspace),
    (torch, "tensor", functions.tensor),
    (torch, "as_tensor", functions.as_tensor),
    (torch, "affine_grid_generator", functions.affine_grid_generator),
    (F, "one_hot", functions.one_hot),
    (torch, "broadcast_shapes", functions.broadcast_shapes),
    (torch.functional, "broadcast_shapes", functions.broadcast_shapes),
    (F, "scaled_dot_product_attention", functions.with_plain_bools(F.scaled_dot_product_attention)),
]
for _name in ("__str__", "__repr__", "__format__", "__hash__"):
    _REPLACED.append((torch.SymBool, _name, integers.of_value(_name, bool)))
_REPLACED += floats.rows()
# vmap's, behind a lock: cached, it is done once and is no part of any program.
_vmap = sys.modules["torch._functorch.vmap"]
_loading = functools.lru_cache(None)(_vmap.lazy_load_decompositions)
_REPLACED.append((_vmap, "lazy_load_decompositions", _loading))
_REPLACED = [
    (where, name, foreign.for_ours(where, name, stand_in) if where in foreign.CLASSES else stand_in)
    for where, name, stand_in in _REPLACED
]
for _, _name, _stand_in in _REPLACED[:3]:
    _symbolic = ranges.symbolic_range if _stand_in is ranges.Range else _stand_in
    _C._stand_in(getattr(builtins, _name), _stand_in, _symbolic)
_REPLACED += outside.operators_of_control_flow() + compilers.rows()
_REPLACED += _autograd.rows()
_originals = [getattr(where, name) for where, name, _ in _REPLACED]
_C._set_originals(
    [
        (replacement, original)
        for (where, _, replacement), original in zip(_REPLACED, _originals)
        if isinstance(where, types.ModuleType)
    ]
)


def install():
    """Installs the replacements; the returned function takes them away again."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            for where, name, replacement in _REPLACED:
                setattr(where, name, replacement)
    return _remove


def _remove():
    global _depth
    with _lock:
        _depth -= 1
        if _depth == 0:
            for (where, name, _), original in zip(_REPLACED, _originals):
                setattr(where, name, original)
