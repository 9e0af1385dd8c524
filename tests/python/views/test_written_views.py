"""Views of every kind, written and read: values of the argument and of the memory around it, results with their
strides, bits and memory positions, version counters, gradients (written_views.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from written_views import VIEWS, chains, difference, of, table

import cresset


def wrong_among(programs):
    found = [f"{p.text()}{why}" for p in programs if (why := difference(p)) is not None]
    return f"{len(found)} of {len(programs)} differ\n" + "\n".join(found[:3]) if found else ""


@pytest.mark.parametrize("view", VIEWS)
def test_every_write_to_every_view(view, full):
    seeds, step = (range(3), 1) if full else (range(1), 3)
    programs = [p for seed in seeds for p in table(seed, [view])][::step]
    assert len(programs) >= 8 and programs[0].lines[0] == f"a = {of(view, 'x')}"
    assert not (wrong := wrong_among(programs)), wrong


@pytest.mark.parametrize("seed", range(8))
def test_chains_of_views(seed, full):
    assert not (wrong := wrong_among(list(chains(seed, 400 if full else 25)))), wrong


CONJUGATED = {
    "add to the conjugate of columns": lambda x: x[:, 1:3].conj().add_(1),
    "multiply the conjugate of rows": lambda x: x[::2].conj().mul_(1j),
    "fill the adjoint of columns": lambda x: x[:, 1:3].mH.fill_(3),
    "resolved, it is a copy": lambda x: x.conj().resolve_conj().neg_(),
    "imaginary part of a conjugate": lambda x: x.conj().imag.add_(1),
    "real part of an adjoint": lambda x: x.mH.real.mul_(3),
    "negative imaginary part of a part": lambda x: x[1:, ::2].conj().imag.fill_(5),
    "twice conjugated": lambda x: x.conj().t().conj().add_(1j),
    "an element": lambda x: x.adjoint()[1].__setitem__(2, 7j),
    "copied into": lambda x: x[2].conj().copy_(x[0]),
    "as_strided of a conjugate": lambda x: x.conj().as_strided((2, 2), (5, 1)).add_(1j),
    "as_strided of a negated part": lambda x: x.conj().imag.as_strided((3,), (4,), 1).mul_(2),
    "numbers of a negated view": lambda x: torch.view_as_real(torch._neg_view(x)).add_(1),
    "lists": lambda x: torch._foreach_mul_([x[1:3].mT, x[0].real], 2),
}


@pytest.mark.parametrize("late", [False, True], ids=["captured", "given up late"])
@pytest.mark.parametrize("name", CONJUGATED)
def test_writes_through_conjugates(name, late):
    def f(x):
        view = x.conj()
        if late:
            x.flatten()[:1].tolist()
        CONJUGATED[name](x)
        return view, x.is_conj(), view.is_conj(), view * 1, x.sum()

    found = []
    for call in (f, cresset.compile(f)):
        x = torch.arange(16.0).reshape(4, 4).to(torch.complex64) * (1 + 2j)
        found.append([call(x), x, call(x)])
    assert torch.utils._pytree.tree_all(lambda ok: ok, torch.utils._pytree.tree_map(same_value, *found))


def same_value(a, b):
    if not isinstance(a, torch.Tensor):
        return a == b
    flags = a.is_conj() == b.is_conj() and a.is_neg() == b.is_neg() and a.stride() == b.stride()
    return flags and torch.equal(a.resolve_conj().resolve_neg(), b.resolve_conj().resolve_neg())


PLACED = {
    "of a part": (lambda b: b[4:], lambda x: x[1:].as_strided((3,), (2,)).neg_()),
    "at an offset": (lambda b: b[4:], lambda x: x.view(-1).as_strided((3,), (2,), 5).neg_()),
    "of data": (lambda b: b[2:], lambda x: x.data.as_strided((2,), (1,)).mul_(10)),
    "of another dtype": (lambda b: b, lambda x: x.view(torch.int32).as_strided((2,), (1,)).fill_(7)),
    "of larger elements": (lambda b: b, lambda x: x.view(torch.complex64).as_strided((2,), (3,), 1).mul_(2j)),
    "of smaller elements": (lambda b: b[3:], lambda x: x.view(torch.int16)[2:].as_strided((3,), (2,)).zero_()),
    "where it is": (lambda b: b[3:], lambda x: x[1:].as_strided((3,), (2,), x.storage_offset() + 2).neg_()),
    "of columns": (lambda b: b.view(4, 4)[:, 1], lambda x: x.as_strided((2, 2), (4, 1)).neg_()),
    "of a turned part": (lambda b: b[4:12].view(2, 4).t(), lambda x: x.as_strided((3,), (1,)).neg_()),
    "over columns, by all of it": (lambda b: b.view(4, 4)[:, 1], lambda x: x.as_strided(x.shape, x.stride()).neg_()),
    "in place": (lambda b: b[5:], lambda x: x[2:].as_strided_((2,), (3,)).mul_(3)),
}


@pytest.mark.parametrize("name", PLACED)
def test_as_strided_counts_in_the_storage(name):
    make, write = PLACED[name]

    def f(x):
        write(x)
        return x * 1

    found = []
    for call in (f, cresset.compile(f)):
        base = torch.arange(16.0)
        found.append([call(make(base)), base, call(make(base)), base._version > 1])
    assert torch.utils._pytree.tree_all(lambda ok: ok, torch.utils._pytree.tree_map(same_value, *found))


COPIES = {
    "copy": lambda x: torch.as_strided_copy(x, (2, 2), (4, 1)),
    "copy at an offset": lambda x: torch.as_strided_copy(x, (2, 2), (4, 1), 1),
    "scatter": lambda x: torch.as_strided_scatter(x, torch.zeros(2, 2), (2, 2), (4, 1)),
    "scatter at an offset": lambda x: torch.as_strided_scatter(x, torch.zeros(2), (2,), (2,), x.storage_offset() + 1),
    "copy of a view": lambda x: torch.as_strided_copy(x.t(), (2,), (1,)),
    "copy into": lambda x: torch.as_strided_copy(x, (2,), (4,), out=torch.zeros(2)),
}
ARGUMENTS = {
    "dense": lambda: torch.arange(16.0).reshape(4, 4),
    "with gaps": lambda: torch.arange(16.0).reshape(4, 4)[:, ::2],
    "inside its storage": lambda: torch.arange(32.0)[8:24].view(4, 4),
    "turned": lambda: torch.arange(32.0)[4:20].view(4, 4).t(),
}


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("name", COPIES)
def test_copies_by_strides_after_a_write(name, argument):
    def f(x):
        return COPIES[name](x.add_(1))

    found = []
    for call in (f, cresset.compile(f)):
        found.append([call(ARGUMENTS[argument]()), call(ARGUMENTS[argument]())])
    assert torch.utils._pytree.tree_all(lambda ok: ok, torch.utils._pytree.tree_map(same_value, *found))


COPIES_OF_VIEWS = {
    "clone": lambda v: v.clone(),
    "times one": lambda v: v * 1,
    "minus zero": lambda v: v - 0,
    "to the same dtype": lambda v: v.to(v.dtype, copy=True),
}
OTHER_ELEMENTS = {
    "smaller": lambda x: x.view(torch.int16),
    "equal": lambda x: x.view(torch.int32),
    "larger": lambda x: x.view(torch.float64),
    "parts": lambda x: torch.view_as_real(x.view(torch.complex64)),
    "pairs": lambda x: torch.view_as_complex(x.view(-1, 2)),
    "negated": lambda x: torch._neg_view(x),
}


@pytest.mark.parametrize("view", OTHER_ELEMENTS)
@pytest.mark.parametrize("copy", COPIES_OF_VIEWS)
def test_copies_of_views_have_memory_of_their_own(copy, view):
    compiled = cresset.compile(lambda x: COPIES_OF_VIEWS[copy](OTHER_ELEMENTS[view](x)))
    for _ in range(2):
        x = torch.arange(8.0)
        expected = COPIES_OF_VIEWS[copy](OTHER_ELEMENTS[view](x)).clone()
        got = compiled(x)
        x.zero_()
        assert torch.equal(got.resolve_neg(), expected.resolve_neg())


HANGS = [
    "torch.view_as_real(x).as_strided((2,), (1,)).add_(1)",
    "x.real.add_(1); x.imag.swapaxes(0, 1).mul_(2)",
    "x.mH.as_strided_((2,), (1,)).add_(1)",
    "torch._foreach_add_([x.real, x.imag], 1)",
    "x.imag.unflatten(0, (2, -1)).neg_()",
    "x.real.scatter_reduce_(0, torch.zeros(4, 4, dtype=torch.int64), torch.ones(4, 4), 'sum')",
    "x.conj().imag[1:].tolist(); x.conj().imag.add_(1)",
    "v = x.real; v.add_(1); v.tolist(); v.mul_(2)",
    "v = x.conj().t(); v.tolist(); v[1:].imag.mul_(2)",
]
HANG = """
import torch, cresset
def f(x):
    {}
    return x * 1, x.real
def run(f, make):
    leaf = torch.complex(torch.arange(64.0), torch.ones(64)).requires_grad_()
    x = make(leaf * 1)
    seen = []
    for r in f(x):
        seen.append(r.tolist())
        (torch.view_as_real(r) if r.is_complex() else r).square().sum().backward(retain_graph=True)
    return seen, leaf.grad.tolist()
for make in (lambda b: b[:16].view(4, 4), lambda b: b[:32].view(4, 8)[:, ::2], lambda b: b[:16].view(4, 4).real + 0j):
    g = cresset.compile(f)
    assert run(f, make) == run(g, make) == run(g, make)
"""


@pytest.mark.parametrize("write", HANGS)
def test_autograd_asks_for_histories_while_it_holds_its_locks(write):
    """In its own process: a thread that waits for itself waits forever."""
    run = subprocess.run(
        [sys.executable, "-c", HANG.format(write)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
