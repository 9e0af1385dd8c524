"""Gradients of gradients through compiled calls, and through their graph segments (create_graph=True)."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cresset


def network(outputs=1, dropout=0.0):
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 8), nn.Softplus(),
                         nn.Linear(8, outputs))  # fmt: skip


class Broken(nn.Module):
    """A module with a graph break."""

    def __init__(self, outputs=1):
        super().__init__()
        self.first, self.second = nn.Linear(5, 8), nn.Linear(8, outputs)

    def forward(self, x):
        h = self.first(x).tanh()
        h.sum().item()
        return self.second(h).sigmoid()


def penalty(critic, x):
    x = x.clone().requires_grad_()
    out = critic(x)
    (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return out.mean() + ((gradient.norm(2, dim=1) - 1) ** 2).mean()


def compare(make, loss_of, compiled_of, calls=4, passes=None):
    """Losses and gradients of two copies of a module; a single copy is compiled."""
    torch.manual_seed(0)
    model = make()
    other = copy.deepcopy(model)
    run = compiled_of(other)
    before = cresset.stats()["double_backward_fallbacks"]
    for call in range(calls):
        x = torch.randn(3 + call, 5)
        torch.manual_seed(call)
        expected = loss_of(model, x)
        torch.manual_seed(call)
        got = run(x)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
        for m, loss in ((model, expected), (other, got)):
            m.zero_grad()
            loss.backward()
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(q.grad, p.grad, rtol=1e-4, atol=1e-5)
    if passes is not None:
        assert cresset.stats()["double_backward_fallbacks"] - before == passes


def compiled_model(loss_of):
    def make(module):
        module.forward = cresset.compile(module.forward)
        return lambda x: loss_of(module, x)

    return make


@pytest.mark.parametrize("make", [network, Broken, lambda: network(dropout=0.4)], ids=["network", "pieces", "dropout"])
def test_penalty_of_a_compiled_model(make):
    compare(make, penalty, compiled_model(penalty))


def test_penalty_in_a_compiled_step():
    def with_breaks(critic, x):
        x = x.clone().requires_grad_()
        out = critic(x)
        out.mean().item()
        (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        gradient.mean().item()
        return out.mean() + ((gradient.norm(2, dim=1) - 1) ** 2).mean()

    compiled = cresset.compile(with_breaks)
    compare(Broken, with_breaks, lambda m: lambda x: compiled(m, x))


def test_counted():
    compare(network, penalty, compiled_model(penalty), calls=3, passes=3)


def test_several_results():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(8, 2)

        def forward(self, x):
            h = self.body(x).sin()
            return self.a(h).exp(), self.b(h).sin()

    def loss_of(m, x):
        a, b = m(x)
        gradients = torch.autograd.grad(a.sum(), list(m.body.parameters()), create_graph=True)
        return sum(g.pow(2).sum() for g in gradients) + b.pow(2).sum()

    compare(Two, loss_of, compiled_model(loss_of))


def test_hessian_vector_product():
    torch.manual_seed(0)
    w = torch.randn(5, requires_grad=True)

    def f(w, x):
        return (x @ w).tanh().pow(3).sum()

    compiled = cresset.compile(f)
    for n in (3, 4, 5):
        x, v = torch.randn(n, 5), torch.randn(5)
        products = []
        for g in (f, compiled):
            (first,) = torch.autograd.grad(g(w, x), w, create_graph=True)
            (second,) = torch.autograd.grad(first @ v, w, create_graph=True)
            (third,) = torch.autograd.grad(second @ v, w)
            products.append((first, second, third))
        torch.testing.assert_close(products[1], products[0], rtol=1e-4, atol=1e-5)


def test_adapted_parameters():
    """MAML: the parameters of the second step depend on the gradients of the first."""

    def loss_of(forward, m, x):
        p = dict(m.named_parameters())
        y = x[:, :1]
        for _ in range(2):
            inner = F.mse_loss(forward(m, p, x), y)
            gradients = torch.autograd.grad(inner, list(p.values()), create_graph=True)
            p = {k: v - 0.1 * g for (k, v), g in zip(p.items(), gradients, strict=True)}
        return F.mse_loss(forward(m, p, x.flip(0)), y)

    def forward(m, p, x):
        return torch.func.functional_call(m, p, (x,))

    compiled = cresset.compile(forward)
    compare(network, lambda m, x: loss_of(forward, m, x), lambda m: lambda x: loss_of(compiled, m, x))


def test_overwritten_inputs():
    def f(w, x):
        return (x * w).exp()

    def error(g):
        w, x = torch.randn(3, requires_grad=True), torch.randn(3)
        out = g(w, x)
        x.add_(1)
        try:
            torch.autograd.grad(out.sum(), w, create_graph=True)
        except RuntimeError as e:
            return "modified by an inplace operation" in str(e)

    assert error(f) and error(cresset.compile(f))


WRITTEN_LATER = {
    "a formula with the result": lambda x: x.sigmoid(),
    "a formula with the indices": lambda x: x.max(1).values ** 3,
    "copies of operands": lambda x: x.reshape(2, 3, 2).mT.contiguous() @ x.reshape(2, 3, 2).clone(),
    "an expanded operand": lambda x: x.exp().sum(1, keepdim=True).expand(3, 4) * 2,
    "no formula": lambda x: x.flip(0) + x,
}


@pytest.mark.parametrize("write", ["seen", "unseen", "in the function"])
@pytest.mark.parametrize("name", WRITTEN_LATER)
def test_inputs_written_where_no_formula_reads_them(name, write):
    def f(x):
        y = WRITTEN_LATER[name](x)
        if write == "in the function":
            x.data.copy_(x.flip(1))
        return y

    def history(g):
        leaf = (torch.arange(12.0, dtype=torch.float64).reshape(3, 4) / 8 - 0.7).requires_grad_()
        x = leaf * 1
        y = g(x)
        if write != "in the function":
            (x if write == "seen" else x.data).copy_(x.detach().flip(1))
        (first,) = torch.autograd.grad((y * y).sum(), leaf, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), leaf)
        return first.detach(), second

    compiled = cresset.compile(f)
    for _ in range(2):
        torch.testing.assert_close(history(compiled), history(f))


def test_create_graph_without_retain_graph():
    def f(w, x):
        return (x * w).exp()

    compiled = cresset.compile(f)
    for g in (f, compiled):
        w, x = torch.ones(3, requires_grad=True), torch.ones(3)
        out = g(w, x).sum()
        torch.autograd.grad(out, w, create_graph=True, retain_graph=False)
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(out, w)
