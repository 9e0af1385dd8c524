"""Special code in fused kernels, at the sizes of the special cases: positions of maxima, constant indices, sines of
large numbers, gathered rows, blocks of dimensions."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same, assert_same_call

import cresset

INF, NAN = float("inf"), float("nan")


def rows_with(length: int, *specials: float) -> torch.Tensor:
    """Ties in each row, and each of the special values alone, twice, and everywhere."""
    x = torch.randint(-3, 4, (40, length)).float()
    for k, special in enumerate(specials):
        x[3 * k, length // 2] = special
        x[3 * k + 1, length // 3] = x[3 * k + 1, -1] = special
        x[3 * k + 2] = special
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.uint8], ids=str)
@torch.no_grad()
def test_the_first_place_of_the_greatest(dtype):
    function = lambda x: (x.argmax(-1), x.argmin(-1), *x.max(-1), *x.min(0), x.argmax(), x.t().contiguous().argmin(0))  # noqa: E731
    compiled = cresset.compile(function)
    for length in (1, 2, 5, 15, 16, 17, 20, 31, 33, 48, 64, 65, 100, 129, 300):
        x = rows_with(length, INF, -INF, NAN) if dtype.is_floating_point else rows_with(length).abs()
        x = x.to(dtype)
        eager = [t for t in function(x)]
        if not dtype.is_floating_point:  # max and min may return any of equal positions, except for NaN of floats
            eager[3], eager[5] = x.argmax(-1), x.argmin(0)
        assert_same(compiled(x), tuple(eager))
    assert cresset.stats()["eager_calls"] == 0


GRIDS = {
    "rows_and_columns": lambda x, i, j: x[:, i[:, None], j[None, :]],
    "columns_and_rows": lambda x, i, j: x[:, i[None, :], j[:, None]],
    "first": lambda x, i, j: x[i[:, None], j[None, :]],
    "written": lambda x, i, j: x.index_put((i[:, None], j[None, :]), x[i[:, None], j] * 2, accumulate=True),
}


@pytest.mark.parametrize("name", GRIDS)
@torch.no_grad()
def test_grids_of_indices(name):
    """An index is constant along the rows of the result, the other along its columns."""
    function = GRIDS[name]
    compiled = cresset.compile(function)
    x = torch.randn(6, 6, 6)
    for i, j in (([0, 5, -1, 2], [3, 3, -6]), ([1], [0, 1, 2, 3, 4, 5]), ([], [1])):
        assert_same_call(function, compiled, x, torch.tensor(i, dtype=torch.int64), torch.tensor(j))
    for i, j in (([0, 6], [0, 1, 2]), ([0, 1], [0, -7, 1]), ([-7], [8])):
        assert_same_call(function, compiled, x, torch.tensor(i), torch.tensor(j))


@torch.no_grad()
def test_sines_of_large_numbers():
    """Angles are taken modulo a turn whatever their size; infinities have no sine."""
    function = lambda x: (x.sin(), x.cos(), (x * 0.5).sin() + (x * 0.5).cos())  # noqa: E731
    compiled = cresset.compile(function)
    turns = torch.arange(-4000, 4000) * 1.5707963267948966
    for x in (turns, turns * 17, turns * 1e4, turns * 1e30, torch.tensor([INF, -INF, NAN, 0.0, -0.0, 1e-40, 99999.9])):
        exact = [t.float() for t in (x.double().sin(), x.double().cos())]
        got = compiled(x)
        torch.testing.assert_close(list(got[:2]), exact, rtol=3e-7, atol=1e-44, equal_nan=True)
        assert_same(got, function(x))
    zeros = compiled(torch.tensor([0.0, -0.0]))[0]
    assert torch.equal(torch.signbit(zeros), torch.tensor([False, True]))


def patches(x, size):
    b, c, h, w = x.shape
    p = x.reshape(b, c, h // size, size, w // size, size)
    p = p.permute(0, 2, 4, 3, 5, 1).reshape(b, -1, size * size * c)
    return (p - p.mean(-1, keepdim=True)) / (p.var(-1, keepdim=True) + 1e-6).sqrt()


@torch.no_grad()
def test_rows_that_are_gathered_are_normalized():
    compiled = cresset.compile(lambda x: patches(x, 8))
    for shape in ((2, 3, 32, 24), (1, 5, 8, 64), (3, 3, 16, 16), (2, 17, 24, 8)):
        x = torch.randn(shape)
        assert_same(compiled(x), patches(x, 8))
    assert cresset.stats()["graphs"] == 1


def test_blocks_of_a_dimension_are_whole():
    """The number of elements shows it too, but for all dimensions together; without any element it shows nothing."""
    function = lambda x: x.view(x.shape[0], x.shape[1] // 4, 4, x.shape[2] // 2, 2).transpose(2, 3) * 2  # noqa: E731
    compiled = cresset.compile(function)
    with torch.no_grad():
        for shape in ((2, 8, 6), (3, 4, 10), (1, 16, 2)):
            assert_same_call(function, compiled, torch.randn(shape))
        assert cresset.stats()["graphs"] == 1
        for shape in ((2, 7, 6), (0, 7, 6), (2, 8, 5), (2, 0, 6)):
            assert_same_call(function, compiled, torch.randn(shape))


def bits_equal(got: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal bit by bit, except for the bits of NaN."""
    nan = expected.isnan()
    assert torch.equal(got.isnan(), nan)
    assert torch.equal(got.view(torch.int16)[~nan], expected.view(torch.int16)[~nan])


@torch.no_grad()
def test_bf16_is_rounded_as_eager_rounds():
    """All kinds of bits: subnormal numbers, ties, overflow to infinity, NaN; also rounded in the middle of a kernel."""
    compiled = cresset.compile(lambda x: (x.bfloat16(), x.bfloat16().float().floor().bfloat16()))
    bits = torch.randint(-(2**31), 2**31, (100_003,), dtype=torch.int64).to(torch.int32)
    small = torch.randint(0, 2**23, (1000,), dtype=torch.int64).to(torch.int32)
    ties = torch.arange(0x3F80_0000, 0x3F90_0000, 0x8000, dtype=torch.int64).to(torch.int32)
    specials = torch.tensor([INF, -INF, NAN, 0.0, -0.0, 3.4e38, -3.4e38, 1e-45]).view(torch.int32)
    for each in (bits, small, ties, specials, torch.cat((ties, small))):
        x = each.view(torch.float32)
        for got, expected in zip(compiled(x), (x.bfloat16(), x.bfloat16().float().floor().bfloat16()), strict=True):
            bits_equal(got, expected)


MOVES = {
    "pad": lambda x: torch.nn.functional.pad(x, (1, 2, 3, 0)),
    "pad by another number": lambda x: torch.nn.functional.pad(x, (1, 0), value=-1e9),
    "flip": lambda x: x.flip(-1),
    "where": lambda x: torch.where(x > 0, x, -x),
    "relu": lambda x: x.relu().t().contiguous(),
    "clamp": lambda x: x.clamp(-0.3, 0.7),
    "greatest": lambda x: torch.maximum(x.amax(-1, keepdim=True), -x.abs()),
    "cat": lambda x: torch.cat((x, x[:, :3]), -1),
}


@pytest.mark.parametrize("name", MOVES)
@torch.no_grad()
def test_bf16_that_is_moved(name):
    function = MOVES[name]
    compiled = cresset.compile(function)
    for shape in ((3, 5), (7, 64), (33, 81)):
        x = torch.randint(-(2**15), 2**15, shape, dtype=torch.int64).to(torch.int16).view(torch.bfloat16)
        bits_equal(compiled(x), function(x))
