"""Hooks in C code, and hooks registered by a call itself."""

from __future__ import annotations

import functools
import operator
import types

import pytest
import torch
from test_module_hooks import backward, check, net
from torch import nn

import cresset

PROGRAMS: dict = {}


def program(*, make=lambda w: None, pieces=None, learns=1):
    """A program as in test_module_hooks."""

    def add(function):
        PROGRAMS[function.__name__] = types.SimpleNamespace(
            make=make, function=function, between=None, pieces=pieces, use=backward, learns=learns
        )
        return function

    return add


@program(learns=0)
def hook_of_c_on_a_result(w, x):
    h = x * 2
    h.register_hook(w.log.append)
    return h.sin().sum()


@program(learns=0)
def hook_of_c_that_computes(w, x):
    h = x * 2
    h.register_hook(torch.neg)
    h.register_hook(functools.partial(torch.mul, 3))
    return h.sin().sum()


@program(make=net, learns=0, pieces=1)
def features_by_a_hook(w, x):
    got = {}
    handles = []
    for name, module in w.net.named_modules():
        if isinstance(module, nn.Linear):
            handles.append(module.register_forward_hook(lambda m, a, out, name=name: got.__setitem__(name, out * 2)))
    try:
        y = w.net(x)
    finally:
        for handle in handles:
            handle.remove()
    return y, got["0"], got["2"]


@program(make=net, learns=0, pieces=1)
def arguments_changed_by_a_hook(w, x):
    with w.net[1].register_forward_pre_hook(lambda m, args: (args[0] + 1,)):
        y = w.net(x)
    with w.net[1].register_forward_hook(lambda m, args, kwargs, out: out * 2, with_kwargs=True, prepend=True):
        return y, w.net(x)


@program(make=net, learns=0, pieces=1)
def two_hooks_of_a_module_by_turns(w, x):
    one = w.net[0].register_forward_hook(lambda m, args, out: out + 1)
    two = w.net[0].register_forward_hook(lambda m, args, out: out * 2)
    a = w.net(x)
    one.remove()
    b = w.net(x)
    two.remove()
    return a, b, w.net(x)


def one_hook_before(w):
    net(w)
    w.net[0].register_forward_hook(lambda m, args, out: out * 3)


@program(make=one_hook_before, learns=0, pieces=1)
def beside_a_hook_from_before(w, x):
    with w.net[0].register_forward_hook(lambda m, args, out: out + 1):
        y = w.net(x)
    return y, w.net(x)


@program(make=net, learns=3)  # each runs eagerly: the number differs
def hooks_that_stay(w, x):
    if len(w.net[1]._forward_hooks) < 3:
        w.net[1].register_forward_hook(lambda m, args, out: out * 2)
    y = w.net(x)
    w.log.append(len(w.net[1]._forward_hooks))
    return y


@program(make=net, learns=0)
def over_a_break(w, x):
    got = []
    handle = w.net[1].register_forward_hook(lambda m, args, out: got.append(out))
    y = w.net(x)
    if y.sum() > -1e9:
        y = y + 1
    handle.remove()
    w.log.append(len(w.net[1]._forward_hooks))
    return y, got[0]


@program(make=net, learns=1)
def class_activation_map(w, x):
    got = {}

    def keep(module, args, out):
        got["out"] = out
        out.register_hook(lambda g: got.__setitem__("gradient", g))

    handle = w.net[1].register_forward_hook(keep)
    w.net(x)[:, 0].sum().backward()
    handle.remove()
    w.net.zero_grad()
    return (got["gradient"].mean(0, keepdim=True) * got["out"]).sum(1).relu().detach()


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_eager_does(name):
    check(PROGRAMS[name])


def test_hooks_of_c_on_a_node_are_called_by_backward_passes_alone():
    seen = []

    def f(x):
        h = x * 2
        h.grad_fn.register_prehook(tuple)
        h.grad_fn.register_hook(functools.partial(operator.setitem, box))
        return (h.sin() + x).sum()

    class Box(dict):
        def __setitem__(self, key, value):
            seen.append(len(key))

    box = Box()
    g = cresset.compile(f)
    for i in range(3):
        x = torch.randn(3, requires_grad=True)
        y = g(x)
        assert len(seen) == i
        y.backward()
        torch.testing.assert_close(x.grad, 2 * (2 * x).cos() + 1)
    assert cresset.stats()["eager_calls"] == 3
    assert any("a hook is C code" in why for why in cresset.stats()["graph_break_reasons"])


@pytest.mark.parametrize("by", ["one that stays", "by turns", "a handle alone", "over a break"])
def test_hooks_that_stay_have_torchs_numbers(by):
    def numbers(wrap):
        torch.utils.hooks.RemovableHandle.next_id = 7
        module, handles = nn.Linear(2, 2, bias=False), []

        def call(x):
            if by == "by turns" and handles:
                handles.pop().remove()
                return module(x)
            first = module.register_forward_hook(lambda m, args, out: out * 2)
            handles.append(module.register_forward_pre_hook(lambda m, a, k: (a, k), with_kwargs=True, prepend=True))
            if by == "over a break":
                x.sum().item()
            if by == "a handle alone":
                handles[-1].remove()
            out = module(x)
            first.remove()
            return out

        call, out = wrap(call), []
        for n in range(2, 6):
            call(torch.ones(n, 2))
            keys = list(module._forward_pre_hooks), list(module._forward_pre_hooks_with_kwargs)
            out.append(([h.id for h in handles], keys, torch.utils.hooks.RemovableHandle.next_id))
        return out

    assert numbers(cresset.compile) == numbers(lambda call: call)


def test_calls_that_remove_their_hooks_are_one_program_whatever_torch_counts():
    module = nn.Linear(2, 2)

    def call(x):
        handle = module.register_forward_hook(lambda m, args, out: out * 2)
        out = module(x)
        handle.remove()
        return out

    compiled = cresset.compile(call)
    for n in range(2, 6):
        x = torch.ones(n, 2)
        torch.testing.assert_close(compiled(x), call(x))  # this advances torch's counter
    assert cresset.stats()["graphs"] == 1
