"""Nested tensors run eagerly, are counted, and their lengths are the same as without cresset."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cresset

pytestmark = pytest.mark.filterwarnings("ignore")


def jagged(*lengths):
    rows = [torch.randn(n, 8, generator=torch.Generator().manual_seed(n)) for n in lengths]
    return torch.nested.nested_tensor(rows, layout=torch.jagged)


def made_inside(x, w):
    rows = torch.nested.nested_tensor([x[:3], x[3:]], layout=torch.jagged)
    return (rows @ w).values() + x.sum()


def attention(rows):
    q = rows.unflatten(-1, [2, 4]).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(-2)


LINEAR, NORM, TABLE = nn.Linear(8, 8), nn.LayerNorm(8), nn.Embedding(10, 8)
NESTED = [(jagged(3, 4),), (jagged(5, 2, 7),), (jagged(2, 2),)]
PROGRAMS = {
    "made inside": (made_inside, [(torch.randn(n, 8), torch.randn(8, 8)) for n in (7, 9, 12)]),
    "of values and offsets": (
        lambda v, o: torch.nested.nested_tensor_from_jagged(v * 2, o).sum(1),
        [(torch.randn(n, 8), torch.tensor([0, 3, n])) for n in (7, 9, 12)],
    ),
    "given": (lambda t: LINEAR(t), NESTED),
    "a block": (lambda t: NORM(F.gelu(LINEAR(t))) + t, NESTED),
    "attention": (attention, NESTED),
    "padded": (lambda t: t.to_padded_tensor(0.0), NESTED),
    "rows": (lambda t: [r.sum(0) for r in t.unbind()], NESTED),
    "sizes": (lambda t: torch.ones(t.shape[0], t.size(-1)) * t.sum(1), NESTED),
    "a length as a key": (lambda t: {t.shape[1]: t.values()}[t.shape[1]] * 2, NESTED),
    "old layout": (
        lambda x: torch.nested.to_padded_tensor(torch.nested.nested_tensor([x[:3], x[3:]]), 0.0),
        [(torch.randn(n, 8),) for n in (7, 9, 12)],
    ),
    "embedded": (
        lambda i: TABLE(i),
        [(torch.nested.nested_tensor([torch.arange(k) for k in n], layout=torch.jagged),) for n in ((3, 4), (5, 2, 7))],
    ),
}


def plain(result):
    if isinstance(result, (list, tuple)):
        return [x for item in result for x in plain(item)]
    return [result.values() if result.is_nested else result]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_eager(name, grad):
    function, calls = PROGRAMS[name]
    compiled = cresset.compile(function)
    with torch.set_grad_enabled(grad):
        for args in calls:
            for got, expected in zip(plain(compiled(*args)), plain(function(*args)), strict=True):
                torch.testing.assert_close(got, expected)
    stats = cresset.stats()
    assert stats["eager_calls"] + stats["graph_breaks"] > 0


OUTSIDE = """
import torch
import cresset
cresset.compile(lambda x: x[: x.shape[0] // 2] + 1)(torch.ones(4))
rows = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)], layout=torch.jagged)
n, m = rows.shape[1], rows.shape[1]
assert {n: 1}[m] == 1 and n == m and n != 5 and n >= 2
assert (format(n), str(n * 4), str(2 * n)) == (str(n), f"4*{n}", f"2*{n}")
for wrong in (abs, int, lambda n: n + 1, lambda n: -n):
    try:
        wrong(n)
    except AttributeError:
        continue
    raise AssertionError(wrong)
"""


def test_their_lengths_outside_of_captures():
    subprocess.run([sys.executable, "-W", "ignore", "-c", OUTSIDE], check=True, timeout=120)
