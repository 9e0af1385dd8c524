"""Assignment under masks: a pointwise choice in both passes; other assignments stay right."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same_call

import cresset


def several(x, w):
    y, m = x * 1, x > 0
    y[m] = 0
    y[x < -1] *= 0.2
    y[m] += 1
    y[~m] -= 2
    y[(x < 0) & (x > -2)] /= 3
    return y


def of_itself(x, w):
    y, m = x * 1, x > 0
    y[m] = y[m].sin().clamp(min=0.1) * 2
    return y


def of_another(x, w):
    z = x * 2
    z[x > 0] = (x * w)[x > 0] * 3 + z[x > 0]
    return z


def rows(x, w):
    y, m = x * 1, x[:, 0] > 0
    y[m] += w
    y[m] = y[m] * w.exp() + x[m]
    y[m, 1] = 5.0
    y[m, :2] *= w[:2]
    return y


def columns(x, w):
    y, m = x * 1, w > 0
    y[:, m] = y[:, m] * 2 + x[:, m]
    y[:, m] -= w[m]
    return y


def sums_under_a_mask(x, w):
    y = x * w
    y[x > 0.5] = x[x > 0.5].sum()
    return y.sum(1) + x[x < 0].mean().nan_to_num()


def added_to(x, w):
    y = x * 1
    return y.index_put((x > 0,), y[x > 0] * 2, accumulate=True).index_put((x[:, 0] > 0,), w, accumulate=True)


CHOICES = [several, of_itself, of_another, rows, columns, added_to]


def with_gradients(function, *args):
    args = [a.clone().requires_grad_() for a in args]
    result = function(*args)
    (result**2).sum().backward()
    return [result.detach(), *(a.grad for a in args)]


def inputs(n):
    torch.manual_seed(n)
    return torch.randn(n, 3), torch.randn(3)


@pytest.mark.parametrize("function", [*CHOICES, sums_under_a_mask], ids=lambda f: f.__name__)
def test_gradients_for_any_mask(function):
    compiled = cresset.compile(function)
    for n in (4, 5, 1, 2, 0, 9):
        torch.testing.assert_close(
            with_gradients(compiled, *inputs(n)), with_gradients(function, *inputs(n)), equal_nan=True
        )
    stats = cresset.stats()
    assert stats["eager_calls"] == 0, stats["graph_break_reasons"]
    assert stats["graphs"] == 1, stats["recompiles"]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function", CHOICES, ids=lambda f: f.__name__)
def test_no_size_is_made(function, grad):
    with torch.set_grad_enabled(grad):
        compiled = cresset.compile(function)
        x, w = inputs(5)
        compiled(x.requires_grad_(grad), w)  # w's gradient is a sum over the elements under the mask
    (variant,) = cresset._C.cache_entries(compiled)
    assert "nonzero" not in variant["program"] and "index_put" not in variant["program"], variant["program"]


def triangle(y, m):
    y[m] = y[m].tril()


def zeros(y, m):
    y[m] = y[m].new_zeros(y[m].shape) + 1


def rolled(y, m):
    y[m] = y[m].roll(1, 0)


def flipped(y, m):
    y[m] = y[m].flip(0)


def halves(y, m):
    y[m] = torch.cat([torch.nn.functional.glu(y[m][:, [0, 1]], 1), y[m][:, 1:]], 1)


def picked(y, m):
    v = y[m]
    y[m] = v[torch.arange(v.shape[0]).flip(0)]


def counted(y, m):
    y[m] = torch.arange(y[m].shape[0])[:, None].float() + y[m]


def first_goes(y, m):
    v = y[m]
    y[m] = torch.select_scatter(v, v[0] * 0, 0, 0)


def under_another(y, m):
    y[m] = y[m.flip(0)][: y[m].shape[0]]


def shifted(y, m):
    y[m] = torch.nn.functional.pad(y[m][1:], (0, 0, 0, 1))


def sums_of_rows(y, m):
    y[m] = y[m] - y[m].triu(1).sum(1, keepdim=True)


def integers(y, m):
    z = (y * 3).long()
    z[z != 0] = 100 // z[z != 0]
    y += z


OTHERS = [triangle, zeros, rolled, flipped, halves, picked, counted, first_goes, shifted, sums_of_rows, integers]


@pytest.mark.parametrize("write", OTHERS, ids=lambda f: f.__name__)
def test_what_depends_on_the_place(write):
    def function(y, m):
        y = y * 1
        write(y, m)
        return y

    compiled = cresset.compile(function)
    for mask in ([0, 1, 1, 0, 1], [1, 0, 0, 1, 0], [1, 1, 1, 1, 1], [1, 0, 1, 1, 1]):
        assert_same_call(function, compiled, torch.randn(5, 3), torch.tensor(mask) > 0)


def test_two_reads_under_one_mask_have_one_size():
    def function(x, y):
        return x[x > 0] * y[x > 0] + x[x > 0].sum(), (x > 0).nonzero(), (x > 0).nonzero()

    compiled = cresset.compile(function, fullgraph=True)
    for n in (3, 1, 6):
        assert_same_call(function, compiled, torch.randn(n, 2), torch.randn(n, 2))
    (report,) = cresset._C.shape_report(compiled)
    assert report["assertions"] == []


def test_parts_written_under_a_mask_may_be_empty():
    def function(x):
        y = x.clone()
        y[1:][y[1:] > 0] *= 2
        y[:, 2:] += 1
        return y

    compiled = cresset.compile(function)
    for n in (4, 5, 1, 2, 0, 7):
        torch.testing.assert_close(
            with_gradients(compiled, torch.ones(n, 3)), with_gradients(function, torch.ones(n, 3))
        )
        torch.testing.assert_close(
            with_gradients(compiled, torch.ones(n, 2)), with_gradients(function, torch.ones(n, 2))
        )
    stats = cresset.stats()
    assert stats["eager_calls"] == 0, stats["graph_break_reasons"]


def test_values_under_another_mask_with_gradients():
    """Values of a data-dependent length, put under a mask; both need gradients."""

    def function(x, y, w):
        z = x * 2
        z[x[:, 0] > 0] = (y @ w)[y[:, 0] > 0]
        return z

    compiled = cresset.compile(function, fullgraph=True)
    for n in (4, 5, 1, 2, 9):
        torch.manual_seed(n)
        x, y = torch.randn(n, 3), torch.randn(n, 3)
        y[:, 0] = x[:, 0].flip(0)
        w = torch.randn(3, 3)
        torch.testing.assert_close(with_gradients(compiled, x, y, w), with_gradients(function, x, y, w))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


def test_tokens_written_back_through_a_view_of_any_batch():
    """The derivative belongs to a strided view, and asks of every size whether it is 0 or 1."""
    layer = torch.nn.Linear(8, 8)

    def dropped(x, mask):
        out, kept = x.clone().view(-1, 8), mask.view(-1)
        out[kept] = layer(x.view(-1, 8)[kept])
        return out.view(x.shape)

    compiled = cresset.compile(dropped)
    for shape in ((2, 5), (3, 7), (1, 4), (1, 1), (0, 3), (4, 1), (4, 0)):
        x, mask, found = torch.randn(*shape, 8), torch.rand(shape) > 0.5, []
        for f in (dropped, compiled):
            given = x.clone().requires_grad_()
            out = f(given, mask)
            out.square().sum().backward()
            found.append((out.detach(), given.grad, layer.weight.grad))
            layer.zero_grad()
        torch.testing.assert_close(found[1], found[0])
    stats = cresset.stats()
    assert stats["graphs"] == 1 and stats["eager_calls"] == 0, (stats["recompiles"], stats["graph_break_reasons"])


def test_rows_less_the_first_of_those_under_a_mask():
    def centered(x, mask):
        kept = x[mask]
        return kept - kept[:1], torch.where(kept > 0, kept, kept[:1])

    compiled = cresset.compile(centered, fullgraph=True)
    for count in (5, 3, 7, 1, 2):
        x = torch.randn(9, 3)
        for mine, its in zip(compiled(x, torch.arange(9) < count), centered(x, torch.arange(9) < count)):
            torch.testing.assert_close(mine, its)
    stats = cresset.stats()
    assert stats["graphs"] == 1 and stats["eager_calls"] == 0, stats


# ---- values at tensor indices, anywhere among the indices

ANYWHERE = {
    "columns": (lambda y, m, i: (slice(None), m), 1),
    "the last dimension": (lambda y, m, i: (..., m), 1),
    "rows": (lambda y, m, i: m, 0),
    "columns of some rows": (lambda y, m, i: (slice(None, 2), m), 1),
    "of a row": (lambda y, m, i: (0, m), 1),
    "of a column": (lambda y, m, i: (m, -1), 0),
    "a new dimension": (lambda y, m, i: (slice(None), None, m), 1),
    "indices and a mask": (lambda y, m, i: (i[:, None], m), 1),
    "indices": (lambda y, m, i: (slice(None), i), 1),
}


@pytest.mark.parametrize("first", ["some", "one", "none"])
@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("name", ANYWHERE)
def test_values_of_an_input_are_put_where_masks_say(name, wants, first):
    """torch drops leading sizes of 1 of the values: a batch of 1, or a single element under the mask, is no special
    case."""
    key, dim = ANYWHERE[name]

    def put(y, m, i, values):
        y = y * 2
        y[key(y, m, i)] = values
        return y, y[key(y, m, i)] + 1

    compiled = cresset.compile(put)
    for rows, columns, kind in (
        (4, 6, first),
        (3, 5, "some"),
        (1, 7, "some"),
        (5, 4, "one"),
        (2, 3, "none"),
        (2, 9, "some"),
    ):
        y, m = torch.randn(rows, columns), torch.rand((rows, columns)[dim]) > 0.4
        m[:] = m if kind == "some" else False
        m[0] = kind != "none"
        i = torch.tensor([0, min(rows, columns) - 1])
        values = torch.randn(y[key(y, m, i)].shape)
        assert_same_call(put, compiled, y.requires_grad_(wants), m, i, values)
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats["recompiles"]


def with_gradients_of_both(put, y, m, i, values):
    leaves = [t.clone().requires_grad_() for t in (y, values)]
    out = put(leaves[0], m, i, leaves[1])
    out.sum().backward()
    return out.detach(), [t.grad for t in leaves]


@pytest.mark.parametrize(
    "name", ["columns", "the last dimension", "columns of some rows", "a new dimension", "indices"]
)
def test_values_that_want_gradients_are_of_any_batch(name):
    key, dim = ANYWHERE[name]

    def put(y, m, i, values):
        y = y * 2
        y[key(y, m, i)] = values * 3
        return y.sin()

    compiled = cresset.compile(put)
    for rows, columns in ((4, 6), (3, 5), (1, 7), (5, 4), (2, 3)):
        y, m = torch.randn(rows, columns), torch.arange((rows, columns)[dim]) < max((rows, columns)[dim] - 2, 1)
        i = torch.tensor([0, min(rows, columns) - 1])
        given, found = torch.randn(y[key(y, m, i)].shape), []
        for f in (put, compiled):
            found.append(with_gradients_of_both(f, y, m, i, given))
        torch.testing.assert_close(found[1], found[0])
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats["recompiles"]


@pytest.mark.parametrize("shape", [(4, 3), (3, 2), (2, 4, 3)])
def test_values_that_do_not_fit_raise_what_eager_raises(shape):
    def put(y, m, values):
        y = y * 2
        y[:, m] = values
        return y

    y, m = torch.randn(2, 5), torch.arange(5) < 3
    values = torch.randn(shape, requires_grad=True)
    with pytest.raises(RuntimeError) as expected:
        put(y, m, values)
    with pytest.raises(RuntimeError) as raised:
        cresset.compile(put)(y, m, values)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("name", ANYWHERE)
def test_values_that_want_gradients_and_broadcast(name):
    key, dim = ANYWHERE[name]

    def put(y, m, i, values):
        y = y * 2
        y[key(y, m, i)] = values
        return y.sin()

    compiled = cresset.compile(put)
    for rows, columns, one in ((4, 6, True), (3, 5, False), (1, 7, True), (5, 4, True), (3, 3, False)):
        y, m = torch.randn(rows, columns), torch.rand((rows, columns)[dim]) > 0.4
        i = torch.tensor([0, min(rows, columns) - 1])
        shape, found = list(y[key(y, m, i)].shape), []
        shape[0] = 1 if one else shape[0]
        given = torch.randn(shape)
        for f in (put, compiled):
            found.append(with_gradients_of_both(f, y, m, i, given))
        torch.testing.assert_close(found[1], found[0])


BROADCAST = {
    "product": lambda x, m: x * m.nonzero()[:, 0].float(),
    "choice": lambda x, m: torch.where(x > 0, x, m.nonzero()[:, 0].float()[None]),
    "indices": lambda x, m: (m * torch.ones(3, 1))[(x[:3] * 0).long(), m],
    "written": lambda x, m: torch.zeros(x.shape[0], m.nonzero().shape[0]).add_(x),
}


@pytest.mark.parametrize("name", BROADCAST)
@pytest.mark.parametrize("wants", [False, True])
def test_one_column_is_broadcast_to_as_many_as_data_says(name, wants):
    def f(x, m):
        return BROADCAST[name](x, m)

    compiled = cresset.compile(f)
    for rows, columns in ((4, 6), (3, 9), (5, 2), (3, 30)):
        x = torch.randn(rows, 1)
        assert_same_call(f, compiled, x.requires_grad_(wants), torch.rand(columns) > 0.5)
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats["graph_break_reasons"]
