"""Decompositions of signal transforms (base.py), whose lengths are sizes."""

import torch

from .base import form, hide, is_dense

_nn = torch._C._nn
_BY_LENGTH, _BY_ROOT = 2, 1  # scalings of a Fourier transform
_LEAST = 1e-11  # least sum of the squared windows


def takes(input, n_fft, hop, width, window, onesided, return_complex):
    """Whether the arguments give a real signal; errors and warnings are left to eager mode."""
    numbers = (n_fft, hop, width)
    if not (is_dense(input) and input.is_complex() and input.dim() in (2, 3)) or return_complex:
        return False
    if not all(type(n) is int for n in numbers) or not 0 < hop <= width <= n_fft:
        return False
    if input.shape[-2] != (n_fft // 2 + 1 if onesided else n_fft) or input.shape[-1] < 1 or input.shape[0] < 1:
        return False
    return is_dense(window) and window.is_floating_point() and window.dim() == 1 and window.shape[0] == width


def added_up(rows, hop, length):
    """Signals of this length: the sum of overlapping windows, given as (batch, window, in window)."""
    size = (1, rows.shape[-1])
    return _nn.col2im(rows.transpose(1, 2), (1, length), size, (1, 1), (0, 0), (1, hop)).flatten(1)


@form(torch.istft, always=True)
def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    def original():
        return torch.istft(
            input, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex
        )

    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if not is_dense(input) or input.dim() < 2:
        return original()
    half = bool(input.shape[-2] != n_fft) if onesided is None else onesided
    weights = window
    if weights is None and type(width) is int and width > 0:
        weights = torch.ones(width, dtype=input.real.dtype)
    if not takes(input, n_fft, hop, width, weights, half, return_complex):
        return original()
    frames = input.shape[-1]
    whole = n_fft + hop * (frames - 1)
    first = n_fft // 2 if center else 0
    last = (whole - n_fft // 2 if center else whole) if length is None else first + length
    if not first < last <= whole:
        return original()  # eager mode pads the missing part
    if width < n_fft:
        left = (n_fft - width) // 2
        weights = torch.constant_pad_nd(weights, (left, n_fft - width - left))
    spectra = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)[..., : n_fft // 2 + 1]
    rows = torch._fft_c2r(spectra, [2], _BY_ROOT if normalized else _BY_LENGTH, n_fft) * weights
    sums = added_up((weights * weights).expand(1, frames, n_fft), hop, whole)[:, first:last]
    signal = added_up(rows, hop, whole)[:, first:last] / sums
    signal = signal if input.dim() == 3 else signal.squeeze(0)
    return original() if sums.abs().min() < _LEAST else signal  # eager mode raises


hide(globals())
