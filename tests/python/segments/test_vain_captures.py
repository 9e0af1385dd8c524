"""Calls without any reusable result. A vain capture is remembered, reported once, and later calls cost no more than
eager calls. No call collects all garbage again and again."""

from __future__ import annotations

import contextlib
import gc
import queue
import threading
import time
import warnings

import pytest
import torch
import torch.nn as nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import cresset


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))


class Full:
    """Counts collections of all generations while it is active."""

    def __enter__(self):
        self.count = 0
        gc.callbacks.append(self.see)
        return self

    def see(self, phase, info):
        self.count += phase == "start" and info["generation"] == 2

    def __exit__(self, *_):
        gc.callbacks.remove(self.see)


@contextlib.contextmanager
def told():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield (lambda: [str(w.message) for w in seen if "cresset" in str(w.message)])


# ------------------------------------------------------------------------------------------------- pack hooks


class Packs:
    """The record of eager mode: the saved tensors, and the number of uses of each."""

    def __init__(self):
        self.seen = []

    def pack(self, t):
        self.seen.append(("pack", tuple(t.shape), t.dtype))
        return t

    def unpack(self, t):
        self.seen.append(("unpack", tuple(t.shape), t.dtype))
        return t


def disk(folder):
    count = [0]

    def pack(t):
        count[0] += 1
        torch.save(t, folder / str(count[0]))
        return folder / str(count[0])

    return torch.autograd.graph.saved_tensors_hooks(pack, torch.load)


HOOKS = {
    "save_on_cpu": lambda _: torch.autograd.graph.save_on_cpu(),
    "pinned": lambda _: torch.autograd.graph.save_on_cpu(pin_memory=False),
    "other_functions": lambda _: torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 1),
    "half": lambda _: torch.autograd.graph.saved_tensors_hooks(
        lambda t: (t.dtype, t.bfloat16()), lambda p: p[1].to(p[0])
    ),
    "numpy": lambda _: torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), torch.from_numpy),
    "disk": disk,
}


def train(compile, hooks, tmp_path, turns):
    m = net()
    f = compile(m)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    times, losses = [], []
    for turn in range(turns):
        opt.zero_grad()
        begin = time.perf_counter()
        with HOOKS[hooks](tmp_path):
            loss = f(torch.ones(4, 8) * (turn % 3)).sum()
        loss.backward()
        times.append(time.perf_counter() - begin)
        opt.step()
        losses.append(loss.item())
    return losses, times


@pytest.mark.parametrize("hooks", HOOKS)
def test_what_autograd_saves_is_packed(hooks, tmp_path):
    expected, eager = train(lambda m: m, hooks, tmp_path, 20)
    with told() as messages, Full() as full:
        got, times = train(cresset.compile, hooks, tmp_path, 20)
    assert got == pytest.approx(expected)
    assert full.count <= 1
    assert len([m for m in messages() if "saved_tensors_hooks" in m]) == 1, messages()
    assert sorted(times)[10] < 20 * sorted(eager)[10] + 1e-3
    assert cresset.stats()["eager_calls"] == 20 and cresset.stats()["graphs"] == 0


def test_hooks_see_what_eager_mode_saves():
    m = net()
    f = cresset.compile(m)
    seen = []
    for g in (m, f, f):
        packs = Packs()
        with torch.autograd.graph.saved_tensors_hooks(packs.pack, packs.unpack):
            out = g(torch.ones(4, 8))
        out.sum().backward()
        seen.append(packs.seen)
    assert seen[0] == seen[1] == seen[2]


def test_only_calls_under_hooks_run_eagerly():
    m = net()
    f = cresset.compile(m)
    for turn in range(6):
        with torch.autograd.graph.save_on_cpu() if turn % 2 else contextlib.nullcontext():
            f(torch.ones(4, 8)).sum().backward()
        with torch.no_grad(), torch.autograd.graph.save_on_cpu():  # nothing is saved
            f(torch.ones(4, 8))
    assert cresset.stats()["eager_calls"] == 3 and cresset.stats()["graphs"] == 2


def test_hooks_inside_of_the_program():
    m = net()

    def step(x):
        with torch.autograd.graph.save_on_cpu():
            return m(x).sum()

    expected = step(torch.ones(4, 8))
    f = cresset.compile(step)
    f(torch.ones(4, 8)).backward()
    with Full() as full:
        times = []
        for _ in range(20):
            begin = time.perf_counter()
            loss = f(torch.ones(4, 8))
            times.append(time.perf_counter() - begin)
            loss.backward()
    assert torch.allclose(loss, expected)
    assert full.count <= 1 and sorted(times)[10] < 0.01


# ------------------------------------------------------------------------------------------------- in vain


class Tripled(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Counted(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Unlike:
    """Never equal, not even to itself, so that no call is like another."""

    def __eq__(self, other):
        return False

    def __hash__(self):
        return 1


kept = []


def stores(x):
    kept.append(weakly := queue.SimpleQueue())
    weakly.put(x * 2)
    return x + 1


def raises(x):
    y = x * 2
    if x.shape[0] > 0:
        raise ValueError("never")
    return y


def local_thread(x):
    threading.local().x = x * 2
    return x + 1


def sure(f, *args):
    try:
        return f(*args)
    except ValueError as e:
        return str(e)


# (function, its caller)
VAIN = {
    "functions_that_differ": (lambda x, g: g(x) * 2, lambda f, x: f(x, eval("lambda x: x.sin()"))),
    "function_mode": (lambda x: x.sin() * 2, lambda f, x: under(Tripled(), f, x)),
    "dispatch_mode": (lambda x: x.sin() * 2, lambda f, x: under(Counted(), f, x)),
    "raises": (raises, sure),
    "stores_in_a_queue": (stores, lambda f, x: f(x)),
    "thread_local": (local_thread, lambda f, x: f(x)),
    "made_class": (lambda x, c: c.scale * x, lambda f, x: f(x, type("C", (), {"scale": 2}))),
    "reads_memory": (lambda x: x * float(x.numpy()[0]), lambda f, x: f(x)),
    "changes_modes": (lambda x: (torch.set_grad_enabled(not torch.is_grad_enabled()), x * 2)[1], lambda f, x: f(x)),
    "generator_in_state": (
        lambda x: x * next(numbers[0]),
        lambda f, x: (numbers.__setitem__(0, iter([2.0, 3.0])), f(x))[1],
    ),
}
numbers = [None]


def under(mode, f, x):
    with mode:
        return f(x)


@pytest.mark.parametrize("name", VAIN)
def test_captures_come_to_an_end(name):
    function, call = VAIN[name]
    was = torch.is_grad_enabled()
    expected = call(function, torch.ones(3))
    f = cresset.compile(function)
    with told() as messages:
        for _ in range(80):
            torch.set_grad_enabled(was)
            got = call(f, torch.ones(3))
            assert torch.allclose(got, expected) if isinstance(got, torch.Tensor) else got == expected
        torch.set_grad_enabled(was)
        spent = cresset.stats()["ms_capture"]
        captured = 0
        with Full() as full:
            for _ in range(100):
                torch.set_grad_enabled(was)
                call(f, torch.ones(3))
                now = cresset.stats()["ms_capture"]
                captured += now != spent
                spent = now
    torch.set_grad_enabled(was)
    kept.clear()
    assert captured <= 6 and full.count <= 6
    assert len(set(messages())) == len(messages()), messages()


def test_is_told_once_and_why():
    f = cresset.compile(raises)
    with told() as messages:
        for _ in range(60):
            sure(f, torch.ones(3))
    (message,) = messages()
    assert "nothing came of its last captures" in message and "the call raised" in message and "raises" in message


def test_good_calls_are_compiled_again_after_bad_ones():
    def f(x):
        y = x * 2
        if x.dim() != 1:
            raise ValueError("rows")
        return y + 1

    g = cresset.compile(f)
    for _ in range(12):
        assert sure(g, torch.ones(2, 2)) == "rows"
    x = torch.ones(3)
    for _ in range(40):
        assert torch.equal(g(x), f(x))
    before = cresset.stats()
    assert before["graphs"] == 1
    for _ in range(5):
        g(x)
    assert cresset.stats()["eager_calls"] == before["eager_calls"]


def test_a_mode_at_the_address_of_another_is_another():
    class Scaling(TorchFunctionMode):
        def __init__(self, scale):
            super().__init__()
            self.scale = scale

        def __torch_function__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            return out * self.scale if function is torch.Tensor.sin else out

    f = cresset.compile(lambda x: x.sin())
    x = torch.ones(3)
    for scale in range(1, 12):
        with Scaling(scale):
            got = f(x)
        assert torch.allclose(got, x.sin() * scale)
