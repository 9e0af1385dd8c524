# size: table
# ruff: noqa: E741, B007
"""Parts of training and inference code: replay, beams, tokenizers, caches, teachers, metrics. As programs/whole_scripts.py has
them."""

from __future__ import annotations

import asyncio
import collections
import copy
import functools
import heapq
import math
import random
import re

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@steady
def numpy_in_the_middle(compiled):
    @compiled
    def f(x, k):
        y = x.relu() + k
        a = y.detach().numpy()
        idx = np.argsort(a.sum(axis=1))[::-1].copy()
        m = np.percentile(a, 50)
        z = y[torch.from_numpy(idx)]
        return z * float(m), idx.tolist(), np.round(m, 3)

    for i in range(10):
        yield f(data(i, 3 + i % 2, 2), i)


@steady
def state_machine(compiled):
    class Machine:
        TRANSITIONS = {
            ("idle", "start"): "run",
            ("run", "pause"): "idle",
            ("run", "stop"): "end",
            ("end", "reset"): "idle",
        }

        def __init__(self):
            self.state, self.history, self.ticks = "idle", [], 0

        def send(self, ev):
            try:
                new = self.TRANSITIONS[self.state, ev]
            except KeyError:
                raise ValueError(f"cannot {ev} while {self.state}") from None
            self.history.append((self.state, new))
            self.state = new
            getattr(self, f"on_{new}", lambda: None)()

        def on_run(self):
            self.ticks += 1

    m = Machine()

    @compiled
    def f(x, ev):
        try:
            m.send(ev)
        except ValueError as e:
            return x * -1, str(e)
        return {"idle": x, "run": x * m.ticks, "end": x * 0}[m.state], m.state

    evs = ["start", "pause", "start", "stop", "start", "reset", "start", "pause", "start", "stop", "reset"]
    for i, e in enumerate(evs * 2):
        yield f(data(i, 2), e), m.ticks, len(m.history)


@growing
def rl_replay(compiled):
    class Env:
        def __init__(self):
            self.pos, self.t, self.goal = torch.zeros(2), 0, torch.ones(2)

        def reset(self):
            self.pos, self.t = torch.zeros(2), 0
            return self.pos

        def step(self, a):
            self.t += 1
            self.pos = self.pos + 0.1 * a
            d = (self.pos - self.goal).norm()
            return self.pos, -d, bool(d < 0.5) or self.t >= 6, {"t": self.t}

    class Replay:
        def __init__(self, cap):
            self.buf, self.cap, self.i = [], cap, 0

        def push(self, *tr):
            if len(self.buf) < self.cap:
                self.buf.append(tr)
            else:
                self.buf[self.i % self.cap] = tr
            self.i += 1

        def sample(self, rng, n):
            return [torch.stack(c) for c in zip(*rng.sample(self.buf, n))]

        def __len__(self):
            return len(self.buf)

    env, rep, rng = Env(), Replay(8), random.Random(0)
    w = torch.eye(2)

    @compiled
    def act(w, s):
        return torch.tanh(s @ w + 1)

    @compiled
    def collect(w, s):
        a = act(w, s)
        s2, r, done, info = env.step(a)
        rep.push(s, a, r, s2)
        return s2, done, info

    @compiled
    def learn(w):
        s, a, r, s2 = rep.sample(rng, 4)
        td = r + 0.9 * (s2 @ w).sum(1) - (s @ w).sum(1)
        return w + 0.01 * (td[:, None, None] * s[:, :, None] * a[:, None, :]).mean(0)

    s = env.reset()
    for i in range(20):
        s, done, info = collect(w, s)
        if done:
            s = env.reset()
        if len(rep) >= 4:
            w = learn(w)
        yield s, done, info, w, len(rep)


@growing
def beam_objects(compiled):
    @functools.total_ordering
    class Hyp:
        __slots__ = ("parent", "score", "tokens")

        def __init__(self, tokens, score, parent=None):
            self.tokens, self.score, self.parent = tokens, score, parent

        def __lt__(self, o):
            return self.score < o.score

        def __eq__(self, o):
            return self.score == o.score

        def extend(self, t, s):
            return Hyp([*self.tokens, t], self.score + s, self)

    W = data(99, 5, 5)

    @compiled
    def step(beams, k):
        cand = []
        for h in beams:
            lp = W[h.tokens[-1]].log_softmax(-1)
            top = lp.topk(k)
            for s, t in zip(top.values.tolist(), top.indices.tolist()):
                cand.append(h.extend(t, s))
        return heapq.nlargest(k, cand)

    beams = [Hyp([0], 0.0)]
    for i in range(8):
        beams = step(beams, 2)
        yield [(h.tokens, round(h.score, 4)) for h in beams]


@growing
def tokenizer_strings(compiled):
    class Tok:
        PAT = re.compile(r"\w+|[^\w\s]")

        def __init__(self):
            self.vocab, self.merges = {"<unk>": 0}, {}

        def encode(self, text):
            ids = []
            for t in self.PAT.findall(text.lower().strip()):
                if t not in self.vocab and len(self.vocab) < 12:
                    self.vocab[t] = len(self.vocab)
                ids.append(self.vocab.get(t, 0))
            return ids

        def decode(self, ids):
            inv = {v: k for k, v in self.vocab.items()}
            return " ".join(inv[i] for i in ids)

    tok = Tok()
    E = data(5, 12, 3)

    @compiled
    def f(text, n):
        ids = tok.encode(text)[:n]
        pad = ids + [0] * (n - len(ids))
        e = E[torch.tensor(pad)]
        mask = torch.tensor([1.0] * len(ids) + [0.0] * (n - len(ids)))
        return (e * mask[:, None]).sum(0) / max(len(ids), 1), tok.decode(ids), len(tok.vocab)

    texts = ["Hello, world!", "the world is big", "hello hello", "a b c d e f g h", "The world, again."]
    for i in range(15):
        yield f(texts[i % 5], 4 + i % 2)


@steady
def config_merging(compiled):
    def merge(a, b):
        out = dict(a)
        for k, v in b.items():
            out[k] = merge(out[k], v) if isinstance(v, dict) and isinstance(out.get(k), dict) else v
        return out

    class Cfg(dict):
        def __getattr__(self, k):
            try:
                v = self[k]
            except KeyError:
                raise AttributeError(k) from None
            return Cfg(v) if isinstance(v, dict) else v

        def flat(self, pre=""):
            for k, v in self.items():
                if isinstance(v, dict):
                    yield from Cfg(v).flat(f"{pre}{k}.")
                else:
                    yield f"{pre}{k}", v

    base = {"model": {"dim": 3, "act": "relu", "drop": {"p": 0.1}}, "lr": 0.1}

    @compiled
    def f(x, *over):
        c = Cfg(functools.reduce(merge, over, base))
        y = getattr(torch, c.model.act)(x[..., : c.model.dim]) * (1 - c.model.drop.p)
        return y * c.lr, sorted(c.flat()), getattr(c, "nothing", None)

    for i in range(12):
        yield f(
            data(i, 2, 4),
            {"model": {"act": ["tanh", "relu"][i % 2]}},
            {"lr": i * 0.1, "model": {"drop": {"p": 0.01 * i}}},
        )


@growing
def memo_by_shape(compiled):
    class Pos:
        def __init__(self):
            self.cache, self.hits, self.misses = {}, 0, 0

        def get(self, n, d, dtype):
            k = (n, d, dtype)
            if k in self.cache:
                self.hits += 1
                return self.cache[k]
            self.misses += 1
            if len(self.cache) >= 3:
                self.cache.pop(next(iter(self.cache)))
            t = torch.arange(n)[:, None] / 10 ** (torch.arange(d) / d)
            self.cache[k] = t.sin().to(dtype)
            return self.cache[k]

    p = Pos()

    @compiled
    def f(x):
        return x + p.get(*x.shape, x.dtype)

    for i in range(14):
        yield f(data(i, [3, 4, 5, 3, 6][i % 5], 2)), p.hits, p.misses, list(p.cache)


@steady
def teacher_student(compiled):
    torch.manual_seed(1)
    s = nn.Linear(3, 2)
    t = copy.deepcopy(s).requires_grad_(False)

    class Ema:
        def __init__(self, d):
            self.d, self.n = d, 0

        @torch.no_grad()
        def update(self, t, s):
            self.n += 1
            d = min(self.d, (1 + self.n) / (10 + self.n))
            for a, b in zip(t.parameters(), s.parameters()):
                a.lerp_(b, 1 - d)
            return d

    ema = Ema(0.9)
    opt = torch.optim.SGD(s.parameters(), 0.1)

    @compiled
    def loss_fn(x):
        return F.mse_loss(s(x), t(x + 0.1))

    upd = compiled(ema.update)
    for i in range(10):
        opt.zero_grad()
        l = loss_fn(data(i, 4, 3))
        l.backward()
        opt.step()
        yield l, upd(t, s), t.weight


@steady
def maml_inner(compiled):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    params = {k: v.detach().clone().requires_grad_() for k, v in net.named_parameters()}

    @compiled
    def outer(xs, steps, lr):
        losses = []
        for x in xs:
            fast = dict(params)
            for _ in range(steps):
                l = torch.func.functional_call(net, fast, (x,)).pow(2).mean()
                g = torch.autograd.grad(l, list(fast.values()), create_graph=True)
                fast = {k: v - lr * gg for (k, v), gg in zip(fast.items(), g)}
            losses.append(torch.func.functional_call(net, fast, (x + 1,)).pow(2).mean())
        return torch.stack(losses).mean()

    for i in range(6):
        l = outer([data(i, 3, 2), data(i + 50, 3, 2)], 1 + i % 2, 0.1 + 0.01 * i)
        g = torch.autograd.grad(l, list(params.values()))
        yield l, g


@steady
def gan_steps(compiled):
    torch.manual_seed(1)
    G, D = nn.Linear(2, 3), nn.Linear(3, 1)
    og, od = torch.optim.Adam(G.parameters(), 0.01), torch.optim.SGD(D.parameters(), 0.01, momentum=0.9)
    hist = {"d": [], "g": []}

    @compiled
    def step(z, real):
        od.zero_grad()
        fake = G(z)
        ld = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
        ld.backward()
        od.step()
        og.zero_grad()
        lg = F.softplus(-D(fake)).mean()
        lg.backward()
        og.step()
        hist["d"].append(ld.item())
        hist["g"].append(lg.item())
        return ld.detach(), lg.detach()

    for i in range(10):
        yield step(data(i, 4, 2), data(i + 9, 4, 3)), len(hist["d"]), D.weight


@growing
def metric_accumulators(compiled):
    class Metric:
        def __init__(self):
            self.reset()

        def reset(self):
            self.total, self.count, self.hist = 0.0, 0, []

        def update(self, v, n=1):
            self.total += v * n
            self.count += n
            self.hist.append(v)

        @property
        def mean(self):
            return self.total / max(self.count, 1)

    ms = collections.defaultdict(Metric)

    @compiled
    def step(x, y):
        l = ((x - y) ** 2).mean()
        acc = (x.argmax(-1) == y.argmax(-1)).float().mean()
        ms["loss"].update(l.item(), x.shape[0])
        ms["acc"].update(acc.item(), x.shape[0])
        return l * ms["loss"].mean, {k: m.mean for k, m in ms.items()}

    for i in range(14):
        if i == 9:
            for m in ms.values():
                m.reset()
        yield step(data(i, 3 + i % 3, 4), data(i + 50, 3 + i % 3, 4))


@steady
def early_stopping(compiled):
    class Stop:
        def __init__(self, patience):
            self.best, self.bad, self.patience = math.inf, 0, patience

        def __call__(self, v):
            if v < self.best - 1e-4:
                self.best, self.bad = v, 0
            else:
                self.bad += 1
            return self.bad >= self.patience

    stop = Stop(3)

    @compiled
    def step(w, x):
        loss = ((x @ w) ** 2).mean()
        done = stop(float(loss))
        return w - 0.1 * x.T @ (x @ w) / len(x), done

    w = torch.ones(3, 1)
    for i in range(16):
        w, d = step(w, data(i, 5, 3))
        yield w, d, stop.best, stop.bad
        if d:
            stop.bad = 0


@steady
def generators_that_are_returned(compiled):
    class Bus:
        def __init__(self):
            self.events = []

        def emit(self, event):
            self.events.append(event)

    bus, names = Bus(), []

    @compiled
    def by_closure(x, n):
        bus.emit(n)
        yield x * n

    @compiled
    def by_default(x, n, bus=bus, *, names=names):
        names.append(n)
        bus.emit(n)
        yield x + n

    @compiled
    async def awaited(x, n):
        bus.emit(n)
        await asyncio.sleep(0)
        bus.emit(-n)
        return x - n

    for i in range(8):
        x = data(i, 2)
        yield list(by_closure(x, i)), list(by_default(x, i)), asyncio.run(awaited(x, i)), list(bus.events), list(names)


@growing
def moved_to_meta(compiled):
    @compiled
    def f(x, layer):
        return x * 2, layer.to("meta").weight.device.type

    for i in range(4):
        yield f(data(i, 2), nn.Linear(2, 2).requires_grad_(False))
