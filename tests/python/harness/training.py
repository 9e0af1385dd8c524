"""Training programs, run by eager and compiled, compared in losses, parameters, gradients, buffers, optimizers' state
and the generator's state after every step.

A program is a function without arguments that returns a dictionary. `step` is the function of a step; `data` makes the
arguments of the step with a given number; modules, optimizers and containers follow, by name. Modules whose names begin
with an underscore are not compiled separately.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from compare import leaves
from torch import nn

import cresset

CALLS = 6


def table() -> tuple[dict[str, Callable], Callable]:
    """Programs by name, and the decorator for adding a program."""
    programs: dict[str, Callable] = {}

    def program(make: Callable) -> Callable:
        programs[make.__name__] = make
        return make

    return programs, program


def mlp(i: int, h: int, o: int) -> nn.Module:
    return nn.Sequential(nn.Linear(i, h), nn.GELU(), nn.Linear(h, o))


def xy(c: int, i: int = 8, k: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and classes of step c."""
    n = 6 + c
    return torch.randn(n, i), torch.randint(0, k, (n,))


def classifying(m: nn.Module, opt: torch.optim.Optimizer) -> dict[str, Any]:
    """The plain step of a classifier."""

    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(m(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return dict(m=m, opt=opt, step=step, data=xy)


def state_of(things: dict[str, Any]) -> list[tuple[str, Any]]:
    """Copies of all state that a step may change."""
    out: list[tuple[str, Any]] = [("generator", torch.get_rng_state())]
    for name, thing in things.items():
        if isinstance(thing, nn.Module):
            for key, parameter in thing.named_parameters():
                out.append((f"{name}.{key}", parameter.detach().clone()))
                out.append((f"{name}.{key}.requires_grad", parameter.requires_grad))
                gradient = parameter.grad
                if gradient is not None:
                    gradient = (gradient.to_dense() if gradient.is_sparse else gradient).detach().clone()
                out.append((f"{name}.{key}.grad", gradient))
            out += [(f"{name}.{key}", buffer.detach().clone()) for key, buffer in thing.named_buffers()]
            continue
        kept = thing.state_dict()["state"] if isinstance(thing, torch.optim.Optimizer) else thing
        out += copies(kept, name)
    return out


def copies(value: Any, name: str) -> list[tuple[str, Any]]:
    return [(path, t.detach().clone() if isinstance(t, torch.Tensor) else t) for path, t in leaves(value, name)]


def run(make: Callable[[], dict[str, Any]], mode: str) -> list[list[tuple[str, Any]]]:
    torch.manual_seed(0)
    things = make()
    step, data = things.pop("step"), things.pop("data")
    if mode == "model":
        for name, thing in things.items():
            if isinstance(thing, nn.Module) and not name.startswith("_"):
                thing.forward = cresset.compile(thing.forward)
    if mode == "step":
        step = cresset.compile(step)
    out = []
    for call in range(CALLS):
        torch.manual_seed(100 + call)
        batch = data(call)
        result = step(*batch)
        out.append(copies(result, "result") + state_of(things))
    return out


def same(got: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, torch.Tensor):
        if got.shape != expected.shape or got.dtype != expected.dtype:
            return False
        if not expected.is_floating_point():
            return torch.equal(got, expected)
        if expected.numel() == 0:
            return True
        a, b = got.double(), expected.double()
        return bool((a - b).abs().max() <= tolerance * max(b.abs().max().item(), 1e-3))
    if isinstance(expected, float):
        return type(got) is float and abs(got - expected) <= tolerance * max(abs(expected), 1e-3)
    return type(got) is type(expected) and got == expected


def check(make: Callable[[], dict[str, Any]], mode: str, tolerance: float = 5e-4) -> None:
    expected, got = run(make, "eager"), run(make, mode)
    for call, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert [path for path, _ in a] == [path for path, _ in b]
        for (path, mine), (_, its) in zip(a, b, strict=True):
            assert same(mine, its, tolerance), f"step {call}, {path}: {mine} instead of {its}"
