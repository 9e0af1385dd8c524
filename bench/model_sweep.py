"""Many models, a single compilation each: the sweep of `tests/python/harness/model_tables.py`, with a process for each model.

    python bench/model_sweep.py [transformers] [timm] [--only names...] [--draws 20] [--gradients] [--json file]

With CRESSET_VALIDATE=1 the rewrites of sizes are also proved, and the table shows the cost of the proofs. Exit status
1: a result differed, or fewer than 95 % of the models were compiled exactly once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / f) for f in ("tests/python/harness", "bench/lib", "bench/workloads")]

from model_tables import subjects, sweep  # noqa: E402


def _worker(subject, draws, gradients, pipe):
    import warnings

    warnings.simplefilter("ignore")
    try:
        pipe.send(sweep(subject, draws, gradients))
    except Exception:
        pipe.send({"failed": traceback.format_exc(limit=-3)})


def in_process(subject, draws, seconds, gradients=False):
    """Measures the row of a model in a separate process. A crash or a time-out also gives a row."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_worker, args=(subject, draws, gradients, there))
    process.start()
    there.close()
    try:
        row = here.recv() if here.poll(seconds) else {"failed": f"takes more than {seconds} s"}
    except EOFError:
        process.join()
        row = {"failed": f"the process ended with {process.exitcode}"}
    process.kill()
    process.join()
    return row


def show(name, row):
    if "failed" in row:
        print(f"{name:<30} FAILED {row['failed'].strip().splitlines()[-1]}", flush=True)
        return
    print(
        f"{name:<30} {row['graphs']:>8} {row['graph_breaks']:>6} {row['equal']:>5} {row['rejected']:>8} "
        f"{len(row['differ']):>6} {row['guards_asked']:>6} {row['guards_checked']:>7} {row['s_compiled']:>6.1f} "
        f"{row['steps_proved']:>7} {row['steps_not_proved']:>5} {row['ms_validation'] / 1e3:>7.1f}",
        flush=True,
    )
    for line in row["differ"][:3]:
        print(f"    DIFFERS {line}")
    for cause in row["causes"][:4]:
        print("    " + cause.replace("\n", "\n    "))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=["transformers", "timm"])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--gradients", action="store_true", help="of all parameters, compared as well")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(
        f"{'model':<30} {'compiles':>8} {'eager':>6} {'equal':>5} {'rejected':>8} {'differ':>6} {'asked':>6} "
        f"{'checked':>7} {'s':>6} {'proved':>7} {'open':>5} {'proof s':>7}"
    )
    rows = {}
    begin = time.perf_counter()
    for family in options.families:
        __import__(family)  # once, before the fork
        for name, subject in subjects(family).items():
            if options.only and name not in options.only:
                continue
            row = rows[name] = in_process(subject, options.draws, options.seconds, options.gradients)
            row["family"] = family
            show(name, row)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
    ran = [r for r in rows.values() if "failed" not in r]
    once = sum(r["graphs"] == 1 and r["graph_breaks"] == 0 for r in ran)
    differ = sum(bool(r["differ"]) for r in ran) + len(rows) - len(ran)
    print(
        f"{once} of {len(rows)} models took one compilation ({100 * once / max(len(rows), 1):.1f} %); {differ} failed; "
        f"{sum(r['equal'] for r in ran)} calls equal to eager; proofs: {sum(r['steps_proved'] for r in ran)} steps, "
        f"{sum(r['steps_not_proved'] for r in ran)} open, {sum(r['ms_validation'] for r in ran) / 1e3:.1f} s; "
        f"{time.perf_counter() - begin:.0f} s in all"
    )
    return 0 if not differ and once >= 0.95 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
