"""Functions of torch whose own code would specialize sizes."""

import builtins
import functools

from .. import _C
from .._api.control import _natively
from .._genuine import Missing, attribute, capability, own, torch
from .._numbers import INTS, NUMBERS, SYMBOLS, SYMBOOLS, SYMINTS

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_range = builtins.range


def _of_sizes(number):
    return type(number) in SYMBOLS


def linspace(start, end, steps, *, out=None, dtype=None, device=None, **rest):
    """torch.linspace(): number of steps and ends may be symbolic. Computed from both ends, as eager mode does."""
    kind = torch.get_default_dtype() if dtype is None else dtype
    plain = (
        type(steps) not in INTS
        or not any(_of_sizes(n) for n in (start, end, steps))
        or kind not in (torch.float32, torch.float64)
    )
    more = any(value and value is not torch.strided for value in rest.values())
    tensors = [n for n in (start, end) if isinstance(n, torch.Tensor)]
    usual = all(type(n) is torch.Tensor and n.dim() == 0 and n.dtype is kind and not n.requires_grad for n in tensors)
    if plain or out is not None or more or not usual or steps < 0:
        given = {"out": out, "dtype": dtype, "device": device, **rest}
        return _torch_linspace(start, end, steps, **{k: v for k, v in given.items() if v is not None})
    place = torch.arange(steps, dtype=kind, device=device)
    full = functools.partial(torch.full, (), dtype=kind, device=device)
    first, last = (n if isinstance(n, torch.Tensor) else full(n) for n in (start, end))
    step = (last - first) / torch.sym_max(steps - 1, 1)
    near_first = place < torch.sym_max(steps // 2, 1)
    return torch.where(near_first, first + step * place, last - step * (steps - 1 - place))


def _numbers_in(data, most=64):
    """The numbers in nested lists of numbers, if there are few; else None."""
    if type(data) in (list, tuple, torch.Size):
        out = []
        for item in data:
            more = _numbers_in(item, most)
            if more is None or len(out) + len(more) > most:
                return None
            out += more
        return out
    return [data] if type(data) in NUMBERS else None


def _without_bools(data):
    """Nested lists with plain booleans instead of symbolic booleans, for which torch has no dtype."""
    if type(data) in (list, tuple) and any(type(item) in (list, tuple, *SYMBOOLS) for item in data):
        return [bool(item) if type(item) in SYMBOOLS else _without_bools(item) for item in data]
    return data


def tensor(data, *, dtype=None, device=None, **rest):
    """torch.tensor() of sizes, which stay symbolic."""
    data = bool(data) if type(data) in SYMBOOLS else _without_bools(data)
    numbers = None if any(rest.values()) else _numbers_in(data)
    if numbers is None or not any(_of_sizes(n) for n in numbers):
        return _torch_tensor(data, dtype=dtype, device=device, **rest)
    if dtype is None:
        whole = all(type(n) in INTS for n in numbers)
        dtype = torch.int64 if whole else torch.get_default_dtype()
    if not dtype.is_floating_point and not dtype.is_complex and dtype not in (torch.bool, torch.int64):
        limits = torch.iinfo(dtype)
        if any(not limits.min <= n <= limits.max for n in numbers):
            return _torch_tensor(data, dtype=dtype, device=device, **rest)

    def made(data):
        if type(data) in (list, tuple, torch.Size):
            return torch.stack([made(item) for item in data])
        return torch.full((), data, dtype=dtype, device=device)

    return made(data)


def as_tensor(data, dtype=None, device=None):
    """torch.as_tensor() of sizes, which it copies."""
    of_sizes = any(_of_sizes(n) for n in _numbers_in(data) or ())
    return (tensor if of_sizes else _torch_as_tensor)(data, dtype=dtype, device=device)


def broadcast_shapes(*shapes):
    """torch.broadcast_shapes(): no decision is made on a size beside a plain 1."""
    rows = [(shape,) if type(shape) in INTS else tuple(shape) for shape in shapes]
    if not any(type(n) in SYMINTS for row in rows for n in row):
        return _torch_broadcast_shapes(*shapes)
    out = []
    for d in _range(1, max(len(row) for row in rows) + 1):
        size = 1
        for row in rows:
            n = row[-d] if len(row) >= d else 1
            if (type(n) is int and n == 1) or (type(size) is int and size == 1):
                size = size if type(n) is int and n == 1 else n
            elif n == size or n == 1:
                size = n if type(n) is int and n != 1 else size
            elif size == 1:
                size = n
            else:
                return _torch_broadcast_shapes(*shapes)  # raises the error
        out.insert(0, size)
    return torch.Size(out)


def one_hot(tensor, num_classes=-1):
    """F.one_hot() for a given number of classes. torch reads the data; here torch's checks are assertions."""
    in_transform = torch._C._functorch.peek_interpreter_stack() is not None  # torch has its own implementation there
    if in_transform or type(num_classes) not in INTS or num_classes < 1:
        return _torch_one_hot(tensor, num_classes)
    if tensor.dtype is not torch.int64:
        return _torch_one_hot(tensor, num_classes)
    torch._assert_async(tensor.ge(0).all(), "Class values must be non-negative.")
    torch._assert_async(tensor.lt(num_classes).all(), "Class values must be smaller than num_classes.")
    hot = tensor.unsqueeze(-1).eq(torch.arange(num_classes, device=tensor.device))
    return hot.to(torch.int64, memory_format=torch.contiguous_format)  # contiguous, whatever the layout of the input


def affine_grid_generator(theta, size, align_corners):
    """torch.affine_grid_generator() of images, of any size."""
    symbolic = len(size) == 4 and any(type(n) in SYMINTS for n in size)
    if not symbolic or theta.dtype not in (torch.float32, torch.float64):
        return _torch_affine_grid_generator(theta, size, align_corners)
    batch, _, height, width = size

    def centers(count):
        if align_corners and count <= 1:
            return torch.zeros(count, dtype=theta.dtype, device=theta.device)
        ends = torch.linspace(-1, 1, count, dtype=theta.dtype, device=theta.device)
        return ends if align_corners else ends * ((count - 1) / count)

    shape = (height, width)
    columns, rows = centers(width).expand(shape), centers(height).unsqueeze(-1).expand(shape)
    base = torch.stack([columns, rows, torch.ones_like(columns)], -1).view(1, height * width, 3)
    return base.expand(batch, -1, -1).bmm(theta.transpose(1, 2)).view(batch, height, width, 2)


def with_plain_bools(function):
    """Makes symbolic boolean arguments plain: `n > 1 and ...` leaves a symbolic boolean, although `and` decided its
    value."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        args = [bool(a) if type(a) in SYMBOOLS else a for a in args]
        return function(*args, **{k: bool(a) if type(a) in SYMBOOLS else a for k, a in kwargs.items()})

    return call


def check_with(error_type, cond, message):
    """The common function behind torch._check and its kin: a fact about a symbolic number, stated once."""
    if type(cond) not in SYMBOOLS:
        return _torch_check_with(error_type, cond, message)
    if not _C.expect(cond, message):
        _torch_check_with(error_type, False, message)


def check_tensor_all_with(error_type, cond, message=None):
    """torch._check_tensor_all(): without a message, the check becomes an assertion in place, and no number is read."""
    asserted = (
        error_type is RuntimeError and message is None and type(cond) is torch.Tensor and cond.dtype is torch.bool
    )
    if not asserted or torch._C._functorch.peek_interpreter_stack() is not None:
        return _torch_check_tensor_all_with(error_type, cond, message)
    torch._assert_async(cond.all(), _WORDS_OF_CHECK)


class _Paths:
    """opt_einsum, which chooses the order of operands in torch.einsum() by sizes. The sizes of this call are used
    without guards, because any order is right."""

    @staticmethod
    def contract_path(equation, *operands, optimize):
        return [_path_now(equation, [operand.shape for operand in operands], optimize)]


@_natively
def _path_now(equation, shapes, optimize):
    shapes = [tuple(_C.size_now(n) or 1 for n in shape) for shape in shapes]
    return _torch_get_opt_einsum().contract_path(equation, *shapes, shapes=True, optimize=optimize)[0]


def get_opt_einsum():
    return _Paths


def _in_place_of(owner, name, function):
    original = own(owner, name)
    _C._substitute(original, function)
    return original


_IN_C = getattr(torch._C, "_VariableFunctions", None)


@capability("torch.linspace() of sizes")
def _begin_linspace():
    global _torch_linspace
    _torch_linspace = _in_place_of(_IN_C, "linspace", linspace)


@capability("torch.tensor() of sizes")
def _begin_tensor():
    global _torch_tensor, _torch_as_tensor
    _torch_tensor = _in_place_of(_IN_C, "tensor", tensor)
    _torch_as_tensor = _in_place_of(_IN_C, "as_tensor", as_tensor)


@capability("torch.affine_grid_generator() of sizes")
def _begin_affine_grid_generator():
    global _torch_affine_grid_generator
    _torch_affine_grid_generator = _in_place_of(_IN_C, "affine_grid_generator", affine_grid_generator)


@capability("F.one_hot() for a given number of classes")
def _begin_one_hot():
    global _torch_one_hot
    _torch_one_hot = _in_place_of(attribute(torch._C, "_nn"), "one_hot", one_hot)


@capability("F.scaled_dot_product_attention() with decisions on sizes")
def _begin_attention():
    original = own(attribute(torch._C, "_nn"), "scaled_dot_product_attention")
    _C._substitute(original, with_plain_bools(original))


@capability("torch.broadcast_shapes() of sizes")
def _begin_broadcast_shapes():
    global _torch_broadcast_shapes
    _torch_broadcast_shapes = _in_place_of(torch.functional, "broadcast_shapes", broadcast_shapes)


@capability("torch._check() as a fact about sizes")
def _begin_check_with():
    global _torch_check_with
    _torch_check_with = _in_place_of(torch, "_check_with", check_with)


@capability("torch._check_tensor_all() without a look at data")
def _begin_check_tensor_all_with():
    global _torch_check_tensor_all_with, _WORDS_OF_CHECK
    original = own(torch, "_check_tensor_all_with")
    words = [c for c in own(torch, "_check_with").__code__.co_consts if type(c) is str]
    words = [text for text in words if text.startswith("Expected cond")]
    if not words:
        raise Missing("torch._check_with has no words of its own")
    _torch_check_tensor_all_with, _WORDS_OF_CHECK = original, words[0]
    _C._substitute(original, check_tensor_all_with)


@capability("the order of operands of torch.einsum()")
def _begin_opt_einsum():
    global _torch_get_opt_einsum
    _torch_get_opt_einsum = _in_place_of(torch.backends.opt_einsum, "get_opt_einsum", get_opt_einsum)
