"""Numbers that an operator specializes: a program for each of the first few values. Then the operator runs between two
graph segments, which hold for every value."""

import pytest
import torch
import torch.nn.functional as F

import cresset

MOST = 13  # eight values, and the graph segments around the operator


def spectra(x, length):
    window = torch.ones(16)
    return torch.istft(torch.stft(x, 16, return_complex=True, window=window), 16, window=window, length=length) + 1


def alignment(log_probs, targets, blank):
    return F.ctc_loss(log_probs * 1, targets, torch.tensor([10]), torch.tensor([3]), blank=blank) + 1


CASES = {
    "histogram": (lambda x, n: torch.histogram(x * 2, n)[0] + 1, lambda i: (torch.randn(50), 5 + i)),
    "fractional_max_pool2d": (
        lambda x, n: F.fractional_max_pool2d(x * 2, 3, output_size=n) + 1,
        lambda i: (torch.randn(1, 2, 40, 40), 5 + i),
    ),
    "antialias": (
        lambda x, s: F.interpolate(x * 2, scale_factor=s, mode="bilinear", antialias=True) + 1,
        lambda i: (torch.randn(1, 2, 20, 20), 0.5 + i / 16),
    ),
    "lstsq": (
        lambda a, r: torch.linalg.lstsq(a * 1, a, rcond=r, driver="gelsd")[0] + 1,
        lambda i: (torch.randn(5, 3), 1e-6 * (i + 1)),
    ),
    "max_norm": (
        lambda index, w, most: F.embedding(index, w.clone(), max_norm=most) + 1,
        lambda i: (torch.arange(4), torch.randn(6, 3), 0.5 + i / 10),
    ),
    "istft": (spectra, lambda i: (torch.randn(100 + i * 16), 100 + i * 16)),
    "ctc_loss": (
        alignment,
        lambda i: (torch.randn(10, 1, 20).log_softmax(2), torch.tensor([[17, 18, 19]]), i % 16),
    ),
    "method": (lambda x, n: x.histc(n) + x.cumsum(0).histogram(n).hist, lambda i: (torch.rand(40), 3 + i)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_that_an_operator_pins(name):
    program, inputs = CASES[name]
    compiled, graphs = cresset.compile(program), []
    for i in range(18):
        torch.manual_seed(i)
        given = inputs(i)
        torch.manual_seed(i)
        expected = program(*given)
        torch.manual_seed(i)
        torch.testing.assert_close(compiled(*given), expected)
        graphs.append(cresset.stats()["graphs"])
    assert graphs[-1] == graphs[-4] <= MOST, graphs
    assert cresset.stats()["eager_calls"] == 0


# Two calls in a function: the call whose number stays does not run between graph segments.
def test_an_operator_is_counted_where_it_pins():
    def program(x, n, dim):
        return torch.histogram(x.sum(dim), n).hist, x.reshape(n, -1).amax(dim)

    compiled = cresset.compile(program)
    for i in range(20):
        given = torch.rand(2 * 3 * (i + 1), 4), 2 * 3 * (i + 1), i % 2
        for got, expected in zip(compiled(*given), program(*given), strict=True):
            torch.testing.assert_close(got, expected)
    before = cresset.stats()["graphs"]
    compiled(torch.rand(12, 4), 12, 0)
    compiled(torch.rand(600, 4), 600, 1)
    assert cresset.stats()["graphs"] == before


# A few values, however often they repeat, are a program each: dimensions.
def test_dimensions_are_programs():
    def program(x, dim):
        return torch.relu(x).cumsum(dim) + 1

    compiled = cresset.compile(program)
    for i in range(20):
        x = torch.randn(3, 4, 5 + i)
        torch.testing.assert_close(compiled(x, i % 6 - 3), program(x, i % 6 - 3))
    assert cresset.stats()["graphs"] == 6
    assert cresset.stats()["graph_breaks"] == 0


def test_a_promise_of_one_graph_is_kept():
    compiled = cresset.compile(CASES["histogram"][0], fullgraph=True)
    for i in range(12):
        x, bins = CASES["histogram"][1](i)
        torch.testing.assert_close(compiled(x, bins), torch.histogram(x * 2, bins)[0] + 1)
    assert cresset.stats()["graph_breaks"] == 0
