# size: table
# ruff: noqa: E741, RUF015
"""Objects that build, visit, schedule and undo: classes of all kinds in programs of some length. As programs/whole_scripts.py has
them."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import operator
import types

import torch

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@steady
def trainer_events(compiled):
    class Event(enum.Enum):
        START = 1
        STEP = 2
        END = 3

    class Engine:
        def __init__(self):
            self.handlers = collections.defaultdict(list)
            self.state = types.SimpleNamespace(epoch=0, it=0, metrics={})

        def on(self, ev, every=1):
            def deco(f):
                self.handlers[ev].append((every, f))
                return f

            return deco

        def fire(self, ev):
            for every, f in self.handlers[ev]:
                if self.state.it % every == 0:
                    f(self)

        def run(self, batches, fn):
            self.fire(Event.START)
            out = []
            for b in batches:
                self.state.it += 1
                out.append(fn(self, b))
                self.fire(Event.STEP)
            self.state.epoch += 1
            self.fire(Event.END)
            return out

    e = Engine()
    log = []

    @e.on(Event.STEP, every=2)
    def a(en):
        log.append(f"it {en.state.it}")

    @e.on(Event.END)
    def b(en):
        en.state.metrics["n"] = en.state.it

    run = compiled(lambda bs: e.run(bs, lambda en, x: x * en.state.it))
    for i in range(8):
        yield run([data(i, 2), data(i + 1, 2)]), vars(e.state), len(log)
    yield log


@steady
def builder_fluent(compiled):
    class Pipe:
        def __init__(self):
            self.steps = []

        def __getattr__(self, n):
            if n.startswith("_"):
                raise AttributeError(n)

            def add(*a, **k):
                self.steps.append((n, a, k))
                return self

            return add

        def __call__(self, x):
            for n, a, k in self.steps:
                x = getattr(torch.Tensor, n)(x, *a, **k)
            return x

        def __or__(self, o):
            p = Pipe()
            p.steps = self.steps + o.steps
            return p

    @compiled
    def f(x, lo):
        p = Pipe().clamp(min=lo).mul(2) | Pipe().add(1)
        return p(x), len(p.steps)

    for i in range(8):
        yield f(data(i, 3), -0.1 * i)


@steady
def visitor_ast(compiled):
    class Node:
        def accept(self, v):
            return getattr(v, f"visit_{type(self).__name__.lower()}", v.generic)(self)

    @dataclasses.dataclass
    class Num(Node):
        v: float

    @dataclasses.dataclass
    class Var(Node):
        name: str

    @dataclasses.dataclass
    class Bin(Node):
        op: str
        l: Node
        r: Node

    class Eval:
        def __init__(self, env):
            self.env, self.seen = env, 0

        def visit_num(self, n):
            return n.v

        def visit_var(self, n):
            self.seen += 1
            return self.env[n.name]

        def visit_bin(self, n):
            a, b = n.l.accept(self), n.r.accept(self)
            return {"+": operator.add, "*": operator.mul, "-": operator.sub}[n.op](a, b)

        def generic(self, n):
            raise NotImplementedError(type(n).__name__)

    class Other(Node):
        pass

    trees = [Bin("+", Var("x"), Num(2.0)), Bin("*", Bin("-", Var("x"), Var("y")), Num(0.5)), Other()]

    @compiled
    def f(t, x, y):
        e = Eval({"x": x, "y": y})
        try:
            return t.accept(e), e.seen
        except NotImplementedError as err:
            return str(err), e.seen

    for i in range(12):
        yield f(trees[i % 3], data(i, 2), data(i + 1, 2))


@steady
def metaclass_registry(compiled):
    class Reg(type):
        all = {}

        def __new__(m, n, b, ns, **kw):
            c = super().__new__(m, n, b, ns)
            if b:
                m.all[kw.get("name", n.lower())] = c
            return c

        def __init__(c, n, b, ns, **kw):
            super().__init__(n, b, ns)

        def __call__(c, *a, **k):
            o = super().__call__(*a, **k)
            o.made = True
            return o

    class Layer(metaclass=Reg):
        def __init__(self, k=1.0):
            self.k = k

    class Mul(Layer, name="times"):
        def __call__(self, x):
            return x * self.k

    class Add(Layer):
        def __call__(self, x):
            return x + self.k

    @compiled
    def f(x, spec):
        layers = [Reg.all[n](k) for n, k in spec]
        for l in layers:
            x = l(x)
        return x, all(l.made for l in layers), sorted(Reg.all)

    for i in range(9):
        yield f(data(i, 2), [[("times", 2.0)], [("add", i * 1.0), ("times", 3.0)], []][i % 3])


@growing
def descriptor_typed(compiled):
    class Bounded:
        def __init__(self, lo, hi):
            self.lo, self.hi = lo, hi

        def __set_name__(self, o, n):
            self.n = "_" + n

        def __get__(self, o, t=None):
            return self if o is None else getattr(o, self.n)

        def __set__(self, o, v):
            if not self.lo <= v <= self.hi:
                raise ValueError(f"{self.n[1:]}={v} not in [{self.lo}, {self.hi}]")
            setattr(o, self.n, v)

    class Opt:
        lr = Bounded(0.0, 1.0)
        mom = Bounded(0.0, 0.99)

        def __init__(self):
            self.lr, self.mom = 0.1, 0.9
            self.buf = None

        def step(self, p, g):
            self.buf = g if self.buf is None else self.mom * self.buf + g
            return p - self.lr * self.buf

    o = Opt()

    @compiled
    def f(p, g, scale):
        try:
            o.lr = o.lr * scale
        except ValueError as e:
            return p, str(e)
        return o.step(p, g), o.lr

    p = torch.ones(3)
    for i in range(14):
        p, m = f(p, data(i, 3), [1.2, 1.5, 0.9][i % 3])
        yield p, m, o.lr


@steady
def coroutine_scheduler(compiled):
    class Task:
        ids = itertools.count()

        def __init__(self, g):
            self.g, self.out = g, []

    def worker(x, n):
        for k in range(n):
            got = yield x * k
            if got is not None:
                x = x + got
        return x.sum()

    @compiled
    def f(x, ns):
        q = collections.deque(Task(worker(x, n)) for n in ns)
        done = []
        while q:
            t = q.popleft()
            try:
                t.out.append(t.g.send(None if not t.out else t.out[-1]))
                q.append(t)
            except StopIteration as s:
                done.append(s.value)
        return torch.stack(done)

    for i in range(8):
        yield f(data(i, 2), [1 + i % 2, 2])


@steady
def exception_groups(compiled):
    class Bad(ValueError):
        def __init__(self, i, why):
            super().__init__(i, why)
            self.i = i

    @compiled
    def f(xs, limit):
        ok, errs = [], []
        for i, x in enumerate(xs):
            try:
                if x.shape[0] > limit:
                    raise Bad(i, f"too long: {x.shape[0]}")
                ok.append(x.sum())
            except Bad as e:
                e.add_note("note")
                errs.append(e)
        try:
            if errs:
                raise ExceptionGroup("bad", errs)
        except* Bad as g:
            ok.append(torch.tensor(float(len(g.exceptions))))
        else:
            ok.append(torch.zeros(()))
        return torch.stack(ok), [str(e) for e in errs]

    for i in range(9):
        yield f([data(i, 2), data(i, 3 + i % 2), data(i, 1)], 2 + i % 3)


@steady
def suppress_and_exitstack(compiled):
    log = []

    class Res:
        def __init__(self, n):
            self.n = n

        def __enter__(self):
            log.append("+" + self.n)
            return self

        def __exit__(self, t, v, tb):
            log.append("-" + self.n + (t.__name__ if t else ""))
            return t is KeyError

    @compiled
    def f(x, key):
        with contextlib.ExitStack() as st:
            rs = [st.enter_context(Res(n)) for n in "ab"]
            st.callback(log.append, "cb")
            y = {"k": x * 2}[key]
            return y, len(rs)
        with contextlib.suppress(ZeroDivisionError):
            return x * (1 / 0)
        return x, 0

    for i in range(8):
        yield f(data(i, 2), "kz"[i % 2]), list(log)
        log.clear()


@steady
def number_tower(compiled):
    class Dual:
        __slots__ = ("d", "v")

        def __init__(self, v, d):
            self.v, self.d = v, d

        def __add__(s, o):
            o = o if isinstance(o, Dual) else Dual(o, 0.0)
            return Dual(s.v + o.v, s.d + o.d)

        __radd__ = __add__

        def __mul__(s, o):
            o = o if isinstance(o, Dual) else Dual(o, 0.0)
            return Dual(s.v * o.v, s.v * o.d + s.d * o.v)

        __rmul__ = __mul__

        def __pow__(s, n):
            return functools.reduce(operator.mul, [s] * n)

        def __bool__(s):
            return s.d is not None

        def __eq__(s, o):
            return isinstance(o, Dual) and s.v is o.v

        __hash__ = None

    @compiled
    def f(x, a, n):
        y = sum([Dual(x, torch.ones_like(x)) ** n * a, 3, Dual(x, x)])
        return y.v, y.d, bool(y), y == y

    for i in range(9):
        yield f(data(i, 2), 0.5 * i, 1 + i % 3)


@steady
def lazy_sequence(compiled):
    class Lazy(collections.abc.Sequence):
        def __init__(self, n, fn):
            self.n, self.fn, self.cache = n, fn, {}

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            if isinstance(i, slice):
                return [self[k] for k in range(*i.indices(self.n))]
            if i < 0:
                i += self.n
            if not 0 <= i < self.n:
                raise IndexError(i)
            if i not in self.cache:
                self.cache[i] = self.fn(i)
            return self.cache[i]

    @compiled
    def f(x, n):
        s = Lazy(n, lambda i: x * i)
        return s[-1] + sum(s), len(s.cache), s[1:3], list(reversed(s))[0], (5 in range(n)), s.index(s[0])

    for i in range(9):
        yield f(data(i, 2), 3 + i % 2)


@growing
def undo_stack(compiled):
    class Doc:
        def __init__(self):
            self.x, self.undo, self.redo = torch.zeros(2), [], []

        def do(self, cmd, *a):
            self.undo.append(self.x)
            self.redo.clear()
            self.x = getattr(self, "c_" + cmd)(*a)

        def c_add(self, t):
            return self.x + t

        def c_scale(self, k):
            return self.x * k

        def back(self):
            if not self.undo:
                return False
            self.redo.append(self.x)
            self.x = self.undo.pop()
            return True

    d = Doc()

    @compiled
    def f(cmd, *a):
        if cmd == "back":
            return d.back(), d.x
        d.do(cmd, *a)
        return len(d.undo), d.x

    seq = ["add", "add", "scale", "back", "back", "add", "scale", "back"]
    for i in range(16):
        c = seq[i % 8]
        yield f(c, *([data(i, 2)] if c == "add" else [0.5 + i] if c == "scale" else [])), len(d.redo)
