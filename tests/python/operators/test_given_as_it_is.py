"""Where eager mode returns the argument itself, or a view of it, compiled code does: identity, memory, requires_grad,
in and out of regions without gradients, and across a graph break; for arguments and for computed values."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F  # noqa: F401
from compare import outcome
from test_exact_strides import copy, odd

import cresset

OPERATORS = """
    x.contiguous(); x.contiguous(memory_format=torch.channels_last); x.to(memory_format=torch.channels_last); x.to(memory_format=torch.contiguous_format)
    x.reshape(x.shape); x.flatten(); x.ravel(); x.reshape(-1); x.to(torch.float32); x.view(x.shape); x.expand(x.shape); x.mT; x[...]; x.squeeze()
    x.unsqueeze(0); x.view_as(x); x.float(); x.type_as(x); x.real; x.conj(); x.resolve_conj(); x.resolve_neg(); x.positive(); x.expand_as(x)
    torch.broadcast_tensors(x, x)[0]; torch.atleast_1d(x); torch.atleast_2d(x); torch.atleast_3d(x); x.cpu(); x.to("cpu"); x.to(x); x.sum_to_size(x.shape)
    F.dropout(x, 0.5, False); x.narrow(0, 0, len(x)); x.clone(); x * 1; x.movedim(0, 0); x.permute(*range(x.dim())); x.swapaxes(0, 0); x.flatten(0, 0)
    x.unflatten(0, (x.shape[0],)); torch.squeeze(x[None], 0); x.chunk(1)[0]; x.split(len(x))[0]; torch.conj_physical(x); torch.tensor_split(x, 1)[0]
    torch.unsafe_chunk(x, 1)[0]; x.to(x.device, copy=False); x.contiguous().view(-1); x[:, :1].reshape(-1); x[:, :1].flatten(); x[:, :1].ravel()
    x[:1].expand(3, *x.shape[1:]).reshape(3, -1); x[:, :1].expand(-1, 3, *x.shape[2:]).flatten(); x[:1].expand(1, *x.shape[1:]).reshape(-1); x.mT.flatten()
    x.mT.reshape(x.shape); x[:1].mT.reshape(-1); x[:1, :1].reshape(-1); x.unsqueeze(1).flatten(0, 1); x[::2].reshape(-1, *x.shape[1:]); x.expand(1, *x.shape).flatten(0, 1)
    x.to(torch.float32, memory_format=torch.channels_last); x.contiguous().contiguous(); x.reshape(1, *x.shape).reshape(x.shape); x.T if x.dim() == 2 else x.mT
    x.unsafe_split(len(x))[0]; torch.ops.aten.lift(x); torch.reshape(x, (-1,)).view(x.shape); x.flatten().unflatten(0, x.shape); x.transpose(0, 1).contiguous()
    x.transpose(0, 1).flatten(0, 1); x.new_tensor(0.0) if False else x.contiguous(); x.moveaxis(0, 0); x.adjoint(); x.diagonal(dim1=-2, dim2=-1); x.unbind()[0]; x.hsplit(1)[0]
"""
NAMES = sorted({row.strip() for row in OPERATORS.replace("\n", ";").split(";") if row.strip()})
SIZES = [(2, 3), (1, 3), (3, 1), (1, 1), (2, 3, 4, 5), (2, 1, 4, 5), (1, 3, 4, 5), (1, 3, 1, 1), (2, 3, 1, 1), (4, 2)]


def layouts():
    for sizes in SIZES:
        x = torch.arange(torch.Size(sizes).numel(), dtype=torch.float32).reshape(sizes)
        yield x
        yield x.mT.contiguous().mT
        if len(sizes) == 4:
            yield x.contiguous(memory_format=torch.channels_last)
        if 1 in sizes:
            yield odd(x, 5)


def told(value, leaf):
    if not isinstance(value, torch.Tensor):
        return value
    shares = value.untyped_storage().data_ptr() == leaf.untyped_storage().data_ptr()
    lies = (tuple(value.shape), value.stride(), value.storage_offset() if shares else None)
    return lies, shares, value is leaf, value.requires_grad, value.is_leaf, value.grad_fn is None


def programs(name):
    op = eval("lambda x: " + name, globals())

    def plain(x):
        y = op(x)
        return y, y * 2

    def without_gradients(x):
        with torch.no_grad():
            y = op(x)
            z = y * 2
        return y, z, y.requires_grad

    def across_a_break(x):
        y = op(x)
        print(end="")
        return y, y.requires_grad, y * 2

    def across_a_break_without_gradients(x):
        with torch.no_grad():
            y = op(x)
            print(end="")
            z = y * 2
        return y, z, y.requires_grad, y.is_leaf

    def of_what_was_computed(x):
        h = x * 3
        y = op(h)
        return h, y, h.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()

    return plain, without_gradients, across_a_break, across_a_break_without_gradients, of_what_was_computed


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_given_as_it_is(name, wants):
    for f in programs(name):
        cresset.reset()
        compiled = cresset.compile(f)
        for x in layouts():
            found = []
            for call in (f, compiled):
                leaf = copy(x).requires_grad_(wants)
                result, raised = outcome(call, (leaf,), {})
                found.append((type(raised), str(raised)) if raised else [told(v, leaf) for v in result])
            assert found[1] == found[0], (f.__name__, tuple(x.shape), x.stride())


WRITES = ["y.add_(1)", "x.add_(1)", "y.mul_(x.sum())", "y[..., :1].fill_(7)", "x[:1].neg_()"]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_writes_to_what_is_given(name, write):
    op, code = eval("lambda x: " + name, globals()), compile(write, "write", "exec")

    def f(x):
        y = op(x)
        exec(code, {"x": x, "y": y})
        return x * 1, y * 1, y

    def computed(x):
        h = x * 3
        y = op(h)
        exec(code, {"x": h, "y": y})
        return h, y, x * 1

    for g in (f, computed):
        cresset.reset()
        compiled = cresset.compile(g)
        for x in layouts():
            theirs, ours = copy(x), copy(x)
            expected, wanted = outcome(g, (theirs,), {})
            got, raised = outcome(compiled, (ours,), {})
            where = (g.__name__, tuple(x.shape), x.stride())
            assert (type(raised), str(raised)) == (type(wanted), str(wanted)), where
            assert torch.equal(ours, theirs), where
            for mine, its in itertools.zip_longest(got or (), expected or ()):
                assert torch.equal(mine, its) and mine.stride() == its.stride(), where
