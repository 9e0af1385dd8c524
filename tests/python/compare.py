"""Walking and comparing results of any structure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor


def leaves(value: Any, path: str = "out") -> Iterator[tuple[str, Any]]:
    """(path, leaf) for tensors and plain values inside containers, dataclasses and objects (such as a KV cache)."""
    if isinstance(value, Tensor) or value is None or isinstance(value, (int, float, complex, bool, str, bytes)):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, (torch.dtype, torch.device, torch.Size, type)):
        yield path, value
    else:
        for name, item in sorted(getattr(value, "__dict__", {}).items()):
            yield from leaves(item, f"{path}.{name}")


def tensors(value: Any) -> list[tuple[str, Tensor]]:
    return [(path, leaf) for path, leaf in leaves(value) if isinstance(leaf, Tensor)]


def error(got: Tensor, reference: Tensor) -> float:
    """Greatest difference, relative to the reference's magnitude. NaN and infinities must sit in the same places."""
    if got.numel() == 0:
        return 0.0
    a, b = got.detach().double(), reference.detach().double()
    finite = torch.isfinite(b)
    if not torch.equal(torch.isfinite(a), finite) or not torch.equal(a[~finite].nan_to_num(), b[~finite].nan_to_num()):
        return float("inf")
    a, b = a[finite], b[finite]
    if a.numel() == 0:
        return 0.0
    scale = b.abs().max().item()
    return (a - b).abs().max().item() / max(scale, 1e-30)


def same_structure(got: Any, expected: Any) -> None:
    assert type(got) is type(expected), f"{type(got)} instead of {type(expected)}"
    mine, its = list(leaves(got)), list(leaves(expected))
    assert [p for p, _ in mine] == [p for p, _ in its]
    for (path, a), (_, b) in zip(mine, its):
        if isinstance(b, Tensor):
            assert isinstance(a, Tensor), f"{path}: {type(a)}"
            assert a.dtype == b.dtype, f"{path}: {a.dtype} instead of {b.dtype}"
            assert a.shape == b.shape, f"{path}: {tuple(a.shape)} instead of {tuple(b.shape)}"
            assert a.device == b.device, path
            assert a.requires_grad == b.requires_grad, f"{path}: requires_grad {a.requires_grad}"
        elif not isinstance(b, float) or b == b:
            assert type(a) is type(b) and a == b, f"{path}: {a!r} instead of {b!r}"


def same_strides(got: Any, expected: Any) -> None:
    for (path, a), (_, b) in zip(tensors(got), tensors(expected)):
        assert meaningful_strides(a) == meaningful_strides(b), f"{path}: strides {a.stride()} instead of {b.stride()}"


def meaningful_strides(t: Tensor) -> list[int]:
    """Strides of dimensions that have more than one element; the others say nothing."""
    if t.numel() == 0 or t.layout != torch.strided:
        return []
    return [stride for size, stride in zip(t.shape, t.stride()) if size != 1]


# What a kernel that computes in fp32 and rounds once may differ from one that rounds after each operator.
TOLERANCE = {
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
    torch.float32: 1e-5,
    torch.float64: 1e-12,
    torch.complex64: 1e-5,
    torch.complex128: 1e-12,
}


def assert_same(got: Any, expected: Any, *, strides: bool = True, tolerance: float | None = None) -> None:
    """Equal structure, types, dtypes, strides; values within rounding (exact for integers and booleans)."""
    same_structure(got, expected)
    if strides:
        same_strides(got, expected)
    for (path, a), (_, b) in zip(tensors(got), tensors(expected)):
        if not (b.is_floating_point() or b.is_complex()):
            assert torch.equal(a, b), f"{path}:\n{a}\ninstead of\n{b}"
        else:
            if b.is_complex():
                a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
            limit = TOLERANCE.get(b.dtype, 1e-5) if tolerance is None else tolerance
            off = error(a, b)
            assert off <= limit, f"{path}: relative error {off:.3g} > {limit:.3g}:\n{a}\ninstead of\n{b}"
