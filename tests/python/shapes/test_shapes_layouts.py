"""A single compiled function, arguments of many layouts, ranks and sizes (including 0 and 1). Values, strides and
shared memory are eager's, whatever came first."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from compare import aliases, assert_same, assert_same_call, outcome
from torch import Tensor

import cresset

SHAPES = [
    *[(3, 4), (1, 4), (3, 1), (5, 5), (0, 4), (1, 1)],
    *[(2, 3, 4), (1, 3, 4), (2, 1, 4), (2, 3, 1), (5, 5, 5), (0, 3, 4)],
    *[(2, 3, 4, 5), (1, 3, 4, 4), (2, 1, 4, 4), (2, 3, 1, 1)],
]

FUNCTIONS: dict[str, Callable[[Tensor], object]] = {
    text.strip(): eval("lambda x: " + text)
    for text in """
        x + 1; x.contiguous(); x.clone(); x.reshape(-1); x.flatten(); x.ravel(); x.flatten(1); x.flatten(0, 1)
        x.reshape(x.shape[0], -1); x.reshape(-1, x.shape[-1]); x.transpose(0, 1).contiguous(); x.mT
        x.permute(*range(x.dim() - 1, -1, -1)).contiguous(); x.unsqueeze(-1).squeeze(-1); x.squeeze(); x.squeeze(1)
        x.transpose(0, 1).flatten(0, 1); x.transpose(0, 1).flatten(0, 1).add_(1); x.contiguous().add_(1)
        x.add_(1).contiguous(); (x.contiguous(), x.add_(1)); x.transpose(0, 1).contiguous()[0:1]
        x.sum(0, keepdim=True); x.softmax(1); x.to(torch.float64); torch.empty_like(x).fill_(2); torch.cat([x, x], 0)
        x * x.sum(-1, keepdim=True); x + torch.ones(x.shape[-1]); x.cumsum(-1); x[:, 0:1]; x[..., ::2]; x[None]; x.flip(-1)
        x.expand(2, *x.shape); x.split(1, 0); x.chunk(2, -1); x.unbind(1); x.narrow(0, 0, x.shape[0]); x.view(x.shape)
        x.masked_fill(x > 0, 0); x.diagonal(dim1=-2, dim2=-1); x @ x.mT; x.matmul(torch.ones(x.shape[-1], 2)); x.detach()
        x.stride(); x.stride(-1); x.add_(1) if 0 not in x.stride() else x + 2; x.is_contiguous(); x.clone(memory_format=torch.contiguous_format); x.movedim(0, -1); torch.atleast_3d(x)
        x.squeeze(0) + x.unsqueeze(0); x.expand(x.shape).contiguous(); x.expand(-1, *x.shape[1:]); x.half().contiguous()
        torch.broadcast_to(x, (2, *x.shape)).reshape(-1); x.view(-1) if x.is_contiguous() else x.reshape(-1) + 0
    """.replace("\n", ";").split(";")
    if text.strip()
}  # fmt: skip


def layouts(shape: tuple[int, ...]) -> Iterator[Tensor]:
    rank = len(shape)

    def changed(dim: int, size: int) -> Tensor:
        sizes = list(shape)
        sizes[dim] = size
        return torch.randn(sizes)

    yield torch.randn(shape)
    yield torch.randn(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)
    yield torch.randn(shape[::-1]).permute(*range(rank - 1, -1, -1))
    yield changed(-1, 2 * shape[-1])[..., ::2]
    yield changed(-1, shape[-1] + 3)[..., 1 : shape[-1] + 1]
    yield changed(0, shape[0] + 2)[1 : shape[0] + 1]
    yield changed(1, 2 * shape[1])[:, ::2]


def copy(x: Tensor) -> Tensor:
    """A copy with the same layout, in its own memory."""
    return torch.empty(0).set_(x.untyped_storage().clone(), x.storage_offset(), x.shape, x.stride())


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", FUNCTIONS)
@torch.no_grad()
def test_layouts(name, seed):
    torch.manual_seed(0)
    inputs = [x for shape in SHAPES for x in layouts(shape)]
    random.Random(seed).shuffle(inputs)
    compiled = cresset.compile(FUNCTIONS[name])
    for x in inputs:
        theirs, ours = copy(x), copy(x)
        expected, wanted = outcome(FUNCTIONS[name], (theirs,), {})
        got, raised = outcome(compiled, (ours,), {})
        where = f"sizes {tuple(x.shape)}, strides {x.stride()}"
        assert (type(raised), str(raised)) == (type(wanted), str(wanted)), where
        if wanted is None:
            assert_same(got, expected)
            assert aliases(got, [ours]) == aliases(expected, [theirs]), where
        assert_same(ours, theirs)


@torch.no_grad()
def test_a_batch_of_one_needs_no_program_of_its_own_where_nobody_sees_the_memory():
    weight = torch.randn(4, 4)
    compiled = cresset.compile(lambda x: x.transpose(0, 1).reshape(-1, 4) @ weight)
    for shape in ((1, 3, 4), (2, 3, 4), (3, 1, 4), (1, 1, 4)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x), x.transpose(0, 1).reshape(-1, 4) @ weight)
    assert cresset.stats()["graphs"] == 1


def test_views_that_fix_sizes_of_which_one_is_1():
    """A size of 1 in this view has no neighbor: the layout does not matter there."""
    compiled = cresset.compile(lambda x: (x.view(1, 4, 16, 64, -1), x.view(1, 2, 2, 1024, -1), x.view(4, 1, 1024, 16)))
    for kept in (False, True):
        x = torch.randn(1, 1024, 4, 16).transpose(1, 2)
        x = x.contiguous() if kept else x
        for mine, its in zip(compiled(x), compiled.__wrapped__(x)):
            assert mine.stride() == its.stride() and aliases(mine, [x]) == aliases(its, [x])
            torch.testing.assert_close(mine, its)
    assert cresset.stats()["graph_breaks"] == 0 and cresset.stats()["eager_calls"] == 0


IMAGES = {
    "cat": lambda image: torch.cat([image, image], 1),
    "pointwise": lambda image: image.relu() + 1,
    "convolution": torch.nn.Conv2d(8, 4, 1),
    "interpolate": lambda image: torch.nn.functional.interpolate(image, size=(8, 8), mode="bilinear"),
    "pool": lambda image: torch.nn.functional.avg_pool2d(image, 2),
}


@pytest.mark.parametrize("name", IMAGES)
@torch.no_grad()
def test_images_made_of_transposed_rows(name):
    """The number of channels is a quotient; only a guard shows that it is the rows' length."""
    function = lambda x: IMAGES[name](x.transpose(1, 2).reshape(x.shape[0], -1, 4, 4))  # noqa: E731
    compiled = cresset.compile(function)
    for batch in (3, 2, 5):
        assert_same_call(function, compiled, torch.randn(batch, 16, 8))


WRAPPED = {
    "roll": lambda x: torch.roll(x, (2, -1), (1, 2)),
    "roll last": lambda x: x.exp().roll(-3, -1) * 2,
    "roll far": lambda x: x.roll(100, -1),
    "roll twice": lambda x: x.roll((1, 1), (2, 2)),
    "roll by a size": lambda x: x.roll(x.shape[0], -1),
    "roll a vector": lambda x: x.flatten().roll(5),
    "roll transposed": lambda x: x.transpose(1, 2).roll(1, -1),
    "circular": lambda x: torch.nn.functional.pad(x, (2, 1), mode="circular"),
    "circular one side": lambda x: torch.nn.functional.pad(x[None], (0, 1, 2, 0), mode="circular") + 1,
    "circular transposed": lambda x: torch.nn.functional.pad(x.transpose(1, 2), (2, 1), mode="circular"),
    "circular cut": lambda x: torch.nn.functional.pad(x, (-1, 0), mode="circular"),
    "circular channels last": lambda x: torch.nn.functional.pad(
        x[None].contiguous(memory_format=torch.channels_last), (1, 1, 1, 1), mode="circular"
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
@torch.no_grad()
def test_what_wraps_around(name):
    compiled = cresset.compile(WRAPPED[name])
    for shape in ((3, 5, 40), (2, 4, 17), (1, 3, 3), (2, 2, 0), (2, 3, 1), (5, 6, 70)):
        assert_same_call(WRAPPED[name], compiled, torch.randn(shape))


@pytest.mark.parametrize("transposed", [False, True])
def test_small_convolutions_of_volumes_are_contiguous(transposed):
    """ATen's own code computes them, without channels last; oneDNN computes larger convolutions."""

    def f(x, weight, groups):
        return (torch.nn.functional.conv_transpose3d if transposed else torch.nn.functional.conv3d)(
            x, weight, groups=groups
        )

    compiled = cresset.compile(f)
    for batch, channels, side, groups in (
        (2, 4, 5, 1),
        (1, 4, 5, 1),
        (1, 4, 5, 2),
        (1, 16, 40, 1),
        (3, 4, 6, 1),
        (1, 2, 7, 1),
    ):
        x = torch.randn(batch, channels, 4, side, side).to(memory_format=torch.channels_last_3d)
        weight = torch.randn((channels, 4, 3, 3, 3) if transposed else (4, channels // groups, 3, 3, 3))
        got, expected = compiled(x, weight, groups), f(x, weight, groups)
        assert got.stride() == expected.stride(), (batch, channels, side, groups)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def test_operators_see_the_order_of_dimensions_where_one_has_one_element():
    """ATen decides on channels last by the strides of all dimensions, including dimensions with a single element."""
    norm = torch.nn.GroupNorm(2, 8)

    def frames(x):
        b, c, h, w = x.shape
        return norm(x[None].reshape(1, b, c, h, w).permute(0, 2, 1, 3, 4))

    compiled = cresset.compile(frames)
    for count in (2, 3, 1):
        x = torch.randn(count, 8, 6, 6).to(memory_format=torch.channels_last).requires_grad_()
        tangent = torch.randn(1, 8, count, 6, 6)
        expected, got = frames(x), compiled(x)
        assert count == 1 or got.stride() == expected.stride()
        for a, b in zip(
            torch.autograd.grad(expected, (x, norm.weight), tangent),
            torch.autograd.grad(got, (x, norm.weight), tangent),
        ):
            torch.testing.assert_close(b, a)


class PatchAttention(torch.nn.Module):
    """Tokens of an image's patches and learned tokens, as inputs of an attention layer."""

    def __init__(self, add, heads):
        super().__init__()
        self.learned = torch.nn.Parameter(torch.randn(1, 1, 32))
        self.embed, self.qkv = torch.nn.Linear(48, 32), torch.nn.Linear(32, 96, bias=False)
        self.add, self.heads = add, heads

    def forward(self, image):
        b, c, h, w = image.shape
        patches = image.reshape(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1)
        x = self.add(self.embed(patches.reshape(b, (h // 4) * (w // 4), 16 * c)), self.learned)
        q, k, v = map(self.heads, self.qkv(x).chunk(3, dim=-1))
        mixed = torch.matmul((q @ k.transpose(-1, -2)).softmax(-1), v)
        return (mixed.permute(0, 2, 1, 3).reshape(b, x.shape[1], 32) + x)[:, 0]


ADDED = {
    "expanded": lambda x, t: torch.cat([t.expand(x.shape[0], -1, -1), x], 1),
    "repeated": lambda x, t: torch.cat([t.repeat(x.shape[0], 1, 1), x], 1),
    "two": lambda x, t: torch.cat([t.expand(len(x), 1, -1), x, (t * 2).expand(len(x), 1, -1)], 1),
    "padded": lambda x, t: F.pad(x, (0, 0, 1, 0)) + t,
}
HEADS = {
    "reshape": lambda t: t.reshape(t.shape[0], t.shape[1], 4, 8).permute(0, 2, 1, 3),
    "unflatten": lambda t: t.unflatten(-1, (4, -1)).transpose(1, 2),
}


@pytest.mark.parametrize("first", [2, 1])
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("added", ADDED)
def test_learned_tokens_at_any_batch(added, heads, first):
    """Only for a batch of 1, rows would be contiguous: no decision on it may be made."""
    module = PatchAttention(ADDED[added], HEADS[heads])
    compiled = cresset.compile(module)
    for gradients in (False, True):
        cresset.reset()
        with torch.set_grad_enabled(gradients):
            for batch, h, w in ((first, 16, 24), (3, 8, 8), (1, 16, 8), (0, 8, 12), (2, 32, 8)):
                image, found = torch.randn(batch, 3, h, w), []
                for f in (compiled, module):
                    out = f(image)
                    if gradients:
                        module.zero_grad()
                        out.square().sum().backward()
                    found.append((out.detach(), [p.grad for p in module.parameters()]))
                torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)
        stats = cresset.stats()
        assert (stats["graphs"], stats["eager_calls"]) == (1, 0), stats["recompiles"]


@torch.no_grad()
def test_strides_over_single_elements_pass_through_views():
    """A convolution of channels-last images of a single pixel returns channels-last images, in eager and here."""

    def f(x, w):
        rows = x.sum(1, keepdim=True).permute(
            0, 2, 1
        )  # one element along the last dimension, with another stride than 1
        image = rows.contiguous().view(-1, 16, 1, 1)
        return image, torch.nn.functional.conv2d(image, w)

    compiled = cresset.compile(f)
    for n in (2, 3, 5):
        x, w = torch.randn(n, 3, 16), torch.randn(4, 16, 1, 1)
        for mine, its in zip(compiled(x, w), f(x, w)):
            torch.testing.assert_close(mine, its)
            assert mine.stride() == its.stride()


def test_products_of_matrices_of_one_column_with_gradients():
    def f(x, y):
        return (x @ x.mT).sum(-1) + x @ y

    compiled = cresset.compile(f)
    for rows, columns in ((3, 4), (5, 1), (1, 3), (1, 1), (2, 6)):
        given, found = (torch.randn(rows, columns), torch.randn(columns, rows)), []
        for call in (f, compiled):
            leaves = [t.clone().requires_grad_() for t in given]
            call(*leaves).sin().sum().backward()
            found.append([t.grad for t in leaves])
        torch.testing.assert_close(found[1], found[0])
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_to_others_of_any_batch_and_length(batch_first, wants):
    """A transposed operand of a product: whether its rows are contiguous must not depend on sizes of 1."""
    module = torch.nn.MultiheadAttention(16, 4, batch_first=batch_first).eval().requires_grad_(wants)
    compiled = cresset.compile(lambda q, k: module(q, k, k, need_weights=False)[0])
    for batch, queries, keys in ((2, 5, 7), (1, 5, 3), (3, 4, 1), (1, 1, 1), (1, 5, 1), (2, 1, 4), (1, 1, 3)):
        q, k = torch.randn(batch, queries, 16), torch.randn(batch, keys, 16)
        if not batch_first:
            q, k = q.transpose(0, 1).contiguous(), k.transpose(0, 1).contiguous()
        torch.testing.assert_close(compiled(q, k), module(q, k, k, need_weights=False)[0])
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


@torch.no_grad()
def test_windows_of_which_there_is_one_at_first():
    def f(x):
        batch, height, width, channels = x.shape
        y = torch.nn.functional.pad(x, (0, 0, 0, -width % 7, 0, -height % 7))
        padded, across = y.shape[1:3]
        windows = y.view(batch, padded // 7, 7, across // 7, 7, channels).permute(0, 1, 3, 2, 4, 5)
        windows = windows.contiguous().view(-1, 49, channels) * 2
        windows = windows.view(-1, padded // 7, across // 7, 7, 7, channels).permute(0, 1, 3, 2, 4, 5)
        return x + windows.contiguous().view(-1, padded, across, channels)[:, :height, :width].contiguous().sin()

    compiled = cresset.compile(f)
    for size in ((2, 3, 2, 8), (1, 4, 16, 8), (3, 20, 3, 8), (2, 15, 8, 8), (1, 1, 1, 8)):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), f(x))
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


def test_attention_with_gradients_under_a_mask_of_computed_sizes():
    """The mask's length is computed from other sizes than the keys' length."""

    def f(q, k, mask):
        lengths = mask.view(q.shape[0], -1)[:, None, None, :].float()
        return torch.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=lengths)

    compiled = cresset.compile(f)
    for batch, length in ((2, 9), (3, 12), (1, 7), (4, 5), (1, 1)):
        given, mask, found = (
            (torch.randn(batch, 4, 3, 8), torch.randn(batch, 4, length, 8)),
            torch.ones(batch, length),
            [],
        )
        for call in (f, compiled):
            leaves = [t.clone().requires_grad_() for t in given]
            call(*leaves, mask).sin().sum().backward()
            found.append([t.grad for t in leaves])
        torch.testing.assert_close(found[1], found[0])
        assert [g.stride() for g in found[1]] == [g.stride() for g in found[0]]
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


NORMS = {
    **{f"matrix norm {order}": lambda x, order=order: torch.linalg.matrix_norm(x, order) for order in (1, -1, 2, -2)},
    "greatest row": lambda x: torch.linalg.norm(x, float("inf"), dim=(0, 2), keepdim=True),
    "close": lambda x: torch.isclose(x, x + 1e-9).float() + torch.isclose(x.long(), x.long() + 1, rtol=0.5).float(),
    "spectra without a window": lambda x: torch.stft(x[:, 0].repeat(1, 8), 8, 2, return_complex=True).abs(),
    "signs": lambda x: x.sgn() * x,
    "means of parts": lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (None, 2)),
    "cosines of all pairs": lambda x: torch.nn.functional.cosine_similarity(x[:, :, None], x[:, None], dim=-1),
    "complex of two parts": lambda x: torch.view_as_real(torch.complex(x[:, :, None], x[:, None])),
    "polar of two parts": lambda x: torch.polar(x[:, :1], x[:, None, 0]).abs(),
    "cholesky": lambda x: torch.linalg.cholesky_ex(x @ x.mT + torch.eye(x.shape[1]))[0],
}


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_operators_whose_own_code_looks_at_sizes(name, wants):
    f = NORMS[name]
    compiled = cresset.compile(f)
    for size in ((2, 3, 4), (3, 5, 5), (4, 2, 7), (1, 3, 3), (5, 4, 2)):
        given, found = torch.randn(size), []
        for call in (f, compiled):
            x = given.clone().requires_grad_(wants)
            y = call(x)
            if y.requires_grad:
                y.sin().sum().backward()
            found.append((y.detach(), x.grad))
        torch.testing.assert_close(found[1], found[0])
    # The derivative of singular values distinguishes wide matrices.
    programs = 2 if wants and name in ("matrix norm 2", "matrix norm -2") else 1
    assert cresset.stats()["graphs"] == programs, cresset.stats()["recompiles"]
    assert cresset.stats()["eager_calls"] == 0, cresset.stats()["graph_break_reasons"]


def test_pools_to_computed_sizes_that_are_refused():
    """Decisions on the sizes are dropped where the pool rejects them; later sizes decide again."""

    def f(x, wide):
        return torch.nn.functional.adaptive_avg_pool2d(x, (x.shape[0] - 3, x.shape[1] - wide))

    compiled = cresset.compile(f)
    for size, wide in (((2, 3, 4, 4), 5), ((5, 6, 4, 4), 4), ((4, 5, 4, 4), 4), ((1, 3, 4, 4), 5), ((6, 5, 4, 4), 1)):
        assert_same_call(f, compiled, torch.randn(size), wide)
