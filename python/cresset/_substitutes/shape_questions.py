"""Questions about symbolic numbers from torch.fx.experimental.symbolic_shapes, asked by a captured program.

Numbers of a capture have no expression of sympy. They are answered as plain numbers are in eager mode. Two questions ask
for a proof, and add no guard: `statically_known_true` and `statically_known_false`.
"""

import sys

import torch

from .. import _C
from .._api.control import _natively
from .._genuine import capability, own
from .._numbers import SYMBOOLS, SYMFLOATS, SYMINTS, is_foreign

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_MODULE = "torch.fx.experimental.symbolic_shapes"
_originals = {}
# The answer does not depend on the value of a number.
_ON_ANY_NUMBER = (
    "free_symbols",
    "free_unbacked_symbols",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "has_static_value",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_symbolic",
)
_ON_THE_NUMBER = ("guarding_hint_or_throw", "hint_int", "optimization_hint", "size_hint")


def _is_own(number, kinds=(*SYMINTS, *SYMFLOATS, *SYMBOOLS)):
    return type(number) in kinds and not is_foreign(number)


def _without_symbols(value):
    """The value with plain numbers in the place of the capture's. Tensors with plain sizes become None."""
    if type(value) in (tuple, list, torch.Size):
        return [_without_symbols(item) for item in value]
    if type(value) is dict:
        return {key: _without_symbols(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        numbers = (*value.size(), *value.stride())
        return value if any(type(n) in SYMINTS and is_foreign(n) for n in numbers) else None
    if not _is_own(value):
        return value
    return 2 if type(value) in SYMINTS else 2.0 if type(value) in SYMFLOATS else True


@_natively
def _ask(name, *args, **kwargs):
    return _originals[name](*args, **kwargs)


def _on_any_number(name):
    def question(value, *args, **kwargs):
        if isinstance(value, torch.Tensor) and not name.startswith(("free", "has_free")):
            return _originals[name](value, *args, **kwargs)  # refuses tensors
        return _ask(name, _without_symbols(value), *args, **kwargs)

    return question


def _on_the_number(name):
    """A hint would become part of the program: the number is specialized."""
    return lambda value, *args, **kwargs: _ask(name, _C.plain(value), *args, **kwargs)


def statically_known_true(x):
    return _C._known_true(x) if _is_own(x, SYMBOOLS) else _originals["statically_known_true"](x)


def statically_known_false(x):
    return _C._known_true(torch.sym_not(x)) if _is_own(x, SYMBOOLS) else _originals["statically_known_false"](x)


def sym_eq(x, y):
    return x == y if type(x) in SYMBOOLS or type(y) in SYMBOOLS else _originals["sym_eq"](x, y)


def _substitutes():
    yield from ((name, _on_any_number(name)) for name in _ON_ANY_NUMBER)
    yield from ((name, _on_the_number(name)) for name in _ON_THE_NUMBER)
    yield from ((f.__name__, f) for f in (statically_known_true, statically_known_false, sym_eq))


def _begin():
    """Runs when the first function of the module is called: few programs import it, and cresset does not."""
    for name, function in _substitutes():
        if not hasattr(sys.modules[_MODULE], name):
            continue  # of another release of torch

        @capability(f"{name}() of symbolic numbers")
        def begin(name=name, function=function):
            _originals[name] = own(sys.modules[_MODULE], name)
            _C._substitute(_originals[name], function)


_C._mark_when_met(_MODULE, _begin)
