"""istft: one program for batches, numbers of windows and lengths, whatever its settings."""

from __future__ import annotations

import itertools

import pytest
import torch
from compare import assert_same_call

import cresset

SETTINGS = list(
    itertools.product((True, False), (False, True), (None, True, False), (16, 12), (True, False), (True, False))
)


def called(function, *args):
    try:
        return function(*args)
    except RuntimeError as error:
        return str(error).partition("\n")[0]


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(str(v) for v in s))
def test_settings(settings, dtype):
    center, normalized, onesided, width, is_given, batched = settings
    window = torch.hann_window(width, dtype=dtype) + 0.1

    def f(z, length):
        return torch.istft(z, 16, 4, width, window if is_given else None, center, normalized, onesided, length)

    g = cresset.compile(f)
    for batch, length, wanted in ((1, 64, 1.0), (2, 64, 1.0), (3, 96, 0.9), (2, 80, 1.2)):
        x = torch.randn((batch, length) if batched else (length,), dtype=dtype)
        z = torch.stft(
            x, 16, 4, width, window, center, normalized=normalized, onesided=onesided is not False, return_complex=True
        )
        for out in (None, int(length * wanted)):
            got, expected = called(g, z, out), called(f, z, out)
            assert type(got) is type(expected)
            if isinstance(expected, str):
                assert got == expected
                continue
            assert got.dtype == expected.dtype and got.stride() == expected.stride()
            torch.testing.assert_close(got, expected)


def inverse(z, n):
    return torch.istft(z, 16, 4, window=torch.hann_window(16), length=n)


def test_one_program():
    compiled = cresset.compile(inverse)
    for batch, length in ((1, 64), (2, 64), (3, 96), (4, 128), (5, 132), (6, 140), (7, 200)):
        z = torch.stft(torch.randn(batch, length), 16, 4, window=torch.hann_window(16), return_complex=True)
        assert_same_call(inverse, compiled, z, length)
    stats = cresset.stats()
    assert stats["graphs"] <= 3 and stats["eager_calls"] == 0, stats["recompiles"]


def test_windows_that_do_not_add_up():
    """The message is eager mode's."""
    f = cresset.compile(lambda z: torch.istft(z, 16, 16, window=torch.hann_window(16), center=False))
    for n in (3, 3, 5):
        with pytest.raises(RuntimeError, match="window overlap add min"):
            f(torch.randn(2, 9, n, dtype=torch.complex64))


def test_gradients():
    window = torch.hann_window(16) + 0.1
    compiled = cresset.compile(lambda z: torch.istft(z, 16, 4, window=window))
    for n in (5, 5, 9):
        found = []
        for f in (lambda z: torch.istft(z, 16, 4, window=window), compiled):
            z = torch.randn(2, 9, n, dtype=torch.complex64, generator=torch.Generator().manual_seed(n)).requires_grad_()
            f(z).square().sum().backward()
            found.append(z.grad)
        torch.testing.assert_close(found[1], found[0])
