"""Programs for tests/python/bytecode/test_evaluator.py whose values may be replaced by equal values, made in the meantime."""

from __future__ import annotations

import functools
import types

LIMIT = 0


class Number:
    """A number whose operators are Python code."""

    def __init__(self, n):
        self.n = n

    def __repr__(self):
        return f"Number({self.n})"

    def __add__(self, other):
        return Number(self.n + other.n)

    def __iadd__(self, other):
        return Number(self.n + other.n)

    def __neg__(self):
        return Number(-self.n)

    def __lt__(self, other):
        return self.n < other.n

    def __eq__(self, other):
        return self.n == other.n

    def __hash__(self):
        return hash(self.n)

    def __bool__(self):
        return self.n > 0

    def __index__(self):
        return self.n

    def __contains__(self, item):
        return item.n == self.n

    def __getitem__(self, key):
        return (self.n, key)

    def __setitem__(self, key, value):
        self + value

    def __delitem__(self, key):
        self + self

    def __iter__(self):
        yield from range(self.n)

    def __format__(self, spec):
        return f"<{self.n}{spec}>"

    def __call__(self, *args, **kwargs):
        return args, kwargs

    def __enter__(self):
        return (self.n, 1.5)

    def __exit__(self, *error):
        return error[0] is not None

    @property
    def twice(self):
        return self + self

    def method(self, other, *, third=1.25):
        return other, third

    def __getattr__(self, name):
        if name != "computed":
            raise AttributeError(name)
        return self + self


def number_operators():
    a, b, out = Number(3), Number(4), []
    c, d = 1.5 + 2j, b"bytes"
    out += [a + b, -a, +c, a < b, a == b, c == c, c + 1, -c, c * 2, a in b, a not in b, 98 in d, d in d]
    a += b
    c += 1j
    out += [d[1], d[1:3], a[b], a[1:b], (a, b)[1], (1.5, c)[1], not a, not c, f"{a}{a!r:>9}{c}{c!r:>9}{a:{a}}"]
    out += [1 if a else 2, 1 if c else 2, a and 1.5, c or b, d if d else c, (1.5, a) < (1.5, b), a is b, c is not None]
    a[b] = a
    a[1:2] = b
    del a[b]
    del a[1:b]
    return out


def number_items():
    a, t, out = Number(3), (1.5, 2.5, Number(2)), []
    x, y, z = t
    p, *q = t
    *r, s = b"bytes"
    i, j, k = a
    u, *m = a
    out += [x, y, z, p, q, r, s, i, j, k, u, m, [*t, *a], {*t}, {**{"k": t}, "l": a}, {a: t, 1.5: a}, {a, 1.5, 1j}]
    out += [[n + 0.5 for n in t[:2]], {n: a for n in t}, {n for n in t}, [n for n in a], list(a), (*t, *a)]
    for n in t:
        out.append((n, a))
    for wrong in (lambda: [1.5, *5j], lambda: [z for _ in range(1) for z, w in [t]]):
        try:
            wrong()
        except (TypeError, ValueError) as error:
            out.append(str(error))
    try:
        x, y = a
    except ValueError as error:
        out.append(str(error))
    try:
        x, *y, z, _w = t[:2]
    except ValueError as error:
        out.append(str(error))
    try:
        x, y = 1j
    except TypeError as error:
        out.append(str(error))
    return out


def number_calls():
    a, t, out = Number(3), (1.5, 2.5j), []
    out += [a(*t), a(*t, k=t), a(**{"k": a}), a(*t, **{"k": 1.5}), a.method(1.5), a.method(*t[:1], third=a)]
    out += [a.twice, a.twice.twice, a.computed, t.count(1.5), b"bytes".upper(), 2.5j.conjugate(), abs(2.5j), sum(t)]
    out += [max(a, Number(5)), sorted([a, Number(1)]), functools.partial(a.method, third=t)(1.5), len(t), hash(a)]
    out += [isinstance(a, (Number, float)), [*map(a.method, t)], dict(k=t), tuple(a), Number(*[7]).method(t)]
    for wrong in (lambda: a.missing, lambda: a.method(), lambda: t.missing, lambda: a(*2.5), lambda: a(**2.5j)):
        try:
            wrong()
        except (AttributeError, TypeError) as error:
            out.append(str(error))
    return out


def number_state():
    global LIMIT
    a, t, out, holder = Number(3), (1.5, 2.5j), [], types.SimpleNamespace()
    holder.kept, before, LIMIT = t, LIMIT, 1.5

    def inner(b=a, *c, d=t):
        nonlocal t
        t = (b, c, d, a)
        return t

    out += [holder.kept, LIMIT, inner(), inner(2.5, 3.5, d=1j), t]
    LIMIT = before
    del holder.kept
    with a as (n, m):
        out.append((n, m))
        raise ValueError(t)
    match t:
        case (x, _, y, Number(n=n)):
            out += [x, y, n]
    match {"k": t, "n": 1.5}:
        case {"k": (_, _, *rest), **others}:
            out += [rest, others]

    class Made(Number):
        both = t
        pair = both, both

        def method(self, other, *, third=both):
            return super().method(other, third=third), super().twice

    out += [Made.pair, Made(4).method(1.5)]
    return out


def number_generators():
    def inner(t):
        got = yield t
        while got:
            got = yield (got, t)
        return (got, 1.5)

    def outer(t):
        result = yield from inner(t)
        yield result

    g, out = outer((1.5, Number(2))), []
    out += [
        next(g),
        g.send(1.5),
        g.send((2.5, 3.5)),
        g.send(None),
        [*inner((1j,))],
        dict([(1.5, n) for n in inner(2.5)]),
    ]
    g = outer((1.5,))
    out.append(next(g))
    try:
        g.throw(ValueError((1.5, 2.5)))
    except ValueError as error:
        out.append(error.args)
    return out


REPLACED = [number_operators, number_items, number_calls, number_state, number_generators]
