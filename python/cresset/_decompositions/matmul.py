"""Decompositions of products of several matrices (base.py), whose order depends on their sizes."""

import itertools

from .. import _C
from .._genuine import torch
from .base import form, hide, is_dense, is_of_data

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def best_splits(sizes):
    """The cuts of each run of matrices with the fewest multiplications; guards compare the costs."""
    count = len(sizes) - 1
    cost, cut = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            for k in range(i, j):
                new = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if k == i or new < cost[i, j]:
                    cost[i, j], cut[i, j] = new, k
    return cut


def product(matrices, cut, i, j):
    if i == j:
        return matrices[i]
    k = cut[i, j]
    return torch.mm(product(matrices, cut, i, k), product(matrices, cut, k + 1, j))


def product_in_order(matrices):
    out = matrices[0]
    for matrix in matrices[1:]:
        out = torch.mm(out, matrix)
    return out


def is_chain(tensors):
    """Whether the matrices fit, with a vector allowed at either end, and are floats of the same dtype."""
    if not isinstance(tensors, (list, tuple)) or not 3 <= len(tensors) <= 6:
        return False
    first = tensors[0]
    if not all(is_dense(t) and t.dtype == first.dtype and t.is_floating_point() for t in tensors):
        return False
    if not all(t.dim() == 2 for t in tensors[1:-1]) or not all(t.dim() in (1, 2) for t in (first, tensors[-1])):
        return False
    return all(a.shape[-1] == b.shape[0] for a, b in itertools.pairwise(tensors))


def multiplied(tensors):
    matrices = list(tensors)
    if matrices[0].dim() == 1:
        matrices[0] = matrices[0].unsqueeze(0)
    if matrices[-1].dim() == 1:
        matrices[-1] = matrices[-1].unsqueeze(1)
    sizes = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    if any(is_of_data(n) for n in sizes):
        out = product_in_order(matrices)
    else:
        out = product(matrices, best_splits(sizes), 0, len(matrices) - 1)
    if tensors[-1].dim() == 1:
        out = out.squeeze(1)
    return out.squeeze(0) if tensors[0].dim() == 1 else out


@form(torch.linalg.multi_dot, always=True)
def multi_dot(tensors):
    return multiplied(tensors) if is_chain(tensors) else torch.linalg.multi_dot(tensors)


@form(torch._C._VariableFunctions.chain_matmul, always=True)
def chain_matmul(matrices):
    usual = is_chain(matrices) and all(m.dim() == 2 for m in matrices)
    return multiplied(matrices) if usual else torch._C._VariableFunctions.chain_matmul(matrices)


hide(globals())
