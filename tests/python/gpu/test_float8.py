"""Floats of 8 bits on a GPU: conversions as parts of kernels, and products with scales."""

from __future__ import annotations

import cuda_device
import pytest
import torch

import cresset

simulated = cuda_device.use()
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)


def bits(tensor):
    """Codes of 8-bit floats, with one code for NaN."""
    tensor = tensor.cpu()
    if tensor.itemsize != 1:
        return tensor
    return tensor.view(torch.uint8).to(torch.int32).masked_fill(tensor.float().isnan(), -1)


def numbers(count):
    generator = torch.Generator().manual_seed(count)
    codes = torch.randint(-(2**31), 2**31 - 1, (count,), generator=generator, dtype=torch.int64).to(torch.int32)
    near = torch.randn(count, generator=generator) * torch.logspace(-6, 3, count)
    edges = torch.tensor([0.0, 448, 464, 464.1, 480, 57344, 61440, 61441, 65536, 240, 248, 249, 2**-9, 2**-10, 2**-17])
    return torch.cat((codes.view(torch.float32), near, edges, -edges, torch.tensor([float("inf"), float("nan")])))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("wide", [torch.float32, torch.bfloat16], ids=str)
def test_conversions(dtype, wide):
    def program(x, codes):
        return x.to(dtype), x.to(dtype).to(wide) * 2, codes.to(wide)

    compiled = cresset.compile(program, fullgraph=True)
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    for x in (numbers(512)[:1024].to(wide), numbers(500).to(wide), numbers(64)[:64].view(8, 8).t().to(wide)):
        for got, expected in zip(compiled(x.cuda(), codes.cuda()), program(x, codes), strict=True):
            assert got.dtype == expected.dtype and got.stride() == expected.stride()
            torch.testing.assert_close(bits(got), bits(expected), rtol=0, atol=0, equal_nan=True)


def test_a_quantization_is_a_kernel():
    def quantized(x):
        scale = x.abs().amax(-1, keepdim=True) / 448
        return (x / scale).to(torch.float8_e4m3fn), scale

    cresset.reset()
    compiled = cresset.compile(quantized, fullgraph=True)
    x = torch.randn(37, 256)
    for got, expected in zip(compiled(x.cuda()), quantized(x), strict=True):
        torch.testing.assert_close(got.cpu().float(), expected.float())
    stats = cresset.stats()
    assert stats["graphs"] == 1 and stats["kernels"] == 1 and stats["extern_calls"] == 0


@pytest.mark.skipif(simulated is not None, reason="the library of a GPU")
def test_scaled_products():
    def program(a, b, scale):
        return torch._scaled_mm(a, b, scale, scale, out_dtype=torch.bfloat16) + 1

    compiled = cresset.compile(program, fullgraph=True)
    b = torch.randn(64, 32, device="cuda").to(torch.float8_e4m3fn).t()
    scale = torch.tensor(0.5, device="cuda")
    for rows in (16, 48, 32):
        a = torch.randn(rows, 32, device="cuda").to(torch.float8_e4m3fn)
        torch.testing.assert_close(compiled(a, b, scale), program(a, b, scale))
    assert cresset.stats()["eager_calls"] == 0
