"""A table of programs that make a chain of views of an argument and write through the last view: every view, every
write, beside dtypes, layouts of the argument and gradients. (Random programs about views: view_program_generator.py.)
"""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

DTYPES = {"complex": torch.complex64, "float": torch.float32, "int": torch.int64}

# Views of a view `v`. A view of an unsuitable dtype or shape is skipped where eager mode raises.
VIEWS = (
    "v[1:]", "v[::2]", "v[:, 1:3]", "v[..., 0]", "v[1]", "v[None]", "v.t()", "v.mT", "v.transpose(0, -1)",
    "v.permute(1, 0)", "v.movedim(0, -1)", "v.swapaxes(0, 1)", "v.unsqueeze(1)", "v.squeeze()", "v.view(-1)",
    "v.reshape(2, -1)", "v.flatten()", "v.unflatten(0, (2, -1))", "v.diagonal()", "v.diagonal(1)", "v.unfold(0, 2, 2)",
    "v.narrow(-1, 1, 2)", "v.split(2)[1]", "v.chunk(2, -1)[1]", "v.unbind(-1)[1]", "v.tensor_split(2)[0]",
    "v.detach()", "v.data", "v.view_as(v)", "v.expand_as(v)", "torch.ops.aten.alias(v)", "v.select(-1, 1)",
    "v.as_strided((2, 2), (2, 1))", "v.as_strided((3,), (2,))", "v.as_strided(v.shape, v.stride())",
    "v.as_strided((2,), (1,), 5)", "v.as_strided((2,), (3,), v.storage_offset() + 1)",
    "v.conj()", "v.mH", "v.adjoint()", "v.resolve_conj()", "v.resolve_neg()", "v.real", "v.imag",
    "torch.view_as_real(v)", "torch.view_as_complex(v)", "torch._neg_view(v)", "torch.real(v)", "v.T", "v.H",
    "v.view(torch.int32)", "v.view(torch.float32)", "v.view(torch.complex64)", "v.view(torch.int16)",
    "v.contiguous()", "v.squeeze(0)", "v.swapdims(0, -1)", "torch.atleast_2d(v)", "v.positive()",
)  # fmt: skip
WRITES = (
    "v.add_(1)", "v.mul_(2)", "v.neg_()", "v.fill_(3)", "v.zero_()", "v.copy_(v.clone() * 3)", "v[0] = 5", "v[...] = 7",
    "v[v.abs() > 4] = 2", "v.masked_fill_(v.abs() > 4, 1)", "torch._foreach_add_([v], 1)", "torch._foreach_mul_([v], 3)",
    "v.sub_(v.clone())", "v.addcmul_(v.clone(), v.clone())", "v += v.clone()", "torch.add(v.clone(), 1, out=v)",
    "v.index_fill_(0, torch.tensor([0]), 9)", "v.index_add_(0, torch.tensor([0]), v[:1].clone())", "v.square_()",
    "v.clamp_(2, 5)", "v.conj_physical_()", "v.mul_(1j)", "v.t_()", "v.unsqueeze_(0).add_(2)", "v.sin_()",
    "v.index_put_((torch.tensor([0]),), v[:1] * 2)", "v.flatten()[0].fill_(4)", "v.copy_(v.clone().flip(0))",
    "v.scatter_(0, torch.zeros_like(v, dtype=torch.int64), 6)", "torch._foreach_copy_([v], [v.clone() * 2])",
    "v[:1].zero_()", "v.T.add_(2)", "v.lerp_(v.clone() * 2, 0.5)", "v.transpose_(0, -1).mul_(2)",
    "torch._foreach_neg_([v, v.clone()])", "v.as_strided_((2,), (1,)).add_(1)",
)  # fmt: skip
# Reads of the last view, beside the view itself and the argument.
READS = (
    "v * 1", "v.sum()", "v.clone()", "v.conj()", "v.real * 1", "v.imag", "v.is_conj()", "v.is_neg()", "v.stride()",
    "v.is_contiguous()", "torch.as_strided_copy(v, (2, 2), (2, 1))", "v.contiguous()", "v.resolve_conj()",
    "torch.as_strided_scatter(v, v.new_zeros(2, 2), (2, 2), (2, 1))", "v.as_strided((2, 2), (2, 1)) * 1", "v.view(-1)",
    "v @ v.mH", "v.storage_offset()", "v.detach()", "v.t()", "v.tolist()", "torch._neg_view(v)", "v.as_strided((2,), (1,))",
)  # fmt: skip
# Arguments from a base with 64 elements.
ARGUMENTS = {
    "dense": "b[:16].view(4, 4)",
    "offset": "b[5:21].view(4, 4)",
    "gapped": "b.view(8, 8)[:4, ::2]",
    "block": "b.view(8, 8)[2:6, 3:7]",
    "turned": "b[8:24].view(4, 4).t()",
    "row": "b[3:11]",
    "column": "b.view(8, 8)[:, 2]",
    "pairs": "b[4:28].view(3, 4, 2)",
    "one": "b[4:8].view(1, 4)",
    "images": "b.view(2, 4, 2, 4).permute(0, 3, 1, 2)",
}


@dataclass(frozen=True)
class Program:
    dtype: str
    argument: str
    grad: bool
    lines: tuple[str, ...]  # each makes the next variable, or writes to a variable
    results: tuple[str, ...]

    def source(self) -> str:
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def f(x):\n{body}    return {', '.join(self.results)},\n"

    def function(self) -> Callable:
        space: dict = {"torch": torch}
        exec(compile(self.source(), "<program>", "exec"), space)
        return space["f"]

    def given(self) -> tuple[Tensor | None, Tensor, Tensor]:
        """The leaf for gradients, the base, and the argument."""
        b = torch.arange(1.0, 65.0) if self.dtype != "int" else torch.arange(1, 65)
        if self.dtype == "complex":
            b = torch.complex(b, b.flip(0) / 2)
        leaf = b.requires_grad_() if self.grad else None
        base = leaf * 1 if self.grad else b
        return leaf, base, eval(ARGUMENTS[self.argument], {"b": base})

    def text(self) -> str:
        return f"# {self.dtype}, {ARGUMENTS[self.argument]}, {'gradients' if self.grad else 'no gradients'}\n{self.source()}"


def plain(t: Tensor) -> Tensor:
    return t.detach().resolve_conj().resolve_neg().clone()


def described(value, storages: dict[int, str]):
    if not isinstance(value, Tensor):
        return value
    with torch.no_grad():
        strides = [st for size, st in zip(value.shape, value.stride()) if size > 1] if value.numel() else []
        memory = storages.get(value.untyped_storage().data_ptr())
        place = (memory, value.storage_offset()) if memory is not None and value.numel() else None
        flags = (value.is_conj(), value.is_neg(), value.requires_grad, place)
        return str(value.dtype), tuple(value.shape), strides, flags, plain(value)


def observed(program: Program, wrap: Callable, calls: int = 2) -> list:
    """The caller's view of the program, call by call."""
    f, seen = wrap(program.function()), []
    for _ in range(calls):
        leaf, base, x = program.given()
        before, held = base._version, plain(base)
        try:
            results = f(x)
        except Exception as error:
            seen += [type(error).__name__, str(error).splitlines()[0] if str(error) else "", plain(base)]
            continue
        storages = {base.untyped_storage().data_ptr(): "base"}
        seen += [described(r, storages) for r in results]
        counted = base._version > before or torch.equal(base, held)  # of the written tensor
        seen += [plain(base), plain(x), x.shape, x.stride(), counted, x.requires_grad]
        if leaf is not None:
            seen += gradients(leaf, base, [r for r in results if isinstance(r, Tensor)])
    return seen


def gradients(leaf: Tensor, base: Tensor, results: list[Tensor]) -> list:
    wanted = [r for r in [*results, base] if r.requires_grad and (r.is_floating_point() or r.is_complex())]
    try:
        total = sum((torch.view_as_real(r.resolve_conj()) if r.is_complex() else r).square().sum() for r in wanted)
        if not isinstance(total, Tensor):
            return [None]
        (found,) = torch.autograd.grad(total, leaf, allow_unused=True)
        return [found if found is None else plain(found)]
    except Exception as error:
        return [type(error).__name__]


def same(a, b) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-4 * max(abs(a), abs(b)) or (a != a and b != b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def difference(program: Program) -> str | None:
    """The place where the compiled program differs from eager mode."""
    import cresset

    cresset.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, got = observed(program, lambda f: f), observed(program, cresset.compile)
    for i, (a, b) in enumerate(zip(got, expected)):
        if not same(a, b):
            return f"observation {i}:\n{a}\ninstead of\n{b}"
    return None if len(got) == len(expected) else f"{len(got)} observations instead of {len(expected)}"


def runs(program: Program) -> bool:
    """Whether eager mode accepts it: table rows must not be about exceptions alone."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program.function()(program.given()[2])
    except Exception:
        return False
    return True


def of(template: str, name: str) -> str:
    """The template with another name for `v` (a word of its own)."""
    return re.sub(r"(?<![\w.])v(?!\w)", name, template)


def table(seed: int = 0, views: Iterable[str] = VIEWS) -> Iterator[Program]:
    """Every view with every write: dtypes, arguments, gradients and reads are drawn."""
    for view, write in itertools.product(views, WRITES):
        yield from accepted(random.Random(f"{seed} {view} {write}"), (view,), (write,))


def chains(seed: int, count: int) -> Iterator[Program]:
    """Chains of two and three views, some written before the last of them."""
    draw = random.Random(seed)
    made = 0
    while made < count:
        views = tuple(draw.choice(VIEWS) for _ in range(draw.randint(2, 3)))
        for program in accepted(draw, views, tuple(draw.choice(WRITES) for _ in range(draw.randint(1, 2))), tries=4):
            made += 1
            yield program


def accepted(draw: random.Random, views, writes, tries: int = 40) -> Iterator[Program]:
    """A program accepted by eager mode."""
    for _ in range(tries):
        dtype, argument = draw.choice(list(DTYPES)), draw.choice(list(ARGUMENTS))
        grad = dtype != "int" and draw.random() < 0.5
        program = program_of(dtype, argument, grad, views, writes)
        if not runs(program):
            continue
        read = of(draw.choice(READS), "abc"[len(views) - 1])
        more = Program(dtype, argument, grad, program.lines, (*program.results, read))
        yield more if runs(more) else program
        return


def program_of(dtype: str, argument: str, grad: bool, views, writes) -> Program:
    """The last write goes to the last view, an earlier write to the first view."""
    lines = [f"{'abc'[i]} = {of(v, 'xabc'[i])}" for i, v in enumerate(views)]
    last = "abc"[len(views) - 1]
    early = [of(w, "a") for w in writes[:-1]]
    return Program(dtype, argument, grad, (lines[0], *early, *lines[1:], of(writes[-1], last)), (last, "x * 1"))
