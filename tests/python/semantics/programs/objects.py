# size: table
"""Programs with distributions, arrays, and classes of the user's own. Rows as in programs_transforms."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import typing

import numpy as np
import torch
import torch.distributions as D
import torch.utils._pytree as pytree
from torch import nn

from programs.overrides import LOG
from programs.transforms import mlp, ramp, seeded, table, world

ROWS, row = table()


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
    tape = []  # __new__ of namedtuples runs without builtins
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
    """A model's output: items are attributes, and integer indexing works."""

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
