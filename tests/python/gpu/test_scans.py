"""Running sums and products on a GPU: kernels that fold rows in order, together with what surrounds them."""

from __future__ import annotations

import cuda_device
import pytest
import torch

cuda_device.use()

import cresset  # noqa: E402

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
]


def last(x):
    return x.cumsum(-1)


def first(x):
    return x.cumsum(0)


def middle(x):
    return x.reshape(4, -1, x.shape[-1]).cumsum(1)


def product(x):
    return (x * 0.1 + 1).cumprod(-1)


def around(x):
    return (x * 2).cumsum(-1) + 1


def of_transposed(x):
    return x.t().cumsum(-1)


def backwards(x):
    return x.flip(-1).cumsum(-1).flip(-1)


def nucleus(x):
    p = x.softmax(-1)
    return torch.where(p.cumsum(-1) - p > 0.9, float("-inf"), x)


def positions(x):
    mask = x > 0
    return mask.cumsum(-1) * mask - 1


def then_sum(x):
    return x.cumsum(-1).sum(-1)


def beside_mean(x):
    return x.cumsum(-1) - x.mean(-1, keepdim=True)


def twice(x):
    return x.cumsum(0).cumsum(1)


def reshaped(x):
    return x.cumsum(-1).reshape(-1) * 2


def of_parts(x):
    return torch.cat([x, x + 1], -1).cumsum(-1)


def of_a_number(x):
    return x.sum().cumsum(0)


def of_single_elements(x):
    return x[:, :1].cumsum(1) + x[:1].cumsum(1)[:, :1]


KERNELS = {
    last: 1, first: 1, middle: 1, product: 1, around: 1, of_transposed: 1, backwards: 2, nucleus: 1, positions: 1,
    then_sum: 1, beside_mean: 1, twice: 2, reshaped: 1, of_parts: 2, of_a_number: 2, of_single_elements: 2,
}  # fmt: skip


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()


def compare(compiled, function, argument):
    expected = function(argument)
    actual = compiled(argument.to("cuda"))
    assert actual.dtype == expected.dtype and actual.stride() == expected.stride()
    # Eager mode rounds each sum of 16-bit numbers; a kernel rounds the stored sums alone.
    if expected.dtype in (torch.bfloat16, torch.float16):
        torch.testing.assert_close(actual.cpu().double(), function(argument.double()), rtol=1e-2, atol=1e-2)
    else:
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", KERNELS, ids=lambda f: f.__name__)
def test_kernels(function):
    compiled = cresset.compile(function, fullgraph=True)
    for sizes in ((40, 70), (4, 130), (12, 33)):
        compare(compiled, function, torch.randn(sizes))
    stats = cresset.stats()
    assert (stats["graphs"], stats["kernels"], stats["extern_calls"]) == (1, KERNELS[function], 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", (last, first, positions), ids=lambda f: f.__name__)
def test_dtypes(function, dtype):
    compiled = cresset.compile(function, fullgraph=True)
    compare(compiled, function, (torch.randn(33, 65) * 3).to(dtype))


@pytest.mark.parametrize("sizes", ((0, 4), (4, 0), (1, 1), (3, 5000), (33, 4097), (2, 3, 0)), ids=str)
def test_sizes(sizes):
    compiled = cresset.compile(last, fullgraph=True)
    compare(compiled, last, torch.randn(sizes))


def test_dtype_argument():
    compiled = cresset.compile(lambda x: x.cumsum(1, dtype=torch.float32), fullgraph=True)
    compare(compiled, lambda x: x.cumsum(1, dtype=torch.float32), torch.randint(0, 9, (5, 40)))


def test_a_long_row_is_left_to_aten():
    def scaled(x):  # a program of its own: kept programs of other tests had short rows
        return x.cumsum(-1) * 3

    compiled = cresset.compile(scaled, fullgraph=True)
    compare(compiled, scaled, torch.randn(1, 40_000))
    assert cresset.stats()["extern_calls"] == 1


def test_gradient():
    compiled = cresset.compile(lambda x: (x.cumsum(-1) * x).sum(), fullgraph=True)
    x = torch.randn(8, 50, requires_grad=True)
    y = x.detach().to("cuda").requires_grad_()
    (x.cumsum(-1) * x).sum().backward()
    compiled(y).backward()
    torch.testing.assert_close(y.grad.cpu(), x.grad, rtol=1e-4, atol=1e-4)
    assert cresset.stats()["extern_calls"] == 0
