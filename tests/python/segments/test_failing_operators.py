"""Operators with errors by their data: when the graph segment runs, which may be later than in eager mode."""

import types

import pytest
import torch

import cresset

STATE = {}


def writes_state(x, i):
    STATE["before"] = x * 2
    return x[torch.tensor([i])] + 1


def writes_its_argument(x, i):
    x.add_(1)
    STATE["before"] = x * 2
    return x[torch.tensor([i])] * 2


def draws(x, i):
    STATE["before"] = torch.rand(2) + x.sum()
    return x[torch.tensor([i])] + 1


def is_caught_before_a_print(x, i):
    y = x * 2
    try:
        found = x[torch.tensor([i])]
        print("found")
    except IndexError as e:
        STATE["error"] = str(e)
        found = y + 1
    return found


def is_caught_before_a_break(x, i):
    y = x * 2
    try:
        found = y[torch.tensor([i])]
        cresset.graph_break()
    except IndexError:
        found = y + 1
    return found


def is_caught_before_a_read(x, i):
    x.add_(1)
    try:
        found = x[torch.tensor([i])]
        STATE["sum"] = found.sum().item()
    except IndexError:
        found = x + 1
    return found


def seen(function, i, k):
    torch.manual_seed(k)
    x = torch.arange(12.0).reshape(3, 4) + k
    try:
        result = function(x, i)
    except Exception as e:
        result = type(e), str(e)
    told = repr((result, x, STATE, torch.rand(1)))
    STATE.clear()
    return told


@pytest.mark.parametrize("order", [(9, 1, 9, 2, 9), (1, 9, 2, 9)])
@pytest.mark.parametrize(
    "program",
    [
        writes_state,
        writes_its_argument,
        draws,
        is_caught_before_a_print,
        is_caught_before_a_break,
        is_caught_before_a_read,
    ],
)
def test_what_came_before_has_happened(program, order, capsys):
    compiled = cresset.compile(program)
    for k, i in enumerate(order):
        assert seen(compiled, i, k) == seen(program, i, k)


def test_the_first_error_is_told():
    w = types.SimpleNamespace(n=2)

    def program(x):
        i = torch.tensor([0, 1])
        return x[i % x.shape[0], i], x[0][w.n % 4]

    compiled = cresset.compile(program)
    for w.n, shape in [(4, (1, 1)), (5, (1, 4)), (6, (3, 1)), (7, (3, 4))]:
        told = []
        for function in (program, compiled):
            try:
                told.append(repr(function(torch.ones(shape))))
            except IndexError as e:
                told.append(str(e))
        assert told[0] == told[1]


def test_state_holds_no_symbols_afterwards():
    net, w = torch.nn.BatchNorm1d(4), types.SimpleNamespace(n=1)

    def program(x):
        net.train(w.n % 2 == 0 and x.shape[0] > 1)
        return net(x)

    compiled = cresset.compile(program)
    for w.n in range(1, 6):
        with pytest.raises(RuntimeError, match="mixed dtype"):
            compiled(torch.ones(3, 4, dtype=torch.float64))
        assert net.training is (w.n % 2 == 0)
