"""Random programs do what they do without the compiler. CRESSET_TEST_FULL=1: ten thousand of them; CRESSET_GENERATED and
CRESSET_GENERATED_SEED choose others."""

from __future__ import annotations

import os

import pytest
import torch
from program_compare import compare, program_of, shrink
from program_generator import generate
from program_grammar import MAKE, PRELUDE

import cresset

FULL = os.environ.get("CRESSET_TEST_FULL", "") not in ("", "0")
COUNT = int(os.environ.get("CRESSET_GENERATED", 10000 if FULL else 300))
FIRST = int(os.environ.get("CRESSET_GENERATED_SEED", 0))
BATCH = 50


def evaluated(f):
    return cresset.compile(f, options={"frontend": "evaluate"})


def differs(source):
    return compare(source, evaluated)


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_generated(first):
    failures = []
    for seed in range(first, min(first + BATCH, FIRST + COUNT)):
        source = generate(seed)
        with torch.set_grad_enabled(seed % 2 == 0):
            what = differs(source)
            if what is not None:
                small = shrink(source, differs) if not failures else source
                failures.append(f"seed {seed}: {what}\n{program_of(source)}\nshrunk:\n{program_of(small)}")
        cresset.reset()
    assert not failures, "\n\n".join(failures)


# Programs that random ones were shrunk to: name, body, and why it differs still (None: it does not).
FOUND = [
    ("symbol_in_set", "return [{1, x.numel()}]", None),
    ("symbol_formatted", "print(len(w.items), f'{x.shape[0]:>4d}', file=out)", None),
    ("symbol_in_slice", "v = x.shape[0]\nw.items[0:1] = [v]", None),
    ("symbol_in_cell", "v = x.shape[0]\ndef g(t): return t * v\nprint(w.n, file=out)\nw.n = v % 11", None),
    ("symbol_matched", "match x.shape[0]:\n    case int(v) if v > 2: w.items.append(v)\n    case _: pass", None),
    ("size_by_number", "w.items += [i * x.shape[0] for i in range(2)]", None),
    ("absolute_size", "return x[: abs(x.shape[0] - 5)], abs(x.shape[0])", None),
    (
        "bits_of_size",
        "n = x.shape[0]\nreturn n & 1, n | 4, n ^ 1, n << 1, n >> 1, 1 << n, ~n, +n, n.real, 6 & n, divmod(n, 2), divmod(7, n)",
        None,
    ),
    ("list_read_by_star", "return x * len([*w.items]), w.items.append(1)", None),
    ("tuple_read_by_star", "return x * sum((*w.items, 0)), w.items.append(1)", None),
    ("dict_read_by_star", "w.names[len(w.log)] = 0; w.log.append(1)\nreturn x * len({**w.names})", None),
    ("set_read_by_star", "w.log.append(1); w.seen.add(len(w.log))\nreturn x * len([*w.seen])", None),
    ("rest_of_a_list", "a, *b = w.items\nw.items.append(1)\nreturn x * len(b)", None),
    ("star_arguments", "w.items.append(1)\nreturn x * apply(lambda *a: len(a), *w.items)", None),
    (
        "division_by_data",
        "1 / int(x.sum() > 0.1357)",
        "a number read from data is a symbol: nothing divides by it when the quotient is not used",
    ),
    (
        "break_in_generator_loop",
        "for a in (i * i for i in [3, 1]):\n    for b in list(w.names):\n        out.write(f'{x.shape[0]};')",
        None,
    ),
    (
        "extend_by_generator",
        "print(w.names.get('z', counter), str([*w.items, w.n]), file=out)\ntry:\n    int('q')\nexcept ValueError as e:\n    w.items.extend((i + 1 for i in [1][::-1][:2]))",
        None,
    ),
]


@pytest.mark.parametrize("name,body,why", FOUND, ids=[name for name, _, _ in FOUND])
def test_found(request, name, body, why):
    if why is not None:
        request.applymarker(pytest.mark.xfail(reason=why, strict=True))
    lines = "\n".join("    " + line for line in body.split("\n"))
    what = differs(PRELUDE + MAKE + "\n\ndef f(w, x):\n" + lines + "\n")
    cresset.reset()
    assert what is None
