"""Programs whose arguments are functions, methods and generators, different at each call, and registries of them."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import operator
import re
import types
import weakref

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@steady
def fresh_callbacks_each_call(compiled):
    torch.manual_seed(0)
    net = nn.Linear(3, 3)

    @compiled
    def fit(x, steps, on_step=None, transform=lambda t: t, *, key=None):
        out = []
        for i in range(steps):
            x = transform(net(x))
            if on_step is not None:
                on_step(i, x)
            out.append(x.mean())
        if key is not None:
            out.sort(key=key)
        return torch.stack(out)

    def scaler(k, b):

        def scale(t):
            return t * k + b

        return scale

    log = []
    for i in range(14):
        yield (
            fit(
                data(i, 2, 3), 2, lambda k, t: log.append((k, tuple(t.shape))), scaler(1.0 + i, data(i + 5, 3))
            ).detach(),
            len(log),
        )


@growing
def partials_and_methods_given(compiled):

    class Clip:
        def __init__(self, lo):
            self.lo = lo

        def apply(self, x, hi=1.0):
            return x.clamp(self.lo, hi)

    @compiled
    def f(x, fs):
        for g in fs:
            x = g(x)
        return x

    for i in range(12):
        c = Clip(-0.1 * (i + 1))
        yield f(
            data(i, 4),
            [c.apply, functools.partial(torch.add, alpha=2), functools.partial(c.apply, hi=0.1 * (i + 1)), operator.neg]
            if False
            else [c.apply, functools.partial(c.apply, hi=0.1 * (i + 1)), operator.neg],
        )


@steady
def cells_shared_between_closures(compiled):

    def make(start):
        n = start
        last = None

        def bump(x):
            nonlocal n, last
            n += 1
            last = x.detach()
            return x * n

        def peek():
            return (n, last)

        return (bump, peek)

    @compiled
    def f(x, bump, peek):
        y = bump(x)
        z = bump(y)
        return (z, peek()[0])

    for i in range(12):
        b, p = make(i)
        r = f(data(i, 2), b, p)
        yield (r, p())


@steady
def closure_replaced_in_state(compiled):

    class Trainer:
        def __init__(self):
            self.loss_fn, self.log = (None, [])

        def set(self, w):
            self.loss_fn = lambda a, b: ((a - b).abs() * w).mean()

    t = Trainer()

    @compiled
    def f(a, b):
        return t.loss_fn(a, b)

    for i in range(14):
        t.set(0.5 + i)
        yield f(data(i, 3), data(i + 1, 3))


@growing
def neural_ode_with_events(compiled):

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(2)
            self.net, self.nfe = (nn.Linear(2, 2), 0)

        def forward(self, t, y):
            self.nfe += 1
            return torch.tanh(self.net(y)) * (1 + t)

    def rk4(f, t, y, h):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    field = Field()

    @compiled
    def solve(y, t1, n, event):
        t, h, path = (0.0, t1 / n, [y])
        for _ in range(n):
            new = rk4(field, t, path[-1], h)
            t += h
            path.append(new)
            if event is not None and event(t, new):
                break
        return (torch.stack(path), round(t, 5))

    for i in range(8):
        ev = (lambda t, y: bool(y.norm() > 1.5)) if i % 2 else None
        out, t = solve(data(i, 2), 1.0 + 0.25 * (i % 3), 3 + i % 2, ev)
        field.zero_grad()
        out.sum().backward()
        yield (out.detach(), t, field.nfe, field.net.weight.grad.clone())


@growing
def plugin_entrypoints_with_signature(compiled):
    plugins = {}

    def hook(fn=None, *, order=0, **extra):
        if fn is None:
            return functools.partial(hook, order=order, **extra)
        sig = inspect.signature(fn)
        plugins[fn.__name__] = (order, fn, tuple(sig.parameters), extra)
        return fn

    @hook(order=2)
    def scale(x, factor=2.0):
        return x * factor

    @hook(order=1, tag="shift")
    def shift(x, *, by):
        return x + by

    @hook
    def norm(x):
        return x / x.norm()

    @compiled
    def run(x, ctx, skip):
        trace = []
        for name, (_, fn, params, extra) in sorted(plugins.items(), key=lambda kv: (kv[1][0], kv[0])):
            if name in skip:
                continue
            kw = {k: ctx[k] for k in params if k in ctx}
            try:
                x = fn(x, **kw)
            except TypeError as e:
                trace.append(re.sub("^.*\\.", "", str(e)))
            else:
                trace.append(extra.get("tag", name))
        return (x, trace)

    for i in range(9):
        if i == 4:
            hook(lambda x: -x, order=3)
        if i == 6:
            plugins.pop("norm")
        yield run(data(i, 3), [{"factor": 3.0}, {"by": 1.5}, {}][i % 3], {"scale"} if i % 4 == 1 else ())


@growing
def retrying_context_with_cleanup(compiled):

    class Pool:
        def __init__(self):
            self.free, self.used, self.log = ([0, 1], {}, [])

        @contextlib.contextmanager
        def lease(self, who):
            if not self.free:
                raise RuntimeError("empty")
            k = self.free.pop()
            self.used[k] = who
            try:
                yield k
            except ArithmeticError as e:
                self.log.append(f"{who}: {e}")
            finally:
                self.used.pop(k)
                self.free.append(k)

    pool = Pool()

    @compiled
    def f(xs, bad):
        out = []
        with contextlib.ExitStack() as stack:
            ks = [stack.enter_context(pool.lease(f"w{i}")) for i in range(min(2, len(xs)))]
            for i, x in enumerate(xs):
                if i == bad:
                    raise ZeroDivisionError(f"at {i}")
                out.append(x / (1 + ks[i % len(ks)]))
            stack.callback(pool.log.append, "done")
        return (out, len(pool.free))

    for i in range(9):
        try:
            r = f([data(i + k, 2) for k in range(1 + i % 3)], i % 4 if i % 2 else -1)
        except Exception as e:
            r = (type(e).__name__, str(e))
        yield (r, list(pool.log), sorted(pool.free))


@growing
def ddim_with_guidance_and_callback(compiled):

    class Sched:
        order = 1

        def __init__(self, n):
            self.betas = torch.linspace(0.001, 0.2, n)
            self.abar = torch.cumprod(1 - self.betas, 0)
            self.timesteps = None

        def set_timesteps(self, k):
            step = len(self.betas) // k
            self.timesteps = torch.from_numpy((np.arange(0, k) * step).round()[::-1].copy().astype(np.int64))

        def step(self, eps, t, x, eta=0.0):
            prev = t - len(self.betas) // len(self.timesteps)
            a, ap = (self.abar[t], self.abar[prev] if prev >= 0 else torch.tensor(1.0))
            x0 = (x - (1 - a).sqrt() * eps) / a.sqrt()
            s = eta * ((1 - ap) / (1 - a) * (1 - a / ap)).sqrt()
            x = ap.sqrt() * x0 + (1 - ap - s**2).clamp(min=0).sqrt() * eps
            if eta > 0:
                x = x + s * torch.randn_like(x)
            return types.SimpleNamespace(prev_sample=x, pred_original_sample=x0)

    torch.manual_seed(7)
    net = nn.Linear(4, 3)
    s = Sched(20)
    seen = []

    @torch.no_grad()
    @compiled
    def sample(x, k, scale, eta, callback=None):
        s.set_timesteps(k)
        for i, t in enumerate(s.timesteps):
            tt = (t / 20).expand(x.shape[0], 1)
            both = net(torch.cat([torch.cat([x, x]), torch.cat([tt, tt])], 1))
            cond, unc = both.chunk(2)
            out = s.step(unc + scale * (cond * 0.9 - unc), int(t), x, eta)
            x = out.prev_sample
            if callback and i % 2 == 0:
                callback(i, int(t), x)
        return x

    for i in range(7):
        yield (
            sample(
                data(i, 2, 3),
                4 + i % 2,
                1.0 + 0.5 * i,
                0.0 if i % 2 else 0.3,
                (lambda i, t, x: seen.append((i, t, round(float(x.sum()), 3)))) if i > 3 else None,
            ),
            list(seen),
        )


@steady
def generators_in_arguments(compiled):

    def batches(n, seed):
        for i in range(n):
            yield data(seed + i, 2)

    @compiled
    def f(it, scale):
        total = 0
        for b in it:
            total = total + b * scale
        return total

    @compiled
    def first(it):
        return next(it) + 1

    for i in range(8):
        g = batches(3, i * 10)
        a = first(g)
        yield (a, f(g, 2.0), next(g, "done"))


@bounded
def generator_held_in_loader_object(compiled):

    class Loader:
        def __init__(self, n):
            self.n, self.it, self.epoch = (n, None, 0)

        def _gen(self):
            for i in range(self.n):
                yield data(self.epoch * 10 + i, 2)

        def next(self):
            if self.it is None:
                self.it = self._gen()
            try:
                return next(self.it)
            except StopIteration:
                self.epoch += 1
                self.it = self._gen()
                return next(self.it)

    el = Loader(3)
    torch.manual_seed(0)
    net = nn.Linear(2, 2)

    @compiled
    def step():
        x = el.next()
        return net(x).sum()

    for _ in range(9):
        yield (step().detach(), el.epoch)


@growing
def map_with_a_compiled_function_inside(compiled):
    inner = compiled(lambda x, k: x * k + 1)

    @compiled
    def f(xs, ks):
        a = list(map(inner, xs, ks))
        b = functools.reduce(lambda p, q: inner(p, q.sum()), xs)
        c = sorted(xs, key=lambda t: float(inner(t, 2.0).sum()))
        return (a, b, c[0], max(ks, key=lambda k: float(inner(xs[0], k).sum())))

    for i in range(7):
        yield f([data(i + j, 2) for j in range(3)], [1.0, 2.0 + i, -1.0])


@steady
def cached_function_calls_compiled_inner(compiled):
    calls = collections.Counter()

    @functools.lru_cache(maxsize=4)
    def table(n, kind):
        calls[kind] += 1
        return torch.arange(n).float() if kind == "lin" else torch.logspace(0, 1, n)

    @compiled
    def f(x, kind):
        return (x + table(x.shape[-1], kind), table.cache_info().hits)

    for i in range(10):
        yield (f(data(i, 2, [3, 4][i % 2]), ["lin", "log"][i % 3 == 2]), dict(calls))


@growing
def registry_metaclass_with_config(compiled):

    class Meta(type):
        table = {}

        def __new__(m, name, bases, ns, *, key=None, **kw):
            cls = super().__new__(m, name, bases, ns)
            cls.defaults = {**getattr(bases[0] if bases else object, "defaults", {}), **kw}
            if key:
                m.table[key] = cls
            return cls

        def __call__(cls, **kw):
            obj = cls.__new__(cls)
            obj.cfg = types.SimpleNamespace(**{**cls.defaults, **kw})
            obj.__init__()
            return obj

        def __getitem__(cls, k):
            return Meta.table[k]

        def __contains__(cls, k):
            return k in Meta.table

        def __len__(cls):
            return len(Meta.table)

    class Act(metaclass=Meta):
        def __call__(self, x):
            return x

    class Scaled(Act, key="scaled", scale=2.0):
        def __call__(self, x):
            return x * self.cfg.scale

    class Leaky(Scaled, key="leaky", slope=0.1):
        def __call__(self, x):
            return F.leaky_relu(super().__call__(x), self.cfg.slope)

    calls = collections.Counter()

    @compiled
    def f(x, spec):
        name, _, rest = spec.partition(":")
        kw = {k: float(v) for k, v in (p.split("=") for p in rest.split(",") if p)}
        calls[name] += 1
        if name not in Act:
            raise KeyError(f"unknown {name} of {len(Act)}")
        return Act[name](**kw)(x)

    for i, s in enumerate(
        [
            "scaled",
            "leaky:slope=0.5",
            "scaled:scale=3",
            "nope",
            "leaky:slope=0.5,scale=1.5",
            "scaled",
            "leaky",
            "scaled:scale=3",
        ]
    ):
        try:
            r = f(data(i, 3), s)
        except KeyError as e:
            r = e.args
        yield (r, dict(calls))


@steady
def subclasses_scanned(compiled):

    class Base:
        weight = 1.0

        def __init_subclass__(cls, **kw):
            super().__init_subclass__(**kw)
            cls.kind = kw.get("kind", cls.__name__.lower())

        def __call__(self, x):
            return x * self.weight

    class A(Base):
        weight = 2.0

    class B(Base):
        weight = 3.0

    made = []

    @compiled
    def f(x):
        return {c.kind: c()(x) for c in Base.__subclasses__()}

    for i in range(8):
        if i == 4:
            made.append(type("C", (Base,), {"weight": 5.0}))
        yield f(data(i, 2))


@growing
def weak_cache_of_features(compiled):

    class Key:
        pass

    cache = weakref.WeakValueDictionary()

    class Feat:
        def __init__(self, t):
            self.t = t

    @compiled
    def f(x, k, keep):
        got = cache.get(k)
        if got is None:
            got = Feat(x * 2)
            cache[k] = got
            if keep is not None:
                keep.append(got)
        return got.t + x

    keep = []
    for i in range(9):
        yield (f(data(i, 2), "ab"[i % 2], keep if i % 3 else None), sorted(cache), len(keep))


@steady
def closures_over_numbers_that_change(compiled):

    def make(k, t):

        def fn(x):
            nonlocal k
            k = k + 1
            return x * k + t

        return fn

    @compiled
    def f(x, fn):
        return (fn(fn(x)), fn.__name__, callable(fn))

    for i in range(14):
        fn = make(i, torch.ones(2) * i)
        yield (f(data(i, 2), fn), fn.__closure__[0].cell_contents)


@growing
def callbacks_kept_by_state(compiled):

    class Bus:
        def __init__(self):
            self.subs, self.last = (collections.defaultdict(list), None)

        def on(self, name, fn):
            self.subs[name].append(fn)
            return fn

        def emit(self, name, *a):
            return [fn(*a) for fn in self.subs[name]]

    bus = Bus()

    @compiled
    def f(x, handler):
        bus.last = handler
        bus.on("x", handler)
        return bus.emit("x", x)

    for i in range(9):
        yield (f(data(i, 2), lambda t, i=i: t * i), len(bus.subs["x"]), bus.last(torch.ones(1)))


@growing
def same_function_or_another(compiled):
    seen = {}

    @compiled
    def f(x, g, h):
        if g is h:
            return x
        seen[g] = seen.get(g, 0) + 1
        return (g(x) + h(x), seen[g])

    fs = [lambda x, k=k: x * k for k in range(3)]
    for i in range(14):
        yield (f(data(i, 2), fs[i % 3], fs[i * 2 % 3]), sorted(seen.values()))


@growing
def defaults_and_attributes_of_given_functions(compiled):

    def make(scale, tag):

        def fn(x, k=scale, *, b=tag):
            return x * k + len(b)

        fn.tag, fn.count = (tag, 0)
        return fn

    @compiled
    def f(x, fn):
        fn.count += 1
        return (fn(x), fn.tag, fn.__defaults__, fn.count)

    for i in range(12):
        fn = make(1.0 + i, "ab"[: 1 + i % 2])
        yield (f(data(i, 2), fn), fn.count)


@steady
def generators_sent_to_and_closed(compiled):
    log = []

    def acc():
        total = torch.zeros(2)
        try:
            while True:
                x = yield total
                total = total + x
        except GeneratorExit:
            log.append("closed")
            raise
        except KeyError as e:
            log.append(repr(e))
            yield (total * 10)

    @compiled
    def f(g, xs, end):
        outs = [g.send(x) for x in xs]
        if end == 1:
            g.close()
        if end == 2:
            outs.append(g.throw(KeyError("k")))
        return outs

    for i in range(8):
        g = acc()
        next(g)
        yield (f(g, [data(i, 2), data(i + 1, 2)], i % 3), list(log), next(g, "over") if i % 3 else None)


@growing
def generators_of_batches_with_enumerate_zip(compiled):

    def batches(n, s):
        for i in range(n):
            yield (data(s + i, 2), i)

    torch.manual_seed(0)
    net = nn.Linear(2, 1)

    @compiled
    def epoch(loader, extra):
        losses = []
        for k, (x, i) in enumerate(loader):
            if k == 2:
                break
            losses.append(net(x).square().mean() * (i + 1))
        a = sum(losses)
        b = [x.sum() for x, _ in loader]
        c = list(extra)
        d = max(t.sum().item() for t in c) if c else None
        return (a, b, len(c), d)

    for i in range(7):
        yield (
            epoch(batches(4, i), (data(k, 2) for k in range(i % 3))).__class__.__name__,
            [
                t.detach() if isinstance(t, torch.Tensor) else t
                for t in epoch(batches(3 + i % 2, i), iter([data(1, 2)]))[:2][0:1]
            ],
        )


@steady
def generator_that_raises_and_delegates(compiled):

    def inner(n):
        for i in range(n):
            yield torch.full((2,), float(i))
        raise ValueError(f"after {n}")

    def outer(n):
        try:
            yield from inner(n)
        except ValueError as e:
            yield torch.zeros(1)
            return str(e)

    @compiled
    def f(g, x):
        out = []
        while True:
            try:
                v = next(g)
            except StopIteration as s:
                return (out, s.value)
            except ValueError as e:
                return (out, ("raised", str(e)))
            out.append(v.sum() + x)

    for i in range(8):
        yield f(outer(2) if i % 2 else inner(1 + i % 3), data(i, 1))


@bounded
def generator_in_state_replaced_midway(compiled):

    def stream(k):
        while True:
            k += 1
            yield (torch.ones(2) * k)

    class Src:
        pass

    s = Src()
    s.g = stream(0)
    s.n = 0

    @compiled
    def f(x):
        s.n += 1
        v = next(s.g)
        if s.n % 4 == 0:
            s.g = stream(s.n * 10)
        return (v * x, s.n)

    for i in range(13):
        yield (f(data(i, 2)), next(s.g) if i == 6 else None)
