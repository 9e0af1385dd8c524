"""Gradients across a graph break in the middle of an operator, with results in shared memory."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cresset

ACTIVATIONS = {
    "silu": F.silu,
    "mish": F.mish,
    "gelu": F.gelu,
    "hardswish": F.hardswish,
    "softplus": F.softplus,
    "log_sigmoid": F.logsigmoid,
    "celu": F.celu,
    "glu": F.glu,
    "softmax": lambda x: x.softmax(-1),
    "rms_norm": lambda x: F.rms_norm(x, (8,)),
    "embedding": lambda x: F.embedding(x.argsort(-1) % 4, x[:4, :8].contiguous()),
}


def check(function, make, *, calls=(2, 5, 3, 1, 4), first=1):
    """Checks results, gradients and shared memory of results. No call is eager, and later calls run the programs of the
    first."""
    compiled, graphs = cresset.compile(function), []
    for size in calls:
        torch.manual_seed(size)
        given, found = make(size), []
        for f in (function, compiled):
            x = given.clone().requires_grad_()
            out = f(x)
            sum((t * torch.linspace(1, 2, t.numel()).view(t.shape)).sin().sum() for t in out).backward()
            share = [[s.untyped_storage().data_ptr() == t.untyped_storage().data_ptr() for s in out] for t in out]
            layout = [(t.shape, t.stride(), t.storage_offset(), t.requires_grad, t._is_view()) for t in out]
            found.append(([t.detach() for t in out], x.grad, share, layout))
        torch.testing.assert_close(found[1][:2], found[0][:2], rtol=1e-4, atol=1e-4)
        assert found[1][2:] == found[0][2:]
        graphs.append(cresset.stats()["graphs"])
    stats = cresset.stats()
    assert stats["eager_calls"] == 0, stats["graph_break_reasons"]
    assert graphs[-1] == graphs[first - 1], stats["recompiles"]


# float() breaks the graph inside of item(), where torch leaves autograd out; derivatives are often composite operators.
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_piece_that_ends_inside_of_an_operator(name):
    def function(x):
        y = ACTIVATIONS[name](x * 2)
        return [y * float(x.detach().sum().sigmoid())]

    check(function, lambda n: torch.randn(n + 4, 8), calls=(4, 2, 3, 1))


PLAIN = nn.Linear(4, 8, bias=False)


def heads(x):
    y = PLAIN(x)
    q = y.view(x.shape[0], 4, 2, 4).transpose(1, 2)
    return q * float(x.detach().sum().sigmoid()), y.permute(1, 0, 2)


def halves(x):
    a, b = PLAIN(x).chunk(2, -1)
    return a * float(x.detach().sum().sigmoid()), b


def one_of_another(x):
    o = (x @ PLAIN.weight.t()).reshape(x.shape[0], 2, 16)
    u = o[:1]
    return o * float(x.detach().sum().sigmoid()), u


def written_after(x):
    y = PLAIN(x)
    q = y.view(x.shape[0], 4, 2, 4).transpose(1, 2)
    n = float(x.detach().sum().sigmoid())
    y.mul_(2)
    return q * n, q


def whole(x):
    y = PLAIN(x)
    return y.permute(1, 0, 2), y[:, 1:, 2:], y


# A product of three dimensions shares memory with a product of two, unknown to autograd.
@pytest.mark.parametrize("function", [heads, halves, one_of_another, written_after, whole])
def test_views_of_a_product(function):
    # A write to either of two inputs in shared memory runs between two graph segments. The segment before it passes on
    # only a float, which varies in the next call.
    check(function, lambda n: torch.randn(n, 4, 4), first=2 if function is written_after else 1)


@pytest.mark.parametrize("reads", [False, True])
def test_a_loss_over_sequences(reads):
    lengths = [[20, 18, 20], [5, 3, 4]]
    targets = torch.randint(1, 6, (3, 5))

    def function(x):
        loss = F.ctc_loss((x * 2).log_softmax(2), targets, *lengths)
        return [loss * float(loss.detach()) if reads else loss * 2]

    check(function, lambda n: torch.randn(20, 3, 6), calls=(1, 2))


def test_results_whose_graph_the_call_frees():
    """torch.autograd.grad() frees it: from the second call on, it is a graph break, as the loss lives on."""
    w = nn.Parameter(torch.randn(4, 4))

    def step(x):
        loss = (x @ w).pow(2).mean()
        (g,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w.sub_(g * 0.1)
        return loss, g

    compiled, start = cresset.compile(step), w.detach().clone()
    inputs, found = [torch.randn(n, 4) for n in (2, 3, 4, 5)], []
    for f in (step, compiled):
        w.detach().copy_(start)
        results = [f(x) for x in inputs]
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            results[-1][0].backward()
        found.append(([(loss.detach(), g) for loss, g in results], w.detach().clone()))
    torch.testing.assert_close(found[1], found[0])
    stats = cresset.stats()
    assert stats["eager_calls"] == 1 and stats["graphs"] <= 3, (stats["graphs"], stats["graph_break_reasons"])


def test_results_whose_graph_is_kept():
    w = nn.Parameter(torch.randn(4, 4))

    def step(x):
        loss = (x @ w).pow(2).mean()
        (g,) = torch.autograd.grad(loss, w)
        return loss.detach(), g

    compiled = cresset.compile(step, fullgraph=True)
    for n in (2, 3, 1):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x), step(x))
    assert cresset.stats()["graphs"] == 1


LEAVES = {
    "detached": lambda x: (x * 2).detach().requires_grad_(),
    "viewed": lambda x: (x * 2).view(-1).requires_grad_(),
    "made": lambda x: (x * 2).requires_grad_(),
}


@pytest.mark.parametrize("name", LEAVES)
def test_leaves_that_no_grad_makes_before_a_break(name):
    def function(x):
        y = LEAVES[name](x)
        for _ in range(2):
            cresset.graph_break()
            with torch.enable_grad():
                loss = (y**2).sum()
            cresset.graph_break()
            (g,) = torch.autograd.grad(loss, y)
            y = LEAVES[name](y - 0.1 * g)
        return y

    compiled = cresset.compile(function)
    for n in (2, 3, 2, 4):
        x = torch.randn(n, 2)
        with torch.no_grad():
            got, expected = compiled(x), function(x)
        torch.testing.assert_close(got, expected)
        assert got.requires_grad and got.is_leaf
