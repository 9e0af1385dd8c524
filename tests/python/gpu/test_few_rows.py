"""Products of few rows on a GPU, as while text is generated: cresset's own kernel beside eager mode's numbers."""

from __future__ import annotations

import cuda_device
import pytest
import torch
import torch.nn.functional as F

cuda_device.use()

import cresset  # noqa: E402

BOUNDS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()


def check(program, *inputs, dtype):
    compiled = cresset.compile(program)
    got, exact = compiled(*inputs), program(*(x.double() for x in inputs))
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), exact, rtol=BOUNDS[dtype], atol=BOUNDS[dtype] * exact.abs().max().item())
    assert cresset.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("dtype", BOUNDS, ids=lambda d: str(d).split(".")[1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("columns, inner", [(1, 1), (8, 64), (33, 100), (300, 257), (1, 40), (17, 1), (40, 5000)])
def test_linear(rows, columns, inner, bias, dtype):
    torch.manual_seed(0)
    x, w, b = (torch.randn(s).cuda().to(dtype) for s in ((rows, inner), (columns, inner), (columns,)))
    if bias:
        check(lambda x, w, b: F.linear(x, w, b), x, w, b, dtype=dtype)
    else:
        check(lambda x, w: F.linear(x, w), x, w, dtype=dtype)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: x[:, :64] @ w[:, :64].t(),  # rows with gaps
        lambda x, w: x[:, 1:] @ w[:, 1:].t(),  # rows at odd addresses
        lambda x, w: x[:, ::2] @ w[:, ::2].t(),  # elements with gaps: a library's product
        lambda x, w: (w @ x.t()).t(),  # few columns: a library's product
        lambda x, w: x.t().contiguous().t() @ w.t(),
        lambda x, w: x.expand(2, -1) @ w.t() if x.shape[0] == 1 else x @ w.t(),
        lambda x, w: (x.exp() @ w.t()).sin(),
        lambda x, w: F.linear(x[None], w)[0],
    ],
)
@pytest.mark.parametrize("rows", [1, 3])
def test_layouts(program, rows):
    torch.manual_seed(0)
    x, w = torch.randn(rows, 100).cuda(), torch.randn(40, 100).cuda()
    check(program, x, w, dtype=torch.float32)


def test_a_program_serves_few_and_many_rows():
    compiled, w = cresset.compile(lambda x, w: F.linear(x, w).relu()), torch.randn(40, 64).cuda()
    for rows in (7, 1, 2, 64, 0, 4, 5):
        x = torch.randn(rows, 64).cuda()
        torch.testing.assert_close(compiled(x, w), F.linear(x, w).relu(), rtol=1e-4, atol=1e-4)
    assert cresset.stats()["graphs"] == 1


def test_gradients():
    x, w = torch.randn(2, 64).cuda().requires_grad_(), torch.randn(40, 64).cuda().requires_grad_()
    program = lambda x, w: F.linear(x, w).sin().sum()  # noqa: E731
    got = torch.autograd.grad(cresset.compile(program)(x, w), (x, w))
    expected = torch.autograd.grad(program(x, w), (x, w))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
