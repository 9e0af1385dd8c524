"""The kernels timed by `bench/kernels.py`: small functions, written as in real models, with sizes not tuned for
cresset.

A row is a name, a function, and a function which creates its inputs for a number of elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F


class Row(NamedTuple):
    name: str
    function: Callable
    inputs: Callable[[int], tuple]


ROWS: list[Row] = []


def row(name: str, function: Callable, inputs: Callable[[int], tuple]) -> None:
    ROWS.append(Row(name, function, inputs))


def real(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


def whole(*shape: int, low: int = 0, high: int = 100, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(low, high, shape, dtype=dtype)


def bits(*shape: int) -> torch.Tensor:
    return torch.rand(shape) < 0.5


def rest(n: int, *known: int) -> int:
    """Returns the extent which, beside the known extents, gives about n elements."""
    return max(1, n // math.prod(known))


def side(n: int, *known: int) -> int:
    """Returns an extent to be used twice; the extent is odd, so that no vector fits."""
    return max(1, math.isqrt(rest(n, *known))) | 1


# ------------------------------------------------------------------------------------------------------- pointwise


def gelu_chain(x, b):
    return F.gelu(x + b, approximate="tanh") * torch.sigmoid(x)


def rotary(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def interleaved_rotary(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


def mask_of(x):
    n = x.shape[-1]
    i = torch.arange(n)
    return torch.where(i[:, None] >= i[None, :], x, float("-inf"))


HALVES = (torch.bfloat16, torch.float16)


def pointwise() -> None:
    row("add", lambda x, y: x + y, lambda n: (real(rest(n, 33), 33), real(rest(n, 33), 33)))
    row("add a row", lambda x, y: x * y + 1, lambda n: (real(rest(n, 96), 96), real(96)))
    row("elu", lambda x: F.elu(x) + 1, lambda n: (real(rest(n, 33), 33),))
    row("add a column", lambda x, y: x * y + 1, lambda n: (real(rest(n, 96), 96), real(rest(n, 96), 1)))
    row("add a short row", lambda x, y: x * y + 1, lambda n: (real(rest(n, 5), 5), real(5)))
    row("add to a short row", lambda x, y: x * y + 1, lambda n: (real(rest(n, 5), 5), real(rest(n, 5), 1)))
    row("outer product", lambda x, y: x[:, None] * y[None, :], lambda n: (real(side(n)), real(side(n))))
    row("channels", lambda x, s: (x * s[:, None, None]).relu(), lambda n: (real(rest(n, 8, 49), 8, 7, 7), real(8)))
    row("middle broadcast", lambda x, y: x + y, lambda n: (real(rest(n, 12, 17), 12, 17), real(rest(n, 12, 17), 1, 17)))
    row("relu", torch.relu, lambda n: (real(n),))
    row("gelu", F.gelu, lambda n: (real(n),))
    row("silu", F.silu, lambda n: (real(n),))
    row("tanh", torch.tanh, lambda n: (real(n),))
    row("gelu chain", gelu_chain, lambda n: (real(rest(n, 65), 65), real(65)))
    row("swiglu", lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], lambda n: (real(rest(n, 128), 128),))
    row("pow", lambda x: x.abs() ** 1.7, lambda n: (real(n),))
    row("sin and cos", lambda x: torch.sin(x) + torch.cos(x), lambda n: (real(n),))
    row("log1p exp", lambda x: torch.log1p(torch.exp(-x.abs())), lambda n: (real(n),))
    row("erf", torch.erf, lambda n: (real(n),))
    row("clamp", lambda x: x.clamp(-1, 1), lambda n: (real(n),))
    row("float remainder", lambda x: x % x.shape[-1], lambda n: (real(rest(n, 37), 37) * 100,))
    row("float fmod", lambda x, y: torch.fmod(x, y), lambda n: (real(n) * 100, real(n).abs() + 1))
    row("slices", lambda x: x[1:, ::2] - x[:-1, 1::2], lambda n: (real(rest(n, 64) + 1, 64),))
    row("masked_fill", lambda x, m: x.masked_fill(m, -1e9), lambda n: (real(rest(n, 77), 77), bits(rest(n, 77), 77)))
    row("where", lambda m, x, y: torch.where(m, x, y), lambda n: (bits(n), real(n), real(n)))
    row("causal mask", mask_of, lambda n: (real(4, side(n, 4), side(n, 4)),))
    row("rotary", rotary, lambda n: (real(rest(n, 64), 64), real(rest(n, 64), 64), real(rest(n, 64), 64)))
    row("interleaved rotary", interleaved_rotary, lambda n: (real(rest(n, 64), 64), real(32), real(32)))
    row("bool and", lambda x, y: (x & ~y) | (y > x), lambda n: (bits(n), bits(n)))
    row("compare", lambda x, y: (x > y) & (x < 2), lambda n: (real(n), real(n)))
    for dtype in HALVES:
        name = str(dtype).removeprefix("torch.")
        row(f"{name} add", lambda x, y: x + y, lambda n, d=dtype: (real(n, dtype=d), real(n, dtype=d)))
        row(f"{name} gelu", lambda x: F.gelu(x) * 2, lambda n, d=dtype: (real(n, dtype=d),))


# -------------------------------------------------------------------------------------------------- whole numbers


def integers() -> None:
    row("int add", lambda x, y: x * 3 + y, lambda n: (whole(n), whole(n)))
    row("int by a size", lambda x: x // x.shape[-1], lambda n: (whole(rest(n, 37), 37, high=100000),))
    row("int modulo a size", lambda x: x % x.shape[-1], lambda n: (whole(rest(n, 37), 37, high=100000),))
    row("int32 by a size", lambda x: x // x.shape[-1], lambda n: (whole(n // 37 + 1, 37, dtype=torch.int32),))
    row("int by tensors", lambda x, y: x // y, lambda n: (whole(n, high=10000), whole(n, low=1)))
    row("shift and mask", lambda x: (x >> 3) & 255, lambda n: (whole(n, high=1 << 20, dtype=torch.int32),))
    row("bytes to floats", lambda x: (x.float() - 127) / 255, lambda n: (whole(n, high=256, dtype=torch.uint8),))
    row("floats to bytes", lambda x: (x * 255).to(torch.uint8), lambda n: (torch.rand(n),))
    row("floats to ints", lambda x: x.to(torch.int64), lambda n: (real(n) * 100,))
    row("ints to floats", lambda x: x.float() * 0.5, lambda n: (whole(n),))
    row("to double", lambda x: x.double() * 2, lambda n: (real(n),))
    row("float to bfloat16", lambda x: x.to(torch.bfloat16), lambda n: (real(n),))
    row("bfloat16 to float", lambda x: x.float(), lambda n: (real(n, dtype=torch.bfloat16),))
    row("one_hot", lambda x: F.one_hot(x, 20).float(), lambda n: (whole(rest(n, 20), high=20),))
    row("one_hot sum", lambda x: F.one_hot(x, 16).sum(1), lambda n: (whole(rest(n, 64), 4, high=16),))
    row("int8 to floats", lambda q, s, z: (q.float() - z) * s, lambda n: (whole(rest(n, 96), 96, low=-128, high=127, dtype=torch.int8), real(rest(n, 96), 1), real(rest(n, 96), 1)))  # fmt: skip
    row("floats to int8", lambda x, s: torch.clamp(torch.round(x / s), -128, 127).to(torch.int8), lambda n: (real(rest(n, 96), 96), real(rest(n, 96), 1).abs() + 0.1))  # fmt: skip
    row("int4 unpacked", lambda q: torch.stack((q & 15, q >> 4), -1).flatten(-2).float() - 8, lambda n: (whole(rest(n, 64), 64, high=256, dtype=torch.uint8),))  # fmt: skip
    row("int sum", lambda x: x.sum(-1), lambda n: (whole(rest(n, 50), 50),))
    row("count", lambda x: (x > 0).sum(-1), lambda n: (real(rest(n, 300), 300),))


# -------------------------------------------------------------------------------------------------------- layouts


def rolled_windows(x):
    windows = torch.roll(x, (-3, -3), (1, 2)).view(x.shape[0], 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5)
    return windows.reshape(-1, 49, 96).softmax(-1)


def skewed_scores(x):
    h, i, j = x.shape
    return F.pad(x, (1, 0)).view(h, j + 1, i)[:, 1:].reshape(h, i, j).softmax(-1)


def attention_windows(x):
    b, h, w, c = x.shape
    return x.view(b, h // 7, 7, w // 7, 7, c).transpose(2, 3).contiguous()


def layouts() -> None:
    row("copy (n,100,8) turned", lambda x: x.transpose(1, 2).contiguous(), lambda n: (real(rest(n, 800), 100, 8),))
    row("copy (n,8,100) turned", lambda x: x.transpose(1, 2).contiguous(), lambda n: (real(rest(n, 800), 8, 100),))
    row("copy (n,3) turned", lambda x: x.t().contiguous(), lambda n: (real(rest(n, 3), 3),))
    row("copy (3,n) turned", lambda x: x.t().contiguous(), lambda n: (real(3, rest(n, 3)),))
    row("copy a square turned", lambda x: x.t().contiguous(), lambda n: (real(side(n), side(n)),))
    row("add a square turned", lambda x, y: x + y.t(), lambda n: (real(side(n), side(n)), real(side(n), side(n))))
    row("bytes turned", lambda x: x.t().contiguous(), lambda n: (whole(side(n), side(n), dtype=torch.uint8),))
    row("bfloat16 turned", lambda x: x.t().contiguous(), lambda n: (real(side(n), side(n), dtype=torch.bfloat16),))
    row("int64 turned", lambda x: x.t().contiguous(), lambda n: (whole(side(n), side(n)),))
    row("heads of 4", lambda x: x.view(x.shape[0], -1, 8, 4).transpose(1, 2).contiguous(), lambda n: (real(4, rest(n, 128), 32),))  # fmt: skip
    row("heads of 64", lambda x: x.view(x.shape[0], -1, 4, 64).transpose(1, 2).contiguous(), lambda n: (real(2, rest(n, 512), 256),))  # fmt: skip
    row("heads back", lambda x: x.transpose(1, 2).flatten(2) + 1, lambda n: (real(2, 6, rest(n, 2, 6, 20), 20),))
    row("nchw to nhwc", lambda x: x.permute(0, 2, 3, 1).contiguous(), lambda n: (real(2, 24, side(n, 48), side(n, 48)),))  # fmt: skip
    row("nhwc to nchw", lambda x: x.permute(0, 3, 1, 2).contiguous(), lambda n: (real(2, side(n, 48), side(n, 48), 24),))  # fmt: skip
    row("image to nchw", lambda x: x.permute(0, 3, 1, 2).float() / 255, lambda n: (whole(2, side(n, 6), side(n, 6), 3, dtype=torch.uint8),))  # fmt: skip
    row("permute 5-D", lambda x: x.permute(0, 2, 1, 4, 3).contiguous(), lambda n: (real(rest(n, 5, 6, 7, 9), 5, 6, 7, 9),))  # fmt: skip
    row("permute outer", lambda x: x.permute(1, 0, 2).contiguous(), lambda n: (real(13, rest(n, 13, 11), 11),))
    row("windows", attention_windows, lambda n: (real(2, 7 * rest(n, 2, 7, 14, 16), 14, 16),))
    row("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), lambda n: (real(2, 16, side(n, 32), side(n, 32)),))
    row("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), lambda n: (real(2, 4, 2 * side(n, 32), 2 * side(n, 32)),))
    row("pixel_shuffle and add", lambda x, y: F.pixel_shuffle(x, 2) + y, lambda n: (real(2, 16, side(n, 32), side(n, 32)), real(2, 4, 2 * side(n, 32), 2 * side(n, 32))))  # fmt: skip
    row("cat", lambda x, y: torch.cat((x, y), -1), lambda n: (real(rest(n, 60), 23), real(rest(n, 60), 37)))
    row("cat rows", lambda x, y: torch.cat((x, y)), lambda n: (real(rest(n, 60), 30), real(rest(n, 60), 30)))
    row("stack", lambda x, y: torch.stack((x, y), -1), lambda n: (real(rest(n, 2)), real(rest(n, 2))))
    row("pad", lambda x: F.pad(x, (1, 1, 1, 1)), lambda n: (real(8, side(n, 8), side(n, 8)),))
    row("reflect pad", lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), lambda n: (real(1, 8, side(n, 8) + 2, side(n, 8) + 2),))  # fmt: skip
    row("skewed scores", skewed_scores, lambda n: (real(4, side(n, 4), side(n, 4)),))
    row("rolled windows", rolled_windows, lambda n: (real(rest(n, 3136, 96), 56, 56, 96),))
    row("roll", lambda x: torch.roll(x, (3, 2), (1, 2)), lambda n: (real(4, side(n, 64), side(n, 64), 16),))
    row("flip", lambda x: x.flip(-1), lambda n: (real(rest(n, 70), 70),))
    row("flip rows", lambda x: x.flip(0), lambda n: (real(rest(n, 70), 70),))
    row("repeat_interleave", lambda x: x.repeat_interleave(3, dim=1), lambda n: (real(2, rest(n, 2, 3, 40), 40),))
    row("repeat", lambda x: x.repeat(2, 3), lambda n: (real(rest(n, 6, 31), 31),))
    row("expand heads", lambda x: x[:, :, None].expand(-1, -1, 4, -1, -1).flatten(1, 2), lambda n: (real(2, 2, rest(n, 256), 16),))  # fmt: skip
    row("tril", torch.tril, lambda n: (real(side(n), side(n)),))
    row("unfold", lambda x: x.unfold(-1, 8, 4).contiguous(), lambda n: (real(4, 2 + rest(n, 8) * 4 // 4),))


# ----------------------------------------------------------------------------------------------------- reductions


def rms_norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def batch_norm(x, mean, var, w, b):
    return F.batch_norm(x, mean, var, w, b)


def reductions() -> None:
    for extent in (4, 9, 16, 100, 1000):
        row(f"sum of {extent}", lambda x: x.sum(-1), lambda n, e=extent: (real(rest(n, e), e),))
    for extent in (4, 9, 33, 300):
        row(f"softmax of {extent}", lambda x: torch.softmax(x, -1), lambda n, e=extent: (real(rest(n, e), e),))
    for extent in (6, 400):
        row(f"log_softmax of {extent}", lambda x: torch.log_softmax(x, -1), lambda n, e=extent: (real(rest(n, e), e),))
    row("softmax over columns", lambda x: torch.softmax(x, 0), lambda n: (real(40, rest(n, 40)),))
    row("softmax in the middle", lambda x: torch.softmax(x, 1), lambda n: (real(rest(n, 10, 19), 19, 10),))
    row("masked softmax", lambda x, m: torch.softmax(x.masked_fill(m, -1e9) * 0.1, -1), lambda n: (real(rest(n, 50), 50), bits(50)))  # fmt: skip
    row("logsumexp", lambda x: torch.logsumexp(x, -1), lambda n: (real(rest(n, 120), 120),))
    row("logsumexp of sums in the middle", lambda x, y: torch.logsumexp(x + y[:, :, None], 1), lambda n: (real(rest(n, 30, 40), 30, 40), real(rest(n, 30, 40), 30)))  # fmt: skip
    row("sum of all", lambda x: x.sum(), lambda n: (real(n),))
    row("sum of columns", lambda x: x.sum(0), lambda n: (real(rest(n, 40), 40),))
    row("sum of long columns", lambda x: x.sum(0), lambda n: (real(40, rest(n, 40)),))
    row("sum in the middle", lambda x: x.sum(1), lambda n: (real(rest(n, 20, 15), 15, 20),))
    row("mean of pixels", lambda x: x.mean((2, 3)), lambda n: (real(2, rest(n, 98), 7, 7),))
    row("mean of nhwc pixels", lambda x: x.mean((1, 2)), lambda n: (real(2, 7, 7, rest(n, 98)),))
    row("mean over batch", lambda x: x.mean((0, 2, 3)), lambda n: (real(4, 16, side(n, 64), side(n, 64)),))
    row("amax of 12", lambda x: x.amax(-1), lambda n: (real(rest(n, 12), 12),))
    row("max with index", lambda x: x.max(-1), lambda n: (real(rest(n, 80), 80),))
    row("argmax", lambda x: x.argmax(-1), lambda n: (real(rest(n, 200), 200),))
    row("argmax of columns", lambda x: x.argmax(0), lambda n: (real(21, rest(n, 21)),))
    row("any", lambda x: x.any(-1), lambda n: (bits(rest(n, 90), 90),))
    row("var", lambda x: x.var(-1), lambda n: (real(rest(n, 150), 150),))
    row("std of columns", lambda x: x.std(0), lambda n: (real(30, rest(n, 30)),))
    row("norm", lambda x: x / x.norm(dim=-1, keepdim=True), lambda n: (real(rest(n, 48), 48),))
    row("prod", lambda x: x.prod(-1), lambda n: (real(rest(n, 8), 8),))
    row("cumsum", lambda x: x.cumsum(-1), lambda n: (real(rest(n, 100), 100),))
    row("cumsum of columns", lambda x: x.cumsum(0), lambda n: (real(rest(n, 100), 100),))
    row("layer_norm of 10", lambda x, w: F.layer_norm(x, (10,), w, w), lambda n: (real(rest(n, 10), 10), real(10)))
    row("layer_norm", lambda x, w: F.layer_norm(x, (192,), w, w), lambda n: (real(rest(n, 192), 192), real(192)))
    row("add and layer_norm", lambda x, y, w: F.layer_norm(x + y, (192,), w, w), lambda n: (real(rest(n, 192), 192), real(rest(n, 192), 192), real(192)))  # fmt: skip
    row("rms_norm", rms_norm, lambda n: (real(rest(n, 256), 256), real(256)))
    row("group_norm", lambda x, w: F.group_norm(x, 8, w, w), lambda n: (real(2, 32, side(n, 64), side(n, 64)), real(32)))  # fmt: skip
    row("batch_norm", batch_norm, lambda n: (real(2, 32, side(n, 64), side(n, 64)), *(real(32).abs() for _ in range(4))))  # fmt: skip
    row("l2 loss", lambda x, y: F.mse_loss(x, y), lambda n: (real(n), real(n)))
    row("cross_entropy", F.cross_entropy, lambda n: (real(rest(n, 90), 90), whole(rest(n, 90), high=90)))
    for dtype in HALVES:
        name = str(dtype).removeprefix("torch.")
        row(f"{name} sum", lambda x: x.sum(-1), lambda n, d=dtype: (real(rest(n, 120), 120, dtype=d),))
        row(f"{name} softmax", lambda x: torch.softmax(x, -1), lambda n, d=dtype: (real(rest(n, 120), 120, dtype=d),))
        row(f"{name} layer_norm", lambda x, w: F.layer_norm(x, (64,), w, w), lambda n, d=dtype: (real(rest(n, 64), 64, dtype=d), real(64, dtype=d)))  # fmt: skip


# -------------------------------------------------------------------------------------------- indices and windows


def indices() -> None:
    row("embedding", lambda i, w: F.embedding(i, w), lambda n: (whole(rest(n, 48)), real(100, 48)))
    row("embedding and add", lambda i, w, p: F.embedding(i, w) * 8 + p, lambda n: (whole(4, rest(n, 4, 48)), real(100, 48), real(rest(n, 4, 48), 48)))  # fmt: skip
    row("gather", lambda x, i: x.gather(1, i), lambda n: (real(rest(n, 60), 60), whole(rest(n, 60), 60, high=60)))
    row("gather rows", lambda x, i: x.gather(1, i[:, :, None].expand(-1, -1, x.shape[2])), lambda n: (real(4, rest(n, 4, 256), 256), whole(4, rest(n, 4, 256), high=rest(n, 4, 256))))  # fmt: skip
    row("index_select", lambda x, i: x.index_select(1, i), lambda n: (real(rest(n, 60), 60), whole(60, high=60)))
    row("x[i]", lambda x, i: x[i], lambda n: (real(100, 20), whole(rest(n, 20))))
    row("x[i], far apart", lambda x, i: x[i] * 2, lambda n: (real(rest(n, 64), 64), whole(rest(n, 64), high=rest(n, 64))))  # fmt: skip
    row("relu(x)[i]", lambda x, i: x.relu()[i] * 2, lambda n: (real(rest(n, 64), 64), whole(rest(n, 64), high=rest(n, 64))))  # fmt: skip
    row("relu(x)[i] of elements", lambda x, i: x.relu()[i] * 2, lambda n: (real(n), whole(n, high=n)))
    row("bincount", lambda i: torch.bincount(i, minlength=256), lambda n: (whole(n, high=256),))
    row("x[i, j]", lambda x, i, j: x[i, j], lambda n: (real(50, 40), whole(n, high=50), whole(n, high=40)))
    row("x[:, i]", lambda x, i: x[:, i] + 1, lambda n: (real(rest(n, 30), 50), whole(30, high=50)))
    row("scatter_add", lambda x, i: torch.zeros_like(x).scatter_add(1, i, x), lambda n: (real(rest(n, 60), 60), whole(rest(n, 60), 60, high=60)))  # fmt: skip
    row("index_add", lambda x, i: torch.zeros(50, x.shape[1]).index_add(0, i, x), lambda n: (real(rest(n, 60), 60), whole(rest(n, 60), high=50)))  # fmt: skip
    row("scatter_add of elements", lambda x, i: torch.zeros(50, x.shape[1]).scatter_add(0, i, x), lambda n: (real(rest(n, 60), 60), whole(rest(n, 60), 60, high=50)))  # fmt: skip
    row("histogram", lambda i, w: torch.zeros(256).index_put((i,), w, accumulate=True), lambda n: (whole(n, high=256), real(n)))  # fmt: skip
    row("segment max", lambda x, i: torch.zeros(50, 60).scatter_reduce(0, i[:, None].expand(-1, 60), x, "amax", include_self=False), lambda n: (real(rest(n, 60), 60), whole(rest(n, 60), high=50)))  # fmt: skip
    row("topk and gather", lambda x, y: y.gather(-1, x.topk(4).indices), lambda n: (real(rest(n, 64), 64), real(rest(n, 64), 64)))  # fmt: skip
    row("position bias", lambda t, i: t[i].permute(2, 0, 1) * 2, lambda n: (real(169, 6), whole(side(n, 6), side(n, 6))))  # fmt: skip


def involution(x, k):
    b, c, h, w = x.shape
    blocks = F.unfold(x, 3, padding=1).view(b, 4, c // 4, 9, h, w)
    return (k.view(b, 4, 1, 9, h, w) * blocks).sum(3).view(b, c, h, w)


def windows() -> None:
    images = lambda n: (real(2, 12, side(n, 24) + 3, side(n, 24) + 3),)  # noqa: E731
    row("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), images)
    row("avg_pool", lambda x: F.avg_pool2d(x, 2), images)
    row("relu and avg_pool", lambda x: F.avg_pool2d(x.relu(), 3, 1, 1), images)
    row("local response", lambda x: F.local_response_norm(x, 5), images)
    row("lp_pool", lambda x: F.lp_pool2d(x, 2, 3, 2), images)
    row("adaptive_avg_pool", lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), images)
    row("nearest", lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), lambda n: images(n // 4 + 1))
    row("bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), lambda n: images(n // 4 + 1))
    row(
        "fold",
        lambda x: F.fold(x.view(2, 108, -1), x.shape[-2:], 3, padding=1),
        lambda n: (real(2, 108, side(n, 216), side(n, 216)),),
    )
    row(
        "involution",
        involution,
        lambda n: (real(2, 16, side(n, 32), side(n, 32)), real(2, 36, side(n, 32), side(n, 32))),
    )
    row("convolution alone", lambda x, w: F.conv2d(x, w, padding=1), lambda n: (real(2, 64, side(n, 128), side(n, 128)), real(64, 64, 3, 3)))  # fmt: skip
    row("convolution alone, small image", lambda x, w: F.conv2d(x, w, padding=1).relu(), lambda n: (real(2, 256, side(n, 512), side(n, 512)), real(256, 256, 3, 3)))  # fmt: skip
    row("im2col", lambda x: F.unfold(x, 3, padding=1), lambda n: images(n // 9 + 1))


for _family in (pointwise, integers, layouts, reductions, indices, windows):
    _family()
