"""Tensors of classes with `__torch_dispatch__`, made during a capture (frontend/values/wrapper_tensors.h)."""

import torch

from .. import _C
from .._genuine import capability, own

_ARGUMENTS_OF_WRAPPERS = (
    "strides storage_offset memory_format dtype layout device pin_memory requires_grad".split()  # noqa: SIM905
)


def _make_wrapper(cls, size, *args, **named):
    """torch.Tensor._make_wrapper_subclass, whose sizes may be symbolic."""
    named = {**dict(zip(_ARGUMENTS_OF_WRAPPERS, args)), **named}
    return _C._make_wrapper(cls, size, named)


@capability("tensors of classes with __torch_dispatch__ that a compiled program makes")
def _begin():
    _C._substitute(own(torch.Tensor, "_make_wrapper_subclass"), _make_wrapper)
