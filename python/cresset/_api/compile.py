"""The functions users call. The compiler itself is cresset._C."""

import functools
import gc
import inspect
import sys
import types
import weakref

import torch

from .. import _C
from . import deprecated
from .control import is_disabled
from .explanation import BreakReason, Explanation  # noqa: F401
from .module import compile_module
from .settings import WrongType, check_call_settings, check_options, is_disabled_by_environment, native


class CaptureError(RuntimeError):
    """fullgraph=True was given and the function cannot be captured whole."""


class ConstraintError(RuntimeError):
    """A dimension marked dynamic would have to be static."""


_compiled = weakref.WeakSet()


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend="cresset",
    mode=None,
    options=None,
    name=None,
    disable=False,
    recompile_limit=None,
    isolate_recompiles=False,
    dynamic_shapes=None,
    shapes_spec=None,
    guard_filter_fn=None,
):
    """Compiles a function or a module; usable as a function and as a decorator.

    The arguments have their meaning from torch.compile. Input sizes are symbolic from the first call on. With
    ``dynamic=False`` sizes are specialized. With ``"auto"`` sizes are specialized until they vary, and this is
    remembered on disk. ``dynamic_shapes``, which torch 2.13 calls ``shapes_spec``, must be None.

    The first call captures the function. A later call runs compiled code if the guards of a cache entry accept it, else
    the function is compiled again. Code that cannot be captured runs eagerly, unless ``fullgraph=True``.

    Raises:
        ValueError, TypeError: unknown mode, option or backend. Each is also an instance of torch's exception there.
        CaptureError: at a call, with ``fullgraph=True``, when the function cannot be captured whole.
        ConstraintError: at a call, when a dimension marked dynamic would have to be static.
    """
    chosen = check_options(mode, options, dynamic, backend)
    chosen |= check_call_settings(
        name, recompile_limit, isolate_recompiles, dynamic_shapes, shapes_spec, guard_filter_fn
    )
    settings = {
        "dynamic": dynamic is not False,
        "auto_dynamic": dynamic == "auto",
        "fullgraph": bool(fullgraph),
        **chosen,
    }
    if model is None:
        return functools.partial(_compile, settings=settings, disable=disable)
    return _compile(model, settings, disable)


def _compile(model, settings, disable=False):
    if not callable(model):
        raise WrongType(f"cresset.compile: expected a callable (a function or a module), got {type(model).__name__}")
    if disable or is_disabled(model) or is_disabled_by_environment():
        return model
    if isinstance(model, torch.nn.Module):
        return compile_module(model, settings, _register)
    if inspect.isclass(model):
        raise TypeError("cresset.compile: expected a function or a module, got a class; compile an instance")
    return _compile_callable(model, settings)


def _compile_callable(function, settings):
    compiled = native(function, settings)
    compiled._cresset_settings = settings
    return _register(compiled)


def _reduce_function(compiled):
    """Pickles a compiled function by name if its module has it under this name, else by function and settings."""
    found = sys.modules.get(compiled.__module__)
    for name in compiled.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is compiled:
        return compiled.__qualname__
    return _compile_callable, (compiled.__wrapped__, compiled._cresset_settings)


def compile_in_place(module, **settings):
    """The counterpart of torch's ``module.compile()``: from now on, calls of this module run compiled code. All owners
    of the module, including parent modules, get the compiled call. Class, name and state stay unchanged; copies and
    pickles are not compiled. ``settings``: as for :func:`compile`. Returns the module. Raises TypeError for
    any other object."""
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"cresset.compile_in_place: expected a module, got {type(module).__name__}")
    module._compiled_call_impl = compile(module._call_impl, **settings)
    return module


def _register(function):
    if _C.after_collection not in gc.callbacks:  # a full collection drops cache entries of dead models
        gc.callbacks.append(_C.after_collection)
    _compiled.add(function)
    return function


def trace(model=None, *, options=None, **settings):
    """:func:`compile` with the tracing front end: the function runs in CPython's own evaluator, on proxy tensors.

    The Python code runs at full speed, but reads and writes of Python state are invisible. Arguments and modules are
    guarded as a whole. A call that reads data or writes state runs eagerly from then on.
    """
    return compile(model, options={**(options or {}), "frontend": "trace"}, **settings)


def _mark(tensor, dim, kind, low=None, high=None, typical=None):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"cresset.mark_{kind}: expected a tensor, got {type(tensor).__name__}")
    for d in dim if isinstance(dim, (list, tuple)) else (dim,):
        if not -tensor.dim() <= d < tensor.dim():
            raise IndexError(f"cresset.mark_{kind}: dimension {d} of a tensor with {tensor.dim()} dimensions")
        if low is not None and high is not None and low > high:
            raise ValueError(f"cresset.mark_{kind}: min={low} is greater than max={high}")
        if typical is not None and not max(low or 0, 0) <= typical <= (typical if high is None else high):
            raise ValueError(f"cresset.mark_{kind}: typical={typical} is outside [{low}, {high}]")
        size = tensor.size(d)
        if (low is not None and size < low) or (high is not None and size > high):
            raise ValueError(f"cresset.mark_{kind}: size {size} of dimension {d} is outside [{low}, {high}]")
        marks = getattr(tensor, "_cresset_marks", None)
        if marks is None:
            marks = tensor._cresset_marks = {}
        marks[d % tensor.dim()] = (kind, low, high, typical)
    _C.note_marks()


def mark_dynamic(tensor, dim, *, min=None, max=None, typical=None):
    """Promises that this dimension varies, within [min, max]. A specializing program is an error, which names the line.

    ``typical``: the size for choosing between plans that are right for all sizes; default: the size of the first call.
    Raises TypeError for a value other than a tensor, and IndexError for a missing dimension. Raises ValueError if the
    size or ``typical`` is outside [min, max].
    """
    _mark(tensor, dim, "dynamic", min, max, typical)


def maybe_mark_dynamic(tensor, dim, *, typical=None):
    """Suggests that this dimension varies. A program that specializes it is compiled without an error. ``typical``: as
    for `mark_dynamic`."""
    _mark(tensor, dim, "maybe", typical=typical)


def mark_unbacked(tensor, dim, *, typical=None):
    """Gives this dimension an unbacked symbol: no guard mentions it, whatever the program does.

    A decision on the dimension is a graph break. With ``fullgraph=True`` it is an error, which names the decision, its
    line, and the fact to state by ``cresset.check``. Conditions of the operators (equal sizes, for example) are checked
    when the program runs. ``typical``: as for `mark_dynamic`.
    """
    _mark(tensor, dim, "unbacked", typical=typical)


def mark_static(tensor, dim=None):
    """Specializes this dimension: each of its sizes is compiled separately. ``dim=None``: all dimensions."""
    _mark(tensor, range(tensor.dim()) if dim is None else dim, "static")


def stats():
    """Statistics since the process began or the last ``reset()``: a dict of counts and milliseconds."""
    out = deprecated.Renamed(_C.stats(), deprecated.STATS, "stats()")
    rows = [row for f in list(_compiled) for row in _C.cache_entries(f)]
    out["bytes_planned"] = sum(row.get("bytes_planned", 0) for row in rows)
    out["cuda_graphs"]["programs"] = [row["cuda_graphs"] for row in rows if row.get("cuda_graphs")]
    return out


def forget():
    """Drops all cache entries."""
    for function in list(_compiled):
        _C.clear_cache_entries(function)


def reset():
    """Drops all cache entries, the counters, and memory kept for later calls."""
    forget()
    _C.reset_stats()
    _C.trim_memory()


def _settings_of(function):
    """The settings that a compiled function or module was made with; empty for others."""
    settings = getattr(function, "_cresset_settings", None)
    return settings if isinstance(settings, dict) and "evaluate" in settings else {}


def explain(function, *, mode=None, options=None, backend=None, **settings):
    """``explain(f)(*args)`` compiles f for these arguments, runs it, and returns an :class:`Explanation`.

    A compiled f is explained with its own settings. ``mode``, ``options``, ``backend``: as for :func:`compile`."""
    given = any(value is not None for value in (mode, options, backend))
    chosen = check_options(mode, options, backend=backend) if given else {}
    settings = {
        **check_options(None, None),
        "dynamic": True,
        "fullgraph": False,
        **_settings_of(function),
        **chosen,
        **deprecated.options(settings),
    }

    def run(*args, **kwargs):
        target = function
        if isinstance(target, torch.nn.Module):
            module = target
            target = types.MethodType(type(module).__call__, module)
        fresh = native(target, settings, keep_text=True)
        before = _C.stats()
        fresh(*args, **kwargs)
        after = _C.stats()
        counters = {k: after[k] - before[k] for k in after if isinstance(after[k], (int, float))}
        name = getattr(function, "__qualname__", type(function).__name__)
        no_effect = settings.get("no_effect", ())
        recompiles = after["recompiles"][len(before["recompiles"]) :]
        return Explanation(name, _C.cache_entries(fresh), counters, _C.learned(fresh), no_effect, recompiles)

    return run
