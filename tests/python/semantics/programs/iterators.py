"""Loops over iterators in C code, with a graph break inside, and iterators with two names."""

from __future__ import annotations

import collections
import functools
import itertools
import operator

import torch

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


def loop_in_its_head(head, **names):
    """The iterator is made in the head of the loop."""
    names |= {"itertools": itertools, "operator": operator}
    source = f"""
def f(x, n):
    out = []
    def less(v): return (x + v).sum().item() < 4
    for item in {head}:
        out.append(item)
        if x.sum().item() > 100 or len(out) > 5: break
    return out, x * n
"""
    exec(source, names)
    return names["f"]


def loop_over(make):
    """The iterator is made elsewhere."""

    def f(x, n):
        out = []
        for k, item in enumerate(make(n)):
            out.append((item, x * k))
            if x.sum().item() * k > n or k > 4:
                break
        return out

    return f


HEADS = {
    "count": "itertools.count(n)",
    "count_by_halves": "itertools.count(n, step=0.5)",
    "cycle": "itertools.cycle([1, n])",
    "cycle_of_a_tuple": "itertools.cycle((1, 3, 2))",
    "repeat": "itertools.repeat(n, n)",
    "chain": "itertools.chain(range(n), [7, n], (t for t in x))",
    "chain_of_iterables": "itertools.chain.from_iterable([[1, n], (n, 3)])",
    "islice": "itertools.islice(range(10), n)",
    "islice_by_steps": "itertools.islice(itertools.count(), 1, 9, n)",
    "islice_refuses": "itertools.islice(range(10), n - 3 if n > 2 else -0) if n != 2 else [1]",
    "product": "itertools.product(range(2), 'ab', repeat=1)",
    "combinations": "itertools.combinations(range(n + 1), 2)",
    "permutations": "itertools.permutations(range(n), 2)",
    "zip_longest": "itertools.zip_longest(range(n), [1, 2, 3], fillvalue=x)",
    "pairwise": "itertools.pairwise(range(n + 2))",
    "accumulate": "itertools.accumulate([1, 2, n], operator.mul)",
    "accumulate_from": "itertools.accumulate(x, initial=x.sum())",
    "takewhile": "itertools.takewhile(less, [0, 1, n, 5])",
    "dropwhile": "itertools.dropwhile(less, [0, 1, n, 5])",
    "filterfalse": "itertools.filterfalse(less, [0, 1, n, 5])",
    "starmap": "itertools.starmap(lambda a, b: (x * a).sum().item() + b, [(1, 2), (n, 3)])",
    "compress": "itertools.compress([x, x + 1, x + 2], [1, n - 2, 1])",
}
MADE = {
    "count": lambda n: itertools.count(n),
    "count_by_steps": lambda n: itertools.count(n, 2),
    "repeat": lambda n: itertools.repeat(n),
    "repeat_some": lambda n: itertools.repeat("a", n),
    "chain": lambda n: itertools.chain(range(n), [5, 6]),
    "chain_of_repeats": lambda n: itertools.chain(itertools.repeat("a", 2), itertools.repeat("b", n)),
    "chain_of_iterables": lambda n: itertools.chain.from_iterable([[1, 2], [n]]),
    "islice": lambda n: itertools.islice(range(10), n),
    "islice_of_count": lambda n: itertools.islice(itertools.count(n), 1, 5),
    "product": lambda n: itertools.product(range(n), [1, 2]),
    "combinations": lambda n: itertools.combinations(range(n + 1), 2),
    "permutations": lambda n: itertools.permutations(range(n), 2),
    "zip_longest": lambda n: itertools.zip_longest(range(n), [1]),
    "takewhile": lambda n: itertools.takewhile(lambda v: v < n, range(9)),
    "dropwhile": lambda n: itertools.dropwhile(lambda v: v < n, range(9)),
    "starmap": lambda n: itertools.starmap(operator.add, [(1, 2), (n, 3)]),
    "filterfalse": lambda n: itertools.filterfalse(lambda v: v % 2, range(n + 3)),
    "compress": lambda n: itertools.compress(range(9), [1, 0, 1, n]),
    "zip_of_count": lambda n: zip(itertools.count(), "abc"),
    "until": lambda n: iter(functools.partial(next, iter([1, n, 3, 9])), 9),
    "deque": lambda n: collections.deque([1, n, 3]),
    "counted": lambda n: collections.Counter("aab").elements(),
}


def over_calls(f):
    def program(compiled):
        g = compiled(f)
        for i in range(8):
            yield g(data(i, 3) * 0.1, 2 + i % 3)

    return program


def captured(name, f):
    program = over_calls(f)
    program.__name__ = name
    PROGRAMS[name] = program, False, True


for _name, _head in HEADS.items():
    captured("head_" + _name, loop_in_its_head(_head))
for _name, _make in MADE.items():
    captured("made_" + _name, loop_over(_make))


# References of the program to an iterator besides the loop.


def over_many_calls(f):
    def program(compiled):
        g = compiled(f)
        for i in range(12):
            try:
                yield g(data(i, 12), 6 + i % 5)
            except StopIteration:
                yield "stopped"

    program.__name__ = f.__name__
    PROGRAMS[f.__name__] = program, False, True
    return f


@over_many_calls
def comprehensions_that_ask_for_data(x, n):
    pairs = [(a, b) for a in range(2) if x[a] > 0 for b in range(a) if x[b] < x[a]]
    lists = {a: [b for b in range(2) if x[b] > x[a]] for a in range(2) if x[a] < 0}
    return pairs, {a for a in range(n - 4) if x[a] > 0.3}, lists, sum(1 for a in range(n) if x[a] > 0)


@over_many_calls
def a_loop_over_a_variable(x, n):
    it, out = iter(range(n)), []
    for a in it:
        if x[a] > 0:
            out.append(a)
    return out, next(it, "end")


@over_many_calls
def zip_of_one_iterator(x, n):
    it, out = iter(range(n)), []
    for a, b in zip(it, it):
        out.append(a if x[a] > 0 else -b)
        if x[b] > 1:
            out.append(next(it, None))
    return out


@over_many_calls
def enumerated_and_taken(x, n):
    it, out = iter(range(n)), []
    for k, a in enumerate(it):
        if x[a] > 0:
            out.append((k, next(it, None)))
    return out


@over_many_calls
def held_by_an_object_and_a_list(x, n):
    class Reader:
        def __init__(self, it):
            self.it = it

        def read(self, k):
            return [next(self.it) for _ in range(k)]

    it, out = iter(range(n)), []
    reader = Reader(it)
    both = [it, reader]
    for a in it:
        if x[a] > 0:
            out.append(reader.read(1))
        if x[a] < -0.5:
            out.append(next(both[0], None))
    return out


@over_many_calls
def held_by_a_generator(x, n):
    def every_other(it):
        for a in it:
            yield a
            next(it, None)

    it, out = iter(range(n)), []
    for a in every_other(it):
        if x[a] > 0:
            out.append(a)
        if x[a] > 1:
            out.append(next(it, None))
    return out


@over_many_calls
def numbers_from_one_counter(x, n):
    ids, out = itertools.count(n), {}
    for a in range(4):
        if x[a] > 0:
            out[a] = next(ids)
        for b, k in zip(range(2), ids):
            if x[b] < 0:
                out[a, b] = k
    return out, next(ids)


@over_many_calls
def a_deque_that_changes_under_a_loop(x, n):
    queue, out = collections.deque(range(3)), []
    try:
        for a in queue:
            out.append(a)
            if x[a] > 0:
                queue.append(n)
    except RuntimeError as error:
        out.append(str(error))
    return out, list(queue)


# Loops over containers in state, changed by the call before the loop.


@growing
def dict_state_loop(compiled):
    d = {}

    def f(x, k):
        d[k] = x.mean()
        tot = 0
        for key in d:
            tot = tot + d[key]
            if x.sum() > 0:
                tot = tot + 1
        return tot

    g = compiled(f)
    for i in range(12):
        yield (g(data(i, 3), "abc"[i % 3]), dict(d))
        d.pop("a", None)


@growing
def dict_items_state(compiled):
    d = {}

    def f(x, k):
        d.pop(k, None)
        d[k] = x.mean()
        return [(a, b * 2) for a, b in d.items() if x.sum() > 0 or b > 0]

    g = compiled(f)
    for i in range(12):
        yield (g(data(i, 3), "abc"[i % 3]), list(d.items()))


@growing
def deque_both(compiled):
    q = collections.deque(maxlen=3)

    def f(x):
        q.append(x)
        out = []
        for v in q:
            if (v * x).sum() > 0:
                out.append(v + x)
        q.rotate(1)
        for v in reversed(list(q)):
            if v[0] > 0:
                out.append(v)
        return out

    g = compiled(f)
    for i in range(14):
        yield (g(data(i, 3)), list(q))


@growing
def returns_iterator(compiled):
    q = collections.deque(maxlen=3)
    d = {}

    def f(x, k):
        q.append(k)
        d[k % 2] = k
        print("p")
        return (iter(q), iter(d), x * 2)

    g = compiled(f)
    for i in range(6):
        a, b, c = g(data(i, 3), i)
        yield (list(a), list(b), c)


@steady
def deque_state_loop(compiled):

    class Buf:
        def __init__(self):
            self.q = collections.deque(maxlen=4)
            self.seen = 0

        def step(self, x):
            self.q.append(x.mean().item())
            tot = 0.0
            for v in self.q:
                tot += v
                if x.sum() > 0:
                    self.seen += 1
            return (x * tot, len(self.q))

    b = Buf()
    g = compiled(b.step)
    for i in range(10):
        yield (g(data(i, 3)), list(b.q), b.seen)


@growing
def defaultdict_state(compiled):
    d = collections.defaultdict(int)

    def f(x, k):
        for key in sorted(d) + [k]:
            d[key] += int(x[0] > 0) + 1
            if x.sum() > 0:
                d["pos"] += 1
        return (x * d[k], dict(d))

    g = compiled(f)
    for i in range(10):
        yield g(data(i, 3), "ab"[i % 2])


@growing
def product_with_state(compiled):

    class Grid:
        def __init__(self):
            self.hits = collections.Counter()

        def run(self, x, n):
            for i, j in itertools.product(range(n), repeat=2):
                if i == j:
                    continue
                if x[i] > x[j]:
                    self.hits[i, j] += 1
            return dict(self.hits)

    s = Grid()
    g = compiled(s.run)
    for i in range(8):
        yield g(data(i, 3), 2 + i % 2)


@growing
def ordered_dictionary_by_numbers_over_a_break(compiled):
    """The value at a number in an ordered dictionary is no item of a list."""
    steps = collections.OrderedDict()

    def f(x, first, second):
        steps[first] = lambda v: v * 2
        steps[second] = lambda v: v + 2
        y = x * 2
        if y.sum() > -1e9:
            y = y + 1
        for step in steps.values():
            y = step(y)
        names = list(steps)
        del steps[first], steps[second]
        return y, names, len(steps)

    for first, second in ((-1, -2), (0, 1), (5, 3), (1, 0)):
        g = compiled(f)
        for i in range(4):
            yield g(data(i, 3), first, second)


@growing
def ordered_dictionary_by_numbers_in_another_order(compiled):
    steps = collections.OrderedDict({0: torch.ones(3), 1: torch.full((3,), 2.0), 2: torch.full((3,), 3.0)})

    def f(x):
        y = x * 2
        if y.sum() > -1e9:
            y = y + 1
        for step in steps.values():
            y = y * step
        return y, list(steps)

    g = compiled(f)
    for i in range(8):
        steps[i % 3] = torch.full((3,), float(i))
        if i % 2:
            steps.move_to_end(i % 3)
        yield g(data(i, 3))
        if i == 5:
            steps[7] = steps.pop(0)


def methods_of_numbers(after_break):
    """C code calls a method of a number with numbers of the caller's list, which are symbols from the second call."""

    def program(compiled):
        iterators = {
            "map": lambda s: map((2).__add__, s),
            "map of a float": lambda s: map((100.0).__truediv__, s),
            "map of two": lambda s: map(int.__mul__, s, s[1:]),
            "map of a plain method": lambda s: map(int.bit_length, s),
            "filter": lambda s: filter((3).__lt__, s),
            "starmap": lambda s: itertools.starmap(int.__add__, [(v, v) for v in s]),
            "accumulate": lambda s: itertools.accumulate(s, int.__mul__),
            "accumulate from": lambda s: itertools.accumulate(s, func=int.__add__, initial=1),
        }

        def f(x, s, name):
            m = iterators[name](s)
            first = next(m)
            if after_break and x.sum() > -1e9:
                x = x * 2
            return x + first + s[1], list(m)

        def g(x, s):
            keys = sorted(s, key=(3).__sub__), max(s, key=(5).__rsub__), min(map((2).__mul__, s))
            return x + functools.reduce(int.__add__, s), keys, [*map((1).__add__, s)], (2).__sub__(s[0])

        g_of = compiled(g)
        for name in iterators:
            f_of = compiled(f)
            for i in range(4):
                yield f_of(data(i, 3), [4 + i, i + 1, 2 * i + 1, 7], name)
        for i in range(4):
            yield g_of(data(i, 3), [4 + i, i + 1, 2 * i + 1, 7])

    return program


for _after in (False, True):
    _program = methods_of_numbers(_after)
    _program.__name__ = f"methods_of_numbers_{'after_a_break' if _after else 'at_once'}"
    growing(_program)
