"""Whole programs whose state is another object at each call: containers and objects replaced by the call, numbers in
them, reads under other names. As programs/whole_scripts.py has them; `steady` programs must stop compiling."""

from __future__ import annotations

import collections
import dataclasses
import enum
import typing

import numpy as np
import torch
from torch import nn

from programs.whole_scripts import data, program

PROGRAMS = {}


def steady(function):
    program(steady=True, captured=True, programs=PROGRAMS)(function)


class Held:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


@steady
def lists_replaced(compiled):
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.state = None

        def forward(self, x):
            if self.state is None:
                self.state = [torch.zeros(3), torch.ones(3)]
            h, c = self.state
            h = torch.tanh(h + x.sum(0))
            self.state = [h, c * 0.5 + h]
            return x + self.state[1]

    cell = Cell()
    f = compiled(cell)
    for i in range(12):
        before = cell.state
        yield f(data(i, 2 + i, 3)), cell.state, cell.state is before, before


@steady
def dicts_replaced(compiled):
    held = Held(cache={"k": torch.zeros(1, 2), "v": torch.zeros(1, 2), "n": 0, "scale": 1.0})

    @compiled
    def f(x):
        k, v = torch.cat([held.cache["k"], x]), torch.cat([held.cache["v"], x * 2])
        held.cache = {"k": k, "v": v, "n": held.cache["n"] + 1, "scale": held.cache["scale"] * 0.9}
        return (k * v).sum() / held.cache["n"] * held.cache["scale"]

    for i in range(12):
        yield f(data(i, 1, 2)), held.cache


@steady
def objects_replaced(compiled):
    @dataclasses.dataclass
    class State:
        h: torch.Tensor
        step: int = 0
        rate: float = 0.5

    class Slotted:
        __slots__ = ("h", "n")

        def __init__(self, h, n):
            self.h, self.n = h, n

    class Named(typing.NamedTuple):
        h: torch.Tensor
        n: int

    held = Held(a=State(torch.zeros(3)), b=Slotted(torch.zeros(3), 0), c=Named(torch.zeros(3), 0))

    @compiled
    def f(x):
        held.a = State(held.a.h * held.a.rate + x, held.a.step + 1, held.a.rate * 0.9)
        held.b = Slotted(held.b.h + held.a.h, held.b.n + 2)
        held.c = held.c._replace(h=held.c.h + held.b.h, n=held.c.n + 1)
        return held.a.h * held.a.step + held.b.h / held.b.n + held.c.h / held.c.n

    for i in range(12):
        before = held.a, held.b, held.c
        yield f(data(i, 3)), held, held.a is before[0], held.b is before[1], held.c is before[2]


@steady
def nested_containers_replaced(compiled):
    held = Held(s=[{"a": torch.zeros(2)}, (torch.ones(2), [torch.zeros(2), 3])], q=collections.deque([0, 0], maxlen=2))

    @compiled
    def f(x):
        a = held.s[0]["a"] + x
        t, (u, n) = held.s[1]
        held.s = [{"a": a}, (t * 0.9, [u + a, n + 1])]
        held.q.append(n)
        return a + t * n + held.q[0]

    for i in range(12):
        yield f(data(i, 2)), held.s, list(held.q)


GLOBAL_STATE = [torch.zeros(2), 0]


@steady
def in_globals_cells_and_classes(compiled):
    global GLOBAL_STATE
    GLOBAL_STATE, local = [torch.zeros(2), 0], [torch.zeros(2), 0]

    class Counted:
        state = [torch.zeros(2), 0]

    @compiled
    def f(x):
        global GLOBAL_STATE
        nonlocal local
        GLOBAL_STATE = [GLOBAL_STATE[0] + x, GLOBAL_STATE[1] + 1]
        local = (local[0] - x, local[1] + 2)
        Counted.state = [Counted.state[0] * x, Counted.state[1] + 3]
        return GLOBAL_STATE[0] * GLOBAL_STATE[1] + local[0] * local[1] + Counted.state[0] * Counted.state[1]

    for i in range(12):
        yield f(data(i, 2)), GLOBAL_STATE, local, Counted.state


@steady
def numbers_in_tuples(compiled):
    held = Held(pos=(0, 5), table={"a": (0, torch.zeros(2))}, buffer=torch.arange(40.0))

    @compiled
    def f(x):
        held.pos = (held.pos[0] + 1, held.pos[1] + 2)
        n, t = held.table["a"]
        held.table["a"] = (n + 1, t + x)
        return x + held.pos[0] * 0.5 + held.buffer[held.pos[1]] + t / (n + 1) + torch.zeros(n).sum()

    for i in range(12):
        yield f(data(i, 2)), held.pos, held.table


@steady
def windows(compiled):
    held = Held(tensors=[], ints=[0, 0, 0], floats=[0.0, 0.0], pairs=collections.deque(maxlen=2), n=0)

    @compiled
    def f(x, rate):
        held.n += 1
        held.tensors.append(x * 2)
        held.tensors = held.tensors[-2:]
        held.ints = held.ints[1:] + [held.ints[-1] + 1]
        held.floats = [*held.floats[1:], rate]
        held.pairs.append((x, held.n))
        return sum(held.tensors) * sum(held.ints) * sum(held.floats) + sum(a * b for a, b in held.pairs)

    for i in range(16):
        yield f(data(i, 2), 0.5 * i), held.tensors, held.ints, held.floats, list(held.pairs)


@steady
def written_in_place_and_replaced(compiled):
    held = Held(s=[torch.zeros(2), torch.ones(2)])

    @compiled
    def f(x):
        old = held.s
        old[0] = old[0] + x
        held.s = [old[1], old[0]]
        return held.s[0] * 2, old

    for i in range(10):
        before = held.s
        result, old = f(data(i, 2))
        yield result, old is before, before, held.s


@steady
def seen_by_two_names(compiled):
    a, b = Held(s=[torch.zeros(2), 1]), Held(s=None)
    b.s = a.s

    @compiled
    def f(state, x):
        same = a.s is b.s, state is a.s, state is b.s
        a.s = [a.s[0] + x, a.s[1] + 1]
        if same[0]:
            b.s = a.s
        b.s.append(x)
        return len(a.s), len(state), b.s[0] * b.s[1], same

    for i in range(16):
        if i % 4 == 3:
            b.s = list(b.s)
        a.s, b.s = (a.s[:2], b.s[:2]) if a.s is not b.s else [a.s[:2]] * 2
        yield f([a.s, b.s, [torch.ones(2), 2]][i % 3], data(i, 2)), a.s, b.s, a.s is b.s


@steady
def other_kinds_in_one_place(compiled):
    class Mode(enum.Enum):
        PLUS = 1
        MINUS = 2

    held = Held(s=None, mode=Mode.PLUS)

    @compiled
    def f(x):
        state = held.s
        sign = 1 if held.mode is Mode.PLUS else -1
        if state is None:
            return x * sign
        if isinstance(state, list):
            return x + sign * state[0]
        return x * state["k"] * sign if isinstance(state, dict) else x - sign * state

    for i in range(24):
        held.s = [None, [data(i, 2)], {"k": data(i, 2)}, data(i, 2)][i % 4]
        held.mode = Mode.PLUS if i % 8 < 4 else Mode.MINUS
        yield f(data(i, 2))


@steady
def breaks_between_replacements(compiled):
    held = Held(s=[torch.zeros(2), 0])

    @compiled
    def f(x):
        h = held.s[0] + x
        held.s = [h, held.s[1] + 1]
        if h.sum() > 0:
            h = h * 2
        held.s = {"h": held.s[0] + h, "n": held.s[1] + 1}
        held.device = x.device
        y = float(h.sum()) * x
        held.s = [held.s["h"], held.s["n"] + 1]
        return held.s[0] * held.s[1] + y, held.device == x.device

    for i in range(12):
        yield f(data(i, 2)), held.s


@steady
def gradients_through_replaced_state(compiled):
    weight = torch.ones(2, requires_grad=True)
    held = Held(s=[torch.zeros(2)])

    @compiled
    def f(x):
        h = torch.tanh(held.s[0] * weight + x)
        held.s = [h.detach()]
        return h.sum()

    for i in range(10):
        weight.grad = None
        f(data(i, 2)).backward()
        yield weight.grad, held.s


@steady
def a_module_in_a_list_that_is_replaced(compiled):
    held = Held(s=[nn.Linear(2, 2), torch.zeros(2), "relu"])

    @compiled
    def f(x):
        net, bias, name = held.s
        y = getattr(torch, name)(net(x) + bias)
        held.s = [net, y, name]
        return y

    with torch.no_grad():
        for i in range(10):
            yield f(data(i, 2)), held.s[1]


@steady
def logs_that_are_added_to(compiled):
    held = Held(plus=[], changed=[], by_name={}, chain=None)

    class Node:
        def __init__(self, h, before):
            self.h, self.before = h, before

    held.chain = Node(torch.zeros(2), None)

    @compiled
    def f(x):
        loss = x.square().mean()
        held.plus = held.plus + [loss]
        held.plus = held.plus + [x, loss * 2]
        held.changed += [loss]
        held.by_name.setdefault("loss", []).append(loss)
        held.chain = Node(held.chain.h + x, held.chain)
        return loss

    for i in range(12):
        before = held.plus, held.changed, held.chain
        yield f(data(i, 2)), held.plus, held.changed, held.by_name, held.plus is before[0]
        yield held.changed is before[1], held.chain.before is before[2], held.chain.h


@steady
def a_log_that_is_read_now_and_then(compiled):
    held = Held(log=[])

    @compiled
    def f(x, reads):
        before = held.log
        held.log = held.log + [x]
        if reads:
            held.log = held.log[-2:]
            return len(held.log), sum(held.log), before[0] is held.log[0] if before else None
        return x

    for i in range(24):
        yield f(data(i, 2), i % 4 == 3), held.log


@steady
def schedules(compiled):
    import math

    held = Held(step=0, rate=0.5)

    @compiled
    def f(x, loss):
        held.step += 1
        warm = min(1.0, held.step / 4)
        held.rate = 0.5 * (1 + math.cos(math.pi * held.step / 20)) * warm
        if not math.isfinite(loss) or math.isnan(loss):
            return x * 0
        return x * held.rate * (1 - 0.9**held.step) ** 0.5 + math.exp(-loss) + loss**1.5 + math.log(loss + 1)

    for i in range(14):
        yield f(torch.ones(2), 0.25 * i + 0.1), held.step, held.rate


@program(programs=PROGRAMS)
def functions_of_numbers(compiled):
    import math

    @compiled
    def f(x, number):
        kinds = math.isfinite(number), math.isnan(number), math.isinf(number)
        results = []
        for function in (
            math.sqrt,
            math.log,
            math.exp,
            math.cos,
            math.log1p,
            math.atan,
            lambda v: v**-0.5,
            lambda v: 2.0**v,
        ):
            try:
                results.append(function(number))
            except (ValueError, OverflowError, ZeroDivisionError) as e:
                results.append(str(e))
        return x * number, kinds, results

    for number in (0.5, 1.5, 2.5, float("nan"), float("inf"), 800.0, -0.5, 0.0, 3.5, -2.0, 1e300):
        yield f(torch.ones(2), number)


def trained(compiled, make, schedule=None, clips=False, whole=True):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = make(net.parameters())
    scheduler = schedule(optimizer) if schedule else None

    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1) if clips else None
        optimizer.step()
        if scheduler:
            scheduler.step()
        optimizer.zero_grad()
        return loss.detach(), norm

    step, optimizer_step = (compiled(step), None) if whole else (None, compiled(optimizer.step))
    for i in range(12):
        if whole:
            result = step(data(i, 2 + i % 3, 3))
        else:
            optimizer.zero_grad()
            net(data(i, 2, 3)).square().mean().backward()
            result = optimizer_step()
        yield result, [p.detach().clone() for p in net.parameters()]


@program(steady=True, programs=PROGRAMS)
def adam_alone(compiled):
    yield from trained(compiled, lambda p: torch.optim.AdamW(p, lr=0.05, foreach=False), whole=False)


@program(steady=True, programs=PROGRAMS)
def adam_alone_by_lists(compiled):
    yield from trained(compiled, lambda p: torch.optim.Adam(p, lr=0.05, foreach=True), whole=False)


@program(steady=True, programs=PROGRAMS)
def adam_in_a_step(compiled):
    yield from trained(compiled, lambda p: torch.optim.Adam(p, lr=0.05), clips=True)


@program(steady=True, programs=PROGRAMS)
def adagrad_and_a_schedule(compiled):
    yield from trained(
        compiled,
        lambda p: torch.optim.Adagrad(p, lr=0.05, foreach=False),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda e: min(1.0, (e + 1) / 5)),
    )


@program(programs=PROGRAMS)
def numbers_that_callers_hold(compiled):
    import functools
    import operator

    held = Held(n=2)

    @compiled
    def f(x):
        held.n += 1
        return [
            [operator.methodcaller("__add__", n)(2), operator.methodcaller("__pow__", n)(2.0)]
            + [functools.partial(int.__add__, n)(2), functools.partial((2).__add__, n)(), n.__trunc__(), n.__floor__()]
            + [list(map((2).__add__, [n, 3])), operator.methodcaller("to_bytes", length=n, byteorder="big")(5)]
            for n in (x.shape[0], held.n)
        ]

    for i in range(6):
        yield f(torch.ones(3 + i % 3))


@program(programs=PROGRAMS)
def cached_functions_of_numbers_in_state(compiled):
    import functools

    held = Held(n=4)

    @functools.lru_cache(maxsize=4)
    def table(n):
        return 10.0 ** (-torch.arange(0, n, 2).float() / n) * held.n

    f = compiled(lambda x: x.sum() * table(held.n))
    for held.n in (4, 4, 6, 8, 6, 10, 4):
        yield f(torch.ones(2))


@steady
def arrays_replaced(compiled):
    held = Held(mean=np.zeros(3), table={"w": np.ones(3)}, row=[np.arange(3)], seen=None)

    @compiled
    def f(x):
        mean = torch.from_numpy(held.mean).float()
        held.seen = held.mean
        return (x - mean) * torch.from_numpy(held.table["w"]) + torch.as_tensor(held.row[0])

    for i in range(12):
        held.mean = np.full(3, 0.5 * i)
        if i % 2:
            held.table["w"] = np.full(3, 1.0 + i)
        held.row[0] = np.arange(3) + i
        yield f(data(i, 2, 3)), held.seen is held.mean
        held.mean += 1.0
        yield f(data(i, 2, 3))
