"""Operators that read at indices from tensors, as kernels: values, fusion, and errors of indices out of range."""

from __future__ import annotations

import cuda_device
import pytest
import torch
from test_programs import assert_same, copied, cuda
from torch import nn
from torch.nn import functional as F

import cresset

simulated = cuda_device.use()
CALLS = 9


def integers(*values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype, device="cuda")


def launches(call):
    before = simulated.gpu_counters()["launches"]
    call()
    return simulated.gpu_counters()["launches"] - before


def rotated(x, cosines, sines, i):
    cosines, sines = cosines[i][:, None], sines[i][:, None]
    a, b = x.chunk(2, -1)
    return x * cosines + torch.cat((-b, a), -1) * sines


def cross_entropy(x, i):
    return -x.log_softmax(-1).gather(1, i[:, None]).squeeze(1).mean()


# name: (program, arguments for n indices below 9)
PROGRAMS = {
    "embedding": (lambda w, i: F.embedding(i, w), lambda i: (cuda(9, 8), i)),
    "matrix_of_indices": (lambda w, i: F.embedding(i.view(-1, 1).expand(-1, 3), w) * 2, lambda i: (cuda(9, 8), i)),
    "embedding_of_rows": (lambda w, i: F.embedding(i[0], w), lambda i: (cuda(9, 8), i)),
    "embedding_at_one": (lambda w, i: F.embedding(i.sum() * 0, w), lambda i: (cuda(9, 8), i)),
    "padded": (lambda w, i: F.embedding(i, w, padding_idx=2), lambda i: (cuda(9, 8), i)),
    "transposed_table": (lambda w, i: F.embedding(i, w.t()), lambda i: (cuda(8, 9), i)),
    "table_with_gaps": (lambda w, i: F.embedding(i, w[::2, 1::3]), lambda i: (cuda(18, 8), i)),
    "computed_table": (lambda w, i: F.embedding(i, w.sin() + 1), lambda i: (cuda(9, 8), i)),
    "concatenated_table": (lambda w, i: F.embedding(i, torch.cat((w, w + 1))), lambda i: (cuda(5, 8), i)),
    "computed_indices": (lambda w, i: F.embedding((i * 5 + 2) % 9, w) + 1, lambda i: (cuda(9, 8), i)),
    "concatenated_indices": (lambda w, i: F.embedding(torch.cat((i, 8 - i)), w), lambda i: (cuda(9, 8), i)),
    "greatest": (lambda w, i: F.embedding(w.argmax(0), w), lambda i: (cuda(9, 8), i)),
    "norm": (lambda w, i: F.layer_norm(F.embedding(i, w), (8,)), lambda i: (cuda(9, 8), i)),
    "sum": (lambda w, i: F.embedding(i, w).sum(), lambda i: (cuda(9, 8), i)),
    "sum_of_rows": (lambda w, i: F.embedding(i, w).sum(0), lambda i: (cuda(9, 8), i)),
    "two_readers": (lambda w, i: (F.embedding(i, w), F.embedding(i, w).exp().sum(1)), lambda i: (cuda(9, 8), i)),
    "a_part": (lambda w, i: F.embedding(i, w)[1:, ::2].exp(), lambda i: (cuda(9, 8), i)),
    "columns_first": (lambda w, i: F.embedding(i, w).t().contiguous() + 1, lambda i: (cuda(9, 8), i)),
    "concatenated": (lambda w, i: torch.cat((F.embedding(i, w), F.embedding(i, w + 1)), 1), lambda i: (cuda(9, 8), i)),
    "padded_result": (lambda w, i: F.pad(F.embedding(i, w), (1, 2)), lambda i: (cuda(9, 8), i)),
    "nested": (lambda w, j, i: F.embedding(j[i], w), lambda i: (cuda(9, 8), integers(*range(9)), i)),
    "index_select": (lambda w, i: w.index_select(0, i) + 1, lambda i: (cuda(9, 8), i)),
    "index_select_of_columns": (lambda w, i: w.index_select(-1, i) + 1, lambda i: (cuda(4, 9), i)),
    "index_select_at_one": (lambda w, i: w.index_select(1, i[-1]), lambda i: (cuda(4, 9), i)),
    "gather": (lambda w, i: w.gather(1, i[:, None]), lambda i: (cuda(16, 9), i)),
    "gather_of_rows": (lambda w, i: w.gather(0, i[:, None].expand(-1, 2)) * 2, lambda i: (cuda(9, 4), i)),
    "gather_in_a_vector": (lambda w, i: w.gather(0, i), lambda i: (cuda(9), i)),
    "take_along_dim": (lambda w, i: torch.take_along_dim(w, i[:, None], 0), lambda i: (cuda(9, 4), i)),
    "cross_entropy": (cross_entropy, lambda i: (cuda(len(i), 9), i)),
    "index": (lambda w, i: w[i], lambda i: (cuda(9, 8), i)),
    "index_from_the_end": (lambda w, i: w[-i - 1] + w[i - 9], lambda i: (cuda(9, 8), i)),
    "index_of_columns": (lambda w, i: w[:, i].exp(), lambda i: (cuda(4, 9), i)),
    "two_indices": (lambda w, i: w[i, 8 - i], lambda i: (cuda(9, 9), i)),
    "outer_indices": (lambda w, i: w[i[:, None], i[None]] + 1, lambda i: (cuda(9, 9), i)),
    "distant_indices": (lambda w, i: w[i, :, 8 - i], lambda i: (cuda(9, 3, 9), i)),
    "index_at_one": (lambda w, i: w[i[0]], lambda i: (cuda(9, 8), i)),
    "element": (lambda w, i: w[i[0], i[-1]], lambda i: (cuda(9, 9), i)),
    "rotary": (rotated, lambda i: (cuda(len(i), 2, 8), cuda(9, 8), cuda(9, 8), i)),
    "positions": (lambda w, i: F.embedding(torch.arange(len(i), device="cuda"), w), lambda i: (cuda(9, 8), i)),
    "masked": (lambda w, i: torch.where(i[:, None] > 3, F.embedding(i, w), 0.0), lambda i: (cuda(9, 8), i)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, dtype):
    if name == "take_along_dim" and dtype == torch.int32:
        pytest.skip("eager mode takes int64 alone")
    program, arguments = PROGRAMS[name]
    compiled = cresset.compile(program)
    for values in ([3, 0, 8, 8], [1], [7, 2, 5, 0, 1, 6], [4, 4, 0, 2]):
        given = arguments(integers(*values, dtype=dtype))
        beside = copied(given)
        assert_same(compiled(*given), program(*beside))
        assert_same(given, beside)
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.bool])
def test_dtypes_of_tables(dtype):
    w = (cuda(9, 16) * 3).to(dtype)
    compiled = cresset.compile(lambda w, i: (F.embedding(i, w), w[i, -i], w.gather(1, i[None].expand(9, -1))))
    for values in ([3, 0, 8], [1, 8]):
        i = integers(*values)
        assert_same(compiled(w, i), (F.embedding(i, w), w[i, -i], w.gather(1, i[None].expand(9, -1))))


@pytest.mark.parametrize("rows", [0, 9])
@pytest.mark.parametrize("program", [
    lambda w, i: F.embedding(i, w) + 1, lambda w, i: w[i] + 1, lambda w, i: w.index_select(0, i) + 1,
    lambda w, i: w.gather(0, i[:, None]) + 1, lambda w, i: w[:, :0].index_select(0, i),
])  # fmt: skip
def test_nothing_to_read(program, rows):
    compiled = cresset.compile(program)
    w, i = cuda(rows, 4), integers()
    for _ in range(3):
        assert_same(compiled(w, i), program(w, i))


def test_tables_of_other_sizes():
    def program(w, i):
        return w[i].exp() + F.embedding(i, w)

    compiled = cresset.compile(program)
    for rows, columns in ((9, 4), (5, 6), (12, 8), (9, 4)):
        w, i = cuda(rows, columns), torch.arange(columns, device="cuda") % rows
        assert_same(compiled(w, i), program(w, i))
        if simulated is not None:  # a GPU's report may come with a later call
            with pytest.raises(IndexError, match=f"dimension 0 with size {rows}|in self"):
                compiled(w, i + rows)
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(9, 8, padding_idx=1), nn.Embedding(6, 8)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 9)

    def forward(self, i, j):
        x = self.words(i) + self.places(torch.arange(i.shape[1], device=i.device)) + self.words.weight[j]
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), i.flatten())


def test_gradients():
    torch.manual_seed(0)
    eager = Lookup().cuda()
    compiled = cresset.compile(eager)
    for n in (2, 5, 3):
        i, j = torch.randint(0, 9, (2, n), device="cuda"), torch.randint(-9, 9, (2, n), device="cuda")
        found = []
        for model in (compiled, eager):
            eager.zero_grad()
            loss = model(i, j)
            loss.backward()
            found.append([loss, *(p.grad.clone() for p in eager.parameters())])
        assert_same(found[0], found[1], strides=False)
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]


@pytest.mark.skipif(simulated is None, reason="counts of launches, by the simulator")
@pytest.mark.parametrize("name", [
    "embedding", "transposed_table", "computed_table", "computed_indices", "norm", "sum", "a_part", "padded_result",
    "nested", "index_select_of_columns", "gather_of_rows", "cross_entropy", "index_from_the_end", "two_indices", "rotary",
    "positions", "masked",
])  # fmt: skip
def test_kernels(name):
    program, arguments = PROGRAMS[name]
    compiled = cresset.compile(program)
    for _ in range(2):
        given = arguments(integers(3, 0, 8, 8, 1, 2, 7))
        count = launches(lambda given=given: compiled(*given))
    assert count == {"a_part": 2, "cross_entropy": 2, "padded_result": 2, "rotary": 2}.get(name, 1)


# Operators that read outside: the program, the exception of eager mode on the CPU.
OUTSIDE = {
    "embedding": (lambda w, i: F.embedding(i, w) * 2, IndexError, "index out of range in self"),
    "index_select": (lambda w, i: w.index_select(0, i) * 2, IndexError, "index out of range in self"),
    "gather": (lambda w, i: w.gather(0, i[:, None]) * 2, RuntimeError, "index {} is out of bounds for dimension 0 with size 9"),
    "index": (lambda w, i: w[i] * 2, IndexError, "index {} is out of bounds for dimension 0 with size 9"),
    "columns": (lambda w, i: w.t()[:, i] * 2, IndexError, "index {} is out of bounds for dimension 0 with size 9"),
    "a_part": (lambda w, i: w[i][:1, 0].exp(), IndexError, "index {} is out of bounds for dimension 0 with size 9"),
    "sum": (lambda w, i: w[i].sum(), IndexError, "index {} is out of bounds for dimension 0 with size 9"),
}  # fmt: skip


@pytest.mark.skipif(simulated is None, reason="reports arrive within the call on the simulator alone")
@pytest.mark.parametrize("options", [{}, {"cuda_graphs": "always"}])
@pytest.mark.parametrize("bad", [9, -10, 1 << 40, torch.iinfo(torch.int64).min])
@pytest.mark.parametrize("name", OUTSIDE)
def test_outside(name, bad, options):
    program, error, text = OUTSIDE[name]
    compiled = cresset.compile(program, options=options)
    w, good, wrong = cuda(9, 6), integers(0, 8, 3), integers(2, bad, 1)
    text = text.format(max(bad, torch.iinfo(torch.int64).min + 1))

    def fails(call, w, i):
        with pytest.raises(error) as caught:
            call(w, i)
        assert type(caught.value) is error
        return str(caught.value)

    for _ in range(CALLS):
        assert_same(compiled(w, good), program(w, good))
    assert text in fails(compiled, w, wrong)
    if bad != torch.iinfo(torch.int64).min and name != "columns":
        assert fails(program, w.cpu(), wrong.cpu()).startswith(text)
    for _ in range(2):
        assert_same(compiled(w, good), program(w, good))
    first = cresset.compile(program, options=options)
    assert text in fails(first, w, wrong)
    assert_same(first(w, good), program(w, good))


@pytest.mark.skipif(simulated is None, reason="failures of the device, by the simulator")
def test_a_later_call_raises():
    def program(w, i):
        return (F.embedding(i, w).exp() @ w.t()).tanh()

    compiled, other = cresset.compile(program), cresset.compile(lambda x: x + 1)
    w, good = cuda(9, 6), integers(0, 8, 3)
    for _ in range(2):
        assert_same(compiled(w, good), program(w, good))
        assert_same(other(w), w + 1)
    simulated.fail_launch(2)  # after the kernel with the report
    with pytest.raises(RuntimeError):
        compiled(w, integers(0, 9, 3))
    simulated.fail_launch(0)
    with pytest.raises(IndexError, match="index out of range in self"):
        other(w)
    for _ in range(2):
        assert_same(other(w), w + 1)
        assert_same(compiled(w, good), program(w, good))


def test_writes_to_inputs_are_left_to_aten():
    def program(w, i, x):
        x += F.embedding(i, w)
        return x.sum()

    compiled = cresset.compile(program)
    w, x = cuda(9, 6), cuda(3, 6)
    y = x.clone()
    for values in ([0, 8, 3], [1, 2, 2]):
        assert_same(compiled(w, integers(*values), x), program(w, integers(*values), y))
        assert_same(x, y)
    if simulated is not None:
        before = x.clone()
        with pytest.raises(IndexError):
            compiled(w, integers(0, 9, 3), x)
        assert_same(x, before)


@pytest.mark.skipif(simulated is None, reason="reports arrive within the call on the simulator alone")
def test_errors_that_the_program_catches():
    def program(w, i):
        try:
            F.embedding(i, w)
        except IndexError:
            return w - 1
        return w + 1

    compiled = cresset.compile(program)
    w = cuda(9, 6)
    for _ in range(3):
        assert_same(compiled(w, integers(0, 8)), w + 1)
    with pytest.raises(IndexError):  # the program has gone on by then
        compiled(w, integers(0, 9))
    assert_same(compiled(w, integers(0, 8)), w + 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("options", [{}, {"padding_idx": 3}, {"scale_grad_by_freq": True}], ids=str)
def test_gradient_of_a_table_of_many_indices(dtype, options):
    """So many that ATen would sort them: rows are added where they came from."""
    indices = torch.randint(0, 40, (5, 700), generator=torch.Generator().manual_seed(0)).cuda()

    def program(w, i):
        return F.embedding(i, w, **options)

    def gradient(call, table, i):
        table = table.clone().requires_grad_()
        result = call(table, i)
        ramp = torch.linspace(-1, 1, result.numel(), device="cuda").to(dtype).to(result.dtype)
        return torch.autograd.grad(result, table, ramp.view_as(result))[0]

    w = cuda(40, 24).to(dtype)
    compiled = cresset.compile(program)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype.itemsize >= 4 else {}
    for i in (indices, indices.to(torch.int32), indices.t()):
        got, exact = gradient(compiled, w, i), gradient(program, w.double(), i)
        assert got.dtype == dtype and got.stride() == exact.stride()
        by_aten = "scale_grad_by_freq" in options or not i.is_contiguous()
        if dtype.itemsize >= 4 or not by_aten:  # the simulator's ATen sums in 16 bits
            torch.testing.assert_close(got, exact.to(dtype), **tolerance)
    torch.use_deterministic_algorithms(True, warn_only=True)  # ATen's order of sums, which is no matter of chance
    try:
        fresh = cresset.compile(program)
        assert torch.equal(gradient(fresh, w, indices), gradient(program, w, indices))
    finally:
        torch.use_deterministic_algorithms(False)
