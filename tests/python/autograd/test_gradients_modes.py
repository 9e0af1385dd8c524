"""Modes of differentiation through compiled calls, in a single graph segment and in two, beside eager mode. Modes:
several passes at once, forward mode, repeated differentiation, functions without second derivatives, branches on data.
"""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.autograd.forward_ad as fwd
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable

import cresset


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class CubeWithTangent(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def written(x, w):
    y = x @ w
    y[0] = x[1]
    y.mul_(x)
    return y


def two_results(x, w):
    h = (x @ w).tanh()
    return h, h.sum() * w.sum()


SHAPES = {
    "sine": lambda x, w: x.sin() * w.sum(),
    "linear": lambda x, w: F.linear(x, w, w[0]).tanh(),
    "bmm": lambda x, w: torch.bmm(x.expand(2, 3, 3), w.expand(2, 3, 3)).relu(),
    "conv": lambda x, w: F.conv1d(x[None], w.reshape(3, 3, 1)).sigmoid(),
    "layer_norm": lambda x, w: F.layer_norm(x @ w, (3,), w[0]),
    "batch_norm": lambda x, w: F.batch_norm(x @ w, None, None, w[0], training=True),
    "cross_entropy": lambda x, w: F.cross_entropy(x @ w, torch.tensor([0, 2, 1])),
    "softmax": lambda x, w: (x @ w).softmax(1) @ x,
    "views": lambda x, w: (x @ w).t().unsqueeze(0).expand(2, 3, 3).diagonal(dim1=1, dim2=2),
    "written": written,
    "gather": lambda x, w: (x @ w).gather(1, torch.tensor([[0], [2], [1]])) + x[torch.tensor([2, 0])].sum(),
    "index_put": lambda x, w: w.index_put((torch.tensor([0, 2]),), (x * w)[:2]) * x,
    "cat": lambda x, w: torch.cat([x @ w, x, w]).cumsum(0),
    "where": lambda x, w: torch.where(x > 0, x @ w, w * x),
    "maximum": lambda x, w: torch.maximum(x @ w, x).amax(0),
    "sort": lambda x, w: (x @ w).sort(1).values[:, 1],
    "inverse": lambda x, w: torch.linalg.inv(w + 4 * torch.eye(3)) @ x,
    "norm": lambda x, w: torch.linalg.vector_norm(x @ w, dim=1),
    "prod": lambda x, w: (x + w).prod(1),
    "pooled": lambda x, w: F.max_pool1d((x @ w)[None], 2),
    "attention": lambda x, w: F.scaled_dot_product_attention((x @ w)[None, None], x[None, None], w[None, None]),
    "complex": lambda x, w: (torch.fft.rfft(x @ w).abs() + w[:, :2]).square(),
    "scalar": lambda x, w: (x * w).sum(),
    "two_results": two_results,
    "function": lambda x, w: Cube.apply(x @ w),
    "detached": lambda x, w: x @ w * (x * w).detach(),
    "of_one": lambda x, w: (x * 2).exp(),
    "pieces": None,
    "hooked": None,
}


def in_pieces(x, w):
    h = (x @ w).tanh()
    cresset.graph_break()
    return (h * x).sin()


def hooked(x, w):
    h = (x @ w).tanh()
    h.register_hook(lambda g: g * 2)
    return h * h


SHAPES.update(pieces=in_pieces, hooked=hooked)


def given(seed=0):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(3, 3, generator=g).requires_grad_() for _ in range(2)]


def results(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def outcome(run, f, *args):
    """The result of a mode of differentiation, or the type and the first line of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return results(run(f, *args))
        except Exception as error:
            return [(type(error).__name__, str(error).split("\n")[0])]


def assert_as_eager(run, f, calls=2):
    torch.manual_seed(0)
    expected = outcome(run, f)
    cresset.reset()
    compiled = cresset.compile(f)
    for _ in range(calls):
        torch.manual_seed(0)
        got = outcome(run, compiled)
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            if not isinstance(e, torch.Tensor) or not isinstance(g, torch.Tensor):
                assert g == e if not isinstance(e, torch.Tensor) else g is e
                continue
            assert (g.dtype, g.shape, g.requires_grad) == (e.dtype, e.shape, e.requires_grad)
            torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-5)


# ---- Several passes at once


def batched(f):
    leaves = given()
    outs = results(f(*leaves))
    tangents = [torch.randn(4, *o.shape, generator=torch.Generator().manual_seed(1)) for o in outs]
    return torch.autograd.grad(outs, leaves, tangents, is_grads_batched=True, allow_unused=True)


def batched_again(f):
    leaves = given()
    outs = results(f(*leaves))
    tangents = [torch.randn(2, *o.shape, generator=torch.Generator().manual_seed(1)) for o in outs]
    for _ in range(2):
        found = torch.autograd.grad(outs, leaves, tangents, is_grads_batched=True, allow_unused=True, retain_graph=True)
    return found


def batched_with_history(f):
    leaves = given()
    outs = results(f(*leaves))
    tangents = [torch.randn(2, *o.shape, generator=torch.Generator().manual_seed(1)) for o in outs]
    found = torch.autograd.grad(
        outs, leaves, tangents, is_grads_batched=True, allow_unused=True, retain_graph=True, create_graph=True
    )
    total = sum((t.square().sum() for t in found if t is not None), torch.zeros(()))
    return [*found, *torch.autograd.grad(total, leaves, allow_unused=True)]


def jacobian(f):
    rows = torch.autograd.functional.jacobian(lambda *a: results(f(*a))[0], tuple(given()), vectorize=True)
    return list(rows)


def hessian(f):
    rows = torch.autograd.functional.hessian(
        lambda x: results(f(x, given()[1].detach()))[0].sum(), given()[0], vectorize=True
    )
    return rows


def vmapped_backward(f):
    leaves = given()
    out = results(f(*leaves))[-1]
    tangents = torch.randn(4, *out.shape, generator=torch.Generator().manual_seed(1))

    def one(tangent):
        return torch.autograd.grad(out, leaves, tangent, retain_graph=True, materialize_grads=True)

    return torch.vmap(one)(tangents)


def vmapped_twice(f):
    leaves = given()
    out = results(f(*leaves))[-1]
    tangents = torch.randn(2, 3, *out.shape, generator=torch.Generator().manual_seed(1))

    def one(tangent):
        return torch.autograd.grad(out, leaves, tangent, retain_graph=True, materialize_grads=True)

    return torch.vmap(torch.vmap(one))(tangents)


def pulled_back(f):
    leaves = [t.detach() for t in given()]
    out, back = torch.func.vjp(lambda *a: results(f(*a))[-1], *leaves)
    return torch.vmap(back)(torch.randn(2, *out.shape, generator=torch.Generator().manual_seed(1)))


def reverse_jacobian(f):
    return torch.func.jacrev(lambda *a: results(f(*a))[-1], argnums=(0, 1))(*(t.detach() for t in given()))


def reverse_jacobian_in_chunks(f):
    return torch.func.jacrev(lambda x: results(f(x, given()[1]))[-1], chunk_size=2)(given()[0].detach())


def of_each_sample(f):
    def loss(x, w):
        return results(f(x, w))[-1].square().sum()

    samples = torch.stack([given(i)[0].detach() for i in range(3)])
    return torch.vmap(torch.func.grad(loss, argnums=1), in_dims=(0, None))(samples, given()[1].detach())


def hessian_of_func(f):
    return torch.func.hessian(lambda x: results(f(x, given()[1].detach()))[-1].sum())(given()[0].detach())


# ---- Forward mode


def tangents_of(outs):
    for out in results(outs):
        primal, tangent = fwd.unpack_dual(out)
        yield primal.detach()
        yield None if tangent is None else tangent.detach()


def forward_mode(f):
    x, w = given()
    with fwd.dual_level():
        return list(tangents_of(f(fwd.make_dual(x, torch.full_like(x, 0.5)), w)))


def forward_mode_plain(f):
    x, w = (t.detach() for t in given())
    with fwd.dual_level():
        return list(tangents_of(f(fwd.make_dual(x, torch.full_like(x, 0.5)), w)))


def forward_mode_of_weight(f):
    x, w = given()
    with fwd.dual_level():
        return list(tangents_of(f(x.detach(), fwd.make_dual(w, torch.full_like(w, 0.5)))))


def forward_over_reverse(f):
    x, w = given()
    with fwd.dual_level():
        out = results(f(fwd.make_dual(x, torch.full_like(x, 0.5)), w))[-1]
        gradients = torch.autograd.grad(out.sum(), (x, w), allow_unused=True)
        return [g for t in gradients if t is not None for g in tangents_of(t)]


def reverse_of_tangent(f):
    x, w = given()
    with fwd.dual_level():
        out = results(f(fwd.make_dual(x, torch.full_like(x, 0.5)), w))[-1]
        primal, tangent = fwd.unpack_dual(out)
        total = primal.sum() if tangent is None else primal.sum() + tangent.sum()
        return torch.autograd.grad(total, (x, w), allow_unused=True)


def jvp(f):
    x, w = given()
    return torch.func.jvp(lambda v: results(f(v, w))[-1], (x.detach(),), (torch.ones(3, 3),))


def forward_jacobian(f):
    x, w = given()
    return torch.func.jacfwd(lambda v: results(f(v, w))[-1])(x.detach())


# ---- Passes that are differentiated again


def twice(f):
    leaves = given()
    total = sum(o.sum() for o in results(f(*leaves)))
    found = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    again = sum((t.square().sum() for t in found if t is not None), torch.zeros(()))
    return [*found, *torch.autograd.grad(again, leaves, allow_unused=True)]


def kept(f):
    leaves = given()
    outs = results(f(*leaves))
    for _ in range(2):
        sum(o.sum() for o in outs).backward(retain_graph=True)
    return [t.grad for t in leaves]


WAYS = [batched, batched_again, batched_with_history, jacobian, hessian, vmapped_backward, vmapped_twice, reverse_jacobian, reverse_jacobian_in_chunks, of_each_sample, hessian_of_func, pulled_back,
        forward_mode, forward_mode_plain, forward_mode_of_weight, forward_over_reverse, reverse_of_tangent, jvp,
        forward_jacobian, twice, kept]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("shape", SHAPES)
def test_ways(shape, way):
    assert_as_eager(way, SHAPES[shape])


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_ways_of_module(way):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 3))
    assert_as_eager(way, lambda x, w: module(x) * w)


@pytest.mark.parametrize("way", [forward_mode, jvp, forward_jacobian, batched, twice], ids=lambda way: way.__name__)
def test_ways_of_function_with_tangent(way):
    assert_as_eager(way, lambda x, w: CubeWithTangent.apply(x @ w) * w)


# ---- Functions that must not be differentiated again


def once(forward, backward):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return forward(x, w)

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return backward(g, *ctx.saved_tensors)

    return Once.apply


ONCE = {
    "formula": once(lambda x, w: x * x * w, lambda g, x, w: (2 * x * w * g, x * x * g)),
    "gradient_itself": once(lambda x, w: x + w, lambda g, x, w: (g, g)),
    "view_of_gradient": once(lambda x, w: x * 1, lambda g, x, w: (g.t().t(), None)),
    "view": once(lambda x, w: x.t() + w, lambda g, x, w: (g.t(), g)),
    "saved_alone": once(lambda x, w: (x * x + w * w) / 2, lambda g, x, w: (x, w * 1)),
    "one": once(lambda x, w: x.detach() * w, lambda g, x, w: (None, g * x)),
}
AROUND = {
    "summed": lambda f, x, w: f(x, w).sum(),
    "squared": lambda f, x, w: f(x, w).square().sum(),
    "between": lambda f, x, w: (f(x.sin(), w) * w).square().sum(),
    "twice": lambda f, x, w: f(f(x, w), w).exp().mean(),
    "beside": lambda f, x, w: f(x, w).square().sum() + (x * w).square().sum(),
    "branch": lambda f, x, w: f(x, w).sum() * (x * w).sum(),
}


def passed_back(f):
    x, w = given()
    found = torch.autograd.grad(f(x, w), (x, w), create_graph=True, allow_unused=True)
    sum((t * x * w).sum() for t in found if t is not None).backward()
    return [*(t for t in found if t is not None), x.grad, w.grad]


def asked_for(f):
    x, w = given()
    (found,) = torch.autograd.grad(f(x, w), (w,), create_graph=True)
    return [found, *torch.autograd.grad((found * x).sum(), (x, w), allow_unused=True)]


@pytest.mark.parametrize("again", [passed_back, asked_for], ids=lambda again: again.__name__)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", ONCE)
def test_differentiated_once(name, around, again):
    if name == "saved_alone" and around not in ("summed", "squared"):
        pytest.skip("its backward is no derivative of its forward, which gradients of gradients of others need")
    assert_as_eager(again, lambda x, w: AROUND[around](ONCE[name], x, w))


# ---- Branches on data


def branches(kind):
    leaf = torch.linspace(0.5, 1.5, 9).reshape(3, 3).requires_grad_()
    number = 3.0
    return leaf, {
        "operands": lambda x, w: torch.cond(x.sum() > 0, lambda x, w: x @ w, lambda x, w: x - w, (x, w)),
        "leaf": lambda x, w: torch.cond(x.sum() > 0, lambda x: x * leaf, lambda x: x - leaf, (x.detach(),)),
        "number": lambda x, w: torch.cond(x.sum() > 0, lambda x: x * number, lambda x: x - number, (x,)),
        "leaf_and_number": lambda x, w: torch.cond(
            x.sum() > 0, lambda x: x * leaf * number, lambda x: leaf - number, (x,)
        ),
        "one_side": lambda x, w: torch.cond(x.sum() > 0, lambda x: x * w, lambda x: x.detach() * 2, (x,)),
        "other_side": lambda x, w: torch.cond(x.sum() < 0, lambda x: x * w, lambda x: x.detach() * 2, (x,)),
        "no_operands": lambda x, w: torch.cond(x.sum() > 0, lambda: w * 2, lambda: w * 3),
        "inside": lambda x, w: torch.cond(
            x.sum() > 0,
            lambda x: torch.cond(x.mean() > 1, lambda x: x * w, lambda x: x / leaf, (x,)),
            lambda x: x * 1,
            (x,),
        ),
        "structure": lambda x, w: torch.cond(x.sum() > 0, lambda x: (x * w, x + 1), lambda x: (x - w, x - leaf), (x,))[
            0
        ],
        "no_gradients": lambda x, w: w * torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, (x.detach(),)),
    }[kind]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kind", ["operands", "leaf", "number", "leaf_and_number", "one_side", "other_side",
                                  "no_operands", "inside", "structure", "no_gradients"])  # fmt: skip
def test_branches_with_gradients(kind, sign):
    leaf, f = branches(kind)

    def choose(pred, true_fn, false_fn, operands=()):
        return true_fn(*operands) if pred else false_fn(*operands)

    def run(g):
        leaf.grad = None
        x, w = given()
        x = (x.detach().abs() * sign).requires_grad_()
        h = g(x * 1, w * 1)
        if h.requires_grad:
            h.square().sum().backward()
        return [h, x.grad, w.grad, leaf.grad]

    real = torch.cond
    torch.cond = choose
    try:
        expected = outcome(run, f)
    finally:
        torch.cond = real
    cresset.reset()
    compiled = cresset.compile(f)
    for _ in range(2):
        for g, e in zip(outcome(run, compiled), expected, strict=True):
            assert (g is None) == (e is None), g
            if e is not None:
                torch.testing.assert_close(g, e)
                assert g.requires_grad == e.requires_grad
