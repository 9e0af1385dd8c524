"""Which version counters a call moves, and how far; which results share one; what writes do to second gradients."""

from __future__ import annotations

import pytest
import torch
from torch.utils._pytree import tree_leaves

import cresset

COUNTED = {
    "geometry of a view": lambda x: x.view(x.shape).transpose_(0, 1),
    "geometry of a part, twice": lambda x: x[0].unsqueeze_(0).squeeze_(0),
    "geometry by strides": lambda x: x.as_strided(x.shape, x.stride()).t_(),
    "no conjugate of reals": lambda x: x.conj_physical_(),
    "an ordinary write": lambda x: x.t().add_(1),
    "three writes": lambda x: x.add_(1).t().mul_(2)[0].neg_(),
    "data": lambda x: x.data.add_(1),
    "a view of data": lambda x: x.data[1:].t().mul_(2),
    "data of a view": lambda x: x.t().data.mul_(2),
    "data by strides": lambda x: x.data.as_strided((2,), (1,)).mul_(2),
    "data and the tensor": lambda x: (x.data.add_(1), x.mul_(2)),
    "parts that autograd takes for copies": lambda x: x.unsafe_split(1, 0)[0].add_(1),
    "data of columns, by strides": lambda x: x[:, ::2].data.as_strided((2,), (2,)).mul_(2),
}
ARGUMENTS = {
    "alone": lambda x: [x],
    "and a part": lambda x: [x, x[:1]],
    "and a detached alias": lambda x: [x, x.detach()],
    "and its data": lambda x: [x, x.data],
}


@pytest.mark.parametrize("given", ARGUMENTS)
@pytest.mark.parametrize("name", COUNTED)
def test_counters_of_arguments(name, given):
    def f(x, *others):
        COUNTED[name](x)

    compiled = cresset.compile(f)
    for size in (3, 3, 4):
        seen = []
        for call in (f, compiled):
            args = ARGUMENTS[given](torch.arange(float(size * 2)).reshape(size, 2))
            call(*args)
            seen.append([(t._version, t.tolist()) for t in args])
        assert seen[0] == seen[1]


RESULTS = {
    "data of an argument": lambda x: [x.data],
    "data and a view of it": lambda x: [x.data, x.data[0], x[0]],
    "one alias and its view": lambda x: [d := x.data, d[0], d.t()],
    "a new tensor and its data": lambda x: [y := x * 2, y.data, y[0]],
    "views of a new tensor": lambda x: [(y := x * 2)[0], y[1], y.data],
    "parts that autograd takes for copies": lambda x: [*x.unsafe_split(1, 0), x.t()],
    "a copy that is a view": lambda x: [x[:1].reshape(-1), x],
    "data and a later view of it": lambda x: [d := x.data, later_view(d)],
    "a view of data and a later view of it": lambda x: [x.data, d := x.data[1:], later_view(d)],
}


@cresset.disable
def later_view(x):
    return x.t()


@pytest.mark.parametrize("name", RESULTS)
def test_counters_that_results_share(name):
    compiled = cresset.compile(RESULTS[name])
    for _ in range(3):
        seen = []
        for call in (RESULTS[name], compiled):
            x = torch.arange(6.0).reshape(3, 2)
            tensors = [x, *call(x)]
            rows = [[a is b for b in tensors] for a in tensors]
            for t in tensors:
                before = [other._version for other in tensors]
                t.add_(1)
                rows.append([other._version - b for other, b in zip(tensors, before)])
            seen.append((rows, [t.tolist() for t in tensors]))
        assert seen[0] == seen[1]


OVERLAPPING = {
    "a diagonal": lambda x: x.diagonal(1).neg_(),
    "one of the rows": lambda x: x[-1].add_(1),
    "rows that lie apart": lambda x: x[1::2].mul_(2),
    "filled": lambda x: x.fill_diagonal_(4),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_parts_of_arguments_that_overlap_themselves(name):
    def f(x):
        OVERLAPPING[name](x)
        return x * 1

    compiled = cresset.compile(f)
    for _ in range(2):
        seen = []
        for call in (f, compiled):
            x = torch.arange(4.0).reshape(1, 4).expand(2, 4)
            seen.append((call(x).tolist(), x.tolist(), x._version))
        assert seen[0] == seen[1]


SECOND = {
    "columns are set": lambda x: x[..., 1:].fill_(5),
    "assigned": lambda x: x.__setitem__((..., slice(1, None)), 5),
    "a row is filled": lambda x: x.select(-2, 0).fill_(3),
    "a diagonal is multiplied": lambda x: x.diagonal().mul_(x.detach().diagonal().clone()),
    "through strides": lambda x: x.as_strided((2,), (1,)).mul_(2),
    "all is set": lambda x: x.zero_(),
    "squared": lambda x: x.mul_(x.clone()),
    "a row is scattered": lambda x: x[0].scatter_(0, torch.zeros(1, dtype=torch.int64), 2),
    "through the conjugate": lambda x: x.conj().mul_(2),
    "through the negation": lambda x: torch._neg_view(x).mul_(2),
    "read before": lambda x: x[1:].copy_(x[:1].clone() * x[:1].clone()),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("name", SECOND)
def test_second_gradients_of_what_is_written(name, dtype):
    def f(x):
        SECOND[name](x)
        return x * x

    compiled = cresset.compile(f)
    for _ in range(2):
        seen = []
        for call in (f, compiled):
            leaf = (torch.arange(6.0).reshape(2, 3) / 4 + 1).to(dtype).requires_grad_()
            x = leaf * leaf
            loss = sum((t * t).sum().abs() for t in (call(x), x))
            (first,) = torch.autograd.grad(loss, leaf, create_graph=True)
            (second,) = torch.autograd.grad((first * first).sum().abs(), leaf)
            seen.append([first.detach(), second, x.detach()])
        assert all(torch.allclose(a, b) for a, b in zip(*map(tree_leaves, seen)))


READ = {
    "conjugated": lambda x: x.conj().sin(),
    "a part of the conjugate": lambda x: x + x.mH.diagonal()[:1],
    "negated": lambda x: torch._neg_view(x) * x,
    "conjugated twice in one operator": lambda x: x.conj() * x.conj(),
    "the copy of a conjugate, detached": lambda x: x.conj().clone().detach() * x,
    "data of the copy of a conjugate": lambda x: x.conj().clone().data * x,
    "parts copied": lambda x: torch.cat(torch.split_copy(x, 2, 1), 1) * x,
    "rows copied": lambda x: torch.unbind_copy(x)[0] * x,
    "set to zero": lambda x: (x * x).zero_() + x * x,
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("name", READ)
def test_second_gradients_of_values_computed_below_autograd(name, dtype):
    compiled = cresset.compile(READ[name])
    for _ in range(2):
        seen = []
        for call in (READ[name], compiled):
            leaf = (torch.arange(6.0).reshape(2, 3) / 4 + 1).to(dtype).requires_grad_()
            result = call(leaf)
            (first,) = torch.autograd.grad((result * result * result).sum().abs(), leaf, create_graph=True)
            (second,) = torch.autograd.grad((first * first).sum().abs(), leaf)
            seen.append([first.detach(), second])
        assert all(torch.allclose(a, b) for a, b in zip(*seen))


WRITTEN_AFTERWARDS = {
    "the result is kept": lambda x: x.sigmoid(),
    "a condition is kept": lambda x: torch.where(x > 0, x, x),
    "several results are kept": lambda x: x.sigmoid() * x.tanh(),
    "the argument itself is kept": lambda x: x.sin(),
    "a view of it is kept": lambda x: x.t().sin(),
}


@pytest.mark.parametrize("name", WRITTEN_AFTERWARDS)
def test_arguments_written_before_the_pass(name):
    compiled = cresset.compile(WRITTEN_AFTERWARDS[name])
    for _ in range(2):
        seen = []
        for call in (WRITTEN_AFTERWARDS[name], compiled):
            leaf = (torch.arange(6.0).reshape(2, 3) / 4 - 1).requires_grad_()
            x = leaf * 1
            result = call(x)
            x.add_(1)
            try:
                (gradient,) = torch.autograd.grad((result * result).sum(), leaf)
                seen.append(gradient)
            except RuntimeError as error:
                seen.append(type(error))
        assert seen[0] is seen[1] or torch.allclose(*seen)
