# size: table
# ruff: noqa: B007  (programs as they are written)
"""Programs that read data in generators driven by C code, closed or thrown into, or used as context managers. Rows as
in programs_effects."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools

import torch

from programs.effects import Box, table
from programs.generators import SIGNS, asking, note

ROWS, row = table()


# ------------------------------------------------------------------------------------------------- driven by C code


@row
def sum_of_generator(w, x):
    return sum(note(w, x + i) for i in range(3))


@row
def stack_of_generator(w, x):
    return torch.stack(tuple(note(w, x + i) for i in range(3)))


@row
def list_of_generator(w, x):
    return list(asking(w, x))


@row
def dict_of_generator(w, x):
    return dict((i, note(w, x + i)) for i in range(3))


@row(inputs=SIGNS)
def any_of_generator(w, x):
    return any(y.sum() > 0 for y in x), all(y.sum() > 0 for y in x)


@row
def max_of_generator(w, x):
    return max(note(w, x + i).sum().item() for i in range(3))


@row
def joined(w, x):
    return ", ".join(f"{y.sum().item():.3f}" for y in x), x + 1


@row
def enumerated_generator(w, x):
    for i, y in enumerate(asking(w, x)):
        w.log.append(i)
    return y


@row
def zipped_generators(w, x):
    for a, b in zip(asking(w, x), asking(w, x + 1)):
        w.log.append("body")
    return a + b


@row
def mapped(w, x):
    out = []
    for y in map(lambda i: note(w, x + i), range(3)):
        out.append(y)
    return out


@row
def list_of_map(w, x):
    return list(map(lambda i: note(w, x + i), range(3)))


@row
def sorted_by_data(w, x):
    return sorted(range(len(x)), key=lambda i: -x[i].sum().item()), x + 1


@row
def reduced(w, x):
    return functools.reduce(lambda a, y: note(w, a + y), list(x))


@row
def filtered(w, x):
    return [y * 2 for y in filter(lambda y: y.sum() > 0, x)]


@row
def chained(w, x):
    return [note(w, y) for y in itertools.chain(asking(w, x, 1), asking(w, x + 1, 1))]


@row
def unpacked(w, x):
    a, b, c = asking(w, x)
    first, *rest = asking(w, x)
    return a, b, c, first, rest


@row
def starred(w, x):
    def add(*ys):
        return sum(ys)

    return add(*asking(w, x)), [*asking(w, x)]


@row
def extended(w, x):
    out = []
    out.extend(asking(w, x))
    return out


@row
def added_in_place(w, x):
    out = [x]
    out += asking(w, x, 1)
    return out


@row
def iterator_in_an_object(w, x):
    box = Box(iter([1, 2, 3, 4]))
    out = []
    for i in box.value:
        out.append(note(w, x + i))
        if i == 2:
            break
    note(w, x)
    return out, next(box.value), list(box.value)


@row
def iterators_in_containers(w, x):
    its = [iter((1, 2, 3)), iter("abc"), iter(range(5)), reversed([1, 2, 3]), iter({"k": 1, "l": 2}), enumerate("xy")]
    first = [next(i) for i in its]
    note(w, x)
    second = [next(i) for i in its]
    note(w, x + 1)
    return first, second, [list(i) for i in its]


@row
def one_iterator_under_two_names(w, x):
    it = iter([1, 2, 3, 4, 5, 6])
    box = Box(it)
    out = []
    for a in it:
        note(w, x + a)
        out.append((a, next(box.value), next(it, None)))
    return out, box.value is it


@row
def taken_out_of_what_led_to_it(w, x):
    outer = [[x], [x + 1], [x + 2]]
    note(w, x)
    last = outer.pop()
    first = outer.pop(0)
    note(w, last[0])
    last.append(first)
    note(w, first[0])
    return outer, last, first


@row
def zipped_with_itself(w, x):
    it = iter([1, 2, 3, 4, 5, 6])
    out = []
    for a, b in zip(it, it):
        out.append((a, b))
        note(w, x + a)
    return out


# ------------------------------------------------------------------------------------------------- closing, throwing


@row
def closed_with_a_break(w, x):
    def steps():
        try:
            yield x
        finally:
            note(w, x, "finally")

    g = steps()
    y = next(g)
    g.close()
    return y + 1


@row
def thrown_and_caught(w, x):
    def steps():
        try:
            yield x
        except ValueError as e:
            w.log.append(str(e))
            yield note(w, x * 2, "caught")

    g = steps()
    next(g)
    return g.throw(ValueError("in"))


@row
def thrown_and_passed_on(w, x):
    def steps():
        try:
            yield x
        finally:
            note(w, x, "finally")

    g = steps()
    next(g)
    try:
        g.throw(KeyError("k"))
    except KeyError as e:
        w.log.append(e.args)
    return x + 1


@row
def thrown_before_the_start(w, x):
    g = asking(w, x)
    try:
        g.throw(ValueError("early"))
    except ValueError as e:
        w.log.append(str(e))
    note(w, x)
    return next(g, "finished")


@row
def thrown_through_delegation(w, x):
    def inner():
        try:
            yield x
        except ValueError:
            yield note(w, x, "inner")

    def outer():
        yield from inner()
        yield note(w, x, "outer")

    g = outer()
    next(g)
    return g.throw(ValueError("in")), next(g)


@row
def refuses_to_close(w, x):
    def steps():
        try:
            yield x
        except GeneratorExit:
            note(w, x, "refuses")
            yield x + 1

    g = steps()
    next(g)
    try:
        g.close()
    except RuntimeError as e:
        w.log.append(str(e))
    return x + 1


# ------------------------------------------------------------------------------------------------- context managers


@contextlib.contextmanager
def region(w, x, catches=()):
    w.log.append("enter")
    try:
        yield note(w, x, "entering")
    except catches as e:
        w.log.append(("caught", str(e)))
    finally:
        note(w, x, "leaving")


@row
def manager_breaks(w, x):
    with region(w, x) as y:
        z = note(w, y, "body")
    return z


@row
def managers_nested(w, x):
    with region(w, x) as a, region(w, a) as b:
        return note(w, a + b, "body")


@row
def manager_catches(w, x):
    with region(w, x, ValueError) as y:
        note(w, y, "body")
        raise ValueError("in the body")
    return x + 1


@row
def manager_passes_on(w, x):
    try:
        with region(w, x) as y:
            raise KeyError("in the body")
    except KeyError as e:
        w.log.append(e.args)
    return y


@row
def manager_lets_out(w, x):
    with region(w, x):
        raise KeyError("in the body")


@row
def manager_as_decorator(w, x):
    @region(w, x)
    def inner(y):
        return note(w, y, "inner")

    return inner(x) + inner(x + 1)


@row
def exit_stack(w, x):
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(region(w, x))
        stack.callback(w.log.append, "callback")
        b = stack.enter_context(region(w, x + 1))
        c = note(w, a + b, "body")
    return c


@row
def exit_stack_plain(w, x):
    with contextlib.ExitStack() as stack:
        stack.callback(w.log.append, "callback")
        y = note(w, x, "body")
        stack.callback(note, w, y, "last")
    return y


class Closes:
    def __init__(self, w, x):
        self.w, self.x = w, x

    def close(self):
        note(self.w, self.x, "close")


@row
def closing(w, x):
    with contextlib.closing(Closes(w, x)) as c:
        y = note(w, c.x, "body")
    return y


@row
def suppressed(w, x):
    with contextlib.suppress(ValueError, KeyError):
        note(w, x, "body")
        raise KeyError("gone")
    with contextlib.suppress(ValueError):
        note(w, x, "body")
    return note(w, x, "after")


@row
def null_context(w, x):
    with contextlib.nullcontext(x) as y:
        return note(w, y, "body")


@row
def redirected(w, x):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("sum", x.sum().item())
        y = x + 1
        print("and", y.sum().item())
    w.log.append(out.getvalue())
    return y


@row
def forked_rng(w, x):
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        a = torch.rand(3)
        note(w, a)
        b = torch.rand(3)
    return a, b, torch.rand(3)


@row
def checkpointed(w, x):
    from torch.utils.checkpoint import checkpoint

    def inner(y):
        return note(w, y.sin(), "inner").cos()

    return checkpoint(inner, x, use_reentrant=False)


@row
def no_grad_generator(w, x):
    @torch.no_grad()
    def steps():
        for i in range(2):
            yield note(w, x * i)

    out = []
    for y in steps():
        out.append(y)
    return out
