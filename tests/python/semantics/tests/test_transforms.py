"""The programs of the tables TABLES against eager: values, sharing, side effects, exceptions, over several calls with
changed state; and the programs that run wholly as compiled code.

python test_transforms.py [NAME ...]  prints the captures of each program
"""

from __future__ import annotations

import enum
import sys
from pathlib import Path

sys.path.extend(map(str, Path(__file__).resolve().parents[2].glob("*")))  # where this file is a script

import numpy as np
import programs.autograd as programs_autograd
import programs.contexts as programs_contexts
import programs.hooks as programs_hooks
import programs.objects as programs_objects
import programs.overrides as programs_overrides
import programs.transforms as programs_transforms
import pytest
import torch
import torch.utils.checkpoint
from compare import assert_same, leaves, outcome

import cresset

TABLES = (
    programs_transforms,
    programs_autograd,
    programs_hooks,
    programs_overrides,
    programs_objects,
    programs_contexts,
)
ROWS = [row for table in TABLES for row in table.ROWS]


def state_of(value):
    """The state for the comparison: a module's tensors and their gradients; for arrays the tensors with the same
    contents."""
    if isinstance(value, torch.nn.Module):
        tensors = {**dict(value.named_parameters()), **dict(value.named_buffers())}
        return {k: [v, v.grad if v.is_leaf else None] for k, v in tensors.items()}, value.training
    if isinstance(value, programs_overrides.Two):
        return ["Two", value.a, value.b]
    if isinstance(value, np.ndarray):
        return ["array", torch.from_numpy(value.copy())]
    if isinstance(value, np.generic):
        return [type(value).__name__, value.item()]
    if isinstance(value, torch.Tensor):
        plain = value.as_subclass(torch.Tensor) if type(value) is not torch.Tensor else value
        return [type(value).__name__, getattr(value, "label", None), plain]
    if isinstance(value, dict):
        return (
            type(value).__name__,
            {key(k, i): state_of(v) for i, (k, v) in enumerate(value.items())},
            attributes_of(value),
        )
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [state_of(v) for v in value], attributes_of(value)
    if hasattr(value, "__dict__") and not callable(value) and not isinstance(value, enum.Enum):
        return type(value).__name__, attributes_of(value)
    return value if isinstance(value, (int, float, str, type(None), torch.dtype)) else str(type(value))


def key(k, i):
    return i if isinstance(k, torch.Tensor) else str(k)


def attributes_of(value):
    own = getattr(value, "__dict__", {})
    return {k: state_of(v) for k, v in own.items() if not k.startswith("_") and k != "handles"}


def copied(state):
    """Copies of the present tensors."""
    if isinstance(state, torch.Tensor):
        return state.detach().clone().requires_grad_(state.requires_grad)
    if isinstance(state, dict):
        return {k: copied(v) for k, v in state.items()}
    return type(state)(copied(v) for v in state) if isinstance(state, (tuple, list)) else state


def sharing(state):
    """Identical tensors, and positions of tensors with the same storage."""
    objects, storages, found = {}, {}, []
    for path, t in leaves(state):
        if isinstance(t, torch.Tensor) and t.layout == torch.strided and t.numel():
            storage = objects.setdefault(id(t), path), storages.setdefault(t.untyped_storage().data_ptr(), path)
            found.append((path, *storage, t.storage_offset()))
    return found


def run(row, wrap):
    """The results of the calls, and their side effects."""
    _, make, function, inputs, between = row
    w = make()
    call = wrap(lambda x: function(w, x))
    torch.manual_seed(0)
    live, steps = [], []
    for i, x in enumerate(inputs()):
        if i and between is not None:
            between(w, i)
        result, raised = outcome(call, (x,), {})
        live.append([result, x])
        now = state_of([result, x, w])
        error = None if raised is None else [type(raised).__name__, str(raised)]
        steps.append([copied(now), sharing(now), error])
    torch.set_grad_enabled(True)
    return steps, copied(state_of(live)), torch.rand(1)


def evaluated(f):
    return cresset.compile(f, options={"frontend": "evaluate"})


def how(row):
    """Graph segments, graph breaks, eager fallbacks and eager calls of the program, and the reasons."""
    cresset.reset()
    run(row, evaluated)
    s = cresset.stats()
    reasons = [*s["graph_break_reasons"], *s.get("eager_reasons", [])]
    return s["graphs"], s["graph_breaks"], s["eager_fallbacks"], s["eager_calls"], reasons


# Differences from eager today: program, and reason.
KNOWN = {}


@pytest.mark.parametrize("row", ROWS, ids=[r[0] for r in ROWS])
def test_transforms(request, row):
    if row[0] in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[row[0]], strict=True))
    got, expected = run(row, evaluated), run(row, lambda f: f)
    assert_same(got, expected)


# Programs that run natively today, in part or as a whole (`python test_transforms.py NAME` prints the reason). A
# program that improves leaves the list.
NATIVE = set(
    """
    linearized break_at_a_level vmap_with_the_same_numbers vmap_beside_an_object_that_refuses_questions
    a_leaf_that_is_detached parametrization_that_is_assigned_to break_inside_vmap break_inside_grad
    number_read_inside_grad detected_anomaly gradients_after_the_call dispatch_mode_inside
    dispatch_mode_that_changes_results default_device_as_a_mode value_outside_the_support array_in_state
    kl_divergences generator_of_its_own inference_mode_with_a_break mode_with_a_break dispatch_mode_with_a_break
    tangent_through_normalization gradient_through_interpolation gradient_through_combinations
    gradient_through_attention
    """.split()  # noqa: SIM905
)

# The number of calls that find the work for autograd, and run natively; later calls do not.
LEARN = {"backward_hooks_of_modules": 2, "pruning_inside": 1}


@pytest.mark.parametrize("row", ROWS, ids=[r[0] for r in ROWS])
def test_is_captured(row):
    steps, *_ = run(row, lambda f: f)  # torch's work at first use is done here
    if row[0] in NATIVE or any(error for *_, error in steps):
        return
    graphs, _, stretches, eager, reasons = how(row)
    assert graphs > 0 and stretches == 0 and eager == LEARN.get(row[0], 0), reasons


def test_names_are_different():
    names = [row[0] for row in ROWS]
    assert len(set(names)) == len(names) and set(names) >= NATIVE


def f(x):
    return x.sin() * 2 + x.shape[0]


# Contexts around calls of compiled functions, and functions that take them.
AROUND = {
    "vmap": lambda g, x: torch.func.vmap(g)(x),
    "grad": lambda g, x: torch.func.grad(lambda v: g(v).sum())(x),
    "jvp": lambda g, x: torch.func.jvp(g, (x,), (torch.ones_like(x),)),
    "jacrev": lambda g, x: torch.func.jacrev(g)(x[0]),
    "forward_ad": lambda g, x: under_forward_ad(g, x),
    "dispatch_mode": lambda g, x: under(programs_overrides.Dispatched(), g, x),
    "function_mode": lambda g, x: under(programs_overrides.Functions([]), g, x),
    "replacing_mode": lambda g, x: under(programs_overrides.Replaced(), g, x),
    "autocast": lambda g, x: under(torch.autocast("cpu", torch.bfloat16), g, x),
    "inference_mode": lambda g, x: under(torch.inference_mode(), g, x),
    "subclass": lambda g, x: g(programs_overrides.named(x, "x")),
    "wrapper": lambda g, x: g(programs_overrides.Two(x, x * 2)),
    "checkpoint": lambda g, x: torch.utils.checkpoint.checkpoint(g, x.requires_grad_(), use_reentrant=False),
    "backward": lambda g, x: backward(g, x.requires_grad_()),
}


def under(mode, g, x):
    with mode:
        return g(x), g(x + 1)


def under_forward_ad(g, x):
    with torch.autograd.forward_ad.dual_level():
        out = g(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)))
        return list(torch.autograd.forward_ad.unpack_dual(out))


def backward(g, x):
    g(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("around", AROUND)
def test_around_the_call(around):
    """Before a plain call, after it, and again."""
    g, call = evaluated(f), AROUND[around]
    for i in range(3):
        x = programs_transforms.ramp(3, 4) + i
        assert_same(state_of(call(g, x.clone())), state_of(call(f, x.clone())))
        assert_same(g(x), f(x))


def main(names):
    for row in ROWS:
        if not names or row[0] in names:
            graphs, breaks, stretches, eager, reasons = how(row)
            print(f"{row[0]:45} {graphs:3} {breaks:3} {stretches:3} {eager:3}  {'; '.join(map(str, reasons))[:300]}")


if __name__ == "__main__":
    main(sys.argv[1:])
