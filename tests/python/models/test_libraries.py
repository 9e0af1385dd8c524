"""Operators of other libraries, first used in a compiled call: torch binds them to Python at this moment, in internal
caches. The bindings are no writes of the program."""

from __future__ import annotations

import itertools

import pytest
import torch
from compare import same_structure

import cresset

_names = itertools.count()


class Library:
    """A library of operators before any use."""

    def __init__(self):
        self.name = f"cresset_test_{next(_names)}"
        self.library = torch.library.Library(self.name, "DEF")
        self.sizes_seen = 0

    def define(self, schema, kernel, fake=None, tags=()):
        name = schema.partition("(")[0]
        self.library.define(schema, tags=tags)
        self.library.impl(name, kernel, "CPU")
        if fake is not None:
            torch.library.register_fake(f"{self.name}::{name}", fake, lib=self.library)
        return self

    def python(self, name, function, fake=None, mutates=(), backward=None):
        """Defines the operator by the decorator."""
        made = torch.library.custom_op(f"{self.name}::{name}", function, mutates_args=mutates)
        if fake is not None:
            made.register_fake(fake)
        if backward is not None:
            made.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
        return self

    def __getattr__(self, name):
        return getattr(getattr(torch.ops, self.__dict__["name"]), name)


def doubled(library):
    library.define("double(Tensor x) -> Tensor", lambda x: x * 2, torch.empty_like)


def of_python(library):
    def triple(x: torch.Tensor, n: int = 3) -> torch.Tensor:
        return x * n

    library.python("triple", triple, lambda x, n=3: torch.empty_like(x))


def with_a_gradient(library):
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    library.python("cube", cube, torch.empty_like, backward=lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)


def that_writes(library):
    def add_one_(x: torch.Tensor) -> None:
        x.add_(1)

    library.python("add_one_", add_one_, lambda x: None, mutates=("x",))


def of_many_results(library):
    library.define(
        "both(Tensor x, float a) -> (Tensor, Tensor)",
        lambda x, a: (x + a, x.sum(0)),
        lambda x, a: (torch.empty_like(x), x.new_empty(x.shape[1:])),
    )


def of_lists(library):
    library.define(
        "total(Tensor[] xs, int[] ns) -> Tensor",
        lambda xs, ns: sum(x * n for x, n in zip(xs, ns)),
        lambda xs, ns: torch.empty_like(xs[0]),
    )
    library.define(
        "parts(Tensor x, SymInt n) -> Tensor[]",
        lambda x, n: [x[:n].clone(), x[n:].clone()],
        lambda x, n: [x.new_empty((n, *x.shape[1:])), x.new_empty((x.shape[0] - n, *x.shape[1:]))],
    )


def of_overloads(library):
    library.define("shift.Tensor(Tensor x, Tensor y) -> Tensor", lambda x, y: x + y)
    library.define("shift.Scalar(Tensor x, Scalar y) -> Tensor", lambda x, y: x + y)
    for overload in ("Tensor", "Scalar"):
        name = f"{library.name}::shift.{overload}"
        torch.library.register_fake(name, lambda x, y: torch.empty_like(x), lib=library.library)


def composite(library):
    library.library.define("twice_sin(Tensor x) -> Tensor")
    library.library.impl("twice_sin", lambda x: x.sin() * 2, "CompositeImplicitAutograd")


def without_a_fake_kernel(library):
    library.define("bare(Tensor x) -> Tensor", lambda x: x.cos() + x.shape[0])


def that_gives_a_number(library):
    library.define("count(Tensor x) -> int", lambda x: int((x > 0).sum()), lambda x: 0)


def of_sizes_that_data_gives(library):
    def fake(x):
        return x.new_empty((torch.library.get_ctx().new_dynamic_size(), x.dim()), dtype=torch.int64)

    library.define("places(Tensor x) -> Tensor", lambda x: x.nonzero(), fake, tags=(torch.Tag.dynamic_output_shape,))


def of_sizes_that_data_gives_by_the_decorator(library):
    def kept(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0]

    library.python("kept", kept, lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size()))


def of_bounded_sizes_that_data_gives(library):
    def fake(x):
        n = torch.library.get_ctx().new_dynamic_size(min=0, max=64)
        return x.new_empty(n), x.new_empty((n, 2))

    def kernel(x):
        kept = x[x > 0]
        return kept, torch.stack([kept, kept], 1)

    library.define("kept_twice(Tensor x) -> (Tensor, Tensor)", kernel, fake)


# The definition, and a program with it. `library` finds operators as programs do, by torch.ops.
PROGRAMS = {
    "packet": (doubled, lambda library, x: library.double(x) + 1),
    "overload": (doubled, lambda library, x: library.double.default(x + 1)),
    "getattr": (doubled, lambda library, x: getattr(torch.ops, library.name).double(x) * x.shape[0]),
    "twice": (doubled, lambda library, x: library.double(library.double.default(x))),
    "by a local name": (doubled, lambda library, x: [op(x) for op in (library.double, library.double.default)][1]),
    "schema": (doubled, lambda library, x: library.double(x) if "Tensor" in str(library.double.default._schema) else x),
    "overloads": (of_overloads, lambda library, x: library.shift(x, 2) + library.shift(x, x)),
    "overloads by name": (of_overloads, lambda library, x: library.shift.Scalar(x, 2) + library.shift.Tensor(x, x)),
    "all overloads": (of_overloads, lambda library, x: x * len(library.shift.overloads())),
    "of Python": (of_python, lambda library, x: library.triple(x).sin() + library.triple(x, 2)),
    "with a gradient": (with_a_gradient, lambda library, x: library.cube(x * 2).sum()),
    "of many results": (of_many_results, lambda library, x: library.both(x, 0.5)[0] + library.both(x.cos(), 2.0)[1]),
    "of lists": (of_lists, lambda library, x: library.total([x, x + 1], [2, 3]) + library.parts(x, 1)[0]),
    "of a list with a size": (of_lists, lambda library, x: library.parts(x * 2, x.shape[0] - 1)[1] + 1),
    "composite": (composite, lambda library, x: library.twice_sin(x) + 1),
}
# Operators with a graph break: right without fullgraph.
BREAKS = {
    "that writes": (that_writes, lambda library, x: (y := x * 2, library.add_one_(y), y + 1)[2]),
    "that writes an argument": (that_writes, lambda library, x: (library.add_one_(x), x * 2)[1]),
    "without a fake kernel": (without_a_fake_kernel, lambda library, x: library.bare(x + 1) * 2),
    "that gives a number": (that_gives_a_number, lambda library, x: x * library.count(x) + 1),
}
SIZES = {
    "of sizes that data gives": (
        of_sizes_that_data_gives,
        lambda library, x: library.places(x > 0) * 2 + library.places(x).shape[1],
    ),
    "of sizes by the decorator": (
        of_sizes_that_data_gives_by_the_decorator,
        lambda library, x: library.kept(x).sin().sum() + library.kept(x * 2).shape[0],
    ),
    "of bounded sizes": (
        of_bounded_sizes_that_data_gives,
        lambda library, x: (lambda a, b: (a.sum(), b * 2))(*library.kept_twice(x)),
    ),
}


def observed(row, settings):
    define, program = row
    library = Library()
    define(library)
    f = (
        (lambda x: program(library, x))
        if settings is None
        else cresset.compile(lambda x: program(library, x), **settings)
    )
    for n in (3, 3, 4, 2):
        x = (torch.arange(2.0 * n).reshape(n, 2) - 2.5).requires_grad_(define is with_a_gradient)
        out = f(x)
        if out is not None and isinstance(out, torch.Tensor) and out.requires_grad:
            out.sum().backward()
        yield out, x.detach(), x.grad


@pytest.mark.parametrize("fullgraph", (False, True), ids=("pieces", "fullgraph"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_first_touched_in_a_compiled_call(name, fullgraph):
    for got, expected in zip(observed(PROGRAMS[name], {"fullgraph": fullgraph}), observed(PROGRAMS[name], None)):
        same_structure(got, expected)
        torch.testing.assert_close(got, expected)
    assert cresset.stats()["eager_calls"] == 0
    assert cresset.stats()["graphs"] <= 2 or not fullgraph, "a program for each call"


@pytest.mark.parametrize("name", [*BREAKS, *SIZES])
def test_right_in_pieces(name):
    """Only the first call runs eagerly, to find the possible places of graph breaks."""
    row, eager = {**BREAKS, **SIZES}[name], []
    for got, expected in zip(observed(row, {}), observed(row, None)):
        same_structure(got, expected)
        torch.testing.assert_close(got, expected)
        eager.append(cresset.stats()["eager_calls"])
    assert eager[0] <= 1 and eager[-1] == eager[0], cresset.stats()["graph_break_reasons"]


def test_namespace_that_does_not_exist():
    f = cresset.compile(lambda x: torch.ops.cresset_no_such_library.op(x))
    for _ in range(2):
        with pytest.raises(AttributeError, match="no attribute 'op'"):
            f(torch.ones(2))
