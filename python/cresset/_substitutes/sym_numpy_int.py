"""Results of operators on a symbolic int and a `numpy.int64`: symbolic, too, and a `numpy.int64` to the program.

numpy's quotients are numpy floats, which have no symbols (with_numpy_scalar, src/frontend/trace_rules/special_cases.h).
"""

import sys

from .. import _C
from .._numbers import SYMBOOLS, SYMINTS, SymInt
from .sym_int import RELATIONS, is_numpy_int64

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


class NumpyInt(SymInt):
    """A symbolic int, which becomes a `numpy.int64` when it leaves the capture."""

    def __getattr__(self, name):
        """An attribute missing in ints: it specializes the number to its value."""
        if name == "node":
            raise AttributeError(name)
        return getattr(_type()(int(plain(self))), name)

    def __repr__(self):
        """Used where C code asks for the repr of a container."""
        return repr(_type()(int(plain(self))))

    __hash__ = SymInt.__hash__


NumpyInt.__name__ = "numpy.int64"
NumpyInt.__getattr__.__qualname__ = "SymInt.__getattr__"  # part of the machinery of numbers
_shown = False


def _type():
    return sys.modules["numpy"].int64


def plain(number):
    if type(number) is NumpyInt:
        return SymInt(number.node)
    return int(number) if is_numpy_int64(number) else number


def of_numpy(number):
    """Makes a symbolic int, or an int known to equal a symbolic int, a numpy int, and a bool a numpy bool. Returns any
    other number unchanged."""
    global _shown
    if not _shown:
        _C._show_as(NumpyInt, _type())
        _shown = True
    if type(number) in SYMINTS:
        return NumpyInt(number.node)
    if type(number) in (bool, *SYMBOOLS):
        return sys.modules["numpy"].bool_(bool(number))
    return _type()(number) if type(number) is int and -(2**63) <= number < 2**63 else number


def _operator(name, gives_int):
    def operator(self, *others):
        value = getattr(SymInt, name)(plain(self), *map(plain, others))
        return of_numpy(value) if gives_int else value

    operator.__name__, operator.__qualname__ = name, f"SymInt.{name}"
    return operator


_BINARY = ("add", "sub", "mul", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor")
for _name in (*_BINARY, *[f"r{name}" for name in _BINARY], "neg", "pos", "abs", "invert"):
    setattr(NumpyInt, f"__{_name}__", _operator(f"__{_name}__", True))
for _name in RELATIONS:
    setattr(NumpyInt, f"__{_name}__", _operator(f"__{_name}__", True))
for _name in ("truediv", "rtruediv"):
    setattr(NumpyInt, f"__{_name}__", _operator(f"__{_name}__", False))
NumpyInt.__round__ = lambda self, ndigits=None: plain(self) if ndigits is None else self
NumpyInt.__divmod__ = lambda self, other: (self // other, self % other)
NumpyInt.__rdivmod__ = lambda self, other: (other // self, other % self)
