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
}


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
    "a diagonal is multiplied": lambda x: x.diagonal().mul_(x.detach().diagonal()),
    "through strides": lambda x: x.as_strided((2,), (1,)).mul_(2),
    "all is set": lambda x: x.zero_(),
    "squared": lambda x: x.mul_(x.clone()),
    "a row is scattered": lambda x: x[0].scatter_(0, torch.zeros(1, dtype=torch.int64), 2),
    "through the conjugate": lambda x: x.conj().mul_(2),
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
