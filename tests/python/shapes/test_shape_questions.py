"""torch.fx.experimental.symbolic_shapes asked about sizes of a captured call: as in eager mode, where sizes are numbers."""

from __future__ import annotations

import pytest
import torch
import torch.fx.experimental.symbolic_shapes as shapes

import cresset

NUMBERS = {
    "size": lambda x: x.shape[0],
    "relation": lambda x: x.shape[0] == 4,
    "tensor": lambda x: x,
    "sizes": lambda x: x.shape,
    "nested": lambda x: [x, (x.shape[1], {"a": x.stride()})],
}
ABOUT_ANY = ("free_symbols", "free_unbacked_symbols", "has_free_symbols", "has_free_unbacked_symbols")
ABOUT_NUMBERS = ("has_static_value", "is_symbolic")
CASES = [(name, number) for name in ABOUT_ANY for number in NUMBERS]
CASES += [(name, number) for name in ABOUT_NUMBERS for number in ("size", "relation")]
CASES += [("is_concrete_int", "size"), ("is_concrete_bool", "relation")]


@pytest.mark.parametrize("name,number", CASES)
def test_answers_for_any_size(name, number):
    question = getattr(shapes, name)

    def function(x):
        answer = question(NUMBERS[number](x))
        return x * 2, bool(answer)

    compiled = cresset.compile(function, fullgraph=True)
    before = cresset.stats()["graphs"]
    for rows in (4, 5, 7):
        x = torch.randn(rows, 3)
        assert compiled(x)[1] == function(x)[1]
    assert cresset.stats()["graphs"] == before + 1, "no guard"


@pytest.mark.parametrize("number", ["size", "relation"])
def test_a_hint_is_the_number(number):
    def function(x):
        return x * 2, shapes.guarding_hint_or_throw(NUMBERS[number](x)) + 1

    compiled = cresset.compile(function)
    for rows in (4, 5, 4):
        x = torch.randn(rows, 3)
        assert compiled(x)[1] == function(x)[1]


@pytest.mark.parametrize("number", [lambda x: x.shape[0] == 4, lambda x: x.shape[0] / 2], ids=["relation", "float"])
def test_a_hint_of_another_kind_is_refused(number):
    """The messages name the class, as in eager mode."""
    if not hasattr(shapes, "optimization_hint"):
        pytest.skip("this release of torch has another name")
    x = torch.randn(5, 3)

    def function(x):
        return x * 2, shapes.optimization_hint(number(x))

    with pytest.raises(AssertionError) as expected:
        function(x)
    with pytest.raises(AssertionError) as got:
        cresset.compile(function)(x)
    assert str(got.value) == str(expected.value)


def test_known_is_what_is_proved():
    def function(x):
        assert shapes.statically_known_true(x.shape[0] >= 0) and shapes.statically_known_true(True)
        assert not shapes.statically_known_false(x.shape[0] >= 0) and shapes.statically_known_false(x.shape[0] < 0)
        if shapes.statically_known_true(x.shape[0] == 4):
            return x + 1
        return x * 2

    compiled = cresset.compile(function, fullgraph=True)
    before = cresset.stats()["graphs"]
    for rows in (4, 5):
        x = torch.randn(rows, 3)
        assert torch.equal(compiled(x), x * 2), "no guard: the size is not known to be 4"
    assert cresset.stats()["graphs"] == before + 1
    x = torch.randn(4, 3)
    with pytest.raises(AssertionError):
        cresset.compile(lambda x: (x, shapes.statically_known_true(1)))(x)


def test_relations_of_relations():
    def function(x, y):
        both = shapes.sym_eq(x.shape, y.shape), shapes.sym_eq(x.shape[0] == 4, y.shape[0] == 4)
        return x * 2, [bool(b) for b in both]

    compiled = cresset.compile(function)
    for first, second in ((4, 4), (4, 5), (6, 6)):
        x, y = torch.randn(first, 3), torch.randn(second, 3)
        assert compiled(x, y)[1] == function(x, y)[1]
