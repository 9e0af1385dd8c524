"""Calls that reach the backend while other programs run, as samples for check_ops.py: (qualified name, arguments)."""

import collections
import itertools
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

KEPT_A_NAME = 150
MAX_ELEMENTS = 20000
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8)


def is_plain(t):
    return (type(t) is torch.Tensor and t.layout == torch.strided and t.device.type == "cpu"
            and t.numel() < MAX_ELEMENTS and not t.is_complex() and not t.is_conj() and not t.is_neg())  # fmt: skip


def described(leaf):
    return (tuple(leaf.shape), leaf.stride(), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf


def snapshot(leaf):
    """A copy with the same strides; a tensor with gaps or overlaps is kept itself."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    dense = torch.ops.aten.is_non_overlapping_and_dense(leaf)
    return leaf.detach().clone() if dense else leaf.detach()


class Recorder(TorchDispatchMode):
    """Keeps distinct calls of functional operators."""

    def __init__(self):
        super().__init__()
        self.calls, self.kept = {}, collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        leaves = tree_leaves((args, kwargs))
        ours = name.startswith("aten::") and not schema.is_mutable and self.kept[name] < KEPT_A_NAME
        odd = any(isinstance(leaf, (complex, torch.Generator)) for leaf in leaves)
        if ours and not odd and all(is_plain(t) for t in leaves if isinstance(t, torch.Tensor)):
            key = (name, repr([described(leaf) for leaf in leaves]))
            if key not in self.calls:
                self.kept[name] += 1
                copied = [tree_map(snapshot, a) for a in args]
                words = {k: tree_map(snapshot, v) for k, v in kwargs.items()}
                self.calls[key] = (name, (*copied, words) if words else tuple(copied))
        return func(*args, **kwargs)


def from_opdb(samples=12):
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.filterwarnings("ignore")
    recorder = Recorder()
    for op, dtype in itertools.product(op_db, DTYPES):
        if dtype not in op.dtypes:
            continue
        try:
            for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), samples):
                with torch.no_grad(), recorder:
                    op(sample.input, *sample.args, **sample.kwargs)
        except Exception:
            continue
    return list(recorder.calls.values())


def from_models():
    import models

    recorder = Recorder()
    for model, dtype in itertools.product(models.MODELS.values(), (torch.float32, torch.bfloat16)):
        module = model.build(models.TINY, dtype)
        inputs = model.inputs(module, *model.sweep(models.TINY)[0])
        with torch.no_grad(), recorder:
            models.seeded_call(model, module, inputs)
    return list(recorder.calls.values())
