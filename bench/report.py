"""Tables and verdicts from a results file: `python bench/report.py bench/results/<file>.json`."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def mean(values: list[float]) -> float | None:
    """Geometric."""
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


def us_per_operator(row: dict) -> float | None:
    captured = dig(row, "first", "cresset", "operators_captured")
    return 1e3 * row["first"]["cresset"]["ms_capture"] / captured if captured else None


def compile_seconds(side: dict | None) -> float | None:
    """The first call less one more call: what compiling took, however slow the model runs on the machine."""
    again = dig(side, "again_seconds")
    return None if again is None else max(side["seconds"] - again, 1e-3)


def model_rows(results: dict) -> dict[str, dict]:
    return results.get("models", {})


def compile_table(results: dict) -> Table:
    table = Table(title="First call, seconds (cold caches; warm: a second process)")
    for column in ("model", "ops", "us/op", "cresset", "torch.compile", "ratio", "less a run", "torch less a run", "warm", "torch warm", "RSS +MB", "torch RSS +MB", "kernels", "extern"):  # fmt: skip
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
            text(dig(row, "warm", "cresset", "seconds")),
            text(dig(row, "warm", "inductor", "seconds")),
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
            text(ratio(ms.get("eager"), ms.get("cresset")), "{:.2f}x"),
            text(ratio(ms.get("inductor"), ms.get("cresset")), "{:.2f}x"),
            text(ratio(peak.get("cresset"), 1 << 20), "{:.1f}"),
            text(ratio(peak.get("inductor"), 1 << 20), "{:.1f}"),
            text(dig(row, "steady", "difference", "cresset"), "{:.0e}"),
            text(sweep_ratio(row), "{:.3f}"),
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
                text(ratio(ms.get("eager"), ms.get("cresset")), "{:.2f}x"),
                text(ratio(ms.get("inductor"), ms.get("cresset")), "{:.2f}x"),
                *(text(first.get(c)) for c in ("cresset", "inductor")),
                *(text(ratio(peak.get(c), 1 << 20), "{:.1f}") for c in ("cresset", "eager")),
            )
    return table


def train_ratio(row: dict) -> float | None:
    return ratio(dig(row, "train", "ms", "eager"), dig(row, "train", "ms", "cresset"))


def sweep_ratio(row: dict) -> float | None:
    return mean([ratio(r["dynamic"], r["static"]) for r in dig(row, "sweep", "shapes") or []])


@dataclass
class Bound:
    what: str
    value: float | None
    limit: float
    at_most: bool = False
    form: str = "{:.2f}"

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "[dim]not measured"
        holds = self.value <= self.limit if self.at_most else self.value >= self.limit
        return "[green]holds" if holds else "[red]misses"

    def row(self) -> tuple[str, ...]:
        sign = "<=" if self.at_most else ">="
        return self.what, text(self.value, self.form), f"{sign} {self.form.format(self.limit)}", self.verdict


def _gathered(results: dict, f) -> list[float]:
    return [v for v in (f(row) for row in model_rows(results).values()) if v is not None]


def compile_bounds(results: dict) -> list[Bound]:
    models = model_rows(results)

    def seconds(name: str, compiler: str = "cresset", when: str = "first") -> float | None:
        return dig(models, name, when, compiler, "seconds")

    def first_ratio(row):
        return ratio(dig(row, "first", "inductor", "seconds"), dig(row, "first", "cresset", "seconds"))

    def compile_ratio(row):
        return ratio(compile_seconds(dig(row, "first", "inductor")), compile_seconds(dig(row, "first", "cresset")))

    def warm_share(row):
        return ratio(dig(row, "warm", "cresset", "seconds"), dig(row, "first", "cresset", "seconds"))

    def warm_share_of_compiling(row):
        return ratio(compile_seconds(dig(row, "warm", "cresset")), compile_seconds(dig(row, "first", "cresset")))

    def rss(row):
        above = dig(row, "first", "cresset", "rss_above_eager")
        return None if above is None else above / (1 << 20)

    return [
        Bound("BERT base, first call, s", seconds("bert"), 1, True),
        Bound("BERT base, times faster than torch.compile", first_ratio(models.get("bert", {})), 20),
        Bound("hrnet_w18, first call, s", seconds("hrnet_w18"), 3, True),
        Bound("hrnet_w18, times faster than torch.compile", first_ratio(models.get("hrnet_w18", {})), 40),
        Bound("first call, geometric mean, times faster", mean(_gathered(results, first_ratio)), 25),
        Bound("first call less a run, geometric mean, times faster", mean(_gathered(results, compile_ratio)), 25),
        Bound("second process less a run, share of the cold one (geometric mean)", mean(_gathered(results, warm_share_of_compiling)), 1 / 3, True),
        Bound("second process, share of the cold first call (worst)", max(_gathered(results, warm_share), default=None), 1 / 3, True),
        Bound("capture, us an operator (worst)", max(_gathered(results, us_per_operator), default=None), 20, True),
        Bound("resident set while compiling, MB above eager (worst)", max(_gathered(results, rss), default=None), 300, True, "{:.0f}"),
    ]  # fmt: skip


def run_bounds(results: dict) -> list[Bound]:
    def speed_over(compiler):
        return lambda row: ratio(dig(row, "steady", "ms", compiler), dig(row, "steady", "ms", "cresset"))

    def peak_share(row):
        return ratio(dig(row, "steady", "peak_bytes", "cresset"), dig(row, "steady", "peak_bytes", "inductor"))

    over_torch = _gathered(results, speed_over("inductor"))
    add, chain = dig(results, "overhead", "add_one") or {}, dig(results, "overhead", "linear_chain") or {}
    extra = add["cresset"] - add["eager"] if add else None
    graphs = _gathered(results, lambda row: dig(row, "sweep", "graphs"))
    trained = _gathered(results, train_ratio)
    failed = (dig(results, "operators", "counts") or {}).get("failed", 0) if "operators" in results else None
    return [
        Bound("steady state over torch.compile, geometric mean", mean(over_torch), 1.2),
        Bound("steady state over eager, geometric mean", mean(_gathered(results, speed_over("eager"))), 1.4),
        Bound("steady state over torch.compile, worst model", min(over_torch, default=None), 0.95),
        Bound("training step over eager, geometric mean", mean(trained), 1.1),
        Bound("training step over eager, worst model", min(trained, default=None), 1),
        Bound("dynamic over dynamic=False, worst model", max(_gathered(results, sweep_ratio), default=None), 1.05, True, "{:.3f}"),
        Bound("compilations in a sweep of six shapes (most)", max(graphs, default=None), 1, True, "{:.0f}"),
        Bound("x + 1 on one element, us above eager", extra, 3, True),
        Bound("chain of 20 Linear(16), times faster than eager", ratio(chain.get("eager"), chain.get("cresset")), 2),
        Bound("peak intermediates over torch.compile's (worst)", max(_gathered(results, peak_share), default=None), 1, True),
        Bound("op_db operators that differ from eager", failed, 0, True, "{:.0f}"),
    ]  # fmt: skip


def python_bounds(results: dict) -> list[Bound]:
    """Of the Python front end; torch.compile's figure is printed beside where it has one."""

    def beside(text_: str, *path: str) -> str:
        theirs = dig(results, "python", "inductor", *path)
        return text_ if theirs is None else f"{text_} (torch.compile: {theirs:.3g})"

    def ours(*path: str) -> float | None:
        return dig(results, "python", "cresset", *path)

    def breaks_over_eager(compiler: str) -> float | None:
        row = dig(results, "python", compiler, "breaks_us") or {}
        return ratio(row.get("compiled"), row.get("eager"))

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
        Bound("evaluated Python over CPython, geometric mean", ours("evaluator", "geometric_mean_ratio"), 3, True),
    ]  # fmt: skip


def print_report(results: dict, console: Console | None = None) -> None:
    console = console or Console(width=160)
    if model_rows(results):
        console.print(compile_table(results), steady_table(results))
        if _gathered(results, train_ratio):
            console.print(train_table(results))
    if "operators" in results:
        counts = results["operators"]["counts"]
        console.print("op_db float32: " + ", ".join(f"{n} {way}" for way, n in sorted(counts.items())))
    if (ms := dig(results, "overhead", "import_ms")) is not None:
        console.print(f"import cresset, beside torch: {ms:.0f} ms")
    bounds = Table(
        title=f"Bounds ({results.get('machine', '')}, {results.get('dtype', '')}, {results.get('date', '')})"
    )
    for column in ("what", "measured", "bound", ""):
        bounds.add_column(column)
    for bound in compile_bounds(results) + run_bounds(results) + python_bounds(results):
        bounds.add_row(*bound.row())
    console.print(bounds)


if __name__ == "__main__":
    print_report(json.loads(Path(sys.argv[1]).read_text()))
