"""All strides, including strides of dimensions with a single element, which users see and which decide memory formats.
A single compiled function gets arguments of every layout in random orders. Results have eager's layouts and aliases,
and a write through either side reaches the same memory as in eager mode."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F  # noqa: F401
from compare import assert_same, outcome, tensors
from torch import Tensor

import cresset

SIZES = {
    2: [(3, 4), (1, 4), (3, 1), (1, 1), (0, 4), (5, 5)],
    3: [(2, 3, 4), (1, 3, 4), (2, 1, 4), (2, 3, 1), (1, 1, 4), (1, 3, 1), (2, 0, 4)],
    4: [(2, 4, 4, 6), (1, 4, 4, 6), (2, 1, 4, 6), (2, 4, 1, 1), (1, 4, 1, 6), (1, 1, 4, 6), (1, 4, 1, 1), (1, 1, 1, 1)],
}


def odd(x: Tensor, stride: int) -> Tensor:
    """The same elements; dimensions of one element have this stride."""
    return x.as_strided(x.shape, [stride if n == 1 else s for n, s in zip(x.shape, x.stride())], x.storage_offset())


def layouts(sizes: tuple[int, ...]) -> Iterator[Tensor]:
    rank = len(sizes)

    def of(shape: tuple[int, ...]) -> Tensor:
        count = 1
        for n in shape:
            count *= n
        return torch.arange(count, dtype=torch.float32).sub(count // 2).reshape(shape)

    yield of(sizes)
    yield of((*sizes[:-2], sizes[-1], sizes[-2])).transpose(-1, -2)
    yield of(sizes[::-1]).permute(*range(rank - 1, -1, -1))
    yield of((*sizes[:-1], 2 * sizes[-1]))[..., ::2]
    yield of((sizes[0] + 2, *sizes[1:]))[1 : sizes[0] + 1]
    yield of((1, *sizes[1:])).expand(sizes)
    if 1 in sizes:
        yield odd(of(sizes), 7)
        yield odd(of(sizes), 1)
        yield odd(of((*sizes[:-2], sizes[-1], sizes[-2])).transpose(-1, -2), 3)
    if rank == 4:
        last = of((sizes[0], *sizes[2:], sizes[1])).permute(0, 3, 1, 2)
        yield last
        if 1 in sizes:
            yield odd(last, 4)
            yield odd(last, 1000)
    if rank > 2 and sizes[0] == 1:
        yield of(sizes[1:]).unsqueeze(0)
        yield of(sizes[1:][::-1]).permute(*range(rank - 2, -1, -1)).unsqueeze(0)


def copy(x: Tensor) -> Tensor:
    """A copy with the same layout, in its own memory."""
    memory = x.untyped_storage().clone()
    return torch.empty(0, dtype=x.dtype).set_(memory, x.storage_offset(), x.shape, x.stride())


def seen(value: object, argument: Tensor) -> list[object]:
    """Everything visible to a program in the results beside their elements."""
    own = argument.untyped_storage().data_ptr()
    found: list[object] = [value is argument]
    for path, t in tensors(value):
        shares = t.numel() > 0 and t.untyped_storage().data_ptr() == own
        formats = [t.is_contiguous()]
        if t.dim() == 4:
            formats.append(t.is_contiguous(memory_format=torch.channels_last))
        found.append(
            (path, tuple(t.shape), t.stride(), t.dtype, shares, t.storage_offset() if shares else None, formats)
        )
    return found


def table(text: str) -> dict[str, Callable[[Tensor], object]]:
    rows = (row.strip() for row in text.replace("\n", ";").split(";"))
    return {row: eval("lambda x: " + row, globals()) for row in rows if row}


ANY = table("""
    x + 3; x > 0; x == x; x.to(torch.float64); x.to(torch.int64); x.half(); x.bool(); -x; x.abs(); x.clone(); x * x; x.relu() + 1
    x.movedim(0, -1); x.movedim(-1, 0); x.movedim(0, -1) + 1; x.transpose(0, 1); x.transpose(0, 1) + 1; x.mT; x.unsqueeze(1); x.mT.clone()
    x.unsqueeze(0) * 2; x.unsqueeze(-1) * 2; x[None]; x[0:1]; x[:1] + 1; x[..., :1]; x[..., :1] * 2; x[:, :1].neg(); x.squeeze()
    x.contiguous(); x.contiguous() + 1; x.flatten(); x.ravel(); x.reshape(-1); x.flatten(0, 1); x.flatten(0, 1) + 1; x.flatten(-2)
    x.reshape(x.shape[0], -1); x.reshape(-1, x.shape[-1]); x.reshape(1, *x.shape); x.reshape(*x.shape, 1); x.reshape(x.shape)
    x.transpose(0, 1).reshape(x.shape); x.transpose(0, 1).flatten(); x.transpose(0, 1).contiguous(); x.mT.reshape(1, -1)
    (x + 1).transpose(0, 1).reshape(x.shape[0], -1); (x + 1).mT.contiguous(); (x * 2).mT.reshape(1, *x.shape); (x + 1).mT + 1
    x.expand(2, *x.shape); x.expand(x.shape); x.expand(2, *x.shape) + 1; x.expand_as(x); x[:1].expand(3, *x.shape[1:]); x.expand(1, *x.shape)
    x.unfold(0, 1, 1); x.unbind(0); x.split(1); x.chunk(2, -1); x.tensor_split(2); x.narrow(0, 0, x.shape[0]); x.diagonal(); x.unsafe_chunk(2)
    x.unsafe_split(1, -1); x.detach(); x.view_as(x); x.T if x.dim() == 2 else x.mT; x.swapaxes(0, 1) * 1; x.permute(*reversed(range(x.dim())))
    x.sum(0, keepdim=True); x.sum(-1); x.amax(-1, keepdim=True); x.mean(0); x.cumsum(0); x.softmax(-1); x.sort(-1); x.argsort(0); x.flip(0)
    x.mT.sum(0, keepdim=True); x.mT.cumsum(0); x.mT.softmax(-1); x.roll(1, 0); x.masked_fill(x > 0, 1.0); torch.where(x > 0, x, 0); x.tril()
    torch.cat([x, x]); torch.cat([x, x], -1); torch.stack([x, x]); torch.stack([x.mT, x.mT], -1); torch.zeros_like(x); torch.empty_like(x).fill_(1)
    x.new_zeros(x.shape); x.repeat(*[2] * x.dim()); x + x.mT.mT; x + x.sum(-1, keepdim=True); x.sum(0, keepdim=True) + x; torch.maximum(x, -x)
    x @ x.mT; x.mT @ x; torch.atleast_3d(x); x.squeeze(0); x.squeeze(-1) + 1; F.pad(x, (1, 0)); F.layer_norm(x, x.shape[-1:]); x.gather(0, x.long() * 0)
    x.index_select(0, torch.tensor([0] * min(1, x.shape[0]))); x.t() if x.dim() == 2 else x.transpose(1, 2); x.clamp(0, 1).mT; x.view(torch.int32)
    x.type(torch.float64); x.float(); x.to(x); x.type_as(x); x.to("cpu"); x.cpu(); x.double().mT; x.sin().movedim(0, -1).cos(); x.pow(2).mT + 1
    torch.stack(x.unbind(0)); torch.atleast_2d(x.flatten()); x.conj(); x.real; x.resolve_conj(); x.positive(); x.contiguous().view(-1); x.clone().add_(1)
    x.clone(memory_format=torch.contiguous_format); x.mT.clone().mul_(2); torch.empty_like(x.mT).copy_(x.mT); x.mT.add(1).add_(1); x.isfinite(); x.sign()
    x.logical_not(); torch.add(x, x, alpha=2); torch.pow(2, x.mT.long().clamp(0, 3)); torch.pow(2, x.mT); x.long() // 2; F.one_hot(x.mT.long().clamp(0, 3), 4)
    x.std(-1, keepdim=True); x.var(0); torch.meshgrid(x.flatten()[:2], x.flatten()[:1], indexing="ij"); x.unflatten(0, (-1, x.shape[0])) if x.shape[0] else x
""")

IMAGES = table("""
    x.contiguous(memory_format=torch.channels_last); x.to(memory_format=torch.channels_last); x.to(memory_format=torch.contiguous_format)
    x.to(torch.float64, memory_format=torch.channels_last); x.clone(memory_format=torch.channels_last); x.to(memory_format=torch.preserve_format)
    x.contiguous(memory_format=torch.channels_last) + 1; (x + 1).contiguous(memory_format=torch.channels_last); (x + 1).to(memory_format=torch.channels_last)
    x.is_contiguous(memory_format=torch.channels_last); F.conv2d(x, torch.ones(3, x.shape[1], 1, 1)); F.conv2d(x, torch.ones(3, x.shape[1], 1, 1)) + 1
    F.conv2d(x, torch.ones(3, x.shape[1], 3, 3), padding=1).relu(); F.conv_transpose2d(x, torch.ones(x.shape[1], 2, 1, 1))
    F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])); F.max_pool2d(x, 1); F.avg_pool2d(x, 1); F.adaptive_avg_pool2d(x, 1)
    F.interpolate(x, scale_factor=2.0); F.interpolate(x, scale_factor=2.0, mode="bilinear"); F.group_norm(x, 1); F.pixel_shuffle(torch.cat([x] * 4, 1), 2)
    F.pad(x, (1, 1, 1, 1), mode="replicate"); F.dropout(x, 0.5, False); torch.cat([x, x], 1).relu(); x.flatten(2).transpose(1, 2); x.flatten(1) + 1
    x.flatten(2).transpose(1, 2).reshape(x.shape[0], x.shape[2], x.shape[3], x.shape[1]).permute(0, 3, 1, 2) + 1; F.prelu(x, torch.ones(1)); F.instance_norm(x) if x.shape[2] * x.shape[3] > 1 else x
    x[0].permute(1, 2, 0) * 2; (x[0].permute(1, 2, 0) * 2).permute(2, 0, 1)[None] + 1; x.mean((2, 3), keepdim=True); x.mean((2, 3), keepdim=True) * x; x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    x.to(memory_format=torch.channels_last).to(memory_format=torch.contiguous_format); x.relu().to(memory_format=torch.channels_last).add_(1)
    F.conv2d(x.mT.mT[:1], torch.ones(3, x.shape[1], 1, 1)); F.conv2d(x.relu(), torch.ones(3, x.shape[1], 1, 1).to(memory_format=torch.channels_last)); F.conv2d(x[0], torch.ones(3, x.shape[1], 1, 1))
    F.conv2d(x.flatten(2).transpose(1, 2).transpose(1, 2).reshape(x.shape), torch.ones(3, x.shape[1], 1, 1)); F.batch_norm(x[0].unsqueeze(0), torch.zeros(x.shape[1]), torch.ones(x.shape[1])) if len(x) else x
""")


def check(f: Callable, compiled: Callable, x: Tensor) -> None:
    theirs, ours = copy(x), copy(x)
    expected, wanted = outcome(f, (theirs,), {})
    got, raised = outcome(compiled, (ours,), {})
    where = f"sizes {tuple(x.shape)}, strides {x.stride()}"
    assert (type(raised), str(raised)) == (type(wanted), str(wanted)), where
    if wanted is None:
        assert seen(got, ours) == seen(expected, theirs), where
        assert_same(got, expected, tolerance=1e-5)
    assert_same(ours, theirs)
    if wanted is not None or 0 in x.stride():
        return
    for mine, its in zip(tensors(got), tensors(expected)):  # a write through the results
        if its[1].dtype != torch.bool and 0 not in its[1].stride() and not its[1].is_conj():
            mine[1].fill_(5), its[1].fill_(5)
    assert torch.equal(ours, theirs), where
    ours.fill_(3), theirs.fill_(3)  # and one through the argument
    for (path, mine), (_, its) in zip(tensors(got), tensors(expected)):
        assert torch.equal(mine, its), (path, where)


@pytest.mark.parametrize("rank", SIZES)
@pytest.mark.parametrize("name", ANY)
@torch.no_grad()
def test_any(name, rank):
    given = [x for sizes in SIZES[rank] for x in layouts(sizes)]
    random.Random(name).shuffle(given)
    compiled = cresset.compile(ANY[name])
    for x in given:
        check(ANY[name], compiled, x)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", IMAGES)
@torch.no_grad()
def test_images(name, seed):
    given = [x for sizes in SIZES[4] for x in layouts(sizes)]
    random.Random(seed).shuffle(given)
    compiled = cresset.compile(IMAGES[name])
    for x in given:
        check(IMAGES[name], compiled, x)


@pytest.mark.parametrize(
    "name",
    ["x + 3", "x > 0", "x.mT + 1", "x.movedim(0, -1)", "x.sum(-1)", "x.reshape(-1) + 1", "x.softmax(-1)", "x @ x.mT"],
)
@torch.no_grad()
def test_one_compilation_serves_sizes_of_0_and_1(name):
    compiled = cresset.compile(eval("lambda x: " + name))
    for sizes in SIZES[3]:
        x = torch.randn(sizes)
        assert compiled(x).stride() == compiled.__wrapped__(x).stride()
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


@torch.no_grad()
def test_arguments_with_other_strides_over_one_element_share_a_program():
    compiled = cresset.compile(lambda x: (x + 3, x.sum(0), x.transpose(0, 1)))
    for x in (torch.randn(3, 4, 5), torch.randn(1, 4, 5), odd(torch.randn(1, 4, 5), 7), odd(torch.randn(3, 1, 5), 2)):
        for mine, its in zip(compiled(x), compiled.__wrapped__(x)):
            assert mine.stride() == its.stride()
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


def test_results_with_gradients_lie_as_eagers():
    """Views and results with an autograd graph, with sizes of 1."""

    def f(x):
        y = x.transpose(0, 1) * 2
        return y, y.transpose(1, 2), x.mT, (x + 1).reshape(-1, x.shape[-1])

    compiled = cresset.compile(f)
    for sizes in SIZES[3]:
        if 0 in sizes:
            continue
        for x in layouts(sizes):
            found = []
            for call in (f, compiled):
                leaf = copy(x).requires_grad_()
                results = call(leaf)
                sum(r.sin().sum() for r in results).backward()
                found.append(([(r.stride(), r.requires_grad) for r in results], leaf.grad))
            assert found[0][0] == found[1][0], (sizes, x.stride())
            torch.testing.assert_close(found[1][1], found[0][1])
