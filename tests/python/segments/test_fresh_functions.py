"""Compilation of a function does not depend on earlier work in the process. A new function, even with the same code,
makes the same graphs and graph breaks, and runs as often eagerly, as in a new process. The programs here are programs
with feedback from calls."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

import cresset

COUNTS = ("graphs", "graph_breaks", "eager_calls", "eager_fallbacks", "backward_graphs")


def ones(n=3):
    return torch.ones(n)


def passes(f):
    """The gradients of three calls."""
    out = []
    for n in (3, 4, 5):
        x = ones(n).requires_grad_()
        f(x).backward()
        out.append(x.grad)
    return out


# Each makes a function, and gives the calls of it.


def breaks_in_a_key_function():
    def f(x):
        rows = sorted([x, x * 2, x * 0], key=lambda t: t.sum().item())
        return rows[0] + rows[2]

    return f, lambda f: [f(ones(n)) for n in (3, 4, 5)]


def breaks_in_reduce():
    def f(x):
        return functools.reduce(lambda a, b: a + float(b.sum()), [x, x * 2], x * 3)

    return f, lambda f: [f(ones(n)) for n in (3, 4, 5)]


class Loud:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        print("added", float(self.x.sum()))
        return Loud(self.x + other.x)


def breaks_in_an_operator():
    return lambda x: (Loud(x) + Loud(x * 2)).x * 2, lambda f: [f(ones(n)) for n in (3, 4, 5)]


def key_that_is_hashed_with_effects():
    class Key:
        count = 0

        def __hash__(self):
            Key.count += 1
            return 1

        def __eq__(self, other):
            return self is other

    table, key = {}, Key()

    def f(x):
        table[key] = x.shape[0]
        return x * 2

    return f, lambda f: [f(ones(n)) for n in (3, 4, 5)] + [Key.count]


def hook_that_prints():
    def f(x):
        y = x * 2
        y.register_hook(lambda g: print("gradient", float(g.sum())))
        return (y * y).sum()

    return f, passes


class Branching(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x if float(g.sum()) > 0 else g * 0


def backward_that_branches():
    return lambda x: (Branching.apply(x * 2) + 1).sum(), passes


def checkpoint_that_breaks():
    def inner(x):
        print("inside", float(x.sum()))
        return x.sin() * 2

    def f(x):
        return checkpoint(inner, x * 2, use_reentrant=False).sum()

    return f, passes


def retained_gradient():
    kept = []

    def f(x):
        y = x * 2
        y.retain_grad()
        kept.append(y)
        return (y * y).sum()

    def calls(f):
        out = []
        for n in (3, 4, 5):
            f(ones(n).requires_grad_()).backward()
            out.append(kept[-1].grad)
        return out

    return f, calls


def gradient_inside():
    def f(x):
        y = (x * x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return y + g.sum()

    return f, lambda f: [f(ones(n).requires_grad_()).detach() for n in (3, 4, 5)]


def index_into_a_list():
    table = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]
    return lambda x, i: x * table[i], lambda f: [f(ones(), i) for i in (0, 1, 2, 3, 4, 5, 6)]


def key_that_varies():
    seen = {}

    def f(x, i):
        seen[i] = seen.get(i, 0) + 1
        return x * len(seen)

    return f, lambda f: [f(ones(), i) for i in (3, 4, 5, 6, 7, 8, 9)] + [dict(seen)]


def loop_of_many_lengths():
    def f(x, n):
        for i in range(n):
            x = x + i
        return x

    return f, lambda f: [f(ones(), n) for n in (2, 3, 4, 5, 6)]


def number_of_an_operator():
    def f(x, n):
        return torch.histc(x, bins=n, min=0, max=2)

    return f, lambda f: [f(ones(8), n) for n in range(3, 14)]


def list_that_grows():
    history = []

    def f(x):
        history.append(x * 2)
        return torch.stack(history).sum(0)

    return f, lambda f: [f(ones()) for _ in range(11)]


def list_of_lengths_among_arguments():
    def f(xs):
        return torch.cat(xs) * 2

    return f, lambda f: [f([ones()] * n) for n in range(1, 13)]


def dictionary_that_grows():
    seen = {}

    def f(x, i):
        seen[i] = i
        return x * len(list(seen.values()))

    return f, lambda f: [f(ones(), i) for i in range(10)]


def generator_from_outside():
    def f(g, x):
        return x * next(g) + next(g)

    return f, lambda f: [f(iter_numbers(), ones(n)) for n in (3, 4, 5)]


def iter_numbers():
    yield 2.0
    yield 3.0


def cached_function():
    calls_of_it = []

    @functools.cache
    def table(n):
        calls_of_it.append(n)
        return n * 2

    return lambda x: x * table(x.shape[0]), lambda f: [f(ones(n)) for n in (3, 4, 5, 6)] + [len(calls_of_it) > 0]


def context_variable():
    variable = contextvars.ContextVar("v", default=0)

    def f(x):
        variable.set(variable.get() + 1)
        return x * 2

    return f, lambda f: [f(ones(n)) for n in (3, 4, 5)] + [variable.get()]


def inference_with_a_break():
    def f(x):
        with torch.inference_mode():
            y = x * 2
            if y.sum() > 0:
                y = y + 1
        return x + y

    return f, lambda f: [f(ones(n)) for n in (3, 4, 5)]


def address_that_is_kept():
    known = {}

    def f(x):
        key = object()
        known["last"] = id(key)
        return x * 2

    return f, lambda f: [f(ones(n)) for n in (3, 4, 5)]


def text_that_varies():
    return lambda x, s: x * len(s), lambda f: [f(ones(), "a" * n) for n in range(3, 18)]


def transform_with_a_break():
    def inner(x):
        print("rows", x.shape[0])
        return x.sin()

    return lambda x: torch.vmap(inner)(x[None] * 2)[0], lambda f: [f(ones(n)) for n in (3, 4, 5)]


def module_under_many_breaks():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))

    def f(x):
        for layer in m:
            x = layer(x)
            print("mean", round(float(x.mean()), 3))
        return x

    return f, lambda f: [f(ones().expand(n, 3)).detach() for n in (1, 2, 3)]


PROGRAMS = {
    f.__name__: f
    for f in (
        breaks_in_a_key_function,
        breaks_in_reduce,
        breaks_in_an_operator,
        key_that_is_hashed_with_effects,
        hook_that_prints,
        backward_that_branches,
        checkpoint_that_breaks,
        retained_gradient,
        gradient_inside,
        index_into_a_list,
        key_that_varies,
        loop_of_many_lengths,
        number_of_an_operator,
        list_that_grows,
        list_of_lengths_among_arguments,
        dictionary_that_grows,
        generator_from_outside,
        cached_function,
        context_variable,
        inference_with_a_break,
        address_that_is_kept,
        text_that_varies,
        transform_with_a_break,
        module_under_many_breaks,
    )
}


def listed(results):
    return [(r * 1e4).round().tolist() if isinstance(r, torch.Tensor) else r for r in results]


def run(name, compile):
    """(results and printed output, counts)."""
    make = PROGRAMS[name]
    f, calls = make()
    before = cresset.stats()
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = listed(calls(compile(f)))
    after = cresset.stats()
    return [results, printed.getvalue()], {k: after[k] - before[k] for k in COUNTS}


def run_each_in_a_process():
    for name in PROGRAMS:
        sys.stdout.flush()
        if os.fork() == 0:
            print(json.dumps([name, run(name, cresset.compile)[1]]), flush=True)
            os._exit(0)
        os.wait()


@pytest.fixture(scope="module")
def alone():
    """Counts of each program in a process of its own."""
    code = "import test_fresh_functions as t; t.run_each_in_a_process()"
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def history():
    """All programs, twice, in both orders: the history of the process before a test."""
    for name in (*PROGRAMS, *reversed(PROGRAMS)):
        run(name, cresset.compile)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fresh_function_knows_nothing(name, alone, history):
    expected, _ = run(name, lambda f: f)
    for _ in range(2):
        got, counts = run(name, cresset.compile)
        assert got == expected
        assert counts == alone[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_learns_for_itself(name):
    """Two functions with the same code take turns: each is compiled as if it were alone."""
    make = PROGRAMS[name]

    def counts_of(functions):
        before = cresset.stats()
        for f, calls in functions:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                calls(f)
        after = cresset.stats()
        return {k: after[k] - before[k] for k in COUNTS}

    def compiled():
        f, calls = make()
        return cresset.compile(f), calls

    one = counts_of([compiled()])
    both = counts_of([compiled(), compiled()])
    assert both == {k: 2 * n for k, n in one.items()}


def test_explain_tells_what_was_learned():
    told = cresset.explain(lambda x: (Loud(x) + Loud(x * 2)).x * 2)(ones())
    assert any("is an opaque call" in text and "test_fresh_functions.py" in text for text in told.learned)
    assert "learned: " in str(told)


def test_reset_forgets_what_was_learned():
    f, calls = PROGRAMS["breaks_in_an_operator"]()
    compiled = cresset.compile(f)
    calls(compiled)
    assert cresset._C.learned(compiled)
    cresset.reset()
    assert not cresset._C.learned(compiled)
