"""The blocks trained by `bench/blocks.py`: functions of parameters and data, written as in real models.

A row is a name, a function, and a function which creates its inputs. A trained row returns a single tensor, and its
floating-point inputs require gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F


class Block(NamedTuple):
    name: str
    function: Callable
    inputs: Callable[[], tuple]
    trained: bool = True


BLOCKS: list[Block] = []


def block(name: str, function: Callable, inputs: Callable[[], tuple]) -> None:
    BLOCKS.append(Block(name, function, inputs))


def real(*shape: int) -> torch.Tensor:
    return torch.randn(shape) / math.sqrt(max(shape[-1:], default=1)) if len(shape) == 2 else torch.randn(shape)


def whole(*shape: int, high: int) -> torch.Tensor:
    return torch.randint(0, high, shape)


# ------------------------------------------------------------------------------------------------ rows of features


def mlp(x, g, b, up, down):
    h = F.layer_norm(x, (x.shape[-1],), g, b)
    return x + F.gelu(h @ up) @ down


def swiglu(x, gate, up, down):
    return (F.silu(x @ gate) * (x @ up)) @ down


def rms_norm(x, g):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g


def rotary(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def features() -> None:
    width, rows = 128, 512
    block(
        "layer_norm gelu mlp",
        mlp,
        lambda: (real(rows, width), real(width), real(width), real(width, 256), real(256, width)),
    )
    block("swiglu", swiglu, lambda: (real(rows, width), real(width, 256), real(width, 256), real(256, width)))
    block(
        "layer_norm",
        lambda x, g, b: F.layer_norm(x, (x.shape[-1],), g, b),
        lambda: (real(2048, 256), real(256), real(256)),
    )
    block("rms_norm", rms_norm, lambda: (real(2048, 256), real(256)))
    block("softmax", lambda x: torch.softmax(x, -1), lambda: (real(8, 64, 256),))
    block("log_softmax columns", lambda x: torch.log_softmax(x, 1), lambda: (real(64, 32, 64),))
    block("gelu bias", lambda x, b: F.gelu(x + b), lambda: (real(2048, 256), real(256)))
    block("rotary", rotary, lambda: (real(8, 8, 64, 64), real(64, 64), real(64, 64)))
    block(
        "dropout-free residual",
        lambda x, y, s: (x + y * s).relu() + x,
        lambda: (real(2048, 256), real(2048, 256), real(256)),
    )
    block("normalize", lambda x: F.normalize(x, dim=-1), lambda: (real(4096, 64),))
    block("glu", lambda x: F.glu(x, -1), lambda: (real(2048, 256),))


# ------------------------------------------------------------------------------------------------------ attention


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


def causal(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    n = scores.shape[-1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ v


def biased(q, k, v, bias):
    return torch.softmax(q @ k.transpose(-1, -2) + bias, -1) @ v


def relative_skew(scores):
    b, h, n, m = scores.shape
    return F.pad(scores, (1, 0)).view(b, h, m + 1, n)[:, :, 1:].reshape(b, h, n, m)


def attentions() -> None:
    heads = lambda: (real(4, 8, 64, 32), real(4, 8, 64, 32), real(4, 8, 64, 32))  # noqa: E731
    block("attention", attention, heads)
    block("causal attention", causal, heads)
    block("biased attention", biased, lambda: (*heads(), real(8, 64, 64)))
    block("sdpa", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), heads)
    block("relative skew", relative_skew, lambda: (real(2, 8, 80, 80),))


# --------------------------------------------------------------------------------------------------------- images


def conv_block(x, w, g, b):
    h = F.conv2d(x, w, padding=1)
    return F.relu(F.batch_norm(h, None, None, g, b, training=True))


def images() -> None:
    image = lambda c=32, s=28: real(4, c, s, s)  # noqa: E731
    block("conv batch_norm relu", conv_block, lambda: (image(), real(32, 32, 3, 3), real(32), real(32)))
    block(
        "batch_norm relu",
        lambda x, g, b: F.relu(F.batch_norm(x, None, None, g, b, True)),
        lambda: (image(), real(32), real(32)),
    )
    block(
        "depthwise conv silu",
        lambda x, w: F.silu(F.conv2d(x, w, padding=1, groups=32)),
        lambda: (image(), real(32, 1, 3, 3)),
    )
    block("group_norm silu", lambda x, g, b: F.silu(F.group_norm(x, 8, g, b)), lambda: (image(), real(32), real(32)))
    block("instance_norm", lambda x: F.instance_norm(x), lambda: (image(),))
    block("max_pool", lambda x: F.max_pool2d(x, 2), lambda: (image(),))
    block("max_pool overlapping", lambda x: F.max_pool2d(x, 3, 2, 1), lambda: (image(),))
    block("avg_pool", lambda x: F.avg_pool2d(x, 3, 2, 1), lambda: (image(),))
    block("adaptive_avg_pool 7", lambda x: F.adaptive_avg_pool2d(x, 7), lambda: (image(),))
    block("adaptive_avg_pool 1", lambda x: F.adaptive_avg_pool2d(x, 1), lambda: (image(),))
    block("upsample nearest", lambda x: F.interpolate(x, scale_factor=2.0), lambda: (image(16),))
    block("upsample bilinear", lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), lambda: (image(16),))
    block("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2).relu(), lambda: (image(),))
    block("reflection pad", lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"), lambda: (image(),))
    block(
        "unfold fold",
        lambda x: F.fold(F.unfold(x, 3, padding=1).relu(), x.shape[-2:], 3, padding=1),
        lambda: (image(8),),
    )
    block(
        "grid_sample",
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False),
        lambda: (image(16), real(4, 28, 28, 2)),
    )
    block("squeeze excite", lambda x, a, b: x * torch.sigmoid(F.relu(x.mean((2, 3)) @ a) @ b)[..., None, None],
          lambda: (image(), real(32, 8), real(8, 32)))  # fmt: skip


# ---------------------------------------------------------------------------------------------- indices and graphs


def message_passing(x, w, source, target):
    messages = F.relu((x @ w)[source])
    return torch.zeros_like(x).index_add(0, target, messages)


def gat(x, w, a, b, source, target):
    h = x @ w
    score = F.leaky_relu((h * a).sum(-1)[source] + (h * b).sum(-1)[target], 0.2)
    weight = (score - score.max()).exp()
    total = torch.zeros(x.shape[0]).scatter_add(0, target, weight)
    alpha = weight / (total[target] + 1e-9)
    return torch.zeros_like(h).index_add(0, target, h[source] * alpha[:, None])


def egnn(x, p, w, source, target):
    offset = p[source] - p[target]
    h = torch.cat((x[source], x[target], offset.square().sum(-1, keepdim=True)), -1)
    return torch.zeros_like(x).index_add(0, target, F.silu(h @ w))


def indices() -> None:
    nodes, edges, width = 1000, 8000, 32
    pairs = lambda: (whole(edges, high=nodes), whole(edges, high=nodes))  # noqa: E731
    block("embedding", lambda w, i: F.embedding(i, w) * 2, lambda: (real(2000, 128), whole(32, 64, high=2000)))
    block("embedding_bag", lambda w, i: F.embedding_bag(i, w), lambda: (real(2000, 64), whole(256, 10, high=2000)))
    block("relu index", lambda x, i: torch.relu(x)[i] * 2, lambda: (real(nodes, 64), whole(edges, high=nodes)))
    block("gather", lambda x, i: x.gather(1, i) * 2, lambda: (real(1000, 128), whole(1000, 64, high=128)))
    block(
        "scatter_add",
        lambda x, i: torch.zeros(1000, 32).scatter_add(0, i, x),
        lambda: (real(8000, 32), whole(8000, 32, high=1000)),
    )
    block(
        "index_add",
        lambda x, i: torch.zeros(1000, 32).index_add(0, i, x),
        lambda: (real(8000, 32), whole(8000, high=1000)),
    )
    block("scatter_reduce amax", lambda x, i: torch.zeros(1000, 32).scatter_reduce(0, i, x, "amax"),
          lambda: (real(8000, 32), whole(8000, 32, high=1000)))  # fmt: skip
    block("message passing", message_passing, lambda: (real(nodes, width), real(width, width), *pairs()))
    block("GAT", gat, lambda: (real(nodes, width), real(width, width), real(width), real(width), *pairs()))
    block("EGNN", egnn, lambda: (real(nodes, width), real(nodes, 3), real(2 * width + 1, width), *pairs()))


# --------------------------------------------------------------------------------------------- losses and recurrence


def lstm(x, h, c, w, u):
    for t in range(8):
        i, f, g, o = (x[:, t] @ w + h @ u).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h


def gru(x, h, w, u):
    for t in range(8):
        r, z, n = (x[:, t] @ w).chunk(3, -1)
        hr, hz, hn = (h @ u).chunk(3, -1)
        z = torch.sigmoid(z + hz)
        h = (1 - z) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + z * h
    return h


def dice(x, y):
    p = torch.sigmoid(x)
    return 1 - (2 * (p * y).sum((1, 2)) + 1) / (p.sum((1, 2)) + y.sum((1, 2)) + 1)


def contrastive(a, b):
    scores = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t() * 10
    labels = torch.arange(a.shape[0])
    return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.t(), labels)) / 2


def of_layer(layer, states):
    """A recurrent layer as run by torch, on input (length, batch, features)."""

    def run(x, *others):
        of, parameters = others[:states], others[states:]
        return layer(x, of if states > 1 else of[0], parameters, True, 1, 0.0, True, False, False)[0]

    return run


def of_sequence(length, batch, n, gates, states):
    def inputs():
        scaled = [real(gates * n, n) / n**0.5 for _ in range(2)] + [real(gates * n) for _ in range(2)]
        return (real(length, batch, n), *(real(1, batch, n) for _ in range(states)), *scaled)

    return inputs


def losses() -> None:
    block("cross_entropy", F.cross_entropy, lambda: (real(512, 1000), whole(512, high=1000)))
    block(
        "cross_entropy smoothed",
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
        lambda: (real(512, 1000), whole(512, high=1000)),
    )
    block("cross_entropy pixels", F.cross_entropy, lambda: (real(4, 20, 32, 32), whole(4, 32, 32, high=20)))
    block("mse", F.mse_loss, lambda: (real(1024, 256), real(1024, 256)))
    block("smooth_l1", F.smooth_l1_loss, lambda: (real(1024, 256), real(1024, 256)))
    block(
        "bce with logits",
        lambda x, y: F.binary_cross_entropy_with_logits(x, (y > 0).float()),
        lambda: (real(1024, 256), real(1024, 256)),
    )
    block(
        "kl_div",
        lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        lambda: (real(512, 256), real(512, 256)),
    )
    block("dice", dice, lambda: (real(8, 64, 64), real(8, 64, 64)))
    block("contrastive", contrastive, lambda: (real(128, 64), real(128, 64)))
    block(
        "triplet",
        lambda a, b, c: F.triplet_margin_loss(a, b, c),
        lambda: (real(1024, 64), real(1024, 64), real(1024, 64)),
    )
    block("cosine", lambda a, b: F.cosine_similarity(a, b, -1), lambda: (real(2048, 64), real(2048, 64)))
    block("lstm cells", lstm, lambda: (real(32, 8, 64), real(32, 64), real(32, 64), real(64, 256), real(64, 256)))
    block("gru cells", gru, lambda: (real(32, 8, 64), real(32, 64), real(64, 192), real(64, 192)))
    for name, layer, gates, states in (
        ("lstm", torch.lstm, 4, 2),
        ("gru", torch.gru, 3, 1),
        ("rnn", torch.rnn_tanh, 1, 1),
    ):
        block(f"{name} layer", of_layer(layer, states), of_sequence(50, 32, 128, gates, states))
        block(f"{name} layer small", of_layer(layer, states), of_sequence(100, 4, 16, gates, states))
    block("cumsum", lambda x: x.cumsum(-1) * x, lambda: (real(512, 256),))
    block("logsumexp", lambda x: x.logsumexp(-1), lambda: (real(1024, 256),))
    block("amax", lambda x: x.amax(-1), lambda: (real(1024, 256),))
    block("std", lambda x: (x - x.mean(0)) / x.std(0), lambda: (real(1024, 256),))


features()
attentions()
images()
indices()
losses()
