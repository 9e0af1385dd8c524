"""Programs that set attributes by descriptors, properties, metaclasses and special methods of their own, and count the
calls of each; and the final state of objects found in odd ways."""

from __future__ import annotations

import sys

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


class Logged:
    """A descriptor with a log of its calls."""

    def __init__(self, log, kind=object):
        self.log, self.kind = log, kind

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, cls=None):
        if owner is None:
            return self
        self.log.append(("get", self.name))
        return getattr(owner, self.name)

    def __set__(self, owner, value):
        if not isinstance(value, self.kind):
            raise TypeError(f"{self.name[1:]} must be {self.kind.__name__}, not {type(value).__name__}")
        self.log.append(("set", self.name))
        setattr(owner, self.name, value)

    def __delete__(self, owner):
        self.log.append(("del", self.name))
        delattr(owner, self.name)


@growing
def descriptors_count_their_calls(compiled):
    calls = []

    class Meta(type):
        def __call__(cls, *args):
            calls.append("meta call")
            cls.made += 1
            return super().__call__(*args)

    class Base(metaclass=Meta):
        made = 0
        __slots__ = ("__dict__", "_count", "_weight")
        weight, count = Logged(calls), Logged(calls, int)

        def __init__(self, weight, count):
            self.weight, self.count = weight, count

        def __getattr__(self, name):
            calls.append("getattr " + name)
            raise AttributeError(name)

    class Child(Base):
        def __setattr__(self, name, value):
            calls.append("setattr " + name)
            super().__setattr__(name, value)

    @compiled
    def f(x, n):
        made = Child(x, n)
        y = made.weight * made.count
        if float(y.sum()) > 0:
            made.count = made.count + 1
        try:
            made.count = 0.5
        except TypeError as e:
            message = str(e)
        del made.count
        return y, message, hasattr(made, "count"), Child.made, vars(made)

    for i in range(6):
        yield f(data(i, 3), i), list(calls), Child.made, Base.made
        calls.clear()


@steady
def setters_without_a_read(compiled):
    log = []

    class Watched(type):
        @property
        def level(cls):
            return cls._level

        @level.setter
        def level(cls, value):
            log.append(("level", value))
            cls._level = value

    class Scale(metaclass=Watched):
        _level = 0

    class Plain:
        value = Logged(log)
        twice = property(lambda self: self._twice, lambda self, v: (log.append(v), setattr(self, "_twice", 2 * v)))

    there = Plain()

    @compiled
    def f(x, i):
        Scale.level = i
        setattr(Scale, "level", i + 1)  # noqa: B010
        type.__setattr__(Scale, "level", i + 2)
        there.value = i
        there.twice = i
        object.__setattr__(there, "twice", i + 1)
        return x * 2

    for i in range(6):
        yield f(data(i, 3 + i), i), list(log), Scale._level, vars(there)
        log.clear()


@growing
def a_metaclass_that_logs_writes(compiled):
    log = []

    class Watched(type):
        level = property(lambda cls: cls._level, lambda cls, v: (log.append(("level", v)), setattr(cls, "_level", v)))

        def __setattr__(cls, name, value):
            log.append(name)
            super().__setattr__(name, value)

    class Scale(metaclass=Watched):
        _level = 0

    @compiled
    def f(x, i):
        Scale.level = i
        if x.sum() > 0:
            Scale.level = i * 2
        return x * Scale.level

    for i in range(6):
        yield f(data(i, 3), i % 2), list(log), Scale._level
        log.clear()


@steady
def a_descriptor_that_asks_tensors(compiled):
    class Positive:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, owner, cls=None):
            return self if owner is None else owner.__dict__[self.name]

        def __set__(self, owner, value):
            if (value < 0).all():
                raise ValueError(f"{self.name} is negative, {value.numel()}")
            print("set", self.name)
            owner.__dict__[self.name] = value

        def __delete__(self, owner):
            print("del", float(owner.__dict__[self.name].sum()) > 0)
            del owner.__dict__[self.name]

    class Model:
        weight = Positive()

    model = Model()
    model.weight = data(0, 2).abs()

    @compiled
    def f(x, i):
        model.weight = x * model.weight[0]
        more = model.weight + 1
        if i == 3:
            del model.weight
            model.weight = more
        return more

    for i in range(9):
        try:
            yield f(data(i, 3), i), vars(model)
        except ValueError as e:
            lines = []
            at = e.__traceback__
            while at is not None:
                lines.append((at.tb_frame.f_code.co_name, at.tb_lineno))
                at = at.tb_next
            yield str(e), [line for line in lines if line[0] != "a_descriptor_that_asks_tensors"], vars(model)


@growing
def setters_that_are_exchanged(compiled):
    def setter(k):
        return lambda self, v: self.__dict__.__setitem__("v", v * k)

    class A:
        p = property(lambda self: self.v, setter(2))

    class Adds:
        def __set__(self, owner, value):
            owner.__dict__["q"] = value + 1

        def __get__(self, owner, cls):
            return owner.__dict__["q"]

    class B:
        q = Adds()

    a, b = A(), B()

    @compiled
    def f(x):
        a.p, b.q = x, x
        setattr(a, "p", a.p)  # noqa: B010
        object.__setattr__(b, "q", b.q)
        return a.p + b.q

    for i in range(8):
        if i == 2:
            A.p = property(lambda self: self.v, setter(3))
        if i == 4:
            Adds.__set__ = lambda self, owner, v: owner.__dict__.__setitem__("q", v + 10)
        if i == 6:
            B.q = property(lambda self: 5.0, lambda self, v: None)
        yield f(data(i, 3)), vars(a), vars(b)


@bounded
def an_object_of_the_caller_is_left_with_numbers(compiled):
    class Notes:
        def __init__(self):
            self.log, self.last = [], None

    @compiled
    def f(x, i):
        k = i * 2
        notes = sys._getframe(1).f_locals.get("notes") or sys._getframe(2).f_locals["notes"]
        notes.log.append((k, x.shape[0]))
        notes.last = k
        return x * k

    notes = Notes()
    for i in range(4):
        yield f(data(i, 3 + i), i), notes.log, notes.last
