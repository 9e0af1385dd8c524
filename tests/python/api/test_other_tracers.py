"""Compiled callables under tracers and modes of other tools: these see exactly the operators of eager mode.

Every tracer runs with each kind of compiled callable, before and after the callable's compilation. The comparison with
the plain callable covers the tracer's record, results, exceptions.
"""

from __future__ import annotations

import io
import sys
import warnings

import pytest
import torch
import torch.nn as nn
from conftest import FULL
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import cresset


def plain(x):
    y = (x * 2).relu() + x.shape[0]
    return y.view(-1, 1).sum(1) @ torch.ones(y.numel()), y.t()


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("scale", torch.full((3,), 2.0))

    def forward(self, x):
        y = self.linear(x) * self.scale
        return torch.nn.functional.layer_norm(y, (3,)).sin(), y.t()

    def other(self, x):
        return self.linear(x).exp() + x.shape[0], x.sum(0)


class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x + 1)[0] * 2


def made(kind, compile):
    """A callable of the given kind, with `compile` applied."""
    torch.manual_seed(0)
    if kind == "function":
        return compile(plain)
    if kind == "called by a function":
        inner = compile(plain)
        return lambda x: (inner(x.cos())[0] + 1, x * 2)
    if kind == "method":
        bound = compile(Plain().other)
        return lambda x: bound(x)
    if kind == "module":
        return compile(Plain())
    if kind == "compiled in place" and compile is not identity:
        return cresset.compile_in_place(Plain())
    if kind == "inside another module":
        return Around(compile(Plain()))
    if kind == "around another" and compile is not identity:
        return compile(Around(compile(Plain())))
    return Around(Plain()) if kind == "around another" else Plain()


KINDS = (
    "function",
    "called by a function",
    "method",
    "module",
    "compiled in place",
    "inside another module",
    "around another",
)


def identity(f):
    return f


def as_module(g):
    """A module for tracers of modules alone."""

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            if isinstance(g, nn.Module):
                self.held = g

        def forward(self, x):
            return g(x)

    return Holder()


def listed(graph):
    return [(n.op, str(n.target), len(n.args)) for n in graph.nodes]


def shapes(value):
    if isinstance(value, torch.Tensor):
        return type(value).__name__, tuple(value.shape), value.dtype, value.stride(), value.device
    return [shapes(v) for v in value]


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Double(TorchDispatchMode):
    """A mode that changes results of operators."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is torch.ops.aten.add.Tensor else out


class Names(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def arg():
    return torch.arange(9.0).reshape(3, 3) / 4 - 1


def under(mode, g, seen=lambda mode: None):
    with mode as entered:
        out = g(arg())
    return out, seen(entered)


def fake_mode(g):
    with FakeTensorMode(allow_non_fake_inputs=True):
        return shapes(g(arg()))


def fake_arguments(g):
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    return shapes(g(mode.from_tensor(arg())))


def fake_mode_and_real_arguments(g):
    x = arg()
    with FakeTensorMode(allow_non_fake_inputs=True):
        return shapes(g(x))


def fx_of_real(g):
    graph = make_fx(g)(arg())
    return listed(graph.graph), graph(arg() + 1)


def fx_of_fake(g):
    return listed(make_fx(g, tracing_mode="fake", _allow_non_fake_inputs=True)(arg()).graph)


def fx_symbolic(g):
    graph = make_fx(g, tracing_mode="symbolic", _allow_non_fake_inputs=True)(arg())
    return listed(graph.graph)


def fx_before_dispatch(g):
    return listed(make_fx(g, pre_dispatch=True)(arg()).graph)


def fx_of_a_gradient(g):
    return listed(make_fx(torch.func.grad(lambda x: g(x)[0].sum()))(arg()).graph)


def fx_of_functional(g):
    return listed(make_fx(torch.func.functionalize(g))(arg()).graph)


def exported(g):
    program = torch.export.export(as_module(g), (arg(),), strict=False)
    return listed(program.graph), program.module()(arg() + 1)


def exported_for_training(g):
    return listed(torch.export.export(as_module(g), (arg(),), strict=False).run_decompositions({}).graph)


def exported_with_sizes(g):
    shapes = {"x": {0: torch.export.Dim.AUTO}}
    program = torch.export.export(as_module(g), (arg(),), strict=False, dynamic_shapes=shapes)
    return listed(program.graph), program.module()(arg() + 1)


def operators_of(graph):
    return [n.kind() for n in graph.nodes() if n.kind().startswith("aten::")]


def scripted_trace(g):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(g, (arg(),), check_trace=False)
    return operators_of(traced.inlined_graph), traced(arg() + 1)


def scripted_trace_that_is_checked(g):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(as_module(g), (arg(),))
    out = io.BytesIO()
    torch.jit.save(traced, out)
    return traced(arg() + 1)


def trace_graph(g):
    graph, out = torch.jit._get_trace_graph(g, (arg(),))
    return operators_of(graph), out


def dispatch_mode(g):
    return under(Count(), g, lambda m: m.seen)


def dispatch_mode_that_changes_results(g):
    return under(Double(), g)


def dispatch_modes(g):
    with Count() as outer:
        return under(Count(), g, lambda m: m.seen), outer.seen


def dispatch_mode_without_gradients(g):
    with torch.no_grad():
        return under(Count(), g, lambda m: m.seen)


def dispatch_mode_with_gradients(g):
    x = arg().requires_grad_()
    with Count() as mode:
        g(x)[0].sum().backward()
    return mode.seen, x.grad


def dispatch_mode_over_the_backward_pass(g):
    x = arg().requires_grad_()
    with Count() as before:
        y = g(x)[0].sum()
    with Count() as mode:
        y.backward()
    return before.seen, mode.seen, x.grad


def flops(g):
    return under(FlopCounterMode(display=False), g, lambda m: m.get_total_flops())


def function_mode(g):
    return under(Names(), g, lambda m: m.seen)


def device_as_a_mode(g):
    return under(torch.device("cpu"), g)


def functional_mode(g):
    return dispatch_functionalize(g)(arg())


def functional_arguments(g):
    x = torch._to_functional_tensor(arg())
    torch._enable_functionalization(reapply_views=True)
    try:
        out = g(x)
    finally:
        torch._disable_functionalization()
    return [torch._from_functional_tensor(t) for t in out]


def first(g):
    def f(x):
        out = g(x)
        return out[0] if isinstance(out, tuple) else out

    return f


def batched(g):
    return torch.vmap(g)(torch.stack([arg(), arg() + 1]))


def batched_twice(g):
    return torch.vmap(torch.vmap(g))(torch.stack([arg(), arg() + 1])[None])


def gradient(g):
    return torch.func.grad(lambda x: first(g)(x).sum())(arg())


def gradient_of_a_gradient(g):
    def inner(x):
        return torch.func.grad(lambda y: first(g)(y).sum())(x).sum()

    return torch.func.grad(inner)(arg())


def gradient_of_each(g):
    return torch.vmap(torch.func.grad(lambda x: first(g)(x).sum()))(torch.stack([arg(), arg() + 1]))


def pushed_forward(g):
    return torch.func.jvp(first(g), (arg(),), (torch.ones(3, 3),))


def pulled_back(g):
    out, back = torch.func.vjp(first(g), arg())
    return out, back(torch.ones_like(out))


def linear(g):
    out, push = torch.func.linearize(first(g), arg())
    return out, push(torch.ones(3, 3))


def jacobian(g):
    return torch.func.jacrev(first(g))(arg()), torch.func.jacfwd(first(g))(arg())


def hessian(g):
    return torch.func.hessian(lambda x: first(g)(x).sum())(arg())


def functional(g):
    return torch.func.functionalize(g)(arg())


def called_functionally(g):
    module = as_module(g)
    state = {k: v * 2 for k, v in module.named_parameters()}
    return torch.func.functional_call(module, state, (arg(),))


def on_no_device(g):
    if isinstance(g, nn.Module):
        g = g.to("meta")
    x = torch.empty(3, 3, device="meta")
    return shapes(g(x))


def profiled(g):
    with torch.autograd.profiler.record_function("g"):
        return g(arg())


def traced_inside(g):
    """The tracer works between two compiling calls."""
    before = g(arg())
    nodes = len(make_fx(g)(arg()).graph.nodes)
    return before, nodes, g(arg() + 1)


def symbolically_traced(g):
    module = torch.fx.symbolic_trace(g if isinstance(g, nn.Module) else lambda x: g(x))
    return listed(module.graph), module(arg())


TRACERS = [
    f
    for f in list(globals().values())
    if getattr(f, "__module__", None) == __name__
    and getattr(f, "__code__", None)
    and f.__code__.co_varnames[:1] == ("g",)
    if f not in (as_module, first) and f.__code__.co_argcount == 1
]


def outcome(tracer, kind, compile, warm):
    torch.manual_seed(0)
    g = made(kind, compile)
    if warm:
        g(arg()), g(torch.cat([arg(), arg()]))
        if tracer in (gradient, pulled_back, dispatch_mode_with_gradients):
            g(arg().requires_grad_())
    try:
        return tracer(g)
    except Exception as error:
        return type(error), str(error).splitlines()[:1]


def same(got, expected, path="out"):
    assert type(got) is type(expected), f"{path}: {got!r} instead of {expected!r}"
    if isinstance(expected, torch.Tensor):
        assert got.shape == expected.shape and got.dtype == expected.dtype and got.stride() == expected.stride(), path
        assert got.requires_grad == expected.requires_grad, path
        if expected.device.type != "meta":
            torch.testing.assert_close(got, expected)
    elif isinstance(expected, (tuple, list)):
        assert len(got) == len(expected), f"{path}: {got!r} instead of {expected!r}"
        for i, (a, b) in enumerate(zip(got, expected)):
            same(a, b, f"{path}[{i}]")
    else:
        assert got == expected, f"{path}: {got!r} instead of {expected!r}"


@pytest.mark.parametrize("warm", (False, True), ids=("cold", "warm"))
@pytest.mark.parametrize("kind", KINDS if FULL else ("function", "inside another module"))
@pytest.mark.parametrize("tracer", TRACERS, ids=lambda f: f.__name__)
def test_is_as_in_eager_mode(tracer, kind, warm):
    got = outcome(tracer, kind, cresset.compile, warm)
    same(got, outcome(tracer, kind, identity, warm))


# torch names these by the function's own code, which it cannot see during evaluation.
NAMED_OTHERWISE = (fx_of_a_gradient,)


@pytest.mark.parametrize("kind", ("function", "module") if FULL else ("module",))
@pytest.mark.parametrize("tracer", [t for t in TRACERS if t not in NAMED_OTHERWISE], ids=lambda f: f.__name__)
def test_tracers_inside_a_compiled_function(tracer, kind):
    seen = []
    for compile in (identity, cresset.compile):
        g = made(kind, identity)
        f = compile(lambda x, g=g: (tracer(g), x + 1))
        for _ in range(2):
            try:
                seen.append(f(arg()))
            except Exception as error:
                seen.append((type(error), str(error).splitlines()[:1]))
    same(seen[2], seen[0])
    same(seen[3], seen[1])


def main(words):
    warnings.simplefilter("ignore")
    for tracer in TRACERS:
        for kind in KINDS:
            for warm in (False, True):
                name = f"{tracer.__name__}, {kind}, {'warm' if warm else 'cold'}"
                if words and not all(w in name for w in words):
                    continue
                expected = outcome(tracer, kind, identity, warm)
                cresset.reset()
                got = outcome(tracer, kind, cresset.compile, warm)
                try:
                    same(got, expected)
                    print("ok    ", name, flush=True)
                except AssertionError as error:
                    print("DIFFERS", name, str(error)[:200].replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
