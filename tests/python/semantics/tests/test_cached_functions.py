"""Functions of functools.lru_cache with sizes as arguments: a single program for all sizes where they only compute,
eager's calls and eager's cache where they have side effects."""

import functools
import types

import pytest
import torch
from compare import assert_same, clone

import cresset

SIZES = [(3, 8, 4), (2, 12, 5), (1, 6, 4), (5, 4, 7), (3, 8, 4)]


class Recipe:
    def __init__(self, order, grouped):
        self.order, self.grouped = order, grouped


@functools.lru_cache(256)
def prepare(pattern, operation, names, ndim):
    left, right = pattern.split("->")
    if len(left.split()) != ndim:
        raise ValueError(f"{pattern} of {ndim} dimensions")
    order = [left.split().index(axis) for axis in right.replace("(", "").replace(")", "").split()]
    return Recipe(order, [axis.strip("()") for axis in right.split()])


def shapes(recipe, shape, lengths):
    """Shapes as einops computes them: lists and dictionaries of sizes, and errors that report sizes."""
    known = dict(lengths)
    final = [shape[i] for i in recipe.order]
    if "h" in known:
        whole, rest = final[-1], known["h"]
        if whole % rest != 0:
            raise ValueError(f"{whole} is no multiple of {rest}")
        final[-1:] = [rest, whole // rest]
    return final, {len(final): known.get("h", 1)}, tuple(final[:1]), None


cached_shapes = functools.lru_cache(1024)(shapes)


def rearrange(x, pattern, **lengths):
    recipe = prepare(pattern, "rearrange", names=tuple(lengths), ndim=x.dim())
    final, added, first, _ = cached_shapes(recipe, tuple(x.shape), tuple(lengths.items()))
    return x.permute(recipe.order).reshape(final) * added[len(final)] + first[0]


def check(make, calls, graphs=None):
    """Two functions made by `make()`, with separate caches: a compiled function and an eager function."""
    eager = make()
    cresset.reset()
    compiled = cresset.compile(make())
    for args in calls:
        outcomes = []
        for g in (eager, compiled):
            try:
                outcomes.append(g(*clone(args)))
            except ValueError as e:
                outcomes.append((type(e), e.args))
        assert_same(outcomes[1], outcomes[0])
    stats = cresset.stats()
    if graphs is not None:
        assert stats["graphs"] == graphs, (stats["recompiles"], stats["graph_break_reasons"])


def inputs():
    return [(torch.randn(size),) for size in SIZES]


def test_shapes_are_recipes_of_sizes():
    def make():
        return lambda x: (
            rearrange(x, "b n c -> c b n", h=1) + rearrange(x * 2, "b n c -> c b n", h=2).flatten(-2)[..., None, :]
        )

    check(make, inputs(), graphs=1)
    assert cresset.stats()["graph_breaks"] == 0


def test_gradients():
    model = torch.nn.Linear(4, 6)

    def f(x):
        return rearrange(model(x), "b n c -> n b c", h=3).sum((0, 1))

    compiled = cresset.compile(f)
    cresset.reset()
    for batch in (3, 1, 4):
        x = torch.randn(batch, 5, 4)
        grads = []
        for g in (f, compiled):
            model.zero_grad()
            g(x).square().sum().backward()
            grads.append(model.weight.grad.clone())
        assert_same(grads[1], grads[0])
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == 0


def test_errors_are_those_of_the_function():
    check(
        lambda: lambda x: rearrange(x, "b n c -> c b n", h=2),
        [(torch.randn(2, 4, 3),), (torch.randn(2, 5, 3),), (torch.randn(2, 6),)],
    )


def test_methods():
    class A:
        def __init__(self):
            self.k = 3

        @functools.lru_cache(None)  # noqa: B019
        def pads(self, n, *, both=False):
            return [n % self.k, n // self.k if both else 0]

    def make():
        a = A()
        return lambda x: torch.nn.functional.pad(x, a.pads(x.shape[1], both=True)) + a.pads(x.shape[0])[0]

    check(make, inputs(), graphs=1)


def test_functions_with_effects_run_as_often_as_in_eager():
    def make():
        seen = []

        @functools.lru_cache(None)
        def half(n):
            seen.append(n)
            return n // 2

        return lambda x: (x * half(x.shape[1]), list(seen), half.cache_info())

    check(make, inputs())


def test_tensors_that_are_kept_are_the_same_ones():
    def make():
        @functools.lru_cache(None)
        def mask(n):
            return torch.ones(n, n).tril()

        return lambda x: (mask(x.shape[1]) @ x, mask(x.shape[1]) is mask(x.shape[1]), mask.cache_info())

    check(make, inputs())


def test_what_was_kept_before_something_changed_is_given():
    def make():
        state = types.SimpleNamespace(scale=2)

        @functools.lru_cache(None)
        def scaled(n):
            return n * state.scale

        def f(x, scale):
            state.scale = scale
            return x + scaled(x.shape[1])

        assert scaled(8) == 16
        return f

    x = torch.randn(3, 8)
    check(make, [(x, 3), (x, 2), (x, 3)])


@pytest.mark.parametrize(
    "result", ["object()", "(n, [n, {'a': (n, n * 2.5)}])", "{n: n}", "f'{n}'", "{n}", "n > 4", "None"]
)
def test_results_of_all_kinds(result):
    def make():
        names = {}
        exec(f"import functools\n@functools.lru_cache(None)\ndef g(n): return {result}", names)
        g = names["g"]
        return lambda x: (x + 1, g(x.shape[1]) if "object" not in result else g(x.shape[1]) is g(x.shape[1]))

    check(make, inputs())


def test_asked_about_classes():
    """Classes of C code, of the program, and made in the call: the cache's entries for classes hold for later calls."""
    asked = functools.lru_cache(None)(lambda classes: sum(len(c.__mro__) for c in classes))

    class Old:
        pass

    def f(x, o):
        class Made(type(o)):
            factor = 3

        return x * asked(type(o).__mro__) + asked((Made, object)), asked((int, type(x)))

    compiled = cresset.compile(f)
    for o in (Old(), Old(), 3.5, Old(), 3.5):
        x = torch.randn(3)
        got, expected = compiled(x, o), f(x, o)
        assert torch.equal(got[0], expected[0]) and got[1] == expected[1]
    stats = cresset.stats()
    assert (stats["graph_breaks"], stats["eager_calls"]) == (0, 0), stats["graph_break_reasons"]
