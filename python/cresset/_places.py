"""Operators of control flow for programs that are not compiled as a whole."""

import threading
import types
import weakref

import torch
import torch._higher_order_ops

from . import _C

# One compiled function for each place that has branches of its own: places never share or exhaust each other's variants.
_places = weakref.WeakKeyDictionary()


# The operators are looked up when they are called: where a program is captured, others stand there.
def _cond(true_fn, false_fn, pred, operands):
    return torch.cond(pred, true_fn, false_fn, operands)


def _while_loop(cond_fn, body_fn, carried_inputs):
    return torch._higher_order_ops.while_loop(cond_fn, body_fn, carried_inputs)


def _code_of(function):
    return getattr(getattr(function, "__func__", function), "__code__", type(function))


class _Branch:
    """The function of a place: a lambda is another object at each call of the code around it, with the same code. So one
    function stands for all of them, and what they close over is put into its cells."""

    def __init__(self, function):
        self.function = function
        if isinstance(function, types.FunctionType):
            closure = tuple(types.CellType() for _ in function.__closure__ or ())
            self.function = types.FunctionType(function.__code__, function.__globals__, closure=closure)
            self.function.__qualname__ = function.__qualname__

    def of(self, function):
        if self.function is function or not isinstance(function, types.FunctionType):
            return function
        self.function.__defaults__, self.function.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        try:
            for mine, its in zip(self.function.__closure__ or (), function.__closure__ or ()):
                mine.cell_contents = its.cell_contents
        except ValueError:  # a cell that has no value yet
            return function
        return self.function

    def forget(self):
        if isinstance(self.function, types.FunctionType):
            for cell in self.function.__closure__ or ():
                cell.cell_contents = None


class _Place:
    def __init__(self, operator, functions):
        from ._api import compile

        self.branches = [_Branch(function) for function in functions]
        self.compiled = compile(operator, fullgraph=True)
        self.lock = threading.RLock()

    def __call__(self, functions, *arguments):
        with self.lock:
            here = [branch.of(function) for branch, function in zip(self.branches, functions)]
            try:
                return self.compiled(*here, *arguments)
            finally:
                for branch in self.branches:
                    branch.forget()


def _call(operator, functions, *arguments):
    if _C.is_compiling():
        return operator(*functions, *arguments)
    place = _places.setdefault(operator, weakref.WeakKeyDictionary())
    for function in functions[:-1]:
        place = place.setdefault(_code_of(function), weakref.WeakKeyDictionary())
    last = _code_of(functions[-1])
    if last not in place:
        place[last] = _Place(operator, functions)
    return place[last](functions, *arguments)


def cond(pred, true_fn, false_fn, operands=()):
    """``torch.cond`` that is compiled by cresset, called from eager code: both branches are captured, with what they close
    over. An effect in a branch, or branches whose results differ in structure or dtype, is a CaptureError that names the
    line. In a compiled program it is torch.cond.

    pred: a boolean tensor of one element, or a bool. operands: a tuple of tensors. Returns what the branches return.
    """
    return _call(_cond, (true_fn, false_fn), pred, operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """``torch.while_loop`` that is compiled by cresset, called from eager code; in a compiled program it is that operator.

    carried_inputs: a tuple of tensors, which ``body_fn`` maps to a tuple like it. Returns the last such tuple.
    """
    return _call(_while_loop, (cond_fn, body_fn), carried_inputs)
