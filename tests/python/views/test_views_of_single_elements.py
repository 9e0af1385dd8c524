"""Views and copies where a size is 0 or 1, or an element stands for a tensor: strides, memory and gradients."""

from __future__ import annotations

import pytest
import torch

import cresset

# Calls with several arguments in turn: a single program serves them.
STRIDES = {
    "copy of one element": (lambda x: x[:1, 0].clone(), "float"),
    "copy of a column": (lambda x: x[:, -1].clone(), "float"),
    "alike": (lambda x: torch.empty_like(x[:, -1]).fill_(1), "float"),
    "alike, copied into": (lambda x: torch.zeros_like(x[:, -1]).copy_(x[:, -1]), "float"),
    "converted": (lambda x: x[:, -1].to(torch.float64), "float"),
    "filled at indices": (lambda x: x[:, -1].index_fill(0, torch.tensor([0])[: len(x)], 2), "float"),
    "number beside complex numbers": (lambda x: x.unfold(0, 1, 1) + 3 if len(x) else x, "complex"),
    "factor of complex numbers": (lambda x: x.unfold(0, 1, 1) * 2.5 if len(x) else x, "complex"),
    "sine of complex numbers": (lambda x: x[None].transpose(0, -1).sin(), "complex"),
    "stack of complex numbers": (lambda x: torch.stack([x, x]).permute(2, 1, 0), "complex"),
    "contiguous copy of a view": (lambda x: x[:, :1].flatten().contiguous(), "float"),
    "contiguous copy of a complex view": (lambda x: x[-1:, ::2].flatten().contiguous(), "complex"),
    "parts of complex numbers": (lambda x: torch.view_as_real(x[:1, ::2]), "complex"),
    "parts of conjugates": (lambda x: x[:1, ::2].conj().imag, "complex"),
    "numbers of half the size": (lambda x: x.unfold(0, 1, 1).mT.view(torch.float32) if len(x) else x, "complex"),
    "integers": (lambda x: x[:1].view(torch.int32)[:, :1], "float"),
    "stack of diagonals": (lambda x: torch.stack([x[:, None].diagonal()] * 2).T, "float"),
    "stack of complex diagonals": (lambda x: torch.stack([x[:, None].diagonal()] * 2).T, "complex"),
    "transposed sum": (lambda x: (x.sum(0, keepdim=True) + x[:0]).mT, "float"),
    "expanded rows that are none": (lambda x: (x[0] if len(x) else x.sum(0))[:0].sin().expand(2, -1), "float"),
    "contiguous copy of a format": (
        lambda x: x[None, None].mT.to(memory_format=torch.channels_last).to(memory_format=torch.contiguous_format),
        "float",
    ),
    "pairs of numbers": (lambda x: torch.view_as_complex(torch.stack([x, x], -1)[:1]), "float"),
    "turned column": (lambda x: x[:, -1].flip(0), "float"),
    "absolute values of complex columns": (lambda x: x[:, -1:].abs(), "complex"),
    "column with a written part": (lambda x: x[:, -1].slice_scatter(x[:1, 0], 0, 0, 1) if len(x) else x, "float"),
}
SIZES = [(3, 4), (1, 4), (4, 1), (1, 1), (2, 5), (0, 4)]


def seen(f, x):
    y = f(x)
    shares = y.numel() > 0 and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return tuple(y.shape), y.stride(), shares, y.tolist()


@pytest.mark.parametrize("name", STRIDES)
@torch.no_grad()
def test_strides(name):
    f, kind = STRIDES[name]
    dtype = {"float": torch.float32, "complex": torch.complex64}[kind]
    for first in range(len(SIZES)):
        cresset.reset()
        compiled = cresset.compile(f)
        for sizes in SIZES[first:] + SIZES[:first]:
            if 0 in sizes and ("[-1:" in name or "view" in name):
                continue
            x = torch.arange(float(torch.Size(sizes).numel())).reshape(sizes).to(dtype)
            assert seen(compiled, x) == seen(f, x), sizes


NUMBERS = {
    "strides of a computed tensor": lambda x: x.tril().stride(),
    "a stride of a computed tensor": lambda x: (x + 1).stride(0),
    "strides of a flattened column": lambda x: x[:, : x.shape[0]].flatten().stride(),
    "strides of joined dimensions": lambda x: x[None].permute(2, 0, 1).flatten(0, 1).stride(),
    "a stride of joined dimensions": lambda x: x[None].permute(2, 0, 1).flatten(0, 1).stride(dim=-1),
    "contiguous": lambda x: x[None].permute(2, 0, 1).flatten(0, 1).is_contiguous(),
}


@pytest.mark.parametrize("name", NUMBERS)
@torch.no_grad()
def test_numbers_of_layouts(name):
    f = NUMBERS[name]
    for first in range(len(SIZES)):
        cresset.reset()
        compiled = cresset.compile(f)
        for sizes in SIZES[first:] + SIZES[:first]:
            whole = torch.arange(float(torch.Size(sizes).numel()))
            for x in (
                whole.reshape(sizes),
                whole.reshape(sizes[::-1]).mT,
                torch.stack([whole] * 2, 1)[:, 0].view(sizes),
            ):
                assert compiled(x) == f(x), (sizes, x.stride())


VIEWS = ["x[0]", "x.view(-1)", "x.reshape(x.shape)", "x.mT", "x.expand(2, *x.shape)", "x.split(1)[0]", "x.detach()"]


@pytest.mark.parametrize("breaks", [False, True], ids=["whole", "segments"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_of_a_leaf_that_is_a_view(view, breaks):
    """A view of a tensor without gradients may be a leaf. It is not the base of its views, which lead to it."""
    view_of = eval("lambda x: " + view)

    def f(x):
        v = view_of(x)
        if breaks:
            print(end="")
        return v, v * 2, v.requires_grad

    compiled = cresset.compile(f)
    for _ in range(3):
        found = []
        for g in (f, compiled):
            leaf = torch.arange(6.0).reshape(2, 3).requires_grad_()
            v, w, wants = g(leaf)
            grad = torch.autograd.grad((v * w).sum(), leaf)[0].tolist() if v.requires_grad else None
            found.append((v.requires_grad, v.is_leaf, w.requires_grad, wants, grad))
        assert found[1] == found[0]


EMPTY = {
    "sum of a row": lambda x: x.mT[-1].sum(),
    "sum of a repeated row": lambda x: (x[:, :1].expand(-1, 3) * 2).sum(0),
    "maximum beside a row": lambda x: x.sum(0) + x.mT[0].sum(),
    "written diagonal of a part": lambda x: x.clone()[1::2].diagonal().fill_(4),
    "written part of a part": lambda x: x.clone()[1:][:, 1:].mul_(2),
}


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("name", EMPTY)
@torch.no_grad()
def test_no_elements(name, repeated):
    """Nothing is read or written where a tensor without elements lies."""
    compiled = cresset.compile(EMPTY[name])
    for rows in (4, 5, 0):
        x = torch.ones(1, 3).expand(rows, 3) if repeated else torch.ones(rows, 3)
        assert torch.equal(compiled(x), EMPTY[name](x))


def reshaped(x):
    return x[1::2].reshape(x[1::2].shape[::-1])


WRITES = {
    "row of repeated elements": (lambda x: x[1].contiguous().add_(1), (1, 4, 3), lambda x: x.expand(3, 4, 3)),
    "rows of repeated elements": (
        lambda x: x[1:2].squeeze(0).contiguous().add_(1),
        (1, 4, 3),
        lambda x: x.expand(3, 4, 3),
    ),
    "strided view in a format": (
        lambda x: (
            x[None, ..., None]
            .as_strided((1, 2, 1, 1), (2, 1, 1, 1))
            .contiguous(memory_format=torch.channels_last)
            .add_(1)
        ),
        (2, 1),
        lambda x: x,
    ),
    "half numbers of a reshaped row": (lambda x: reshaped(x).view(torch.float32).sub_(0.5), (2, 3), lambda x: x),
    "copy of half numbers": (
        lambda x: x.view(torch.float32).unflatten(0, (1, -1)).clone().expand(1, 1, -1).mul_(2),
        (3,),
        lambda x: x,
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_reach_memory(name):
    f, sizes, view = WRITES[name]

    def written(g):
        x = torch.arange(1.0, 1 + torch.Size(sizes).numel(), dtype=torch.float64).reshape(sizes)
        g(view(x))
        return x.tolist()

    compiled = cresset.compile(f)
    for _ in range(2):
        assert written(compiled) == written(f)


REFUSED = {
    "scattered onto itself": lambda x: x.scatter_reduce_(0, torch.zeros_like(x, dtype=torch.int64), x, "sum"),
    "added to itself at indices": lambda x: x.index_add_(0, torch.tensor([0, 1]), x),
    "absolute values of complex numbers": lambda x: x.to(torch.complex64).abs_(),
    "put at more indices than dimensions": lambda x: x[0, 0].index_put_((torch.tensor([0]),), x[1, 1]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_writes(name):
    f = REFUSED[name]
    compiled = cresset.compile(f)
    for g in (f, compiled, compiled):
        with pytest.raises(
            (RuntimeError, IndexError), match=r"single memory location|not supported for complex|too many indices"
        ):
            g(torch.arange(6.0).reshape(2, 3))
