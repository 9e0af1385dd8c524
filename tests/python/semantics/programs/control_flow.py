"""Python code around tensors: control flow, iterators, objects, references, threads, random numbers. As
programs/whole_scripts.py has them."""

from __future__ import annotations

import asyncio
import bisect
import collections
import contextlib
import contextvars
import copy
import dataclasses
import heapq
import itertools
import operator
import pickle
import random
import threading
import weakref

import numpy as np
import torch
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


class Held:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


# --------------------------------------------------------------------------------------------------- control and state


@steady
def nested_managers(compiled):
    depth, log = Held(n=0, most=0), []

    class Scope:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            depth.n += 1
            depth.most = max(depth.most, depth.n)
            return self

        def __exit__(self, kind, value, traceback):
            depth.n -= 1
            log.append((self.name, kind and kind.__name__))
            return kind is KeyError

    @compiled
    def f(x, bad):
        with contextlib.ExitStack() as stack:
            for name in "ab":
                stack.enter_context(Scope(name))
            stack.callback(log.append, "called")
            with Scope("c"), contextlib.suppress(ZeroDivisionError):
                x = x * 2
                if bad == 1:
                    raise KeyError("k")
                if bad == 2:
                    x = x / (1 // 0)
            x = x + depth.n
        return x

    for i in range(12):
        yield f(data(i, 2), i % 3), depth, list(log)
        log.clear()


@steady
def exceptions_that_steer(compiled):
    class Retry(Exception):
        def __init__(self, factor):
            super().__init__(f"again with {factor}")
            self.factor = factor

    class Finished(Exception):
        pass

    def attempt(x, factor):
        y = x * factor
        if factor < 4:
            raise Retry(factor * 2)
        if factor > 100:
            raise Finished from ValueError("far")
        return y

    @compiled
    def f(x, factor):
        tried = []
        while True:
            try:
                y = attempt(x, factor)
            except Retry as retry:
                factor = retry.factor
                tried.append(str(retry))
            except Finished as end:
                return x, tried, repr(end.__cause__)
            else:
                return y, tried
            finally:
                tried.append("done")

    for i in range(12):
        yield f(data(i, 2), [1, 3, 8, 200][i % 4])


@steady
def generators_as_pipelines(compiled):
    def windows(values, size):
        held = collections.deque(maxlen=size)
        for value in values:
            held.append(value)
            if len(held) == size:
                yield tuple(held)

    def averaged():
        total, n = 0.0, 0
        while True:
            value = yield (total / n if n else None)
            total, n = total + value, n + 1

    @compiled
    def f(xs, size):
        average = averaged()
        next(average)
        means = [average.send(sum(w)) for w in windows(xs, size)]
        average.close()
        return means[-1], len(means)

    for i in range(10):
        yield f([data(i + k, 2) for k in range(4)], 2 + i % 2)


@steady
def coroutines_in_a_loop(compiled):
    async def layer(x, by):
        await asyncio.sleep(0)
        return x * by

    async def both(x, n):
        a, b = await asyncio.gather(layer(x, n), layer(x, 2.0))
        async with contextlib.AsyncExitStack():
            return a + b

    @compiled
    def f(x):
        return (x * 3).relu()

    async def steps(x, n):
        return f(await both(f(x), n))

    for i in range(8):
        yield asyncio.run(steps(data(i, 2), float(i)))


@steady
def trees_mapped(compiled):
    Pair = collections.namedtuple("Pair", "left right")

    def mapped(function, tree):
        if isinstance(tree, torch.Tensor):
            return function(tree)
        if isinstance(tree, dict):
            return type(tree)((k, mapped(function, v)) for k, v in tree.items())
        if isinstance(tree, tuple) and hasattr(tree, "_fields"):
            return type(tree)(*(mapped(function, v) for v in tree))
        if isinstance(tree, (list, tuple, set)):
            return type(tree)(mapped(function, v) for v in tree)
        return tree

    def leaves(tree):
        if isinstance(tree, dict):
            for key in sorted(tree):
                yield from leaves(tree[key])
        elif isinstance(tree, (list, tuple)):
            for item in tree:
                yield from leaves(item)
        else:
            yield tree

    @compiled
    def f(tree, by):
        out = mapped(lambda t: t * by, tree)
        return out, sum(t.sum() for t in leaves(out) if isinstance(t, torch.Tensor))

    for i in range(10):
        tree = {"b": [data(i, 2), Pair(data(i + 1, 1), 3)], "a": collections.OrderedDict(z=data(i + 2, 2), y=None)}
        yield f(tree, 1.0 + i)


@growing
def heaps_and_bisection(compiled):
    best, edges, at = [], [-1.0, 0.0, 1.0], itertools.count()

    @compiled
    def f(x):
        score = float(x.sum())
        heapq.heappush(best, (score, next(at), x * 2))
        if len(best) > 3:
            heapq.heappop(best)
        where = bisect.bisect_left(edges, score)
        bisect.insort(edges, score)
        return sum(t for _, _, t in best), where, len(edges)

    for i in range(10):
        yield f(data(i, 2)), [s for s, *_ in sorted(best, key=lambda b: b[:2])]


@steady
def iterators_combined(compiled):
    @compiled
    def f(xs, n):
        pairs = [a * b for a, b in itertools.combinations(xs, 2)]
        total = list(itertools.accumulate(pairs, operator.add))[-1]
        first = list(itertools.islice(itertools.cycle(xs), n))
        grouped = {k: len(list(g)) for k, g in itertools.groupby(range(n), key=lambda i: i // 2)}
        flat = list(itertools.chain.from_iterable([first, xs]))
        taken = list(itertools.takewhile(lambda i: i < 3, itertools.count()))
        table = [a + b for a, b in itertools.product([1, 2], [10, 20])]
        return total + sum(flat), grouped, taken, table, list(itertools.starmap(pow, [(2, n), (3, 2)]))

    for i in range(10):
        yield f([data(i + k, 2) for k in range(3)], 3 + i % 3)


@growing
def counters_and_chains(compiled):
    defaults, overrides, seen = {"scale": 2.0, "shift": 1.0}, {}, collections.Counter()

    @compiled
    def f(x, name):
        settings = collections.ChainMap(overrides, defaults)
        seen[name] += 1
        seen.update(name)
        top = seen.most_common(1)[0]
        return x * settings["scale"] + settings["shift"], top, sum(seen.values())

    for i in range(12):
        if i % 4 == 2:
            overrides["scale"] = 0.5 * i
        elif i % 4 == 0:
            overrides.clear()
        yield f(data(i, 2), "ab"[i % 2])


# ---------------------------------------------------------------------------------------- objects, references, threads


@steady
def operators_of_a_class(compiled):
    class Dual:
        def __init__(self, value, slope=0.0):
            self.value, self.slope = value, slope

        def __add__(self, other):
            other = other if isinstance(other, Dual) else Dual(other)
            return Dual(self.value + other.value, self.slope + other.slope)

        __radd__ = __add__

        def __mul__(self, other):
            other = other if isinstance(other, Dual) else Dual(other)
            return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

        __rmul__ = __mul__

        def __neg__(self):
            return self * -1.0

        def __sub__(self, other):
            return self + -other

        def __pow__(self, n):
            return self if n == 1 else self * self ** (n - 1)

        def __matmul__(self, other):
            return self.value @ other.value

        def __getitem__(self, key):
            return Dual(self.value[key], self.slope[key])

        def __len__(self):
            return len(self.value)

        def __bool__(self):
            return True

        def __iter__(self):
            return (self[i] for i in range(len(self)))

        def __contains__(self, item):
            return any(item is v for v in (self.value, self.slope))

    @compiled
    def f(x, n):
        a = Dual(x, torch.ones_like(x))
        b = 2 * a**n + 1.0 - a
        return b.value, b.slope, a @ b, len(b), [d.value for d in b], x in a, sum(a, 0).value

    for i in range(8):
        yield f(data(i, 3), 2 + i % 2)


@steady
def units_of_tensors(compiled):
    class Measured(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            out = super().__torch_function__(function, types, args, kwargs or {})
            unit = next((a.unit for a in args if isinstance(a, cls) and hasattr(a, "unit")), None)
            if isinstance(out, cls):
                out.unit = unit
            return out

    def measured(x, unit):
        out = x.as_subclass(Measured)
        out.unit = unit
        return out

    @compiled
    def f(x, unit):
        a = measured(x, unit)
        b = torch.cat([a * 2, a.relu()])
        return b.as_subclass(torch.Tensor), b.unit, type(b).__name__

    for i in range(10):
        yield f(data(i, 2), ["m", "s"][i % 2])


@bounded
def weak_registries(compiled):
    class Node:
        def __init__(self, value):
            self.value, self.parent, self.children = value, None, []

        def add(self, child):
            child.parent = weakref.ref(self)
            self.children.append(child)
            return child

        def total(self):
            return self.value + sum(child.total() for child in self.children)

        def root(self):
            return self if self.parent is None else self.parent().root()

    alive = weakref.WeakSet()

    @compiled
    def f(x):
        top = Node(x)
        leaf = top.add(Node(x * 2)).add(Node(x * 3))
        alive.add(leaf)
        return leaf.root().total(), len(alive)

    for i in range(8):
        yield f(data(i, 2))
        yield len(alive)


@bounded
def weak_values_dropped(compiled):
    class Item:
        def __init__(self, t):
            self.t = t

    cache = weakref.WeakValueDictionary()

    @compiled
    def f(x, key):
        item = cache.get(key)
        if item is None:
            item = cache[key] = Item(x)
        out = item.t * 2
        del item
        print(sorted(cache))
        return out, key in cache

    for i in range(8):
        yield f(data(i, 2), i % 2)
        yield sorted(cache)


@steady
def state_of_threads_and_contexts(compiled):
    local, scale = threading.local(), contextvars.ContextVar("scale", default=1.0)
    local.count = 0

    @contextlib.contextmanager
    def scaled(by):
        token = scale.set(scale.get() * by)
        try:
            yield
        finally:
            scale.reset(token)

    lock = threading.Lock()

    @compiled
    def f(x):
        with lock:
            local.count += 1
        with scaled(2.0):
            x = x * scale.get()
        return x + scale.get(), local.count

    for i in range(12):
        if i == 5:
            scale.set(3.0)
        yield f(data(i, 2))


@growing
def copies_and_pickles(compiled):
    @dataclasses.dataclass
    class State:
        x: torch.Tensor
        steps: list
        name: str = "s"

    state = State(torch.zeros(2), [0])

    @compiled
    def f(x):
        before = copy.copy(state)
        twin = copy.deepcopy(state)
        state.x = state.x + x
        state.steps.append(len(state.steps))
        twin.steps.append(-1)
        return before.x, twin.x, before.steps is state.steps, twin.steps

    for i in range(8):
        yield f(data(i, 2)), state


@steady
def pickled_inside(compiled):
    @compiled
    def f(x, options):
        twin = pickle.loads(pickle.dumps(options))
        twin["n"] += 1
        return x * twin["n"], twin

    for i in range(10):
        yield f(data(i, 2), {"n": i, "names": ["a", "b"]})


@steady
def random_numbers_of_python(compiled):
    rng, nprng = random.Random(1), np.random.default_rng(1)

    @compiled
    def f(x, p):
        if random.random() < p:
            x = x.flip(0)
        k = random.randint(1, 3)
        noise = torch.as_tensor(nprng.normal(size=3), dtype=torch.float32)
        return x * k + noise * rng.uniform(0.5, 1.5), random.choice(["a", "b"])

    random.seed(3)
    np.random.seed(3)
    for i in range(20):
        yield f(data(i, 3), 0.5), random.random()


@steady
def augmentations(compiled):
    class Compose:
        def __init__(self, *transforms):
            self.transforms = transforms

        def __call__(self, x):
            for t in self.transforms:
                x = t(x)
            return x

    class Flip:
        def __init__(self, p):
            self.p = p

        def __call__(self, x):
            return x.flip(-1) if torch.rand(1).item() < self.p else x

    class Crop:
        def __init__(self, size):
            self.size = size

        def __call__(self, x):
            at = int(torch.randint(0, x.shape[-1] - self.size + 1, (1,)))
            return x[..., at : at + self.size]

    f = compiled(Compose(Flip(0.5), Crop(4), lambda x: (x - x.mean()) / x.std()))
    for i in range(20):
        yield f(data(i, 2, 8))


@steady
def growing_lists_in_state(compiled):
    held = Held(losses=[], names=[], step=0)

    @compiled
    def f(x):
        loss = (x * x).mean()
        held.losses.append(loss)
        held.names.append(f"step {held.step}")
        held.step += 1
        return loss * len(held.losses), len(held.names)

    for i in range(14):
        yield f(data(i, 2)), len(held.losses), held.names[-1]


@steady
def beams_of_hypotheses(compiled):
    @dataclasses.dataclass(order=True)
    class Beam:
        score: float
        tokens: list = dataclasses.field(compare=False)

    table = data(3, 5, 5).log_softmax(-1)

    @compiled
    def f(start, width, length):
        beams = [Beam(0.0, [start])]
        for _ in range(length):
            more = []
            for beam in beams:
                values, tokens = table[beam.tokens[-1]].topk(width)
                more += [Beam(beam.score + v, beam.tokens + [t]) for v, t in zip(values.tolist(), tokens.tolist())]
            beams = sorted(more, reverse=True)[:width]
        return beams[0].tokens, torch.tensor([b.score for b in beams])

    for i in range(8):
        yield f(i % 5, 2, 3)


@steady
def observers_and_callbacks(compiled):
    class Trainer:
        def __init__(self, *callbacks):
            self.callbacks, self.step, self.stop = list(callbacks), 0, False

        def fire(self, event, **info):
            for callback in self.callbacks:
                handler = getattr(callback, f"on_{event}", None)
                if handler is not None:
                    handler(self, **info)

        def run(self, x):
            self.fire("begin")
            loss = (x * x).mean()
            self.step += 1
            self.fire("end", loss=loss)
            return loss

    class History:
        def __init__(self):
            self.losses = []

        def on_end(self, trainer, loss):
            self.losses.append(loss.detach())

    class Limit:
        def on_begin(self, trainer):
            trainer.stop = trainer.step >= 5

    history = History()
    trainer = Trainer(history, Limit())
    run = compiled(trainer.run)
    for i in range(12):
        yield run(data(i, 3)), trainer.stop, trainer.step, len(history.losses)


@steady
def lazy_tables_of_positions(compiled):
    class Rotary(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.dim, self._cache = dim, {}

        def table(self, n, dtype):
            key = (n, dtype)
            if key not in self._cache:
                t = torch.arange(n, dtype=torch.float32)[:, None] / 10 ** torch.linspace(0, 1, self.dim // 2)
                self._cache[key] = t.cos().to(dtype), t.sin().to(dtype)
            return self._cache[key]

        def forward(self, x):
            cos, sin = self.table(x.shape[0], x.dtype)
            a, b = x.chunk(2, -1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    rotary = Rotary(4)
    f = compiled(rotary)
    for i in range(16):
        yield f(data(i, [3, 5, 3, 7][i % 4], 4)), sorted(k[0] for k in rotary._cache)


@steady
def cells_of_generators(compiled):
    """For generator functions from before the call: the content of their closures may change between calls."""
    scales, shifts, kinds = {"a": 2.0, "b": 3.0}, [0.0], {"s": (Held, {"by": 2.0})}
    factor = 1.0

    def layers(names):
        for name in names:
            yield scales[name] * factor

    def held(names):
        for name in names:
            cls, options = kinds[name]
            yield cls(**options)

    @contextlib.contextmanager
    def shifted(x):
        yield x + shifts[0]

    @compiled
    def f(x):
        for scale in layers("ab"):
            x = x * scale
        with shifted(x) as y:
            return sum((y * h.by for h in held("s")), y)

    for i in range(16):
        scales["a"] += 1
        shifts[0] = 0.5 * i
        kinds["s"][1]["by"] = 1.0 + i
        factor = 1.0 - 0.1 * i
        yield f(data(i, 2))


@steady
def defaults_of_generators_and_named_tuples(compiled):
    values, named = [1.0, 2.0], collections.namedtuple("Named", "held values")
    both = named(Held(n=1), values)

    def each(of=values, *, more=both):
        yield of[0]
        yield more.values[1] + more.held.n

    @contextlib.contextmanager
    def around(of=values):
        yield of[1]

    @compiled
    def f(x):
        with around() as factor, contextlib.ExitStack() as stack:
            return sum(each(), x) * factor * stack.enter_context(around()), both.values[0] * len(both)

    for i in range(12):
        values[0], both.held.n = 0.5 * i, i
        values[1] *= 0.9
        yield f(data(i, 2))
