"""Numbers that vary where torch's C code takes plain ones: one compilation, equal to eager, with its derivatives and errors."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset


def image(h=12, w=12, channels=4):
    return torch.randn(2, channels, h, w)


def signal(n=12):
    return torch.randn(2, 4, n)


# name: (function of a tensor and a number, maker of the tensor), at the numbers of SIX where no others are named
SIX = (2, 3, 4, 5, 6, 7)
WINDOWS = {
    "avg_pool1d": (lambda x, n: F.avg_pool1d(x, n), signal),
    "avg_pool1d, step": (lambda x, n: F.avg_pool1d(x, n, 1), signal),
    "avg_pool2d": (lambda x, n: F.avg_pool2d(x, n), image),
    "avg_pool2d, two": (lambda x, n: F.avg_pool2d(x, (n, 3), stride=(1, n)), image),
    "avg_pool2d, padding": (lambda x, n: F.avg_pool2d(x, n, 1, n // 2), image),
    "avg_pool2d, padding not counted": (lambda x, n: F.avg_pool2d(x, n, 2, n // 2, count_include_pad=False), image),
    "avg_pool2d, divisor": (lambda x, n: F.avg_pool2d(x, n, divisor_override=3), image),
    "avg_pool3d": (lambda x, n: F.avg_pool3d(x.unsqueeze(0), (1, n, 2)), image),
    "max_pool1d": (lambda x, n: F.max_pool1d(x, n), signal),
    "max_pool2d": (lambda x, n: F.max_pool2d(x, n), image),
    "max_pool2d, padding": (lambda x, n: F.max_pool2d(x, n, 2, n // 2), image),
    "max_pool2d, dilation": (lambda x, n: F.max_pool2d(x, 2, 1, 0, dilation=n), image),
    "max_pool2d, indices": (lambda x, n: F.max_pool2d(x, (n, 2), 2, return_indices=True), image),
    "max_pool3d": (lambda x, n: F.max_pool3d(x.unsqueeze(0), (1, n, 2)), image),
    "module": (lambda x, n: torch.nn.AvgPool2d(n)(x) + torch.nn.MaxPool2d(n)(x), image),
    "lp_pool1d": (lambda x, n: F.lp_pool1d(x.abs() + 0.1, 2, n), signal),
    "local_response_norm": (lambda x, n: F.local_response_norm(x, n), image),
    "adaptive_avg_pool1d": (lambda x, n: F.adaptive_avg_pool1d(x, n), signal),
    "adaptive_avg_pool2d": (lambda x, n: F.adaptive_avg_pool2d(x, (n, None)), image),
    "adaptive_max_pool1d": (lambda x, n: F.adaptive_max_pool1d(x, n), signal),
    "adaptive_max_pool2d": (lambda x, n: F.adaptive_max_pool2d(x, (n, 3), return_indices=True), image),
    "adaptive_max_pool3d": (lambda x, n: F.adaptive_max_pool3d(x.unsqueeze(0), n % 4 + 1), image),
    "unfold": (lambda x, n: F.unfold(x, (n, 2), padding=1, stride=n), image),
    "unfold, dilation": (lambda x, n: F.unfold(x, 2, dilation=n), image),
    "fold": (lambda x, n: F.fold(F.unfold(x, n, padding=1, stride=2), (12, 12), n, padding=1, stride=2), image),
    "pixel_shuffle": (lambda x, n: F.pixel_shuffle(x.repeat(1, n * n, 1, 1), n), image),
    "pixel_unshuffle": (lambda x, n: F.pixel_unshuffle(F.pad(x, (0, 12 * n - 12, 0, 12 * n - 12)), n), image),
}


def whole(h, w):
    return image(h, w), None


# Windows that are sizes: the number is not used.
GLOBAL = {
    "avg_pool1d": lambda x: F.avg_pool1d(x.flatten(2), x.shape[2] * x.shape[3]),
    "avg_pool2d": lambda x: F.avg_pool2d(x, x.shape[2:]),
    "avg_pool2d, sizes": lambda x: F.avg_pool2d(x, kernel_size=(x.size(2), x.size(3)), stride=(x.size(2), x.size(3))),
    "avg_pool2d, rows": lambda x: F.avg_pool2d(x, (1, x.size(3)), ceil_mode=True),
    "max_pool1d": lambda x: F.max_pool1d(x.flatten(2), [x.flatten(2).size(-1)]),
    "max_pool2d": lambda x: F.max_pool2d(x, x.size()[2:]),
    "max_pool2d, rows": lambda x: F.max_pool2d(x, (x.size(2), 1)).squeeze(2),
    "max_pool2d, indices": lambda x: F.max_pool2d(x, x.shape[2:], return_indices=True),
    "squeeze and excitation": lambda x: x * F.avg_pool2d(x, x.shape[2:]).sigmoid(),
    "lp_pool2d": lambda x: F.lp_pool2d(x.abs() + 0.1, 2, x.shape[2:]),
    "adaptive, like another": lambda x: F.adaptive_max_pool2d(torch.cat([x, x, x, x, x], 2), x.shape[2:]),
}


def check(function, calls, most=2):
    compiled = cresset.compile(function)
    for arguments in calls:
        assert_same_call(function, compiled, *arguments)
    stats = cresset.stats()
    assert stats["graphs"] <= most, stats["recompiles"]
    assert stats["graph_breaks"] == 0, stats["graph_break_reasons"]


def check_gradients(function, calls, most=2):
    compiled = cresset.compile(function)
    for x, *rest in calls:
        found = []
        for f in (function, compiled):
            leaf = x.detach().clone().requires_grad_()
            torch.manual_seed(0)
            out = f(leaf, *rest)
            out = out[0] if isinstance(out, tuple) else out
            (out * torch.linspace(0.5, 2, out.numel()).view(out.shape)).sum().backward()
            found.append((out.detach(), leaf.grad))
        torch.testing.assert_close(found[1], found[0])
    stats = cresset.stats()
    assert stats["graphs"] <= most, stats["recompiles"]
    assert stats["graph_breaks"] == 0, stats["graph_break_reasons"]


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    function, make = WINDOWS[name]
    check(function, [(make(), n) for n in SIX])


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_with_gradients(name):
    function, make = WINDOWS[name]
    check_gradients(function, [(make(), n) for n in SIX])


@pytest.mark.parametrize("name", GLOBAL)
def test_windows_of_all(name):
    check(GLOBAL[name], [(image(h, w),) for h, w in ((3, 4), (5, 5), (7, 2), (1, 9), (12, 1), (6, 6))])


@pytest.mark.parametrize("name", GLOBAL)
def test_windows_of_all_with_gradients(name):
    check_gradients(GLOBAL[name], [(image(h, w),) for h, w in ((3, 4), (5, 5), (7, 2), (2, 9), (6, 6))])


@pytest.mark.parametrize("name", ["avg_pool2d", "max_pool2d", "pixel_shuffle", "adaptive_max_pool2d"])
def test_windows_of_channels_last(name):
    function = WINDOWS[name][0]
    check(function, [(image(channels=3).to(memory_format=torch.channels_last), n) for n in SIX])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int64])
@pytest.mark.parametrize("name", ["avg_pool2d", "max_pool2d", "unfold", "fold", "pixel_shuffle"])
def test_windows_of_dtypes(name, dtype):
    function = WINDOWS[name][0]
    compiled = cresset.compile(function)
    for n in SIX:
        assert_same_call(function, compiled, (image() * 8).to(dtype), n)


RAISES = {
    "avg_pool1d": lambda x, n: F.avg_pool1d(x, n),
    "avg_pool2d": lambda x, n: F.avg_pool2d(x.unsqueeze(0), n, padding=1),
    "max_pool1d": lambda x, n: F.max_pool1d(x, n),
    "max_pool2d": lambda x, n: F.max_pool2d(x.unsqueeze(0), n, n),
    "adaptive_avg_pool1d": lambda x, n: F.adaptive_avg_pool1d(x, n),
    "adaptive_max_pool1d": lambda x, n: F.adaptive_max_pool1d(x, n),
    "unfold": lambda x, n: F.unfold(x.unsqueeze(0), n),
    "pixel_shuffle": lambda x, n: F.pixel_shuffle(x, n),
    "misspelt": lambda x, n: F.avg_pool1d(x, n, strides=1),
}


@pytest.mark.parametrize("name", RAISES)
def test_what_eager_rejects(name):
    compiled = cresset.compile(RAISES[name])
    for n in (2, 0, 40, -1, 1, 3):
        assert_same_call(RAISES[name], compiled, signal(), n)


@pytest.mark.parametrize("sizes", [(0, 4, 5, 5), (2, 0, 5, 5), (1, 1, 1, 1), (2, 3, 0, 5)], ids=str)
def test_windows_of_small_tensors(sizes):
    for function in (GLOBAL["avg_pool2d"], GLOBAL["max_pool2d"], GLOBAL["max_pool2d, rows"]):
        cresset.reset()
        compiled = cresset.compile(function)
        for shape in ((2, 3, 4, 5), sizes, (2, 3, 6, 4)):
            assert_same_call(function, compiled, torch.randn(shape))
