"""Results from which other results of a call were computed: gradients with respect to them, hooks on them, kept
gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import cresset

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def weight():
    return torch.tensor([0.5, -0.8, 1.2], requires_grad=True)


def inputs():
    return [torch.ones(3) * 0.3 + i / 4 for i in range(3)]


@program
def asked_by_the_caller(compiled):
    w = weight()

    @compiled
    def f(x):
        h = (x * w).sin()
        return h, h.pow(2).sum() + (w * x).sum()

    for x in inputs():
        h, loss = f(x)
        yield torch.autograd.grad(loss, h)
        h, loss = f(x)
        yield torch.autograd.grad(loss, [h, w])
        h, loss = f(x)
        yield torch.autograd.grad(loss + h.sum(), [h, w])
        h, loss = f(x)
        yield torch.autograd.grad(loss, w, retain_graph=True), torch.autograd.grad(h.sum(), w)


@program
def kept_by_the_caller(compiled):
    w = weight()

    @compiled
    def f(x):
        h = (x * w).sin()
        return h, h.pow(2).sum()

    for x in inputs():
        for more in (0, 3):
            w.grad = None
            h, loss = f(x)
            h.retain_grad()
            (loss + more * h.sum() if more else loss).backward()
            yield h.grad, w.grad


@program
def hooks_of_the_caller(compiled):
    w = weight()

    @compiled
    def f(x):
        h = (x * w).sin()
        return h, h.pow(2).sum() + (w * x).sum()

    for x in inputs():
        seen = []
        w.grad = None
        h, loss = f(x)
        h.register_hook(lambda g, seen=seen: seen.append(g) or g * 2)
        loss.backward()
        yield seen, w.grad
        w.grad = None
        h, loss = f(x)
        h.register_hook(lambda g: g * 0)
        (loss + h.sum()).backward()
        yield w.grad


@program
def one_behind_the_other(compiled):
    w = weight()

    @compiled
    def f(x):
        a = x * w
        b = a.exp() + a
        c = (b * a).sin()
        return a, b, c, (c * b).sum()

    for x in inputs():
        a, b, c, loss = f(x)
        yield torch.autograd.grad(loss, [a, b, c, w])
        a, b, c, loss = f(x)
        yield torch.autograd.grad(loss, b)
        a, b, c, loss = f(x)
        yield torch.autograd.grad(loss + c.sum() + (b * 2).sum(), [a, w])
        w.grad = None
        a, b, c, loss = f(x)
        for t in (a, b, c):
            t.retain_grad()
        loss.backward()
        yield a.grad, b.grad, c.grad, w.grad
        w.grad = None
        a, b, c, loss = f(x)
        b.register_hook(lambda g: g * 3)
        a.register_hook(lambda g: g + 1)
        loss.backward()
        yield w.grad


@program
def asked_behind_a_break(compiled):
    w = weight()

    @compiled
    def f(x, steps):
        v, losses = w, []
        for _ in range(steps):
            v = v * 2
            loss = (x * v).pow(2).sum()
            losses.append(loss.item())
            (g,) = torch.autograd.grad(loss, v, create_graph=True)
            v = v - 0.1 * g
        return (v * x).sum(), losses

    for i, x in enumerate(inputs() * 2):
        result, losses = f(x, 1 + i % 2)
        yield torch.autograd.grad(result, w), losses


@program
def gradients_of_them(compiled):
    w = weight()

    @compiled
    def f(x):
        h = (x * w).sin()
        return h, h.pow(3).sum()

    for x in inputs():
        h, loss = f(x)
        (g,) = torch.autograd.grad(loss, h, create_graph=True)
        yield g, torch.autograd.grad(g.sum(), w)


@program
def infinite_derivatives(compiled):
    w = torch.zeros(3, requires_grad=True)

    @compiled
    def f(x):
        h = x * w
        return h, h.sqrt().sum()

    for x in inputs():
        w.grad = None
        h, loss = f(x)
        h.retain_grad()
        loss.backward()
        yield h.grad, w.grad


@program
def random_masks(compiled):
    w = weight()

    @compiled
    def f(x):
        h = torch.dropout(x * w, 0.5, True)
        return h, (torch.dropout(h, 0.5, True) + torch.rand(3)).pow(2).sum()

    for i, x in enumerate(inputs()):
        torch.manual_seed(i)
        w.grad = None
        h, loss = f(x)
        h.retain_grad()
        loss.backward()
        yield h.grad, w.grad, torch.rand(1)


@program
def hidden_states(compiled):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            states = [self.a(x).relu()]
            states.append(self.b(states[-1]).tanh() + states[-1])
            return states, self.c(states[-1])

    torch.manual_seed(0)
    model = Model()
    f = compiled(model)
    for i in range(4):
        model.zero_grad()
        states, y = f(torch.ones(2 + i % 2, 3) * i)
        for state in states if i % 2 else ():
            state.retain_grad()
        y.logsumexp(1).sum().backward()
        yield [state.grad for state in states if i % 2], [p.grad.clone() for p in model.parameters()]


@program
def two_losses(compiled):
    w = weight()

    @compiled
    def f(x):
        h = (x * w).sin()
        return h, h.pow(2).sum(), h.exp().sum()

    for x in inputs():
        h, a, b = f(x)
        of_a = torch.autograd.grad(a, h, retain_graph=True)[0]
        of_b = torch.autograd.grad(b, h, retain_graph=True)[0]
        w.grad = None
        h.backward(of_a + of_b)
        yield of_a, of_b, w.grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_on_the_way(name):
    expected = list(PROGRAMS[name](lambda f: f))
    cresset.reset()
    got = list(PROGRAMS[name](cresset.compile))
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5, equal_nan=True)
    assert cresset.stats()["eager_calls"] == 0, cresset.stats()["graph_break_reasons"]
