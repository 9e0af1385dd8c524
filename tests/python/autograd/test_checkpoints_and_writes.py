"""Checkpoints of either kind whose function or caller writes in place: gradients and errors, beside eager mode. Each
function, times its arguments, times the code after it."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import cresset


def writes_argument(y):
    return y.mul_(2).exp()


def argument_behind_its_use(y):
    return y.exp() * y.add_(1)


def part_of_argument(y):
    y[1:].mul_(2)
    return y.exp()


def own_result(y):
    z = y.sin()
    z.exp_()
    return z * z


def saved_is_written(y):
    z = y.sin()
    w = z * y
    z.add_(1)
    return w


def element_set(y):
    z = y * 2
    z[0] = 3.0
    return z * z


def written_unrecorded(y):
    z = y.exp()
    v = z * y
    with torch.no_grad():
        z.mul_(2)
    return v + z


def rows(y):
    return y[torch.tensor([1, 0])].pow(2)


def plain(y):
    return y.exp() * y


FUNCTIONS = [plain, rows, writes_argument, argument_behind_its_use, part_of_argument, own_result, saved_is_written,
             element_set, written_unrecorded]  # fmt: skip
GIVEN = {
    "leaf": lambda x: x,
    "result": lambda x: x * 2,
    "view": lambda x: (x * 2)[:],
    "row": lambda x: (x[None] * 2)[0],
}


def nothing(h, r):
    return r.sum()


def argument_written(h, r):
    if not h.is_leaf:
        h.add_(1)
    return r.sum()


def argument_written_and_read(h, r):
    if not h.is_leaf:
        h.mul_(2)
    return (r * h).sum()


def result_written(h, r):
    return r.mul_(2).sum()


THEN = [nothing, argument_written, argument_written_and_read, result_written]


def observed(f, call):
    torch.manual_seed(call)
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    try:
        f(x).backward()
    except RuntimeError as e:
        return str(e).split(":")[0]
    return x.grad


@pytest.mark.parametrize("reentrant", [False, True], ids=["not_reentrant", "reentrant"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_written(function, reentrant):
    for given, then in itertools.product(GIVEN, THEN):
        cresset.reset()

        def f(x, given=GIVEN[given], then=then):
            h = given(x)
            return then(h, checkpoint(function, h, use_reentrant=reentrant))

        compiled = cresset.compile(f)
        for call in range(3):
            expected, got = observed(f, call), observed(compiled, call)
            where = f"{given}, {then.__name__}, call {call}: {got} instead of {expected}"
            assert type(got) is type(expected), where
            same = got == expected if isinstance(got, str) else torch.allclose(got, expected, rtol=1e-4)
            assert same, where
