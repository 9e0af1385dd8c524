"""Random programs behave as without the compiler. CRESSET_TEST_FULL=1: ten thousand of them; CRESSET_GENERATED and
CRESSET_GENERATED_SEED choose other programs."""

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


# Programs shrunk from random programs: name, body, and the reason for a remaining difference (None: there is none).
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
    ("slice_that_is_kept", "w.log.append(w.items[::-1])\nw.log[-1].append(7)", None),
    ("slice_that_is_returned", "s = w.items[1:]\ns[0] += 1\nreturn s, w.items[:], (*w.items,)[1:]", None),
    ("slices_in_slices", "w.log.append([w.items[:2], w.items[:2]])\nw.log[-1][0].append(len(w.log))", None),
    ("list_of_numbers_read", "w.log.append([float(x.mean()) + i for i in range(2)])", None),
    ("list_of_whole_numbers_read", "w.log.append([int(x.sum() * 5) + i for i in range(3)])", None),
    (
        "list_of_a_generator_that_reads",
        "def g(n):\n    for i in range(n):\n        yield float(x.mean()) + i\nw.log.append([(v, 1) for v in g(2)])",
        None,
    ),
    ("division_by_data", "1 / int(x.sum() > 0.1357)", None),
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
    (
        "state_read_as_a_list",
        "print(len(w.items), str([int(v * 2.71) for v in w.weight.tolist()[:2]]), file=out)\nfor v13 in rows(torch.where(x > 0.1234, x, x), w.log):\n    w.weight.add_(v13.detach() * 0.1)",
        None,
    ),
    (
        "state_read_as_integers",
        "w.log.append([int(v * 2.71) for v in w.weight.tolist()[:2]])\nw.weight.add_(x[0].detach() * 0.1)",
        None,
    ),
    (
        "reversed_slice_between_pieces",
        "for v12 in reversed(w.items[:2]):\n    print(len(w.items), str([i for i in [1] if i != v12]), file=out)\nw.items.reverse()",
        None,
    ),
    ("extend_by_symbols", "w.n += 1\nw.items.extend((i + 1 for i in list(map(lambda i: i + w.n, [1]))[:2]))", None),
    (
        "extend_by_sums",
        "w.items.reverse()\nprint(table['a'], repr((lambda: len(w.items))()), file=out)\nw.items.extend((i + 1 for i in [a + b for a, b in zip(w.items, range(9))][:2]))",
        None,
    ),
    (
        "quotient_of_products_in_a_list",
        "v1 = v2 = x.numel()\nfor v12 in (i * i for i in [i * v2 for i in range(3)][:3]):\n    v19 = 0\n    v2 = (v12 - v19) // 3\n    print(apply(lambda a, b=2: a + b, v12), f'{w.n}', file=out)\nv1 = v2 + -2 or v1\nw.items += [v1]",
        None,
    ),
    ("division_by_a_number_of_state", "1 / (w.n % 5)\nw.n += 1", None),
    (
        "division_by_nothing",
        "try:\n    1 / (w.n * 0)\nexcept ZeroDivisionError as e:\n    w.n += 1; w.log.append(str(e))",
        None,
    ),
    (
        "floor_division_by_state",
        "try:\n    w.log.append(7 // (w.n % 3))\nexcept ZeroDivisionError as e:\n    w.log.append(str(e))\nw.n += 1",
        None,
    ),
    (
        "remainder_by_state",
        "try:\n    w.log.append(7 % (w.n % 3))\nexcept ZeroDivisionError as e:\n    w.log.append(str(e))\nw.n += 1",
        None,
    ),
    (
        "divmod_by_state",
        "try:\n    w.log.append(divmod(7, (w.n % 3)))\nexcept ZeroDivisionError as e:\n    w.log.append(str(e))\nw.n += 1",
        None,
    ),
    (
        "float_division_by_state",
        "try:\n    w.log.append(7.5 / (w.n % 3)); w.log.append(7.5 // (w.n % 3)); w.log.append(7.5 % (w.n % 3))\nexcept ZeroDivisionError as e:\n    w.log.append(str(e))\nw.n += 1",
        None,
    ),
    (
        "numbers_beyond_64_bits",
        "for v1 in (i * i for i in [a + b for a, b in zip(w.items, range(9))][:3]):\n    w.items.insert(0, v1)",
        None,
    ),
    (
        "constant_tuple_twice",
        "w.log.append(collections.OrderedDict(a=Box((None, None))))",
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
