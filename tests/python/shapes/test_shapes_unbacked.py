"""Operators on data-dependent sizes: programs that stay a single graph segment under fullgraph. All are right with and
without fullgraph, whatever the size in the first call (including 0 and 1)."""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, assert_same_call

import cresset

torch.manual_seed(0)
W, SQUARE, BIAS = torch.randn(3, 5), torch.randn(3, 3), torch.randn(5)
CONV, LINEAR, NORM = torch.nn.Conv1d(3, 4, 3, padding=1), torch.nn.Linear(3, 5), torch.nn.LayerNorm(3)
EMBED, LSTM = torch.nn.Embedding(7, 3), torch.nn.LSTM(3, 4, batch_first=True)
ATTEND = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()


def filled(y):
    z = torch.zeros(y.shape[0], 4)
    z[:, :3] = y
    z[0:1] = 7
    return z


def attended(y):
    wide = F.pad(y, (0, 1))[None]
    return ATTEND(wide, wide * 2, wide + 1)[0]  # on a single tensor it would be a single operator


def longer(y):  # never empty, for operators that need an element
    return torch.cat([y, SQUARE])


# A single graph segment under fullgraph.
WHOLE = {
    "mm": lambda y: y @ W,
    "linear": LINEAR,
    "addmm": lambda y: torch.addmm(BIAS, y, W),
    "gram": lambda y: y.t() @ y,
    "bmm": lambda y: torch.bmm(y.unsqueeze(1), y.unsqueeze(2)),
    "outer": lambda y: torch.outer(y[:, 0], y[:, 1]),
    "einsum": lambda y: torch.einsum("ij,kj->ik", y, y),
    "softmax": lambda y: y.softmax(-1),
    "softmax of rows": lambda y: longer(y).softmax(0),
    "layer norm": NORM,
    "reductions": lambda y: (y.sum(0), y.mean(1), y.var(1), longer(y).amax(0), longer(y).logsumexp(0), y.prod(0)),
    "argmax": lambda y: longer(y).argmax(0),
    "max": lambda y: longer(y).max(0),
    "topk": lambda y: longer(y).topk(2, 0),
    "sort": lambda y: y.sort(0),
    "scans": lambda y: (y.cumsum(0), y.cumprod(1)),
    "flip, roll": lambda y: (y.flip(0), y.roll(1, 0)),
    "cat, stack": lambda y: (torch.cat([y, y * 2], 1), torch.stack([y, y])),
    "views": lambda y: (y.view(-1), y.reshape(-1, 1, 3), y.flatten(), y[None, :, None].squeeze(0)),
    "view by its size": lambda y: torch.cat([y, y]).view(2, y.shape[0], 3),
    "expand, repeat": lambda y: (y[:, :1].expand(-1, 4) + 0, y.repeat(2, 1), y.tile(1, 2)),
    "gather, scatter": lambda y: (
        y.gather(1, torch.zeros_like(y, dtype=torch.long)),
        torch.zeros_like(y).scatter(1, torch.ones_like(y, dtype=torch.long), y),
        torch.zeros(2).scatter_add(0, (y[:, 0] > 1).long(), y[:, 1]),
        torch.zeros(2, 3).index_add(0, (y[:, 0] > 1).long(), y),
        y.index_select(1, torch.tensor([0, 2])),
    ),
    "embedding": lambda y: EMBED((y.abs() * 3).long() % 7),
    "masks of masks": lambda y: (y[y[:, 1] > 0], torch.where(y > 0, y, -y), y.masked_fill(y > 1, 0.0), y.nonzero()),
    "pad": lambda y: (F.pad(y, (1, 1)), F.pad(longer(y), (0, 0, 1, 2))),
    "pad of rows": lambda y: F.pad(y, (0, 0, 1, 2)),
    "conv": lambda y: CONV(longer(y).t().unsqueeze(0)),
    "attention": lambda y: F.scaled_dot_product_attention(y[None, None], y[None, None], y[None, None]),
    "attention layer": attended,
    "slices": lambda y: (y[1:], y[:-1], y[::2], y[:2], y.unbind(1), y.chunk(3, 1), y.split(2, 1)),
    "creation": lambda y: (
        torch.arange(y.shape[0]) * 2,
        torch.zeros(y.shape[0], 2) + y[:, :2],
        y.new_zeros(y.shape[0]) + y[:, 0],
        torch.full((y.size(0),), 2.0) * y[:, 0],
        torch.eye(y.shape[0]),
        y + torch.arange(y.shape[0])[:, None],
    ),
    "numbers": lambda y: (y * len(y), y.sum() / (y.numel() + 1), y * (y.shape[0] // 2)),
    "losses": lambda y: F.cross_entropy(longer(y), torch.zeros(y.shape[0] + 3, dtype=torch.long)),
    "norms": lambda y: (y.norm(dim=1), F.cosine_similarity(y, y.flip(1)), longer(y).diff(dim=0)),
    "in place": lambda y: (y.clone().add_(1).mul_(2), filled(y)),
    "out": lambda y: torch.add(y, 1, out=torch.empty_like(y)),
    "diagonal": lambda y: (
        y.diagonal() * 2,
        y.diagonal(1),
        y.diagonal(-1),
        torch.cat([y, y[:1]]).diagonal(0, 0, -1) + 1,
    ),
    "broadcast with itself": lambda y: y[:, None] + y[None],
    "recurrent": lambda y: LSTM(longer(y)[None])[0],
    "resampled": lambda y: (
        F.interpolate(longer(y).t()[None], scale_factor=2),
        F.avg_pool1d(longer(y).t()[None], 3, 1),
        F.adaptive_avg_pool1d(longer(y).t()[None], 2),
    ),
    "searched": lambda y: torch.searchsorted(y[:, 0].sort()[0], y[:, 1]),
}

# Operators without a rule of their own: their sizes follow from their meta kernels' answers at a few general sizes.
FOUND = {
    "rot90": lambda y: y.rot90(),
    "cross": lambda y: torch.linalg.cross(y, y.flip(1)),
    "trace, diag": lambda y: ((y @ y.t()).trace(), torch.diag(y[:, 0]), torch.diag_embed(y)),
    "median": lambda y: longer(y)[:, 0].median(),
    "linear algebra": lambda y: (
        torch.linalg.inv(y[:, :1, None] * torch.eye(2) + torch.eye(2)),
        torch.linalg.det(y[:, :1, None] + 3 * torch.eye(2)),
        torch.matrix_exp(y[:, :1, None] * torch.eye(2)),
        torch.linalg.svdvals(y.t() @ y + SQUARE),
    ),
    "spectra": lambda y: torch.view_as_real(torch.fft.rfft(longer(y))),
    "losses": lambda y: (
        F.binary_cross_entropy(longer(y).sigmoid(), (longer(y) > 0).float()),
        F.multi_margin_loss(longer(y), torch.zeros(y.shape[0] + 3, dtype=torch.long)),
        F.soft_margin_loss(longer(y), longer(y).sign()),
    ),
    "bags": lambda y: F.embedding_bag((longer(y)[:, 0].abs() * 3).long() % 7, EMBED.weight, torch.tensor([0, 2])),
    "histogram": lambda y: y[:, 0].histc(4, -2, 2),
    "isin": lambda y: torch.isin(y.round(), torch.tensor([0.0, 1.0])),
    "blocks": lambda y: torch.block_diag(y, SQUARE),
    "bilinear": lambda y: F.bilinear(y, y, torch.ones(2, 3, 3)),
    "dropout": lambda y: F.dropout(longer(y), 0.5),
    "quantile": lambda y: longer(y).quantile(0.3, 0),
    "pools of all": lambda y: F.avg_pool1d(longer(y).t()[None], y.shape[0] + 3),
}

# Shapes decided by data: a graph break, and fullgraph is refused with the decision's name.
DECIDED = {
    "squeeze": lambda y: y.squeeze(),
    "squeeze of a dimension": lambda y: y.squeeze(0) * 2,
    "expand to a number": lambda y: longer(y)[3:].expand(4, 3),
    "chunk": lambda y: torch.cat(longer(y).chunk(2, 0)),
    "split by its size": lambda y: torch.cat(torch.cat([y, y]).split(y.shape[0])),
}


def rows(count, n=7):
    """n rows; the mask keeps `count` of them."""
    x = torch.randn(n, 3)
    x[:, 0] = -x[:, 0].abs()
    x[:count, 0] = x[:count, 0].abs()
    return x


def outcome(f, x):
    try:
        return f(x)
    except (RuntimeError, IndexError) as e:
        return type(e)


@pytest.mark.parametrize("first", [4, 1, 0])
@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("name", [*WHOLE, *(f"found: {name}" for name in FOUND)])
def test_stays_in_one_piece(name, fullgraph, first):
    program = WHOLE[name] if name in WHOLE else FOUND[name.removeprefix("found: ")]

    def f(x):
        return program(x[x[:, 0] > 0])

    def seeded(f, x):
        torch.manual_seed(0)
        return outcome(f, x)

    cresset.reset()
    with torch.no_grad():
        compiled = cresset.compile(f, fullgraph=fullgraph)
        for count in (first, 4, 6, 2, 1, 0):
            x = rows(count)  # empty and single rows are no promise
            assert_same(seeded(compiled, x), seeded(f, x), strides=count > 1 and name in WHOLE)
        stats = cresset.stats()
    assert stats["graph_breaks"] == 0 and stats["graphs"] == 1


GRU = torch.nn.GRU(3, 4, batch_first=True)
GRID, GROUPS = torch.rand(1, 2, 2, 2) * 2 - 1, torch.nn.GroupNorm(2, 4)
ENCODER = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
GRADIENTS = {
    "conv of batches": lambda y: CONV(y.unsqueeze(2).expand(-1, -1, 5)),
    "conv of lengths": lambda y: CONV(y.t()[None]),
    "conv2d": lambda y: F.conv2d(y.unsqueeze(1).unsqueeze(3), torch.ones(2, 1, 2, 1)),
    "conv3d": lambda y: F.conv3d(y[:, None, :, None, None], torch.ones(2, 1, 2, 1, 1)),
    "transposed conv": lambda y: F.conv_transpose1d(y.t()[None], torch.ones(3, 2, 3)),
    "depthwise": lambda y: F.conv1d(y[:, 0].view(1, 1, -1), torch.ones(2, 1, 3), padding=1),
    "group norm": lambda y: GROUPS(
        (longer(y) @ torch.arange(12.0).view(3, 4).sin()).unsqueeze(2) * torch.arange(1.0, 4)
    ),
    "median": lambda y: y[:, 0].median(),
    "medians": lambda y: y.median(1).values,
    "mode": lambda y: y.mode(1).values,
    "logcumsumexp": lambda y: y.logcumsumexp(0),
    "cummax": lambda y: y.cummax(0).values + y.cummin(1).values,
    "softmax": lambda y: longer(y).softmax(0),
    "dropout": lambda y: F.dropout(y, 0.5),
    "dropout2d": lambda y: F.dropout2d(y[:, :, None, None], 0.5),
    "attention": lambda y: F.scaled_dot_product_attention(y[None, None], y[None, None], y[None, None], is_causal=True),
    "encoder": lambda y: ENCODER(F.pad(y, (0, 1))[None]),
    "losses": lambda y: F.mse_loss(y, y.detach() + 1) + F.smooth_l1_loss(y, y.detach() * 2) + F.huber_loss(y, -y),
    "cross entropy of shares": lambda y: F.cross_entropy(y, (y.detach() * 2).softmax(1)),
    "label smoothing": lambda y: F.cross_entropy(y, (y.detach()[:, 0] * 9).long() % 3, label_smoothing=0.1),
    "soft margins": lambda y: F.multilabel_soft_margin_loss(y, (y.detach() > 0).float()),
    "activations": lambda y: F.glu(F.pad(y, (0, 1))).sum() + F.prelu(y, torch.tensor([0.2])),
    "images": lambda y: F.interpolate(y[:, None, None, :].expand(-1, 1, 3, -1), scale_factor=2, mode="bicubic"),
    "grid": lambda y: F.grid_sample(y[:, None, None, :].expand(-1, 1, 3, -1), GRID.expand(y.shape[0], -1, -1, -1)),
    "adaptive": lambda y: F.adaptive_avg_pool1d(y.unsqueeze(1), 2) + F.adaptive_max_pool1d(y.unsqueeze(1), 2),
    "inverses": lambda y: torch.linalg.inv(y[:, :2, None] * torch.eye(2) + 3 * torch.eye(2)),
    "diagonals": lambda y: (y @ y.t()).diagonal() + (y @ y.t()).trace(),
    "rotated": lambda y: y.rot90() * 2 + y.t(),
    "distances": lambda y: torch.cdist(y, SQUARE) + torch.cdist(y, y).sum(1, keepdim=True),
    "recurrent batches": lambda y: GRU(y.unsqueeze(1))[0],
    "put": lambda y: torch.zeros(9, 3).masked_scatter(torch.ones(9, 3).bool(), torch.cat([y, torch.ones(27, 3)])),
}


@pytest.mark.parametrize("first", [4, 1, 0])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_stay_in_one_piece(name, first):
    """Sizes of 0 and 1 may run eagerly: the formulas' general case is taken, and asserted."""

    def f(x):
        return GRADIENTS[name](x[x[:, 0] > 0])

    compiled = cresset.compile(f, fullgraph=True)
    for count in (first, 4, 6, 2, 3, 1, 0):
        x, found = rows(count), []
        for g in (compiled, f):
            leaf = x.clone().requires_grad_()
            torch.manual_seed(0)
            try:
                out = g(leaf)
                (out * torch.linspace(0.5, 2, out.numel()).view(out.shape)).sum().backward()
                found.append((out.detach(), leaf.grad))
            except (RuntimeError, IndexError) as e:
                found.append(type(e))
        assert_same(found[0], found[1], strides=False, tolerance=1e-4)
    stats = cresset.stats()
    assert stats["graph_breaks"] == 0 and stats["eager_calls"] <= 3
    assert stats["graphs"] <= (1 if first else 2)  # a raising first call without rows leaves another graph


@pytest.mark.parametrize("first", [4, 1, 0])
@pytest.mark.parametrize("name", DECIDED)
def test_what_data_decides_ends_the_piece(name, first):
    def f(x):
        y = DECIDED[name](x[x[:, 0] > 0])
        return y, y.dim(), y.shape[0] if y.dim() else -1

    with torch.no_grad():
        compiled = cresset.compile(f)
        for count in (first, 4, 6, 2, 1, 0):
            x = rows(count)
            assert_same(outcome(compiled, x), outcome(f, x), strides=count > 1)
        with pytest.raises(cresset.CaptureError, match=r"only (tensor )?data can"):
            cresset.compile(f, fullgraph=True)(rows(4))


@pytest.mark.parametrize("first", [4, 0])
@pytest.mark.parametrize("masked", [True, False])
def test_softmax_of_nothing_is_no_case_of_its_own(masked, first):
    def f(x):
        y = x[x[:, 0] > 0] if masked else x
        return y.softmax(0), y.log_softmax(0), y.logsumexp(0), y.t().softmax(1)

    compiled = cresset.compile(f, fullgraph=True)
    for count in (first, 4, 1, 0, 6):
        x = rows(count) if masked else torch.randn(count, 3)
        found = []
        for g in (compiled, f):
            leaf = x.clone().requires_grad_()
            out = g(leaf)
            (out[0] * 2 + out[1].sin()).sum().backward()
            found.append((out, leaf.grad))
        assert_same(found[0], found[1], strides=False, tolerance=1e-4)
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats["recompiles"]


NOTHING = {
    "trapezoid": lambda y: torch.trapezoid(y, dim=0),
    "trapezoid of places": lambda y: torch.trapezoid(y, y.detach().cumsum(0), dim=0),
    "batch norm": lambda y: torch.batch_norm(y, None, None, None, None, True, 0.1, 1e-5, False),
    "instance norm": lambda y: torch.instance_norm(y.t()[None], None, None, None, None, True, 0.1, 1e-5, False),
    "dropout": lambda y: (F.dropout(y, 0.5), torch.rand(2)),
    "covariance": lambda y: torch.cov(y.t()),
    "cross entropy": lambda y: F.cross_entropy(y, torch.zeros(y.shape[0], dtype=torch.long), reduction="sum"),
}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", NOTHING)
def test_what_is_done_for_nothing_is_as_in_eager(name, first):
    """Formulas with a case for no elements, in a first call with none."""

    def f(x):
        return NOTHING[name](x[x[:, 0] > 0])

    compiled = cresset.compile(f)
    for count in (first, 4, 0, 1):
        x, found = rows(count), []
        for g in (compiled, f):
            torch.manual_seed(0)
            found.append(outcome(g, x.clone().requires_grad_()))
        assert_same(found[0], found[1], strides=False, tolerance=1e-4)


def test_split_into_pieces_of_no_rows_serves_no_other_size():
    def f(x):
        y = x * 1
        return torch.cat([y, y]).split(y.shape[0])

    compiled = cresset.compile(f)
    with torch.no_grad():
        for n in (7, 9, 0, 33, 1, 2):
            x = torch.randn(n, 3)
            assert_same(compiled(x), f(x), strides=n > 0)


def test_sizes_as_numbers_end_the_piece_that_gives_them():
    def f(x):
        y = x[x[:, 0] > 0]
        return torch.kron(y, y) * 2, y + 1  # reads all sizes of y at once

    compiled = cresset.compile(f)
    with torch.no_grad():
        for count in (4, 2, 3, 1):
            x = rows(count)
            assert_same(compiled(x), f(x))


def test_at_most_one_row_and_often_none():
    """Loops over it may be empty; then nothing in them may be read, not even values independent of the index."""

    def f(x):
        y = x * 1
        kept = y[None][y.reshape(1, -1).sum(1) > 0]
        n = kept.shape[0]
        a, b = kept.split([n // 2, n - n // 2])
        return a.sum(0) + b.sum(0) + 1, kept[:1].amax(2).sum(0), (kept * 2).sum(0)

    compiled = cresset.compile(f)
    with torch.no_grad():
        for n in (5, 4000, 3, 64):
            for sign in (-1, 1):
                x = sign * torch.rand(n, 37)
                assert_same(compiled(x), f(x))
    assert cresset.stats()["graphs"] == 1


# ---- a tensor of one integer as an index

PICKED = {
    "a row": lambda x, i: x[i] * 2,
    "an element": lambda x, i: x[i, 1] + x[0, i % 3],
    "of what was made": lambda x, i: (x * 2)[i].exp(),
    "two of them": lambda x, i: x[i] - x[(i * i) % 3],
    "after a slice": lambda x, i: x[:, 1:][i].sum(),
    "behind a new dimension": lambda x, i: x[None, i] * 2,
    "the greatest": lambda x, i: x[x[:, 0].argmax()] * 2 + i,
    "one after another": lambda x, i: x[(x - x[x[:, 0].argmax()])[:, 1].argmin()] * i,
    "an item": lambda x, i: x[int(i)] * 2,
}


@pytest.mark.parametrize("name", PICKED)
@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_tensor_of_one_integer_selects(name, fullgraph):
    if name == "an item" and not fullgraph:
        return  # Python has the number
    function = PICKED[name]
    compiled = cresset.compile(function, fullgraph=fullgraph)
    calls = ((10, 3), (20, -1), (4, -4), (4, 0), (7, 2), (5, 4))
    for n, i in calls:
        assert_same_call(function, compiled, torch.randn(n, 3), torch.tensor(i))
    stats = cresset.stats()
    assert stats["graphs"] == 1 and stats["graph_breaks"] == 0, (stats["recompiles"], stats["graph_break_reasons"])
    assert stats["eager_calls"] == 0
    if name in ("a row", "of what was made"):
        for i in (5, -6):
            assert_same_call(function, compiled, torch.randn(5, 3), torch.tensor(i))  # raises


def test_what_a_tensor_of_one_integer_selects_is_a_view():
    def view(x, i):
        row = x[i]
        row.mul_(2)
        return row

    compiled = cresset.compile(view)
    for n, i in ((10, 3), (20, -1), (4, 0)):
        assert_same_call(view, compiled, torch.randn(n, 3), torch.tensor(i))
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]


def test_writing_where_a_tensor_of_one_integer_says():
    def written(x, i, value):
        y = x * 2
        y[i] = value
        y[0, i % 3] += 1
        return y

    compiled = cresset.compile(written)
    for n, i in ((10, 3), (20, -1), (4, 0), (6, -6)):
        assert_same_call(written, compiled, torch.randn(n, 3), torch.tensor(i), torch.randn(3))
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]


def test_selecting_by_a_tensor_of_one_integer_with_gradients():
    def loss(x):
        return (x - x[x[:, 0].argmax()]).square().sum() + x[x[:, 1].argmin()].sum()

    compiled = cresset.compile(loss)
    for n in (5, 9, 3):
        given = torch.randn(n, 3)
        found = []
        for f in (loss, compiled):
            x = given.clone().requires_grad_()
            f(x).backward()
            found.append(x.grad)
        torch.testing.assert_close(found[1], found[0])
    stats = cresset.stats()
    assert stats["graphs"] == 1 and stats["graph_breaks"] == 0 and stats["eager_calls"] == 0, stats


# ---- tensors of one integer as bounds of slices

CUT = {
    "the first": lambda x, n: x[:n] * 2,
    "the rest": lambda x, n: x[n:].exp(),
    "between": lambda x, n: (x[1:n], x[-n:] + 1, x[n // 2 : n].sum(0)),
    "columns": lambda x, n: x[:, n : n + 2] * 2,
    "exchanged": lambda x, n: torch.cat([x[n:], x[:n]]),
    "of both": lambda x, n: x[:n, None] - x[None, :n],
    "of what was cut": lambda x, n: x[::2][:n][:, :n],
    "segments": lambda x, n: [x[a:b].sum(0) for a, b in zip(n * torch.arange(3), n * torch.arange(1, 4))],
    "bags": lambda x, n: F.embedding_bag((x[:n, 0] * 9).long().abs() % 5, torch.ones(5, 2), n[None] * 0),
}


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("wants", [False, True])
def test_tensors_of_one_integer_as_bounds(name, fullgraph, wants):
    function = CUT[name]
    compiled = cresset.compile(function, fullgraph=fullgraph)
    for rows, n in ((5, 3), (7, 2), (4, 4), (6, 1), (5, -2), (3, 9), (3, 0), (1, 1)):
        if name == "bags" and n == 0:
            continue
        assert_same_call(function, compiled, torch.randn(rows, 6).requires_grad_(wants), torch.tensor(n))
    stats = cresset.stats()
    assert stats["graphs"] == 1 and stats["graph_breaks"] == 0, (stats["recompiles"], stats["graph_break_reasons"])


WRITTEN_SLICES = {
    "filled": lambda y, n: y[:n].fill_(0),
    "multiplied": lambda y, n: y[n:].mul_(3),
    "masked": lambda y, n: y[:n].masked_fill_(y[:n] > 0, 2.0),
    "of both": lambda y, n: y[:n, n:].sub_(y[:n, n:] * 2),
    "a view of it": lambda y, n: y[:n].t()[1:].exp_(),
}


def set_and_added(y, n):
    y[:n] = 0
    y[:, n:] += 1


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("name", ["set and added", *WRITTEN_SLICES])
def test_writing_to_slices_that_tensors_bound(name, wants):
    write = WRITTEN_SLICES.get(name, set_and_added)

    def function(x, n):
        y = x * 2
        write(y, n)
        return y * x

    compiled = cresset.compile(function)
    for rows, n in ((5, 3), (7, 2), (4, 4), (6, 1), (5, -2), (3, 9), (3, 0), (1, 1), (0, 0)):
        x = torch.randn(rows, 6).requires_grad_(wants)
        assert_same_call(function, compiled, x, torch.tensor(n))
        if wants:
            found = [torch.autograd.grad(f(x, torch.tensor(n)).sum(), x)[0] for f in (compiled, function)]
            torch.testing.assert_close(*found)
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats["graph_break_reasons"]


@pytest.mark.parametrize("first", [4, 1])
def test_segments_that_lengths_make_with_gradients(first):
    """There are as many indices as rows to add; only the addition states it."""

    def function(x, lengths):
        segment = torch.repeat_interleave(torch.arange(lengths.shape[0]), lengths)
        summed = torch.zeros(lengths.shape[0], x.shape[1]).index_add(0, segment, x)
        return summed / lengths.clamp(min=1)[:, None], summed.index_copy(0, lengths.new_zeros(1), x[:1])

    compiled = cresset.compile(function)
    for count in (first, 5, 3, 1, 6, 2):
        lengths, found = torch.randint(1, 4, (count,)), []
        given = torch.randn(int(lengths.sum()), 3)
        for f in (compiled, function):
            x = given.clone().requires_grad_()
            out = f(x, lengths)
            (out[0].sin() + out[1]).sum().backward()
            found.append((out[0].detach(), out[1].detach(), x.grad))
        assert_same(found[0], found[1])
    stats = cresset.stats()
    assert (stats["graph_breaks"], stats["eager_calls"]) == (0, 0), stats["graph_break_reasons"]
    assert stats["graphs"] <= (1 if first > 1 else 2), stats["recompiles"]


OF_NONE = {
    "differences": lambda y: (y.diff(dim=0), torch.diff(y, dim=-1)),
    "dropout": lambda y: (F.dropout(y, 0.5), F.dropout(y, 0.5, training=False)),
    "padding": lambda y: (F.pad(y, (0, 0, 2, 1)), F.pad(y.t(), (0, 9 - y.shape[0])), F.pad(y, (0, 0, 0, -y.shape[0]))),
    "written": lambda y: torch.cat([torch.zeros(2, 3), y]).slice_scatter(y, 0, 2),
    "read": lambda y: torch.zeros(9, 3).slice_scatter(y * 2, 0, 1, y.shape[0] + 1),
}


@pytest.mark.parametrize("first", [4, 0])
@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("name", OF_NONE)
def test_none_at_all_is_no_case_of_its_own(name, wants, first):
    def f(x):
        return OF_NONE[name](x[x[:, 0] > 0])

    compiled = cresset.compile(f)
    for count in (first, 3, 0, 1, 6):
        given, found = rows(count), []
        for g in (compiled, f):
            x = given.clone().requires_grad_(wants)
            torch.manual_seed(0)
            out = g(x)
            if wants:
                sum(o.sin().sum() for o in (out if isinstance(out, tuple) else (out,))).backward()
            found.append((out, x.grad))
        assert_same(found[0], found[1], strides=False)
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats["recompiles"]


@pytest.mark.parametrize("wants", [False, True])
def test_what_is_cut_from_one_row_is_no_case_of_its_own(wants):
    def f(x):
        return F.pad(x[1:] * 2, (0, 0, 1, 1)), x[:, 1:].exp()

    compiled = cresset.compile(f)
    for m, n in ((4, 5), (1, 3), (3, 1), (1, 1), (6, 2)):
        given, found = torch.randn(m, n), []
        for g in (compiled, f):
            x = given.clone().requires_grad_(wants)
            out = g(x)
            if wants:
                (out[0].sin().sum() + out[1].sum()).backward()
            found.append((out, x.grad))
        assert_same(found[0], found[1], strides=False)
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_repetitions_of_each_slice(dtype, first):
    """A single slice is no special case; a tensor repeated by itself keeps its dtype."""

    def f(x, repeats):
        return (
            x.repeat_interleave(repeats, 0).sin(),
            torch.repeat_interleave(repeats) + 1,
            x[:, 0].repeat_interleave(repeats),
        )

    compiled = cresset.compile(f)
    for count in (first, 3, 1, 5, 0):
        given, repeats, found = torch.randn(count, 3), torch.randint(0, 3, (count,), dtype=dtype), []
        for g in (compiled, f):
            x = given.clone().requires_grad_()
            out = g(x, repeats)
            (out[0].sum() + out[2].square().sum()).backward()
            found.append((*out, x.grad))
        assert_same(found[0], found[1])
    stats = cresset.stats()
    assert (stats["graph_breaks"], stats["eager_calls"]) == (0, 0), stats["graph_break_reasons"]
    assert stats["graphs"] <= (1 if dtype is torch.int64 else 2), stats["recompiles"]
