# size: table
# ruff: noqa: B019
"""Designs of training and inference code: trainers, registries, dispatch, containers, classes of tensors. As
programs/whole_scripts.py has them."""

from __future__ import annotations

import abc
import asyncio
import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import itertools
import operator
import types
import typing

import torch
import torch.nn.functional as F
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@steady
def trainer_with_callbacks(compiled):
    @dataclasses.dataclass
    class Config:
        lr: float = 0.1
        clip: float = 1.0
        every: int = 3

    class Callback:
        def on_begin(self, t):
            pass

        def on_step(self, t, loss):
            pass

    class Logger(Callback):
        def __init__(self):
            self.lines = []

        def on_step(self, t, loss):
            if t.step % t.config.every == 0:
                self.lines.append(f"step {t.step}: lr={t.config.lr:.4f}")

    class Decay(Callback):
        def on_step(self, t, loss):
            t.config.lr *= 0.95

    class Best(Callback):
        def __init__(self):
            self.best = None

        def on_step(self, t, loss):
            self.best = loss.detach() if self.best is None else torch.minimum(self.best, loss.detach())

    class Trainer:
        def __init__(self, config, callbacks):
            self.config, self.callbacks, self.step = config, callbacks, 0
            self.w = torch.ones(3)

        def fire(self, name, *a):
            for c in self.callbacks:
                getattr(c, name)(self, *a)

        def train_step(self, x):
            if self.step == 0:
                self.fire("on_begin")
            loss = ((x * self.w) ** 2).mean()
            g = 2 * (x * x * self.w).mean(0)
            n = g.norm()
            g = g * torch.clamp(self.config.clip / (n + 1e-6), max=1.0)
            self.w = self.w - self.config.lr * g
            self.step += 1
            self.fire("on_step", loss)
            return loss

    t = Trainer(Config(), [Logger(), Decay(), Best()])
    step = compiled(t.train_step)
    for i in range(14):
        yield step(data(i, 4, 3)), t.step, t.config.lr
    yield t.callbacks[0].lines, t.w


@bounded
def plugins_by_getattr(compiled):
    class Bag(nn.Module):
        def __init__(self, **parts):
            super().__init__()
            self.plugins = nn.ModuleDict(parts)
            self.calls = collections.Counter()

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                plugins = self.__dict__["_modules"].get("plugins")
                if plugins is not None and name in plugins:
                    self.calls[name] += 1
                    return plugins[name]
                raise

        def forward(self, x, names):
            for n in names:
                x = getattr(self, n)(x)
            return x

    torch.manual_seed(1)
    b = Bag(a=nn.Linear(3, 3), b=nn.Tanh(), c=nn.LayerNorm(3))
    f = compiled(b)
    for i in range(10):
        yield f(data(i, 2, 3), ["ab", "bc", "abc"][i % 3]), dict(b.calls)
    try:
        f(data(1, 2, 3), "ax")
    except AttributeError as e:
        yield str(e)


@steady
def lazy_modules(compiled):
    torch.manual_seed(1)
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d(), nn.LazyLinear(2))
    f = compiled(net)
    for i in range(8):
        yield f(data(i, 3 + i % 2, 5)).sum()
    yield net


@growing
def parametrized_quantization(compiled):
    class Quantize(nn.Module):
        def __init__(self, bits):
            super().__init__()
            self.bits = bits

        def forward(self, w):
            n = 2 ** (self.bits - 1) - 1
            s = w.detach().abs().amax() / n
            q = torch.round(w / s).clamp(-n, n) * s
            return w + (q - w).detach()

    torch.manual_seed(1)
    lin = nn.Linear(4, 3)
    nn.utils.parametrize.register_parametrization(lin, "weight", Quantize(4))
    f = compiled(lin)
    opt = torch.optim.SGD(lin.parameters(), 0.1)
    for i in range(8):
        if i == 4:
            lin.parametrizations.weight[0].bits = 3
        opt.zero_grad()
        loss = f(data(i, 2, 4)).pow(2).mean()
        loss.backward()
        opt.step()
        yield loss
        if i == 6:
            with nn.utils.parametrize.cached():
                yield f(data(i, 2, 4)) + f(data(i + 1, 2, 4))


@growing
def cooperative_mixins(compiled):
    log = []

    class Base(nn.Module):
        def __init__(self, **kw):
            super().__init__()
            self.n = kw.pop("n", 2)

        def forward(self, x):
            log.append("base")
            return x * self.n

    class Norm(Base):
        def __init__(self, eps=1e-3, **kw):
            super().__init__(**kw)
            self.eps = eps

        def forward(self, x):
            log.append("norm")
            return super().forward(x / (x.norm() + self.eps))

    class Drop(Base):
        def __init__(self, p=0.5, **kw):
            super().__init__(**kw)
            self.p = p

        def forward(self, x):
            log.append("drop")
            y = super().forward(x)
            return y * (1 - self.p) if self.training else y

    class Both(Norm, Drop):
        pass

    m = Both(eps=0.1, p=0.25, n=3)
    f = compiled(m)
    for i in range(10):
        if i == 3:
            m.eval()
        if i == 6:
            m.n = 5
        if i == 8:
            m.train()
            m.p = 0.75
        yield f(data(i, 3)), len(log)
    yield log


@steady
def context_managers_alter(compiled):
    class Settings(types.SimpleNamespace):
        @contextlib.contextmanager
        def using(self, **kw):
            old = {k: getattr(self, k) for k in kw}
            self.__dict__.update(kw)
            try:
                yield self
            finally:
                self.__dict__.update(old)

    s = Settings(scale=1.0, mode="a", depth=0)

    @compiled
    def f(x, scale):
        with s.using(scale=scale, depth=s.depth + 1) as t:
            y = x * t.scale + t.depth
            with s.using(mode="b"):
                y = y.relu() if s.mode == "b" else y
        if s.mode != "a":
            raise RuntimeError
        return y * s.scale

    for i in range(10):
        if i == 5:
            s.scale = 2.0
        yield f(data(i, 3), i * 0.5), vars(s)


@steady
def async_pipeline(compiled):
    class Bus:
        def __init__(self):
            self.events = []

        async def emit(self, e):
            self.events.append(e)
            await asyncio.sleep(0)

    bus = Bus()

    async def stage(x, k):
        await bus.emit(k)
        return x * k

    @compiled
    def compute(x, k):
        return torch.sin(x) * k

    @compiled
    async def pipe(x, n):
        parts = []
        for k in range(n):
            parts.append(await stage(x, k + 1))
        return torch.stack(parts).sum(0)

    for i in range(8):
        yield asyncio.run(pipe(data(i, 3), 2 + i % 2)), compute(data(i, 3), i), len(bus.events)


@growing
def structural_matching(compiled):
    @dataclasses.dataclass
    class Scale:
        k: float

    @dataclasses.dataclass
    class Shift:
        k: float
        dim: int = 0

    class Stop:
        pass

    @compiled
    def f(x, ops):
        trace = []
        for op in ops:
            match op:
                case Scale(k=0):
                    return x * 0, trace
                case Scale(k) if k < 0:
                    x = -x * k
                    trace.append("neg")
                case Scale(k):
                    x = x * k
                    trace.append("scale")
                case Shift(k, dim=0):
                    x = x + k
                    trace.append("shift0")
                case Shift(k, d):
                    x = x.roll(d) + k
                    trace.append(f"shift{d}")
                case {"op": str(name), **rest}:
                    x = getattr(torch, name)(x, **rest)
                    trace.append(name)
                case [("pow" | "root") as n, e]:
                    x = x.abs() ** (e if n == "pow" else 1 / e)
                    trace.append(n)
                case Stop():
                    break
                case _:
                    trace.append("?")
        return x, trace

    progs = [
        [Scale(2.0), Shift(1.0)],
        [Scale(-1.0), {"op": "clamp", "min": 0.0}],
        [["pow", 2], Stop(), Scale(3.0)],
        [Shift(0.5, 1), ("root", 2)],
        [Scale(0), 3],
    ]
    for i in range(15):
        yield f(data(i, 3), progs[i % 5] if i < 10 else [*progs[i % 5], Scale(i * 1.0)])


@steady
def exceptions_for_flow(compiled):
    class Found(Exception):
        def __init__(self, value, depth):
            super().__init__(f"found at {depth}")
            self.value, self.depth = value, depth

    class NotYet(LookupError):
        pass

    def search(x, depth, limit):
        if depth == limit:
            raise Found(x, depth)
        if depth > 5:
            raise NotYet(depth)
        return search(x * 2 + depth, depth + 1, limit)

    @compiled
    def f(x, limit):
        try:
            search(x, 0, limit)
        except Found as e:
            return e.value, e.depth, str(e)
        except LookupError as e:
            try:
                raise RuntimeError("gave up") from e
            except RuntimeError as r:
                return x, r.__cause__.args, type(r.__context__).__name__
        finally:
            x = x + 1

    for i in range(12):
        yield f(data(i, 2), [1, 2, 4, 7][i % 4])


@growing
def custom_containers(compiled):
    class Experts(nn.ModuleDict):
        def forward(self, x, weights):
            return sum(w * self[k](x) for k, w in weights.items() if k in self)

    class Options(collections.UserDict):
        def __missing__(self, key):
            self.data[key] = len(self.data) * 1.0
            return self.data[key]

        def __getattr__(self, n):
            if n.startswith("__") or n == "data":
                raise AttributeError(n)
            return self[n]

    class Out(typing.NamedTuple):
        y: torch.Tensor
        aux: float = 0.0

        def scaled(self, k):
            return self._replace(y=self.y * k)

    torch.manual_seed(1)
    ex = Experts({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    opts = Options()

    @compiled
    def f(x, w):
        o = Out(ex(x, w), opts.alpha)
        return o.scaled(opts["beta"] + 1), opts.gamma

    for i in range(10):
        if i == 5:
            opts["beta"] = 0.25
        if i == 7:
            ex["c"] = nn.Tanh()
        yield f(data(i, 3, 2), {"a": 0.5 * i, "c": 1.0} if i % 2 else {"a": 1.0, "b": 2.0}), opts


@growing
def enum_dispatch(compiled):
    class Act(enum.Enum):
        RELU = "relu"
        TANH = "tanh"
        GELU = "gelu"

        def __call__(self, x):
            return TABLE[self](x)

        @classmethod
        def parse(cls, s):
            return cls(s.lower())

    class Flags(enum.Flag):
        A = enum.auto()
        B = enum.auto()
        C = enum.auto()

    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 10

    TABLE = {Act.RELU: torch.relu, Act.TANH: torch.tanh, Act.GELU: F.gelu}

    @compiled
    def f(x, name, flags, level):
        y = Act.parse(name)(x)
        if Flags.A in flags:
            y = y + 1
        if flags & (Flags.B | Flags.C):
            y = y * level
        return y, f"{flags!r} {level:d} {Act[name.upper()].value}"

    fl = [Flags.A, Flags.A | Flags.C, Flags(0), Flags.B]
    for i in range(12):
        yield f(data(i, 3), ["Relu", "tanh", "GELU"][i % 3], fl[i % 4], [Level.LOW, Level.HIGH][i % 2])


@growing
def functional_tools(compiled):
    @functools.singledispatch
    def emb(v, x):
        raise TypeError(type(v).__name__)

    @emb.register
    def _(v: int, x):
        return x + v

    @emb.register(float)
    def _(v, x):
        return x * v

    @emb.register(list)
    @emb.register(tuple)
    def _(v, x):
        return functools.reduce(lambda a, b: emb(b, a), v, x)

    class Model:
        def __init__(self, w):
            self.w = w
            self.made = 0

        @functools.cached_property
        def inv(self):
            self.made += 1
            return 1 / self.w

        @functools.singledispatchmethod
        def go(self, a):
            return a * self.inv

        @go.register
        def _(self, a: str):
            return self.w * len(a)

        half = functools.partialmethod(go, "ab")

        @functools.cache
        def table(self, n):
            return [k * k for k in range(n)]

    m = Model(torch.tensor([1.0, 2.0, 4.0]))

    @compiled
    def f(x, v):
        y = emb(v, x)
        return m.go(y) + m.go("abc") + m.half() * sum(m.table(3)), m.made

    for i in range(12):
        if i == 6:
            del m.__dict__["inv"]
            m.w = m.w * 2
        try:
            yield f(data(i, 3), [i, 0.5 * i, [1, 2.0, (i,)], "no"][i % 4])
        except TypeError as e:
            yield str(e)


@steady
def itertools_recipes(compiled):
    def sliding(it, n):
        it = iter(it)
        w = collections.deque(itertools.islice(it, n - 1), maxlen=n)
        for x in it:
            w.append(x)
            yield tuple(w)

    def roundrobin(*its):
        nexts = itertools.cycle(iter(i).__next__ for i in its)
        active = len(its)
        while active:
            try:
                for nx in nexts:
                    yield nx()
            except StopIteration:
                active -= 1
                nexts = itertools.cycle(itertools.islice(nexts, active))

    def partition(pred, it):
        a, b = itertools.tee(it)
        return list(itertools.filterfalse(pred, a)), list(filter(pred, b))

    @compiled
    def f(x, n):
        rows = list(x.unbind(0))
        w = torch.stack([a * b for a, b in sliding(rows, 2)])
        order = list(roundrobin(range(n), "ab"))
        small, big = partition(lambda k: k > 1, range(n))
        pairs = [rows[i] - rows[j] for i, j in itertools.combinations(range(len(rows)), 2)]
        acc = list(itertools.accumulate(rows, operator.add))
        runs = [(k, len(list(g))) for k, g in itertools.groupby("aabbbc")]
        return w, order, small, big, sum(pairs), acc[-1], runs, list(itertools.pairwise(range(n)))

    for i in range(10):
        yield f(data(i, 3 + i % 2, 2), 2 + i % 3)


@steady
def operator_module(compiled):
    getter, attr, call = (
        operator.itemgetter("a", "b"),
        operator.attrgetter("shape", "dtype"),
        operator.methodcaller("clamp", min=0),
    )
    TABLE = {"+": operator.add, "*": operator.mul, "@": operator.matmul, "<": operator.lt, "neg": operator.neg}

    def rpn(tokens, env):
        st = []
        for t in tokens.split():
            if t in TABLE:
                if t == "neg":
                    st.append(TABLE[t](st.pop()))
                else:
                    b = st.pop()
                    a = st.pop()
                    st.append(TABLE[t](a, b))
            else:
                st.append(env[t] if t in env else float(t))
        return st.pop()

    @compiled
    def f(x, d):
        a, b = getter(d)
        y = rpn(d["prog"], {"x": x, "a": a, "b": b})
        s, dt = attr(y)
        operator.setitem(d, "seen", s)
        return call(y), operator.length_hint(iter([1, 2])), operator.index(s[0]), dt

    for i in range(10):
        d = {"a": i * 1.0, "b": 2, "prog": ["x a * b +", "x neg x @", "x 0.5 <"][i % 3]}
        yield f(data(i, 3, 3), d), d


@bounded
def protocols_and_abcs(compiled):
    @typing.runtime_checkable
    class HasEncode(typing.Protocol):
        def encode(self, x): ...

    class Shape(abc.ABC):
        @property
        @abc.abstractmethod
        def area(self): ...
        @classmethod
        def __subclasshook__(cls, c):
            return True if any("area" in b.__dict__ for b in c.__mro__) else NotImplemented

    class Sq(Shape):
        def __init__(self, s):
            self.s = s

        @property
        def area(self):
            return self.s * self.s

    class Duck:
        area = 3

    class Enc:
        def encode(self, x):
            return x * 2

    @compiled
    def f(x, o):
        if isinstance(o, HasEncode):
            return o.encode(x)
        if isinstance(o, Shape):
            return x * o.area
        raise TypeError(f"no way to use {type(o).__name__}")

    objs = [Sq(2.0), Duck(), Enc(), object(), Sq(3.0)]
    for i in range(15):
        try:
            yield f(data(i, 2), objs[i % 5])
        except TypeError as e:
            yield str(e)


@steady
def context_variables(compiled):
    mode = contextvars.ContextVar("mode", default="train")
    depth = contextvars.ContextVar("depth", default=0)

    @contextlib.contextmanager
    def nested():
        t = depth.set(depth.get() + 1)
        try:
            yield depth.get()
        finally:
            depth.reset(t)

    @compiled
    def f(x):
        with nested() as a, nested() as b:
            y = x * a + b
        return (y if mode.get() == "train" else y.detach() * 0.5), depth.get()

    for i in range(10):
        if i % 3 == 2:
            ctx = contextvars.copy_context()
            ctx.run(mode.set, "eval")
            yield ctx.run(f, data(i, 2))
        else:
            yield f(data(i, 2))


@steady
def slotted_frozen(compiled):
    @dataclasses.dataclass(frozen=True, slots=True)
    class Carry:
        h: torch.Tensor
        step: int = 0
        names: tuple = ()

        def push(self, n):
            return dataclasses.replace(self, step=self.step + 1, names=(*self.names[-2:], n))

    @compiled
    def f(c, x):
        c = c.push("t")
        try:
            c.step = 3
        except dataclasses.FrozenInstanceError as e:
            msg = str(e)
        return dataclasses.replace(c, h=c.h * 0.9 + x), msg, hash(c.names) == hash(tuple(c.names))

    c = Carry(torch.zeros(3))
    for i in range(10):
        c, m, h = f(c, data(i, 3))
        yield c, m, h, c == c, repr(dataclasses.fields(c)[1].name)


@steady
def torch_function_subclass(compiled):
    class Units(torch.Tensor):
        @staticmethod
        def make(t, unit):
            r = t.as_subclass(Units)
            r.unit = unit
            return r

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_function__(func, types, args, kwargs or {})
            units = [a.unit for a in args if isinstance(a, Units) and hasattr(a, "unit")]
            if isinstance(out, Units) and units:
                out.unit = "*".join(sorted(set(units))) if func in (torch.Tensor.mul, torch.mul) else units[0]
            return out

    @compiled
    def f(x, u, v):
        a, b = Units.make(x, u), Units.make(x + 1, v)
        c = a * b
        d = (c + c).sum()
        return c, c.unit, d.unit, type(d).__name__

    for i in range(8):
        yield f(data(i, 3), ["m", "s"][i % 2], "kg")


@steady
def custom_autograd(compiled):
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, lo, hi):
            ctx.save_for_backward(x)
            ctx.lo, ctx.hi = lo, hi
            return x.clamp(lo, hi)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            m = (x > ctx.lo) & (x < ctx.hi)
            return torch.where(m, g, g * 0.1), None, None

    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.sign()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable()

        @staticmethod
        def backward(ctx, g):
            return g

    w = torch.ones(3, requires_grad=True)

    @compiled
    def f(x, lo):
        return Clip.apply(x * w, lo, lo + 1.0) + Sign.apply(w * x)

    for i in range(10):
        w.grad = None
        y = f(data(i, 2, 3), -0.1 * i)
        y.sum().backward()
        yield y, w.grad


@bounded
def tensor_hooks(compiled):
    seen = []
    w = torch.ones(3, requires_grad=True)

    class Rec:
        def __init__(self):
            self.n = 0

        def __call__(self, g):
            self.n += 1
            seen.append(g.sum())
            return g * 0.5

    rec = Rec()

    @compiled
    def f(x):
        h = x * w
        h.register_hook(rec)
        return (h * h).sum()

    for i in range(8):
        w.grad = None
        f(data(i, 2, 3)).backward()
        yield w.grad, rec.n, len(seen), seen[-1]
