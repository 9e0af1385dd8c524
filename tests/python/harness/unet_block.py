"""A block of a diffusion U-Net as its users write it: residual convolutions with a time embedding, self attention and
attention to a text, a gated feed-forward part, and a step down."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def time_embedding(time: Tensor, channels: int) -> Tensor:
    """Sines and cosines of times (batch,) at frequencies from 1 to 1/10,000: (batch, channels)."""
    half = channels // 2
    frequency = torch.exp(-math.log(10_000) * torch.arange(half, device=time.device, dtype=torch.float32) / half)
    angle = time[:, None].float() * frequency[None]
    return torch.cat([torch.cos(angle), torch.sin(angle)], dim=-1)


class Residual(nn.Module):
    def __init__(self, channels: int, out: int, of_time: int, groups: int):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(groups, channels), nn.Conv2d(channels, out, 3, padding=1)
        self.time = nn.Linear(of_time, out)
        self.norm2, self.conv2 = nn.GroupNorm(groups, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    def __init__(self, channels: int, of_context: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(channels, channels, bias=False)
        self.k, self.v = (nn.Linear(of_context, channels, bias=False) for _ in range(2))
        self.out = nn.Linear(channels, channels)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        q, k, v = (
            t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
            for t in (self.q(x), self.k(context), self.v(context))
        )
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))


class Transformer(nn.Module):
    def __init__(self, channels: int, of_context: int, heads: int, groups: int):
        super().__init__()
        self.norm, self.into = nn.GroupNorm(groups, channels, eps=1e-6), nn.Conv2d(channels, channels, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(3))
        self.itself, self.text = Attention(channels, channels, heads), Attention(channels, of_context, heads)
        self.gate, self.down = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)
        self.back = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        h = self.into(self.norm(x)).permute(0, 2, 3, 1).reshape(batch, height * width, channels)
        normed = self.norms[0](h)
        h = h + self.itself(normed, normed)
        h = h + self.text(self.norms[1](h), context)
        value, gate = self.gate(self.norms[2](h)).chunk(2, dim=-1)
        h = h + self.down(value * F.gelu(gate))
        return x + self.back(h.reshape(batch, height, width, channels).permute(0, 3, 1, 2))


class UNetBlock(nn.Module):
    """A block that goes from `channels` to `out` channels and halves height and width."""

    def __init__(self, channels: int, out: int, of_context: int, heads: int, groups: int, layers: int = 2):
        super().__init__()
        self.channels, of_time = channels, 4 * channels
        self.time = nn.Sequential(nn.Linear(channels, of_time), nn.SiLU(), nn.Linear(of_time, of_time))
        self.residuals = nn.ModuleList(Residual(out if i else channels, out, of_time, groups) for i in range(layers))
        self.attentions = nn.ModuleList(Transformer(out, of_context, heads, groups) for _ in range(layers))
        self.down = nn.Conv2d(out, out, 3, stride=2, padding=1)

    def forward(self, sample: Tensor, timestep: Tensor, context: Tensor) -> Tensor:
        """sample (batch, channels, height, width), timestep (batch,), context (batch, length, of_context): the sample
        with `out` channels and half of the height and width."""
        time = self.time(time_embedding(timestep, self.channels).to(sample.dtype))
        for residual, attention in zip(self.residuals, self.attentions, strict=True):
            sample = attention(residual(sample, time), context)
        return self.down(sample)
