"""Gradients where a piece ends: in the middle of an operator, with results that lie in one memory."""

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


def check(function, make, *, calls=(2, 5, 3, 1)):
    """Results, gradients, memory that results share; no call is eager, and the programs are those of the first two."""
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
    assert graphs[-1] == graphs[0], stats["recompiles"]


# float() ends the piece inside of item(), where torch leaves autograd out; derivatives are often operators that
# consist of others.
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


# A product of three dimensions lies in the memory of one of two, which autograd knows nothing of.
@pytest.mark.parametrize("function", [heads, halves, one_of_another, written_after, whole])
def test_views_of_a_product(function):
    check(function, lambda n: torch.randn(n, 4, 4))


@pytest.mark.parametrize("reads", [False, True])
def test_a_loss_over_sequences(reads):
    lengths = [[20, 18, 20], [5, 3, 4]]
    targets = torch.randint(1, 6, (3, 5))

    def function(x):
        loss = F.ctc_loss((x * 2).log_softmax(2), targets, *lengths)
        return [loss * float(loss.detach()) if reads else loss * 2]

    check(function, lambda n: torch.randn(20, 3, 6), calls=(1, 2))
