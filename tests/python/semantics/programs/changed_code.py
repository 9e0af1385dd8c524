"""Functions whose classes and functions change between calls: each case is a function and a change."""

import dataclasses
import functools

import torch

CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


@case
def init_method():
    class A:
        def __init__(self, v):
            self.v = v

    def f(x):
        return A(x).v + 1

    def ch():
        def init(self, v):
            self.v = v * 5

        A.__init__ = init

    return f, ch


@case
def new_method():
    class A:
        def __new__(cls, v):
            o = object.__new__(cls)
            o.v = v
            return o

    def f(x):
        return A(x).v + 1

    def ch():
        def new(cls, v):
            o = object.__new__(cls)
            o.v = v * 3
            return o

        A.__new__ = staticmethod(new)

    return f, ch


@case
def super_method():
    class B:
        def g(self, x):
            return x + 1

    class A(B):
        def g(self, x):
            return super().g(x)

    a = A()

    def f(x):
        return a.g(x)

    def ch():
        B.g = lambda self, x: x + 7

    return f, ch


@case
def enter():
    class A:
        def __enter__(self):
            return 1

        def __exit__(self, *a):
            return False

    a = A()

    def f(x):
        with a as k:
            return x + k

    def ch():
        A.__enter__ = lambda self: 5

    return f, ch


@case
def exit_suppresses():
    class A:
        def __enter__(self):
            return 1

        def __exit__(self, *a):
            return False

    a = A()

    def f(x):
        with a:
            raise ValueError("a")
        return x + 1

    def ch():
        A.__exit__ = lambda self, *a: True

    return f, ch


@case
def iterator():
    class A:
        def __iter__(self):
            return iter([1, 2])

    a = A()

    def f(x):
        for i in a:
            x = x + i
        return x

    def ch():
        A.__iter__ = lambda self: iter([4, 5])

    return f, ch


@case
def prop():
    class A:
        p = property(lambda self: 3)

    a = A()

    def f(x):
        return x + a.p

    def ch():
        A.p = property(lambda self: 9)

    return f, ch


@case
def metaclass_asked():
    class M(type):
        def __instancecheck__(cls, o):
            return True

    class A(metaclass=M):
        pass

    def f(x):
        return x + 1 if isinstance(3, A) else x - 1

    def ch():
        M.__instancecheck__ = lambda c, o: False

    return f, ch


@case
def code():
    def g(x):
        return x + 1

    def h(x):
        return x * 9

    def f(x):
        return g(x)

    def ch():
        g.__code__ = h.__code__

    return f, ch


@case
def defaults():
    def g(x, k=1):
        return x + k

    def f(x):
        return g(x)

    def ch():
        g.__defaults__ = (8,)

    return f, ch


@case
def kwdefaults():
    def g(x, *, k=1):
        return x + k

    def f(x):
        return g(x)

    def ch():
        g.__kwdefaults__ = {"k": 8}

    return f, ch


@case
def bases():
    class B1:
        def g(self, x):
            return x + 1

    class B2:
        def g(self, x):
            return x + 5

    class A(B1):
        pass

    a = A()

    def f(x):
        return a.g(x)

    def ch():
        A.__bases__ = (B2,)

    return f, ch


@case
def other_class():
    class B1:
        def g(self, x):
            return x + 1

    class B2:
        def g(self, x):
            return x + 5

    a = B1()

    def f(x):
        return a.g(x)

    def ch():
        a.__class__ = B2

    return f, ch


@case
def getattr_default():
    class A:
        pass

    a = A()

    def f(x):
        return x + getattr(a, "q", 1)

    def ch():
        A.__getattr__ = lambda s, n: 7

    return f, ch


@case
def hasattr_asked():
    class A:
        pass

    a = A()

    def f(x):
        return x + (1 if hasattr(a, "q") else 2)

    def ch():
        A.q = 7

    return f, ch


@case
def static():
    class A:
        k = 1

        @classmethod
        def m(cls, x):
            return x + cls.k

    def f(x):
        return A.m(x)

    def ch():
        A.k = 6

    return f, ch


@case
def method_type():
    class A:
        def m(self, x):
            return x + 1

    a = A()

    def f(x):
        return type(a).m(a, x)

    def ch():
        A.m = lambda s, x: x + 11

    return f, ch


def layer_in_module(name, changed):
    class Layer(torch.nn.Module):
        def forward(self, x):
            return x + 1

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

        def forward(self, x):
            return self.layer(x) * 2

    return Outer(), lambda: setattr(Layer, name, changed)


@case
def forward_of_layer():
    return layer_in_module("forward", lambda self, x: x + 11)


@case
def call_of_layer():
    return layer_in_module("__call__", lambda self, x: x + 110)


@case
def dataclass_init():
    @dataclasses.dataclass
    class A:
        v: object

    def f(x):
        return A(x).v + 1

    def ch():
        A.__init__ = lambda s, v: setattr(s, "v", v * 4)

    return f, ch


@case
def special_method_closure():
    def scale():
        n = 1

        def add(self, x):
            return x + n

        def change():
            nonlocal n
            n = 7

        return add, change

    add, change = scale()

    class A:
        __add__ = add

    a = A()
    return lambda x: a + x, change


@case
def property_closure():
    n = 1

    class A:
        @property
        def p(self):
            return n

    a = A()

    def change():
        nonlocal n
        n = 4

    return lambda x: x + a.p, change


@case
def method_of_new_instance():
    class A:
        def m(self, x):
            return x + 1

    def change():
        A.m = lambda self, x: x + 3

    return lambda x: A().m(x), change


@case
def keyword_default_item():
    def g(x, *, k=1):
        return x + k

    return lambda x: g(x), lambda: g.__kwdefaults__.update(k=5)


@case
def partial_of_class():
    class A:
        def __init__(self, v):
            self.v = v

    make = functools.partial(A)

    def change():
        def init(self, v):
            self.v = v * 3

        A.__init__ = init

    return lambda x: make(x).v + 1, change


@case
def mapped_class():
    class A:
        def __init__(self, v):
            self.v = v

    def change():
        def init(self, v):
            self.v = v * 3

        A.__init__ = init

    return lambda x: next(map(A, [x])).v + 1, change
