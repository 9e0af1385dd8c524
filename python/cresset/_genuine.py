"""The original functions of torch and Python, even if the user has replaced their names.

A capture recognizes a function by its identity, which must not depend on the time of importing cresset. A user's
function under the name belongs to the user, and is called unchanged.
"""

import builtins
import importlib
import logging
import math as _math
import os
import sys
import types

import torch as _torch

from . import _C

_LIBRARY = os.path.dirname(os.__file__)
_TORCH = os.path.dirname(_torch.__file__)
_DECORATORS = ("contextlib.py", "functools.py", "typing_extensions.py", "warnings.py")


class Missing(Exception):
    """This release of torch lacks the name."""


class Replaced(Missing):
    """The user has put another function there, which is called unchanged."""


def capability(what):
    """A decorator, which calls the function at once. If a name of torch is missing, the capability is skipped with a
    log entry."""

    def decorate(function):
        try:
            function()
        except Replaced as replaced:
            logging.getLogger("cresset").info("%s: cresset does without, as %s", what, replaced)
        except Missing as missing:
            logging.getLogger("cresset").warning("%s: cresset does without, as %s", what, missing)
        return function

    return decorate


def module(name):
    """Imports a module; raises Missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"there is no module {name} ({error})") from None


def attribute(owner, name):
    """The attribute of an object; raises Missing where this release has none."""
    found = getattr(owner, name, None)
    if found is None:
        where = getattr(owner, "__qualname__", getattr(owner, "__name__", owner))
        raise Missing(f"{where} has no {name}")
    return found


def _is_code_of(function, package):
    file = function.__code__.co_filename
    if file.startswith("<frozen"):
        return package is not _torch
    if package is _torch:
        return file.startswith(_TORCH + os.sep) or (file.startswith(_LIBRARY) and os.path.basename(file) in _DECORATORS)
    return file.startswith(_LIBRARY + os.sep) and "-packages" + os.sep not in file


def is_own(value, owner, name):
    """Whether the value is the original of torch or Python under the name in the module or class."""
    of = owner.__name__ if isinstance(owner, types.ModuleType) else getattr(owner, "__module__", type(owner).__module__)
    return _is_own(value, _torch if of.partition(".")[0] == "torch" else sys, name)


def _is_own(value, package, name):
    if isinstance(value, types.FunctionType):
        wrapped = value
        while _is_code_of(wrapped, package) and isinstance(getattr(wrapped, "__wrapped__", None), types.FunctionType):
            wrapped = wrapped.__wrapped__
        return _is_code_of(wrapped, package) and value.__name__ == name
    if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return value.__name__ == name
    if isinstance(value, type) and value.__name__ != name:
        return False
    kind = value if isinstance(value, type) else type(value)
    top = kind.__module__.partition(".")[0]
    return top == "torch" if package is _torch else top in sys.stdlib_module_names


def own(owner, name):
    """The original function or class of torch or Python under the name, even behind a user's functools.wraps()."""
    found = _C._builtins[name] if owner is builtins else attribute(owner, name)
    while not is_own(found, owner, name):
        found = getattr(found, "__wrapped__", None)
        if found is None:
            where = getattr(owner, "__qualname__", getattr(owner, "__name__", owner))
            raise Replaced(f"another function stands in the place of {where}.{name}")
    return found


def absent(module, name):
    """A placeholder class for a name missing in this release of torch: comparisons with it are always false."""
    logging.getLogger("cresset").warning(
        "cresset does without %s.%s, which this release of torch does not have", module, name
    )
    return type(name, (), {})


def _as_made(module, in_c=None):
    """A copy of a module with original functions, for code of substitutes. A user's replacement is called only where
    the user's program calls it."""
    made = types.ModuleType(module.__name__)
    for name, value in vars(module).items():
        in_python = in_c is not None and name in getattr(_torch.functional, "__all__", ())  # with another signature
        value = value if in_python else getattr(in_c, name, value)
        if isinstance(value, types.FunctionType) and not is_own(value, module, name):
            value = getattr(value, "__wrapped__", value)
        made.__dict__[name] = value
    return made


torch, math = _as_made(_torch, getattr(_torch._C, "_VariableFunctions", None)), _as_made(_math)
for _name in ("linalg", "special", "fft"):
    setattr(torch, _name, _as_made(getattr(_torch, _name)))
