"""Loops over ranges whose start, stop or step is made of sizes: the number of iterations is specialized, the positions
are not."""

import pytest
import torch

import cresset


def whole_as_one_step(x):
    out = []
    for i in range(0, len(x), len(x)):
        out.append(x[i : i + len(x)].sum() * (i + 1))
    return out


def last_rows(x):
    return [x[i] * 2 + i for i in range(len(x) - 2, len(x))]


def thirds(x):
    k = len(x) // 3
    return [x[i : i + k].sum() + i for i in range(0, k * 3, k)]


def backward(x):
    return [x[i] * i for i in range(len(x) - 1, len(x) - 3, -1)]


def backward_by_a_size(x):
    k = len(x) // 3
    return [x[i] * i for i in range(len(x) - 1, len(x) - 1 - 3 * k, -k)]


def numbered(x):
    return [x[i] * j + i for j, i in enumerate(reversed(range(len(x) - 3, len(x))))]


def none_at_all(x):
    return [x[i] for i in range(len(x), len(x))] + [x[0]]


ONCE = [whole_as_one_step, last_rows, thirds, backward, backward_by_a_size, numbered, none_at_all]


def left_early(x):
    out = []
    for i in range(len(x) - 3, len(x)):
        if x[i].sum() > 1e9:
            break
        out.append(x[i] + i)
    return out


def half(x):
    return [x[i] + i for i in range(len(x) // 2, len(x))]


def kept(x):
    r = range(len(x) - 2, len(x))
    return [x[i] * r.start + r.stop for i in r] + [torch.tensor(float(sum(r)))]


def check(function, lengths):
    cresset.reset()
    compiled = cresset.compile(function)
    for n in lengths:
        x = torch.randn(n)
        torch.testing.assert_close(compiled(x), function(x))


@pytest.mark.parametrize("function", ONCE, ids=lambda f: f.__name__)
def test_one_graph(function):
    check(function, (6, 7, 9, 12, 15))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats["recompiles"]


@pytest.mark.parametrize("function", [half, kept], ids=lambda f: f.__name__)
def test_as_eager(function):
    check(function, (6, 7, 9, 12, 13))


def test_pieces_serve_every_length():
    check(left_early, (6, 7, 9))
    before = cresset.stats()["graphs"]
    compiled = cresset.compile(left_early)
    for n in (6, 12, 30):
        compiled(torch.randn(n))
    first = cresset.stats()["graphs"] - before
    for n in (13, 31, 50):
        compiled(torch.randn(n))
    assert cresset.stats()["graphs"] - before == first


@pytest.mark.parametrize("step", [0, "size"])
def test_no_step(step):
    def stepped(x):
        by = 0 if step == 0 else len(x) - 5
        return [x[i] for i in range(0, len(x), by)]

    cresset.reset()
    compiled = cresset.compile(stepped)
    with pytest.raises(ValueError, match="arg 3 must not be zero"):
        compiled(torch.randn(5))
