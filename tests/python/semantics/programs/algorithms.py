# size: table
# ruff: noqa: E741
"""Algorithms around tensors: searches, schedules, routers, samplers, parsers, buffers. As programs/whole_scripts.py has them."""

from __future__ import annotations

import array
import bisect
import collections
import dataclasses
import decimal
import fractions
import functools
import heapq
import math
import random
import struct
import typing

import torch
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@growing
def priority_search(compiled):
    W = data(3, 4, 4).abs()

    @compiled
    def f(src, dst):
        dist, heap, prev = {src: 0.0}, [(0.0, src)], {}
        while heap:
            d, u = heapq.heappop(heap)
            if u == dst:
                break
            if d > dist.get(u, math.inf):
                continue
            for v in range(4):
                nd = d + W[u, v].item()
                if v != u and nd < dist.get(v, math.inf):
                    dist[v] = nd
                    prev[v] = u
                    heapq.heappush(heap, (nd, v))
        path = [dst]
        while path[-1] != src:
            path.append(prev[path[-1]])
        return W[path].sum(), path[::-1], round(dist[dst], 4)

    for i in range(8):
        yield f(i % 4, (i + 1 + i // 4) % 4) if i % 4 != (i + 1 + i // 4) % 4 else None


@growing
def interning_pool(compiled):
    class Sym:
        pool = {}

        def __new__(cls, n):
            if n in cls.pool:
                return cls.pool[n]
            s = super().__new__(cls)
            s.n = n
            s.uses = 0
            cls.pool[n] = s
            return s

        def __hash__(self):
            return hash(self.n)

        def __repr__(self):
            return f"<{self.n}:{self.uses}>"

    @compiled
    def f(x, names):
        for n in names:
            Sym(n).uses += 1
        return x * Sym("a").uses, [repr(Sym(n)) for n in names], Sym("a") is Sym("a")

    for i in range(9):
        yield f(data(i, 2), ["ab", "bc", "a"][i % 3]), len(Sym.pool)


@growing
def curriculum(compiled):
    class Curriculum:
        levels = [(0, 2), (3, 3), (6, 4)]

        def __init__(self):
            self.step, self.hist = 0, collections.deque(maxlen=3)

        @property
        def length(self):
            return max(l for s, l in self.levels if s <= self.step)

        def record(self, loss):
            self.hist.append(loss)
            self.step += 1
            return len(self.hist) == 3 and max(self.hist) < 1e9

    c = Curriculum()

    @compiled
    def f(x):
        y = x[:, : c.length]
        loss = y.pow(2).mean()
        return loss, c.record(loss.item()), c.length

    for i in range(16):
        yield f(data(i, 3, 5))


@growing
def mixture_router(compiled):
    torch.manual_seed(2)

    class Moe(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(3, 3)
            self.ex = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
            self.load = [0] * 3

        def forward(self, x):
            w, idx = self.gate(x).softmax(-1).topk(2, -1)
            out = torch.zeros_like(x)
            for i, e in enumerate(self.ex):
                r, k = torch.where(idx == i)
                if r.numel() == 0:
                    continue
                self.load[i] += len(r)
                out = out.index_add(0, r, e(x[r]) * w[r, k, None])
            return out

    m = Moe()
    f = compiled(m)
    for i in range(8):
        yield f(data(i, 4 + i % 2, 3)), list(m.load)


@steady
def dynamic_halting(compiled):
    torch.manual_seed(2)
    cell, halt = nn.GRUCell(2, 3), nn.Linear(3, 1)

    @compiled
    def f(x):
        h, total, steps = torch.zeros(x.shape[0], 3), torch.zeros(x.shape[0], 1), 0
        while steps < 6:
            h = cell(x, h)
            total = total + halt(h).sigmoid()
            steps += 1
            if bool((total > 1).all()):
                break
        return h, steps

    for i in range(8):
        yield f(data(i, 2, 2))


@steady
def tree_lstm(compiled):
    torch.manual_seed(2)
    U = nn.Linear(6, 3)

    class T(typing.NamedTuple):
        x: torch.Tensor
        kids: tuple = ()

    @compiled
    def f(t):
        def go(t):
            if not t.kids:
                return t.x
            return torch.tanh(U(torch.cat([t.x, sum(map(go, t.kids))])))

        return go(t)

    def mk(i, d):
        return T(data(i + d, 3), tuple(mk(i * 2 + k, d - 1) for k in range(2)) if d else ())

    for i in range(8):
        yield f(mk(i, 1 + i % 2))


@steady
def sampling_top_p(compiled):
    @compiled
    def f(logits, p, temp, seen):
        logits = logits / temp
        for t in set(seen):
            logits[t] = logits[t] / 1.2
        s, idx = logits.softmax(-1).sort(descending=True)
        keep = s.cumsum(-1) - s < p
        s = torch.where(keep, s, 0.0)
        t = idx[(s / s.sum()).argmax()].item()
        seen.append(t)
        return t, keep.sum()

    seen = []
    for i in range(60):
        yield f(data(i, 5), 0.5 + 0.006 * i, 1.0 + 0.1 * i, seen), list(seen)


@steady
def ring_buffer(compiled):
    class Ring:
        def __init__(self, n, d):
            self.b, self.i, self.full = torch.zeros(n, d), 0, False

        def push(self, x):
            self.b[self.i] = x
            self.i = (self.i + 1) % len(self.b)
            self.full = self.full or self.i == 0

        def __len__(self):
            return len(self.b) if self.full else self.i

        def view(self):
            return self.b[: len(self)]

    r = Ring(4, 2)

    @compiled
    def f(x):
        r.push(x)
        return r.view().mean(0), len(r), r.i

    for i in range(14):
        yield f(data(i, 2))


@steady
def scheduler_objects(compiled):
    class Sched:
        def __init__(self, opt):
            self.opt, self.n = opt, 0

        def step(self):
            self.n += 1
            for g in self.opt.param_groups:
                g["lr"] = self.at(self.n)

    class Warm(Sched):
        def at(self, n):
            return 0.1 * min(1, n / 4)

    class Cos(Sched):
        def at(self, n):
            return 0.05 * (1 + math.cos(math.pi * n / 10))

    class Chain:
        def __init__(self, a, b, at):
            self.a, self.b, self.at, self.n = a, b, at, 0

        def step(self):
            self.n += 1
            (self.a if self.n <= self.at else self.b).step()

    w = nn.Parameter(torch.ones(3))
    opt = torch.optim.SGD([w], 0.0, momentum=0.5)
    s = Chain(Warm(opt), Cos(opt), 4)

    @compiled
    def f(x):
        opt.zero_grad()
        ((w * x) ** 2).sum().backward()
        opt.step()
        s.step()
        return opt.param_groups[0]["lr"]

    for i in range(12):
        yield f(data(i, 3)), w


@steady
def gradient_surgery(compiled):
    w = torch.ones(3, requires_grad=True)

    @compiled
    def f(xs):
        gs = [torch.autograd.grad((w * x).sum().sin(), w)[0] for x in xs]
        out = []
        for i, g in enumerate(gs):
            for j, h in enumerate(gs):
                if i != j:
                    dot = (g * h).sum()
                    if dot < 0:
                        g = g - dot / h.norm() ** 2 * h
            out.append(g)
        return sum(out)

    for i in range(8):
        yield f([data(i, 3), data(i + 7, 3)])


@steady
def augment_compose(compiled):
    random.seed(5)

    class Compose(list):
        def __call__(self, x):
            for t in self:
                x = t(x)
            return x

    class RandomApply:
        def __init__(self, t, p):
            self.t, self.p, self.n = t, p, 0

        def __call__(self, x):
            if random.random() < self.p:
                self.n += 1
                return self.t(x)
            return x

    class Crop:
        def __call__(self, x):
            i = random.randint(0, x.shape[-1] - 3)
            return x[..., i : i + 3]

    ra = RandomApply(lambda x: x.flip(-1), 0.5)
    c = Compose([Crop(), ra, lambda x: x * random.choice([1.0, 2.0])])
    f = compiled(lambda x: c(x))
    for i in range(16):
        yield f(data(i, 2, 6)), ra.n


@steady
def text_table(compiled):
    @dataclasses.dataclass(order=True)
    class Row:
        score: float
        name: str = dataclasses.field(compare=False)

        def __str__(self):
            return f"{self.name:<6}{self.score:>8.3f}"

    rows = []

    @compiled
    def f(x, name):
        rows.append(Row(x.abs().sum().item(), name))
        rows.sort(reverse=True)
        del rows[3:]
        return x * rows[0].score, "\n".join(map(str, rows))

    for i in range(18):
        yield f(data(i, 3), f"n{i}")


@growing
def confusion(compiled):
    cm = [[0] * 3 for _ in range(3)]

    @compiled
    def f(logits, y):
        p = logits.argmax(-1)
        for a, b in zip(y.tolist(), p.tolist()):
            cm[a][b] += 1
        tp = sum(cm[i][i] for i in range(3))
        n = sum(map(sum, cm))
        return logits.sum(), tp / n

    for i in range(12):
        yield f(data(i, 3, 3), torch.arange(3)), [list(r) for r in cm]


@steady
def ema_meters_text(compiled):
    class Meter:
        def __init__(self, name, fmt=":.3f"):
            self.name, self.fmt = name, fmt
            self.sum = self.n = 0

        def update(self, v, n=1):
            self.sum += v * n
            self.n += n
            self.val = v

        @property
        def avg(self):
            return self.sum / self.n

        def __str__(self):
            return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(
                name=self.name, val=self.val, avg=self.avg
            )

    ms = [Meter("loss", ":.4f"), Meter("acc", ":6.2f")]
    lines = []

    @compiled
    def f(x, step):
        ms[0].update(x.pow(2).mean().item(), len(x))
        ms[1].update((x > 0).float().mean().item() * 100, len(x))
        if step % 2 == 0:
            lines.append(f"[{step}/12] " + "  ".join(str(m) for m in ms))
        return x / ms[0].avg

    for i in range(12):
        yield f(data(i, 3), i), lines[-1]


@steady
def plugin_hooks_order(compiled):
    class Hook:
        prio = 0

        def before(self, r):
            pass

        def after(self, r):
            pass

    class A(Hook):
        prio = 5

        def before(self, r):
            r.ctx["a"] = r.step

    class B(Hook):
        prio = 1

        def after(self, r):
            r.ctx.setdefault("sum", 0)
            r.ctx["sum"] += r.step

    class Runner:
        def __init__(self):
            self.hooks, self.ctx, self.step = [], {}, 0

        def add(self, h):
            bisect.insort(self.hooks, h, key=lambda h: -h.prio)

        def call(self, n):
            [getattr(h, n)(self) for h in self.hooks]

        def run(self, x):
            self.call("before")
            y = x * self.ctx["a"]
            self.step += 1
            self.call("after")
            return y

    r = Runner()
    r.add(B())
    r.add(A())
    f = compiled(r.run)
    for i in range(10):
        if i == 5:
            r.add(B())
        yield f(data(i, 2)), dict(r.ctx)


@steady
def keyword_only_partial(compiled):
    def base(x, /, *args, scale=1.0, **kw):
        return x * scale + sum(args) + kw.get("bias", 0)

    class Fn:
        def __init__(self, f, **kw):
            self.f, self.kw = f, kw

        def __call__(self, *a, **k):
            return self.f(*a, **{**self.kw, **k})

        def with_(self, **k):
            return Fn(functools.partial(self.f, **self.kw), **k)

    @compiled
    def f(x, s, b):
        g = Fn(base, scale=s).with_(bias=b)
        h = functools.partial(base, x, 1, 2)
        return g(x, 3), h(scale=b), h.keywords, g(x, scale=2.0)

    for i in range(8):
        yield f(data(i, 2), 0.5 * i, i)


@growing
def fractions_decimals(compiled):
    acc = {"f": fractions.Fraction(0), "d": decimal.Decimal("0")}

    @compiled
    def f(x, n):
        acc["f"] += fractions.Fraction(1, n + 1)
        acc["d"] += decimal.Decimal(n) / 4
        return x * float(acc["f"]), str(acc["d"])

    for i in range(10):
        yield f(data(i, 2), i), acc["f"]


@steady
def arrays_of_module_array(compiled):
    buf = array.array("d", [0.0] * 3)

    @compiled
    def f(x, i):
        buf[i % 3] = float(i)
        return x * buf[0] + sum(buf), buf.tolist()

    for i in range(8):
        yield f(data(i, 2), i)


@steady
def bytes_and_struct(compiled):

    @compiled
    def f(x, n):
        p = struct.pack("<if", n, 0.5 * n)
        a, b = struct.unpack("<if", p)
        return x * a + b, p.hex(), int.from_bytes(p[:4], "little")

    for i in range(20):
        yield f(data(i, 2), i)


@steady
def module_swapping(compiled):
    torch.manual_seed(3)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(2, 2)
            self.head = nn.Identity()
            self.n = 0

        def forward(self, x):
            self.n += 1
            if self.n == 4:
                self.head = nn.Linear(2, 1)
            return self.head(self.body(x))

    m = Net()
    f = compiled(m)
    for i in range(9):
        yield f(data(i, 3, 2)), m.n


@growing
def spectral_state(compiled):
    torch.manual_seed(3)
    lin = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))
    wn = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    f = compiled(lambda x: wn(lin(x)))
    for i in range(8):
        if i == 5:
            lin.eval()
        yield f(data(i, 2, 3))
