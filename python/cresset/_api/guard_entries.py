"""Guards as a user's ``guard_filter_fn`` sees them, with the attributes of torch's entries as well."""

import dataclasses
import gc
import time
import weakref

import torch

_MODULE_DICTS = ("_parameters", "_buffers", "_modules")
_SEARCH_EVERY = 1.0  # seconds: a search looks at all objects of the process
_modules = {}  # id of a module's dictionary: weak reference to the module
_searched = 0.0


def _dicts_of(module):
    return [module.__dict__, *(module.__dict__.get(name) for name in _MODULE_DICTS)]


def _search():
    global _searched
    _searched = time.monotonic()
    _modules.clear()
    for found in gc.get_objects():
        if issubclass(type(found), torch.nn.Module):  # isinstance() would ask a weak proxy for its class
            _modules.update((id(d), weakref.ref(found)) for d in _dicts_of(found) if d is not None)


def _owner_module(owner):
    """The module with this ``__dict__``, or with this dictionary of parameters, buffers or children; None: no module.
    A module younger than the last search may be missed: its guards are then kept."""
    if not isinstance(owner, dict):
        return owner if isinstance(owner, torch.nn.Module) else None
    for _ in range(2):
        module = _modules.get(id(owner), lambda: None)()
        if module is not None and any(owner is d for d in _dicts_of(module)):
            return module
        if "_parameters" not in owner and time.monotonic() - _searched < _SEARCH_EVERY:
            return None
        _search()
    return None


@dataclasses.dataclass(frozen=True)
class _Source:
    """What the functions torch.compiler.skip_guard_on_..._unsafe ask about an entry."""

    module: object

    def is_unspecialized_nn_module(self):
        return self.module is not None

    def is_unspecialized_builtin_nn_module(self):
        return self.module is not None and type(self.module).__module__.startswith(("torch.nn.", "torch.ao."))


@dataclasses.dataclass(frozen=True)
class _Guard:
    source: _Source


@dataclasses.dataclass(frozen=True)
class GuardEntry:
    """A guard of a compiled program, as passed to ``options={"guard_filter_fn": fn}``."""

    kind: str  #: "item", "items" (a whole container), "cell" (a closure's variable), "type", "function", "member"
    owner: object  #: the dictionary, list, set, cell, class or instance of the read
    key: object  #: the key of an "item", the descriptor of a "member"
    value: object  #: the value read; None where there was none
    is_global: bool  #: the owner is the namespace of a module

    # ---- torch's attributes

    @property
    def name(self):
        return f"{type(self.owner).__name__}[{self.key!r}]" if self.key is not None else type(self.owner).__name__

    @property
    def has_value(self):
        return self.value is not None

    @property
    def guard_type(self):
        """torch's name for a guard of this kind."""
        if isinstance(self.value, torch.Tensor):
            return "TENSOR_MATCH"
        if self.kind in ("type", "function"):
            return "TYPE_MATCH" if self.kind == "type" else "CLOSURE_MATCH"
        constant = (bool, int, float, complex, str, bytes, type(None))
        return "CONSTANT_MATCH" if isinstance(self.value, constant) else "ID_MATCH"

    @property
    def derived_guard_types(self):
        return ()

    @property
    def orig_guard(self):
        return _Guard(_Source(_owner_module(self.owner)))
