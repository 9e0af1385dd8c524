"""The reach of autograd is the same as in eager mode: leaves with a gradient, hooks that run, passes that may run
twice."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import cresset


class Heads(nn.Module):
    """Results with a common trunk, and a result without it."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 4)
        self.first, self.second, self.alone = nn.Linear(4, 2), nn.Linear(4, 3), nn.Linear(4, 5)

    def forward(self, x, z):
        h = torch.tanh(self.trunk(x))
        return {"first": self.first(h), "second": self.second(h).relu(), "alone": self.alone(z).sum(), "trunk": h}


def gradients(module, *tensors):
    return [None if t.grad is None else t.grad.clone() for t in [*module.parameters(), *tensors]]


def same(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


CHOICES = [
    ["first"], ["second"], ["alone"], ["trunk"], ["first", "second"], ["second", "alone"], ["first", "trunk", "alone"],
    ["first", "second", "alone", "trunk"],
]  # fmt: skip


@pytest.mark.parametrize("chosen", CHOICES, ids=",".join)
def test_leaves_that_nothing_leads_to_get_none(chosen):
    torch.manual_seed(0)
    model = Heads()
    expected_model = copy.deepcopy(model)
    compiled = cresset.compile(model)
    for rows in (3, 5, 1):
        outcomes = []
        for module, f in ((expected_model, expected_model), (model, compiled)):
            module.zero_grad()
            torch.manual_seed(rows)
            x, z = torch.randn(rows, 4, requires_grad=True), torch.randn(2, 4, requires_grad=True)
            results = f(x, z)
            sum((results[name] * 0.5).square().sum() for name in chosen).backward()
            outcomes.append(gradients(module, x, z))
        same(outcomes[1], outcomes[0])
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


def test_an_optimizer_leaves_alone_what_got_none():
    torch.manual_seed(0)
    model = Heads()
    compiled = cresset.compile(model)
    before = model.alone.weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        compiled(torch.randn(3, 4), torch.randn(2, 4))["first"].sum().backward()
        optimizer.step()
    assert torch.equal(model.alone.weight, before)
    assert not torch.equal(model.first.weight, torch.zeros_like(model.first.weight))


def two(x, y):
    return (x * x).sum(), (y * x).sin(), y.exp()


def test_hooks_are_called_where_a_gradient_comes():
    def run(f):
        calls = []
        x, y, u = (torch.linspace(0.1, 1, 3, requires_grad=True) for _ in range(3))
        x.register_hook(lambda g: calls.append(("x", g.clone())))
        y.register_hook(lambda g: calls.append(("y", g.clone())))
        w = u * 2
        w.register_hook(lambda g: calls.append(("w", g.clone())))
        a, b, c = f(x, w)
        for name, t in (("a", a), ("b", b), ("c", c)):
            t.register_hook(lambda g, name=name: calls.append((name, g.clone())))
        a.backward()
        calls.append("then")
        c.sum().backward()
        return calls, [x.grad, y.grad, u.grad]

    compiled = cresset.compile(two)
    for _ in range(2):
        (calls, got), (expected_calls, expected) = run(compiled), run(two)
        assert [c[0] for c in calls] == [c[0] for c in expected_calls]
        same([c[1] for c in calls if c != "then"], [c[1] for c in expected_calls if c != "then"])
        same(got, expected)


def test_gradients_of_chosen_leaves():
    compiled = cresset.compile(two)
    for f in (two, compiled):
        x, y = (torch.linspace(0.1, 1, 3, requires_grad=True) for _ in range(2))
        a, b, c = f(x, y)
        got = torch.autograd.grad(a, (x, y), allow_unused=True, retain_graph=True)
        assert got[1] is None
        torch.testing.assert_close(got[0], 2 * x)
        with pytest.raises(RuntimeError, match="appears to not have been used"):
            torch.autograd.grad(a, y, retain_graph=True)
        got = torch.autograd.grad((b.sum(), c.sum()), (y,), retain_graph=True)
        torch.testing.assert_close(got[0], x * (x * y).cos() + y.exp())
        got = torch.autograd.grad((a, b, c), (x, y), (torch.tensor(2.0), torch.ones(3), torch.ones(3)))
        torch.testing.assert_close(got[0], 4 * x + y * (x * y).cos())
        torch.testing.assert_close(got[1], x * (x * y).cos() + y.exp())


def test_results_apart_are_differentiated_apart():
    """Without retain_graph: independent parts of a call's autograd graph are freed separately."""

    def apart(x, y):
        return x.sin().sum(), y.cos().sum(), (x * y).sum()

    compiled = cresset.compile(apart)
    for f in (apart, compiled):
        x, y = (torch.linspace(0.1, 1, 3, requires_grad=True) for _ in range(2))
        a, b, _ = f(x, y)
        a.backward()
        assert y.grad is None
        b.backward()
        torch.testing.assert_close(x.grad, x.cos())
        torch.testing.assert_close(y.grad, -y.sin())
        for loss in (a, b):
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()


def two_losses_of_one_call(wrap):
    torch.manual_seed(0)
    maker, judge = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
    weight = torch.randn(4, requires_grad=True)

    @wrap
    def losses(z, real):
        made = maker(z).tanh() * weight
        return made, (judge(real).exp() - judge(made.detach())).mean(), (made.sin() * weight).sum()

    step = torch.optim.SGD(judge.parameters(), lr=0.1).step
    for rows in (2, 3, 5):
        made, loss, other = losses(torch.randn(rows, 3), torch.randn(rows, 4))
        loss.backward()
        step()
        judge(made).sum().backward(retain_graph=True)
        with torch.no_grad():
            weight.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            other.backward()
        yield gradients(judge, *maker.parameters(), weight)


def test_what_other_results_saved_may_be_written():
    """An optimizer between two backward passes: only tensors read by the second pass must be unchanged."""
    got, expected = list(two_losses_of_one_call(cresset.compile)), list(two_losses_of_one_call(lambda f: f))
    for mine, its in zip(got, expected, strict=True):
        same(mine, its)


def test_retain_graph():
    compiled = cresset.compile(two)
    for f in (two, compiled):
        x, y = (torch.linspace(0.1, 1, 3, requires_grad=True) for _ in range(2))
        a, b, c = f(x, y)
        for times in (1, 2):
            (a + b.sum()).backward(retain_graph=True)
            torch.testing.assert_close(x.grad, times * (2 * x + y * (x * y).cos()))
        c.sum().backward(retain_graph=True)
        b.sum().backward()
        torch.testing.assert_close(x.grad, 4 * x + 3 * y * (x * y).cos())
        with pytest.raises(RuntimeError, match="second time"):
            b.sum().backward()


def test_a_result_that_goes_on_through_another_call():
    """Gradients arrive in sequence: a result is the argument of another compiled call."""
    compiled, next_one = cresset.compile(two), cresset.compile(lambda t, u: (t * 2, u.sum()))
    for f, g in ((two, lambda t, u: (t * 2, u.sum())), (compiled, next_one)):
        x, y, z = (torch.linspace(0.1, 1, 3, requires_grad=True) for _ in range(3))
        a, b, c = f(x, y)
        d, e = g(b, z)
        (d.sum() + a).backward()
        assert z.grad is None
        torch.testing.assert_close(x.grad, 2 * x + 2 * y * (x * y).cos())
        torch.testing.assert_close(y.grad, 2 * x * (x * y).cos())
        assert e.requires_grad and c.requires_grad


def test_a_gradient_that_is_none_leads_nowhere():
    class Stop(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t.clone()

        @staticmethod
        def backward(ctx, g):
            return None

    compiled = cresset.compile(two)
    for f in (two, compiled):
        x, y = (torch.linspace(0.1, 1, 3, requires_grad=True) for _ in range(2))
        a, _, c = f(x, y)
        (Stop.apply(c).sum() + a).backward()
        assert y.grad is None
        torch.testing.assert_close(x.grad, 2 * x)
        Stop.apply(f(x, x)[0]).backward()  # one node for all
        torch.testing.assert_close(x.grad, 2 * x)


def test_through_breaks():
    def f(x, y):
        a = (x * 2).sin()
        print("break")
        return a * 3, y * y, (a * y).sum()

    compiled = cresset.compile(f)
    for which in (0, 1, 2):
        for _ in range(2):
            outcomes = []
            for g in (f, compiled):
                x, y = (torch.linspace(0.1, 1, 3, requires_grad=True) for _ in range(2))
                g(x, y)[which].sum().backward()
                outcomes.append([x.grad, y.grad])
            same(outcomes[1], outcomes[0])
    assert cresset.stats()["eager_calls"] == 0


def test_memory_is_let_go_of():
    import weakref

    compiled = cresset.compile(two)
    x, y = (torch.linspace(0.1, 1, 3, requires_grad=True) for _ in range(2))
    a, b, c = compiled(x, y)
    saved = [weakref.ref(t) for t in (a, b, c)]
    a.backward()
    del a, b, c
    assert all(ref() is None for ref in saved)
