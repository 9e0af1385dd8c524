"""Writes to the caller's tensors. A pointwise update of the old contents by a single kernel overwrites them at once;
all other writes wait until no reader of the old contents is left."""

from __future__ import annotations

import pytest
import torch

import cresset


def momentum(p, b, g):
    b.mul_(0.9).add_(g)
    p.add_(b, alpha=-0.1)


def shifted(p, b, g):
    p[1:] += p[:-1].clone()


def turned(p, b, g):
    p.copy_(p.t() + b)


def old_is_read_later(p, b, g):
    old = p.clone()
    p.mul_(2)
    g.copy_(g.cumsum(0) + old)


def old_is_returned(p, b, g):
    old = p * 1
    p.add_(b)
    return old, p


def new_is_reduced(p, b, g):
    p.mul_(b)
    b.copy_(p.sum(0, keepdim=True) + b)
    return p.amax(1)


def softmax_over_itself(p, b, g):
    p.copy_(p.softmax(-1))
    b.copy_(torch.nn.functional.layer_norm(b, b.shape[-1:]))


def two_are_exchanged(p, b, g):
    old = p.clone()
    p.copy_(b)
    b.copy_(old)


def each_of_the_other(p, b, g):
    new_p, new_b = p + b, p - b
    p.copy_(new_p)
    b.copy_(new_b)


def a_part(p, b, g):
    p[2] = b[1]
    b[:, 1].mul_(3)
    return p.sum(), b[:, 1]


def products(p, b, g):
    p.copy_(p @ b)
    b.add_(p)


def expanded(p, b, g):
    p.add_(g[0].expand_as(p))
    g[0].mul_(2)


def in_another_type(p, b, g):
    p.copy_((p.double() * 2 + b).round())
    g.copy_(p > b)


PROGRAMS = [
    momentum, shifted, turned, old_is_read_later, old_is_returned, new_is_reduced, softmax_over_itself, two_are_exchanged,
    each_of_the_other, a_part, products, expanded, in_another_type,
]  # fmt: skip
KINDS = {
    "contiguous": lambda n: torch.randn(n, n),
    "turned": lambda n: torch.randn(n, n).t(),
    "every_other": lambda n: torch.randn(2 * n, 2 * n)[::2, ::2],
    "inside": lambda n: torch.randn(n + 3, n + 5)[2:-1, 1:-4],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_written_inputs(program, kind):
    compiled = cresset.compile(program)
    with torch.no_grad():
        for n in (7, 7, 40, 1, 19):
            torch.manual_seed(n)
            mine = [KINDS[kind](n) for _ in range(3)] if n > 2 or program is not a_part else [KINDS[kind](3)] * 0
            if not mine:
                continue
            its = [t.clone(memory_format=torch.preserve_format) for t in mine]
            versions = [t._version for t in mine]
            expected, got = program(*its), compiled(*mine)
            torch.testing.assert_close(mine, its, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
            changed = [not torch.equal(a, b) for a, b in zip(mine, its)]
            assert not any(c and t._version == v for c, t, v in zip(changed, mine, versions))


def test_nothing_is_planned_for_what_is_written_in_place():
    compiled = cresset.compile(momentum)
    with torch.no_grad():
        tensors = [torch.randn(64, 64) for _ in range(3)]
        versions = [t._version for t in tensors]
        compiled(*tensors)
        compiled(*tensors)
    assert cresset.stats()["bytes_planned"] == 0
    assert [t._version > v for t, v in zip(tensors, versions)] == [True, True, False]


def test_arguments_that_share_memory():
    def f(p, q):
        p.copy_(p * 2 + q)

    compiled = cresset.compile(f)
    with torch.no_grad():
        for how in (
            lambda t: (t[:8], t[8:]),
            lambda t: (t[:8], t[4:12]),
            lambda t: (t[:8], t[:8]),
            lambda t: (t[1:9], t[:8]),
        ):
            mine = torch.arange(16.0)
            its = mine.clone()
            f(*how(its))
            compiled(*how(mine))
            assert torch.equal(mine, its)


def test_parameters_that_come_to_share_memory():
    def world():
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(torch.nn.Linear(6, 6) for _ in range(3)))

        def step(x):
            with torch.no_grad():
                for layer in model:
                    x = layer(x)
                    layer.weight.mul_(0.5).add_(x.mean())
                    layer.bias.sub_(layer.weight.sum(1) * 0.1)
            return x, model[2].weight.sum()

        return model, step

    mine, its = world(), world()
    compiled = cresset.compile(mine[1])
    for n in range(12):
        if n == 4:
            for model in (mine[0], its[0]):
                model[1].weight.data = model[0].weight.data
        if n == 6:
            for model in (mine[0], its[0]):
                model[2].weight.data = model[0].weight.data.t()
        if n == 9:
            for model in (mine[0], its[0]):
                model[1].weight.data = model[1].weight.data.clone()
        x = torch.randn(4, 6, generator=torch.Generator().manual_seed(n))
        torch.testing.assert_close(compiled(x), its[1](x))
        torch.testing.assert_close([*mine[0].parameters()], [*its[0].parameters()])


def test_an_optimizer_plans_no_memory():
    parameters = [torch.nn.Parameter(torch.randn(50, 50)) for _ in range(3)]
    for p in parameters:
        p.grad = torch.randn(50, 50)
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    step = cresset.compile(lambda: optimizer.step())
    for _ in range(2):
        step()
    cresset.reset()
    expected = [p.detach() - 0.1 * (optimizer.state[p]["momentum_buffer"] * 0.9 + p.grad) for p in parameters]
    step()
    torch.testing.assert_close([p.detach() for p in parameters], expected)
    assert cresset.stats()["bytes_planned"] == 0


def views_behind_a_write(x):
    x.add_(1)
    return x.unfold(1, 2, 1), x.T[1], x.movedim(0, 1), x.diagonal(), x[1:], x.split(2, 1)[1]


def a_part_is_written(x):
    x[:, -1].mul_(3)
    x.clamp_(min=1)
    v = x.diagonal()
    v.fill_(7)
    return v, x.t(), x.select(1, 2)


@pytest.mark.parametrize("function", [views_behind_a_write, a_part_is_written])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: torch.arange(8.0 * n).reshape(n, 8)[:, ::2],
        lambda n: torch.arange(4.0 * n).reshape(4, n).t(),
        lambda n: torch.arange(8.0 * n).reshape(2 * n, 4)[::2],
        lambda n: torch.arange(4.0 * n + 4).reshape(n + 1, 4)[1:],
    ],
    ids=["columns", "transposed", "rows", "offset"],
)
def test_views_of_what_was_written_lie_where_it_lies(function, make):
    """Also for an argument with gaps, unlike results computed from it."""
    compiled = cresset.compile(function)
    for n in (4, 5, 7):
        expected_in, given = make(n), make(n)
        expected, got = function(expected_in), compiled(given)
        torch.testing.assert_close(given, expected_in)
        for a, b in zip(got, expected, strict=True):
            assert torch.equal(a, b) and a.stride() == b.stride() and a.storage_offset() == b.storage_offset()
            assert a.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
    assert cresset.stats()["eager_calls"] == 0


def data_written(x):
    out = x.sin()
    x.data.mul_(2)
    return out


def data_copied(x):
    out = x.sin()
    x.data.copy_(x.data * 2)
    return out * x


def part_of_data_written(x):
    out = x.exp()
    x.data[1:].zero_()
    return out + x


def data_held_while_written(x):
    held, out = x.data, x.cos()
    held += 1
    with torch.no_grad():
        held.view(2, 2).mul_(2)
    return out * held


@pytest.mark.parametrize("function", [data_written, data_copied, part_of_data_written, data_held_while_written])
@pytest.mark.parametrize("where", ["argument", "parameter"])
def test_what_is_written_through_data_counts_for_nobody(function, where):
    """Gradients use the tensors saved before: such a write is invisible to autograd, as in eager mode."""

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.arange(4.0))

        def forward(self, x):
            return function(self.weight) * x

    def run(call, x, leaf):
        before = leaf._version
        call(x).sum().backward()
        assert leaf._version == before
        return leaf.detach().clone(), leaf.grad

    eager, module = Module(), Module()
    compiled = cresset.compile(function if where == "argument" else module)
    for i in range(3):
        if where == "argument":
            x, y = (torch.arange(4.0).add_(i).requires_grad_() for _ in range(2))
            pairs = zip(run(compiled, x, x), run(function, y, y))
        else:
            eager.zero_grad(), module.zero_grad()
            x = torch.full((4,), 1.0 + i)
            pairs = zip(run(compiled, x, module.weight), run(eager, x, eager.weight))
        for got, expected in pairs:
            torch.testing.assert_close(got, expected)


def test_data_has_versions_of_its_own():
    def function(x):
        data = x.data
        data.add_(1)
        return data._version, x._version

    compiled = cresset.compile(function)
    for _ in range(2):
        assert compiled(torch.ones(4)) == function(torch.ones(4))


def test_a_write_beside_one_through_data_is_still_told_of():
    def function(x):
        out = x.sin()
        x.data.mul_(2)
        with torch.no_grad():
            x.add_(1)
        return out

    for call in (function, cresset.compile(function)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            call(torch.ones(4, requires_grad=True)).sum().backward()


def read_later(x, y, v):
    w = v.sin() * 2
    x.copy_(w), y.copy_(w)
    return (w + 1).sum()


def returned_too(x, y, v):
    w = v.sin() * 2
    x.copy_(w), y.add_(w)
    return w


def through_a_view(x, y, v):
    w = v.sin() * 2
    x.copy_(w), y.copy_(w.flip(0))
    return w[1:] * 3


def crossed(x, y, v):
    a, b = x + v, y * v
    x.copy_(b), y.copy_(a)
    return a - b


@pytest.mark.parametrize("program", [read_later, returned_too, through_a_view, crossed], ids=lambda p: p.__name__)
def test_one_value_written_to_several_inputs(program):
    compiled = cresset.compile(program)
    for _ in range(3):
        mine = [torch.rand(64) for _ in range(3)]
        its = [t.clone() for t in mine]
        got, expected = compiled(*mine), program(*its)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(mine, its)
