"""The reports of the benchmarks: bands of noise, and verdicts by them."""

from __future__ import annotations

import io
import json
import random
import statistics
import sys
from pathlib import Path

import pytest
from rich.console import Console

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH / "lib"))

import noise  # noqa: E402
import report  # noqa: E402


@pytest.mark.parametrize("count", [11, 40, 200])
def test_bands_hold_the_median(count):
    draw = random.Random(count)
    held = 0
    for _ in range(400):
        low, high = noise.band([draw.expovariate(1.0) for _ in range(count)])
        held += low <= 0.6931 <= high
    assert held >= 0.92 * 400


def test_bands_narrow_and_few_samples_give_all():
    assert noise.band([3.0, 1.0, 2.0]) == [1.0, 3.0]
    samples = [float(i) for i in range(1000)]
    low, high = noise.band(samples)
    assert low < statistics.median(samples) < high and high - low < 100


def test_what_slows_all_sides_cancels():
    slow = [1.0 + 5 * (i % 7 == 0) for i in range(60)]
    found = noise.summary({"cresset": slow, "eager": [2 * t for t in slow]})
    assert found["over"]["eager"] == [2.0, 2.0, 2.0]
    assert found["ms_band"]["cresset"][0] <= found["ms"]["cresset"] <= found["ms_band"]["cresset"][1]


def test_a_mean_of_many_is_less_noisy():
    one = [0.9, 1.0, 1 / 0.9]
    low, middle, high = noise.of_mean([one] * 4)
    assert middle == pytest.approx(1) and high / low == pytest.approx((one[2] / one[0]) ** 0.5)
    assert noise.of_mean([]) is None


def test_verdicts_tell_what_is_within_noise():
    assert "misses" in report.Bound.of("x", [0.80, 0.85, 0.90], 0.95).verdict
    assert "noise" not in report.Bound.of("x", [0.80, 0.85, 0.90], 0.95).verdict
    assert "misses, within noise" in report.Bound.of("x", [0.90, 0.94, 0.97], 0.95).verdict
    assert "holds" in report.Bound.of("x", [1.0, 1.1, 1.2], 0.95).verdict
    assert "not measured" in report.Bound.of("x", None, 1).verdict


# Files of earlier runs, without bands, and of a run with all measurements.
@pytest.mark.parametrize("path", sorted((BENCH / "results").glob("20*.json")), ids=lambda p: p.stem)
def test_kept_results_print(path):
    results = json.loads(path.read_text())
    console = Console(width=200, record=True, file=io.StringIO())
    report.print_report(results, console)
    text = console.export_text()
    assert "Bounds" in text
    for name, row in results.get("models", {}).items():
        assert report.model_line(name, row).startswith(f"{name}: ")


def test_compiling_is_told_from_the_first_run():
    def side(work: float, seconds: float) -> dict:
        return {"ms_setup": 5.0, "ms_capture": work, "ms_lowering": 0, "ms_codegen": 5.0, "seconds": seconds, "again_seconds": 1.0}  # fmt: skip

    assert report.compile_ms(side(30.0, 1.5)) == 40.0
    assert report.first_run_seconds(side(30.0, 1.5)) == pytest.approx(0.46)
    assert report.compile_ms({"seconds": 1.0, "again_seconds": 0.5}) is None
    # Both first runs prepare the libraries: a difference of times does not show savings.
    row = {"first": {"cresset": side(110.0, 2.12)}, "warm": {"cresset": side(10.0, 2.02)}}
    bounds = {b.what: b for b in report.compile_bounds({"models": {"x": row}})}
    by_clocks = bounds["second process, compiling by its own clocks, share of the cold one (geometric mean)"]
    assert by_clocks.value == pytest.approx(20 / 120) and "holds" in by_clocks.verdict
    assert "misses" in bounds["second process less a run, share of the cold one (geometric mean)"].verdict


def test_a_model_is_one_line():
    stats = {"seconds": 1.0, "operators_captured": 100, "ms_capture": 2.0, "graphs": 1, "kernels": 9, "extern_calls": 4}
    timings = {"ms": {"cresset": 10.0, "eager": 14.0}, "over": {"eager": [1.3, 1.4, 1.5]}}
    row = {"first": {"cresset": stats, "inductor": {"seconds": 30.0}}, "steady": timings}
    line = report.model_line("bert", row)
    for part in ("first 1.00 s (30.0x)", "1.40x ±7% eager", "100 operators at 20.0 us", "9 kernels"):
        assert part in line, line
