"""Functions that would start another compiler: their arguments are captured directly."""

import contextlib
import importlib

import torch

from .. import _C
from .._api.control import _natively
from .._genuine import attribute, capability, module, own

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_FLEX = "torch.nn.attention.flex_attention"


def compile_no_more(model=None, **options):
    """Replaces torch.compile(), including its use as a decorator."""
    return model if model is not None else lambda function: function


@contextlib.contextmanager
def _no_environment():
    yield None


def _flex_attention(
    query,
    key,
    value,
    score_mod,
    block_mask,
    scale,
    kernel_options,
    score_mod_other_buffers=(),
    mask_mod_other_buffers=(),
):
    """The mathematical definition of torch's operator, on all scores at once: masks skip no block."""
    return importlib.import_module("torch._higher_order_ops.flex_attention").math_attention(
        query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers, mask_mod_other_buffers
    )


def _warn_unless_slow(warn_once):
    def warn(warning_id, *args, **kwargs):
        if warning_id != "flex_attention_performance":  # the warning about missing compilation
            warn_once(warning_id, *args, **kwargs)

    return warn


@capability("torch.compile() inside of compiled programs")
def _begin_compile():
    _C._substitute(own(torch, "compile"), compile_no_more)


def _begin_flex_attention():
    """Runs when the first function of the module is called: few programs import it."""
    flex = module(_FLEX)

    @capability("torch's warning that flex_attention is not compiled")
    def begin_warnings():
        _C._substitute(own(flex, "_warn_once"), _warn_unless_slow(flex._warn_once))

    @capability("flex_attention as operators of the program")
    def begin_operator():
        attribute(module("torch._higher_order_ops.flex_attention"), "math_attention")
        _C._substitute(attribute(flex, "flex_attention_hop"), _flex_attention)
        _C._substitute(own(flex, "setup_compilation_env"), _no_environment)


_C._mark_when_met(_FLEX, _begin_flex_attention)


@capability("torch.func.vmap() without its lock")
def _begin_vmap():
    """Loads the decompositions once, outside of any program."""
    load = own(module("torch._functorch.vmap"), "lazy_load_decompositions")
    loaded = False

    @_natively
    def load_once():
        nonlocal loaded
        if not loaded:
            load()
            loaded = True

    _C._substitute(load, load_once)


@capability("torch.compiler.is_compiling()")
def _begin_question():
    _C._asks_compiling(own(torch.compiler, "is_compiling"))
