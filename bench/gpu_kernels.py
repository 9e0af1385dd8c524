"""Single kernels on a GPU at three sizes: cresset, eager mode and torch.compile in one process, in turns.

    python bench/gpu_kernels.py [words in names...] [--dtypes f32,f16,bf16] [--sizes small,middle,large] [--turns 9]
        [--sides cresset,eager,compile] [--json file]

Times are those of events on the device around calls that follow each other, so a call that is bound by its host side
counts with that time. "bound" is the share of the copy bandwidth, measured in the same run, that the bytes which a
program must read and write reach. torch.compile compiles each size for itself.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / f) for f in ("bench/lib", "bench/workloads")]

import noise  # noqa: E402
import torch  # noqa: E402
from gpu_rows import ROWS  # noqa: E402
from gpu_timing import copy_bandwidth, difference, seconds_of  # noqa: E402

import cresset  # noqa: E402

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
SIDES = ("cresset", "eager", "compile")


def compiled(side, function):
    return {"cresset": cresset.compile, "eager": lambda f: f, "compile": torch.compile}[side](function)


def caller(function, inputs, backward):
    """Returns a call of the program: forward, or forward and backward with a gradient of the results' shape."""
    if not backward:

        def forward():
            with torch.no_grad():
                return function(*inputs)

        return forward
    wanted = [t for t in inputs if t.requires_grad]
    gradient = []

    def both():
        result = function(*inputs)
        if not gradient:
            gradient.append(torch.randn_like(result))
        return torch.autograd.grad(result, wanted, gradient[0])

    return both


def measure(kernel, size, dtype, options):
    function, inputs, moved = kernel.make(*kernel.sizes[size], DTYPES[dtype])
    runs, results, first = {}, {}, {}
    for side in options.sides:
        runs[side] = caller(compiled(side, function), inputs, kernel.backward)
        start = time.perf_counter()
        torch.manual_seed(0)
        results[side] = runs[side]()
        torch.cuda.synchronize()
        first[side] = round(time.perf_counter() - start, 3)
        for _ in range(6):
            runs[side]()
    once = max(seconds_of(run, 3)[0] for run in runs.values())
    calls = max(5, min(100, int(4e-3 / once)))
    seconds, issued = ({side: [] for side in runs} for _ in range(2))
    for turn in range(options.turns):
        for side in list(runs) if turn % 2 == 0 else reversed(runs):
            on_device, until_return = seconds_of(runs[side], calls)
            seconds[side].append(on_device)
            issued[side].append(until_return)
    row = {"name": kernel.name, "size": size, "shape": kernel.sizes[size], "dtype": dtype, "first_s": first}
    row.update(noise.summary(seconds))
    row["issue_ms"] = {side: 1e3 * sorted(t)[len(t) // 2] for side, t in issued.items()}
    if "dropout" not in kernel.name:  # the order of random numbers within a mask is not part of the comparison
        row["difference"] = {s: difference(r, results["eager"]) for s, r in results.items() if s != "eager"}
    row["bytes"] = moved
    row["bound"] = {side: moved / (1e-3 * ms) / options.bandwidth for side, ms in row["ms"].items()}
    row["over_better"] = min(ms for side, ms in row["ms"].items() if side != "cresset") / row["ms"]["cresset"]
    return row


def brief(row):
    if "error" in row:
        return f"{row['name']:28} {row['dtype']:5} {row['size']:7} {row['error']}"
    us = "  ".join(f"{side} {1e3 * ms:8.1f}" for side, ms in row["ms"].items())
    share = f"{row['over_better']:.2f} of the better, bound {row['bound']['cresset']:.2f}"
    again = f", {row['stats']['graphs']} compilations" if row["stats"]["graphs"] > 1 else ""
    return f"{row['name']:28} {row['dtype']:5} {row['size']:7} us: {us}  {share}, {row.get('difference')}{again}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--dtypes", default="f32,f16,bf16")
    parser.add_argument("--sizes", default="small,middle,large")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--sides", default="cresset,eager,compile")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.sides = [s for s in SIDES if s in options.sides.split(",")]
    warnings.filterwarnings("ignore")
    options.bandwidth = copy_bandwidth()
    print(f"copy bandwidth {options.bandwidth / 1e9:.0f} GB/s", flush=True)
    rows = []
    for kernel in ROWS:
        if options.words and not any(word in kernel.name for word in options.words):
            continue
        for dtype in options.dtypes.split(","):
            for size in options.sizes.split(","):
                cresset.reset()
                torch.compiler.reset()
                try:
                    row = measure(kernel, size, dtype, options)
                except Exception as error:  # a kernel must not take the figures of the rest along
                    text = f"{type(error).__name__}: {error}"[:500]
                    row = {"name": kernel.name, "size": size, "dtype": dtype, "error": text}
                stats = cresset.stats()
                row["stats"] = {k: stats[k] for k in ("graphs", "graph_breaks", "kernels", "extern_calls")}
                rows.append(row)
                print(brief(row), flush=True)
    ratios = [row["over_better"] for row in rows if "error" not in row]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    print(f"geometric mean over the better of the rest: {mean}")
    if options.json:
        about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "mean": mean}
        about["copy_gb_per_s"] = options.bandwidth / 1e9
        Path(options.json).write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
