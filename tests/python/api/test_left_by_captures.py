"""The caller's tensors after a capture, however it ends: values, versions, sizes, histories and gradients are eager
mode's, in the captured call and in the next call. Arguments of every kind, times writes, times ends."""

from __future__ import annotations

import contextlib
import copy
import io

import pytest
import torch
from compare import assert_same

import cresset


def base():
    return torch.arange(12.0).view(4, 3) / 4


def of_leaf(make):
    leaf = base().requires_grad_()
    return leaf, make(leaf)


# The leaf, and the function's argument.
ARGUMENTS = {
    "plain": lambda: (lambda b: (b, b))(base()),
    "part_of_plain": lambda: (lambda b: (b, b[1:]))(base()),
    "result": lambda: of_leaf(lambda leaf: leaf * 1),
    "rows": lambda: of_leaf(lambda leaf: (leaf * 1)[1:]),
    "first_rows": lambda: of_leaf(lambda leaf: (leaf * 1)[:2]),
    "flat_part": lambda: of_leaf(lambda leaf: (leaf * 1).view(-1)[2:].view(5, 2)),
    "transposed": lambda: of_leaf(lambda leaf: (leaf * 1).t()[1:]),
    "leaf": lambda: of_leaf(lambda leaf: leaf),
    "part_of_leaf": lambda: of_leaf(lambda leaf: leaf[1:]),
}


def unwritten(x):
    return x.sin()


def scaled(x):
    x.mul_(2).add_(1)
    return x * x


def element_set(x):
    x[0] = 3.0
    return x


def element_of_itself(x):
    x[0] = x[-1] * 2
    return x.exp()


def column_set(x):
    x[..., 1] = x[..., 0]
    return x


def masked(x):
    x[x > 1] = 0.0
    return x


def indexed(x):
    x[torch.tensor([0, 1])] = 1.5
    return x


def set_to_expanded(x):
    x[..., 1:] = torch.ones(1, 1).expand(x[..., 1:].shape)
    return x


def expanded_is_set(x):
    e = torch.zeros(1, x.shape[-1]).expand(3, x.shape[-1])
    e[0] = 1.0
    return x * e[:1]


def unrecorded(x):
    with torch.no_grad():
        x.add_(1)
    return x * 2


def zeroed(x):
    x.zero_()
    return x


def view_written(x):
    v = x.transpose(0, -1)
    v.mul_(3)
    return v


def detached_written(x):
    x.detach().add_(2)
    return x * 3


WRITES = [unwritten, scaled, element_set, element_of_itself, column_set, masked, indexed, set_to_expanded,
          expanded_is_set, unrecorded, zeroed, view_written, detached_written]  # fmt: skip


def refused(x, y):
    raise ValueError("mine")


ENDS = {
    "result": lambda x, y: y * 1,
    "nothing": lambda x, y: None,
    "raised": refused,
    "bad_operator": lambda x, y: y.reshape(7, 99),
    "number": lambda x, y: y.sum().item(),
    "branch": lambda x, y: y * 2 if y.sum() > -1e9 else y,
    "list": lambda x, y: y.detach().tolist(),
    "numpy": lambda x, y: float(y.detach().numpy().sum()),
    "printed": lambda x, y: print(y),
    "leaf_of_the_call": lambda x, y: y * torch.ones(1, requires_grad=True),
    "copied": lambda x, y: copy.deepcopy(y.detach()),
    "iterated": lambda x, y: [next(z) for z in [iter(y)]][0],  # noqa: RUF015
}


def facts(t):
    return (t.requires_grad, t.is_leaf, t._version, t._is_view(), t.shape, t.stride(), t.storage_offset(), t.grad_fn is None,
            all(type(n) is int for n in t.shape), len(t._backward_hooks or {}), t.is_leaf and t.grad is None)  # fmt: skip


def gradient(t, leaf, **options):
    return torch.autograd.grad(t, leaf, retain_graph=True, allow_unused=True, **options)[0]


def orders(t, leaf):
    """Gradients of first and second order."""
    if not t.requires_grad:
        return []
    first = gradient((t * t).sum() * 3, leaf, create_graph=True)
    if first is None or not first.requires_grad:
        return [first]
    return [first.detach(), gradient(first.pow(2).sum(), leaf)]


def written_once_more(t, leaf):
    t = t * 1 if t.is_leaf and t.requires_grad else t
    if t._is_view() and t._base.is_leaf and t._base.requires_grad:
        return []
    t.mul_(2)
    return [t.detach().clone(), gradient(t.sum(), leaf) if t.requires_grad else None]


def attempt(seen, what):
    try:
        seen += what()
    except (RuntimeError, ValueError) as e:
        seen.append(f"{type(e).__name__}: {str(e).split(':')[0].split(', which')[0]}")


def observed(f, make):
    leaf, x = make()
    seen = []

    def called():
        with contextlib.redirect_stdout(io.StringIO()):
            given = f(x)
        if not isinstance(given, torch.Tensor):
            return [given]
        weights = torch.arange(1.0, given.numel() + 1).view(given.shape)
        found = gradient((given * weights).sum(), leaf) if given.requires_grad else None
        return [
            given.detach().clone(),
            facts(given)[4:8],
            found,
        ]  # a view of a computed tensor may be a tensor of its own

    attempt(seen, called)
    for t in {id(t): t for t in (x, leaf, x._base) if t is not None}.values():
        seen += [t.detach().clone(), facts(t)]
        attempt(seen, lambda t=t: orders(t, leaf))
        attempt(seen, lambda t=t: written_once_more(t, leaf))
    return seen


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_left(argument, write):
    for name, end in ENDS.items():
        cresset.reset()

        def f(x, end=end):
            return end(x, write(x))

        compiled = cresset.compile(f)
        for call in range(2):
            expected, got = observed(f, ARGUMENTS[argument]), observed(compiled, ARGUMENTS[argument])
            try:
                assert_same(got, expected, tolerance=1e-4)
            except AssertionError as e:
                raise AssertionError(f"{name}, call {call}: {e}") from None
