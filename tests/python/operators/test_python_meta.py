"""No operator's first call imports Dynamo or sympy. torch's meta kernels in Python do, and are asked for no sizes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest
import torch
from compare import clone, outcome
from opdb import arguments, compare_sample, operators, samples

import cresset

FULL = os.environ.get("CRESSET_TEST_FULL") == "1"
HIDDEN = ("sympy", "torch._dynamo", "torch.fx.experimental.symbolic_shapes")
PARTS = 4


class Noted:
    """Imports of hidden modules fail, and are recorded: op_db itself has imported them long before."""

    def __init__(self):
        self.names = []

    def find_spec(self, name, path=None, target=None):
        if name in HIDDEN:
            self.names.append(name)
            raise ImportError(f"{name} is hidden")


@contextlib.contextmanager
def hidden():
    noted = Noted()
    saved = {name: sys.modules.pop(name) for name in HIDDEN if name in sys.modules}
    sys.meta_path.insert(0, noted)
    try:
        yield noted.names
    finally:
        sys.meta_path.remove(noted)
        sys.modules.update(saved)


def imported_by(op, sample):
    """Imports of a compiled call that eager mode does not make."""
    args, kwargs = arguments(sample)
    with hidden() as names:
        outcome(op, *clone((args, kwargs)))
    if names:
        return []
    cresset.reset()
    with hidden() as names:
        outcome(cresset.compile(lambda *a, **k: op(*a, **k)), *clone((args, kwargs)))
    return names


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int64], ids=["f32", "c64", "i64"])
def test_no_operator_imports_dynamo(dtype, part):
    found = {}
    for op in operators(dtype)[part::PARTS]:
        for sample in samples(op, dtype, 3 if FULL else 1):
            if names := imported_by(op, sample):
                found[op.full_name] = names[0]
    assert not found


PROGRAMS = {
    "complex arithmetic": "(x + 1j) * (x - 2) / (x * 1j).exp().abs()",
    "a complex product and its parts": "torch.view_as_real((x * 1j) @ (x * 1j).mT).sum()",
    "distances": "torch.cdist(x.detach(), x.detach()) + torch.nn.functional.pdist(x.detach()).sum()",
    "special functions": "torch.special.bessel_j0(x.detach()) + torch.special.i1e(x) + torch.special.zeta(x.detach() + 2, 1.5)",
    "gcd": "torch.gcd(x.long(), x.long() + 6)",
    "windows": "torch.hann_window(x.shape[0]) + torch.kaiser_window(x.shape[0])",
    "block_diag": "torch.block_diag(x, x * 2)",
    "pinv": "torch.linalg.pinv(x)",
    "renorm": "x.renorm(2, 0, 0.5)",
    "triu_indices": "torch.triu_indices(x.shape[0], x.shape[1]) + torch.tril_indices(x.shape[0], x.shape[0])[:, :1]",
    "draws": "torch.poisson(x.detach()) + torch._standard_gamma(x.detach() + 1)",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("grad", [False, True])
def test_programs_import_no_dynamo(name, grad):
    program = f"""
import sys, torch, cresset
def f(x):
    return {PROGRAMS[name]}
compiled = cresset.compile(f)
for n in (3, 4, 5):
    x = torch.rand(n, 4, generator=torch.Generator().manual_seed(n)).requires_grad_({grad})
    before = set(sys.modules)
    torch.manual_seed(0)
    expected = f(x.detach())
    before = before | set(sys.modules)
    torch.manual_seed(0)
    got = compiled(x)
    assert got.stride() == expected.stride() and got.dtype == expected.dtype, (got.stride(), expected.stride())
    torch.testing.assert_close(got.detach(), expected)
    if got.requires_grad and not got.is_complex():
        got.sum().backward()
print(*[name for name in {HIDDEN!r} if name in sys.modules and name not in before], cresset.stats()["graph_breaks"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=["c64", "c128"])
def test_complex_operators_of_all_layouts(dtype):
    """Strides of pointwise results, for operands that are transposed, expanded, or have gaps."""
    x = torch.randn(4, 6, dtype=dtype)
    layouts = [x, x.t().contiguous().t(), x[:1].expand(4, 6), x[:, ::2], x[::2].mT, x[:, None].expand(4, 3, 6)]
    functions = [
        lambda a: a + 1,
        lambda a: a * a.real,
        lambda a: (a.exp(), a.abs(), a.angle(), a == a, a.conj() * 2),
        lambda a: a / (a + 2),
        lambda a: torch.where(a.real > 0, a, a * 2),
        lambda a: torch.addcmul(a, a, a, value=2),
        lambda a: a * torch.arange(a.shape[-1]),
    ]
    for f in functions:
        cresset.reset()
        compiled = cresset.compile(f)
        for a in layouts:
            expected, got = f(a), compiled(a)
            pairs = zip(expected, got) if isinstance(expected, tuple) else [(expected, got)]
            for e, g in pairs:
                assert (g.dtype, g.stride(), g.is_conj()) == (e.dtype, e.stride(), e.is_conj())
                torch.testing.assert_close(g, e)


def factors_of(*sizes, dtype):
    return torch.linalg.lu_factor(torch.randn(*sizes, dtype=dtype) + 3 * torch.eye(*sizes[-2:], dtype=dtype))


# Of factors and pivots (lu), square ones (square) and right-hand sides b: operators whose rules serve complex numbers.
COMPLEX_RULES = {
    "lu_unpack": lambda lu, square, b: torch.lu_unpack(*lu),
    "lu_unpack without pivots": lambda lu, square, b: torch.lu_unpack(*lu, unpack_pivots=False)[1:],
    "lu_unpack without data": lambda lu, square, b: torch.lu_unpack(*lu, unpack_data=False)[:1],
    "lu_solve": lambda lu, square, b: torch.lu_solve(b, *square),
    "linalg.lu_solve": lambda lu, square, b: torch.linalg.lu_solve(*square, b),
    "of the adjoint": lambda lu, square, b: torch.linalg.lu_solve(*square, b, adjoint=True),
    "from the right": lambda lu, square, b: torch.linalg.lu_solve(*square, b.mT, left=False),
    "of conjugated sides": lambda lu, square, b: torch.linalg.lu_solve(*square, b.conj()),
    "masked_scatter": lambda lu, square, b: b.masked_scatter(b.real > 0, b * 2),
    "masked_scatter of a row": lambda lu, square, b: b[..., :1, :].masked_scatter(b.real > 0, b * 2),
    "masked_scatter of conjugated numbers": lambda lu, square, b: b.conj().masked_scatter(b.real > 0, b.conj()),
    "masked_scatter in place": lambda lu, square, b: b.clone().masked_scatter_(b.real > 0, b * 2),
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=["c64", "c128"])
@pytest.mark.parametrize("name", COMPLEX_RULES)
def test_rules_of_complex_operators(name, dtype):
    """No import, one graph, and the layouts of eager mode, for batches and for tall and wide matrices."""
    f = COMPLEX_RULES[name]
    for batch, rows, columns in [((), 4, 3), ((), 5, 6), ((2,), 3, 5), ((3, 2), 6, 4)]:
        inputs = (
            factors_of(*batch, rows, columns, dtype=dtype),
            factors_of(*batch, rows, rows, dtype=dtype),
            torch.randn(*batch, rows, columns, dtype=dtype),
        )
        expected = f(*inputs)
        cresset.reset()
        with hidden() as names:
            got = cresset.compile(f)(*inputs)
        assert not names
        assert cresset.stats()["graph_breaks"] == 0
        pairs = zip(expected, got) if isinstance(expected, tuple) else [(expected, got)]
        for e, g in pairs:
            assert (g.dtype, g.shape, g.stride(), g.is_conj()) == (e.dtype, e.shape, e.stride(), e.is_conj())
            torch.testing.assert_close(g, e)


def test_draws_are_the_same_after_a_capture():
    """The runs for finding sizes draw no random numbers of the program."""

    def f(x):
        return torch.poisson(x), torch._standard_gamma(x), torch.binomial(x, x * 0 + 0.5)

    x = torch.rand(3, 4) + 2
    torch.manual_seed(3)
    expected = f(x), torch.rand(2)
    torch.manual_seed(3)
    got = cresset.compile(f)(x), torch.rand(2)
    torch.testing.assert_close(got, expected)


def test_samples_are_right_where_nothing_can_be_imported():
    """Operators without a rule in cresset: the CPU kernel's answers for a few sizes hold for others."""
    names = {"cdist", "linalg.pinv", "renorm", "block_diag", "gcd", "polygamma", "lgamma", "linalg.eigh", "cumprod"}
    for op in operators(torch.float32):
        if op.name in names:
            for sample in samples(op, torch.float32, 4):
                cresset.reset()
                compare_sample(op, cresset.compile(lambda *a, op=op, **k: op(*a, **k)), sample)
