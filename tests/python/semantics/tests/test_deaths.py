"""Objects die when the program drops them: the references of a capture must be invisible."""

import weakref

import pytest
import torch

import cresset

LOG = []


class Thing:
    value = 2.0

    def method(self):
        return self.value


class Told:
    def __init__(self, value):
        self.value = value

    def __del__(self):
        LOG.append(("dead", self.value))


class State:
    pass


PROGRAMS = {}


def program(make):
    """A program; `make` makes its function, anew for each side."""
    PROGRAMS[make.__name__] = make
    return make


@program
def behind_a_break():
    def f(x):
        thing = Thing()
        x.sum().item()
        r = weakref.ref(thing)
        del thing
        return x * 2, r() is None

    return f


@program
def of_an_item():
    things = [Thing() for _ in range(10)]

    def f(x):
        r = weakref.ref(things[-1])
        things.pop()
        return x * 2, r() is None

    return f


def drop_of_an_attribute(earlier, breaks):
    """Cases: the reference is from before the call or not; a graph break comes before the object is dropped or not."""
    s = State()

    def begin():
        s.thing = Thing()
        s.r = weakref.ref(s.thing) if earlier else None

    def f(x):
        if s.thing is None:
            begin()
        if breaks:
            x.sum().item()
        r = s.r if earlier else weakref.ref(s.thing)
        s.thing = None
        return x * 2, r() is None

    begin()
    return f


@program
def of_an_attribute():
    return drop_of_an_attribute(earlier=False, breaks=False)


@program
def of_an_attribute_behind_a_break():
    return drop_of_an_attribute(earlier=False, breaks=True)


@program
def one_that_was_there():
    return drop_of_an_attribute(earlier=True, breaks=False)


@program
def one_that_was_there_behind_a_break():
    return drop_of_an_attribute(earlier=True, breaks=True)


@program
def with_a_callback():
    def f(x):
        thing = Thing()
        x.sum().item()
        r = weakref.ref(thing, lambda _: LOG.append("told"))
        del thing
        return x * 2, list(LOG), r() is None

    return f


@program
def finalize():
    def f(x):
        thing = Thing()
        x.sum().item()
        weakref.finalize(thing, LOG.append, "told")
        del thing
        return x * 2, list(LOG)

    return f


@program
def values_of_a_dictionary():
    things = weakref.WeakValueDictionary()

    def f(x):
        thing = Thing()
        x.sum().item()
        things["a"] = thing
        n = len(things)
        del thing
        return x * 2, n, len(things), "a" in things

    return f


@program
def keys_of_a_dictionary():
    things = weakref.WeakKeyDictionary()

    def f(x):
        thing = Thing()
        x.sum().item()
        things[thing] = 1
        n = len(things)
        del thing
        return x * 2, n, len(things)

    return f


@program
def members_of_a_set():
    things = weakref.WeakSet()

    def f(x):
        thing = Thing()
        x.sum().item()
        things.add(thing)
        n = len(things)
        del thing
        return x * 2, n, len(things)

    return f


@program
def proxy():
    def f(x):
        thing = Thing()
        x.sum().item()
        p = weakref.proxy(thing)
        value = p.value
        del thing
        try:
            return x * 2, value, p.value
        except ReferenceError:
            return x * 2, value, "dead"

    return f


@program
def method():
    def f(x):
        thing = Thing()
        x.sum().item()
        r = weakref.WeakMethod(thing.method)
        value = r()()
        del thing
        return x * 2, value, r() is None

    return f


def overwrite(breaks):
    s = State()
    s.told = Told(0)

    def f(x):
        y = x * s.told.value
        if breaks:
            x.sum().item()
        s.told = Told(s.told.value + 1)
        LOG.append("after")
        return y

    return f


@program
def overwritten():
    return overwrite(breaks=False)


@program
def overwritten_behind_a_break():
    return overwrite(breaks=True)


@program
def overwritten_unseen():
    s = State()
    s.told = Told(0)

    def f(x):
        s.told = Told(5)
        LOG.append("after")
        return x * 2

    return f


@program
def taken_from_a_list():
    items = [Told(1), Told(2)]

    def f(x):
        y = x * items[0].value
        items.pop(0)
        LOG.append("after")
        items.append(Told(7))
        return y

    return f


@program
def of_a_list_that_is_cleared():
    items = [Told(1), Told(2)]

    def f(x):
        y = x * len(items)
        items.clear()
        LOG.append("after")
        items.append(Told(3))
        return y

    return f


@program
def of_a_dictionary():
    items = {"a": Told(1), "b": Told(2)}

    def f(x):
        y = x * items["a"].value
        del items["a"]
        LOG.append("between")
        items["b"] = Told(4)
        LOG.append("after")
        items["a"] = Told(9)
        return y

    return f


@program
def held_by_a_variable():
    s = State()
    s.told = Told(0)

    def f(x):
        told = s.told
        y = x * told.value
        s.told = None
        LOG.append("between")
        del told
        LOG.append("after")
        s.told = Told(2)
        return y

    return f


@program
def of_the_call():
    def f(x):
        told = Told(1)
        y = x * told.value
        del told
        LOG.append("after")
        return y

    return f


def run(make, wrap):
    LOG.clear()
    function = wrap(make())
    out = []
    for n in range(2, 7):
        result = function(torch.arange(float(n)))
        tensor, rest = (result[0], result[1:]) if isinstance(result, tuple) else (result, ())
        out.append((tensor.tolist(), rest, list(LOG)))
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_eager(name):
    make = PROGRAMS[name]
    assert run(make, cresset.compile) == run(make, lambda f: f)


def test_objects_that_nobody_watches_are_captured():
    s = State()
    s.things = [Thing() for _ in range(8)]
    s.thing = None

    @cresset.compile
    def f(x):
        s.thing = Thing()
        s.things.pop()
        return x * 2

    for n in range(2, 5):
        f(torch.ones(n))
    assert cresset.stats()["eager_calls"] == 0


def test_references_to_what_lives_are_captured():
    s = State()
    s.thing = Thing()
    s.r = weakref.ref(s.thing)

    @cresset.compile
    def f(x):
        s.steps = getattr(s, "steps", 0) + 1
        return x * s.r().value, weakref.ref(s.thing)() is s.thing

    for n in range(2, 7):
        assert f(torch.ones(n))[1]
    assert cresset.stats()["eager_calls"] == 0
