"""Products of few rows on a GPU, as while text is generated: cresset's own kernel beside eager mode's numbers."""

from __future__ import annotations

import cuda_device
import pytest
import torch
import torch.nn.functional as F

simulated = cuda_device.use()

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


def projections(x, *weights):
    return tuple(F.linear(x, w) for w in weights)


def launches(call):
    before = simulated.gpu_counters()["launches"]
    call()
    return simulated.gpu_counters()["launches"] - before


@pytest.mark.parametrize("dtype", BOUNDS, ids=lambda d: str(d).split(".")[1])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("columns", [(64, 16, 16), (48, 48), (8, 2, 8, 8, 2, 8), (7, 1, 9), (16, 16, 16)])
def test_products_of_the_same_rows(columns, rows, dtype):
    torch.manual_seed(0)
    x, *weights = (torch.randn(n, 64).cuda().to(dtype) for n in (rows, *columns))
    for given in (weights, weights[::-1], [weights[0]] * 2):  # also in another order of memory
        compiled = cresset.compile(projections, options={"cuda_graphs": "always"})
        for _ in range(6):
            exact = projections(x.double(), *(w.double() for w in given))
            for a, b in zip(compiled(x, *given), exact, strict=True):
                bound = BOUNDS[dtype] * b.abs().max().item()
                torch.testing.assert_close(a.double(), b, rtol=BOUNDS[dtype], atol=bound)


@pytest.mark.parametrize("options", [{}, {"cuda_graphs": "always"}])
def test_matrices_of_one_memory_that_move(options):
    """Parts of one matrix, new matrices, and matrices at addresses from which no whole vector can be read."""
    torch.manual_seed(0)

    def program(x, w, v):
        q, k = projections(x.tanh(), w[:24], v)
        return (q.mean(-1, keepdim=True) * k).sin()

    compiled = cresset.compile(program, options=options)
    x, kept = torch.randn(1, 64).cuda(), []
    for call in range(14):
        memory = torch.randn(40 * 64 + 8).cuda()
        kept.append(memory)
        w = memory[(call % 5) % 2 :][: 40 * 64].view(40, 64)
        v = w[24:] if call % 3 else torch.randn(16, 64).cuda()
        torch.testing.assert_close(compiled(x, w, v), program(x, w, v), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(simulated is None, reason="counts of the simulator")
def test_products_of_the_same_rows_are_one_launch():
    x, *weights = (torch.randn(n, 64).cuda() for n in (1, 64, 16, 16))
    compiled = cresset.compile(projections)
    compiled(x, *weights)
    assert launches(lambda: compiled(x, *weights)) == 1
    with_bias = cresset.compile(lambda x, w, v, b: (F.linear(x, w, b[:64]), F.linear(x, v, b[:16])))
    given = (x, *weights[:2], torch.randn(64).cuda())
    with_bias(*given)
    assert launches(lambda: with_bias(*given)) == 2
