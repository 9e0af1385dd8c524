"""The Python API: functions and decorators, modules that stay modules, options and their misuse, statistics."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref

import pytest
import torch
from compare import assert_same, assert_same_call
from torch import nn

import cresset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, scale=1.0):
        self.calls += 1
        return self.drop(self.norm(self.linear(x)).relu()) * scale


def net(**changes) -> Net:
    torch.manual_seed(0)
    module = Net()
    with torch.no_grad():
        module.norm.running_var.uniform_(0.5, 1.5)
    return module.eval(**changes)


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


# ------------------------------------------------------------------------------------------------- modules


@torch.no_grad()
def test_module_stays_a_module():
    module = net()
    compiled = cresset.compile(module)
    assert isinstance(compiled, nn.Module)
    x = torch.randn(3, 4)
    torch.testing.assert_close(compiled(x), module(x))
    assert set(compiled.state_dict()) == set(module.state_dict())
    assert compiled.linear is module.linear
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in module.parameters()]
    compiled.load_state_dict(module.state_dict())
    assert not compiled.training
    with pytest.raises(AttributeError):
        _ = compiled.no_such_attribute


@torch.no_grad()
def test_buffers_mutated_in_forward():
    module, other = net(), net()
    compiled = cresset.compile(module)
    for n in (3, 5, 1):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x), other(x))
    assert module.calls.item() == 3


@torch.no_grad()
def test_batch_norm_training_updates_statistics():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train()
    other = copy.deepcopy(module)
    compiled = cresset.compile(module)
    for n in (2, 4, 3):
        x = torch.randn(n, 3, 8, 8)
        torch.testing.assert_close(compiled(x), other(x), rtol=1e-4, atol=1e-5)
    assert_same(dict(module.state_dict()), dict(other.state_dict()))


@torch.no_grad()
def test_train_and_eval_switch():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.9))
    compiled = cresset.compile(module)
    x = torch.ones(64, 4)
    module.eval()
    torch.testing.assert_close(compiled(x), module(x))
    module.train()
    assert (compiled(x) == 0).float().mean() > 0.5
    compiled.eval()
    assert not module.training
    torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_dropout_draws_anew_each_call():
    compiled = cresset.compile(lambda x: nn.functional.dropout(x, 0.5, training=True))
    x = torch.ones(256)
    assert not torch.equal(compiled(x), compiled(x))
    torch.manual_seed(5)
    first = compiled(x)
    torch.manual_seed(5)
    assert torch.equal(compiled(x), first)


@torch.no_grad()
def test_to_another_dtype():
    module = net()
    compiled = cresset.compile(module)
    x = torch.randn(3, 4)
    compiled(x)
    compiled.double()
    torch.testing.assert_close(compiled(x.double()), module(x.double()))
    compiled.to(torch.bfloat16)
    torch.testing.assert_close(compiled(x.bfloat16()), module(x.bfloat16()))


@torch.no_grad()
def test_parameter_replaced_or_moved():
    module = nn.Linear(3, 3)
    compiled = cresset.compile(module)
    x = torch.ones(2, 3)
    torch.testing.assert_close(compiled(x), module(x))
    module.weight = nn.Parameter(torch.zeros(3, 3))
    torch.testing.assert_close(compiled(x), module(x))
    module.weight.data = torch.ones(3, 3)
    torch.testing.assert_close(compiled(x), module(x))
    module.bias = None
    torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_submodule_replaced():
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    compiled = cresset.compile(module)
    x = torch.randn(4, 3)
    torch.testing.assert_close(compiled(x), module(x))
    module[1] = nn.Tanh()
    torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_hooks_run():
    module = nn.Linear(3, 3)
    compiled = cresset.compile(module)
    x = torch.ones(2, 3)
    compiled(x)
    handle = module.register_forward_hook(lambda m, args, out: out * 2)
    torch.testing.assert_close(compiled(x), module(x))
    handle.remove()
    torch.testing.assert_close(compiled(x), module(x))
    handle = module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    torch.testing.assert_close(compiled(x), module(x))
    handle.remove()


@torch.no_grad()
def test_tied_weights():
    module = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    module[1].weight = module[0].weight
    compiled = cresset.compile(module)
    x = torch.randn(2, 4)
    torch.testing.assert_close(compiled(x), module(x))
    module[0].weight.mul_(2)
    torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_deepcopy_and_pickle():
    compiled = cresset.compile(net())
    x = torch.randn(3, 4)
    compiled(x)
    twin = copy.deepcopy(compiled)
    twin.linear.weight.zero_()
    assert not torch.equal(twin(x), compiled(x))
    again = pickle.loads(pickle.dumps(compiled))
    torch.testing.assert_close(again(x), compiled(x))


@torch.no_grad()
def test_saved_weights_load_into_the_plain_module(tmp_path):
    compiled = cresset.compile(net())
    torch.save(compiled.state_dict(), tmp_path / "weights.pt")
    plain = net()
    plain.load_state_dict(torch.load(tmp_path / "weights.pt"))


# ------------------------------------------------------------------------------------------------- modes


def test_python_scalars():
    """A scalar argument may vary: the result follows it."""

    def function(x, n, f, flag, text):
        y = x * n + f
        return y.relu() if flag else y - len(text)

    compiled = cresset.compile(function)
    for args in ((2, 0.5, True, "a"), (3, 0.5, True, "a"), (3, 0.25, True, "a"), (3, 0.25, False, "a"), (3, 0.25, False, "bb"), (2, 0.5, True, "a")):  # fmt: skip
        x = torch.randn(3)
        torch.testing.assert_close(compiled(x, *args), function(x, *args))


def test_dtype_rank_and_structure_changes():
    compiled = cresset.compile(lambda x: (x * 2).sum(-1))
    for x in (torch.ones(3), torch.ones(2, 3), torch.ones(3, dtype=torch.int64), torch.ones(2, 3), torch.ones(1, 2, 3)):
        assert_same(compiled(x), (x * 2).sum(-1))


def test_grad_mode_switch():
    """Under grad mode with tensors that require it, the result can be differentiated, as in eager."""
    linear = nn.Linear(3, 2)
    compiled = cresset.compile(linear)
    x = torch.randn(4, 3)
    with torch.no_grad():
        assert not compiled(x).requires_grad
    out = compiled(x)
    assert out.requires_grad
    out.sum().backward()
    got = linear.weight.grad.clone()
    linear.weight.grad = None
    linear(x).sum().backward()
    torch.testing.assert_close(got, linear.weight.grad)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), linear(x))


def test_inference_mode():
    compiled = cresset.compile(lambda x: x * 2 + 1)
    x = torch.randn(3)
    with torch.inference_mode():
        out = compiled(x)
        assert out.is_inference()
    torch.testing.assert_close(compiled(x), x * 2 + 1)
    assert not compiled(x).is_inference()


@torch.no_grad()
def test_autocast_switch():
    linear = nn.Linear(8, 8)
    compiled = cresset.compile(linear)
    x = torch.randn(4, 8)
    assert compiled(x).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(compiled(x), linear(x))
        assert compiled(x).dtype is torch.bfloat16
    assert compiled(x).dtype is torch.float32


@torch.no_grad()
def test_autocast_inside():
    def function(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = x @ y
        return z, z.float() @ y

    assert_same_call(function, cresset.compile(function), torch.randn(4, 4), torch.randn(4, 4))


def test_default_dtype_switch():
    compiled = cresset.compile(lambda x: x + torch.ones(3) / 2)
    x = torch.arange(3)
    assert compiled(x).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    assert compiled(x).dtype is torch.float64
    torch.set_default_dtype(torch.float32)
    assert compiled(x).dtype is torch.float32


def test_grad_mode_inside():
    def function(x):
        with torch.no_grad():
            y = x * 2
        return y + torch.is_grad_enabled()

    check = cresset.compile(function)
    torch.testing.assert_close(check(torch.ones(2)), function(torch.ones(2)))
    assert torch.is_grad_enabled()


# ------------------------------------------------------------------------------------------------- marks and shapes


def test_one_compilation_for_many_shapes():
    compiled = cresset.compile(lambda x, w: torch.softmax(x @ w, -1) + x.sum(1, keepdim=True))
    for n in (3, 1, 8, 700, 2, 33):
        x, w = torch.randn(n, 5), torch.randn(5, 7)
        torch.testing.assert_close(
            compiled(x, w), torch.softmax(x @ w, -1) + x.sum(1, keepdim=True), rtol=1e-4, atol=1e-5
        )
    stats = cresset.stats()
    assert stats["graphs"] == 1 and list(stats["recompiles"]) == []


def test_static_recompiles_and_says_so():
    compiled = cresset.compile(lambda x: x + 1, dynamic=False)
    for n in (3, 4, 3, 4):
        compiled(torch.ones(n))
    stats = cresset.stats()
    assert stats["graphs"] == 2
    assert len(stats["recompiles"]) == 1 and "4" in str(stats["recompiles"][0])


def test_batch_of_zero():
    function = lambda x: torch.relu(x @ torch.ones(4, 2)).mean(1)  # noqa: E731
    compiled = cresset.compile(function)
    for n in (3, 0, 1, 2):
        torch.testing.assert_close(compiled(torch.randn(n, 4)), torch.zeros(n), atol=100.0, rtol=0)
        assert_same_call(function, compiled, torch.randn(n, 4))


def test_branch_on_a_size():
    def function(x):
        return x * 2 if x.shape[0] > 4 else x - 1

    compiled = cresset.compile(function)
    for n in (3, 9, 4, 5, 2, 100):
        x = torch.randn(n)
        torch.testing.assert_close(compiled(x), function(x))
    stats = cresset.stats()
    assert stats["graphs"] == 2
    assert len(stats["recompiles"]) == 1


def test_mark_dynamic_that_must_be_static():
    def function(x):
        return x * 2 if x.shape[0] == 8 else x

    x = torch.randn(8)
    cresset.mark_dynamic(x, 0)
    with pytest.raises(Exception, match=r"(?s)(mark|dynamic).*"):
        cresset.compile(function)(x)


def test_mark_dynamic_with_a_range():
    x = torch.randn(8, 3)
    cresset.mark_dynamic(x, 0, min=2, max=64)
    compiled = cresset.compile(lambda x: x * 2 if x.shape[0] <= 64 else x)
    torch.testing.assert_close(compiled(x), x * 2)
    y = torch.randn(32, 3)
    torch.testing.assert_close(compiled(y), y * 2)
    z = torch.randn(70, 3)
    torch.testing.assert_close(compiled(z), z)


def test_mark_static():
    compiled = cresset.compile(lambda x: x + 1)
    for n in (8, 9):
        x = torch.randn(n, 3)
        cresset.mark_static(x, 0)
        torch.testing.assert_close(compiled(x), x + 1)
    assert cresset.stats()["graphs"] == 2


def test_same_size_arguments_may_part():
    """That two sizes were equal in the first call is no promise."""
    compiled = cresset.compile(lambda x, y: (x + 1, y * 2))
    compiled(torch.ones(4), torch.ones(4))
    got = compiled(torch.ones(4), torch.ones(6))
    assert got[1].shape == (6,)
    assert list(cresset.stats()["recompiles"]) == []


def test_sizes_needed_equal_are_guarded():
    function = lambda x, y: x + y  # noqa: E731
    compiled = cresset.compile(function)
    for shapes in (((4,), (4,)), ((6,), (6,)), ((4,), (1,)), ((1,), (5,)), ((7,), (7,)), ((4,), (5,))):
        assert_same_call(function, compiled, torch.ones(shapes[0]), torch.ones(shapes[1]))


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
    ],
    ids=["not_callable", "mode", "option", "options_type", "dynamic", "dim", "no_tensor", "range_order", "outside"],
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
