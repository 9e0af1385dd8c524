"""Queries on sizes: the sizes accepted by a compiled function, and inputs with these sizes."""

import contextlib
import inspect
import itertools
import types

import torch
from torch.utils import _pytree as pytree

from .. import _C
from . import deprecated
from .settings import check_options


class _Stated:
    """The result of ``check``: a fact holds in every run, so a branch on it would have a single side."""

    def __bool__(self):
        raise TypeError(
            "cresset.check states a fact, which selects nothing: there is no program for the other case. "
            "Use torch.cond, or a branch on the condition itself"
        )


_STATED = _Stated()


def check(condition, message=None):
    """States a fact about sizes or unbacked scalars. Where the fact does not hold, the call raises as eager mode would.

    All later code may rely on the fact. It is no guard: it never causes a recompile. ``message``: a string, or a
    function returning the string. A string built from sizes specializes them; a function is called only where the fact
    does not hold.

    A fact on an input's size is checked before the compiled code runs; on a data-dependent size, as soon as the size is
    known.
    """
    torch._check(condition, message if message is None or callable(message) else lambda: message)
    return _STATED


def _compile_apart(function, **settings):
    target = function
    if isinstance(target, torch.nn.Module):
        target = types.MethodType(type(target).__call__, target)
    target = getattr(target, "__wrapped__", target)
    return _C.compile(target, **check_options(None, None), dynamic=True, fullgraph=False, **settings)


def _range_text(d):
    if d["hint"] is None:
        return "given by data"
    low, high, step, remainder = d["low"], d["high"], d["step"], d["remainder"]
    if low is not None and low == high:
        return f"{low} only"
    kind = (
        "any size"
        if step == 1
        else f"multiples of {step}"
        if remainder == 0
        else f"{remainder} more than multiples of {step}"
    )
    if d["kind"] == "int" and step == 1:
        kind = "any integer"
    if high is not None:
        return f"{kind} from {'-inf' if low is None else low} to {high}"
    return kind if low in (None, 0) else f"{kind} from {low}"


class Shapes:
    """The sizes of a function after compilation for a call; ``cache_entries`` has a dict for each cache entry."""

    def __init__(self, name, cache_entries):
        self.name = name
        self.cache_entries = cache_entries

    variants = deprecated.attribute("Shapes", "variants", "cache_entries")

    def __str__(self):
        lines = [f"cresset.shapes: {self.name}"]
        for i, v in enumerate(self.cache_entries):
            if v["eager_reason"]:
                lines.append(f"  cache entry {i}: runs eagerly: {v['eager_reason']}")
                continue
            width = max((len(d["source"]) for d in v["dimensions"]), default=0)
            for d in v["dimensions"]:
                if d["kind"] != "data" and not d["of_same"]:
                    lines.append(f"  {d['source']:<{width}}  {d['name']:<6} {_range_text(d)}")
            lines += [f"  {text}" for text in v["same"]]
            if v["guards"]:
                dropped = len(set(v["asked"]) - {text for text, _ in v["guards"]})
                follow = f" ({dropped} that were asked follow from these)" if dropped else ""
                lines.append(f"  checked at each call{follow}:")
                lines += [f"    {text}" for text, _ in v["guards"]]
            if v["assertions"]:
                lines.append("  checked while running:")
                lines += [f"    {text}" for text in v["assertions"]]
        return "\n".join(lines)

    __repr__ = __str__


def shapes(function):
    """``shapes(f)(*args)`` compiles f for these arguments and returns its :class:`Shapes`: the range of every dimension
    accepted by the compiled code, and the conditions between dimensions with the lines that caused them."""

    def run(*args, **kwargs):
        compiled = _compile_apart(function)
        compiled(*args, **kwargs)
        return Shapes(getattr(function, "__qualname__", type(function).__name__), _C.shape_report(compiled))

    return run


class Sample:
    """Inputs of a class of sizes: the smallest accepted by its cache entry. ``error``: the exception of eager mode."""

    def __init__(self, args, kwargs, sizes, error=None):
        self.args, self.kwargs, self.sizes, self.error = args, kwargs, sizes, error

    def __repr__(self):
        return f"Sample({self.sizes}{'' if self.error is None else f', error={self.error!r}'})"


class Solved(list):
    """The samples; ``status`` is "covered" when no other sizes exist, "limit" or "gave up" when there may be more."""

    status = "gave up"


def _tensor_like(tensor, shape):
    if tensor.dtype == torch.bool:
        return torch.rand(shape, device=tensor.device) > 0.5
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.randn(shape, dtype=tensor.dtype, device=tensor.device)
    low, high = (int(tensor.min()), int(tensor.max())) if tensor.numel() else (0, 1)
    return torch.randint(low, high + 1, shape, dtype=tensor.dtype, device=tensor.device)


def resized(args, kwargs, sizes):
    """The same arguments with tensors of other sizes and other ints. ``sizes``: (kind, position, dimension, value) from
    the solver."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    ints = [i for i, leaf in enumerate(leaves) if type(leaf) is int]
    shapes = {i: list(leaves[i].shape) for i in tensors}
    for kind, position, dim, value in sizes:
        if kind == "size":
            shapes[tensors[position]][dim] = value
        elif kind == "int":
            leaves[ints[position]] = value
    for i in tensors:
        if shapes[i] != list(leaves[i].shape):
            leaves[i] = _tensor_like(leaves[i], shapes[i])
    return pytree.tree_unflatten(leaves, spec)


def _sizes_of(args, kwargs):
    """The inverse of :func:`resized`."""
    leaves, _ = pytree.tree_flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    ints = [leaf for leaf in leaves if type(leaf) is int]
    sizes = [("size", i, d, size) for i, t in enumerate(tensors) for d, size in enumerate(t.shape)]
    return sizes + [("int", i, 0, value) for i, value in enumerate(ints)]


def _error_of(function, args, kwargs):
    """The exception of eager mode for these inputs, which stay unchanged; None if it does not raise."""
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error
    return None


# Kinds of arguments: (distance from the simplest, the highest rank to try, a function from shape to argument).
_KINDS = {
    "float": (0, 4, lambda *shape: torch.randn(shape)),
    "integer": (1, 4, lambda *shape: torch.randint(0, 2, shape)),
    "bool": (1, 4, lambda *shape: torch.rand(shape) > 0.5),
    "int": (2, 0, lambda: 2),
    "complex": (3, 4, lambda *shape: torch.randn(shape, dtype=torch.complex64)),
    "flag": (0, 0, lambda: True),  # this and the next kind only with an annotation
    "number": (0, 0, lambda: 0.5),
}
_TRIED = ["float", "integer", "bool", "int", "complex"]
_ANNOTATED = {int: "int", "int": "int", bool: "flag", "bool": "flag", float: "number", "float": "number"}
_SIZE, _MOST_TRIED, _MOST_WALKED, _MOST_STEPS = 4, 4000, 400, 12


def _parameters(function):
    """The required arguments: (name, or None for a positional argument, kinds to try)."""
    try:
        signature = inspect.signature(getattr(function, "forward", function))
    except (TypeError, ValueError):
        return None
    out = []
    for p in signature.parameters.values():
        if p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        known = _ANNOTATED.get(p.annotation)
        out.append((p.name if p.kind is p.KEYWORD_ONLY else None, [known] if known else _TRIED))
    return out


def _choices(kinds):
    """(cost, kind, rank) for a parameter, the simplest first."""
    return sorted((2 * _KINDS[kind][0] + rank, kind, rank) for kind in kinds for rank in range(_KINDS[kind][1] + 1))


def _by_cost(choices, cost):
    """All tuples with a choice for each parameter and this total cost."""
    if not choices:
        if cost == 0:
            yield ()
        return
    for chosen in choices[0]:
        if chosen[0] > cost:
            return
        for rest in _by_cost(choices[1:], cost - chosen[0]):
            yield (chosen, *rest)


def _candidates(parameters):
    choices = [_choices(kinds) for _, kinds in parameters]
    for cost in range(sum(c[-1][0] for c in choices) + 1):
        yield from _by_cost(choices, cost)


def _made(parameters, candidate):
    args, kwargs = [], {}
    for (name, _), (_, kind, rank) in zip(parameters, candidate, strict=True):
        value = _KINDS[kind][2](*(_SIZE,) * rank)
        if name is None:
            args.append(value)
        else:
            kwargs[name] = value
    return tuple(args), kwargs


def _walk_to_accepted(function, args, kwargs):
    """Finds sizes that eager mode accepts, from the sizes of a raising call. The walk negates the conditions of the
    exception, size class by size class. None when there are no sizes, or they are too far."""
    compiled = _compile_apart(function, keep_rejected=True)
    points, near = [], _sizes_of(args, kwargs)
    here = args, kwargs
    for _ in range(_MOST_STEPS):
        with contextlib.suppress(Exception):
            compiled(*here[0], **here[1])
        if _error_of(function, *here) is None:
            return here
        status, near = _C.sizes_outside(compiled, points, near)
        if status != "found" or near in points:
            return None
        points.append(near)
        here = resized(args, kwargs, near)
    return None


def _inferred(function):
    """Arguments that eager mode accepts, found by trying: the lowest ranks, floats before integers. All sizes are equal
    at first, so that most conditions between them hold; then sizes come from the function's own conditions."""
    parameters = _parameters(function)
    # C functions have no signature.
    signatures = [parameters] if parameters is not None else [[(None, _TRIED)] * n for n in (1, 2, 3)]
    last = None
    with torch.no_grad():
        for signature in signatures:
            for candidate in itertools.islice(_candidates(signature), _MOST_TRIED):
                args, kwargs = _made(signature, candidate)
                last = _error_of(function, args, kwargs)
                if last is None:
                    return args, kwargs
        for signature in signatures:
            for candidate in itertools.islice(_candidates(signature), _MOST_WALKED):
                found = _walk_to_accepted(function, *_made(signature, candidate))
                if found is not None:
                    return found
    raise ValueError("cresset.solve: found no tensors that the function accepts; call it with an example") from last


def solve(function, *args, limit=16, **kwargs):
    """Walks over the classes of input sizes that a function distinguishes, starting from a call with these arguments.

    Compiles the function, solves the guards for sizes outside all cache entries, calls the function with them, and so
    on. The walk ends when all sizes are covered or ``limit`` classes were met. Raising sizes are a class as well, given
    by the conditions before the exception.

    Returns :class:`Solved`, a list with a :class:`Sample` for each class: its smallest inputs. Without arguments, ranks
    and dtypes are found by trying; raises ValueError when no arguments are accepted.
    """
    if not args and not kwargs:
        args, kwargs = _inferred(function)
    compiled = _compile_apart(function, keep_rejected=True)
    compiled(*args, **kwargs)
    if torch.is_grad_enabled() and all(v["eager_reason"] for v in _C.shape_report(compiled)):
        with torch.no_grad():  # gradients may be the reason against compiling
            return solve(function, *args, limit=limit, **kwargs)
    failures, attempts, status = [], 1, "limit"
    while attempts < limit:
        status, sizes = _C.sizes_outside(compiled, [f[2] for f in failures])
        if status != "found":
            break
        attempts += 1
        here = resized(args, kwargs, sizes)
        try:
            compiled(*here[0], **here[1])
        except Exception as e:  # the exception of eager mode for rejected sizes
            failures.append((here, e, sizes))
    out = Solved()
    out.status = "limit" if status == "found" else status
    names = {}
    for row in reversed(_C.shape_report(compiled)):
        if row["eager_reason"] or row["smallest"] is None:
            continue
        names |= {(d["kind"], d["position"], d["dim"]): d["source"] for d in row["dimensions"]}
        smallest = row["smallest"]
        if any(sorted(smallest) == sorted(sizes) for _, _, sizes in failures):
            continue  # eager mode raises while it runs: the sample below holds the exception
        sample_args, sample_kwargs = resized(args, kwargs, smallest)
        error = _error_of(function, sample_args, sample_kwargs)
        out.append(Sample(sample_args, sample_kwargs, {names[tuple(s[:3])]: s[3] for s in smallest}, error))
    for (failed_args, failed_kwargs), error, sizes in failures:
        out.append(
            Sample(failed_args, failed_kwargs, {names.get(tuple(s[:3]), tuple(s[:3])): s[3] for s in sizes}, error)
        )
    return out
