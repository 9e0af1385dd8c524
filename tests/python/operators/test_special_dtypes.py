"""Dtypes without arithmetic in kernels: floats of 8 bits, unsigned numbers of 16 to 64 bits, complex numbers of halves.

Graphs hold their tensors. Kernels convert floats of 8 bits; every other operator goes through ATen.
"""

from __future__ import annotations

import pytest
import torch

import cresset

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
WIDE = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool)


def bits(tensor):
    """Codes of 8-bit floats, with one code for NaN."""
    if not (tensor.dtype.is_floating_point and tensor.itemsize == 1):
        return tensor
    return tensor.view(torch.uint8).to(torch.int32).masked_fill(tensor.float().isnan(), -1)


def assert_same(got, expected):
    assert got.dtype == expected.dtype and got.shape == expected.shape and got.stride() == expected.stride()
    torch.testing.assert_close(bits(got), bits(expected), rtol=0, atol=0, equal_nan=True)


def every_code(dtype):
    return torch.arange(256, dtype=torch.uint8).view(dtype)


def numbers(seed=0):
    """Float32 numbers of all magnitudes, ties, limits, infinities and NaN."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(-(2**31), 2**31 - 1, (20_000,), generator=generator, dtype=torch.int64).to(torch.int32)
    near = torch.randn(4096, generator=generator) * torch.logspace(-6, 3, 4096)
    edges = torch.tensor(
        [0.0, -0.0, 448, 464, 464.1, 480, 57344, 61440, 61441, 65536, 240, 248, 249, 2**-9, 2**-10, 2**-17]
    )
    special = torch.tensor([float("inf"), float("-inf"), float("nan"), 1e-45, 3e38])
    return torch.cat((codes.view(torch.float32), near, edges, -edges, special))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("to", WIDE, ids=str)
def test_conversion_from_float8(dtype, to):
    x = every_code(dtype)
    if to is torch.int32:
        x = x[torch.isfinite(x.float())]
    compiled = cresset.compile(lambda x: x.to(to), fullgraph=True)
    for part in (x, x[1:200:3], x[:5]):
        assert_same(compiled(part), part.to(to))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_conversion_to_float8(dtype):
    def program(x):
        return x.to(dtype), (x * 0.5).to(dtype).float() + 1, x.double().to(dtype), x.half().to(dtype)

    compiled = cresset.compile(program, fullgraph=True)
    for x in (numbers(), numbers(1)[:4099], numbers(2)[:64].view(8, 8).t()):
        for got, expected in zip(compiled(x), program(x), strict=True):
            assert_same(got, expected)


def test_conversions_are_parts_of_kernels():
    scale = torch.tensor(0.25)

    def quantized(x):
        y = (x * scale).clamp(-448, 448).to(torch.float8_e4m3fn)
        return y, y.to(torch.float32) / scale

    cresset.reset()
    compiled = cresset.compile(quantized, fullgraph=True)
    x = torch.randn(33, 64) * 900
    for got, expected in zip(compiled(x), quantized(x), strict=True):
        assert_same(got, expected)
    stats = cresset.stats()
    assert stats["graphs"] == 1 and stats["extern_calls"] == 0 and stats["eager_calls"] == 0


@pytest.mark.parametrize("dtype", (*FLOAT8, torch.float8_e8m0fnu, *UNSIGNED, torch.complex32), ids=str)
def test_views_and_copies(dtype):
    if dtype is torch.complex32:
        x = torch.randn(6, 8, dtype=torch.complex64).to(dtype)
    else:
        x = torch.arange(48 * dtype.itemsize, dtype=torch.uint8).view(dtype).view(6, 8)

    def program(x):
        return (
            x.t(),
            x[1:, ::2].clone(),
            x.reshape(-1, 4).contiguous(),
            x.view(4, 12)[0],
            x.unsqueeze(0).expand(2, 6, 8),
        )

    compiled = cresset.compile(program, fullgraph=True)
    for given in (x, x.t().contiguous().view(6, 8)):
        for got, expected in zip(compiled(given), program(given), strict=True):
            assert_same(got, expected)
            assert got._is_view() == expected._is_view()


@pytest.mark.parametrize("dtype", UNSIGNED, ids=str)
def test_unsigned_operators(dtype):
    x = torch.tensor([0, 1, 7, 60_000], dtype=dtype)

    def program(x):
        return x.to(torch.int64) + 1, x.to(torch.float32) * 2, (x.to(torch.int64) * 3).to(dtype), x == x

    compiled = cresset.compile(program, fullgraph=True)
    for got, expected in zip(compiled(x), program(x), strict=True):
        assert_same(got, expected)


def test_complex_halves():
    x = torch.randn(4, 5, dtype=torch.complex64).to(torch.complex32)

    def program(x):
        return x.to(torch.complex64) * 2, torch.view_as_real(x) + 1, x.real.float(), x.conj().resolve_conj()

    compiled = cresset.compile(program, fullgraph=True)
    for got, expected in zip(compiled(x), program(x), strict=True):
        assert_same(got, expected)


def test_gradients_through_conversions():
    def quantized(x, w):
        y = (x * w).to(torch.float8_e4m3fn).to(torch.float32)
        return (y * w).sum()

    x, w = torch.randn(5, 7, requires_grad=True), torch.randn(7, requires_grad=True)
    expected = torch.autograd.grad(quantized(x, w), (x, w))
    got = torch.autograd.grad(cresset.compile(quantized)(x, w), (x, w))
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_errors_are_those_of_eager_mode():
    x = torch.randn(3).to(torch.float8_e4m3fn)

    def program(x):
        return x + x

    with pytest.raises(Exception) as expected:
        program(x)
    with pytest.raises(type(expected.value)) as got:
        cresset.compile(program)(x)
    assert str(got.value) == str(expected.value)


def test_scaled_products():
    a = torch.randn(16, 32).to(torch.float8_e4m3fn)
    b = torch.randn(48, 32).to(torch.float8_e4m3fn).t()
    scale = torch.tensor(0.5)

    def program(a, b, scale):
        return torch._scaled_mm(a, b, scale, scale, out_dtype=torch.bfloat16) + 1

    try:
        expected = program(a, b, scale)
    except RuntimeError as error:
        pytest.skip(f"eager mode: {error}")
    compiled = cresset.compile(program, fullgraph=True)
    torch.testing.assert_close(compiled(a, b, scale), expected)
    other = torch.randn(24, 32).to(torch.float8_e4m3fn)
    torch.testing.assert_close(compiled(other, b, scale), program(other, b, scale))
