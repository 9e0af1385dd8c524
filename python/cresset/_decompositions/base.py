"""Decompositions of torch functions whose C code takes plain numbers, into operators that accept symbols.

A decomposition is evaluated for a call with a symbolic argument (src/frontend/trace_rules/polyfills.h), so that a single program
serves all values. A call with parameters missing in the decomposition goes to torch. For unsupported arguments, the
decomposition calls the original function, which specializes the numbers, and raises eager mode's errors. Calls in a
decomposition are not replaced again.
"""

import types

from .. import _C
from .._genuine import torch
from .._numbers import INTS, SYMBOLS, SYMBOOLS, SYMINTS
from . import OF_DATA, OF_FACTORS, OF_SYMBOLS_OR_FACTORS  # noqa: F401

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def form(*functions, always=False, varied=False):
    """A decorator for the decomposition of these functions, with their parameters and parameter names.

    always: also used for plain numbers, because the C code reads sizes of the tensors; or a constant of the package. varied:
    an int argument of the compiled function is specialized until it has varied between calls, because code for a fixed
    number is faster.
    """

    def decorate(function):
        for original in functions:
            if original is not None:
                _C._use_decomposition(original, function, always, varied)
        return function

    return decorate


def hide(names, of=None):
    """Hides the frames of these functions, as the replaced C functions have no frames either."""
    for function in list(names.values()):
        if isinstance(function, types.FunctionType) and function.__globals__ is (names if of is None else of):
            _hide_code(function.__code__)


def _hide_code(code):
    _C._hide_frames(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _hide_code(constant)


def is_dense(tensor):
    return isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and tensor.device.type == "cpu"


def is_float(tensor):
    return is_dense(tensor) and tensor.is_floating_point()


def are_floats_alike(*tensors):
    return all(is_float(t) and t.dtype == tensors[0].dtype for t in tensors)


def is_symbol(number):
    return type(number) in SYMBOLS


def is_factor(number):
    """Whether the number is a tensor used as a number."""
    if not is_dense(number) or number.dim() > 0 or number.requires_grad:
        return False
    return not number.is_complex() and number.dtype is not torch.bool


def is_of_data(number):
    """Whether the number is unbacked."""
    return type(number) in (*SYMINTS, *SYMBOOLS) and not number.node.has_hint()


def holds(condition, message=None):
    """Whether the condition holds. An unbacked condition is taken to hold, and checked when the program runs. `message`
    is the message of eager mode's error."""
    if is_of_data(condition):
        return _C.expect(condition, None if message is None else lambda: message)
    return bool(condition)


def product_of(numbers):
    out = 1
    for n in numbers:
        out = out * n
    return out


def several(value, count):
    """A number, or a number for each dimension, as a list; None for any other number of values."""
    if isinstance(value, (tuple, list)):
        out = list(value) * (count if len(value) == 1 else 1)
    else:
        out = [value] * count
    return out if len(out) == count and all(type(n) in INTS for n in out) else None


def laid_out_like(result, input):
    """The layout of operators on images: channels last if the input is channels last, else contiguous."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(input.dim())
    if last is None or input.is_contiguous() or not input.is_contiguous(memory_format=last):
        return result.contiguous()
    return result.contiguous(memory_format=last)


hide(globals())
