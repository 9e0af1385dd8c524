"""Recurrent layers: a single compilation for every length and batch, with eager's results."""

from __future__ import annotations

import copy

import pytest
import torch
from compare import assert_same
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import cresset

SIZES = [(3, 5), (4, 7), (1, 9), (2, 1), (1, 1), (8, 8), (5, 30)]
LAYERS = [nn.LSTM, nn.GRU, nn.RNN, lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k)]


def check(module, calls, graphs=1):
    cresset.reset()
    compiled = cresset.compile(module)
    for args in calls:
        assert_same(compiled(*args), module(*args))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (graphs, 0, 0), (
        stats["recompiles"],
        stats["graph_break_reasons"],
    )


@pytest.mark.parametrize("layer", LAYERS, ids=["lstm", "gru", "tanh", "relu"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@torch.no_grad()
def test_any_length(layer, batch_first, bidirectional):
    torch.manual_seed(0)
    module = layer(6, 8, 2, batch_first=batch_first, bidirectional=bidirectional, dropout=0.5).eval()
    inputs = [torch.randn(b, t, 6) if batch_first else torch.randn(t, b, 6) for b, t in SIZES]
    check(module, [(x,) for x in inputs])


@torch.no_grad()
def test_given_states_and_projections():
    torch.manual_seed(0)
    gru = nn.GRU(4, 6, bias=False)
    check(gru, [(torch.randn(t, b, 4), torch.randn(1, b, 6)) for b, t in SIZES])
    lstm = nn.LSTM(4, 6, proj_size=3, bidirectional=True)
    states = [(torch.randn(2, b, 3), torch.randn(2, b, 6)) for b, _ in SIZES]
    check(lstm, [(torch.randn(t, b, 4), state) for (b, t), state in zip(SIZES, states)])
    check(nn.LSTM(4, 6), [(torch.randn(t, 4),) for _, t in SIZES])  # without a batch


@torch.no_grad()
def test_in_the_middle_of_a_model():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.layer = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=True)
            self.head = nn.Linear(8, 4)

        def forward(self, ids):
            out, last = self.layer(self.embedding(ids) * 2)
            return self.head(out).softmax(-1), last.squeeze(0) + out[:, -1]

    torch.manual_seed(0)
    check(Model(), [(torch.randint(20, size),) for size in SIZES])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_dropout_and_lower_precision_are_done_step_by_step(mode):
    torch.manual_seed(0)
    module = nn.LSTM(4, 6, 2, dropout=0.5).train()
    compiled = cresset.compile(module)
    x = torch.randn(5, 3, 4)
    with mode():
        torch.manual_seed(1)
        expected = module(x)
        torch.manual_seed(1)
        assert_same(compiled(x), expected)
        module.eval()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            got, expected = compiled(x), module(x)
        assert got[0].dtype == expected[0].dtype
        torch.testing.assert_close(got, expected, atol=2e-2, rtol=2e-2)


@torch.no_grad()
def test_bad_arguments_raise_what_eager_raises():
    module = nn.GRU(4, 6)
    compiled = cresset.compile(module)
    compiled(torch.randn(3, 2, 4))
    for args in [(torch.randn(0, 2, 4),), (torch.randn(3, 2, 4), torch.randn(1, 3, 6)), (torch.randn(3, 2, 5),)]:
        with pytest.raises(RuntimeError) as expected:
            module(*args)
        with pytest.raises(RuntimeError) as got:
            compiled(*args)
        assert str(got.value) == str(expected.value)


@torch.no_grad()
def test_packed_sequences():
    torch.manual_seed(0)
    layer = nn.LSTM(4, 6, batch_first=True, bidirectional=True)

    def f(x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, (h, _) = layer(packed)
        return pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0], h

    cresset.reset()
    compiled = cresset.compile(f)
    for lengths in ([3, 1, 2], [5, 2], [4, 4, 4, 1]):
        given = torch.randn(len(lengths), 6, 4), torch.tensor(lengths)
        assert_same(compiled(*given), f(*given))


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("layer", LAYERS, ids=["lstm", "gru", "tanh", "relu"])
def test_packed_sequences_with_gradients_take_the_same_pieces(layer, total):
    """Data-dependent work runs between the graph segments: none of them is for a single batch or length."""
    torch.manual_seed(0)
    module = layer(4, 6, batch_first=True)

    def f(x, lengths):
        packed = pack_padded_sequence(x * 2, lengths, batch_first=True, enforce_sorted=False)
        out, last = module(packed)
        out, n = pad_packed_sequence(out, batch_first=True, total_length=x.shape[1] if total else None)
        return out.sin(), n * 2, last

    compiled = cresset.compile(f)
    pieces = None
    for lengths in ([3, 1, 2], [5, 2], [4, 4, 4, 1], [2], [7, 1, 1, 3, 6]):
        given, results = (torch.randn(len(lengths), 7, 4), torch.tensor(lengths)), []
        for call in (f, compiled):
            module.zero_grad()
            out = call(*given)
            out[0].square().sum().backward()
            results.append((out, [p.grad.clone() for p in module.parameters()]))
        assert_same(*results)
        stats = cresset.stats()
        assert stats["graphs"] == (pieces or stats["graphs"]) and stats["eager_calls"] == 0, stats["recompiles"]
        pieces = stats["graphs"]


KINDS = pytest.mark.parametrize("layer", LAYERS, ids=["lstm", "gru", "tanh", "relu"])


def trained(call, module, x, seed=0, states=()):
    """The outcome of a training step: results, gradients of the input, of states and of parameters."""
    module.zero_grad()
    x = x.clone().requires_grad_()
    states = tuple(s.clone().requires_grad_() for s in states)
    torch.manual_seed(seed)
    out, last = call(x, *((states if len(states) == 1 else (states,)) if states else ()))
    last = last if isinstance(last, tuple) else (last,)
    (out.sin().sum() + sum(t.square().sum() for t in last)).backward()
    return out, last, x.grad, [s.grad for s in states], [p.grad for p in module.parameters()]


def compare_training(module, inputs, tolerance=1e-5, states=lambda x: ()):
    cresset.reset()
    compiled = cresset.compile(module)
    for i, x in enumerate(inputs):
        given = states(x)
        assert_same(trained(compiled, module, x, i, given), trained(module, module, x, i, given), tolerance=tolerance)
    stats = cresset.stats()
    counts = (stats["graphs"], stats["graph_breaks"], stats["eager_calls"])
    assert counts == (1, 0, 0), (stats["recompiles"], stats["graph_break_reasons"])


@KINDS
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_for_any_length(layer, batch_first, bidirectional, bias):
    torch.manual_seed(0)
    options = {"batch_first": batch_first, "bidirectional": bidirectional, "bias": bias, "dropout": 0.3}
    module = layer(6, 8, 2, **options)
    compare_training(module, [torch.randn(b, t, 6) if batch_first else torch.randn(t, b, 6) for b, t in SIZES])


@KINDS
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_gradients_of_dtypes(layer, dtype):
    torch.manual_seed(0)
    module = layer(6, 8, bidirectional=True).to(dtype)
    tolerance = 1e-12 if dtype is torch.float64 else 5e-2
    compare_training(module, [torch.randn(t, b, 6, dtype=dtype) for b, t in SIZES], tolerance)


@KINDS
def test_gradients_of_states(layer):
    torch.manual_seed(0)
    module = layer(5, 4, 2)
    count = 2 if isinstance(module, nn.LSTM) else 1
    compare_training(
        module,
        [torch.randn(t, b, 5) for b, t in SIZES],
        states=lambda x: tuple(torch.randn(2, x.shape[1], 4) for _ in range(count)),
    )


@KINDS
def test_gradients_of_wide_layers(layer):
    """Products in a library, threads over the batch."""
    torch.manual_seed(0)
    compare_training(layer(40, 300), [torch.randn(t, b, 40) for b, t in [(33, 4), (17, 3), (40, 6), (1, 5)]])


@KINDS
def test_a_part_of_the_gradients(layer):
    torch.manual_seed(0)
    module = layer(6, 8)
    module.weight_hh_l0.requires_grad_(False)
    module.bias_ih_l0.requires_grad_(False)
    compiled = cresset.compile(module)
    for b, t in SIZES:
        x = torch.randn(t, b, 6)
        found = []
        for call in (compiled, module):
            module.zero_grad()
            call(x)[0][-1].sum().backward()
            found.append([p.grad for p in module.parameters()])
        assert [g is None for g in found[0]] == [g is None for g in found[1]]
        assert_same([g for g in found[0] if g is not None], [g for g in found[1] if g is not None])
    assert cresset.stats()["graphs"] == 1


@KINDS
def test_values_at_the_ends(layer):
    """Gates that are shut or open for good, infinities, NaN, and states near 0."""
    torch.manual_seed(0)
    module = layer(3, 32)
    compiled = cresset.compile(module)
    for scale in (1e-6, 1e-3, 1.0, 30.0, 1e4, float("inf"), float("nan")):
        x = torch.randn(4, 2, 3) * scale
        got, expected = trained(compiled, module, x), trained(module, module, x)
        if scale < 1e4:
            assert_same(got, expected)
        else:  # a gate that is nearly open: its difference from 1 has few digits, in eager too
            torch.testing.assert_close(got, expected, equal_nan=True, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("layer", LAYERS[1:3], ids=["gru", "tanh"])
def test_gradients_of_gradients(layer):
    torch.manual_seed(0)
    module = layer(4, 5)

    def penalty(x):
        x = x.detach().requires_grad_()
        (of_x,) = torch.autograd.grad(module(x)[0].sin().sum(), x, create_graph=True)
        return of_x.square().sum()

    compiled = cresset.compile(penalty)
    for t, b in ((3, 2), (4, 1), (3, 2)):
        x, found = torch.randn(t, b, 4), []
        for call in (compiled, penalty):
            module.zero_grad()
            loss = call(x)
            loss.backward()
            found.append((loss, [p.grad for p in module.parameters()]))
        assert_same(*found)
    assert cresset.stats()["eager_calls"] == 0


@pytest.mark.parametrize("split", ["unsafe_chunk", "unsafe_split"])
@pytest.mark.parametrize("grad", [False, True])
def test_parts_that_are_written_keep_their_layout(split, grad):
    """Parts that are no views to torch have gaps, as views have."""

    def f(x, w):
        parts = (x @ w).unsafe_chunk(3, 1) if split == "unsafe_chunk" else (x @ w).unsafe_split(2, 1)
        return parts[0].sigmoid_(), parts[1].tanh_() * parts[2], parts[1]

    compiled = cresset.compile(f)
    for n in (3, 5):
        x, w = torch.randn(n, 4), torch.randn(4, 6, requires_grad=grad)
        assert_same(compiled(x, w), f(x, w))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("layer", [nn.LSTM(4, 6, bidirectional=True), nn.LSTM(4, 6, 2), nn.GRU(4, 6)])
def test_gradients(layer, training):
    """The backward of oneDNN's LSTM needs a workspace, whose size only oneDNN knows."""
    layer = copy.deepcopy(layer).train(training)
    module = copy.deepcopy(layer)
    compiled = cresset.compile(module)
    for t, batch in ((3, 2), (5, 1), (3, 2)):
        x = torch.randn(t, batch, 4)
        got, expected = compiled(x)[0], layer(x)[0]
        assert_same(got, expected, tolerance=1e-4)
        for m, y in ((module, got), (layer, expected)):
            m.zero_grad()
            y.square().sum().backward()
        for mine, its in zip(module.parameters(), layer.parameters()):
            assert_same(mine.grad, its.grad, tolerance=1e-4)
    assert cresset.stats()["eager_calls"] == 0


def test_gradients_along_lengths_that_data_gives():
    torch.manual_seed(0)
    layers = nn.GRU(3, 4), nn.LSTM(3, 4, batch_first=True)

    def f(x):
        rows = x[x[:, 0] > 0]
        steps, sequence, batch = layers[0](rows[:, None])[0], layers[1](rows[None])[0], layers[1](rows[:, None])[0]
        return steps.sum() + sequence.square().sum() + batch.sum()

    compiled = cresset.compile(f, fullgraph=True)
    for n in (6, 9, 4, 12, 7, 20):
        x, found = torch.randn(n, 3), []
        for call in (compiled, f):
            for layer in layers:
                layer.zero_grad()
            loss = call(x)
            loss.backward()
            found.append((loss, [p.grad for layer in layers for p in layer.parameters()]))
        assert_same(*found)
    stats = cresset.stats()
    assert (stats["graphs"], stats["eager_calls"]) == (1, 0)
