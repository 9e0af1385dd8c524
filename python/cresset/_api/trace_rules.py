"""The treatment of calls during a capture, function by function: `cresset.call_table()`."""

import builtins
import collections
import functools
import inspect
import itertools
import math
import operator
import types

import torch

from .. import _C
from .control import is_disabled

#: The meanings of the table's words.
TREATMENTS = {
    "entered": "a Python function: its bytecode is evaluated",
    "graph": "runs as it is; its operators on tensors go into the graph",
    "reads": "runs as it is; what it is given is guarded",
    "writes": "runs as it is; the change is repeated in later calls",
    "polyfill": "a builtin that calls the program back: a Python function is evaluated in its place",
    "substituted": "evaluated by the function that substitute_in_graph was given",
    "allowed": "put into the graph unseen: allow_in_graph",
    "kept out": "a graph break before the call, which CPython runs: disable",
    "graph break": "untraceable: it may reach state without guards; a graph break before the call, which CPython runs",
}

_SELVES = {list: [], dict: {}, set: set(), collections.deque: collections.deque(), torch.Tensor: torch.empty(0)}


class CallTable(list):
    """(name, treatment) of each function; prints as a table."""

    def __str__(self):
        width = max((len(name) for name, _ in self), default=0)
        return "\n".join(f"{name:<{width}}  {treatment}" for name, treatment in self)

    __repr__ = __str__


def _treatment(function):
    if is_disabled(function):
        return "kept out"
    python = getattr(function, "__func__", function)
    if isinstance(python, types.FunctionType):
        return "allowed" if _C._mark_of(python) is not None else "entered"
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        owner = next((t for t in _SELVES if issubclass(t, function.__objclass__)), None)
        if owner is not None:
            return _C._effect_of(function, _SELVES[owner])
    return _C._effect_of(function)


def _name(function):
    module = getattr(function, "__module__", None) or getattr(getattr(function, "__objclass__", None), "__module__", "")
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))
    return f"{module}.{name}" if module and module != "builtins" else name


def _all_functions():
    for module in (builtins, math, operator, itertools, functools, torch, torch.nn.functional, torch.linalg, torch.fft):
        for name, value in sorted(vars(module).items()):
            if callable(value) and not name.startswith("_") and not inspect.isclass(value):
                yield f"{module.__name__}.{name}".removeprefix("builtins."), value
    for owner in _SELVES:
        for name, value in sorted(vars(owner).items()):
            if isinstance(value, types.MethodDescriptorType) and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", value


def call_table(*functions):
    """The treatment of calls of these functions during a capture. Without arguments, the table covers Python's builtins
    and containers, math, operator, itertools, functools, and torch. Treatments are keys of
    ``cresset.call_table.TREATMENTS``. ``allow_in_graph``, ``disable`` and ``substitute_in_graph`` change rows."""
    rows = ((_name(f), f) for f in functions) if functions else _all_functions()
    return CallTable((name, _treatment(f)) for name, f in rows)


call_table.TREATMENTS = TREATMENTS
