"""Ways into cresset: torch.compile's backends, decorators, modules compiled in place; compiled functions themselves."""

from __future__ import annotations

import copy
import functools
import importlib.metadata
import inspect
import os
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

import cresset

ROOT = Path(__file__).resolve().parents[3]
EVALUATE = {"frontend": "evaluate"}


@pytest.fixture(params=["evaluate", "trace"])
def options(request):
    return {"frontend": request.param}


def x(seed=0, *shape):
    return torch.randn(shape or (3, 4), generator=torch.Generator().manual_seed(seed))


def plain(t, by=2, *, plus: float = 1):
    """Multiplies and adds."""
    return t * by + plus


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

    def forward(self, t):
        return self.second(self.first(t).relu())


# ------------------------------------------------------------------------------------------------- torch.compile

BACKEND = """
import torch, sys
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
compiled = torch.compile(model, backend="cresset", mode={mode!r})
for grad in (False, True):
    with torch.set_grad_enabled(grad):
        for rows in (3, 3, 5, 7):
            x = torch.randn(rows, 4)
            got, expected = compiled(x), model(x)
            assert torch.allclose(got, expected, atol=1e-5), (got, expected)
            assert got.requires_grad == expected.requires_grad
            if grad:
                mine = torch.autograd.grad(got.sum(), list(model.parameters()))
                its = torch.autograd.grad(expected.sum(), list(model.parameters()))
                assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(mine, its))
@torch.compile(backend="cresset")
def f(x, n):
    y = x * n
    if y.sum() > 0:
        y = y + 1
    return {{"y": y}}
for sign in (1, -1, 1):
    assert torch.allclose(f(sign * torch.ones(3), 2)["y"], sign * 2 * torch.ones(3) + (sign > 0))
import cresset
print("graphs", cresset.stats()["graphs"])
"""


@pytest.mark.parametrize("mode", [None, "default"])
def test_torch_compile_backend(tmp_path, mode):
    """Through the entry point, as an installed package has it."""
    info = tmp_path / "cresset_entry-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cresset-entry\nVersion: 0\n")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in rows.items())
        for group, rows in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    run = subprocess.run(
        [sys.executable, "-c", BACKEND.format(mode=mode)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert int(run.stdout.split()[-1]) >= 3  # the model under no_grad, and both ends of f


def test_entry_point_is_a_function_of_ours():
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["torch_dynamo_backends"]
    loaded = importlib.metadata.EntryPoint("cresset", points["cresset"], "torch_dynamo_backends").load()
    assert callable(loaded) and loaded.__module__ == "cresset._backend"


def test_backend_brings_in_nothing_that_is_replaced():
    code = "import sys, cresset, cresset._backend; print([m for m in sys.modules if m.startswith('torch._dynamo')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert run.stdout.strip() == "[]", run.stdout + run.stderr


# ------------------------------------------------------------------------------------------------- functions


def test_compiled_function_is_like_the_function(options):
    compiled = cresset.compile(plain, options=options)
    assert (compiled.__name__, compiled.__qualname__, compiled.__module__) == ("plain", "plain", __name__)
    assert compiled.__doc__ == "Multiplies and adds." and compiled.__wrapped__ is plain
    assert inspect.signature(compiled) == inspect.signature(plain)
    assert compiled.__kwdefaults__ == {"plus": 1} and compiled.__annotations__ == plain.__annotations__
    compiled.note = 3
    assert compiled.note == 3 and not hasattr(plain, "note")
    for call in (lambda f: f(x()), lambda f: f(x(), 3), lambda f: f(x(), by=3, plus=2), lambda f: f(t=x())):
        assert torch.equal(call(compiled), call(plain))
    with pytest.raises(TypeError) as mine:
        compiled()
    with pytest.raises(TypeError) as its:
        plain()
    assert str(mine.value) == str(its.value)


@cresset.compile(options=EVALUATE)
def decorated(t):
    return t.relu() + 1


def test_pickle_and_copy():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated and copy.copy(decorated) is decorated
    other = cresset.compile(plain, options=EVALUATE)  # not the object under this name in the module
    for twin in (pickle.loads(pickle.dumps(other)), copy.deepcopy(other)):
        assert twin is not other and twin.__wrapped__ is plain
        assert torch.equal(twin(x()), plain(x()))
    method = cresset.compile(Net().forward, options=EVALUATE)
    twin = copy.deepcopy(method)
    assert twin.__self__ is not method.__self__
    with torch.no_grad():
        assert torch.equal(twin(x()), method(x()))
    with pytest.raises(Exception) as mine:
        pickle.dumps(cresset.compile(lambda t: t, options=EVALUATE))
    assert "lambda" in str(mine.value)


class WithMethods:
    def __init__(self, by):
        self.by = by

    @cresset.compile(options=EVALUATE)
    def method(self, t):
        return t * self.by

    @classmethod
    @cresset.compile(options=EVALUATE)
    def of_class(cls, t):
        return t + len(cls.__name__)

    @staticmethod
    @cresset.compile(options=EVALUATE)
    def static(t):
        return t - 1

    @property
    @cresset.compile(options=EVALUATE)
    def weight(self):
        return torch.ones(2) * self.by


class Derived(WithMethods):
    def method(self, t):
        return super().method(t) + 1


def test_methods():
    a, b = WithMethods(2), Derived(3)
    for _ in range(3):
        assert torch.equal(a.method(x()), x() * 2) and torch.equal(b.method(x()), x() * 3 + 1)
        assert torch.equal(WithMethods.method(a, x()), x() * 2)
        assert torch.equal(WithMethods.of_class(x()), x() + 11) and torch.equal(b.of_class(x()), x() + 7)
        assert torch.equal(a.static(x()), x() - 1) and torch.equal(WithMethods.static(x()), x() - 1)
        assert torch.equal(a.weight, torch.full((2,), 2.0))
    a.by = 5
    assert torch.equal(a.method(x()), x() * 5)
    assert cresset.stats()["eager_calls"] == 0


def test_partial_and_callable_objects():
    class Callable:
        def __call__(self, t):
            return t * 3

    for function in (functools.partial(plain, by=3), Callable(), Net().eval().forward):
        compiled = cresset.compile(function, options=EVALUATE)
        with torch.no_grad():
            for rows in (3, 5):
                assert torch.allclose(compiled(x(0, rows, 4)), function(x(0, rows, 4)))
    assert cresset.stats()["eager_calls"] == 0


# ----------------------------------------------------------------------------------------- compiled inside compiled


def test_compiled_inside_compiled():
    by = 2

    @cresset.compile(options=EVALUATE)
    def inner(t):
        return t * by

    @cresset.compile(options=EVALUATE)
    def outer(t):
        return inner(t + 1) - 1

    for _ in range(2):
        assert torch.equal(outer(torch.ones(2)), torch.full((2,), 3.0))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == 0
    by = 3  # the guards cover reads of the inner function
    assert torch.equal(outer(torch.ones(2)), torch.full((2,), 5.0))
    assert torch.equal(inner(torch.ones(2)), torch.full((2,), 3.0))


def test_break_inside_compiled_inside_compiled():
    @cresset.compile(options=EVALUATE)
    def inner(t):
        return t * float(t.sum())

    @cresset.compile(options=EVALUATE)
    def outer(t):
        return inner(t + 1) - 1

    for _ in range(3):
        t = x()
        assert torch.allclose(outer(t), (t + 1) * (t + 1).sum() - 1, atol=1e-5)
    assert cresset.stats()["graphs"] == 2 and cresset.stats()["eager_calls"] == 0


# --------------------------------------------------------------------------- functions of torch.compile, inside


@torch.compile(backend="eager")
def made_by_torch(t, *, plus=1):
    return t * 2 + plus


@torch.compile(backend="eager", fullgraph=True)
def whole_for_torch(t):
    return t.sin()


@torch.compile(backend="eager")
def breaks_for_torch(t):
    return t * float(t.sum())


class HoldsCompiled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wrapped = torch.compile(Net(), backend="eager")
        self.in_place = torch.nn.Linear(2, 2)
        self.in_place.compile(backend="eager")

    @torch.compile(backend="eager")
    def method(self, t):
        return t - t.shape[0]

    def forward(self, t):
        return self.method(self.in_place(self.wrapped(t)))


def calls_what_torch_made(t):
    return whole_for_torch(made_by_torch(t, plus=t.shape[0]) * made_by_torch(t))


def test_functions_of_torch_compile_are_what_they_are_made_of():
    """In a compiled function, functions of torch.compile are captured with it, whatever their own backend."""
    compiled = cresset.compile(calls_what_torch_made, options=EVALUATE)
    for rows in (3, 5, 4):
        t = x(0, rows, 4)
        expected = ((t * 2 + rows) * (t * 2 + 1)).sin()
        assert torch.allclose(compiled(t), expected, atol=1e-6)
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == 0
    again = cresset.compile(breaks_for_torch, options=EVALUATE)
    for rows in (3, 5):
        t = x(0, rows, 4)
        assert torch.allclose(again(t), t * t.sum(), atol=1e-5)
    assert cresset.stats()["eager_calls"] == 0


def test_modules_of_torch_compile_are_what_they_are_made_of():
    model = HoldsCompiled().eval()
    compiled = cresset.compile(model, options=EVALUATE)
    plain_model = [model.wrapped._orig_mod, model.in_place]
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            for rows in (3, 5):
                t = x(0, rows, 4)
                linear = torch.nn.functional.linear(plain_model[0](t), model.in_place.weight, model.in_place.bias)
                assert torch.allclose(compiled(t), linear - rows, atol=1e-6)
    assert cresset.stats()["graphs"] == 2 and cresset.stats()["eager_calls"] == 0  # without gradients, and with them


def test_functions_of_torch_compile_are_recompiled():
    for function in (made_by_torch, HoldsCompiled().method):
        compiled = cresset.compile(function, options=EVALUATE)
        for rows in (3, 5):
            t = x(0, rows, 4)
            expected = t * 2 + 1 if function is made_by_torch else t - rows
            assert torch.allclose(compiled(t), expected, atol=1e-6)
    assert cresset.stats()["graphs"] == 2 and cresset.stats()["eager_calls"] == 0


# ------------------------------------------------------------------------------------------------- modules


def test_compile_in_place():
    model = torch.nn.Sequential(Net(), torch.nn.ReLU())
    expected = copy.deepcopy(model)
    assert cresset.compile_in_place(model[0], options=EVALUATE) is model[0]
    assert type(model[0]) is Net and list(model.state_dict()) == list(expected.state_dict())
    with torch.no_grad():
        for rows in (3, 3, 5):
            assert torch.allclose(model(x(0, rows, 4)), expected(x(0, rows, 4)), atol=1e-6)
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin[0]._compiled_call_impl is None
        with torch.no_grad():
            assert torch.allclose(twin(x()), expected(x()))
    with pytest.raises(TypeError, match="expected a module"):
        cresset.compile_in_place(plain)


def test_compile_in_place_keeps_hooks():
    model = cresset.compile_in_place(Net(), options=EVALUATE)
    seen = []
    handle = model.register_forward_hook(lambda m, args, out: seen.append(tuple(out.shape)))
    with torch.no_grad():
        for rows in (3, 5):
            model(x(0, rows, 4))
        handle.remove()
        model(x())
    assert seen == [(3, 2), (5, 2)]
    assert all(type(n) is int for shape in seen for n in shape)


def test_in_place_inside_compiled():
    model = torch.nn.Sequential(cresset.compile_in_place(Net(), options=EVALUATE), torch.nn.ReLU())
    compiled = cresset.compile(model, options=EVALUATE)
    with torch.no_grad():
        for _ in range(2):
            assert torch.allclose(compiled(x()), model(x()), atol=1e-6)
    assert cresset.stats()["graph_breaks"] == 0
