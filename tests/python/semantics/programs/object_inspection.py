# size: table
"""Programs with close inspection: the number of runs, object identity, the types of numbers, the number of a hook. As
programs/whole_scripts.py has them."""

from __future__ import annotations

import collections
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@bounded
def checkpoints_that_are_run_again(compiled):
    """Code repeated in the backward pass prints, appends and branches as often as in eager, also in the first call."""
    log = []

    def block(x, w):
        y = (x @ w).sin()
        print("in the block", tuple(y.shape))
        log.append(len(log))
        return y * 2 if y.sum() > 0 else y * 3

    def quiet(x, w):
        y = (x @ w).cos()
        log.append("quiet")
        return (y @ w).exp()

    @compiled
    def f(x, w, function, reentrant):
        checkpoint(function, x, w, use_reentrant=reentrant).sum().backward()
        return x.grad, w.grad, len(log)

    for i in range(32):
        x = data(i, [3, 4, 5][i % 3], 4).requires_grad_()
        w = data(i + 3, 4, 4).requires_grad_()
        yield f(x, w, quiet if i % 4 < 2 else block, i >= 6)
        y = f(x.detach().requires_grad_(), w.detach().requires_grad_(), block, i % 2 == 0)
        yield y, list(log)


class State:
    pass


@bounded
def tuples_that_a_generator_and_its_caller_hold(compiled):
    """The tuple sent to a generator has the number of this call, wherever the call breaks."""

    @compiled
    def f(x, n):
        def machine(t):
            total = 0
            command = yield "ready"
            print("sent")
            while True:
                print("again")
                try:
                    print("looks")
                    match command:
                        case ["add", k]:
                            total = total + t * k
                            command = yield total
                        case "reset":
                            total = 0
                            command = yield None
                        case _:
                            raise ValueError(command)
                except ValueError as e:
                    command = yield str(e)

        m = machine(x)
        out = [next(m)]
        for command in (("add", n), "bad", ("add", 1), "reset", ("add", 2)):
            out.append(m.send(command))
        return out

    for n in (3, 3, 4, 5, 3, 7):
        yield f(data(n, 2), n)


@steady
def sizes_beside_a_class_named_as_numpys(compiled):
    class int64:
        def __radd__(self, other):
            return "mine", other

        def __gt__(self, other):
            return "greater"

    own = int64()

    @compiled
    def f(x):
        return x * 2, x.shape[0] + own, x.shape[0] < own

    for n in (2, 3, 5, 2, 7, 4, 6, 8):
        yield f(data(n, n))


@bounded
def numbers_of_hooks(compiled):
    """Numbers of hooks are integers, increase, and are the keys of the hooks' dictionaries."""
    linear = nn.Linear(3, 2)
    seen = []

    @compiled
    def f(x):
        first = linear.register_forward_hook(lambda m, i, o: o * 2)
        second = linear.register_forward_hook(lambda m, i, o: o + 1)
        keys = list(linear._forward_hooks)
        found = [k >= 0 for k in keys], keys == [first.id, second.id], second.id - first.id
        y = linear(x)
        print("between", str(first.id)[0] == "-", first.id in linear._forward_hooks)
        scales = {first.id: 2, second.id: 3}
        for k in linear._forward_hooks:
            y = y * scales[k]
        seen[:] = found
        first.remove()
        second.remove()
        h = x * 2
        handle = h.requires_grad_().register_hook(lambda g: g * 3)
        (g,) = torch.autograd.grad(h.sum(), h)
        return y, g, handle.id >= 0, found

    for i in range(8):
        yield f(data(i, 2 + i % 3, 3)), list(seen)


def names_of_caller():
    return {k: type(v).__name__ for k, v in sys._getframe().f_back.f_locals.items()}


def by_another():
    return sorted(names_of_caller()), sorted(sys._getframe(1).f_locals)


@steady
def locals_seen_from_a_callee(compiled):
    """f_back.f_locals has variables without any later read in the caller's code, after a graph break, too."""

    @compiled
    def f(x, n):
        a = n + 1
        t = (a, x * 2)
        s = t[1].sum() + t[0]
        print("between", s.item() > 0)
        first = names_of_caller()
        y = s * 2
        print("again")
        return y, first, by_another()

    for i in range(12):
        yield f(data(i, 2 + i % 3, 3), i)


def described(number):
    return type(number).__name__, isinstance(number, np.integer), isinstance(number, int), number.item(), number.dtype


@steady
def numpy_ints_beside_sizes(compiled):
    """The result for a numpy.int64 and a size is numpy's, and stays a varying number, after a graph break, too."""
    scale, state = np.int64(3), State()

    @compiled
    def f(x):
        n = x.shape[0]
        k = scale * n + 1
        state.k = k
        y = x.new_zeros(k, 2) + k
        print("between", (y.sum() > 0).item())
        all_of = k, n - k, k // 2, 7 % k, -k, abs(k), divmod(k, n), k < n, n == k, int(k), float(k)
        return y * k, all_of, [type(v).__name__ for v in all_of], state.k == k, type(k) is type(n)

    for i in range(16):
        yield f(data(i, 2 + i % 7, 3)), type(state.k).__name__, int(state.k)


@bounded
def numpy_ints_that_are_looked_at(compiled):
    @compiled
    def f(x, k):
        m = k + x.shape[0]
        return x.repeat(m, 1), described(m), described(m * 2), f"{m} {m:03d} {m!r}", [*range(m)][-1], x[: k - 2]

    for i in range(24):
        yield f(data(i, 2 + i % 2, 2), np.int64(3 + i % 3))


@steady
def lengths_that_grow(compiled):
    """len() of a container extended by each call is a varying number."""
    log, seen, queue, table, kinds = [], set(), collections.deque(maxlen=9), {}, collections.deque()

    @compiled
    def f(x, n):
        before = len(log)
        log.append(x.sum())
        log.extend([n, n])
        log.insert(0, n)
        log[-1] = len(log) - before
        y = x * len(log) + len(table) / (1 + len(queue))
        if len(log) % 2 == 0:
            y = y + 1
        print("between", len(log), len(table))
        log.append(None)
        kinds.append(n)
        result = y + len(log), len(seen), f"{len(log)} of {len(queue)}", len(log) - before, len(kinds)
        return result

    for i in range(24):
        yield f(data(i, 3), i), len(log), len(table)
        queue.append(i)
        seen.add(i // 2)
        table[i // 3] = i
        if i == 17:
            log.clear()


@bounded
def lengths_that_do_not_grow_evenly(compiled):
    """The effect of a write on a length depends on the present content."""
    log, seen, queue, table = [], set(), collections.deque(maxlen=5), {}

    @compiled
    def f(x, n):
        queue.append(n)
        seen.add(n % 3)
        table[n % 4] = x.sum()
        y = x * len(queue) + len(seen) / len(table)
        log.append(n)
        if len(log) > 6:
            log.clear()
        log.append(n)
        z = y + len(log)
        del log[1:3]
        log[:0] = [n]
        return z + len(log), len(log)

    for i in range(60):
        yield f(data(i, 3), i % 7), len(log), len(seen), len(queue), len(table)


@steady
def length_of_a_buffer_that_is_sampled(compiled):
    class Buffer:
        def __init__(self):
            self.rows = []

        def add(self, row):
            if len(self.rows) >= 12:
                self.rows.pop(0)
            self.rows.append(row)
            return len(self.rows)

    buffer = Buffer()

    @compiled
    def f(x):
        count = buffer.add(x.detach().mean())
        return x / count, count, min(1.0, count / 12)

    for i in range(40):
        yield f(data(i, 2 + i % 3))


@bounded
def handles_by_their_numbers(compiled):
    """A program with handles of many modules, kept by their numbers, finds each of them."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))

    def watch(module, name, acts):
        return module.register_forward_hook(lambda m, i, o: acts.__setitem__(name, o.detach().mean()))

    @compiled
    def f(x, scale):
        acts, handles = {}, {}
        for name, module in net.named_children():
            handle = watch(module, name, acts)
            handles[handle.id] = name, handle
        print("between", len(handles))
        last = net[0].register_forward_pre_hook(lambda m, i: (i[0] * scale,))
        handles[last.id] = "scale", last
        y = net(x)
        order = [handles[k][0] for k in sorted(handles)]
        for _, handle in handles.values():
            handle.remove()
        return y, acts, order, [len(m._forward_hooks) for m in net], len(net[0]._forward_pre_hooks)

    for i in range(16):
        yield f(data(i, 2 + i % 3, 3), 1.0 + i % 2)
