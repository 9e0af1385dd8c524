"""Programs that read few or many keys of objects, once or several times: a guard for each key, and each guard is
checked."""

import collections
import itertools

import pytest
import torch

import cresset

COUNTS = [1, 5, 31, 32, 33, 64, 65, 300]
X = torch.arange(3.0)


class Plain:
    pass


def made(source, **names):
    exec(source, names)
    return names["f"]


def of_many(count, times=1):
    """A function that reads `count` attributes of an object, and the object."""
    held = Plain()
    for i in range(count):
        setattr(held, f"a{i}", i)
    terms = " + ".join(f"held.a{i}" for i in range(count))
    return made(f"def f(x):\n    return x * ({' + '.join([terms] * times)})", held=held), held


def item_facts(function):
    facts = [fact for segment in cresset.explain(function)(X).segments for fact in segment["state_guards"]]
    return [fact for fact in facts if "['a" in fact]


@pytest.mark.parametrize("count", COUNTS)
def test_each_key_is_held_to(count):
    function, held = of_many(count)
    compiled = cresset.compile(function)
    for i in range(0, count, max(1, count // 7)):
        assert torch.equal(compiled(X), function(X))
        setattr(held, f"a{i}", 1000 + i)
        assert torch.equal(compiled(X), function(X))


@pytest.mark.parametrize("count", COUNTS)
def test_one_fact_a_key(count):
    facts = item_facts(of_many(count, times=3)[0])
    assert len(facts) == len(set(facts)) == count


@pytest.mark.parametrize("count", COUNTS)
def test_what_the_call_wrote_is_no_fact(count):
    def run(wrap):
        function, held = of_many(count)
        body = "def f(x):\n    held.a0 = held.a0 + 1\n    held.new = held.a0\n    y = g(x)\n    held.a0 += 1\n"
        body += "    return y + held.new * x + held.a0"
        call = wrap(made(body, held=held, g=function))
        out = []
        for i in range(4):
            out.append((call(X), dict(vars(held))))
            if i == 1:
                setattr(held, f"a{count - 1}", 7)
        return out

    for (given, given_names), (expected, names) in zip(run(cresset.compile), run(lambda f: f), strict=True):
        assert torch.equal(given, expected)
        assert given_names == names


@pytest.mark.parametrize("count", COUNTS)
def test_items_of_a_dictionary(count):
    def run(wrap):
        held = {f"a{i}": i for i in range(count)}
        body = f"def f(x):\n    return x * sum(held[f'a{{i}}'] for i in range({count})) + len(held) + held.get('z', 5)"
        call, out = wrap(made(body, held=held)), []
        for i in range(3):
            out += [call(X), call(X)]
            held[f"a{i * count // 3}"] = 50
        held["z"] = 1
        return out + [call(X)]

    assert all(map(torch.equal, run(cresset.compile), run(lambda f: f)))


# The same names in dictionaries with other insertion orders; some names are deleted, and added again.
@pytest.mark.parametrize("through_dict", [False, True])
def test_names_at_other_places(through_dict):
    class Held:
        c = 9

    def run(wrap):
        held = [Held() for _ in range(6)]
        for each, order in zip(held, itertools.permutations("abc"), strict=True):
            for name in order:
                setattr(each, name, ord(name) - len(order[0]))
            if through_dict:
                each.__dict__.update(d=1)
        del held[2].c
        held[3].a = held[3].__dict__.pop("a") + 1

        def f(x):
            for each in held:
                x = x + each.a * 100 + each.b * 10 + each.c
            return x

        call = wrap(f)
        out = [call(X), call(X)]
        del held[0].c
        out.append(call(X))
        held[2].c = 4
        out.append(call(X))
        held[0].c = 5
        return out + [call(X)]

    assert all(map(torch.equal, run(cresset.compile), run(lambda f: f)))


# More pairs of a class and a name than the cache remembers.
def test_many_names_of_many_classes():
    classes = [type(f"C{i}", (), {f"n{j}": i * j for j in range(24)}) for i in range(24)]
    objects = [c() for c in classes]
    terms = " + ".join(f"objects[{i}].n{j}" for j in range(24) for i in range(24))
    function = made(f"def f(x):\n    return x + ({terms})", objects=objects)
    compiled = cresset.compile(function)
    for i, j in [(0, 0), (23, 23), (7, 11), (15, 2)]:
        assert torch.equal(compiled(X), function(X))
        setattr(classes[i], f"n{j}", 5000)
        assert torch.equal(compiled(X), function(X))


# Submodules are searched first at the position of the previous module's.
def test_parts_of_modules_in_other_orders():
    class Layer(torch.nn.Module):
        def __init__(self, order):
            super().__init__()
            for name in order:
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(float(ord(name)))))
            self.register_buffer("k", torch.tensor(2.0))

        def forward(self, x):
            return x * self.a + self.b * self.k - self.c

    model = torch.nn.Sequential(*[Layer(order) for order in itertools.permutations("abc")])
    compiled = cresset.compile(model)
    with torch.no_grad():
        for change in [
            lambda: None,
            lambda: setattr(model[1], "b", torch.nn.Parameter(torch.tensor(1.0))),
            lambda: setattr(model[2], "k", torch.tensor(3.0)),
            lambda: model[3].__dict__.update(k=torch.tensor(4.0)),
            lambda: (delattr(model[4], "a"), setattr(model[4], "a", 0.5)),
        ]:
            change()
            torch.testing.assert_close(compiled(X), model(X))


def test_class_that_gets_a_getattribute():
    class Held:
        def __getattr__(self, name):
            return 3.0

    held = Held()
    held.a = 1.0

    def f(x):
        return x * held.a + held.z

    def other(self, name):
        return 7.0 if name == "a" else object.__getattribute__(self, name)

    compiled = cresset.compile(f)
    changes = [
        lambda: None,
        lambda: setattr(Held, "__getattribute__", other),
        lambda: delattr(Held, "__getattribute__"),
        lambda: setattr(Held, "__getattr__", lambda self, name: 5.0),
    ]
    for change in changes * 2:
        change()
        assert torch.equal(compiled(X), f(X))
        assert torch.equal(compiled(X), f(X))


class Kept(collections.OrderedDict):
    pass


def moved(kind, key, nested):
    made = kind((name, torch.tensor(float(i))) for i, name in enumerate("abc"))
    if key is not None:
        made.move_to_end(key)
    return {"inner": made} if nested else made


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", [collections.OrderedDict, Kept])
def test_the_order_of_an_ordered_dictionary(kind, nested):
    """It differs from the order of the table of entries after an entry was moved."""

    def read(given, x):
        return [(k, v + x) for k, v in (given["inner"] if nested else given).items()]

    def written(given, x):
        given = given["inner"] if nested else given
        given["d"] = x * 2
        given.move_to_end("b")
        cresset.graph_break("here")
        return [(k, v + x) for k, v in given.items()], given

    for function in (read, written):
        compiled = cresset.compile(function)
        for key in (None, "a", "a", "b", None, "a"):
            x = torch.tensor(1.0)
            expected = function(moved(kind, key, nested), x)
            assert repr(compiled(moved(kind, key, nested), x)) == repr(expected)
        assert cresset.stats()["eager_calls"] == 0


KEYS = {
    "tuple": lambda a: (a, 0),
    "text": lambda a: "k" + str(a),
    "format": lambda a: f"{a}-{a}",
    "int": lambda a: a * 1000,
    "float": lambda a: a * 1.5,
    "nested": lambda a: ((a, 0), "k" + str(a)),
    "frozenset": lambda a: frozenset((a, 7)),
    "bytes": lambda a: b"a" * (a + 1),
    "device": lambda a: torch.device("cpu", a),
    "mixed": lambda a: a if a < 2 else float(a),
}


def forget_all(cache, key):
    cache.clear()


def delete_each(cache, key):
    del cache[key(1)]
    del cache[key(2)]
    return key(1) in cache


def pop_each(cache, key):
    return cache.pop(key(1)) is cache.pop(key(2)), key(2) in cache


@pytest.mark.parametrize("end", [forget_all, delete_each, pop_each])
@pytest.mark.parametrize("kind", KEYS)
def test_equal_keys_that_the_call_makes_are_one(kind, end):
    """A cache with the lifetime of the call: entries from the call are no state in guards of later calls."""
    key, cache = KEYS[kind], {}

    def cached(x, a):
        made = key(a)
        if made in cache:
            return cache[key(a)]
        cache[made] = found = x * (a + 1)
        return found

    def f(x):
        y = cached(x, 1) + cached(x, 2) - cached(x, 1) * cached(x, 2)
        return y, end(cache, key)

    compiled = cresset.compile(f)
    cresset.reset()
    for n in (2, 3, 4):
        x = torch.randn(n)
        got, want = compiled(x), f(x)
        torch.testing.assert_close(got[0], want[0])
        assert got[1] == want[1] and cache == {}
    assert cresset.stats()["graphs"] == 1
