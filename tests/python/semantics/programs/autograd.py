# size: table
"""Programs with calls of autograd: backward passes, custom functions, checkpoints. Rows as in programs_transforms."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import (
    grad,
    jacrev,
    vmap,
)
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from programs.transforms import grow, mlp, table, unfreeze, with_net, world

ROWS, row = table()


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
    """A straight-through estimator, as in quantizers."""

    def forward(self, x):
        return x + (x.round() - x).detach()


@row(make=lambda: world(net=nn.Sequential(mlp(), Rounded())), between=grow)
def straight_through(w, x):
    return torch.autograd.grad(w.net(x).sum(), list(w.net.parameters()))[0]


def go_back(w, i):
    w.kept.backward()


@row(make=with_net(kept=None), between=go_back)
def gradients_after_the_call(w, x):
    y = w.net(x).t().reshape(-1)
    w.kept = (y.expand(3, -1) * Cube.apply(x.sum(1).repeat(2), 2.0)).mean() + F.softmax(y, 0)[1:].prod()
    return w.kept.detach()


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
