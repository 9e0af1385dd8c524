"""Repeated backward passes through a call: the parts of the autograd graph that eager frees, and the parts it keeps."""

import random

import pytest
import torch

import cresset


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, k):
        ctx.k = k
        ctx.save_for_backward(t)
        return t * k

    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return (g * ctx.k).clamp(-1.5, 1.5) + t * 0, None


class Shifted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t + 1

    @staticmethod
    def backward(ctx, g):
        return g * 1


def outcome(do):
    try:
        return do()
    except RuntimeError as error:
        return str(error)[:60]


def assert_same(got, wanted):
    assert type(got) is type(wanted), (got, wanted)
    if isinstance(wanted, torch.Tensor):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-4)
    elif isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted):
            assert_same(a, b)
    else:
        assert got == wanted


def compare(f, passes):
    """passes(f, x): yields the result of each pass; the same under cresset and in eager mode."""

    def all_of(f):
        torch.manual_seed(0)
        x = torch.randn(3, 4, requires_grad=True)
        return [outcome(do) for do in passes(f, x)]

    for _ in range(2):
        assert_same(all_of(cresset.compile(f)), all_of(f))


def test_two_losses_of_one_network_are_passed_one_after_the_other():
    torch.manual_seed(0)
    critic = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    def f(real, made):
        return critic(real).sum(), critic(made).mean()

    def gradients(f):
        critic.zero_grad()
        for loss in f(torch.ones(3, 4), torch.full((5, 4), 0.3)):
            loss.backward()
        return [p.grad.clone() for p in critic.parameters()]

    assert_same(gradients(cresset.compile(f)), gradients(f))
    before = cresset.stats()["eager_calls"]
    compiled = cresset.compile(f)
    assert_same(gradients(compiled), gradients(f))
    assert cresset.stats()["eager_calls"] == before


FUNCTIONS = {
    "clone": lambda x: x.clone(),
    "product": lambda x: x * 2 + 1,
    "exp": lambda x: x.exp(),
    "view": lambda x: (x.t(), x + 1),
    "two": lambda x: (x * 2, x.sin()),
    "three": lambda x: (x.tanh().sum(), x.clone(), x.pow(2)),
    "shared": lambda x: (lambda h: (h.sin(), h.cos(), h + 1))(x.exp()),
    "custom": lambda x: (Shifted.apply(x), Scaled.apply(x, 2), x * 3),
    "sum": lambda x: (x.sum(), x[0], x.expand(2, 3, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_may_be_passed_twice_is_what_holds_no_tensors(name):
    def passes(f, x):
        results = f(x)
        for y in 2 * (results if isinstance(results, tuple) else (results,)):

            def do(y=y):
                y.sum().backward()
                return x.grad.clone()

            yield do

    compare(FUNCTIONS[name], passes)


def random_function(rng):
    """A few operators on earlier values, some of them results."""
    steps = [(rng.choice("tsacpmkv"), rng.random(), rng.random()) for _ in range(rng.randint(2, 7))]
    shown = [rng.random() < 0.6 for _ in steps]

    def f(x):
        values, results = [x], []
        for (kind, a, b), show in zip(steps, shown):
            p, q = values[int(a * len(values))], values[int(b * len(values))]
            values.append(
                {
                    "t": lambda p, q: p.tanh(),
                    "s": lambda p, q: p * q,
                    "a": lambda p, q: p + q,
                    "c": lambda p, q: p.clone(),
                    "p": lambda p, q: p.pow(2),
                    "m": lambda p, q: p.mean(0, keepdim=True) + q,
                    "k": lambda p, q: Scaled.apply(p, 2),
                    "v": lambda p, q: Shifted.apply(p) - q,
                }[kind](p, q)
            )
            if show:
                results.append(values[-1])
        return (*results, values[-1] * 1)

    return f


@pytest.mark.parametrize("seed", range(40))
def test_random_passes(seed):
    rng = random.Random(seed)
    f = random_function(rng)
    plan = [(rng.random(), rng.random(), rng.random() < 0.4, rng.choice("bbgh")) for _ in range(6)]

    def passes(f, x):
        results = f(x)
        for a, b, keep, kind in plan:

            def do(a=a, b=b, keep=keep, kind=kind):
                y, z = results[int(a * len(results))], results[int(b * len(results))]
                if kind == "b":
                    (y.sum() + (z.sum() * 2 if keep else 0)).backward(retain_graph=keep)
                    return x.grad.clone()
                if kind == "g":
                    return torch.autograd.grad(y.sum(), x, retain_graph=keep)[0]
                return torch.autograd.grad(y.sum(), [x, z], retain_graph=True, allow_unused=True)

            yield do

    compare(f, passes)


def test_a_subclass_keeps_its_way_to_gradients_where_the_caller_records_none():
    class Picture(torch.Tensor):
        pass

    w = torch.nn.Parameter(torch.ones(4))

    def f(x):
        with torch.enable_grad():
            loss = (x * w).pow(2).sum()
            float(loss.detach().sum())  # a graph break
            loss.backward()
        return loss.detach()

    def losses(f):
        w.grad = None
        with torch.no_grad():
            found = [f(torch.full((n, 4), 0.1 * n).as_subclass(Picture)) for n in (2, 3, 3, 5)]
        return [found, w.grad]

    got, wanted = losses(cresset.compile(f)), losses(f)
    assert [type(t) for t in got[0]] == [type(t) for t in wanted[0]]
    assert_same(got[1], wanted[1])


def test_a_leaf_of_a_subclass_is_the_leaf_behind_a_break():
    class Picture(torch.Tensor):
        pass

    def f(x):
        with torch.enable_grad():
            leaf = x.clone().requires_grad_()
            loss = (leaf * 3).pow(2).sum()
            float(loss.detach())  # a graph break
        (of_leaf,) = torch.autograd.grad(loss, leaf)
        return of_leaf, leaf.is_leaf, type(leaf).__name__

    def found(f):
        with torch.no_grad():
            return [f(torch.full((n, 4), 0.1 * n).as_subclass(Picture)) for n in (2, 3, 3, 5)]

    assert_same(found(cresset.compile(f)), found(f))
