"""Tensors of classes with __torch_dispatch__ that wrap other tensors: made in a call, passed to a call, and returned by
a call."""

from __future__ import annotations

import pytest
import torch
from programs.overrides import Two, ramp
from torch import nn
from torch.utils._pytree import tree_map_only

import cresset


def pair(n, i):
    return Two(ramp(n, 4) + i, ramp(n, 4) * 2)


def plain(n, i):
    return ramp(n, 4) + i


def in_place(y):
    y.add_(1)
    return y.a * 2


def over_a_break(y):
    z = y * 2
    print(end="")
    return z.a + z.b + z.shape[0]


PROGRAMS = {
    "made_and_dropped": (lambda x: ((Two(x, x * 2) + 1).relu() * Two(x, x)).b, plain),
    "given": (lambda y: (y * 2).a + (y * 2).b, pair),
    "sizes": (lambda y: y.a.reshape(-1) * y.shape[0] + y.numel() + y.stride(0), pair),
    "operators": (lambda y: (y + y.shape[1]).sin(), pair),
    "result": (lambda x: Two(x.sin(), x.cos()), plain),
    "handed_back": (lambda y: (y, y.a), pair),
    "written": (in_place, pair),
    "product": (lambda y: (y @ y.t()).a, pair),
    "in_a_list": (lambda ys: ys[0].a + ys[1].b, lambda n, i: [pair(n, i), pair(n, i)]),
    "in_containers": (lambda y: [y + 1, {"k": y * 2}], pair),
    "views": (lambda y: y.view(-1).a + y.reshape(-1, 2).b.reshape(-1), pair),
    "twice": (lambda x: (lambda y: (y, y))(Two(x, x + 1)), plain),
    "attributes": (lambda y: [sorted(vars(y)), type(y).__name__, isinstance(y, Two), y.dtype, y.dim()], pair),
}


def parts(value):
    if isinstance(value, Two):
        return ["Two", tuple(value.shape), value.stride(), value.dtype, *parts(value.a), *parts(value.b)]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__] + [p for v in value for p in parts(v)]
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in [k, *parts(v)]]
    return [value]


def assert_same(expected, got):
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a)
        else:
            assert a == b


def calls(f, make, sizes=(4, 4, 6, 2)):
    out = []
    with torch.no_grad():
        for i, n in enumerate(sizes):
            x = make(n, i)
            out.append(parts(f(x)) + parts(x))
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_compilation(name):
    f, make = PROGRAMS[name]
    for expected, got in zip(calls(f, make), calls(cresset.compile(f), make)):
        assert_same(expected, got)
    stats = cresset.stats()
    assert (stats["graphs"], stats["eager_calls"], stats["graph_breaks"]) == (1, 0, 0), stats["graph_break_reasons"]


def test_over_a_break():
    for expected, got in zip(calls(over_a_break, pair), calls(cresset.compile(over_a_break), pair)):
        assert_same(expected, got)
    stats = cresset.stats()
    assert (stats["graphs"], stats["eager_calls"], stats["eager_fallbacks"]) == (2, 0, 0)


def test_the_very_argument_is_handed_back():
    f = cresset.compile(lambda y: (y, y.a))
    for i, n in enumerate((3, 3, 5)):
        y = pair(n, i)
        with torch.no_grad():
            same, inside = f(y)
        assert same is y and inside is y.a and tuple(y.shape) == (n, 4)


def test_another_class_is_another_program():
    class Other(Two):
        pass

    f = cresset.compile(lambda y: type(y).__name__ + str(y.a.shape[0]))
    with torch.no_grad():
        assert f(pair(3, 0)) == "Two3" and f(Other(ramp(3, 4), ramp(3, 4))) == "Other3" and f(pair(5, 0)) == "Two5"


@pytest.mark.parametrize("grad", [False, True])
def test_wrappers_that_want_gradients_are_left_to_autograd(grad):
    def f(y):
        return (y * 2).sum()

    def run(g):
        a, b = ramp(3, 4).requires_grad_(grad), ramp(3, 4)
        y = Two(a, b)
        return g(y).a.detach()

    g = cresset.compile(f)
    for _ in range(3):
        torch.testing.assert_close(run(g), run(f))


class Quantized(torch.Tensor):
    """Weights in eight bits, with a scale for each row."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=scale.dtype, device=data.device)

    def __init__(self, data, scale):
        self.numbers, self.scale = data, scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(args[0].numbers, args[0].scale)
        args = tree_map_only(cls, lambda t: t.numbers.to(t.scale.dtype) * t.scale, args)
        return func(*args, **(kwargs or {}))


def test_weights_of_a_class_of_their_own():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).requires_grad_(False)
    for layer in (model[0], model[2]):
        scale = layer.weight.abs().amax(1, keepdim=True) / 127
        numbers = (layer.weight / scale).round().to(torch.int8)
        layer.weight = nn.Parameter(Quantized(numbers, scale), requires_grad=False)
    compiled = cresset.compile(model)
    with torch.no_grad():
        for n in (3, 3, 5, 1):
            x = torch.randn(n, 8)
            torch.testing.assert_close(compiled(x), model(x))
    assert (cresset.stats()["graphs"], cresset.stats()["eager_calls"]) == (1, 0)
