"""Operators that raise in a later call, whatever the use of their results: beside eager mode. Each operator, by its
data or by sizes, times each place: alone, after a write, before a write, with an unused result, inside of a `try`."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same

import cresset

# b: 0, or 100 to raise. i: three indices. y: like x, or [3, 2] to raise.
CALLS = {
    "take": lambda x, i, b, y: torch.take(x, i + b),
    "take_along": lambda x, i, b, y: torch.take_along_dim(x, (i + b)[:, None], 0),
    "index": lambda x, i, b, y: x[i + b],
    "index2": lambda x, i, b, y: x[:, i + b],
    "index_mask": lambda x, i, b, y: x[torch.arange(4) < 2, i[:2] + b],
    "setitem": lambda x, i, b, y: x.clone().__setitem__(i + b, 1.0),
    "index_put": lambda x, i, b, y: x.clone().index_put_((i + b,), torch.tensor(1.0)),
    "index_select": lambda x, i, b, y: x.index_select(0, i + b),
    "index_add": lambda x, i, b, y: x.index_add(0, i + b, x[:3]),
    "index_copy": lambda x, i, b, y: x.index_copy(0, i + b, x[:3]),
    "index_fill": lambda x, i, b, y: x.index_fill(0, i + b, 1.0),
    "index_reduce": lambda x, i, b, y: x.index_reduce(0, i + b, x[:3], "amax"),
    "gather": lambda x, i, b, y: x.gather(0, (i + b)[:, None]),
    "scatter": lambda x, i, b, y: x.scatter(0, (i + b)[:, None], 1.0),
    "scatter_add": lambda x, i, b, y: x.scatter_add(0, (i + b)[:, None], x),
    "scatter_reduce": lambda x, i, b, y: x.scatter_reduce(0, (i + b)[:, None], x, "sum"),
    "put": lambda x, i, b, y: x.put(i + b, x[0, :3]),
    "embedding": lambda x, i, b, y: F.embedding(i + b, x),
    "embbag": lambda x, i, b, y: F.embedding_bag(i[None] + b, x),
    "nll": lambda x, i, b, y: F.nll_loss(x.log_softmax(1)[:3], i + b),
    "ce": lambda x, i, b, y: F.cross_entropy(x[:3], i + b),
    "intdiv": lambda x, i, b, y: i // (100 - b),
    "divmode": lambda x, i, b, y: torch.div(i, 100 - b, rounding_mode="trunc"),
    "mod": lambda x, i, b, y: i % (100 - b),
    "fmod": lambda x, i, b, y: i.fmod(100 - b),
    "inv": lambda x, i, b, y: torch.linalg.inv(torch.eye(3) * (100 - b)),
    "chol": lambda x, i, b, y: torch.linalg.cholesky(torch.eye(3) * (50.0 - b)),
    "solve": lambda x, i, b, y: torch.linalg.solve(torch.eye(3) * (100 - b), x[:3]),
    "bce": lambda x, i, b, y: F.binary_cross_entropy(x * 0.5 + b, x),
    "multinomial": lambda x, i, b, y: torch.multinomial(x - b, 1),
    "one_hot": lambda x, i, b, y: F.one_hot(i + b, 3),
    "one_hotneg": lambda x, i, b, y: F.one_hot(i - b, 3),
    "bincount": lambda x, i, b, y: torch.bincount(i - b),
    "repeat_int": lambda x, i, b, y: torch.repeat_interleave(x[:3], i - b, 0),
    "normalneg": lambda x, i, b, y: torch.normal(x, x - b),
    "poisson": lambda x, i, b, y: torch.poisson(x - b),
    "bern": lambda x, i, b, y: torch.bernoulli(x * 0.5 + b),
    "select_t": lambda x, i, b, y: x[b],
    "ctc": lambda x, i, b, y: F.ctc_loss(
        x[:, None].log_softmax(-1), (i[:1] + 1)[None], torch.tensor([4]) + b, torch.tensor([1])
    ),
    "unpool": lambda x, i, b, y: F.max_unpool2d(x[None, None], torch.arange(16).view(1, 1, 4, 4) + b, 2),
    "searchs": lambda x, i, b, y: torch.searchsorted(torch.arange(4.0), x, sorter=torch.arange(4) + b),
    "assert": lambda x, i, b, y: torch._assert_async(b < 1),
    "item": lambda x, i, b, y: x[b.item()],
    "multi_margin": lambda x, i, b, y: F.multi_margin_loss(x[:3], i + b),
    "multilabel": lambda x, i, b, y: F.multilabel_margin_loss(x[:3, :3], (i + b).expand(3, 3)),
    "linalg_solve_ex": lambda x, i, b, y: torch.linalg.inv_ex(torch.eye(3) * (100 - b), check_errors=True)[0],
    "lu": lambda x, i, b, y: torch.linalg.lu_factor(torch.eye(3) * (100 - b))[0],
    "eigh": lambda x, i, b, y: torch.linalg.eigh(torch.eye(3) / (100 - b))[0],
    "masked_scatter": lambda x, i, b, y: x.masked_scatter((x * 0 + b) > 1, x[0]),
    "maskidx": lambda x, i, b, y: x[x > 0.1 * 0][:4] + x[i[:2] + b].sum(),
    "floorneg": lambda x, i, b, y: torch.floor_divide(i, 100 - b),
    "rem_scalar": lambda x, i, b, y: torch.remainder(7, 100 - b),
    # by sizes
    "add_s": lambda x, i, b, y: x + y,
    "mm_s": lambda x, i, b, y: x @ y,
    "cat_s": lambda x, i, b, y: torch.cat([x, y]),
    "stack_s": lambda x, i, b, y: torch.stack([x, y]),
    "viewdt2_s": lambda x, i, b, y: y.view(torch.complex64) if y.shape[1] != 2 else y[:, :1].view(torch.complex64),
    "view_s": lambda x, i, b, y: y.view(8, -1),
    "view_s2": lambda x, i, b, y: y.view(-1, y.shape[1] + (2 if y.shape[0] == 3 else 0)),
    "reshape_s": lambda x, i, b, y: y.reshape(8, -1),
    "expand_s": lambda x, i, b, y: y.expand(5, 4, 4),
    "split_s": lambda x, i, b, y: y.split([2, 2]),
    "select_s": lambda x, i, b, y: y[3],
    "select_s2": lambda x, i, b, y: y.select(1, 3),
    "narrow_s": lambda x, i, b, y: y.narrow(0, 1, 3),
    "unflat_s": lambda x, i, b, y: y.unflatten(0, (2, 2)),
    "copy_s": lambda x, i, b, y: x.clone().copy_(y),
    "where_s": lambda x, i, b, y: torch.where(x > 0, x, y),
    "lin_s": lambda x, i, b, y: F.linear(x, y),
    "mse_s": lambda x, i, b, y: F.mse_loss(x, y),
    "ln_s": lambda x, i, b, y: F.layer_norm(y, (4,)),
    "conv_s": lambda x, i, b, y: F.conv1d(x[None], y[:, :, None]),
    "bmm_s": lambda x, i, b, y: torch.bmm(x[None], y[None]),
    "topk_s": lambda x, i, b, y: y.topk(4),
    "kth_s": lambda x, i, b, y: y.kthvalue(4)[0],
    "diag_s": lambda x, i, b, y: torch.linalg.det(y),
    "inv_s": lambda x, i, b, y: torch.linalg.inv(y + 9 * torch.eye(4)),
    "trace_s": lambda x, i, b, y: torch.einsum("ij,jk->ik", x, y),
    "strided_s": lambda x, i, b, y: y.as_strided((4, 4), (4, 1)),
    "squeeze_s": lambda x, i, b, y: y.flatten().unflatten(0, (4, 4)),
    "chunk_s": lambda x, i, b, y: y.chunk(4)[3],
    "unbind_s": lambda x, i, b, y: y.unbind()[3],
    "unpack_s": lambda x, i, b, y: (lambda p, q, r, s: p + s)(*y),
    "full_s": lambda x, i, b, y: x.new_full((2,), 300 * (4 - y.shape[0]), dtype=torch.uint8),
    "full_s2": lambda x, i, b, y: torch.full((2,), 1000 * (4 - y.shape[0]), dtype=torch.int8),
    "fulllike_s": lambda x, i, b, y: torch.full_like(x, 1000 * (4 - y.shape[0]), dtype=torch.int8),
    "scalar_s": lambda x, i, b, y: torch.tensor(1000 * (4 - y.shape[0]), dtype=torch.int8),
    "fill_s": lambda x, i, b, y: i.to(torch.uint8).fill_(1000 * (4 - y.shape[0])),
    "mfill_s": lambda x, i, b, y: i.to(torch.uint8).masked_fill(i > 0, 1000 * (4 - y.shape[0])),
    "maxempty_s": lambda x, i, b, y: y[: 4 * (y.shape[0] - 3)].max(),
    "argmax_s": lambda x, i, b, y: y[: 4 * (y.shape[0] - 3)].argmax(0),
    "item_s": lambda x, i, b, y: y[: y.shape[0] - 3, : y.shape[0] - 3].item(),
}


def alone(f):
    return lambda x, i, b, y, s: f(x, i, b, y)


def behind_a_write(f):
    def g(x, i, b, y, s):
        s.add_(1)
        return f(x, i, b, y)

    return g


def before_a_write(f):
    def g(x, i, b, y, s):
        r = f(x, i, b, y)
        s.add_(1)
        return r

    return g


def unused(f):
    def g(x, i, b, y, s):
        f(x, i, b, y)
        return x * 2

    return g


def unused_between_writes(f):
    def g(x, i, b, y, s):
        s.mul_(2)
        f(x, i, b, y)
        s.add_(1)
        return s * 2

    return g


def caught(f):
    def g(x, i, b, y, s):
        s.add_(1)
        try:
            r = f(x, i, b, y)
        except Exception as e:
            s.add_(2)
            return type(e).__name__, s * 1
        return r

    return g


def unused_and_caught(f):
    def g(x, i, b, y, s):
        s.add_(1)
        try:
            f(x, i, b, y)
        except Exception:
            s.add_(2)
        return s * 1

    return g


def finally_written(f):
    def g(x, i, b, y, s):
        try:
            s.add_(1)
            f(x, i, b, y)
        finally:
            s.mul_(5)
        return s * 1

    return g


def behind_parts(f):
    def g(x, i, b, y, s):
        s[0] = 7.0
        z = x.sin()
        s[1:].mul_(3)
        return f(z, i, b, y)

    return g


def used_and_unused(f):
    def g(x, i, b, y, s):
        z = x.exp()
        s.copy_(z[0, :3])
        f(x, i, b, y)
        s.sub_(1)
        f(z, i, b, y)
        return s.sum()

    return g


PLACES = [alone, behind_a_write, before_a_write, unused, unused_between_writes, caught, unused_and_caught,
          finally_written, behind_parts, used_and_unused]  # fmt: skip


def observed(f, bad, call, wanted):
    torch.manual_seed(call)
    x = (torch.rand(4, 4) + 0.1).requires_grad_(wanted)
    y = torch.rand(3, 2) if bad else torch.rand(4, 4)
    i, s, b = torch.tensor([0, 1, 2]), torch.ones(3), torch.tensor(100 if bad else 0)
    try:
        given = f(x, i, b, y, s)
    except Exception as e:
        given = f"{type(e).__name__}: {e}"
    return given, s, s._version, i, torch.rand(1)


@pytest.fixture(autouse=True)
def one_thread():
    """Where several threads of a kernel meet something to raise for, eager's message is that of any of them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("bad", [(0, 0, 1, 0, 1), (1, 1, 0)], ids=["later", "first"])
@pytest.mark.parametrize("name", CALLS)
def test_raised(name, bad):
    for place in PLACES:
        for wanted in (False, True):
            cresset.reset()
            f = place(CALLS[name])
            compiled = cresset.compile(f)
            for call, raises in enumerate(bad):
                expected = observed(f, raises, call, wanted)
                got = observed(compiled, raises, call, wanted)
                try:
                    assert_same(got, expected)
                except AssertionError as e:
                    raise AssertionError(f"{place.__name__}, call {call}, gradients {wanted}: {e}") from None
