"""`make demo`: BERT base, GPT-2 and a ResNet-50, unmodified, against eager and torch.compile. Random weights, no network.

For each model: seconds until the first result, milliseconds a call afterwards, a sweep over a dozen shapes with the
number of compilations it took, and the greatest difference from eager.
"""

from __future__ import annotations

import copy
import os
import statistics
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/python/harness"))
warnings.simplefilter("ignore")
# Cold caches: the demo shows a first compilation, not what an earlier run left on disk.
_CACHES = tempfile.TemporaryDirectory(prefix="cresset-demo-")
os.environ["CRESSET_CACHE_DIR"] = f"{_CACHES.name}/cresset"
os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{_CACHES.name}/inductor"

import torch  # noqa: E402
from compare import error, tensors  # noqa: E402
from models import MODELS, REAL  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: E402
from rich.table import Table  # noqa: E402

import cresset  # noqa: E402

# name, batch, length (0: an image model), the sweep
PROGRAMS = [
    ("bert", "BERT base", (1, 128), [(b, n) for n in (128, 51, 33, 64) for b in (1, 3, 2)]),
    ("gpt2", "GPT-2", (1, 64), [(b, n) for n in (64, 75, 16, 48) for b in (2, 1, 3)]),
    ("resnet50", "ResNet-50", (2, 0), [(b, 0) for b in (1, 2, 3, 4, 5, 6, 4, 3, 2, 1, 7, 8)]),
]
STEADY_SECONDS = 5
WARM_UP = 4  # library choices settle in the first calls
SIDES = ["eager", "cresset", "torch.compile"]


@dataclass
class Outcome:
    title: str
    shape: str
    first: dict[str, float] = field(default_factory=dict)  # seconds
    steady: dict[str, float] = field(default_factory=dict)  # milliseconds
    shapes: int = 0
    compilations: int = 0
    operators: int = 0
    difference: float = 0.0


def call(run, module, name, shape):
    return run(**MODELS[name].inputs(module, *shape))


def first_calls(outcome: Outcome, name: str, module, shape) -> dict:
    """Compiles with each side; returns what is called afterwards."""
    runs = {"eager": module}
    theirs = copy.deepcopy(module)  # torch.compile leaves an attribute on the module, which cresset would notice
    for side in reversed(SIDES[1:]):  # and changes its class, which cresset would notice later
        begin = time.perf_counter()
        runs[side] = cresset.compile(module) if side == "cresset" else torch.compile(theirs)
        call(runs[side], module, name, shape)
        outcome.first[side] = time.perf_counter() - begin
    return runs


def measure_steady(outcome: Outcome, runs: dict, name: str, module, shape) -> None:
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(WARM_UP):
        for side in SIDES:
            call(runs[side], module, name, shape)
    end = time.perf_counter() + STEADY_SECONDS
    while time.perf_counter() < end or len(times["eager"]) < 3:
        for side in SIDES:
            begin = time.perf_counter()
            call(runs[side], module, name, shape)
            times[side].append(1e3 * (time.perf_counter() - begin))
    outcome.steady = {side: statistics.median(t) for side, t in times.items()}


def sweep(outcome: Outcome, compiled, name: str, module, shapes) -> None:
    for shape in shapes:
        got, expected = tensors(call(compiled, module, name, shape)), tensors(call(module, module, name, shape))
        off = max(error(a, b) for (_, a), (_, b) in zip(got, expected))
        outcome.difference = max(outcome.difference, off)
    stats = cresset.stats()
    outcome.shapes, outcome.compilations = len(shapes), stats["graphs"]
    outcome.operators = stats["operators_captured"]


def run_model(progress: Progress, name: str, title: str, shape, shapes) -> Outcome:
    task = progress.add_task(f"{title}: building", total=4)
    step = lambda what: progress.update(task, advance=1, description=f"{title}: {what}")  # noqa: E731
    cresset.reset()
    module = MODELS[name].build(REAL)
    outcome = Outcome(title, f"{shape[0]} x {shape[1]}" if shape[1] else f"{shape[0]} x 3 x 224 x 224")
    call(module, module, name, shape)
    step("first calls (torch.compile takes its time)")
    runs = first_calls(outcome, name, module, shape)
    step("steady state")
    measure_steady(outcome, runs, name, module, shape)
    step(f"{len(shapes)} shapes")
    sweep(outcome, runs["cresset"], name, module, shapes)
    progress.update(task, advance=1, description=f"{title}: done")
    return outcome


def show(outcomes: list[Outcome], console: Console) -> None:
    table = Table(title=f"cresset, torch {torch.__version__}, {torch.get_num_threads()} threads, fp32")
    for column in ("model", "input", "operators", "first call\ncresset", "first call\ntorch.compile", "ms a call\neager",
                   "ms a call\ncresset", "ms a call\ntorch.compile", "shapes", "compiles", "greatest difference\nfrom eager"):  # fmt: skip
        table.add_column(column, justify="left" if column in ("model", "input") else "right")
    for o in outcomes:
        table.add_row(
            o.title,
            o.shape,
            str(o.operators),
            f"{o.first['cresset']:.2f} s",
            f"{o.first['torch.compile']:.1f} s",
            f"{o.steady['eager']:.1f}",
            f"{o.steady['cresset']:.1f}",
            f"{o.steady['torch.compile']:.1f}",
            str(o.shapes),
            str(o.compilations),
            f"{o.difference:.1e}",
        )
    console.print(table)
    for o in outcomes:
        console.print(
            f"{o.title}: compiled {o.first['torch.compile'] / o.first['cresset']:.0f}x faster than torch.compile; "
            f"runs at {o.steady['eager'] / o.steady['cresset']:.2f}x eager, "
            f"{o.steady['torch.compile'] / o.steady['cresset']:.2f}x torch.compile"
        )


@torch.no_grad()
def main() -> None:
    console = Console(width=150)
    # At its first use torch.compile patches torch.nn.Module: cresset would notice that the classes changed.
    torch.compile(torch.nn.Linear(1, 1), backend="eager")(torch.ones(1, 1))
    columns = TextColumn("{task.description:50s}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        outcomes = [run_model(progress, *program) for program in PROGRAMS]
    show(outcomes, console)
    sys.stdout.flush()
    os._exit(0)  # torch.compile's worker pools take seconds to shut down


if __name__ == "__main__":
    main()
