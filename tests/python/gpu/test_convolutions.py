"""Convolutions on a GPU: the memory format of images between them, biases added by kernels, values, strides and gradients
beside eager mode."""

from __future__ import annotations

import copy

import cuda_device
import pytest
import torch
import torch.nn.functional as F
from torch import nn

cuda_device.use()

import cresset  # noqa: E402

BOUNDS = {torch.float32: 1e-4, torch.bfloat16: 4e-2, torch.float16: 4e-3}
DTYPES = list(BOUNDS)


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()
    torch.manual_seed(0)


class Norm(nn.Module):
    def forward(self, x):
        return F.silu(F.batch_norm(x, x.mean((0, 2, 3)).detach(), x.var((0, 2, 3)).detach()))


class Tokens(nn.Module):
    """An image as tokens between convolutions: the residual stream lies in the image's order of memory."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Conv2d(4, 8, 1), nn.Conv2d(8, 4, 3)
        self.norm, self.inner = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.before(x)
        n, c, h, w = x.shape
        tokens = x.permute(0, 2, 3, 1).reshape(n, h * w, c)
        for _ in range(2):
            tokens = tokens + F.gelu(self.inner(self.norm(tokens)))
        return self.after(tokens.reshape(n, h, w, c).permute(0, 3, 1, 2).contiguous())


class Flattened(nn.Module):
    def __init__(self):
        super().__init__()
        self.images = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2), nn.ReLU())
        self.inner = nn.LazyLinear(5)
        self(torch.zeros(1, 4, 12, 12))

    def forward(self, x):
        return self.inner(torch.flatten(F.adaptive_avg_pool2d(self.images(x), (4, 4)), 1)).tanh()


class Unsqueezed(nn.Module):
    """Channels read by the memory that they lie in, and a mean over them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        y = F.relu(self.first(x))
        return (self.second(y) + y).flatten(2).transpose(1, 2).softmax(-1) * y.mean(1, keepdim=True).flatten(2).mT


MODULES = {
    "tokens": Tokens,
    "flattened": Flattened,
    "unsqueezed": Unsqueezed,
    "relu": lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3)),
    "batch_norm": lambda: nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8).eval(), nn.ReLU(), nn.Conv2d(8, 4, 1)),
    "trained_norm": lambda: nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)),
    "group_norm": lambda: nn.Sequential(nn.Conv2d(4, 16, 3), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 4, 3)),
    "odd_groups": lambda: nn.Sequential(nn.Conv2d(4, 15, 3), nn.GroupNorm(3, 15), nn.SiLU(), nn.Conv2d(15, 4, 3)),
    "depthwise": lambda: nn.Sequential(nn.Conv2d(4, 8, 1), nn.Conv2d(8, 8, 3, groups=8), nn.GELU(), nn.Conv2d(8, 4, 1)),
    "grouped": lambda: nn.Sequential(nn.Conv2d(4, 8, 3, groups=2), nn.ReLU(), nn.Conv2d(8, 4, 3, groups=4)),
    "strided": lambda: nn.Sequential(nn.Conv2d(4, 8, 3, stride=2), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1), nn.Flatten()),
    "without_bias": lambda: nn.Sequential(nn.Conv2d(4, 8, 3, bias=False), nn.ReLU(), nn.Conv2d(8, 4, 3, bias=False)),
    "transposed": lambda: nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.ConvTranspose2d(8, 4, 3, stride=2)),
    "computed_norm": lambda: nn.Sequential(nn.Conv2d(4, 8, 3), Norm(), nn.Conv2d(8, 4, 3)),
    "single": lambda: nn.Conv2d(4, 8, 3),
    "large_filter": lambda: nn.Sequential(nn.Conv2d(4, 8, 7, padding=3, stride=2), nn.ReLU(), nn.Conv2d(8, 4, 1)),
}


def results_of(function, module, size, dtype):
    """The result of a call and its gradients: of the argument and of the parameters."""
    parameters = list(module.parameters())
    for p in parameters:
        p.grad = None
    torch.manual_seed(size[0])
    x = torch.randn(size).to(dtype).to(parameters[0].device, parameters[0].dtype).requires_grad_()
    y = function(x)
    (
        y.to(torch.promote_types(y.dtype, torch.float32))
        * torch.linspace(-1, 1, y.numel(), device=y.device).view(y.shape)
    ).sum().backward()
    return (y.detach(), x.grad, *(p.grad for p in parameters))


def compare(module, dtype, *sizes):
    """In 16 bits beside float64: eager mode rounds each operator's result."""
    module = module.to(dtype)
    exact = copy.deepcopy(module).double()
    module = module.to("cuda")
    compiled = cresset.compile(module, fullgraph=True)
    for size in sizes:
        mine, its = (results_of(f, module, size, dtype) for f in (compiled, module))
        assert [t.stride() for t in mine] == [t.stride() for t in its]
        expected = its if dtype == torch.float32 else results_of(exact, exact, size, dtype)
        for a, b, c in zip(mine, its, expected, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            scale = max(c.abs().max().item(), 1)
            torch.testing.assert_close(
                a.cpu().double() / scale, c.cpu().double() / scale, rtol=BOUNDS[dtype], atol=BOUNDS[dtype]
            )


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).split(".")[1])
@pytest.mark.parametrize("name", MODULES)
def test_values_and_gradients(name, dtype):
    compare(MODULES[name](), dtype, (2, 4, 12, 12), (3, 4, 9, 11))
    assert cresset.stats()["graphs"] == 1


@pytest.mark.parametrize("name", MODULES)
def test_inference(name):
    module = MODULES[name]().to("cuda").eval()
    compiled = cresset.compile(module, fullgraph=True)
    with torch.no_grad():
        for size in ((2, 4, 12, 12), (1, 4, 12, 12), (3, 4, 9, 11)):
            for memory_format in (torch.contiguous_format, torch.channels_last):
                x = torch.randn(size).contiguous(memory_format=memory_format).to("cuda")
                mine, its = compiled(x), module(x)
                torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-4)
                assert mine.stride() == its.stride()


@pytest.mark.parametrize("rank", (1, 3))
def test_signals_and_volumes(rank):
    conv = {1: nn.Conv1d, 3: nn.Conv3d}[rank]
    module = nn.Sequential(conv(4, 8, 3), nn.ReLU(), conv(8, 4, 3))
    compare(module, torch.float32, (2, 4) + (8,) * rank, (3, 4) + (9,) * rank)


class Returned(nn.Module):
    """Returns images between the convolutions, and views of them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3), nn.Conv2d(8, 4, 3)

    def forward(self, x):
        y = self.first(x)
        z = F.relu(y)
        return y, z.permute(0, 2, 3, 1), z[:, 1:3], self.second(z), z.mean()


def gradients_twice(function, module, x):
    results = function(x)
    loss = sum(r.square().sum() for r in results)
    first = torch.autograd.grad(loss, [x, *module.parameters()], create_graph=True)
    return results, first, torch.autograd.grad(sum(g.square().sum() for g in first), [x, *module.parameters()])


def test_images_between_convolutions_are_returned():
    """Results keep eager mode's strides, also where the same images are saved; gradients of gradients are the same."""
    module = Returned().to("cuda")
    compiled = cresset.compile(module, fullgraph=True)
    for size in ((2, 4, 12, 12), (3, 4, 9, 11)):
        x = torch.randn(size).to("cuda").requires_grad_()
        for mine, its in zip(gradients_twice(compiled, module, x), gradients_twice(module, module, x), strict=True):
            for a, b in zip(mine, its, strict=True):
                scale = max(b.abs().max().item(), 1)  # convolutions in another format round otherwise
                torch.testing.assert_close(a / scale, b / scale, rtol=1e-4, atol=1e-4)
        for a, b in zip(compiled(x), module(x), strict=True):
            assert a.stride() == b.stride()


def test_biases_and_norms_are_parts_of_one_kernel():
    """Conversion of the image, two filters, and what stands between the convolutions: bias, normalization, activation."""
    module = MODULES["group_norm"]().to("cuda").eval()
    with torch.no_grad():
        cresset.compile(module, fullgraph=True)(torch.randn(2, 4, 12, 12, device="cuda"))
    stats = cresset.stats()
    assert (stats["kernels"], stats["extern_calls"]) == (5, 2)  # the last kernel: the last bias


def test_attention_reads_a_mask_with_heads_in_the_last_dimension():
    """The libraries' kernels read rows of masks whose elements lie one after another."""
    strides = []
    library = torch.library.Library("cresset", "IMPL")

    def see(query, key, value, mask, causal, scale, grouped):
        strides.append(mask.stride())
        return F.scaled_dot_product_attention(query, key, value, mask, 0.0, causal, scale=scale, enable_gqa=grouped)

    def program(q, bias):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=bias.permute(2, 0, 1).unsqueeze(0) + 1)

    q, bias = torch.randn(2, 4, 16, 8, device="cuda"), torch.randn(16, 16, 4, device="cuda")
    with torch.no_grad():
        compiled = cresset.compile(program, fullgraph=True)
        first = compiled(q, bias)
        library.impl("attention", see, "CUDA")
        try:
            torch.testing.assert_close(compiled(q, bias), first)
        finally:
            library._destroy()
        torch.testing.assert_close(first, program(q, bias), rtol=1e-4, atol=1e-4)
    assert strides and all(s[-1] == 1 for s in strides)
