"""Graphs with operators without results (checks of errors, assertions): every pass meets them in the order of nodes,
beside the operators of the pass."""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset

SQUARE = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
L = torch.linalg

CHECKED = {
    "inv": lambda x: L.inv(x),
    "cholesky": lambda x: L.cholesky(x),
    "solve": lambda x: L.solve(x, x.sum(-1)),
    "lu_factor": lambda x: L.lu_factor(x)[0],
    "ldl_factor": lambda x: L.ldl_factor(x)[0],
    "ldl_solve": lambda x: L.ldl_solve(*L.ldl_factor(x), x),
    "matrix_power": lambda x: L.matrix_power(x, -2),
    "tensorinv": lambda x: L.tensorinv(x.reshape(3, 3), ind=1),
    "tensorsolve": lambda x: L.tensorsolve(x, x[0]),
    "assert_async": lambda x: (torch._assert_async((x > -100).all()), x * 2)[1],
    "one_hot": lambda x: F.one_hot(x.to(torch.int64).clamp(0, 3), 4) * x[..., None],
}
AROUND = {
    "alone": lambda f, x: f(x),
    "behind a convolution": lambda f, x: f(F.conv2d(x[None, None], torch.ones(1, 1, 1, 1))[0, 0]),
    "before a convolution": lambda f, x: F.conv2d(f(x).reshape(1, 1, 3, -1).float(), torch.ones(1, 1, 1, 1)).relu(),
    "behind a product and its epilogue": lambda f, x: f((x @ torch.eye(3)).relu() + 0 * x),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", CHECKED)
def test_passes_meet_operators_without_results(name, around):
    def f(x):
        return AROUND[around](CHECKED[name], x)

    compiled = cresset.compile(f)
    for scale in (1.0, 2.0):
        assert_same_call(f, compiled, SQUARE * scale, tolerance=1e-4)


def test_classes_of_an_image():
    w = torch.linspace(-1, 1, 18).reshape(1, 2, 3, 3)
    x = torch.linspace(-2, 3, 2 * 2 * 16).reshape(2, 2, 4, 4)
    f = lambda x: F.one_hot(F.conv2d(x, w, padding=1).to(torch.int64).clamp(0, 3), 4)  # noqa: E731
    assert_same_call(f, cresset.compile(f), x)
