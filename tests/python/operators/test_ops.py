"""Every operator of torch's operator database: values, dtypes, strides, aliases, exceptions equal to eager's."""

from __future__ import annotations

import itertools
import os
from collections import Counter

import opdb
import pytest
import torch

import cresset

FULL = os.environ.get("CRESSET_TEST_FULL") == "1"
DTYPES = [torch.float32] + ([torch.bfloat16, torch.int64, torch.bool, torch.complex64] if FULL else [])
SAMPLES = 6 if FULL else 2
ERROR_INPUTS = 8 if FULL else 2

CASES = [(op, dtype) for dtype in DTYPES for op in opdb.operators(dtype)]
COUNTS: dict[torch.dtype, Counter] = {dtype: Counter() for dtype in DTYPES}


@pytest.fixture(scope="module", autouse=True)
def report():
    yield
    from conftest import SUMMARY

    for dtype, counts in COUNTS.items():
        parts = ", ".join(f"{n} {way}" for way, n in sorted(counts.items()))
        SUMMARY.append(f"op_db {str(dtype).removeprefix('torch.')}: {sum(counts.values())} operators: {parts}")


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=lambda v: getattr(v, "full_name", str(v).removeprefix("torch.")))
@torch.no_grad()
def test_operator(op, dtype):
    ways = Counter()
    try:
        for sample in opdb.samples(op, dtype, SAMPLES):
            ways[opdb.check_sample(op, sample)] += 1
    except BaseException:
        COUNTS[dtype]["failed"] += 1
        raise
    COUNTS[dtype][next(iter(ways)) if len(ways) == 1 else "mixed" if ways else "nothing"] += 1


TOGETHER = 12 if FULL else 8
TOGETHER_CASES = [(op, dtype) for op, dtype in CASES if dtype not in (torch.bfloat16, torch.complex64)]


@pytest.mark.parametrize(
    ("op", "dtype"), TOGETHER_CASES, ids=lambda v: getattr(v, "full_name", str(v).removeprefix("torch."))
)
@torch.no_grad()
def test_samples_together(op, dtype):
    opdb.check_samples_together(op, dtype, TOGETHER)


ERROR_OPERATORS = [op for op in opdb.operators(torch.float32) if op.error_inputs_func is not None]


@pytest.mark.parametrize("op", ERROR_OPERATORS, ids=lambda op: op.full_name)
@torch.no_grad()
def test_bad_arguments(op):
    """The compiled function raises eager's exception for invalid arguments, and leaves the arguments unchanged."""
    for error_input in itertools.islice(op.error_inputs("cpu"), ERROR_INPUTS):
        opdb.check_sample(op, error_input.sample_input)


@torch.no_grad()
def test_one_compilation_serves_pointwise_shapes():
    """A sample of operators over several shapes of the same rank: compiled once."""
    for function in (torch.relu, torch.exp, lambda x: x.sum(-1), lambda x: torch.softmax(x, -1), lambda x: x.t() + 1):
        cresset.reset()
        compiled = cresset.compile(function)
        for shape in ((3, 5), (4, 7), (1, 5), (6, 1), (1, 1), (33, 65)):
            x = torch.randn(shape)
            torch.testing.assert_close(compiled(x), function(x))
        assert cresset.stats()["graphs"] == 1, list(cresset.stats()["recompiles"])
