"""cresset.shapes and cresset.solve: the possible sizes of a function, and inputs for each class of sizes."""

from __future__ import annotations

import opdb
import pytest
import torch
from compare import assert_same

import cresset


def branches(x):
    if x.shape[0] > 4:
        return x * 2
    if x.shape[0] % 2 == 0:
        return x - 1
    return x.sum(0)


def test_the_walk_meets_every_class_and_ends():
    solved = cresset.solve(branches, torch.randn(9, 3))
    assert solved.status == "covered"
    sizes = sorted(s.args[0].shape[0] for s in solved)
    assert sizes == [0, 1, 5]
    compiled = cresset.compile(branches)
    for s in solved:
        torch.testing.assert_close(compiled(*s.args), branches(*s.args))


def test_samples_that_eager_rejects_carry_its_error():
    solved = cresset.solve(lambda x, y: x @ y, torch.randn(3, 4), torch.randn(4, 5), limit=4)
    good = [s for s in solved if s.error is None]
    bad = [s for s in solved if s.error is not None]
    assert good and bad
    assert all("mat" in str(s.error) or "size" in str(s.error) for s in bad)


def test_shapes_show_ranges_and_lines():
    def function(x, y):
        return x.view(4, x.shape[0] // 4).sum(0) + y

    shown = cresset.shapes(function)(torch.randn(8), torch.randn(2))
    text = str(shown)
    assert "args[0].size(0)" in text and "multiples of 4" in text, text
    assert "test_shapes_solve.py" in text, text
    (variant,) = shown.cache_entries
    assert variant["smallest"] is not None
    assert len(variant["guards"]) <= len(variant["asked"])


def test_the_smallest_inputs_are_accepted():
    def function(x, y):
        h = torch.nn.functional.conv2d(x, y, stride=2, padding=1)
        return h.flatten(2).transpose(1, 2)

    x, y = torch.randn(2, 3, 17, 16), torch.randn(8, 3, 3, 3)
    for sample in cresset.solve(function, x, y, limit=3):
        if sample.error is None:
            torch.testing.assert_close(
                cresset.compile(function)(*sample.args), function(*sample.args), rtol=1e-4, atol=1e-4
            )


def test_numbers_are_solved_for_too():
    def function(x, n):
        return x * 2 if n > 3 else x.repeat(n, 1) if n % 2 else x - n

    solved = cresset.solve(function, torch.randn(2, 3), 5)
    good = [s for s in solved if s.error is None]
    assert {"even" if s.args[1] % 2 == 0 else "odd" for s in good if s.args[1] <= 3} == {"even", "odd"}
    assert any(s.args[1] > 3 for s in good)
    for s in good:
        assert_same(cresset.compile(function)(*s.args), function(*s.args))


@pytest.mark.parametrize(
    ("function", "ranks"),
    [
        (lambda x: x + 1, [0]),
        (lambda x, w: torch.mm(x, w).relu(), [2, 2]),
        (lambda table, rows: torch.nn.functional.embedding(rows, table), [2, 0]),
        (lambda x, w, b: torch.nn.functional.conv1d(x, w, b), [2, 3, 1]),
        (torch.nn.Linear(4, 3), [1]),
    ],
    ids=["add", "mm", "embedding", "conv1d", "module"],
)
def test_ranks_and_dtypes_are_found_by_trying(function, ranks):
    compiled = cresset.compile(function)
    with torch.no_grad():
        solved = cresset.solve(function, limit=4)
        assert solved
        for sample in solved:
            assert [a.dim() for a in sample.args] == ranks
            if sample.error is None:
                assert_same(compiled(*sample.args), function(*sample.args))
            else:
                with pytest.raises(type(sample.error)):
                    compiled(*sample.args)


def test_what_takes_no_tensors_is_an_error():
    with pytest.raises(ValueError, match="call it with an example"):
        cresset.solve(lambda x: x.no_such_method())


# Operators of torch's database with decisions on sizes in their rules: a sample of each class of sizes.
ASKING = [
    "add",
    "baddbmm",
    "bmm",
    "cat",
    "broadcast_to",
    "chunk",
    "cdist",
    "cumsum",
    "diagonal",
    "diff",
    "einsum",
    "expand",
    "flatten",
    "gather",
    "index_select",
    "masked_fill",
    "matmul",
    "amax",
    "mean",
    "mm",
    "movedim",
    "mul",
    "narrow",
    "nn.functional.adaptive_avg_pool2d",
    "nn.functional.avg_pool2d",
    "nn.functional.conv1d",
    "nn.functional.conv2d",
    "nn.functional.layer_norm",
    "nn.functional.linear",
    "nn.functional.max_pool2d",
    "nn.functional.pad",
    "nn.functional.pixel_shuffle",
    "nn.functional.unfold",
    "outer",
    "permute",
    "repeat",
    "reshape",
    "roll",
    "scatter",
    "select",
    "softmax",
    "sort",
    "split",
    "squeeze",
    "stack",
    "sum",
    "t",
    "tile",
    "topk",
    "transpose",
    "tril",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "var",
    "view",
    "where",
]


@pytest.mark.parametrize("name", ASKING)
def test_every_class_of_sizes_of_an_operator_is_tested(name):
    operator = next(op for op in opdb.operators(torch.float32) if op.name == name)
    sample = opdb.samples(operator, torch.float32, 1)[0]
    args, kwargs = opdb.arguments(sample)

    def function(*args, **kwargs):
        return operator(*args, **kwargs)

    compiled = cresset.compile(function)
    solved = cresset.solve(function, *args, limit=5, **kwargs)
    assert solved
    for s in solved:
        if s.error is None:
            assert_same(compiled(*s.args, **s.kwargs), function(*s.args, **s.kwargs))
        else:
            with pytest.raises(type(s.error)) as raised:
                compiled(*s.args, **s.kwargs)
            assert str(raised.value) == str(s.error)


def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def padded(x, *, value: float, n: int):
    return torch.nn.functional.pad(x, (n, n), value=value).masked_fill(x.new_ones(x.shape[-1] + 2 * n) > 1, 0.0)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, mask: x.masked_fill(mask, 0.0), [(), ()]),
        (lambda z: torch.view_as_real(z) * 2, [()]),
        (attention, None),
        (torch.nn.Conv2d(3, 4, 3), [(3, 3, 3)]),
        (torch.nn.MultiheadAttention(8, 2), None),
        (torch.nn.LSTM(3, 4), None),
        (torch.mm, [(0, 0), (0, 0)]),
    ],
    ids=["mask", "complex", "attention", "convolution", "heads", "lstm", "builtin"],
)
def test_the_user_gives_only_the_function(function, shapes):
    """Sizes from the function's own conditions (on parameters, say) are found by negating the conditions of a raising
    call, in turn."""
    solved = cresset.solve(function, limit=8)
    good = [s for s in solved if s.error is None]
    assert good
    if shapes is not None:
        assert shapes in [[tuple(a.shape) for a in s.args] for s in good]
    for s in good:
        function(*s.args, **s.kwargs)


def test_numbers_and_keywords_are_found():
    (sample, *_) = [s for s in cresset.solve(padded, limit=4) if s.error is None]
    assert type(sample.kwargs["n"]) is int and type(sample.kwargs["value"]) is float


def test_sizes_that_make_a_call_raise_are_a_class():
    def function(x):
        if x.shape[0] % 3 != 0:
            raise ValueError(f"{x.shape[0]} rows")
        return x.view(-1, 3).sum(0) if x.shape[0] < 8 else x * 2

    solved = cresset.solve(function, torch.randn(9))
    assert solved.status == "covered" and len(solved) == 3
    assert [s.args[0].shape[0] for s in solved if s.error is None] == [9, 0]
    (bad,) = [s for s in solved if s.error is not None]
    assert str(bad.error) == "1 rows"
