"""Tables and verdicts from a results file: `python bench/lib/report.py bench/results/<file>.json`."""

from __future__ import annotations

import json
import math
import operator
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import noise
from rich.console import Console
from rich.table import Table


def mean(values: list[float]) -> float | None:
    """Returns the geometric mean."""
    values = [v for v in values if v and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def dig(data: Any, *path: str) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


def text(value: float | None, form: str = "{:.2f}") -> str:
    return "" if value is None else form.format(value)


def over(row: dict, what: str, compiler: str) -> list[float] | None:
    """Returns [low, middle, high] of the speedup of cresset over `compiler`. Older files have no bands and give only
    the middle value."""
    if (found := dig(row, what, "over", compiler)) is not None:
        return found
    middle = ratio(dig(row, what, "ms", compiler), dig(row, what, "ms", "cresset"))
    return None if middle is None else [middle] * 3


def with_noise(found: list[float] | None) -> str:
    """'1.14x ±2%'"""
    if found is None:
        return ""
    low, middle, high = found
    return f"{middle:.2f}x" + (f" ±{50 * (high - low) / middle:.0f}%" if high > low else "")


def us_of(stats: dict | None) -> float | None:
    captured = dig(stats, "operators_captured")
    return 1e3 * stats["ms_capture"] / captured if captured else None


def us_per_operator(row: dict) -> float | None:
    return us_of(dig(row, "first", "cresset"))


def compile_seconds(side: dict | None) -> float | None:
    """Returns the seconds of the first call minus the seconds of a later call: the compile time without the model's run
    time."""
    again = dig(side, "again_seconds")
    return None if again is None else max(side["seconds"] - again, 1e-3)


PHASES = ("ms_setup", "ms_capture", "ms_lowering", "ms_codegen")


def compile_ms(side: dict | None) -> float | None:
    """Returns the compile time by the compiler's own clocks: installing, capturing, lowering, and generating code or
    reading code from disk. The difference of two runs would have the noise of both. It would also count the costs of
    every first run: creation of library primitives, autotuning, first use of memory (`first_run_seconds`)."""
    phases = [dig(side, phase) for phase in PHASES]
    return None if None in phases else sum(phases)


def first_run_seconds(side: dict | None) -> float | None:
    """Returns the seconds by which the first run exceeded a later run."""
    own, less_a_run = compile_ms(side), compile_seconds(side)
    return None if own is None or less_a_run is None else less_a_run - own / 1e3


def model_rows(results: dict) -> dict[str, dict]:
    return results.get("models", {})


def compile_table(results: dict) -> Table:
    table = Table(title="First call, seconds (cold caches; warm: a second process)")
    for column in ("model", "ops", "us/op", "cresset", "torch.compile", "ratio", "less a run", "torch less a run", "compile ms", "run +s", "warm", "torch warm", "warm compile ms", "warm run +s", "RSS +MB", "torch RSS +MB", "kernels", "extern"):  # fmt: skip
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, row in model_rows(results).items():
        ours, theirs = dig(row, "first", "cresset"), dig(row, "first", "inductor")
        table.add_row(
            name,
            text(dig(ours, "operators_captured"), "{}"),
            text(us_per_operator(row), "{:.1f}"),
            text(dig(ours, "seconds")),
            text(dig(theirs, "seconds")),
            text(ratio(dig(theirs, "seconds"), dig(ours, "seconds")), "{:.1f}x"),
            text(compile_seconds(ours)),
            text(compile_seconds(theirs)),
            text(compile_ms(ours), "{:.1f}"),
            text(first_run_seconds(ours)),
            text(dig(row, "warm", "cresset", "seconds")),
            text(dig(row, "warm", "inductor", "seconds")),
            text(compile_ms(dig(row, "warm", "cresset")), "{:.1f}"),
            text(first_run_seconds(dig(row, "warm", "cresset"))),
            text(ratio(dig(ours, "rss_above_eager"), 1 << 20), "{:.0f}"),
            text(ratio(dig(theirs, "rss_above_eager"), 1 << 20), "{:.0f}"),
            text(dig(ours, "kernels"), "{}"),
            text(dig(ours, "extern_calls"), "{}"),
        )
    return table


def steady_table(results: dict) -> Table:
    table = Table(title="Steady state, milliseconds a call (medians, interleaved)")
    for column in ("model", "eager", "cresset", "torch.compile", "dynamic=True", "vs eager", "vs torch.compile", "peak MB", "torch peak MB", "off eager", "dyn/static"):  # fmt: skip
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, row in model_rows(results).items():
        ms, peak = dig(row, "steady", "ms") or {}, dig(row, "steady", "peak_bytes") or {}
        table.add_row(
            name,
            *(text(ms.get(c), "{:.1f}") for c in ("eager", "cresset", "inductor", "inductor-dynamic")),
            with_noise(over(row, "steady", "eager")),
            with_noise(over(row, "steady", "inductor")),
            text(ratio(peak.get("cresset"), 1 << 20), "{:.1f}"),
            text(ratio(peak.get("inductor"), 1 << 20), "{:.1f}"),
            text(dig(row, "steady", "difference", "cresset"), "{:.0e}"),
            text((sweep_ratio(row) or [None] * 3)[1], "{:.3f}"),
        )
    return table


def train_table(results: dict) -> Table:
    table = Table(title="Training, milliseconds a step, forward and backward (medians, interleaved)")
    for column in ("model", "eager", "cresset", "torch.compile", "vs eager", "vs torch.compile", "first step s", "torch first s", "peak MB", "eager peak MB"):  # fmt: skip
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, row in model_rows(results).items():
        ms, first, peak = (dig(row, "train", key) or {} for key in ("ms", "first_seconds", "peak_bytes"))
        if ms:
            table.add_row(
                name,
                *(text(ms.get(c), "{:.1f}") for c in ("eager", "cresset", "inductor")),
                with_noise(over(row, "train", "eager")),
                with_noise(over(row, "train", "inductor")),
                *(text(first.get(c)) for c in ("cresset", "inductor")),
                *(text(ratio(peak.get(c), 1 << 20), "{:.1f}") for c in ("cresset", "eager")),
            )
    return table


def capture_table(results: dict) -> Table:
    title = (
        "Capture of models that are slow to capture elsewhere (fresh processes; ms: capture, lowering, code generation)"
    )
    table = Table(title=title)
    for column in ("model", "way", "ops", "us/op", "rules asked", "capture", "lowering", "codegen", "graphs", "costliest operators, ms"):  # fmt: skip
        table.add_column(column, justify="left" if column in ("model", "way") else "right")
    for name, ways in results.get("capture", {}).items():
        for way, row in ways.items():
            costly = ", ".join(f"{op} {c['ms']:.1f}" for op, c in list(row.get("costly", {}).items())[:3])
            table.add_row(
                name,
                way,
                text(row.get("operators_captured"), "{}"),
                text(us_of(row), "{:.1f}"),
                text(row.get("shape_rule_entries"), "{}"),
                *(text(row.get(f"ms_{phase}"), "{:.0f}") for phase in ("capture", "lowering", "codegen")),
                text(row.get("graphs"), "{}"),
                costly or row.get("error", ""),
            )
    return table


def accuracy_table(results: dict) -> Table:
    table = Table(title="Greatest distance from fp64, relative to each result")
    for column in ("model", "eager", "cresset", "gradients, eager", "gradients, cresset"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, row in model_rows(results).items():
        if found := dig(row, "accuracy", "eager") and row["accuracy"]:
            sides = [(s, c) for s in ("results", "gradients") for c in ("eager", "cresset")]
            table.add_row(name, *(text(found[c][s], "{:.1e}") for s, c in sides))
    return table


def model_line(name: str, row: dict) -> str:
    """Returns all measurements of a model as a single line."""
    first, stats = dig(row, "first", "cresset"), dig(row, "first", "cresset") or {}
    parts = [
        first and f"first {first.get('seconds', 0):.2f} s" + text(ratio(dig(row, "first", "inductor", "seconds"), first.get("seconds")), " ({:.1f}x)"),
        "warm" in row and f"warm {dig(row, 'warm', 'cresset', 'seconds') or 0:.2f} s",
        dig(row, "steady", "ms") and f"steady {row['steady']['ms']['cresset']:.1f} ms, {with_noise(over(row, 'steady', 'eager'))} eager, {with_noise(over(row, 'steady', 'inductor'))} torch.compile",
        dig(row, "train", "ms") and f"train {row['train']['ms']['cresset']:.1f} ms, {with_noise(over(row, 'train', 'eager'))} eager",
        dig(row, "accuracy", "cresset") and f"off fp64 {row['accuracy']['cresset']['results']:.0e} (eager {row['accuracy']['eager']['results']:.0e})",
        "operators_captured" in stats and f"{stats['operators_captured']} operators at {us_of(stats):.1f} us, {stats['graphs']} graphs, {stats['kernels']} kernels, {stats['extern_calls']} library calls",
    ]  # fmt: skip
    return f"{name}: " + " · ".join(p for p in parts if p)


def sweep_ratio(row: dict) -> list[float] | None:
    """Returns [low, middle, high] of symbolic over fixed sizes, over the shapes."""
    shapes = dig(row, "sweep", "shapes") or []
    return noise.of_mean([r.get("over") or [ratio(r["dynamic"], r["static"])] * 3 for r in shapes])


@dataclass
class Bound:
    what: str
    value: float | None
    limit: float
    at_most: bool = False
    form: str = "{:.2f}"
    band: list[float] | None = None  # [low, middle, high] of the figure, where runs were repeated

    @classmethod
    def of(cls, what: str, found: list[float] | None, limit: float, at_most: bool = False, form: str = "{:.2f}"):
        return cls(what, found[1] if found else None, limit, at_most, form, found)

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "[dim]not measured"
        holds = self.value <= self.limit if self.at_most else self.value >= self.limit
        near = self.band is not None and self.band[0] < self.limit < self.band[2]
        return ("[green]holds" if holds else "[red]misses") + (", within noise" if near else "")

    def row(self) -> tuple[str, ...]:
        sign = "<=" if self.at_most else ">="
        noisy = self.band is not None and self.band[2] > self.band[0]
        noise_ = f"{self.form.format(self.band[0])} to {self.form.format(self.band[2])}" if noisy else ""
        return self.what, text(self.value, self.form), noise_, f"{sign} {self.form.format(self.limit)}", self.verdict


def _gathered(results: dict, f) -> list[float]:
    return [v for v in (f(row) for row in model_rows(results).values()) if v is not None]


def compile_bounds(results: dict) -> list[Bound]:
    models = model_rows(results)
    slow = [row for ways in results.get("capture", {}).values() for row in ways.values()]

    def seconds(name: str) -> list[float] | None:
        found = dig(models, name, "first", "cresset") or {}
        low, high = found.get("seconds_band", [found.get("seconds")] * 2)
        return [low, found["seconds"], high] if "seconds" in found else None

    def first_ratio(row):
        return ratio(dig(row, "first", "inductor", "seconds"), dig(row, "first", "cresset", "seconds"))

    def compile_ratio(row):
        return ratio(compile_seconds(dig(row, "first", "inductor")), compile_seconds(dig(row, "first", "cresset")))

    def warm_share(row):
        return ratio(dig(row, "warm", "cresset", "seconds"), dig(row, "first", "cresset", "seconds"))

    def warm_share_of_compiling(row):
        return ratio(compile_seconds(dig(row, "warm", "cresset")), compile_seconds(dig(row, "first", "cresset")))

    def warm_work(row):
        return ratio(compile_ms(dig(row, "warm", "cresset")), compile_ms(dig(row, "first", "cresset")))

    def rss(row):
        above = dig(row, "first", "cresset", "rss_above_eager")
        return None if above is None else above / (1 << 20)

    return [
        Bound.of("BERT base, first call, s", seconds("bert"), 1, True),
        Bound("BERT base, times faster than torch.compile", first_ratio(models.get("bert", {})), 20),
        Bound.of("hrnet_w18, first call, s", seconds("hrnet_w18"), 3, True),
        Bound("hrnet_w18, times faster than torch.compile", first_ratio(models.get("hrnet_w18", {})), 40),
        Bound("first call, geometric mean, times faster", mean(_gathered(results, first_ratio)), 25),
        Bound("first call less a run, geometric mean, times faster", mean(_gathered(results, compile_ratio)), 25),
        Bound("second process less a run, share of the cold one (geometric mean)", mean(_gathered(results, warm_share_of_compiling)), 1 / 3, True),
        Bound("second process, compiling by its own clocks, share of the cold one (geometric mean)", mean(_gathered(results, warm_work)), 1 / 3, True),
        Bound("the same (worst)", max(_gathered(results, warm_work), default=None), 1 / 3, True),
        Bound("second process, share of the cold first call (worst)", max(_gathered(results, warm_share), default=None), 1 / 3, True),
        Bound("capture of the slow models, us an operator (worst)", max((us for row in slow if (us := us_of(row))), default=None), 20, True),
        Bound("capture, us an operator (worst)", max(_gathered(results, us_per_operator), default=None), 20, True),
        Bound("resident set while compiling, MB above eager (worst)", max(_gathered(results, rss), default=None), 300, True, "{:.0f}"),
    ]  # fmt: skip


def run_bounds(results: dict) -> list[Bound]:
    def peak_share(row):
        return ratio(dig(row, "steady", "peak_bytes", "cresset"), dig(row, "steady", "peak_bytes", "inductor"))

    over_torch = _gathered(results, lambda row: over(row, "steady", "inductor"))
    over_eager = _gathered(results, lambda row: over(row, "steady", "eager"))
    middle = operator.itemgetter(1)
    add, chain = dig(results, "overhead", "add_one") or {}, dig(results, "overhead", "linear_chain") or {}
    extra = add.get("above_eager") or ([add["cresset"] - add["eager"]] * 3 if add else None)
    chain_over = [ratio(chain["eager"], chain["cresset"])] * 3 if chain else None
    graphs = _gathered(results, lambda row: dig(row, "sweep", "graphs"))
    trained = _gathered(results, lambda row: over(row, "train", "eager"))
    failed = (dig(results, "operators", "counts") or {}).get("failed", 0) if "operators" in results else None
    return [
        Bound.of("steady state over torch.compile, geometric mean", noise.of_mean(over_torch), 1.2),
        Bound.of("steady state over eager, geometric mean", noise.of_mean(over_eager), 1.4),
        Bound.of("steady state over torch.compile, worst model", min(over_torch, key=middle, default=None), 0.95),
        Bound.of("training step over eager, geometric mean", noise.of_mean(trained), 1.1),
        Bound.of("training step over eager, worst model", min(trained, key=middle, default=None), 1),
        Bound.of("dynamic over dynamic=False, worst model", max(_gathered(results, sweep_ratio), key=middle, default=None), 1.05, True, "{:.3f}"),
        Bound("compilations in a sweep of six shapes (most)", max(graphs, default=None), 1, True, "{:.0f}"),
        Bound.of("x + 1 on one element, us above eager", extra, 3, True),
        Bound.of("chain of 20 Linear(16), times faster than eager", chain.get("over") or chain_over, 2),
        Bound("peak intermediates over torch.compile's (worst)", max(_gathered(results, peak_share), default=None), 1, True),
        Bound("op_db operators that differ from eager", failed, 0, True, "{:.0f}"),
    ]  # fmt: skip


def python_bounds(results: dict) -> list[Bound]:
    """Returns the bounds of the Python front end. torch.compile's figure is printed beside them where it exists."""

    def beside(text_: str, *path: str) -> str:
        theirs = dig(results, "python", "inductor", *path)
        return text_ if theirs is None else f"{text_} (torch.compile: {theirs:.3g})"

    def ours(*path: str) -> float | None:
        return dig(results, "python", "cresset", *path)

    def breaks_over_eager(compiler: str) -> float | None:
        row = dig(results, "python", compiler, "breaks_us") or {}
        return ratio(row.get("compiled"), row.get("eager"))

    def step_over_eager(name: str, compiler: str = "cresset") -> float | None:
        row = dig(results, "python", compiler, "optimizers_ms", name) or {}
        return ratio(row.get("compiled"), row.get("eager"))

    def step_bound(text_: str, name: str) -> Bound:
        theirs = step_over_eager(name, "inductor")
        beside_it = "" if theirs is None else f" (torch.compile: {theirs:.3g})"
        return Bound(f"{text_} over eager{beside_it}", step_over_eager(name), 1, True)

    loop = ours("capture", "loop") or {}
    per_operator = ratio(1e3 * loop["ms"], loop["operators"]) if loop else None
    theirs = breaks_over_eager("inductor")
    return [
        Bound(beside("capture of BERT base, ms", "capture", "bert", "ms"), ours("capture", "bert", "ms"), 25, True),
        Bound("capture of a loop of 1,000 operators, us an operator", per_operator, 20, True),
        Bound(beside("guards of BERT base, us", "guards_us", "bert"), ours("guards_us", "bert"), 5, True),
        Bound(beside("guards of x + 1, us", "guards_us", "add_one"), ours("guards_us", "add_one"), 0.5, True),
        Bound("20 graph breaks over eager", breaks_over_eager("cresset"), 1.2, True),
        Bound("20 graph breaks over torch.compile", ratio(breaks_over_eager("cresset"), theirs), 1, True),
        step_bound("a step of SGD, 40 parameters of 400 x 400", "sgd"),
        step_bound("a step of Adam, 40 parameters of 400 x 400", "adam"),
        step_bound("a step of Adam, 40 parameters of 64 x 64", "adam_small"),
        Bound(
            beside("a whole training step over eager", "training_step_ms", "over"), ours("training_step_ms", "over"), 1, True
        ),
        Bound(
            "its first three calls, times faster than torch.compile's",
            ratio(dig(results, "python", "inductor", "training_step_ms", "first"), ours("training_step_ms", "first")),
            20,
        ),
        Bound("evaluated Python over CPython, geometric mean", ours("evaluator", "geometric_mean_ratio"), 3, True),
    ]  # fmt: skip


def print_report(results: dict, console: Console | None = None) -> None:
    console = console or Console(width=160)
    if model_rows(results):
        console.print(compile_table(results), steady_table(results))
        if _gathered(results, lambda row: over(row, "train", "eager")):
            console.print(train_table(results))
        if _gathered(results, lambda row: dig(row, "accuracy", "eager")):
            console.print(accuracy_table(results))
    if results.get("capture"):
        console.print(capture_table(results))
    if "operators" in results:
        counts = results["operators"]["counts"]
        console.print("op_db float32: " + ", ".join(f"{n} {way}" for way, n in sorted(counts.items())))
    if (ms := dig(results, "overhead", "import_ms")) is not None:
        console.print(f"import cresset, beside torch: {ms:.0f} ms")
    bounds = Table(
        title=f"Bounds ({results.get('machine', '')}, {results.get('dtype', '')}, {results.get('date', '')})"
    )
    for column in ("what", "measured", "noise", "bound", ""):
        bounds.add_column(column)
    for bound in compile_bounds(results) + run_bounds(results) + python_bounds(results):
        bounds.add_row(*bound.row())
    console.print(bounds)


if __name__ == "__main__":
    print_report(json.loads(Path(sys.argv[1]).read_text()))
