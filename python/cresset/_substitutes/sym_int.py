"""Features of int and bool missing in torch's symbolic types: operators, methods, results beyond 64 bits."""

import sys

import torch

from .. import _C
from .._numbers import SYMBOOLS, SYMINTS, SymBool, SymFloat, SymInt, is_foreign

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


class _Methods:
    def __hash__(self):
        """Hashing specializes a symbolic number to its value, which gives the hash."""
        return hash(int(self))

    def __format__(self, spec):
        """Formatting specializes likewise."""
        return format(int(self), spec)

    def __round__(self, ndigits=None):
        """torch's method takes no digits."""
        return self if ndigits is None or (type(ndigits) is int and ndigits >= 0) else round(int(self), ndigits)

    def __abs__(self):
        """torch's method asks for an operator missing in nodes."""
        return torch.sym_max(self, -self)


for _name in ("__hash__", "__format__", "__abs__", "__round__"):
    _method = _Methods.__dict__[_name]
    _method.__qualname__ = f"SymInt.{_name}"  # part of the machinery of symbolic numbers
    setattr(SymInt, _name, _method)


def _bits(name):
    """An operator on bits, which nodes lack: it specializes the numbers. Shifts by a plain number stay symbolic."""

    def bits(self, other):
        if not isinstance(other, (int, torch.SymInt)):
            return NotImplemented
        if name in ("__lshift__", "__rshift__") and type(other) is int and 0 <= other < 62:
            return self * 2**other if name == "__lshift__" else self // 2**other
        return getattr(int(self), name)(int(other))

    bits.__name__, bits.__qualname__ = name, f"SymInt.{name}"  # part of the machinery of numbers, as its methods are
    return bits


for _name in ("and", "or", "xor", "lshift", "rshift"):
    setattr(SymInt, f"__{_name}__", _bits(f"__{_name}__"))
    setattr(SymInt, f"__r{_name}__", _bits(f"__r{_name}__"))


RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
_REFLECTED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
WITH_REMAINDER = ("mod", "rmod", "floordiv", "rfloordiv")  # on floats: exact, unlike any expression
_EXACT = (int, bool, *SYMINTS, *SYMBOOLS, SymFloat, torch.SymFloat)
_AS_INTS = ("add", "sub", "mul", "floordiv", "mod")  # an int and a numpy.int64 give an int of numpy


def is_numpy_int64(number):
    """Tests the name first: most numbers are none, and numpy may not be imported."""
    return type(number).__name__ == "int64" and isinstance(number, getattr(sys.modules.get("numpy"), "int64", ()))


def beside_numpy(name, number, other):
    """The operator on a symbolic int and a `numpy.int64`, where C code executes it."""
    from .sym_numpy_int import of_numpy  # a cyclic import otherwise

    return of_numpy(getattr(SymInt, name)(number, int(other)))


def _without_end(name):
    """Arithmetic of ints. Where an expression has no room for the result, the numbers are specialized."""
    symbolic = getattr(SymInt, name)
    reflected = f"__{_REFLECTED.get(name[2:-2], name[3:-2] if name[2] == 'r' else 'r' + name[2:-2])}__"

    def exact(self, other):
        if type(other) is torch.SymInt and is_foreign(other):
            return getattr(other, reflected)(int(self))
        if is_numpy_int64(other) and name[2:-2].removeprefix("r") in (*_AS_INTS, *RELATIONS):
            return beside_numpy(name, self, other)
        try:
            if type(other) not in _EXACT and isinstance(other, int):  # a subclass of int, whose operators come first
                if getattr(type(other), reflected, None) is not getattr(int, reflected, None):
                    return NotImplemented
                other = int(other)
            if type(other) in SYMBOOLS:
                other = int(bool(other))
            if type(other) is complex:
                return getattr(complex(int(self)), name, lambda _: NotImplemented)(other)
            if type(other) is float and name[2:-2] in WITH_REMAINDER:
                return getattr(float(int(self)), name)(other)
            if type(other) is not int or -(2**63) <= other < 2**63:
                return symbolic(self, other)
        except OverflowError:
            if not isinstance(other, (int, torch.SymInt)):
                raise
        # beside a huge number, all small numbers compare alike
        if name[2:-2] in RELATIONS and self >= -(2**62) and self <= 2**62:
            return getattr(0, name)(other)
        return getattr(int(self), name)(int(other))

    exact.__name__, exact.__qualname__ = name, f"SymInt.{name}"
    return _C._number_operator(SymInt, name, exact) or exact


for _name in ("add", "sub", "mul", "pow", "floordiv", "mod", "truediv"):
    setattr(SymInt, f"__{_name}__", _without_end(f"__{_name}__"))
    setattr(SymInt, f"__r{_name}__", _without_end(f"__r{_name}__"))
for _name in RELATIONS:
    setattr(SymInt, f"__{_name}__", _without_end(f"__{_name}__"))
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


def _divided(number, by):
    if by == 0 and not isinstance(by, (int, torch.SymInt)):
        return divmod(0.0, 0.0)  # raises Python's own error
    return number // by, number % by


SymInt.__divmod__ = lambda self, other: _divided(self, other) if isinstance(other, _NUMBERS) else NotImplemented
SymInt.__rdivmod__ = lambda self, other: _divided(other, self) if isinstance(other, _NUMBERS) else NotImplemented
SymInt.__pos__ = SymInt.__trunc__ = SymInt.__floor__ = SymInt.__ceil__ = lambda self: self
SymInt.__float__ = lambda self: float(int(self))
SymInt.__invert__ = lambda self: -self - 1
SymInt.real = SymInt.numerator = property(lambda self: self)
SymInt.imag = property(lambda self: 0)
SymInt.denominator = property(lambda self: 1)
SymInt.conjugate = lambda self: self


SymBool.__index__ = lambda self: int(bool(self))


def of_value(name, value):
    """A method missing in symbolic numbers: it specializes the number to its value."""

    def method(self, *args, **kwargs):
        return getattr(value(self), name)(*[value(a) if type(a) is type(self) else a for a in args], **kwargs)

    method.__name__, method.__qualname__ = name, f"Sym.{name}"
    return method


for _name in ("to_bytes", "as_integer_ratio", "bit_length", "bit_count"):
    setattr(SymInt, _name, of_value(_name, int))
for _name in ("to_bytes", "as_integer_ratio", "bit_length", "bit_count", "conjugate"):
    setattr(SymBool, _name, of_value(_name, bool))
for _name in ("real", "imag", "numerator", "denominator"):
    setattr(SymBool, _name, property(lambda self, name=_name: getattr(bool(self), name)))
if hasattr(int, "is_integer"):  # from CPython 3.12 on
    SymInt.is_integer = SymBool.is_integer = lambda self: True


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod", "lshift", "rshift", "and", "or", "xor")
_UNARY = ("neg", "pos", "abs", "invert", "int", "float", "round", "trunc", "floor", "ceil")
# Since torch 2.14 symbolic bools have these operators, which ask the node for methods that nodes of C++ lack.
_NOT_IN_NODES = ("__xor__", "__rxor__", "__lshift__", "__rlshift__", "__rshift__", "__rrshift__")
for _name in (*_BINARY, *[f"r{name}" for name in _BINARY], *_UNARY, *RELATIONS):  # the numeric operators of a bool
    _name = f"__{_name}__"
    if _name in _NOT_IN_NODES or getattr(SymBool, _name, None) is getattr(object, _name, None):
        setattr(SymBool, _name, of_value(_name, bool))
_power = SymInt.__pow__


def _power_modulo(self, other, modulus=None):
    return _power(self, other) if modulus is None else pow(int(self), int(other), int(modulus))


_power_modulo.__name__, _power_modulo.__qualname__ = "__pow__", "SymInt.__pow__"
SymInt.__pow__ = _power_modulo


for _name in ("__str__", "__repr__", "__format__", "__hash__"):
    setattr(SymBool, _name, of_value(_name, bool))
