"""The classes of a capture's symbolic numbers: torch's, with what they lack of Python's (`_capture_patches.integers`, `floats`).

Torch's own classes stay as they are, for other compilers and nested tensors. Torch makes numbers of these; those of a
capture become numbers of the classes here where the program meets them (src/frontend/own_numbers.h). To C code, in its
messages too, they are int, float and bool.
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


# What they may be of where nobody has met them yet, in code that is not evaluated.
SYMINTS = (SymInt, torch.SymInt)
SYMFLOATS = (SymFloat, torch.SymFloat)
SYMBOOLS = (SymBool, torch.SymBool)
INTS = (int, *SYMINTS)
FLOATS = (float, *SYMFLOATS)
SYMBOLS = (*SYMINTS, *SYMFLOATS)
NUMBERS = (int, float, *SYMBOLS)

_adopt = _C._adopt
_OURS = torch._C._SymNode  # nodes made in C++; the others' are objects of Python classes


def is_foreign(number):
    """Whether it is a number of others: the length of a nested tensor, one of torch.compile's."""
    return type(number.node) is not _OURS


def _adopting(method):
    def adopting(self, *args):
        return _adopt(method(self, *args))

    return adopting


def _take_operators(cls, torchs):
    """What torch's operators give is of the classes here."""
    plain = "__init__ __bool__ __int__ __index__ __float__ __repr__ __hash__ __class__".split()  # noqa: SIM905
    for name, method in list(vars(torchs).items()):
        if isinstance(method, types.FunctionType) and name.startswith("__") and name not in plain:
            made = _adopting(method)
            made.__name__, made.__qualname__ = name, f"{torchs.__name__}.{name}"  # of the machinery of numbers
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
