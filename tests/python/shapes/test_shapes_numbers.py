"""Numbers read from tensors: symbols under fullgraph=True and options={"capture_scalar_outputs": True}."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same_call

import cresset

FRONT_ENDS = ["trace", "evaluate"]


@pytest.fixture(params=FRONT_ENDS)
def symbolic(request):
    def compiled(function, **settings):
        options = {"capture_scalar_outputs": True, "frontend": request.param, **settings.pop("options", {})}
        return cresset.compile(function, options=options, **settings)

    compiled.frontend = request.param
    return compiled


def one_graph():
    stats = cresset.stats()
    assert stats["graphs"] == 1, stats["recompiles"]
    assert stats["graph_break_reasons"] == []


def test_a_number_read_from_data_is_a_size(symbolic):
    def function(x, n):
        k = n.item()
        return torch.cat([x, torch.zeros(k)]) + k

    compiled = symbolic(function)
    for k in (3, 1, 0, 7):
        assert_same_call(function, compiled, torch.randn(4), torch.tensor(k))
    one_graph()
    assert_same_call(function, compiled, torch.randn(4), torch.tensor(-1))


def test_bad_sizes_raise_at_the_first_call_too(symbolic):
    def function(x, n):
        return x + torch.zeros(n.item())

    assert_same_call(function, symbolic(function), torch.randn(4), torch.tensor(-1))


def test_fullgraph_asks_for_symbols(symbolic):
    def function(x, n):
        return x.repeat(n.item())

    compiled = cresset.compile(function, fullgraph=True, options={"frontend": symbolic.frontend})
    for k in (2, 1, 5):
        assert_same_call(function, compiled, torch.randn(3), torch.tensor(k))
    one_graph()


@pytest.mark.parametrize("given", [False, True])
def test_without_the_option_a_piece_ends(given):
    """No graph break if the number is from before the call (docs/guards.md)."""

    def function(x, n):
        n = n if given else n + x.isnan().sum()
        return torch.cat([x, torch.zeros(n.item())])

    compiled = cresset.compile(function, options={"frontend": "evaluate"})
    for k in (2, 3, 5):
        assert_same_call(function, compiled, torch.randn(3), torch.tensor(k))
    assert cresset.stats()["graph_breaks"] == (0 if given else 1)


def test_numbers_are_returned_as_numbers(symbolic):
    def function(n):
        k = n.item()
        return k, k * 2 + 1, [k], n.tolist()

    compiled = symbolic(function)
    for k in (3, -1, 2**40):
        result = compiled(torch.tensor(k))
        assert result == (k, 2 * k + 1, [k], k)
        assert type(result[0]) is int
    one_graph()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_integers_of_every_width(symbolic, dtype):
    def function(x, n):
        return x * n.item()

    compiled = symbolic(function)
    for k in (3, 100):
        assert_same_call(function, compiled, torch.randn(4), torch.tensor([k], dtype=dtype))
    one_graph()


def test_a_computed_number(symbolic):
    def function(x, lengths):
        longest = lengths.max().item()
        return torch.arange(longest)[None] < lengths[:, None], x[: lengths.sum().abs()]

    compiled = symbolic(function, options={"capture_scalar_outputs": True})
    for lengths in ([2, 3, 1], [0, 1, 5, 5]):
        assert_same_call(function, compiled, torch.randn(40), torch.tensor(lengths))


def split_by_lengths(values, lengths):
    return [part.sum(0) * 2 for part in torch.split(values, lengths.tolist())]


def test_split_by_lengths_in_a_tensor(symbolic):
    compiled = symbolic(split_by_lengths)
    for lengths in ([2, 3, 1], [0, 1, 5], [1, 0, 0], [4, 4, 4]):
        assert_same_call(split_by_lengths, compiled, torch.randn(sum(lengths), 3), torch.tensor(lengths))
    one_graph()
    for lengths in ([1, 1, 1], [5, -1, 3], [9, 1, 1]):
        assert_same_call(split_by_lengths, compiled, torch.randn(7, 3), torch.tensor(lengths))


@pytest.mark.parametrize("lengths", [[1, 1, 1], [5, -1, 3], [9, 1, 1]])
def test_lengths_that_do_not_add_up_raise_at_the_first_call(symbolic, lengths):
    assert_same_call(split_by_lengths, symbolic(split_by_lengths), torch.randn(7, 3), torch.tensor(lengths))


def test_pieces_of_a_split_are_used_apart(symbolic):
    def function(values, lengths):
        first, second, third = values.split(lengths.tolist())
        return torch.cat([third, first]).relu(), second.softmax(-1), first.shape[0] + second.shape[0]

    compiled = symbolic(function)
    for lengths in ([2, 3, 1], [0, 1, 5], [1, 0, 0], [4, 4, 4]):
        assert_same_call(function, compiled, torch.randn(sum(lengths), 3), torch.tensor(lengths))
    one_graph()


def test_lists_of_lists(symbolic):
    def function(x, table):
        (a, b), (c, d) = table.tolist()
        return x.new_zeros(a, b) + 1, x.new_ones(c, d), table.unbind(0)[0].tolist()

    compiled = symbolic(function)
    for table in ([[1, 2], [3, 4]], [[0, 1], [1, 0]], [[2, 2], [2, 2]]):
        assert_same_call(function, compiled, torch.randn(1), torch.tensor(table))
    one_graph()


def test_int_of_a_tensor():
    def function(x, n):
        return x.expand(int(n), -1) + int(n)

    compiled = cresset.compile(function, fullgraph=True, options={"frontend": "evaluate"})
    for k in (2, 1, 5):
        assert_same_call(function, compiled, torch.randn(3), torch.tensor(k))
    one_graph()


def test_a_number_is_read_before_its_tensor_is_written(symbolic):
    def function(x, n):
        before = n.item()
        n.add_(1)
        after = n.item()
        return x.repeat(before), x.repeat(after), n

    compiled = symbolic(function)
    for k in (2, 1, 5):
        assert_same_call(function, compiled, torch.randn(3), torch.tensor(k))
    one_graph()


def test_a_branch_on_a_number_ends_the_piece(symbolic):
    def function(x, n):
        k = n.item()
        y = x * k
        return y + 1 if k > 2 else y - 1

    compiled = symbolic(function)
    for k in (3, 1, 0, 7):
        assert_same_call(function, compiled, torch.randn(4), torch.tensor(k))


def test_a_branch_under_fullgraph_names_what_to_state(symbolic):
    def function(x, n):
        k = n.item()
        return x + 1 if k > 2 else x - 1

    compiled = cresset.compile(function, fullgraph=True, options={"frontend": symbolic.frontend})
    with pytest.raises(cresset.CaptureError) as error:
        compiled(torch.randn(4), torch.tensor(3))
    text = str(error.value)
    assert "cresset.check(" in text and "test_shapes_numbers.py" in text and "u0" in text, text


def test_a_stated_fact_settles_the_branch(symbolic):
    def function(x, n):
        k = n.item()
        cresset.check(k > 2, "k is large")
        return x + 1 if k > 2 else x - 1

    compiled = cresset.compile(function, fullgraph=True, options={"frontend": symbolic.frontend})
    for k in (3, 9):
        assert_same_call(function, compiled, torch.randn(4), torch.tensor(k))
    with pytest.raises(RuntimeError, match="k is large"):
        compiled(torch.randn(4), torch.tensor(1))
    one_graph()


def test_a_fact_that_fails_at_the_first_call(symbolic):
    def function(x, n):
        k = n.item()
        cresset.check(k > 2, "k is large")
        return x + 1 if k > 2 else x - 1

    compiled = symbolic(function)
    with pytest.raises(RuntimeError, match="k is large"):
        compiled(torch.randn(4), torch.tensor(1))
    for k in (3, 9):
        assert_same_call(function, compiled, torch.randn(4), torch.tensor(k))


def test_a_number_is_an_index(symbolic):
    """torch's indexing holds the sizes of a tensor during a graph break at a decision on a size."""

    def function(x, n):
        return (x * 2)[n.item()]

    compiled = symbolic(function)
    for k in (3, 0, -1, 2):
        assert_same_call(function, compiled, torch.randn(5, 2), torch.tensor(k))
    assert_same_call(function, compiled, torch.randn(5, 2), torch.tensor(7))


def test_bounds_of_slices(symbolic):
    def function(x, n):
        return x[: n.item()] * 2, (x * 2)[: n.item()]

    compiled = symbolic(function)
    for k in (3, 0, 9, -1, -9, 2):
        assert_same_call(function, compiled, torch.randn(5), torch.tensor(k))


def test_shapes_from_a_list_of_numbers(symbolic):
    def function(x, n):
        a, b = n.tolist()
        return x.reshape(a, b).t() @ torch.ones(a, 2)

    compiled = symbolic(function)
    for sizes in ([3, 4], [1, 12], [12, 1], [2, 6]):
        assert_same_call(function, compiled, torch.randn(12), torch.tensor(sizes))
    one_graph()
    assert_same_call(function, compiled, torch.randn(12), torch.tensor([5, 2]))


def test_the_text_of_a_number(symbolic):
    def function(x, n):
        k = n.item()
        return x * (k + 1), int(f"{k}"), int(str(k + 1)), len(x[x > 0].shape)

    compiled = symbolic(function)
    for k in (3, -1, 12):
        assert_same_call(function, compiled, torch.randn(5), torch.tensor(k))


def test_the_text_of_a_size_that_data_makes(symbolic):
    def function(x):
        return x * 2, int(f"{x[x > 0].shape[0]}")

    compiled = symbolic(function)
    for _ in range(3):
        assert_same_call(function, compiled, torch.randn(5))


def test_split_with_gradients(symbolic):
    def f(x, lengths):
        parts = torch.split(x, lengths.tolist())
        return sum((part * part).sum() * i for i, part in enumerate(parts)), parts[1] * 2

    compiled = symbolic(f)
    for lengths in ([2, 3, 5], [0, 10, 0], [1, 1, 8], [10, 0, 0], [2, 3, 4], [-1, 5, 6]):
        outcomes = []
        for function in (f, compiled):
            x = torch.ones(10, 3).requires_grad_()
            try:
                total, part = function(x, torch.tensor(lengths))
                (total + part.sum()).backward()
                outcomes.append((total.detach(), x.grad))
            except RuntimeError as e:
                outcomes.append(str(e))
        if isinstance(outcomes[0], str):
            assert outcomes[0] == outcomes[1]
        else:
            torch.testing.assert_close(*outcomes)


@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
def test_bounds_that_data_gives_count_from_either_end(grad):
    def function(x, bounds):
        start, end = bounds.tolist()
        return x[start:end], x[start:], x[:end].sum(0), x[:, :end] + 1, x.flip(0)[start::2] * 2

    compiled = cresset.compile(function, fullgraph=True)
    for bounds in [(1, 3), (0, 0), (-3, -1), (-9, 9), (5, 2), (3, -1), (-1, 3), (7, 9)]:
        assert_same_call(function, compiled, torch.randn(7, 3).requires_grad_(grad), torch.tensor(bounds))
    assert cresset.stats()["graph_break_reasons"] == []


def test_numbers_among_the_arguments_of_what_makes_sizes():
    def function(x, repeats):
        counts = torch.bincount(repeats, minlength=x.shape[0])
        return counts, torch.repeat_interleave(x, repeats, 0, output_size=x.shape[0] * 2)

    compiled = cresset.compile(function)
    for n in (3, 5, 2):
        assert_same_call(function, compiled, torch.randn(n, 2), torch.full((n,), 2))
    one_graph()


def _of_a_list(x):
    k = torch.tensor([2, 4])
    return x.view(*k.tolist())


def _of_numbers(x):
    return x.view(torch.div(8, 4, rounding_mode="trunc"), -1) * int(torch.tensor(3) + 1)


def _of_what_was_written(x):
    k = torch.tensor([1, 2, 3])
    k[1] = 4
    return x.view(-1, k[1]) + int(k.sum())


@pytest.mark.parametrize("f", [_of_a_list, _of_numbers], ids=lambda f: f.__name__)
def test_literals_are_no_data(f):
    """Results of torch.tensor on plain numbers, and values computed from them, are known during a capture."""
    compiled = cresset.compile(f)
    for _ in range(2):
        x = torch.randn(8)
        torch.testing.assert_close(compiled(x), f(x))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"]) == (1, 0), stats["graph_break_reasons"]


def test_literals_that_are_written_are_read_as_they_are():
    compiled = cresset.compile(_of_what_was_written)
    for _ in range(2):
        x = torch.randn(8)
        torch.testing.assert_close(compiled(x), _of_what_was_written(x))


def test_numbers_in_state_are_data():
    state = torch.tensor([2, 4])

    def f(x):
        return x.view(*state.tolist()) + int(state[0])

    compiled = cresset.compile(f)
    for numbers in ([2, 4], [4, 2], [8, 1], [2, 4]):
        state.copy_(torch.tensor(numbers))
        x = torch.randn(8)
        torch.testing.assert_close(compiled(x), f(x))
