"""Products with rows of an odd length, such as the scores of a vocabulary: operands and results that are copied into
aligned rows, beside eager mode's numbers."""

from __future__ import annotations

import cuda_device
import pytest
import torch
import torch.nn.functional as F

simulator = cuda_device.use()

import cresset  # noqa: E402

ROWS, INNER, COLUMNS = 264, 1024, 511  # enough work for copies to pay
PROGRAMS = {
    "columns": (lambda x, w: x @ w.t(), (ROWS, INNER), (COLUMNS, INNER)),
    "inner": (lambda x, w: x @ w, (COLUMNS + 1, INNER + 1), (INNER + 1, ROWS)),
    "rows": (lambda x, w: x.t() @ w, (INNER, COLUMNS), (INNER, ROWS)),
    "a_part": (lambda x, w: x[:, 3:] @ w.t(), (ROWS, INNER + 3), (COLUMNS, INNER)),
    "inner_of_a_part": (lambda x, w: x[:, 1:] @ w[1:], (COLUMNS + 1, INNER + 2), (INNER + 2, ROWS)),
}


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()


def close(got, exact, dtype):
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), exact, rtol=2e-2, atol=2e-2 * exact.abs().max().item())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_products(name, dtype):
    program, *shapes = PROGRAMS[name]
    torch.manual_seed(0)
    compiled = cresset.compile(program)
    for _ in range(2):  # memory that was used before holds other numbers
        inputs = [torch.randn(s).cuda().to(dtype) for s in shapes]
        close(compiled(*inputs), program(*(x.double() for x in inputs)), dtype)


@pytest.mark.parametrize("length", [7, 8, 9, 15, 17])
def test_linear_with_gradients(length):
    """Lengths around multiples of 16 bytes, in a layer whose gradients have odd rows too."""
    torch.manual_seed(0)
    columns = 504 + length
    given = [torch.randn(s).cuda().bfloat16() for s in ((ROWS, INNER), (columns, INNER), (columns,))]
    mine, wide = ([t.to(d, copy=True).requires_grad_() for t in given] for d in (torch.bfloat16, torch.float64))
    got, exact = cresset.compile(F.linear)(*mine), F.linear(*wide)
    close(got, exact, torch.bfloat16)
    gradient = torch.randn(ROWS, columns).cuda().bfloat16()
    got.backward(gradient), exact.backward(gradient.double())
    for a, b in zip(mine, wide, strict=True):
        close(a.grad, b.grad, torch.bfloat16)


@pytest.mark.skipif(simulator is not None, reason="a simulated GPU is too slow")
def test_several_parts():
    x, w = (torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((4096, 768), (50257, 768)))
    scores = cresset.compile(lambda x, w: x @ w.t())(x, w)
    close(scores, x.double() @ w.double().t(), torch.bfloat16)
    back = cresset.compile(lambda s, x, w: (s @ w, s.t() @ x))(scores, x, w)
    for got, exact in zip(back, (scores.double() @ w.double(), scores.double().t() @ x.double()), strict=True):
        close(got, exact, torch.bfloat16)
