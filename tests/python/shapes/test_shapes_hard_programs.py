"""Programs known to be hard for symbolic shapes: each is compiled once and compared over random sizes."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset


def conv_channels_last(n, h, w):
    x = torch.randn(n, 3, h + 3, w + 3).to(memory_format=torch.channels_last)
    weight = torch.randn(8, 3, 3, 3).to(memory_format=torch.channels_last)
    return lambda x, weight: F.relu(F.conv2d(x, weight, stride=2, padding=1)), (x, weight)


def view_chain(n, h, w):
    return lambda x: x.view(x.size(0), -1).view(-1, 2).view(x.size(0), -1, 2).sum(1), (torch.randn(n, h, 2 * w),)


def expand_then_reshape(n, h, w):
    return lambda x, y: x[:, None].expand(-1, y.size(0), -1).reshape(-1, x.size(1)) * 2, (
        torch.randn(n, h),
        torch.randn(w),
    )


def interpolate_by_scale(n, h, w):
    return lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest"), (torch.randn(n, 3, h, w),)


def interpolate_by_odd_scale(n, h, w):
    return lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"), (torch.randn(n, 3, h + 1, w + 1),)


def pixel_shuffle(n, h, w):
    return lambda x: F.pixel_shuffle(x, 2) + 1, (torch.randn(n, 8, h, w),)


def pixel_unshuffle(n, h, w):
    return lambda x: F.pixel_unshuffle(x, 2) + 1, (torch.randn(n, 2, 2 * h, 2 * w),)


def unfold(n, h, w):
    return lambda x: F.unfold(x, 3, padding=1, stride=2).transpose(1, 2).sum(-1), (torch.randn(n, 2, h + 2, w + 2),)


def tensor_unfold(n, h, w):
    return lambda x: x.unfold(1, 3, 2).mean(-1), (torch.randn(n, h + 4),)


def adaptive_pooling(n, h, w):
    return lambda x: F.adaptive_avg_pool2d(x, (3, 3)) + 1, (torch.randn(n, 2, h + 3, w + 3),)


def adaptive_pooling_to_one(n, h, w):
    return lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), (torch.randn(n, 2, h, w),)


def root_mean_square_norm(n, h, w):
    plain, weighted = torch.nn.RMSNorm(4, elementwise_affine=False), torch.nn.RMSNorm((3, 4)).requires_grad_(False)
    return lambda x: plain(x) + weighted(x), (torch.randn(n, h, 3, 4),)


def cat_of_lengths(n, h, w):
    return lambda x, y: torch.cat([x, y, x[: x.size(0) // 2]]).cumsum(0), (torch.randn(h, 4), torch.randn(w, 4))


def chunk(n, h, w):
    return lambda x: sum(c.sum(1) for c in x.chunk(3, 1)), (torch.randn(n, 3 * h),)


def split_by_half(n, h, w):
    return lambda x: torch.cat(x.split([x.size(0) // 2, x.size(0) - x.size(0) // 2])[::-1]), (torch.randn(h, 3),)


def arange_of_symbol(n, h, w):
    return lambda x: x + torch.arange(x.size(1)) + torch.arange(x.size(1), 0, -1), (torch.randn(n, h),)


def linspace_of_symbol(n, h, w):
    return lambda x: x * torch.linspace(0, 1, x.size(1)), (torch.randn(n, h),)


def position_table(n, h, w):
    return lambda x, table: x + table[: x.size(1)], (torch.randn(n, h, 4), torch.randn(64, 4))


def mask_of_lengths(n, h, w):
    def f(x, lengths):
        mask = torch.arange(x.size(1))[None, :] < lengths[:, None]
        return x.masked_fill(~mask, 0.0).sum(1)

    return f, (torch.randn(n, h), torch.randint(0, h + 1, (n,)))


def causal_mask(n, h, w):
    def f(q):
        s = q.size(1)
        mask = torch.ones(s, s, dtype=torch.bool).tril()
        return (q @ q.transpose(1, 2)).masked_fill(~mask, float("-inf")).softmax(-1) @ q

    return f, (torch.randn(n, h, 8),)


def growing_cache(n, h, w):
    def f(cache, new):
        keys = torch.cat([cache, new], 1)
        return keys, F.scaled_dot_product_attention(new, keys, keys)

    return f, (torch.randn(n, w, 8), torch.randn(n, 1, 8))


def odd_halves(n, h, w):
    return lambda x: x[: x.size(0) // 2].sum(0) + x[x.size(0) // 2 :].sum(0), (torch.randn(h, 3),)


def padded_windows(n, h, w):
    def f(x):
        pad = (-x.size(1)) % 4
        x = F.pad(x, (0, 0, 0, pad))
        return x.view(x.size(0), -1, 4, x.size(2)).mean(2)

    return f, (torch.randn(n, h, 3),)


def cut_at_numbers(n, h, w):
    def f(x, y):
        last, first = x[:, -7:], x[:, :7]
        return (
            torch.cat([last, x], 1).cumsum(1),
            first * 2 + first,
            first.size(1),
            x[:, 1:7:2] + y[-6:][:4].sum(),
            x[:, -9:5],
        )

    return f, (torch.randn(n, h, 3), torch.randn(w))


def roll_by_half(n, h, w):
    return lambda x: x.roll(x.size(1) // 2, 1), (torch.randn(n, h),)


def stack_and_flatten(n, h, w):
    return lambda x: torch.stack([x.sin(), x.cos()], -1).flatten(-2), (torch.randn(n, h),)


def mean_of_product(n, h, w):
    return lambda x: x.sum() / (x.size(0) * x.size(1)) + x.numel(), (torch.randn(n, h),)


def jagged_lengths(n, h, w):
    def f(values, offsets):
        out = []
        for i in range(3):
            out.append(values[: values.size(0) // (i + 1)].sum(0))
        return torch.stack(out) + offsets.size(0)

    return f, (torch.randn(h, 2), torch.arange(n))


def sum_beside_zeros(n, h, w):
    def f(x):  # the sum's loop and its reader's loop have the same extent
        return torch.slice_scatter(x.new_zeros(x.size(0), x.size(1)), (x * 2).sum(0, keepdim=True), 0, 0, 1)

    return f, (torch.randn(n, h if n % 2 else 1),)


def several_scales(n, h, w):
    def f(x):
        scaled = [F.interpolate(x, scale_factor=s, mode="bilinear") for s in (0.5, 1.0, 2.0)]
        return scaled, F.avg_pool2d(x, 3, 2, 1), F.interpolate(F.avg_pool2d(x, 2), size=x.shape[2:])

    return f, (torch.randn(n + 1, 3, h + 8, w + 8),)


def channel_shuffle(n, h, w):
    x = torch.randn(n, 4, h, w)
    return lambda *xs: [F.channel_shuffle(x, 2) for x in xs], (x, x.to(memory_format=torch.channels_last) + 1)


def padded_at_edges(n, h, w):
    def f(*xs):
        return [F.pad(x, (1, 2, 2, 1), mode=mode) + 1 for x in xs for mode in ("reflect", "replicate")]

    x = torch.randn(n, 3, h + 1, w + 1)
    return f, (x, x.to(memory_format=torch.channels_last), x[0])


def pooled_volumes(n, h, w):
    def f(*xs):
        return [g(x) for x in xs for g in (lambda x: F.avg_pool3d(x, 2), lambda x: F.adaptive_avg_pool3d(x, (3, 2, 2)))]

    x = torch.randn(n, 3, 4, h, w)
    return f, (x, x.to(memory_format=torch.channels_last_3d), x.to(memory_format=torch.channels_last_3d)[:1])


def bags_of_embeddings(n, h, w):
    indices, offsets = torch.randint(0, w, (h,)), torch.arange(n).clamp(max=h)
    return F.embedding_bag, (indices, torch.randn(w, 5), offsets)


def distances_of_pairs(n, h, w):
    return lambda x: F.pdist(x) * 2, (torch.randn(h, 3),)


def smoothed_labels(n, h, w):
    def f(x, target):
        return F.cross_entropy(x, target, reduction="none", label_smoothing=0.1)

    return f, (torch.randn(n, h, w), torch.randint(0, h, (n, w)))


def variance(n, h, w):
    return lambda x: (x.var(1), x.std((0, 1), unbiased=False)), (torch.randn(n, h),)


def resized_with_channels_last(n, h, w):
    def f(x):
        return F.interpolate(x.contiguous(memory_format=torch.channels_last), scale_factor=2, mode="bilinear")

    return f, (torch.randn(n, 3, h, w),)


def selected_by_a_broadcast_mask(n, h, w):
    return lambda x, y: x.masked_select(y > 0).mean(), (torch.randn(n, h), torch.ones(h))


def loss_of_what_is_not_masked(n, h, w):
    def f(x, target):
        kept = target != 0
        return F.cross_entropy(x[kept], target[kept], reduction="sum")

    return f, (torch.randn(h, w), torch.randint(0, w, (h,)))


def products_of_pairs(n, h, w):
    return lambda x, y: (torch.kron(x, y), torch.kron(y, x[0]), torch.kron(x.t(), y.t()) + 1), (
        torch.randn(h, w),
        torch.randn(3, h),
    )


def covariances(n, h, w):
    return lambda x: (torch.cov(x), torch.corrcoef(x), x[0].cov(correction=0)), (torch.randn(h, w),)


def windows_of_what_is_selected(n, h, w):
    def f(x):
        kept = x[x > -9]
        row = kept[None]
        resized = [F.interpolate(row[None], scale_factor=2.0, mode=mode) for mode in ("nearest", "linear")]
        return kept.unfold(0, 3, 2), F.max_pool1d(row, 2), F.avg_pool1d(row, 3), *resized

    return f, (torch.randn(h, w),)


PROGRAMS = [
    value for value in list(globals().values()) if getattr(value, "__code__", None) and value.__module__ == __name__
]


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
def test_one_compilation_over_random_sizes(make):
    sizes = random.Random(make.__name__)
    function, _ = make(4, 8, 6)
    compiled = cresset.compile(function)
    for i in range(12):
        n, h, w = (4, 8, 6) if i == 0 else (sizes.randint(1, 5), sizes.randint(2, 19), sizes.randint(2, 19))
        torch.manual_seed(i)
        assert_same_call(function, compiled, *make(n, h, w)[1])
    stats = cresset.stats()
    assert stats["graph_break_reasons"] == []
    assert stats["graphs"] == 1, stats["recompiles"]


WITH_GRADIENTS = [
    bags_of_embeddings,
    smoothed_labels,
    variance,
    products_of_pairs,
    covariances,
    windows_of_what_is_selected,
    resized_with_channels_last,
    selected_by_a_broadcast_mask,
    loss_of_what_is_not_masked,
]


def gradients_of(function, args):
    args = [a.clone().requires_grad_() if a.is_floating_point() else a for a in args]
    results = function(*args)
    sum(r.square().sum() for r in (results if isinstance(results, tuple) else [results])).backward()
    return results, [a.grad for a in args]


@pytest.mark.parametrize("make", WITH_GRADIENTS, ids=lambda f: f.__name__)
def test_one_compilation_with_gradients(make):
    function, _ = make(4, 8, 6)
    compiled = cresset.compile(function)
    for i, sizes in enumerate([(4, 8, 6), (3, 5, 9), (2, 12, 4), (5, 7, 7)]):
        torch.manual_seed(i)
        _, args = make(*sizes)
        torch.testing.assert_close(gradients_of(compiled, args), gradients_of(function, args), equal_nan=True)
    stats = cresset.stats()
    assert stats["graph_break_reasons"] == []
    assert (stats["graphs"], stats["eager_calls"]) == (1, 0), stats["recompiles"]


def test_a_view_of_nothing_is_one():
    def function(x):
        return x.transpose(1, 2).view(x.shape[0], x.shape[1] * x.shape[2]) + 1

    compiled = cresset.compile(function, fullgraph=True)
    assert_same_call(function, compiled, torch.randn(0, 3, 5))
    assert_same_call(function, compiled, torch.randn(0, 4, 5))


def test_a_size_that_nothing_tells_raises_as_eager_does():
    def function(x):
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, 3)

    compiled = cresset.compile(function)
    for n in (2, 0, 3):
        assert_same_call(function, compiled, torch.randn(n, 3, 4, 5).to(memory_format=torch.channels_last))


def test_an_error_that_only_eager_sees_keeps_later_calls_compiled():
    """With batch 0, an operator raises that capture cannot take: no later call is left to eager for it."""

    def pick(mask):
        take = torch.vmap(lambda i, j: mask[i, j], in_dims=(None, 0))
        return torch.vmap(take, in_dims=(0, None))(torch.arange(mask.shape[0]), torch.arange(mask.shape[1])) + 1

    compiled = cresset.compile(pick)
    for batch in (3, 0, 2, 5):
        assert_same_call(pick, compiled, torch.rand(batch, 7))
    assert cresset.stats()["eager_calls"] == 1


def test_a_mean_over_a_channels_last_image_is_of_any_batch():
    """Its layout comes from as_strided(), whose derivative asks each size whether it is 1."""
    pool, norm, head = torch.nn.AdaptiveAvgPool2d(1), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)

    def function(x):
        return head(pool(norm(x).permute(0, 3, 1, 2)).flatten(1))

    compiled = cresset.compile(function)
    for batch in (2, 1, 3):
        x, found = torch.randn(batch, 4, 4, 8), []
        for f in (function, compiled):
            given = x.clone().requires_grad_()
            out = f(given)
            out.sin().sum().backward()
            found.append((out.detach(), given.grad))
        torch.testing.assert_close(found[1], found[0])
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


TENSORDOT = {
    "matrices": lambda x, w: torch.tensordot(x[:, :, None] * 2, w, dims=((1,), (0,))).permute(0, 2, 1).reshape(-1, 4),
    "itself": lambda x, w: torch.tensordot(x, x, dims=2),
    "outer": lambda x, w: torch.tensordot(x, w, dims=0),
    "repeated": lambda x, w: torch.tensordot(x, w.sum(0, keepdim=True), dims=([-1], [0])),
    "two of each": lambda x, w: torch.tensordot(x[:, :, None] * w, w[:, None], dims=([1, -1], [0, 2])),
    "twice the same": lambda x, w: torch.tensordot(x, w, dims=([1, 1], [0, 0])),
    "other sizes": lambda x, w: torch.tensordot(x, w[:3], dims=([1], [0])),
    "other ranks": lambda x, w: torch.tensordot(x, w, dims=([1], [0, 1])),
    "out of range": lambda x, w: torch.tensordot(x, w, dims=([2], [0])),
}


@pytest.mark.parametrize("name", TENSORDOT)
def test_tensordot_is_of_any_batch(name):
    function = TENSORDOT[name]
    compiled = cresset.compile(function)
    for batch in (3, 1, 5, 0):
        assert_same_call(function, compiled, torch.randn(batch, 4).requires_grad_(), torch.randn(4, 4).requires_grad_())
    stats = cresset.stats()
    assert stats["graphs"] <= 1 or name == "repeated", stats["recompiles"]
