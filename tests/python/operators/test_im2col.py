"""Blocks of images as columns (F.unfold) and back (F.fold): as eager, at all sizes with a single compilation."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset

# kernel_size, dilation, padding, stride
BLOCKS = {
    "patches": (4, 1, 0, 4),
    "padded": (3, 1, 1, 1),
    "strided": (3, 1, 1, 2),
    "dilated": (2, 3, 2, 1),
    "not_square": ((1, 3), (2, 1), (0, 2), (3, 2)),
    "with_gaps": (2, 1, 0, 3),
    "large": (7, 1, 3, 2),  # folding it is left to ATen
}
SHAPES = [(2, 6, 12, 16), (1, 3, 16, 12), (3, 1, 32, 20)]


def calls(blocks):
    return {
        "unfold": lambda x: F.unfold(x, *blocks) * 2,
        "unfold relu": lambda x: F.unfold(x.relu() + 1, *blocks).softmax(1),
        "fold": lambda x: F.fold(F.unfold(x, *blocks) - 0.5, x.shape[-2:], *blocks) + 1,
        "one image": lambda x: F.fold(F.unfold(x[0], *blocks), x.shape[-2:], *blocks),
        "transposed": lambda x: F.unfold(x.transpose(0, 1).transpose(2, 3), *blocks),
    }


@pytest.mark.parametrize("name", BLOCKS)
@torch.no_grad()
def test_blocks(name):
    for what, function in calls(BLOCKS[name]).items():
        for dtype in (torch.float32, torch.float64):
            cresset.reset()
            compiled = cresset.compile(function, dynamic=True)
            for shape in SHAPES:
                assert_same_call(function, compiled, torch.randn(shape, dtype=dtype), tolerance=1e-5)
            assert not cresset.stats()["recompiles"], what


@torch.no_grad()
def test_halves_and_others():
    function = lambda x: F.fold(F.unfold(x, 3, 1, 1), x.shape[-2:], 3, 1, 1)  # noqa: E731
    for dtype, tolerance in ((torch.bfloat16, 3e-2), (torch.float16, 4e-3), (torch.complex64, 1e-6)):
        assert_same_call(function, cresset.compile(function), torch.randn(2, 3, 9, 7).to(dtype), tolerance=tolerance)
    truths = lambda x: F.unfold(x > 0, 3)  # noqa: E731
    assert_same_call(truths, cresset.compile(truths), torch.randn(2, 3, 9, 7))


REFUSED = {
    "whole numbers": lambda x: F.unfold(x.long(), 3),
    "too large": lambda x: F.unfold(x, 10),
    "negative padding": lambda x: F.unfold(x, 3, padding=-1),
    "no stride": lambda x: F.unfold(x, 3, stride=0),
    "five dimensions": lambda x: F.unfold(x[None], 3),
    "no channels": lambda x: F.unfold(x[:, :0], 3),
    "other columns": lambda x: F.fold(F.unfold(x, 3), (8, 7), 3),
    "other blocks": lambda x: F.fold(F.unfold(x, 3), (9, 7), 2),
}


@pytest.mark.parametrize("name", REFUSED)
@torch.no_grad()
def test_what_eager_refuses(name):
    assert_same_call(REFUSED[name], cresset.compile(REFUSED[name]), torch.randn(2, 3, 9, 7))


def test_gradients():
    function = lambda x: F.fold(F.unfold(x, 3, 1, 1, 2).square(), x.shape[-2:], 3, 1, 1, 2)  # noqa: E731
    compiled, x = cresset.compile(function), torch.randn(2, 3, 9, 7)
    ours, theirs = (x.clone().requires_grad_() for _ in range(2))
    compiled(ours).square().sum().backward()
    function(theirs).square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


@torch.no_grad()
def test_nothing_is_called():
    cresset.reset()
    compiled = cresset.compile(lambda x: F.fold(F.unfold(x, 3, padding=1) * 2, x.shape[-2:], 3, padding=1))
    compiled(torch.randn(2, 3, 9, 7))
    assert cresset.stats()["extern_calls"] == 0
