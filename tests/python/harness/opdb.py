"""torch's own database of operators, compiled and compared with eager sample by sample."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import torch
from compare import aliases, assert_same, clone, outcome, tensors
from torch import Tensor

import cresset

# Results are uninitialized memory: only their metadata is compared.
UNINITIALIZED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
# Grown parts of a resized tensor are uninitialized too.
RESIZES = {"resize_", "resize_as_"}


def operators(dtype: torch.dtype) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if dtype in op.supported_dtypes("cpu") and not op.full_name.startswith("jiterator")]


def samples(op: Any, dtype: torch.dtype, count: int) -> list[Any]:
    torch.manual_seed(0)
    return list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), count))


def arguments(sample: Any) -> tuple[tuple, dict]:
    return (sample.input, *sample.args), dict(sample.kwargs)


def check_sample(op: Any, sample: Any) -> str:
    """Compares a sample. Returns the kind of compilation: "native", "aten", "mixed" or "nothing". Raises for a
    difference from eager in result, exception, effect on the arguments, or sharing of memory."""
    cresset.reset()
    compare_sample(op, cresset.compile(lambda *args, **kwargs: op(*args, **kwargs)), sample)
    return compiled_as()


def check_samples_together(op: Any, dtype: torch.dtype, count: int) -> None:
    """A single compiled function for all samples, in two orders. A cache entry made for a sample (including sizes of 0
    and 1, slices, other layouts) must serve other samples as eager does, or not at all."""
    given = samples(op, dtype, count)
    orders = list(range(len(given)))
    random.Random(1).shuffle(orders)
    for order in (orders, orders[::-1]):
        cresset.reset()
        compiled = cresset.compile(lambda *args, **kwargs: op(*args, **kwargs))
        for i in [*order, *order]:
            try:
                compare_sample(op, compiled, given[i])
            except AssertionError as e:
                raise AssertionError(f"sample {i}, in the order {order}: {e}") from None


def compare_sample(op: Any, compiled: Any, sample: Any) -> None:
    args, kwargs = arguments(sample)
    theirs, ours = clone((args, kwargs)), clone((args, kwargs))
    torch.manual_seed(1)
    expected, wanted = outcome(op, *theirs)
    torch.manual_seed(1)
    got, raised = outcome(compiled, *ours)
    if wanted is not None or raised is not None:
        assert_same_exception(raised, wanted)
        if not leaves_the_same(op, theirs, clone((args, kwargs))):
            return None
    elif op.name in UNINITIALIZED | RESIZES:
        return assert_same(_blank(got), _blank(expected))
    else:
        assert_same(got, expected, elementwise=True)
        mine, its = [t for _, t in tensors(ours)], [t for _, t in tensors(theirs)]
        assert aliases(got, mine) == aliases(expected, its), "results share memory with other arguments than eager's"
    assert_same(ours, theirs, elementwise=True)


def leaves_the_same(op: Any, after: Any, again: Any) -> bool:
    """Whether a raising eager call changes the arguments as before. Memory of `out` that was enlarged and not filled is
    arbitrary."""
    outcome(op, *again)
    try:
        assert_same(again, after, elementwise=True)
    except AssertionError:
        return False
    return True


def _blank(value: Any) -> Any:
    return value.zero_() if isinstance(value, Tensor) else value


def assert_same_exception(raised: BaseException | None, wanted: BaseException | None) -> None:
    assert type(raised) is type(wanted), f"{raised!r} instead of {wanted!r}"
    assert str(raised) == str(wanted), f"message {str(raised)!r} instead of {str(wanted)!r}"


def compiled_as() -> str:
    stats = cresset.stats()
    if stats["kernels"] and not stats["extern_calls"]:
        return "native"
    if stats["kernels"]:
        return "mixed"
    return "aten" if stats["extern_calls"] else "nothing"


def count_all(dtype: torch.dtype = torch.float32, per_operator: int = 2) -> tuple[Counter, list[str]]:
    """(number of operators by kind of compilation, the failures): for the benchmark's report."""
    counts: Counter = Counter()
    failures = []
    for op in operators(dtype):
        ways = set()
        try:
            for sample in samples(op, dtype, per_operator):
                ways.add(check_sample(op, sample))
        except Exception as e:
            failures.append(f"{op.full_name}: {type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}")
            counts["failed"] += 1
            continue
        counts[ways.pop() if len(ways) == 1 else "mixed" if ways else "nothing"] += 1
    return counts, failures
