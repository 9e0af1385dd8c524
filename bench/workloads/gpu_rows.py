"""The kernels timed by `bench/gpu_kernels.py`: the usual parts of transformers and of their training, at three sizes.

A row makes a call for a number of rows, a number of columns and a dtype: a function without arguments that runs the
program once through `compiled`, and the bytes that the program must at least read and write (0: not bound by memory).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F

SIZES = {"small": (512, 512), "middle": (4096, 1024), "large": (16384, 4096)}
CLASSES = {"small": (64, 128_000), "middle": (512, 128_000), "large": (4096, 128_000)}
TENSORS = {"small": (200, 1 << 10), "middle": (200, 1 << 16), "large": (200, 1 << 20)}


class Row(NamedTuple):
    name: str
    make: Callable  # (rows, columns, dtype) -> (function, inputs, bytes)
    sizes: dict[str, tuple[int, int]] = SIZES
    backward: bool = False


ROWS: list[Row] = []


def row(name: str, sizes=None, backward: bool = False):
    def register(make):
        ROWS.append(Row(name, make, sizes or SIZES, backward))
        return make

    return register


def real(*shape, dtype, **options):
    return torch.randn(*shape, device="cuda", dtype=dtype, **options)


def size_of(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


@row("silu(a + b)")
def silu_add(rows, columns, dtype):
    a, b = real(rows, columns, dtype=dtype), real(rows, columns, dtype=dtype)
    return lambda a, b: F.silu(a + b), (a, b), 3 * size_of(a)


@row("cast")
def cast(rows, columns, dtype):
    a = real(rows, columns, dtype=dtype)
    to = torch.bfloat16 if dtype is torch.float32 else torch.float32
    return lambda a: a.to(to), (a,), size_of(a) + a.numel() * to.itemsize


@row("broadcast")
def broadcast(rows, columns, dtype):
    a, row_, column = real(rows, columns, dtype=dtype), real(columns, dtype=dtype), real(rows, 1, dtype=dtype)
    return lambda a, r, c: a * r + c, (a, row_, column), 2 * size_of(a)


@row("softmax")
def softmax(rows, columns, dtype):
    a = real(rows, columns, dtype=dtype)
    return lambda a: F.softmax(a, -1), (a,), 2 * size_of(a)


@row("layer norm")
def layer_norm(rows, columns, dtype):
    a, w, b = real(rows, columns, dtype=dtype), real(columns, dtype=dtype), real(columns, dtype=dtype)
    return lambda a, w, b: F.layer_norm(a, (columns,), w, b), (a, w, b), 2 * size_of(a)


@row("layer norm, backward", backward=True)
def layer_norm_backward(rows, columns, dtype):
    a, w, b = (real(*s, dtype=dtype, requires_grad=True) for s in ((rows, columns), (columns,), (columns,)))
    return lambda a, w, b: F.layer_norm(a, (columns,), w, b), (a, w, b), 5 * size_of(a)


@row("RMS norm")
def rms_norm(rows, columns, dtype):
    def program(a, w):
        wide = a.float()
        return w * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(a.dtype)

    a, w = real(rows, columns, dtype=dtype), real(columns, dtype=dtype)
    return program, (a, w), 2 * size_of(a)


@row("cross entropy", CLASSES)
def cross_entropy(rows, columns, dtype):
    a, target = real(rows, columns, dtype=dtype), torch.randint(0, columns, (rows,), device="cuda")
    return lambda a, t: F.cross_entropy(a, t), (a, target), size_of(a)


@row("cross entropy, backward", CLASSES, backward=True)
def cross_entropy_backward(rows, columns, dtype):
    a = real(rows, columns, dtype=dtype, requires_grad=True)
    target = torch.randint(0, columns, (rows,), device="cuda")
    return lambda a, t: F.cross_entropy(a, t), (a, target), 3 * size_of(a)


@row("sum over rows")
def sum_rows(rows, columns, dtype):
    a = real(rows, columns, dtype=dtype)
    return lambda a: a.sum(-1), (a,), size_of(a)


@row("sum over columns")
def sum_columns(rows, columns, dtype):
    a = real(rows, columns, dtype=dtype)
    return lambda a: a.sum(0), (a,), size_of(a)


@row("cumsum")
def cumsum(rows, columns, dtype):
    a = real(rows, columns, dtype=dtype)
    return lambda a: a.cumsum(-1), (a,), 2 * size_of(a)


@row("transpose-add")
def transpose_add(rows, columns, dtype):
    a, b = real(rows, columns, dtype=dtype), real(columns, rows, dtype=dtype)
    return lambda a, b: a + b.t(), (a, b), 3 * size_of(a)


@row("gather")
def gather(rows, columns, dtype):
    a, index = real(rows, columns, dtype=dtype), torch.randint(0, columns, (rows, columns), device="cuda")
    return lambda a, i: a.gather(1, i) * 2, (a, index), 2 * size_of(a) + size_of(index)


@row("embedding")
def embedding(rows, columns, dtype):
    table, index = real(32_000, columns, dtype=dtype), torch.randint(0, 32_000, (rows,), device="cuda")
    position = real(rows, columns, dtype=dtype)
    return lambda t, i, p: F.embedding(i, t) + p, (table, index, position), 3 * size_of(position)


@row("embedding, backward", backward=True)
def embedding_backward(rows, columns, dtype):
    table = real(32_000, columns, dtype=dtype, requires_grad=True)
    index = torch.randint(0, 32_000, (rows,), device="cuda")
    out = rows * columns * dtype.itemsize
    return lambda t, i: F.embedding(i, t), (table, index), 4 * out + size_of(table)


@row("dropout-add-norm")
def dropout_add_norm(rows, columns, dtype):
    a, b, w = real(rows, columns, dtype=dtype), real(rows, columns, dtype=dtype), real(columns, dtype=dtype)

    def program(a, b, w):
        return F.layer_norm(F.dropout(a, 0.1, training=True) + b, (columns,), w)

    return program, (a, b, w), 3 * size_of(a)


@row("dropout-add-norm, backward", backward=True)
def dropout_add_norm_backward(rows, columns, dtype):
    program, inputs, moved = dropout_add_norm(rows, columns, dtype)
    return program, tuple(t.requires_grad_() for t in inputs), 3 * moved


@row("AdamW, 200 tensors", TENSORS)
def adamw(count, numel, dtype):
    parameters = [real(numel, dtype=dtype, requires_grad=True) for _ in range(count)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    optimizer = torch.optim.AdamW(parameters, foreach=True)
    optimizer.step()
    return optimizer.step, (), 7 * size_of(*parameters)
