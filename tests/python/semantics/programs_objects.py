# size: table
"""Programs with tensor subclasses, modes, distributions, arrays, context managers and classes of the user's own. Rows as in
programs_transforms."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import typing

import numpy as np
import torch
import torch.distributions as D
import torch.utils._pytree as pytree
from programs_transforms import mlp, ramp, seeded, table, world
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import cresset

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
    """No tensor, but it takes part: a number with a unit."""

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
    """Functions of its own for some operators, as a table."""

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
    """A wrapper of two tensors, on which each operator is done twice."""

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


# ------------------------------------------------------------------------------------------------- distributions


@row
def normal_log_prob(w, x):
    d = D.Normal(x.mean(), x.std() + 1)
    return d.log_prob(x), d.entropy(), d.mean, d.variance


@row
def normal_sample_with_a_seed(w, x):
    torch.manual_seed(1)
    d = D.Normal(x, x.abs() + 0.1)
    return d.sample(), d.rsample((2,)), d.sample(torch.Size([1])).shape


@row
def categorical(w, x):
    torch.manual_seed(1)
    d = D.Categorical(logits=x)
    action = d.sample()
    return action, d.log_prob(action), d.entropy(), d.probs


@row
def normal_whose_scale_is_wrong(w, x):
    return D.Normal(torch.zeros(4, dtype=x.dtype), x[0]).log_prob(x)


@row
def value_outside_the_support(w, x):
    return D.Uniform(0.0, 1.0).log_prob(x)


@row
def kl_divergences(w, x):
    p, q = D.Normal(x, 1.0), D.Normal(0.0, x.abs() + 1)
    a, b = D.Categorical(logits=x), D.Categorical(logits=-x)
    return D.kl_divergence(p, q), D.kl_divergence(a, b), D.kl.kl_divergence(D.Bernoulli(logits=x), D.Bernoulli(0.5))


@row
def no_divergence_is_known(w, x):
    return D.kl_divergence(D.Normal(x, 1.0), D.Categorical(logits=x))


@row
def multivariate_normal(w, x):
    cov = x.t() @ x + torch.eye(4, dtype=x.dtype)
    d = D.MultivariateNormal(x.mean(0), covariance_matrix=cov)
    return d.log_prob(x), d.entropy(), d.scale_tril


@row
def independent(w, x):
    d = D.Independent(D.Normal(x, 1.0), 1)
    return d.log_prob(x + 1), d.batch_shape, d.event_shape


@row
def transformed(w, x):
    base = D.Normal(torch.zeros(4, dtype=x.dtype), 1.0)
    d = D.TransformedDistribution(base, [D.AffineTransform(1.0, 2.0), D.TanhTransform()])
    return d.log_prob(x.tanh() * 0.9), D.LogNormal(x, 1.0).log_prob(x.exp())


@row
def mixture(w, x):
    mix = D.Categorical(logits=torch.ones(4, dtype=x.dtype))
    d = D.MixtureSameFamily(mix, D.Normal(x, 1.0))
    return d.log_prob(torch.zeros(x.shape[0], dtype=x.dtype)), d.mean


@row
def distribution_without_checks(w, x):
    d = D.Normal(x, x, validate_args=False)
    return d.log_prob(x)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = mlp()
        self.log_std = nn.Parameter(torch.zeros(2, dtype=torch.float64))

    def forward(self, x):
        return D.Normal(self.body(x), self.log_std.exp())


@row(make=lambda: world(net=Policy()))
def policy_that_returns_a_distribution(w, x):
    with torch.no_grad():
        d = w.net(x)
        a = d.mean + d.stddev
        return a, d.log_prob(a).sum(-1)


@row
def distribution_as_a_result(w, x):
    d = D.Normal(x, 1.0)
    return d, d.loc


@row
def bernoulli_and_beta(w, x):
    torch.manual_seed(2)
    return (
        D.Bernoulli(probs=x.sigmoid()).sample(),
        D.Beta(2.0, 3.0).log_prob(x.sigmoid()),
        D.Dirichlet(torch.ones(4, dtype=x.dtype)).log_prob(x.softmax(-1)),
    )


# ------------------------------------------------------------------------------------------------- numpy


@row
def to_numpy_and_back(w, x):
    a = (x * 2).numpy()
    return torch.from_numpy(a) + 1


@row
def numpy_function_on_a_tensor(w, x):
    return np.sin(x), np.asarray(x).sum()


@row
def numpy_shares_memory(w, x):
    y = x + 1
    a = y.numpy()
    a[0] = 7
    y.mul_(2)
    return y, a.sum(), np.shares_memory(a, y.numpy())


@row
def numpy_writes_into_the_argument(w, x):
    x.numpy()[0, 0] = 3
    return x * 2


@row(make=lambda: world(table=np.arange(4.0)))
def array_in_state(w, x):
    w.table += 1
    return x * torch.from_numpy(w.table)


@row(inputs=lambda: [np.arange(4.0), np.arange(4.0) + 1, np.arange(6.0), np.float64(3.0)])
def array_as_argument(w, x):
    return torch.as_tensor(x) * 2, np.cumsum(x)


@row
def mixed_expressions(w, x):
    a = x.sum().item() + np.float32(2)
    b = x * np.float64(0.5)
    return type(a).__name__, float(a), b, x + np.int64(3)


@row
def dtype_promotion_with_arrays(w, x):
    i = np.arange(4, dtype=np.int32)
    t = torch.from_numpy(i)
    return t + x, t * 2, (t / 2).dtype, torch.tensor(np.ones(2, dtype=np.float32))


@row
def array_as_a_result(w, x):
    return x.cos().detach().numpy(), x.shape[0]


@row
def numpy_random_with_a_seed(w, x):
    rng = np.random.default_rng(0)
    noise = torch.from_numpy(rng.standard_normal(x.shape))
    return x + noise


@row
def numpy_does_the_control_flow(w, x):
    a = x.numpy()
    if np.any(a > 1):
        return x - 1
    return torch.tensor(a.max())


SCALES = np.array([1.0, 2.0, 3.0, 4.0])


@row
def array_of_the_module(w, x):
    return x * torch.as_tensor(SCALES), x * float(SCALES[1]), x + SCALES.shape[0]


# ------------------------------------------------------------------------------------------------- contexts


class Entered:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append("out" if kind is None else kind.__name__)
        return self.swallow


@row
def context_of_a_class(w, x):
    with Entered(w.log) as e:
        e.log.append("body")
        y = x * 2
    return y


@row
def context_that_swallows(w, x):
    y = x
    with Entered(w.log, swallow=True):
        y = x * 2
        if x.shape[0] != 5:
            raise KeyError("gone")
        y = y + 1
    return y


@row
def context_with_a_break_inside(w, x):
    with Entered(w.log):
        y = x * 2
        if y.sum() > 0:
            w.log.append("positive")
        return y + 1


@contextlib.contextmanager
def scaled(log, by):
    log.append("begin")
    try:
        yield by * 2
    except ValueError as e:
        log.append(str(e))
    finally:
        log.append("end")


@row
def context_of_a_generator(w, x):
    with scaled(w.log, 2) as n:
        y = x * n
    return y


@row
def context_of_a_generator_that_catches(w, x):
    y = x
    with scaled(w.log, 2):
        y = x + 1
        raise ValueError("caught")
    return y


@row
def context_of_a_generator_with_a_break(w, x):
    with scaled(w.log, 3) as n:
        y = x * n
        if y.sum() > 0:
            y = y + 1
    return y * 2


@row
def stack_of_contexts(w, x):
    with contextlib.ExitStack() as stack:
        n = stack.enter_context(scaled(w.log, 1))
        stack.callback(w.log.append, "callback")
        stack.enter_context(Entered(w.log))
        y = x * n
    with contextlib.nullcontext(3) as k, contextlib.suppress(ZeroDivisionError):
        y = y * k
        k // 0
    return y


class Decorating(contextlib.ContextDecorator):
    def __enter__(self):
        LOG.append("in")

    def __exit__(self, *exc):
        LOG.append("out")


@Decorating()
def decorated(x):
    return x * 3


@row
def context_as_a_decorator(w, x):
    LOG.clear()
    y = decorated(x)
    w.log.append(list(LOG))
    return y


@row
def autocast_region(w, x):
    x = x.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
        with torch.autocast("cpu", enabled=False):
            z = x @ x.t()
    return y.dtype, z.dtype, y.float().sum() * 0, z


@torch.autocast("cpu", dtype=torch.bfloat16)
def in_low_precision(x):
    return torch.nn.functional.linear(x, x)


@row
def autocast_as_a_decorator(w, x):
    y = in_low_precision(x.float())
    return y.dtype, torch.is_autocast_enabled("cpu"), y.shape


@row
def fork_of_the_generator(w, x):
    torch.manual_seed(1)
    a = torch.rand(4, dtype=x.dtype)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        b = torch.rand(4, dtype=x.dtype)
    c = torch.rand(4, dtype=x.dtype)
    return x + a, b, c


@row
def generator_of_its_own(w, x):
    g = torch.Generator().manual_seed(4)
    return x + torch.rand(4, generator=g, dtype=x.dtype), torch.randperm(5, generator=g)


@row
def default_dtype_changes(w, x):
    torch.set_default_dtype(torch.float64)
    try:
        y = torch.ones(4)
    finally:
        torch.set_default_dtype(torch.float32)
    return y.dtype, torch.ones(1).dtype, x + y


@row
def deterministic_flags(w, x):
    was = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        y = x.cumsum(0)
        now = torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(was)
    return was, now, y


@contextlib.contextmanager
def evaluation(net):
    was = net.training
    net.eval()
    try:
        yield net
    finally:
        net.train(was)


@row(make=lambda: world(net=nn.Sequential(mlp(), nn.Dropout(0.5))))
def evaluation_for_a_while(w, x):
    with evaluation(w.net) as net, torch.no_grad():
        y = net(x)
    return y, w.net.training


# ------------------------------------------------------------------------------------------------- classes


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    scale: float = 1.0
    tags: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Config:
    width: int
    name: str = "c"


class Pair(typing.NamedTuple):
    first: torch.Tensor
    second: typing.Any = None


Point = collections.namedtuple("Point", "x y")


class Entry(typing.NamedTuple):
    inputs: list
    undo: typing.Callable


class Mode(enum.Enum):
    ADD = "add"
    MUL = "mul"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Bits(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@row
def dataclass_made_and_replaced(w, x):
    b = Batch(x, 2.0)
    b.tags.append("a")
    c = dataclasses.replace(b, x=x * b.scale)
    return b, c, c.tags is b.tags, [f.name for f in dataclasses.fields(c)]


@row(inputs=lambda: [Batch(ramp(n, 4), s, ["t"]) for n, s in ((3, 1.0), (3, 2.0), (5, 2.0))])
def dataclass_as_argument(w, x):
    x.tags.append("seen")
    x.x = x.x * x.scale
    return x.x + 1


@row
def tape_of_namedtuples(w, x):
    tape = []  # namedtuples' __new__ runs without builtins
    for scale in (2, 3):
        names = [f"v{len(tape)}", f"v{len(tape) + 1}"]
        tape.append(Entry(inputs=names, undo=lambda t, scale=scale: t / scale))
        x = x * scale
    w.log.append([entry.inputs for entry in tape])
    for entry in reversed(tape):
        x = entry.undo(x)
    return x


@row
def frozen_dataclass(w, x):
    c = Config(x.shape[0])
    w.log.append(c)
    try:
        c.width = 3
    except dataclasses.FrozenInstanceError as e:
        w.log.append(str(e))
    return x * c.width, c == Config(3), hash(c) == hash(Config(c.width))


@row
def named_tuples(w, x):
    p = Pair(x * 2)
    q = p._replace(second=x)
    r = Point(1, q)
    a, b = q
    return p, r, a + b, r._asdict()["x"], Point._fields


@row(make=lambda: world(mode=Mode.ADD, level=Level.LOW), between=lambda w, i: setattr(w, "mode", Mode.MUL))
def enumerations(w, x):
    y = x + 1 if w.mode is Mode.ADD else x * 2
    w.level = Level.HIGH if w.level == Level.LOW else Level.LOW
    return y * w.level, w.mode.name, Mode("mul"), (Bits.A | Bits.B) & Bits.A, len(Mode)


class Output(collections.OrderedDict):
    """As models return them: items are attributes, and it can be indexed by number."""

    def __post_init__(self):
        pass

    def __getitem__(self, k):
        return super().__getitem__(k) if isinstance(k, str) else tuple(self.values())[k]

    def __setattr__(self, name, value):
        if name in self and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


@row
def output_of_a_model(w, x):
    out = Output()
    out["hidden"] = x * 2
    out["last"] = x.sum()
    out.hidden = out.hidden + 1
    return out, out[0], out.last, list(out.keys())


@dataclasses.dataclass
class DataOutput(collections.OrderedDict):
    """A dataclass that is a dictionary, too."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None

    def __post_init__(self):
        for f in dataclasses.fields(self):
            v = getattr(self, f.name)
            if v is not None:
                self[f.name] = v


@row
def output_that_is_a_dataclass(w, x):
    out = DataOutput(logits=x * 2)
    return out, next(iter(out.values())) + 1, out.loss


class Registered:
    def __init__(self, a, b, note):
        self.a, self.b, self.note = a, b, note


pytree.register_pytree_node(
    Registered,
    lambda r: ([r.a, r.b], r.note),
    lambda children, note: Registered(*children, note),
    serialized_type_name="programs_objects.Registered",
)


@row(inputs=lambda: [Registered(ramp(3, 4), ramp(4), "n"), Registered(ramp(3, 4), ramp(4) + 1, "m")])
def registered_class(w, x):
    doubled = pytree.tree_map(lambda t: t * 2, x)
    leaves, spec = pytree.tree_flatten({"r": x, "l": [1, (x.a,)]})
    return doubled, len(leaves), pytree.tree_unflatten(leaves, spec)["l"], x.note


@row
def mapped_trees(w, x):
    tree = {"a": [x, (x + 1, None)], "b": Point(x, 3)}
    return pytree.tree_map_only(torch.Tensor, lambda t: t.sum(), tree), pytree.tree_leaves(tree)[-1]


class Items(list):
    def __init__(self, *args):
        super().__init__(*args)
        self.reads = 0

    def __getitem__(self, i):
        self.reads += 1
        return super().__getitem__(i)

    def append(self, item):
        LOG.append("append")
        super().append(item)


@row(make=lambda: world(items=Items([1, 2])))
def list_that_counts(w, x):
    LOG.clear()
    w.items.append(x.sum())
    y = x * w.items[0]
    made = Items([y])
    made.append(3)
    return made, made.reads, w.items.reads, len(w.items), list(LOG)


class Table(dict):
    def __setitem__(self, key, value):
        LOG.append(key)
        super().__setitem__(key, value)

    def __missing__(self, key):
        self[key] = []
        return self[key]


@row(make=lambda: world(table=Table(a=1)))
def dictionary_that_counts(w, x):
    LOG.clear()
    w.table["n"] = x.shape[0]
    w.table["new"].append(x.mean())
    return x * w.table["n"], list(LOG), list(w.table)


@row(make=lambda: world(count=collections.Counter("ab"), groups=collections.defaultdict(list)))
def collections_of_the_library(w, x):
    w.count["a"] += x.shape[0]
    w.count.update(["c"])
    w.groups["k"].append(x.sum())
    chain = collections.ChainMap({"u": x}, {"v": 2})
    queue = collections.deque([1, 2, 3], maxlen=3)
    queue.append(x.mean())
    return chain["u"] * chain["v"], w.count.most_common(1), queue, len(w.groups["k"])


class Stack(collections.UserList):
    pass


class Lower(collections.UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)


@row
def user_collections(w, x):
    s = Stack([x])
    s.append(x + 1)
    d = Lower(A=x)
    d["B"] = 2
    return s.data, d.data, sum(s) * d["b"]


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


@row(make=lambda: world(s=Slotted(1, 2)))
def slots(w, x):
    w.s.a += 1
    t = Slotted(x * w.s.a, w.s.b)
    return t.a + t.b


class Lazy:
    @functools.cached_property
    def value(self):
        LOG.append("made")
        return ramp(4) * 2


@row(make=lambda: world(lazy=Lazy()))
def cached_property(w, x):
    LOG.clear()
    y = x + w.lazy.value
    return y + w.lazy.value, list(LOG)


class Ring(collections.abc.Sequence):
    def __init__(self, items):
        self.items = items

    def __getitem__(self, i):
        if not self.items:
            raise IndexError(i)
        return self.items[i % len(self.items)]

    def __len__(self):
        return len(self.items)


@row
def sequence_of_the_users(w, x):
    r = Ring([x, x + 1])
    return r[5], len(r), x.shape in Ring([x.shape]), [t.sum() for t, _ in zip(r, range(3))]


@row(make=lambda: world(net=seeded(nn.LSTM(4, 3))))
def results_with_names(w, x):
    values, indices = x.max(0)
    m = x.max(0)
    top = torch.topk(x, 2)
    q = torch.linalg.eigh(x.t() @ x)
    return values, m.indices, top.values, q.eigenvalues, indices, type(m).__name__


# ------------------------------------------------------------------------------------------------- attributes of tensors


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


# ------------------------------------------------------------------------------------------------- breaks in contexts


@row
def autocast_with_a_break(w, x):
    x = x.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
        if y.sum() > 0:
            w.log.append(str(y.dtype))
        z = x @ y.float()
    u = x @ x.t()
    return z.dtype, u.dtype, torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled(), u


@row
def inference_mode_with_a_break(w, x):
    with torch.inference_mode():
        y = x * 2
        if y.sum() > 0:
            w.log.append(y.is_inference())
        y = y + 1
    return y.is_inference(), torch.is_inference_mode_enabled(), y.sum().item()


@row
def dtype_with_a_break(w, x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(4)
    if x.sum() > 0:
        y = y + torch.zeros(4)
    torch.set_default_dtype(torch.float32)
    return y.dtype, torch.get_default_dtype(), x + y


@row
def modes_that_stay_changed(w, x):
    torch.set_grad_enabled(x.shape[0] == 3)
    return x * 2, torch.is_grad_enabled()


@row
def mode_with_a_break(w, x):
    with Functions(w.log):
        y = torch.sin(x)
        if y.sum() > 0:
            y = y + 1
        z = y * 2
    return z - 1


@row
def dispatch_mode_with_a_break(w, x):
    with Dispatched() as mode:
        y = torch.sin(x)
        cresset.graph_break("here")
        z = y * 2
    return len(mode.seen) > 0, z - 1
