"""Data-dependent sizes: they need no further compilation, are bound after their producer, and are never guessed."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same_call

import cresset


def masked_mean(x):
    kept = x[x > 0]
    return kept.sum() / kept.numel(), kept * 2


def rows(x):
    return x[x.sum(1) > 0] @ torch.ones(x.shape[1], 2)


def scatter_back(x):
    where = x.nonzero()
    return torch.zeros_like(x).index_put((where[:, 0], where[:, 1]), x[where[:, 0], where[:, 1]] * 3)


def unique_counts(x):
    values, inverse, counts = torch.unique((x * 2).long(), return_inverse=True, return_counts=True)
    return values + 1, inverse, counts.float().mean()


def consecutive(x):
    return torch.unique_consecutive((x * 2).long().flatten()) * 2


def repeated(x):
    lengths = (x.abs() * 2).long().sum(1)
    return torch.repeat_interleave(x, lengths, dim=0) + 1


def counted(x):
    counts = torch.bincount((x.abs() * 2).long().flatten(), minlength=3)
    return counts, counts.cumsum(0) * 2


def counts_of_classes(x):
    return torch.zeros(3).index_add(0, *_classes(x)) / torch.bincount(_classes(x)[0], minlength=3).clamp(min=1)


def _classes(x):
    return (x[:, 0].abs() * 2).long().clamp(max=2), x[:, 1]


def losses_of_kept(x):
    kept, target = x[x > 0], x[x > 0] * 0.7
    logits = F.binary_cross_entropy_with_logits(kept, target)
    return logits, F.mse_loss(kept, target), F.huber_loss(kept, target), F.smooth_l1_loss(kept, target, reduction="sum")


def selected(x):
    return torch.masked_select(x, x > 0.3).exp().sum()


def twice(x):
    first = x[x > -0.5]
    return first[first < 0.5].relu() + 1


def normalized_tokens(x):
    tokens = x[(x > 0).any(1)]
    return F.layer_norm(tokens, (x.shape[1],)).softmax(-1)


def counted_with_weights(x):
    numbers = (x.abs() * 2).long().flatten()
    return torch.bincount(numbers, minlength=3) * 2, torch.bincount(numbers, x.flatten()).cumsum(0)


def unique_rows_and_columns(x):
    numbers = (x > 1).long()
    rows = torch.unique(numbers, dim=0, return_inverse=True)
    columns = torch.unique_consecutive(numbers, dim=1, return_inverse=True, return_counts=True)
    return rows, columns, torch.unique(numbers, dim=1) + 1


def concatenated(x):
    return torch.cat([x[x[:, 0] > 0], x[x[:, 0] <= 0]])


def mask_from_lengths(x):
    lengths = (x[:, 0].abs() * 3).long().clamp(max=x.shape[1])
    mask = torch.arange(x.shape[1])[None] < lengths[:, None]
    return x[mask] * 2, mask.sum()


def written(x):
    y = x.clone()
    y[x > 0] = 0
    y[x < -1] *= 0.5
    return y


PROGRAMS = [
    masked_mean,
    rows,
    scatter_back,
    unique_counts,
    counted,
    losses_of_kept,
    counts_of_classes,
    consecutive,
    repeated,
    counted_with_weights,
    unique_rows_and_columns,
    selected,
    twice,
    normalized_tokens,
    concatenated,
    mask_from_lengths,
    written,
]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_one_compilation_serves_all_data(function):
    compiled = cresset.compile(function)
    for seed in range(8):
        torch.manual_seed(seed)
        x = torch.randn(5 + seed % 4, 6)
        assert_same_call(function, compiled, x)
    nothing, everything = torch.full((4, 6), -5.0), torch.full((4, 6), 2.0)
    assert_same_call(function, compiled, everything)
    assert_same_call(function, compiled, nothing)
    stats = cresset.stats()
    assert stats["graph_break_reasons"] == []
    assert stats["graphs"] == 1, stats["recompiles"]


def test_masked_assignment_is_a_choice():
    def function(x):
        y = x * 1
        y[x > 0] = 0
        y[:, 1][x[:, 0] < 0] = 7
        y[x.sum(1) > 1] = -1
        return y

    compiled = cresset.compile(function)
    for seed in range(3):
        torch.manual_seed(seed)
        assert_same_call(function, compiled, torch.randn(4, 3))
    (variant,) = cresset._C.cache_entries(compiled)
    assert variant["extern_calls"] == 0


def scaled_under_a_mask(x):
    y = x * 1
    y[x < 0] *= 0.2
    y[x > 1] += 1
    rows = x.sum(1) > 1
    y[rows] = y[rows].exp() / 3 - 1
    return y


def masked_rows(x):
    y = x * 1
    rows = x[:, 0] > 0
    y[rows] = y[rows] * y.mean() + torch.tensor([2.0])
    return y


@pytest.mark.parametrize("front_end", ["trace", "evaluate"])
@pytest.mark.parametrize("function", [scaled_under_a_mask, masked_rows], ids=lambda f: f.__name__)
def test_updating_under_a_mask_is_a_choice(function, front_end):
    compiled = cresset.compile(function, options={"frontend": front_end})
    for seed in range(4):
        torch.manual_seed(seed)
        assert_same_call(function, compiled, torch.randn(4 + seed, 3))
    assert_same_call(function, compiled, torch.full((2, 3), -5.0))
    assert_same_call(function, compiled, torch.randn(0, 3))
    (variant,) = cresset._C.cache_entries(compiled)
    assert variant["extern_calls"] == 0 and "index_put" not in variant["program"]
    assert "_index" not in variant["program"]
    assert cresset.stats()["graphs"] == 1


def test_what_an_update_read_may_be_used_elsewhere():
    def function(x):
        y = x * 1
        part = y[x > 0] * 2
        y[x > 0] = part
        return y, part.sum(), part.shape[0]

    compiled = cresset.compile(function)
    for seed in range(4):
        torch.manual_seed(seed)
        assert_same_call(function, compiled, torch.randn(4 + seed, 3))
    assert cresset.stats()["graphs"] == 1


@pytest.mark.parametrize("front_end", ["trace", "evaluate"])
def test_values_of_a_length_that_data_gives_are_put_under_a_mask(front_end):
    def function(x, z):
        y = x * 1
        m = x > 0
        y[m] = z[z > 0]
        return y

    compiled = cresset.compile(function, options={"frontend": front_end})
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(4 + seed, 3)
        assert_same_call(function, compiled, x, x * torch.rand(x.shape))
    assert cresset.stats()["graphs"] == 1, cresset.stats()["graph_break_reasons"]
    with pytest.raises((RuntimeError, IndexError)):
        compiled(torch.ones(2, 2), torch.tensor([1.0, 2.0, 3.0]))


def test_sizes_that_must_agree_are_checked_at_run_time():
    def function(x, y):
        return x[x > 0] + y

    compiled = cresset.compile(function)
    x = torch.tensor([1.0, -1.0, 2.0])
    assert_same_call(function, compiled, x, torch.ones(2))
    assert_same_call(function, compiled, x, torch.ones(1))
    with pytest.raises(RuntimeError):
        compiled(x, torch.ones(3))
    assert_same_call(function, compiled, torch.ones(3), torch.ones(3))


def test_a_fact_stated_about_data_settles_later_questions():
    def function(x):
        kept = x[x > 0]
        cresset.check(kept.shape[0] <= 4, "at most four")
        return F.pad(kept, (0, 4 - kept.shape[0]))

    compiled = cresset.compile(function)
    assert_same_call(function, compiled, torch.tensor([1.0, -2.0, 3.0]))
    assert_same_call(function, compiled, torch.tensor([1.0, 2.0, 3.0, -1.0]))
    with pytest.raises(RuntimeError, match="at most four"):
        compiled(torch.ones(6))


def test_a_branch_on_a_data_dependent_size_runs_eagerly():
    def function(x):
        kept = x[x > 0]
        return kept * 2 if kept.shape[0] > 2 else kept - 1

    compiled = cresset.compile(function)
    for x in (torch.ones(5), torch.tensor([1.0, -1.0])):
        torch.testing.assert_close(compiled(x), function(x))


def test_a_returned_count_is_a_number():
    def function(x):
        return x[x > 0].shape[0]

    compiled = cresset.compile(function)
    for n in (3, 5):
        count = compiled(torch.ones(n))
        assert count == n and type(count) is int


def test_a_size_that_divides_is_guarded():
    def function(x, y):
        return x * (x.shape[0] // y.shape[0])

    compiled = cresset.compile(function)
    assert_same_call(function, compiled, torch.randn(6), torch.randn(2))
    with pytest.raises(ZeroDivisionError):
        compiled(torch.randn(6), torch.randn(0))
    assert_same_call(function, compiled, torch.randn(7), torch.randn(3))


def test_inputs_are_written_after_the_last_stage():
    def function(x):
        kept = x[x > 0].sum()
        x += kept
        return x[x > 1]

    compiled = cresset.compile(function)
    for seed in range(3):
        torch.manual_seed(seed)
        assert_same_call(function, compiled, torch.randn(6))


def data_sizes(compiled):
    (report,) = cresset._C.shape_report(compiled)
    return [d["name"] for d in report["dimensions"] if d["kind"] == "data"]


def test_a_size_is_bound_before_it_is_used():
    """A symbol for each producer: derived sizes, allocations and kernels use it."""

    def function(x):
        first = x[x > 0]
        second = first[first < 1]
        room = torch.zeros(first.shape[0] + 2 * second.shape[0]) + 1
        return room.cumsum(0), torch.cat([first, second]) * second.shape[0], second.repeat(2).sum()

    compiled = cresset.compile(function, fullgraph=True)
    for n in (9, 1, 0, 30):
        assert_same_call(function, compiled, torch.randn(n))
    assert len(data_sizes(compiled)) == 2


def test_heuristics_add_no_guards_on_data():
    def function(x):
        kept = x[x[:, 0] > 0]
        wide = kept @ torch.ones(x.shape[1], 64)
        return wide.softmax(-1).sum(0), torch.cat([wide, wide * 2], 1).amax(1), wide.cumsum(0)

    compiled = cresset.compile(function, fullgraph=True)
    for n in (5, 700, 1, 0, 64):
        assert_same_call(function, compiled, torch.randn(n, 3))
    (report,) = cresset._C.shape_report(compiled)
    names = data_sizes(compiled)
    assert names and not any(name in text for name in names for text in report["asked"] + report["assertions"])
    assert cresset.stats()["graphs"] == 1


def test_what_follows_is_one_stage_over_what_there_is():
    def function(x):
        where = x.nonzero()
        scaled = torch.relu(where.float() * 2 - 3) + x.shape[0]
        return (scaled * scaled).sum(0)

    compiled = cresset.compile(function)
    for n in (8, 1, 0, 300):
        assert_same_call(function, compiled, torch.randn(n, 3))
    (variant,) = cresset._C.cache_entries(compiled)
    launches = [line for line in variant["program"].splitlines() if line.startswith("launch")]
    assert len(launches) == 1 and variant["extern_calls"] == 0, variant["program"]
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"], stats["eager_calls"]) == (1, 0, 0, 0)


def test_a_piece_ends_at_the_operator_and_nothing_runs_twice():
    seen = []

    def function(x):
        y = torch.relu(x) + 1
        seen.append("before")
        z = torch.vander(y[y > 1.5]).sum(1)  # needs sizes as numbers
        seen.append("after")
        return z * 3

    compiled = cresset.compile(function)
    x = torch.tensor([1.0, -1.0, 3.0, 2.0])
    torch.testing.assert_close(compiled(x), torch.tensor([21.0, 63.0, 39.0]))
    assert seen == ["before", "after"]
    stats = cresset.stats()
    assert stats["graph_breaks"] == 1 and stats["graphs"] == 2 and stats["eager_calls"] == 0
    torch.testing.assert_close(compiled(torch.ones(4)), torch.full((4,), 45.0))
    assert seen == ["before", "after"] * 2 and cresset.stats()["graphs"] == 2
