"""Operators of symbolic numbers without an expression: on bits, shifts by symbols, remainders of floats.

The result is a derived integer symbol, which each call computes (bridge/symbolic/derived_integers.h). Where this is impossible,
the numbers are specialized, as in _substitutes.
"""

from .. import _C
from .._numbers import INTS, NUMBERS, SymFloat, SymInt

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def _of_bits(name, pinned):
    def operator(self, other):
        by_number = "shift" in name and type(other) is int  # as products and quotients
        made = _C._computed(name[2:-2], self, other) if type(other) in INTS and not by_number else None
        if made is not None:
            return made
        return pinned(self, other)

    return operator


def _of_bits_reflected(name, pinned):
    def operator(self, other):
        made = _C._computed(name, other, self) if type(other) is int else None
        return pinned(self, other) if made is None else made

    return operator


def _with_remainder(name, pinned):
    reflected, operation = name[2] == "r", "mod" if "mod" in name else "floordiv"

    def operator(self, other):
        made = None
        if type(other) in NUMBERS:
            made = _C._computed(operation, *((other, self) if reflected else (self, other)))
        return pinned(self, other) if made is None else made

    return operator


def _bit_length(self):
    made = _C._computed("bit_length", self)
    return int(self).bit_length() if made is None else made


def _set(owner, name, method):
    method.__name__, method.__qualname__ = (
        name,
        f"{'SymInt' if owner is SymInt else 'SymFloat'}.{name}",
    )  # part of the machinery of numbers
    setattr(owner, name, method)


for _name in ("and", "or", "xor", "lshift", "rshift"):
    _set(SymInt, f"__{_name}__", _of_bits(f"__{_name}__", getattr(SymInt, f"__{_name}__")))
    _set(SymInt, f"__r{_name}__", _of_bits_reflected(_name, getattr(SymInt, f"__r{_name}__")))
for _name in ("__mod__", "__rmod__", "__floordiv__", "__rfloordiv__"):
    _set(SymFloat, _name, _with_remainder(_name, getattr(SymFloat, _name)))
_set(SymInt, "bit_length", _bit_length)
