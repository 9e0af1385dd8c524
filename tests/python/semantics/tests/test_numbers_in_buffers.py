"""Numbers of modules in buffers and parameters, read by Python in every way: with a graph break, and code after it."""

from __future__ import annotations

import functools
import math
import operator

import pytest
import torch
from compare import assert_same
from torch import nn

import cresset


def asserted(s, x):
    assert s.scale, "no scale"
    return x * 2


def looped(s, x):
    k = s.count
    while k:
        x, k = x * 2, k - 1
    return x


def unpacked(s, x):
    a, b, c = s.row
    return x * a + b * c


def stepped(s, x):
    s.count.add_(1)
    return x * 2 if s.count > 3 else x * int(s.count)


def alternating(s, x):
    s.count += 1
    if s.count % 2 == 0:
        return x * 2
    return x


def initialized(s, x):
    """Lazy initialization, as in codebooks and activation norms."""
    if not s.done:
        s.weight.data.copy_(x.detach().mean(0).abs() + 1)
        s.done.fill_(1)
    return x / s.weight


WAYS = {
    "branch": lambda s, x: x * 2 if s.scale else x,
    "branch on an element": lambda s, x: x * 2 if s.one else x,
    "branch on a bool": lambda s, x: x * 2 if s.flag else x,
    "branch on a parameter": lambda s, x: x * 2 if s.number else x,
    "not": lambda s, x: x * 2 if not s.none else x,
    "and": lambda s, x: x * 2 if s.scale and x.shape[0] > 1 else x,
    "or": lambda s, x: x * 2 if s.none or s.scale else x,
    "value of or": lambda s, x: x * (s.none or s.scale),
    "bool": lambda s, x: x * 2 if bool(s.scale) else x,
    "float": lambda s, x: x * float(s.scale),
    "int": lambda s, x: x * int(s.count),
    "item": lambda s, x: x * s.scale.item(),
    "tolist": lambda s, x: [x * k for k in s.row.tolist()],
    "range": lambda s, x: [x * k for k in range(s.count)],
    "slice": lambda s, x: x[: s.count],
    "place in a list": lambda s, x: [x, x + 1, x + 2][s.count] * 2,
    "index": lambda s, x: x * operator.index(s.count),
    "key": lambda s, x: {1: x, 2: x * 2}[int(s.count)],
    "comparison": lambda s, x: x * 2 if s.scale > 1 else x,
    "one of several": lambda s, x: x * 2 if s.count in (1, 2, 3) else x,
    "greatest": lambda s, x: x * max(s.scale, 1),
    "any": lambda s, x: x * 2 if any([s.none, s.scale]) else x,
    "all": lambda s, x: x * 2 if all([s.scale, s.count]) else x,
    "root": lambda s, x: x * math.sqrt(s.scale),
    "text": lambda s, x: (x * 2, f"{s.scale:.2f}", f"{s.count:d}"),
    "sorted": lambda s, x: [x * v for v in sorted([s.scale, s.none])],
    "filter": lambda s, x: [x * v for v in filter(None, [s.scale, s.none])],
    "reduce": lambda s, x: x * functools.reduce(lambda a, b: a if a > b else b, [s.scale, s.none]),
    "size": lambda s, x: torch.zeros(int(s.count), 3) + x[:1],
    "assert": asserted,
    "while": looped,
    "unpacked": unpacked,
    "stepped": stepped,
    "alternating": alternating,
    "initialized": initialized,
}


class Keeper(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        self.register_buffer("scale", torch.tensor(2.5))
        self.register_buffer("count", torch.tensor(2))
        self.register_buffer("none", torch.tensor(0.0))
        self.register_buffer("one", torch.tensor([1.0]))
        self.register_buffer("flag", torch.tensor(True))
        self.register_buffer("done", torch.tensor([0.0]))
        self.register_buffer("row", torch.tensor([1.0, 2.0, 3.0]))
        self.number = nn.Parameter(torch.tensor(1.5))
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.way(self, x)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", WAYS)
def test_ways_to_read(name, grad):
    theirs, mine = Keeper(WAYS[name]), Keeper(WAYS[name])
    compiled = cresset.compile(mine)
    with torch.set_grad_enabled(grad):
        for step, rows in enumerate((3, 4, 5, 3, 6)):
            x = torch.randn(rows, 3)
            assert_same(compiled(x), theirs(x))
            if step == 2:
                for module in (theirs, mine):
                    module.scale.fill_(0.5), module.flag.fill_(False), module.one.zero_()
    for a, b in zip(mine.state_dict().values(), theirs.state_dict().values(), strict=True):
        assert_same(a, b)
    assert cresset.stats()["eager_calls"] <= 1  # only the first call, where C code reads the number
    assert cresset.stats()["graphs"] > 0


def test_several_elements_have_no_truth():
    module = Keeper(lambda s, x: x * 2 if s.row else x)
    compiled = cresset.compile(module)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="ambiguous"):
            compiled(torch.ones(2, 3))
