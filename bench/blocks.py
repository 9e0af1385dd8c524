"""Forward and backward passes of single blocks beside eager mode, and beside torch.compile.

    python bench/blocks.py [words in names...] [--seconds 0.3] [--threads 1] [--torch] [--forward] [--json file]

Figures are processor time: the lower quartile of calls, with all sides measured in turns. A ratio is the other side's
time divided by cresset's time; below 1 cresset is slower. Gradients are first compared with eager mode's gradients.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "workloads"))

import block_rows_fused  # noqa: F401  (adds its rows)
import torch
from block_rows import BLOCKS, Block

import cresset

warnings.simplefilter("ignore")


def step(function, inputs, tangent):
    """Returns the result and the gradients of a pass; `tangent` None: the forward pass alone."""
    out = function(*inputs)
    if tangent is None:
        return [out] if isinstance(out, torch.Tensor) else list(out)
    gradients = torch.autograd.grad(out, [x for x in inputs if x.requires_grad], tangent, allow_unused=True)
    return [out, *(g for g in gradients if g is not None)]


def prepared(block: Block) -> tuple:
    torch.manual_seed(0)
    return tuple(x.requires_grad_() if block.trained and x.is_floating_point() else x for x in block.inputs())


def quartiles(calls: dict, seconds: float) -> dict[str, float]:
    """Returns the processor time of a call of each side, in microseconds (lower quartile)."""

    def timed(call, repeats: int) -> float:
        begin = time.process_time()
        for _ in range(repeats):
            call()
        return (time.process_time() - begin) / repeats

    repeats = max(1, int(1e-3 / max(timed(next(iter(calls.values())), 2), 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.process_time() + seconds * len(calls)
    while time.process_time() < end or len(next(iter(times.values()))) < 5:
        for name, call in calls.items():
            times[name].append(timed(call, repeats))
    return {name: 1e6 * sorted(t)[len(t) // 4] for name, t in times.items()}


def difference(got: list, expected: list) -> float:
    worst = 0.0
    for a, b in zip(got, expected, strict=True):
        scale = b.detach().abs().max().item() if b.numel() else 0.0
        worst = max(worst, (a.detach() - b.detach()).abs().max().item() / max(scale, 1e-6))
    return worst


def measure(block: Block, options) -> dict:
    inputs = prepared(block)
    tangent = None if options.forward or not block.trained else torch.randn_like(block.function(*inputs))
    functions = {"eager": block.function, "cresset": cresset.compile(block.function)}
    if options.torch:
        torch._dynamo.reset()
        functions["torch"] = torch.compile(block.function)
    expected = step(block.function, inputs, tangent)
    off = {name: difference(step(f, inputs, tangent), expected) for name, f in functions.items()}
    calls = {name: lambda f=f: step(f, inputs, tangent) for name, f in functions.items()}
    for _ in range(8):  # autotuning settles in the first calls
        for call in calls.values():
            call()
    return {"name": block.name, "us": quartiles(calls, options.seconds), "off": off}


def ratios(result: dict) -> dict[str, float]:
    us = result["us"]
    return {name: us[name] / us["cresset"] for name in us if name != "cresset"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="blocks whose name has one of these")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each figure")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--torch", action="store_true", help="torch.compile, too")
    parser.add_argument("--forward", action="store_true", help="without the backward pass")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    others = ["eager"] + ["torch"] * options.torch
    print(f"{'block':<26}{'cresset us':>12}" + "".join(f"{name + ' by it':>14}" for name in others))
    results, wrong = [], False
    for block in BLOCKS:
        if options.words and not any(word in block.name for word in options.words):
            continue
        result = measure(block, options)
        results.append(result)
        off = result["off"]["cresset"]
        wrong |= off > 1e-3
        cells = "".join(f"{ratios(result)[name]:>14.2f}" for name in others)
        print(
            f"{block.name:<26}{result['us']['cresset']:>12.1f}{cells}{f'  off by {off:.2g}' * (off > 1e-4)}", flush=True
        )
    for name in others:
        found = [ratios(r)[name] for r in results]
        mean = math.exp(statistics.fmean(math.log(f) for f in found))
        print(f"{name}: geometric mean {mean:.2f}, {sum(f < 0.95 for f in found)} of {len(found)} below 0.95")
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "blocks": results}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
