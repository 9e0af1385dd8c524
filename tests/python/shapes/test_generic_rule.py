"""Operators without a native shape rule: their sizes follow from a few answers of the meta kernel, and are checked."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, assert_same_call

import cresset

ROWS = [
    ("histc", lambda x: torch.histc(x, bins=4, min=0, max=3) * 2),
    ("cdist", lambda x: torch.cdist(x, x * 2) + 1),
    ("qr", lambda x: torch.linalg.qr(x)[1].abs() + 1),
    ("svdvals", lambda x: torch.linalg.svdvals(x) + 1),
    ("renorm", lambda x: torch.renorm(x, 2, 0, 1.0) * 2),
    ("geqrf", lambda x: torch.geqrf(x)[1].abs() + 1),
    ("histogram", lambda x: torch.histogram(x, 5)[0] + 1),
    ("angle", lambda x: torch.angle(torch.complex(x, x * 2).t())),
    ("embedding_bag", lambda x: F.embedding_bag(x.mul(4).long(), torch.ones(4, 3)) + 1),
    ("greatest_of_bags", lambda x: F.embedding_bag(x.mul(4).long(), torch.rand(4, 3), mode="max") * 2),
    ("bags", lambda x: F.embedding_bag(x.mul(4).long().flatten(), torch.ones(4, 3), x.argsort(0)[:, 0].sort()[0]) + 1),
    ("multi_margin_loss", lambda x: F.multi_margin_loss(x, torch.arange(x.shape[0]) % 5, reduction="none") + 1),
    ("multilabel_margin_loss", lambda x: F.multilabel_margin_loss(x, (x > 0.5).long(), reduction="none") + 1),
]


@pytest.mark.parametrize("function", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_one_compilation(function):
    compiled = cresset.compile(function)
    for n in (6, 2, 9, 17, 24):  # from 25 rows on, ATen computes distances another way
        assert_same_call(function, compiled, torch.rand(n, 5))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


WEIGHTS = torch.complex(torch.rand(4), torch.rand(4))
SIGNALS = [
    ("complex weights", lambda x: torch.view_as_complex(x.reshape(x.shape[0], 4, 2)) * WEIGHTS),
    ("filtered", lambda x: torch.fft.irfft(torch.fft.rfft(x.t(), n=8) * torch.view_as_complex(x[:5, :2]), n=8)),
    ("spectra", lambda x: torch.stft(x.flatten(), 16, 4, window=torch.hann_window(16), return_complex=True).abs()),
    ("spectra of rows", lambda x: torch.stft(x.repeat(1, 9), 16, 5, 10, torch.ones(10), False, return_complex=True)),
    ("two sides", lambda x: torch.stft(x, 8, 2, window=torch.ones(8), onesided=False, return_complex=True).angle()),
    ("a filled diagonal", lambda x: (x @ x.t()).fill_diagonal_(7.0)),
    ("a filled diagonal of rows", lambda x: (x * 2).fill_diagonal_(7.0)),
    ("floors in place", lambda x: x.mul(9).floor_divide_(x + 1).floor_divide_(2)),
]


BROADCAST = {
    "igamma": lambda a, b: torch.igamma(a, b) + 1,
    "zeta": lambda a, b: torch.special.zeta(a + 2, b),
    "soft_margin_loss": lambda a, b: F.soft_margin_loss(a, b, reduction="none") * 2,
}


@pytest.mark.parametrize("name", BROADCAST)
def test_operands_that_are_as_large(name):
    """Two symbols for the same size: neither changes alone."""
    compiled = cresset.compile(BROADCAST[name])
    for shape in ((5, 5), (6, 5), (5, 6), (7, 9), (2, 3), (11, 4)):
        assert_same_call(BROADCAST[name], compiled, torch.rand(shape), torch.rand(shape))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


def test_operands_of_which_some_are_broadcast():
    compiled = cresset.compile(BROADCAST["igamma"])
    for n, m in ((10, 5), (6, 5), (12, 7), (3, 2)):
        assert_same_call(BROADCAST["igamma"], compiled, torch.rand(n, 1, m), torch.rand(1, n, m))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


def test_as_many_classes_as_examples():
    weights = torch.rand(5)
    function = lambda x, y: F.multi_margin_loss(x, y, weight=weights, reduction="none")  # noqa: E731
    compiled = cresset.compile(function)
    for n in (5, 6, 2, 11):
        assert_same_call(function, compiled, torch.rand(n, 5), torch.arange(n) % 5)
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


def test_eigenvalues_of_any_size():
    function = lambda x: torch.linalg.eig(x)[0].real.sort()[0]  # noqa: E731
    compiled = cresset.compile(function)
    for n in (5, 6, 3, 9):
        assert_same_call(function, compiled, torch.rand(2, n, n))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


QUANTIZED = {
    "by one scale": lambda x: torch.fake_quantize_per_tensor_affine(x * 9, 0.05, 3, -20, 127) + 1,
    "transposed": lambda x: torch.fake_quantize_per_tensor_affine(x.t(), 0.05, 3, 0, 255),
    "by channel": lambda x: torch.fake_quantize_per_channel_affine(
        x, x[0].detach() + 0.1, torch.zeros(8, dtype=torch.int32), 1, -8, 7
    ),
    "a range of nothing": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.05, 3, 9, 2),
    "a zero outside": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.05, 30, 0, 9),
    "other channels": lambda x: torch.fake_quantize_per_channel_affine(
        x, torch.ones(9), torch.zeros(9, dtype=torch.int32), 1, -8, 7
    ),
    "an axis too far": lambda x: torch.fake_quantize_per_channel_affine(
        x, torch.ones(8), torch.zeros(8, dtype=torch.int32), 2, -8, 7
    ),
}


@pytest.mark.parametrize("name", QUANTIZED)
def test_fake_quantization(name):
    compiled = cresset.compile(QUANTIZED[name])
    for n in (9, 24, 1, 17):
        assert_same_call(QUANTIZED[name], compiled, torch.rand(n, 8).requires_grad_())
        with torch.no_grad():
            assert_same_call(QUANTIZED[name], compiled, torch.rand(n, 8))


@pytest.mark.parametrize("function", [row[1] for row in SIGNALS], ids=[row[0] for row in SIGNALS])
def test_signals_of_any_length(function):
    compiled = cresset.compile(function)
    for n in (9, 24, 40, 17):
        assert_same_call(function, compiled, torch.rand(n, 8))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


def test_spectra_that_eager_rejects():
    function = lambda x: torch.stft(x, 16, 4, window=torch.ones(12), return_complex=True, center=False)  # noqa: E731
    assert_same_call(function, cresset.compile(function), torch.rand(3, 40))
    short = lambda x: torch.stft(x, 16, 4, window=torch.ones(16), return_complex=True, center=False)  # noqa: E731
    compiled = cresset.compile(short)
    for n in (40, 12, 50):
        assert_same_call(short, compiled, torch.rand(3, n))


LOSSES = {
    "multi_margin_loss": lambda x: F.multi_margin_loss(x, torch.arange(x.shape[0]) % 5, reduction="none"),
    "multi_margin_loss_of_one": lambda x: F.multi_margin_loss(x[0], torch.tensor(1), reduction="none"),
    "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(x, (x > 0.5).long()),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_without_a_meta_kernel(name):
    function = LOSSES[name]
    compiled = cresset.compile(function)
    for n in (6, 2, 9):
        x = torch.rand(n, 5, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        expected, got = function(x), compiled(y)
        assert_same(got, expected)
        (expected.pow(2).sum() + 0).backward()
        (got.pow(2).sum() + 0).backward()
        assert_same(y.grad, x.grad)
    assert cresset.stats()["eager_calls"] == 0


def _library(name):
    library = torch.library.Library("cresset_test", "FRAGMENT")
    library.define(f"{name}(Tensor x) -> Tensor")
    return library


def test_a_wrong_prediction_is_noticed_and_not_made_again():
    """At most 100 rows are kept: small sizes cannot show it."""
    library = _library("head")
    library.impl("head", lambda x: x[:100].clone(), "CPU")
    library.impl("head", lambda x: x.new_empty((min(x.size(0), 100), x.size(1))), "Meta")

    def function(x):
        x.add_(1)
        return torch.ops.cresset_test.head(x) * 2

    compiled = cresset.compile(function)
    for rows in (6, 8, 300, 300, 7):
        x = torch.rand(rows, 3)
        y = x.clone()
        expected, got = function(x), compiled(y)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(x, y)  # written once, whatever happened
    assert any("head" in str(reason) for reason in cresset.stats()["recompiles"])


def test_sizes_that_follow_nothing_simple_are_pinned():
    library = _library("triangle")
    library.impl("triangle", lambda x: x.new_zeros(x.size(0) * (x.size(0) - 1) // 2), "CPU")
    library.impl("triangle", lambda x: x.new_empty(x.size(0) * (x.size(0) - 1) // 2), "Meta")
    function = lambda x: torch.ops.cresset_test.triangle(x) + 1  # noqa: E731
    compiled = cresset.compile(function)
    for rows in (6, 8, 6):
        assert_same_call(function, compiled, torch.rand(rows))
    assert cresset.stats()["graphs"] == 2


FRAMES = {
    "spectrum": lambda x, w: torch.stft(x, 400, 160, 400, w, return_complex=True),
    "numbers": lambda x, w: torch.view_as_real(torch.stft(x, 400, 160, 400, w, return_complex=True)),
    "real part": lambda x, w: torch.stft(x, 400, 160, 400, w, center=False, return_complex=True).real,
    "power": lambda x, w: torch.stft(x, 400, 100, 400, w, pad_mode="constant", return_complex=True).abs() ** 2,
    "transposed": lambda x, w: torch.view_as_real(torch.fft.rfft(x.unfold(1, 400, 320) * w).transpose(0, 1)),
    "a part": lambda x, w: torch.view_as_real(torch.fft.rfft(x.unfold(-1, 400, 320) * w)[..., 1:])[..., 0],
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("wants", [False, True])
def test_as_many_frames_as_there_are(name, wants):
    """A length // hop does not change with every change of the length; a view as numbers keeps its base."""
    function, window = FRAMES[name], torch.hamming_window(400)
    compiled = cresset.compile(function)
    for rows, length in ((2, 3200), (1, 3100), (3, 3300), (2, 16000), (2, 801)):
        assert_same_call(function, compiled, torch.randn(rows, length).requires_grad_(wants), window)
    stats = cresset.stats()
    assert (stats["graphs"], stats["eager_calls"], stats["graph_breaks"]) == (1, 0, 0), stats


OF_COUNTS = {
    "dimensions": lambda x: x.sum(dim=torch.arange(1, x.dim()).tolist()),
    "parts": lambda x: x.split(torch.arange(1, 4).tolist(), 1),
    "steps": lambda x: [x * int(i) for i in torch.arange(0, 10, 3)],
    "last of the sizes": lambda x: x + torch.arange(2, x.dim() + 2)[-1].item(),
    "between": lambda x: [x[:, i] for i in torch.arange(x.dim(), x.shape[1] - 1, 1)],
}


@pytest.mark.parametrize("name", OF_COUNTS)
def test_numbers_that_are_counted(name):
    function = OF_COUNTS[name]
    compiled = cresset.compile(function, fullgraph=True)
    for rows in (2, 3, 1):
        assert_same_call(function, compiled, torch.randn(rows, 6, 2))
    assert cresset.stats()["graphs"] == 1


def test_operators_that_are_run_at_other_sizes_take_little_memory():
    """A Jacobian has the product of its sizes as a size: chosen larger, they would fill the memory."""
    source = """
import resource, torch, cresset
f = torch.func.jacrev(lambda x: torch.fft.rfft(x).abs())
x = torch.randn(2, 4, 3, dtype=torch.float64)
expected, before = f(x), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert torch.allclose(cresset.compile(f)(x), expected)
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19, "more than half a GiB"
assert cresset.stats()["graphs"] == 1
"""
    subprocess.run([sys.executable, "-c", source], check=True)
