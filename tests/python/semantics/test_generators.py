"""A break in a running generator, around a suspended one, while an exception is handled, in a call that C code made:
what eager gives, each effect once; and the calls after the first run in pieces, unless the table says why not."""

from __future__ import annotations

import programs_generators
import pytest
import torch
from compare import assert_same
from test_effects import _evaluated, run

import cresset

ROWS = programs_generators.ROWS

# Programs of which something runs natively from a break on, and why.
BY_C = "C code drives the generator, or calls the function, that asks for data"
NATIVE = dict.fromkeys(
    [
        "break_before_the_first",
        "sum_of_generator",
        "stack_of_generator",
        "list_of_generator",
        "dict_of_generator",
        "any_of_generator",
        "max_of_generator",
        "joined",
        "enumerated_generator",
        "zipped_generators",
        "mapped",
        "list_of_map",
        "sorted_by_data",
        "reduced",
        "filtered",
        "chained",
        "unpacked",
        "starred",
        "extended",
        "thrown_through_delegation",
        "operator_breaks",
        "length_breaks",
        "equality_breaks",
        "lru_cache_breaks",
        "getattr_breaks",
        "torch_function_breaks",
    ],
    BY_C,
) | {
    "handed_out": "a generator that state holds is another one at each call",
    "kept_in_state": "a generator that state holds is another one at each call",
    "stop_iteration_inside": "the evaluator does not tell that a generator's StopIteration became a RuntimeError",
    "redirected": "nothing is known of a StringIO",
    "post_init_breaks": "dataclass() runs exec()",
}


@pytest.mark.parametrize("name,make,function,inputs", ROWS, ids=[r[0] for r in ROWS])
@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
def test_generators(name, make, function, inputs, grad):
    cresset.reset()
    with torch.set_grad_enabled(grad):
        expected = run(lambda f, w: lambda x: f(w, x), function, make, inputs)
        got = run(_evaluated, function, make, inputs)
    assert_same(got, expected)
    stats = cresset.stats()
    native = stats["native_stretches"] + stats["eager_calls"] > 0
    assert native == (name in NATIVE), stats["graph_break_reasons"]
