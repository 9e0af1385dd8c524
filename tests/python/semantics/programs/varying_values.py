# size: table
# ruff: noqa: RUF015, RUF059
"""Values that differ at each call: draws, strings, dates, decimals, histories, scalars of numpy. As programs/whole_scripts.py
has them."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import heapq
import io
import itertools
import json
import logging
import random
import statistics
import threading
import time
import types
import weakref

import numpy as np
import torch
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@steady
def coin_flips(compiled):
    random.seed(3)

    @compiled
    def f(x):
        if random.random() < 0.5:
            x = x.flip(0)
        return x * random.uniform(0.5, 1.5) + random.gauss(0, 1)

    for i in range(16):
        yield f(data(i, 3))


@steady
def random_ints(compiled):
    random.seed(3)

    @compiled
    def f(x):
        k = random.randint(0, 5)
        return x.roll(k) + random.randrange(10)

    for i in range(16):
        yield f(data(i, 7))


@steady
def random_choices(compiled):
    rng = random.Random(4)
    ops = [torch.relu, torch.tanh, torch.sin]
    items = list(range(6))

    @compiled
    def f(x):
        op = rng.choice(ops)
        picked = rng.sample(items, 2)
        rng.shuffle(items)
        return op(x) + sum(picked), list(items)

    for i in range(16):
        yield f(data(i, 3))


@steady
def replay_sample(compiled):
    rng = random.Random(4)
    buf = []

    @compiled
    def f(x):
        buf.append((x, x.sum()))
        if len(buf) > 6:
            buf.pop(0)
        if len(buf) < 3:
            return x
        xs, ys = zip(*rng.sample(buf, 3))
        return torch.stack(xs).mean(0) * torch.stack(ys).sum()

    for i in range(16):
        yield f(data(i, 3))


@steady
def numpy_draws(compiled):
    rng = np.random.default_rng(0)

    @compiled
    def f(x):
        k = int(rng.integers(0, 5))
        p = rng.random()
        perm = rng.permutation(x.shape[0])
        y = x.roll(k) if p < 0.5 else x
        return y[perm] * float(rng.normal())

    for i in range(12):
        yield f(data(i, 4))


@steady
def numpy_legacy_draws(compiled):
    np.random.seed(1)

    @compiled
    def f(x):
        if np.random.rand() > 0.5:
            x = -x
        lam = np.random.beta(0.4, 0.4)
        c = np.random.randint(0, 3)
        return lam * x + (1 - lam) * x.flip(0) + c

    for i in range(12):
        yield f(data(i, 4))


@steady
def text_of_dicts(compiled):
    log = []

    @compiled
    def f(x, step):
        m = {"loss": step * 0.5, "step": step}
        log.append(f"{step}: {m}")
        print(f"metrics {m} {[step, step + 1]} {(x.shape[0], 'a')}")
        return x * 2

    for i in range(12):
        yield f(data(i, 3), i), len(log)
    yield log


@steady
def text_of_objects(compiled):
    @dataclasses.dataclass
    class Stats:
        n: int = 0
        lr: float = 0.1

    class Meter:
        def __init__(self):
            self.v = 0

        def __str__(self):
            return f"Meter({self.v})"

        def __format__(self, spec):
            return f"{self.v:{spec or 'd'}}"

    s, m, log = Stats(), Meter(), []

    @compiled
    def f(x):
        s.n += 1
        s.lr *= 0.9
        m.v += 2
        log.append(f"{s} {m} {m:03d} {m!s} {s!r}")
        return x * s.lr

    for i in range(12):
        yield f(data(i, 2))
    yield log


@steady
def logger_of_numbers(compiled):
    stream = io.StringIO()
    logger = logging.getLogger("cresset.test.p3")
    logger.setLevel("INFO")
    logger.propagate = False
    h = logging.StreamHandler(stream)
    logger.addHandler(h)

    @compiled
    def f(x, step, lr):
        logger.info("step %d lr %.3f", step, lr)
        logger.debug(f"step {step}")
        logger.info(f"step {step} {lr:.2e}")
        return x * lr

    for i in range(10):
        yield f(data(i, 2), i, 0.1 * i), stream.getvalue()
    logger.removeHandler(h)


@steady
def timings(compiled):
    @compiled
    def f(x):
        t0 = time.perf_counter()
        y = torch.sin(x)
        dt = time.perf_counter() - t0
        return y, dt >= 0, isinstance(time.time(), float)

    for i in range(10):
        yield f(data(i, 2))


@steady
def stamped(compiled):
    log = []

    @compiled
    def f(x, n):
        log.append({"at": datetime.datetime.now().isoformat(), "n": n, "d": datetime.timedelta(seconds=n)})
        return x * n, datetime.datetime(2020, 1, 1) + datetime.timedelta(days=n)

    for i in range(10):
        yield f(data(i, 2), i)[0], len(log), log[-1]["d"]


@steady
def heap_queue(compiled):
    heap = []
    count = itertools.count()

    @compiled
    def f(x, p):
        heapq.heappush(heap, (p, next(count), x))
        if len(heap) > 4:
            return heapq.heappop(heap)[2] + 1
        return x

    for i in range(60):
        yield f(data(i, 2), (i * 7) % 5), [h[:2] for h in heap]


@steady
def memory_bank(compiled):
    bank = []

    @compiled
    def f(x):
        bank.append(x)
        m = torch.stack(bank).mean(0)
        return x - m, len(bank)

    for i in range(14):
        yield f(data(i, 2))


@steady
def history_means(compiled):
    hist = []

    @compiled
    def f(x, v):
        hist.append(v)
        return x * (sum(hist) / len(hist)), max(hist), hist[-3:]

    for i in range(20):
        yield f(data(i, 2), 0.5 * i)


@steady
def window_deque(compiled):
    q = collections.deque(maxlen=4)

    @compiled
    def f(x, v):
        q.append(v)
        return x * (sum(q) / len(q)), len(q), min(q)

    for i in range(14):
        yield f(data(i, 2), 0.5 * i)


@steady
def frame_stack(compiled):
    frames = collections.deque(maxlen=3)

    @compiled
    def f(x):
        frames.append(x)
        while len(frames) < 3:
            frames.append(x)
        return torch.stack(list(frames))

    for i in range(10):
        yield f(data(i, 2))


@bounded
def deep_copies(compiled):
    @dataclasses.dataclass
    class S:
        x: torch.Tensor
        opts: dict

    s = S(torch.ones(2), {"k": [1, 2]})

    @compiled
    def f(x, n):
        t = copy.deepcopy(s)
        t.opts["k"].append(n)
        t.x += x
        c = copy.copy(t)
        return t.x * n, t.opts, c.x is t.x

    for i in range(10):
        yield f(data(i, 2), i)


@bounded
def deep_copied_module(compiled):
    torch.manual_seed(0)
    net = nn.Linear(2, 2)

    @compiled
    def f(x):
        twin = copy.deepcopy(net)
        with torch.no_grad():
            for p in twin.parameters():
                p.mul_(0.5)
        return net(x) - twin(x)

    for i in range(8):
        yield f(data(i, 3, 2))


@bounded
def weak_caches(compiled):
    class K:
        pass

    keys = [K(), K()]
    cache, seen, vals = weakref.WeakKeyDictionary(), weakref.WeakSet(), weakref.WeakValueDictionary()

    @compiled
    def f(x, k):
        if k not in cache:
            cache[k] = x.sum()
        seen.add(k)
        vals["last"] = k
        return x + cache[k], len(seen), vals["last"] is k

    for i in range(8):
        yield f(data(i, 2), keys[i % 2]), len(cache)


@bounded
def generators_given(compiled):
    @compiled
    def f(xs, n):
        out = 0
        for x in xs:
            out = out + x * n
        return out

    for i in range(8):
        yield f((data(i + j, 2) for j in range(3)), i)


@bounded
def inference_eval(compiled):
    torch.manual_seed(0)
    net = nn.Linear(2, 2)

    @compiled
    @torch.inference_mode()
    def f(x):
        y = net(x)
        return y.argmax(-1), y.max().item()

    for i in range(8):
        yield f(data(i, 3, 2))


@growing
def all_any_of_tensors(compiled):
    @compiled
    def f(x, y):
        if all(x > -5) and any(y > 0):
            z = sum(x) + max(y)
        else:
            z = min(x) * 1.0
        a, b = sorted([x.sum(), y.sum()])
        return z, list(map(torch.relu, x))[0], a, [p * q for p, q in zip(x, y)][-1], list(filter(lambda t: t > 0, y))

    for i in range(8):
        yield f(data(i, 3), data(i + 9, 3))


@steady
def json_configs(compiled):
    @compiled
    def f(x, text):
        c = json.loads(text)
        return x * c["scale"] + c["n"], json.dumps({"n": c["n"], "s": c["scale"]})

    for i in range(10):
        yield f(data(i, 2), json.dumps({"scale": 0.5 * i, "n": i}))


@steady
def statistics_module(compiled):
    vals = [1.0, 2.0, 4.0]

    @compiled
    def f(x, v):
        vals[0] = v
        return x * statistics.mean(vals) + statistics.pstdev(vals), statistics.median(vals)

    for i in range(10):
        yield f(data(i, 2), i * 1.0)


@steady
def numpy_scalars(compiled):
    sched = np.linspace(0.1, 1.0, 20)
    stat = types.SimpleNamespace(best=np.float64(0), n=np.int64(0))

    @compiled
    def f(x, i, lr):
        stat.n += 1
        if lr > stat.best:
            stat.best = lr
        return x * lr + float(sched[i]), stat.n

    for i in range(12):
        yield f(data(i, 2), i, sched[i]), stat.best


@steady
def lr_dicts(compiled):
    sched = {"warm": 3, "lr": 0.1, "step": 0}
    groups = [{"lr": 0.1, "betas": (0.9, 0.99)}, {"lr": 0.2, "betas": (0.8, 0.9)}]

    @compiled
    def f(x):
        sched["step"] += 1
        k = min(1.0, sched["step"] / sched["warm"])
        for g in groups:
            g["lr"] = sched["lr"] * k * 0.9 ** sched["step"]
        return sum(x * g["lr"] * g["betas"][0] for g in groups)

    for i in range(14):
        yield f(data(i, 2)), sched, groups


@steady
def running_average(compiled):
    class Avg:
        val = avg = 0.0
        n = 0
        beta = 0.9

        def up(self, v):
            self.val = self.beta * self.val + (1 - self.beta) * v
            self.n += 1
            self.avg = self.val / (1 - self.beta**self.n)
            return self.avg

    a = Avg()

    @compiled
    def f(x):
        return x * a.up(x.abs().mean().item()), round(a.avg, 3)

    for i in range(12):
        yield f(data(i, 2))


@steady
def thread_locals(compiled):
    tl = threading.local()
    tl.n = 0
    tl.stack = []

    @compiled
    def f(x):
        tl.n += 1
        tl.stack.append(tl.n)
        return x * tl.n, len(tl.stack)

    for i in range(16):
        yield f(data(i, 2))


@growing
def counters(compiled):
    c = collections.Counter()

    @compiled
    def f(x, words):
        c.update(words)
        c["total"] += 1
        return x * c["total"], c.most_common(1), sum(c.values())

    ws = ["a b a", "b c", "a d"]
    for i in range(12):
        yield f(data(i, 2), ws[i % 3].split()), dict(c)


@growing
def hook_handles(compiled):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    acts = {}

    @compiled
    def f(x):
        h = net[0].register_forward_hook(lambda m, i, o: acts.__setitem__("l", o))
        try:
            y = net(x)
        finally:
            h.remove()
        return y, acts["l"]

    for i in range(10):
        yield f(data(i, 3, 2))


@steady
def counters_by_numbers_in_a_loop(compiled):
    counts, totals = {0: 0, 1: 0, 2: 0}, {(0, 0): 0.5, (1, 0): 0, (2, 0): 0}

    @compiled
    def f(x):
        for row in range(3):
            if x[row] > 0:
                counts[row] += 1
            totals[row, 0] += int(x[row])
        return x * counts[0]

    for i in range(24):
        yield f(data(i, 3) * 10), counts, totals
