"""Substitutes beside tensors and sizes: warnings, logging, and functions run between two graph segments."""

import json
import logging
import random
import sys
import types
import warnings

import torch

from .. import _C
from .._genuine import Missing, attribute, capability, is_own, own

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def _is_of_import(frame):
    return "importlib" in frame.f_code.co_filename and "_bootstrap" in frame.f_code.co_filename


def _callers_of_warning(frame, stacklevel, prefixes):
    """The callers counted by warnings.warn, None for each beyond the last. Frames of the import system do not count,
    nor do frames of files with a prefix in `prefixes`."""

    def passes_over(frame):
        return _is_of_import(frame) or frame.f_code.co_filename.startswith(prefixes, 0, -1)

    sees_all, callers = _is_of_import(frame), []
    for _ in range(max(2, stacklevel) - 1 if prefixes else stacklevel - 1):
        frame = frame and frame.f_back
        while frame is not None and not sees_all and passes_over(frame):
            frame = frame.f_back
        callers.append(frame)
    return callers


def place_of_warning(message, category=None, stacklevel=1, source=None, *, skip_file_prefixes=()):
    """The arguments of warnings.warn_explicit for repeating this warning of the calling function: (registry, ...). Then
    follow the callers up to the place of the warning, and the prefixes."""
    prefixes = tuple(skip_file_prefixes)
    callers = _callers_of_warning(sys._getframe(1), stacklevel, prefixes)
    frame = callers[-1] if callers else sys._getframe(1)
    names = frame.f_globals if frame is not None else sys.__dict__
    if isinstance(message, Warning):
        message, category = str(message), type(message)
    line, file = (frame.f_lineno, frame.f_code.co_filename) if frame is not None else (1, "sys")
    registry, module = names.setdefault("__warningregistry__", {}), names.get("__name__", "<string>")
    return registry, str(message), category or UserWarning, file, line, module, tuple(callers), prefixes


def warn_caller(warnings, message, category, outside, prefixes):
    """Warns in the name of the compiled function's caller (outside = 1), or of a caller further out."""
    named = {"skip_file_prefixes": prefixes} if prefixes else {}
    warnings.warn(message, category, outside + 1, **named)


def warn_again(registry, message, category, filename, lineno, module):
    warnings.warn_explicit(message, category, filename, lineno, module, registry)


def set_again(function, *args):
    """Repeats a change of a setting of torch from the captured call."""
    function(*args)


def log(self, level, msg, args, exc_info=None, extra=None, stack_info=False, stacklevel=1):
    """Logger._log: runs between two graph segments, with the frames of its callers below it."""
    if exc_info and isinstance(exc_info, BaseException):
        exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
    elif exc_info and not isinstance(exc_info, tuple):
        exc_info = sys.exc_info()
    _log_from(self, level, msg, args, exc_info, extra, stack_info, stacklevel)


def _log_from(self, level, msg, args, exc_info, extra, stack_info, stacklevel):
    file, line, function, stack = self.findCaller(stack_info, stacklevel + 2)  # past these two functions
    self.handle(self.makeRecord(self.name, level, file, line, msg, args, exc_info, function, extra, stack))


_C._mark(_log_from, "a call of a logger")


@capability("calls of loggers")
def _begin_logging():
    _C._substitute(own(logging.Logger, "_log"), log)


def _done_natively():
    """Functions of torch with side effects as a whole, or compilers themselves: run between two graph segments."""
    random = "it seeds torch's random numbers, or asks for their state"
    names = ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state")
    _mark([(torch.random, name, random) for name in names], "RandomNumbers")
    modes = "it changes a mode of torch's"
    rows = [(torch, name, modes) for name in ("set_default_dtype", "use_deterministic_algorithms")]
    rows.append((torch.func, "linearize", "it traces a function"))
    rows.append((torch.Tensor, "__deepcopy__", "it copies storages, each once"))
    _mark(rows)


def _methods(cls, names):
    return [(cls, name) for name in names if isinstance(vars(cls).get(name), types.FunctionType)]


def _library_done_natively():
    """Functions of the standard library with loops over random bits or over parsed text. A graph segment for each bit
    would gain nothing."""
    draws = "randrange randint choice choices shuffle sample uniform triangular normalvariate gauss lognormvariate "
    draws += (
        "expovariate vonmisesvariate gammavariate betavariate binomialvariate paretovariate weibullvariate randbytes"
    )
    rows = [(*row, "it draws random numbers") for row in _methods(random.Random, draws.split())]
    rows += [(*row, "it sets random numbers") for row in _methods(random.Random, ["seed", "setstate"])]
    _mark(rows, "RandomNumbers")
    rows = [(json, name, "it parses") for name in ("load", "loads")]
    rows += [(json, name, "it writes a text") for name in ("dump", "dumps")]
    _mark(rows)


def _mark(rows, kind="UntraceableFunction"):
    for owner, name, why in rows:
        function = getattr(owner, name, None)
        if isinstance(function, types.FunctionType) and is_own(function, owner, name):
            _C._mark(function, f"a call of {owner.__name__}.{name}: {why}", kind)


def _mark_averages():
    import statistics  # imported by few programs; the import takes milliseconds

    averages = "mean fmean geometric_mean harmonic_mean stdev pstdev variance pvariance correlation covariance"
    _mark([(statistics, name, "it adds fractions") for name in averages.split()])


_done_natively()
_library_done_natively()
_C._mark_when_met("statistics", _mark_averages)
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _as_torch_says(tensor, other):
    return _torch_shares_type(tensor, other)


def shares_type(tensor, other):
    """torch._has_compatible_shallow_copy_type(): all captured tensors look alike to torch's code, on any device."""
    if type(tensor) not in _PLAIN or type(other) not in _PLAIN:
        return _as_torch_says(tensor, other)
    return tensor.layout == other.layout and (tensor.device.type == "meta") == (other.device.type == "meta")


_C._mark(_as_torch_says, None)


@capability("`.data` of captured tensors given to others")
def _begin_shares_type():
    global _torch_shares_type
    _torch_shares_type = own(attribute(torch._C, "_VariableFunctions"), "_has_compatible_shallow_copy_type")
    _C._substitute(_torch_shares_type, shares_type)


@capability("a look through torch's own decorator, which is there for torch.compile's sake")
def _begin_wrappers():
    code = own(torch, "_disable_dynamo")(lambda: None).__code__
    if "fn" not in code.co_freevars:
        raise Missing("torch._disable_dynamo is made otherwise")
    _C._see_through_wrappers(code, code.co_freevars.index("fn"))


def _in_stores(self, name):
    """torch.nn.Module.__getattr__ as expected here."""
    if "_parameters" in self.__dict__:
        _parameters = self.__dict__["_parameters"]
        if name in _parameters:
            return _parameters[name]
    if "_buffers" in self.__dict__:
        _buffers = self.__dict__["_buffers"]
        if name in _buffers:
            return _buffers[name]
    if "_modules" in self.__dict__:
        modules = self.__dict__["_modules"]
        if name in modules:
            return modules[name]
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _does(function):
    """The behavior of a function, as far as its code shows it. The first constant of the code is the docstring."""
    code = function.__code__
    return code.co_code, code.co_names, code.co_varnames, code.co_argcount, code.co_consts[1:]


if isinstance(torch.nn.Module.__getattr__, types.FunctionType) and _does(torch.nn.Module.__getattr__) == _does(
    _in_stores
):
    _C._looks_in_stores(torch.nn.Module.__getattr__.__code__, ("_parameters", "_buffers", "_modules"))
