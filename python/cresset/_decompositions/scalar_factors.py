"""Decompositions of sums with a tensor as factor (base.py): a step size, a momentum, the result of a line search. The C
code reads the number of the factor; the program multiplies by it."""

from .. import _C
from .._genuine import torch
from .base import OF_FACTORS, are_floats_alike, form, hide, is_factor, is_float

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def width_of(dtype):
    """The dtype in which the C code computes."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def form_of_sum(name):
    function = getattr(torch, name)

    def with_factor(input, other, *, alpha=1):
        if not (is_factor(alpha) and is_float(input) and is_float(other)):
            return function(input, other, alpha=alpha)
        dtype = torch.result_type(input, other)
        width = width_of(dtype)
        return function(input.to(width), other.to(width) * alpha.to(width)).to(dtype)

    form(function, getattr(torch.Tensor, name), always=OF_FACTORS)(with_factor)

    def written_to(self, other, *, alpha=1):
        if not (is_factor(alpha) and is_float(self) and is_float(other)) or other.dim() == 0:
            return getattr(self, name + "_")(other, alpha=alpha)
        width = width_of(torch.result_type(self, other))
        return getattr(self, name + "_")(other.to(width) * alpha.to(width))

    form(getattr(torch.Tensor, name + "_"), always=OF_FACTORS)(written_to)


for _name in ("add", "sub", "subtract"):
    form_of_sum(_name)


def form_of_product(name, times):
    function = getattr(torch, name)

    def product(dtype, first, second, value):
        width = width_of(dtype)
        return times(first.to(width) * value.to(width), second.to(width))

    def with_factor(input, tensor1, tensor2, *, value=1):
        if not is_factor(value) or not are_floats_alike(input, tensor1, tensor2):
            return function(input, tensor1, tensor2, value=value)
        made = product(input.dtype, tensor1, tensor2, value)
        return (input.to(made.dtype) + made).to(input.dtype)

    form(function, getattr(torch.Tensor, name), always=OF_FACTORS)(with_factor)

    def written_to(self, tensor1, tensor2, *, value=1):
        if not is_factor(value) or not are_floats_alike(self, tensor1, tensor2) or tensor1.dim() + tensor2.dim() == 0:
            return getattr(self, name + "_")(tensor1, tensor2, value=value)
        return self.add_(product(self.dtype, tensor1, tensor2, value))

    form(getattr(torch.Tensor, name + "_"), always=OF_FACTORS)(written_to)


form_of_product("addcmul", torch.mul)
form_of_product("addcdiv", torch.div)

hide(globals())
