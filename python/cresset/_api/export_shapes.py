"""``dynamic_shapes`` of ``cresset.export``: torch.export's spelling, as marks on the example tensors.

torch.export is not imported here, since it imports torch's compiler. Its ``Dim`` objects are recognized by their
attributes.
"""

import inspect
import re

import torch

from .compile import mark_dynamic, mark_static


def apply(model, args, kwargs, dynamic_shapes, paths):
    """Marks the tensors among the arguments. ``paths``: id of a tensor -> its path. Returns path of a size, such as
    ``args[0].size(1)`` -> name of its Dim. Raises ValueError for a spelling that does not fit the arguments."""
    function = model.forward if isinstance(model, torch.nn.Module) else model
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    if isinstance(dynamic_shapes, (tuple, list)):
        given = dict(zip(bound, dynamic_shapes, strict=False))
        if len(dynamic_shapes) != len(bound):
            raise ValueError(
                f"cresset.export: dynamic_shapes has {len(dynamic_shapes)} rows for {len(bound)} arguments"
            )
    elif isinstance(dynamic_shapes, dict):
        given = dynamic_shapes
        if set(given) != set(bound):
            raise ValueError(f"cresset.export: dynamic_shapes names {sorted(given)}; the arguments are {sorted(bound)}")
    else:
        raise ValueError(f"cresset.export: dynamic_shapes must be a dict or tuple, got {type(dynamic_shapes).__name__}")
    names = {}
    for name, value in bound.items():
        _walk(value, given[name], name, paths, names)
    return names


def _walk(value, spec, where, paths, names):
    if isinstance(value, torch.Tensor):
        for dim, size_spec in _by_dimension(value, spec, where).items():
            _mark(value, dim, size_spec, f"{paths[id(value)]}.size({dim})", names)
    elif isinstance(value, dict):
        rows = dict.fromkeys(value) if spec is None else spec
        if not isinstance(rows, dict) or set(rows) != set(value):
            raise ValueError(f"cresset.export: dynamic_shapes of {where} must be a dict of the keys {list(value)}")
        for key, part in value.items():
            _walk(part, rows[key], f"{where}[{key!r}]", paths, names)
    elif isinstance(value, (tuple, list)):
        rows = [None] * len(value) if spec is None else spec
        if not isinstance(rows, (tuple, list)) or len(rows) != len(value):
            raise ValueError(f"cresset.export: dynamic_shapes of {where} must be a sequence of {len(value)} parts")
        for i, part in enumerate(value):
            _walk(part, rows[i], f"{where}[{i}]", paths, names)
    elif spec is not None:
        raise ValueError(f"cresset.export: dynamic_shapes of {where} must be None: it is a {type(value).__name__}")


def _by_dimension(tensor, spec, where):
    """dimension -> its row, for all dimensions; None is a static dimension."""
    rows = dict.fromkeys(range(tensor.dim()))
    if isinstance(spec, (tuple, list)):
        if len(spec) != tensor.dim():
            raise ValueError(f"cresset.export: dynamic_shapes of {where} has {len(spec)} of {tensor.dim()} dimensions")
        spec = dict(enumerate(spec))
    for dim, row in ({} if spec is None else spec).items():
        if dim not in rows:
            raise ValueError(f"cresset.export: dynamic_shapes of {where}: there is no dimension {dim!r}")
        rows[dim] = row
    return rows


def _mark(tensor, dim, row, path, names):
    hint = getattr(getattr(row, "type", None), "name", None)  # Dim.AUTO, Dim.DYNAMIC, Dim.STATIC
    if hint == "AUTO":
        return
    if isinstance(row, int) and row != tensor.size(dim):
        raise ValueError(f"cresset.export: dynamic_shapes: {path} is {tensor.size(dim)}, not {row}")
    if row is None or isinstance(row, int) or hint == "STATIC":
        return mark_static(tensor, dim)
    if hint is None and (not hasattr(row, "__name__") or not hasattr(row, "min") or hasattr(row, "root")):
        raise ValueError(f"cresset.export: dynamic_shapes: {row!r} for {path} is not supported; expected a Dim")
    low, high = getattr(row, "min", None), getattr(row, "max", None)
    low, high = low if isinstance(low, int) else 0, high if isinstance(high, int) else None
    if tensor.size(dim) < low or (high is not None and tensor.size(dim) > high):
        raise ValueError(f"cresset.export: dynamic_shapes: {path} is {tensor.size(dim)}, outside the range of {row!r}")
    mark_dynamic(tensor, dim, min=low or None, max=high)
    if hint is None:
        names[path] = row.__name__


def unequal(names, size_of):
    """Two paths of one Dim with different sizes, or None. ``size_of``: path -> int."""
    first = {}
    for path, name in names.items():
        other = first.setdefault(name, path)
        if size_of(other) != size_of(path):
            return other, path
    return None


def undeclared(names, assertions):
    """Assertions that two sizes with different Dims are equal, each with a suggested fix."""
    found = []
    for assertion in assertions:
        equal = re.match(r"(\S+\.size\(\d+\)) == (\S+\.size\(\d+\))(?: at |$)", assertion)
        a, b = (names.get(equal[1]), names.get(equal[2])) if equal else (None, None)
        if a is not None and b is not None and a != b:
            found.append(f"{assertion}; suggested fix: use the Dim {a!r} for both")
    return found
