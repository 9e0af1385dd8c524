"""cresset.install(): torch.compile and Module.compile are cresset's, without torch's own front end, until uninstall()."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading

import pytest
import torch
from test_nothing_replaced import _SNAPSHOT

import cresset


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def restored():
    before = torch.compile, torch.compiler.reset
    yield
    cresset.uninstall()
    assert (torch.compile, torch.compiler.reset) == before


def asks(x):
    return x + (1 if torch.compiler.is_compiling() else 2)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.second(self.first(x).relu())


X = torch.ones(3, 4)


def test_functions_decorators_and_modules():
    with cresset.install():

        @torch.compile
        def plain(x):
            return asks(x)

        @torch.compile(dynamic=True, fullgraph=True, mode="max-autotune", backend="inductor")
        def with_arguments(x):
            return asks(x)

        method = torch.compiler.compile(asks)
        model = torch.compile(model=Net())
        in_place = Net()
        in_place.compile(dynamic=True)
        for compiled in (plain, with_arguments, method):
            assert torch.equal(compiled(X), X + 1)
        with torch.no_grad():
            assert torch.allclose(model(X), model._orig_mod(X)) and type(model).__name__ == "Net"
            assert torch.allclose(in_place(X), in_place.second(in_place.first(X).relu()))
    assert cresset.stats()["graphs"] == 5
    assert torch.equal(plain(X), X + 1), "what was compiled stays compiled"


def test_nothing_is_left_after_uninstall():
    before = torch.compile
    installed = cresset.install()
    assert torch.compile is not before
    cresset.uninstall()
    assert torch.compile is before
    cresset.uninstall()
    with cresset.install():
        assert torch.compile is not before
    assert torch.compile is before
    installed.uninstall()
    assert torch.compile is before


def test_every_attribute_of_torch_is_restored():
    program = f"""{_SNAPSHOT}
import torch, cresset
import cresset._api.install
before = snapshot()
cresset.install()
during = sorted({{d.partition(".__wrapped__")[0] for d in differences(before, snapshot())}})
assert during == ["torch.compile", "torch.compiler.reset"], during
f = torch.compile(lambda x: x + 1)
f(torch.ones(3))
cresset.uninstall()
after = differences(before, snapshot())
assert not [d for d in after if d.startswith(("torch.compile", "torch.compiler.", "torch.nn.modules.module.Module."))], after
print("restored")
"""
    assert run(program) == "restored"


def test_nested_installations():
    before = torch.compile
    with cresset.install():
        with cresset.install():
            assert torch.compile is not before
        assert torch.compile is not before, "the outer one still holds"
    assert torch.compile is before


def test_an_exception_undoes_it():
    before = torch.compile
    with pytest.raises(KeyError), cresset.install():
        raise KeyError
    assert torch.compile is before


def test_torchs_front_end_is_not_imported():
    program = """
import sys, torch, cresset
cresset.install()
@torch.compile
def f(x):
    return x.sin() + 1
model = torch.nn.Linear(4, 4)
model.compile(mode="reduce-overhead")
f(torch.ones(3)); model(torch.ones(2, 4)).sum().backward()
torch.compiler.reset()
f(torch.ones(3))
print(cresset.stats()["graphs"], *[m for m in ("torch._dynamo", "torch._inductor") if m in sys.modules])
"""
    assert run(program) == "3"


def test_importing_cresset_installs_nothing():
    assert run("import torch; a = torch.compile; import cresset; print(torch.compile is a)") == "True"


def test_a_replacement_by_others_is_left_alone():
    before = torch.compile
    cresset.install()
    mine = torch.compile

    def others(*args, **kwargs):
        return mine(*args, **kwargs)

    torch.compile = others
    try:
        assert torch.equal(torch.compile(asks)(X), X + 1)
        cresset.uninstall()
        assert torch.compile is others
        assert type(torch.compile(asks, backend="eager")).__name__ == "function", "torch's own takes the call"
    finally:
        torch.compile = before


def test_other_backends_are_torchs():
    seen = []

    def backend(graph_module, example_inputs):
        seen.append(type(graph_module).__name__)
        return graph_module.forward

    with cresset.install():
        compiled = torch.compile(asks, backend=backend)
        assert torch.equal(compiled(X), X + 1)
        assert len(seen) == 1 and cresset.stats()["graphs"] == 0
        assert torch.equal(torch.compile(asks, backend="eager")(X), X + 1)
        assert cresset.stats()["graphs"] == 1 and cresset.stats()["kernels"] == 0
        with pytest.raises(RuntimeError):
            torch.compile(asks, backend="nonsense")(X)


def test_the_default_backend_is_torchs():
    seen = []

    def backend(graph_module, example_inputs):
        seen.append(1)
        return graph_module.forward

    with cresset.install():
        torch.compiler.set_default_backend(backend)
        try:
            torch.compile(asks)(X)
        finally:
            torch.compiler.set_default_backend(None)
        assert seen == [1]
        torch.compile(asks)(X)
    assert seen == [1] and cresset.stats()["graphs"] == 1


def test_wrong_values():
    with cresset.install():
        for settings in ({"mode": "fast"}, {"options": {"nope": 1}}, {"mode": "default", "options": {}}):
            with pytest.raises(RuntimeError):
                torch.compile(asks, **settings)
        with pytest.raises(AssertionError):
            torch.compile(3)
        with pytest.raises(TypeError):
            torch.compile(asks, nonsense=1)


def test_the_signature_is_torchs():
    its = inspect.signature(torch.compile)
    with cresset.install():
        assert inspect.signature(torch.compile) == its
        assert torch.compile.__name__ == "compile" and torch.compile.__module__ == "torch"


def test_disable_and_switches(monkeypatch):
    with cresset.install():
        assert torch.compile(asks, disable=True) is asks
        monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
        assert torch.compile(asks) is asks


def test_inside_of_captured_programs():
    """A call of torch.compile in a captured program gives the function itself, as without install()."""
    with cresset.install():

        @torch.compile
        def function(x):
            return torch.compile(lambda t: t * 2)(x) + torch.compile(fullgraph=True)(asks)(x)

        assert torch.equal(function(X), X * 2 + X + 1)
        assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == 0


def test_other_threads_are_installed_too():
    found = []
    with cresset.install():
        thread = threading.Thread(target=lambda: found.append(torch.compile(asks)(X)))
        thread.start()
        thread.join()
    assert torch.equal(found[0], X + 1)


def test_stances_and_resets_hold():
    with cresset.install():
        compiled = torch.compile(asks)
        with torch.compiler.set_stance("force_eager"):
            assert torch.equal(compiled(X), X + 2)
        assert torch.equal(compiled(X), X + 1)
        torch.compiler.reset()
        compiled(X)
        compiled(X)
        assert cresset.stats()["graphs"] == 2


def test_repeated_blocks():
    """diffusers' compile_repeated_blocks: Module.compile() of each block of a class."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList(Net() for _ in range(3))

        def forward(self, x):
            return torch.stack([block(x) for block in self.blocks])

    model = Model()
    with torch.no_grad(), cresset.install():
        expected = model(X)
        for module in model.modules():
            if type(module).__name__ == "Net":
                module.compile(fullgraph=True)
        assert torch.allclose(model(X), expected)
        assert cresset.stats()["calls"] == 3 and cresset.stats()["eager_calls"] == 0


@pytest.mark.parametrize("argument", ["dynamic_shapes", "shapes_spec"])
def test_shapes_given_by_argument(argument):
    """The argument of torch 2.14, and its name in 2.13: None is the default."""
    with cresset.install():
        assert torch.equal(torch.compile(lambda x: x + 1, **{argument: None})(X), X + 1)
    assert torch.equal(cresset.compile(lambda x: x + 1, **{argument: None})(X), X + 1)
    with pytest.raises(ValueError, match=f"{argument} is not supported; all sizes are symbolic from the first call"):
        cresset.compile(lambda x: x + 1, **{argument: {"x": None}})
