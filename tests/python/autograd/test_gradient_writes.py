"""Tensors from before a graph segment of a call that are written in place in the segment, and need gradients."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import cresset


def brk(t):
    """A graph break."""
    return t.sum().item()


def scattered(w, x):
    h = x @ w
    out = torch.zeros(x.shape[0], w.shape[1])
    brk(h)
    out.index_add_(0, torch.arange(x.shape[0]).flip(0), h.relu())
    return out


def of_earlier_piece(w, x):
    h = x @ w
    brk(h)
    h.mul_(2.0).add_(1.0)
    return h.sin()


def read_before(w, x):
    h = x @ w
    brk(h)
    a = h * 3
    h.add_(x @ w.cos())
    return a + h


def written_twice(w, x):
    h = x @ w
    brk(h)
    h.add_(w.sum())
    brk(h)
    h.mul_(x.mean())
    h[0] = w[0]
    return h


def old_contents(w, x):
    h = (x @ w).sigmoid() + 1
    h = h * 1.0
    brk(h)
    h.mul_(w.mean())
    return h


def replaced(w, x):
    h = x @ w
    brk(h)
    h.copy_(x @ w.sin())
    h.masked_fill_(h > 0, 0.5)
    return h


def a_part(w, x):
    h = x @ w
    brk(h)
    h[:, 1:3] += x.mean() * w[0, 1:3]
    h[:, 0].zero_()
    return h


def through_a_view(w, x):
    h = x @ w
    v = h[:, 1:3]
    brk(h)
    v.mul_(w.mean())
    return v


def through_a_view_base_read(w, x):
    h = x @ w
    v = h.t()
    brk(h)
    v.mul_(w.mean())
    return h * 2, v


def a_view_made_before(w, x):
    h = x @ w
    brk(h)
    v = h[:, 1:]
    h.mul_(w.mean())
    return v.sin(), v


def a_view_lives_on(w, x):
    h = x @ w
    brk(h)
    v = h[:, 1:]
    h.mul_(w.mean())
    brk(h)
    return v * w.sum(), h


def several(w, x):
    a, b = x @ w, x @ w.cos()
    c = torch.zeros_like(a)
    brk(a)
    a.add_(b)
    b.mul_(2)
    c.add_(a)
    return a, b, c


def unrecorded(w, x):
    h = x @ w
    c = torch.zeros_like(h)
    brk(h)
    with torch.no_grad():
        h.mul_(2)
        c.add_(h)
    h.add_(w.sum())
    return h, c


def detached(w, x):
    h = x @ w
    brk(h)
    h.detach().add_(1)
    return h * w.sum()


def experts(w, x):
    flat = x @ w
    out = torch.zeros_like(flat)
    which = (flat.detach().sum(1) > 0).long() + (flat.detach()[:, 0] > 0).long()
    for e in range(3):
        rows = (which == e).nonzero().flatten()
        if len(rows.tolist()) == 0:
            continue
        out.index_add_(0, rows, (flat[rows] * (e + 1)).tanh())
    return out


def experts_index(w, x):
    flat = x @ w
    out = torch.zeros_like(flat)
    which = (flat.detach().sum(1) > 0).long() + (flat.detach()[:, 0] > 0).long()
    for e in range(3):
        rows = torch.where(which == e)[0]
        if len(rows.tolist()) == 0:
            continue
        out[rows] += (flat[rows] * (e + 1)).tanh()
    return out


def in_turn(w, x):
    out = x.new_zeros(x.shape[0], w.shape[1])
    for i in range(w.shape[1]):
        out[:, i] = (x * w[:, i]).sum(1)
        brk(out)
    return out


def retained(w, x):
    h = x @ w
    h.retain_grad()
    brk(h)
    h.mul_(2)
    return h


def used_later(w, x):
    h = x @ w
    brk(h)
    h.add_(1)
    brk(h)
    a = h.exp()
    brk(a)
    return a + h


PROGRAMS = [
    scattered, of_earlier_piece, read_before, written_twice, old_contents, replaced, a_part, through_a_view,
    a_view_made_before, a_view_lives_on, several, unrecorded, detached, experts, experts_index,
    in_turn, used_later,
]  # fmt: skip
# Programs with a part between two graph segments.
OTHERS = [through_a_view_base_read, retained]


def run(f, w, x):
    w = w.clone().requires_grad_()
    out = f(w, x)
    out = out if isinstance(out, tuple) else (out,)
    facts = [(t.requires_grad, t.is_leaf, t._version > 0, t.grad_fn is None) for t in out]
    loss = sum((t * (i + 0.5)).cos().sum() for i, t in enumerate(out))
    loss.backward()
    retained = [t.grad for t in out if t.retains_grad and not t.is_leaf]
    return [t.detach() for t in out], w.grad, retained, facts


def compare(f, compiled, calls=4):
    for call in range(calls):
        torch.manual_seed(call)
        w, x = torch.randn(5, 4) * 0.4, torch.randn(3 + call, 5) * 0.5
        expected = run(f, w, x)
        got = run(compiled, w, x)
        torch.testing.assert_close(got[:3], expected[:3], msg=lambda m, call=call: f"call {call}: {m}")
        assert got[3] == expected[3]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_write(f):
    before = cresset.stats()
    compare(f, cresset.compile(f))
    after = cresset.stats()
    assert after["eager_calls"] == before["eager_calls"], after["graph_break_reasons"]
    assert after["eager_fallbacks"] == before["eager_fallbacks"], after["graph_break_reasons"]
    assert after["backward_graphs"] > before["backward_graphs"]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_write_otherwise(f):
    compare(f, cresset.compile(f))


def test_written_argument_is_returned():
    def f(v):
        v.mul_(2)
        return v

    compiled = cresset.compile(f)
    for n in (3, 4, 5):
        v = torch.randn(n, 4)[:, 1:3]
        assert compiled(v) is v


def test_mixture_of_experts():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(6, 4)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6)) for _ in range(4))

        def forward(self, x):
            flat = x.reshape(-1, 6)
            weights, chosen = self.gate(flat).softmax(-1).topk(2)
            out = torch.zeros_like(flat)
            for i, expert in enumerate(self.experts):
                rows, slots = torch.where(chosen == i)
                if len(rows.tolist()) == 0:
                    continue
                out.index_add_(0, rows, expert(flat[rows]) * weights[rows, slots, None])
            return out.view_as(x)

    torch.manual_seed(0)
    model = Experts()
    other = copy.deepcopy(model)
    compiled = cresset.compile(other)
    before = cresset.stats()
    for call in range(5):
        x = torch.randn(2, 3 + call, 6)
        expected, got = model(x), compiled(x)
        torch.testing.assert_close(got, expected)
        for m, y in ((model, expected), (other, got)):
            m.zero_grad()
            y.pow(2).sum().backward()
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(q.grad, p.grad)
    after = cresset.stats()
    assert after["eager_calls"] == before["eager_calls"] and after["eager_fallbacks"] == before["eager_fallbacks"]


# Errors are eager's, at the line of eager's error, or in the backward pass.


def same_error(f, *arguments):
    """The messages of the errors, without the location of the forward pass; None: there is none."""

    def error(g):
        torch.manual_seed(0)
        try:
            g(*(a.detach().clone().requires_grad_(a.requires_grad) for a in arguments)).sum().backward()
        except RuntimeError as e:
            return type(e), str(e).split(":")[0].split(", which is")[0]
        return None

    compiled = cresset.compile(f)
    expected = error(f)
    for _ in range(3):
        assert error(compiled) == expected
    return expected


def test_leaf():
    def f(w, x):
        brk(x)
        w.mul_(2)
        return w * x

    w, x = torch.randn(3, requires_grad=True), torch.randn(3)
    assert "leaf" in same_error(f, w, x)[1]


def test_view_of_leaf():
    def f(w, x):
        v = w[1:]
        brk(x)
        v.mul_(2)
        return v.sum() * x

    w, x = torch.randn(3, requires_grad=True), torch.randn(3)
    assert "view of a leaf" in same_error(f, w, x)[1]


def test_saved_by_an_earlier_piece():
    def f(w, x):
        h = x @ w
        y = h @ w.t()
        brk(y)
        h.add_(1)
        return y + h.sum()

    w, x = torch.randn(5, 4, requires_grad=True), torch.randn(3, 5)
    assert "modified by an inplace operation" in same_error(f, w, x)[1]


def test_saved_by_the_piece():
    def f(w, x):
        h = x @ w
        brk(h)
        y = h.sin()
        h.add_(1)
        return y + h

    w, x = torch.randn(5, 4, requires_grad=True), torch.randn(3, 5)
    assert "modified by an inplace operation" in same_error(f, w, x)[1]


def test_hooks_of_what_was_before():
    seen = []

    def f(w, x):
        h = x @ w
        h.register_hook(lambda g: seen.append(g.sum().item()))
        brk(h)
        h.mul_(2)
        return h

    compiled = cresset.compile(f)
    for call in range(4):
        torch.manual_seed(call)
        w, x = torch.randn(5, 4, requires_grad=True), torch.randn(3, 5)
        grads = []
        for g in (f, compiled):
            w.grad = None
            g(w, x).sin().sum().backward()
            grads.append(w.grad)
        torch.testing.assert_close(grads[0], grads[1])
        assert seen[-1] == pytest.approx(seen[-2], rel=1e-4) and len(seen) == 2 * (call + 1)


class Memory(nn.Module):
    """State written by a step and read by the next step, with its gradients."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4) * 0.3)
        self.memory = torch.zeros(3, 4)

    def forward(self, x):
        self.memory.add_(x @ self.weight)
        return self.memory.tanh()


def test_state():
    torch.manual_seed(0)
    model = Memory()
    other = copy.deepcopy(model)
    compiled = cresset.compile(other)
    for _ in range(2):
        expected, got = [], []
        x = torch.randn(4, 3, 4)
        for t in range(4):
            expected.append(model(x[t]))
            got.append(compiled(x[t]))
        torch.testing.assert_close(got, expected)
        for m, ys in ((model, expected), (other, got)):
            m.zero_grad()
            torch.stack([y.sum() for y in ys]).sum().backward()
            m.memory = m.memory.detach()
        torch.testing.assert_close(other.weight.grad, model.weight.grad)
        torch.testing.assert_close(other.memory, model.memory)


def test_argument_of_the_caller():
    """Made by eager code, and read there afterwards."""

    def f(h, w):
        h[1:].mul_(w.mean())
        h.add_(1)

    compiled = cresset.compile(f)
    for call in range(4):
        torch.manual_seed(call)
        w, x = torch.randn(5, 4, requires_grad=True), torch.randn(3 + call, 5)
        grads = []
        for g in (f, compiled):
            w.grad = None
            h = (x @ w) * 1.0
            v = h[0]
            g(h, w)
            assert h._version >= 1 and not h.is_leaf
            (h.sin().sum() + v.exp().sum()).backward()
            grads.append((h.detach(), v.detach(), w.grad))
        torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize("inside", [False, True])
def test_saved_versions_of_the_first_call(inside):
    """Tensors saved by a graph segment before a graph break are watched from the first call on."""

    def f(w, x):
        h = x @ w
        y = h @ w.t()
        brk(y)
        if inside:
            with torch.no_grad():
                h.add_(1)
        return y, h

    compiled = cresset.compile(f)
    for _ in range(3):
        w = torch.randn(5, 4, requires_grad=True)
        y, h = compiled(w, torch.randn(3, 5))
        if not inside:
            with torch.no_grad():
                h.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def a_view_of_zeros(w, x):
    out = torch.zeros(x.shape[0], w.shape[1])
    rows = out.t()
    h = x @ w
    brk(h)
    out.add_(h)
    return rows, h


def a_view_of_zeros_written(w, x):
    out = torch.zeros(x.shape[0], w.shape[1])
    rows = out[1:]
    h = x @ w
    brk(h)
    rows.mul_(2).add_(h[1:])
    return out, rows


def a_view_without_record(w, x):
    h = x @ w
    with torch.no_grad():
        v = h[1:]
    brk(h)
    return v, h.sin()


def a_view_written_after_its_base(w, x):
    h = x @ w
    brk(h)
    v = h.view(-1)
    h[0] += w.mean()
    brk(h)
    v.mul_(2)
    return h, v


@pytest.mark.parametrize(
    "f", [a_view_of_zeros, a_view_of_zeros_written, a_view_without_record, a_view_written_after_its_base]
)
def test_views(f):
    compare(f, cresset.compile(f))


def test_unrecorded_view_beside_its_base():
    """No gradient flows through the view."""

    def f(w, x):
        h = x @ w
        with torch.no_grad():
            v = h[1:]
        return v, h

    compare(f, cresset.compile(f))


def test_sparse_embedding():
    """Autograd itself makes the sparse gradient; the code around it is compiled."""

    def make():
        torch.manual_seed(0)
        return nn.Sequential(nn.Embedding(12, 8, sparse=True), nn.Flatten(), nn.Linear(24, 4), nn.Tanh())

    model, other = make(), make()
    compiled = cresset.compile(other)
    before = cresset.stats()
    for call in range(4):
        x = torch.randint(0, 12, (4 + call, 3))
        expected, got = model(x), compiled(x)
        torch.testing.assert_close(got, expected)
        for m, y in ((model, expected), (other, got)):
            m.zero_grad()
            y.sum().backward()
        assert other[0].weight.grad.is_sparse
        torch.testing.assert_close(other[0].weight.grad.to_dense(), model[0].weight.grad.to_dense())
        torch.testing.assert_close(other[2].weight.grad, model[2].weight.grad)
    after = cresset.stats()
    assert after["eager_calls"] == before["eager_calls"] and after["graphs"] - before["graphs"] <= 4


def test_view_of_an_argument_is_a_view_of_it():
    """Also in the first call: a write through the view is visible in the argument."""

    def f(h):
        return h[1:]

    compiled = cresset.compile(f)
    for n in (3, 4, 5):
        w = torch.randn(5, 4, requires_grad=True)
        h = torch.randn(n, 5) @ w
        v = compiled(h)
        v.mul_(2)
        assert v._base is h
        (gradient,) = torch.autograd.grad(h[1:].sum(), h, retain_graph=True)
        torch.testing.assert_close(gradient[1:], torch.ones_like(v))
        h.sum().backward()
        assert "CopySlices" in h.grad_fn.name()


def in_the_middle_of_no_grad(w, x):
    """The graph segment begins in a region without an autograd graph."""
    h = x @ w
    with torch.no_grad():
        brk(h)
    v = h.t()
    return v, h


def stale_view(w, x):
    h = x @ w
    v = h[:, 0]
    brk(h)
    h.add_(1)
    rows = h.t()
    brk(h)
    return v, h, rows


def only_an_unrecorded_view(w, x):
    h = x @ w
    brk(h)
    with torch.no_grad():
        v = (h * h).sin()[1:]
    return v, h


@pytest.mark.parametrize("f", [in_the_middle_of_no_grad, stale_view, only_an_unrecorded_view])
def test_views_and_modes(f):
    compare(f, cresset.compile(f))


def test_unrecorded_view_alone():
    def f(w, x):
        h = (x @ w).sin()
        with torch.no_grad():
            return h[1:]

    compiled = cresset.compile(f)
    for n in (3, 4, 5):
        w, x = torch.randn(5, 4, requires_grad=True), torch.randn(n, 5)
        expected, got = f(w, x), compiled(w, x)
        torch.testing.assert_close(got, expected)
        assert got.grad_fn is None and expected.grad_fn is None


def test_view_that_nobody_asks():
    """Autograd refuses to use the view: a user of it raises, a function that only passes it on does not."""

    def f(w, x):
        h = x @ w
        with torch.no_grad():
            v = h[1:]
        h.mul_(2)
        return v, h

    compiled = cresset.compile(f)
    for n in (3, 4, 5):
        w, x = torch.randn(5, 4, requires_grad=True), torch.randn(n, 5)
        (_, expected), (v, got) = f(w, x), compiled(w, x)
        torch.testing.assert_close(got, expected)
        with pytest.raises(RuntimeError, match="created in no_grad mode"):
            assert v.grad_fn is None
        torch.testing.assert_close(torch.autograd.grad(got.sum(), w)[0], torch.autograd.grad(expected.sum(), w)[0])


def test_running_statistics_are_no_new_version():
    """As in eager: tensors saved by an earlier pass may still be used, whether either pass was eager or compiled."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 1), torch.nn.BatchNorm1d(3))
    twin = copy.deepcopy(module)
    compiled = cresset.compile(module)
    for n in (4, 7):
        x, y = torch.randn(n, 2, 5), torch.randn(n + 1, 2, 6)
        first, second, third = module(x), compiled(y), module(x * 2)
        (first.sum() + second.pow(2).sum() + third.pow(3).sum()).backward()
        (twin(x).sum() + twin(y).pow(2).sum() + twin(x * 2).pow(3).sum()).backward()
        for name in ("running_mean", "running_var"):
            assert getattr(module[1], name)._version == getattr(twin[1], name)._version
    for mine, theirs in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4)
    for mine, theirs in zip(module.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_what_is_written_otherwise_is_a_new_version():
    def function(x, mean, variance):
        mean.mul_(0.5)
        return torch.nn.functional.batch_norm(x, mean, variance, training=True)

    compiled = cresset.compile(function)
    for n in (4, 6):
        mean, variance = torch.zeros(3), torch.ones(3)
        compiled(torch.randn(n, 3), mean, variance)
        assert mean._version > 0 and variance._version == 0


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("where", [0, (slice(None), 0), (..., slice(2, 4))], ids=["select", "column", "slice"])
def test_view_of_a_product_is_written(size, where):
    """The result of einsum is a view of a transposed view; strides of dimensions of size 1 count as well."""

    def masked(q, k):
        scores = torch.einsum("blhd,bshd->blhs", (q, k)).transpose(1, 3)
        scores[where] = -1e3
        return scores.transpose(1, 3) * 2

    cresset.reset()
    compiled = cresset.compile(masked)
    for batch, length in ((2, 12), (3, 7), (1, 5)):
        k = torch.randn(batch, size, 4, 8)
        mine = torch.randn(batch, length, 4, 8, requires_grad=True)
        its = mine.detach().clone().requires_grad_()
        got, expected = compiled(mine, k), masked(its, k)
        torch.testing.assert_close(got, expected)
        (got * got.detach().cos()).sum().backward()
        (expected * expected.detach().cos()).sum().backward()
        torch.testing.assert_close(mine.grad, its.grad)
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]


def all_of(written):
    return written


def again(written):
    return written.as_strided(written.size(), written.stride()).sin()


def a_part(written):
    return written.as_strided((written.size(0), 4), (20, 1), 2) * 2


@pytest.mark.parametrize("dynamic", [None, False])
@pytest.mark.parametrize("way", [all_of, again, a_part])
def test_memory_with_gaps_is_written(way, dynamic):
    """Autograd gives gradients the layout of the written tensor, with gaps, and uses as_strided for it."""

    def function(x):
        written = torch.empty_strided(x.size(), (20, 1))
        written[:] = x * 2
        return way(written)

    compiled = cresset.compile(function, dynamic=dynamic)
    for rows, columns in ((16, 8), (5, 8), (7, 6)):
        x = torch.randn(rows, columns, requires_grad=True)
        got, expected = compiled(x), function(x)
        torch.testing.assert_close(got, expected)
        assert got.stride() == expected.stride()
        weights = torch.randn(expected.shape)
        mine, its = (torch.autograd.grad((result * weights).sum(), x) for result in (got, expected))
        torch.testing.assert_close(mine, its)
