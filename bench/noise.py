"""What of a figure is noise: bands of medians from runs in turns, without assuming how times are distributed."""

from __future__ import annotations

import math
import statistics


def band(samples: list[float]) -> list[float]:
    """The interval that holds the true median in 19 of 20 cases: two order statistics (David and Nagaraja, Order
    Statistics, section 7.1), all there is for fewer than six samples."""
    ordered, n = sorted(samples), len(samples)
    outside = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return [ordered[outside], ordered[n - 1 - outside]]


def summary(times: dict[str, list[float]], of: str = "cresset") -> dict:
    """Seconds of each side, in turns -> {"ms": medians, "ms_band": their bands, "over": {side: [low, median, high]}},
    the last how many times longer than `of` a side took in the same turn, so that what slows all sides cancels."""
    out = {
        "ms": {name: 1e3 * statistics.median(t) for name, t in times.items()},
        "ms_band": {name: [1e3 * t for t in band(samples)] for name, samples in times.items()},
    }
    if of in times:
        ratios = {name: [a / b for a, b in zip(t, times[of])] for name, t in times.items() if name != of}
        out["over"] = {n: [band(r)[0], statistics.median(r), band(r)[1]] for n, r in ratios.items()}
    return out


def of_mean(bands: list[list[float]]) -> list[float] | None:
    """The band of a geometric mean of independent figures, from [low, middle, high] of each."""
    bands = [b for b in bands if b and b[0] > 0]
    if not bands:
        return None
    middle = sum(math.log(b[1]) for b in bands) / len(bands)
    half = math.sqrt(sum((math.log(b[2] / b[0]) / 2) ** 2 for b in bands)) / len(bands)
    return [math.exp(middle - half), math.exp(middle), math.exp(middle + half)]
