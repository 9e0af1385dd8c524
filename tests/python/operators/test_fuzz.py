"""Random tensor programs against eager, each over several shapes. A failure prints the program and its seed.

CRESSET_FUZZ=n: how many programs (default 60); CRESSET_FUZZ_SEED=s: the first seed.
"""

from __future__ import annotations

import os
import random

import pytest
import torch
from compare import assert_same_call, error, tensors

import cresset

COUNT = int(os.environ.get("CRESSET_FUZZ", 600 if os.environ.get("CRESSET_TEST_FULL") == "1" else 60))
FIRST = int(os.environ.get("CRESSET_FUZZ_SEED", 0))

# Values are matrices [n, m] and results of operators on them; each statement keeps numbers moderate.
UNARY = ["{x}.relu()", "{x}.tanh()", "{x}.sigmoid()", "-{x}", "{x}.abs()", "{x} * 0.5 + 1", "{x}.cos()", "{x}.square().clamp(max=4)",
         "{x}.exp().clamp(max=9)", "({x}.abs() + 1).log()", "torch.nn.functional.gelu({x})", "{x}.to(torch.bfloat16).float()",
         "torch.nn.functional.silu({x})", "{x}.erf()", "({x}.abs() + 0.5).rsqrt()", "{x}.double().float()"]  # fmt: skip
BINARY = ["{x} + {y}", "{x} - {y} * 0.25", "{x} * {y}.tanh()", "torch.maximum({x}, {y})", "torch.where({x} > {y}, {x}, {y} * 0.5)",
          "{x} / ({y}.abs() + 1)", "torch.lerp({x}, {y}, 0.3)", "torch.minimum({x}, {y})", "torch.where(({x} > 0) & ({y} < 1), {x}, 1.0)"]  # fmt: skip
# Shape-keeping combinations of reductions, views and products.
SHAPED = ["{x} - {x}.mean(-1, keepdim=True)", "torch.softmax({x}, -1)", "torch.softmax({x}, 0)", "{x} + {x}.sum(0)  * 0.1",
          "{x} * ({x}.amax(1, keepdim=True) > 0)", "torch.nn.functional.layer_norm({x}, {x}.shape[-1:])", "{x}.t().contiguous().t()",
          "{x}.flip(0)", "{x}.roll(1, 1)", "torch.cat([{x}[:, 1:], {x}[:, :1]], 1)", "{x}.reshape(-1).view({x}.shape)",
          "torch.stack([{x}, {y}], 0).mean(0)", "{x}.unsqueeze(0).expand(3, -1, -1).sum(0) / 3", "({x} @ {y}.t() @ {x}) / ({x}.shape[0] * {x}.shape[1])",
          "({x}.t() @ {y}).tanh()[:1].expand({x}.shape[0], -1)", "{x}.cumsum(1).clamp(-5, 5)", "{x} + torch.arange({x}.shape[1])",
          "{x}.tril() + {y}.triu()", "{x} + {x}.var(0, correction=0)", "{x}.t().reshape({x}.shape)", "torch.nn.functional.pad({x}, (1, 1))[:, 1:-1]",
          "{x}.clone().index_fill_(0, torch.tensor([0]), 0.5)", "{x}.gather(1, {x}.argsort(1))", "{x}[torch.arange({x}.shape[0] - 1, -1, -1)]"]  # fmt: skip
STATEMENTS = ["{x}.add_({y})", "{x}.mul_(0.5)", "{x}[0].fill_(1.0)", "{x}.t()[0].neg_()", "{x}[:, ::2].copy_({y}[:, ::2])",
              "{x}.view(-1)[0] = 2.0", "{x}.clamp_(-2, 2)", "{x}.masked_fill_({y} > 1, 0.0)", "{x}[-1:] += {y}[:1]"]  # fmt: skip
RETURNS = [
    "{x}",
    "{x}.sum()",
    "{x}.t()",
    "{x}.max(1).values",
    "{x}.mean(0)",
    "({x}, {x}.argmax())",
    "{x}.norm()",
    "{x}[..., 0]",
]

SHAPES = [(3, 5), (7, 4), (1, 6), (8, 1), (16, 33)]


def program(seed: int) -> str:
    """The source of a random function f(a, b)."""
    rng = random.Random(seed)
    names, lines = ["a", "b"], []
    for i in range(rng.randint(3, 14)):
        x, y = rng.choice(names), rng.choice(names)
        kind = rng.random()
        if kind < 0.15:
            x = rng.choice(names)
            # Not through a tensor that may be expanded or not viewable: a fresh copy, or an argument itself.
            if x not in "ab":
                lines.append(f"{x} = {x}.contiguous().clone()")
            lines.append(rng.choice(STATEMENTS).format(x=x, y=f"({y} + 0)"))
            continue
        pool = UNARY if kind < 0.45 else BINARY if kind < 0.7 else SHAPED
        lines.append(f"v{i} = " + rng.choice(pool).format(x=x, y=y))
        names.append(f"v{i}")
    results = ", ".join(rng.choice(RETURNS).format(x=rng.choice(names)) for _ in range(rng.randint(1, 3)))
    body = "\n    ".join([*lines, f"return {results}"])
    return f"def f(a, b):\n    {body}\n"


def function_of(source: str):
    scope = {"torch": torch}
    exec(source, scope)
    return scope["f"]


def is_ill_conditioned(function, x, y) -> bool:
    """Whether rounding alone may change the result: a comparison or a rounding step is close to its boundary."""
    generator = torch.Generator().manual_seed(0)
    exact = function(x.clone(), y.clone())
    for _ in range(4):
        near = [t * (1 + 2e-6 * torch.randn(t.shape, generator=generator)) for t in (x, y)]
        if any(error(a, b) > 1e-4 for (_, a), (_, b) in zip(tensors(function(*near)), tensors(exact))):
            return True
    return False


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
@torch.no_grad()
def test_random_program(seed):
    source = program(seed)
    function = function_of(source)
    compiled = cresset.compile(function)
    tolerance = 2e-2 if "bfloat16" in source else 2e-4
    # An expanded tensor may be reshaped as a view where a size is 1, with strides that no copy has (docs/semantics.md).
    strides = not ("expand(" in source and "reshape(" in source)
    generator = torch.Generator().manual_seed(seed)
    for shape in SHAPES:
        x, y = torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
        try:
            assert_same_call(function, compiled, x, y, tolerance=tolerance, strides=strides)
        except AssertionError as e:
            if not is_ill_conditioned(function, x, y):
                raise AssertionError(f"seed {seed}, shape {shape}:\n{source}\n{e}") from None
