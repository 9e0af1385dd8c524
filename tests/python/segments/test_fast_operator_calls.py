"""Common calls take a short path, without the questions about rare calls: operators of tensors and numbers, queries for
overrides, attributes in an instance's own dictionary. Special cases behind them are found all the same."""

from __future__ import annotations

import re

import pytest
import torch

import cresset


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()


def lines_of(function, *args):
    """The line of the program behind each operator of the graph, counted from the function's first."""
    first = function.__code__.co_firstlineno
    graph = str(cresset.explain(function)(*args))
    return [int(n) - first for n in re.findall(r"test_plain_operators\.py:(\d+) in \S*" + function.__name__, graph)]


def test_lines_are_told_in_any_order():
    def program(x):
        def later(y):
            return y.sin()

        for step in range(2):
            x = x * 2
            if step:
                x = x - 1
            x = later(x) + 3
        x = (
            x.exp()
            + x.log()
        )  # fmt: skip
        return x.tanh()

    assert lines_of(program, torch.rand(3) + 1) == [5, 2, 8, 5, 7, 2, 8, 10, 11, 10, 13]


class Loud(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Loud.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_among_the_arguments_is_asked():
    def program(x, y):
        return torch.nn.functional.linear(x, y), torch.overrides.has_torch_function((x, y))

    compiled = cresset.compile(program)
    x, y = torch.randn(2, 3), torch.randn(4, 3)
    for given in (y, y.as_subclass(Loud), y):
        result, asked = compiled(x, given)
        expected, expected_asked = program(x, given)
        torch.testing.assert_close(result.as_subclass(torch.Tensor), expected.as_subclass(torch.Tensor))
        assert asked == expected_asked and type(result) is type(expected)


def test_a_mode_is_asked():
    class Doubles(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.nn.functional.relu else result

    def program(x):
        return torch.nn.functional.relu(x)

    compiled, x = cresset.compile(program), torch.randn(5)
    torch.testing.assert_close(compiled(x), program(x))
    with Doubles():
        torch.testing.assert_close(compiled(x), program(x))
    torch.testing.assert_close(compiled(x), program(x))


class Weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4))
        self.scale = 2.0

    def forward(self, x):
        return x @ self.weight * self.scale * getattr(self, "offset", 1.0)


def test_an_attribute_that_comes_and_goes():
    model, x = Weights(), torch.randn(2, 4)
    compiled = cresset.compile(model)

    def check():
        torch.testing.assert_close(compiled(x), model(x))

    check()
    model.offset = 3.0
    check()
    del model.offset
    check()
    Weights.offset = 5.0
    try:
        check()
    finally:
        del Weights.offset
    check()
    model.__dict__["weight"] = torch.zeros(4, 4)  # found before __getattr__ searches the parameters
    check()
    del model.__dict__["weight"]
    check()


def test_a_getattr_that_a_class_gets_and_loses():
    class Bag:
        def __init__(self):
            self.one = 1.0

    def program(bag, x):
        return x * bag.one + getattr(bag, "two", 0.0)

    bag, x = Bag(), torch.randn(3)
    compiled = cresset.compile(program)
    torch.testing.assert_close(compiled(bag, x), program(bag, x))
    Bag.__getattr__ = lambda self, name: 7.0 if name == "two" else 9.0
    torch.testing.assert_close(compiled(bag, x), program(bag, x))
    del Bag.__getattr__
    torch.testing.assert_close(compiled(bag, x), program(bag, x))


def test_operators_given_numbers_that_vary():
    def program(x, n):
        y = torch.arange(n) + x.size(0)
        return torch.chunk(x.reshape(x.size(0), -1), 2, dim=n % 2), torch.full((n, x.size(0)), n + 0.5), y.view(n, 1)

    compiled = cresset.compile(program)
    for rows, n in ((4, 3), (6, 5), (8, 4), (4, 3)):
        x = torch.randn(rows, 2, 2)
        torch.testing.assert_close(compiled(x, n), program(x, n))


def test_a_tensor_that_state_holds_is_held_to_its_sizes():
    class Holder:
        weight = torch.randn(3, 3)

    def program(x):
        return torch.nn.functional.pad(x @ Holder.weight, (1, 1), value=float(Holder.weight.dim()))

    compiled = cresset.compile(program)
    for weight in (Holder.weight, torch.randn(3, 5), torch.randn(3, 3)):
        Holder.weight = weight
        x = torch.randn(2, 3)
        torch.testing.assert_close(compiled(x), program(x))


def test_bad_arguments_raise_as_they_do():
    def program(x):
        return torch.reshape(x, (3, 5))

    compiled = cresset.compile(program)
    for _ in range(2):
        with pytest.raises(RuntimeError) as expected:
            program(torch.randn(4))
        with pytest.raises(RuntimeError) as got:
            compiled(torch.randn(4))
        assert str(got.value) == str(expected.value)


def test_lines_of_code_that_comes_and_goes():
    def program(x):
        for step in range(6):
            names = {}
            exec("\n" * step + "def made(x):\n    y = x + 1\n    return y * 2\n", names)
            x = names["made"](x)
        return x

    x = torch.rand(3)
    torch.testing.assert_close(cresset.compile(program)(x), program(x))
