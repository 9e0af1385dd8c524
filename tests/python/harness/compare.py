"""Walking and comparing results of any structure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

TORCH = tuple(int(n) for n in torch.__version__.split(".")[:2])  # of tests that know what a release changed


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
        elif isinstance(b, float):  # may come from fp32 tensors: rounded likewise
            assert type(a) is float and (math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) or (a != a and b != b)), (
                f"{path}: {a!r} instead of {b!r}"
            )
        else:
            assert type(a) is type(b) and a == b, f"{path}: {a!r} instead of {b!r}"


def same_strides(got: Any, expected: Any) -> None:
    for (path, a), (_, b) in zip(tensors(got), tensors(expected)):
        assert meaningful_strides(a) == meaningful_strides(b), f"{path}: strides {a.stride()} instead of {b.stride()}"


def meaningful_strides(t: Tensor) -> list[int]:
    """Strides of dimensions with more than one element; the other strides carry no meaning."""
    if t.numel() == 0 or t.layout != torch.strided:
        return []
    return [stride for size, stride in zip(t.shape, t.stride()) if size != 1]


# The allowed difference between a kernel with a single rounding of fp32 and a kernel with a rounding after each
# operator.
TOLERANCE = {
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
    torch.float32: 1e-5,
    torch.float64: 1e-12,
}


def _real(t: Tensor) -> Tensor:
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def assert_same(
    got: Any, expected: Any, *, strides: bool = True, tolerance: float | None = None, elementwise: bool = False
) -> None:
    """Equal structure, types, dtypes, strides; integers and booleans equal exactly. Floats: within rounding of the
    greatest element, or of each element when `elementwise`."""
    same_structure(got, expected)
    if strides:
        same_strides(got, expected)
    for (path, a), (_, b) in zip(tensors(got), tensors(expected)):
        if b.is_meta:
            continue  # without data
        if b.layout != torch.strided:
            assert a.layout == b.layout, f"{path}: layout {a.layout}"
            a, b = a.to_dense(), b.to_dense()
        if not (b.is_floating_point() or b.is_complex()):
            assert torch.equal(a, b), f"{path}:\n{a}\ninstead of\n{b}"
        elif elementwise:
            if b.dim() > 60:  # more than assert_close can index
                a, b = a.flatten(), b.flatten()
            torch.testing.assert_close(a, b, equal_nan=True, msg=lambda m, path=path: f"{path}: {m}")
        else:
            limit = TOLERANCE.get(b.dtype, 1e-5) if tolerance is None else tolerance
            off = error(_real(a), _real(b))
            assert off <= limit, f"{path}: relative error {off:.3g} > {limit:.3g}:\n{a}\ninstead of\n{b}"


def aliases(value: Any, inputs: list[Tensor]) -> list[tuple[str, int | None, int]]:
    """For each tensor of `value`: which input shares its storage, and the offset into it."""
    strided = [(i, t) for i, t in enumerate(inputs) if t.layout == torch.strided and t.numel()]
    storages = {t.untyped_storage().data_ptr(): i for i, t in reversed(strided)}
    found = []
    for path, t in tensors(value):
        if t.layout == torch.strided and t.numel():
            owner = storages.get(t.untyped_storage().data_ptr())
            found.append((path, owner, t.storage_offset() if owner is not None else 0))
    return found


def clone(value: Any, memo: dict | None = None) -> Any:
    """Copies tensors inside containers, keeping strides, aliases among them, and requires_grad."""
    memo = {} if memo is None else memo
    if isinstance(value, Tensor):
        if id(value) not in memo:
            memo[id(value)] = _clone_tensor(value, memo)
        return memo[id(value)]
    if isinstance(value, dict):
        return {k: clone(v, memo) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(clone(v, memo) for v in value)
    return value


def _clone_tensor(t: Tensor, memo: dict) -> Tensor:
    if t.layout != torch.strided or t.is_conj() or t.is_neg() or type(t) is not Tensor:
        return t.detach().clone().requires_grad_(t.requires_grad)
    storage = t.untyped_storage()
    key = ("storage", storage.data_ptr()) if storage.nbytes() else ("empty", id(t))
    if key not in memo:
        memo[key] = storage.clone()
    copy = torch.empty(0, dtype=t.dtype, device=t.device)
    copy.set_(memo[key], t.storage_offset(), t.shape, t.stride())
    return copy.requires_grad_(t.requires_grad)


def outcome(function: Any, args: Any, kwargs: Any) -> tuple[Any, BaseException | None]:
    """The outcome of a call: (result, None) or (None, the exception)."""
    try:
        return function(*args, **kwargs), None
    except Exception as e:  # the comparison covers exceptions
        return None, e


def assert_same_call(function: Any, compiled: Any, *args: Any, seed: int = 0, **options: Any) -> Any:
    """Calls both with equal arguments: same result or exception, same effect on the arguments, same aliases."""
    theirs, ours = clone(args), clone(args)
    torch.manual_seed(seed)
    expected, wanted = outcome(function, theirs, {})
    torch.manual_seed(seed)
    got, raised = outcome(compiled, ours, {})
    if wanted is not None or raised is not None:
        assert type(raised) is type(wanted), f"{raised!r} instead of {wanted!r}"
        assert str(raised) == str(wanted), f"{raised} instead of {wanted}"
    else:
        assert_same(got, expected, **options)
        mine, its = [t for _, t in tensors(ours)], [t for _, t in tensors(theirs)]
        assert aliases(got, mine) == aliases(expected, its), "results share memory with other arguments than eager's"
    assert_same(ours, theirs, **options)
    return got
