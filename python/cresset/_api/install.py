"""cresset.install(): torch.compile and Module.compile are cresset's until cresset.uninstall().

Here the user asks for torch's own names to be replaced. No other part of the package assigns to names of torch.
"""

import functools
import sys
import warnings

import torch

from .. import _C
from .settings import OWN_BACKENDS

_originals = {}  # (module, name): torch's own function, once install() was called
_installed = False


def _own_of_torch(module, name):
    """torch's own function under a name that install() replaces."""
    return _originals.get((module, name)) or getattr(module, name)


def _chosen_backend(backend):
    """torch's rule: the default of torch.compiler.set_default_backend() where none is given."""
    if backend is not None:
        return backend
    registry = sys.modules.get("torch._dynamo.backends.registry")
    return getattr(registry, "_default_backend", "inductor")


def torch_compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    name=None,
    disable=False,
    recompile_limit=None,
    isolate_recompiles=False,
    **more,
):
    """torch.compile after ``cresset.install()``: :func:`cresset.compile`, without torch's own front end.

    A backend that is not inductor, cresset, eager or aot_eager (a function, another compiler's name) is given its graph
    by torch's own torch.compile, as are arguments of a later release of torch.
    """
    backend = _chosen_backend(backend)
    more = {argument: value for argument, value in more.items() if value is not None}
    settings = {
        "fullgraph": fullgraph,
        "dynamic": dynamic,
        "mode": mode,
        "options": options,
        "name": name,
        "disable": disable,
        "recompile_limit": recompile_limit,
        "isolate_recompiles": isolate_recompiles,
    }
    own = isinstance(backend, str) and backend in OWN_BACKENDS and set(more) <= {"guard_filter_fn"}
    if not own or not _installed:
        return _own_of_torch(torch, "compile")(model, backend=backend, **_given(settings), **more)
    if torch.compiler.is_exporting():
        warnings.warn("torch.compile is ignored when called inside torch.export region", stacklevel=2)
        return model if model is not None else lambda function: function
    from .compile import compile

    return compile(model, backend=backend, **settings, **more)


def _given(settings):
    """Without the arguments that earlier releases of torch lack, where they have their defaults."""
    later = {"name": None, "recompile_limit": None, "isolate_recompiles": False}
    return {k: v for k, v in settings.items() if k not in later or v != later[k]}


def torch_reset():
    """torch.compiler.reset after ``cresset.install()``: drops the compiled code of cresset, and of torch's compiler where
    the program has imported it."""
    from .compile import forget

    forget()
    if "torch._dynamo" in sys.modules:
        _own_of_torch(torch.compiler, "reset")()


_REPLACED = ((torch, "compile", torch_compile), (torch.compiler, "reset", torch_reset))


class Installation:
    """The result of :func:`install`: a context manager that undoes it."""

    def __init__(self, made):
        self._made = made  # False: an earlier call installed

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        if self._made:
            uninstall()

    def uninstall(self):
        uninstall()


def install():
    """From now on ``torch.compile`` and ``Module.compile`` are cresset's, until :func:`uninstall`.

    torch's own front end is neither used nor imported. The result is a context manager: ``with cresset.install(): ...``
    undoes the installation at its end. Functions and modules that were compiled meanwhile stay compiled.
    """
    global _installed
    if _installed:
        return Installation(made=False)
    from .._substitutes.other_compilers import compile_no_more

    for module, name, function in _REPLACED:
        before = getattr(module, name)
        if before is not function:  # a library that has replaced the name may hand cresset's function back
            _originals[module, name] = before
        functools.update_wrapper(
            function, _originals[module, name], assigned=("__module__", "__name__", "__qualname__")
        )
        setattr(module, name, function)
    _C._substitute(torch_compile, compile_no_more)
    _installed = True
    return Installation(made=True)


def uninstall():
    """Undoes :func:`install`: every name of torch has its own function again. Does nothing where nothing is installed.

    A name that another library has replaced meanwhile stays with that library. Its calls of cresset's function reach
    torch's own.
    """
    global _installed
    for module, name, function in _REPLACED:
        if _installed and getattr(module, name) is function:
            setattr(module, name, _originals[module, name])
    _installed = False
