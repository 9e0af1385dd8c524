"""Objects from calls die when the program drops them: a compiled function holds no references to them."""

from __future__ import annotations

import dataclasses
import functools
import gc
import types
import weakref

import numpy
import pytest
import torch
import torch.nn as nn

import cresset


class Plain:
    scale = 2.0

    def __init__(self):
        self.rate = 3.0

    def times(self, x):
        return x * self.scale

    @property
    def half(self):
        return 0.5

    @classmethod
    def of_class(cls):
        return cls.scale

    def __call__(self, x):
        return x + 1


class Derived(Plain):
    pass


class Slotted:
    __slots__ = ("__weakref__", "rate")
    scale = 2.0
    half = 0.5
    times = Plain.times
    of_class = classmethod(lambda cls: cls.scale)
    __call__ = Plain.__call__

    def __init__(self):
        self.rate = 3.0


class WithTensor(Plain):
    def __init__(self):
        super().__init__()
        self.t = torch.ones(2)


class Nested(Plain):
    def __init__(self):
        super().__init__()
        self.inner = Plain()


@dataclasses.dataclass
class Data(Plain):
    rate: float = 3.0
    scale = 2.0


class Layer(nn.Module):
    scale = 2.0
    half = 0.5
    times = Plain.times
    of_class = classmethod(lambda cls: cls.scale)

    def __init__(self):
        super().__init__()
        self.rate = 3.0
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x + self.w


class Dictionary(dict):
    scale, half, rate = 2.0, 0.5, 3.0
    times = Plain.times
    of_class = classmethod(lambda cls: cls.scale)
    __call__ = Plain.__call__


class Tensor(torch.Tensor):
    scale, half, rate = 2.0, 0.5, 3.0
    times = Plain.times
    of_class = classmethod(lambda cls: cls.scale)
    __call__ = Plain.__call__


def namespace():
    return types.SimpleNamespace(scale=2.0, rate=3.0, half=0.5, times=lambda x: x * 2, of_class=lambda: 2.0)


MAKERS = {
    "plain": Plain,
    "derived": Derived,
    "slotted": Slotted,
    "with_tensor": WithTensor,
    "nested": Nested,
    "dataclass": Data,
    "module": Layer,
    "dictionary": Dictionary,
    "tensor": lambda: torch.ones(2).as_subclass(Tensor),
}
USES = {
    "class_attribute": lambda x, o: x * o.scale,
    "of_type": lambda x, o: x * type(o).scale,
    "own_attribute": lambda x, o: x * o.rate,
    "method": lambda x, o: o.times(x),
    "property": lambda x, o: x * o.half,
    "class_method": lambda x, o: x * o.of_class(),
    "call": lambda x, o: o(x),
    "getattr": lambda x, o: x * getattr(o, "scale", 1) * getattr(o, "nothing", 1),
    "isinstance": lambda x, o: x * 2 if isinstance(o, Plain) else x * 3,
    "handed_on": lambda x, o: x * 2,
    "truth": lambda x, o: x * 2 if o is not None else x,
    "identity": lambda x, o: x * (1 if o is x else 2),
    "set": lambda x, o: (setattr(o, "rate", 4.0), x * o.rate)[1],
}
WAYS = {
    "argument": lambda o: (o,),
    "weak": lambda o: (weakref.ref(o),),
    "in_a_list": lambda o: ([o],),
    "in_a_dict": lambda o: ({"o": o},),
    "in_a_tuple": lambda o: ((1, o),),
    "bound": lambda o: (functools.partial(use_it, o=o),),
}


def use_it(o):
    return o


def opened(way, given):
    if way == "weak":
        return given()
    if way == "bound":
        return given()
    return {"argument": lambda: given, "in_a_list": lambda: given[0], "in_a_dict": lambda: given["o"]}.get(
        way, lambda: given[1]
    )()


def is_gone(reference):
    gc.collect()
    return reference() is None


CASES = [(m, u, "argument") for m in MAKERS for u in USES] + [
    (m, u, w)
    for m in ("plain", "slotted", "with_tensor", "module")
    for u in ("class_attribute", "own_attribute", "method")
    for w in WAYS
]


@pytest.mark.parametrize("maker, use, way", sorted(set(CASES)))
def test_what_was_given_dies(maker, use, way):
    if maker == "tensor" and use in ("truth", "identity"):
        pytest.skip("not asked of tensors here")
    use_of, wrap = USES[use], WAYS[way]

    def f(x, given):
        return use_of(x, opened(way, given))

    g = cresset.compile(f)
    x = torch.ones(2)
    for calls in (1, 2, 1):
        o = MAKERS[maker]()
        reference = weakref.ref(o)
        expected = f(x, *wrap(o))
        o = MAKERS[maker]()
        reference = weakref.ref(o)
        for _ in range(calls):
            assert torch.equal(g(x, *wrap(o)).detach(), expected.detach())
        del o, expected
        assert is_gone(reference)


def test_another_object_at_the_same_address_is_another():
    class Scaled:
        def __init__(self, scale):
            self.scale = scale

    g = cresset.compile(lambda x, o: x * o.scale)
    x = torch.ones(2)
    for scale in range(12):
        assert torch.equal(g(x, Scaled(float(scale))), x * scale)
        if scale % 3 == 0:
            gc.collect()


def test_few_programs_for_many_objects():
    g = cresset.compile(lambda x, o: x * o.scale)
    for _ in range(12):
        g(torch.ones(2), Plain())
        gc.collect()
    assert cresset.stats()["graphs"] <= 2


def in_a_closure():
    o = Plain()

    def f(x):
        return x * o.scale

    return f, o


class Holder:
    pass


def test_a_closure_dies_with_its_function():
    f, o = in_a_closure()
    reference = weakref.ref(o)
    g = cresset.compile(f)
    g(torch.ones(2))
    del f, o, g
    assert is_gone(reference)


@pytest.mark.parametrize("use", ["class_attribute", "own_attribute", "method"])
def test_what_an_attribute_held_dies_once_it_is_replaced(use):
    holder = Holder()
    use_of = USES[use]
    g = cresset.compile(lambda x: use_of(x, holder.o))
    x = torch.ones(2)
    references = []
    for _ in range(3):
        holder.o = Plain()
        references.append(weakref.ref(holder.o))
        for _ in range(2):
            assert torch.equal(g(x), use_of(x, holder.o))
    holder.o = None
    assert [is_gone(r) for r in references] == [True] * 3


def test_an_array_and_a_function_die():
    g = cresset.compile(lambda x, a: x * float(a[0]) if isinstance(a, numpy.ndarray) else a(x))
    x = torch.ones(2)
    for make in (lambda: numpy.ones(2), lambda: lambda t: t * 2):
        o = make()
        reference = weakref.ref(o)
        g(x, o)
        del o
        assert is_gone(reference)


def test_a_program_sees_its_objects_die():
    """The object dies in the call as it does in eager mode."""

    def f(x):
        o = Plain()
        reference = weakref.ref(o)
        y = x * o.scale
        del o
        return y, reference() is None

    g = cresset.compile(f)
    for _ in range(3):
        y, gone = g(torch.ones(2))
        assert gone and torch.equal(y, torch.full((2,), 2.0))


class MadeByDescriptor:
    def __init__(self, name):
        self.name = name


class MakesAtEachRead:
    def __get__(self, obj, owner=None):
        return MadeByDescriptor("rate")


def test_entries_do_not_hold_what_descriptors_make():
    class Model:
        rate = MakesAtEachRead()
        names = frozenset({"a", "b"})

    name = "rate"

    def f(x):
        known = isinstance(Model.rate, MadeByDescriptor) and isinstance(getattr(Model, name), MadeByDescriptor)
        return x + len(Model.names) if known and "a" in Model.names else x

    g = cresset.compile(f)
    g(torch.ones(3))
    made = [o for o in gc.get_objects() if type(o) is MadeByDescriptor]
    assert not made  # a held object would count as a model that is gone
    before = cresset.stats()["graphs"]
    others = [
        cresset.compile(lambda x, i=i: x * i) for i in range(20)
    ]  # each capture may look for models that are gone
    for other in others:
        other(torch.ones(3))
    assert cresset.stats()["graphs"] == before + 20
    assert torch.equal(g(torch.ones(3)), torch.full((3,), 3.0))
    assert cresset.stats()["graphs"] == before + 20
