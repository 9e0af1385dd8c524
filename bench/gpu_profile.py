"""The kernels of a model's call on a GPU, by side: their times and counts, the longest first.

    python bench/gpu_profile.py names... [--dtypes bf16] [--sides cresset,compile] [--train] [--most 24]

Names, sides and sizes are those of bench/gpu.py. Kernels of cresset are named after a hash of their code and the variant
that ran; CRESSET_LOG=kernels prints each kernel.
"""

from __future__ import annotations

import argparse
import collections
import warnings

import gpu
import torch
from harness import models
from torch.profiler import ProfilerActivity, profile

CALLS_BEFORE, CALLS = 8, 3  # recordings of graphs come before


def kernels(run):
    """{kernel: (launches, microseconds)} of a call, and the microseconds from its first kernel to the end of its last."""
    for _ in range(CALLS_BEFORE):
        run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(CALLS):
            run()
        torch.cuda.synchronize()
    found = collections.defaultdict(lambda: [0, 0.0])
    for event in profiled.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            found[event.name][0] += 1
            found[event.name][1] += event.device_time
    ranges = [e.time_range for e in profiled.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    span = (max(r.end for r in ranges) - min(r.start for r in ranges)) / CALLS
    return {name: (count / CALLS, time / CALLS) for name, (count, time) in found.items()}, span


def show(name, dtype, options):
    spec = models.MODELS[name]
    module = spec.build(models.REAL, gpu.DTYPES[dtype]).cuda()
    batch, length = gpu.NAMES[name]
    inputs = gpu.inputs_of(spec, module, batch, length)
    for which in options.sides.split(","):
        function = gpu.side(which, module)
        found, span = kernels(lambda function=function: gpu.one_call(function, module, inputs, options.train))
        count, time = (sum(v[i] for v in found.values()) for i in (0, 1))
        print(f"{name} {dtype} {which}: {time:.0f} us in {count:.0f} kernels, {span:.0f} us with gaps")
        for kernel, (launches, us) in sorted(found.items(), key=lambda item: -item[1][1])[: options.most]:
            print(f"{us:9.1f} us {launches:5.1f} x {kernel[:110]}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+")
    parser.add_argument("--dtypes", default="bf16")
    parser.add_argument("--sides", default="cresset,compile")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--most", type=int, default=24)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_float32_matmul_precision("high")
    for name in options.names:
        for dtype in options.dtypes.split(","):
            show(name, dtype, options)


if __name__ == "__main__":
    main()
