"""The Python API: functions and decorators, modules that stay modules, options and their misuse, statistics."""

from __future__ import annotations

import gc
import linecache
import os
import subprocess
import sys
import threading
import weakref

import pytest
import torch
from torch import nn

import cresset

# ------------------------------------------------------------------------------------------------- functions


def test_decorator_forms():
    @cresset.compile
    def plain(x):
        """Its words."""
        return x + 1

    @cresset.compile(dynamic=True)
    def with_options(x):
        return x + 1

    x = torch.ones(3)
    assert torch.equal(plain(x), x + 1) and torch.equal(with_options(x), x + 1)
    assert plain.__name__ == "plain" and plain.__doc__ == "Its words."


def test_method_and_callable_object():
    class Scaler:
        factor = 3.0

        def scale(self, x):
            return x * self.factor

        def __call__(self, x):
            return x + self.factor

    scaler = Scaler()
    x = torch.ones(2)
    assert torch.equal(cresset.compile(scaler.scale)(x), x * 3)
    assert torch.equal(cresset.compile(scaler)(x), x + 3)


def test_decorated_method_binds():
    class Holder:
        bias = 2.0

        @cresset.compile
        def add(self, x):
            return x + self.bias

    assert torch.equal(Holder().add(torch.ones(2)), torch.full((2,), 3.0))


def test_compiled_functions_nest():
    inner = cresset.compile(lambda x: x * 2)
    outer = cresset.compile(lambda x: inner(x) + 1)
    assert torch.equal(outer(torch.ones(3)), torch.full((3,), 3.0))


def test_compiling_twice_is_harmless():
    once = cresset.compile(lambda x: x + 1)
    assert torch.equal(cresset.compile(once)(torch.ones(2)), torch.full((2,), 2.0))


# ------------------------------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cresset.compile(3), ["callable", "int"]),
        (lambda: cresset.compile(lambda x: x, mode="fastest"), ["mode", "fastest"]),
        (lambda: cresset.compile(lambda x: x, options={"no_such_option": 1}), ["option", "no_such_option"]),
        (lambda: cresset.compile(lambda x: x, options=3), ["options"]),
        (lambda: cresset.compile(lambda x: x, dynamic="yes"), ["dynamic"]),
        (lambda: cresset.mark_dynamic(torch.ones(2), 5), ["dim", "5"]),
        (lambda: cresset.mark_dynamic([1, 2], 0), ["tensor"]),
        (lambda: cresset.mark_dynamic(torch.ones(2), 0, min=5, max=3), ["min", "max"]),
        (lambda: cresset.mark_dynamic(torch.ones(9), 0, min=2, max=4), ["9"]),
        (lambda: cresset.mark_dynamic(torch.ones(3), 0, max=4, typical=9), ["typical=9"]),
    ],
    ids=[
        "not_callable",
        "mode",
        "option",
        "options_type",
        "dynamic",
        "dim",
        "no_tensor",
        "range_order",
        "outside",
        "typical",
    ],
)
def test_misuse_names_itself(call, words):
    with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value).lower(), str(caught.value)


def test_fullgraph_names_what_it_cannot_capture():
    def function(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    x = torch.ones(3)
    compiled = cresset.compile(function, fullgraph=True)
    with pytest.raises(Exception, match=r"(?i)fullgraph|test_api"):
        compiled(x)


def test_data_dependent_branch_without_fullgraph():
    def function(x):
        y = x * 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    compiled = cresset.compile(function)
    for value in (1.0, -1.0, 2.0, -2.0):
        x = torch.full((3,), value)
        torch.testing.assert_close(compiled(x), function(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.sum().item(),
        lambda x: x + len(x.tolist()),
        lambda x: x[x > 0].sum(),
        lambda x: x.nonzero() + 1,
        lambda x: torch.unique(x),
        lambda x: torch.from_numpy(x.numpy() * 2) + x,
        lambda x: x * float(x[0]) if bool((x > 0).any()) else x,
    ],
    ids=["item", "tolist", "mask", "nonzero", "unique", "numpy", "float_bool"],
)
def test_what_needs_data_still_works(function):
    compiled = cresset.compile(function)
    for x in (torch.tensor([1.0, -2.0, 3.0]), torch.tensor([-1.0, 5.0]), torch.tensor([4.0, 4.0, -4.0, 0.0])):
        torch.testing.assert_close(compiled(x), function(x))


# ------------------------------------------------------------------------------------------------- statistics, logs


def test_stats_have_the_promised_keys():
    compiled = cresset.compile(lambda x: torch.softmax(x @ x.t(), -1))
    compiled(torch.randn(4, 4))
    stats = cresset.stats()
    keys = "graphs recompiles graph_breaks operators_captured kernels extern_calls ms_capture ms_lowering ms_codegen bytes_planned"
    for key in keys.split():
        assert key in stats, key
    assert stats["graphs"] == 1 and stats["operators_captured"] >= 3 and stats["extern_calls"] >= 1
    cresset.reset()
    assert cresset.stats()["graphs"] == 0


def test_explain_prints_well():
    text = str(cresset.explain(lambda x: torch.relu(x) + 1)(torch.randn(3, 4)))
    assert "relu" in text and len(text.splitlines()) > 2


def test_explain_shows_every_piece():
    def f(x):
        y = x * 2
        if y.sum() > 0:
            y = torch.sigmoid(y)
        n = int(y.max() * 100)
        return y.cos() * n

    shown = cresset.explain(f)(torch.ones(3))
    assert [bool(v["begins"]) for v in shown.segments] == [False, True, True]
    assert [bool(v["ends"]) for v in shown.segments] == [True, True, False]
    assert len(shown.graph_breaks) == 2 and all("test_api.py:" in why for why in shown.graph_breaks)
    text = str(shown)
    places = [text.index(part) for part in ("aten::gt", "graph break: ", "aten::sigmoid", "aten::cos")]
    assert places == sorted(places), text
    assert cresset.explain(lambda x: x + 1)(torch.ones(3)).graph_breaks == []


def test_graphs_show_the_programs_lines():
    def f(x):
        y = x.relu() + 1  # the first line
        i = (y > 1).nonzero()
        return y.sum() + i.sum()

    text = str(cresset.explain(f)(torch.randn(3, 4)))
    lines = [line.strip() for line in text.splitlines()]
    first = lines.index("#   y = x.relu() + 1  # the first line")
    assert lines[first - 1].startswith("# ") and lines[first - 1].endswith(".f")
    assert "aten::relu(%0*)" in lines[first + 1] and "aten::add" in lines[first + 2]
    assert any(line.startswith("#   %1 = aten::nonzero(") for line in lines), text


def test_graphs_show_lines_of_programs_without_files():
    source = "def f(x):\n    return x.tanh() * 3\n"
    linecache.cache["<made here>"] = (len(source), None, source.splitlines(True), "<made here>")
    names = {}
    exec(compile(source, "<made here>", "exec"), names)
    assert "#   return x.tanh() * 3" in str(cresset.explain(names["f"])(torch.ones(2)))


# The graphs show the source of the differentiated operators, not the place of backward().
def test_backward_graphs_show_what_is_differentiated(caplog):
    def f(x, w):
        y = torch.tanh(x)  # a tanh
        return (y @ w).sum()  # a product

    cresset._C.log_areas("graph")
    try:
        cresset.compile(f)(torch.randn(2, 3, requires_grad=True), torch.randn(3, 3))
    finally:
        cresset._C.log_areas("")
    graphs = [record.getMessage() for record in caplog.records if record.name == "cresset.graph"]
    (backward,) = [text for text in graphs if text.startswith("backward:")]
    above = {}
    for line in backward.splitlines():
        if line.startswith("#   "):
            source = line
        elif "aten::" in line:
            above[line.split("aten::")[1].split("(")[0]] = source
    assert "a tanh" in above["tanh_backward"] and "a product" in above["mm"], backward


def test_an_operator_is_the_first_that_a_process_captures():
    """No Python frame has looked for torch's folder by then."""
    code = "import torch, cresset; print(cresset.compile(torch.add)(1.5, 2.0).dtype)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "torch.float32", done.stderr


@pytest.mark.parametrize("area", ["graph", "kernels", "guards", "recompiles"])
def test_log_areas(area, tmp_path):
    code = (
        "import torch, cresset\n"
        "f = cresset.compile(lambda x: (x.relu() * 2 if x.shape[0] > 3 else x.neg()))\n"
        "f(torch.ones(5)); f(torch.ones(2))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "CRESSET_LOG": area}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"[cresset:{area}]" in done.stderr


# ------------------------------------------------------------------------------------------------- threads, life


def test_threads_share_a_compiled_function():
    compiled = cresset.compile(lambda x, n: torch.softmax(x * n, -1).sum(0))
    errors = []

    def work(n):
        try:
            for i in range(30):
                x = torch.randn(i % 5 + 1, 4)
                torch.testing.assert_close(compiled(x, n), torch.softmax(x * n, -1).sum(0))
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_eager_in_another_thread_while_capturing():
    started, go = threading.Event(), threading.Event()

    def function(x):
        y = x + 1
        started.set()
        go.wait(5)
        return y * 2

    results = []
    compiled = cresset.compile(function)
    thread = threading.Thread(target=lambda: results.append(compiled(torch.ones(3))))
    thread.start()
    started.wait(5)
    x = torch.ones(3)
    x.add_(1)
    assert torch.equal(x, torch.full((3,), 2.0)) and type(x) is torch.Tensor and x.data_ptr() != 0
    go.set()
    thread.join()
    assert torch.equal(results[0], torch.full((3,), 4.0))


def test_nothing_leaks_from_a_call():
    compiled = cresset.compile(lambda x: (x * 2, x.t()))
    x = torch.randn(4, 4)
    outs = compiled(x)
    refs = [weakref.ref(x), *(weakref.ref(o) for o in outs)]
    del x, outs
    gc.collect()
    assert [r() for r in refs] == [None] * 3


def test_compiled_module_dies_with_its_last_reference():
    module = nn.Linear(4, 4)
    ref = weakref.ref(module.weight)
    compiled = cresset.compile(module)
    with torch.no_grad():
        compiled(torch.ones(2, 4))
    del module, compiled
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("wrap", [cresset.compile, cresset.disable])
def test_classes_die_with_their_compiled_modules(wrap):
    """A class made by a function, with the closures of its methods."""

    def make():
        inner = nn.Linear(4, 4)

        class Outer(nn.Module):
            def forward(self, x):
                return inner(x)

        first, second = wrap(Outer()), wrap(Outer())
        assert type(first) is type(second)
        first(torch.ones(2, 4))
        return weakref.ref(inner), weakref.ref(Outer), weakref.ref(Outer.forward)

    refs = make()
    gc.collect()
    assert [r() for r in refs] == [None] * 3


def test_memory_does_not_grow_over_calls():
    import psutil

    compiled = cresset.compile(lambda x: torch.relu(x @ x.t()).sum(-1))
    x = torch.randn(256, 256)
    process = psutil.Process()
    for _ in range(50):
        compiled(x)
    before = process.memory_info().rss
    for _ in range(500):
        compiled(x)
    assert process.memory_info().rss - before < 8 << 20


def test_an_exception_leaves_a_clean_state():
    def function(x):
        y = x + 1
        raise KeyError("mine")
        return y

    compiled = cresset.compile(function)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            compiled(torch.ones(3))
    x = torch.ones(3) + 1
    assert torch.equal(x, torch.full((3,), 2.0))
    assert torch.equal(cresset.compile(lambda x: x * 2)(x), torch.full((3,), 4.0))


def test_importing_loads_none_of_the_replaced_stack():
    code = (
        "import sys, torch\n"
        "before = set(sys.modules)\n"
        "import cresset\n"
        "f = cresset.compile(lambda x: torch.softmax(x @ x.t(), -1) + 1)\n"
        "f(torch.randn(4, 4))\n"
        "new = set(sys.modules) - before\n"
        "bad = [m for m in new if m.startswith(('torch._dynamo', 'torch._inductor', 'torch._functorch.aot', 'torch.fx.experimental'))]\n"
        "assert not bad, bad\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "function",
    [lambda x: (x + 1).view(-1), lambda x: (x * 2).t(), lambda x: [(x + 1)[0], x[1:]], lambda x: (x + 1).view(-1)[2:]],
    ids=["view", "transpose", "select_and_slice", "view_of_view"],
)
def test_views_of_intermediates_are_captured(function):
    x = torch.randn(3, 4)
    with torch.no_grad():
        expected, got = function(x), cresset.compile(function)(x)
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0
    for a, b in zip(expected, got):
        assert torch.equal(a, b) and a.stride() == b.stride()
