"""Functions that reach state in ways that guards must follow: each case is a function and a change."""

import abc
import array
import collections
import contextvars
import enum
import functools
import itertools
import operator
import os
import threading
import types
import weakref

import numpy
import torch

from programs.changed_code import case


class Box:
    def __init__(self, v):
        self.v = v


@case
def partial_argument():
    box = Box(1)
    use = functools.partial(lambda b, x, k: x + b.v + k.v, box, k=Box(2))
    return lambda x: use(x), lambda: setattr(box, "v", 5)


@case
def partial_keyword():
    use = functools.partial(lambda x, k: x + k, k=2)
    return lambda x: use(x), lambda: use.keywords.update(k=7)


@case
def weak_reference():
    box = Box(1)
    ref = weakref.ref(box)
    return lambda x: x + ref().v, lambda: setattr(box, "v", 5)


@case
def cached_function():
    box = Box(1)

    @functools.lru_cache
    def g():
        return box.v

    def change():
        box.v = 8
        g.cache_clear()

    return lambda x: x + g(), change


@case
def attribute_getter():
    box = Box(Box(1))
    return lambda x: x + operator.attrgetter("v.v")(box), lambda: setattr(box.v, "v", 5)


@case
def item_getter():
    d = {"a": 1}
    return lambda x: x + operator.itemgetter("a")(d), lambda: d.update(a=5)


@case
def method_caller():
    class A:
        def m(self, x):
            return x + 1

    a = A()
    return lambda x: operator.methodcaller("m", x)(a), lambda: setattr(A, "m", lambda self, x: x + 3)


@case
def chained_iterables():
    a, b = [1], [2]
    return lambda x: x + sum(itertools.chain(a, b)), lambda: b.append(5)


@case
def zipped_iterables():
    a, b = [1, 2], [2, 2]
    return lambda x: x + sum(i * j for i, j in zip(a, b)), lambda: b.__setitem__(0, 5)


@case
def view_of_dict():
    d = {"a": 1}
    values = d.values()
    return lambda x: x + sum(values), lambda: d.update(b=5)


@case
def mapping_proxy():
    d = {"a": 1}
    proxy = types.MappingProxyType(d)
    return lambda x: x + proxy["a"], lambda: d.update(a=5)


@case
def context_variable():
    var = contextvars.ContextVar("var", default=1)
    return lambda x: x + var.get(), lambda: var.set(4) and None


@case
def thread_local():
    local = threading.local()
    local.v = 1
    return lambda x: x + local.v, lambda: setattr(local, "v", 5)


@case
def environment():
    os.environ["CRESSET_TEST_VALUE"] = "1"
    return (
        lambda x: x + int(os.environ.get("CRESSET_TEST_VALUE", "0")),
        lambda: os.environ.__setitem__("CRESSET_TEST_VALUE", "5"),
    )


@case
def chain_map():
    maps = collections.ChainMap({}, {"a": 1})
    return lambda x: x + maps["a"], lambda: maps.maps[0].update(a=3)


@case
def namespace():
    space = types.SimpleNamespace(v=types.SimpleNamespace(w=1))
    return lambda x: x + space.v.w, lambda: setattr(space.v, "w", 5)


@case
def module_attribute():
    module = types.ModuleType("some")
    module.v = 1
    return lambda x: x + module.v, lambda: setattr(module, "v", 2)


@case
def attribute_of_function():
    def g(x):
        return x + g.k

    g.k = 1
    return lambda x: g(x), lambda: setattr(g, "k", 6)


@case
def set_contents():
    s = {1, 2}
    return lambda x: x + sum(s) + (5 in s), lambda: s.add(5)


@case
def nested_tuple_of_lists():
    t = ([1], ([2],))
    return lambda x: x + t[1][0][0], lambda: t[1][0].__setitem__(0, 7)


@case
def array_items():
    a = array.array("i", [1, 2])
    return lambda x: x + a[0], lambda: a.__setitem__(0, 7)


@case
def bytearray_items():
    a = bytearray(b"ab")
    return lambda x: x + a[0], lambda: a.__setitem__(0, 7)


@case
def numpy_items():
    a = numpy.ones(3)
    return lambda x: x + a[0], lambda: a.__setitem__(0, 7)


@case
def counter_object():
    c = itertools.count(3)
    return lambda x: x + next(c), lambda: next(c)


@case
def slots():
    class A:
        __slots__ = ("v",)

    a = A()
    a.v = 1
    return lambda x: x + a.v, lambda: setattr(a, "v", 3)


@case
def class_cell():
    class A:
        k = 1

        def m(self, x):
            return x + __class__.k

    a = A()
    return lambda x: a.m(x), lambda: setattr(A, "k", 3)


@case
def enumeration_member():
    class E(enum.Enum):
        A = 1

    E.A.extra = 1
    return lambda x: x + E.A.value + E.A.extra, lambda: setattr(E.A, "extra", 3)


@case
def single_dispatch():
    @functools.singledispatch
    def g(v, x):
        return x + 1

    return lambda x: g(3, x), lambda: g.register(int, lambda v, x: x + 4) and None


@case
def subclass_hook():
    class Base(abc.ABC):  # noqa: B024
        pass

    class A:
        pass

    a = A()
    return lambda x: x + isinstance(a, Base), lambda: Base.register(A) and None


@case
def cached_property():
    class A:
        k = 1

        @functools.cached_property
        def p(self):
            return self.k

    a = A()

    def change():
        A.k = 5
        a.__dict__.pop("p", None)

    return lambda x: x + a.p, change


@case
def generator_method():
    class A:
        n = 2

        def __iter__(self):
            for i in range(self.n):
                yield i + 1

    a = A()
    return lambda x: x + sum(a), lambda: setattr(a, "n", 4)


@case
def sorted_by_key():
    key = Box(lambda v: v)
    return lambda x: x * sorted([3, 1, 2], key=key.v)[0], lambda: setattr(key, "v", lambda v: -v)


@case
def descriptor_object():
    class D:
        def __init__(self):
            self.k = 1

        def __get__(self, instance, owner):
            return self.k

    d = D()
    cls = type("A", (), {"d": d})
    a = cls()
    return lambda x: x + a.d, lambda: setattr(d, "k", 8)


@case
def default_of_lambda():
    boxes = [Box(1)]

    def g(x, boxes=boxes):
        return x + boxes[0].v

    return lambda x: g(x), lambda: setattr(boxes[0], "v", 3)


@case
def module_forward_hook():
    layer = torch.nn.ReLU()
    return lambda x: layer(x), lambda: layer.register_forward_hook(lambda m, a, out: out + 5) and None
