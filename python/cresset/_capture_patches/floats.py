"""What torch's symbolic floats lack of Python's: exact remainders, complex results, errors in Python's words."""

import math

import torch

from .. import _C
from .._numbers import SymFloat
from .integers import RELATIONS, WITH_REMAINDER, of_value

__builtins__ = _C._builtins  # of what follows: the user may have put others there

SymFloat.real = property(lambda self: self)
SymFloat.imag = property(lambda self: 0.0)
SymFloat.conjugate = lambda self: self
SymFloat.__pos__ = lambda self: self
SymFloat.__abs__ = lambda self: torch.sym_max(self, -self) + 0.0  # 0.0 of -0.0
SymFloat.__format__ = lambda self, spec: format(float(self), spec)


def _trunc(self):
    """math.trunc() and int() of a float made of sizes."""
    return math.floor(self) if self >= 0 else math.ceil(self)


def _plain(self):
    """The number, which is pinned by that: float() of a symbolic float is itself."""
    return self.node.guard_float("", 0)


def _rounding(name):
    symbolic = getattr(SymFloat, name)

    def rounded(self):
        try:
            return symbolic(self)
        except OverflowError:  # beyond 64 bits: Python's integers have no end, and its errors say what it is instead
            return getattr(_plain(self), name)()

    rounded.__name__, rounded.__qualname__ = name, f"SymFloat.{name}"
    return rounded


def _round(self, ndigits=None):
    return round(_plain(self), ndigits)


def _is_integer(self):
    """Whether, not which number it is: n / 8 of every n that 8 divides, or of no such n."""
    try:
        return bool(math.floor(self) == self)
    except (OverflowError, ValueError):  # infinite, or no number
        return False


def _with_complex(name):
    symbolic = getattr(SymFloat, name)

    def exact(self, other):
        if type(other) is complex:
            return getattr(complex(_plain(self)), name)(other)
        is_power = name in ("__pow__", "__rpow__") and not isinstance(other, torch.Tensor)
        if is_power and (self if name == "__pow__" else other) < 0:  # which may give a complex number
            return getattr(_plain(self), name)(_C.plain(other))
        try:
            return symbolic(self, other)
        except OverflowError:
            return getattr(_plain(self), name)(_C.plain(other))  # which says so in Python's words

    exact.__name__, exact.__qualname__ = name, f"SymFloat.{name}"
    return exact


def _with_remainder(name):
    """Likewise of floats; by a power of two, floor division stays symbolic."""
    symbolic = getattr(SymFloat, name, None)

    def exact(self, other):
        if name == "__floordiv__" and type(other) is int and other > 0 and other & (other - 1) == 0:
            return symbolic(self, other)
        return getattr(_plain(self), name)(_C.plain(other))

    exact.__name__, exact.__qualname__ = name, f"SymFloat.{name}"
    return exact


for _name in (*WITH_REMAINDER, "divmod", "rdivmod"):
    setattr(SymFloat, f"__{_name}__", _with_remainder(f"__{_name}__"))
for _name in ("add", "sub", "mul", "truediv", "pow"):
    for _side in ("", "r"):
        if hasattr(SymFloat, f"__{_side}{_name}__"):
            setattr(SymFloat, f"__{_side}{_name}__", _with_complex(f"__{_side}{_name}__"))
for _name in RELATIONS:
    setattr(SymFloat, f"__{_name}__", _with_complex(f"__{_name}__"))


for _name in ("as_integer_ratio", "hex"):
    setattr(SymFloat, _name, of_value(_name, _plain))


for _name in ("__int__", "__floor__", "__ceil__"):
    setattr(SymFloat, _name, _rounding(_name))
for _name, _method in (
    ("__str__", lambda f: str(_plain(f))),
    ("__repr__", lambda f: repr(_plain(f))),
    ("__trunc__", _trunc),
    ("__round__", _round),
    ("is_integer", _is_integer),
):
    setattr(SymFloat, _name, _method)
