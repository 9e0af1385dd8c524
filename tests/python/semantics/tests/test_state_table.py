"""Every kind of state in every place, read by compiled functions over calls with changes in between."""

import ast
import collections
import contextvars
import copy
import dataclasses
import functools
import itertools
import math
import operator
import pickle
import random
import sys
import threading
import types

import container_table
import programs.state_programs as state_programs
import pytest
import state_table
import torch
from state_table import VALUES, plain

import cresset

NAMES = {
    "ast": ast,
    "collections": collections,
    "contextvars": contextvars,
    "copy": copy,
    "dataclasses": dataclasses,
    "functools": functools,
    "itertools": itertools,
    "math": math,
    "operator": operator,
    "pickle": pickle,
    "random": random,
    "sys": sys,
    "threading": threading,
    "types": types,
    "torch": torch,
    **{n: v for n, v in vars(state_table).items() if not n.startswith("__")},
    **{n: v for n, v in vars(container_table).items() if not n.startswith("__")},
}


def outcome(function, *args):
    try:
        return plain(function(*args))
    except Exception as e:
        return type(e).__name__, str(e)[:300]


def at_location(compiled, location, kind):
    prelude, store, read = state_table.LOC[location]
    before, after, expression = VALUES[kind]
    names = dict(NAMES)
    torch.manual_seed(0)
    exec(f"{prelude}\ndef f(x):\n    v = {read}\n    return {expression}\n", names)
    store, f, values, out = compile(store, "<store>", "exec"), compiled(names["f"]), [before(), after()], []
    for i in (0, 0, 1, 1, 0):
        names["val"] = values[i]
        exec(store, names)
        out.append(outcome(f, torch.arange(3.0) + 1))
    return out


@pytest.mark.parametrize("location", state_table.LOC)
def test_state_found_at(location):
    for kind in VALUES:
        expected = at_location(lambda f: f, location, kind)
        cresset.reset()
        assert at_location(cresset.compile, location, kind) == expected, kind


def change(container, name):
    """In place where possible."""
    if isinstance(container, (container_table.MMap, collections.ChainMap, container_table.MU)):
        inner = container.maps[1] if isinstance(container, collections.ChainMap) else None
        inner = container.v if isinstance(container, container_table.MMap) else inner
        container = container if inner is None else inner
    if isinstance(container, container_table.MSeq):
        container = container.v
    if name in container_table.SETS:
        container.discard(1)
        container.update([7, 4])
    elif name in container_table.MAPS:
        container["a"], container["b"] = 7, 5
    else:
        container[0] = 7
        container.append(4)


def with_container(compiled, name, expression):
    names, w, out = dict(NAMES), types.SimpleNamespace(), []
    kinds = {**container_table.SEQ, **container_table.MAPS, **container_table.SETS}
    exec(f"def f(w, x):\n    c = w.c\n    r = {expression}\n    return x + 1, r\n", names)
    f, mapping = compiled(names["f"]), {"a": 1, "k": 2}
    w.c = kinds[name](mapping if name in container_table.MAPS else [1, 2, 3])
    random.seed(0)
    for i in range(5):
        if i == 2 and name in ("tuple", "MT", "fs"):
            w.c = kinds[name]([7, 2, 3, 4])
        elif i == 2:
            change(mapping if name == "proxy" else w.c, name)
        if i == 4:
            w.c = kinds[name]({"a": 1, "k": 2} if name in container_table.MAPS else [1, 2, 3])
        out.append(in_order(outcome(f, w, torch.arange(3.0))))
    return out


def in_order(value):
    """The items of a set have no order."""
    if isinstance(value, tuple) and value and value[0] in ("set", "frozenset", "MS"):
        return value[0], sorted(value[1])
    return type(value)(in_order(v) for v in value) if isinstance(value, (list, tuple)) else value


READS = [
    *((name, container_table.SEQR) for name in container_table.SEQ),
    *((name, container_table.MAPR) for name in container_table.MAPS),
    *((name, container_table.SETR) for name in container_table.SETS),
]


@pytest.mark.parametrize("name,expressions", READS, ids=[name for name, _ in READS])
def test_container_is_read(name, expressions):
    for expression in expressions:
        expected = with_container(lambda f: f, name, expression)
        cresset.reset()
        assert with_container(cresset.compile, name, expression) == expected, expression


def program(compiled, row):
    prelude, store, expression = row
    names, out = dict(NAMES), []
    torch.manual_seed(0)
    exec(f"{prelude}\ndef f(x):\n    r = {expression}\n    return x + 1, r\n", names)
    f = compiled(names["f"])
    for i in range(5):
        if i == 3:
            exec(store, names)
        out.append(outcome(f, torch.arange(3.0)))
    state = names.get("w")
    if hasattr(state, "__dict__") and not isinstance(state, (list, dict)):
        state = {k: v for k, v in vars(state).items() if k != "me"}
    return [*out, plain(state)]


class Box:
    n = 1


def test_what_was_found_unseen_is_not_trusted():
    variable, box = contextvars.ContextVar("state_table"), Box()
    variable.set(box)

    def f(x):
        found = [v for v in contextvars.copy_context().values() if isinstance(v, Box)]
        return x * found[0].n

    cresset.reset()
    compiled = cresset.compile(f)
    for n in (1, 1, 2, 2):
        box.n = n
        assert compiled(torch.ones(1)).item() == n
    stats = cresset.stats()
    assert stats["eager_calls"] == 4
    assert "found in a way that is not known" in stats["graph_break_reasons"][0]


@pytest.mark.parametrize("name", state_programs.PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_state_program(name):
    row = state_programs.PROGRAMS[name]
    try:
        expected = program(lambda f: f, row)
        cresset.reset()
        assert program(cresset.compile, row) == expected
    finally:
        import builtins

        for left in ("zz_b", "GG"):
            if hasattr(builtins, left):
                delattr(builtins, left)
