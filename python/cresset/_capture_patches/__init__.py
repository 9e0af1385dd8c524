"""What cannot work as it is on what stands in for tensors and sizes: what is called in its place while something is captured.

Of numbers: `integers`, `numpy_integers`, `floats`, `ranges` (`foreign` leaves others' alone); of numpy's `arrays`; of tensors and torch's functions: `tensors`,
`functions`; of those that would start another compiler: `compilers`; the rest: `outside`. Functions are known by identity (src/frontend/substitutes.h).
"""

import threading

import torch

from .. import _C, _autograd, _control_flow, _equivalents, _forms, _loops, _wrappers  # noqa: F401  (in use from then on)
from . import compilers, floats, foreign, functions, integers, outside, ranges  # noqa: F401
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
    (torch.SymInt, "__name__", "int"),  # which is what messages of C code say
    (torch.SymFloat, "__name__", "float"),
    (torch.SymBool, "__name__", "bool"),
]
for _name in ("__str__", "__repr__", "__format__", "__hash__"):
    _REPLACED.append((torch.SymBool, _name, integers.of_value(_name, bool)))
_REPLACED += floats.rows()
_REPLACED = [(where, name, foreign.for_ours(where, name, stand_in)) for where, name, stand_in in _REPLACED]
_originals = [getattr(where, name) for where, name, _ in _REPLACED]


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
