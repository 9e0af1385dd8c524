# size: table
"""Programs with tensor subclasses, modes, and attributes of tensors. Rows as in programs_transforms."""

from __future__ import annotations

import torch
import torch.utils._pytree as pytree
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from programs.transforms import mlp, ramp, table, world

ROWS, row = table()


# ------------------------------------------------------------------------------------------------- __torch_function__


class Named(torch.Tensor):
    """A tensor with a name, which results inherit."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, Named):
            names = [a.label for a in args if isinstance(a, Named) and hasattr(a, "label")]
            out.label = "+".join(names) or "?"
        return out


def named(t, name):
    out = t.as_subclass(Named)
    out.label = name
    return out


@row
def subclass_with_an_attribute(w, x):
    y = named(x, "x") * 2 + named(x, "y")
    return type(y).__name__, y.label, torch.Tensor(y).as_subclass(torch.Tensor)


@row(make=lambda: world(bias=named(ramp(4), "bias")))
def subclass_in_state(w, x):
    y = x + w.bias
    return y.label, y.as_subclass(torch.Tensor)


@row(inputs=lambda: [named(ramp(3, 4) + i, f"x{i % 2}") for i in range(4)])
def subclass_as_argument(w, x):
    y = x.sum(0)
    w.log.append(y.label)
    return y.as_subclass(torch.Tensor), x.label


LOG = []


class Logging(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(getattr(func, "__name__", "?"))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


@row
def subclass_that_logs(w, x):
    LOG.clear()
    y = x.as_subclass(Logging)
    z = torch.relu(y + 1).mean()
    w.log.append(list(LOG))
    return z


class Metre:
    """A number with a unit: no tensor, but with __torch_function__."""

    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        units = {a.unit for a in args if isinstance(a, cls)}
        if func is torch.add and len(units) > 1:
            raise TypeError(f"units differ: {sorted(units)}")
        plain = [a.value if isinstance(a, cls) else a for a in args]
        return cls(func(*plain, **(kwargs or {})), "*".join(sorted(units)))


@row
def units_that_are_checked(w, x):
    a = torch.add(Metre(x, "m"), Metre(x, "m"))
    b = torch.mul(a, 2)
    return b.value, b.unit


@row
def units_that_do_not_match(w, x):
    w.log.append(1)
    return torch.add(Metre(x, "m"), Metre(x, "s"))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(ramp(4).as_subclass(Named))
        self.gate.label = "gate"
        self.inner = mlp()

    def forward(self, x):
        return self.inner(x * self.gate)


@row(make=lambda: world(net=Gated()))
def subclass_as_a_parameter(w, x):
    with torch.no_grad():
        y = w.net(x)
        return type(y).__name__, y.as_subclass(torch.Tensor)


class Masked(torch.Tensor):
    """A tensor with its own functions for some operators, as a table."""

    handled = {}

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in cls.handled:
            return cls.handled[func](*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


def implements(function):
    def register(f):
        Masked.handled[function] = f
        return f

    return register


@implements(torch.sum)
def masked_sum(x, *args, **kwargs):
    plain = x.as_subclass(torch.Tensor)
    return torch.where(plain > 0, plain, 0).sum()


@row
def subclass_with_a_table(w, x):
    y = x.as_subclass(Masked)
    return torch.sum(y), (y * 2).as_subclass(torch.Tensor)


# ------------------------------------------------------------------------------------------------- __torch_dispatch__


class Two(torch.Tensor):
    """A wrapper of two tensors; each operator runs twice."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.shape, dtype=a.dtype, strides=a.stride(), requires_grad=a.requires_grad
        )

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __repr__(self):
        return f"Two({self.a}, {self.b})"

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Two(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}

        def pick(name):
            return pytree.tree_map_only(Two, lambda t: getattr(t, name), (args, kwargs))

        first_args, first_kwargs = pick("a")
        second_args, second_kwargs = pick("b")
        first, second = func(*first_args, **first_kwargs), func(*second_args, **second_kwargs)
        if not isinstance(first, torch.Tensor):
            return first
        return Two(first, second)


@row
def wrapper_of_two(w, x):
    y = Two(x, x * 2)
    z = (y + 1).relu() * y
    return z.a, z.b


@row(inputs=lambda: [Two(ramp(n, 4), ramp(n, 4) * 2) for n in (3, 3, 5)])
def wrapper_as_argument(w, x):
    y = x * 2
    return y.a + y.b


@row(make=lambda: world(pair=Two(ramp(4), -ramp(4))))
def wrapper_in_state(w, x):
    w.pair = w.pair + x[0]
    return w.pair.a, w.pair.b


class Dispatched(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@row
def dispatch_mode_inside(w, x):
    with Dispatched() as mode:
        y = torch.softmax(x, -1) * 2
    return mode.seen, y


class Flops(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.mm.default:
            return func(*args, **(kwargs or {})) * 2
        return func(*args, **(kwargs or {}))


@row
def dispatch_mode_that_changes_results(w, x):
    with Flops():
        y = x @ x.t()
    return y, x @ x.t()


class Functions(TorchFunctionMode):
    def __init__(self, log):
        super().__init__()
        self.log = log

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


@row
def function_mode_inside(w, x):
    with Functions(w.log):
        y = torch.sin(x) + torch.ones(4, dtype=x.dtype)
        z = y.mean()
    return z


class Replaced(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.sin:
            func = torch.cos
        return func(*args, **(kwargs or {}))


@row
def function_mode_that_replaces(w, x):
    a = torch.sin(x)
    with Replaced(), Functions(w.log):
        b = torch.sin(x)
    return a - b


@row
def default_device_as_a_mode(w, x):
    with torch.device("meta"):
        shape = torch.empty(3, 4).device.type
    with torch.device("cpu"):
        y = torch.zeros(4, dtype=x.dtype)
    return shape, x + y


@row
def questions_of_overrides(w, x):
    y = x.as_subclass(Named)
    return (
        torch.overrides.has_torch_function((x,)),
        torch.overrides.has_torch_function_unary(y),
        torch.overrides.is_tensor_like(y),
        torch.overrides.is_tensor_method_or_property(torch.Tensor.add),
        x + 1,
    )


# ----------------------------------------------------------------------------------------- attributes of tensors


@row
def subclass_as_a_result(w, x):
    y = named(x * 2, "y")
    w.kept = y
    return y, y + 1, [y]


@row
def attributes_of_a_result(w, x):
    y = x * 2
    y.tag = "t"
    y.more = [y.sum(), 3]
    return y, y.tag


def tagged(t, tag):
    t.tag = tag
    return t


@row(inputs=lambda: [tagged(ramp(3, 4), 1), tagged(ramp(3, 4), 1), tagged(ramp(3, 4), 5), ramp(3, 4)])
def attribute_of_an_argument(w, x):
    return x * getattr(x, "tag", 100)


@row
def attribute_that_an_argument_is_given(w, x):
    x.tag = x.shape[0]
    x.sum_of_it = x.sum()
    return x * x.tag


@row(make=lambda: world(weight=tagged(ramp(4), 2)), between=lambda w, i: setattr(w.weight, "tag", i))
def attribute_of_a_tensor_in_state(w, x):
    return x * w.weight * w.weight.tag


@row
def parameter_that_is_made(w, x):
    p = nn.Parameter(x * 2, requires_grad=False)
    return type(p).__name__, p, isinstance(p, nn.Parameter)


@row
def module_that_is_made(w, x):
    with torch.no_grad():
        net = nn.Linear(4, 2, dtype=x.dtype)
        net.weight.fill_(0.5)
        net.bias.zero_()
        return net(x)
