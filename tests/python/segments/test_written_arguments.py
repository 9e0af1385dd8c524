"""Arguments that begin inside their base and are written in place. Checks values, versions, view data, and gradients of
first and second order, of the argument, of its base and of results. Every view, times every write, times every read."""

from __future__ import annotations

import itertools

import pytest
import torch
from compare import assert_same

import cresset

VIEWS = {
    "whole": lambda b: b,
    "row": lambda b: b[1],
    "rows": lambda b: b[1:3],
    "last_row": lambda b: b[-1:],
    "column": lambda b: b[:, 1],
    "columns": lambda b: b[:, 1:],
    "flat_part": lambda b: b.view(-1)[3:].view(3, 3),
    "every_second": lambda b: b.view(-1)[1::2],
    "transposed": lambda b: b.t(),
    "rows_of_transposed": lambda b: b[1:].t()[1:],
    "part_of_part": lambda b: b[1:][:, 1:],
    "diagonal": lambda b: b.diagonal(1),
    "unsqueezed": lambda b: b[1:, None],
    "squeezed": lambda b: b[2:3].squeeze(0),
    "permuted": lambda b: b.unsqueeze(0).permute(2, 0, 1)[1:],
    "unflattened": lambda b: b.unflatten(1, (1, 3))[:, 0, 1:],
    "narrowed": lambda b: b.narrow(0, 1, 2),
    "strided": lambda b: b.as_strided((2, 2), (3, 1), 4),
    "chunk": lambda b: b.chunk(2)[1],
    "unbound": lambda b: b.unbind()[1],
}


def negated(x):
    x.neg_()


def scaled_and_moved(x):
    x.mul_(2).add_(1)


def part_set(x):
    x[..., 1:] = 5


def part_of_itself(x):
    x[0] = x[-1].exp()


def zeroed(x):
    x.zero_()


def copied(x):
    x.copy_(x.sin())


def twice(x):
    x.mul_(3)
    x[..., :1].exp_()


def masked(x):
    x[x > 2] = 0.5


def through_a_view(x):
    x.unsqueeze(0).mul_(2)


def over_a_break(x):
    x.mul_(2)
    if x.sum().item() > -1e9:
        x.add_(1)


WRITES = [
    negated,
    scaled_and_moved,
    part_set,
    part_of_itself,
    zeroed,
    copied,
    twice,
    masked,
    through_a_view,
    over_a_break,
]
READS = {
    "product": lambda x: x * 1,
    "nothing": lambda x: None,
    "itself": lambda x: x,
    "part": lambda x: x[..., :1],
    "detached": lambda x: x.detach(),
    "sum": lambda x: (x**2).sum(),
}


def facts(t):
    return (
        t.requires_grad,
        t.is_leaf,
        t._version,
        t._is_view(),
        t.shape,
        t.stride(),
        t.storage_offset(),
        t.grad_fn is None,
    )


def gradients(t, leaf, second):
    if not t.requires_grad:
        return []
    loss = (t * torch.arange(1.0, t.numel() + 1).view(t.shape)).sin().sum()
    (first,) = torch.autograd.grad(loss, leaf, create_graph=second, retain_graph=True, allow_unused=True)
    if not second or first is None or not first.requires_grad:
        return [first]
    return [first, *torch.autograd.grad(first.pow(2).sum(), leaf, retain_graph=True, allow_unused=True)]


def observed(f, view, with_base, second):
    leaf = (torch.arange(12.0).view(4, 3) / 4).requires_grad_()
    base = leaf * 1
    x = view(base)
    seen = []
    try:
        given = f(base, x) if with_base else f(x)
        tensors = [t for t in (given if isinstance(given, tuple) else (given,)) if t is not None] + [x, base]
        seen += [(t.detach().clone(), facts(t)) for t in tensors]
        for t in tensors:
            seen.append(gradients(t, leaf, second))
    except RuntimeError as e:
        seen.append(str(e).split(":")[0].split(", which")[0])
    return seen


def check(view, write, read, with_base):
    def alone(x):
        write(x)
        return read(x)

    def beside_base(b, x):
        write(x)
        return read(x), b * 2

    f = beside_base if with_base else alone
    for second in (False,):
        cresset.reset()
        compiled = cresset.compile(f)
        for call in range(2):
            expected = observed(f, view, with_base, second)
            got = observed(compiled, view, with_base, second)
            try:
                assert_same(got, expected, tolerance=1e-4)
            except AssertionError as e:
                raise AssertionError(f"call {call}, order {1 + second}: {e}") from None


@pytest.mark.parametrize("view", VIEWS)
def test_written(view):
    for write, read in itertools.product(WRITES, ("product", "itself")):
        try:
            check(VIEWS[view], write, READS[read], with_base=False)
        except AssertionError as e:
            raise AssertionError(f"{view}, {write.__name__}, {read}: {e}") from None


def test_first_of_all():
    """The wrong gradient reached the elements of an argument at the start of its base."""

    def f(x):
        x.neg_()
        return x * 1

    compiled = cresset.compile(f)
    for _ in range(3):
        leaf = torch.arange(12.0).requires_grad_()
        compiled((leaf * 1)[3:].view(3, 3)).sum().backward()
        assert leaf.grad.tolist() == [0.0] * 3 + [-1.0] * 9


def test_slice_written_in_place():
    w = torch.ones(4, 3, requires_grad=True)

    @cresset.compile
    def normalise(part):
        part.mul_(2).add_(1)

    for rows in (2, 3):
        w.grad = None
        h = w * 3
        normalise(h[:rows])
        h.sum().backward()
        assert w.grad[:, 0].tolist() == [6.0] * rows + [3.0] * (4 - rows)
