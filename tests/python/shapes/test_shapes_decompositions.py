"""Varying numbers where torch's C code takes plain numbers: a single compilation, with eager's results, derivatives and
errors."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset


def image(h=12, w=12, channels=4):
    return torch.randn(2, channels, h, w)


def signal(n=12):
    return torch.randn(2, 4, n)


def matrix():
    return torch.randn(6, 8)


# name: (function of a tensor and a number, maker of the tensor), with the numbers of SIX unless the row has others
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
    "view of windows": (lambda x, n: (x.unfold(-1, n, 2), x.unfold(1, 3, n), x * 2), signal),
    "view of windows, columns": (lambda x, n: x.transpose(1, 2).unfold(dimension=1, size=n, step=n).sum(-1), signal),
    "unfold": (lambda x, n: F.unfold(x, (n, 2), padding=1, stride=n), image),
    "unfold, dilation": (lambda x, n: F.unfold(x, 2, dilation=n), image),
    "fold": (lambda x, n: F.fold(F.unfold(x, n, padding=1, stride=2), (12, 12), n, padding=1, stride=2), image),
    "pixel_shuffle": (lambda x, n: F.pixel_shuffle(x.repeat(1, n * n, 1, 1), n), image),
    "pixel_unshuffle": (lambda x, n: F.pixel_unshuffle(F.pad(x, (0, 12 * n - 12, 0, 12 * n - 12)), n), image),
}


def whole(h, w):
    return image(h, w), None


# Windows given by sizes: the number is not used.
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
        torch.testing.assert_close(found[1], found[0], equal_nan=True)
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
    # The first number is specialized until another comes. The derivative of a view of windows asks whether they
    # overlap. In "two", the second number belongs to the other window, and its derivative asks for it.
    most = 3 if name in ("view of windows", "avg_pool2d, two") else 2
    check_gradients(function, [(make(), n) for n in SIX], most)


@pytest.mark.parametrize("pool", [F.avg_pool2d, F.max_pool2d])
def test_a_number_that_stays_is_a_fixed_window(pool):
    """Code for a window of any size is slower. It is made when the number has varied, not when another argument has."""
    compiled = cresset.compile(lambda x, n: pool(x, n, 2))
    for make in (lambda: image(9, 8), lambda: image(9, 8).double(), lambda: image(7, 11).requires_grad_()):
        x = make()
        assert_same_call(lambda x, n: pool(x, n, 2), compiled, x, 3)
    graphs = cresset.stats()["graphs"]
    for variant in cresset._C.cache_entries(compiled):
        assert any(guard.split(" at ")[0].endswith(" == 3") for guard in variant["guards"]), "specialized each time"
    for n in (2, 4, 5):
        assert_same_call(lambda x, n: pool(x, n, 2), compiled, image(9, 8), n)
    assert cresset.stats()["graphs"] == graphs + 1


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


# ---- positions

OFFSETS = (-2, -1, 0, 1, 2, 3)
PLACES = {
    "diagonal": (lambda x, n: x.diagonal(n), matrix),
    "diagonal of others": (lambda x, n: torch.diagonal(x, dim1=-1, dim2=0, offset=n), lambda: torch.randn(5, 3, 7)),
    "diag of a matrix": (lambda x, n: torch.diag(x, n), matrix),
    "diag of a vector": (lambda x, n: torch.diag(x[0], diagonal=n), matrix),
    "diagflat": (lambda x, n: torch.diagflat(x, n), matrix),
    "diag_embed": (lambda x, n: torch.diag_embed(x, n), matrix),
    "written to": (lambda x, n: (x * 1).diagonal(n).add_(1), matrix),
    "tril_indices": (lambda x, n: (x, torch.tril_indices(5, 7, n)), matrix),
    "triu_indices": (lambda x, n: (x, torch.triu_indices(7, 4, offset=n)), matrix),
    "tril, triu": (lambda x, n: (x.tril(n), x.triu(n)), matrix),
    "rot90": (lambda x, n: torch.rot90(x, n), matrix),
    "diagonal_scatter": (lambda x, n: x.diagonal_scatter(x.diagonal(n) * 2, n), matrix),
    "round": (lambda x, n: (x.round(decimals=n), torch.round(x * 99, decimals=n)), lambda: matrix().double()),
}
WINDOW = torch.signal.windows
LENGTHS = {
    "windows of signals": (
        lambda x, n: (WINDOW.bartlett(n), WINDOW.cosine(n), WINDOW.hamming(n), WINDOW.hann(n), x * n),
        matrix,
    ),
    "windows of signals, periodic": (
        lambda x, n: (WINDOW.blackman(n, sym=False) + 1, WINDOW.nuttall(n, sym=False) + 1, WINDOW.kaiser(n, beta=9.0)),
        matrix,
    ),
    "windows of signals, with numbers": (
        lambda x, n: (WINDOW.exponential(n, tau=2.0), WINDOW.gaussian(n, std=n), WINDOW.general_cosine(n, a=[1, n])),
        matrix,
    ),
    "linspace": (
        lambda x, n: (
            torch.linspace(start=0, end=n, steps=n, layout=torch.strided, requires_grad=False),
            torch.linspace(-x[0, 0].detach(), x[0, 1].detach(), n),
        ),
        matrix,
    ),
    "variance": (lambda x, n: (x.var(1, correction=n % 6), torch.std_mean(x, 1, correction=n % 6)), matrix),
    "parts of three": (lambda x, n: (x.repeat(2, 1, 1).dsplit([n]), x.T[:n].tensor_split((n - 1,))), matrix),
    "tril_indices": (lambda x, n: (x, torch.tril_indices(n, n), torch.tril_indices(4, n, 1)), matrix),
    "triu_indices": (lambda x, n: x[0, torch.triu_indices(n, n + 1, 1)[0]], matrix),
    "hann_window": (lambda x, n: (x, torch.hann_window(n), torch.hann_window(n, False, dtype=torch.float64)), matrix),
    "hamming_window": (lambda x, n: (x, torch.hamming_window(n), torch.hamming_window(n, False, 0.5)), matrix),
    "blackman_window": (lambda x, n: (x, torch.blackman_window(n), torch.blackman_window(n, False)), matrix),
    "bartlett_window": (lambda x, n: (x, torch.bartlett_window(n), torch.bartlett_window(n, False)), matrix),
    "kaiser_window": (lambda x, n: (x, torch.kaiser_window(n), torch.kaiser_window(n, False, 5.0)), matrix),
    "frequencies": (lambda x, n: (x, torch.fft.fftfreq(n), torch.fft.rfftfreq(n, 0.5)), matrix),
    "logspace": (lambda x, n: (x, torch.logspace(0, 1, n), torch.logspace(1, 3, n, 2)), matrix),
    "vander": (lambda x, n: (torch.vander(x[0], n), torch.vander(x[0], N=n, increasing=True)), matrix),
    "histogram": (lambda x, n: (x.histc(n), torch.histc(x, n, -1, 1), torch.histc(x, bins=n, min=-2, max=0.5)), matrix),
    "polygamma": (lambda x, n: (torch.polygamma(n, x.abs() + 1), torch.special.polygamma(n, x + 9)), matrix),
    "mvlgamma": (lambda x, n: torch.mvlgamma(x.abs() + 9, n), matrix),
    "covariance": (lambda x, n: (torch.cov(x, correction=n), x[0].cov(correction=n)), matrix),
    "parts": (lambda x, n: (x.hsplit((n,)), torch.hsplit(x, [1, n]), x.T.vsplit((n - 1, n))), matrix),
    "gradient": (lambda x, n: torch.gradient(x, spacing=n, dim=1), matrix),
    "integral": (lambda x, n: (torch.cumulative_trapezoid(x, dx=n), torch.trapezoid(x, dx=n, dim=0)), matrix),
    "stft": (
        lambda x, n: torch.stft(x.flatten(1), 2 * n, n, window=torch.ones(2 * n), return_complex=True) * 1j,
        signal,
    ),
    "scale factor": (lambda x, n: (F.interpolate(x, scale_factor=n), F.interpolate(x, scale_factor=(n, 2))), image),
    "scale factor, linear": (lambda x, n: F.interpolate(x, scale_factor=n, mode="bilinear"), image),
    "scale factor, corners": (
        lambda x, n: F.interpolate(x, scale_factor=n, mode="linear", align_corners=True),
        signal,
    ),
}
OF_SIZES = {
    "tensor_split": lambda x, y: (*x.tensor_split(3), *torch.tensor_split(y, 2), *x.T.tensor_split(2, dim=-1)),
    "block_diag": lambda x, y: torch.block_diag(x, y, y[0] if y.shape[0] > 0 else y, x * 2),
    "multi_dot": lambda x, y: torch.linalg.multi_dot([x, y.T, y]),
    "multi_dot, vectors": lambda x, y: torch.linalg.multi_dot([x[:, 0], x, y.T]),
    "chain_matmul": lambda x, y: torch.chain_matmul(y, x.T, x, torch.ones(3, 2)),
    "pad_sequence": lambda x, y: torch.nn.utils.rnn.pad_sequence([x, y, x * 2], batch_first=True),
    "pad_sequence, left": lambda x, y: torch.nn.utils.rnn.pad_sequence([x, y], padding_value=-1.0, padding_side="left"),
    "combinations": lambda x, y: (torch.combinations(x[:, 0]), torch.combinations(y[:, 0], with_replacement=True)),
    "vander": lambda x, y: torch.vander(x[:, 0]),
    "positions": lambda x, y: x[torch.tril_indices(x.size(0), y.size(0))[0]],
    "window": lambda x, y: x * torch.hann_window(x.size(0)).unsqueeze(1),
    "diagonal": lambda x, y: (x @ y.T).diagonal(x.size(0) // 2),
    "view of windows": lambda x, y: torch.cat([x, y, x, y, x]).unfold(0, y.size(0), 1).sum(-1),
}


@pytest.mark.parametrize("name", PLACES)
def test_places(name):
    function, make = PLACES[name]
    check(function, [(make(), n) for n in OFFSETS], 4 if name == "rot90" else 3)


@pytest.mark.parametrize("name", PLACES)
def test_places_with_gradients(name):
    function, make = PLACES[name]
    check_gradients(function, [(make(), n) for n in OFFSETS], 4 if name == "rot90" else 3)


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths(name):
    function, make = LENGTHS[name]
    check(function, [(make(), n) for n in SIX])


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_of_one_and_none(name):
    function, make = LENGTHS[name]
    compiled = cresset.compile(function)
    for n in (3, 1, 0, -1, 2):
        assert_same_call(function, compiled, make(), n)


@pytest.mark.parametrize("name", OF_SIZES)
def test_of_sizes(name):
    calls = [
        (torch.randn(m, 3), torch.randn(n, 3)) for m, n in ((4, 5), (5, 4), (3, 3), (2, 7), (6, 2), (1, 4), (2, 1))
    ]
    check(OF_SIZES[name], calls, 3)
    compiled = cresset.compile(OF_SIZES[name])
    assert_same_call(OF_SIZES[name], compiled, torch.randn(0, 3), torch.randn(2, 3))


@pytest.mark.parametrize("name", [name for name in OF_SIZES if name not in ("vander", "view of windows")])
def test_of_sizes_with_gradients(name):
    calls = [(torch.randn(m, 3), torch.randn(n, 3)) for m, n in ((4, 5), (5, 4), (3, 3), (2, 7), (6, 2))]
    check_gradients(OF_SIZES[name], calls, 3)


# ---- floats


def positive():
    return torch.rand(6, 8) + 0.1


LABELS = torch.tensor([0, 3, 7, 2, 2, 5])
FLOATS_OF = (0.1, 0.2, 0.3, 0.45, 0.6, 0.7)
POWERS = (1.5, 1.0, 2.0, 2.5, 3.0, 4.0)
Q = torch.randn(2, 3, 5, 8)
MASK = torch.rand(5, 5) > 0.3
NUMBERS = {
    "variance": (lambda x, f: (x.var(1, correction=f), torch.std(x, (0, 1), correction=f, keepdim=True)), matrix),
    "variance, mean": (lambda x, f: (*torch.var_mean(x, 1, correction=f), *torch.std_mean(x, correction=f)), matrix),
    "window of a signal": (
        lambda x, f: (
            x[:, :6] * (WINDOW.gaussian(6, std=f, dtype=torch.float64) + WINDOW.kaiser(6, beta=f, dtype=torch.float64))
        ),
        matrix,
    ),
    "celu": (lambda x, f: F.celu(x, f), matrix),
    "softshrink": (lambda x, f: F.softshrink(x, f), matrix),
    "rrelu": (lambda x, f: F.rrelu(x, f, 0.9), matrix),
    "logit": (lambda x, f: torch.logit(x / 1.2, f / 2), positive),
    "layer_norm": (lambda x, f: F.layer_norm(x, (8,), x[0], x[1], eps=f), matrix),
    "layer_norm, two": (lambda x, f: F.layer_norm(x, (6, 8), eps=f), matrix),
    "rms_norm": (lambda x, f: F.rms_norm(x, (8,), x[1], eps=f), matrix),
    "batch_norm": (lambda x, f: F.batch_norm(x, x.new_zeros(8), x.new_ones(8), x[0], x[1], eps=f), matrix),
    "batch_norm, training": (lambda x, f: F.batch_norm(x, None, None, training=True, eps=f), matrix),
    "group_norm": (lambda x, f: F.group_norm(x, 2, x[0, :, 0], eps=f), signal),
    "instance_norm": (lambda x, f: F.instance_norm(x, eps=f), signal),
    "addmm": (lambda x, f: torch.addmm(x[:, :6], x, x.T, alpha=f, beta=1 - f), matrix),
    "addmm, row": (lambda x, f: x[0, :6].addmm(x, x.T, alpha=f), matrix),
    "addmm_": (lambda x, f: (x[:, :6] * 1).addmm_(x, x.T, alpha=f, beta=f), matrix),
    "baddbmm": (lambda x, f: torch.baddbmm(x[:, :, :4], x[:, :, :12], x.mT, beta=f, alpha=f), lambda: signal(12)),
    "addbmm": (lambda x, f: torch.addbmm(x[0, :, :4], x, x.mT, alpha=f), signal),
    "addmv": (lambda x, f: torch.addmv(x[:, 0], x, x[0], alpha=f), matrix),
    "addr": (lambda x, f: torch.addr(x, x[:, 0], x[0], alpha=f, beta=f), matrix),
    "rsub": (lambda x, f: torch.rsub(x, x + 1, alpha=f), matrix),
    "index_add": (lambda x, f: x.index_add(0, LABELS % 6, x, alpha=f), matrix),
    "fmod": (lambda x, f: (torch.fmod(x, f), torch.fmod((x * 8).long(), f)), matrix),
    "xlogy": (lambda x, f: (torch.xlogy(x, f), torch.xlogy(f, x), torch.special.xlog1py(x, f)), positive),
    "copysign": (lambda x, f: torch.copysign(x, -f), matrix),
    "float_power": (lambda x, f: (torch.float_power(x, f), (x * 1).pow_(f)), positive),
    "isclose": (lambda x, f: (x * torch.isclose(x, x + 0.3, rtol=f, atol=f), torch.isclose(x, x, f)), matrix),
    "pad": (lambda x, f: (F.pad(x, (1, 2), value=f), F.pad(x, (-1, 2, 0, 1), "constant", f)), matrix),
    "module that pads": (lambda x, f: torch.nn.ConstantPad1d(2, f)(x), matrix),
    "index_fill": (lambda x, f: x.index_fill(0, torch.tensor([1, 3]), f), matrix),
    "scatter": (lambda x, f: (x.scatter(1, LABELS[:, None], f), (x * 1).scatter_(1, LABELS[:, None], f)), matrix),
    "nan_to_num": (lambda x, f: (x / (x > 0)).nan_to_num(f, 1 + f, -f), matrix),
    "trapezoid": (lambda x, f: torch.trapezoid(x, dx=f), matrix),
    "quantile": (lambda x, f: (x.quantile(f, 1), x.quantile(f), x.quantile(f, 0, keepdim=True)), matrix),
    "nanquantile": (
        lambda x, f: (
            x.nanquantile(f, 1),
            x.masked_fill(x < -1, math.nan).nanquantile(f),
            x.nanquantile(f, 0, keepdim=True),
        ),
        matrix,
    ),
    "quantile, between": (
        lambda x, f: torch.stack(
            [x.quantile(f, 1, interpolation=i) for i in ("lower", "higher", "nearest", "midpoint")]
        ),
        matrix,
    ),
    "integral": (lambda x, f: torch.cumulative_trapezoid(x, dx=f, dim=0), matrix),
    "gradient": (lambda x, f: torch.gradient(x, spacing=f)[1], matrix),
    "multi_margin": (lambda x, f: F.multi_margin_loss(x, LABELS, margin=f), matrix),
    "multi_margin, squares": (lambda x, f: F.multi_margin_loss(x, LABELS, 2, f, reduction="none"), matrix),
    "angles": (lambda x, f: x * math.radians(f) + x / math.degrees(f), matrix),
    "lengths": (lambda x, f: x * math.hypot(f, 2.0) + math.fabs(-f) * x + math.copysign(f, -1.0), matrix),
    "powers": (lambda x, f: x * math.pow(f, 1.5) * math.sinh(f) * math.erf(f) * math.lgamma(f + 1), matrix),
    "close": (lambda x, f: x * 2 if math.isclose(f, 0.05, abs_tol=0.01) else x * 3, matrix),
    "pairwise_distance": (lambda x, f: F.pairwise_distance(x, x.flip(0), eps=f), matrix),
    "cosine_similarity": (lambda x, f: F.cosine_similarity(x / 9, x.flip(0), eps=f), matrix),
    "renorm": (lambda x, f: torch.renorm(x, 2, 0, f), matrix),
    "attention, scale": (lambda x, f: F.scaled_dot_product_attention(x * Q, Q, Q, scale=f), lambda: torch.randn(5, 8)),
    "attention, causal": (
        lambda x, f: F.scaled_dot_product_attention(x * Q, Q, Q, is_causal=True, scale=f),
        lambda: torch.randn(5, 8),
    ),
    "attention, dropout": (
        lambda x, f: F.scaled_dot_product_attention(x * Q, Q, Q, MASK, dropout_p=f),
        lambda: torch.randn(5, 8),
    ),
    "label smoothing": (lambda x, f: F.cross_entropy(x, LABELS, label_smoothing=f), matrix),
    "label smoothing, weights": (
        lambda x, f: F.cross_entropy(x, LABELS, x[0].detach().abs(), ignore_index=2, label_smoothing=f),
        matrix,
    ),
    "label smoothing, sum": (lambda x, f: F.cross_entropy(x, LABELS, reduction="sum", label_smoothing=f), matrix),
    "label smoothing, image": (
        lambda x, f: F.cross_entropy(x, x.detach().argmax(1) % 3, ignore_index=1, reduction="none", label_smoothing=f),
        image,
    ),
    "label smoothing, shares": (lambda x, f: F.cross_entropy(x, x.softmax(-1), label_smoothing=f), matrix),
    "huber": (lambda x, f: F.huber_loss(x, x.flip(0) * 0.5, delta=f), matrix),
    "smooth_l1": (lambda x, f: F.smooth_l1_loss(x, x.flip(0) * 0.5, reduction="none", beta=f), matrix),
    "margin_ranking": (lambda x, f: F.margin_ranking_loss(x[0], x[1], x[2].detach().sign(), margin=f), matrix),
    "triplet": (lambda x, f: F.triplet_margin_loss(x, x.flip(0), x.flip(1), margin=f, swap=True), matrix),
    "hinge": (lambda x, f: F.hinge_embedding_loss(x, x.detach().sign(), margin=f), matrix),
    "cosine_embedding": (lambda x, f: F.cosine_embedding_loss(x, x.flip(0), (-1) ** LABELS, margin=f), matrix),
    "poisson": (lambda x, f: F.poisson_nll_loss(x, x.detach(), log_input=False, eps=f), positive),
    "dropout": (lambda x, f: F.dropout(x, f), matrix),
    "dropout, in place": (lambda x, f: F.dropout(x * 1, f, inplace=True), matrix),
    "dropout, not training": (lambda x, f: F.dropout(x, f, training=False) * 2, matrix),
    "dropout, module": (lambda x, f: torch.nn.Dropout(f)(x), matrix),
    "dropout1d": (lambda x, f: F.dropout1d(x, f), signal),
    "dropout2d": (lambda x, f: F.dropout2d(x, f), image),
    "alpha_dropout": (lambda x, f: F.alpha_dropout(x, f), matrix),
    "feature_alpha_dropout": (lambda x, f: F.feature_alpha_dropout(x, f, training=True), image),
    "draws": (
        lambda x, f: (
            x * torch.empty(6, 1).bernoulli_(f),
            torch.bernoulli(x.detach(), f),
            torch.empty(4).uniform_(-f, f),
            torch.empty(4).normal_(0, f),
            torch.empty(4).exponential_(f),
            torch.normal(f, 1.0, (3,)),
            torch.empty(4).log_normal_(0.1, f),
            torch.empty(4).cauchy_(f, f),
            torch.empty(5, 4).t().geometric_(f),
        ),
        matrix,
    ),
}
OF_POWERS = {
    "norm": (lambda x, f: x.norm(f), matrix),
    "norm of zeros": (lambda x, f: torch.norm(x * (x > 0), f, dim=1), matrix),
    "vector_norm": (lambda x, f: torch.linalg.vector_norm(x, f, dim=(0, 1), keepdim=True), matrix),
    "normalize": (lambda x, f: F.normalize(x, f), matrix),
    "pairwise_distance": (lambda x, f: F.pairwise_distance(x, x.flip(0), p=f), matrix),
    "cdist": (lambda x, f: torch.cdist(x, x[:4] + 1, p=f), matrix),
    "dist": (lambda x, f: torch.dist(x, x.flip(0), p=f), matrix),
    "pdist": (lambda x, f: F.pdist(x, f), matrix),
    "renorm": (lambda x, f: torch.renorm(x, f, 0, 1.0), matrix),
    "triplet": (lambda x, f: F.triplet_margin_loss(x, x.flip(0), x.flip(1), p=f, eps=f / 1000), matrix),
    "lp_pool1d": (lambda x, f: F.lp_pool1d(x, f, 2), lambda: torch.rand(2, 4, 12)),
}


def numbers_of(name):
    return (*NUMBERS[name], FLOATS_OF) if name in NUMBERS else (*OF_POWERS[name], POWERS)


@pytest.mark.parametrize("name", [*NUMBERS, *OF_POWERS])
def test_numbers(name):
    function, make, numbers = numbers_of(name)
    check(function, [(make(), f) for f in numbers])


NOT_DIFFERENTIABLE = ("isclose",)


@pytest.mark.parametrize("name", [*NUMBERS, *OF_POWERS])
def test_numbers_with_gradients(name):
    function, make, numbers = numbers_of(name)
    check_gradients(function, [(make(), f) for f in numbers])


TOLERANCES = {
    "pinv": lambda x, f: torch.linalg.pinv(x, rtol=f),
    "pinv, both": lambda x, f: torch.linalg.pinv(x, atol=f, rtol=0.01),
    "pinverse": lambda x, f: torch.pinverse(x, f),
    "pinv, symmetric": lambda x, f: torch.linalg.pinv(x @ x.T, rtol=f, hermitian=True),
    "rank": lambda x, f: torch.linalg.matrix_rank(x, tol=f),
    "rank, relative": lambda x, f: torch.linalg.matrix_rank(x, rtol=f),
    "rank, both": lambda x, f: torch.linalg.matrix_rank(x, atol=f, rtol=0.01),
}


@pytest.mark.parametrize("name", TOLERANCES)
def test_tolerances(name):
    check(TOLERANCES[name], [(matrix().double(), f) for f in FLOATS_OF])


@pytest.mark.parametrize("name", [name for name in TOLERANCES if "pinv" in name])
def test_tolerances_with_gradients(name):
    check_gradients(TOLERANCES[name], [(matrix().double(), f / 9) for f in FLOATS_OF])


DRAWN = {
    "about tensors": lambda x, f: torch.normal(x, f),
    "of several widths": lambda x, f: torch.normal(f, x.abs()),
    "folded": lambda x, f: (
        x.scatter(1, LABELS[:, None], f, reduce="add"),
        (x * 1).scatter_(1, LABELS[:, None], f, reduce="multiply"),
    ),
    "counted": lambda x, f: (torch.histc(x, 4, -f, f), x.histc(4, 0, 5 * f)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_has_no_gradients(name):
    check(DRAWN[name], [(matrix(), f) for f in FLOATS_OF])


class Holder(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.number = function, 0.5

    def forward(self, x):
        return self.function(x, self.number)


@pytest.mark.parametrize("name", [*NUMBERS, *OF_POWERS])
def test_numbers_of_a_module(name):
    """A schedule: the varying number is an attribute."""
    function, make, numbers = numbers_of(name)
    module = Holder(function)
    compiled = cresset.compile(module)
    for f in numbers:
        module.number = f
        assert_same_call(module, compiled, make())
    assert cresset.stats()["graphs"] <= 2, cresset.stats()["recompiles"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", [*NUMBERS, *OF_POWERS])
def test_numbers_of_dtypes(name, dtype):
    function, make, numbers = numbers_of(name)
    compiled = cresset.compile(function)
    for f in numbers:
        assert_same_call(function, compiled, make().to(dtype), f)


REFUSED = {
    "dropout": lambda x, f: F.dropout(x, f),
    "of the operator": lambda x, f: torch.dropout(x, f, True),
    "huber": lambda x, f: F.huber_loss(x, x + 1, delta=f),
    "smooth_l1": lambda x, f: F.smooth_l1_loss(x, x + 1, beta=f),
    "softshrink": lambda x, f: F.softshrink(x, f),
    "celu": lambda x, f: F.celu(x, f),
    "bernoulli_": lambda x, f: x.bernoulli_(f),
    "normal_": lambda x, f: x.normal_(0, f),
    "uniform_": lambda x, f: x.uniform_(0, f),
    "exponential_": lambda x, f: x.exponential_(f),
    "log_normal_": lambda x, f: x.log_normal_(0.0, f),
    "cauchy_": lambda x, f: x.cauchy_(0.0, f),
    "geometric_": lambda x, f: x.geometric_(f),
    "variance": lambda x, f: x.var(0, correction=f * 8),
    "norm": lambda x, f: x.norm(f),
    "addmm": lambda x, f: torch.addmm(x, x, x, alpha=f),
    "addmm of nothing": lambda x, f: torch.addmm(x / 0, x.new_ones(6, 0), x.new_ones(0, 8), beta=f),
    "layer_norm": lambda x, f: F.layer_norm(x, (7,), eps=f),
    "pad": lambda x, f: F.pad(x, (-9, 0), value=f),
    "quantile": lambda x, f: x.quantile(f, 1),
    "label smoothing": lambda x, f: F.cross_entropy(x, LABELS, label_smoothing=f),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_eager_refuses(name):
    compiled = cresset.compile(REFUSED[name])
    for f in (0.5, 0.25, 0.0, 1.0, 1.5, -0.5, float("inf"), float("nan"), 0.75):
        assert_same_call(REFUSED[name], compiled, matrix(), f)


def test_a_schedule_of_momentum():
    def step(norm, x, momentum):
        norm.momentum = momentum
        return norm(x)

    mine, its = torch.nn.BatchNorm1d(8), torch.nn.BatchNorm1d(8)
    compiled = cresset.compile(step)
    for momentum in FLOATS_OF:
        x = matrix()
        torch.testing.assert_close(compiled(mine, x, momentum), step(its, x, momentum))
        torch.testing.assert_close(mine.running_mean, its.running_mean)
        torch.testing.assert_close(mine.running_var, its.running_var)
        assert int(mine.num_batches_tracked) == int(its.num_batches_tracked)


def test_sizes_that_are_broadcast():
    def weighted(x, y, weight):
        sizes = torch._C._infer_size(x.size(), weight.size())
        loss = F.binary_cross_entropy(x, y, weight=weight)
        return loss, weight.expand(sizes), type(sizes)

    compiled = cresset.compile(weighted)
    for rows, columns, of_weight in [(3, 4, 4), (5, 2, 2), (5, 2, 2), (3, 4, 5), (6, 7, 7)]:
        x, y = torch.rand(rows, columns), torch.rand(rows, columns)
        assert_same_call(weighted, compiled, x, y, torch.rand(of_weight))
    assert cresset.stats()["graphs"] == 1


def test_histograms_of_what_wants_gradients():
    def spread(x, n):
        return torch.histc(x, n), x.histc(n, -1, 1), x * n

    compiled = cresset.compile(spread)
    for n in SIX:
        counts, within, scaled = compiled(matrix().requires_grad_(), n)
        assert not counts.requires_grad and not within.requires_grad and scaled.requires_grad
    assert cresset.stats()["graphs"] == 1


def test_many_reshapes_in_a_row():
    """The index expression of a read grows with each reshape between read and store: the growth has a limit."""

    def turned(x, times):
        for i in range(times):
            x = x.reshape(x.shape[1], x.shape[0]) if i % 2 == 0 else x[:, : x.shape[1] - 1]
            x = x + x.shape[0]
        return x

    def views_alone(x, times):
        for _ in range(times):
            x = x.reshape(x.shape[1], x.shape[0]).t().reshape(x.shape[1] * x.shape[0]).view(x.shape)
        return x.sum(0), x + 1

    for program in (turned, views_alone):
        compiled = cresset.compile(program)
        for rows, columns in [(90, 43), (71, 88), (65, 67)]:
            assert_same_call(program, compiled, torch.randn(rows, columns), 60)
        assert cresset.stats()["graphs"] == 1
        cresset.reset()
