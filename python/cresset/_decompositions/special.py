"""Decompositions of mathematical functions of torch and Python (base.py): symbolic orders and tolerances."""

import builtins

from .. import _C
from .._genuine import math, torch
from .._substitutes import NumpyInt
from .base import form, hide, is_float, is_symbol

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def is_single(tensor):
    return is_float(tensor) and tensor.dtype in (torch.float32, torch.float64)


@form(torch.polygamma, torch.special.polygamma)
def polygamma(n, input):
    if not is_single(input) or not is_symbol(n) or not n >= 2:
        return torch.polygamma(n, input)
    order = torch.full((), n + 1, dtype=input.dtype)
    sign = (n % 2) * 2 - 1
    return torch.special.zeta(order, input) * (order.lgamma().exp() * sign)


@form(torch._C.TensorBase.polygamma)
def polygamma_of(self, n):
    return polygamma(n, self)


@form(torch.mvlgamma, torch._C.TensorBase.mvlgamma, torch.special.multigammaln)
def mvlgamma(input, p):
    if not is_single(input) or not p >= 1:
        return torch.mvlgamma(input, p)
    halves = torch.arange(p, dtype=input.dtype) / -2
    return (halves + input.unsqueeze(-1)).lgamma().sum(-1) + p * (p - 1) * (math.log(math.pi) / 4)


# ---- tolerances: the operators accept tensors for them


def as_tolerance(value):
    return torch.full((), value, dtype=torch.float64) if is_symbol(value) else value


def tolerances(atol, rtol):
    """Both as tensors, if either is a tensor or a symbol; None is torch's own default."""
    given = [as_tolerance(t) for t in (atol, rtol)]
    return [torch.tensor(t, dtype=torch.float64) if isinstance(t, (int, float)) else t for t in given]


@form(torch.linalg.pinv)
def pinv(input, rcond=None, hermitian=False, *, atol=None, rtol=None):
    relative = rtol if rcond is None else rcond
    if not is_single(input) or (rcond is not None and rtol is not None) or isinstance(relative, torch.Tensor):
        given = {} if rcond is None else {"rcond": rcond}
        return torch.linalg.pinv(input, hermitian=hermitian, atol=atol, rtol=rtol, **given)
    atol, rtol = tolerances(atol, relative)
    return torch.linalg.pinv(input, atol=atol, rtol=rtol, hermitian=hermitian)


@form(torch.pinverse, torch._C.TensorBase.pinverse)
def pinverse(input, rcond=1e-15):
    return pinv(input, rcond)


@form(torch.linalg.matrix_rank)
def matrix_rank(input, tol=None, hermitian=False, *, atol=None, rtol=None):
    if not is_single(input) or isinstance(tol, torch.Tensor):
        given = {} if tol is None else {"tol": tol}
        return torch.linalg.matrix_rank(input, hermitian=hermitian, atol=atol, rtol=rtol, **given)
    if tol is not None:
        return torch.linalg.matrix_rank(input, as_tolerance(tol), hermitian)
    atol, rtol = tolerances(atol, rtol)
    return torch.linalg.matrix_rank(input, atol=atol, rtol=rtol, hermitian=hermitian)


# ---- Python's module math, of floats


def _is_of_numpy(*numbers):
    """Whether numpy's C code executes the operator, which knows no symbols."""
    return any([type(n) is NumpyInt or type(n).__module__ == "numpy" for n in numbers])


@form(math.radians)
def radians(x):
    return math.radians(x) if _is_of_numpy(x) else x * (math.pi / 180)


@form(math.degrees)
def degrees(x):
    return math.degrees(x) if _is_of_numpy(x) else x * (180 / math.pi)


@form(math.fabs)
def fabs(x):
    return math.fabs(x) if _is_of_numpy(x) else abs(x) * 1.0


@form(math.pow)
def power(x, y):
    x, y = torch.sym_float(x), torch.sym_float(y)
    return x**y if x > 0 else math.pow(x, y)


@form(builtins.divmod)
def divided(x, y, /):
    return (x // y, x % y) if _is_of_numpy(x, y) else divmod(x, y)


@form(builtins.pow)
def to_the_power(base, exp, mod=None):
    return base**exp if mod is None and _is_of_numpy(base, exp) else pow(base, exp, mod)


@form(math.hypot)
def hypot(x, y):
    return math.hypot(x, y) if _is_of_numpy(x, y) else (x * x + y * y) ** 0.5


@form(math.copysign)
def copysign(x, y):
    if _is_of_numpy(x, y):
        return math.copysign(x, y)
    size = abs(x) * 1.0
    if y > 0 or y < 0:
        return size if y > 0 else -size
    return math.copysign(x, y)


@form(math.isclose)
def isclose(a, b, *, rel_tol=1e-9, abs_tol=0.0):
    if not rel_tol >= 0 or not abs_tol >= 0:
        return math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)
    apart = abs(a - b)
    return bool(a == b or apart <= abs(rel_tol * b) or apart <= abs(rel_tol * a) or apart <= abs_tol)


@form(math.comb)
def comb(n, k):
    if not is_symbol(n) or type(k) is not int or not 0 <= k <= 3 or not n >= k:
        return math.comb(n, k)
    out = 1
    for i in range(k):
        out = out * (n - i)
    return out // math.factorial(k)


hide(globals())
