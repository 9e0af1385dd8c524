"""Untuned kernels beside eager mode: pointwise, layouts, reductions, indices, windows, at three sizes.

    python bench/kernels.py [words in names...] [--sizes 64 100000 5000000] [--seconds 0.2] [--torch] [--json file]

A single symbolic compilation, made at the middle size, serves all sizes; `static` is compiled with dynamic=False for
each size. A ratio is eager mode's time divided by cresset's time; below 1 cresset is slower. Values, dtype and strides
of the results are compared with eager mode.
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

import torch

import cresset

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / f) for f in ("tests/python/harness", "bench/lib", "bench/workloads")]
warnings.simplefilter("ignore")

from compare import tensors  # noqa: E402
from kernel_rows import ROWS, Row  # noqa: E402

TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 3e-3}


def strides(t: torch.Tensor) -> list[int]:
    """Returns the strides of the dimensions with more than one element."""
    return [stride for extent, stride in zip(t.shape, t.stride()) if extent > 1 and t.numel() > 0]


def difference(got, expected) -> str | None:
    """Describes the difference of a result from eager mode's result; None if they agree."""
    for (_, a), (_, b) in zip(tensors(got), tensors(expected), strict=True):
        if a.dtype != b.dtype or a.shape != b.shape or strides(a) != strides(b):
            return f"{a.dtype} {tuple(a.shape)} {a.stride()} instead of {b.dtype} {tuple(b.shape)} {b.stride()}"
        bound = TOLERANCE.get(b.dtype, 1e-4)
        if not torch.allclose(a.double(), b.double(), rtol=bound, atol=bound, equal_nan=True):
            return f"values differ by {(a.double() - b.double()).abs().max().item():.3g}"
    return None


def timed(call, inputs, repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        call(*inputs)
    return (time.perf_counter() - begin) / repeats


def quartiles(calls: dict, inputs, seconds: float) -> dict[str, float]:
    """Returns the lower quartile of microseconds per call of each side, measured in turns. The lower quartile is used
    because other load on the machine only adds time."""
    repeats = max(1, int(2e-4 / max(timed(next(iter(calls.values())), inputs, 1), 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, call in calls.items():
            times[name].append(timed(call, inputs, repeats))
    return {name: 1e6 * sorted(t)[len(t) // 4] for name, t in times.items()}


def measure(row: Row, options) -> list[dict]:
    middle = sorted(options.sizes)[len(options.sizes) // 2]
    symbolic = cresset.compile(row.function)
    symbolic(*row.inputs(middle))
    out = []
    for size in options.sizes:
        inputs = row.inputs(size)
        calls = {"eager": row.function, "symbolic": symbolic}
        if not options.no_static:
            calls["static"] = cresset.compile(row.function, dynamic=False)
        if options.torch:
            torch._dynamo.reset()
            calls["torch"] = torch.compile(row.function)
        expected = row.function(*inputs)
        wrong = {name: difference(call(*inputs), expected) for name, call in calls.items()}
        del expected
        for _ in range(8):  # autotuning settles in the first calls
            for call in calls.values():
                call(*inputs)
        us = quartiles(calls, inputs, options.seconds)
        out.append({"name": row.name, "size": size, "us": us, "wrong": {k: v for k, v in wrong.items() if v}})
    return out


def ratios(result: dict) -> dict[str, float]:
    us = result["us"]
    return {name: us["eager"] / us[name] for name in us if name != "eager"}


def line(result: dict) -> str:
    cells = "".join(f"{value:>10.2f}" for value in ratios(result).values())
    wrong = "".join(f"  {name}: {what}" for name, what in result["wrong"].items())
    return f"{result['name']:<26}{result['size']:>9}{result['us']['eager']:>11.1f}{cells}{wrong}"


def summary(results: list[dict]) -> None:
    print(f"\n{'geometric means':<26}")
    for size in sorted({r["size"] for r in results}):
        found = [ratios(r) for r in results if r["size"] == size]
        means = {k: math.exp(statistics.fmean(math.log(f[k]) for f in found)) for k in found[0]}
        slower = {k: sum(f[k] < 0.95 for f in found) for k in found[0]}
        cells = "  ".join(f"{k} {means[k]:.2f} ({slower[k]} of {len(found)} below 0.95)" for k in means)
        print(f"{size:>9} elements: {cells}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="rows whose name has one of these")
    parser.add_argument("--sizes", nargs="+", type=int, default=[64, 100_000, 5_000_000])
    parser.add_argument("--seconds", type=float, default=0.2, help="for each figure")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch", action="store_true", help="torch.compile, too")
    parser.add_argument("--no-static", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rows = [r for r in ROWS if not options.words or any(word in r.name for word in options.words)]
    columns = ["symbolic"] + ["static"] * (not options.no_static) + ["torch"] * options.torch
    print(f"{'kernel':<26}{'elements':>9}{'eager us':>11}" + "".join(f"{c:>10}" for c in columns))
    results = []
    with torch.no_grad():
        for row in rows:
            for result in measure(row, options):
                print(line(result), flush=True)
                results.append(result)
    summary(results)
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "kernels": results}, indent=1) + "\n")
    return 1 if any(result["wrong"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
