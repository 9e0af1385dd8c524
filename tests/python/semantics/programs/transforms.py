# size: table
"""Programs that transform functions, and contexts around the call. Each row: name, a function that makes a fresh world,
the function of (world, x), the inputs of its calls in order, and a function that changes the world between calls."""

from __future__ import annotations

import types

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

import cresset


def world(**things):
    return types.SimpleNamespace(log=[], **things)


def ramp(*shape):
    n = torch.Size(shape).numel()
    return torch.arange(n, dtype=torch.float64).reshape(shape) * 0.1 - 0.4


def batches():
    return ramp(3, 4), ramp(3, 4) + 1, ramp(5, 4), -ramp(2, 4)


def table():
    """An empty table, and its decorator for adding a program."""
    rows = []

    def row(function=None, *, make=world, inputs=batches, between=None):
        def add(f):
            rows.append((f.__name__, make, f, inputs, between))
            return f

        return add if function is None else add(function)

    return rows, row


ROWS, row = table()


def seeded(module):
    """The module in double precision, with fixed numbers of its own."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            n = p.numel()
            p.data = (torch.arange(n, dtype=torch.float64).reshape(p.shape) * 0.37 + i).sin() * 0.5
    return module.double()


def mlp():
    return seeded(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)))


def with_net(**things):
    return lambda: world(net=mlp(), **things)


def grow(w, i):
    """Changes the weights between calls."""
    with torch.no_grad():
        for p in w.net.parameters():
            p.mul_(1.1)


def unfreeze(w, i):
    for p in w.net.parameters():
        p.grad = None


# ------------------------------------------------------------------------------------------------- vmap


@row
def vmap_of_a_lambda(w, x):
    return vmap(lambda v: v.sin().sum() * v)(x)


@row
def vmap_with_in_dims_and_out_dims(w, x):
    y = torch.arange(4.0, dtype=x.dtype)
    return vmap(lambda a, b, c: a * b + c, in_dims=(1, 0, None), out_dims=1)(x, y, x[:, 0])


@row
def vmap_over_a_dictionary(w, x):
    def f(inputs, scale):
        return {"sum": (inputs["a"] * scale).sum(), "b": inputs["b"] + 1}

    return vmap(f, in_dims=({"a": 0, "b": 1}, None))({"a": x, "b": x.t()}, 2.0)


@row(make=lambda: world(weight=ramp(4, 4)))
def vmap_that_closes_over_a_tensor(w, x):
    out = vmap(lambda v: w.weight @ v)(x)
    w.weight = w.weight + out.sum()
    return out


@row
def vmap_nested(w, x):
    def dot(a, b):
        return (a * b).sum()

    return vmap(lambda a: vmap(lambda b: dot(a, b))(x))(x)


@row
def vmap_with_other_numbers_for_each(w, x):
    torch.manual_seed(3)
    return vmap(lambda v: v + torch.randn(4, dtype=v.dtype), randomness="different")(x)


@row
def vmap_with_the_same_numbers(w, x):
    torch.manual_seed(3)
    return vmap(lambda v: F.dropout(v, 0.5), randomness="same")(x)


class RefusesToBeAsked:
    def __getattribute__(self, name):
        raise ValueError("nobody has a reason to ask " + name)


@row
def vmap_beside_an_object_that_refuses_questions(w, x):
    bystander = [RefusesToBeAsked()]  # alive, in the middle of a capture, which inspects all tensors
    torch.manual_seed(3)
    return vmap(lambda v: F.dropout(v, 0.5), randomness="same")(x), len(bystander)


@row
def vmap_that_must_not_be_random(w, x):
    return vmap(lambda v: v + torch.randn(4, dtype=v.dtype))(x)


@row
def vmap_in_chunks(w, x):
    return vmap(lambda v: v.softmax(0), chunk_size=2)(x)


@row
def vmap_of_an_empty_tuple_of_dims(w, x):
    return vmap(lambda a: a * 2, in_dims=None)(x)


@row(make=lambda: world(seen=0))
def vmap_whose_function_counts(w, x):
    def f(v):
        w.seen += 1
        w.log.append(v.shape[0])
        return v * w.seen

    return vmap(f)(x)


@row
def vmap_with_an_index(w, x):
    which = torch.tensor([0, 2])
    return vmap(lambda v, i: v[i], in_dims=(0, None))(x, which), vmap(lambda v: v.index_select(0, which))(x)


@row
def vmap_that_branches_on_a_value(w, x):
    return vmap(lambda v: v if v.sum() > 0 else -v)(x)


# ------------------------------------------------------------------------------------------------- grad and its kin


@row
def grad_of_a_loss(w, x):
    return grad(lambda v: (v.sin() ** 2).sum())(x)


@row
def grad_of_two_arguments(w, x):
    a, b = grad(lambda a, b: (a * b).exp().sum(), argnums=(0, 1))(x, x + 1)
    return a - b


@row
def grad_and_value_with_aux(w, x):
    g, (value, extra) = grad_and_value(lambda v: ((v**3).sum(), {"mean": v.mean()}), has_aux=True)(x)
    return g, value, extra


@row
def grad_of_grad(w, x):
    return grad(lambda v: grad(lambda u: (u**4).sum())(v).sum())(x)


@row(make=with_net(), between=grow)
def per_sample_gradients(w, x):
    params = {k: v.detach() for k, v in w.net.named_parameters()}

    def loss(params, sample, target):
        out = functional_call(w.net, params, (sample.unsqueeze(0),))
        return F.mse_loss(out, target.unsqueeze(0))

    target = torch.ones(x.shape[0], 2, dtype=x.dtype)
    return vmap(grad(loss), in_dims=(None, 0, 0))(params, x, target)


@row
def jvp_of_a_function(w, x):
    return jvp(lambda v: v.sin() * v.sum(), (x,), (torch.ones_like(x),))


@row
def vjp_with_two_results(w, x):
    out, pull, aux = vjp(lambda v: ((v**2, v.sum()), v + 1), x, has_aux=True)
    return out, pull((torch.ones_like(x), torch.tensor(2.0, dtype=x.dtype))), aux


@row
def jacobians(w, x):
    def f(v):
        return v.cos() * v.sum()

    return jacrev(f)(x[0]), jacfwd(f)(x[0])


@row
def hessian_of_a_function(w, x):
    return hessian(lambda v: (v**3).sum() * v.prod())(x[0])


@row
def jacobian_of_each_sample(w, x):
    return vmap(jacrev(lambda v: torch.stack([v.sum(), (v**2).sum()])))(x)


@row
def linearized(w, x):
    out, push = linearize(lambda v: v.sin(), x)
    return out, push(torch.ones_like(x))


@row
def grad_that_raises(w, x):
    return grad(lambda v: v * 2)(x)


@row(make=lambda: world(offset=ramp(4), count=0))
def grad_with_effects_in_the_closure(w, x):
    def loss(v):
        w.count += 1
        w.log.append(v.shape)
        return (v * w.offset).pow(2).sum()

    return grad(loss)(x)


class Energy(nn.Module):
    """Forces are the gradient of the module's result."""

    def __init__(self):
        super().__init__()
        self.inner = mlp()

    def forward(self, x):
        force, energy = grad_and_value(lambda v: self.inner(v).sum())(x)
        return -force, energy


@row(make=lambda: world(net=Energy()), between=grow)
def grad_inside_forward(w, x):
    with torch.no_grad():
        return w.net(x)


@row(make=with_net(), between=grow)
def functional_call_with_other_weights(w, x):
    params = {k: v.detach() * 2 for k, v in w.net.named_parameters()}
    return functional_call(w.net, params, (x,)), functional_call(w.net, {"0.bias": params["0.bias"] * 0}, x).detach()


@row(make=lambda: world(nets=[mlp(), mlp(), mlp()]))
def ensemble_of_modules(w, x):
    params, buffers = stack_module_state(w.nets)
    params = {k: v.detach() for k, v in params.items()}
    base = w.nets[0]
    return vmap(lambda p, b, v: functional_call(base, (p, b), (v,)), in_dims=(0, 0, None))(params, buffers, x)


@row
def norm_of_a_jacobian_vector_product(w, x):
    def f(v):
        return torch.outer(v, v).sum(0)

    def hvp(v, t):
        return jvp(grad(lambda u: f(u).sum()), (v,), (t,))[1]

    return vmap(hvp)(x, torch.ones_like(x))


# ------------------------------------------------------------------------------------------------- around the call


@row
def break_inside_vmap(w, x):
    def f(v):
        w.log.append(tuple(v.shape))
        cresset.graph_break("here")
        return v * 2

    return vmap(f)(x) + 1


@row
def break_inside_grad(w, x):
    def loss(v):
        y = (v * v).sum()
        cresset.graph_break("here")
        w.log.append(v.shape)
        return y * 3

    return grad(loss)(x) + 1


@row
def number_read_inside_grad(w, x):
    def loss(v):
        scale = v.detach().abs().max().item()
        return (v / scale).pow(2).sum()

    return grad(loss)(x)


@row
def break_before_backward(w, x):
    a = x.clone().requires_grad_()
    loss = (a * a).sum()
    if loss > 5:
        loss = loss * 2
    loss.backward()
    return a.grad


@row
def leaf_as_a_result(w, x):
    a = x.clone().requires_grad_()
    (a * a).sum().backward()
    w.kept = a
    return a


@row
def gradient_of_a_leaf_is_set(w, x):
    a = x.clone().requires_grad_()
    a.grad = torch.ones_like(a)
    (a * 2).sum().backward()
    first = a.grad
    a.grad = None
    (a * 3).sum().backward()
    return first, a.grad


@row(inputs=lambda: [ramp(3, 4).requires_grad_() for _ in range(3)])
def gradients_of_the_argument(w, x):
    (x * x).sum().backward()
    w.log.append(None if x.grad is None else x.grad.sum().item())
    return x.detach() * 2


@row(inputs=lambda: [ramp(n, 4).requires_grad_() for n in (3, 3, 5)])
def gradients_to_the_argument(w, x):
    return torch.autograd.grad((x * x).sum(), x)[0]


@row(inputs=lambda: [ramp(n, 4).requires_grad_() for n in (3, 3, 5)])
def result_that_wants_gradients(w, x):
    y = (x * x).sum()
    w.log.append(y.detach())
    return y


def training(optimizer):
    def make():
        w = world(net=mlp())
        w.optimizer = optimizer(w.net.parameters())
        return w

    return make


def one_step(w, x):
    w.optimizer.zero_grad()
    loss = F.mse_loss(w.net(x), torch.ones(x.shape[0], 2, dtype=x.dtype))
    loss.backward()
    w.optimizer.step()
    return loss.detach()


for name, optimizer in {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
}.items():
    ROWS.append((f"training_with_{name}", training(optimizer), one_step, batches, None))


@row
def changes_of_requires_grad(w, x):
    a = x.clone()
    a.requires_grad = True
    b = (a * 2).detach().requires_grad_(False)
    return a.requires_grad, b.requires_grad, torch.autograd.grad((a * b).sum(), a)[0]


@row
def names_of_grad_functions(w, x):
    a = x.clone().requires_grad_()
    y = (a * 2).exp()
    return y.grad_fn.name(), len(y.grad_fn.next_functions), a.grad_fn, y.is_leaf, y.detach()


@row
def retained_gradients(w, x):
    a = x.clone().requires_grad_()
    y = a * 2
    y.retain_grad()
    (y**2).sum().backward()
    return y.grad, a.grad


@row
def gradients_of_views_and_writes(w, x):
    a = x.clone().requires_grad_()
    y = a * 1
    y[0].mul_(3)
    y[:, 1] = 0
    return torch.autograd.grad(y.pow(2).sum(), a)[0]


@row
def a_leaf_that_is_written(w, x):
    a = x.clone().requires_grad_()
    a.add_(1)


@row
def detected_anomaly(w, x):
    a = x.clone().requires_grad_()
    with torch.autograd.detect_anomaly(check_nan=False):
        y = (a * 2).sum()
    y.backward()
    return a.grad


@row
def functional_api(w, x):
    f = lambda v: (v**3).sum()  # noqa: E731
    return (
        torch.autograd.functional.jacobian(lambda v: v * 2, x[0]),
        torch.autograd.functional.hessian(f, x[0]),
        torch.autograd.functional.vjp(f, x)[1],
        torch.autograd.functional.hvp(f, x, torch.ones_like(x))[1],
    )


@row
def batched_gradients(w, x):
    a = x[0].clone().requires_grad_()
    y = a**2
    return torch.autograd.grad(y, a, torch.eye(4, dtype=x.dtype), is_grads_batched=True)[0]


# Input optimization, as in adversarial examples: a loop of steps on a leaf.
@row(make=with_net(), between=grow)
def steps_on_an_input(w, x):
    delta = torch.zeros_like(x)
    for _ in range(3):
        delta = delta.detach().requires_grad_()
        loss = w.net(x + delta).pow(2).sum()
        (g,) = torch.autograd.grad(loss, delta)
        delta = (delta + 0.1 * g.sign()).clamp(-0.3, 0.3)
    return (x + delta).detach()


# Functions that ask wrappers for plain sizes: by various assertions of torch.
@row
def gradient_through_interpolation(w, x):
    return grad(lambda v: F.interpolate(v.t()[None], scale_factor=2.0).pow(2).sum())(x)


@row
def gradient_through_combinations(w, x):
    return grad(lambda v: torch.combinations(v[:, 0]).prod(1).sum())(x)


def with_layer(kind, *arguments):
    def make():
        torch.manual_seed(3)
        return world(layer=kind(*arguments, batch_first=True).double().eval())

    return make


@row(make=with_layer(nn.MultiheadAttention, 4, 2))
def gradient_through_attention(w, x):
    return grad(lambda v: w.layer(v[None], v[None] * 2, v[None] + 1)[0].pow(2).sum())(x)


@row
def tangent_through_normalization(w, x):
    return jvp(lambda v: F.layer_norm(v, (4,)) * v, (x,), (x.cos(),))


@row(make=with_layer(nn.GRU, 4, 3))
def tangent_through_steps(w, x):
    return jvp(lambda v: w.layer(v[None])[0].sum(), (x,), (x.cos(),))[1]


@row
def tangent_between_operators(w, x):
    y = x * 2 + 1
    return (jvp(lambda v: (v.sin() * 2).sum(), (y,), (y.cos(),))[1] * y).exp()


@row
def tangents_at_a_level(w, x):
    with torch.autograd.forward_ad.dual_level():
        y = torch.autograd.forward_ad.make_dual(x * 2, x.cos())
        z = (y.sin() * y).sum(1)
        return torch.autograd.forward_ad.unpack_dual(z)


@row
def tangent_that_lies_otherwise(w, x):
    return jvp(lambda v: (v @ v.t()).sum() + v.sin(), (x,), (torch.ones(x.shape[1], x.shape[0], dtype=x.dtype).t(),))


@row
def break_at_a_level(w, x):
    with torch.autograd.forward_ad.dual_level():
        y = torch.autograd.forward_ad.make_dual(x, x.cos()).exp()
        w.log.append(y.sum().item() > 0)
        return torch.autograd.forward_ad.unpack_dual(y * 2).tangent


@row
def nested_vmap_with_a_number(w, x):
    return vmap(vmap(lambda v: v * 2 + v.exp()))(x)


@row(make=with_net(), between=grow)
def tangent_of_a_module(w, x):
    params = {k: v.detach() for k, v in w.net.named_parameters()}
    return jvp(lambda v: functional_call(w.net, params, (v,)), (x,), (torch.ones_like(x),))[1]


@row
def absent_attributes_of_modules(w, x):
    import math

    if hasattr(torch, "no_such_thing") or getattr(math, "no_such_thing", None) is not None:
        return x
    return x * 2
