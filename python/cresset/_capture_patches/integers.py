"""What torch's symbolic integers and booleans lack of Python's: operators, methods, answers beyond 64 bits.

For good: outside of captures these classes are torch's own affair, and answer as they did.
"""

import sys

import torch

from .. import _C
from .foreign import is_foreign


class SymInt:
    """Its methods count as the machinery of symbolic numbers, by name."""

    def __hash__(self):
        """A symbolic number that is hashed is pinned to its value, whose hash it has."""
        return hash(int(self))

    def __format__(self, spec):
        """Likewise one that is formatted."""
        return format(int(self), spec)

    def __round__(self, ndigits=None):
        """torch's takes no digits."""
        return self if ndigits is None or (type(ndigits) is int and ndigits >= 0) else round(int(self), ndigits)

    def __abs__(self):
        """torch's asks for an operator of nodes that it does not have."""
        return torch.sym_max(self, -self)


for _method in ("__hash__", "__format__", "__abs__", "__round__"):
    setattr(torch.SymInt, _method, SymInt.__dict__[_method])


def _bits(name):
    """An operator on bits, which nodes do not have: of the values, which it pins. Shifts by a number stay symbolic."""

    def bits(self, other):
        if not isinstance(other, (int, torch.SymInt)):
            return NotImplemented
        if name in ("__lshift__", "__rshift__") and type(other) is int and 0 <= other < 62:
            return self * 2**other if name == "__lshift__" else self // 2**other
        return getattr(int(self), name)(int(other))

    bits.__name__, bits.__qualname__ = name, f"SymInt.{name}"  # of the machinery of numbers, as its methods are
    return bits


for _name in ("and", "or", "xor", "lshift", "rshift"):
    setattr(torch.SymInt, f"__{_name}__", _bits(f"__{_name}__"))
    setattr(torch.SymInt, f"__r{_name}__", _bits(f"__r{_name}__"))


RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
_REFLECTED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
WITH_REMAINDER = ("mod", "rmod", "floordiv", "rfloordiv")  # of floats: exact, which no expression is
_EXACT = (int, bool, torch.SymInt, torch.SymBool, torch.SymFloat)
_AS_INTS = ("add", "sub", "mul", "floordiv", "mod")  # what an int and a numpy.int64 give is an int of numpy's


def is_numpy_int64(number):
    """The name is asked for first: most are none, and numpy may not be there."""
    return type(number).__name__ == "int64" and isinstance(number, getattr(sys.modules.get("numpy"), "int64", ()))


def beside_numpy(name, number, other):
    """Of a symbolic int and a `numpy.int64`, where C code does the operator."""
    from .numpy_integers import of_numpy  # which is made of this module

    return of_numpy(getattr(torch.SymInt, name)(number, int(other)))


def _without_end(name):
    """Arithmetic of ints: where an expression has no room for what comes of it, of the numbers themselves, which that pins."""
    symbolic = getattr(torch.SymInt, name)
    reflected = f"__{_REFLECTED.get(name[2:-2], name[3:-2] if name[2] == 'r' else 'r' + name[2:-2])}__"

    def exact(self, other):
        if is_foreign(self):
            ours = type(other) is torch.SymInt and not is_foreign(other)
            return symbolic(self, int(other) if ours else other)
        if type(other) is torch.SymInt and is_foreign(other):
            return getattr(other, reflected)(int(self))
        if is_numpy_int64(other) and name[2:-2].removeprefix("r") in (*_AS_INTS, *RELATIONS):
            return beside_numpy(name, self, other)
        try:
            if type(other) not in _EXACT and isinstance(
                other, int
            ):  # of a class of its own, whose operators come first
                if getattr(type(other), reflected, None) is not getattr(int, reflected, None):
                    return NotImplemented
                other = int(other)
            if type(other) is torch.SymBool:
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
        if name[2:-2] in RELATIONS and self >= -(2**62) and self <= 2**62:  # beside such a number, all are alike
            return getattr(0, name)(other)
        return getattr(int(self), name)(int(other))

    exact.__name__, exact.__qualname__ = name, f"SymInt.{name}"
    return _C._number_operator(torch.SymInt, name, exact) or exact


for _name in ("add", "sub", "mul", "pow", "floordiv", "mod", "truediv"):
    setattr(torch.SymInt, f"__{_name}__", _without_end(f"__{_name}__"))
    setattr(torch.SymInt, f"__r{_name}__", _without_end(f"__r{_name}__"))
for _name in RELATIONS:
    setattr(torch.SymInt, f"__{_name}__", _without_end(f"__{_name}__"))
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


def _divided(number, by):
    if by == 0 and not isinstance(by, (int, torch.SymInt)):
        return divmod(0.0, 0.0)  # which has words of its own
    return number // by, number % by


torch.SymInt.__divmod__ = lambda self, other: _divided(self, other) if isinstance(other, _NUMBERS) else NotImplemented
torch.SymInt.__rdivmod__ = lambda self, other: _divided(other, self) if isinstance(other, _NUMBERS) else NotImplemented
torch.SymInt.__pos__ = torch.SymInt.__trunc__ = torch.SymInt.__floor__ = torch.SymInt.__ceil__ = lambda self: self
torch.SymInt.__float__ = lambda self: float(int(self))
torch.SymInt.__invert__ = lambda self: -self - 1
torch.SymInt.real = torch.SymInt.numerator = property(lambda self: self)
torch.SymInt.imag = property(lambda self: 0)
torch.SymInt.denominator = property(lambda self: 1)
torch.SymInt.conjugate = lambda self: self


torch.SymBool.__index__ = lambda self: int(bool(self))


def of_value(name, value):
    """A method that symbolic numbers do not have: of the value, which it pins."""

    def method(self, *args, **kwargs):
        return getattr(value(self), name)(*[value(a) if type(a) is type(self) else a for a in args], **kwargs)

    method.__name__, method.__qualname__ = name, f"Sym.{name}"
    return method


for _name in ("to_bytes", "as_integer_ratio", "bit_length", "bit_count"):
    setattr(torch.SymInt, _name, of_value(_name, int))
for _name in ("to_bytes", "as_integer_ratio", "bit_length", "bit_count", "conjugate"):
    setattr(torch.SymBool, _name, of_value(_name, bool))
for _name in ("real", "imag", "numerator", "denominator"):
    setattr(torch.SymBool, _name, property(lambda self, name=_name: getattr(bool(self), name)))
if hasattr(int, "is_integer"):  # from CPython 3.12 on
    torch.SymInt.is_integer = torch.SymBool.is_integer = lambda self: True


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod", "lshift", "rshift", "and", "or", "xor")
_UNARY = ("neg", "pos", "abs", "invert", "int", "float", "round", "trunc", "floor", "ceil")
for _name in (*_BINARY, *[f"r{name}" for name in _BINARY], *_UNARY, *RELATIONS):  # what a bool can do as a number
    _name = f"__{_name}__"
    if getattr(torch.SymBool, _name, None) is getattr(object, _name, None):
        setattr(torch.SymBool, _name, of_value(_name, bool))
_power = torch.SymInt.__pow__


def _power_modulo(self, other, modulus=None):
    return _power(self, other) if modulus is None else pow(int(self), int(other), int(modulus))


_power_modulo.__name__, _power_modulo.__qualname__ = "__pow__", "SymInt.__pow__"
torch.SymInt.__pow__ = _power_modulo
