"""Small programs for tests/python/bytecode/test_evaluator.py. The value of each shows its behavior."""

from __future__ import annotations

import contextlib
import functools
import operator
import sys
import traceback
import types

import evaluator_programs_312

COUNTER = 0
LIMIT = 0


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def generator_of_squares(n):
    for i in range(n):
        yield i * i


class Everything:
    """Python code for every special method of a class."""

    size = 3

    def __init__(self, x, *, scale=2):
        self.x = x
        self.scale = scale

    @property
    def scaled(self):
        return self.x * self.scale

    @scaled.setter
    def scaled(self, value):
        self.x = value // self.scale

    @property
    def broken(self):
        raise AttributeError("inner")

    def __getattr__(self, name):
        if name.startswith("found_"):
            return name[6:]
        raise AttributeError(f"no {name}")

    def __call__(self, *args, **kwargs):
        return self.x, args, sorted(kwargs.items())

    def __enter__(self):
        return self.x

    def __exit__(self, kind, value, trace):
        return kind is ValueError

    def __bool__(self):
        return self.x > 2

    def __len__(self):
        return self.x

    def __iter__(self):
        return Countdown(self.x)

    def __contains__(self, item):
        return item == self.x

    def __getitem__(self, key):
        return key, self.x

    def __setitem__(self, key, value):
        self.x = key + value

    def __delitem__(self, key):
        self.x = -key

    def __add__(self, other):
        return NotImplemented if isinstance(other, str) else self.x + other

    def __radd__(self, other):
        return f"{other}+{self.x}"

    def __lt__(self, other):
        return self.x < other.x

    def __hash__(self):
        return hash(self.x)

    def __eq__(self, other):
        return isinstance(other, Everything) and self.x == other.x


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:  # also when a copy of the frame ran before
            raise StopIteration
        self.n -= 1
        return self.n


class Watched:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, ("watched", value))


def loops():
    out = []
    for i in range(4):
        if i == 3:
            break
        if i % 2:
            continue
        out.append(i * 1.5)
    else:
        out.append("else")
    while len(out) < 4:
        out += [len(out)]
    return out


def attributes():
    thing = Everything(4)
    thing.scaled = 20
    out = [thing.scaled, thing.found_it, thing.size, thing(1, *[2], k=3, **{"z": 4})]
    for name in ("missing", "broken"):
        try:
            getattr(thing, name)
        except AttributeError as error:
            out.append(str(error))
    try:
        thing.broken  # noqa: B018
    except AttributeError as error:
        out.append(str(error))
    watched = Watched()
    watched.a = 1
    return out, watched.a


class Raising:
    def __init__(self, error):
        self.error = error

    def __get__(self, owner, cls=None):
        raise self.error("found")


class AsksFirst:
    def __getattr__(self, name):
        return f"instead of {name}"


class AsksInherited(AsksFirst):
    """A descriptor's exception survives the look-up of `__getattr__` in the classes."""

    wrong, lacking = Raising(ValueError), Raising(AttributeError)
    computed = property(operator.attrgetter("other.computed_of_it"))


def descriptors_that_raise():
    thing, plain = AsksInherited(), type("Plain", (), {"wrong": AsksInherited.__dict__["wrong"]})()
    out = [thing.lacking, thing.other]
    for one, name in ((thing, "wrong"), (plain, "wrong"), (thing, "computed"), (plain, "lacking")):
        try:
            out.append(getattr(one, name))
        except (ValueError, AttributeError) as error:
            out.append(repr(error))
    for one in (thing, plain):
        try:
            out.append(one.wrong)
        except ValueError as error:
            out.append((str(error), len(traceback.extract_tb(error.__traceback__))))
    return out, thing.computed


def containers():
    thing = Everything(5)
    thing[1] = 2
    out = [thing["k"], 3 in thing, 4 not in thing, list(thing), [a + b for a, b in zip(thing, thing)]]
    for i in thing:
        out.append(i)
    del thing[2]
    out.append(thing.x)
    first, *rest = (1, 2, 3)
    (a, b), c = [4, 5], 6
    return out, first, rest, a, b, c, {1, 2} | {3}, {**{"a": 1}, "b": 2}, [*rest, *"xy"]


def operators():
    thing = Everything(3)
    text = "s" + "t"
    text += "u"
    numbers = [7 // 2, 7 % 4, 2**10, 7 / 2, -7, ~7, 7 ^ 2, 7 & 3, 7 | 8, 1 << 70, (1 << 70) >> 68, 3.5 * 2, 10**20 + 1]
    numbers[0] += 1
    matrix = not thing, thing and 1, None or thing.x, thing + 4, "q" + thing, thing < Everything(9)
    return text, numbers, matrix, 1 < 2 < 3, text is None, f"{thing.x!r:>4}{text:*^9}{1.5:.3f}"


def branches():
    out = []
    for value in (Everything(1), Everything(9), [], [0], 0.0, "", "x", None, Ellipsis):
        out.append("yes" if value else "no")
        out.append((value is not None and bool(value)) or "or")
    return [str(o) if isinstance(o, (bool, str)) else type(o).__name__ for o in out]


def exceptions():
    out = []
    try:
        try:
            {}["k"]
        except KeyError as error:
            raise ValueError("v") from error
        finally:
            out.append("finally")
    except (TypeError, ValueError) as error:
        out += [repr(error), repr(error.__cause__), repr(error.__context__)]
    try:
        try:
            1 / 0  # noqa: B018
        except ZeroDivisionError:
            out.append("again")
            raise
    except ArithmeticError as error:
        out.append([line.name for line in traceback.extract_tb(error.__traceback__)])
    return out


def exception_groups():
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
    except* ValueError as group:
        out.append(repr(group))
    except* (TypeError, KeyError) as group:
        out.append(repr(group))
    return out


def with_blocks():
    out = []
    with Everything(1) as a, Everything(2) as b:
        out.append((a, b))
    with Everything(3):
        raise ValueError
    try:
        with Everything(4):
            raise KeyError(5)
    except KeyError as error:
        out.append(error.args)
    return out


def closures():
    count = 0

    def bump(by=2):
        nonlocal count
        count += by
        return count

    def make(n):
        return lambda x, *, y=n: x + y + n

    bump()
    bump(by=5)
    return count, make(3)(4), [f(1) for f in [make(i) for i in range(3)]]


def global_counter():
    global COUNTER
    before = COUNTER
    COUNTER += 5
    COUNTER -= 5
    return COUNTER - before


def generators():
    def inner():
        got = yield 1
        yield got
        return "done"

    def outer():
        result = yield from inner()
        yield result

    machine = outer()
    out = [next(machine), machine.send("sent"), next(machine)]
    out += [x for x in generator_of_squares(4) if x]
    out.append(sum(generator_of_squares(4)))
    return out


def generator_raises():
    def bad():
        yield 1
        raise StopIteration

    out = []
    try:
        for x in bad():
            out.append(x)
    except RuntimeError as error:
        out.append(str(error))
    return out


def generators_handle():
    def careful():
        try:
            yield 1
            raise KeyError("inner")
        except KeyError:
            yield 2
            try:
                raise
            except KeyError as error:
                yield repr(error)

    out = []
    try:
        raise ValueError("outer")
    except ValueError:
        for x in careful():
            out.append(x)
        try:
            raise
        except ValueError as error:
            out.append(repr(error))
    machine = careful()
    out.append(next(machine))
    try:
        machine.throw(RuntimeError("thrown"))
    except RuntimeError as error:
        out.append(repr(error))
    try:
        next(machine)
    except StopIteration as stop:
        out.append(stop.value)
    return out


def context_functions():
    out = []

    @contextlib.contextmanager
    def tagged(name):
        out.append("enter " + name)
        try:
            yield name
        except KeyError:
            out.append("caught")
        finally:
            out.append("exit " + name)

    with tagged("a") as a, tagged("b"):
        out.append(a)
        raise KeyError
    return out


def coroutines():
    class Step:
        def __await__(self):
            got = yield "step"
            return got

    async def inner(n):
        return n + await Step()

    async def outer():
        async with Manager() as m:
            total = m
            async for i in numbers():
                total += i + await inner(i)
        return total

    class Manager:
        async def __aenter__(self):
            return 10

        async def __aexit__(self, *error):
            return False

    async def numbers():
        for i in range(3):
            yield i

    steps = []
    coroutine = outer()
    value = None
    while True:
        try:
            steps.append(coroutine.send(value))
        except StopIteration as stop:
            return steps, stop.value
        value = 5


def modules():
    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            return "lazy " + name

    lazy = Lazy("lazy")
    lazy.there = 1
    return lazy.there, lazy.absent, lazy.__name__


def comprehensions():
    n = 3
    return [i * n for i in range(4)], {i: [j for j in range(i)] for i in range(3)}, {i % 2 for i in range(5)}


def classes():
    class Base:
        registry = []

        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            Base.registry.append((cls.__name__, tag))

        def who(self):
            return "base"

    class Child(Base, tag=7):
        __slots__ = ("x",)

        def who(self):
            return "child of " + super().who()

        @classmethod
        def build(cls, x):
            self = cls()
            self.x = x
            return self

        @staticmethod
        def plain(a, b=2):
            return a + b

    child = Child.build(3)
    return child.who(), child.x, Child.plain(1), Base.registry, functools.partial(Child.plain, b=5)(1)


def calls():
    def f(a, b=2, /, c=3, *args, d, e=5, **kwargs):
        return a, b, c, args, d, e, kwargs

    out = [f(1, d=4), f(1, 2, 3, 4, d=5, z=6), f(*[1, 2], **{"d": 3, "b": 4}), functools.partial(f, 9, d=1)(8, c=7)]
    for wrong in (lambda: f(), lambda: f(1, d=1, **{"d": 2}), lambda: f(1, 2, c=3, d=4, e=5, **{"c": 6})):
        try:
            wrong()
        except TypeError as error:
            out.append(str(error))
    return out


def patterns():
    class Point:
        __match_args__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    def match(value):
        match value:
            case Point(0, y=b):
                return "on axis", b
            case Point(x=a):
                return "point", a
            case {"k": [first, *_], **rest}:
                return first, rest
            case [1, 2, *others] | (others, "swap"):
                return others
            case str() | None as kind:
                return kind
            case int(n) if n > 5:
                return n
            case _:
                return "other"

    return [match(v) for v in (Point(0, 1), Point(2, 3), {"k": [1, 2], "z": 3}, [1, 2, 3], "s", None, 9, 1)]


def callbacks_from_c():
    log = []

    def key(x):
        log.append(x)
        return -x

    return sorted([2, 3, 1], key=key), list(map(lambda x: x + 1, [1, 2])), log


def imports():
    import os.path as path
    from collections import OrderedDict as Ordered

    return path.join("a", "b"), Ordered(a=1)["a"]


ALL = [
    loops,
    attributes,
    descriptors_that_raise,
    containers,
    operators,
    branches,
    exceptions,
    exception_groups,
    with_blocks,
    closures,
    global_counter,
    generators,
    generator_raises,
    generators_handle,
    context_functions,
    coroutines,
    modules,
    comprehensions,
    classes,
    calls,
    patterns,
    callbacks_from_c,
    imports,
]

# A copy of frames cannot replace a generator with a reference in the heap: contextlib keeps it in an attribute.
if sys.version_info >= (3, 12):
    new = types.ModuleType("programs_312")
    exec(compile(evaluator_programs_312.SOURCE, "<programs of 3.12>", "exec"), new.__dict__)
    ALL += new.PROGRAMS
# C code makes most of the calls in these two programs.
RESUMABLE = [program for program in ALL if program.__name__ not in ("context_functions", "generic_class")]


def reads_a_global():
    return LIMIT + len("ab")


def writes_a_global():
    global LIMIT
    LIMIT = 0


def reads_attributes():
    thing = Everything(7)
    return thing.size, thing.x, thing.scaled, thing.found_me


def breaks_on_truth():
    return 1 if Everything(7) else 2


def leaves_with():
    with Everything(1):
        pass
    return 1 in Everything(1), next(generator_of_squares(1))


def takes_contents():
    first, *rest = [1, 2]
    a, b = (3, 4)
    import types as imported

    return [*(5, 6)], (lambda *args: args)(*[7]), first, rest, a, b, imported.__name__


def takes_defaults():
    return Everything(7).scale


def reads_items():
    return {"k": (1, 2)}["k"][1]


def calls_c():
    return len([1]), abs(-2)


# Programs with reported events in this order (further events may lie in between).
EVENTS = [
    (
        reads_a_global,
        [("name", "globals", "LIMIT", 0), ("name", "builtins", "len", "<built-in function len>")],
    ),
    (
        writes_a_global,
        [("write", "before", "global", "LIMIT", 0), ("write", "after", "global", "LIMIT", 0)],
    ),
    (
        reads_attributes,
        [
            ("attribute", "type", "size", 3, repr(Everything)),
            ("attribute", "instance", "x", 7, "None"),
            ("attribute", "python", "scaled", "None", repr(Everything)),
            ("enter", "scaled", 0),
            ("attribute", "python", "found_me", "None", repr(Everything)),
            ("enter", "__getattr__", 0),
        ],
    ),
    (breaks_on_truth, [("truth", repr(Everything)), ("enter", "__bool__", 0), ("leave", "__bool__", True)]),
    (
        leaves_with,
        [
            ("enter", "__enter__", 0),
            ("enter", "__exit__", 0),
            ("enter", "__contains__", 0),
            ("enter", "generator_of_squares", 0),
        ],
    ),
    (
        takes_contents,
        [
            ("contents", repr(list)),
            ("contents", repr(tuple)),
            ("name", "modules", "types", repr(types)),
            ("contents", repr(list)),
        ],
    ),
    (takes_defaults, [("default", -1, "scale", 2), ("enter", "__init__", 0)]),
    (reads_items, [("item", repr(dict), "k", "(1, 2)"), ("item", repr(tuple), 1, 2)]),
    (
        calls_c,
        [("call", "<built-in function len>", 1, 0), ("called", "<built-in function len>", 1)],
    ),
]
