# size: table
"""Programs with hooks and parametrizations, of tensors and modules. Rows as in programs_transforms."""

from __future__ import annotations

import contextlib

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from programs.transforms import grow, mlp, seeded, table, with_net, world

ROWS, row = table()


# ------------------------------------------------------------------------------------------------- hooks


def hooked(register):
    def make():
        w = world(net=mlp())
        w.handles = register(w)
        return w

    return make


@row(make=hooked(lambda w: [w.net[0].register_forward_hook(lambda m, args, out: out * 2)]))
def forward_hook_that_changes_the_output(w, x):
    return w.net(x).detach()


@row(make=hooked(lambda w: [w.net.register_forward_pre_hook(lambda m, args: (args[0] + 1,))]))
def forward_pre_hook_that_changes_the_input(w, x):
    return w.net(x).detach()


class Scaled(nn.Module):
    def forward(self, x, *, scale=1.0):
        return x * scale


def register_with_kwargs(w):
    def before(module, args, kwargs):
        w.log.append(sorted(kwargs))
        return args, {**kwargs, "scale": kwargs.get("scale", 1.0) + 1}

    def after(module, args, kwargs, out):
        w.log.append(kwargs["scale"])
        return out + kwargs["scale"]

    w.net = Scaled()
    return [
        w.net.register_forward_pre_hook(before, with_kwargs=True),
        w.net.register_forward_hook(after, with_kwargs=True),
    ]


@row(make=hooked(register_with_kwargs))
def hooks_with_kwargs(w, x):
    return w.net(x, scale=2.0) + w.net(x)


class Raises(nn.Module):
    def forward(self, x):
        if x.shape[0] == 5:
            raise RuntimeError("five")
        return x * 2


def register_always(w):
    w.net = Raises()
    return [w.net.register_forward_hook(lambda m, a, o: w.log.append("called"), always_call=True)]


@row(make=hooked(register_always))
def hook_that_is_always_called(w, x):
    return w.net(x)


def register_once(w):
    def once(module, args, out):
        w.log.append("once")
        w.handles[0].remove()
        return out + 1

    return [w.net.register_forward_hook(once)]


@row(make=hooked(register_once))
def hook_that_removes_itself(w, x):
    return w.net(x).detach()


def add_or_remove(w, i):
    if i % 2:
        w.handles.append(w.net[1].register_forward_hook(lambda m, a, out: out * i))
    else:
        w.handles.pop().remove()


@row(make=with_net(handles=[]), between=add_or_remove)
def hooks_that_come_and_go(w, x):
    return w.net(x).detach()


def collect(w):
    def keep(name):
        def hook(module, args, out):
            w.features[name] = out.detach()

        return hook

    w.features = {}
    return [m.register_forward_hook(keep(n)) for n, m in w.net.named_children()]


@row(make=hooked(collect))
def features_that_hooks_collect(w, x):
    w.features.clear()
    out = w.net(x).detach()
    return out, dict(w.features)


def register_backward(w):
    def hook(module, grad_input, grad_output):
        w.log.append([None if g is None else tuple(g.shape) for g in grad_input])
        return tuple(None if g is None else g * 2 for g in grad_input)

    return [w.net[2].register_full_backward_hook(hook), w.net.register_full_backward_pre_hook(lambda m, g: (g[0] * 3,))]


@row(make=hooked(register_backward))
def backward_hooks_of_modules(w, x):
    a = x.clone().requires_grad_()
    w.net(a).sum().backward()
    return a.grad


@row
def hook_of_a_tensor(w, x):
    a = x.clone().requires_grad_()
    y = a * 2
    handle = y.register_hook(lambda g: g * 10)
    z = (y**2).sum()
    z.backward(retain_graph=True)
    first = a.grad.clone()
    handle.remove()
    a.grad = None
    z.backward()
    return first, a.grad


@row
def hook_after_accumulation(w, x):
    a = x.clone().requires_grad_()

    def then(t):
        w.log.append(t.grad.clone())
        t.grad = None

    a.register_post_accumulate_grad_hook(then)
    (a**2).sum().backward()
    return a.grad


def register_sgd(w):
    def step(p):
        with torch.no_grad():
            p.sub_(p.grad * 0.1)
        p.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in w.net.parameters()]


@row(make=hooked(register_sgd))
def optimizer_in_the_backward_pass(w, x):
    loss = w.net(x).pow(2).sum()
    loss.backward()
    return loss.detach()


def register_state(w):
    w.net.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop(prefix + "0.bias"))
    w.net.register_state_dict_pre_hook(lambda m, prefix, keep: w.log.append("before"))
    w.net.register_load_state_dict_post_hook(lambda m, keys: w.log.append(sorted(keys.missing_keys)))
    return []


@row(make=hooked(register_state))
def hooks_of_the_state(w, x):
    state = w.net.state_dict()
    w.net.load_state_dict({k: v * 2 for k, v in state.items()}, strict=False)
    return list(state), w.net(x).detach()


def register_global(w):
    return []


@row(make=with_net())
def hooks_of_all_modules(w, x):
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, out: w.log.append(type(m).__name__))
    try:
        return w.net(x).detach()
    finally:
        handle.remove()


@row(make=with_net())
def hooks_that_are_made_and_removed_inside(w, x):
    seen = []
    handle = w.net[0].register_forward_hook(lambda m, a, out: seen.append(out.detach()))
    with torch.no_grad():
        out = w.net(x)
    handle.remove()
    return out, seen


# ------------------------------------------------------------------------------------------------- parametrizations


def of(make_net):
    return lambda: world(net=make_net())


@row(make=of(lambda: parametrizations.weight_norm(mlp()[0])), between=grow)
def weight_norm(w, x):
    return w.net(x).detach()


@row(make=of(lambda: nn.utils.weight_norm(mlp()[0])), between=grow)
def weight_norm_of_old(w, x):
    return w.net(x).detach()


def spectral():
    torch.manual_seed(0)
    return parametrizations.spectral_norm(mlp()[0])


@row(make=of(spectral), between=lambda w, i: w.net.train(i % 2 == 0))
def spectral_norm(w, x):
    return w.net(x).detach()


@row(make=of(lambda: parametrizations.orthogonal(seeded(nn.Linear(4, 4)))), between=grow)
def orthogonal(w, x):
    return w.net(x).detach()


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


def symmetric():
    net = seeded(nn.Linear(4, 4))
    parametrize.register_parametrization(net, "weight", Symmetric())
    return net


@row(make=of(symmetric), between=grow)
def own_parametrization(w, x):
    return w.net(x).detach(), w.net.weight.detach()


@row(make=of(symmetric))
def cached_parametrization(w, x):
    with parametrize.cached():
        a, b = w.net.weight, w.net.weight
        return a is b, (w.net(x) + w.net(x)).detach()


def parametrize_or_not(w, i):
    if parametrize.is_parametrized(w.net, "weight"):
        parametrize.remove_parametrizations(w.net, "weight", leave_parametrized=i % 2 == 0)
    else:
        parametrize.register_parametrization(w.net, "weight", Symmetric())


@row(make=of(symmetric), between=parametrize_or_not)
def parametrizations_that_come_and_go(w, x):
    return w.net(x).detach(), parametrize.is_parametrized(w.net)


@row(make=of(symmetric))
def parametrization_that_is_assigned_to(w, x):
    with torch.no_grad():
        w.net.weight = w.net.weight * 0.5
    return w.net(x).detach()


def pruned():
    net = seeded(nn.Linear(4, 4))
    prune.l1_unstructured(net, "weight", amount=0.5)
    return net


@row(make=of(pruned), between=lambda w, i: prune.remove(w.net, "weight") if i == 2 else grow(w, i))
def pruned_weights(w, x):
    return w.net(x).detach(), float((w.net.weight == 0).sum())


@row(make=of(lambda: seeded(nn.Linear(4, 4))))
def pruning_inside(w, x):
    if not prune.is_pruned(w.net):
        prune.random_unstructured(w.net, "bias", amount=1)
    return w.net(x).detach()


@contextlib.contextmanager
def swapped(net, name, value):
    """Replaces a parameter by another tensor for a while."""
    old = net._parameters.pop(name)
    setattr(net, name, value)
    try:
        yield net
    finally:
        delattr(net, name)
        net.register_parameter(name, old)


@row(make=of(lambda: seeded(nn.Linear(4, 4))), between=grow)
def parameter_swapped_for_a_while(w, x):
    with swapped(w.net, "weight", w.net.weight.detach() * 2) as net:
        y = net(x).detach()
    return y + w.net(x).detach()
