"""Changes between calls to the foundations of a program: classes, functions, contents of closures, caches and views.

The compiled function gives eager's results, before the change and after it.
"""

import functools
import operator

import programs.changed_state as programs_changed_state  # noqa: F401  (its cases)
import pytest
import torch
from programs.changed_code import CASES

import cresset

SPECIAL = {
    "__len__": (lambda a, x: x + len(a), lambda s: 2, lambda s: 5),
    "__add__": (lambda a, x: a + x, lambda s, o: o + 2, lambda s, o: o + 5),
    "__radd__": (lambda a, x: 3 + a + x, lambda s, o: o + 2, lambda s, o: o + 5),
    "__iadd__": (lambda a, x: operator.iadd(a, x), lambda s, o: o + 2, lambda s, o: o + 5),
    "__getitem__": (lambda a, x: a[0] + x, lambda s, o: o + 2, lambda s, o: o + 5),
    "__bool__": (lambda a, x: x + 1 if a else x, lambda s: True, lambda s: False),
    "__call__": (lambda a, x: a(x), lambda s, x: x + 1, lambda s, x: x + 5),
    "__eq__": (lambda a, x: x + (a == 3), lambda s, x: True, lambda s, x: False),
    "__lt__": (lambda a, x: x + (a < 3), lambda s, x: True, lambda s, x: False),
    "__hash__": (lambda a, x: x + hash(a), lambda s: 1, lambda s: 2),
    "__contains__": (lambda a, x: x + (3 in a), lambda s, x: True, lambda s, x: False),
    "__neg__": (lambda a, x: x + (-a), lambda s: 1, lambda s: 2),
    "__int__": (lambda a, x: x + int(a), lambda s: 1, lambda s: 2),
    "__float__": (lambda a, x: x + float(a), lambda s: 1.0, lambda s: 2.0),
    "__str__": (lambda a, x: x + len(str(a)), lambda s: "a", lambda s: "ab"),
    "__repr__": (lambda a, x: x + len(f"{a!r}"), lambda s: "a", lambda s: "ab"),
    "__index__": (lambda a, x: x + [1, 2, 3][a], lambda s: 1, lambda s: 2),
    "__format__": (lambda a, x: x + len(f"{a}"), lambda s, f: "a", lambda s, f: "ab"),
    "__getattribute__": (lambda a, x: x + a.q, lambda s, n: 1, lambda s, n: 2),
    "__getattr__": (lambda a, x: x + a.q, lambda s, n: 1, lambda s, n: 2),
    "__reversed__": (lambda a, x: x + sum(reversed(a)), lambda s: iter([1]), lambda s: iter([2])),
    "__round__": (lambda a, x: x + round(a), lambda s: 1, lambda s: 2),
    "__matmul__": (lambda a, x: a @ x, lambda s, x: x + 1, lambda s, x: x + 2),
}


def outcome(call):
    try:
        return call()
    except Exception as error:
        return repr(error)


def same(left, right):
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return torch.equal(left, right)
    return left == right


def check(make):
    (eager, change_eager), (function, change) = make(), make()
    compiled = cresset.compile(function)
    x = torch.ones(3)
    for _ in range(2):
        for _ in range(2):
            with torch.no_grad():
                expected, got = outcome(lambda: eager(x)), outcome(lambda: compiled(x))
            assert same(expected, got), f"expected {expected}, got {got}"
        change_eager()
        change()


@pytest.mark.parametrize("name", CASES)
def test_change(name):
    check(CASES[name])


@pytest.mark.parametrize("name", SPECIAL)
def test_special_method_changes(name):
    use, first, second = SPECIAL[name]

    def make():
        cls = type("A", (), {name: first})
        a = cls()
        return (lambda x: use(a, x)), (lambda: setattr(cls, name, second))

    check(make)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_method_of_new_instance_changes(name):
    use, first, second = SPECIAL[name]

    def make():
        cls = type("A", (), {name: first})
        return (lambda x: use(cls(), x)), (lambda: setattr(cls, name, second))

    check(make)


def test_hook_of_all_modules():
    layer = torch.nn.ReLU()
    compiled = cresset.compile(lambda x: layer(x))
    x = torch.ones(3)
    with torch.no_grad():
        assert torch.equal(compiled(x), x)
        handle = torch.nn.modules.module.register_module_forward_hook(lambda m, a, out: out * 3)
        try:
            assert torch.equal(compiled(x), x * 3)
        finally:
            handle.remove()
        assert torch.equal(compiled(x), x)


def graphs():
    return cresset.stats()["graphs"]


def test_what_nobody_asked_for_may_change():
    """A class attribute without a read in the program, and an __init__ without a call."""

    class Layer(torch.nn.Module):
        calls = 0

        def forward(self, x):
            return x.relu() + 1

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(Layer(), torch.nn.Linear(3, 3), Layer())

        def forward(self, x):
            return self.layers(x) * 2

    model = Model()
    compiled = cresset.compile(model)
    x = torch.ones(2, 3)
    init, setstate = torch.nn.Module.__init__, torch.nn.Module.__setstate__
    with torch.no_grad():
        compiled(x)
        before = graphs()
        try:
            torch.nn.Module.__init__ = functools.wraps(init)(lambda self, *a, **k: init(self, *a, **k))
            torch.nn.Module.__setstate__ = lambda self, state: setstate(self, state)
            Layer.calls = 5
            assert torch.equal(compiled(x), model(x))
            assert graphs() == before
        finally:
            torch.nn.Module.__init__, torch.nn.Module.__setstate__ = init, setstate
        Layer.forward = lambda self, x: x.relu() + 3
        assert torch.equal(compiled(x), model(x))
        assert graphs() == before + 1
