"""Backward hooks of modules and other callbacks of autograd: hooks on tensors, custom functions. Each program runs in
eager and compiled, over several calls, with changes between the calls. Results, gradients, hook arguments and
exceptions are the same, and nothing happens twice."""

from __future__ import annotations

import functools
import types

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint

import cresset

PROGRAMS: dict = {}


def program(*, make=None, between=None, pieces=None, use=None, learns=1):
    """A program: make(w) prepares the world, function(w, x) is called, use(w, result, x) continues, between(w, i)
    changes the world before call i. pieces: the number of graphs, where it matters. learns: the number of eager calls
    that may find out which functions autograd must run."""

    def add(function):
        PROGRAMS[function.__name__] = types.SimpleNamespace(
            make=make or (lambda w: None),
            function=function,
            between=between,
            pieces=pieces,
            use=use or backward,
            learns=learns,
        )
        return function

    return add


def seen(w, name="", *, replace=None):
    """A hook of a module, with a record of its arguments."""

    def hook(module, *gradients):
        w.log.append(
            (name, type(module).__name__, [[None if g is None else g.clone() for g in gs] for gs in gradients])
        )
        return replace(gradients[0]) if replace is not None else None

    return hook


def doubled(module, given, results=None):
    return tuple(None if g is None else g * 2 for g in given)


def net(w):
    w.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))


def backward(w, result, x):
    results = result if isinstance(result, (tuple, list)) else [result]
    loss = sum(
        (r * (i + 1)).sin().sum() for i, r in enumerate(results) if isinstance(r, torch.Tensor) and r.requires_grad
    )
    if isinstance(loss, torch.Tensor):
        loss.backward()


# ---- Hooks that only compute: one graph


def with_hooks(pre=None, post=None, at=1):
    def make(w):
        net(w)
        if pre is not None:
            w.net[at].register_full_backward_pre_hook(pre)
        if post is not None:
            w.net[at].register_full_backward_hook(post)

    return make


@program(make=with_hooks(post=doubled), pieces=1)
def replaces(w, x):
    return w.net(x)


@program(make=with_hooks(post=lambda m, given, results: None), pieces=1)
def looks(w, x):
    return w.net(x)


@program(make=with_hooks(pre=lambda m, results: (results[0] * 3,)), pieces=1)
def replaces_before(w, x):
    return w.net(x)


@program(make=with_hooks(lambda m, r: (r[0].clamp(-0.1, 0.1),), lambda m, g, r: (g[0] + r[0].mean(),)), pieces=1)
def both_hooks(w, x):
    return w.net(x)


@program(make=with_hooks(post=doubled), pieces=1)
def twice_in_a_call(w, x):
    return w.net(x) + w.net(x * 2)


@program(make=with_hooks(post=doubled), pieces=1)
def called_by_itself(w, x):
    return w.net[1](w.net[1](x))


def nested(w):
    w.net = nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.Tanh()), nn.Sigmoid())
    for m in (w.net, w.net[0], w.net[0][1]):
        m.register_full_backward_hook(doubled)
        m.register_full_backward_pre_hook(lambda m, r: (r[0] + 0.5,))


@program(make=nested, pieces=1)
def nested_modules(w, x):
    return w.net(x)


class Pair(nn.Module):
    def forward(self, a, b, scale=1, *, shift=None):
        return a.sin() * scale, b.cos() if shift is None else b.cos() + shift


def pair(w):
    w.net = Pair()
    w.net.register_full_backward_hook(doubled)


@program(make=pair, pieces=1)
def several_arguments_and_results(w, x):
    a, b = w.net(x * 2, x.exp(), 3, shift=1.0)
    return a * b


@program(make=pair, pieces=1)
def a_result_that_nothing_comes_of(w, x):
    return w.net(x * 2, x.exp())[0]


@program(make=pair, pieces=1)
def an_argument_without_gradients(w, x):
    a, b = w.net(x * 2, x.detach())
    return a + b


@program(make=with_hooks(post=doubled))
def without_gradients(w, x):
    with torch.no_grad():
        return w.net(x)


@program(make=with_hooks(post=doubled), pieces=1)
def in_a_checkpoint(w, x):
    return checkpoint(w.net, x, use_reentrant=False)


@program(make=with_hooks(post=doubled), pieces=1)
def around_a_checkpoint(w, x):
    return w.net[1](checkpoint(w.net[0], x, use_reentrant=False))


def scaled(w):
    net(w)
    w.scale = 2.0
    w.net[1].register_full_backward_hook(lambda m, given, results: (given[0] * w.scale,))


def rescale(w, i):
    w.scale = (3.0, 3.0, 5.0, 2.0)[i]


@program(make=scaled, between=rescale)
def reads_what_changes_between_calls(w, x):
    return w.net(x)


def come_and_go(w, i):
    if i == 1:
        w.handle = w.net[0].register_full_backward_hook(doubled)
    elif i == 2:
        w.other = w.net[1].register_full_backward_pre_hook(lambda m, r: (r[0] * 7,))
        w.handle.remove()
    elif i == 3:
        w.other.remove()


@program(make=net, between=come_and_go)
def hooks_that_come_and_go(w, x):
    return w.net(x)


class Scales:
    def __init__(self, by):
        self.by = by

    def __call__(self, module, given, results):
        return (given[0] * self.by,)

    def method(self, module, given, results):
        return (given[0] + self.by,)


def callables(w):
    net(w)
    w.net[1].register_full_backward_hook(Scales(3))
    w.net[1].register_full_backward_hook(Scales(2).method)
    w.net[2].register_full_backward_hook(functools.partial(lambda by, m, g, r: (g[0] * by,), 5))


@program(make=callables, pieces=1)
def callables_of_other_kinds(w, x):
    return w.net(x)


def not_full(w):
    net(w)
    w.net[1].register_backward_hook(lambda m, given, results: (given[0] * 3,))


@program(make=not_full)
def hooks_of_the_old_kind(w, x):
    return w.net(x)


def everywhere(w):
    net(w)
    w.handles = [nn.modules.module.register_module_full_backward_hook(lambda m, g, r: doubled(m, g))]


def nowhere(w, i):
    if i == 2:
        w.handles.pop().remove()


@program(make=everywhere, between=nowhere)
def hooks_of_all_modules(w, x):
    return w.net(x)


# ---- Hooks that do more: autograd calls them


def logged(*, at=1, replace=None, pre=False):
    def make(w):
        net(w)
        if pre:
            w.net[at].register_full_backward_pre_hook(seen(w, "pre", replace=replace))
        w.net[at].register_full_backward_hook(seen(w, "hook", replace=replace))

    return make


@program(make=logged())
def takes_down(w, x):
    return w.net(x)


@program(make=logged(at=0))
def takes_down_of_the_first_module(w, x):
    return w.net(x)


@program(make=logged(replace=lambda gs: tuple(g * 2 for g in gs), pre=True))
def takes_down_and_replaces(w, x):
    return w.net(x)


@program(make=logged())
def takes_down_twice_in_a_call(w, x):
    return w.net(x) + w.net(x * 2)


@program(make=logged(), learns=2)
def takes_down_in_a_checkpoint(w, x):
    return checkpoint(w.net, x, use_reentrant=False)


@program(make=logged())
def takes_down_without_gradients(w, x):
    with torch.no_grad():
        return w.net(x) + x


@program(make=logged(), use=lambda w, y, x: (y.sum().backward(retain_graph=True), y.sin().sum().backward()))
def takes_down_in_two_backward_passes(w, x):
    return w.net(x)


def nested_logs(w):
    nested(w)
    for i, m in enumerate((w.net, w.net[0][1], w.net[0])):
        m.register_full_backward_hook(seen(w, i))


@program(make=nested_logs)
def takes_down_of_nested_modules(w, x):
    return w.net(x).exp()


def pair_logs(w):
    w.net = Pair()
    w.net.register_full_backward_hook(seen(w))


@program(make=pair_logs)
def takes_down_of_several_results(w, x):
    a, b = w.net(x * 2, x.exp(), 3, shift=1.0)
    return a * b


@program(make=pair_logs)
def takes_down_what_nothing_came_of(w, x):
    return w.net(x * 2, x.exp())[0]


@program(make=pair_logs)
def takes_down_of_some_arguments(w, x):
    a, b = w.net(x * 2, x.detach())
    return a + b


def embedded(w):
    w.net = nn.Sequential(nn.Embedding(10, 3), nn.Linear(3, 2))
    w.net[0].register_full_backward_hook(seen(w))


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@program(make=embedded)
def arguments_without_gradients(w, x):
    return w.net(torch.arange(x.shape[0]))


class Raises(Exception):
    pass


def failing(w):
    net(w)
    w.fails = False

    def hook(module, given, results):
        w.log.append("called")
        if w.fails:
            raise Raises("no way back")

    w.net[1].register_full_backward_hook(hook)


def fail(w, i):
    w.fails = i % 2 == 1


@program(make=failing, between=fail)
def raises(w, x):
    return w.net(x)


@program(make=with_hooks(post=lambda m, given, results: given + results))
def gives_too_many(w, x):
    return w.net(x)


@program(make=with_hooks(post=lambda m, g, r: (g[0] * 2,) if g[0].sum() > 0 else None))
def asks_for_data(w, x):
    return w.net(x)


def log_comes_and_goes(w, i):
    if i in (1, 2):
        w.handles = [*getattr(w, "handles", []), w.net[i].register_full_backward_hook(seen(w, i))]
    elif i == 3:
        w.handles[0].remove()


@program(make=net, between=log_comes_and_goes)
def logs_that_come_and_go(w, x):
    return w.net(x)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.inner = 0, nn.Linear(3, 3)
        self.register_full_backward_hook(Counts.count)

    def count(self, given, results):
        self.calls += 1
        return (given[0] * self.calls,)

    def forward(self, x):
        return self.inner(x).relu()


@program(make=lambda w: setattr(w, "net", Counts()))
def counts_in_the_module(w, x):
    return w.net(x), w.net.calls


class Maps(nn.Module):
    """Grad-CAM: a layer's results and their gradients."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        self.kept = {}
        self.layers[1].register_forward_hook(self.keep)
        self.layers[1].register_full_backward_hook(self.keep_gradient)

    def keep(self, module, given, result):
        self.kept["activation"] = result.detach()

    def keep_gradient(self, module, given, results):
        self.kept["gradient"] = results[0].detach()

    def forward(self, x):
        return self.layers(x)


def weigh(w, y, x):
    y[:, 0].sum().backward()
    w.log.append((w.net.kept["activation"] * w.net.kept["gradient"].mean(0)).sum(1))


@program(make=lambda w: setattr(w, "net", Maps()), use=weigh)
def class_activation_maps(w, x):
    return w.net(x)


class Interrupted(nn.Module):
    def forward(self, x):
        y = x.sin()
        print(end="")
        return y * 2


def interrupted(hook):
    def make(w):
        w.net = nn.Sequential(nn.Linear(3, 3), Interrupted())
        w.net[1].register_full_backward_hook(hook or seen(w))

    return make


@program(make=interrupted(doubled))
def a_break_in_the_module(w, x):
    return w.net(x)


@program(make=interrupted(None))
def takes_down_over_a_break(w, x):
    return w.net(x)


# ---- Hooks on tensors, functions of the program


@program()
def logs_of_a_tensor(w, x):
    h = x * 3
    h.register_hook(lambda g: w.log.append(g.clone()))
    return h.sin() + h


@program()
def counter_in_a_cell(w, x):
    n = 0

    def hook(g):
        nonlocal n
        n += 1
        return g * n

    h = x * 3
    h.register_hook(hook)
    return h.sin()


@program()
def variable_that_is_set_later(w, x):
    for i in range(3):
        x = x * 2
        x.register_hook(lambda g: g * (i + 1))  # noqa: B023, the point of this test
        print(end="")
    return x.sin()


@program()
def variable_that_is_set_before(w, x):
    scale = 3
    h = x * 2
    h.register_hook(lambda g: g * scale)
    y = h.sin()
    print(end="")
    return y * 2


@program()
def container_that_is_written_later(w, x):
    of = {"k": 1.0}
    h = x * 3
    h.register_hook(lambda g: g * of["k"])
    y = h.sin()
    print(end="")
    of["k"] = 5.0
    return y


def change(w, y, x):
    y[1]["k"] = 7.0
    y[0].sin().sum().backward()


@program(use=change)
def container_that_the_caller_writes(w, x):
    of = {"k": 2.0}
    h = x * 3
    h.register_hook(lambda g: g * of["k"])
    return h.sin(), of


@program(use=lambda w, y, x: (y[0].sum().backward(), w.log.append(y[1].grad)))
def retained_gradient(w, x):
    h = x * 3
    h.retain_grad()
    return h.sin(), h


@program(pieces=1)
def retained_gradient_that_nobody_can_see(w, x):
    h = x * 3
    h.retain_grad()
    return h.sin()


@program(pieces=1)
def result_beside_itself_without_gradients(w, x):
    y = x.sin()
    return y * 2, y, y.detach(), y.detach()[0], y[:, 1]


@program(pieces=1, use=lambda w, y, x: (y[0].sum().backward(), w.log.append(y[1].grad)))
def leaf_beside_a_result(w, x):
    a = x.detach().clone().requires_grad_()
    return (a * x).sin(), a, a.detach()


@program(pieces=1, use=lambda w, y, x: ((y * 2).sum().backward(), w.log.append(y.grad)))
def leaf_alone(w, x):
    return x.detach().sin().requires_grad_()


@program(pieces=1)
def leaf_of_which_nobody_knows(w, x):
    a = torch.zeros_like(x).requires_grad_()
    return (x + a).sin()


@program(pieces=1, use=lambda w, y, x: (y[0].sum().backward(), w.log.append(y[1].grad)))
def leaf_in_the_memory_of_an_argument(w, x):
    a = x.detach().requires_grad_()
    return a.sin() * 2, a


@program(use=lambda w, y, x: (y[1].sum().backward(), w.log.append(y[0].grad)))
def leaf_with_a_gradient(w, x):
    a = x.detach().clone().requires_grad_()
    (a * a).sum().backward()
    return a, a.exp()


@program()
def leaf_over_a_break(w, x):
    a = x.detach().clone().requires_grad_()
    y = (a * 3).sin()
    print(end="")
    y.sum().backward()
    return a.grad, x * 2


@program(use=lambda w, y, x: (w.log.append(y.grad), y.data.mul_(2), (y * y).sum().backward(), w.log.append(y.grad)))
def leaf_that_is_written_afterwards(w, x):
    return (x.detach() * 2).requires_grad_()


def tagged(w, y, x):
    w.log.append((x.tag, y))


@program(use=tagged)
def attributes_of_an_argument(w, x):
    x.tag = x.shape[0]
    return x.detach() * 2 + x.tag


@program(use=lambda w, y, x: w.log.append(y))
def gradient_of_an_argument(w, x):
    (x * x).sum().backward()
    return x.grad * 2


class Turned(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -3 * g


@program()
def view_by_a_custom_function_beside_its_base(w, x):
    h = x.sin()
    return Turned.apply(h), h


@program()
def view_by_a_custom_function_of_an_argument(w, x):
    return Turned.apply(x), x.sin()


@program()
def view_by_a_custom_function_over_a_break(w, x):
    h = x.sin()
    v = Turned.apply(h)
    print(end="")
    return v * 2 + h


@program()
def view_with_a_hook(w, x):
    h = x.sin()
    v = h.view(-1)
    v.register_hook(lambda g: g * 5)
    return v, h


def first_alone(w, y, x):
    y[0].sin().sum().backward()


@program(use=first_alone, pieces=1)
def hook_that_both_results_need(w, x):
    h = x * 2
    h.register_hook(lambda g: g + 1)
    return h.sin(), h.cos()


class Logs(Function):
    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        ctx.log.append(g.clone())
        return g * 3, None


@program()
def custom_function_that_logs(w, x):
    return Logs.apply(x * 2, w.log).sin()


@program(learns=2)  # of two functions, in turn
def custom_functions_some_of_which_log(w, x):
    return Logs.apply(Once.apply(x), w.log).sin() + Once.apply(x * 2)


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos() * (2 if g.sum() > 0 else 3)


@program()
def custom_function_that_asks_for_data(w, x):
    return Once.apply(x * 2) + Once.apply(x)


@program()
def checkpoint_that_logs(w, x):
    def inner(v):
        w.log.append("inner")
        return v.sin().exp()

    return checkpoint(inner, x * 2, use_reentrant=False) * 2


@program()
def reentrant_checkpoint_that_logs(w, x):
    def inner(v):
        w.log.append("inner")
        return v.sin().exp()

    return checkpoint(inner, x * 2, use_reentrant=True) * 2


def clones(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return [clones(v) for v in value] if isinstance(value, (list, tuple)) else value


def assert_same(one, other):
    assert type(one) is type(other), (one, other)
    if isinstance(one, torch.Tensor):
        torch.testing.assert_close(other, one)
    elif isinstance(one, list):
        assert len(one) == len(other), (one, other)
        for a, b in zip(one, other):
            assert_same(a, b)
    else:
        assert one == other


def run(p, wrap):
    torch.manual_seed(0)
    w = types.SimpleNamespace(log=[], net=None)
    p.make(w)
    call = wrap(lambda x: p.function(w, x))
    out = []
    try:
        for i, n in enumerate((4, 4, 5, 6, 4, 4)):
            if p.between is not None and i < 4:
                p.between(w, i)
            x = torch.randn(n, 3, requires_grad=True)
            parameters = [] if w.net is None else list(w.net.parameters())
            for parameter in parameters:
                parameter.grad = None
            error, y = None, None
            try:
                y = call(x)
                p.use(w, y, x)
            except Exception as e:
                error = [type(e).__name__, str(e)]
            out.append(clones([y, x.grad, [q.grad for q in parameters], error, w.log]))
    finally:
        for handle in getattr(w, "handles", []):
            handle.remove()
    return out


@pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Using a non-full backward hook")
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_eager_does(name):
    check(PROGRAMS[name])


def check(p):
    expected = run(p, lambda f: f)
    cresset.reset()
    got = run(p, lambda f: cresset.compile(f))
    assert_same(expected, got)
    stats = cresset.stats()
    assert stats["graphs"] > 0, stats["graph_break_reasons"]
    assert stats["eager_calls"] + stats["eager_fallbacks"] <= p.learns, stats["graph_break_reasons"]
    if p.pieces is not None:
        assert (stats["graphs"], stats["graph_breaks"]) == (p.pieces, 0), stats["graph_break_reasons"]
