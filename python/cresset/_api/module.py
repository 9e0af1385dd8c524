"""Compiled modules: the same module, with a compiled call."""

import copy
import types

from .settings import native


def _call(self, *args, **kwargs):
    return self._cresset_call(*args, **kwargs)


def _reduce_ex(self, protocol):
    return _rebuild, (self._orig_mod, self._cresset_settings)


def _deepcopy(self, memo):
    return _rebuild(copy.deepcopy(self._orig_mod, memo), self._cresset_settings)


def _rebuild(module, settings):
    return compile_module(module, settings, _register_late)


def _register_late(function):
    from .compile import _register

    return _register(function)


class _NotOfTheProgram:
    """First base of the classes made here. It hides them from ``__init_subclass__`` of the program, but not subclasses
    of them in the program."""

    __slots__ = ()

    def __init_subclass__(cls, **settings):
        if "_cresset_settings" not in cls.__dict__:
            super().__init_subclass__(**settings)


def _subclass(cls, slot, **methods):
    """A subclass of the module's class, shared by all users. Its instances share a module's state and keep their call
    in `slot`. Only the instances and, weakly, the module's class refer to the subclass, so it is freed with the
    instances."""
    for known in type.__subclasses__(cls):
        if slot in known.__dict__:
            return known
    return type(
        cls.__name__,
        (_NotOfTheProgram, cls),
        {
            "__slots__": (slot, "_cresset_settings", "_orig_mod"),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            **methods,
        },
    )


def _compiled_class(cls):
    return _subclass(cls, "_cresset_call", __call__=_call, __reduce_ex__=_reduce_ex, __deepcopy__=_deepcopy)


def _instance(cls, module, settings):
    """An instance of the subclass, with the module's own ``__dict__``, shared."""
    made = object.__new__(cls)
    object.__setattr__(made, "__dict__", module.__dict__)
    object.__setattr__(made, "_orig_mod", module)
    object.__setattr__(made, "_cresset_settings", settings)
    return made


def compile_module(module, settings, register):
    """A module like `module` in every respect (class, parameters, attributes, hooks: a shared ``__dict__``), with a
    compiled call. ``_orig_mod`` is the module itself."""
    if hasattr(type(module), "_cresset_call"):
        module = module._orig_mod
    compiled = _instance(_compiled_class(type(module)), module, dict(settings))
    original_call = types.MethodType(type(module).__call__, module)
    call = native(original_call, settings)
    call._cresset_settings = settings
    object.__setattr__(compiled, "_cresset_call", register(call))
    return compiled


# ---- Modules excluded from compilation


def _call_kept_out(self, *args, **kwargs):
    return self._cresset_kept_out(self._orig_mod, *args, **kwargs)


def _rebuild_disabled(module, settings):
    from .control import disable

    return disable(module, **settings)


def _reduce_disabled(self, protocol):
    return _rebuild_disabled, (self._orig_mod, self._cresset_settings)


def _deepcopy_disabled(self, memo):
    return _rebuild_disabled(copy.deepcopy(self._orig_mod, memo), self._cresset_settings)


def _disabled_class(cls):
    return _subclass(
        cls,
        "_cresset_kept_out",
        __call__=_call_kept_out,
        __reduce_ex__=_reduce_disabled,
        __deepcopy__=_deepcopy_disabled,
    )


def disabled_module(module, call, settings):
    """A module like `module` in every respect, with `call` as its call."""
    disabled = _instance(_disabled_class(type(module)), module, settings)
    object.__setattr__(disabled, "_cresset_kept_out", call)
    return disabled
