"""The noise of figures: bands of medians from runs in turns, without assumptions about the distribution of times."""

from __future__ import annotations

import math
import statistics


def band(samples: list[float]) -> list[float]:
    """Returns an interval which contains the true median in 19 of 20 cases: two order statistics (David and Nagaraja,
    Order Statistics, section 7.1). With fewer than six samples the interval contains all samples."""
    ordered, n = sorted(samples), len(samples)
    outside = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return [ordered[outside], ordered[n - 1 - outside]]


def summary(times: dict[str, list[float]], of: str = "cresset") -> dict:
    """Maps the seconds of each side, measured in turns, to {"ms": medians, "ms_band": their bands, "over": {side: [low,
    median, high]}}. "over" is the time of a side divided by the time of `of` in the same turn, so common slowdowns
    cancel."""
    out = {
        "ms": {name: 1e3 * statistics.median(t) for name, t in times.items()},
        "ms_band": {name: [1e3 * t for t in band(samples)] for name, samples in times.items()},
    }
    if of in times:
        ratios = {name: [a / b for a, b in zip(t, times[of])] for name, t in times.items() if name != of}
        out["over"] = {n: [band(r)[0], statistics.median(r), band(r)[1]] for n, r in ratios.items()}
    return out


def of_mean(bands: list[list[float]]) -> list[float] | None:
    """Returns the band of a geometric mean of independent figures, from [low, middle, high] of each figure."""
    bands = [b for b in bands if b and b[0] > 0]
    if not bands:
        return None
    middle = sum(math.log(b[1]) for b in bands) / len(bands)
    half = math.sqrt(sum((math.log(b[2] / b[0]) / 2) ** 2 for b in bands)) / len(bands)
    return [math.exp(middle - half), math.exp(middle), math.exp(middle + half)]
