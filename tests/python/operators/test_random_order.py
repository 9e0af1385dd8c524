"""Random numbers are drawn in the program's order, whatever the order of deferred work."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, assert_same_call

import cresset

PROGRAMS = {
    "a draw that waits for a kernel": lambda x: (torch.poisson(x.abs()), F.gumbel_softmax(x)),
    "dropout behind it": lambda x: (torch.poisson(x.abs()), F.alpha_dropout(x, 0.5, True), torch.rand(2)),
    "three that wait": lambda x: (
        torch.bernoulli((x * 3).sigmoid()),
        torch.poisson((x + 1).abs()),
        (x + torch.empty_like(x).exponential_()).softmax(-1),
        torch.rand(3) + x.sum(),
    ),
    "products between": lambda x: (
        torch.normal(x @ x.t(), 1.0),
        F.dropout(x.relu() @ x.t(), 0.5),
        torch.rand_like(x),
        torch.randn(x.shape[0]),
    ),
    "one that is read late": lambda x: (torch.rand_like(x).exp() + torch.poisson(x.abs()), torch.rand(4) * x.mean()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_order(name):
    program = PROGRAMS[name]
    cresset.reset()
    compiled = cresset.compile(program)
    with torch.no_grad():
        for rows in (3, 3, 5):
            x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(5))
            torch.manual_seed(9)
            expected = program(x)
            torch.manual_seed(9)
            assert_same(compiled(x), expected, tolerance=1e-5)
    assert cresset.stats()["eager_calls"] == 0


CONVOLUTION = torch.nn.Conv2d(3, 4, 3).eval()
BEHIND_CONVOLUTIONS = {
    "alike": lambda y: y + torch.randn_like(y),
    "alone": torch.rand_like,
    "dropped out": lambda y: F.dropout(y.relu(), 0.5),
    "planes": lambda y: F.dropout2d(y, 0.5),
    "of means": lambda y: torch.normal(y, 1.0) * 2,
    "of probabilities": lambda y: torch.bernoulli(y.sigmoid()) + y,
}


@pytest.mark.parametrize("name", BEHIND_CONVOLUTIONS)
def test_order_of_elements_behind_convolutions(name):
    """Numbers are drawn in the order of eager's memory, also where the program keeps images with channels last."""
    compiled = cresset.compile(program := lambda x: BEHIND_CONVOLUTIONS[name](CONVOLUTION(x)))
    with torch.no_grad():
        for shape in ((2, 3, 8, 9), (1, 3, 5, 7)):
            x = torch.randn(shape)
            torch.manual_seed(9)
            expected = program(x)
            torch.manual_seed(9)
            assert_same(compiled(x), expected, tolerance=1e-5)
    assert cresset.stats()["eager_calls"] == 0


LAYOUTS = {
    "transposed": lambda rows: torch.randn(9, rows).t(),
    "permuted": lambda rows: torch.randn(2, 3, 4, rows).permute(3, 1, 0, 2),
    "with gaps": lambda rows: torch.randn(2 * rows, 12)[::2, ::3],
    "channels last": lambda rows: torch.randn(rows, 3, 4, 5).to(memory_format=torch.channels_last),
}
DRAWS = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout of x": lambda x: F.dropout(x, 0.3, inplace=True) * 2,
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(),
    "bernoulli_": lambda x: x.bernoulli_(0.4),
    "bernoulli_ of a tensor": lambda x: x.bernoulli_(torch.full_like(x, 0.3)),
    "exponential_": lambda x: x.exponential_(),
    "a part of what is made": lambda x: (y := x + 1, y.transpose(0, 1)[1:].normal_())[0],
    "bernoulli": lambda x: (torch.bernoulli(x.sigmoid()), torch.bernoulli(x, 0.3)),
    "poisson": lambda x: torch.poisson(x.abs()),
    "gamma": lambda x: torch.distributions.Gamma(x.abs() + 1, x.abs() + 1, validate_args=False).sample(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DRAWS)
@torch.no_grad()
def test_order_of_elements_in_layouts(name, layout):
    """A tensor is filled in the order of its own memory. Where eager's result is contiguous, the compiled result is
    contiguous."""
    compiled = cresset.compile(DRAWS[name])
    for rows in (5, 5, 7):
        assert_same_call(DRAWS[name], compiled, LAYOUTS[layout](rows), seed=9)
    assert cresset.stats()["eager_calls"] == 0
