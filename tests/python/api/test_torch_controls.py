"""torch's own controls of its compiler hold for cresset: marks on sizes, stances, resets, assumed constants, errors at
graph breaks, switches in the environment. Where torch.compile runs in little time, both answer the same questions."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import torch
import torch._dynamo
import torch._dynamo.decorators

import cresset


def made_by_cresset(function, **settings):
    return cresset.compile(function, **settings)


def made_by_torch(function, **settings):
    return torch.compile(function, backend="eager", **settings)


@pytest.fixture(params=[made_by_cresset, made_by_torch], ids=["cresset", "torch"])
def compiler(request):
    torch.compiler.reset()
    yield request.param
    torch.compiler.set_stance("default")


def how(compiled, *args):
    """How a compiled function of `asks` took the call: compiled, eager, or the type of the exception."""
    try:
        return "compiled" if float(compiled(*args).flatten()[0]) == 1 else "eager"
    except Exception as raised:
        return "RuntimeError" if isinstance(raised, RuntimeError) else type(raised).__name__


def asks(x):
    return x * 0 + (1 if torch.compiler.is_compiling() else 2)


X, LONGER, TWO_D, FLAT = torch.ones(4), torch.ones(5), torch.ones(4, 4), torch.ones(4, dtype=torch.float64)

# ------------------------------------------------------------------------------------------------- stances


def test_force_eager(compiler):
    compiled = compiler(asks)
    with torch.compiler.set_stance("force_eager"):
        assert [how(compiled, X), how(compiled, TWO_D)] == ["eager", "eager"]
    assert how(compiled, X) == "compiled"

    @torch.compiler.set_stance("force_eager")
    def decorated(x):
        return compiled(x)

    assert how(decorated, X) == "eager" and how(compiled, X) == "compiled"


def test_force_eager_reaches_modules_inside(compiler):
    class Inner(torch.nn.Module):
        def forward(self, x):
            return asks(x)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = compiler(Inner())

        def forward(self, x):
            return self.inner(x)

    model = compiler(Outer())
    with torch.compiler.set_stance("force_eager"):
        assert how(model, X) == "eager"
    assert how(model, X) == "compiled"


def test_eager_on_recompile(compiler):
    compiled = compiler(asks)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert how(compiled, X) == "eager"
    assert how(compiled, X) == "compiled"
    with torch.compiler.set_stance("eager_on_recompile"):
        assert [how(compiled, X), how(compiled, FLAT), how(compiled, X)] == ["compiled", "eager", "compiled"]
    assert how(compiled, FLAT) == "compiled"


def test_fail_on_recompile(compiler):
    compiled = compiler(asks)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert how(compiled, X) == "RuntimeError"
    assert how(compiled, X) == "compiled"
    with torch.compiler.set_stance("fail_on_recompile"):
        assert [how(compiled, X), how(compiled, FLAT), how(compiled, X)] == ["compiled", "RuntimeError", "compiled"]


def test_fail_on_recompile_says_why():
    compiled = cresset.compile(asks)
    compiled(X)
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError) as raised:
        compiled(FLAT)
    assert "asks" in str(raised.value) and "expected dtype" in str(raised.value)


def test_fail_on_recompile_behind_a_graph_break():
    def function(x, box):
        y = x + 1
        torch._dynamo.graph_break()
        return y * box[0]

    compiled = cresset.compile(function)
    box = [2]
    compiled(X, box)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert torch.equal(compiled(X, box), (X + 1) * 2)
        box[0] = torch.ones(4, dtype=torch.float64)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            compiled(X, box)
    assert torch.equal(compiled(X, box), (X + 1) * box[0])


def test_eager_then_compile(compiler):
    compiled = compiler(asks)
    with torch.compiler.set_stance("eager_then_compile"):
        assert [how(compiled, X), how(compiled, X), how(compiled, X)] == ["eager", "compiled", "compiled"]


def test_eager_then_compile_learns_sizes_from_the_eager_call(monkeypatch, tmp_path):
    monkeypatch.setenv("CRESSET_CACHE_DIR", str(tmp_path))
    compiled = cresset.compile(lambda x: x.sin() + 1, dynamic="auto")
    with torch.compiler.set_stance("eager_then_compile"):
        for size in (4, 5, 6, 7):
            compiled(torch.ones(size))
    assert cresset.stats()["graphs"] == 1


def test_aot_eager_then_compile(compiler):
    compiled = compiler(asks)
    with torch.compiler.set_stance("aot_eager_then_compile"):
        how(compiled, X)
        assert how(compiled, X) == "compiled"


def test_skip_guard_eval_unsafe(compiler):
    compiled = compiler(asks)
    with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
        assert how(compiled, X) == "RuntimeError"
    assert how(compiled, X) == "compiled"
    with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
        assert how(compiled, X) == "compiled"
        assert how(compiled, TWO_D) == "RuntimeError"
    assert how(compiled, TWO_D) == "compiled"


def test_an_unknown_stance_is_an_error_of_the_call(compiler):
    torch.compiler.set_stance("nonsense")
    assert how(compiler(asks), X) == "RuntimeError"


def test_force_backend(compiler):
    seen = []

    def backend(graph_module, example_inputs):
        seen.append(graph_module)
        return graph_module.forward

    compiled = compiler(asks)
    assert how(compiled, X) == "compiled" and not seen
    with torch.compiler.set_stance(force_backend=backend):
        assert how(compiled, X) == "compiled" and len(seen) == 1
        assert how(compiled, X) == "compiled" and len(seen) == 1
    with torch.compiler.set_stance(force_backend="eager"):
        assert how(compiled, X) == "compiled"
    assert how(compiled, X) == "compiled" and len(seen) == 1


def test_a_stance_cannot_be_set_inside(compiler):
    def function(x):
        x = x + 1
        torch.compiler.set_stance("force_eager")
        return x + 2

    with pytest.raises(AssertionError):
        compiler(function)(X)
    compiled = compiler(asks)
    assert how(compiled, X) == "compiled"


# ------------------------------------------------------------------------------------------------- reset


def test_reset(compiler):
    runs = []

    @torch.compiler.assume_constant_result
    def traced():
        runs.append(1)
        return 1

    compiled = compiler(lambda x: x * 0 + traced())
    for _ in range(2):
        compiled(X)
    assert len(runs) == 1
    torch.compiler.reset()
    compiled(X)
    assert len(runs) == 2
    compiled(X)
    assert len(runs) == 2
    torch.compiler.reset()
    torch.compiler.reset()
    compiled(X)
    assert len(runs) == 3


_FIRST = """
import torch, cresset
{before}
f = cresset.compile(lambda x: x + 1)
f(torch.ones(3))
{between}
f(torch.ones(3))
f(torch.ones(3))
print(cresset.stats()["graphs"])
"""


@pytest.mark.parametrize(
    ("before", "between", "graphs"),
    [
        ("", "torch.compiler.reset()", 2),
        ("import torch._dynamo", "torch.compiler.reset()", 2),
        ("", "import torch._dynamo", 1),
        ("", "torch.compiler.set_stance('fail_on_recompile')", 1),
        ("torch.compiler.reset()", "", 1),
    ],
)
def test_reset_is_seen_with_the_import_of_torchs_compiler(before, between, graphs):
    program = _FIRST.format(before=before, between=between)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == str(graphs), done.stdout + done.stderr[-2000:]


# ------------------------------------------------------------------------------------------------- marks on sizes


def outcome(compiled, *args):
    try:
        return compiled(*args)
    except RuntimeError as raised:
        return "RuntimeError" if not isinstance(raised, cresset.CaptureError) else "CaptureError"


def reads_size(x):
    return x * x.shape[0]


def specializes(x):
    return x + 1 if x.shape[0] == 4 else x - 1


def test_mark_dynamic_forbids_a_specialization(compiler):
    compiled = compiler(specializes)
    x = torch.ones(4)
    torch._dynamo.mark_dynamic(x, 0)
    assert outcome(compiled, x) == "RuntimeError"
    assert torch.equal(compiled(torch.ones(4)), torch.ones(4) + 1)
    for _ in range(12):
        assert outcome(compiled, x) == "RuntimeError"  # the program for unmarked tensors does not serve a marked one


def test_mark_dynamic_makes_a_size_symbolic_where_all_others_are_static():
    compiled = cresset.compile(reads_size, dynamic=False)
    for size in (4, 5, 6):
        x = torch.ones(size, 2)
        torch._dynamo.mark_dynamic(x, 0)
        assert torch.equal(compiled(x), reads_size(x))
    assert cresset.stats()["graphs"] == 1


def test_maybe_mark_dynamic(compiler):
    compiled = compiler(specializes)
    x = torch.ones(4)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    assert torch.equal(compiled(x), x + 1)
    cresset.reset()
    compiled = cresset.compile(reads_size, dynamic=False)
    for size in (4, 5, 6):
        x = torch.ones(size, 2)
        torch._dynamo.maybe_mark_dynamic(x, 0)
        assert torch.equal(compiled(x), reads_size(x))
    assert cresset.stats()["graphs"] == 1


def test_mark_static():
    compiled = cresset.compile(reads_size)
    for size in (4, 5, 6):
        x = torch.ones(size, size)
        torch._dynamo.mark_static(x, 0)
        assert torch.equal(compiled(x), reads_size(x))
    assert cresset.stats()["graphs"] == 3
    x = torch.ones(7, 7)
    torch._dynamo.mark_static(x)
    assert torch.equal(compiled(x), reads_size(x))
    assert cresset.stats()["graphs"] == 4


def test_mark_static_yields_to_mark_dynamic():
    compiled = cresset.compile(reads_size, dynamic=False)
    for size in (4, 5):
        x = torch.ones(size)
        torch._dynamo.mark_static(x, 0)
        torch._dynamo.mark_dynamic(x, 0)
        compiled(x)
    assert cresset.stats()["graphs"] == 1


def test_mark_static_inside():
    def function(x):
        torch._dynamo.mark_static(x, 0)
        return x + 1

    compiled = cresset.compile(function)
    for size in (4, 5, 6):
        assert torch.equal(compiled(torch.ones(size)), torch.ones(size) + 1)
    assert cresset.stats()["graphs"] == 3


@pytest.mark.parametrize("mark", ["mark_dynamic", "maybe_mark_dynamic"])
def test_other_marks_inside_are_errors(compiler, mark):
    mark = getattr(torch._dynamo, mark)

    def function(x):
        mark(x, 0)
        return x + 1

    with pytest.raises(AssertionError):
        compiler(function)(X)


def test_mark_unbacked(compiler):
    def function(x):
        if x.shape[0] > 3:
            return x + 1
        return x - 1

    x = torch.ones(4)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    with pytest.raises(RuntimeError):
        compiler(function, fullgraph=True)(x)
    compiled = compiler(lambda x: x * 2, fullgraph=True)
    for size in (4, 1, 0, 7):
        x = torch.ones(size)
        torch._dynamo.decorators.mark_unbacked(x, 0)
        assert torch.equal(compiled(x), x * 2)


def test_the_range_of_a_mark(compiler):
    def function(x):
        return x + 1 if x.shape[0] > 1 else x - 1

    def marked(size, **bounds):
        x = torch.ones(size)
        torch._dynamo.mark_dynamic(x, 0, **bounds)
        return x

    compiled = compiler(function)
    assert torch.equal(compiled(marked(4, min=2, max=8)), torch.ones(4) + 1)
    assert torch.equal(compiled(marked(5, min=2, max=8)), torch.ones(5) + 1)
    assert outcome(compiled, marked(9, min=2, max=8)) == "RuntimeError"


def test_marks_beyond_the_rank_are_ignored(compiler):
    x = torch.ones(4)
    for dim in (-1, 5):
        torch._dynamo.mark_dynamic(x, dim)
    assert torch.equal(compiler(specializes)(x), x + 1)


def test_fewer_marks_need_no_new_program():
    """torch's rule: a program for marked tensors serves tensors with some of the marks, and a new mark needs a new one."""
    compiled = cresset.compile(lambda x: x * 2)
    both, one, none = torch.ones(3, 4), torch.ones(3, 4), torch.ones(3, 4)
    torch._dynamo.mark_dynamic(both, [0, 1])
    torch._dynamo.mark_dynamic(one, 0)
    for x, graphs in ((both, 1), (one, 1), (none, 1)):
        assert torch.equal(compiled(x), x * 2)
        assert cresset.stats()["graphs"] == graphs
    other = torch.ones(3, 4)
    torch._dynamo.mark_static(other, 0)
    compiled(other)
    assert cresset.stats()["graphs"] == 2


def test_a_later_mark_of_cressets_own_counts():
    compiled = cresset.compile(specializes)
    x = torch.ones(4)
    assert torch.equal(compiled(x), x + 1)
    cresset.mark_dynamic(x, 0)
    with pytest.raises(cresset.ConstraintError):
        compiled(x)


# ------------------------------------------------------------------------------------------------- assumed constants

box = [1]


@torch.compiler.assume_constant_result
def number(by):
    return box[0] * by


@torch.compiler.assume_constant_result
def tensor():
    return torch.full((4,), float(box[0]))


class Holder:
    @torch.compiler.assume_constant_result
    def number(self):
        return box[0]


@pytest.mark.parametrize("which", ["number", "tensor", "method", "list"])
def test_assume_constant_result(compiler, which):
    holder = Holder()

    @torch.compiler.assume_constant_result
    def several():
        return [box[0], (box[0] + 1, "text")]

    function = {
        "number": lambda x: x * 0 + number(2),
        "tensor": lambda x: x * 0 + tensor(),
        "method": lambda x: x * 0 + holder.number(),
        "list": lambda x: x * 0 + several()[0] + several()[1][0],
    }[which]
    compiled = compiler(function, fullgraph=True)
    box[0] = 1
    try:
        first = compiled(X)
        assert torch.equal(first, function(X))
        box[0] = 7
        assert torch.equal(compiled(X), first)
    finally:
        box[0] = 1


def test_an_assumed_constant_of_sizes():
    """The sizes among its arguments are guarded: another size is another constant."""
    compiled = cresset.compile(lambda x: x * 0 + number(x.shape[0]), fullgraph=True)
    for size in (4, 5, 4):
        assert torch.equal(compiled(torch.ones(size)), torch.full((size,), float(size)))


def test_an_assumed_constant_of_tensors_runs_between_segments():
    seen = []

    @torch.compiler.assume_constant_result
    def total(x):
        seen.append(float(x.sum()))
        return int(x.sum())

    compiled = cresset.compile(lambda x: (x + 1) * total(x + 1))
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 12.0))
    assert seen == [6.0]


def test_an_assumed_constant_raises():
    @torch.compiler.assume_constant_result
    def bad():
        raise KeyError("no")

    def function(x):
        try:
            return x + bad()
        except KeyError:
            return x - 1

    assert torch.equal(cresset.compile(function)(X), X - 1)


# ------------------------------------------------------------------------------------------------- errors at breaks


def breaks(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x + 2


def breaks_inside(inner, outer=None):
    def function(x):
        with torch._dynamo.error_on_graph_break(inner):
            x = x + 1
            torch._dynamo.graph_break()
            return x + 2

    return torch._dynamo.error_on_graph_break(outer)(function) if outer is not None else function


def breaks_around(x):
    x = x + 1
    torch._dynamo.graph_break()
    with torch._dynamo.error_on_graph_break(True):
        x = x * 2
    torch._dynamo.graph_break()
    return x + 2


def breaks_later(x):
    x = x + 1
    torch._dynamo.graph_break()
    with torch._dynamo.error_on_graph_break(True):
        x = x * 2
        torch._dynamo.graph_break()
    return x + 2


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (breaks, "runs"),
        (breaks_inside(True), "RuntimeError"),
        (breaks_inside(False), "runs"),
        (breaks_inside(True, False), "RuntimeError"),
        (breaks_inside(False, True), "runs"),
        (torch._dynamo.error_on_graph_break(True)(breaks), "RuntimeError"),
        (breaks_around, "runs"),
        (breaks_later, "RuntimeError"),
    ],
)
def test_error_on_graph_break(compiler, function, expected):
    compiled = compiler(function)
    for _ in range(12):  # an error stays one: it is no capture in vain
        if expected == "runs":
            assert torch.equal(compiled(X), function(X))
        else:
            with pytest.raises(RuntimeError):
                compiled(X)
        assert not torch._dynamo.utils._get_error_on_graph_break()


def test_a_graph_break_of_torchs_is_one(compiler):
    with pytest.raises(RuntimeError):
        compiler(breaks, fullgraph=True)(X)


def test_error_on_graph_break_outside(compiler):
    with torch._dynamo.error_on_graph_break(True), pytest.raises(RuntimeError):
        compiler(breaks)(X)
    assert torch.equal(compiler(breaks)(X), breaks(X))


def test_the_error_names_the_place():
    with torch._dynamo.error_on_graph_break(True), pytest.raises(cresset.CaptureError) as raised:
        cresset.compile(breaks)(X)
    assert "test_torch_controls.py" in str(raised.value) and "error_on_graph_break" in str(raised.value)


# ------------------------------------------------------------------------------------------------- switches

_SWITCH = """
import torch, cresset
def f(x): return x + 1
m = torch.nn.Linear(2, 2)
print(cresset.compile(f) is f, cresset.compile(m) is m, cresset.compile()(f) is f)
cresset.compile_in_place(m)(torch.ones(1, 2))
print(cresset.stats()["calls"])
"""


@pytest.mark.parametrize("name", ["CRESSET_DISABLE", "TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"])
@pytest.mark.parametrize("value", ["1", "0", ""])
def test_switches_of_the_environment(name, value):
    environment = {**os.environ, name: value}
    done = subprocess.run([sys.executable, "-c", _SWITCH], capture_output=True, text=True, env=environment, timeout=300)
    on = value == "1"
    assert done.stdout.split() == [str(on)] * 3 + ["0" if on else "1"], done.stdout + done.stderr[-2000:]


def test_a_wrong_switch_is_an_error_of_the_import():
    environment = {**os.environ, "CRESSET_DISABLE": "maybe"}
    done = subprocess.run([sys.executable, "-c", "import cresset"], capture_output=True, text=True, env=environment)
    assert done.returncode != 0 and "CRESSET_DISABLE='maybe'" in done.stderr


def test_the_setting_of_torchs_compiler():
    with torch._dynamo.config.patch(disable=True):
        assert cresset.compile(breaks) is breaks
    assert cresset.compile(breaks) is not breaks


# ------------------------------------------------------------------------------------------------- arguments


def test_name():
    def function(x):
        if x.sum() > 0:
            return x
        return x + 1

    compiled = cresset.compile(function, name="the block", fullgraph=True)
    with pytest.raises(cresset.CaptureError, match="the block cannot be captured whole"):
        compiled(X)
    compiled = cresset.compile(function, name="the other block")
    compiled(X)
    assert any("the other block" in reason for reason in cresset.stats()["graph_break_reasons"])


def test_recompile_limit(compiler):
    compiled = compiler(asks, recompile_limit=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [how(compiled, x) for x in (X, FLAT, X, FLAT)] == ["compiled", "eager", "compiled", "eager"]


def test_recompile_limit_warns_once_and_is_an_error_of_fullgraph():
    compiled = cresset.compile(asks, recompile_limit=1)
    compiled(X)
    with pytest.warns(RuntimeWarning, match="recompile_limit=1"):
        compiled(FLAT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(FLAT)
    compiled = cresset.compile(asks, recompile_limit=1, fullgraph=True)
    compiled(X)
    with pytest.raises(cresset.CaptureError, match="recompile_limit=1"):
        compiled(FLAT)


def test_isolate_recompiles(compiler):
    one, other = (compiler(asks, recompile_limit=1, isolate_recompiles=True) for _ in range(2))
    assert [how(one, X), how(other, FLAT)] == ["compiled", "compiled"]


WRONG = [
    {"mode": "fast"},
    {"options": {"nope": 1}},
    {"mode": "default", "options": {}},
    {"backend": "nope"},
    {"dynamic": "yes"},
]


@pytest.mark.parametrize("settings", WRONG, ids=str)
def test_wrong_values_raise_torchs_exceptions(settings):
    with pytest.raises(Exception) as its:
        torch.compile(asks, **{"backend": "inductor", **settings})(X)
    with pytest.raises(Exception) as mine:
        cresset.compile(asks, **settings)
    common = [t for t in type(its.value).__mro__ if t.__module__ == "builtins"]
    assert isinstance(mine.value, common[0]), (type(mine.value), common)
    assert isinstance(mine.value, (ValueError, TypeError))


def test_no_callable_raises_torchs_exception():
    with pytest.raises(AssertionError):
        torch.compile(3, backend="eager")
    with pytest.raises(AssertionError):
        cresset.compile(3)
    with pytest.raises(TypeError):
        cresset.compile(3)


@pytest.mark.parametrize(
    "settings", [{"recompile_limit": "a"}, {"recompile_limit": -1}, {"isolate_recompiles": 1}, {"guard_filter_fn": 3}]
)
def test_wrong_values_that_torch_does_not_see(settings):
    with pytest.raises(TypeError):
        cresset.compile(asks, **settings)


def test_arguments_without_effect_say_so_once():
    for settings, text in (
        ({"mode": "lite"}, "mode='lite'"),
        ({"options": {"max_autotune": True, "epilogue_fusion": True}}, "epilogue_fusion"),
    ):
        compiled = cresset.compile(asks, **settings)
        assert how(compiled, X) == "compiled"
        printed = str(cresset.explain(compiled)(X))
        assert printed.count("without effect: ") == len(settings.get("options", "1")) and printed.count(text) == 1
        assert str(cresset.explain(asks, **settings)(X)).count(text) == 1
    assert "without effect" not in str(cresset.explain(cresset.compile(asks, mode="default"))(X))
    assert "without effect" not in str(cresset.explain(asks)(X))


@pytest.mark.parametrize("level", ["eager", "aot_eager"])
def test_levels_for_bisection(level):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.LayerNorm(4))
    compiled = cresset.compile(lambda x: torch.softmax(model(x), -1).cumsum(0), backend=level)
    for rows in (3, 5):
        x = torch.randn(rows, 4)
        expected = torch.softmax(model(x), -1).cumsum(0)
        torch.testing.assert_close(compiled(x), expected)
        mine = torch.autograd.grad(compiled(x).square().sum(), list(model.parameters()))
        its = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
        torch.testing.assert_close(mine, its)
    assert cresset.stats()["kernels"] == 0 and cresset.stats()["graphs"] == 1
    assert cresset.stats()["eager_calls"] == 0


# ------------------------------------------------------------------------------------------------- guard filters

scale = 2


@pytest.mark.parametrize("by", ["guard_filter_fn", "options"])
def test_torchs_guard_filters(by):
    """torch's own functions for filters read torch's attributes of the entries."""
    global scale
    model = torch.nn.Linear(4, 4)

    def function(x):
        return model(x) * scale

    filters = torch.compiler
    for chosen, kept in (
        (filters.skip_guard_on_globals_unsafe, False),
        (filters.skip_all_guards_unsafe, False),
        (filters.keep_tensor_guards_unsafe, False),
        (filters.skip_guard_on_all_nn_modules_unsafe, True),
        (filters.skip_guard_on_inbuilt_nn_modules_unsafe, True),
    ):
        settings = {"guard_filter_fn": chosen} if by == "guard_filter_fn" else {"options": {"guard_filter_fn": chosen}}
        compiled = cresset.compile(function, **settings)
        with torch.no_grad():
            first = compiled(torch.ones(1, 4))
            scale = 3
            try:
                assert torch.equal(compiled(torch.ones(1, 4)), first) != kept, chosen
            finally:
                scale = 2


def test_guards_on_modules_are_known():
    model = torch.nn.Linear(4, 4)
    model.factor = 2
    seen = []

    def choose(entries):
        seen.extend(entries)
        return [not e.orig_guard.source.is_unspecialized_builtin_nn_module() for e in entries]

    compiled = cresset.compile(lambda x: model(x) * model.factor, guard_filter_fn=choose)
    with torch.no_grad():
        first = compiled(torch.ones(1, 4))
        model.factor = 3  # not guarded
        assert torch.equal(compiled(torch.ones(1, 4)), first)
    assert any(e.orig_guard.source.is_unspecialized_nn_module() and e.key == "factor" for e in seen)
    assert {e.guard_type for e in seen} <= {"TENSOR_MATCH", "TYPE_MATCH", "CLOSURE_MATCH", "CONSTANT_MATCH", "ID_MATCH"}
    assert all(isinstance(e.name, str) and e.derived_guard_types == () for e in seen)
