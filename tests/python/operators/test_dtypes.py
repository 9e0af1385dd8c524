"""Promotion, Python scalars, and the corners of arithmetic, compared with eager."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from program_table import a, check, table

import cresset

DT = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize("left", DT, ids=str)
@pytest.mark.parametrize("right", DT, ids=str)
def test_promotion(left, right):
    def function(x, y):
        return x + y, x * 2, x * 2.5, y / 2 if y.dtype != torch.bool else y, torch.where(x > 1, x, y), x == y

    def make():
        return torch.arange(4).to(left), torch.tensor([1, 0, 2, 3]).to(right)

    check(function, make, repeat=1)
    check(lambda x, y: x + y, lambda: (make()[0], make()[1][0]), repeat=1)


LOSSES = [F.mse_loss, F.huber_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits]
SCALARS = table(
    ("int_times_float", lambda x, n, f: x * n + f, lambda: (a(3), 3, 0.5)),
    ("int_tensor_float_scalar", lambda x, f: x * f, lambda: (torch.arange(3), 0.5)),
    ("bool_scalar", lambda x, b: x + b, lambda: (torch.arange(3), True)),
    ("zero_dim_does_not_promote", lambda x, y: x + y, lambda: (a(3), torch.tensor(2.0, dtype=torch.float64))),
    ("zero_dim_category", lambda x, y: x + y, lambda: (torch.arange(3), torch.tensor(2.0))),
    ("true_divide", lambda x, y: (x / y, x // y, x % y), lambda: (torch.tensor([7, -7, 3]), torch.tensor([2, 2, -2]))),
    ("floor_divide_float", lambda x: (x // 0.4, x % 0.4, x.fmod(0.4)), lambda: (a(6),)),
    ("integer_mean", lambda x: x.sum() / x.numel(), lambda: (torch.arange(5),)),
    ("pow", lambda x: (x**2, x**0.5, 2**x, x**-1), lambda: (a(5).abs() + 0.1,)),
    ("int_pow", lambda x: (x**2, x**3), lambda: (torch.arange(5),)),
    ("clamp", lambda x: (x.clamp(0, 1), x.clamp(min=0.5), x.clamp_max(0.2)), lambda: (a(6),)),
    ("alpha", lambda x: torch.add(x, x, alpha=2) - x.sub(x, alpha=0.5), lambda: (a(4),)),
    ("sum_of_bool", lambda x: ((x > 0).sum(), (x > 0).any(), (x > 0).all(-1)), lambda: (a(3, 4),)),
    ("sum_int32", lambda x: (x.sum(), x.sum(dtype=torch.float32), x.prod()), lambda: (torch.arange(1, 5, dtype=torch.int32),)),
    ("argmax", lambda x: (x.argmax(), x.argmin(0), x.max(1), x.min(-1, keepdim=True)), lambda: (a(3, 4),)),
    ("bitwise", lambda x: (x & 3, x | 4, x ^ 1, ~x, x << 1, x >> 1), lambda: (torch.arange(6),)),
    ("uint8_wraps", lambda x: x * 100 + 200, lambda: (torch.arange(4, dtype=torch.uint8),)),
    ("int_overflow_wraps", lambda x: x * x, lambda: (torch.tensor([2**31 - 1], dtype=torch.int32),)),
    ("float_to_int", lambda x: x.to(torch.int64), lambda: (torch.tensor([-1.9, 2.9, 0.5]),)),
    ("nan_inf", lambda x: (x.isnan(), x.maximum(torch.zeros(4)), x.relu(), x.max(), x.sum(), x.sign()),
     lambda: (torch.tensor([float("nan"), 1.0, float("inf"), -float("inf")]),)),
    ("nan_to_num", lambda x: x.nan_to_num(1.0), lambda: (torch.tensor([float("nan"), float("inf"), 2.0]),)),
    ("signed_zero", lambda x: 1 / (x * -1).round(), lambda: (torch.tensor([0.0, -0.0, 0.2]),)),
    ("round_half_even", lambda x: (x.round(), x.trunc(), x.floor(), x.ceil()), lambda: (torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5]),)),
    ("bf16_truncated", lambda x, y: [x.div(d, rounding_mode="trunc") for d in (y, y[0], -0.216796875, y[:1], y.float())],
     lambda: (torch.full((40,), -3.890625).bfloat16(), torch.full((40,), -0.216796875).bfloat16())),
    ("f16_truncated", lambda x, y: [x.div(d, rounding_mode="trunc") for d in (y, y[0], y[:1])],
     lambda: ((torch.arange(1, 2000) * 0.37).half(), torch.full((1999,), 0.217).half())),
    ("bf16_chain", lambda x: (x * 3 + 1).tanh() * x, lambda: (a(16, dtype=torch.bfloat16),)),
    ("bf16_sum", lambda x: (x.sum(), x.mean(0), x.softmax(-1)), lambda: (a(8, 9, dtype=torch.bfloat16),)),
    ("empty_reductions", lambda x: (x.sum(), x.prod(), x.sum(1), x.mean(0), x.all()), lambda: (torch.empty(0, 3),)),
    ("var_std", lambda x: (x.var(), x.std(1), x.var(0, unbiased=False), torch.var_mean(x, 1)), lambda: (a(4, 5),)),
    ("norms", lambda x: (x.norm(), torch.linalg.vector_norm(x, 1, -1), F.normalize(x, dim=0)), lambda: (a(4, 5),)),
    ("logsumexp", lambda x: (x.logsumexp(1), x.log_softmax(0), x.logcumsumexp(0)), lambda: (a(4, 5) * 50,)),
    ("losses", lambda x, y: [loss(x, y, reduction=r) for loss in LOSSES for r in ("none", "mean", "sum")],
     lambda: (a(3, 4), a(3, 4) / 2)),
    ("losses_bf16", lambda x, y: [loss(x, y, reduction="none") for loss in LOSSES],
     lambda: (a(3, 4, dtype=torch.bfloat16), a(3, 4, dtype=torch.bfloat16) / 2)),
    ("losses_of_transposed", lambda x, y: [loss(x.t(), y.t(), reduction="none") for loss in LOSSES], lambda: (a(3, 4), a(3, 4) / 2)),
    ("losses_broadcast", lambda x, y: F.mse_loss(x, y), lambda: (a(3, 4), a(3, 4)[0])),
    ("losses_of_two_dtypes", lambda x, y: F.mse_loss(x, y), lambda: (a(3, 4), a(3, 4).double())),
    ("losses_of_nothing", lambda x: (F.mse_loss(x, x), F.huber_loss(x, x)), lambda: (torch.empty(0, 3),)),
    ("losses_of_extremes", lambda x, y: [loss(x, y, reduction="none") for loss in LOSSES],
     lambda: (torch.tensor([float("nan"), float("inf"), -float("inf"), 90.0, -90.0]), torch.ones(5))),
    ("weighted_logits", lambda x, y, w: (F.binary_cross_entropy_with_logits(x, y, w, pos_weight=w[0]),
                                         F.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction="none")),
     lambda: (a(3, 4), a(3, 4) / 2, a(3, 4).abs())),
    ("rejected_loss", lambda x, y: F.binary_cross_entropy_with_logits(x, y), lambda: (a(3, 4), a(3, 3))),
    ("rejected_threshold", lambda x, y: F.huber_loss(x, y, delta=-1.0), lambda: (a(3, 4), a(3, 4))),
    ("complex", lambda x: (x * (1 + 2j)).abs(), lambda: (a(4),)),
    ("where_scalars", lambda x: torch.where(x > 0, 1.0, x), lambda: (a(4),)),
    ("arange_full", lambda x: torch.arange(x.shape[0]) * 2 + torch.full((x.shape[0],), 1.5).long(), lambda: (a(5),)),
    ("linspace_eye", lambda x: torch.linspace(0, 1, x.shape[0])[:, None] * torch.eye(x.shape[0]), lambda: (a(4),)),
    ("new_tensor_from_list", lambda x: x + torch.tensor([1.0, 2.0, 3.0]), lambda: (a(3),)),
    ("one_hot", lambda x: F.one_hot(x, 5).sum(0), lambda: (torch.tensor([0, 3, 3]),)),
    ("sort_topk", lambda x: (x.sort(-1, descending=True), x.topk(2), x.argsort(0)), lambda: (a(3, 4).sin(),)),
    ("einsum", lambda x: torch.einsum("ij,kj->ik", x, x), lambda: (a(3, 4),)),
)  # fmt: skip


@SCALARS
def test_scalars_and_dtypes(function, make):
    check(function, make)


LOSSES = ("soft_margin_loss", "huber_loss", "mse_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "kl_div")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_of_two_dtypes(loss, reduction):
    """Result dtypes of losses: the input's, the promotion of both, or the target's. torch's meta kernels err on two."""

    def program(a, b):
        return getattr(torch.nn.functional, loss)(a, b, reduction=reduction)

    compiled = cresset.compile(program)
    dtypes = (torch.float32, torch.float64, torch.bfloat16)
    for one in dtypes:
        for other in dtypes:
            a, b = torch.rand(5).to(one), torch.rand(5).to(other)
            with warnings.catch_warnings():
                warnings.simplefilter("error" if loss != "kl_div" else "ignore")  # an internal error is a warning
                got, expected = compiled(a, b), program(a, b)
            assert got.dtype == expected.dtype, (one, other)
            torch.testing.assert_close(got, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("flags", [(False, True), (True, False, True)], ids=str)
def test_flags_that_say_what_is_made(flags):
    """A trial with a flag is no evidence for another flag."""
    numbers, limits = torch.randint(0, 102, (8, 8)), torch.arange(10, dtype=torch.int32) ** 2
    for flag in flags:

        def program(numbers, limits, flag=flag):
            return (
                torch.bucketize(numbers, limits, out_int32=flag),
                torch.searchsorted(limits, numbers, out_int32=flag, side="right"),
                torch.searchsorted(limits, numbers, out_int32=not flag, side="left"),
            )

        for got, expected in zip(cresset.compile(program)(numbers, limits), program(numbers, limits), strict=True):
            assert got.dtype == expected.dtype
            assert torch.equal(got, expected)


def test_one_operator_by_numbers_of_several_kinds():
    """A trial with a kind of number is no evidence for another kind."""

    def program(a, b, n):
        return a**2, a**2.0, a**0.5, a * b, a * b[0], a * n, torch.where(a > 0, b, a)

    compiled = cresset.compile(program)
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16):
        for other in (torch.float32, torch.float64, torch.int64):
            for n in (2, 2.5):
                a, b = torch.tensor([1, 2, 3]).to(dtype), torch.tensor([1, 2, 3]).to(other)
                for got, expected in zip(compiled(a, b, n), program(a, b, n), strict=True):
                    assert got.dtype == expected.dtype, (dtype, other, n)
                    torch.testing.assert_close(got, expected)


def test_promotion_by_another_default_dtype():
    compiled = cresset.compile(lambda a: (a / 2, a.sin(), a * 2.5, torch.where(a > 1, a, 1.5)))
    try:
        for default in (torch.float32, torch.float64, torch.float16, torch.float32):
            torch.set_default_dtype(default)
            for dtype in (torch.int64, torch.uint8, torch.bool):
                a = torch.tensor([1, 2, 3]).to(dtype)
                promoted = [r.dtype for r in compiled(a)]
                assert promoted == [default] * 4, (default, dtype)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 4, 1), (1, 4, 2), (2, 1, 2), (1, 1, 1), (3, 1, 1)])
def test_products_under_autocast(sizes):
    """ATen leaves products of single elements to operators that autocast does not cast."""

    def program(x, y, z):
        sums = [torch.einsum(e, x, x) for e in ("ij,ij->", "ij,ij->i", "ij,kj->ik")]
        products = torch.tensordot(x, y, ([1], [1])), torch.tensordot(x, z, 1), torch.inner(x, y), x @ z
        return *sums, *products, torch.einsum("ij,jk", x, z), torch.einsum("bij,bjk->bik", x[None], z[None])

    rows, inner, columns = sizes
    x, y, z = torch.randn(rows, inner), torch.randn(columns, inner), torch.randn(inner, columns)
    compiled = cresset.compile(program)
    with torch.autocast("cpu", torch.bfloat16):
        compiled(torch.randn(4, 6), torch.randn(7, 6), torch.randn(6, 7))
        for got, expected in zip(compiled(x, y, z), program(x, y, z), strict=True):
            assert got.dtype == expected.dtype
            torch.testing.assert_close(got, expected, rtol=2e-2, atol=2e-2)
