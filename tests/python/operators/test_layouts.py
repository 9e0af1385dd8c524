"""Operators whose result layout depends on ATen's kernels: for images with channels last, permuted dimensions, and
dimensions of size 1."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, assert_same_call
from test_decomposition_layouts import turned
from torch import nn

import cresset

SIZES = [(2, 3, 4, 5), (1, 2, 4, 4), (2, 1, 4, 5), (3, 2, 1, 4), (2, 3, 4, 5, 6)]


def last_format(rank):
    return {4: torch.channels_last, 5: torch.channels_last_3d}.get(rank, torch.contiguous_format)


LIE = {
    "in rows": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=last_format(x.dim())),
    "turned": turned,
}
OPERATORS = {
    "stack": lambda x: [torch.stack([x, x + 1], d) for d in range(x.dim() + 1)],
    "stack of two layouts": lambda x: (torch.stack([x, x.contiguous()]), torch.stack([x.contiguous(), x], 1)),
    "cat": lambda x: [torch.cat([x, x], d) for d in range(x.dim())],
    "rms_norm": lambda x: (F.rms_norm(x, x.shape[-1:], eps=0.5), F.rms_norm(x, x.shape[-2:], eps=0.5)),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "group_norm": lambda x: F.group_norm(x, 1),
    "instance_norm": lambda x: F.instance_norm(x),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "renorm": lambda x: torch.renorm(x, 2, 1, 0.5),
    "dropout": lambda x: F.dropout(x, 0.3),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "like it": lambda x: (torch.rand_like(x), torch.zeros_like(x), x.clone(), x.to(torch.float64)),
    "sum of two layouts": lambda x: (x + x.contiguous(), x.contiguous() + x),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "softmax": lambda x: (x.softmax(1), x.log_softmax(-1)),
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort(1),
    "flip": lambda x: (x.flip(1), x.roll(1, 1)),
    "pad": lambda x: F.pad(x, (1, 1)),
}


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("lie", LIE)
@pytest.mark.parametrize("name", OPERATORS)
def test_results_lie_as_eagers(name, lie, sizes):
    function = OPERATORS[name]
    assert_same_call(function, cresset.compile(function), LIE[lie](torch.randn(sizes)))


def convolution(rank, transposed, kernel, groups):
    cls = getattr(nn, f"Conv{'Transpose' if transposed else ''}{rank - 2}d")
    batch_norm = getattr(nn, f"BatchNorm{rank - 2}d")
    return nn.Sequential(cls(4, 4, kernel, padding=kernel // 2, groups=groups), batch_norm(4), nn.ReLU(), cls(4, 4, 1))


def gradients(module, function, x):
    leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
    module.zero_grad()
    y = function(leaf)
    y.square().sum().backward()
    return y.detach(), leaf.grad, [p.grad for p in module.parameters()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("kernel,groups", [(1, 1), (3, 1), (3, 4)])
def test_convolutions(rank, transposed, kernel, groups, dtype):
    for input_last, weight_last, batch in itertools.product((False, True), (False, True), (1, 2)):
        torch.manual_seed(0)
        module = convolution(rank, transposed, kernel, groups).to(dtype).eval()
        x = torch.randn(batch, 4, *[6] * (rank - 2), dtype=dtype)
        if weight_last:
            module = module.to(memory_format=last_format(rank))
        if input_last:
            x = x.to(memory_format=last_format(rank))
        ours = copy.deepcopy(module)
        compiled = cresset.compile(ours)
        assert_same(gradients(ours, compiled, x), gradients(module, module, x), tolerance=1e-4)
        with torch.no_grad():
            assert_same(compiled(x), module(x))


def test_a_volume_padded_by_a_stride_is_not_given_to_onednn():
    def f(x, w):
        return F.conv_transpose3d(x, w, stride=(3, 2, 1), padding=2, output_padding=1, groups=2, dilation=(4, 3, 2))

    x = torch.randn(2, 2, 4, 4, 4).to(memory_format=torch.channels_last_3d)
    assert_same_call(f, cresset.compile(f), x, torch.randn(2, 2, 4, 5, 6))


def overlapping_rows(image):
    batch, channels, rows, columns = image.shape
    return image.as_strided((batch, channels, rows - 1, 2, columns), (*image.stride()[:3], image.stride(2), 1))


def written_rows(image):
    batch, channels, rows, columns = image.shape
    rows_of = torch.ones(batch, channels, rows // 2, columns)
    return image.as_strided_scatter(rows_of, rows_of.shape, (*image.stride()[:2], 2 * columns, 1))


def split_memory(image):
    return image.as_strided((image.numel() // 3,), (3,), 1)


@pytest.mark.parametrize("view", [overlapping_rows, written_rows, split_memory])
@pytest.mark.parametrize("dynamic", [None, False])
@torch.no_grad()
def test_storage_that_is_spoken_of_lies_as_eagers(view, dynamic):
    """After convolutions, whose internal layout is channels last."""
    torch.manual_seed(0)
    first, second = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 6, 1)

    def function(x):
        return view(F.pad(second(first(x).relu()), (1, 1, 1, 1))).sin()

    compiled = cresset.compile(function, dynamic=dynamic)
    for size in [(2, 4, 6, 8), (1, 4, 6, 8), (3, 4, 8, 10)]:
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-5)
