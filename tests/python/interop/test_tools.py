"""Compiled modules beside other tools: export, saving, loaders, adapters, quantization, transforms, IPython."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, jacrev, vmap

import cresset


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).eval()


X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


# ---- Export


class Outer(torch.nn.Module):
    """A model that holds a compiled part."""

    def __init__(self, part):
        super().__init__()
        self.part, self.scale = part, torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.part(x) * self.scale


def test_a_model_with_compiled_parts_is_exported():
    compiled = Outer(cresset.compile(model()))
    with torch.no_grad():
        expected = compiled(X)
    exported = torch.export.export(compiled, (X,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    plain = torch.export.export(Outer(model()), (X,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    assert [n.target for n in exported.graph.nodes] == [n.target for n in plain.graph.nodes]
    assert set(exported.state_dict) == set(plain.state_dict)
    torch.testing.assert_close(exported.module()(X[:3]), expected[:3])
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), expected)


def test_an_exported_program_is_compiled(tmp_path):
    exported = torch.export.export(model(), (X,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    torch.export.save(exported, tmp_path / "model.pt2")
    for program in (exported, torch.export.load(tmp_path / "model.pt2")):
        cresset.reset()
        compiled = cresset.compile(program.module())
        with torch.no_grad():
            for rows in (5, 3, 7):
                x = torch.randn(rows, 4)
                torch.testing.assert_close(compiled(x), model()(x))
        assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == 0


def test_onnx_export():
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    program = torch.onnx.export(Outer(cresset.compile(model())), (X,), dynamo=True)
    assert len(program.model.graph) > 2


# ---- Saving


def test_checkpoints(tmp_path):
    compiled = cresset.compile(model())
    expected = compiled(X)
    whole = io.BytesIO()
    torch.save(compiled, whole)
    whole.seek(0)
    for other in (torch.load(whole, weights_only=False), pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        assert hasattr(other, "_orig_mod")
        torch.testing.assert_close(other(X), expected)
    state = io.BytesIO()
    torch.save(compiled.state_dict(), state)
    state.seek(0)
    loaded = torch.load(state)  # weights alone
    assert list(loaded) == list(model().state_dict())


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    compiled, other = cresset.compile(model()), cresset.compile(model())
    expected = compiled(X)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert not other(X).any()
    safetensors.save_model(compiled, tmp_path / "model.safetensors")
    safetensors.load_model(other, tmp_path / "model.safetensors")
    torch.testing.assert_close(other(X), expected)
    assert cresset.stats()["eager_calls"] == 0


# ---- Data


transform = cresset.compile(lambda x: x.sin() * 2)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return transform(torch.full((3,), float(i)))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loader_workers(workers, method):
    if workers == 0 and method == "spawn":
        pytest.skip("no workers to start")
    transform(torch.ones(3))  # what the parent has compiled serves forked workers
    loader = torch.utils.data.DataLoader(
        Rows(), batch_size=4, num_workers=workers, multiprocessing_context=method if workers else None
    )
    expected = torch.arange(16.0).sin()[:, None].expand(16, 3) * 2
    torch.testing.assert_close(torch.cat(list(loader)), expected)


def through_dlpack(x):
    y = torch.from_dlpack(x + 1)
    y.mul_(2)
    return y


def through_numpy(x):
    array = (x + 1).detach().numpy()
    return torch.from_numpy(np.sin(array)) * 2


@pytest.mark.parametrize("function", [through_dlpack, through_numpy])
def test_interchange_inside(function):
    compiled = cresset.compile(function)
    for _ in range(3):
        torch.testing.assert_close(compiled(X), function(X))


def test_interchange_with_results():
    """Results are memory like any other: NumPy, DLPack and the buffer protocol see it."""
    y = cresset.compile(lambda x: x * 2)(X)
    assert np.array_equal(y.numpy(), (X * 2).numpy()) and np.shares_memory(np.from_dlpack(y), y.numpy())


# ---- torch.func from outside


def test_transforms_from_outside():
    function = cresset.compile(lambda x: (x.sin() ** 2).sum())
    plain = function.__wrapped__
    torch.testing.assert_close(grad(function)(X), grad(plain)(X))
    torch.testing.assert_close(vmap(function)(X), vmap(plain)(X))
    torch.testing.assert_close(jacrev(function)(X), jacrev(plain)(X))
    torch.testing.assert_close(vmap(grad(function))(X), vmap(grad(plain))(X))
    torch.testing.assert_close(function(X), plain(X))


def test_functional_call():
    compiled = cresset.compile(model())
    weights = {name: p * 2 for name, p in compiled.named_parameters()}
    torch.testing.assert_close(functional_call(compiled, weights, (X,)), functional_call(model(), weights, (X,)))
    torch.testing.assert_close(compiled(X), model()(X))


# ---- Adapters and quantization


def test_adapters_are_switched_and_merged():
    peft = pytest.importorskip("peft")

    def adapted():
        torch.manual_seed(1)
        config = peft.LoraConfig(r=2, target_modules=["0", "2"], init_lora_weights=False)
        out = peft.get_peft_model(model(), config, adapter_name="one")
        out.add_adapter("two", config)
        return out.eval()

    mine, its = adapted(), adapted()
    compiled = cresset.compile(mine)
    for change in (
        lambda m: m.set_adapter("one"),
        lambda m: m.set_adapter("two"),
        lambda m: m.set_adapter("one"),
        lambda m: m.base_model.disable_adapter_layers(),
        lambda m: m.base_model.enable_adapter_layers(),
        lambda m: m.merge_adapter(),
        lambda m: m.unmerge_adapter(),
        lambda m: [p.data.mul_(1.5) for n, p in m.named_parameters() if "lora_A.one" in n],
    ):
        change(mine)
        change(its)
        with torch.no_grad():
            for _ in range(2):
                torch.testing.assert_close(compiled(X), its(X))
    with torch.no_grad():
        merged = cresset.compile(mine.merge_and_unload())
        torch.testing.assert_close(merged(X), its(X))


def test_an_adapter_is_replaced_in_place(tmp_path):
    peft = pytest.importorskip("peft")
    from peft.utils.hotswap import hotswap_adapter

    torch.manual_seed(1)
    config = peft.LoraConfig(r=2, target_modules=["0"], init_lora_weights=False)
    mine = peft.get_peft_model(model(), config).eval()
    torch.manual_seed(2)
    other = peft.get_peft_model(model(), config).eval()
    compiled = cresset.compile(mine)
    with torch.no_grad():
        compiled(X)
        graphs = cresset.stats()["graphs"]
        other.save_pretrained(tmp_path)
        hotswap_adapter(mine, str(tmp_path), adapter_name="default", torch_device="cpu")
        torch.testing.assert_close(compiled(X), other(X))
    assert cresset.stats()["graphs"] == graphs, "new contents need no new code"


def test_quantized_weights():
    torchao = pytest.importorskip("torchao.quantization")
    torch.manual_seed(0)
    mine = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)).eval()
    torchao.quantize_(mine, torchao.Int8WeightOnlyConfig())
    x = torch.randn(3, 64)
    with torch.no_grad():
        expected = mine(x)
        compiled = cresset.compile(mine)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)


# ---- Programs that watch


def test_coverage_of_a_compiled_program(tmp_path):
    pytest.importorskip("coverage")
    file = tmp_path / "program.py"
    file.write_text(
        "import torch, cresset\ndef f(x):\n    y = x + 1\n    return y * 2\n"
        "assert torch.equal(cresset.compile(f)(torch.ones(2)), torch.full((2,), 4.0))\n"
    )
    command = [sys.executable, "-m", "coverage", "run", f"--data-file={tmp_path}/data", str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    report = [sys.executable, "-m", "coverage", "report", f"--data-file={tmp_path}/data", f"--include={file}"]
    assert "100%" in subprocess.run(report, capture_output=True, text=True, timeout=300).stdout


def test_functions_of_ipython():
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    cell = "import torch, cresset\n@cresset.compile\ndef f(x):\n    return x.sin() + {}\ny = f(torch.zeros(3))"
    for plus in (1, 2):  # the cell is run again, with other text
        shell.run_cell(cell.format(plus)).raise_error()
        assert torch.equal(shell.user_ns["y"], torch.full((3,), float(plus)))
    assert cresset.stats()["eager_calls"] == 0
