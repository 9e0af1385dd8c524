"""Many shapes on a GPU: one compilation for twelve of them, beside a compilation for each shape.

    python bench/gpu_shapes.py [names...] [--dtypes bf16] [--turns 7] [--json file]

"over_static" is the time of the function that serves all shapes over that of a function compiled for the shape alone
(dynamic=False), both in turns: the cost of symbolic sizes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / f) for f in ("tests/python", "bench/lib", "bench")]

import torch  # noqa: E402
from gpu import DTYPES, inputs_of, measured, one_call  # noqa: E402
from gpu_timing import seconds_of  # noqa: E402
from harness import models  # noqa: E402

import cresset  # noqa: E402

# (batch, length) of twelve calls; the first ones are compared with static compilations.
TEXT = [
    (8, 512),
    (3, 77),
    (16, 128),
    (1, 300),
    (5, 509),
    (2, 64),
    (7, 400),
    (12, 33),
    (4, 256),
    (9, 190),
    (6, 96),
    (1, 17),
]
IMAGES = [(32, 0), (3, 0), (16, 0), (1, 0), (5, 0), (2, 0), (7, 0), (12, 0), (4, 0), (9, 0), (6, 0), (24, 0)]
COMPARED, CALLS = 3, 5


def measure(name, dtype, options):
    spec = models.MODELS[name]
    module = spec.build(models.REAL, DTYPES[dtype]).cuda()
    shapes = TEXT if spec.is_text else IMAGES
    calls = []
    for batch, length in shapes:
        calls.append(inputs_of(spec, module, batch, length))
    served = cresset.compile(module)
    seconds = []
    for inputs in calls:
        torch.cuda.synchronize()
        start = time.perf_counter()
        one_call(served, module, inputs, train=False)
        torch.cuda.synchronize()
        seconds.append(round(time.perf_counter() - start, 3))
    row = {"name": name, "dtype": dtype, "shapes": shapes, "first_calls_s": seconds}
    row["graphs"] = cresset.stats()["graphs"]
    row["over_static"] = {}
    for shape, inputs in list(zip(shapes, calls, strict=True))[:COMPARED]:
        static = cresset.compile(module, dynamic=False)
        runs = [lambda f=f, inputs=inputs: one_call(f, module, inputs, train=False) for f in (served, static)]
        for run in runs:
            for _ in range(8):
                run()
        ratios = []
        for turn in range(options.turns):
            times = {}
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                times[which] = seconds_of(runs[which], CALLS)[0]
            ratios.append(times[0] / times[1])
        row["over_static"][str(shape)] = round(statistics.median(ratios), 3)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtypes", default="bf16")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    measured(options.names or ("bert", "gpt2", "t5", "vit", "resnet50"), measure, options)


if __name__ == "__main__":
    main()
