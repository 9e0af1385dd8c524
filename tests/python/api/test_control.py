"""Controls of the compiler: disable, graph_break, is_compiling, allow_in_graph, comptime, guard_filter."""

from __future__ import annotations

import copy
import functools
import io
import pickle
import types

import pytest
import torch

import cresset

EVALUATE = {"frontend": "evaluate"}


@pytest.fixture(params=["evaluate", "trace"])
def options(request):
    return {"frontend": request.param}


def x(seed=0, *shape):
    return torch.randn(shape or (3, 4), generator=torch.Generator().manual_seed(seed))


calls = []


@cresset.disable
def kept_out(t, n):
    """Says so."""
    calls.append(n)
    assert not torch.compiler.is_compiling() and not cresset.is_compiling()
    return t * float(t.sum()) + n


def around(t, n=2):
    y = (t + 1).relu()
    z = kept_out(y, n)
    return z * 2 - y


# ------------------------------------------------------------------------------------------------- disable


def test_disable(options, grad):
    calls.clear()
    compiled = cresset.compile(around, options=options)
    for seed in range(4):
        assert torch.allclose(compiled(x(seed)), around(x(seed)), atol=1e-5)
    assert calls == [2] * 8
    assert (kept_out.__name__, kept_out.__doc__) == ("kept_out", "Says so.")
    if options == EVALUATE:
        assert cresset.stats()["graph_breaks"] == 1
        assert cresset.stats()["eager_calls"] == 0
        assert cresset.stats()["graphs"] == 2  # before and after
        assert "kept_out, which cresset.disable keeps out" in cresset.stats()["graph_break_reasons"][0]
        assert "in around" in cresset.stats()["graph_break_reasons"][0]


def test_disable_sees_plain_numbers():
    seen = []

    @cresset.disable(reason="it looks at types")
    def look(t, n, *, names):
        seen.append((type(n), n, type(t), t.shape, names))
        return t + n

    def f(t):
        return look(t * 2, t.shape[0], names=[t.shape[1]]) + 1

    compiled = cresset.compile(f, options=EVALUATE)
    for rows in (3, 5):
        assert torch.equal(compiled(torch.ones(rows, 4)), f(torch.ones(rows, 4)))
    assert [s[:2] for s in seen] == [(int, 3), (int, 3), (int, 5), (int, 5)]
    assert seen[0] == seen[1] and seen[2] == seen[3]
    assert "it looks at types" in cresset.stats()["graph_break_reasons"][0]


def test_disable_under_fullgraph(options):
    compiled = cresset.compile(around, fullgraph=True, options=options)
    with pytest.raises(cresset.CaptureError, match="kept_out, which cresset"):
        compiled(x())


def test_disable_called_by_c_code(grad):
    calls.clear()

    def f(t):
        return sum(map(functools.partial(kept_out, n=1), [t + 1, t * 2]), t - 1)

    compiled = cresset.compile(f, options=EVALUATE)
    for seed in range(3):
        assert torch.allclose(compiled(x(seed)), f(x(seed)), atol=1e-5)
    assert calls == [1] * 12


def test_disable_raises():
    @cresset.disable
    def bad(t):
        raise KeyError("no")

    def f(t):
        try:
            return bad(t + 1)
        except KeyError:
            return t - 1

    compiled = cresset.compile(f, options=EVALUATE)
    for seed in range(3):
        assert torch.equal(compiled(x(seed)), f(x(seed)))
    assert not torch.compiler.is_compiling()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, t):
        return self.inner(t).relu()


def test_disable_module(options):
    model = torch.nn.Sequential(Block(), cresset.disable(Block()), Block())
    assert isinstance(model[1], Block)
    assert len(list(model.parameters())) == 6
    compiled = cresset.compile(model, options=options)
    with torch.no_grad():
        for seed in range(3):
            assert torch.allclose(compiled(x(seed)), model(x(seed)), atol=1e-5)
    if options == EVALUATE:
        assert cresset.stats()["graph_breaks"] == 1 and cresset.stats()["eager_calls"] == 0
    for twin in (copy.deepcopy(model[1]), pickle.loads(pickle.dumps(model[1]))):
        assert type(twin).__name__ == "Block" and twin.inner is not model[1].inner
        assert torch.equal(twin(x()), model[1](x()))


def test_disable_method_and_class():
    class Scaler:
        def __init__(self, by):
            self.by = by

        @cresset.disable
        def scale(self, t):
            return t * self.by * float(t.sum())

        def __call__(self, t):
            return t * self.by

    cresset.disable(Scaler)
    scaler = Scaler(3)

    def f(t):
        return scaler(scaler.scale(t + 1) - 1) + 1

    compiled = cresset.compile(f, options=EVALUATE)
    for seed in range(3):
        assert torch.allclose(compiled(x(seed)), f(x(seed)), atol=1e-4)
    assert cresset.stats()["graph_breaks"] == 2


def test_disable_not_recursive():
    def inner(t):
        return (t + 1).relu() * 2

    @cresset.disable(recursive=False)
    def middle(t):
        return inner(t) * float(t.sum())

    def f(t):
        return middle(t + 1) - 1

    compiled = cresset.compile(f, options=EVALUATE)
    for seed in range(4):
        assert torch.allclose(compiled(x(seed)), f(x(seed)), atol=1e-5)
    assert cresset.stats()["graphs"] == 3  # before, inner, after
    graphs = cresset.stats()["graphs"]
    middle(x())  # eager: nothing is compiled
    assert cresset.stats()["graphs"] == graphs


# ------------------------------------------------------------------------------------------------- torch's own


def test_torch_compiler_disable(grad):
    seen = []

    @torch.compiler.disable
    def look(t):
        seen.append(float(t.sum()))
        return t * 2

    def f(t):
        return look(t + 1) - 1

    compiled = cresset.compile(f, options=EVALUATE)
    for seed in range(3):
        assert torch.allclose(compiled(x(seed)), f(x(seed)), atol=1e-5)
    assert seen[0::2] == pytest.approx(seen[1::2], rel=1e-5)
    assert cresset.stats()["graph_breaks"] == 1 and cresset.stats()["eager_calls"] == 0
    assert "kept from being compiled" in cresset.stats()["graph_break_reasons"][0]


def test_torch_graph_break_and_is_compiling():
    def f(t):
        y = t + (1 if torch.compiler.is_compiling() else 2)
        torch._dynamo.graph_break()
        return y * 2

    compiled = cresset.compile(f, options=EVALUATE)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
    assert torch.equal(f(torch.ones(2)), torch.full((2,), 6.0))


# ----------------------------------------------------------------------------------------- graph_break, is_compiling


def test_graph_break(options, grad):
    def f(t):
        y = t * 2
        cresset.graph_break("on purpose")
        return y + 1

    compiled = cresset.compile(f, options=options)
    for seed in range(3):
        assert torch.equal(compiled(x(seed)), f(x(seed)))
    (reason,) = cresset.stats()["graph_break_reasons"]
    assert "cresset.graph_break(): on purpose" in reason
    if options == EVALUATE:
        assert "test_control.py" in reason and "in test_graph_break.<locals>.f" in reason
        assert cresset.stats()["graphs"] == 2 and cresset.stats()["eager_calls"] == 0


def test_graph_break_under_fullgraph(options):
    def f(t):
        cresset.graph_break("on purpose")
        return t + 1

    compiled = cresset.compile(f, fullgraph=True, options=options)
    with pytest.raises(cresset.CaptureError, match="on purpose"):
        compiled(x())


def test_is_compiling(options):
    def f(t):
        return t + 1 if cresset.is_compiling() else t - 1

    compiled = cresset.compile(f, options=options)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert torch.equal(f(torch.ones(2)), torch.zeros(2))


# ------------------------------------------------------------------------------------------------- allow_in_graph

scale = 2


def test_allow_in_graph(grad):
    ran = []

    @cresset.allow_in_graph
    def opaque(t):
        ran.append(1)
        return t * scale

    def f(t):
        return opaque(t + 1) - 1

    compiled = cresset.compile(f, fullgraph=True, options=EVALUATE)
    for seed in range(4):
        assert torch.allclose(compiled(x(seed)), f(x(seed)))
    assert len(ran) == 1 + 4  # once captured; and f itself
    global scale
    scale = 3  # not guarded, as promised
    try:
        assert torch.allclose(compiled(torch.ones(3, 4)), torch.full((3, 4), 3.0))
    finally:
        scale = 2
    assert cresset.stats()["graph_breaks"] == 0


def test_allow_in_graph_arguments():
    assert cresset.allow_in_graph([len, test_is_compiling]) == [len, test_is_compiling]
    with pytest.raises(TypeError, match="expected a function"):
        cresset.allow_in_graph(3)


def test_allow_in_graph_is_not_copied_to_wrappers():
    @cresset.allow_in_graph
    def inner(t):
        return t + 1

    @functools.wraps(inner)
    def outer(t):
        return inner(t) * box.value

    box = types.SimpleNamespace(value=2)
    compiled = cresset.compile(lambda t: outer(t), options=EVALUATE)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
    box.value = 3  # read by evaluated code: guarded
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 6.0))


# ------------------------------------------------------------------------------------------------- comptime


def test_comptime(grad):
    seen = []

    def f(t):
        y = t.relu()

        @cresset.comptime
        def _(ctx):
            variable = ctx.get_local("y")
            seen.append((variable.is_tensor(), variable.size(), ctx.graph(), sorted(ctx.locals())))

        return (lambda: y * 2)()

    compiled = cresset.compile(f, fullgraph=True, options=EVALUATE)
    for rows in (3, 3, 5):
        assert torch.equal(compiled(x(0, rows, 4)), f(x(0, rows, 4)))
    ((is_tensor, size, graph, names),) = seen
    assert is_tensor and len(size) == 2 and all(s.startswith("s") for s in size)
    assert "relu" in graph and names == ["seen", "t", "y"]


def test_comptime_fallback_and_arguments():
    ran = []

    def f(t):
        cresset.comptime(lambda ctx: ran.append("captured"), lambda: ran.append("eager"))
        return t + 1

    f(x())
    assert ran == ["eager"]
    compiled = cresset.compile(f, options=EVALUATE)
    compiled(x())
    compiled(x())
    assert ran == ["eager", "captured"]


def test_comptime_prints_without_a_break(capsys):
    def f(t):
        n = t.shape[0]
        y = t * n
        cresset.comptime.print(y)
        cresset.comptime.print_locals()
        cresset.comptime.print_graph()
        if n > 2:
            y = y + 1
        cresset.comptime.print_guards()
        cresset.comptime.print_bt()
        return y

    compiled = cresset.compile(f, fullgraph=True, options=EVALUATE)
    for rows in (3, 4):
        assert torch.equal(compiled(x(0, rows, 4)), f(x(0, rows, 4)))
    out = capsys.readouterr().out
    assert out.count("Tensor[s") == 3  # y; then t and y among the locals
    assert "aten::mul" in out and "n = s" in out and ">= 3" in out.replace("> 2", ">= 3") and "print_bt()" in out
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == 0


def test_comptime_break():
    def f(t):
        y = t * 2
        cresset.comptime(lambda ctx: ctx.graph_break("here"))
        return y + 1

    compiled = cresset.compile(f, options=EVALUATE)
    for seed in range(3):
        assert torch.equal(compiled(x(seed)), f(x(seed)))
    assert "graph_break(): here" in cresset.stats()["graph_break_reasons"][0]
    assert cresset.stats()["graphs"] == 2 and cresset.stats()["eager_calls"] == 0


def test_comptime_debugger(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("p sorted(locals())\nc\n"))
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)

    def f(t):
        inside = t + 1
        cresset.comptime.breakpoint()
        return inside

    compiled = cresset.compile(f, options=EVALUATE)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    compiled(torch.ones(2))
    assert "'inside', 't'" in out.getvalue()
    assert out.getvalue().count("(Pdb)") == 2


# ------------------------------------------------------------------------------------------------- guard_filter


def test_guard_filter():
    box = types.SimpleNamespace(value=2, other=5)
    given = []

    def choose(entries):
        given.extend(entries)
        return [not (e.kind == "item" and e.key == "value") for e in entries]

    compiled = cresset.compile(lambda t: t * box.value + box.other, options={**EVALUATE, "guard_filter_fn": choose})
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 7.0))
    assert {"cell", "item"} <= {e.kind for e in given}
    box.value = 100  # not checked
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 7.0))
    box.other = 1
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 101.0))


def test_guard_filter_misuse():
    with pytest.raises(TypeError, match="guard_filter_fn"):
        cresset.compile(around, options={"guard_filter_fn": 3})
    compiled = cresset.compile(lambda t: t * scale, options={**EVALUATE, "guard_filter_fn": lambda entries: []})
    with pytest.raises(ValueError, match="0 answers for"):
        compiled(x())


# ---- The table of calls


def test_a_users_function_stands_for_a_c_function():
    import bisect
    import struct

    seen = []

    @cresset.substitute_in_graph(struct.calcsize)
    def calcsize(form, /):
        seen.append(form)
        return sum({"<": 0, "i": 4, "d": 8}[letter] for letter in form)  # for good: other tests ask, too

    f = cresset.compile(lambda x, form: x * struct.calcsize(form))
    for form in ("ii", "dd", "ii"):
        torch.testing.assert_close(f(torch.ones(2), form), torch.ones(2) * struct.calcsize(form))
    assert seen, "evaluated in the place of the C function"
    assert cresset.stats()["graph_break_reasons"] == []
    with pytest.raises(TypeError, match="C function"):
        cresset.substitute_in_graph(calcsize)
    assert dict(cresset.call_table(struct.calcsize, bisect.bisect)) == {
        "_struct.calcsize": "substituted",
        "_bisect.bisect_right": "reads",
    }


def test_the_table_of_calls_says_what_becomes_of_each():
    def user(x):
        return x

    table = dict(cresset.call_table())
    assert len(table) > 500 and set(table.values()) <= set(cresset.call_table.TREATMENTS)
    assert table["print"] == "graph break" and table["torch.add"] == "graph" and table["sorted"] == "polyfill"
    assert table["list.append"] == "writes" and table["dict.get"] == "reads"
    assert "torch.add" in str(cresset.call_table()) and "graph" in str(cresset.call_table())
    (_name, treatment), *_ = cresset.call_table(user)
    assert treatment == "entered"
    assert cresset.call_table(cresset.disable(user))[0][1] == "kept out"
    assert cresset.call_table(cresset.allow_in_graph(user))[0][1] == "allowed"
