# size: table
"""Programs whose objects refer to each other indirectly: weak registries, look-up of subclasses, generators in objects,
copies of records of tensors, attributes of tensors."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import operator
import types
import weakref

import torch
import torch.nn.functional as F
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


def eye_linear(n, bias=0.5):
    m = nn.Linear(n, n)
    nn.init.eye_(m.weight)
    nn.init.constant_(m.bias, bias)
    return m


@steady
def scales_by_weak_module(compiled):
    class Hub:
        def __init__(self):
            self.scales, self.names = weakref.WeakKeyDictionary(), weakref.WeakValueDictionary()

        def add(self, name, module, scale):
            self.names[name] = module
            self.scales[module] = scale

        def apply(self, x):
            for name in sorted(self.names):
                module = self.names[name]
                x = module(x) * self.scales.get(module, 1.0)
            return x

    hub = Hub()
    a, b = eye_linear(2), eye_linear(2)
    hub.add("a", a, 2.0)
    hub.add("b", b, 0.5)
    f = compiled(hub.apply)
    for i in range(8):
        if i == 4:
            hub.scales[a] = 3.0
        yield f(data(i, 3, 2)), len(hub.scales)


@steady
def live_instances_in_a_weak_set(compiled):
    class Meter:
        alive = weakref.WeakSet()

        def __init__(self, name):
            self.name, self.total, self.n = name, 0.0, 0
            Meter.alive.add(self)

        def add(self, value):
            self.total = self.total + value.detach().sum()
            self.n += 1

    a, b = Meter("a"), Meter("b")

    @compiled
    def step(x):
        for m in sorted(Meter.alive, key=lambda m: m.name):
            m.add(x * (1 if m.name == "a" else 2))
        return sum(m.total for m in (a, b)), len(Meter.alive)

    for i in range(8):
        yield step(data(i, 3)), a.n, b.n


@steady
def methods_held_weakly(compiled):
    class Signal:
        def __init__(self):
            self.slots = []

        def connect(self, method):
            self.slots.append(weakref.WeakMethod(method))

        def emit(self, *args):
            out = []
            for slot in self.slots:
                method = slot()
                if method is not None:
                    out.append(method(*args))
            return out

    class Scale:
        def __init__(self, by):
            self.by, self.calls = by, 0

        def on(self, x):
            self.calls += 1
            return x * self.by

    signal, a, b = Signal(), Scale(2.0), Scale(3.0)
    signal.connect(a.on)
    signal.connect(b.on)
    f = compiled(lambda x: torch.stack(signal.emit(x)).sum(0))
    for i in range(8):
        if i == 2:
            a.by = 4.0
        yield f(data(i, 2 + i % 2)), a.calls, b.calls


@steady
def parents_and_children(compiled):
    class Node:
        def __init__(self, value, parent=None):
            self.value, self.children = value, []
            self.parent = weakref.ref(parent) if parent is not None else lambda: None
            if parent is not None:
                parent.children.append(self)

        def path(self):
            node, out = self, []
            while node is not None:
                out.append(node.value)
                node = node.parent()
            return out

        def walk(self):
            yield self
            for child in self.children:
                yield from child.walk()

    root = Node(torch.tensor(1.0))
    left, right = Node(torch.tensor(2.0), root), Node(torch.tensor(3.0), root)
    leaf = Node(torch.tensor(4.0), left)

    @compiled
    def f(x):
        return [functools.reduce(operator.mul, node.path(), x) for node in root.walk()]

    for i in range(8):
        if i == 4:
            leaf.value = torch.tensor(5.0)
        yield f(data(i, 3)), len(right.path())


@steady
def subclasses_that_are_found(compiled):
    class Layer:
        kind = "base"

        @classmethod
        def make(cls, kind):
            for sub in cls.__subclasses__():
                if sub.kind == kind:
                    return sub()
            raise KeyError(kind)

    class Double(Layer):
        kind = "double"

        def __call__(self, x):
            return x * 2

    class Shift(Layer):
        kind = "shift"

        def __call__(self, x):
            return x + 1

    kept = [Double, Shift]

    @compiled
    def f(x, kinds):
        for kind in kinds:
            x = Layer.make(kind)(x)
        return x

    for i in range(9):
        if i == 2:

            class Negate(Layer):
                kind = "negate"

                def __call__(self, x):
                    return -x

            kept.append(Negate)
        kinds = ("double", "shift", "negate") if i > 2 else ("double", "shift")
        yield f(data(i, 3), kinds), len(kept)


@steady
def generator_held_by_an_object(compiled):
    class Stream:
        def __init__(self, seed):
            self.batches, self.used = self.make(seed), 0

        def make(self, seed):
            for i in itertools.count():
                yield data(seed + i, 3)

        def __next__(self):
            self.used += 1
            return next(self.batches)

    stream = Stream(4)

    @compiled
    def step(w):
        x = next(stream)
        return (x * w).tanh(), stream.used

    for i in range(8):
        yield step(data(i + 50, 3))


@bounded
def generator_as_an_argument(compiled):
    def batches(seed, n):
        for i in range(n):
            yield data(seed + i, 2, 3)

    w = nn.Parameter(torch.ones(3))

    @compiled
    def total(stream, scale):
        out = torch.zeros(())
        for x in stream:
            out = out + (x * w).sum() * scale
        return out

    for i in range(7):
        w.grad = None
        out = total(batches(i, 3), 1.0 + i)
        out.backward()
        yield out, w.grad


@steady
def iterator_taken_from_a_loader(compiled):
    dataset = torch.utils.data.TensorDataset(data(1, 12, 3), torch.arange(12))
    loader = torch.utils.data.DataLoader(dataset, batch_size=4)

    @compiled
    def step(batch, w):
        x, y = batch
        return (x @ w).sum(), y.sum()

    for epoch in range(3):
        for batch in loader:
            yield step(batch, data(epoch, 3))


@bounded
def records_of_tensors_copied(compiled):
    @dataclasses.dataclass
    class State:
        h: torch.Tensor
        c: torch.Tensor
        steps: int = 0

    @compiled
    def step(state, x):
        before = copy.deepcopy(state)
        state.h = torch.tanh(state.h + x)
        state.c = state.c + state.h
        state.steps += 1
        return before, (state.h - before.h).abs().sum()

    state = State(torch.zeros(3), torch.zeros(3))
    for i in range(8):
        before, moved = step(state, data(i, 3))
        yield before, moved, state


@steady
def records_copied_shallowly(compiled):
    @dataclasses.dataclass
    class Batch:
        x: torch.Tensor
        meta: dict

        def to(self, **changes):
            out = copy.copy(self)
            for k, v in changes.items():
                setattr(out, k, v)
            return out

    @compiled
    def step(batch):
        b = batch.to(x=batch.x * 2)
        b.meta["seen"] = b.meta.get("seen", 0) + 1
        return b

    meta = {}
    for i in range(8):
        yield step(Batch(data(i, 2 + i % 2), meta)), meta


@steady
def notes_on_parameters(compiled):
    net = nn.Sequential(eye_linear(2), nn.ReLU(), eye_linear(2))
    for i, p in enumerate(net.parameters()):
        p.rate = 0.1 * (i + 1)
        p.frozen = False

    @torch.no_grad()
    @compiled
    def step(scale):
        for p in net.parameters():
            if p.grad is None or p.frozen:
                continue
            p.sub_(p.rate * scale * p.grad)
            p.updates = getattr(p, "updates", 0) + 1
        return sum(p.norm() for p in net.parameters())

    for i in range(8):
        if i == 2:
            net[0].weight.frozen = True
        net.zero_grad()
        net(data(i, 3, 2)).square().mean().backward()
        yield step(1.0 / (i + 1)), [getattr(p, "updates", 0) for p in net.parameters()]


@steady
def attributes_set_while_mapped(compiled):
    tensors = [data(i, 2) for i in range(3)]

    def mark(t, k):
        t.order = k
        return t * k

    @compiled
    def f(x):
        return sum(map(mark, tensors, range(1, 4))) + x

    for i in range(7):
        yield f(data(i, 2)), [t.order for t in tensors]


@steady
def attributes_set_by_c_code(compiled):
    tensors = [data(i, 2) for i in range(3)]
    log = types.SimpleNamespace(n=0)

    class Order:
        def __init__(self, t, k):
            self.t, self.k = t, k

        def __lt__(self, other):
            self.t.compared = getattr(self.t, "compared", 0) + 1
            log.n += 1
            return self.k < other.k

    @compiled
    def f(x, ks):
        ordered = sorted(Order(t, k) for t, k in zip(tensors, ks))
        return sum(o.t * (i + 1) for i, o in enumerate(ordered)) + x

    for i in range(7):
        yield f(data(i, 2), [(2, 1, 3), (3, 2, 1)][i % 2]), log.n, [getattr(t, "compared", 0) for t in tensors]


@bounded
def lazy_properties_and_slots(compiled):
    class Box:
        __slots__ = ("__weakref__", "_area", "data")

        def __init__(self, data):
            self.data = data

        @property
        def area(self):
            try:
                return self._area
            except AttributeError:
                self._area = (self.data[2:] - self.data[:2]).prod()
                return self._area

        def __eq__(self, other):
            return isinstance(other, Box) and torch.equal(self.data, other.data)

        __hash__ = None

    @compiled
    def f(boxes, bonus):
        first, *rest = boxes
        same = [b for b in rest if b == first]
        return first.area * bonus + sum((b.area for b in rest), torch.zeros(())), len(same)

    for i in range(8):
        boxes = [Box(torch.tensor([0.0, 0.0, 1.0 + (k + i) % 3, 2.0])) for k in range(4)]
        yield f(boxes, 1.0 + i), [hasattr(b, "_area") for b in boxes]


@steady
def contexts_that_patch(compiled):
    class Config:
        precision, scale = "high", 1.0

    @contextlib.contextmanager
    def patched(target, **values):
        missing = object()
        before = {k: target.__dict__.get(k, missing) for k in values}
        try:
            for k, v in values.items():
                setattr(target, k, v)
            yield target
        finally:
            for k, v in before.items():
                if v is missing:
                    delattr(target, k)
                else:
                    setattr(target, k, v)

    @compiled
    def f(x, scale):
        with patched(Config, scale=scale, extra=x.mean()) as c:
            y = x * c.scale + c.extra
        return y, Config.scale, hasattr(Config, "extra")

    for i in range(8):
        yield f(data(i, 3 + i % 2), 1.0 + 0.5 * i)


@steady
def tensors_as_keys_of_what_they_did(compiled):
    class Sam:
        def __init__(self, params):
            self.params, self.saved = list(params), {}

        @torch.no_grad()
        def ascend(self, rho):
            for p in self.params:
                self.saved[p] = p.detach().clone()
                p.add_(torch.sign(p), alpha=rho)

        @torch.no_grad()
        def descend(self):
            for p in self.params:
                if p in self.saved:
                    p.copy_(self.saved.pop(p) * 0.9)

    net = eye_linear(3)
    sam = Sam(net.parameters())
    ascend, descend = compiled(sam.ascend), compiled(sam.descend)
    for i in range(9):
        ascend(0.05 + 0.01 * i)
        yield net.weight, len(sam.saved)
        descend()
        yield net.weight, len(sam.saved)


@steady
def tables_by_shape_and_dtype(compiled):
    tables: dict = {}

    def positions(n, dtype):
        key = (n, dtype)
        if key not in tables:
            tables[key] = torch.arange(n, dtype=dtype)[:, None] / 10
        return tables[key]

    @compiled
    def f(x):
        return x + positions(x.shape[0], x.dtype)

    for i in range(12):
        yield f(data(i, 3 + i % 3, 2)), len(tables)


@bounded
def multiple_dispatch_over_classes(compiled):
    RULES: dict = {}

    def rule(*types):
        def add(function):
            RULES[types] = function
            return function

        return add

    def dispatch(*args):
        for classes in itertools.product(*(type(a).__mro__ for a in args)):
            if classes in RULES:
                return RULES[classes](*args)
        raise TypeError(f"no rule for {[type(a).__name__ for a in args]}")

    @dataclasses.dataclass
    class Gaussian:
        mean: torch.Tensor
        std: torch.Tensor

    @dataclasses.dataclass
    class Uniform:
        low: torch.Tensor
        high: torch.Tensor

    class Standard(Gaussian):
        pass

    @rule(Gaussian, Gaussian)
    def _(p, q):
        return (q.std / p.std).log() + (p.std**2 + (p.mean - q.mean) ** 2) / (2 * q.std**2) - 0.5

    @rule(Uniform, Uniform)
    def _(p, q):
        return ((q.high - q.low) / (p.high - p.low)).log()

    f = compiled(dispatch)
    for i in range(9):
        a, b = data(i, 3), data(i + 1, 3).exp()
        pair = [
            (Gaussian(a, b), Standard(a, b * 2)),
            (Uniform(a, a + b), Uniform(a - 1, a + b + 1)),
            (Uniform(a, b), 1),
        ]
        try:
            yield f(*pair[i % 3])
        except TypeError as e:
            yield e


@steady
def pipeline_of_generators_with_state(compiled):
    class Normalizer:
        def __init__(self):
            self.mean, self.n = torch.zeros(2), 0

        def __call__(self, rows):
            for row in rows:
                self.n += 1
                self.mean = self.mean + (row - self.mean) / self.n
                yield row - self.mean

    def windows(rows, size):
        window = collections.deque(maxlen=size)
        for row in rows:
            window.append(row)
            if len(window) == size:
                yield torch.stack(tuple(window))

    normalize = Normalizer()

    @compiled
    def f(x):
        return torch.stack([w.std(0) for w in windows(normalize(x.unbind(0)), 2)]).sum(0)

    for i in range(8):
        yield f(data(i, 4, 2)), normalize.n, normalize.mean


@bounded
def batch_collated_by_structure(compiled):
    def collate(items):
        first = items[0]
        if isinstance(first, torch.Tensor):
            longest = max(t.shape[0] for t in items) if first.dim() else None
            if longest is None:
                return torch.stack(items)
            return torch.stack([F.pad(t, (0, longest - t.shape[0])) for t in items])
        if isinstance(first, dict):
            return {k: collate([i[k] for i in items]) for k in first}
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            return type(first)(*(collate(list(part)) for part in zip(*items)))
        if isinstance(first, (int, float)):
            return torch.tensor(items)
        if isinstance(first, str):
            return items
        raise TypeError(f"cannot collate {type(first).__name__}")

    Pair = collections.namedtuple("Pair", "ids weight")
    f = compiled(collate)
    for i in range(14):
        items = [
            {"x": Pair(data(i + k, 2 + (i + k) % 3), 0.5 * k), "y": i + k, "name": f"n{(i + k) % 2}"} for k in range(3)
        ]
        yield f(items)
    try:
        f([{1, 2}])
    except TypeError as e:
        yield e
