"""Features of float missing in torch's symbolic floats: exact remainders, complex results, Python's errors."""

import math

import torch

from .. import _C
from .._numbers import SymFloat
from .sym_int import RELATIONS, WITH_REMAINDER, of_value

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

SymFloat.real = property(lambda self: self)
SymFloat.imag = property(lambda self: 0.0)
SymFloat.conjugate = lambda self: self
SymFloat.__pos__ = lambda self: self
SymFloat.__abs__ = lambda self: torch.sym_max(self, -self) + 0.0  # 0.0 of -0.0
SymFloat.__format__ = lambda self, spec: format(float(self), spec)


def _trunc(self):
    """math.trunc() and int() of a symbolic float."""
    return math.floor(self) if self >= 0 else math.ceil(self)


def _plain(self):
    """The number, which is thereby specialized: float() of a symbolic float returns the symbolic float."""
    return self.node.guard_float("", 0)


def _rounding(name):
    symbolic = getattr(SymFloat, name)

    def rounded(self):
        try:
            return symbolic(self)
        except OverflowError:  # beyond 64 bits; Python's integers are unbounded, and Python's errors differ
            return getattr(_plain(self), name)()

    rounded.__name__, rounded.__qualname__ = name, f"SymFloat.{name}"
    return rounded


def _round(self, ndigits=None):
    return round(_plain(self), ndigits)


def _is_integer(self):
    """Whether the value is whole, without specializing the value: the answer for n / 8 covers every n divisible by 8,
    or every other n."""
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
        if is_power and (self if name == "__pow__" else other) < 0:  # the result may be complex
            return getattr(_plain(self), name)(_C.plain(other))
        try:
            return symbolic(self, other)
        except OverflowError:
            return getattr(_plain(self), name)(_C.plain(other))  # raises Python's error

    exact.__name__, exact.__qualname__ = name, f"SymFloat.{name}"
    return exact


def _with_remainder(name):
    """The same for remainders; floor division by a power of two stays symbolic."""
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
