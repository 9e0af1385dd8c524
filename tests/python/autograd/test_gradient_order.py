"""Hooks at leaves run in eager's order, as optimizers that step at each gradient need it, and logs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import cresset


def layers(*modules):
    torch.manual_seed(0)
    return nn.Sequential(*[m() for m in modules])


def linear():
    return nn.Linear(4, 4)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.scale = linear(), linear(), nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x + self.b(self.a(x).tanh()) * self.scale


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.last = linear(), nn.Linear(4, 1)

    def forward(self, x):
        return self.last(self.inner(self.inner(x).relu()))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = linear(), linear(), linear()

    def forward(self, x):
        return self.c(self.a(x).sin() * self.b(x))


NETS = {
    "layers": lambda: layers(linear, nn.ReLU, linear, nn.Tanh, linear),
    "one layer": linear,
    "many layers": lambda: layers(*[linear, lambda: nn.LayerNorm(4)] * 6),
    "residual": lambda: layers(Residual, Residual, linear),
    "shared": Shared,
    "branches": Branches,
    "convolutions": lambda: layers(lambda: nn.Unflatten(1, (1, 2, 2)), lambda: nn.Conv2d(1, 3, 1), nn.Flatten),
    "attention": lambda: layers(lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)),
}


def outcome(module, wrap, register):
    seen = []
    for name, p in module.named_parameters():
        getattr(p, register)(lambda _, name=name: seen.append(name))
    call = wrap(module)
    for i in range(3):
        result = call(torch.arange(12.0).reshape(3, 4) * 0.1 + i)
        result.square().sum().backward()
        seen.append(i)
    return seen


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
@pytest.mark.parametrize("name", NETS)
def test_order_of_hooks(name, register):
    torch.manual_seed(0)
    expected = outcome(NETS[name](), lambda module: module, register)
    cresset.reset()
    assert outcome(NETS[name](), cresset.compile, register) == expected
    assert cresset.stats()["eager_calls"] == 0


def two_losses(module, wrap, register):
    seen = []
    for name, p in module.named_parameters():
        getattr(p, register)(lambda _, name=name: seen.append(name))
    other = linear()
    for name, p in other.named_parameters():
        getattr(p, register)(lambda _, name=name: seen.append("other." + name))
    call = wrap(lambda x: (module(x).sum(), other(x).sum()))
    for i in range(3):
        first, second = call(torch.ones(2, 4) + i)
        (first + second).backward(retain_graph=True)
        first.backward(retain_graph=True)
        second.backward()
    return seen


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_order_of_hooks_of_two_results(register):
    expected = two_losses(NETS["layers"](), lambda f: f, register)
    cresset.reset()
    assert two_losses(NETS["layers"](), cresset.compile, register) == expected


def test_optimizers_that_step_as_gradients_come():
    """The sum of earlier steps decides on the step: another order gives other parameters."""

    def trained(wrap):
        module, total = NETS["layers"](), [0.0]

        def step(p):
            with torch.no_grad():
                total[0] = total[0] * 0.5 + p.grad.abs().sum().item()
                p.sub_(p.grad, alpha=0.01 * total[0])
            p.grad = None

        for p in module.parameters():
            p.register_post_accumulate_grad_hook(step)
        call = wrap(module)
        for i in range(4):
            call(torch.arange(8.0).reshape(2, 4) * 0.1 + i).sum().backward()
        return list(module.parameters())

    expected = trained(lambda module: module)
    cresset.reset()
    torch.testing.assert_close(trained(cresset.compile), expected)
