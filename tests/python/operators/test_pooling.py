"""Means and maxima of windows: as eager with and without requested positions, which otherwise use no memory."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call
from torch import nn

import cresset

# kernel_size, stride, padding, dilation, ceil_mode
WINDOWS = {
    "plain": (3, 2, 0, 1, False),
    "padded": (3, 2, 1, 1, False),
    "ceil": (3, 2, 0, 1, True),
    "default_stride": (2, None, 0, 1, True),
    "not_square": ((3, 2), (2, 1), (1, 0), 1, False),
    "dilated": ((1, 3), 1, (0, 1), (1, 2), False),
    "dilated_ceil": (5, 3, 2, 1, True),
    "large": (7, 2, 3, 1, False),  # left to ATen
}
SHAPES = [(2, 17, 13, 19), (1, 3, 32, 32), (4, 64, 9, 9)]


def image(shape, dtype, memory_format):
    """An image with all values that are difficult for a maximum."""
    x = torch.randn(shape)
    for value in (float("nan"), -float("inf"), -0.0, 0.0):
        x[torch.rand(shape) < 0.05] = value
    return x.to(dtype).contiguous(memory_format=memory_format)


def call(window, indices=False):
    kernel, stride, padding, dilation, ceil = window
    return lambda x: F.max_pool2d(x, kernel, stride, padding, dilation, ceil, return_indices=indices)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=["rows", "channels"])
@torch.no_grad()
def test_windows(window, memory_format):
    pool = call(WINDOWS[window])
    for function in (pool, lambda x: pool(x.relu()) - 1, call(WINDOWS[window], indices=True)):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            compiled = cresset.compile(function)
            for shape in SHAPES:
                assert_same_call(function, compiled, image(shape, dtype, memory_format), tolerance=0.0)


# kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
MEANS = {
    "plain": (3, 2, 0, False, True, None),
    "padded": (3, 2, 1, False, True, None),
    "without_padding": (3, 2, 1, False, False, None),
    "ceil": (3, 2, 1, True, True, None),
    "ceil_without_padding": ((2, 3), (2, 3), (0, 1), True, False, None),
    "divisor": (2, None, 1, True, False, 3),
    "negative_divisor": (2, 1, 0, False, True, -2),
    "large": (7, 2, 3, False, True, None),  # left to ATen
}


@pytest.mark.parametrize("window", MEANS)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=["rows", "channels"])
@torch.no_grad()
def test_means(window, memory_format):
    kernel, *others = MEANS[window]
    pool = lambda x: F.avg_pool2d(x, kernel, *others)  # noqa: E731
    for function in (pool, lambda x: pool(x.relu() * 3) - 1):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            compiled = cresset.compile(function)
            for shape in SHAPES:
                tolerance = 0.0 if function is pool else 1e-2 if dtype == torch.bfloat16 else 1e-6
                assert_same_call(function, compiled, image(shape, dtype, memory_format), tolerance=tolerance)


@torch.no_grad()
def test_means_of_other_kinds():
    """Volumes, rows, images without a batch, integers, norms, arguments rejected by eager."""
    volume, rows, whole = torch.randn(2, 3, 7, 9, 8), torch.randn(2, 3, 19), torch.arange(96).reshape(2, 3, 4, 4)
    calls = {
        "volumes": (lambda x: F.avg_pool3d(x, (2, 3, 1), (1, 2, 3), (1, 0, 0), True, False), volume),
        "volumes without a batch": (lambda x: F.avg_pool3d(x[0], 2, 1, 1) + 1, volume),
        "rows": (lambda x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False) * 2, rows),
        "no batch": (lambda x: F.avg_pool2d(x[0], 3, 1, 1), torch.randn(2, 3, 6, 7)),
        "whole numbers": (lambda x: F.avg_pool2d(x, 2), whole),
        "norms": (lambda x: F.lp_pool2d(x, 2, 3, 2), torch.randn(2, 3, 17, 18)),
        "channels": (lambda x: F.local_response_norm(x, 5), torch.randn(2, 9, 6, 7)),
        "even channels": (lambda x: F.local_response_norm(x, 4, 1e-2, 0.5, 2.0), torch.randn(2, 9, 6, 7)),
        "a divisor of nothing": (lambda x: F.avg_pool2d(x, 2, divisor_override=0), torch.randn(2, 3, 6, 7)),
        "too much padding": (lambda x: F.avg_pool2d(x, 2, 1, 2), torch.randn(2, 3, 6, 7)),
        "too small": (lambda x: F.avg_pool2d(x, 8), torch.randn(2, 3, 6, 7)),
    }
    for name, (function, x) in calls.items():
        assert_same_call(function, cresset.compile(function), x, tolerance=1e-6), name


@torch.no_grad()
def test_means_of_parts():
    """Rows and columns divisible by the number of parts, not divisible, and fewer than the parts."""
    for wanted in ((7, 7), (3, 5), (1, 4), (40, 2), (9, None)):
        function = lambda x, w=wanted: F.adaptive_avg_pool2d(x, w)  # noqa: E731
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            compiled = cresset.compile(function)
            tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-6
            for shape in ((4, 32, 28, 28), (2, 5, 9, 50), (3, 11, 4), (1, 1, 1, 1), (0, 3, 8, 8), (2, 3, 0, 4)):
                for turned in (False, True):
                    x = torch.randn(shape).to(dtype)
                    x = x.transpose(-1, -2).contiguous().transpose(-1, -2) if turned else x
                    assert_same_call(function, compiled, x, tolerance=tolerance)
        x = torch.randn(2, 8, 28, 28).contiguous(memory_format=torch.channels_last)
        assert_same_call(function, compiled, x, tolerance=1e-6)
    x = torch.randn(2, 3, 12, 12)
    x[0, 0, 0, 0], x[0, 1, 5, 5], x[1, 2, 11, 11] = float("nan"), float("inf"), -float("inf")
    assert_same_call(function, cresset.compile(function), x, tolerance=1e-6)


@torch.no_grad()
def test_means_of_small_windows_call_nothing():
    cresset.reset()
    x, compiled = (
        torch.randn(2, 8, 33, 33),
        cresset.compile(nn.Sequential(nn.AvgPool2d(3, 2, 1), nn.LocalResponseNorm(5))),
    )
    compiled(x)
    assert cresset.stats()["extern_calls"] == 0


@pytest.mark.parametrize("needs_gradients", [False, True])
def test_rows_of_transposed(needs_gradients):
    """Without gradients the result is contiguous; with them it has the argument's layout."""
    function = lambda x: F.max_pool1d(x.transpose(1, 2), 3, 2)  # noqa: E731
    compiled = cresset.compile(function)
    for shape in ((2, 9, 4), (1, 12, 3)):
        assert_same_call(function, compiled, torch.randn(shape).requires_grad_(needs_gradients))


@torch.no_grad()
def test_zeros_keep_their_sign():
    x = torch.tensor([[0.0, -0.0, 0.0, 0.0, -0.0, -0.0]]).view(1, 1, 1, 6)
    function = lambda x: F.max_pool2d(x, (1, 2))  # noqa: E731
    assert torch.equal(cresset.compile(function)(x).signbit(), function(x).signbit())


@torch.no_grad()
def test_places_that_nobody_asks_for_take_no_memory():
    cresset.reset()
    function = lambda x: F.max_pool2d(x, 3, 2)  # noqa: E731
    compiled = cresset.compile(function)
    compiled(torch.randn(2, 8, 33, 33))
    stats = cresset.stats()
    assert stats["extern_calls"] == 0 and stats["kernels"] == 1
    with torch.profiler.profile(profile_memory=True) as profile:
        compiled(torch.randn(2, 8, 33, 33))
    held = [e.nbytes() for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    assert sum(n for n in held if n > 0) <= 4 * (2 * 8 * 33 * 33 + 2 * 8 * 16 * 16)


def test_gradients_ask_for_them():
    function = call(WINDOWS["padded"])
    compiled, x = cresset.compile(function), torch.randn(2, 3, 12, 12)
    ours, theirs = (x.clone().requires_grad_() for _ in range(2))
    compiled(ours).square().sum().backward()
    function(theirs).square().sum().backward()
    assert torch.equal(ours.grad, theirs.grad)


@pytest.mark.parametrize("training", [False, True])
def test_places_of_small_windows_are_found_beside_the_values(training):
    """A single kernel finds both; only for gradients, ATen is called."""
    cresset.reset()
    compiled = cresset.compile(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True))
    compiled(torch.randn(2, 8, 33, 33, requires_grad=training))
    stats = cresset.stats()
    assert stats["extern_calls"] == training
    assert training or stats["kernels"] == 1


def test_gradients_go_to_the_places():
    for window in WINDOWS.values():
        function = lambda x, w=window: call(w)(x * 2).sin()  # noqa: E731
        compiled = cresset.compile(function)
        for shape in SHAPES:
            x = torch.randint(-3, 4, shape).float()  # many elements are equal
            ours, theirs = (x.clone().requires_grad_() for _ in range(2))
            compiled(ours).sum().backward()
            function(theirs).sum().backward()
            torch.testing.assert_close(ours.grad, theirs.grad)


PIXELS = {
    "rows": torch.randn(2, 36, 12, 18),
    "channels last": torch.randn(2, 36, 12, 18).contiguous(memory_format=torch.channels_last),
    "turned": torch.randn(2, 36, 18, 12).transpose(2, 3),
    "unbatched": torch.randn(36, 12, 18),
    "two batches": torch.randn(2, 3, 36, 6, 12),
    "no image": torch.randn(0, 36, 12, 18),
    "no channel": torch.randn(2, 0, 12, 18),
    "bytes": torch.randint(0, 99, (1, 36, 6, 6), dtype=torch.uint8),
    "half": torch.randn(2, 36, 12, 18).bfloat16(),
    "complex": torch.randn(1, 36, 6, 6, dtype=torch.complex64),
}


@torch.no_grad()
@pytest.mark.parametrize("name", PIXELS)
@pytest.mark.parametrize("function", [F.pixel_shuffle, F.pixel_unshuffle], ids=["shuffle", "unshuffle"])
def test_pixels_change_places_with_channels(function, name):
    for factor in (1, 2, 3):
        compiled = cresset.compile(lambda x, factor=factor: (function(x, factor), function(x * 2, factor) + 1))
        eager = lambda x, factor=factor: (function(x, factor), function(x * 2, factor) + 1)  # noqa: E731
        for x in (PIXELS[name], PIXELS[name][..., :6]):
            assert_same_call(eager, compiled, x)
    assert_same_call(
        lambda x: function(x, 5), cresset.compile(lambda x: function(x, 5)), PIXELS["rows"]
    )  # does not fit


def test_pixels_change_places_by_a_kernel():
    """Also in the backward pass, each fused with its neighbors."""
    cresset.reset()
    function = lambda x: F.pixel_unshuffle(F.pixel_shuffle(x.sin(), 3) * 2, 2).cos()  # noqa: E731
    compiled = cresset.compile(function)
    ours, theirs = (torch.linspace(0, 1, 2 * 18 * 40).view(2, 18, 4, 10).requires_grad_() for _ in range(2))
    torch.testing.assert_close(compiled(ours), function(theirs))
    compiled(ours).square().sum().backward()
    function(theirs).square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert cresset.stats()["extern_calls"] == 0
