"""torch's database of operators, compiled on CUDA tensors, beside eager mode on the same tensors."""

from __future__ import annotations

import itertools
import os

import cuda_device
import pytest
import simulator
import torch

import cresset

SIMULATED = cuda_device.use() is not None

from opdb import UNINITIALIZED, arguments, operators  # noqa: E402  (after CUDA exists: torch's lists ask for it)
from torch.utils._pytree import tree_leaves  # noqa: E402

ALL = operators(torch.float32)
OPERATORS = ALL if not SIMULATED or os.environ.get("CRESSET_TEST_FULL") else ALL[::4]
DTYPES = [torch.float32] if SIMULATED else [torch.float32, torch.float16, torch.bfloat16]
SAMPLES = 3
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
# Operators with results that are no function of their arguments.
RANDOM = {*UNINITIALIZED, "empty_permuted", "resize_", "resize_as_"}
# Programs that end at these operators: results that are no tensors of a graph, or arguments that only data can check.
GRAPH_BREAKS = {
    *("allclose", "equal", "hash_tensor", "chalf", "narrow", "histogram", "histogramdd", "linalg.lstsq", "resize_"),
    *("linalg.lstsq.grad_oriented", "nn.functional.gaussian_nll_loss", "_native_batch_norm_legit"),
    *("nn.functional.ctc_loss", "_batch_norm_with_update", "item", "to_sparse", "tensor_split"),
    *("cov", "as_strided.partial_views"),
}


def leaves(tree):
    return [value for value in tree_leaves(tree) if isinstance(value, torch.Tensor)]


# torch's samples save and seed the generators inside of the program, which ends there, under private guards of the
# dispatcher. Programs that draw numbers are in test_programs.py.
SEEDED = {
    *("bernoulli", "cauchy", "empty_strided", "exponential", "geometric", "log_normal", "multinomial", "normal"),
    *("normal.in_place", "normal.number_mean", "pca_lowrank", "rand_like", "randint", "randint_like", "randn"),
    *("randn_like", "svd_lowrank", "uniform"),
    *(f"nn.functional.{name}" for name in ("alpha_dropout", "dropout", "dropout2d", "dropout3d", "rrelu")),
    *("nn.functional.feature_alpha_dropout.with_train", "nn.functional.feature_alpha_dropout.without_train"),
    *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
    *("nn.functional.multi_head_attention_forward", "nn.functional.scaled_dot_product_attention"),
}
SPARSE = {"sparse.mm.reduce", "sparse.sampled_addmm"}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.full_name)
def test_compiled(op, dtype):
    if dtype not in op.supported_dtypes("cuda" if not SIMULATED else "cpu"):
        pytest.skip("not of this dtype")
    if op.full_name in SPARSE:
        pytest.skip("sparse tensors")
    compiled = cresset.compile(lambda args, kwargs: op(*args, **kwargs))
    samples = op.sample_inputs_func(op, "cpu", dtype, False)
    for sample in itertools.islice(samples, SAMPLES):
        given, beside = (simulator.on_cuda(arguments(sample)) for _ in range(2))
        torch.manual_seed(0)
        try:
            expected = leaves(op(*beside[0], **beside[1]))
        except (RuntimeError, ValueError, NotImplementedError):  # CUDA lacks the case
            continue
        torch.manual_seed(0)
        got = leaves(compiled(*given))
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert (a.device, a.dtype, a.shape) == (b.device, b.dtype, b.shape)
            if op.name in RANDOM or b.layout != torch.strided:
                continue
            tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]} if dtype in TOLERANCE else {}
            torch.testing.assert_close(a.cpu(), b.cpu(), equal_nan=True, **tolerance)
    if not (GRAPH_BREAKS | SEEDED) & {op.name, op.full_name}:
        assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]
