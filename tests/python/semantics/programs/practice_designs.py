"""Designs of programs around models: retries, registries, configurations, scopes, logs, lazy containers."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import functools
import io
import logging
import math
import operator

import torch

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@growing
def retry_with_backoff(compiled):

    class Flaky(RuntimeError):
        def __init__(self, attempt, hint=None):
            super().__init__(f"attempt {attempt} failed" + (f" ({hint})" if hint else ""))
            self.attempt = attempt

    def retry(times, *, on=(Exception,), log=None):

        def deco(fn):

            @functools.wraps(fn)
            def inner(*a, **k):
                last = None
                for attempt in range(1, times + 1):
                    try:
                        return fn(*a, attempt=attempt, **k)
                    except on as e:
                        last = e
                        if log is not None:
                            log.append((type(e).__name__, str(e)))
                raise RuntimeError(f"gave up after {times}") from last

            inner.retries = times
            return inner

        return deco

    log = []
    limit = {"n": 2}

    @retry(3, on=(Flaky, ZeroDivisionError), log=log)
    def step(x, scale, attempt):
        if attempt < limit["n"]:
            raise Flaky(attempt, hint=f"scale={scale}")
        return x * scale / attempt

    f = compiled(step)
    for i in range(8):
        limit["n"] = [2, 2, 1, 3, 5, 2, 3, 1][i]
        try:
            yield (f(data(i, 3), i + 0.5), list(log), f.__name__, f.retries)
        except RuntimeError as e:
            yield (str(e), str(e.__cause__), e.__cause__.attempt, list(log))


@growing
def metaclass_pipeline(compiled):

    class StageMeta(type):
        registry = {}

        def __new__(m, name, bases, ns, *, order=0, **kw):
            cls = super().__new__(m, name, bases, ns, **kw)
            if bases:
                m.registry[name.lower()] = cls
                cls.order = order
            return cls

        def __call__(cls, *a, **k):
            obj = super().__call__(*a, **k)
            obj.created = StageMeta.count = getattr(StageMeta, "count", 0) + 1
            return obj

        def __iter__(cls):
            return iter(sorted(StageMeta.registry.values(), key=lambda c: c.order))

        def __len__(cls):
            return len(StageMeta.registry)

        def __contains__(cls, k):
            return k in StageMeta.registry

    class Stage(metaclass=StageMeta):
        def __init__(self, k=1.0):
            self.k = k

        def __rrshift__(self, x):
            return self.run(x)

        def run(self, x):
            raise NotImplementedError(type(self).__name__)

    class Scale(Stage, order=2):
        def run(self, x):
            return x * self.k

    class Shift(Stage, order=1):
        def run(self, x):
            return x + self.k

    class Bad(Stage, order=3):
        pass

    def build(x, names, ks):
        stages = [StageMeta.registry[n](k) for n, k in zip(names, ks) if n in Stage]
        for s in stages:
            x = x >> s
        return (
            x,
            [type(s).__name__ for s in stages],
            [c.__name__ for c in Stage],
            len(Stage),
            [s.created for s in stages],
        )

    f = compiled(build)
    for i in range(8):
        names = [["scale", "shift"], ["shift", "scale", "nope"], ["scale"], ["bad"]][i % 4]
        try:
            yield f(data(i, 3), names, [0.5 + i, 2.0, 3.0])
        except NotImplementedError as e:
            yield ("no", str(e))
        if i == 4:

            class Clip(Stage, order=0):
                def run(self, x):
                    return x.clamp(-self.k, self.k)


@steady
def coroutine_send_throw(compiled):

    class Abort(Exception):
        pass

    def averager():
        total, n, avg = (0.0, 0, None)
        while True:
            try:
                x = yield avg
            except Abort as e:
                total, n, avg = (0.0, 0, f"reset:{e}")
                continue
            if x is None:
                return (total, n)
            total, n = (total + x, n + 1)
            avg = total / n

    def grouper(results, key):
        while True:
            results[key] = yield from averager()

    def f(x, plan):
        results = {}
        seen = []
        for key in ("a", "b"):
            g = grouper(results, key)
            next(g)
            for item in plan:
                if item == "abort":
                    seen.append(g.throw(Abort(key)))
                elif item == "end":
                    seen.append(g.send(None))
                else:
                    seen.append(g.send(x * item))
            g.close()
        return (results, seen)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 2), [[1, 2, "end"], [1, "abort", 3, "end"], [2.5, i, "end", 4], ["end"]][i % 4])


@growing
def contextvar_stack(compiled):

    class Scope:
        stack = []

        def __init__(self, name, **opts):
            self.name, self.opts = (name, opts)

        def __enter__(self):
            Scope.stack.append(self)
            return self

        def __exit__(self, t, v, tb):
            assert Scope.stack.pop() is self
            if t is not None and issubclass(t, KeyError):
                self.error = f"{self.name}:{v}"
                return True

        @classmethod
        def get(cls, key, default=None):
            for s in reversed(cls.stack):
                if key in s.opts:
                    return s.opts[key]
            if default is None:
                raise KeyError(key)
            return default

        @classmethod
        def path(cls):
            return "/".join(s.name for s in cls.stack)

    def layer(x, name):
        with Scope(name, width=x.shape[-1]) as s:
            k = Scope.get("gain", 1.0)
            y = x * k + Scope.get("width")
            print(Scope.path(), k)
            if y.mean() > Scope.get("limit", 1000000000.0):
                Scope.get("missing")
            return y
        return s.error

    def model(x, gain, limit):
        with contextlib.ExitStack() as stack:
            stack.enter_context(Scope("root", gain=gain))
            if limit:
                stack.enter_context(Scope("lim", limit=limit))
            stack.callback(lambda: print("closed", len(Scope.stack)))
            out = [layer(x, f"l{i}") for i in range(2)]
        return (out, len(Scope.stack))

    f = compiled(model)
    for i in range(9):
        yield f(data(i, 2, 2 + i % 2), 0.5 * i, [None, 3.0, 4.0][i % 3])


@growing
def units_subclass(compiled):

    class Quantity(torch.Tensor):
        @staticmethod
        def __new__(cls, t, unit=()):
            q = torch.Tensor._make_subclass(cls, t, t.requires_grad)
            q.unit = collections.Counter(dict(unit))
            return q

        def __init__(self, t, unit=()):
            pass

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            units = [getattr(a, "unit", collections.Counter()) for a in args]
            if func in (torch.Tensor.add, torch.Tensor.sub) and len(args) == 2:
                if units[0] != units[1]:
                    raise TypeError(f"{dict(units[0])} and {dict(units[1])}")
                u = units[0]
            elif func in (torch.Tensor.mul, torch.Tensor.__mul__):
                u = collections.Counter(units[0])
                u.update(units[1])
            elif func in (torch.Tensor.div, torch.Tensor.__truediv__):
                u = collections.Counter(units[0])
                u.subtract(units[1])
            else:
                u = units[0] if units else collections.Counter()
            r = super().__torch_function__(func, types, args, kwargs)
            if isinstance(r, Quantity):
                r.unit = collections.Counter({k: v for k, v in u.items() if v})
            return r

    def speed(d, t, boost):
        v = d / t
        e = v * v * boost
        return (v, e, sorted(v.unit.items()), sorted(e.unit.items()))

    f = compiled(speed)
    g = compiled(lambda a, b: (a + b).sum())
    for i in range(8):
        d, t = (Quantity(data(i, 3), {"m": 1}), Quantity(data(i + 1, 3).abs() + 1, {"s": 1 + i % 2}))
        yield f(d, t, 0.5)
        try:
            yield g(d, t if i % 2 else d)
        except TypeError as e:
            yield str(e)


@bounded
def namedtuple_made_inside(compiled):

    def summary(x, fields):
        T = collections.namedtuple("Summary", fields)
        fns = {"mean": x.mean, "std": x.std, "hi": x.max, "n": x.numel}
        s = T(*(fns[k]() for k in T._fields))
        return (s._asdict(), s._replace(**{T._fields[0]: 0.0})[1:], s[0])

    f = compiled(summary)
    for i in range(8):
        yield f(data(i, 4), [["mean", "std"], ["hi", "n", "mean"]][i % 2])


@steady
def partials_with_numbers(compiled):

    def sched(step, base, warm, total):
        if step < warm:
            return base * (step + 1) / warm
        return base * 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))

    class Opt:
        def __init__(self):
            self.step_n, self.lr = (0, functools.partial(sched, base=0.1, warm=3, total=12))

        def step(self, x, g, clip):
            upd = functools.partial(torch.clamp, min=-clip, max=clip)
            lr = self.lr(self.step_n)
            self.step_n += 1
            op = functools.partial(torch.add, alpha=-lr)
            return (op(x, upd(g)), lr)

    o = Opt()
    f = compiled(o.step)
    x = data(0, 3)
    for i in range(10):
        x, lr = f(x, data(i + 1, 3), 0.5 + 0.1 * i)
        yield (x, lr, o.step_n)


@bounded
def async_pipeline(compiled):

    class Source:
        def __init__(self, x):
            self.x = x

        async def __aenter__(self):
            print("open")
            return self

        async def __aexit__(self, *a):
            print("close", a[0].__name__ if a[0] else None)
            return False

        async def batches(self, n):
            for c in self.x.chunk(n):
                await asyncio.sleep(0)
                yield c

    async def work(c, scale):
        return (c * scale).sum()

    async def run(x, n, scale):
        out = []
        async with Source(x) as s:
            async for c in s.batches(n):
                out.append(await work(c, scale))
        return torch.stack(out)

    def drive(x, n, scale):
        return asyncio.run(run(x, n, scale))

    f = compiled(drive)
    for i in range(6):
        yield f(data(i, 6), 2 + i % 2, 0.5 * i)


@growing
def typed_config(compiled):

    class Field:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __init__(self, kind, default, check=None):
            self.kind, self.default, self.check = (kind, default, check)

        def __get__(self, obj, cls):
            return self if obj is None else obj.__dict__.get(self.name, self.default)

        def __set__(self, obj, v):
            if not isinstance(v, self.kind):
                raise TypeError(f"{self.name[1:]}: {type(v).__name__}")
            if self.check and (not self.check(v)):
                raise ValueError(f"{self.name[1:]}={v}")
            obj.__dict__[self.name] = v
            obj.changes.append(self.name)

    class Config:
        lr = Field(float, 0.1, lambda v: v > 0)
        mode = Field(str, "sum")

        def __init__(self, **k):
            self.changes = []
            [setattr(self, a, b) for a, b in k.items()]

        def __or__(self, other):
            return Config(**{**self.values(), **other})

        def values(self):
            return {k: getattr(self, k) for k, v in vars(type(self)).items() if isinstance(v, Field)}

    base = Config(lr=0.5)

    def step(x, over):
        c = base | over
        base.lr = base.lr * 0.9
        return (getattr(x, c.mode)() * c.lr, c.values(), c.changes)

    f = compiled(step)
    for i in range(9):
        try:
            yield (
                f(data(i, 3), [{}, {"mode": "mean"}, {"lr": 0.01 * i}, {"lr": -1.0}, {"lr": 3}][i % 5]),
                base.changes[-2:],
            )
        except (TypeError, ValueError) as e:
            yield repr(e)


@growing
def logging_handlers(compiled):
    stream = io.StringIO()
    log = logging.getLogger("h1")
    log.handlers[:] = []
    log.propagate = False
    log.setLevel(logging.INFO)
    h = logging.StreamHandler(stream)
    h.setFormatter(logging.Formatter("%(levelname)s:%(funcName)s:%(message)s"))
    log.addHandler(h)

    class Meter:
        def __init__(self):
            self.v, self.n = (0.0, 0)

        def update(self, v, k=1):
            self.v += v * k
            self.n += k
            return self

        @property
        def avg(self):
            return self.v / max(1, self.n)

        def __format__(self, spec):
            return format(self.avg, spec or ".3f")

    meters = collections.defaultdict(Meter)

    def train(x, epoch):
        loss = (x * x).mean()
        meters["loss"].update(loss.item(), x.shape[0])
        meters[f"e{epoch}"].update(float(x.max()))
        log.info("epoch %d loss %.3f", epoch, loss)
        if meters["loss"].avg > 0.9:
            log.warning(f"high {meters['loss']:.2f} {meters['loss']}")
        try:
            if epoch == 3:
                raise OverflowError(epoch)
        except OverflowError:
            log.error("oops", exc_info=False)
        return (loss * epoch, {k: round(m.avg, 4) for k, m in meters.items()})

    f = compiled(train)
    for i in range(8):
        yield (f(data(i, 4), i // 2), stream.getvalue())


@growing
def match_ast(compiled):

    @dataclasses.dataclass(frozen=True)
    class Num:
        v: float

    @dataclasses.dataclass(frozen=True)
    class Var:
        name: str

    @dataclasses.dataclass(frozen=True)
    class Op:
        op: str
        args: tuple

    def ev(node, env):
        match node:
            case Num(v):
                return v
            case Var(name) if name in env:
                return env[name]
            case Var(name):
                raise NameError(name)
            case Op("+", [a, b]):
                return ev(a, env) + ev(b, env)
            case Op("*", [Num(0), _]) | Op("*", [_, Num(0)]):
                return 0.0
            case Op("*", args):
                return functools.reduce(operator.mul, (ev(a, env) for a in args))
            case Op("max", [*args]):
                return max((ev(a, env) for a in args), key=lambda t: t.sum() if isinstance(t, torch.Tensor) else t)
            case _:
                raise SyntaxError(repr(node))

    f = compiled(lambda tree, **env: ev(tree, env))
    trees = [
        Op("+", (Num(1.0), Var("x"))),
        Op("*", (Var("x"), Var("y"), Num(2.0))),
        Op("*", (Num(0), Var("x"))),
        Op("max", (Var("x"), Var("y"))),
        Op("-", ()),
        Var("z"),
    ]
    for i in range(12):
        try:
            yield f(trees[i % 6], x=data(i, 2), y=data(i + 1, 2))
        except (NameError, SyntaxError) as e:
            yield repr(e)


@growing
def lazy_sequence_container(compiled):

    class Lazy(collections.abc.Sequence):
        def __init__(self, src, *fns):
            self.src, self.fns, self.hits = (src, fns, 0)

        def __len__(self):
            return len(self.src)

        def __getitem__(self, i):
            if isinstance(i, slice):
                return Lazy(self.src[i], *self.fns)
            self.hits += 1
            return functools.reduce(lambda a, f: f(a), self.fns, self.src[i])

        def map(self, f):
            return Lazy(self.src, *self.fns, f)

    def use(xs, k):
        lazy = Lazy(xs).map(torch.sin).map(lambda t: t * k)
        first = lazy[0]
        best = max(range(len(lazy)), key=lambda i: float(lazy[i].sum()))
        total = sum(lazy[1:])
        return (first, best, total, lazy.hits, torch.equal(first, lazy[0]), next(reversed(lazy)))

    f = compiled(use)
    for i in range(8):
        yield f([data(i + k, 2) for k in range(2 + i % 3)], 1.0 + i)
