"""Complex tensors and numbers: one compilation for all sizes, in both passes."""

from __future__ import annotations

import pytest
import torch
from compare import assert_same

import cresset

SIZES = ((3, 4), (5, 7), (1, 2), (2, 1), (6, 3), (1, 1))

OPERATORS = {
    "product and conjugate": lambda x: (x * x.conj()).abs() + x.angle(),
    "exponentials": lambda x: torch.exp(1j * x.real) * 2,
    "matrices": lambda x: (x @ x.mH).real.sum(-1) + (x @ x.mT).abs().sum(-1),
    "polar": lambda x: torch.polar(x.abs(), x.angle()).sum(),
    "rotary": lambda x: torch.view_as_real(x * torch.polar(torch.ones(x.shape[-1]), torch.arange(x.shape[-1]).float())),
    "spectra": lambda x: torch.fft.ifft(torch.fft.fft(x) * x.shape[-1]),
    "sums": lambda x: x.sum(0) + x.mean(-1, keepdim=True).squeeze(-1).sum(),
    "choice": lambda x: torch.where(x.real > 0, x, x * 2),
    "quotient": lambda x: 1 / (x + 2) + x.sqrt(),
    "prod": lambda x: x.prod(),
    "prod of a dimension": lambda x: x.prod(0),
    "cumprod": lambda x: x.cumprod(-1),
    "selected": lambda x: x[x.real > -9].sum(),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("wants", [False, True])
def test_one_compilation_for_all_sizes(name, wants):
    f = OPERATORS[name]
    compiled = cresset.compile(f)
    for size in SIZES:
        given, found = torch.randn(size, dtype=torch.complex64), []
        for call in (f, compiled):
            x = given.clone().requires_grad_(wants)
            y = call(x)
            if wants:
                (y.abs() if y.is_complex() else y).sum().backward()
            found.append((y.detach(), x.grad))
        torch.testing.assert_close(found[1], found[0])
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), (
        stats["recompiles"],
        stats["graph_break_reasons"],
    )


def _set(x):
    y = x.clone()
    y[0] = 1j
    return y


NUMBERS = {
    "arithmetic": lambda x: 2j * x + 1j - x / (1 + 1j) + 1j / x,
    "scaled sums": lambda x: torch.add(x, x, alpha=1j) + torch.sub(x, x, alpha=2j) + torch.addcmul(x, x, x, value=2j),
    "reversed": lambda x: torch.rsub(x, 1j),
    "powers": lambda x: x**2j + 2j**x,
    "filled": lambda x: torch.full(x.shape, 1j) + torch.full_like(x, 1 + 2j) + x.new_full((x.size(1),), 3j),
    "written": lambda x: x.clone().fill_(1j),
    "masked": lambda x: x.masked_fill(x.real > 0, 2j),
    "choice": lambda x: torch.where(x.real > 0, x, 1j) + torch.where(x.real > 0, 2j, x),
    "compared": lambda x: (x == 1j) | (x != 1j),
    "an element": _set,
    "of a real tensor": lambda x: x.real * 1j + x.real.double() * 1j,
    "in place": lambda x: x.clone().add_(2j).mul_(1j),
}


@pytest.mark.parametrize("name", NUMBERS)
@torch.no_grad()
def test_complex_numbers_stay_in_the_program(name):
    f = NUMBERS[name]
    compiled = cresset.compile(f)
    for size in SIZES[:4]:
        x = torch.randn(size, dtype=torch.complex64)
        assert_same(compiled(x), f(x))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), (
        stats["recompiles"],
        stats["graph_break_reasons"],
    )


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_zeros_among_complex_factors(zeros):
    x = torch.randn(2, 3, dtype=torch.complex128)
    x.view(-1)[:zeros] = 0
    for f in (torch.prod, lambda x: x.prod(1), lambda x: x.cumprod(1)):
        found = []
        for call in (f, cresset.compile(f)):
            leaf = x.clone().requires_grad_()
            call(leaf).abs().sum().backward()
            found.append(leaf.grad)
        torch.testing.assert_close(found[1], found[0])
