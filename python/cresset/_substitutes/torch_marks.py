"""torch's marks on sizes and its graph breaks, inside of a captured program."""

import operator

import torch

from .. import _C
from .._genuine import capability, module, own

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def mark_static(t, index=None):
    """torch._dynamo.mark_static() in a captured program: specializes the sizes. A class of modules is marked as by
    torch."""
    if not isinstance(t, torch.Tensor):
        t._dynamo_marked_static = True
        return t
    dims = range(t.dim()) if index is None else index if isinstance(index, (list, tuple)) else (index,)
    for dim in dims:
        operator.index(t.size(dim))
    return None


def _enter(self):
    """torch's patches of its compiler's settings, for the time of a capture by that compiler."""


def _exit(self, kind, error, traceback):
    return None


def _begin():
    """Runs when the first function of the module is called: only the program imports it."""

    @capability("torch._dynamo.mark_static() in captured programs")
    def begin():
        _C._substitute(own(module("torch._dynamo.decorators"), "mark_static"), mark_static)

    @capability("torch._dynamo.graph_break() in captured programs")
    def begin_breaks():
        _C._mark(
            own(module("torch._dynamo.decorators"), "graph_break"), "torch._dynamo.graph_break()", "UserRequest", True
        )


_C._mark_when_met("torch._dynamo.decorators", _begin)


def _begin_patches():
    """Runs when a decorator's wrapper is called, before the patch itself."""

    @capability("patches of torch._dynamo.config in captured programs")
    def begin_patches():
        patch = own(module("torch._dynamo.decorators"), "DynamoConfigPatchProxy")
        _C._substitute(own(patch, "__enter__"), _enter)
        _C._substitute(own(patch, "__exit__"), _exit)


_C._mark_when_met("torch._dynamo.external_utils", _begin_patches)
