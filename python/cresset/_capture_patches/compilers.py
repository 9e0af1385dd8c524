"""Functions that would start another compiler: what they are given is captured as it is."""

import contextlib
import importlib

import torch

_FLEX = "torch.nn.attention.flex_attention"


def compile_no_more(model=None, **options):
    """torch.compile(), also as a decorator."""
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
    """What torch's operator does of itself, as operators on all scores at once: masks leave no block out."""
    return importlib.import_module("torch._higher_order_ops.flex_attention").math_attention(
        query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers, mask_mod_other_buffers
    )


def _warn_unless_slow(warn_once):
    def warn(warning_id, *args, **kwargs):
        if warning_id != "flex_attention_performance":  # that it is not compiled
            warn_once(warning_id, *args, **kwargs)

    return warn


def rows():
    out = [(torch, "compile", compile_no_more)]
    module = importlib.import_module(_FLEX)
    if hasattr(module, "_warn_once"):
        out.append((module, "_warn_once", _warn_unless_slow(module._warn_once)))
    if hasattr(importlib.import_module("torch._higher_order_ops.flex_attention"), "math_attention"):
        for name, stand_in in (("flex_attention_hop", _flex_attention), ("setup_compilation_env", _no_environment)):
            if hasattr(module, name):
                out.append((module, name, stand_in))
    return out
