"""More blocks for `bench/blocks.py`: computations for which models, losses, optimizers and data pipelines have fused
kernels.

Rows of `block` are trained; rows of `forward` run without gradients.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from block_rows import BLOCKS, Block, block, real, whole


def forward(name: str, function, inputs) -> None:
    BLOCKS.append(Block(name, function, inputs, trained=False))


def bits(*shape: int) -> torch.Tensor:
    return torch.rand(shape) < 0.5


# ------------------------------------------------------------------------------------------------------------ losses


def focal(x, y):
    p = torch.sigmoid(x)
    t = (y > 0).float()
    ce = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    pt = p * t + (1 - p) * (1 - t)
    return ((0.25 * t + 0.75 * (1 - t)) * ce * (1 - pt) ** 2).mean()


def smoothed(x, y):
    logp = x.log_softmax(-1)
    nll = -logp.gather(-1, y[:, None]).squeeze(1)
    return (0.9 * nll - 0.1 * logp.mean(-1)).mean()


def matching(logits, boxes, labels, targets):
    cls = -logits.softmax(-1)[:, labels]
    l1 = torch.cdist(boxes, targets, p=1)
    lt = torch.max(boxes[:, None, :2], targets[:, :2])
    rb = torch.min(boxes[:, None, 2:], targets[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    area = lambda b: (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])  # noqa: E731
    union = area(boxes)[:, None] + area(targets) - inter
    return 5 * l1 + cls - 2 * inter / (union + 1e-6)


def nt_xent(x):
    z = F.normalize(x, dim=-1)
    s = z @ z.t() / 0.1
    s = s.masked_fill(torch.eye(s.shape[0], dtype=torch.bool), float("-inf"))
    n = s.shape[0] // 2
    target = torch.cat((torch.arange(n) + n, torch.arange(n)))
    return F.cross_entropy(s, target)


def vae(x, mu, logvar):
    return F.mse_loss(torch.sigmoid(x), x) - 0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()


def ctc_like(x):
    a = x.cumsum(1)
    return torch.logcumsumexp(x, 1) - a


def distill(s, t, y):
    soft = F.kl_div(F.log_softmax(s / 2, -1), F.log_softmax(t / 2, -1), log_target=True, reduction="batchmean") * 4
    return soft + F.cross_entropy(s, y)


def losses() -> None:
    block("focal loss", focal, lambda: (real(512, 80), real(512, 80)))
    block("smoothed by hand", smoothed, lambda: (real(512, 1000), whole(512, high=1000)))
    block("NT-Xent", nt_xent, lambda: (real(128, 64),))
    block("VAE loss", vae, lambda: (real(256, 784), real(256, 32), real(256, 32)))
    block("distillation", distill, lambda: (real(512, 300), real(512, 300), whole(512, high=300)))
    block("logcumsumexp", ctc_like, lambda: (real(256, 128),))
    block("huber masked", lambda x, y: torch.where((x - y).abs() < 1, 0.5 * (x - y) ** 2, (x - y).abs() - 0.5)[..., 1:].sum(-1),
          lambda: (real(1024, 65), real(1024, 65)))  # fmt: skip
    block("pairwise ranking", lambda x: F.softplus(x[:, None, :] - x[:, :, None]).mean((1, 2)), lambda: (real(32, 64),))
    forward(
        "matching cost", matching, lambda: (real(300, 91), torch.rand(300, 4), whole(20, high=91), torch.rand(20, 4))
    )


# ------------------------------------------------------------------------------------------------------------- norms


def batch_norm_running(x, g, b, mean, var):
    return F.batch_norm(x, mean.clone(), var.clone(), g, b, training=True)


def channel_attention(x, w):
    y = x.mean((2, 3), keepdim=False)[:, None]
    y = F.conv1d(y, w, padding=1)
    return x * torch.sigmoid(y[:, 0, :, None, None])


def norms() -> None:
    image = lambda c=32, s=28: real(4, c, s, s)  # noqa: E731
    with_stats = lambda: (image(), real(32), real(32))  # noqa: E731
    block("batch_norm silu", lambda x, g, b: F.silu(F.batch_norm(x, None, None, g, b, True)), with_stats)
    block("group_norm", lambda x, g, b: F.group_norm(x, 4, g, b), with_stats)
    block("layer_norm nchw", lambda x, g, b: F.layer_norm(x.permute(0, 2, 3, 1), (32,), g, b).permute(0, 3, 1, 2), with_stats)  # fmt: skip
    block("add layer_norm dropless", lambda x, y, g, b: F.layer_norm(x + y, (256,), g, b) * 0.5 + y,
          lambda: (real(1024, 256), real(1024, 256), real(256), real(256)))  # fmt: skip
    block("adaptive norm", lambda x, s, t: F.layer_norm(x, (256,)) * (1 + s[:, None]) + t[:, None],
          lambda: (real(8, 128, 256), real(8, 256), real(8, 256)))  # fmt: skip
    block("ECA", channel_attention, lambda: (image(), torch.randn(1, 1, 3)))
    block("GRN", lambda x, g, b: x + g * (x * (n := x.norm(dim=(1, 2), keepdim=True)) / (n.mean(-1, keepdim=True) + 1e-6)) + b,
          lambda: (real(4, 14, 14, 128), real(128), real(128)))  # fmt: skip
    block("weight standardization", lambda w: (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5),
          lambda: (real(128, 64, 3, 3),))  # fmt: skip
    forward(
        "variance of channels last",
        lambda x: torch.var_mean(x, (0, 2, 3))[0],
        lambda: (image(64).to(memory_format=torch.channels_last),),
    )
    forward("var_mean over odd dims", lambda x: torch.cat(torch.var_mean(x, (0, 2))), lambda: (real(13, 37, 11, 29),))


# --------------------------------------------------------------------------------------------------------- attention


def alibi(q, k, v, slopes):
    n = q.shape[-2]
    i = torch.arange(n)
    bias = (i[None, :] - i[:, None]).clamp(max=0) * slopes[:, None, None]
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
    s = s.masked_fill(i[None, :] > i[:, None], float("-inf"))
    return s.softmax(-1) @ v


def t5_bias(q, k, v, table):
    n = q.shape[-2]
    d = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    a = d.abs()
    large = 8 + (torch.log(a.float().clamp(min=1) / 8) / math.log(16) * 8).long().clamp(max=7)
    bucket = (d > 0).long() * 16 + torch.where(a < 8, a, large)
    return (q @ k.transpose(-1, -2) + table[bucket].permute(2, 0, 1)).softmax(-1) @ v


def windowed(x):
    b, h, w, c = x.shape
    y = x.view(b, h // 7, 7, w // 7, 7, c).transpose(2, 3).reshape(-1, 49, c)
    y = F.gelu(y)
    y = y.view(b, h // 7, w // 7, 7, 7, c).transpose(2, 3).reshape(b, h, w, c)
    return x + y


def patchify(x):
    b, c, h, w = x.shape
    p = x.reshape(b, c, h // 8, 8, w // 8, 8)
    p = torch.einsum("nchpwq->nhwpqc", p).reshape(b, -1, 64 * c)
    return (p - p.mean(-1, keepdim=True)) / (p.var(-1, keepdim=True) + 1e-6).sqrt()


def rotary_complex(x, freqs):
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * freqs).flatten(-2)


def linear_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    kv = k.transpose(-1, -2) @ v
    return (q @ kv) / ((q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True) + 1e-6)


def attentions() -> None:
    heads = lambda: (real(4, 8, 64, 32), real(4, 8, 64, 32), real(4, 8, 64, 32))  # noqa: E731
    block("ALiBi attention", alibi, lambda: (*heads(), torch.rand(8)))
    block("T5 bias attention", t5_bias, lambda: (*heads(), real(32, 8)))
    block("linear attention", linear_attention, heads)
    block("masked softmax", lambda x, m: torch.softmax(torch.where(m, x, float("-1e9")), -1) * m, lambda: (real(8, 8, 64, 64), bits(8, 1, 1, 64)))  # fmt: skip
    block("windows and back", windowed, lambda: (real(4, 28, 28, 48),))
    block("patchify normalized", patchify, lambda: (real(4, 3, 64, 64),))
    block(
        "rotary of complex",
        rotary_complex,
        lambda: (real(4, 64, 8, 64), torch.polar(torch.ones(64, 1, 32), real(64, 1, 32).view(64, 1, 32))),
    )
    block("repeat kv", lambda k, q: (q * k[:, :, None].expand(-1, -1, 4, -1, -1).reshape(q.shape)).sum(-1),
          lambda: (real(2, 2, 64, 64), real(2, 8, 64, 64)))  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ routing


def route(x, w, experts):
    weight, chosen = (x @ w).softmax(-1).topk(2, -1)
    weight = weight / weight.sum(-1, keepdim=True)
    combine = torch.zeros(x.shape[0], w.shape[1]).scatter(1, chosen, weight)
    h = torch.einsum("nd,edf->nef", x, experts)
    return (F.gelu(h) * combine[..., None]).sum(1)


def balance(logits):
    p = logits.softmax(-1)
    top = F.one_hot(p.argmax(-1), p.shape[-1]).float()
    return (p.mean(0) * top.mean(0)).sum() * p.shape[-1]


def positions_in_expert(chosen):
    m = F.one_hot(chosen, 8)
    return ((m.cumsum(0) - 1) * m).sum(-1)


def nucleus(x):
    s, i = x.softmax(-1).sort(-1, descending=True)
    s = s.masked_fill(s.cumsum(-1) - s > 0.9, 0)
    return torch.zeros_like(x).scatter(-1, i, s / s.sum(-1, keepdim=True))


def routing() -> None:
    block("mixture of experts", route, lambda: (real(256, 64), real(64, 8), real(8, 64, 64)))
    block("balance loss", balance, lambda: (real(4096, 16),))
    forward("positions in expert", positions_in_expert, lambda: (whole(4096, high=8),))
    forward("nucleus", nucleus, lambda: (real(64, 1000),))
    forward(
        "topk mask",
        lambda x: x.masked_fill(x < x.topk(10, -1).values[..., -1:], float("-inf")).softmax(-1),
        lambda: (real(256, 500),),
    )
    forward(
        "repetition penalty",
        lambda x, i: x.scatter(1, i, torch.where((g := x.gather(1, i)) < 0, g * 1.2, g / 1.2)),
        lambda: (real(32, 5000), whole(32, 64, high=5000)),
    )


# --------------------------------------------------------------------------------------------------------- optimizers


def adam(p, g, m, v):
    m = m.lerp(g, 0.1)
    v = v * 0.999 + 0.001 * g * g
    return p - 1e-3 * (m / 0.9) / ((v / 0.99).sqrt() + 1e-8), m, v


def adam_in_place(p, g, m, v):
    m.mul_(0.9).add_(g, alpha=0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    return p.mul_(1 - 1e-4).addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-5)


def lion(p, g, m):
    update = (m * 0.9 + g * 0.1).sign()
    return p * (1 - 1e-4) - 1e-4 * update, m * 0.99 + g * 0.01


def foreach_adam(*ts):
    n = len(ts) // 4
    p, g, m, v = (list(ts[i * n : (i + 1) * n]) for i in range(4))
    torch._foreach_lerp_(m, g, 0.1)
    torch._foreach_mul_(v, 0.999)
    torch._foreach_addcmul_(v, g, g, 0.001)
    d = torch._foreach_sqrt(v)
    torch._foreach_add_(d, 1e-8)
    torch._foreach_addcdiv_(p, m, d, -1e-5)
    return p[0]


def clip(*grads):
    total = torch.stack([g.norm() for g in grads]).norm()
    scale = (1.0 / (total + 1e-6)).clamp(max=1.0)
    return [g * scale for g in grads]


def ema(*ts):
    n = len(ts) // 2
    return [a * 0.999 + b * 0.001 for a, b in zip(ts[:n], ts[n:])]


def optimizers() -> None:
    sides = [(256, 256), (256,), (1024, 64), (64, 3, 3, 3)]
    many = lambda k: tuple(torch.randn(s) for _ in range(k) for s in sides)  # noqa: E731
    forward("adam", adam, lambda: tuple(torch.rand(256, 512) for _ in range(4)))
    forward("adam in place", adam_in_place, lambda: tuple(torch.rand(256, 512) for _ in range(4)))
    forward("lion", lion, lambda: tuple(torch.randn(256, 512) for _ in range(3)))
    forward("foreach adam", foreach_adam, lambda: tuple(t.abs() for t in many(4)))
    forward("clip by norm", clip, lambda: many(1))
    forward("EMA", ema, lambda: many(2))


# ------------------------------------------------------------------------------------------------------------- images


def bilinear_by_hand(x, gy, gx):
    h, w = x.shape[-2:]
    y, u = (gy.sigmoid() * (h - 1)), (gx.sigmoid() * (w - 1))
    y0, x0 = y.floor().long(), u.floor().long()
    y1, x1 = (y0 + 1).clamp(max=h - 1), (x0 + 1).clamp(max=w - 1)
    fy, fx = y - y0, u - x0
    top = x[:, y0, x0] * (1 - fx) + x[:, y0, x1] * fx
    low = x[:, y1, x0] * (1 - fx) + x[:, y1, x1] * fx
    return top * (1 - fy) + low * fy


def coordinates(x):
    h, w = x.shape[-2:]
    gy, gx = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
    p = x.flatten(2).softmax(-1)
    return torch.stack(((p * gx.flatten()).sum(-1), (p * gy.flatten()).sum(-1)), -1)


def warp(x, flow):
    _b, _, h, w = x.shape
    gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    grid = torch.stack((gx, gy), -1)[None] + flow.permute(0, 2, 3, 1)
    grid = 2 * grid / torch.tensor([w - 1, h - 1]) - 1
    return F.grid_sample(x, grid, align_corners=True)


def augment(x):
    x = x.flip(-1).float() / 255
    gray = (x * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(1, keepdim=True)
    x = x * 0.7 + gray * 0.3
    return ((x - 0.45) / 0.22).clamp(-2, 2)


def ssim(x, y):
    mx, my = F.avg_pool2d(x, 3, 1), F.avg_pool2d(y, 3, 1)
    sx = F.avg_pool2d(x * x, 3, 1) - mx * mx
    sy = F.avg_pool2d(y * y, 3, 1) - my * my
    sxy = F.avg_pool2d(x * y, 3, 1) - mx * my
    n = (2 * mx * my + 1e-4) * (2 * sxy + 9e-4)
    return (n / ((mx * mx + my * my + 1e-4) * (sx + sy + 9e-4))).clamp(0, 1)


def images() -> None:
    image = lambda c=32, s=28: real(4, c, s, s)  # noqa: E731
    block(
        "depthwise conv gelu",
        lambda x, w, b: F.gelu(F.conv2d(x, w, b, padding=3, groups=32)),
        lambda: (image(), real(32, 1, 7, 7) / 7, real(32)),
    )
    block(
        "squeeze excite conv",
        lambda x, a, b: x * F.hardsigmoid(F.conv2d(F.relu(F.conv2d(x.mean((2, 3), keepdim=True), a)), b)),
        lambda: (image(), real(8, 32, 1, 1), real(32, 8, 1, 1)),
    )
    block("bilinear by hand", bilinear_by_hand, lambda: (real(16, 32, 32), real(1000), real(1000)))
    block("soft argmax", coordinates, lambda: (image(),))
    block("warp by flow", warp, lambda: (image(8, 32), real(4, 2, 32, 32)))
    block("SSIM", ssim, lambda: (torch.rand(4, 3, 64, 64), torch.rand(4, 3, 64, 64)))
    block(
        "total variation",
        lambda x: (x[..., 1:] - x[..., :-1]).abs().sum() + (x[..., 1:, :] - x[..., :-1, :]).pow(2).sum(),
        lambda: (image(),),
    )
    forward("augment", augment, lambda: (torch.randint(0, 256, (8, 3, 64, 64), dtype=torch.uint8),))
    block("hard swish pool", lambda x: F.adaptive_avg_pool2d(F.hardswish(x), 1).flatten(1), lambda: (image(64),))
    block("pad constant relu", lambda x: F.pad(x.relu(), (1, 2, 3, 1)), lambda: (image(),))
    block("replicate pad", lambda x: F.pad(x, (2, 2, 2, 2), mode="replicate") * 2, lambda: (image(),))


# ------------------------------------------------------------------------------------------------------------ signals


def mel(x, window, filters):
    s = torch.stft(x, 256, 128, window=window, return_complex=True)
    p = s.real**2 + s.imag**2
    return torch.log(filters @ p + 1e-6)


def ssm_scan(x, a):
    h = torch.zeros_like(x[:, 0])
    out = []
    for t in range(16):
        h = a.sigmoid() * h + x[:, t]
        out.append(h)
    return torch.stack(out, 1)


def signals() -> None:
    forward("mel of STFT", mel, lambda: (real(8, 8000), torch.hann_window(256), torch.rand(40, 129)))
    block("scan by steps", ssm_scan, lambda: (real(16, 16, 256), real(256)))
    block("cumprod", lambda x: torch.cumprod(torch.sigmoid(x) + 0.5, -1) * x, lambda: (real(256, 128),))
    block("autocorrelation", lambda x: (x[:, :-8] * x[:, 8:]).mean(-1), lambda: (real(256, 1024),))
    forward(
        "complex magnitude",
        lambda a, b: torch.complex(a, b).abs() * torch.exp(1j * b).real,
        lambda: (real(256, 256), real(256, 256)),
    )
    forward(
        "sinusoids",
        lambda t: torch.cat(
            ((a := t[:, None].float() * torch.exp(torch.arange(64) * (-math.log(10000) / 64))).sin(), a.cos()), -1
        ),
        lambda: (whole(1024, high=1000),),
    )
    block(
        "fourier features",
        lambda x, b: torch.cat((torch.sin(6.28 * x @ b), torch.cos(6.28 * x @ b)), -1),
        lambda: (real(2048, 3), real(3, 64)),
    )


# ------------------------------------------------------------------------------------------------- whole numbers, casts


def dequantized(q, s, z, x):
    return x @ ((q.float() - z) * s).t()


def popcount(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    return ((x + (x >> 4)) & 0x0F0F0F0F) % 255


def hashes(x):
    h = (x * 2654435761) ^ (x >> 7)
    return ((h & 0x7FFFFFFF) % 1021) * 3 + 1


def chain_of_where(x):
    return torch.where(x < -1, -x, torch.where(x < 0, x * x, torch.where(x < 1, x.sqrt(), x.log())))


def fake_quantized(x):
    s = x.abs().amax(-1, keepdim=True) / 127
    return (x / s).round().clamp(-128, 127).to(torch.int8), s


def packed_masks(m):
    return (m.view(m.shape[0], -1, 8).to(torch.uint8) << torch.arange(8, dtype=torch.uint8)).sum(-1, dtype=torch.uint8)


def numbers() -> None:
    forward(
        "dequantized product",
        dequantized,
        lambda: (whole(256, 256, high=255).to(torch.uint8), torch.rand(256, 1), torch.rand(256, 1), real(64, 256)),
    )
    forward(
        "fake quantize", lambda *x: torch.cat([y.float() for y in fake_quantized(*x)], -1), lambda: (real(1024, 256),)
    )
    forward("popcount", popcount, lambda: (whole(1 << 16, high=1 << 31),))
    forward("hashes", hashes, lambda: (whole(1 << 16, high=1 << 20),))
    forward("packed masks", packed_masks, lambda: (bits(256, 1024),))
    forward("chain of where", chain_of_where, lambda: (real(512, 256),))
    forward("bf16 norm", lambda x, g: (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(torch.bfloat16) * g,
            lambda: (real(1024, 256).bfloat16(), real(256).bfloat16()))  # fmt: skip
    forward("fp16 swiglu", lambda a, b: F.silu(a) * b, lambda: (real(512, 512).half(), real(512, 512).half()))
    forward(
        "masks of lengths",
        lambda n, x: x.masked_fill(torch.arange(x.shape[1]) >= n[:, None], 0).sum(-1) / n,
        lambda: (whole(512, high=200) + 1, real(512, 200)),
    )
    forward(
        "confusion",
        lambda p, y: torch.zeros(20, 20, dtype=torch.int64).index_put(
            (y, p.argmax(-1)), torch.ones((), dtype=torch.int64), accumulate=True
        ),
        lambda: (real(4096, 20), whole(4096, high=20)),
    )
    forward(
        "IoU of classes",
        lambda p, y: ((p[:, None] == (c := torch.arange(20))[:, None]) & (y[:, None] == c[:, None])).sum((0, 2)),
        lambda: (whole(8, 4096, high=20), whole(8, 4096, high=20)),
    )


# --------------------------------------------------------------------------------------------------- pairs and reduction


def knn(x, y):
    return torch.cdist(x, y).topk(5, largest=False).indices


def reductions() -> None:
    block("cdist", lambda x, y: torch.cdist(x, y), lambda: (real(256, 16), real(200, 16)))
    forward("nearest", lambda x, y: (x[:, None] - y).square().sum(-1).argmin(-1), lambda: (real(512, 8), real(128, 8)))
    forward("knn", knn, lambda: (real(256, 3), real(512, 3)))
    block(
        "rbf kernel",
        lambda x, y: torch.exp(-0.5 * (x[:, None] - y).square().sum(-1)),
        lambda: (real(128, 8), real(128, 8)),
    )
    block(
        "outer sum",
        lambda a, b, c: torch.tanh(a[:, None] + b[None] + c).sum(-1),
        lambda: (real(64, 64), real(64, 64), real(64)),
    )
    block(
        "bilinear pool",
        lambda x, y: F.normalize(
            torch.einsum("nci,ndi->ncd", x, y).flatten(1).sign() * 0.1 + torch.einsum("nci,ndi->ncd", x, y).flatten(1),
            dim=-1,
        ),
        lambda: (real(8, 32, 49), real(8, 32, 49)),
    )
    forward(
        "middle sums",
        lambda x: x.view(x.shape[0], 3, 5, -1).sum(2) + x.view(x.shape[0], 3, 5, -1).amax(2),
        lambda: (real(64, 15, 77),),
    )
    forward("transposed sums", lambda x: (x.transpose(0, 2) * 2).sum(-1), lambda: (real(33, 65, 127),))
    forward("argmin of middle", lambda x: x.argmin(1), lambda: (real(32, 50, 40),))
    forward(
        "gather of axes",
        lambda x, i, j: x[:, i[:, None], j[None, :]].transpose(1, 2) * 2,
        lambda: (real(16, 64, 64), whole(40, high=64), whole(48, high=64)),
    )
    forward(
        "tril triu", lambda x: torch.tril(x) + torch.triu(x, 1).transpose(-1, -2) * 0.5, lambda: (real(8, 130, 130),)
    )
    forward("roll and flip", lambda x: x.roll((1, 2), (1, 2)) + x.flip(1) - x.roll(-1, 0), lambda: (real(16, 64, 64),))
    forward(
        "segment softmax",
        lambda x, i: (
            (e := (x - torch.full((100,), -1e30).scatter_reduce(0, i, x, "amax")[i]).exp())
            / torch.zeros(100).index_add(0, i, e)[i]
        ),
        lambda: (torch.randn(5000), whole(5000, high=100)),
    )
    forward("sorted diff", lambda x: (s := x.sort(-1).values)[:, 1:] - s[:, :-1], lambda: (real(256, 200),))
    forward("quantile by sort", lambda x: x.sort(-1).values[:, ::20].mean(0), lambda: (real(256, 200),))
    block(
        "einsum heads",
        lambda x, w: torch.einsum("bnhd,hde->bnhe", x, w).tanh(),
        lambda: (real(4, 64, 8, 32), real(8, 32, 32)),
    )
    block(
        "trilinear",
        lambda a, b, c: (a[:, :, None] * b[:, None, :] * c).sum((1, 2)),
        lambda: (real(64, 48), real(64, 48), real(48, 48)),
    )
    block("log matmul", lambda a, b: torch.logsumexp(a[:, :, None] + b[None], 1), lambda: (real(64, 64), real(64, 64)))
    block(
        "embedding mean",
        lambda w, i: (w[i] * (i > 0)[..., None]).sum(1) / (i > 0).sum(1, keepdim=True).clamp(min=1),
        lambda: (real(2000, 64), whole(128, 20, high=2000)),
    )


losses()
norms()
attentions()
routing()
optimizers()
images()
signals()
numbers()
reductions()
