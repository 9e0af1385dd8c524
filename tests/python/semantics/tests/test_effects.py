"""Side effects happen once, in the order of the program, with eager's values, over several calls."""

from __future__ import annotations

import programs.breaks as programs_breaks
import programs.effects as programs_effects
import pytest
import torch
from compare import assert_same, clone, outcome

import cresset

ROWS = programs_effects.ROWS + programs_breaks.ROWS


def _traced(function, world):
    """The tracing front end does not see state outside modules: each call is a first call."""
    return lambda x: cresset.trace(lambda x: function(world, x))(x)


def _evaluated(function, world):
    return cresset.compile(lambda x: function(world, x), options={"frontend": "evaluate"})


FRONT_ENDS = {"trace": _traced, "evaluate": _evaluated}


@pytest.fixture(params=FRONT_ENDS)
def front_end(request):
    """(function of (world, x), world) -> the compiled function of x."""
    return FRONT_ENDS[request.param]


# Programs beyond the tracing front end.
TRACE_LIMITS = dict.fromkeys(
    ("keep_shape", "mask_select", "size_lives_on"),
    "a symbolic number that was stored stays one: its value is right, its type is not int",
)


def run(compile, function, make, inputs):
    """The results of several calls in the same world, and their side effects."""
    w = make()
    call = compile(function, w)
    given, results = [], []
    torch.manual_seed(0)
    for input in inputs:
        x = clone(input())
        given.append(x)
        result, raised = outcome(call, (x,), {})
        results.append(result)
        results.append(None if raised is None else (type(raised).__name__, list(raised.args)))
    return results, given, vars(w)


@pytest.mark.parametrize("name,make,function,inputs", ROWS, ids=[r[0] for r in ROWS])
@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
def test_effects(request, front_end, name, make, function, inputs, grad):
    if name in TRACE_LIMITS and "trace" in request.node.name:
        request.applymarker(pytest.mark.xfail(reason=TRACE_LIMITS[name], strict=True))
    with torch.set_grad_enabled(grad):
        expected = run(lambda f, w: lambda x: f(w, x), function, make, inputs)
        got = run(front_end, function, make, inputs)
    assert_same(got, expected)
