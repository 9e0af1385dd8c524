# size: table
# ruff: noqa: B007  (programs as they are written)
"""Programs with reads of data while a generator runs or is suspended. Rows as in programs_effects."""

from __future__ import annotations

import contextlib

from programs.effects import ramp, table, world

ROWS, row = table()

SIGNS = (lambda: ramp(3, 4), lambda: -ramp(3, 4), lambda: ramp(5, 2), lambda: -ramp(2, 2))


def note(w, x, what="at"):
    """Reads data, and counts."""
    w.log.append((what, x.sum().item()))
    return x + 1


# ------------------------------------------------------------------------------------------------- suspended at a break


def halves(w, x, n=3):
    w.log.append("begin")
    try:
        for i in range(n):
            x = x * 0.5
            w.log.append(i)
            yield x
    finally:
        w.log.append("end")


@row
def body_breaks(w, x):
    for y in halves(w, x):
        note(w, y)
    return y


@row
def body_breaks_often(w, x):
    for y in halves(w, x, 12):
        note(w, y)
    return y


@row
def counted_by_a_range(w, x):
    def numbers(limit):
        for i in range(limit):
            yield i
            if i % 3 == 2:
                yield -i

    for n in numbers(8):
        note(w, x, n)
    return x


@row
def left_early(w, x):
    for y in halves(w, x):
        if note(w, y).sum() > -100:
            break
    note(w, y, "left")
    return y


@row
def two_at_once(w, x):
    for a, b in zip(halves(w, x), halves(w, x + 1)):
        note(w, a + b)
    return a - b


@row
def not_started(w, x):
    g = halves(w, x)
    note(w, x)
    return [note(w, y) for y in g]


@row
def never_started(w, x):
    g = halves(w, x)
    note(w, x)
    return x, g is None


@row
def finished_lives_on(w, x):
    g = halves(w, x, 1)
    y = next(g)
    done = next(g, None)
    note(w, y)
    return y, done, next(g, "nothing")


@row
def dropped_after_break(w, x):
    g = halves(w, x)
    y = next(g)
    note(w, y)
    note(w, y)
    del g
    note(w, y)
    return y


@row
def closed_after_break(w, x):
    g = halves(w, x)
    y = next(g)
    note(w, y)
    g.close()
    note(w, y)
    return y


@row
def in_a_container(w, x):
    gs = {"a": halves(w, x), "b": [halves(w, x + 1)]}
    out = [next(gs["a"]), next(gs["b"][0])]
    note(w, out[0])
    out += [next(gs["a"]), next(gs["b"][0])]
    note(w, out[1])
    return out


class Loader:
    """An object whose generator refers back to it."""

    def __init__(self, w, x):
        self.w, self.x, self.n = w, x, 0
        self.steps = self.run()

    def run(self):
        while True:
            self.n += 1
            self.x = self.x + self.n
            yield self.x

    def __next__(self):
        return next(self.steps)

    def __iter__(self):
        return self


@row
def in_its_own_object(w, x):
    loader = Loader(w, x)
    a = next(loader)
    note(w, a)
    b = next(loader)
    note(w, b)
    return a, b, loader.n


@row
def iterated_object(w, x):
    for i, y in enumerate(Loader(w, x)):
        note(w, y)
        if i == 2:
            break
    return y


@row
def handed_out(w, x):
    w.gen = halves(w, x)
    y = next(w.gen)
    note(w, y)
    z = next(w.gen)
    note(w, z)
    w.left = [v for v in w.gen]
    del w.gen
    return y, z


@row
def two_names(w, x):
    g = halves(w, x, 6)
    same = [g, g]
    y = next(g)
    note(w, y)
    z = next(same[0])
    note(w, z)
    return y, z, next(same[1]), next(g), same[0] is g


@row
def returned(w, x):
    g = halves(w, x)
    y = next(g)
    note(w, y)
    return y, list(g)


@row(make=lambda: world(kept=[]))
def kept_in_state(w, x):
    g = halves(w, x)
    y = next(g)
    w.kept.append(g)
    note(w, y)
    z = next(g)
    note(w, z)
    w.kept.pop()
    return z


@row
def sent_values(w, x):
    def echo():
        got = yield x
        while got is not None:
            w.log.append("got")
            got = yield got * 2
        return "done"

    g = echo()
    a = next(g)
    note(w, a)
    b = g.send(a + 1)
    note(w, b)
    try:
        g.send(None)
    except StopIteration as stop:
        w.log.append(stop.value)
    return a, b


# ------------------------------------------------------------------------------------------------- a break inside


def asking(w, x, n=3):
    """A generator with a read of data."""
    w.log.append("begin")
    try:
        for i in range(n):
            x = note(w, x * 0.5, i)
            yield x
    finally:
        w.log.append("end")


@row
def generator_breaks(w, x):
    out = []
    for y in asking(w, x):
        out.append(y)
    return out


@row
def generator_and_body_break(w, x):
    for y in asking(w, x):
        note(w, y, "body")
    return y


@row
def generator_breaks_often(w, x):
    for y in asking(w, x, 12):
        w.log.append("body")
    return y


@row
def break_at_the_end(w, x):
    def steps():
        yield x
        note(w, x)

    return [y + 1 for y in steps()]


@row
def break_before_the_first(w, x):
    def steps():
        y = note(w, x)
        yield y

    (y,) = steps()
    return y


@row(inputs=SIGNS)
def branch_in_a_generator(w, x):
    def steps():
        for y in x:
            if y.sum() > 0:
                yield y
            else:
                w.log.append("negative")

    return [y * 2 for y in steps()]


@row(inputs=SIGNS)
def or_in_a_generator(w, x):
    def steps():
        for y in x:
            yield (y.sum() > 0) or y.max()

    return [y for y in steps()]


@row
def explicit_next(w, x):
    g = asking(w, x)
    a, b = next(g), next(g)
    w.log.append("between")
    c = next(g)
    return a, b, c, next(g, None)


@row
def explicit_send(w, x):
    def total():
        sum = x
        while True:
            more = yield note(w, sum)
            w.log.append("got")
            sum = sum + more

    g = total()
    next(g)
    a = g.send(x)
    b = g.send(a)
    return a, b


@row
def stop_with_a_value(w, x):
    def steps():
        y = yield x
        z = note(w, y)
        return z, "end"

    g = steps()
    a = next(g)
    try:
        g.send(a + 1)
    except StopIteration as stop:
        return stop.value


@row
def delegated(w, x):
    def inner():
        got = yield note(w, x, "inner")
        note(w, got, "inner")
        return got * 2

    def outer():
        result = yield from inner()
        note(w, result, "outer")
        yield result

    g = outer()
    a = next(g)
    return a, g.send(a + 1)


@row
def delegated_deep(w, x):
    def level(n, x):
        if n == 0:
            yield note(w, x, n)
        else:
            yield from level(n - 1, x + 1)
            note(w, x, n)
            yield x

    return [y for y in level(4, x)]


@row
def nested_generators(w, x):
    def doubled(items):
        for y in items:
            yield note(w, y * 2, "doubled")

    def shifted(items):
        for y in items:
            yield note(w, y + 1, "shifted")

    out = []
    for y in doubled(shifted(asking(w, x))):
        out.append(y)
    return out


@row
def generator_expression(w, x):
    total = 0
    for y in (note(w, x + i) for i in range(3)):
        total = total + y
    return total


@row
def generator_calls_deep(w, x):
    def help(y):
        return note(w, y) * 2

    def steps():
        for i in range(2):
            with contextlib.nullcontext():
                yield help(x + i) + help(x - i)

    out = []
    for y in steps():
        out.append(y)
    return out


@row
def finally_breaks(w, x):
    def steps():
        try:
            yield x
            yield x + 1
        finally:
            note(w, x, "finally")

    out = []
    for y in steps():
        out.append(y)
    return out


@row
def with_inside(w, x):
    @contextlib.contextmanager
    def region():
        w.log.append("enter")
        try:
            yield 2
        finally:
            w.log.append("exit")

    def steps():
        with region() as n:
            for i in range(2):
                yield note(w, x * n + i)

    for y in steps():
        note(w, y, "body")
    return y


@row
def generator_raises(w, x):
    def steps():
        yield note(w, x)
        note(w, x, "last")
        raise ValueError("over")

    out = []
    try:
        for y in steps():
            out.append(y)
    except ValueError as e:
        w.log.append(str(e))
    return out


@row
def generator_raises_out(w, x):
    def steps():
        yield note(w, x)
        note(w, x, "last")
        raise ValueError("over")

    for y in steps():
        w.log.append("body")
    return y


@row
def stop_iteration_inside(w, x):
    def steps():
        yield note(w, x)
        raise StopIteration(1)

    try:
        return [y for y in steps()]
    except RuntimeError as e:
        w.log.append((str(e), type(e.__cause__).__name__))
        return x


@row
def recursive_tree(w, x):
    def walk(node):
        if isinstance(node, list):
            for child in node:
                yield from walk(child)
        else:
            yield note(w, x * node)

    total = x
    for y in walk([1, [2, [3, 4]], 5]):
        total = total + y
    return total


@row
def fibonacci(w, x):
    def numbers():
        a, b = 0, 1
        while True:
            yield a
            a, b = b, a + b

    total = x
    for n in numbers():
        if n > 20:
            break
        total = note(w, total + n)
    return total


@row
def coroutine_by_hand(w, x):
    async def inner(y):
        return note(w, y) * 2

    async def outer():
        a = await inner(x)
        w.log.append("between")
        return a + await inner(a)

    c = outer()
    try:
        c.send(None)
    except StopIteration as stop:
        return stop.value
