"""Whole programs, as users write them: each gets the compile function, calls compiled code among other code (backward
passes, optimizers, other modules), and yields its observations. `steady`: programs that must not recompile from some
call on; `captured`: programs that must not run eagerly."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

PROGRAMS = {}


def program(steady=False, captured=False, programs=PROGRAMS):
    def add(function):
        programs[function.__name__] = function, steady, captured
        return function

    return add


def table_of_programs():
    """A table of its own, with its decorators. steady: nothing grows, and no call runs eagerly; bounded: some call runs
    eagerly or in part, but nothing grows; growing: some of the later calls recompile."""
    programs = {}

    def adds(**what):
        return lambda function: program(programs=programs, **what)(function)

    return programs, adds(steady=True, captured=True), adds(steady=True), adds()


def data(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# ------------------------------------------------------------------------------------------------ autograd graphs


@program()
def hooks_that_hold_numbers(compiled):
    weight = torch.ones(3, requires_grad=True)

    @compiled
    def f(x, scale):
        h = weight * x
        rows = x.shape[0]
        h.register_hook(lambda g: g * rows + scale)
        h.register_hook(lambda g, rows=rows: g / rows)
        return h

    for i, rows in enumerate([3, 3, 5, 4, 6]):
        weight.grad = None
        f(torch.ones(rows, 3), [0.5, 1.5, 2.0, 2.5, 3.0][i]).sum().backward()
        yield weight.grad


@program()
def hooks_on_nodes_hold_numbers(compiled):
    weight = torch.ones(3, requires_grad=True)

    @compiled
    def f(x, scale):
        h = (weight * x).sin()
        h.grad_fn.register_hook(lambda inner, outer: (inner[0] * scale * x.shape[0],))
        return h * 2

    for i, rows in enumerate([3, 3, 5, 4]):
        weight.grad = None
        f(torch.ones(rows, 3), float(i)).sum().backward()
        yield weight.grad


@program()
def checkpointed_blocks_in_a_row(compiled):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.drop, self.calls = nn.Linear(4, 4), nn.Dropout(0.5), 0

        def forward(self, x, k=1.0):
            self.calls += 1
            return x + self.drop(torch.tanh(self.linear(x))) * k

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, self.saves = nn.ModuleList(Block() for _ in range(3)), True

        def forward(self, x):
            for i, block in enumerate(self.blocks):
                if self.saves and self.training:
                    x = checkpoint(block, x, k=0.5 * (i + 1), use_reentrant=False)
                else:
                    x = block(x)
            return x

    net = Net()
    f = compiled(net)
    for i in range(6):
        net.zero_grad()
        net.train(i not in (2, 3))
        net.saves = i < 4
        torch.manual_seed(i)
        x = data(i, 4, 4).requires_grad_()
        y = f(x)
        y.sum().backward()
        yield y, x.grad, [p.grad for p in net.parameters()], [block.calls for block in net.blocks]


@program(steady=True, captured=True)
def optimizer_step_is_compiled(compiled):
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    step = compiled(optimizer.step)
    for i in range(8):
        optimizer.zero_grad()
        net(data(i, 2, 3)).square().sum().backward()
        step()
        yield list(net.parameters())


@program(captured=True)
def optimizers_read_numbers(compiled):
    for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
        for foreach in (False, True):
            net = nn.Linear(3, 2)
            optimizer = make(net.parameters(), lr=0.05, foreach=foreach)
            step = compiled(optimizer.step)
            for i in range(3):
                optimizer.zero_grad()
                net(data(i, 2, 3)).square().sum().backward()
                step()
                yield list(net.parameters())


@program(captured=True)
def regions_for_the_profiler(compiled):
    @torch.profiler.record_function("scaled")
    def scaled(x):
        return x * 2 if x.sum() > 0 else x - 1

    @compiled
    def f(x):
        with torch.profiler.record_function("forward"):
            x = scaled(x)
            if x.mean() > 0:
                x = x + 1
        return x

    for i in range(4):
        yield f(data(i, 3))


# -------------------------------------------------------------------------------------------------- moving state


@program(steady=True, captured=True)
def state_in_tuples(compiled):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.state, self.before = nn.LSTMCell(3, 4), None, None

        def forward(self, x, which):
            if self.state is None:
                self.state = tuple(torch.zeros(x.shape[0], 4) for _ in range(2))
            self.before = old = self.state
            self.state = self.cell(x, old)
            return old if which else self.state[0]

    net = Net()
    f = compiled(net)
    with torch.no_grad():
        for i in range(12):
            was = net.state
            result = f(data(i, 2, 3), i % 2)
            yield result, net.state, net.before is was, result is was


@program(steady=True, captured=True)
def state_in_nested_tuples_lists_and_deques(compiled):
    import collections

    past = [(torch.zeros(1, 2), (torch.zeros(1, 2), 5)) for _ in range(2)]
    window = collections.deque(maxlen=3)

    @compiled
    def f(x):
        for i in range(2):
            k, (v, n) = past[i]
            past[i] = (k + x, (v * 0.5 + x, n))
            x = x + past[i][0] * past[i][1][0]
        window.append((x, x.sum()))
        return sum(a * b for a, b in window) / len(window)

    for i in range(16):
        yield f(data(i, 1, 2)), past, list(window)


@program(steady=True, captured=True)
def state_in_slots(compiled):
    class Meter:
        __slots__ = ("mean", "pair", "seen")

        def __init__(self):
            self.mean, self.pair, self.seen = torch.zeros(3), (torch.zeros(3), torch.ones(3)), 0

        def update(self, x):
            self.seen += 1
            self.mean = self.mean + (x - self.mean) / self.seen
            self.pair = (self.pair[1], self.mean * 2)
            return self.mean

    meter = Meter()
    f = compiled(meter.update)
    for i in range(12):
        yield f(data(i, 3)), meter.mean, meter.pair, meter.seen


@program(steady=True, captured=True)
def floats_in_state(compiled):
    class Schedule(nn.Module):
        def __init__(self):
            super().__init__()
            self.time, self.temperature = 0.0, 2.0

        def forward(self, x, dt):
            self.time += dt
            self.temperature = max(0.5, self.temperature * 0.9)
            return x * self.time / self.temperature

    def counted():
        average = 0.0

        def f(x, rate):
            nonlocal average
            average = 0.9 * average + 0.1 * rate
            return x * average

        return f, lambda: average

    schedule = Schedule()
    f = compiled(schedule)
    g, get = counted()
    g = compiled(g)
    for i in range(40):
        yield f(torch.ones(2), 0.1 + 0.01 * i), schedule.time, schedule.temperature, g(torch.ones(2), 0.5 * i), get()


@program()
def floats_in_state_that_are_looked_at(compiled):
    import math

    state = {"t": 0.5}

    @compiled
    def f(x):
        state["t"] += 0.25
        return x + state["t"], f"{state['t']:.2f}", int(state["t"]), math.exp(state["t"]), state["t"] == 1.0

    for _ in range(6):
        yield f(torch.ones(2)), state["t"]


@program()
def more_floats_than_can_be_told_apart(compiled):
    f = compiled(lambda x, numbers: x * numbers[69] + numbers[3])
    for i in range(4):
        yield f(torch.ones(2), [float(i + j) for j in range(70)])


@program()
def counters_of_two_caches(compiled):
    class Cache:
        def __init__(self):
            self.items, self.seen = {}, 0

    class Slotted:
        __slots__ = ("items", "seen")

        def __init__(self):
            self.items, self.seen = {}, 0

    @compiled
    def f(x, cache):
        cache.seen += x.shape[0]
        if 0 in cache.items:
            x = torch.cat([cache.items[0], x], 0)
        cache.items[0] = x
        return x * 2

    for kind in (Cache, Slotted):
        for start in (3, 4):
            cache = kind()
            for i in range(5):
                yield f(torch.ones(start if i == 0 else 1), cache), cache.seen, cache.items


class Held:
    def __init__(self, n=0):
        self.parts, self.n = {}, n


HELD, LIST, TABLE = Held(), [1, 2], {"a": 1.0}


@program()
def arguments_that_state_holds_or_not(compiled):
    @compiled
    def of_object(x, held):
        HELD.n += 1
        return x * HELD.n + held.n

    @compiled
    def of_list(x, items):
        LIST.append(len(items))
        return x * len(items) + LIST[0]

    @compiled
    def of_dict(x, table):
        table["a"] = 7.0
        return x * TABLE["a"]

    HELD.n, LIST[:] = 0, [1, 2]
    HELD.parts.clear()
    x = torch.ones(2)
    for parts in ({}, {0: torch.ones(2)}):
        HELD.parts.update(parts)
        other = Held(50)
        other.parts.update(parts)
        for held in (HELD, HELD, other, other, HELD, other):
            yield of_object(x, held), HELD.n, other.n
    for given in ([5, 6], [5, 7], LIST, LIST, [1, 2], LIST):
        LIST[:] = [1, 2]
        yield of_list(x, given), list(LIST)
    for given in ({"a": 1.0}, {"a": 1.0}, TABLE, {"a": 1.0}, TABLE):
        TABLE["a"] = 1.0
        yield of_dict(x, given), TABLE["a"]


# ------------------------------------------------------------------------------------------------- Python's own types


@program()
def numbers_for_c_code(compiled):
    import collections
    import itertools

    items = [3, 1, 4, 1, 5, 9, 2, 6]

    def f(x, n):
        return (
            collections.deque(items, maxlen=n),
            collections.deque(items, n),
            list(itertools.permutations(items[:4], n))[:5],
            pow(n, 2, 5),
            pow(3, n, 7),
            n.__float__(),
            (n > 2).bit_length(),
            (n > 2).real,
            (n > 2).conjugate(),
            x * n,
        )

    given, sized = compiled(f), compiled(lambda x: f(x, x.shape[0]))
    for n in (3, 3, 2, 4):
        yield given(torch.ones(2), n), sized(torch.ones(n))


@program(captured=True)
def containers_begun_before_a_break(compiled):
    class Items(list):
        def __init__(self, items=()):
            print("items")
            super().__init__(items)

    class Table(dict):
        def __init__(self, **items):
            print("table")
            super().__init__(items)

    @compiled
    def f(x):
        a, b = Items([x, 1]), Table(k=x, n=2)
        print("made")
        a.append(x.sum())
        b["z"] = 3
        return a, b

    for i in range(4):
        yield f(data(i, 3))


# ------------------------------------------------------------------------------------------ memory, and odd numbers


@program()
def memory_that_state_and_arguments_share(compiled):
    weight = torch.arange(6.0).view(2, 3)

    def writes_argument(x):
        x.add_(1)
        return weight.sum(0)

    def writes_state(x):
        weight.add_(1)
        return x * 2

    for function in (writes_argument, writes_state):
        f = compiled(function)
        for make in (torch.ones, lambda n: weight[0], lambda n: weight[1], torch.ones, lambda n: weight[0].clone()):
            x = make(3)
            yield f(x), x, weight
        g = compiled(function)
        for x in (weight[0], torch.ones(3), weight[1]):
            yield g(x), x, weight


@program()
def views_in_state_that_share_memory(compiled):
    from types import SimpleNamespace

    pair = SimpleNamespace(a=torch.zeros(3), b=None)
    pair.b = pair.a
    buffer = torch.zeros(4, 3)
    place = SimpleNamespace(row=buffer[0], i=0)

    @compiled
    def f(x):
        pair.a.add_(x)
        return pair.b * 2

    @compiled
    def g(x):
        place.row.copy_(x)
        place.i = (place.i + 1) % 4
        place.row = buffer[place.i]
        return buffer.sum(0)

    for i in range(9):
        if i == 3:
            pair.b = pair.a.clone()
        if i == 5:
            pair.b = pair.a[:]
        if i == 6:
            pair.a = torch.ones(3)
        if i == 7:
            pair.b = pair.a
        yield f(data(i, 3)), pair.a, pair.b, g(data(i, 3)), buffer.clone(), place.row


@program()
def floats_that_are_no_numbers(compiled):
    @compiled
    def f(x, v):
        return x * v, v // 1, v % 2, round(v, 1), str(v), abs(v), v > 3, v == v, v != v, max(v, 1.0), min(v, 1.0)

    nan, inf = float("nan"), float("inf")
    for v in (1.0, 2.5, nan, inf, -0.0, 0.0, 3.0, -inf, 1e308, 5e-324, nan):
        yield f(torch.ones(2), v)


@program(captured=True)
def defaults_of_what_is_compiled(compiled):
    def f(x, scale=1.0, log=[], *, table={}):  # noqa: B006
        log.append(x.shape[0])
        table[x.shape[0]] = table.get(x.shape[0], 0) + scale
        return x * scale

    given = f.__defaults__, f.__kwdefaults__
    f = compiled(f)
    for i, rows in enumerate([3, 3, 5, 4, 3]):
        yield f(data(i, rows), float(i)), given


@program(steady=True, captured=True)
def arrays_among_the_arguments(compiled):
    class Batch:
        def __init__(self, array, rows):
            self.array, self.rows = array, rows

    @compiled
    def f(x, array, arrays, batch):
        y = torch.from_numpy(array) + x + len(array)
        doubled = np.clip(arrays["b"] * 2, 0, 3)
        batch.array[0] = batch.rows
        return y * 2, doubled, arrays["a"] is arrays["b"], torch.as_tensor(batch.array) + y, batch

    for i, rows in enumerate([3, 3, 5, 4, 6, 3, 3, 7, 3, 3]):
        one, other = np.linspace(0, 1, rows, dtype=np.float32), np.arange(i, i + rows)
        yield f(data(i, rows), one, {"a": one, "b": one if i == 1 else other}, Batch(other, rows)), one, other


@program(steady=True, captured=True)
def parts_of_one_result(compiled):
    """Results are views of a tensor without any other reference."""
    linear = nn.Linear(4, 6)

    @compiled
    def halves(x):
        mean, deviation = linear(x).chunk(2, 1)
        return mean, deviation, mean + torch.randn_like(mean) * deviation.exp()

    @compiled
    def rows(x):
        h = linear(x)
        first, rest = h[:1], h[1:]
        scale = 2.0 if h.sum().item() > -1e9 else 1.0
        return first, rest * scale, rest

    for i, n in enumerate([3, 3, 5, 2, 6, 3, 3, 4, 3, 3]):
        linear.zero_grad()
        results = [*halves(data(i, n, 4)), *rows(data(i, n, 4))]
        if i % 3:
            sum(r.square().sum() for r in results[i % 3 :]).backward()
        yield results, linear.weight.grad


@program(steady=True, captured=True)
def sizes_that_objects_hold(compiled):
    class Kept:
        def __init__(self, shape):
            self.shape, self.count = shape, shape.numel()

    policy, kept = nn.Linear(3, 2), Kept(torch.Size([1]))

    @compiled
    def f(x, shape):
        seen = Kept(x.shape)
        if x.sum() > 0:
            x = x + 1
        normal = torch.distributions.Normal(policy(x), policy(x).exp())
        before, kept.shape = kept.shape, x.shape
        return normal.log_prob(x[..., :2]).sum(), x.new_zeros(seen.shape) + seen.count, x.reshape(shape), before

    with torch.no_grad():
        for i, n in enumerate([2, 2, 4, 3, 6, 5, 2, 7, 8, 4, 9, 5, 7, 10, 3, 2]):
            yield f(data(i, n, 3), torch.Size([n * 3])), kept.shape


@program(captured=True)
def arrays_in_containers(compiled):
    @compiled
    def f(x, array, number):
        made = x.numpy().argsort()
        chosen = x[array, None], x[[array]], x[(made,)], x[made[0] :, None], x[: number[()]], x[number:]
        texts = f"{[array]}", "%s" % ([number],), str({"a": array})  # noqa: UP031
        many = x.new_tensor([array, array]), torch.stack([x[i] for i in [array]])
        x[array, ...] = 0
        x[:number] = len(texts)
        return *chosen, texts, many, len([array]), (array, [number])

    for i in range(8):
        yield f(data(i, 4), np.array([i % 3, (i + 1) % 4]), np.array(1 + i % 3))
