"""Gradients of every operator of torch's own table, compiled against eager: none wrong. Uncompiled operators are
counted."""

from __future__ import annotations

import pytest
import torch
import torch.utils._pytree as pytree
from torch.testing._internal.common_methods_invocations import op_db

import cresset

SAMPLES = 2
OPS = [op for op in op_db if op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu")]
# to_dense under a sparse operator's own autograd function: the capture cannot take part in it (also without gradients).
KNOWN = {"to_sparse"}


def clones(tree):
    def clone(t):
        return t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else t

    return pytree.tree_map(clone, tree)


def tensors(tree):
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def outcome(f, sample):
    args = clones((sample.input, sample.args, sample.kwargs))
    torch.manual_seed(0)
    try:
        outputs = tensors(f(*args))
    except Exception as e:
        return type(e), [], []
    roots = [t for t in outputs if t.requires_grad]
    leaves = [t for t in tensors(args) if t.requires_grad]
    weights = [torch.linspace(0.5, 1.5, max(t.numel(), 1))[: t.numel()].reshape(t.shape).to(t.dtype) for t in roots]
    try:
        gradients = torch.autograd.grad(roots, leaves, weights, allow_unused=True) if roots else []
    except Exception as e:
        return type(e), [], []
    return None, [(t.detach(), t.requires_grad) for t in outputs], list(gradients)


def strided(t):
    return t is None or t.layout == torch.strided


@pytest.mark.parametrize("op", OPS, ids=lambda op: f"{op.name}-{op.variant_test_name}")
def test_operator(op):
    samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=True))
    chosen = [samples[i * len(samples) // SAMPLES] for i in range(SAMPLES)] if len(samples) > SAMPLES else samples
    for sample in chosen:
        if op.name in KNOWN:
            pytest.skip("a known limit")

        def f(x, args, kwargs, sample=sample):
            return sample.output_process_fn_grad(op.op(x, *args, **kwargs))

        error, values, gradients = outcome(f, sample)
        compiled = cresset.compile(f)
        for _ in range(2):
            got_error, got_values, got_gradients = outcome(compiled, sample)
            assert got_error is error
            assert [flag for _, flag in got_values] == [flag for _, flag in values]
            pairs = [(a, b) for (a, _), (b, _) in zip(got_values, values, strict=True)]
            pairs += list(zip(got_gradients, gradients, strict=True))
            for a, b in pairs:
                assert (a is None) == (b is None)
                if a is not None and strided(a) and strided(b):
                    torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-4, equal_nan=True)


LOSSES = {
    "mse": torch.nn.functional.mse_loss,
    "smooth_l1": lambda x, y, **k: torch.nn.functional.smooth_l1_loss(x, y, beta=0.5, **k),
    "huber": lambda x, y, **k: torch.nn.functional.huber_loss(x, y, delta=0.7, **k),
    "bce": lambda x, y, **k: torch.nn.functional.binary_cross_entropy(x.sigmoid(), y.sigmoid(), **k),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_of_losses_are_kernels(name, reduction, dtype):
    """The gradients have eager's layout: most are row-major, whatever the arguments' strides."""
    x, y = (torch.randn(9, 6).to(dtype).t() for _ in range(2))
    x[0, 0] = y[0, 0]
    x.requires_grad_()
    f = lambda x, y: LOSSES[name](x, y, reduction=reduction)  # noqa: E731
    cresset.reset()
    compiled = cresset.compile(f)
    weight = torch.rand_like(f(x, y))
    (expected,), (got,) = (torch.autograd.grad(g(x, y), x, weight) for g in (f, compiled))
    assert got.dtype == expected.dtype and got.stride() == expected.stride()
    bound = {torch.float64: 1e-12, torch.float32: 1e-5}.get(dtype, 3e-2)
    torch.testing.assert_close(got, expected, rtol=bound, atol=bound)
    assert cresset.stats()["extern_calls"] == (name == "bce")  # its forward raises for some data
