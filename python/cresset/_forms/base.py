"""Functions of torch whose C code takes plain numbers, made of operators that take symbols.

Evaluated in their place where an argument is symbolic (src/frontend/equivalents.h), so that one program serves all values. What a
form has no parameter for is torch's own to do; so is what a form is not made for: it calls the function itself, which asks for
the numbers, and raises what eager raises. Calls in a form are not replaced again.
"""

import types

from .. import _C
from .._genuine import torch
from .._numbers import INTS, SYMBOLS, SYMBOOLS, SYMINTS
from . import OF_DATA, OF_FACTORS, OF_SYMBOLS_OR_FACTORS  # noqa: F401

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def form(*functions, always=False, varied=False):
    """A decorator: the form of these functions, with their parameters, by the names that they have there. always: also of
    plain numbers, since it is sizes of its tensors that the C code asks for; or what _forms names. varied: an int argument
    of the compiled function is pinned until it has varied between calls, since code for a fixed number is faster."""

    def decorate(function):
        for original in functions:
            if original is not None:
                _C._use_form(original, function, always, varied)
        return function

    return decorate


def hide(names, of=None):
    """Frames of these functions are passed over, as those of the C functions are that they stand for."""
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
    """Whether it is a tensor that is taken for a number."""
    if not is_dense(number) or number.dim() > 0 or number.requires_grad:
        return False
    return not number.is_complex() and number.dtype is not torch.bool


def is_of_data(number):
    """Whether only data knows it."""
    return type(number) in (*SYMINTS, *SYMBOOLS) and not number.node.has_hint()


def holds(condition, message=None):
    """Whether it holds; where only data can tell, it is taken to, which is checked when the program runs: else the error
    that eager raises has this message."""
    if is_of_data(condition):
        return _C.expect(condition, None if message is None else lambda: message)
    return bool(condition)


def product_of(numbers):
    out = 1
    for n in numbers:
        out = out * n
    return out


def several(value, count):
    """A number, or one for each dimension, as a list; None where there are others."""
    if isinstance(value, (tuple, list)):
        out = list(value) * (count if len(value) == 1 else 1)
    else:
        out = [value] * count
    return out if len(out) == count and all(type(n) in INTS for n in out) else None


def laid_out_like(result, input):
    """As operators on images give their results: channels last where the image is that."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(input.dim())
    if last is None or input.is_contiguous() or not input.is_contiguous(memory_format=last):
        return result.contiguous()
    return result.contiguous(memory_format=last)


hide(globals())
