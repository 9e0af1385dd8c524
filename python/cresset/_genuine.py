"""Torch's and Python's own functions, whatever stands under their names by now.

A function is known by its identity while a program is captured. Which object that is must not depend on when cresset was
imported: where a user has put another one under the name, that is the user's, and is called as it is.
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
    """This release of torch has no such name."""


class Replaced(Missing):
    """The user has put another function there, which is called as it is."""


def capability(what):
    """A decorator: calls the function at once. Without a name of torch's that it needs, it does nothing, and that is said."""

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
    """A module, imported."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"there is no module {name} ({error})") from None


def attribute(owner, name):
    """What an object has under a name, which it may not have in all releases."""
    found = getattr(owner, name, None)
    if found is None:
        where = getattr(owner, "__qualname__", getattr(owner, "__name__", owner))
        raise Missing(f"{where} has no {name}")
    return found


def _is_code_of(function, package):
    file = function.__code__.co_filename
    if file.startswith("<frozen"):
        return package is not torch
    if package is _torch:
        return file.startswith(_TORCH + os.sep) or (file.startswith(_LIBRARY) and os.path.basename(file) in _DECORATORS)
    return file.startswith(_LIBRARY + os.sep) and "-packages" + os.sep not in file


def is_own(value, owner, name):
    """Whether this is what torch or Python has made under that name of the module or class."""
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
    """The function, or class, that torch or Python has made under that name; also from behind what a user's functools.wraps()
    has put around it."""
    found = _C._builtins[name] if owner is builtins else attribute(owner, name)
    while not is_own(found, owner, name):
        found = getattr(found, "__wrapped__", None)
        if found is None:
            where = getattr(owner, "__qualname__", getattr(owner, "__name__", owner))
            raise Replaced(f"another function stands in the place of {where}.{name}")
    return found


def absent(module, name):
    """What stands for a name that this release of torch does not have, and that nothing is compared with in vain."""
    logging.getLogger("cresset").warning(
        "cresset does without %s.%s, which this release of torch does not have", module, name
    )
    return type(name, (), {})


def _as_made(module, in_c=None):
    """A module with the same names for what is evaluated in the place of functions: a user's replacement is called where the
    user's program calls it, and nowhere else."""
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
