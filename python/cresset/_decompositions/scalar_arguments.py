"""Decompositions of operators with a number (base.py): symbolic factors, exponents, bounds and fill values, and losses
with symbolic parameters."""

import torch.nn.functional as F

from .. import _C
from .._genuine import math, torch
from .._numbers import INTS, NUMBERS, SYMFLOATS
from .base import (
    OF_DATA,
    OF_SYMBOLS_OR_FACTORS,
    are_floats_alike,
    form,
    hide,
    is_dense,
    is_factor,
    is_float,
    is_symbol,
)

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_nn = torch._C._nn


def as_tensor_beside(number, tensor):
    """A number as a tensor with the number's type promotion."""
    whole = type(number) in INTS and not tensor.is_complex()
    dtype = tensor.dtype if whole or tensor.is_floating_point() else torch.get_default_dtype()
    if tensor.dtype is torch.bool and whole:
        dtype = torch.int64
    return torch.full((), number, dtype=dtype, device=tensor.device)


def is_beside(tensor, number):
    return is_dense(tensor) and is_symbol(number) and not tensor.is_complex()


def beside(operator, input, other):
    if isinstance(input, torch.Tensor):
        return operator(input, as_tensor_beside(other, input) if is_beside(input, other) else other)
    return operator(as_tensor_beside(input, other) if is_beside(other, input) else input, other)


@form(torch.fmod, torch._C.TensorBase.fmod)
def fmod(input, other):
    return beside(torch.fmod, input, other) if isinstance(input, torch.Tensor) else torch.fmod(input, other)


@form(torch.xlogy, torch.special.xlogy, torch._C.TensorBase.xlogy)
def xlogy(input, other):
    return beside(torch.xlogy, input, other)


@form(torch.special.xlog1py)
def xlog1py(input, other):
    return beside(torch.special.xlog1py, input, other)


@form(torch.copysign, torch._C.TensorBase.copysign)
def copysign(input, other):
    return beside(torch.copysign, input, other) if isinstance(input, torch.Tensor) else torch.copysign(input, other)


@form(torch.float_power, torch._C.TensorBase.float_power)
def float_power(input, exponent):
    if not is_float(input) or not is_symbol(exponent):
        return torch.float_power(input, exponent)
    return torch.pow(input.double(), exponent)


@form(torch._C.TensorBase.pow_)
def pow_(self, exponent):
    if not is_float(self) or type(exponent) not in SYMFLOATS:
        return self.pow_(exponent)
    return self.copy_(torch.pow(self.clone(), exponent))


@form(torch.celu)
def celu(input, alpha=1.0):
    if not is_float(input) or alpha == 0:
        return torch.celu(input, alpha)
    return torch.ops.aten.elu(input, alpha, 1.0, 1 / alpha)


@form(_nn.softshrink)
def softshrink(input, lambd=0.5):
    if not is_float(input) or not 0 <= lambd <= torch.finfo(input.dtype).max:
        return _nn.softshrink(input, lambd)
    return torch.where(input > lambd, input - lambd, torch.where(input < -lambd, input + lambd, input * 0))


@form(torch.logit, torch._C.TensorBase.logit, torch.special.logit)
def logit(input, eps=None):
    if not is_float(input) or not is_symbol(eps) or not eps >= 0 or not eps <= 0.5:
        return torch.logit(input, eps)
    x = input.clamp(eps, 1 - eps)
    return torch.log(x / (1 - x))


@form(torch.rrelu, always=True)
def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False):
    if not is_float(input) or training or not lower <= upper:
        return torch.rrelu(input, lower, upper, training)
    return F.leaky_relu(input, (lower + upper) / 2).contiguous()


@form(torch.nan_to_num, torch._C.TensorBase.nan_to_num)
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    numbers = (nan, posinf, neginf)
    if not is_float(input):
        return torch.nan_to_num(input, *numbers)
    out = torch.nan_to_num(input, *[None if is_symbol(n) else n for n in numbers])
    for number, chosen in zip(numbers, (input.isnan(), input == math.inf, input == -math.inf)):
        if is_symbol(number):
            out = torch.where(chosen, number, out)
    return out


@form(torch.isclose, torch._C.TensorBase.isclose)
def isclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    usual = is_float(input) and is_float(other) and input.dtype == other.dtype
    if not usual or not rtol >= 0 or not atol >= 0:
        return torch.isclose(input, other, rtol, atol, equal_nan)
    close = input == other
    if equal_nan:
        close = close | (input.isnan() & other.isnan())
    difference = (input - other).abs()
    return close | (difference.isfinite() & (difference <= (rtol * other).abs() + atol))


# ---- factors of products


def sum_of(input, product, alpha, beta):
    """beta * input + alpha * product; with a beta of 0, the values of input do not matter."""
    product = (product * alpha).to(product.dtype)
    return product.to(product.dtype) if beta == 0 else product + (input if is_one(beta) else input * beta)


def is_one(number):
    return type(number) is int and number == 1


def multiplies(input, tensors, alpha, beta, ranks):
    """Whether the tensors are floats of the same dtype, and a factor is a symbolic float or a tensor. These operators
    accept sizes themselves."""
    if type(alpha) not in SYMFLOATS and type(beta) not in SYMFLOATS and not is_factor(alpha):
        return False
    if isinstance(beta, torch.Tensor):  # for a tensor of 0, the values of input would not matter
        return False
    return (
        are_floats_alike(input, *tensors)
        and all(t.dim() == rank for t, rank in zip(tensors, ranks))
        and input.dtype
        in (
            torch.float32,
            torch.float64,
        )
    )


def product_form(name, product, ranks, rank, as_input=False):
    """Registers torch.addmm() and its kin, and the methods with the same name. as_input: results have the input's
    layout."""
    function = getattr(torch, name)

    def with_factors(input, first, second, *, beta=1, alpha=1):
        if not multiplies(input, (first, second), alpha, beta, ranks) or input.dim() > rank:
            return function(input, first, second, beta=beta, alpha=alpha)
        out = sum_of(input, product(first, second), alpha, beta)
        return torch.empty_like(input).copy_(out) if as_input and input.shape == out.shape else out

    form(function, getattr(torch.Tensor, name), always=OF_SYMBOLS_OR_FACTORS)(with_factors)

    def written_to(self, first, second, *, beta=1, alpha=1):
        if not multiplies(self, (first, second), alpha, beta, ranks) or self.dim() != rank:
            return getattr(self, name + "_")(first, second, beta=beta, alpha=alpha)
        return self.copy_(sum_of(self, product(first, second), alpha, beta))

    form(getattr(torch.Tensor, name + "_"), always=OF_SYMBOLS_OR_FACTORS)(written_to)


def outer(first, second):
    return first.unsqueeze(1) * second


def summed_products(first, second):
    return torch.bmm(first, second).sum(0)


product_form("addmm", torch.mm, (2, 2), 2)
product_form("addmv", torch.mv, (2, 1), 1)
product_form("addr", outer, (1, 1), 2, as_input=True)
product_form("baddbmm", torch.bmm, (3, 3), 3)
product_form("addbmm", summed_products, (3, 3), 2)


@form(torch.rsub)
def rsub(input, other, *, alpha=1):
    if not isinstance(input, torch.Tensor) or not isinstance(other, torch.Tensor):
        given = {} if type(alpha) is int and alpha == 1 else {"alpha": alpha}
        return torch.rsub(input, other, **given)
    return torch.sub(other, input, alpha=alpha)


@form(torch.index_add, torch._C.TensorBase.index_add, always=OF_SYMBOLS_OR_FACTORS)
def index_add(input, dim, index, source, *, alpha=1):
    if not is_float(input) or not is_float(source):
        return torch.index_add(input, dim, index, source, alpha=alpha)
    return torch.index_add(input, dim, index, (source * alpha).to(source.dtype))


@form(torch._C.TensorBase.index_add_, always=OF_SYMBOLS_OR_FACTORS)
def index_add_(self, dim, index, source, *, alpha=1):
    if not is_float(self) or not is_float(source):
        return self.index_add_(dim, index, source, alpha=alpha)
    return self.index_add_(dim, index, (source * alpha).to(source.dtype))


# ---- fill values


def adds_to_data(input, pad):
    """Whether padding extends a dimension that may be empty at run time: concatenation needs no elements."""
    rank = input.dim()
    sizes = [input.shape[rank - 1 - i // 2] for i in range(min(len(pad), 2 * rank))]
    unknown = [is_symbol(n) and not n.node.has_hint() and not (type(p) is int and p == 0) for n, p in zip(sizes, pad)]
    return len(pad) % 2 == 0 and len(sizes) == len(pad) and any(unknown) and all(is_nothing_less(p) for p in pad)


def is_nothing_less(p):
    return p >= 0 if type(p) is int else is_symbol(p) and p.node.has_hint() and p >= 0


def side_by_side(input, pad, value):
    for i in range(0, len(pad), 2):
        dim, parts = input.dim() - 1 - i // 2, [input]
        for p, at in ((pad[i], 0), (pad[i + 1], len(parts) + 1)):
            if type(p) is int and p == 0:
                continue
            shape = list(input.shape)
            shape[dim] = p
            parts.insert(at, torch.full(shape, value, dtype=input.dtype))
        input = torch.cat(parts, dim) if len(parts) > 1 else input
    return input


def padded(original, input, pad, value):
    if adds_to_data(input, pad):
        return side_by_side(input, pad, value)
    if not is_float(input) or not is_symbol(value):
        return original(input, pad, value)
    inside = original(torch.ones_like(input, dtype=torch.bool), pad, 0)
    return torch.where(inside, original(input, pad, 0.0), value)


def is_padded(input, pad, value):
    listed = isinstance(pad, (list, tuple)) and all(type(p) in INTS for p in pad)
    return listed and is_dense(input) and type(value) in NUMBERS


@form(_nn.pad, always=OF_DATA)
def pad(input, pad, mode="constant", value=None):
    if mode != "constant" or not is_padded(input, pad, 0 if value is None else value):
        return _nn.pad(input, pad, mode, value)
    return padded(lambda x, p, v: _nn.pad(x, p, mode, v), input, pad, 0 if value is None else value)


@form(torch.constant_pad_nd, always=OF_DATA)
def constant_pad_nd(input, pad, value=0):
    if not is_padded(input, pad, value):
        return torch.constant_pad_nd(input, pad, value)
    return padded(torch.constant_pad_nd, input, pad, value)


def filling(tensor, value):
    """A fill value in the tensor's dtype; unchanged if torch must check it."""
    return torch.full((), value, dtype=tensor.dtype) if is_float(tensor) and is_symbol(value) else value


@form(torch.index_fill, torch._C.TensorBase.index_fill)
def index_fill(input, dim, index, value):
    return torch.index_fill(input, dim, index, filling(input, value))


@form(torch._C.TensorBase.index_fill_)
def index_fill_(self, dim, index, value):
    return self.index_fill_(dim, index, filling(self, value))


def folded(reduce):
    """The `reduce` argument, which combines old value and number; empty if the number replaces the old value."""
    return {} if reduce is None else {"reduce": reduce}


@form(torch.scatter, torch._C.TensorBase.scatter)
def scatter(input, dim, index, value, *, reduce=None):
    if not is_float(input) or not is_symbol(value):
        return torch.scatter(input, dim, index, value, **folded(reduce))
    return torch.scatter(input, dim, index, filling(input, value).expand(index.shape), **folded(reduce))


@form(torch._C.TensorBase.scatter_)
def scatter_(self, dim, index, value, *, reduce=None):
    if not is_float(self) or not is_symbol(value):
        return self.scatter_(dim, index, value, **folded(reduce))
    return self.scatter_(dim, index, filling(self, value).expand(index.shape), **folded(reduce))


hide(globals())
for _made in (product_form,):
    hide({"made": _made}, of=globals())
