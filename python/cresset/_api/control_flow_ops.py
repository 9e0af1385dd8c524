"""Operators of control flow for programs without compilation as a whole."""

import threading
import types
import weakref

import torch
import torch._higher_order_ops

from .. import _C

# A compiled function for each call site with its own branches: call sites never share or exhaust cache entries.
_call_sites = weakref.WeakKeyDictionary()


# The operators are looked up at the call, because a capture substitutes them.
def _cond(true_fn, false_fn, pred, operands):
    return torch.cond(pred, true_fn, false_fn, operands)


def _while_loop(cond_fn, body_fn, carried_inputs):
    return torch._higher_order_ops.while_loop(cond_fn, body_fn, carried_inputs)


def _code_of(function):
    return getattr(getattr(function, "__func__", function), "__code__", type(function))


class _Branch:
    """The function of a call site. A lambda is a new object at each call of the code around it, with the same code
    object. So a single function stands for all of them, and their closures are copied into its cells."""

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
        except ValueError:  # a cell without a value yet
            return function
        return self.function

    def forget(self):
        if isinstance(self.function, types.FunctionType):
            for cell in self.function.__closure__ or ():
                cell.cell_contents = None


class _CallSite:
    def __init__(self, operator, functions):
        from .compile import compile

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
    place = _call_sites.setdefault(operator, weakref.WeakKeyDictionary())
    for function in functions[:-1]:
        place = place.setdefault(_code_of(function), weakref.WeakKeyDictionary())
    last = _code_of(functions[-1])
    if last not in place:
        place[last] = _CallSite(operator, functions)
    return place[last](functions, *arguments)


def cond(pred, true_fn, false_fn, operands=()):
    """``torch.cond``, compiled by cresset, for calls from eager code: both branches are captured, with their closures.

    A side effect in a branch raises CaptureError with the line, and so do branches with results of different structure
    or dtype. In a compiled program it is torch.cond.

    pred: a boolean tensor with a single element, or a bool. operands: a tuple of tensors. Returns the result of the
    branch.
    """
    return _call(_cond, (true_fn, false_fn), pred, operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """``torch.while_loop``, compiled by cresset, for calls from eager code; in a compiled program it is torch's
    operator.

    carried_inputs: a tuple of tensors, which ``body_fn`` maps to a tuple of the same kind. Returns the last tuple.
    """
    return _call(_while_loop, (cond_fn, body_fn), carried_inputs)
