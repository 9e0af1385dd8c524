"""The number of cache entries, their eviction and its message; threads; objects released with a function."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
import types
import warnings
import weakref

import pytest
import torch

import cresset

EVALUATE = {"frontend": "evaluate"}


def x(seed=0, *shape):
    return torch.randn(shape or (3, 4), generator=torch.Generator().manual_seed(seed))


def variants(compiled):
    return len(cresset._C.cache_entries(compiled))


# ------------------------------------------------------------------------------------------------- how many


def test_least_used_goes(grad):
    box = types.SimpleNamespace(value="")  # a str: an int would become a symbol
    compiled = cresset.compile(lambda t: t * len(box.value), options={**EVALUATE, "cache_entry_limit": 3})
    calls = [0, 1, 2, 0, 3, 0, 1, 2]  # 3 evicts 1, 1 evicts 2, 2 evicts 3
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for value in calls:
            box.value = "a" * value
            assert torch.equal(compiled(torch.ones(2)), torch.full((2,), float(value)))
            assert variants(compiled) <= 3
    assert cresset.stats()["graphs"] == 6 and cresset.stats()["eager_calls"] == 0
    (warning,) = told  # once
    text = str(warning.message)
    assert "more than 3 cache entries" in text and "box.value" in text and "Remedy: " in text
    assert "\n" not in text and warning.filename == __file__


def test_texts_of_guards_are_not_made_by_the_program():
    """No string is made without a reader either: a call compares cache entries that other calls use."""
    asked = []

    class Loud:
        def __repr__(self):
            asked.append(1)
            return "Loud()"

    compiled = cresset.compile(lambda t, k: t * 2 if isinstance(k, float) else t + 1)
    loud = Loud()
    given = [0.5, loud, "text", 1.5, (loud, 2), {loud: 3.0}, [loud], Loud, {"a": loud}, torch.ones(2), None]
    for _ in range(3):
        for k in given:
            out = compiled(torch.ones(2), k)
            assert torch.equal(out, torch.full((2,), 2.0))
    assert cresset.stats()["recompiles"] and "__repr__" not in vars(loud) and not asked


@pytest.mark.parametrize("limit", [0, -1, True, "many"])
def test_bad_limit(limit):
    with pytest.raises(ValueError, match="cache_entry_limit"):
        cresset.compile(lambda t: t, options={"cache_entry_limit": limit})


def test_limit_from_the_environment(monkeypatch):
    monkeypatch.setenv("CRESSET_CACHE_ENTRY_LIMIT", "2")
    box = types.SimpleNamespace(value="")
    compiled = cresset.compile(lambda t: t * len(box.value), options=EVALUATE)
    with pytest.warns(RuntimeWarning, match="more than 2 cache entries"):
        for box.value in ("", "a", "aa", "aaa"):
            compiled(torch.ones(2))
    assert variants(compiled) == 2


@pytest.mark.parametrize(
    "dynamic,make,remedy",
    [
        (False, lambda i: (torch.ones(i + 2),), r"args\[0\]: expected sizes .*drop dynamic=False"),
        (None, lambda i: (torch.ones(2), f"name {i}"), r"args\[1\].*tensor"),
    ],
)
def test_warning_names_guard_and_remedy(dynamic, make, remedy):
    compiled = cresset.compile(
        lambda t, name="": t + len(name), dynamic=dynamic, options={**EVALUATE, "cache_entry_limit": 2}
    )
    with pytest.warns(RuntimeWarning, match=remedy):
        for i in range(4):
            compiled(*make(i))


class Block(torch.nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by
        self.flag = ""

    @cresset.compile(options={**EVALUATE, "cache_entry_limit": 2})
    def forward(self, t):
        return t * self.by + len(self.flag)


def test_instances_do_not_share_a_limit():
    blocks = [Block(i) for i in range(10)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            for block in blocks:
                for block.flag in ("", "a"):
                    assert torch.equal(block(torch.ones(2)), torch.full((2,), float(block.by + len(block.flag))))
    assert variants(Block.forward) == 20 and cresset.stats()["graphs"] == 20
    blocks[0].flag = "aa"
    with pytest.warns(RuntimeWarning, match="more than 2"):
        blocks[0](torch.ones(2))
    assert variants(Block.forward) == 20


class Scaled:
    def __init__(self, by):
        self.by = by


def test_pieces_are_found_among_many():
    """New objects and numbers of a call do not keep its graph segment from being found at once."""

    def f(t, names):
        for i, name in enumerate(names):
            scaled = Scaled(t * (i + 1))
            if scaled.by.sum() > -1e9:
                t = t + len(name) * scaled.by
        return t

    compiled = cresset.compile(f, options=EVALUATE)
    names = ["a" * i for i in range(12)]  # each a resume entry of the same resume point
    for _ in range(3):
        assert torch.equal(compiled(x(), names), f(x(), names))
    before = cresset.stats()
    assert torch.equal(compiled(x(), names), f(x(), names))
    after = cresset.stats()
    assert after["graphs"] == before["graphs"]
    assert after["cache_entries_checked"] - before["cache_entries_checked"] <= 2 * (len(names) + 1)


def test_two_ways_of_compiling_share_nothing():
    def f(t):
        return t + 1

    whole, pieces = cresset.compile(f, fullgraph=True, options=EVALUATE), cresset.compile(f, options=EVALUATE)
    for compiled in (whole, pieces, whole, pieces):
        compiled(x())
    assert variants(whole) == variants(pieces) == 1 and cresset.stats()["graphs"] == 2


def per_call(compiled, calls, rounds=7):
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for args in calls:
            compiled(*args)
        best = min(best, (time.perf_counter() - begin) / len(calls))
    return best


@pytest.mark.parametrize("kind", ["sizes", "numbers", "instances"])
def test_many_entries_are_found_quickly(kind):
    """100 entries cost at most three times the time of a single entry."""
    if kind == "instances":
        things = [torch.nn.Module() for _ in range(100)]  # objects of any other class would share an entry
        for thing in things:
            thing.value = 1
        calls = [(torch.ones(4), thing) for thing in things]
        compiled = cresset.compile(lambda t, thing: t + thing.value, options=EVALUATE)
    elif kind == "sizes":
        calls = [(torch.ones(i + 2),) for i in range(100)]
        compiled = cresset.compile(lambda t: t + 1, dynamic=False, options={**EVALUATE, "cache_entry_limit": 100})
    else:
        calls = [(torch.ones(4), i) for i in range(100)]
        compiled = cresset.compile(lambda t, n: t + n, dynamic=False, options={**EVALUATE, "cache_entry_limit": 100})
    for args in calls * 2:
        compiled(*args)
    assert variants(compiled) == 100
    many = per_call(compiled, calls)
    cresset.reset()
    compiled(*calls[0])
    assert variants(compiled) == 1
    one = per_call(compiled, calls[:1] * 100)
    assert many <= 3 * one, f"{many * 1e6:.1f} us instead of {one * 1e6:.1f} us"


# ------------------------------------------------------------------------------------------------- threads


def in_threads(work, count=4):
    failures, start = [], threading.Barrier(count)

    def run(i):
        try:
            start.wait()
            with torch.no_grad():
                work(i)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if failures:
        raise failures[0]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(m for _ in range(3) for m in (torch.nn.Linear(8, 8), torch.nn.ReLU())))

    def forward(self, t):
        return self.layers(t).softmax(-1)


def test_threads_one_function():
    model = Net()
    compiled = cresset.compile(model, options=EVALUATE)

    def work(i):
        for step in range(30):
            t = x(i * 100 + step, 2 + (step + i) % 5, 8)
            assert torch.allclose(compiled(t), model(t), atol=1e-5)

    in_threads(work)


@pytest.mark.parametrize("breaks", [False, True])
def test_threads_that_change_what_they_share(breaks):
    """A call changes the objects it has read: no call's change is lost."""

    class Counts(Net):
        def __init__(self):
            super().__init__()
            self.calls, self.by_name, self.seen = 0, {}, []
            self.register_buffer("total", torch.zeros((), dtype=torch.long))

        def forward(self, t):
            self.calls += 1
            self.total += 1
            self.by_name["t"] = self.by_name.get("t", 0) + 1
            self.seen.append(t.shape[0])
            for _ in range(4):
                t = super().forward(t) + 1
            if breaks:
                t = t * t.sum().item()
                self.calls += 1
            return t

    model = Counts()
    compiled = cresset.compile(model, options=EVALUATE)

    def work(i):
        for step in range(40):
            compiled(x(i * 100 + step, 400 + (step + i) % 5, 8))

    in_threads(work)
    made = 40 * 4
    assert (model.calls, int(model.total), model.by_name, len(model.seen)) == (
        made * (1 + breaks),
        made,
        {"t": made},
        made,
    )


def test_sizes_made_of_data_while_another_thread_lives():
    log, counts = [], {"calls": 0}

    def selected(t):
        counts["calls"] += 1
        found = t[t > 0]
        log.append(found.numel())
        return (found @ found) + t.exp().sin().sum(), found.shape[0]

    compiled, stop = cresset.compile(selected, options=EVALUATE), threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        for step in range(6):
            t = x(step, 300 + step, 40)
            got, expected = compiled(t), (t > 0).sum().item()
            assert (got[1], log[-1], counts["calls"]) == (expected, expected, step + 1)
    finally:
        stop.set()
        other.join()


def test_threads_many_functions_one_model():
    model = Net()

    def work(i):
        for round in range(5):
            compiled = cresset.compile(lambda t, by=round: model(t) * by + i, options=EVALUATE)
            for step in range(4):
                t = x(step, 3 + step % 2, 8)
                assert torch.allclose(compiled(t), model(t) * round + i, atol=1e-5)

    in_threads(work)


def test_threads_one_tensor():
    """Every thread captures on the same tensor at once, and other threads use it eagerly at the same time."""
    shared = x(0, 5, 8)
    model = Net()
    with torch.no_grad():
        expected = model(shared) + 1

    def work(i):
        for _ in range(10):
            compiled = cresset.compile(lambda t: model(t) + 1, options=EVALUATE)
            got = compiled(shared) if i % 2 else model(shared) + 1
            assert torch.allclose(got, expected, atol=1e-5)
            assert shared.sum().item() == pytest.approx(float(shared.clone().sum()))

    in_threads(work)


def test_threads_use_natively_what_others_capture():
    """A tensor can be released by its capture in the middle of another thread's operator."""
    shared, model = x(0, 5, 8), Net()
    with torch.no_grad():
        expected = model(shared) + 1
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(i):
        compiles, differentiates = i % 2, i % 6 == 0
        with torch.set_grad_enabled(differentiates):
            for _ in range(60):
                run = cresset.compile(lambda t: model(t) + 1, options=EVALUATE) if compiles else lambda t: model(t) + 1
                got = run(shared)
                assert torch.allclose(got, expected, atol=1e-5)
                if differentiates:
                    grads = torch.autograd.grad(got.sum(), list(model.parameters()))
                    assert all(torch.isfinite(g).all() for g in grads)

    try:
        in_threads(work, 8)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("one_function", [True, False])
def test_threads_that_compile_the_same_parameters(one_function):
    """A single thread captures, the other threads wait for it: no call is eager, and a function is captured once."""
    shared, model = x(0, 5, 8), Net()
    cresset.reset()
    compiled = cresset.compile(model, options=EVALUATE)
    several = [compiled if one_function else cresset.compile(lambda t: model(t), options=EVALUATE) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(i):
        for _ in range(10):
            assert torch.allclose(several[i](shared), model(shared), atol=1e-5)

    try:
        in_threads(work)
    finally:
        sys.setswitchinterval(interval)
    stats = cresset.stats()
    assert stats["eager_calls"] == 0 and stats["graph_breaks"] == 0
    assert stats["graphs"] == (1 if one_function else 4)


def test_capture_that_waits_for_a_thread_that_captures():
    inner = cresset.compile(lambda t: t * 3, options=EVALUATE)

    def outer(t):
        y = t + 1
        got = []
        thread = threading.Thread(target=lambda: got.append(inner(t)))
        thread.start()
        thread.join()  # would wait for ever if the other thread waited for this capture's end
        return y + got[0]

    compiled = cresset.compile(outer, options=EVALUATE)
    t = x(0, 3)
    for _ in range(3):
        assert torch.allclose(compiled(t), outer(t))
        assert torch.allclose(inner(t), t * 3)


def test_threads_with_breaks():
    def f(t, log):
        y = t * 2
        log.append(float(y.sum()))
        if y.mean() > 0:
            y = y + 1
        return y

    compiled = cresset.compile(f, options=EVALUATE)

    def work(i):
        for step in range(30):
            t = x(i * 50 + step, 2 + step % 3, 4)
            mine, its = [], []
            assert torch.allclose(compiled(t, mine), f(t, its), atol=1e-5)
            assert mine == pytest.approx(its, rel=1e-4, abs=1e-5)

    in_threads(work)


def test_threads_that_raise_and_reset():
    def f(t, n):
        if n % 3 == 0:
            raise ValueError(n)
        return t + n

    compiled = cresset.compile(f, options=EVALUATE)

    def work(i):
        for step in range(20):
            if i == 0 and step % 5 == 0:
                cresset.reset()
            if step % 3 == 0:
                with pytest.raises(ValueError, match=str(step)):
                    compiled(torch.ones(2), step)
            else:
                assert torch.equal(compiled(torch.ones(2), step), torch.ones(2) + step)

    in_threads(work)


def test_a_capture_does_not_show_in_other_threads():
    stop, seen = threading.Event(), set()

    def watch():
        while not stop.is_set():
            seen.add((cresset.is_compiling(), type(range(3)), max(1, 2)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    model = Net()
    with torch.no_grad():
        for i in range(10):
            cresset.compile(lambda t, i=i: model(t) + i, options=EVALUATE)(x(0, 3, 8))
    stop.set()
    watcher.join()
    assert seen == {(False, range, 2)}


# ------------------------------------------------------------------------------------------------- released objects


def collected(*references):
    for _ in range(3):
        gc.collect()
    return [reference() for reference in references if reference() is not None]


class World:
    def __init__(self, value):
        self.value = value


class Boom(Exception):
    pass


def leak_case(name):
    """(compiled function, its arguments, objects released with it)"""
    model, box = Net(), World(2)
    held = [model, box, model.layers[0].weight]

    def method(t):
        box.value += 1
        return model(t) * box.value

    def breaks(t):
        y = model(t)
        box.last = float(y.sum())
        return y * box.value

    def raises(t):
        y = model(t) * box.value
        raise Boom(y.shape)

    def raises_after_break(t):
        if model(t).sum() > -1e9:
            raise Boom

    function = {"module": model, "bound": model.forward}.get(name) or locals()[name]
    return function, held


@pytest.mark.parametrize("name", ["module", "bound", "method", "breaks", "raises", "raises_after_break"])
def test_released_with_the_function(name, grad):
    function, held = leak_case(name)
    compiled = cresset.compile(function, options=EVALUATE)
    for rows in (3, 3, 5):
        with contextlib.suppress(Boom):
            compiled(x(0, rows, 8))
    references = [weakref.ref(o) for o in [*held, function]]
    if not isinstance(compiled, torch.nn.Module):
        references.append(weakref.ref(compiled))
    del function, held, compiled
    assert collected(*references) == []


def step_of(name):
    """A function of a model, compiled once for many models."""

    def calls(model, t):
        return model(t)

    def breaks(model, t):
        y = model(t)
        return y * float(y.sum()) + model(y)

    def steps(model, t):
        model.zero_grad()
        loss = model(t).square().mean()
        if loss.requires_grad:
            loss.backward()
        return loss.detach()

    return locals()[name]


@pytest.mark.parametrize("name", ["calls", "breaks", "steps"])
def test_models_that_are_gone_are_not_kept(name, grad):
    step = step_of(name)
    compiled, other = (cresset.compile(step, options=EVALUATE) for _ in range(2))
    models = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()) for _ in range(3)]
    for model in models * 2:
        for rows in (3, 5):
            torch.testing.assert_close(compiled(model, x(0, rows, 8)), step(model, x(0, rows, 8)))
            other(model, x(0, rows, 8))
    lives = models.pop()
    references = [weakref.ref(o) for o in models]
    graphs = cresset.stats()["graphs"]
    del model, models
    assert collected(*references) == []
    compiled(lives, x(0, 4, 8))  # its cache entries stay
    assert cresset.stats()["graphs"] == graphs


def test_models_that_are_gone_are_let_go_of_by_captures():
    compiled = cresset.compile(lambda model, t: model(t), options=EVALUATE)
    references = []
    gc.disable()
    try:
        for _ in range(4):
            model = torch.nn.Linear(8, 8)
            compiled(model, x(0, 3, 8))
            references.append(weakref.ref(model))
        assert [r() is None for r in references] == [True, True, True, False]
    finally:
        gc.enable()


def test_arguments_are_not_kept(grad):
    compiled = cresset.compile(lambda t, items: t * 2 + items[0], options=EVALUATE)
    t, item = x(), x(1)
    references = [weakref.ref(compiled(t, [item])), weakref.ref(t), weakref.ref(item)]
    del t, item
    assert collected(*references) == []


def test_frames_are_not_kept():
    class Local:
        pass

    references = []

    def f(t, fail):
        local = Local()
        references.append(weakref.ref(local))
        y = t * float(t.sum())
        if fail:
            raise Boom
        return y

    compiled = cresset.compile(f, options=EVALUATE)
    for fail in (False, True, False, True):
        with contextlib.suppress(Boom):
            compiled(x(), fail)
    assert len(references) == 4 and collected(*references) == []


def test_memory_does_not_grow_with_calls(grad):
    compiled = cresset.compile(lambda t, log: log.append(float(t.sum())) or t * 2, options=EVALUATE)
    for _ in range(5):
        compiled(x(), [])
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        compiled(x(), [])
    gc.collect()
    assert len(gc.get_objects()) - before < 20


def test_calls_that_no_other_is_like_are_not_compiled_for_ever():
    f = cresset.compile(lambda named: [x * 2 for x in named.values()])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(300):
            assert f({f"k{i}": torch.ones(2) * i})[0].tolist() == [2.0 * i] * 2
    assert cresset.stats()["graphs"] <= 130
    assert cresset.stats()["eager_calls"] == 300 - cresset.stats()["graphs"]
    said = [str(w.message) for w in caught if "compiled anew" in str(w.message)]
    assert len(said) == 1 and "args[0]: expected" in said[0], said
    for _ in range(8):  # the compiled programs are still used
        f({"k127": torch.ones(2)})
    assert cresset.stats()["graphs"] <= 131


def test_pieces_that_no_other_call_is_like_are_not_compiled_for_ever():
    class State:
        kept = {}

    @cresset.compile
    def f(x):
        n = int(x.sum())
        State.kept = {f"k{n}": x}
        return n, sorted(State.kept), State.kept[f"k{n}"] * 2

    for i in range(200):
        n, names, y = f(torch.ones(2) * i)
        assert (n, names, y.tolist()) == (2 * i, [f"k{2 * i}"], [2.0 * i] * 2)
    assert cresset.stats()["graphs"] <= 140


def test_plain_data_that_a_piece_hands_on_is_no_part_of_its_guards():
    def f(x, rows, look):
        y = x + len(rows)
        cresset.graph_break()
        y = y * 2
        cresset.graph_break()
        return y, rows[7][0] if look else rows

    compiled = cresset.compile(f)
    x = torch.ones(3)
    for n in range(6):
        rows = [(n * i, "text") for i in range(100)]
        y, same = compiled(x, rows, False)
        assert torch.equal(y, (x + 100) * 2)
        assert same is rows
    assert cresset.stats()["graphs"] == 3
    for n in range(6):
        assert compiled(x, [(n * i, "text") for i in range(90 + n)], True)[1] == 7 * n
