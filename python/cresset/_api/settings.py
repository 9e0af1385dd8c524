"""The arguments of cresset.compile: torch.compile's signature, checked and turned into the settings of the compiler."""

import ast
import functools
import os
import sys

import torch

from .. import _C
from . import deprecated


class SettingError(ValueError, RuntimeError):
    """A value that an argument does not accept. torch.compile raises a RuntimeError for it."""


class WrongType(TypeError, AssertionError):
    """A value of a wrong type. torch.compile fails an assertion for it."""


MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")
#: Operators run one by one by ATen, in place of generated code: for the bisection of a wrong result.
LEVELS = ("eager", "aot_eager")
OWN_BACKENDS = ("cresset", "inductor", *LEVELS)
# The evaluator executes bytecode of particular versions of CPython; on any other version, functions are traced.
_NO_EVALUATOR = _C._eval_unsupported()
_FRONT_END = "trace" if _NO_EVALUATOR else "evaluate"
_FRONT_ENDS = ("trace", "evaluate")
OPTIONS = {
    "eager_rounding": (False, "round bf16 and fp16 after every operator, as eager does"),
    "fuse": (True, "False: one kernel an operator, for finding a fault"),
    "freezing": (
        False,
        "values that depend on weights alone are computed once, and weights are laid out for the libraries; writes to "
        "weights are noticed (docs/freezing.md)",
    ),
    "capture_scalar_outputs": (
        False,
        "numbers read from integer tensors, by item() or tolist(), are symbols, which may be sizes",
    ),
    "cuda_graphs": (
        "auto",
        "'always': programs on GPUs are recorded as CUDA graphs and replayed; 'never'; 'auto': where launches bound a call",
    ),
    "frontend": (_FRONT_END, "'evaluate': by the bytecode evaluator; 'trace': by CPython, on proxy tensors"),
}
_CUDA_GRAPHS = ("auto", "always", "never")
_GRAPHS_OF_MODE = {"reduce-overhead": "always", "max-autotune": "always", "max-autotune-no-cudagraphs": "never"}
#: Inductor's option of the same meaning: True or False.
_INDUCTOR_GRAPHS = "triton.cudagraphs"
_GUARD_FILTER = (
    "guard_filter_fn",
    "a function of a list of cresset.GuardEntry that returns a boolean for each: False drops that guard. UNSAFE: compiled "
    "code then runs where the dropped guards no longer hold",
)
_CACHE_ENTRY_LIMIT = (
    "cache_entry_limit",
    "cache entries that are kept for each module or object that the function is called with (default: "
    "CRESSET_CACHE_ENTRY_LIMIT, 64); the least used one is dropped",
)


@functools.cache
def _inductor_options():
    """The names of inductor's options, from the text of its settings: the module itself is not imported."""
    names = {"use_aoti"}  # an option of torch.compile itself
    path = os.path.join(os.path.dirname(torch.__file__), "_inductor", "config.py")
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError):
        return names

    def add(body, prefix):
        for node in body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names.update(prefix + t.id for t in targets if isinstance(t, ast.Name))
            if isinstance(node, ast.ClassDef):
                add(node.body, f"{prefix}{node.name}.")

    add(tree.body, "")
    return names


def _is_inductor_option(name):
    return isinstance(name, str) and name.replace("-", "_") in _inductor_options()


def _check_option(name, value):
    if name == "guard_filter_fn":
        if not callable(value):
            raise TypeError(f"cresset.compile: option 'guard_filter_fn' must be a function, got {value!r}")
    elif name == "cache_entry_limit":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SettingError(f"cresset.compile: option 'cache_entry_limit' must be a positive int, got {value!r}")
    elif name not in OPTIONS:
        known = [(n, meaning) for n, (_, meaning) in OPTIONS.items()] + [_GUARD_FILTER, _CACHE_ENTRY_LIMIT]
        known = "; ".join(f"{n}: {meaning}" for n, meaning in known)
        raise SettingError(f"cresset.compile: unknown option {name!r}; known options are {known}")
    elif name == "frontend":
        if value not in _FRONT_ENDS:
            raise SettingError(f"cresset.compile: unknown frontend {value!r}; expected 'trace' or 'evaluate'")
        if value == "evaluate" and _NO_EVALUATOR:
            raise SettingError(f"cresset.compile: frontend='evaluate' cannot be had here: {_NO_EVALUATOR}")
    elif name == "cuda_graphs":
        if value not in _CUDA_GRAPHS:
            raise SettingError(
                f"cresset.compile: unknown value {value!r} of option 'cuda_graphs'; expected one of "
                f"{', '.join(map(repr, _CUDA_GRAPHS))}"
            )
    elif not isinstance(value, bool):
        raise TypeError(f"cresset.compile: option {name!r} must be True or False, got {value!r}")


def _check_mode(mode, options):
    if mode is not None and mode not in MODES:
        raise SettingError(f"cresset.compile: unknown mode {mode!r}; expected one of {', '.join(map(repr, MODES))}")
    if mode is not None and options is not None:
        raise SettingError("cresset.compile: give either mode or options, not both")


def _taker(backend, mode, options):
    """What takes the captured graphs for a function of the user's. torch's rule: the function gets mode and options."""
    from .graph_modules import Taker

    if mode is not None and options is not None:
        raise SettingError("cresset.compile: give either mode or options, not both")
    more = {} if mode in (None, "default") else {"mode": mode}
    return Taker(backend, more | ({} if options is None else {"options": options}))


def check_options(mode, options, dynamic=None, backend=None):
    """The settings of the compiler for these arguments. ``no_effect`` in it: a list of arguments that change nothing."""
    if callable(backend):
        own = {n: v for n, v in (options or {}).items() if n in (*OPTIONS, _GUARD_FILTER[0], _CACHE_ENTRY_LIMIT[0])}
        theirs = {n: v for n, v in (options or {}).items() if n not in own}
        return check_options(None, own, dynamic) | {"taker": _taker(backend, mode, theirs or None)}
    _check_mode(mode, options)
    if dynamic not in (None, True, False, "auto") or (isinstance(dynamic, int) and not isinstance(dynamic, bool)):
        raise WrongType(f"cresset.compile: dynamic must be None, True, False or 'auto', got {dynamic!r}")
    if not callable(backend) and backend is not None and backend not in OWN_BACKENDS:
        raise SettingError(
            f"cresset.compile: unknown backend {backend!r}; expected one of {', '.join(map(repr, OWN_BACKENDS))}, or a "
            "function of a graph module and its example inputs. Another name is that of a backend of torch's own front "
            "end: use torch.compile for it"
        )
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"cresset.compile: options must be a dict, got {type(options).__name__}")
    chosen = {name: default for name, (default, _) in OPTIONS.items()}
    chosen["cuda_graphs"] = _GRAPHS_OF_MODE.get(mode, "auto")
    no_effect = [f"mode={mode!r}"] if mode not in (None, "default", *_GRAPHS_OF_MODE) else []
    for name, value in (options or {}).items():
        name = deprecated.option(name)
        if name == _INDUCTOR_GRAPHS and isinstance(value, bool):
            name, value = "cuda_graphs", "always" if value else "never"
        if name not in OPTIONS and name not in (_GUARD_FILTER[0], _CACHE_ENTRY_LIMIT[0]) and _is_inductor_option(name):
            no_effect.append(f"options={{{name!r}: {value!r}}}")
            continue
        _check_option(name, value)
        chosen[name] = value
    chosen["evaluate"] = chosen.pop("frontend") == "evaluate"
    if backend in LEVELS:
        chosen["through_aten"] = True
    if no_effect:
        chosen["no_effect"] = no_effect
    return chosen


def check_call_settings(name, recompile_limit, isolate_recompiles, dynamic_shapes, shapes_spec, guard_filter_fn):
    """The settings for the arguments of torch.compile that do not concern the generated code."""
    chosen = {}
    if name is not None:
        chosen["name"] = str(name)
    if recompile_limit is not None:
        if isinstance(recompile_limit, bool) or not isinstance(recompile_limit, int) or recompile_limit < 0:
            raise WrongType(f"cresset.compile: recompile_limit must be an int of at least 0, got {recompile_limit!r}")
        chosen["recompile_limit"] = recompile_limit
    if not isinstance(isolate_recompiles, bool):
        raise WrongType(f"cresset.compile: isolate_recompiles must be True or False, got {isolate_recompiles!r}")
    for given, value in (("dynamic_shapes", dynamic_shapes), ("shapes_spec", shapes_spec)):
        if value is None:
            continue
        raise SettingError(
            f"cresset.compile: {given} is not supported; all sizes are symbolic from the first call, and "
            "cresset.mark_static, mark_dynamic and mark_unbacked say otherwise for single dimensions"
        )
    if guard_filter_fn is not None:
        _check_option("guard_filter_fn", guard_filter_fn)
        chosen["guard_filter_fn"] = guard_filter_fn
    return chosen


def is_disabled_by_environment():
    """CRESSET_DISABLE, or torch's own switches: two variables, and a setting where its compiler is imported."""
    if _C.is_disabled() or any(os.environ.get(v, "") == "1" for v in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")):
        return True
    config = sys.modules.get("torch._dynamo.config")
    return config is not None and getattr(config, "disable", False) is True


def native(function, settings, **more):
    """The compiled form of a function: an object of the native module."""
    return _C.compile(function, **{k: v for k, v in settings.items() if k != "no_effect"}, **more)
