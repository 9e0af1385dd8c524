# size: table
# ruff: noqa: B009, B012  (programs as they are written)
"""Programs that read data while an exception is handled, and in calls made by C code. Rows as in programs_effects."""

from __future__ import annotations

import functools

import torch

from programs.effects import Box, table
from programs.generators import asking, note

ROWS, row = table()


# ------------------------------------------------------------------------------------------------- an exception handled


def fails(w, x, kind=ValueError):
    y = x * 3
    w.log.append("fails")
    raise kind("reason", int(y.numel()))


@row
def except_breaks(w, x):
    try:
        fails(w, x)
    except ValueError as e:
        y = note(w, x, "except")
        w.log.append(e.args)
    return y


@row
def except_breaks_twice(w, x):
    try:
        fails(w, x)
    except ValueError as e:
        y = note(w, note(w, x, "first"), "second")
        w.log.append((type(e).__name__, str(e)))
    return note(w, y, "after")


@row
def finally_breaks_on_the_way_out(w, x):
    try:
        fails(w, x)
    finally:
        note(w, x, "finally")


@row
def finally_breaks_and_is_caught(w, x):
    try:
        try:
            fails(w, x)
        finally:
            note(w, x, "finally")
    except ValueError as e:
        w.log.append(e.args)
    return x + 1


@row
def raised_again(w, x):
    try:
        try:
            fails(w, x)
        except ValueError:
            note(w, x, "first")
            raise
    except ValueError as e:
        note(w, x, "second")
        w.log.append((e.args, e.__context__, e.__cause__))
    return x + 1


@row
def raised_again_out(w, x):
    try:
        fails(w, x)
    except ValueError:
        note(w, x)
        raise


@row
def raised_from(w, x):
    try:
        try:
            fails(w, x)
        except ValueError as e:
            note(w, x, "first")
            raise KeyError("other") from e
    except KeyError as e:
        note(w, x, "second")
        w.log.append((repr(e), repr(e.__cause__), e.__suppress_context__, e.__cause__ is e.__context__))
    return x + 1


@row
def raised_in_context(w, x):
    try:
        try:
            fails(w, x)
        except ValueError:
            note(w, x, "first")
            {}["missing"]
    except KeyError as e:
        note(w, x, "second")
        w.log.append((repr(e), repr(e.__context__), e.__cause__))
    return x + 1


@row
def nested_handlers(w, x):
    import sys

    try:
        fails(w, x)
    except ValueError:
        note(w, x, "outer")
        try:
            fails(w, x, KeyError)
        except KeyError:
            note(w, x, "inner")
            w.log.append(sys.exc_info()[0].__name__)
        w.log.append(sys.exc_info()[0].__name__)
        note(w, x, "outer again")
        w.log.append(sys.exc_info()[0].__name__)
    w.log.append(sys.exc_info()[0])
    return x + 1


class Failure(Exception):
    def __init__(self, message, data):
        super().__init__(message)
        self.data = data


@row
def exception_with_data(w, x):
    try:
        raise Failure("with data", x * 2)
    except Failure as e:
        note(w, e.data, "except")
        return e.data + 1


@row
def exception_lives_on(w, x):
    caught = None
    try:
        fails(w, x)
    except ValueError as e:
        caught = e
    y = note(w, x)
    w.log.append((type(caught).__name__, caught.args))
    return y


@row
def exception_in_called_function(w, x):
    def handle():
        return note(w, x, "handler")

    try:
        fails(w, x)
    except ValueError:
        y = handle()
        w.log.append("handled")
    return y


@row
def else_and_finally(w, x):
    for kind in (ValueError, KeyError, None):
        try:
            if kind is not None:
                fails(w, x, kind)
        except ValueError:
            note(w, x, "value")
        except KeyError:
            note(w, x, "key")
        else:
            note(w, x, "else")
        finally:
            note(w, x, "finally")
    return x + 1


@row
def return_in_finally(w, x):
    def inner():
        try:
            fails(w, x)
        finally:
            return note(w, x, "finally")

    return inner() + 1


@row
def exit_handles(w, x):
    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, traceback):
            note(w, x, "exit")
            w.log.append((kind.__name__, value.args, traceback is not None))
            return True

    with Manager():
        fails(w, x)
    return note(w, x, "after")


@row
def exception_group(w, x):
    try:
        raise ExceptionGroup("group", [ValueError(1), KeyError(2)])
    except* ValueError as e:
        note(w, x, "value")
        w.log.append(e.exceptions[0].args)
    except* KeyError as e:
        note(w, x, "key")
        w.log.append(e.exceptions[0].args)
    return x + 1


@row
def handled_in_a_generator(w, x):
    def steps():
        try:
            fails(w, x)
        except ValueError as e:
            yield note(w, x, "except")
            w.log.append(e.args)
            yield note(w, x + 1, "except")

    out = []
    for y in steps():
        out.append(note(w, y, "body"))
    return out


@row
def retried(w, x):
    for attempt in range(4):
        try:
            if attempt < 3:
                fails(w, x)
            return note(w, x, attempt)
        except ValueError:
            x = note(w, x, "again")


@row
def error_of_torch(w, x):
    try:
        x @ x.new_zeros(17, 2)
    except RuntimeError as e:
        y = note(w, x, "except")
        w.log.append(type(e).__name__)
    return y


@row
def the_operation_raises(w, x):
    try:
        int("no number " + str(x.sum().item()))
    except ValueError as e:
        w.log.append(str(e))
        y = note(w, x, "except")
    return y


# ------------------------------------------------------------------------------------------------- calls made by C code


class Lazy:
    def __init__(self, w, x):
        self.w, self.x = w, x

    @property
    def half(self):
        return note(self.w, self.x * 0.5, "half")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return note(self.w, self.x, name)

    def __getitem__(self, i):
        return note(self.w, self.x + i, "item")

    def __len__(self):
        return int(note(self.w, self.x, "len").numel())

    def __call__(self, y):
        return note(self.w, self.x + y, "call")

    def __add__(self, other):
        return note(self.w, self.x + other, "add")

    def __eq__(self, other):
        note(self.w, self.x, "eq")
        return True

    def __bool__(self):
        return note(self.w, self.x, "bool").sum().item() > -1e9

    def __contains__(self, y):
        return note(self.w, self.x, "contains").sum().item() > -1e9


@row
def property_breaks(w, x):
    return Lazy(w, x).half + 1


@row
def getattr_breaks(w, x):
    return Lazy(w, x).anything + getattr(Lazy(w, x), "other")


@row
def item_breaks(w, x):
    return Lazy(w, x)[3] + 1


@row
def call_breaks(w, x):
    return Lazy(w, x)(2) + 1


@row
def operator_breaks(w, x):
    return (Lazy(w, x) + 1) * 2


@row
def length_breaks(w, x):
    return len(Lazy(w, x)), x + 1


@row
def truth_breaks(w, x):
    return x + (1 if Lazy(w, x) else 2), 3 in Lazy(w, x)


@row
def equality_breaks(w, x):
    return Lazy(w, x) == 3, x + 1


@row
def post_init_breaks(w, x):
    import dataclasses

    @dataclasses.dataclass
    class Pair:
        a: torch.Tensor
        b: torch.Tensor = None

        def __post_init__(self):
            self.b = note(w, self.a, "post")

    p = Pair(x)
    return p.a + p.b


class Counted(torch.Tensor):
    log = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if cls.log is not None and func is torch.Tensor.add:
            cls.log.append(float(torch._C._TensorBase.sum(args[0].as_subclass(torch.Tensor)).item()))
        return super().__torch_function__(func, types, args, kwargs or {})


@row
def torch_function_breaks(w, x):
    Counted.log = w.log
    try:
        return x.as_subclass(Counted).add(1).as_subclass(torch.Tensor)
    finally:
        Counted.log = None


@row
def init_breaks(w, x):
    class Made:
        def __init__(self, y):
            self.y = note(w, y, "init")

    return Made(x).y + 1


@row
def partial_breaks(w, x):
    return functools.partial(note, w, what="partial")(x)


@row
def lru_cache_breaks(w, x):
    @functools.lru_cache
    def cached(n):
        return note(w, x + n, "cached")

    return cached(1) + cached(1)


@row
def setter_breaks(w, x):
    class Set:
        @property
        def y(self):
            return self._y

        @y.setter
        def y(self, value):
            self._y = note(w, value, "set")

    s = Set()
    s.y = x
    return s.y


@row
def box_of_generator(w, x):
    box = Box(asking(w, x))
    out = []
    for y in box.value:
        out.append(y)
        w.log.append(len(out))
    return out, next(box.value, "finished")


@row
def generators_over_dictionaries_in_zip(w, x):
    def values(d):
        for _, value in d.items():
            yield value

    out = []
    for a, b in zip(values({"a": x, "b": x + 1}), values({"c": x * 2, "d": x - 1})):
        out.append((a * b).sum().item())
        w.log.append(len(out))
    return out


@row
def parameters_of_two_modules(w, x):
    q, k = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
    for a, b in zip(q.parameters(), k.parameters()):
        b.data = b.data * 0.5 + a.data
        w.log.append(b.sum().item())
    return len(w.log)


@row
def generator_over_a_dictionary_in_a_box(w, x):
    def values(d):
        yield from d.values()

    box = Box(values({"a": x, "b": x + 1, "c": x * 2}))
    out = [next(box.value).sum().item()]
    out.append(next(box.value).sum().item())
    return out, list(box.value), list(box.value)


@row
def sorted_in_place_by_data(w, x):
    parts = [x, x * 3, -x, x + 1]
    parts.sort(key=lambda t: t.sum().item(), reverse=True)
    w.log.extend([3, 1, 2])
    w.log.sort(key=lambda v: -v)
    return parts


@row
def sorted_in_place_by_what_raises(w, x):
    parts = [3, 1, 2]

    def key(v):
        w.log.append((v, len(parts)))
        return x.sum().item() / (v - 2)

    try:
        parts.sort(key=key)
    except ZeroDivisionError as e:
        w.log.append(str(e))
    try:
        parts.sort(key=lambda v: v if x.sum().item() is None or v > 1 else "text")
    except TypeError as e:
        w.log.append(str(e))
    try:
        parts.sort(key=lambda v: parts.append(v) or v)
    except ValueError as e:
        w.log.append(str(e))
    return parts
