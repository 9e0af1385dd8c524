"""The classes of a capture's symbolic numbers: torch's, completed by `_substitutes.sym_int` and `sym_float`.

Torch's own classes stay unchanged, for other compilers and nested tensors. Torch creates numbers of its own classes.
Numbers of a capture become numbers of the classes here when the program meets them (src/frontend/values/number_classes.h). To C
code, and in its messages, they are int, float and bool.
"""

import types

import torch

from . import _C

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


class SymInt(torch.SymInt):
    pass


class SymFloat(torch.SymFloat):
    pass


class SymBool(torch.SymBool):
    pass


# Both classes occur in code that is not evaluated, where a number may not have been converted yet.
SYMINTS = (SymInt, torch.SymInt)
SYMFLOATS = (SymFloat, torch.SymFloat)
SYMBOOLS = (SymBool, torch.SymBool)
INTS = (int, *SYMINTS)
FLOATS = (float, *SYMFLOATS)
SYMBOLS = (*SYMINTS, *SYMFLOATS)
NUMBERS = (int, float, *SYMBOLS)

_adopt = _C._adopt
_OURS = torch._C._SymNode  # nodes made in C++; any other node is an object of a Python class


def is_foreign(number):
    """Whether the number is not from a capture: the length of a nested tensor, a number of torch.compile."""
    return type(number.node) is not _OURS


def _adopting(method):
    def adopting(self, *args):
        return _adopt(method(self, *args))

    return adopting


def _take_operators(cls, torchs):
    """Wraps torch's operators: their results get the classes of this module."""
    plain = "__init__ __bool__ __int__ __index__ __float__ __repr__ __hash__ __class__".split()  # noqa: SIM905
    for name, method in list(vars(torchs).items()):
        if isinstance(method, types.FunctionType) and name.startswith("__") and name not in plain:
            made = _adopting(method)
            made.__name__, made.__qualname__ = name, f"{torchs.__name__}.{name}"  # part of the machinery of numbers
            setattr(cls, name, made)


for _cls, _torchs, _shown in (
    (SymInt, torch.SymInt, int),
    (SymFloat, torch.SymFloat, float),
    (SymBool, torch.SymBool, bool),
):
    _take_operators(_cls, _torchs)
    _C._show_as(_cls, _shown)
    _cls.__name__ = _shown.__name__
_C._use_numbers(SymInt, SymFloat, SymBool)
