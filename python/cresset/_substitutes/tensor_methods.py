"""Methods of tensors that need memory or a backend, which proxy tensors lack, and indexing with symbols."""

import builtins
import types
import warnings

import torch

from .. import _C
from .._numbers import INTS, SYMINTS

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_range = builtins.range


def _new(self, *args, **kwargs):
    """Tensor.new: sizes give an uninitialized tensor, data gives a tensor of it, with self's dtype and device.

    torch's own method looks for a backend by the dispatch key, which proxy tensors lack.
    """
    sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args or (0,)
    if self.layout is torch.sparse_coo:
        parts = args if any(isinstance(a, torch.Tensor) for a in args) else (sizes,)
        return torch.sparse_coo_tensor(*parts, dtype=self.dtype, device=self.device)
    if len(args) == 1 and not isinstance(args[0], (int, torch.SymInt, torch.Size)):
        return torch.tensor(args[0], dtype=self.dtype, device=self.device)
    return self.new_empty(sizes)


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **rest):
    """Tensor.new_tensor: torch's own method looks for a backend likewise."""
    if rest:
        return torch._C.TensorBase.new_tensor(
            self, data, dtype=dtype, device=device, requires_grad=requires_grad, **rest
        )
    dtype, device = self.dtype if dtype is None else dtype, self.device if device is None else device
    if not isinstance(data, torch.Tensor):
        return torch.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).",
        stacklevel=2,
    )
    copy = data.detach().to(device=device, dtype=dtype, copy=True)
    return copy.requires_grad_() if requires_grad else copy


def _tolist(self):
    """Tensor.tolist: a list of symbols under the option capture_scalar_outputs."""
    numbers = _C.read_numbers(self) if _C.is_capturing() else None
    if numbers is None:
        return torch._C.TensorBase.tolist(self)
    return _nested(numbers, self.shape)


def _nested(numbers, shape):
    if not shape:
        return numbers[0]
    step = len(numbers) // max(shape[0], 1)
    return [_nested(numbers[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


for _name, _function in (("new", _new), ("new_tensor", _new_tensor), ("tolist", _tolist)):
    _C._substitute(vars(torch._C.TensorBase)[_name], _function)


def _select_symbols(tensor, key):
    """The view selected by the symbolic integers of an index, and the rest of the index; None for any other index.

    torch's own indexing specializes the integers, though it selects in the same way, and first.
    """
    key = key if type(key) is tuple else (key,)
    for k in key:
        if type(k) is torch.Tensor and k.dtype not in (torch.bool, torch.uint8):
            continue
        if k is not None and k is not Ellipsis and type(k) not in (*INTS, slice):
            return None
    fixed = sum(k is not None and k is not Ellipsis for k in key)
    if fixed > tensor.dim() or sum(k is Ellipsis for k in key) > 1:
        return None
    missing, dim, left = tensor.dim() - fixed, 0, []  # left: the indices for the tensors among them
    for k in key:
        if type(k) in INTS:
            tensor = tensor.select(dim, k)
            continue
        if k is None:
            tensor = tensor.unsqueeze(dim)
        elif type(k) is slice:
            tensor = tensor[(slice(None),) * dim + (k,)]
        count = missing if k is Ellipsis else 1
        left += [k if type(k) is torch.Tensor else slice(None)] * count
        dim += count
    return tensor, tuple(left) if any(type(k) is torch.Tensor for k in left) else ()


def get_item(tensor, key):
    """tensor[key], with a symbolic integer among the indices; NotImplemented to leave it to torch."""
    try:
        found = _select_symbols(tensor, key)
    except IndexError:  # torch has another message
        if _C._has_failed():  # an operator before this one raised it, when the graph broke here
            raise
        found = None
    return NotImplemented if found is None else found[0][found[1]] if found[1] else found[0]


def _dims_taken(item):
    """The number of dimensions of a tensor that this part of an index takes."""
    if item is None or item is ...:
        return 0
    return item.dim() if isinstance(item, torch.Tensor) and item.dtype is torch.bool else 1


def _where_tensors_say(tensor, key):
    """The selection of an index without its tensors, the tensors in index_put_()'s form, and the number of dimensions
    of the place. None for any other kind of index."""
    items = key if isinstance(key, tuple) else (key,)
    kinds = (*INTS, slice, types.EllipsisType, types.NoneType, torch.Tensor)
    if not all(type(item) in kinds for item in items) or sum(item is ... for item in items) > 1:
        return None
    tensors = [item for item in items if isinstance(item, torch.Tensor)]
    if not tensors or any(t.dim() == 0 or t.dtype not in (torch.bool, torch.int64) for t in tensors):
        return None
    rest = tensor.dim() - sum(_dims_taken(item) for item in items)
    if rest < 0:
        return None
    indices = []  # for each dimension of the selection so far
    for item in items:
        if item is ...:
            indices += [None] * rest
        elif item is None:
            tensor = tensor.unsqueeze(len(indices))
            indices.append(None)
        elif isinstance(item, slice):
            tensor = tensor[(slice(None),) * _width(indices) + (item,)]
            indices.append(None)
        elif isinstance(item, torch.Tensor):
            indices.append(item)
        else:
            tensor = tensor.select(_width(indices), item)
    together = max(1 if t.dtype is torch.bool else t.dim() for t in tensors)
    return tensor, indices, tensor.dim() - sum(_dims_taken(t) for t in tensors) + together


def _width(indices):
    return sum(1 if item is None else _dims_taken(item) for item in indices)


def _begins_like(where, indices, value):
    """Whether the value's dimensions before the indexed dimension have the sizes of the place. Then neither the
    assignment nor its derivative asks whether these sizes are 1. Several index tensors may move their dimensions
    elsewhere."""
    places = [at for at, item in enumerate(indices) if item is not None]
    return len(places) == 1 and places[0] > 0 and value.shape[: places[0]] == where.shape[: places[0]]


def _put(tensor, key, value):
    """Assigns by index tensors. torch's own code asks whether the value begins with sizes of 1, to drop them. The
    value's derivative asks, too: it is summed to the value's sizes."""
    found = _where_tensors_say(tensor, key)
    if found is None or value.dim() > found[2]:
        return False
    wants_gradient = value.requires_grad and torch.is_grad_enabled()
    if wants_gradient and not (value.dim() == found[2] and _begins_like(found[0], found[1], value)):
        return False
    torch.ops.aten.index_put_(found[0], found[1], value)
    return True


def set_item(tensor, key, value):
    """tensor[key] = value; NotImplemented to leave it to torch."""
    of_size = type(value) is torch.Tensor and value.dim() > 0 and type(value.shape[0]) in SYMINTS
    if of_size and _put(tensor, key, value):
        return None
    try:
        found = _select_symbols(tensor, key)
    except IndexError:
        found = None
    if found is None:
        return NotImplemented
    found[0][found[1] or ...] = value


def product(numbers):
    out = 1
    for n in numbers:
        out = out * n
    return out


def is_contiguous(tensor, memory_format=torch.contiguous_format):
    """Tensor.is_contiguous() for the sizes of this call: guards are added where general sizes have another answer."""
    if torch._C.TensorBase.is_contiguous(tensor, memory_format=memory_format):
        return True
    sizes, strides, rank = tensor.shape, _C.strides_of_view(tensor) or tensor.stride(), tensor.dim()
    if memory_format is torch.contiguous_format:
        if any(n == 0 for n in sizes):
            return True
        order = reversed(_range(rank))
    elif rank == {torch.channels_last: 4, torch.channels_last_3d: 5}.get(memory_format):
        order = [1, *reversed(_range(2, rank)), 0]
    else:
        return False
    expected = 1
    for d in order:
        if strides[d] != expected and sizes[d] != 1:
            return False
        if sizes[d] != 1:
            expected = expected * sizes[d]
    return True


def stride(tensor, *args, **kwargs):
    """Tensor.stride(): a dimension of size 1 may have any stride. Where the program does not lay the tensor out, the
    stride is read from memory. So is the stride of a tensor without elements, which counts a size of 0 as 1. Guards keep
    programs for other sizes from such a call."""
    if any(n < 2 for n in tensor.shape) and (any(n == 0 for n in tensor.shape) or not _C.lays_out(tensor)):
        tensor.data_ptr()
    strides = torch._C.TensorBase.stride(tensor, *args, **kwargs)
    viewed = _C.strides_of_view(tensor)
    if viewed is None:
        return strides
    return viewed[args[0] if args else kwargs["dim"]] if args or kwargs else viewed
