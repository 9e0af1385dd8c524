"""CUDA graphs: a chain of small kernels, many sizes in random order, and results that are kept. cresset and torch.compile,
each with and without graphs, in one process and in turns.

    python bench/gpu_graphs.py [--turns 9] [--steps 500] [--json file]
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench/lib")]

import noise  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import cresset  # noqa: E402

SIZES = list(range(16, 496, 16))  # 30 of them


def chain(steps):
    def program(x, w):
        for _ in range(steps):
            x = torch.tanh(x @ w)
        return x

    return program


class Layers(nn.Module):
    """A small model whose calls are bound by launches."""

    def __init__(self, layers=8, width=256):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
            for _ in range(layers)
        )

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


def functions(make, sides):
    modes = {
        "eager": lambda: make(),
        "cresset": lambda: cresset.compile(make(), options={"cuda_graphs": "never"}),
        "cresset_auto": lambda: cresset.compile(make()),
        "cresset_graphs": lambda: cresset.compile(make(), mode="reduce-overhead"),
        "compile": lambda: torch.compile(make()),
        "compile_graphs": lambda: torch.compile(make(), mode="reduce-overhead"),
    }
    return {name: modes[name]() for name in sides}


def seconds_of(run, calls):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def least(run):
    return min(seconds_of(run, 5) for _ in range(3))


def in_turns(runs, turns, calls):
    seconds = {name: [] for name in runs}
    for turn in range(turns):
        for name in list(runs) if turn % 2 == 0 else reversed(runs):
            seconds[name].append(seconds_of(runs[name], calls))
    return noise.summary(seconds)


def measure_chain(options):
    x, w = torch.randn(32, 32, device="cuda"), torch.randn(32, 32, device="cuda") / 6
    found = functions(lambda: chain(options.steps), options.sides)
    first = {}
    for name, function in found.items():
        start = time.perf_counter()
        function(x, w)
        torch.cuda.synchronize()
        first[name] = round(time.perf_counter() - start, 2)
        for _ in range(6):
            function(x, w)
    runs = {name: lambda f=f: f(x, w) for name, f in found.items()}
    return {"name": "chain", "kernels": 2 * options.steps, "first_s": first, **in_turns(runs, options.turns, 3)}


def measure_sizes(options):
    torch.manual_seed(0)
    model = Layers().cuda().eval()
    inputs = {n: torch.randn(8, n, 256, device="cuda") for n in SIZES}
    order = [n for _ in range(8) for n in random.Random(0).sample(SIZES, len(SIZES))]
    row = {"name": "sizes", "sizes": len(SIZES), "memory_mb": {}}
    found, runs = functions(lambda: model, options.sides), {}
    for name, function in found.items():
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()
        for n in order:
            function(inputs[n])
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        row["memory_mb"][name] = round((torch.cuda.memory_reserved() - before) / 1e6, 1)
        for n in SIZES:
            torch.testing.assert_close(function(inputs[n]), model(inputs[n]), rtol=2e-2, atol=2e-2)
        runs[name] = lambda function=function: [function(inputs[n]) for n in SIZES]
    row.update(in_turns(runs, options.turns, 2))
    row["by_size_ms"] = {
        name: {n: round(1e3 * least(functools.partial(f, inputs[n])), 4) for n in SIZES[::7]}
        for name, f in found.items()
    }
    return row


def measure_kept(options):
    """Results of earlier calls that are kept: they must not change."""
    model = Layers().cuda().eval()
    compiled = cresset.compile(model, mode="reduce-overhead")
    inputs = [torch.randn(8, 32, 256, device="cuda") for _ in range(20)]
    kept = [compiled(x) for x in inputs]
    differences = [(y - model(x)).abs().max().item() for x, y in zip(inputs, kept, strict=True)]
    return {"name": "kept", "difference": max(differences), "replays": cresset.stats()["cuda_graphs"]["replays"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--sides", default="eager,cresset,cresset_auto,cresset_graphs,compile,compile_graphs")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.sides = options.sides.split(",")
    warnings.filterwarnings("ignore")
    rows = []
    for what in (measure_kept, measure_chain, measure_sizes):
        cresset.reset()
        torch.compiler.reset()
        try:
            with torch.no_grad():
                row = what(options)
        except Exception as error:  # one measurement must not take the others along
            row = {"name": what.__name__, "error": f"{type(error).__name__}: {error}"[:500]}
        row["cuda_graphs"] = cresset.stats()["cuda_graphs"]
        rows.append(row)
        print(json.dumps(row), flush=True)
    if options.json:
        about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
        Path(options.json).write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
