"""What cannot work as it is on what stands in for tensors and sizes, replaced: for good, or while something is captured."""

import builtins
import functools
import gc
import logging
import math
import sys
import threading
import types
import warnings

import torch
import torch.nn.functional as F

from . import _C, _autograd, _control_flow, _equivalents, _forms, _wrappers  # noqa: F401  (in use from then on)

_lock = threading.Lock()
_depth = 0


def _new(self, *args, **kwargs):
    """Tensor.new: sizes give an uninitialized tensor, data gives a tensor of it, of self's dtype and device.

    torch's own looks for a backend by the dispatch key, which trace tensors do not have.
    """
    if not _C.is_capturing():
        return torch._C.TensorBase.new(self, *args, **kwargs)
    sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args or (0,)
    if self.layout is torch.sparse_coo:
        parts = args if any(isinstance(a, torch.Tensor) for a in args) else (sizes,)
        return torch.sparse_coo_tensor(*parts, dtype=self.dtype, device=self.device)
    if len(args) == 1 and not isinstance(args[0], (int, torch.SymInt, torch.Size)):
        return torch.tensor(args[0], dtype=self.dtype, device=self.device)
    return self.new_empty(sizes)


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **rest):
    """Tensor.new_tensor: torch's own looks for a backend, likewise."""
    if rest or not _C.is_capturing():
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
    """Tensor.tolist: under symbolic_numbers, of symbols."""
    numbers = _C.read_numbers(self) if _C.is_capturing() else None
    if numbers is None:
        return torch._C.TensorBase.tolist(self)
    return _nested(numbers, self.shape)


def _nested(numbers, shape):
    if not shape:
        return numbers[0]
    step = len(numbers) // max(shape[0], 1)
    return [_nested(numbers[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


class SymInt:
    """Its methods count as the machinery of symbolic numbers, by name."""

    def __hash__(self):
        """A symbolic number that is hashed is pinned to its value, whose hash it has."""
        return hash(int(self))

    def __format__(self, spec):
        """Likewise one that is formatted."""
        return format(int(self), spec)

    def __round__(self, ndigits=None):
        """torch's takes no digits."""
        return self if ndigits is None or (type(ndigits) is int and ndigits >= 0) else round(int(self), ndigits)

    def __abs__(self):
        """torch's asks for an operator of nodes that it does not have."""
        return torch.sym_max(self, -self)


torch.Tensor.new = _new
torch.Tensor.new_tensor = _new_tensor
torch.Tensor.tolist = _tolist
for _method in ("__hash__", "__format__", "__abs__", "__round__"):
    setattr(torch.SymInt, _method, SymInt.__dict__[_method])


def _bits(name):
    """An operator on bits, which nodes do not have: of the values, which it pins. Shifts by a number stay symbolic."""

    def bits(self, other):
        if not isinstance(other, (int, torch.SymInt)):
            return NotImplemented
        if name in ("__lshift__", "__rshift__") and type(other) is int and 0 <= other < 62:
            return self * 2**other if name == "__lshift__" else self // 2**other
        return getattr(int(self), name)(int(other))

    bits.__name__, bits.__qualname__ = name, f"SymInt.{name}"  # of the machinery of numbers, as its methods are
    return bits


for _name in ("and", "or", "xor", "lshift", "rshift"):
    setattr(torch.SymInt, f"__{_name}__", _bits(f"__{_name}__"))
    setattr(torch.SymInt, f"__r{_name}__", _bits(f"__r{_name}__"))


_RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
_REFLECTED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_WITH_REMAINDER = ("mod", "rmod", "floordiv", "rfloordiv")  # of floats: exact, which no expression is
_EXACT = (int, bool, torch.SymInt, torch.SymBool, torch.SymFloat)


def _without_end(name):
    """Arithmetic of ints: where an expression has no room for what comes of it, of the numbers themselves, which that pins."""
    symbolic = getattr(torch.SymInt, name)

    def exact(self, other):
        try:
            if type(other) not in _EXACT and isinstance(
                other, int
            ):  # of a class of its own, whose operators come first
                reflected = f"__{_REFLECTED.get(name[2:-2], name[3:-2] if name[2] == 'r' else 'r' + name[2:-2])}__"
                if getattr(type(other), reflected, None) is not getattr(int, reflected, None):
                    return NotImplemented
                other = int(other)
            if type(other) is torch.SymBool:
                other = int(bool(other))
            if type(other) is complex:
                return getattr(complex(int(self)), name, lambda _: NotImplemented)(other)
            if type(other) is float and name[2:-2] in _WITH_REMAINDER:
                return getattr(float(int(self)), name)(other)
            if type(other) is not int or -(2**63) <= other < 2**63:
                return symbolic(self, other)
        except OverflowError:
            if not isinstance(other, (int, torch.SymInt)):
                raise
        if name[2:-2] in _RELATIONS and self >= -(2**62) and self <= 2**62:  # beside such a number, all are alike
            return getattr(0, name)(other)
        return getattr(int(self), name)(int(other))

    exact.__name__, exact.__qualname__ = name, f"SymInt.{name}"
    return _C._number_operator(torch.SymInt, name, exact) or exact


for _name in ("add", "sub", "mul", "pow", "floordiv", "mod", "truediv"):
    setattr(torch.SymInt, f"__{_name}__", _without_end(f"__{_name}__"))
    setattr(torch.SymInt, f"__r{_name}__", _without_end(f"__r{_name}__"))
for _name in _RELATIONS:
    setattr(torch.SymInt, f"__{_name}__", _without_end(f"__{_name}__"))
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)
torch.SymInt.__divmod__ = lambda self, other: (
    (self // other, self % other) if isinstance(other, _NUMBERS) else NotImplemented
)
torch.SymInt.__rdivmod__ = lambda self, other: (
    (other // self, other % self) if isinstance(other, _NUMBERS) else NotImplemented
)
torch.SymInt.__pos__ = torch.SymInt.__trunc__ = torch.SymInt.__floor__ = torch.SymInt.__ceil__ = lambda self: self
torch.SymInt.__float__ = lambda self: float(int(self))
torch.SymInt.__invert__ = lambda self: -self - 1
torch.SymInt.real = torch.SymInt.numerator = property(lambda self: self)
torch.SymInt.imag = property(lambda self: 0)
torch.SymInt.denominator = property(lambda self: 1)
torch.SymInt.conjugate = lambda self: self
torch.SymFloat.real = property(lambda self: self)
torch.SymFloat.imag = property(lambda self: 0.0)
torch.SymFloat.conjugate = lambda self: self
torch.SymFloat.__pos__ = lambda self: self
torch.SymFloat.__abs__ = lambda self: torch.sym_max(self, -self) + 0.0  # 0.0 of -0.0
torch.SymFloat.__format__ = lambda self, spec: format(float(self), spec)
torch.SymBool.__index__ = lambda self: int(bool(self))


for _symbolic, _plain in ((torch.SymInt, int), (torch.SymFloat, float), (torch.SymBool, bool)):
    _C._show_as(_symbolic, _plain)


def _of_value(name, value):
    """A method that symbolic numbers do not have: of the value, which it pins."""

    def method(self, *args, **kwargs):
        return getattr(value(self), name)(*[value(a) if type(a) is type(self) else a for a in args], **kwargs)

    method.__name__, method.__qualname__ = name, f"Sym.{name}"
    return method


for _name in ("to_bytes", "as_integer_ratio", "bit_length", "bit_count"):
    setattr(torch.SymInt, _name, _of_value(_name, int))
for _name in ("to_bytes", "as_integer_ratio", "bit_length", "bit_count", "conjugate"):
    setattr(torch.SymBool, _name, _of_value(_name, bool))
for _name in ("real", "imag", "numerator", "denominator"):
    setattr(torch.SymBool, _name, property(lambda self, name=_name: getattr(bool(self), name)))
if hasattr(int, "is_integer"):  # from CPython 3.12 on
    torch.SymInt.is_integer = torch.SymBool.is_integer = lambda self: True
for _name in ("as_integer_ratio", "hex"):
    setattr(torch.SymFloat, _name, _of_value(_name, lambda self: self.node.guard_float("", 0)))
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod", "lshift", "rshift", "and", "or", "xor")
_UNARY = ("neg", "pos", "abs", "invert", "int", "float", "round", "trunc", "floor", "ceil")
for _name in (*_BINARY, *[f"r{name}" for name in _BINARY], *_UNARY, *_RELATIONS):  # what a bool can do as a number
    _name = f"__{_name}__"
    if getattr(torch.SymBool, _name, None) is getattr(object, _name, None):
        setattr(torch.SymBool, _name, _of_value(_name, bool))
_power = torch.SymInt.__pow__


def _power_modulo(self, other, modulus=None):
    return _power(self, other) if modulus is None else pow(int(self), int(other), int(modulus))


_power_modulo.__name__, _power_modulo.__qualname__ = "__pow__", "SymInt.__pow__"
torch.SymInt.__pow__ = _power_modulo

_range = builtins.range


class _RangeType(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _range)

    def __subclasscheck__(cls, other):
        return other is cls or issubclass(other, _range)


class _Range(metaclass=_RangeType):
    """range(): an end that is a symbolic size is not pinned, only how many steps there are: range(0, n, 128) is the same
    loop for every n from 1 to 128. Gives a true range, whose ``stop`` may lie behind the one that was asked for."""

    def __new__(cls, *args):
        if len(args) > 3 or not any(type(a) is torch.SymInt for a in args):
            return _range(*args)
        start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        step = int(step)
        if step == 0 or not (stop > start if step > 0 else stop < start):
            return _range(0, 0, step)
        start = int(start)
        steps = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
        return _range(start, start + int(steps) * step, step)


_Range.__name__ = _Range.__qualname__ = "range"


class RangeIterator:
    """An iterator over a range that stands at a symbolic place: one piece serves every round of a loop."""

    def __init__(self, over, index):
        self.range, self.index = over, index

    def __iter__(self):
        return self

    def __next__(self):
        index = self.index
        if index >= len(self.range):
            raise StopIteration
        self.index = index + 1
        return self.range.start + index * self.range.step

    def __reduce__(self):
        return iter, (self.range,), self.index


def _moved_on(iterator, taken):
    for _ in range(taken):
        next(iterator)
    return iterator


# How iterators of a dictionary's views are made anew over a break; `left`, what they still have, is for guards alone.
def _iterator_over_keys(dictionary, taken, left):
    return _moved_on(iter(dictionary), taken)


def _iterator_over_values(dictionary, taken, left):
    return _moved_on(iter(dictionary.values()), taken)


def _iterator_over_items(dictionary, taken, left):
    return _moved_on(iter(dictionary.items()), taken)


def _symbolic(values):
    """Whether these are integers of which one is a symbolic size."""
    kinds = {type(v) for v in values}
    return torch.SymInt in kinds and kinds <= {int, torch.SymInt}


def _extremum(builtin, symbolic):
    """min() or max(): of sizes it is an expression, where comparing them would be a decision."""

    def extremum(*args, **kwargs):
        values = args[0] if len(args) == 1 and type(args[0]) in (tuple, list, torch.Size) else args
        if kwargs or (len(args) == 1 and values is args) or not _symbolic(values):
            return builtin(*args, **kwargs)
        out = values[0]
        for value in values[1:]:
            out = symbolic(out, value)
        return out

    extremum.__name__ = extremum.__qualname__ = builtin.__name__
    return extremum


def _select_symbols(tensor, key):
    """The view that the symbolic integers of an index select, and what is left of the index; None for other indices.

    torch's own indexing asks for their values, though it selects in the same way, and first.
    """
    key = key if type(key) is tuple else (key,)
    for k in key:
        if type(k) is torch.Tensor and k.dtype not in (torch.bool, torch.uint8):
            continue
        if k is not None and k is not Ellipsis and type(k) not in (int, torch.SymInt, slice):
            return None
    fixed = sum(k is not None and k is not Ellipsis for k in key)
    if fixed > tensor.dim() or sum(k is Ellipsis for k in key) > 1:
        return None
    missing, dim, left = tensor.dim() - fixed, 0, []  # left: what tensors among the indices ask for
    for k in key:
        if type(k) in (int, torch.SymInt):
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
    """tensor[key], with a symbolic integer among the indices; NotImplemented when it is torch's to do."""
    try:
        found = _select_symbols(tensor, key)
    except IndexError:  # torch's message is another one
        found = None
    return NotImplemented if found is None else found[0][found[1]] if found[1] else found[0]


def set_item(tensor, key, value):
    """tensor[key] = value, likewise."""
    try:
        found = _select_symbols(tensor, key)
    except IndexError:
        found = None
    if found is None:
        return NotImplemented
    found[0][found[1] or ...] = value


def _of_sizes(number):
    return type(number) in (torch.SymInt, torch.SymFloat)


def _linspace(start, end, steps, *, out=None, dtype=None, device=None, **rest):
    """torch.linspace(): the number of steps may be a size, and so may the ends; computed from both ends, as eager does."""
    kind = torch.get_default_dtype() if dtype is None else dtype
    plain = not any(_of_sizes(n) for n in (start, end, steps)) or kind not in (torch.float32, torch.float64)
    if plain or out is not None or rest or any(type(n) is torch.Tensor for n in (start, end)) or steps < 0:
        given = {"out": out, "dtype": dtype, "device": device, **rest}
        return _torch_linspace(start, end, steps, **{k: v for k, v in given.items() if v is not None})
    place = torch.arange(steps, dtype=kind, device=device)
    first, last = torch.full((), start, dtype=kind, device=device), torch.full((), end, dtype=kind, device=device)
    step = (last - first) / torch.sym_max(steps - 1, 1)
    near_first = place < torch.sym_max(steps // 2, 1)
    return torch.where(near_first, first + step * place, last - step * (steps - 1 - place))


def _numbers_in(data, most=64):
    """The numbers in nested lists, if there are few and nothing else; None otherwise."""
    if type(data) in (list, tuple, torch.Size):
        out = []
        for item in data:
            more = _numbers_in(item, most)
            if more is None or len(out) + len(more) > most:
                return None
            out += more
        return out
    return [data] if type(data) in (int, float, torch.SymInt, torch.SymFloat) else None


def _without_bools(data):
    """Nested lists with True and False for symbolic ones, for which torch has no dtype."""
    if type(data) in (list, tuple) and any(type(item) in (list, tuple, torch.SymBool) for item in data):
        return [bool(item) if type(item) is torch.SymBool else _without_bools(item) for item in data]
    return data


def _tensor(data, *, dtype=None, device=None, **rest):
    """torch.tensor() of sizes, which stay symbolic."""
    data = bool(data) if type(data) is torch.SymBool else _without_bools(data)
    numbers = None if any(rest.values()) else _numbers_in(data)
    if numbers is None or not any(_of_sizes(n) for n in numbers):
        return _torch_tensor(data, dtype=dtype, device=device, **rest)
    if dtype is None:
        whole = all(type(n) in (int, torch.SymInt) for n in numbers)
        dtype = torch.int64 if whole else torch.get_default_dtype()

    def made(data):
        if type(data) in (list, tuple, torch.Size):
            return torch.stack([made(item) for item in data])
        return torch.full((), data, dtype=dtype, device=device)

    return made(data)


def _as_tensor(data, dtype=None, device=None):
    """torch.as_tensor() of sizes, which it copies."""
    of_sizes = any(_of_sizes(n) for n in _numbers_in(data) or ())
    return (_tensor if of_sizes else _torch_as_tensor)(data, dtype=dtype, device=device)


def _broadcast_shapes(*shapes):
    """torch.broadcast_shapes(): a size beside a plain 1 is not asked for."""
    rows = [(shape,) if type(shape) in (int, torch.SymInt) else tuple(shape) for shape in shapes]
    if not any(type(n) is torch.SymInt for row in rows for n in row):
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
                return _torch_broadcast_shapes(*shapes)  # which raises
        out.insert(0, size)
    return torch.Size(out)


def _one_hot(tensor, num_classes=-1):
    """F.one_hot() for a given number of classes: torch's looks at the data; here what it would say is asserted."""
    in_transform = torch._C._functorch.peek_interpreter_stack() is not None  # which torch has a way of its own for
    if in_transform or type(num_classes) not in (int, torch.SymInt) or num_classes < 1:
        return _torch_one_hot(tensor, num_classes)
    if tensor.dtype is not torch.int64:
        return _torch_one_hot(tensor, num_classes)
    torch._assert_async(tensor.ge(0).all(), "Class values must be non-negative.")
    torch._assert_async(tensor.lt(num_classes).all(), "Class values must be smaller than num_classes.")
    return tensor.unsqueeze(-1).eq(torch.arange(num_classes, device=tensor.device)).to(torch.int64)


def _affine_grid_generator(theta, size, align_corners):
    """torch.affine_grid_generator() of images, of any size."""
    symbolic = len(size) == 4 and any(type(n) is torch.SymInt for n in size)
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


_torch_one_hot, _torch_affine_grid_generator = F.one_hot, torch.affine_grid_generator
_torch_as_tensor = torch.as_tensor
_torch_linspace, _torch_tensor, _torch_broadcast_shapes = torch.linspace, torch.tensor, torch.broadcast_shapes


def product(numbers):
    out = 1
    for n in numbers:
        out = out * n
    return out


def is_contiguous(tensor, memory_format=torch.contiguous_format):
    """Tensor.is_contiguous() for the sizes of this call: with guards, where sizes in general have another answer."""
    if torch._C.TensorBase.is_contiguous(tensor, memory_format=memory_format):
        return True
    sizes, strides, rank = tensor.shape, tensor.stride(), tensor.dim()
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
    """Tensor.stride(): a dimension of size 1 may have any, which is read from memory where that is not laid out by the
    program; programs for other sizes are guarded to be that."""
    if any(n < 2 for n in tensor.shape) and not _C.lays_out(tensor):
        tensor.data_ptr()
    return torch._C.TensorBase.stride(tensor, *args, **kwargs)


def place_of_warning(message, category=None, stacklevel=1, source=None):
    """What warnings.warn_explicit needs to repeat this warning of the function that calls: (registry, ...)."""
    frame = sys._getframe(1)
    while stacklevel > 1 and frame is not None:
        frame, stacklevel = frame.f_back, stacklevel - 1
    names = frame.f_globals if frame is not None else sys.__dict__
    if isinstance(message, Warning):
        message, category = str(message), type(message)
    line, file = (frame.f_lineno, frame.f_code.co_filename) if frame is not None else (1, "sys")
    registry = names.setdefault("__warningregistry__", {})
    return registry, str(message), category or UserWarning, file, line, names.get("__name__", "<string>")


def warn_again(registry, message, category, filename, lineno, module):
    warnings.warn_explicit(message, category, filename, lineno, module, registry)


def _with_plain_bools(function):
    """`n > 1 and ...` leaves a symbolic boolean where a plain one is asked for; its value was decided by `and`."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        args = [bool(a) if type(a) is torch.SymBool else a for a in args]
        return function(*args, **{k: bool(a) if type(a) is torch.SymBool else a for k, a in kwargs.items()})

    return call


def _check_with(error_type, cond, message):
    """What torch._check and its kin come to: a fact about a symbolic number, stated once."""
    if type(cond) is not torch.SymBool:
        return _torch_check_with(error_type, cond, message)
    if not _C.expect(cond, message):
        _torch_check_with(error_type, False, message)


_torch_check_with = torch._check_with


def _trunc(self):
    """math.trunc() and int() of a float made of sizes."""
    return math.floor(self) if self >= 0 else math.ceil(self)


def _plain(self):
    """The number, which is pinned by that: float() of a symbolic float is itself."""
    return self.node.guard_float("", 0)


def _rounding(name):
    symbolic = getattr(torch.SymFloat, name)

    def rounded(self):
        try:
            return symbolic(self)
        except OverflowError:  # beyond 64 bits: Python's integers have no end, and its errors say what it is instead
            return getattr(_plain(self), name)()

    rounded.__name__, rounded.__qualname__ = name, f"SymFloat.{name}"
    return rounded


def _round(self, ndigits=None):
    return round(_plain(self), ndigits)


def _with_complex(name):
    symbolic = getattr(torch.SymFloat, name)

    def exact(self, other):
        if type(other) is complex:
            return getattr(complex(_plain(self)), name)(other)
        is_power = name in ("__pow__", "__rpow__") and not isinstance(other, torch.Tensor)
        if is_power and (self if name == "__pow__" else other) < 0:  # which may give a complex number
            return getattr(_plain(self), name)(_C.plain(other))
        try:
            return symbolic(self, other)
        except OverflowError:
            return getattr(_plain(self), name)(_C.plain(other))  # which says so in Python's words

    exact.__name__, exact.__qualname__ = name, f"SymFloat.{name}"
    return exact


def _with_remainder(name):
    """Likewise of floats; by a power of two, floor division stays symbolic."""
    symbolic = getattr(torch.SymFloat, name, None)

    def exact(self, other):
        if name == "__floordiv__" and type(other) is int and other > 0 and other & (other - 1) == 0:
            return symbolic(self, other)
        return getattr(_plain(self), name)(_C.plain(other))

    exact.__name__, exact.__qualname__ = name, f"SymFloat.{name}"
    return exact


for _name in (*_WITH_REMAINDER, "divmod", "rdivmod"):
    setattr(torch.SymFloat, f"__{_name}__", _with_remainder(f"__{_name}__"))
for _name in ("add", "sub", "mul", "truediv", "pow"):
    for _side in ("", "r"):
        if hasattr(torch.SymFloat, f"__{_side}{_name}__"):
            setattr(torch.SymFloat, f"__{_side}{_name}__", _with_complex(f"__{_side}{_name}__"))
for _name in _RELATIONS:
    setattr(torch.SymFloat, f"__{_name}__", _with_complex(f"__{_name}__"))


def _log(self, level, msg, args, exc_info=None, extra=None, stack_info=False, stacklevel=1):
    """Logger._log: who called is found now, the rest is done between two pieces."""
    if exc_info and isinstance(exc_info, BaseException):
        exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
    elif exc_info and not isinstance(exc_info, tuple):
        exc_info = sys.exc_info()
    place = _place_of_log(self, stack_info, stacklevel)
    _log_from(self, level, msg, args, exc_info, extra, place)


def _place_of_log(self, stack_info, stacklevel):
    return self.findCaller(stack_info, stacklevel + 2)  # past these two functions


def _log_from(self, level, msg, args, exc_info, extra, place):
    file, line, function, stack = place
    self.handle(self.makeRecord(self.name, level, file, line, msg, args, exc_info, function, extra, stack))


_place_of_log._cresset_native = (_place_of_log.__code__, None)
_log_from._cresset_native = (_log_from.__code__, "a call of a logger")


def _of_gc(name, wanted=None):
    """gc.isenabled() and its kin: while something is captured, collection rests, whatever the program wants."""

    def asked():
        return _C._collects(wanted)

    asked._cresset_native = (asked.__code__, f"a call of gc.{name}")
    return asked


def _operators_of_control_flow():
    """Where torch's operators of control flow stand. Called by other names, they run for real, between two pieces."""
    from torch._higher_order_ops import cond as conds
    from torch._higher_order_ops import while_loop as loops

    rows = []
    for name, module, replacement in [
        ("cond", conds, _control_flow.cond),
        ("while_loop", loops, _control_flow.while_loop),
        ("associative_scan", _control_flow._torch_associative_scan, _control_flow.associative_scan),
    ]:
        original = getattr(module, name, None)
        if original is None:  # the package gives the function, not the module of that name
            original = module
        if not isinstance(original, types.FunctionType):
            continue
        original._cresset_native = (original.__code__, f"a call of torch.{name} by another name")
        for where in (torch, torch._higher_order_ops, sys.modules[f"torch._higher_order_ops.{name}"]):
            if getattr(where, name, None) is original:
                rows.append((where, name, replacement))
    return rows


def _done_natively():
    """Functions of torch that are effects as a whole, or compilers of their own: done between two pieces."""
    random = "it seeds torch's random numbers, or asks for their state"
    rows = [(torch.random, name, random) for name in ("manual_seed", "seed", "initial_seed", "get_rng_state")]
    rows.append((torch.random, "set_rng_state", random))
    modes = "it changes a mode of torch's"
    rows += [(torch, name, modes) for name in ("set_default_dtype", "use_deterministic_algorithms")]
    rows.append((torch.func, "linearize", "it traces a function"))
    for module, name, why in rows:
        function = getattr(module, name, None)
        if isinstance(function, types.FunctionType):
            function._cresset_native = (function.__code__, f"a call of {module.__name__}.{name}: {why}")


_done_natively()
# torch's own decorator, for torch.compile's sake: what it wraps is called.
_wrapper = torch._disable_dynamo(lambda: None)
_C._see_through_wrappers(_wrapper.__code__, _wrapper.__code__.co_freevars.index("fn"))


def _in_stores(self, name):
    """torch.nn.Module.__getattr__ as it is known here."""
    if "_parameters" in self.__dict__:
        _parameters = self.__dict__["_parameters"]
        if name in _parameters:
            return _parameters[name]
    if "_buffers" in self.__dict__:
        _buffers = self.__dict__["_buffers"]
        if name in _buffers:
            return _buffers[name]
    if "_modules" in self.__dict__:
        modules = self.__dict__["_modules"]
        if name in modules:
            return modules[name]
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _does(function):
    """What a function does, as far as its code says. Its first constant is its documentation."""
    code = function.__code__
    return code.co_code, code.co_names, code.co_varnames, code.co_argcount, code.co_consts[1:]


if isinstance(torch.nn.Module.__getattr__, types.FunctionType) and _does(torch.nn.Module.__getattr__) == _does(
    _in_stores
):
    _C._looks_in_stores(torch.nn.Module.__getattr__.__code__, ("_parameters", "_buffers", "_modules"))

# (where, name, what stands there while capturing)
_REPLACED = [
    (builtins, "range", _Range),
    (builtins, "min", _extremum(builtins.min, torch.sym_min)),
    (builtins, "max", _extremum(builtins.max, torch.sym_max)),
    (logging.Logger, "_log", _log),
    (gc, "isenabled", _of_gc("isenabled")),
    (gc, "enable", _of_gc("enable", True)),
    (gc, "disable", _of_gc("disable", False)),
    (torch.SymInt, "__name__", "int"),  # which is what messages of C code say
    (torch.SymFloat, "__name__", "float"),
    (torch.SymBool, "__name__", "bool"),
    (torch, "_check_with", _check_with),
    (torch, "linspace", _linspace),
    (torch, "tensor", _tensor),
    (torch, "as_tensor", _as_tensor),
    (torch, "affine_grid_generator", _affine_grid_generator),
    (F, "one_hot", _one_hot),
    (torch, "broadcast_shapes", _broadcast_shapes),
    (torch.functional, "broadcast_shapes", _broadcast_shapes),
    (F, "scaled_dot_product_attention", _with_plain_bools(F.scaled_dot_product_attention)),
]
for _name in ("__int__", "__floor__", "__ceil__"):
    _REPLACED.append((torch.SymFloat, _name, _rounding(_name)))
for _name, _method in [
    ("__str__", lambda f: str(_plain(f))),
    ("__repr__", lambda f: repr(_plain(f))),
    ("__trunc__", _trunc),
    ("__round__", _round),
    ("is_integer", lambda f: _plain(f).is_integer()),
]:
    if hasattr(torch.SymFloat, _name):
        _REPLACED.append((torch.SymFloat, _name, _method))
for _name in ("__str__", "__repr__", "__format__", "__hash__"):
    _REPLACED.append((torch.SymBool, _name, _of_value(_name, bool)))
# vmap's, behind a lock: cached, it is done once and is no part of any program.
_vmap = sys.modules["torch._functorch.vmap"]
_loading = functools.lru_cache(None)(_vmap.lazy_load_decompositions)
_REPLACED.append((_vmap, "lazy_load_decompositions", _loading))
_REPLACED += _operators_of_control_flow()
_REPLACED += _autograd.rows()
_originals = [getattr(where, name) for where, name, _ in _REPLACED]
_C._set_originals(
    [
        (replacement, original)
        for (where, _, replacement), original in zip(_REPLACED, _originals)
        if isinstance(where, types.ModuleType)
    ]
)


def install():
    """Installs the replacements; the returned function takes them away again."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            for where, name, replacement in _REPLACED:
                setattr(where, name, replacement)
    return _remove


def _remove():
    global _depth
    with _lock:
        _depth -= 1
        if _depth == 0:
            for (where, name, _), original in zip(_REPLACED, _originals):
                setattr(where, name, original)
