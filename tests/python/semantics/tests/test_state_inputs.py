"""State that is another tensor, or another object, at each call is an input of the same program, not a reason for a
recompile."""

from __future__ import annotations

import collections
import dataclasses
import types
import warnings

import pytest
import torch

import cresset

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


def compiled(function, **options):
    cresset.reset()
    return cresset.compile(function, options={"frontend": "evaluate"}, **options)


def ramp(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) - 2


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def test_a_state_that_is_replaced_at_each_call():
    def step(state, x):
        state.h = torch.tanh(state.h * 0.5 + x)
        state.count += 1
        return state.h * 2

    ours, theirs = Holder(h=ramp(3), count=0), Holder(h=ramp(3), count=0)
    f = compiled(lambda x: step(ours, x))
    for i in range(8):
        torch.testing.assert_close(f(ramp(3) + i), step(theirs, ramp(3) + i))
        torch.testing.assert_close(ours.h, theirs.h)
    assert ours.count == theirs.count == 8


def test_a_replaced_state_compiles_twice():
    state = Holder(h=ramp(3))

    def step(x):
        state.h = state.h * 0.5 + x
        return state.h

    f = compiled(step)
    for _ in range(6):
        f(ramp(3))
    assert cresset.stats()["graphs"] == 2, cresset.stats()["recompiles"]


def test_tensors_in_a_list_and_in_a_cell():
    def make():
        layers, last = [ramp(2), ramp(2) + 1], ramp(2)

        def step(x):
            nonlocal last
            for i in range(len(layers)):
                x = layers[i] = layers[i] + x
            last = last * 0.5 + x
            return last

        return step

    ours, theirs = compiled(make()), make()
    for i in range(6):
        torch.testing.assert_close(ours(ramp(2) + i), theirs(ramp(2) + i))
    assert cresset.stats()["graphs"] <= 3, cresset.stats()["recompiles"]
    assert cresset.stats()["eager_calls"] == 0


def test_numbers_in_state_become_symbols():
    def make():
        state, total = Holder(n=0, history=[0, 1], table={"k": 2, "inner": [3]}), 0

        def step(x):
            nonlocal total
            total += 2
            state.n += 1
            state.history[0] = state.n
            state.history[1] += state.n
            state.table["k"] = state.table["k"] * 2 + total
            state.table["inner"].append(state.n)
            return x * state.n + state.table["k"] + state.history[1] - state.table["inner"].pop()

        return step, lambda: (vars(state), total)

    (ours, our_state), (theirs, their_state) = make(), make()
    f = compiled(ours)
    for i in range(6):
        torch.testing.assert_close(f(ramp(3) + i), theirs(ramp(3) + i))
        assert our_state() == their_state() and "SymInt" not in repr(our_state()), our_state()
    assert cresset.stats()["graphs"] == 2, cresset.stats()["recompiles"]


def test_numbers_in_arguments_become_symbols():
    def step(batch, x):
        batch.n += 1
        batch.items[0] += 2
        batch.table["k"] = batch.table["k"] * 2
        if x.sum() > 0:
            batch.table["l"] = batch.n
        return x * batch.n + batch.items[0] + batch.table["k"], batch.items

    ours, theirs = (Holder(n=3, t=ramp(2), items=[1, 2], table={"k": 5, "l": 0}) for _ in range(2))
    f = compiled(step)
    for i in range(8):
        got, expected = f(ours, ramp(3) + i), step(theirs, ramp(3) + i)
        torch.testing.assert_close(got[0], expected[0])
        assert got[1] is ours.items
        mine, others = ({k: v for k, v in vars(h).items() if k != "t"} for h in (ours, theirs))
        assert mine == others and "SymInt" not in repr(mine)
        if i == 3:
            graphs = cresset.stats()["graphs"]
    assert cresset.stats()["graphs"] == graphs <= 8, cresset.stats()["recompiles"]


def test_numbers_are_plain_again_when_the_call_raises():
    def step(batch):
        batch.n += 1
        raise ValueError(batch.n, batch.m)

    f = compiled(step)
    batch = Holder(n=0, m=0, t=ramp(2))
    for i in range(4):
        batch.n, batch.m = i, i * 2
        with pytest.raises(ValueError) as raised:
            f(batch)
        assert (
            raised.value.args == (i + 1, i * 2) and type(raised.value.args[0]) is type(batch.n) is type(batch.m) is int
        )


def test_an_argument_that_state_holds_too():
    w = torch.ones(3)
    f = compiled(lambda x: x + 10 * w)
    for x in (w, torch.zeros(3), w, torch.full((3,), 2.0)):
        torch.testing.assert_close(f(x), x + 10 * w)


def test_state_that_two_names_share_until_they_do_not():
    state = Holder(a=ramp(3))
    state.b = state.a

    def step(x):
        return state.a * x + state.b

    f = compiled(step)
    for i in range(5):
        torch.testing.assert_close(f(ramp(3)), step(ramp(3)))
        state.a = state.a + i
        if i % 2:
            state.b = state.a


class Cache:
    """A model's cache: layers that grow, and a shared configuration."""

    def __init__(self, config, layers):
        self.config = config
        self.layers = [Holder(keys=None) for _ in range(layers)]

    def update(self, i, keys):
        layer = self.layers[i]
        layer.keys = keys if layer.keys is None else torch.cat([layer.keys, keys], 1)
        return layer.keys


def attend(x, cache):
    for i in range(len(cache.layers)):
        keys = cache.update(i, x * (i + 1))
        x = (x @ keys.transpose(1, 2)).softmax(-1) @ keys * cache.config.scale
    return x


def test_a_cache_that_grows():
    config = Holder(scale=0.5)
    f = compiled(attend)
    for start in range(4):  # a new cache each time
        ours, theirs = Cache(config, 2), Cache(config, 2)
        for step in range(5):
            x = ramp(2, 3 if step == 0 else 1, 4) * 0.1 + start
            torch.testing.assert_close(f(x, ours), attend(x, theirs))
            for a, b in zip(ours.layers, theirs.layers):
                torch.testing.assert_close(a.keys, b.keys)
    assert cresset.stats()["graphs"] <= 4, cresset.stats()["recompiles"]
    assert cresset.stats()["eager_calls"] == 0


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    scale: float
    extra: dict


def test_a_new_object_at_each_call():
    def f(batch):
        batch.extra["seen"] = batch.x * 2
        return Batch(batch.x * batch.scale, batch.scale, batch.extra)

    g = compiled(f)
    for i in range(4):
        ours, theirs = Batch(ramp(2, i + 2), 0.5, {}), Batch(ramp(2, i + 2), 0.5, {})
        got, expected = g(ours), f(theirs)
        torch.testing.assert_close(got.x, expected.x)
        assert got.extra is ours.extra
        torch.testing.assert_close(ours.extra["seen"], theirs.extra["seen"])
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


class Output(collections.OrderedDict):
    """A model's output: items are attributes, too."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __setattr__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


APPENDED = []


class Items(list):
    def append(self, item):
        APPENDED.append(len(self))
        super().append(item)


def test_subclasses_of_containers():
    def f(given, items):
        out = Output()
        out["hidden"] = given.hidden + given["bias"]
        out.last = sum(items)
        made = Items([out.last])
        made.note = "made"
        made.append(given.hidden)
        return out, made

    g = compiled(f)
    for i in range(4):
        given, items = Output(), Items([ramp(2), ramp(2) + i])
        given["hidden"], given.bias = ramp(2, i + 2), ramp(1)
        counts = []
        for function in (f, g):
            before = len(APPENDED)
            out, made = function(given, items)
            counts.append(len(APPENDED) - before)
            assert type(out) is Output and list(out) == ["hidden", "last"] and out.hidden is out["hidden"]
            torch.testing.assert_close(out.hidden, given.hidden + given.bias)
            assert type(made) is Items and made.note == "made" and made[0] is out.last
            torch.testing.assert_close(made[1], given.hidden)
        assert counts[0] == counts[1] == 1
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


def test_a_loop_over_a_range_closes_on_itself():
    def f(x):
        total = 0
        for i in range(3, 200, 2):
            x = x * 1.01 + i
            if x.sum() > 50:
                x = x / 10
                total += i
        return x, total

    g = compiled(f)
    for _ in range(4):
        got, expected = g(ramp(3)), f(ramp(3))
        torch.testing.assert_close(got[0], expected[0])
        assert got[1] == expected[1] and type(got[1]) is int
    before = cresset.stats()
    g(ramp(3))
    assert cresset.stats()["graphs"] == before["graphs"] < 20
    assert cresset.stats()["eager_fallbacks"] == before["eager_fallbacks"]


def test_dead_locals_do_not_live_on():
    def f(x):
        big = x * 2
        small = big.sum()
        if small > 0:
            return small
        return -small

    g = compiled(f)
    for x in (ramp(5), -ramp(5), ramp(7)):
        torch.testing.assert_close(g(x), f(x))
    kept = [text for text in cresset.explain(f)(ramp(5)).segments if text["graph"]]
    assert kept[0]["graph"].rstrip().splitlines()[-1].count("%") == 2, kept[0][
        "graph"
    ]  # the sum, and the operand of its truth test


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def test_a_custom_function_is_captured():
    def f(x):
        return Doubled.apply(x + 1) - 1

    g = compiled(f)
    for n in (3, 4):
        torch.testing.assert_close(g(ramp(n)), f(ramp(n)))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == 0, cresset.stats()[
        "graph_break_reasons"
    ]


@pytest.mark.parametrize("action", ["always", "default", "error"])
def test_warnings_are_given_as_often_as_the_filters_want(action):
    def f(x):
        y = x * 2
        warnings.warn("careful", stacklevel=1)
        warnings.warn(DeprecationWarning("old"), stacklevel=1)
        return y + 1

    def collect(g):
        globals().pop("__warningregistry__", None)
        seen = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            for n in (3, 3, 4):
                try:
                    g(ramp(n))
                except Warning as e:
                    seen.append(repr(e))
                seen += [(str(w.message), w.category, w.filename, w.lineno) for w in caught]
        return seen

    g = compiled(f)
    assert collect(g) == collect(f)
    if action != "error":
        assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


class Settings:
    def __init__(self, **values):
        self.__dict__.update(values)

    def __repr__(self):
        return f"Settings({self.__dict__})"


@pytest.mark.parametrize(
    "values",
    [
        lambda i: {"lr": 0.1 * i + 0.1},
        lambda i: {"lr": 0.1 * i + 0.1, "n": i, "name": "ab"[i % 2]},
        lambda i: {"lr": 0.1 * i + 0.1, "inner": Settings(lr=0.5 * i)},
    ],
)
def test_numbers_of_an_object_that_each_call_makes_anew(values):
    def f(x, settings):
        return x * settings.lr, settings.__dict__.get("inner", settings).lr + 1

    cresset.reset()
    compiled = cresset.compile(f)
    graphs = []
    for i in range(9):
        args = torch.arange(3.0), Settings(**values(i))
        assert repr(compiled(*args)) == repr(f(*args))
        graphs.append(cresset.stats()["graphs"])
    assert graphs[-1] == graphs[4], graphs


def test_a_size_in_state_is_the_object_that_is_given_back():
    world = types.SimpleNamespace()

    @cresset.compile
    def f(x):
        world.last = x.shape
        print(end="")
        return world.last, x + 0

    for rows in (3, 3, 5, 4, 5, 3):
        assert f(torch.ones(rows, 4))[0] is world.last
