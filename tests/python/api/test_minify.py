"""cresset.minify: a failing or differing compiled call becomes a small program of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import cresset


def wrong_sine(graph_module, example_inputs):
    """A compiler with a fault."""
    for node in graph_module.graph.nodes:
        if node.target is torch.ops.aten.sin.default:
            node.target = torch.ops.aten.cos.default
    graph_module.recompile()
    return graph_module


def operators(program):
    body = program[program.index("def function") : program.index("args = [")]
    return [word.partition("(")[0] for word in body.split("torch.ops.aten.")[1:]]


def model(x, w):
    y = torch.relu(x @ w).softmax(-1)
    y = y + x.sum() * x.shape[0]
    z = torch.sin(y) * 2
    return torch.layer_norm(z.cumsum(0), (z.shape[1],)), y.exp()


X, W = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)), torch.linspace(-1, 1, 16).view(4, 4)


def test_a_difference_becomes_one_operator():
    program = cresset.minify(model, X, W, settings={"backend": wrong_sine})
    assert operators(program) == ["sin.default"]
    assert program.startswith("# Compiled, this has: other values.\n")


def test_an_exception():
    def fails(graph_module, example_inputs):
        if any(node.target is torch.ops.aten.cumsum.default for node in graph_module.graph.nodes):
            raise KeyError("cumsum")
        return graph_module

    program = cresset.minify(model, X, W, settings={"backend": fails})
    assert operators(program) == ["cumsum.default"] and "this has: KeyError" in program


def test_the_program_stands_alone(tmp_path):
    program = cresset.minify(model, X, W, settings={"backend": wrong_sine})
    good = program.replace(", backend=wrong_sine", "")
    bad = program.replace(
        "args = [", "def wrong_sine(module, inputs):\n    return lambda *a: [t.cos() for t in a]\n\nargs = ["
    )
    for text, raised in ((good, False), (bad, True)):
        file = tmp_path / "program.py"
        file.write_text(text)
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
        assert (done.returncode != 0) == raised, done.stderr[-2000:]
        assert not raised or "AssertionError" in done.stderr


def test_a_check_of_ones_own():
    """Two operators that must come together."""

    def check(function, args):
        made = []
        cresset.compile(function, backend=lambda graph, inputs: made.append(graph) or graph)(*args)
        text = made[0].code if made else ""
        return "both" if "relu" in text and "_softmax" in text else None

    assert operators(cresset.minify(model, X, W, check=check)) == ["relu.default", "_softmax.default"]


def test_nothing_fails():
    assert cresset.minify(model, X, W) is None


def test_backward_passes():
    def step(x, w):
        loss = (x @ w).sin().sum()
        loss.backward()
        return loss

    def check(function, args):
        made = []
        cresset.compile(function, backend=lambda graph, inputs: made.append(graph) or graph)(*args)
        return "cos" if made and "aten.cos" in made[0].code else None

    assert operators(cresset.minify(step, X, W.clone().requires_grad_(), check=check)) == ["cos.default"]


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(12.0).view(3, 4).t(),
        torch.randn(100),
        torch.randn(20, 10).t(),
        torch.tensor([float("nan"), float("inf")]),
        torch.ones(3, dtype=torch.bfloat16),
        torch.zeros(0, 3),
        torch.tensor([1 + 2j]),
        torch.arange(200),
    ],
    ids=lambda x: f"{x.dtype}-{tuple(x.shape)}-{x.stride()}",
)
def test_arguments_are_kept_exactly(x):
    from cresset._api.minify import _tensor_text

    space = {}
    exec(f"import torch, base64, zlib\nmade = {_tensor_text(x)}", space)
    torch.testing.assert_close(space["made"], x, rtol=0, atol=0, equal_nan=True)
    assert space["made"].stride() == x.stride() or x.numel() == 0
