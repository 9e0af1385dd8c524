"""Autograd's state of the tensors among the arguments, which may differ between calls."""

import pytest
import torch

import cresset


def plain():
    return torch.ones(3)


def leaf():
    return torch.ones(3, requires_grad=True)


def made():
    return torch.ones(3, requires_grad=True) * 2


def with_grad(value):
    t = leaf()
    t.grad = torch.full((3,), value)
    return t


ARGUMENTS = [plain, leaf, plain, made, leaf, plain, made]


def product(t):
    return t * 2


def questions(t):
    return t.requires_grad, t.is_leaf, t.grad_fn is None


def branch(t):
    with torch.no_grad():
        return t * 2 if t.requires_grad else t * 3


def detached(t):
    return t.detach(), t.detach()[1:], t.data


def view_without_gradients(t):
    with torch.no_grad():
        return t[1:], t.view(3, 1)


def of_parts(t):
    batch = {"t": t, "l": [t]}
    return batch["l"][0].requires_grad, batch["t"] + 1


def after_a_break(t):
    n = float(t.detach().sum()) > 0
    return t.requires_grad, n, t.detach() + 1


@pytest.mark.parametrize(
    "f",
    [product, questions, branch, detached, view_without_gradients, of_parts, after_a_break],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("grad", [True, False])
def test_questions(f, grad):
    def told(g):
        out = []
        with torch.set_grad_enabled(grad):
            for make in ARGUMENTS:
                got = g(make())
                parts = got if isinstance(got, tuple) else (got,)
                out.append([(p.requires_grad, p.is_leaf, p.tolist()) if torch.is_tensor(p) else p for p in parts])
        return out

    assert told(cresset.compile(f)) == told(f)


def step(t):
    with torch.no_grad():
        return t - 0.1 * t.grad


def has_grad(t):
    return t.grad is None, getattr(t, "grad", 1) is None, t._version


@pytest.mark.parametrize("f", [step, has_grad], ids=lambda f: f.__name__)
def test_gradients_that_arguments_hold(f):
    compiled = cresset.compile(f)
    for i in range(4):
        mine, its = compiled(with_grad(float(i))), f(with_grad(float(i)))
        assert torch.equal(mine, its) if torch.is_tensor(its) else mine == its
    if f is has_grad:
        assert compiled(leaf()) == f(leaf())


def test_calls_without_gradients_are_compiled_after_calls_with_them():
    compiled = cresset.compile(product)
    cresset.reset()
    compiled(leaf())
    before = cresset.stats()["eager_calls"]
    for _ in range(3):
        assert not compiled(plain()).requires_grad
    assert cresset.stats()["eager_calls"] == before == 0
    assert compiled(leaf()).requires_grad
