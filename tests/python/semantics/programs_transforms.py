# size: table
"""Programs that transform functions and differentiate, with hooks and parametrizations. Each row: name, what makes a
fresh world, the function of (world, x), the inputs of its calls in order, and what changes the world between them."""

from __future__ import annotations

import contextlib
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
from torch.nn.utils import parametrizations, parametrize, prune
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import cresset


def world(**things):
    return types.SimpleNamespace(log=[], **things)


def ramp(*shape):
    n = torch.Size(shape).numel()
    return torch.arange(n, dtype=torch.float64).reshape(shape) * 0.1 - 0.4


def batches():
    return ramp(3, 4), ramp(3, 4) + 1, ramp(5, 4), -ramp(2, 4)


def table():
    """An empty table, and the decorator that adds a program to it."""
    rows = []

    def row(function=None, *, make=world, inputs=batches, between=None):
        def add(f):
            rows.append((f.__name__, make, f, inputs, between))
            return f

        return add if function is None else add(function)

    return rows, row


ROWS, row = table()


def seeded(module):
    """The module in double precision, with numbers of its own that are the same each time."""
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
    bystander = [RefusesToBeAsked()]  # alive, in the middle of a capture that looks at all tensors
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
    """Forces are the gradient of what the module computes."""

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


# ------------------------------------------------------------------------------------------------- autograd inside


@row
def autograd_grad(w, x):
    a = x.clone().requires_grad_()
    loss = (a.sin() * a).sum()
    (g,) = torch.autograd.grad(loss, a)
    return g


@row
def autograd_grad_of_grad(w, x):
    a = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
    (h,) = torch.autograd.grad(g.pow(2).sum(), a)
    return g.detach(), h


@row
def autograd_grad_allow_unused(w, x):
    a, b = x.clone().requires_grad_(), torch.ones(4, dtype=x.dtype, requires_grad=True)
    ga, gb = torch.autograd.grad((a * 2).sum(), (a, b), allow_unused=True)
    return ga, gb


@row
def autograd_grad_unused_raises(w, x):
    a, b = x.clone().requires_grad_(), torch.ones(4, dtype=x.dtype, requires_grad=True)
    return torch.autograd.grad((a * 2).sum(), (a, b))


@row
def backward_to_a_leaf(w, x):
    a = x.clone().requires_grad_()
    (a.exp() * 2).sum().backward()
    return a.grad, a.detach()


@row
def backward_twice_with_retain_graph(w, x):
    a = x.clone().requires_grad_()
    loss = (a**2).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return a.grad


@row
def backward_twice_raises(w, x):
    a = x.clone().requires_grad_()
    loss = (a**2).sum()
    loss.backward()
    loss.backward()


@row
def backward_with_a_gradient(w, x):
    a = x.clone().requires_grad_()
    (a * a).backward(gradient=torch.full_like(a, 0.5))
    return a.grad


@row(make=with_net(), between=grow)
def backward_into_parameters(w, x):
    loss = w.net(x).pow(2).mean()
    loss.backward()
    return loss.detach()


@row(make=with_net(), between=unfreeze)
def step_of_sgd(w, x):
    optimizer = torch.optim.SGD(w.net.parameters(), lr=0.1)
    optimizer.zero_grad()
    loss = F.mse_loss(w.net(x), torch.ones(x.shape[0], 2, dtype=x.dtype))
    loss.backward()
    optimizer.step()
    return loss.item()


@row(make=with_net())
def gradients_without_grad_fields(w, x):
    params = list(w.net.parameters())
    loss = w.net(x).sum()
    grads = torch.autograd.grad(loss, params)
    return [g * 2 for g in grads]


@row
def gradient_penalty(w, x):
    a = x.clone().requires_grad_()
    out = (a**2).sum(1)
    g = torch.autograd.grad(out, a, torch.ones_like(out), create_graph=True)[0]
    penalty = ((g.norm(dim=1) - 1) ** 2).mean()
    penalty.backward()
    return penalty.detach(), a.grad


@row
def modes_change_midway(w, x):
    a = x.clone().requires_grad_()
    y = a * 2
    with torch.no_grad():
        z = y + 1
    with torch.enable_grad():
        u = z * a
    return z.requires_grad, u.requires_grad, y.detach(), z, torch.autograd.grad(u.sum(), a)[0]


@torch.no_grad()
def without_gradients(x):
    return x * 3


@torch.enable_grad()
def with_gradients(x):
    a = x.detach().requires_grad_()
    return torch.autograd.grad((a**2).sum(), a)[0]


@row
def decorated_by_modes(w, x):
    a = x.clone().requires_grad_()
    with torch.no_grad():
        g = with_gradients(a)
    return without_gradients(a).requires_grad, without_gradients(a), g


@row
def set_grad_enabled_as_a_function(w, x):
    a = x.clone().requires_grad_()
    torch.set_grad_enabled(False)
    y = a * 2
    torch.set_grad_enabled(True)
    return y.requires_grad, y


@row
def inference_mode_midway(w, x):
    with torch.inference_mode():
        y = x * 2
        flag = y.is_inference()
    return flag, torch.is_inference_mode_enabled(), (y + 1).sum().item()


@row
def a_leaf_that_is_detached(w, x):
    a = x.clone().requires_grad_()
    b = a.detach()
    b.add_(1)
    return a.is_leaf, b.requires_grad, (a * 2).sum().item()


# ------------------------------------------------------------------------------------------------- custom functions


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2 * ctx.scale, None


@row
def custom_function_without_gradients(w, x):
    return Cube.apply(x, 2.0) + 1


@row
def custom_function_forward_and_backward(w, x):
    a = x.clone().requires_grad_()
    Cube.apply(a, 2.0).sum().backward()
    return a.grad


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        index = x.argmax(dim=1)
        ctx.mark_non_differentiable(index)
        ctx.shape = x.shape
        ctx.save_for_backward(index)
        return x.amax(1), index

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g, _):
        (index,) = ctx.saved_tensors
        out = torch.zeros(ctx.shape, dtype=g.dtype)
        return out.scatter(1, index[:, None], g[:, None])


@row
def custom_function_with_an_index(w, x):
    a = x.clone().requires_grad_()
    top, index = Split.apply(a)
    top.sum().backward()
    return index, index.requires_grad, top.detach(), a.grad


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**2, x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, g, g2):
        (twice,) = ctx.saved_tensors
        return None if g is None else g * twice

    @staticmethod
    def vmap(info, in_dims, x):
        return Square.apply(x), (in_dims[0], in_dims[0])


@row
def custom_function_with_setup_context(w, x):
    a = x.clone().requires_grad_()
    y, _ = Square.apply(a)
    return torch.autograd.grad(y.sum(), a)[0]


@row
def custom_function_in_vmap(w, x):
    return vmap(lambda v: Square.apply(v)[0].sum())(x), grad(lambda v: Square.apply(v)[0].sum())(x)


class Waves(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, k):
        return x.sin() * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos() * ctx.k, None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return t * x.cos() * ctx.k


@row
def custom_function_in_all_transforms(w, x):
    def total(v):
        return Waves.apply(v, 3.0).sum()

    rows = vmap(grad(total))(x)
    return (
        rows,
        vmap(vmap(lambda v: Waves.apply(v, 2.0)))(x),
        jacrev(lambda v: Waves.apply(v, 2.0))(x[0]),
        grad(total)(x),
    )


@row
def custom_function_of_the_call_itself(w, x):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 5

    a = x.clone().requires_grad_()
    return torch.autograd.grad(Doubled.apply(a).sum(), a)[0], Doubled.apply(x)


class Counted(torch.autograd.Function):
    calls = []

    @staticmethod
    def forward(ctx, x, log):
        log.append("forward")
        ctx.log = log
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        ctx.log.append("backward")
        return -g, None


@row
def custom_function_with_effects(w, x):
    a = x.clone().requires_grad_()
    Counted.apply(a, w.log).sum().backward()
    return a.grad


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


@row
def custom_function_in_place(w, x):
    a = x.clone().requires_grad_()
    b = a * 1
    y = InPlace.apply(b)
    y.sum().backward()
    return a.grad, y is b, b.detach()


class Faulty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("no way back")


@row
def custom_function_that_raises(w, x):
    a = x.clone().requires_grad_()
    y = Faulty.apply(a)
    w.log.append(y.detach())
    y.sum().backward()


class WithJvp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.x.cos()

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.x.cos()


@row
def custom_function_with_jvp(w, x):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        y = WithJvp.apply(dual)
        return torch.autograd.forward_ad.unpack_dual(y).tangent


class Rounded(nn.Module):
    """A straight-through estimator, as quantizers have them."""

    def forward(self, x):
        return x + (x.round() - x).detach()


@row(make=lambda: world(net=nn.Sequential(mlp(), Rounded())), between=grow)
def straight_through(w, x):
    return torch.autograd.grad(w.net(x).sum(), list(w.net.parameters()))[0]


# ------------------------------------------------------------------------------------------------- checkpoints


@row(make=with_net(), between=grow)
def checkpoint_not_reentrant(w, x):
    a = x.clone().requires_grad_()
    out = checkpoint(w.net, a, use_reentrant=False)
    out.sum().backward()
    return a.grad


@row(make=with_net(), between=grow)
def checkpoint_reentrant(w, x):
    a = x.clone().requires_grad_()
    out = checkpoint(w.net, a, use_reentrant=True)
    out.sum().backward()
    return a.grad


@row(make=with_net())
def checkpoint_without_gradients(w, x):
    with torch.no_grad():
        return checkpoint(w.net, x, use_reentrant=False), checkpoint(w.net, x, use_reentrant=True)


@row
def checkpoint_of_a_function_that_counts(w, x):
    def f(v, scale):
        w.log.append("run")
        return (v * scale).tanh()

    a = x.clone().requires_grad_()
    checkpoint(f, a, 2.0, use_reentrant=False).sum().backward()
    return a.grad


@row
def checkpoint_with_dropout(w, x):
    torch.manual_seed(5)
    a = x.clone().requires_grad_()
    y = checkpoint(lambda v: F.dropout(v * v, 0.5), a, use_reentrant=False)
    y.sum().backward()
    return y.detach(), a.grad


@row(make=with_net())
def checkpoint_in_sequence(w, x):
    a = x.clone().requires_grad_()
    y = checkpoint_sequential(w.net, 2, a, use_reentrant=False)
    return torch.autograd.grad(y.sum(), a)[0]


@row
def saved_tensors_hooks(w, x):
    def pack(t):
        w.log.append(tuple(t.shape))
        return t.to(torch.float32)

    a = x.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to(torch.float64)):
        y = (a.sin() * a.cos()).sum()
    y.backward()
    return a.grad


@row
def saved_tensors_are_forbidden(w, x):
    a = x.clone().requires_grad_()
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        y = a * 2
    with torch.autograd.graph.save_on_cpu():
        z = (y * a).sum()
    z.backward()
    return a.grad


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
    """Puts another tensor in a parameter's place for a while."""
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


def go_back(w, i):
    w.kept.backward()


@row(make=with_net(kept=None), between=go_back)
def gradients_after_the_call(w, x):
    y = w.net(x).t().reshape(-1)
    w.kept = (y.expand(3, -1) * Cube.apply(x.sum(1).repeat(2), 2.0)).mean() + F.softmax(y, 0)[1:].prod()
    return w.kept.detach()


# What asks wrappers for plain sizes: by assertions of torch's own, each in other words.
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
