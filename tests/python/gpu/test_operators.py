"""torch's database of operators on simulated CUDA devices: results and gradients are those of the CPU."""

from __future__ import annotations

import itertools

import pytest
import simulator
import torch
from torch.utils._pytree import tree_leaves, tree_map

simulator.load_or_skip()

from opdb import UNINITIALIZED, arguments, operators  # noqa: E402  (after CUDA exists: torch's lists ask for it)

SAMPLES = 4
# Operators with results that are no function of their arguments: only their metadata is compared.
RANDOM = {
    *UNINITIALIZED,
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "uniform"),
    *("rand_like", "randint", "randint_like", "randn", "randn_like", "resize_", "resize_as_"),
    *(f"nn.functional.{name}" for name in ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "rrelu")),
    *("nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d"),
    *("nn.functional.fractional_max_pool3d", "pca_lowrank", "svd_lowrank"),
}
NOT_SIMULATED = {
    "sparse.sampled_addmm": "sparse tensors",
    "sparse.mm.reduce": "sparse tensors",
    "to_sparse": "sparse tensors",
    "tensor_split": "CUDA takes tensors of indices on the CPU only",
}
# Operators which save statistics on GPUs alone in evaluation (test_programs.py).
SAVE_STATISTICS = {"native_batch_norm", "_native_batch_norm_legit"}
OPERATORS = operators(torch.float32)


def leaves(tree):
    return [value for value in tree_leaves(tree) if isinstance(value, torch.Tensor)]


def detached(tree):
    return tree_map(lambda v: v.detach().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v, tree)


def run(op, args, kwargs):
    """The results, and the gradients of their sum."""
    torch.manual_seed(1)
    results = leaves(op(*args, **kwargs))
    summed = [t for t in results if t.requires_grad and t.is_floating_point()]
    if not summed:
        return results, []
    sum(t.sum() for t in summed).backward()
    return results, [t.grad for t in leaves((args, kwargs)) if t.requires_grad]


def is_random(op, args, kwargs):
    """Whether results depend on random numbers, which are others on a GPU."""
    dropout = kwargs.get("dropout_p", 0)
    if op.name == "nn.functional.multi_head_attention_forward":
        dropout = args[10]
    return op.name in RANDOM or dropout > 0


def assert_same(got, expected, values):
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert (a is None) == (b is None)
        if a is None:
            continue
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
        if values:
            torch.testing.assert_close(a.cpu(), b, equal_nan=True)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.full_name)
def test_same_as_on_the_cpu(op):
    if reason := NOT_SIMULATED.get(op.full_name):
        pytest.skip(reason)
    # op.sample_inputs would also look for the source line of each sample, which takes longer than the rest.
    samples = op.sample_inputs_func(op, "cpu", torch.float32, op.supports_autograd)
    for sample in itertools.islice(samples, SAMPLES):
        given = detached(arguments(sample))
        on_cuda = simulator.on_cuda(given)
        try:
            expected = run(op, *given)
        except (RuntimeError, ValueError):  # torch's own samples of a few operators have no CPU gradient
            continue
        values = not is_random(op, *given)
        got = run(op, *on_cuda)
        if op.full_name in SAVE_STATISTICS:
            got, expected = (
                (results[: 3 if expected[0][1].numel() else 1], grads) for results, grads in (got, expected)
            )
        if leaves(given):
            assert all(t.is_cuda for t in leaves(got))
        assert_same(got[0], expected[0], values)
        assert_same(got[1], expected[1], values)


def test_most_operators_are_simulated():
    assert len(NOT_SIMULATED) < len(OPERATORS) / 10
