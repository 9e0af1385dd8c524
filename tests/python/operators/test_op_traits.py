"""Properties of operators decide which calls of a program are kept, merged and ordered."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same

import cresset

aten = torch.ops.aten


def attend(x):
    return F.scaled_dot_product_attention(x, x, x)


DRAWS = {
    # Operators without rules, which torch's tag alone calls random.
    "binomial": lambda x: (torch.binomial(x.abs().floor() + 4, x.sigmoid()), torch.rand(2)),
    "two of them": lambda x: torch.binomial(x * 0 + 9, x.sigmoid()) - torch.binomial(x * 0 + 9, x.sigmoid()),
    "unused": lambda x: (torch.binomial(x * 0 + 9, x.sigmoid()), torch.rand(2))[1],
    "unused with a row": lambda x: (torch.poisson(x.abs()), torch.rand(2))[1],
    "gamma": lambda x: (torch._standard_gamma(x.abs() + 1), torch.rand(2)),
    "in place": lambda x: (x.clone().bernoulli_(0.5), x.clone().normal_(), torch.rand(2)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_drawn_as_often_as_in_eager_mode(name):
    program = DRAWS[name]
    compiled = cresset.compile(program)
    with torch.no_grad():
        for rows in (3, 3, 5):
            x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(5))
            torch.manual_seed(9)
            expected = program(x), torch.rand(1)
            torch.manual_seed(9)
            assert_same((compiled(x), torch.rand(1)), expected, tolerance=1e-5)


# Derivatives of random operators, and attention without dropout, draw nothing: an unused call is dropped, and of two
# equal calls one is left.
DRAW_NOTHING = {
    "derivative of a gamma": lambda x: aten._standard_gamma_grad(x.abs() + 1, x.abs() + 1),
    "derivative of rrelu": lambda x: aten.rrelu_with_noise_backward(x, x, x.abs(), 0.1, 0.3, True, False),
    "attention": lambda x: attend(x.view(1, 2, -1, 2)),
}


@pytest.mark.parametrize("name", DRAW_NOTHING)
def test_equal_calls_which_draw_nothing(name):
    one = DRAW_NOTHING[name]

    def program(x):
        one(x + 1)
        return one(x) + one(x)

    compiled = cresset.compile(program)
    for rows in (4, 4, 6):
        x = torch.randn(rows, 4)
        torch.manual_seed(9)
        with torch.no_grad():
            expected = program(x), torch.rand(1)
            torch.manual_seed(9)
            assert_same((compiled(x), torch.rand(1)), expected, tolerance=1e-5)


def test_an_operator_of_another_library_runs_as_often_as_in_eager_mode():
    ran = []
    library = torch.library.Library("op_traits_test", "DEF")
    library.define("shows(Tensor x) -> Tensor")
    library.impl("shows", lambda x: (ran.append(1), x.clone())[1], "CompositeExplicitAutograd")
    shows = torch.ops.op_traits_test.shows

    def program(x):
        shows(x)
        return shows(x) + shows(x)

    compiled = cresset.compile(program)
    with torch.no_grad():
        for times in (1, 2, 3):
            compiled(torch.randn(3))
            assert len(ran) == 3 * times


def test_in_place_views_follow_from_the_schemas():
    def program(x):
        y = x.clone()
        y.t_().unsqueeze_(0).squeeze_(0).transpose_(0, 1).swapaxes_(0, 1)
        z = x.clone().pow_(2).floor_divide_(2)
        z.pow_(torch.full_like(z, 2.0))
        w = torch.arange(8)
        w.__ilshift__(1).__irshift__(torch.ones_like(w)).__iand__(6).__ior__(w).__ixor__(3)
        return y, z, w

    compiled = cresset.compile(program)
    for rows in (3, 3, 5):
        x = torch.randn(rows, 4)
        assert_same(compiled(x), program(x))


def test_writes_through_views_that_keep_or_reshape_elements():
    def program(x):
        y = x.clone()
        y.detach().unsqueeze(0).squeeze(0).view(-1).add_(1)
        y.view(-1, 2).mul_(2)
        y.view(torch.int32).bitwise_and_(-256)
        return y

    compiled = cresset.compile(program)
    for rows in (4, 4, 6):
        x = torch.randn(rows, 4)
        assert_same(compiled(x), program(x))
