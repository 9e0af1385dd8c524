"""Forms of the language: generators with send(), coroutines, patterns, containers, descriptors, subclasses."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import heapq
import typing

import torch

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@growing
def annotated_generator_protocol(compiled):

    def running():
        total, count = (None, 0)
        try:
            while True:
                x = yield (total / count if count else None)
                if x is None:
                    total, count = (None, 0)
                    continue
                total = x if total is None else total + x
                count += 1
        except ValueError as e:
            yield ("error", str(e), count)
        finally:
            log.append(f"closed at {count}")

    log = []

    @compiled
    def f(xs, reset, fail):
        g = running()
        next(g)
        outs = []
        for i, x in enumerate(xs):
            outs.append(g.send(x))
            if i == reset:
                g.send(None)
        if fail:
            outs.append(g.throw(ValueError("stop")))
        g.close()
        return (outs, len(log))

    for i in range(8):
        yield (f([data(i * 3 + k, 2) for k in range(2 + i % 2)], i % 3, i % 4 == 3), list(log))


@steady
def async_batches_gathered(compiled):

    class Queue:
        def __init__(self):
            self.items, self.waits = (collections.deque(), 0)

        async def put(self, x):
            self.items.append(x)
            await Tick()

        async def get(self):
            while not self.items:
                self.waits += 1
                await Tick()
            return self.items.popleft()

    class Tick:
        def __await__(self):
            yield "tick"

    async def producer(q, xs):
        for x in xs:
            await q.put(x * 2)

    async def consumer(q, n):
        out = []
        for _ in range(n):
            out.append((await q.get()).sum())
        return torch.stack(out)

    def drive(*coros):
        live, results, ticks = (list(enumerate(coros)), {}, 0)
        while live:
            nxt = []
            for i, c in live:
                try:
                    c.send(None)
                    ticks += 1
                    nxt.append((i, c))
                except StopIteration as stop:
                    results[i] = stop.value
            live = nxt
        return (results, ticks)

    @compiled
    def f(xs):
        q = Queue()
        r, ticks = drive(consumer(q, len(xs)), producer(q, xs))
        return (r[1 - 1], ticks, q.waits)

    for i in range(7):
        yield f([data(i + k, 3) for k in range(2 + i % 3)])


@growing
def match_on_trees(compiled):

    @dataclasses.dataclass
    class Num:
        v: torch.Tensor

    @dataclasses.dataclass
    class Bin:
        op: str
        el: typing.Any
        r: typing.Any

    @dataclasses.dataclass
    class Call:
        name: str
        args: list

    def ev(e, env, depth=0):
        match e:
            case Num(v):
                return v
            case str() as n if n in env:
                return env[n]
            case str(n):
                raise NameError(n)
            case Bin("+", el, r):
                return ev(el, env, depth + 1) + ev(r, env, depth + 1)
            case Bin("*" | "x", el, r):
                return ev(el, env, depth + 1) * ev(r, env, depth + 1)
            case Bin(op=op):
                raise ValueError(f"{op!r} at {depth}")
            case Call("relu", [a]):
                return ev(a, env, depth + 1).relu()
            case Call("max", [a, *rest]):
                return functools.reduce(torch.maximum, [ev(r, env) for r in rest], ev(a, env))
            case {"let": [n, v], "in": body}:
                return ev(body, {**env, n: ev(v, env)}, depth)
            case [*es]:
                return [ev(q, env, depth + 1) for q in es]
            case int() | float():
                return torch.tensor(float(e))
            case _:
                return None

    trees = [
        lambda x: Bin("+", Num(x), "y"),
        lambda x: Call("relu", [Bin("*", "y", Num(x))]),
        lambda x: {"let": ("z", Num(x)), "in": Bin("x", "z", "z")},
        lambda x: [Num(x), 3, 2.5, Call("max", ["y", Num(x), Num(-x)])],
        lambda x: Bin("/", Num(x), 1),
        lambda x: "q",
        lambda x: None,
    ]
    f = compiled(lambda t, y: ev(t, {"y": y}))
    for i in range(14):
        try:
            r = f(trees[i % 7](data(i, 2)), data(i + 90, 2))
        except (ValueError, NameError) as e:
            r = (type(e).__name__, str(e))
        yield r


@growing
def custom_mapping_and_sequence(compiled):

    class Batch(collections.abc.MutableMapping):
        def __init__(self, **kw):
            self._d, self.reads = (dict(kw), 0)

        def __getitem__(self, k):
            self.reads += 1
            return self._d[k]

        def __setitem__(self, k, v):
            self._d[k] = v

        def __delitem__(self, k):
            del self._d[k]

        def __iter__(self):
            return iter(sorted(self._d))

        def __len__(self):
            return len(self._d)

        def __missing__(self, k):
            raise KeyError(k)

    class Window(collections.abc.Sequence):
        def __init__(self, xs, n):
            self.xs, self.n = (xs, n)

        def __len__(self):
            return max(0, len(self.xs) - self.n + 1)

        def __getitem__(self, i):
            if isinstance(i, slice):
                return [self[j] for j in range(*i.indices(len(self)))]
            if i < 0:
                i += len(self)
            if not 0 <= i < len(self):
                raise IndexError(i)
            return torch.stack(self.xs[i : i + self.n])

    @compiled
    def f(b, n):
        b.setdefault("bias", torch.zeros(2))
        w = Window(b["xs"], n)
        b.update(mean=torch.stack([q.mean(0) for q in w]).mean(0) if w else None)
        last = w[-1] if len(w) else None
        k = b.pop("junk", None)
        return (
            {k: v for k, v in b.items() if k != "xs"},
            last,
            k,
            [q.sum() for q in reversed(w)][:2],
            w[::2][:1],
            "mean" in b,
        )

    for i in range(8):
        b = Batch(xs=[data(i + k, 2) for k in range(3 + i % 3)], **{"junk": i} if i % 2 else {})
        yield (f(b, 2 + i % 2), b.reads, list(b))


@growing
def tensor_subclass_with_units(compiled):

    class Unit(torch.Tensor):
        @staticmethod
        def __new__(cls, x, unit="m"):
            r = torch.Tensor._make_subclass(cls, x)
            r.unit = unit
            return r

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            units = [a.unit for a in args if isinstance(a, Unit)]
            out = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(out, Unit):
                if func in (torch.Tensor.add, torch.add) and len(set(units)) > 1:
                    raise TypeError(f"{units[0]}+{units[1]}")
                out.unit = (
                    "*".join(units) if func in (torch.Tensor.mul, torch.mul) and len(units) > 1 else (units or ["?"])[0]
                )
            return out

    @compiled
    def f(x, a, b, op):
        u, v = (Unit(x, a), Unit(x * 2, b))
        r = u + v if op == "add" else u * v if op == "mul" else torch.stack([u, v]).sum()
        return (r.as_subclass(torch.Tensor), getattr(r, "unit", None), type(r).__name__)

    for i in range(9):
        try:
            r = f(data(i, 3), "m", ["m", "s"][i % 2], ["add", "mul", "stack"][i % 3])
        except TypeError as e:
            r = str(e)
        yield r


@steady
def named_dims_by_descriptor(compiled):

    class Dim:
        def __set_name__(self, owner, name):
            self.name = name
            owner._dims = [*getattr(owner, "_dims", []), name]

        def __get__(self, obj, cls=None):
            return self if obj is None else obj.t.shape[type(obj)._dims.index(self.name)]

        def __set__(self, obj, v):
            obj.t = obj.t.narrow(type(obj)._dims.index(self.name), 0, v)

    class Named:
        __slots__ = ("__dict__", "t")
        batch, time, chan = (Dim(), Dim(), Dim())

        def __init__(self, t):
            self.t = t

        def __matmul__(self, o):
            return Named(self.t @ o)

        def __rshift__(self, f):
            return Named(f(self.t))

        def __getattr__(self, n):
            if n.startswith("over_"):
                return lambda fn: fn(self.t, dim=type(self)._dims.index(n[5:]))
            raise AttributeError(n)

    @compiled
    def f(x, w, keep):
        n = Named(x) @ w
        n.time = min(keep, n.time)
        n = n >> torch.tanh
        n.note = f"{n.batch}x{n.chan}"
        return (n.t, n.over_time(torch.sum), n.time, n.note, hasattr(n, "nope"))

    for i in range(8):
        yield f(data(i, 2 + i % 2, 3 + i % 3, 4), data(9, 4, 2), 2 + i % 2)


@bounded
def visitors_by_singledispatchmethod(compiled):

    class V:
        def __init__(self):
            self.n = 0

        @functools.singledispatchmethod
        def visit(self, o):
            raise NotImplementedError(type(o).__name__)

        @visit.register
        def _(self, o: torch.Tensor):
            self.n += 1
            return o.sum()

        @visit.register
        def _(self, o: list):
            return sum(map(self.visit, o))

        @visit.register
        def _(self, o: dict):
            return {k: self.visit(v) for k, v in o.items()}

        @visit.register(int)
        @visit.register(float)
        def _(self, o):
            return torch.tensor(float(o))

    v = V()
    f = compiled(v.visit)
    for i in range(9):
        try:
            r = f([data(i, 2), [data(i + 1, 3), 2 + i, {"a": 1.5}["a"]], "x"][: 2 + (i % 4 == 3)])
        except NotImplementedError as e:
            r = str(e)
        yield (r, v.n)


@steady
def namedtuples_made_inside(compiled):

    @compiled
    def f(x, fields):
        T = collections.namedtuple("T", fields)
        t = T(*[x * i for i in range(len(fields))])
        return (t._asdict(), t[0], type(t).__name__)

    for i in range(8):
        yield f(data(i, 2), ["a", "b"] if i % 2 else ["p", "q", "r"])


@steady
def temporaries_with_setstate_and_copy(compiled):

    class Box:
        def __init__(self, t, meta):
            self.t, self.meta = (t, meta)

        def __getstate__(self):
            return {"t": self.t, "meta": dict(self.meta, copied=True)}

        def __setstate__(self, s):
            self.__dict__.update(s)
            self.t = self.t + 1

        def __deepcopy__(self, memo):
            return Box(self.t * 2, copy.deepcopy(self.meta, memo))

    @compiled
    def f(x, n):
        b = Box(x, {"n": n})
        c = copy.copy(b)
        d = copy.deepcopy(b)
        e = dataclasses.replace(Conf(n=n), lr=0.5)
        d.meta["n"] += 1
        return (b.t, c.t, d.t, b.meta, c.meta, d.meta, e.lr * x)

    @dataclasses.dataclass(frozen=True)
    class Conf:
        n: int
        lr: float = 0.1

    for i in range(8):
        yield f(data(i, 2), i)


@growing
def comparisons_of_rich_objects(compiled):

    @functools.total_ordering
    class Cand:
        def __init__(self, s, t):
            self.s, self.t = (s, t)

        def __eq__(self, o):
            return isinstance(o, Cand) and self.s == o.s

        def __lt__(self, o):
            return self.s < o.s

        def __hash__(self):
            return hash(round(self.s, 2))

    @compiled
    def f(x):
        cs = [Cand(v, x[i]) for i, v in enumerate(x.tolist())]
        best = max(cs)
        uniq = {c for c in cs}
        top = heapq.nsmallest(2, cs)
        return (best.t, len(uniq), [c.t for c in top], sorted(cs)[0].s == min(cs).s, cs.index(best))

    for i in range(9):
        yield f(data(i, 4))
