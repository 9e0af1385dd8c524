"""Factors of sums given as tensors without dimensions: the program multiplies by them, without a graph break."""

import compare
import pytest
import torch

import cresset

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
SUMS = ("add", "sub")
PRODUCTS = ("addcmul", "addcdiv")


def tensor(*shape, dtype=torch.float64, seed=0):
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5).to(dtype)


def made_of(x):
    return x.double().sum().div(x.numel()).float()


def check(function, *args, graphs=1, **options):
    cresset.reset()
    compiled = cresset.compile(function, **options)
    for _ in range(3):
        compare.assert_same_call(function, compiled, *args)
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (graphs, 0, 0)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("factor", [torch.float64, torch.float32, torch.bfloat16, torch.int64], ids=str)
def test_sums(name, dtype, factor):
    def function(x, y):
        t = (made_of(x) * 3).to(factor)
        out = getattr(torch, name)(x, y, alpha=t)
        out = getattr(out, name)(other=y, alpha=t)
        return out, getattr(x * 1, name + "_")(y, alpha=t)

    check(function, tensor(3, 5, dtype=dtype), tensor(5, dtype=dtype, seed=1), options={"eager_rounding": True})


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products(name, dtype):
    def function(x, y, z):
        t = made_of(x)
        out = getattr(torch, name)(x, y, z, value=t)
        return out, getattr(x * 1, name + "_")(y, z, value=t), getattr(out, name)(y, z, value=t.double())

    args = (tensor(3, 5, dtype=dtype), tensor(5, dtype=dtype, seed=1), tensor(3, 1, dtype=dtype, seed=2))
    check(function, *args, options={"eager_rounding": True})


def test_dtypes_of_sums():
    def function(wide, narrow, low):
        t = made_of(wide)
        return (
            torch.add(wide, narrow, alpha=t),
            torch.add(narrow, wide, alpha=t),
            torch.add(low, narrow, alpha=t),
            torch.sub(narrow.sum(), wide.sum(), alpha=t),
            torch.add(low, wide.sum(), alpha=t),
            (narrow * 1).add_(wide, alpha=t),
            (low * 1).subtract_(wide, alpha=t),
            torch.subtract(wide, wide, alpha=t),
        )

    check(function, tensor(4), tensor(4, dtype=torch.float32), tensor(4, dtype=torch.bfloat16))


@pytest.mark.parametrize("method", ["addmm", "addmm_", "baddbmm", "index_add", "index_add_"])
def test_products_of_matrices(method):
    def function(x, y, index):
        t = made_of(x).double()
        a, b = (x.unsqueeze(0), y.unsqueeze(0)) if "baddbmm" in method else (x, y)
        if "index" in method:
            return getattr(x * 1, method)(0, index, y, alpha=t)
        return getattr(a * 1, method)(a, b, alpha=t)

    args = (tensor(4, 4, dtype=torch.float32), tensor(4, 4, dtype=torch.float32, seed=1), torch.tensor([2, 0, 2, 1]))
    check(function, *args)


def test_a_method_that_is_taken_from_a_result_first():
    def function(x, n):
        t = made_of(x)
        return (x + 1).add(other=x, alpha=t), (x * 2).fmod(n + 1)

    check(function, tensor(4), 3)


def test_gradients():
    def function(x, y):
        t = made_of(x.detach())
        (torch.add(x, y, alpha=t).sin() + x.addcmul(y, x, value=t)).sum().backward()
        return x.grad, y.grad

    def fresh():
        return tensor(3, 4).requires_grad_(), tensor(4, seed=1).requires_grad_()

    compiled = cresset.compile(function)
    for _ in range(3):
        for got, wanted in zip(compiled(*fresh()), function(*fresh())):
            torch.testing.assert_close(got, wanted)


REFUSED = {
    "whole_numbers": lambda x, t: torch.add(x.long(), x.long(), alpha=t),
    "of_truth": lambda x, t: x.add(x, alpha=t > 0),
    "complex": lambda x, t: x.add(x, alpha=torch.complex(t, t)),
    "with_gradients": lambda x, t: x.add(x, alpha=t.requires_grad_()),
    "with_dimensions": lambda x, t: x.add(x, alpha=t.reshape(1)),
    "shapes": lambda x, t: x.add(torch.ones(3), alpha=t),
    "written_shapes": lambda x, t: x.add_(torch.ones(3, 4), alpha=t),
    "beta": lambda x, t: torch.addmm(x, x.reshape(2, 2), x.reshape(2, 2), beta=t),
    "number": lambda x, t: x.add(2, alpha=t),
    "written_without_dimensions": lambda x, t: x.sum().add_(t, alpha=t),
    "with_out": lambda x, t: torch.add(x, x, alpha=t, out=torch.empty(4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_operator_refuses_or_reads(name):
    def function(x):
        return REFUSED[name](x, made_of(x))

    cresset.reset()
    compiled = cresset.compile(function)
    for _ in range(3):
        compare.assert_same_call(function, compiled, tensor(4, dtype=torch.float32))


def test_factors_with_tangents_and_levels():
    """The numbers of the factors are read: the factors have no derivative."""

    def by_jvp(x, v):
        return torch.func.jvp(lambda y: y.add(y, alpha=y.sum().detach() + 0 * y.sum()), (x,), (v,))

    def by_grad(x, v):
        return torch.func.grad(lambda y: y.add(y, alpha=y.sum().detach()).sum())(x), v

    def by_dual(x, v):
        with torch.autograd.forward_ad.dual_level():
            y = torch.autograd.forward_ad.make_dual(x, v)
            return tuple(torch.autograd.forward_ad.unpack_dual(y.add(y, alpha=y.sum())))

    def by_vmap(x, v):
        return torch.vmap(lambda y: y.add(y, alpha=y.sum()))(x), v

    for function in (by_jvp, by_grad, by_dual, by_vmap):
        cresset.reset()
        compiled = cresset.compile(function)
        for _ in range(3):
            compare.assert_same_call(function, compiled, tensor(3, 2), tensor(3, 2, seed=1))


@pytest.mark.parametrize("n", [2, 5])
def test_two_loop_recursion(n):
    """The two-loop recursion of LBFGS over its history."""

    def function(flat, dirs, steps, ro):
        q, al = flat.neg(), [None] * n
        for i in range(n - 1, -1, -1):
            al[i] = steps[i].dot(q) * ro[i]
            q.add_(dirs[i], alpha=-al[i])
        r = torch.mul(q, ro[0])
        for i in range(n):
            r.add_(steps[i], alpha=al[i] - dirs[i].dot(r) * ro[i])
        return r

    dirs, steps = ([tensor(6, seed=10 * k + i) / 8 for i in range(n)] for k in (1, 2))
    check(function, tensor(6), dirs, steps, [tensor(seed=i) for i in range(n)], fullgraph=True)
