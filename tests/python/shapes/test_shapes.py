"""A single compilation for many shapes; marks; causes of a second compilation and their reports."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same_call

import cresset


def test_one_compilation_for_many_shapes():
    compiled = cresset.compile(lambda x, w: torch.softmax(x @ w, -1) + x.sum(1, keepdim=True))
    for n in (3, 1, 8, 700, 2, 33):
        x, w = torch.randn(n, 5), torch.randn(5, 7)
        torch.testing.assert_close(
            compiled(x, w), torch.softmax(x @ w, -1) + x.sum(1, keepdim=True), rtol=1e-4, atol=1e-5
        )
    stats = cresset.stats()
    assert stats["graphs"] == 1 and list(stats["recompiles"]) == []


def test_static_recompiles_and_says_so():
    compiled = cresset.compile(lambda x: x + 1, dynamic=False)
    for n in (3, 4, 3, 4):
        compiled(torch.ones(n))
    stats = cresset.stats()
    assert stats["graphs"] == 2
    assert len(stats["recompiles"]) == 1 and "4" in str(stats["recompiles"][0])


def test_batch_of_zero():
    function = lambda x: torch.relu(x @ torch.ones(4, 2)).mean(1)  # noqa: E731
    compiled = cresset.compile(function)
    for n in (3, 0, 1, 2):
        torch.testing.assert_close(compiled(torch.randn(n, 4)), torch.zeros(n), atol=100.0, rtol=0)
        assert_same_call(function, compiled, torch.randn(n, 4))


def test_branch_on_a_size():
    def function(x):
        return x * 2 if x.shape[0] > 4 else x - 1

    compiled = cresset.compile(function)
    for n in (3, 9, 4, 5, 2, 100):
        x = torch.randn(n)
        torch.testing.assert_close(compiled(x), function(x))
    stats = cresset.stats()
    assert stats["graphs"] == 2
    assert len(stats["recompiles"]) == 1


def test_mark_dynamic_that_must_be_static():
    def function(x):
        return x * 2 if x.shape[0] == 8 else x

    x = torch.randn(8)
    cresset.mark_dynamic(x, 0)
    with pytest.raises(Exception, match=r"(?s)(mark|dynamic).*"):
        cresset.compile(function)(x)


def test_a_suggestion_that_cannot_be_followed_is_dropped(caplog):
    cresset._C.log_areas("guards")
    try:
        x, y = torch.randn(8), torch.randn(8)
        cresset.maybe_mark_dynamic(x, 0)
        cresset.maybe_mark_dynamic(y, 0)
        torch.testing.assert_close(
            cresset.compile(lambda x, y: (x.view(2, 4) + 1, y * 2))(x, y), (x.view(2, 4) + 1, y * 2)
        )
    finally:
        cresset._C.log_areas("")
    text = caplog.text
    assert (
        "the suggestion that args[0].size(0) varies is dropped: it is specialized to 8" in text and "aten::view" in text
    )
    assert "args[1].size(0) varies" not in text


def test_a_mark_that_a_static_size_contradicts_names_it():
    x, y = torch.randn(5), torch.randn(5)
    cresset.mark_dynamic(x, 0)
    cresset.mark_static(y, 0)
    with pytest.raises(cresset.ConstraintError, match=r"args\[1\]\.size\(0\) is static, and 5"):
        cresset.compile(torch.add)(x, y)


def test_mark_dynamic_with_a_range():
    x = torch.randn(8, 3)
    cresset.mark_dynamic(x, 0, min=2, max=64)
    compiled = cresset.compile(lambda x: x * 2 if x.shape[0] <= 64 else x)
    torch.testing.assert_close(compiled(x), x * 2)
    y = torch.randn(32, 3)
    torch.testing.assert_close(compiled(y), y * 2)
    z = torch.randn(70, 3)
    torch.testing.assert_close(compiled(z), z)


def test_a_typical_size_decides_plans():
    """A long sum is split where it is long; the plan for a first call with eight numbers would have another order of
    additions."""
    n = 1 << 20
    x = torch.rand(2, n, generator=torch.Generator().manual_seed(0)) + 0.5

    def sums(first, typical=None):
        compiled = cresset.compile(lambda x: (x * 1.1).sum(1))
        if typical is not None:
            cresset.mark_dynamic(first, 1, typical=typical)
        compiled(first)
        return compiled(x)

    expected = sums(x)
    assert torch.equal(sums(torch.ones(2, 8), typical=n), expected)
    assert cresset.stats()["graphs"] == 2, "one compilation each"
    torch.testing.assert_close(sums(torch.ones(2, 8)), expected)


def test_mark_static():
    compiled = cresset.compile(lambda x: x + 1)
    for n in (8, 9):
        x = torch.randn(n, 3)
        cresset.mark_static(x, 0)
        torch.testing.assert_close(compiled(x), x + 1)
    assert cresset.stats()["graphs"] == 2


def test_same_size_arguments_may_part():
    """Equal sizes in the first call are no promise."""
    compiled = cresset.compile(lambda x, y: (x + 1, y * 2))
    compiled(torch.ones(4), torch.ones(4))
    got = compiled(torch.ones(4), torch.ones(6))
    assert got[1].shape == (6,)
    assert list(cresset.stats()["recompiles"]) == []


def test_sizes_needed_equal_are_guarded():
    function = lambda x, y: x + y  # noqa: E731
    compiled = cresset.compile(function)
    for shapes in (((4,), (4,)), ((6,), (6,)), ((4,), (1,)), ((1,), (5,)), ((7,), (7,)), ((4,), (5,))):
        assert_same_call(function, compiled, torch.ones(shapes[0]), torch.ones(shapes[1]))


def test_quotients_of_sizes_as_numbers():
    """Relative positions as multi-scale vision transformers make them: a float of sizes scales an integer range."""

    def function(x, table):
        rows, columns = x.shape
        down, up = max(columns / rows, 1.0), max(rows / columns, 1.0)
        distance = torch.arange(rows).unsqueeze(-1) * down - torch.arange(columns).unsqueeze(0) * up
        distance += (columns - 1) * up
        return distance, table[distance.long()]

    compiled, table = cresset.compile(function), torch.randn(64, 3)
    for rows, columns in ((8, 8), (5, 5), (12, 12), (4, 8), (8, 4), (6, 12), (3, 5)):
        assert_same_call(function, compiled, torch.ones(rows, columns), table)


@pytest.mark.parametrize(
    "layer",
    [
        torch.nn.MaxPool1d(2),
        torch.nn.MaxPool1d(3, stride=2, padding=1, ceil_mode=True),
        torch.nn.AvgPool1d(3, 2),
        torch.nn.AdaptiveAvgPool1d(3),
        torch.nn.AdaptiveMaxPool1d(2),
        torch.nn.LPPool1d(2, 3),
        torch.nn.Conv1d(4, 6, 3, padding=1),
        torch.nn.ConvTranspose1d(4, 6, 3, stride=2),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_of_one_dimension(layer):
    compiled = cresset.compile(layer)
    with torch.no_grad():
        for batch, length in ((2, 12), (1, 9), (3, 30)):
            assert_same_call(layer, compiled, torch.randn(batch, 4, length))
    assert cresset.stats()["eager_calls"] == 0 and cresset.stats()["graphs"] == 1


BROADCAST = {
    "matmul": (torch.matmul, lambda a, b, c, d: ((a, b, 3, 4), (c, d, 4, 5))),
    "matmul of another rank": (torch.matmul, lambda a, b, c, d: ((b, 3, 4), (c, d, 4, 5))),
    "cosine_similarity": (
        lambda x, y: torch.nn.functional.cosine_similarity(x, y, dim=-1),
        lambda a, b, c, d: ((a, b, 4), (c, d, 4)),
    ),
    "einsum": (
        lambda x, y: torch.einsum("...ij,...jk->...ik", x, y),
        lambda a, b, c, d: ((a, b, 3, 4), (c, d, 4, 5)),
    ),
    "einsum of letters": (
        lambda x, y: torch.einsum("abij,abjk->abik", x, y),
        lambda a, b, c, d: ((a, b, 3, 4), (c, d, 4, 5)),
    ),
}


@pytest.mark.parametrize("name", BROADCAST)
@pytest.mark.parametrize("sizes", [(1, 3, 2, 3), (2, 1, 2, 3), (2, 3, 2, 1), (1, 1, 2, 3), (2, 3, 1, 1), (1, 2, 3, 1)])
def test_a_first_call_that_broadcasts(name, sizes):
    """A size of 1 among the arguments meets another size."""
    function, shapes = BROADCAST[name]
    compiled = cresset.compile(function)
    for more in (0, 2, 0):
        shape, other = shapes(*(n + more if n > 1 else n for n in sizes))
        x, y = torch.randn(shape, requires_grad=True), torch.randn(other, requires_grad=True)
        expected, found = function(x, y), compiled(x, y)
        torch.testing.assert_close(found, expected)
        for a, b in zip(
            torch.autograd.grad(found.sum(), (x, y)), torch.autograd.grad(expected.sum(), (x, y)), strict=True
        ):
            torch.testing.assert_close(a, b)
    assert cresset.stats()["eager_calls"] == 0


def test_batches_of_one_size_stay_general():
    compiled = cresset.compile(torch.matmul)
    for n in (1, 4, 7):
        x, y = torch.randn(n, 3, 4), torch.randn(n, 4, 5)
        torch.testing.assert_close(compiled(x, y), x @ y)
    assert cresset.stats()["graphs"] == 1


def test_a_computed_size_of_one_is_read_at_its_one_place():
    """Further facts on the parts of the size come after it was found to be 1."""

    def f(q, k, m, w):
        batch = q.size(0)
        k = (k @ w).view(batch, -1, 32)
        m = ((1 - m) * -10000.0).unsqueeze(1)
        for _ in range(2):
            rows = m.repeat_interleave(2, dim=0).view(batch, 2, -1, k.shape[1])
            heads = [t.unflatten(2, (2, -1)).transpose(1, 2) for t in (q @ w, k @ w, k @ w)]
            mixed = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=rows)
            q = q + mixed.transpose(1, 2).flatten(2, 3) @ w
        return q

    torch.manual_seed(0)
    w = (torch.randn(32, 32) / 8).requires_grad_()
    compiled = cresset.compile(f)
    for batch, length, other in ((2, 24, 7), (2, 24, 7), (3, 10, 5)):
        args = torch.randn(batch, length, 32), torch.randn(batch, other, 32), torch.ones(batch, other), w
        torch.testing.assert_close(compiled(*args), f(*args), rtol=1e-4, atol=1e-4)
