"""``python -m cresset.demo``: BERT base, GPT-2 and ResNet-50 beside eager mode, and then beside torch.compile.

The models are those of transformers, timm and torchvision, where these are installed, else models of the same kind
written here. Weights are random; no network is used. A row is printed as soon as it is measured: seconds of the first
call, milliseconds of later calls, a sweep over a dozen shapes with its number of compilations, and the greatest
difference from eager mode. torch.compile comes last, because it takes most of the time. Each side has a process of its
own with empty caches, so that the first call is a first call.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import cresset

Shape = tuple[int, int]  # batch; length (0: images)
WARM_UP = 4  # library choices settle in the first calls


@dataclass(frozen=True)
class Program:
    title: str
    build: Callable[[], nn.Module]
    inputs: Callable[[int, int], dict[str, Any]]
    shape: Shape
    sweep: list[Shape]


# ---- Models written here, for environments without the libraries


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int, causal: bool):
        super().__init__()
        self.heads, self.causal = max(1, width // 64), causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        split = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int, causal: bool):
        super().__init__()
        self.tokens, self.places = nn.Embedding(1000, width), nn.Embedding(1024, width)
        self.layers = nn.ModuleList(Block(width, causal) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.tokens(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Residual(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.norm2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class ConvNet(nn.Module):
    def __init__(self, channels: int, layers: int):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 7, stride=4)
        self.layers = nn.Sequential(*(Residual(channels) for _ in range(layers)))
        self.head = nn.Linear(channels, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.stem(x)).mean((2, 3)))


# ---- Programs


def _token_ids(batch: int, length: int) -> dict[str, Any]:
    return {"input_ids": torch.randint(1000, (batch, length), generator=torch.Generator().manual_seed(length))}


def _without_cache(batch: int, length: int) -> dict[str, Any]:
    return {**_token_ids(batch, length), "use_cache": False}


def _images(batch: int, _: int) -> dict[str, Any]:
    return {"x": torch.randn(batch, 3, 224, 224, generator=torch.Generator().manual_seed(batch))}


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig())


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config())


def _resnet50() -> nn.Module:
    if _installed("timm"):
        import timm

        return timm.create_model("resnet50")
    import torchvision

    return torchvision.models.resnet50()


def _texts(*lengths: int) -> list[Shape]:
    return [(batch, length) for length in lengths for batch in (2, 1, 3)]


def programs(small: bool) -> Iterator[Program]:
    images = [(batch, 0) for batch in (1, 2, 3, 4, 5, 6, 4, 3, 2, 1, 7, 8)]
    if small:
        yield Program("encoder", lambda: Transformer(64, 2, False), _token_ids, (1, 32), _texts(32, 17))
        yield Program("conv net", lambda: ConvNet(8, 2), _images, (2, 0), images[:4])
        return
    texts, longer = _texts(64, 75, 16, 48), _texts(128, 51, 33, 64)
    if _installed("transformers"):
        yield Program("BERT base", _bert, _token_ids, (1, 128), longer)
        yield Program("GPT-2", _gpt2, _without_cache, (1, 64), texts)
    else:
        yield Program("encoder, 12 layers", lambda: Transformer(768, 12, False), _token_ids, (1, 128), longer)
        yield Program("decoder, 12 layers", lambda: Transformer(768, 12, True), _token_ids, (1, 64), texts)
    if _installed("timm") or _installed("torchvision"):
        yield Program("ResNet-50", _resnet50, _images, (2, 0), images)
    else:
        yield Program("conv net, 16 layers", lambda: ConvNet(64, 8), _images, (2, 0), images)


# ---- Measuring


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _difference(got: Any, expected: Any) -> float:
    """The greatest difference, relative to the greatest value."""
    pairs = zip(_tensors(got), _tensors(expected), strict=True)
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)


def _seconds(run: Callable[..., Any], inputs: dict[str, Any]) -> float:
    begin = time.perf_counter()
    run(**inputs)
    return time.perf_counter() - begin


def _medians(runs: list[Callable[..., Any]], inputs: dict[str, Any], seconds: float) -> list[float]:
    """Milliseconds of a call of each, in turns."""
    for _ in range(WARM_UP):
        for run in runs:
            run(**inputs)
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for run, taken in zip(runs, times):
            taken.append(1e3 * _seconds(run, inputs))
    return [statistics.median(taken) for taken in times]


def _model(program: Program) -> nn.Module:
    torch.manual_seed(0)
    return program.build().eval()


def _row(program: Program, cells: list[str]) -> None:
    batch, length = program.shape
    print(f"{program.title:20}{f'{batch} x {length}' if length else f'{batch} x 3 x 224 x 224':18}", end="")
    print("".join(f"{cell:>14}" for cell in cells), flush=True)


def _heading(first: str, second: str, columns: list[tuple[str, str]]) -> None:
    print(f"{first:38}" + "".join(f"{above:>14}" for above, _ in columns))
    print(f"{second:38}" + "".join(f"{below:>14}" for _, below in columns), flush=True)


def measure_cresset(small: bool, seconds: float) -> dict[str, Any]:
    columns = [("operators", ""), ("first call", "cresset"), ("ms a call", "eager"), ("ms a call", "cresset"),
               ("times", "faster"), ("shapes", ""), ("compilations", ""), ("difference", "from eager")]  # fmt: skip
    _heading(f"cresset, torch {torch.__version__}", f"fp32, {torch.get_num_threads()} threads", columns)
    measured = {}
    for program in programs(small):
        cresset.reset()
        module, inputs = _model(program), program.inputs(*program.shape)
        module(**inputs)
        compiled = cresset.compile(module)
        first = _seconds(compiled, inputs)
        eager, steady = _medians([module, compiled], inputs, seconds)
        shapes = [program.inputs(*shape) for shape in program.sweep]
        difference = max(_difference(compiled(**each), module(**each)) for each in shapes)
        stats = cresset.stats()
        _row(program, [str(stats["operators_captured"]), f"{first:.2f} s", f"{eager:.1f}", f"{steady:.1f}",
                       f"{eager / steady:.2f}", str(len(shapes)), str(stats["graphs"]), f"{difference:.1e}"])  # fmt: skip
        measured[program.title] = {"first": first, "steady": steady}
    return measured


def measure_torch_compile(small: bool, seconds: float, cresset_side: dict[str, Any]) -> dict[str, Any]:
    columns = [("first call", "torch.compile"), ("that is", "times cresset"), ("ms a call", "torch.compile"),
               ("that is", "times cresset")]  # fmt: skip
    _heading("\ntorch.compile, for comparison", "(a minute or more a model)", columns)
    measured = {}
    for program in programs(small):
        module, inputs = _model(program), program.inputs(*program.shape)
        module(**inputs)
        try:
            compiled = torch.compile(module)
            first = _seconds(compiled, inputs)
            [steady] = _medians([compiled], inputs, seconds)
        except Exception as error:  # no C++ compiler, for example
            _row(program, [f"failed: {str(error).strip().splitlines()[0][:60]}"])
            continue
        ours = cresset_side[program.title]
        _row(
            program,
            [f"{first:.1f} s", f"{first / ours['first']:.0f}", f"{steady:.1f}", f"{steady / ours['steady']:.2f}"],
        )
        measured[program.title] = {"first": first, "steady": steady}
    return measured


# ---- Processes


def _run_side(side: str, small: bool, seconds: float, results: Path) -> None:
    warnings.simplefilter("ignore")
    known = json.loads(results.read_text()) if results.exists() else {}
    with torch.no_grad():
        if side == "cresset":
            measured = measure_cresset(small, seconds)
        else:
            measured = measure_torch_compile(small, seconds, known)
    results.write_text(json.dumps(measured))
    sys.stdout.flush()
    os._exit(0)  # torch.compile's worker processes take seconds to end


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cresset.demo", description="cresset beside eager mode and torch.compile"
    )
    parser.add_argument("--small", action="store_true", help="two small models, in seconds")
    parser.add_argument("--seconds", type=float, default=3, help="time of the steady state of each model")
    parser.add_argument("--no-torch-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--side", choices=["cresset", "torch.compile"], help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.side:
        _run_side(chosen.side, chosen.small, chosen.seconds, chosen.results)
    with tempfile.TemporaryDirectory(prefix="cresset-demo-") as folder:
        caches = {"CRESSET_CACHE_DIR": f"{folder}/cresset", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        command = [sys.executable, "-m", "cresset.demo", "--seconds", str(chosen.seconds)]
        command += ["--small"] if chosen.small else []
        for side in ["cresset"] if chosen.no_torch_compile else ["cresset", "torch.compile"]:
            side_command = [*command, "--side", side, "--results", f"{folder}/results.json"]
            if code := subprocess.run(side_command, env={**os.environ, **caches}).returncode:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
