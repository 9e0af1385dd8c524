"""A backend which is a function: it is given the captured graphs as graph modules, and its code runs in their place."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import tempfile

import pytest
import torch

import cresset


class Backend:
    """Keeps what it is given, and runs the graph module itself."""

    def __init__(self, run=None):
        self.graphs, self.inputs, self.more, self.runs = [], [], [], 0
        self._run = run

    def __call__(self, graph_module, example_inputs, **more):
        self.graphs.append(graph_module)
        self.inputs.append(example_inputs)
        self.more.append(more)

        def run(*args):
            self.runs += 1
            return (self._run or graph_module)(*args)

        return run


def same(function, *args, backend=None, graphs=None, **settings):
    """Runs the function compiled and eagerly, with equal arguments; returns the backend."""
    backend = backend or Backend()
    mine, its = copy.deepcopy(args), copy.deepcopy(args)
    torch.manual_seed(0)
    got = cresset.compile(function, backend=backend, **settings)(*mine)
    torch.manual_seed(0)
    expected = function(*its)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    torch.testing.assert_close(mine, its, rtol=0, atol=0)
    for a, b in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(expected), strict=True):
        assert not isinstance(a, torch.Tensor) or a.stride() == b.stride()
    assert graphs is None or len(backend.graphs) == graphs
    assert cresset.stats()["kernels"] == 0 and cresset.stats()["eager_calls"] == 0
    return backend


X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


def test_a_graph_module_and_example_inputs():
    backend = same(lambda x, w: torch.relu(x @ w) * x.shape[0], X, torch.randn(4, 4), graphs=1)
    (graph,), (inputs,) = backend.graphs, backend.inputs
    assert isinstance(graph, torch.fx.GraphModule)
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert targets == [torch.ops.aten.mm.default, torch.ops.aten.relu.default, torch.ops.aten.mul.Tensor]
    assert inputs[0] == 5 and inputs[1].shape == (5, 4) and inputs[2].shape == (4, 4)
    places = [node for node in graph.graph.nodes if node.op == "placeholder"]
    assert len(places) == 3 and places[1].meta["val"].shape == (5, 4)
    assert all(
        "test_callable_backend.py" in n.meta["stack_trace"] for n in graph.graph.nodes if n.op == "call_function"
    )


def test_one_graph_serves_all_sizes():
    backend = Backend()
    compiled = cresset.compile(lambda x: x.view(-1) * x.shape[0] + x.shape[1] // 2, backend=backend)
    for sizes in ((3, 4), (5, 6), (7, 2)):
        x = torch.randn(sizes)
        assert torch.equal(compiled(x), x.view(-1) * x.shape[0] + x.shape[1] // 2)
    assert len(backend.graphs) == 1 and backend.runs == 3 and cresset.stats()["graphs"] == 1


def writes(x):
    x = x.clone()
    x[1:3] += 1
    x.t().mul_(2)
    x.diagonal().zero_()
    return x, x.as_strided((2, 2), (1, 2), 3)


def writes_to_its_argument(x):
    x.add_(1)
    return x.view(-1), x


def several(x):
    return {"parts": x.split(2), "values": x.max(1), "same": x, "view": x[1:]}


def chooses(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@pytest.mark.parametrize(
    ("function", "graphs"),
    [
        (writes, 1),
        (writes_to_its_argument, 1),
        (several, 1),
        (lambda x: torch.rand_like(x) + torch.nn.functional.dropout(x, 0.5), 1),
        (lambda x: x[x > 0] * 2, None),
        (lambda x: torch.nonzero(x).sum(), None),
        (lambda x: torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,)), None),
        (lambda x: torch.fft.fft(x), 1),
        (lambda x: x, 0),
        (chooses, 2),
    ],
)
def test_programs(function, graphs):
    same(function, X, graphs=graphs)


def test_strides_and_offsets_of_arguments():
    whole = torch.randn(6, 8)
    for x in (whole.t(), whole[1:, 2:], whole[::2], whole[:, 1].expand(3, 6)):
        same(lambda x: (x + 1, x.as_strided((2,), (2,), x.storage_offset() + 1)), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.complex64, torch.int32])
def test_dtypes(dtype):
    same(lambda x: (x * 2 + 1, x.to(torch.float32).real), torch.ones(3, dtype=dtype))


def test_numbers():
    same(lambda x, by, plus: x * by + plus, X, 2.5, 3)
    same(lambda x, n: x.unsqueeze(0).repeat(n, 1, 1), X, 3)


def test_gradients():
    """The backward pass is a graph of its own."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    its, backend = copy.deepcopy(model), Backend()
    compiled = cresset.compile(model, backend=backend)
    for rows in (6, 7):
        x = torch.randn(rows, 4)
        compiled(x).square().sum().backward()
        its(x).square().sum().backward()
        torch.testing.assert_close([p.grad for p in model.parameters()], [p.grad for p in its.parameters()])
        torch.testing.assert_close(dict(model.named_buffers()), dict(its.named_buffers()))
    assert len(backend.graphs) == 2 and backend.runs == 4


def test_its_code_runs():
    compiled = cresset.compile(lambda x: x + 1, backend=Backend(run=lambda x: (x + 100,)))
    for _ in range(2):
        assert torch.equal(compiled(X), X + 100)


def test_a_transformed_graph():
    def backend(graph_module, example_inputs):
        for node in graph_module.graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default
        graph_module.recompile()
        return graph_module.forward

    assert torch.equal(cresset.compile(lambda x: x.sin() * 2, backend=backend)(X), X.cos() * 2)


def test_results_that_share_memory_with_arguments():
    """A program's results have memory of their own, whatever the backend's code returns."""
    compiled = cresset.compile(lambda x: (x * 1, x * 1 + 0), backend=Backend(run=lambda x: [x, x]))
    x = X.clone()
    first, second = compiled(x)
    first.zero_()
    assert torch.equal(x, X) and torch.equal(second, X)


def test_mode_and_options_are_the_backends():
    backend = Backend()
    cresset.compile(lambda x: x + 1, backend=backend, mode="fast")(X)
    cresset.compile(lambda x: x + 1, backend=backend, options={"level": 3, "cache_entry_limit": 4})(X)
    assert backend.more == [{"mode": "fast"}, {"options": {"level": 3}}]
    with pytest.raises(ValueError, match="either mode or options"):
        cresset.compile(lambda x: x + 1, backend=backend, mode="fast", options={"level": 3})


def test_errors():
    def fails(graph_module, example_inputs):
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        cresset.compile(lambda x: x + 1, backend=fails)(X)
    with pytest.raises(TypeError, match="the backend must return a callable, got int"):
        cresset.compile(lambda x: x + 1, backend=lambda graph, inputs: 3)(X)
    with pytest.raises(RuntimeError, match="returned 2 tensors for a graph of 1"):
        cresset.compile(lambda x: x + 1, backend=Backend(run=lambda x: (x, x)))(X)
    with pytest.raises(ValueError, match="or a function of a graph module and its example inputs"):
        cresset.compile(lambda x: x + 1, backend="nonsense")


def test_fullgraph_and_explain():
    with pytest.raises(cresset.CaptureError):
        cresset.compile(chooses, backend=Backend(), fullgraph=True)(X)
    backend = Backend()
    assert "graphs: 2" in str(cresset.explain(cresset.compile(chooses, backend=backend))(X))
    assert len(backend.graphs) == 2


def pickled(graph_module, example_inputs):
    return graph_module


def test_copies_and_pickles():
    model = cresset.compile(torch.nn.Linear(4, 4), backend=pickled)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(other(X), model(X))
    assert cresset.stats()["kernels"] == 0


def test_the_code_goes_with_the_function():
    from cresset._api import graph_modules

    before = len(graph_modules._codes)
    compiled = cresset.compile(lambda x: x + 1, backend=Backend())
    compiled(X)
    assert len(graph_modules._codes) == before + 1
    del compiled
    gc.collect()
    assert len(graph_modules._codes) == before


def test_a_backward_pass_after_the_function_is_gone():
    x = X.clone().requires_grad_()
    out = cresset.compile(lambda x: (x.sin() * x).sum(), backend=Backend())(x)
    gc.collect()
    out.backward()
    torch.testing.assert_close(x.grad, X.cos() * X + X.sin())


def test_no_file_and_no_part_of_torchs_compiler():
    program = """
import os, sys, torch, cresset
f = cresset.compile(lambda x: x.sin() + 1, backend=lambda graph, inputs: graph)
f(torch.ones(3))
names = ("torch._dynamo", "torch._inductor", "torch._functorch.aot_autograd", "torch.fx.experimental.symbolic_shapes")
print(cresset.stats()["graphs"], os.path.exists(os.environ["CRESSET_CACHE_DIR"] + "/programs"), *[n for n in names if n in sys.modules])
"""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CRESSET_CACHE_DIR": folder}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["1", "False"], done.stdout + done.stderr[-2000:]
