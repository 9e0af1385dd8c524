"""Backward passes with gradients for only some results: the contributions of the other results are not computed."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import cresset


def log_and_double(x, w):
    return torch.log(x).sum(), x * w  # d log(0): inf


def root_and_sum(x, w):
    y = x * 2
    return torch.sqrt(y * y).sum(), (y * w).sum(), y.sin()  # d sqrt(0) is inf, times 0


def pieces(x, w):
    a, b, c = x.chunk(3, 1)
    return a.exp().sum(), (b * w).sum(), torch.log(c).sum()


def joined(x, w):
    y = torch.cat([x, w.expand_as(x)], 1)
    return y.tanh(), (y / x.sum()).sum(), y[:, :1]


def norms(x, w):
    return x.norm(), torch.linalg.vector_norm(x * w, dim=1), torch.special.xlogy(x, x).sum()


def layers(x, w):
    y = nn.functional.layer_norm(x * w, (x.shape[1],))
    return nn.functional.cross_entropy(y, y.detach().argmax(1)), y, nn.functional.softmax(y / 0.0, 1)


def scattered(x, w):
    index = torch.arange(x.shape[0]).flip(0)
    y = x.index_select(0, index)
    return y[:, 0].log(), torch.zeros_like(x).index_put((index,), x * w), y.amax(1)


def in_place(x, w):
    y = x * 1
    y[:, 0] = w
    z = y.clone()
    z.mul_(y)
    return z.log().sum(), y.sum(0), z


def factored(x, w):
    u, s, v = torch.linalg.svd(x @ x.mT + torch.eye(x.shape[0]) * w, full_matrices=False)
    return s, u.abs().sum(), (v / 0.0).sum()


def nothing_but_views(x, w):
    y = x + w
    return y.t(), y.log().sum(), y.view(-1)[1:]


PROGRAMS = [
    log_and_double,
    root_and_sum,
    pieces,
    joined,
    norms,
    layers,
    scattered,
    in_place,
    factored,
    nothing_but_views,
]


def arguments(rows, dtype=torch.float64):
    torch.manual_seed(rows)
    x = torch.rand(rows, 6, dtype=dtype)
    x[0, 0] = x[0, 5] = 0
    return x.requires_grad_(), torch.rand((), dtype=dtype).requires_grad_()


def gradients(fn, args, chosen):
    results = [r for r in fn(*args)]
    for i in chosen:
        torch.manual_seed(i)
        results[i].backward(torch.rand_like(results[i]), retain_graph=True)
    return [a.grad for a in args]


def check(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, equal_nan=True)
            assert a.stride() == b.stride()


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_choice_of_results(program):
    compiled = cresset.compile(program)
    count = len(program(*arguments(4)))
    for rows in (4, 7):
        for chosen in itertools.chain.from_iterable(itertools.combinations(range(count), n) for n in (1, 2, count)):
            # one after the other, then in one pass
            check(gradients(compiled, arguments(rows), chosen), gradients(program, arguments(rows), chosen))
            together = []
            for fn in (program, compiled):
                args = arguments(rows)
                results = fn(*args)
                sum(results[i].sum() for i in chosen).backward()
                together.append([a.grad for a in args])
            check(*together)
    assert cresset.stats()["eager_calls"] == 0


def test_an_infinite_derivative_of_what_is_not_used():
    def f(x):
        return torch.log(x), x * 3

    x = torch.zeros(3, requires_grad=True)
    cresset.compile(f)(x)[1].sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_the_first_call_of_a_function_that_is_not_compiled():
    """Operators interpreted in the capturing call have the same gradients."""

    def f(x, log):
        y = torch.log(x)
        z = x * 3
        log.append(open("/dev/null"))  # noqa: SIM115 (lives on: no recipe rebuilds it)
        z.sum().item()
        return y, z

    x = torch.zeros(3, requires_grad=True)
    cresset.compile(f)(x, [])[1].sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_functions_of_users_are_given_zeros():
    """Functions of users get zeros for absent gradients, as in autograd."""

    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + (b + 1) * 3

    def f(x):
        a, b = Shifted.apply(x)
        return a.sin(), b.cos()

    found = []
    for fn in (f, cresset.compile(f)):
        x = torch.ones(3, requires_grad=True)
        fn(x)[0].sum().backward()
        found.append(x.grad)
    check([found[1]], [found[0]])


def test_what_is_missing_is_not_computed():
    """A loss beside logits: no zeros for the logits, and the same program at another size."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 50)

        def forward(self, x, y):
            logits = self.head(self.body(x).relu())
            return nn.functional.cross_entropy(logits, y), logits

    model = Model()
    compiled = cresset.compile(model)
    for rows in (5, 9, 12):
        x, y = torch.randn(rows, 8), torch.randint(50, (rows,))
        expected = torch.autograd.grad(model(x, y)[0], list(model.parameters()))
        found = torch.autograd.grad(compiled(x, y)[0], list(model.parameters()))
        check(found, expected)
    assert cresset.stats()["backward_graphs"] == 1


def test_a_piece_is_not_held_to_what_follows_its_break():
    """The backward program for some results is made after the capture of the next graph segment, which is for a single
    size."""

    def f(x, w):
        n = x.shape[0]
        sums, unused = (x @ w).sin().sum(0), (x * w.sum()).tanh()
        print(end="")
        return sums * 2 if n == 3 else sums, unused

    cresset.reset()
    compiled = cresset.compile(f)
    for n in (3, 5, 1, 2, 7):
        results = []
        for call in (f, compiled):
            w = torch.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()
            z, _ = call(torch.linspace(0, 1, 4 * n).reshape(n, 4), w)
            z.sum().backward()
            results.append((z, w.grad))
        for got, expected in zip(results[1], results[0]):
            torch.testing.assert_close(got, expected)
