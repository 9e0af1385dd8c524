"""Results and side effects of a program, as a string: types, values, layouts, identity of objects and storages."""

from __future__ import annotations

import functools
import math
import re
import types

import numpy as np
import torch


def same_text(mine, its):
    """Equal, except for rounding of floats."""
    float_number = re.compile(r"(-?\d+\.\d{6})")
    a, b = float_number.split(mine), float_number.split(its)
    near = zip(a[1::2], b[1::2])
    return a[::2] == b[::2] and all(math.isclose(float(p), float(q), rel_tol=2e-5, abs_tol=3e-6) for p, q in near)


class Describer:
    """A repeated object is named by its first number."""

    def __init__(self):
        self.seen = {}

    def __call__(self, value, depth=0):
        if value is None or isinstance(value, (bool, type(...))):
            return repr(value)
        if type(value) in (int, str, bytes):
            return f"{type(value).__name__}:{value!r}"
        if type(value) in (float, complex):
            return f"{type(value).__name__}:{value:.6f}"
        if type(value) in (torch.device, torch.dtype):
            return str(value)
        if type(value) in (range, slice):  # immutable: two calls may share it
            parts = [self(part, depth + 1) for part in (value.start, value.stop, value.step)]
            return f"{type(value).__name__}({', '.join(parts)})"
        if id(value) in self.seen:
            return f"<{self.seen[id(value)][0]}>"
        number = len(self.seen)
        self.seen[id(value)] = number, value
        return "deep" if depth > 12 else self.by_kind(value, number, lambda part: self(part, depth + 1))

    def by_kind(self, value, number, inner):
        name = type(value).__qualname__
        if isinstance(value, torch.Tensor):
            return self.tensor(value, number, inner)
        if isinstance(value, torch.nn.Module):
            state = {**dict(value.named_parameters()), **dict(value.named_buffers())}
            return f"{name}({value.training}, {inner(state)})"
        if isinstance(value, BaseException):
            about = value.__cause__, value.__context__, getattr(value, "__notes__", None)
            return f"{name}{[inner(part) for part in (value.args, *about)]}{value.__suppress_context__}"
        if isinstance(value, (dict, types.MappingProxyType)):
            items = ", ".join(f"{inner(k)}: {inner(v)}" for k, v in value.items())
            return f"{name}{{{items}}}{self.attributes(value, inner)}"
        if isinstance(value, (list, tuple)) or name in ("deque", "dict_keys", "dict_values", "dict_items"):
            return f"{name}[{', '.join(inner(item) for item in value)}]{self.attributes(value, inner)}"
        if isinstance(value, (set, frozenset)):
            return f"{name}{{{', '.join(sorted(inner(item) for item in value))}}}"
        if isinstance(value, functools.partial):
            return f"partial{[inner(part) for part in (value.func, value.args, value.keywords, vars(value))]}"
        if isinstance(value, types.FunctionType):
            return f"function {value.__name__} {inner(value.__defaults__)} {inner(vars(value))}"
        if isinstance(value, types.MethodType):
            return f"method {inner(value.__func__)} of {inner(value.__self__)}"
        if isinstance(value, np.ndarray):
            return f"array {value.dtype} {value.tolist()}"
        if isinstance(value, (type, types.BuiltinFunctionType, types.ModuleType)):
            return f"{name} {value.__name__}"
        if hasattr(value, "__dict__") or hasattr(type(value), "__slots__"):
            return f"{name}{self.attributes(value, inner)}"
        return f"{name} {re.sub(' at 0x[0-9a-fA-F]+', '', repr(value))}"

    @staticmethod
    def attributes(value, inner):
        slots = [s for c in type(value).__mro__ for s in ([*vars(c).get("__slots__", ())]) if hasattr(value, s)]
        held = {**{s: getattr(value, s) for s in slots if not s.startswith("__")}, **getattr(value, "__dict__", {})}
        return "".join(f" .{k}={inner(v)}" for k, v in held.items())

    def tensor(self, value, number, inner):
        with torch._C.DisableTorchFunctionSubclass():
            plain = value.detach()
            numbers = plain.reshape(-1).tolist() if plain.device.type == "cpu" else []
            place = plain.untyped_storage().data_ptr() if plain.numel() else 0
            storage = self.seen.setdefault(("storage", place), (number, plain))[0] if place else ""
            strides = [s for s, n in zip(plain.stride(), plain.shape) if n > 1]
            text = ",".join(f"{n:.6f}" for n in numbers)
            grad = inner(value.grad) if value.is_leaf and value.grad is not None else ""
            facts = f"{value.dtype} {tuple(plain.shape)} {strides} @{storage}+{plain.storage_offset()}"
            return f"{type(value).__name__}<{facts} {value.requires_grad} [{text}] {grad}>{vars(value) or ''}"
