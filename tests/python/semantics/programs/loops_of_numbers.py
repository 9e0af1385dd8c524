"""Loops over containers of numbers, with a graph break in each iteration: other numbers need no other program."""

from __future__ import annotations

import collections

import torch

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


def loop_over(make, arguments):
    """A loop over the result of `make` for an argument, whose items are numbers or pairs ending in a number."""

    def program(compiled):
        @compiled
        def f(x, given):
            for item in make(given):
                x = x + (item[-1] if isinstance(item, tuple) else item)
                if x.sum() > -1e9:
                    x = x * 1.5
            return x

        for i in range(10):
            yield f(data(i, 3), arguments(i))

    return program


def add(name, make, arguments=lambda i: [i, i + 1]):
    program = loop_over(make, arguments)
    program.__name__ = name
    steady(program)


add("a_loop_over_a_list", lambda s: s)
add("a_loop_over_floats", lambda s: s, lambda i: [i / 2, i / 3])
add("a_loop_over_pairs", lambda s: s, lambda i: [(i, i + 1), (i + 2, i)])
add("a_loop_over_a_sorted_list", sorted)
add("a_loop_over_a_list_from_its_end", reversed)
add("a_loop_over_an_enumeration", enumerate)
add("a_loop_over_two_lists", lambda s: zip(s, s))
add("a_loop_over_a_made_list", lambda s: [2 * n for n in s])
add("a_loop_over_a_generator", lambda s: (2 * n for n in s))
add("a_loop_over_items", lambda s: s.items(), lambda i: {"a": i, "b": i + 1})
add("a_loop_over_values", lambda s: s.values(), lambda i: {"a": i, "b": i + 1})
add("a_loop_over_items_in_order", lambda s: collections.OrderedDict(s).items(), lambda i: {"a": i, "b": i + 1})
add("a_loop_over_most_common", lambda s: collections.Counter(s).most_common(), lambda i: {"a": i + 2, "b": i + 1})


@steady
def a_loop_over_lists_in_state(compiled):
    weights, sizes = {"a": 1.0, "b": 2.0}, [1, 2]

    @compiled
    def f(x):
        for name, weight in weights.items():
            for size in sizes:
                x = x * weight + size
                if x.sum() > 0:
                    print(name)
        return x

    for i in range(12):
        weights["a"], sizes[1] = 0.5 * (i % 5), i
        yield f(data(i, 3))


@growing
def an_ordered_dictionary_that_changes_in_its_loop(compiled):
    @compiled
    def f(x, how):
        table = collections.OrderedDict(a=1, b=2)
        try:
            for name, value in table.items():
                x = x * value
                if x.sum() > -1e9:
                    if how == 1:
                        table["new"] = 3
                    if how == 2:
                        table.move_to_end("a")
                    if how == 3:
                        del table["a"]
                    if how == 4:
                        table[name] = 9
        except RuntimeError as e:
            return str(e), x
        return x, table

    for i in range(10):
        yield f(data(i, 3), i % 5)


@growing
def views_of_an_ordered_dictionary(compiled):
    table = collections.OrderedDict(w=1.0, v=2.0)
    log = []

    @compiled
    def f(x, more):
        for name in more:
            if x.sum() > -1e9:
                log.append(name)
        for name, value in table.items():
            x = x * value
            if x.sum() > 0:
                table[name] = value * 0.5
        entries = iter(more.values())
        first = next(entries)
        if x.sum() > -1e9:
            x = x * first
        return x, list(entries)

    for i in range(9):
        if i == 4:
            table["z"] = 3.0
        if i == 6:
            table.move_to_end("w")
        yield f(data(i, 3), collections.OrderedDict(a=i, b=2, c=3)), table, log


@steady
def counts_by_numbers_of_data(compiled):
    counts, sums = collections.Counter(), collections.defaultdict(int)
    plain = {k: 0 for k in range(-60, 60)}

    @compiled
    def f(x):
        k = int(x[0] * 10)
        counts[k] += 1
        sums[k] += k
        plain[k] += 2
        return x * counts[k]

    for i in range(40):
        yield f(data(i, 3)), counts, sums, plain


# ------------------------------------------------------------------------------------------------ random generators


@steady
def generators_of_the_call(compiled):
    @compiled
    def f(x, seeds):
        made = [torch.Generator().manual_seed(seed) for seed in seeds]
        rows = torch.stack([torch.randn(x.shape, generator=g) for g in made])
        return rows + x, torch.randperm(len(x), generator=made[0]), made[0].initial_seed()

    for i in range(9):
        yield f(data(i, 3 + i), [i, i + 1])


@steady
def generators_by_default(compiled):
    @compiled
    def sample(x, generator=None, steps=2):
        if generator is None:
            generator = torch.Generator(device=x.device)
            generator.manual_seed(7)
        before = generator.get_state()
        for _ in range(steps):
            x = x + 0.1 * torch.randn(x.shape, generator=generator)
        generator.set_state(before)
        return x, generator.initial_seed(), str(generator.device), generator

    for i in range(9):
        x, *rest, generator = sample(data(i, 3 + i), None if i % 2 else torch.Generator().manual_seed(1), 2 + i % 2)
        yield x, rest, torch.rand(2, generator=generator)


@growing
def generators_in_state(compiled):
    class Noise:
        def __init__(self):
            self.generator, self.calls = torch.Generator().manual_seed(3), 0

        def draw(self, x):
            self.calls += 1
            if self.calls % 3 == 0:
                self.generator = torch.Generator().manual_seed(self.calls)
            return x * torch.rand(x.shape, generator=self.generator)

    noise = Noise()
    draw = compiled(noise.draw)
    for i in range(9):
        yield draw(data(i, 3 + i)), noise.generator.initial_seed()


# ---------------------------------------------------------------------------------------- sets, and rarer arguments


@steady
def a_loop_over_a_set(compiled):
    @compiled
    def f(x, names):
        total = 0
        for n in {1, 2, 3}:
            if (x * n).sum() > 0:
                total += n
        kept = []
        for name in names:
            x = x + len(name)
            if x.sum() > 0:
                kept.append(name)
        return total, kept, x

    for i in range(16):
        yield f(data(i, 3), {"a", "bb", "ccc"} if i % 2 else {"zz", "y"})


@growing
def a_set_that_changes_in_its_loop(compiled):
    @compiled
    def f(x, how):
        items, out = {1, 2, 3}, []
        try:
            for item in items:
                if x.sum() > -1e9:
                    out.append(item)
                if how == 1:
                    items.add(10 + item)
                if how == 2:
                    items.discard(item)
                if how == 3:
                    items.discard(item)
                    items.add(item)
        except RuntimeError as e:
            return str(e), out, x
        return items, out, x

    for i in range(12):
        yield f(data(i, 3), i % 4)


@steady
def containers_that_each_call_makes(compiled):
    memo = {}

    @compiled
    def f(x, names, frozen, queue, counts):
        names.add("more")
        counts["n"] += len(names)
        queue.append(x)
        queue.rotate(1)
        if frozen not in memo:
            memo[frozen] = len(memo)
        return x * memo[frozen] * counts["n"] + queue[1], names, queue, counts, frozen | {"z"}

    for i in range(12):
        given = {"a", "b"}, frozenset({"ab"[i % 2]}), collections.deque([i, 2.0], maxlen=4)
        counts = collections.defaultdict(int, n=i)
        results = f(data(i, 3), *given, counts)
        yield results, results[1] is given[0], results[2] is given[2], results[3] is counts, memo


@growing
def sets_that_are_one(compiled):
    held = {1, 2}

    @compiled
    def f(x, a, b):
        a.add(5)
        if x.sum() > 0:
            b.discard(1)
        held.add(len(a))
        return x * len(b), a is b, a is held, len(a | b)

    for i in range(12):
        a = {1, 2}
        b = a if i % 2 else {1, 3}
        if i > 7:
            a = b = held
        yield f(data(i, 3), a, b), a, b, held


@growing
def lists_that_change_in_their_loops(compiled):
    def waits(x):
        return x * 2 if x.sum() > -1e9 else x

    def popped(x, s):
        for k in s:
            x = waits(x + k)
            s.pop(0)
        return x, s

    def inserted(x, s):
        for i, k in enumerate(s):
            x = waits(x + k)
            if i < 2:
                s.insert(0, k * 2)
            if i > 6:
                break
        return x, s

    def turned(x, s):
        made = [a + 1 for a in s]
        for k in made:
            x = waits(x + k)
            made.reverse()
            if len(made) < 6:
                made.append(k)
        return x, made

    def told(x, s):
        out = []
        for k in list(s):
            x = waits(x)
            out.append((type(k).__name__, k, str(k)))
        return x, out

    def of_a_dictionary(x, s):
        table = dict(enumerate(s))
        for k, v in table.items():
            x = waits(x)
            table[k] = v * 2
            x = x + table[k]
        return x, table, [type(v).__name__ for v in table.values()]

    def beside_c_code(x, s):
        pairs = zip(s, map((1).__add__, s))
        first = next(pairs)
        return waits(x) + first[0], list(pairs)

    for function in (popped, inserted, turned, told, of_a_dictionary, beside_c_code):
        f = compiled(function)
        for i in range(6):
            given = [i, i + 1, 2 * i, 7]
            yield f(data(i, 3) + 5, given), given


def of_many_lengths(*functions):
    """Twice at each length: the second time nothing is compiled."""
    for _ in range(2):
        for n in (3, 5, 4, 7, 2, 9, 6, 12, 8, 11, 10, 14):
            for f in functions:
                yield f(data(n, n, 3))


@steady
def loops_of_many_lengths(compiled):
    """A graph break in a loop over range(n): after a few lengths a graph segment covers a single iteration, whatever n
    is."""

    @compiled
    def forwards(x):
        total = 0.0
        for i in range(x.shape[0]):
            value = x[i].sum().item()
            total = total + value if value > 0 else total - 1
        return total

    @compiled
    def backwards(x):
        out = []
        for i in range(x.shape[0] - 1, -1, -1):
            out.append((type(i).__name__, i, round(x[i].sum().item(), 4)))
        return out

    @compiled
    def stepped(x):
        total = 0.0
        for i in range(0, len(x), 2):
            total += x[i : i + 2].sum().item()
            if i > 8:
                break
        else:
            total += 1
        return total, i

    yield from of_many_lengths(forwards, backwards, stepped)


@steady
def loops_of_many_lengths_inside(compiled):
    @compiled
    def nested(x):
        total = 0.0
        for i in range(1, x.shape[0]):
            for j in range(i):
                total += (x[i] * x[j]).sum().item()
        return total

    @compiled
    def left_by_an_error(x):
        try:
            for i in range(x.shape[0]):
                if x[i].sum().item() > 1:
                    raise ValueError(f"row {i} of {x.shape[0]}")
        except ValueError as e:
            return str(e), i
        return i

    yield from of_many_lengths(nested, left_by_an_error)


@growing
def displays_of_many_lengths(compiled):
    @compiled
    def in_displays(x):
        return sum([x[i].sum().item() for i in range(len(x))]), max(x[i].max().item() for i in range(len(x)))

    yield from of_many_lengths(in_displays)


@steady
def dictionary_by_step_grows(compiled):
    """The length of a dictionary with a new step at each call, whether it has a given step, and the value there."""

    class Log:
        def __init__(self):
            self.means, self.kept = {}, {}

    log = Log()

    @compiled
    def f(x, step):
        log.means[step] = x.mean()
        count = len(log.means)
        before = log.means[step - 1] if step - 1 in log.means else x.sum()
        if len(log.kept) < 3:
            log.kept[step] = count
        return x * count + before, count, step in log.kept

    for step in range(40):
        yield f(data(step, 3, 2), step), len(log.means), log.kept


@steady
def tuples_of_numbers_over_breaks(compiled):
    """The container of a loop, and an iterator with several names; the numbers are symbols after a graph break."""

    def waits(x):
        return x + 1 if x.sum().item() > -100 else x

    def looped(x, k):
        out = [waits(x * v).sum() for v in (k, k * 2, x.shape[0])]
        for p, q in ((k, 1), (2, x.shape[0])):
            out.append(waits(x * p + q).sum())
        return out

    def by_iterator(x, k):
        t = k, k + 1, x.shape[0]
        it = other = iter(t)
        first = next(it)
        x = waits(x + first)
        second = next(other)
        x = waits(x * second)
        return x, it is other, next(it), next(other, "end"), t, type(second).__name__

    def beside_others(x, k):
        out = []
        for i, v in enumerate((k, x.shape[0])):
            out.append(waits(x * v).sum() + i)
        for (a, b), c in zip(((k, 1), (x.shape[0], k)), (k + 1, 2)):
            out.append(waits(x * a - b).sum() * c)
            if c > 6:
                break
        return out

    def of_state(x, k):
        state["sizes"] = k, x.shape[0]
        for v in state["sizes"]:
            x = waits(x + v)
            state["sizes"] += (v,)
        return x, state["sizes"]

    state = {"sizes": ()}
    functions = [compiled(f) for f in (looped, by_iterator, beside_others, of_state)]
    for i in range(24):
        for f in functions:
            yield f(data(i, 2 + i % 5, 3), i + 1), state["sizes"]


@steady
def rows_of_many_lengths(compiled):
    """Without gradients: a graph segment covers a single row, whatever their number."""

    @compiled
    @torch.no_grad()
    def totals(x):
        total, kept = 0.0, x.new_zeros(3)
        for row in x:
            if row.sum() > 0:
                kept = kept + row
            total += row.max().item()
        return total, kept

    @compiled
    @torch.no_grad()
    def written(x):
        x = x.clone()
        for row in x:
            row.mul_(2).add_(1 if row.sum().item() > 0 else -1)
            if row[0] > 4:
                break
        else:
            x.neg_()
        return x, row, row._base is x

    @compiled
    def with_gradients(x):
        out = 0
        for row in x * 2:
            out = out + row.sum()
        return out

    yield from of_many_lengths(totals, written, with_gradients)
