"""Times on a GPU, by events on the device, so that work which is still queued counts."""

from __future__ import annotations

import time

import torch
from torch.utils._pytree import tree_leaves


def seconds_of(run, calls: int) -> tuple[float, float]:
    """(seconds on the device, seconds until the calls returned), of one call."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    issued = time.perf_counter() - start
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls, issued / calls


def copy_bandwidth() -> float:
    """Returns the bytes a second of copies of 1 GB: the bound of kernels that read and write memory."""
    a = torch.empty(1 << 28, device="cuda")
    b = torch.empty_like(a)
    best = min(seconds_of(lambda: b.copy_(a), 5)[0] for _ in range(5))
    return 2 * a.numel() * a.element_size() / best


def difference(got, expected) -> float:
    """Returns the greatest difference over the greatest value, among all results of floats."""
    found = [
        ((a.double() - b.double()).abs().max() / b.double().abs().max().clamp_min(1e-6)).item()
        for a, b in zip(tree_leaves(got), tree_leaves(expected), strict=True)
        if isinstance(b, torch.Tensor) and b.is_floating_point() and b.numel()
    ]
    return max(found, default=0.0)
