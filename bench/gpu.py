"""Models on a GPU: cresset, eager mode and torch.compile in one process, in turns. Times are those of events on the
device, so that work which is still queued counts; "issue" is the time after which a call returns; "errors" are
the greatest differences from the same module in float64, over the greatest value.

    python bench/gpu.py [names...] [--dtypes f32,bf16] [--train | --step] [--turns 9] [--sides ...] [--json file]

--step: whole training steps with AdamW. cresset compiles the step as a function; for torch.compile the module and the
optimizer's step are compiled, its recommended form.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "bench/lib")]

import noise  # noqa: E402
import torch  # noqa: E402
from gpu_timing import difference, seconds_of  # noqa: E402
from harness import models  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402

import cresset  # noqa: E402

# (batch, length) of a measurement: more work than on a CPU.
NAMES = {
    "bert": (8, 512),
    "gpt2": (8, 512),
    "llama": (8, 512),
    "t5": (8, 256),
    "vit": (32, 0),
    "whisper": (1, 32),
    "resnet50": (32, 0),
    "hrnet_w18": (32, 0),
    "convnext_base": (32, 0),
    "mobilenetv3_large_100": (32, 0),
    "mobilevit_s": (32, 0),
    "unet_block": (4, 0),
}
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
SIDES = ("cresset", "graphs", "eager", "compile", "reduce_overhead")  # graphs: cresset with mode="reduce-overhead"
CALLS = 5  # of a turn


def loss_of(results):
    return sum(
        t.float().square().mean() for t in tree_leaves(results) if isinstance(t, torch.Tensor) and t.requires_grad
    )


def side(name, module):
    if name == "eager":
        return module
    if name in ("cresset", "graphs"):
        return cresset.compile(module, mode="reduce-overhead" if name == "graphs" else "default")
    return torch.compile(module, mode="reduce-overhead" if name == "reduce_overhead" else "default")


def inputs_of(spec, module, batch, length):
    inputs = spec.inputs(module, batch, length)
    return tree_map(lambda v: v.cuda() if isinstance(v, torch.Tensor) else v, inputs)


def one_call(function, module, inputs, train):
    if not train:
        with torch.no_grad():
            return function(**inputs)
    results = function(**inputs)
    loss_of(results).backward()
    module.zero_grad(set_to_none=True)
    return results


def training_step(which, name, dtype):
    """Returns a call of a whole step, with a module and an optimizer of its own."""
    spec = models.MODELS[name]
    module = spec.build(models.REAL, DTYPES[dtype]).cuda().train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-5, foreach=True)
    forward, update = module, optimizer.step
    if which == "compile":
        forward, update = torch.compile(module), torch.compile(optimizer.step)

    def step(**inputs):
        results = forward(**inputs)
        loss_of(results).backward()
        update()
        optimizer.zero_grad(set_to_none=True)
        return results

    return side(which, step) if which in ("cresset", "graphs") else step


def peak_of(run):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def in_f64(module, inputs):
    """Returns the results of the module in float64: the reference of the errors of both sides."""

    def doubled(value):
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    with torch.no_grad():
        return copy.deepcopy(module).double()(**tree_map(doubled, inputs))


def measure(name, dtype, options):
    spec = models.MODELS[name]
    module = spec.build(models.REAL, DTYPES[dtype]).cuda()
    batch, length = NAMES[name]
    inputs = inputs_of(spec, module, batch, length)
    row = {
        "name": name,
        "dtype": dtype,
        "train": options.train,
        "step": options.step,
        "batch": batch,
        "length": length,
        "first_s": {},
    }
    runs = {}

    def call(function):
        return function(**inputs) if options.step else one_call(function, module, inputs, options.train)

    for which in options.sides:
        function = training_step(which, name, dtype) if options.step else side(which, module)
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.manual_seed(0)
        results = call(function)
        torch.cuda.synchronize()
        row["first_s"][which] = round(time.perf_counter() - start, 3)
        if which == "eager":
            expected = results
        runs[which] = lambda function=function: call(function)
        for _ in range(8):  # also recordings of graphs
            runs[which]()
        if which == "cresset":
            mine = results
    if "eager" in runs and "cresset" in runs:
        row["difference"] = difference(mine, expected)
    if "difference" in row and not options.step:  # in training mode dropout has no exact result
        exact = in_f64(module, inputs)
        row["errors"] = {"cresset": difference(mine, exact), "eager": difference(expected, exact)}
    row["peak_mb"] = {which: round(peak_of(run) / 1e6, 1) for which, run in runs.items()}
    seconds, issued = ({which: [] for which in runs} for _ in range(2))
    order = list(runs)
    for turn in range(options.turns):
        for which in order if turn % 2 == 0 else reversed(order):
            on_device, until_return = seconds_of(runs[which], CALLS)
            seconds[which].append(on_device)
            issued[which].append(until_return)
    row.update(noise.summary(seconds))
    row["graph_states"] = cresset.stats()["cuda_graphs"]["programs"]
    row["issue_ms"] = {which: round(1e3 * sorted(t)[len(t) // 2], 3) for which, t in issued.items()}
    return row


def counts():
    s = cresset.stats()
    return {
        k: s[k]
        for k in (
            "graphs",
            "graph_breaks",
            "kernels",
            "extern_calls",
            "eager_calls",
            "graph_break_reasons",
            "cuda_graphs",
        )
    }


def measured(names, measure, options):
    """Rows of measure(name, dtype, options), printed and written to options.json as they come."""
    rows = []
    for name in names:
        for dtype in options.dtypes.split(","):
            cresset.reset()
            torch.compiler.reset()
            try:
                row = measure(name, dtype, options)
            except Exception as error:  # one model must not take the others' figures along
                row = {"name": name, "dtype": dtype, "error": f"{type(error).__name__}: {error}"[:500]}
            row["cresset"] = counts()
            rows.append(row)
            print(json.dumps(row), flush=True)
            gc.collect()
            torch.cuda.empty_cache()
            if options.json:
                about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
                Path(options.json).write_text(json.dumps(about, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--step", action="store_true")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--sides", default="cresset,eager,compile")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.sides = [s for s in SIDES if s in options.sides.split(",")]
    warnings.filterwarnings("ignore")
    torch.set_float32_matmul_precision("high")
    measured(options.names or NAMES, measure, options)


if __name__ == "__main__":
    main()
