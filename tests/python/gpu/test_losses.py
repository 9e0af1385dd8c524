"""Cross entropy with class numbers on CUDA tensors: values, dtypes and gradients of the first and second order beside eager
mode; no log-probabilities in memory."""

from __future__ import annotations

import cuda_device
import pytest
import torch
import torch.nn.functional as F

cuda_device.use()

import cresset  # noqa: E402

SHAPES = [(7, 33), (1, 5), (5,), (3, 4, 6), (2, 9, 3, 5), (0, 4), (6, 1)]
REDUCTIONS = ["mean", "sum", "none"]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
BOUNDS = {torch.float32: 2e-6, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 3e-3}


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()


def case(shape, dtype, ignored=True):
    torch.manual_seed(len(shape))
    x = (torch.randn(shape) * 3).to("cuda", dtype).requires_grad_()
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = torch.randint(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if ignored and target.numel() > 2:
        target[0] = -100
    return x, target.to("cuda")


def close(got, expected, dtype, bound=1.0):
    torch.testing.assert_close(got, expected, rtol=bound * BOUNDS[dtype], atol=bound * BOUNDS[dtype], equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).split(".")[1])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(shape, reduction, dtype):
    def program(x, target):
        return F.cross_entropy(x * 2, target, reduction=reduction)

    x, target = case(shape, dtype)
    reference = (x.detach().double() if dtype.itemsize == 2 else x.detach()).requires_grad_()
    got, expected = cresset.compile(program)(x, target), program(reference, target)
    assert got.dtype == dtype
    close(got, expected.to(dtype), dtype)
    weight = torch.rand(expected.shape).to("cuda")
    (mine,) = torch.autograd.grad((got * weight).sum(), x)
    (its,) = torch.autograd.grad((expected * weight).sum(), reference)
    assert mine.dtype == dtype and mine.shape == x.shape
    close(mine, its.to(dtype), dtype, 4)
    assert cresset.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_of_gradients(reduction):
    def program(x, target):
        loss = F.cross_entropy(x, target, reduction=reduction).sum()
        (first,) = torch.autograd.grad(loss, x, create_graph=True)
        return first.pow(3).sum()

    x, target = case((5, 7), torch.float64)
    whole = torch.autograd.grad(cresset.compile(program)(x, target), x)[0]
    compiled = cresset.compile(lambda x, t: F.cross_entropy(x, t, reduction=reduction))
    (first,) = torch.autograd.grad(compiled(x, target).sum(), x, create_graph=True)
    apart = torch.autograd.grad(first.pow(3).sum(), x)[0]
    expected = torch.autograd.grad(program(x, target), x)[0]
    close(whole, expected, torch.float64)
    close(apart, expected, torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_gives_float32(dtype):
    def program(x, w, target):
        with torch.autocast("cuda", dtype=dtype):
            return F.cross_entropy(x @ w, target)

    x, w = torch.randn(6, 8, device="cuda"), torch.randn(8, 9, device="cuda", requires_grad=True)
    target = torch.randint(0, 9, (6,), device="cuda")
    got, expected = cresset.compile(program)(x, w, target), program(x, w, target)
    assert got.dtype == expected.dtype == torch.float32
    close(got, expected, dtype)
    close(torch.autograd.grad(got, w)[0], torch.autograd.grad(expected, w)[0], dtype)


def test_great_and_infinite_scores():
    x = torch.tensor(
        [
            [1e4, 1e4 + 1, 1e4 - 3],
            [-torch.inf, 0.0, 1.0],
            [torch.inf, 0.0, 1.0],
            [-torch.inf] * 3,
            [torch.nan, 0.0, 1.0],
        ]
    ).cuda()
    compiled = cresset.compile(lambda x, t: F.cross_entropy(x, t, reduction="none"))
    for t in range(3):
        target = torch.full((5,), t, device="cuda")
        close(compiled(x, target), F.cross_entropy(x, target, reduction="none"), torch.float32)


def test_all_targets_left_out():
    x, target = case((4, 5), torch.float32)
    target.fill_(-100)
    for reduction in REDUCTIONS:
        compiled = cresset.compile(lambda x, t, r=reduction: F.cross_entropy(x, t, reduction=r))
        close(compiled(x, target), F.cross_entropy(x, target, reduction=reduction), torch.float32)


def test_another_ignored_number():
    x, target = case((9, 5), torch.float32, ignored=False)
    for ignored in (0, 3, -1):
        program = lambda x, t, i=ignored: F.cross_entropy(x, t, ignore_index=i)  # noqa: E731
        close(cresset.compile(program)(x, target), program(x, target), torch.float32)


@pytest.mark.parametrize("more", [{"weight": True}, {"label_smoothing": 0.1}, {"weight": True, "label_smoothing": 0.2}])
def test_weights_and_smoothing(more):
    x, target = case((7, 5), torch.float32)
    given = dict(more)
    if "weight" in given:
        given["weight"] = torch.rand(5, device="cuda")
    program = lambda x, t: F.cross_entropy(x, t, **given)  # noqa: E731
    got, expected = cresset.compile(program)(x, target), program(x, target)
    close(got, expected, torch.float32)
    close(torch.autograd.grad(got, x)[0], torch.autograd.grad(expected, x)[0], torch.float32)


def test_one_compilation_for_all_sizes():
    compiled = cresset.compile(F.cross_entropy)
    for shape in ((7, 33), (12, 100), (1, 5), (64, 7)):
        x, target = case(shape, torch.float32)
        close(compiled(x, target), F.cross_entropy(x, target), torch.float32)
    assert cresset.stats()["graphs"] == 1
