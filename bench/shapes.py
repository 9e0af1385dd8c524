"""Figures on symbolic shapes, beside torch.compile: the cost of a symbolic operation, first calls with symbolic and
with fixed sizes, guards, and compilations over a sweep of random sizes.

    python bench/shapes.py [models...] [--draws 200] [--torch models...] [--json file]

Every first call is measured in a separate process with an empty cache folder. `build/release/bench/sym_bench` (ninja -C
build/release sym_bench) measures cresset's own operations. `bench/model_sweep.py` sweeps over many more models.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / f) for f in ("tests/python/harness", "bench/lib", "bench/workloads")]
DEFAULT = ["bert", "gpt2", "t5", "swin", "resnet50"]


# ------------------------------------------------------------------------------------------ in a process of its own


def sweep_inputs(model, module, draws):
    """Yields the first sizes of the model, then random sizes."""
    rng = random.Random(model.name)
    lengths = [n for _, n in model.sweep()]
    batch, length = model.sweep()[0]
    yield model.inputs(module, batch, length)
    for i in range(draws):
        n = rng.randint(min(lengths), max(lengths)) if model.is_text else 0
        yield model.inputs(module, rng.randint(2, 7), n, seed=i)


def set_up(name, draws):
    """Returns the module, the inputs after the first, and a function which times the first call of a compiled
    module."""
    import torch
    from models import MODELS

    model = MODELS[name]
    module = model.build()
    inputs = sweep_inputs(model, module, draws)
    first = next(inputs)

    def first_call(compiled):
        with torch.no_grad():
            module(**first)
            begin, cpu = time.perf_counter(), time.process_time()
            compiled(**first)
        return {"first_call_s": time.perf_counter() - begin, "first_call_cpu_s": time.process_time() - cpu}

    def sweep(compiled):
        with torch.no_grad():
            for given in inputs:
                compiled(**given)

    return module, first_call, sweep


def measure_cresset(name, dynamic, draws):
    module, first_call, sweep = set_up(name, draws)
    import cresset

    compiled = cresset.compile(module, dynamic=dynamic)
    out = first_call(compiled)
    stats = cresset.stats()
    sweep(compiled)
    return {
        **out,
        "capture_s": stats["ms_capture"] / 1e3,
        "guards_asked": stats["guards_asked"],
        "guards_checked": stats["guards_checked"],
        "compilations": cresset.stats()["graphs"],
        "eager_calls": cresset.stats()["eager_calls"],
    }


def measure_torch(name, dynamic, draws):
    module, first_call, sweep = set_up(name, draws)
    import torch
    from torch._dynamo.utils import counters

    compiled = torch.compile(module, dynamic=dynamic)
    out = first_call(compiled)
    sweep(compiled)
    return {**out, "compilations": counters["stats"]["unique_graphs"]}


def measure_torch_operations(*_):
    """Returns nanoseconds of torch's symbolic integers for the operations in sym_bench."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, statically_known_true

    env = ShapeEnv()

    def size(name, hint):
        source = ConstantSource(name)
        symbol = env.create_symbol(hint, source=source, dynamic_dim=DimDynamic.DYNAMIC)
        return env.create_symintnode(symbol, hint=hint, source=source)

    a, b = size("a", 8), size("b", 9)

    def nanoseconds(operation, count=300):
        operation(2)
        begin = time.perf_counter()
        for n in range(3, 3 + count):
            operation(n)
        return (time.perf_counter() - begin) / count * 1e9

    return {
        "build_product": nanoseconds(lambda n: a * 768),
        "build_new_nodes": nanoseconds(lambda n: a * n + b),
        "decide_new": nanoseconds(lambda n: statically_known_true(a * n == b), 60),
    }


MEASURES = {"cresset": measure_cresset, "torch": measure_torch, "torch operations": measure_torch_operations}


def apart(what, *arguments, timeout=900):
    """Runs a measurement in a fresh process; returns {"failed": reason} when it fails."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "CRESSET_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
        command = [sys.executable, __file__, "--apart", json.dumps([what, *arguments])]
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"failed": f"more than {timeout} s"}
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 and lines else {"failed": done.stderr[-300:]}


def best(times, *arguments):
    """Returns the run with the fastest first call, since other load on the machine only slows it down."""
    rows = [apart(*arguments[:-1], arguments[-1] if i == 0 else 0) for i in range(times)]
    fastest = min(rows, key=lambda row: row.get("first_call_cpu_s", float("inf")))
    return {**rows[0], **{k: v for k, v in fastest.items() if k.startswith(("first_call", "capture"))}}


# -------------------------------------------------------------------------------------------------------- the report


def operation_costs():
    """Returns CPU nanoseconds of cresset's operations; empty when sym_bench was not built."""
    binary = ROOT / "build" / "release" / "bench" / "sym_bench"
    if not binary.exists():
        return {}
    done = subprocess.run([binary, "--benchmark_format=json"], capture_output=True, text=True, check=True)
    return {row["name"].split("/")[0]: row["cpu_time"] for row in json.loads(done.stdout)["benchmarks"]}


def seconds(row):
    return f"{row['first_call_s']:.2f}" if "first_call_s" in row else "-"


def ratio(row):
    """Returns a ratio of CPU times where they are known, since other processes do not influence them."""
    key = "first_call_cpu_s" if "first_call_cpu_s" in row["dynamic"] else "first_call_s"
    both = key in row["dynamic"] and key in row["static"]
    return f"{row['dynamic'][key] / row['static'][key]:.2f}" if both else "-"


def table(result):
    """Returns two tables in Markdown."""
    lines = ["| operation | cresset, ns | torch, ns |", "| --- | ---: | ---: |"]
    for name, ns in result["operations_ns"].items():
        theirs = result["torch_operations_ns"].get(name)
        lines.append(f"| {name} | {ns:.0f} | {'' if theirs is None else f'{theirs:.0f}'} |")
    lines += ["", f"| model | guards asked | checked | first call, static s | symbolic s | ratio | compilations, {result['draws']} sizes "
              "| torch: static s | symbolic s | ratio | compilations |", "| --- |" + " ---: |" * 10]  # fmt: skip
    for name, row in result["models"].items():
        ours, theirs = row["cresset"], row.get("torch")
        cells = [name, ours["dynamic"].get("guards_asked", "-"), ours["dynamic"].get("guards_checked", "-"),
                 seconds(ours["static"]), seconds(ours["dynamic"]), ratio(ours),
                 ours["dynamic"].get("compilations", "failed")]  # fmt: skip
        cells += [seconds(theirs["static"]), seconds(theirs["dynamic"]), ratio(theirs),
                  theirs["default"].get("compilations", "failed")] if theirs else [""] * 4  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=DEFAULT)
    parser.add_argument(
        "--torch", nargs="*", default=None, help="models that torch.compile is measured on; default: all"
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3, help="of our first calls; the fastest counts")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--apart", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.apart:
        what, *arguments = options.apart
        print(json.dumps(MEASURES[what](*arguments)))
        return
    result = {"draws": options.draws, "operations_ns": operation_costs(),
              "torch_operations_ns": apart("torch operations"), "models": {}}  # fmt: skip
    for name in options.models:
        row = result["models"][name] = {
            "cresset": {
                "static": best(options.repeat, "cresset", name, False, 0),
                "dynamic": best(options.repeat, "cresset", name, True, options.draws),
            }
        }
        if options.torch is None or name in options.torch:
            row["torch"] = {
                "static": apart("torch", name, False, 0),
                "dynamic": apart("torch", name, True, 0),
                "default": apart("torch", name, None, options.draws),
            }
        print(name, json.dumps(row), file=sys.stderr, flush=True)
    print(table(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
