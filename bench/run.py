"""`make bench`: compile time, run time, overhead and memory against eager mode and torch.compile, in the same run.

Each measurement is a fresh process with separate caches. Results are written after every measurement, so an interrupted
run keeps its results; --into adds to an earlier file.
"""

from __future__ import annotations

import compileall
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/python/harness"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench/lib"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench/workloads"))

import noise
import typer
from report import model_line, print_report
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

HERE = Path(__file__).resolve().parent
QUICK_MODELS = ["bert", "gpt2", "resnet50"]
WHAT = ["first", "warm", "steady", "sweep", "train", "accuracy", "capture", "overhead", "operators", "python"]
LEVELS = ["full", "unfused", "traced", "frozen"]
COMPILERS = ["eager", "cresset", "inductor", "inductor-dynamic"]
console = Console()


def machine_name() -> str:
    """Returns the processor and its number of cores, as part of a file name."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    name = found.group(1) if found else os.uname().machine
    return re.sub(r"[^a-z0-9]+", "-", f"{name} {os.cpu_count()} cores".lower()).strip("-")


def run_alone(command: list[str], environment: dict, limit: float) -> subprocess.CompletedProcess:
    """Runs a worker in a process group. After the time limit the whole group ends, so no process disturbs the next
    measurement."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as worker:
        try:
            out, err = worker.communicate(timeout=limit)
        except BaseException:
            os.killpg(worker.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, worker.returncode, out, err)


class Session:
    """A benchmark run: the results file, the time limit, and the caches shared by the measurements of a model."""

    def __init__(self, path: Path, results: dict, budget: float):
        self.path, self.results = path, results
        self.end = time.monotonic() + budget if budget else float("inf")
        self.skipped = 0

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.results, indent=1) + "\n")

    def measure(self, request: dict, caches: Path, *place: str, limit: float = 900) -> None:
        """Runs the worker and stores its answer at `place` in the results."""
        if time.monotonic() > self.end:
            self.skipped += 1
            return
        where = {"CRESSET_CACHE_DIR": caches / "cresset", "TORCHINDUCTOR_CACHE_DIR": caches / "inductor"}
        environment = {**os.environ, **{k: str(v) for k, v in where.items()}}
        command = [sys.executable, str(HERE / "lib/worker.py"), json.dumps(request)]
        try:
            done = run_alone(command, environment, limit)
            answer = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
        except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError):
            answer = None
        if answer is None:
            tail = done.stderr.strip().splitlines()[-1:] if "done" in locals() else ["timed out"]
            console.print(f"[red]{' '.join(place)}: {''.join(tail)[:300]}")
            answer = {"error": "".join(tail)[:300]}
        slot = self.results
        for key in place[:-1]:
            slot = slot.setdefault(key, {})
        slot[place[-1]] = answer
        self.save()


def measure_first(session: Session, request: dict, what: list[str], compiler: str, repeat: int) -> None:
    """Measures first calls of fresh processes with cold caches, then with warm caches. Stores the run with the median
    time, and the band of all runs."""
    request = {**request, "what": "first", "compiler": compiler}
    rows = session.results.setdefault("models", {}).setdefault(request["model"], {})
    wanted = [when for when in ("first", "warm") if when in what]
    runs: dict[str, list[dict]] = {when: [] for when in wanted}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(prefix="cresset-bench-") as folder:
            for when in wanted:
                session.measure(request, Path(folder), "models", request["model"], when, compiler)
                runs[when].append(rows.get(when, {}).get(compiler, {}))
    for when, answers in runs.items():
        answers = sorted((a for a in answers if "seconds" in a), key=lambda a: a["seconds"])
        if len(answers) > 1:
            found = {**answers[len(answers) // 2], "seconds_band": noise.band([a["seconds"] for a in answers])}
            rows[when][compiler] = {**found, "runs": len(answers)}
            session.save()


def measure_model(
    session: Session,
    name: str,
    what: list[str],
    common: dict,
    seconds: float,
    baseline: bool,
    dynamic: bool,
    repeat: int,
) -> None:
    request = {"model": name, **common}
    compilers = ["cresset", "inductor"] if baseline else ["cresset"]
    with tempfile.TemporaryDirectory(prefix="cresset-bench-") as folder:
        caches = Path(folder)
        for compiler in compilers:
            measure_first(session, request, what, compiler, repeat if compiler == "cresset" else 1)
        if "steady" in what:
            sides = COMPILERS[: 2 if not baseline else 4 if dynamic else 3]
            session.measure(
                {**request, "what": "steady", "compilers": sides, "seconds": seconds * len(sides)},
                caches,
                "models",
                name,
                "steady",
            )
        if "train" in what:
            sides = COMPILERS[: 3 if baseline else 2]
            session.measure(
                {**request, "what": "train", "compilers": sides, "seconds": seconds * len(sides)},
                caches,
                "models",
                name,
                "train",
            )
        if "accuracy" in what:
            session.measure({**request, "what": "accuracy", "compiler": "cresset"}, caches, "models", name, "accuracy")
        if "sweep" in what:
            session.measure({**request, "what": "sweep", "seconds": seconds * 3}, caches, "models", name, "sweep")  # fmt: skip


def measure_rest(session: Session, what: list[str], baseline: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="cresset-bench-") as folder:
        if "overhead" in what:
            sides = COMPILERS[:3] if baseline else COMPILERS[:2]
            session.measure({"what": "overhead", "compilers": sides}, Path(folder), "overhead")
        if "operators" in what:
            session.measure({"what": "operators", "dtype": "fp32"}, Path(folder), "operators")
        for compiler in ("cresset", "inductor") if baseline else ("cresset",):
            if "python" in what:
                session.measure({"what": "python", "compiler": compiler}, Path(folder), "python", compiler)


def measure_capture(session: Session, named: str | None) -> None:
    """Measures models with an expensive capture: symbolic and static sizes, inference and training, with cold
    caches."""
    from capture_models import MODELS

    for name in MODELS if named is None else [n for n in named.split(",") if n in MODELS]:
        for training in (False, True):
            for static in (False, True):
                way = f"{'training' if training else 'inference'}, {'static' if static else 'symbolic'}"
                request = {"what": "capture", "model": name, "training": training, "static": static}
                with tempfile.TemporaryDirectory(prefix="cresset-bench-") as folder:
                    session.measure(request, Path(folder), "capture", name, way)


def chosen_models(names: str | None, quick: bool) -> list[str]:
    from models import MODELS

    if not names:
        return QUICK_MODELS if quick else list(MODELS)
    from capture_models import MODELS as CAPTURED

    wanted = [n for n in names.split(",") if n not in CAPTURED or n in MODELS]
    unknown = [n for n in wanted if n not in MODELS]
    if unknown:
        raise typer.BadParameter(f"unknown models: {', '.join(unknown)}; there are {', '.join(MODELS)}")
    return wanted


def main(
    models: Annotated[str | None, typer.Option(help="comma separated; default: all")] = None,
    what: Annotated[str, typer.Option(help="comma separated, of " + ", ".join(WHAT))] = ",".join(WHAT),
    scale: Annotated[str, typer.Option(help="real or tiny")] = "real",
    dtype: Annotated[str, typer.Option(help="fp32 or bf16")] = "fp32",
    seconds: Annotated[float, typer.Option(help="of measuring for each side of a comparison")] = 6,
    budget: Annotated[float, typer.Option(help="start no measurement after so many seconds; 0: none")] = 0,
    baseline: Annotated[bool, typer.Option(help="measure torch.compile too")] = True,
    dynamic: Annotated[bool, typer.Option(help="measure torch.compile(dynamic=True) too")] = True,
    level: Annotated[str, typer.Option(help="how much of cresset's pipeline runs: " + ", ".join(LEVELS))] = "full",
    static: Annotated[bool, typer.Option(help="compile for fixed sizes (dynamic=False), all compilers")] = False,
    repeat: Annotated[int, typer.Option(help="first calls of cresset measured in so many processes")] = 1,
    quick: Annotated[bool, typer.Option(help="three models, short")] = False,
    into: Annotated[Path | None, typer.Option(help="add to this results file")] = None,
) -> None:
    """Measures and prints; results go to bench/results/<date>-<machine>.json."""
    names, wanted = chosen_models(models, quick), what.split(",")
    unknown = sorted(set(wanted) - set(WHAT))
    if unknown:
        raise typer.BadParameter(f"unknown measurements: {', '.join(unknown)}; there are {', '.join(WHAT)}")
    if level not in LEVELS:
        raise typer.BadParameter(f"unknown level {level!r}; there are {', '.join(LEVELS)}")
    if quick:
        seconds = min(seconds, 2)
    date = datetime.date.today().isoformat()
    kind = "".join(f"-{word}" for word, said in ((dtype, dtype != "fp32"), (level, level != "full"), ("static", static)) if said)  # fmt: skip
    path = into or HERE / "results" / f"{date}-{machine_name()}{kind}.json"
    results = json.loads(path.read_text()) if into and into.exists() else {}
    results |= {
        "date": date,
        "machine": machine_name(),
        "dtype": dtype,
        "scale": scale,
        "level": level,
        "static": static,
    }
    session = Session(path, results, budget)
    # As in an installation of cresset, and of torch, modules exist as bytecode.
    compileall.compile_dir(HERE.parent / "python" / "cresset", quiet=1)
    columns = TextColumn("{task.description:30s}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(names) + 2)
        common = {"scale": scale, "dtype": dtype, "level": level, "static": static}
        for name in names:
            progress.update(task, description=name)
            measure_model(session, name, wanted, common, seconds, baseline, dynamic, repeat)
            console.print(model_line(name, results.get("models", {}).get(name, {})), highlight=False, soft_wrap=True)
            progress.advance(task)
        progress.update(task, description="capture of slow models")
        if "capture" in wanted and not quick:
            measure_capture(session, models)
        progress.advance(task)
        progress.update(task, description="overhead, operators")
        measure_rest(session, wanted, baseline)
        progress.advance(task)
    print_report(results, Console(width=160))
    if session.skipped:
        console.print(f"the budget ended before {session.skipped} measurements")
    console.print(f"written to {path}")


if __name__ == "__main__":
    typer.run(main)
