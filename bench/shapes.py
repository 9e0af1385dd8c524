"""Symbolic shapes in figures: guards a model asked for and checks, compilations of a random sweep, cost of a first call
with symbolic and with fixed sizes, and, with CRESSET_VALIDATE=1, what was proved and what that cost.

    python bench/shapes.py [models...] [--draws 20] [--json file]

Microseconds a symbolic operation and nanoseconds a check come from `build/release/bench/sym_bench`, which is run when it
has been built (ninja -C build/release sym_bench).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

import torch  # noqa: E402
from models import MODELS  # noqa: E402

import cresset  # noqa: E402


def first_call_seconds(module, inputs, dynamic):
    cresset.reset()
    compiled = cresset.compile(module, dynamic=dynamic)
    begin = time.perf_counter()
    compiled(**inputs)
    return time.perf_counter() - begin


@torch.no_grad()
def measure(name, draws):
    model = MODELS[name]
    module = model.build()
    rng = random.Random(name)
    batch, length = model.sweep()[0]
    inputs = model.inputs(module, batch, length)
    first_call_seconds(module, inputs, False)  # kernels and libraries are warm for both
    seconds_static = first_call_seconds(module, inputs, False)
    seconds_dynamic = first_call_seconds(module, inputs, True)
    cresset.reset()
    compiled = cresset.compile(module)
    lengths = [n for _, n in model.sweep()]
    for i in range(draws):
        n = rng.randint(min(lengths), max(lengths)) if model.is_text else 0
        compiled(**model.inputs(module, rng.randint(1, 7), n, seed=i))
    stats = cresset.stats()
    return {
        "compilations": stats["graphs"],
        "guards_asked": stats["guards_asked"],
        "guards_checked": stats["guards_checked"],
        "first_call_dynamic_s": seconds_dynamic,
        "first_call_static_s": seconds_static,
        "steps_proved": stats["steps_proved"],
        "steps_not_proved": stats["steps_not_proved"],
        "ms_validation": stats["ms_validation"],
        "reasons": list(stats["recompiles"]) + list(stats["graph_break_reasons"]),
    }


def operation_costs():
    binary = ROOT / "build" / "release" / "bench" / "sym_bench"
    if not binary.exists():
        return {}
    done = subprocess.run([binary, "--benchmark_format=json"], capture_output=True, text=True, check=True)
    return {row["name"].split("/")[0]: row["real_time"] for row in json.loads(done.stdout)["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    costs = operation_costs()
    for name, ns in costs.items():
        print(f"{name:<24} {ns:10.0f} ns")
    rows = {}
    print(
        f"{'model':<20} {'compiles':>8} {'asked':>6} {'checked':>8} {'dynamic s':>10} {'static s':>9} {'proved':>7} {'open':>5} {'proof ms':>9}"
    )
    for name in options.models or MODELS:
        r = rows[name] = measure(name, options.draws)
        print(
            f"{name:<20} {r['compilations']:>8} {r['guards_asked']:>6} {r['guards_checked']:>8} "
            f"{r['first_call_dynamic_s']:>10.2f} {r['first_call_static_s']:>9.2f} {r['steps_proved']:>7} "
            f"{r['steps_not_proved']:>5} {r['ms_validation']:>9.0f}",
            flush=True,
        )
        for reason in r["reasons"][:3]:
            print(f"    {reason}")
    if options.json:
        options.json.write_text(json.dumps({"operations_ns": costs, "models": rows}, indent=1))


if __name__ == "__main__":
    main()
