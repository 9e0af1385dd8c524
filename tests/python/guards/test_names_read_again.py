"""Names read many times by the same instruction of a call. They are looked up and reported once, and later calls still
check each of them."""

from __future__ import annotations

import binascii
import sys
import types

import pytest
import torch

import cresset

SCALE = 2.0
STEPS = 3


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()
    globals().update(SCALE=2.0, STEPS=3)
    globals().pop("abs", None)
    yield
    globals().pop("abs", None)


def loop(x):
    for _ in range(STEPS):
        x = x * SCALE
    return x


def test_a_global_that_a_loop_reads_is_a_guard():
    compiled, x = cresset.compile(loop), torch.ones(4)
    for value in (2.0, 2.0, 3.0, 5.0, 2.0):
        globals()["SCALE"] = value
        torch.testing.assert_close(compiled(x), loop(x))
    assert cresset.stats()["eager_calls"] == 0


def test_a_global_that_the_loop_writes_is_read_anew():
    def function(x):
        global SCALE
        for _ in range(4):
            x = x * SCALE
            SCALE = SCALE + 1.0
        return x

    def again(call):
        globals()["SCALE"] = 2.0
        return [call(torch.ones(3)), SCALE, call(torch.ones(3)), SCALE]

    expected, got = again(function), again(cresset.compile(function))
    for want, have in zip(expected, got, strict=True):
        torch.testing.assert_close(have, want)


def test_a_global_that_is_changed_through_its_dictionary_is_read_anew():
    def function(x):
        for i in range(4):
            x = x + SCALE
            globals()["SCALE"] = 10.0 * i
        return x

    def run(call):
        globals()["SCALE"] = 2.0
        return call(torch.zeros(3))

    torch.testing.assert_close(run(cresset.compile(function)), run(function))


def test_a_builtin_is_a_guard_until_a_global_hides_it():
    def function(x):
        for _ in range(3):
            x = abs(x) - 1
        return x

    compiled, x = cresset.compile(function), torch.tensor([-3.0, 2.0])
    for _ in range(2):
        torch.testing.assert_close(compiled(x), function(x))
    globals()["abs"] = torch.neg
    torch.testing.assert_close(compiled(x), function(x))
    del globals()["abs"]
    torch.testing.assert_close(compiled(x), function(x))


def test_what_a_module_has_is_a_guard(monkeypatch):
    module = types.ModuleType("cresset_test_settings")
    module.width, module.act = 2.0, torch.relu
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def function(x):
        import cresset_test_settings as settings

        for _ in range(3):
            x = settings.act(x * settings.width - 1)
        return x

    compiled, x = cresset.compile(function), torch.tensor([0.2, 1.5])
    for width, act in ((2.0, torch.relu), (3.0, torch.relu), (3.0, torch.tanh), (2.0, torch.relu)):
        module.width, module.act = width, act
        for _ in range(2):
            torch.testing.assert_close(compiled(x), function(x))


def test_names_are_told_again_behind_a_break():
    """Each graph segment has guards of its own: a read in the first segment is no guard of the second, which earlier
    calls reach."""

    def function(x):
        for _ in range(3):
            x = x * SCALE
            if x.sum() > 1e6:
                return x
        return x + SCALE

    compiled, x = cresset.compile(function), torch.ones(4)
    for value in (2.0, 3.0, 2.0, 7.0, 1e6):
        globals()["SCALE"] = value
        torch.testing.assert_close(compiled(x), function(x))


class Options:
    """Runs Python code for every attribute, as configurations do."""

    def __init__(self):
        self.names = {"hidden": "width"}
        self.width = 3.0

    def __getattribute__(self, key):
        if key != "names" and key in super().__getattribute__("names"):
            key = super().__getattribute__("names")[key]
        return super().__getattribute__(key)


def test_attributes_of_a_class_with_getattribute_alone_are_guards():
    options = Options()

    def function(x):
        for _ in range(3):
            x = x * options.hidden
        return x

    compiled, x = cresset.compile(function), torch.ones(2)
    for width in (3.0, 3.0, 4.0):
        options.width = width
        torch.testing.assert_close(compiled(x), function(x))
    assert cresset.stats()["eager_calls"] == 0
    options.names["hidden"] = "names"
    with pytest.raises(TypeError):
        compiled(x)


def test_a_piece_may_end_inside_of_getattribute():
    class Data:
        def __init__(self):
            self.x = torch.ones(2)

        def __getattribute__(self, key):
            value = super().__getattribute__(key)
            return value.sum().item() if isinstance(value, torch.Tensor) else value

    def function(x):
        data = Data()
        return x * data.x + data.x

    expected = function(torch.ones(2))
    compiled = cresset.compile(function)
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(2)), expected)
    assert cresset.stats()["eager_calls"] == 0


def test_methods_of_tensors_that_have_a_form_are_known_by_their_definition():
    """The function itself decides whether a call is a special case, not the way it was reached."""

    def function(x, n):
        split = x.split
        parts = [*split(n), *torch.Tensor.split(x, n), *x.split(n)]
        return [p * len(parts) for p in parts]

    compiled = cresset.compile(function)
    for rows, n in ((6, 2), (9, 3), (8, 3)):
        x = torch.randn(rows, 2)
        for want, got in zip(function(x, n), compiled(x, n), strict=True):
            torch.testing.assert_close(got, want)


def test_a_module_that_is_not_made_yet_has_nothing():
    def function(x):
        module = types.ModuleType.__new__(types.ModuleType)
        try:
            return x + module.width
        except AttributeError:
            return x - 1

    compiled, x = cresset.compile(function), torch.ones(2)
    torch.testing.assert_close(compiled(x), function(x))


def test_a_substitute_that_is_given_after_a_call_is_used():
    def function(x):
        return x * (binascii.crc32(b"a") % 7)

    x, calls = torch.ones(2), []
    expected = function(x)
    torch.testing.assert_close(cresset.compile(function)(x), expected)

    @cresset.substitute_in_graph(binascii.crc32)
    def crc32(data, value=0, /):
        calls.append(len(data))
        return 0xE8B7BE43

    cresset.reset()
    torch.testing.assert_close(cresset.compile(function)(x), expected)
    assert calls == [1]
