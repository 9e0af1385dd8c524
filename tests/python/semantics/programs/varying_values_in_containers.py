"""Varying numbers and strings, in objects alive across a graph break: deques, mappings, partial functions, exceptions;
methods of C code, static and class methods, super()."""

from __future__ import annotations

import collections
import functools

import torch

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


class Box:
    def __init__(self, k):
        self.k = k


class Flaky(RuntimeError):
    def __init__(self, attempt):
        super().__init__("x")
        self.attempt = attempt


@steady
def a_deque_of_objects(compiled):

    def f(x, k):
        d = collections.deque([Box(k), Box(2 * k)])
        print("a")
        return x * d[0].k + d[1].k

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@steady
def a_deque_of_numbers(compiled):

    def f(x, k):
        d = collections.deque([k, 2 * k], maxlen=3)
        print("a")
        d.append(k + 1)
        print("b")
        return x * d[0] + d[1] * d[-1]

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@steady
def a_defaultdict_of_numbers(compiled):

    def f(x, k):
        d = collections.defaultdict(float)
        d["a"] += k
        print("a")
        d["a"] += k
        d["b"] -= k
        print("b")
        return (x * d["a"] + d["b"], d)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@steady
def a_counter_of_numbers(compiled):

    def f(x, k):
        d = collections.Counter(a=k)
        d["a"] += k
        print("a")
        d["b"] += k + 1
        print("b")
        return (x * d["a"] + d["b"], d)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i)


@bounded
def an_ordered_dict_of_numbers(compiled):

    def f(x, k):
        d = collections.OrderedDict(a=k)
        d["c"] = [k]
        print("a")
        d["b"] = k * 2
        d.move_to_end("a")
        print("b")
        return (x * d["a"] + d["b"] + d["c"][0], d)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@steady
def a_partial_function_over_a_break(compiled):

    def f(x, k):
        h = functools.partial(torch.add, x, alpha=k)
        h2 = functools.partial(lambda a, b: a * b, k)
        print("a")
        return h(x) + h2(x)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@steady
def a_partial_function_replaced(compiled):

    class Sched:
        def __init__(self):
            self.fn = functools.partial(lambda base, step: base / (1 + step), 0.1)

        def run(self, x):
            y = x * self.fn(3)
            self.fn = functools.partial(self.fn.func, self.fn.args[0] * 0.9)
            return y

    s = Sched()
    g = compiled(s.run)
    for i in range(8):
        yield g(data(i, 3))


@steady
def a_partial_function_given(compiled):
    g = compiled(lambda x, fn: fn(x))
    for i in range(8):
        yield g(data(i, 3), functools.partial(torch.clamp, min=(i - 4) * 0.1))


@steady
def a_partial_function_with_arguments_given(compiled):

    def sc(k, x):
        return x * k

    g = compiled(lambda x, fn: fn(x))
    for i in range(8):
        yield g(data(i, 3), functools.partial(sc, i + 0.5))


@steady
def texts_of_numbers_in_exceptions(compiled):

    class E(ValueError):
        def __init__(self, k):
            super().__init__(f"bad {k:.2f}")
            self.k = k

    def f(x, k):
        try:
            if k > 1:
                raise E(k)
            return x
        except E as e:
            return (x * e.k, str(e))

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@steady
def texts_of_data_in_exceptions(compiled):

    class E(ValueError):
        def __init__(self, k):
            super().__init__(f"bad {k.item():.2f}")
            self.k = k

    def f(x, k):
        try:
            if k > 1:
                raise E(x.sum())
            return x
        except E as e:
            return (x * e.k, str(e), e.args)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@steady
def methods_of_the_base_in_c(compiled):

    class A:
        def __init__(self, v):
            self.v = v

    class D(dict):
        def __init__(self, x):
            super().__init__(total=x.sum().item())
            self.n = 1

        def __setitem__(self, k, v):
            super().__setitem__(k, v.item())

    class L(list):
        def append(self, t):
            super().append(t.item())

        def __getitem__(self, i):
            return super().__getitem__(int(i))

    def f(x, i):
        d = D(x)
        d["m"] = x.max()
        kept = L()
        kept.append(x.min())
        kept.append(x.mean())
        return (d, x * kept[i % 2])

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), torch.tensor(i))


@bounded
def methods_by_slots(compiled):

    class V(tuple):
        def __add__(self, o):
            return V((a + b.item() for a, b in zip(self, o)))

    def f(x):
        add = (1).__add__
        s = "a{}b".format
        eq = x.shape.__eq__
        v = [1, 2].__getitem__
        return (x * add(int(x.sum() > 0)), s(round(float(x.sum()), 2)), eq((3,)), v(int(x[0] > 0)), V((1.0, 2.0)) + x)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3))


@steady
def methods_without_a_class_yet(compiled):

    def f(x, k):
        s, c, pr = (
            staticmethod(lambda a: a * k),
            classmethod(lambda cls, a: (cls.__name__, a + k)),
            property(lambda self: k),
        )
        t = x.sum().item()
        K = type("K", (), {"s": s, "c": c, "p": pr})
        return (K.s(x), K.c(x), K().p, t)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@steady
def a_class_over_a_break(compiled):

    def f(x, k):

        class K:
            scale = 2.0

            def __init__(self, v):
                self.v = v

            @property
            def w(self):
                return self.v * self.scale

            @staticmethod
            def s(a):
                return a + 1

            @classmethod
            def make(cls, v):
                return cls(v)

        t = x.sum().item()
        return (K.make(x).w, K.s(x) * t * k)

    g = compiled(f)
    for i in range(8):
        yield g(data(i, 3), i + 0.5)


@bounded
def what_an_exception_was_raised_for(compiled):

    def step(x, n):
        try:
            raise Flaky(n)
        except Flaky as e:
            last = e
        raise RuntimeError("gave up") from last

    f = compiled(step)
    for i in range(5):
        try:
            f(data(i, 3), i + 2)
        except RuntimeError as e:
            yield (str(e), e.__cause__.attempt, type(e.__cause__.attempt))


@growing
def attempts_in_what_is_raised(compiled):

    def step(x, n):
        for k in range(n):
            try:
                if x.sum() > 100:
                    return x
                raise Flaky(k)
            except Flaky as e:
                last = e
        raise RuntimeError("gave up") from last

    f = compiled(step)
    for i in range(5):
        try:
            f(data(i, 3), i + 2)
        except RuntimeError as e:
            yield (str(e), e.__cause__.attempt, type(e.__cause__.attempt))


@bounded
def a_class_met_by_its_instance(compiled):

    def f(x, n):

        def make():

            class K:
                def m(self):
                    return n

            return K()

        k = make()
        print("a")
        return x * k.m()

    g = compiled(f)
    for i in range(6):
        yield g(data(i, 3), i + 2)


@steady
def an_instance_of_a_class_of_the_call(compiled):

    def f(x, n):

        def make():

            class K:
                def m(self):
                    return self.n

            k = K()
            k.n = n
            return k

        k = make()
        print("a")
        return x * k.m()

    g = compiled(f)
    for i in range(6):
        yield g(data(i, 3), i + 2)
