"""Operators whose number of results depends on sizes; parts that alias their input against the schema."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same_call

import cresset

COUNTED = {
    "unbind_copy": lambda x: torch.unbind_copy(x),
    "unbind_copy along another": lambda x: torch.unbind_copy(x, 1)[0] + torch.unbind_copy(x, 1)[-1],
    "split_copy": lambda x: torch.split_copy(x, 2),
    "split_copy by a size": lambda x: torch.split_copy(x, x.shape[0] // 2 + 1, 1),
    "split_with_sizes_copy": lambda x: torch.split_with_sizes_copy(x, [1, x.shape[0] - 1]),
    "unsafe_split": lambda x: [part * 2 for part in torch.unsafe_split(x, 2)],
    "unsafe_chunk": lambda x: torch.unsafe_chunk(x, 3, 1),
    "unsafe_split_with_sizes": lambda x: torch.unsafe_split_with_sizes(x, [1, x.shape[0] - 1]),
    "unbind": lambda x: [row.sin() for row in x.unbind()],
    "split": lambda x: x.split(2),
    "chunk": lambda x: x.chunk(2, 1),
    "tensor_split": lambda x: x.tensor_split(3),
    "hsplit": lambda x: x.hsplit([1, 2]),
    "vsplit": lambda x: torch.vsplit(x, [1]),
    "nonzero as tuple": lambda x: torch.nonzero(x > 0, as_tuple=True),
    "where": lambda x: torch.where(x > 0),
    "meshgrid": lambda x: torch.meshgrid(*x.unbind(), indexing="ij"),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(*x.unbind(), x[:1]),
    "gradient": lambda x: torch.gradient(x),
    "unravel_index": lambda x: torch.unravel_index(torch.arange(3), tuple(x.shape)),
    "stack of unbind_copy": lambda x: torch.stack(torch.unbind_copy(x, 1)),
    "atleast_1d": lambda x: torch.atleast_1d(*torch.unbind_copy(x)),
    "foreach": lambda x: torch._foreach_mul(list(torch.unbind_copy(x)), 2.0),
    "aminmax": lambda x: torch.aminmax(x),
    "histogramdd": lambda x: torch.histogramdd(x.t().contiguous(), [2] * x.shape[0]),
}


@pytest.mark.parametrize("dynamic", [None, "auto", False])
@pytest.mark.parametrize("name", COUNTED)
@torch.no_grad()
def test_as_many_as_a_size_says(name, dynamic):
    compiled = cresset.compile(COUNTED[name], dynamic=dynamic)
    for sizes in ((3, 4), (4, 4), (2, 5), (3, 6), (5, 3), (2, 4), (3, 4)):
        assert_same_call(COUNTED[name], compiled, torch.randn(sizes))


@pytest.mark.parametrize("name", ["unbind_copy", "split_copy", "split_with_sizes_copy", "unsafe_split", "unsafe_chunk"])
def test_gradients_of_parts(name):
    compiled = cresset.compile(lambda x: sum(part.sin().sum() * (i + 1) for i, part in enumerate(COUNTED[name](x))))
    for sizes in ((3, 4), (4, 4), (2, 5)):
        given, found = torch.randn(sizes), []
        for call in (compiled.__wrapped__, compiled):
            x = given.clone().requires_grad_()
            call(x).backward()
            found.append(x.grad)
        torch.testing.assert_close(found[1], found[0])


@torch.library.custom_op("cresset_parts::rows", mutates_args=())
def rows(x: torch.Tensor) -> list[torch.Tensor]:
    return [row.clone() for row in x]


@rows.register_fake
def _(x):
    return [x.new_empty(x.shape[1:]) for _ in range(x.shape[0])]


@torch.no_grad()
def test_a_custom_operator_that_gives_a_tensor_a_row():
    f = lambda x: [row * 2 for row in rows(x + 1)]  # noqa: E731
    compiled = cresset.compile(f)
    for sizes in ((3, 4), (4, 4), (2, 5), (1, 4), (3, 7)):
        assert_same_call(f, compiled, torch.randn(sizes))


WRITES = {
    "sigmoid_": lambda part: part.sigmoid_(),
    "fill_": lambda part: part.fill_(3),
    "assigned": lambda part: part.__setitem__(0, 7.0),
    "added to": lambda part: part.add_(part),
    "transposed": lambda part: part.t().mul_(2),
    "copied into": lambda part: part.copy_(torch.ones_like(part)),
}
PARTS = {
    "unsafe_split": lambda x: torch.unsafe_split(x, 2, 1),
    "unsafe_chunk": lambda x: torch.unsafe_chunk(x, 2, 1),
    "unsafe_chunk rows": lambda x: torch.unsafe_chunk(x, 2),
    "unsafe_split_with_sizes": lambda x: torch.unsafe_split_with_sizes(x, [1, x.shape[1] - 1], 1),
    "unsafe_view": lambda x: [torch.ops.aten._unsafe_view(x, [x.shape[1], x.shape[0]])],
    "lift": lambda x: [torch.ops.aten.lift(x)],
    "split": lambda x: x.split(2, 1),
    "chunk": lambda x: x.chunk(2, 1),
    "split_copy": lambda x: torch.split_copy(x, 2, 1),
    "of what was computed": lambda x: torch.unsafe_chunk(x * 2, 2, 1),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("parts", PARTS)
@torch.no_grad()
def test_writes_to_parts(parts, write):
    def f(x):
        found = PARTS[parts](x)
        WRITES[write](found[0])
        return x * 1, list(found)

    compiled = cresset.compile(f)
    for sizes in ((2, 4), (3, 4), (2, 6), (4, 4)):
        assert_same_call(f, compiled, torch.randn(sizes))


@pytest.mark.parametrize("parts", PARTS)
@torch.no_grad()
def test_writes_to_what_parts_are_of(parts):
    def f(x):
        found = PARTS[parts](x)
        x.add_(1)
        return [part * 1 for part in found]

    compiled = cresset.compile(f)
    for sizes in ((2, 4), (3, 4), (2, 6)):
        assert_same_call(f, compiled, torch.randn(sizes))
