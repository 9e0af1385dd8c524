"""Backends other than cresset's own, for torch.compiler.set_stance(force_backend=...)."""

import torch

from .install import _own_of_torch
from .settings import LEVELS


def form_for(compiled, backend):
    """The compiled function that takes the calls of ``compiled`` while torch's stance forces a backend. None: itself."""
    if isinstance(backend, str) and backend in ("cresset", "inductor"):
        return None
    if getattr(backend, "__module__", None) == "cresset._backend" or "_cresset_is_form" in compiled.__dict__:
        return None
    forms = compiled.__dict__.setdefault("_cresset_forms", [])
    for known, form in forms:
        if known is backend or (isinstance(known, str) and known == backend):
            return form
    form = _made_for(compiled, backend)
    forms.append((backend, form))
    return form


def _made_for(compiled, backend):
    from .compile import _compile_callable

    settings = compiled.__dict__.get("_cresset_settings")
    if settings is None:  # made inside of another compiled function, which takes the calls itself
        return None
    if isinstance(backend, str) and backend in LEVELS:
        form = _compile_callable(compiled.__wrapped__, {**settings, "through_aten": True})
        form._cresset_is_form = True  # the same stance holds for its calls
        return form
    dynamic = None if settings["dynamic"] else False
    original = _own_of_torch(torch, "compile")
    return original(compiled.__wrapped__, backend=backend, fullgraph=settings["fullgraph"], dynamic=dynamic)
