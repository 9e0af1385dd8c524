"""torch.cond and torch.while_loop in compiled functions are operators of the graph: compared with plain Python."""

from __future__ import annotations

import sys

import pytest
import torch
import torch._higher_order_ops as loops
from compare import TORCH, assert_same
from torch.utils import _pytree as pytree

import cresset

scans = sys.modules["torch._higher_order_ops.associative_scan"]


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def choose(pred, true_fn, false_fn, operands=()):
    """The meaning of torch.cond."""
    return true_fn(*operands) if pred else false_fn(*operands)


def repeat(cond_fn, body_fn, carried):
    """The meaning of torch.while_loop."""
    carried = tuple(carried)
    while cond_fn(*carried):
        carried = tuple(body_fn(*carried))
    return carried


def ramp(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) - 2


def both(program, *inputs, graphs=1, breaks=0, **options):
    """The program with torch's operators, compiled, beside the same with Python's own."""
    cresset.reset()
    f = cresset.compile(lambda *args: program(torch.cond, loops.while_loop, *args), **options)
    for args in inputs:
        ours, theirs = [a.clone() for a in args], [a.clone() for a in args]
        assert_same(f(*ours), program(choose, repeat, *theirs))
        torch.testing.assert_close(ours, theirs)
    stats = cresset.stats()
    assert stats["eager_calls"] == 0, stats["graph_break_reasons"]
    if graphs is not None:
        assert (stats["graphs"], stats["graph_breaks"]) == (graphs, breaks), (
            stats["graph_break_reasons"],
            stats["recompiles"],
        )


OUTCOMES = [(ramp(2, 3),), (ramp(2, 3) + 10,), (ramp(4, 5),), (ramp(3, 3) - 100,), (ramp(2, 3),)]


@pytest.mark.parametrize("fullgraph", [False, True])
def test_cond(fullgraph):
    def program(cond, loop, x):
        y = cond(x.sum() > 20, lambda t: t.sin() + 1, lambda t: t.cos() * 2, (x,))
        return y + x

    both(program, *OUTCOMES, fullgraph=fullgraph)


@pytest.mark.parametrize("fullgraph", [False, True])
def test_closures_and_structures(fullgraph):
    weight = torch.full((3,), 0.5)

    def program(cond, loop, x):
        a, n = x * 2, x.shape[0]

        def yes(t):
            return {"y": t @ a.t() + n, "z": (weight * 2, "text", 3)}

        def no(t):
            return {"y": t @ x.t() - n, "z": (weight + 1, "text", 3)}

        out = cond(x.mean() > 1, yes, no, (x,))
        return out["y"].relu(), out["z"][0] + 1, out["z"][1:]

    both(program, (ramp(2, 3),), (ramp(2, 3) + 9,), (ramp(5, 3),), fullgraph=fullgraph)


def test_nested():
    def program(cond, loop, x):
        def inner(t):
            u = t * 3
            return cond(t.sum() > 50, lambda s: s + u, lambda s: s - u, (t,))

        return cond(x.sum() > 20, inner, lambda t: t * 2, (x,))

    both(program, *OUTCOMES, fullgraph=True)


def test_writes_of_a_branch():
    buffer = torch.zeros(3)

    def program(cond, loop, x):
        y = x + 1

        def yes(t):
            y.mul_(2)
            t[0] = 7
            return t.sum(0)

        def no(t):
            return t.mean(0) + buffer

        out = cond(x.sum() > 20, yes, no, (x,))
        return out, y, x * 2

    both(program, (ramp(2, 3),), (ramp(2, 3) + 9,), (ramp(4, 3),), fullgraph=True)


def test_results_are_tensors_of_their_own():
    def f(x):
        return torch.cond(x.sum() > 0, lambda t: t, lambda t: t.t().t(), (x,))

    g = cresset.compile(f, fullgraph=True)
    for x in (ramp(3, 3), -ramp(3, 3)):
        y = g(x)
        torch.testing.assert_close(y, x)
        assert y.data_ptr() != x.data_ptr()


def test_random_numbers_are_drawn_by_the_branch_that_is_taken():
    def program(cond, loop, x):
        torch.rand(2)
        y = cond(x.sum() > 20, lambda t: t + torch.rand_like(t), lambda t: t * 1, (x,))
        return y + torch.rand(1)

    cresset.reset()
    f = cresset.compile(lambda x: program(torch.cond, None, x), fullgraph=True)
    for (x,) in OUTCOMES:
        torch.manual_seed(3)
        got = f(x)
        after = torch.rand(1)
        torch.manual_seed(3)
        torch.testing.assert_close(got, program(choose, None, x))
        assert torch.equal(after, torch.rand(1))


def test_sizes_that_data_makes_in_a_branch():
    def program(cond, loop, x):
        return cond(x.sum() > 20, lambda t: t[t > 3].sum(), lambda t: t.nonzero().sum() * 1.0, (x,))

    both(program, *OUTCOMES, fullgraph=True)


@pytest.mark.parametrize("fullgraph", [False, True])
def test_while_loop(fullgraph):
    def program(cond, loop, x):
        limit = x.abs().sum() * 8 + 1
        i, y = loop(
            lambda i, y: (y.abs().sum() < limit) & (i < 20), lambda i, y: (i + 1, y * 1.5 + x), (torch.tensor(0), x)
        )
        return i, y * 2

    both(program, *OUTCOMES, (torch.zeros(3, 2),), fullgraph=fullgraph)


def test_a_loop_that_makes_no_turn_gives_tensors_of_its_own():
    def f(x):
        return loops.while_loop(lambda t: t.sum() > 1e9, lambda t: (t * 2,), (x,))[0]

    x = ramp(3)
    y = cresset.compile(f, fullgraph=True)(x)
    torch.testing.assert_close(y, x)
    assert y.data_ptr() != x.data_ptr()


def test_loops_and_conditions_in_each_other():
    def program(cond, loop, x):
        def body(i, t):
            t = cond(t.sum() > 10, lambda s: s - 3, lambda s: s + i, (t,))
            (_, t) = loop(lambda j, s: j < i, lambda j, s: (j + 1, s + 0.5), (torch.tensor(0), t))
            return i + 1, t

        return loop(lambda i, t: i < 5, body, (torch.tensor(0), x))[1]

    both(program, *OUTCOMES, fullgraph=True)


def test_a_predicate_that_is_no_tensor_picks_a_branch():
    def program(cond, loop, x):
        y = cond(x.dim() == 2, lambda t: t + 1, lambda t: [t], (x,))
        return cond(x.shape[0] > 3, lambda t: t * 2, lambda t: (t, t), (y,))

    both(program, (ramp(2, 3),), (ramp(3, 3),), graphs=1)
    both(program, (ramp(2, 3),), (ramp(5, 3),), graphs=2)


EFFECTS = []


def to_list(cond, loop, x):
    log = []
    y = cond(x.sum() > 20, lambda t: log.append(1) or t, lambda t: log.append(2) or t * 2, (x,))
    return y, log


def to_cell(cond, loop, x):
    n = 0

    def yes(t):
        nonlocal n
        n += 1
        return t

    return cond(x.sum() > 20, yes, lambda t: t * 2, (x,)), n


def to_global(cond, loop, x):
    EFFECTS.clear()
    return cond(x.sum() > 20, lambda t: EFFECTS.append(3) or t, lambda t: t * 2, (x,)), len(EFFECTS)


def an_iterator(cond, loop, x):
    it = iter([1, 2, 3])
    y = cond(x.sum() > 20, lambda t: t + next(it), lambda t: t * next(it), (x,))
    return y, next(it)


def an_iterator_unpacked(cond, loop, x):
    it = iter([1, 2])

    def yes(t):
        a, b = it
        return t * a + b

    return cond(x.sum() > 20, yes, lambda t: t * 2, (x,)), list(it)


def an_iterator_searched(cond, loop, x):
    it = iter([1, 2, 3])
    y = cond(x.sum() > 20, lambda t: t + (2 in it), lambda t: t * 2, (x,))
    return y, list(it)


def an_iterator_spread(cond, loop, x):
    it, other = iter([1, 2, 3]), iter([4, 5])
    y = cond(x.sum() > 20, lambda t: t + len([*it]), lambda t: t * len({*other, *it}), (x,))
    return y, list(it), list(other)


def other_shapes(cond, loop, x):
    return cond(x.sum() > 20, lambda t: t.sum(), lambda t: t * 2, (x,))


def other_dtypes(cond, loop, x):
    return cond(x.sum() > 20, lambda t: t > 0, lambda t: t * 2, (x,))


def other_structures(cond, loop, x):
    return cond(x.sum() > 20, lambda t: (t + 1, 1), lambda t: (t + 1, 2), (x,))


def data_in_a_branch(cond, loop, x):
    return cond(x.sum() > 20, lambda t: t + 1 if t.max() > 5 else t - 1, lambda t: t * 2, (x,))


def a_branch_that_raises(cond, loop, x):
    def no(t):
        raise ValueError("no")

    return cond(x.sum() > -1e9, lambda t: t + 1, no, (x,))


def a_loop_that_grows(cond, loop, x):
    return loop(lambda t: t.numel() < 40, lambda t: (torch.cat([t, t]),), (x,))[0]


def a_loop_with_numbers(cond, loop, x):
    return loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 2), (0, x))[1]


HOST = [
    to_list,
    to_cell,
    to_global,
    an_iterator,
    an_iterator_unpacked,
    other_shapes,
    other_dtypes,
    other_structures,
    data_in_a_branch,
]
HOST += [a_branch_that_raises, a_loop_that_grows, a_loop_with_numbers]
HOST += [an_iterator_searched, an_iterator_spread]


@pytest.mark.parametrize("program", HOST, ids=lambda p: p.__name__)
def test_what_cannot_be_an_operator_is_decided_on_the_host(program):
    both(program, *OUTCOMES, graphs=None)


@pytest.mark.parametrize(
    "program,reason",
    [
        (to_list, "changes a container from outside"),
        (to_cell, "writes to an object from outside"),
        (other_shapes, "different dtype, device or rank"),
        (other_structures, "different structure"),
        (data_in_a_branch, "torch.cond is decided here: a decision needs the value of"),
        (a_branch_that_raises, "raises ValueError"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_fullgraph_says_why_not(program, reason):
    f = cresset.compile(lambda x: program(torch.cond, loops.while_loop, x), fullgraph=True)
    with pytest.raises(cresset.CaptureError, match=reason):
        f(ramp(2, 3))
        f(ramp(2, 3))


def test_bad_use_raises_what_eager_raises():
    def messages(compile):
        out = []
        for program in (
            lambda x: torch.cond(x, lambda t: t, lambda t: t, (x,)),
            lambda x: torch.cond(x.sum() > 0, 3, lambda t: t, (x,)),
            lambda x: torch.cond(x.sum() > 0, lambda t: t, lambda t: t, x),
            lambda x: torch.cond(x.sum() > 0, lambda t: t, lambda t: t, (1,)),
            lambda x: torch.cond("yes", lambda t: t, lambda t: t, (x,)),
            lambda x: loops.while_loop(1, lambda t: t, (x,)),
        ):
            with pytest.raises(RuntimeError) as raised:
                compile(program)(torch.ones(2))
            out.append(str(raised.value))
        return out

    assert messages(cresset.compile) == messages(lambda f: f)


def test_the_text_shows_the_branches():
    def f(x):
        y = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))
        return loops.while_loop(lambda t: t.sum() < 9, lambda t: (t.exp(),), (y,))[0]

    text = cresset.explain(f)(ramp(3)).segments[0]["graph"]
    for word in ("cresset::cond", "if true", "aten::sin", "if false", "aten::cos", "cresset::while_loop", "aten::exp"):
        assert word in text, text


def scan_one_by_one(combine, xs, dim, reverse=False, combine_mode="pointwise"):
    """The meaning of associative_scan."""
    leaves, structure = pytree.tree_flatten(xs)
    steps = [pytree.tree_unflatten(s, structure) for s in zip(*[leaf.unbind(dim) for leaf in leaves])]
    if reverse:
        steps.reverse()
    out = steps[:1]
    for step in steps[1:]:
        out.append(combine(out[-1], step))
    if reverse:
        out.reverse()
    rows = [pytree.tree_leaves(o) for o in out]
    return pytree.tree_unflatten([torch.stack(column).movedim(0, dim) for column in zip(*rows)], structure)


def linear_recurrence(scan, a, b, **how):
    def combine(left, right):
        return {"a": left["a"] * right["a"], "b": right["a"] * left["b"] + right["b"]}

    out = scan(combine, {"a": a.sigmoid(), "b": b.cos()}, combine_mode="generic", **how)
    return out["b"] * 2, out["a"]


SCANNED = [(3, 6), (1, 1), (0, 6), (2, 17), (0, 1), (4, 64), (1, 2), (5, 5)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [1, -1, -2])
def test_associative_scan_of_any_length(dim, reverse):
    cresset.reset()
    f = cresset.compile(lambda a, b: linear_recurrence(scans.associative_scan, a, b, dim=dim, reverse=reverse))
    for batch, length in SCANNED:
        a, b = torch.randn(2, batch, length, 3).unbind()
        if dim == -1:
            a, b = a.transpose(1, 2), b.transpose(1, 2)
        assert_same(f(a, b), linear_recurrence(scan_one_by_one, a, b, dim=dim, reverse=reverse))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0), stats["recompiles"]


def test_associative_scan_with_gradients():
    """The number of doublings is specialized, the length is not."""

    def f(scan, a, b):
        return linear_recurrence(scan, a, b, dim=1)

    cresset.reset()
    g = cresset.compile(lambda a, b: f(scans.associative_scan, a, b))
    with torch.enable_grad():
        for length in (9, 16, 12, 11, 1, 2):
            given = [[t.clone().requires_grad_() for t in torch.randn(2, 3, length, 2).unbind()] for _ in "12"]
            given[1] = [t.detach().clone().requires_grad_() for t in given[0]]
            results = [g(*given[0]), f(scan_one_by_one, *given[1])]
            assert_same(*results)
            for out in results:
                (out[0].sin().sum() + out[1].sum()).backward()
            assert_same([t.grad for t in given[0]], [t.grad for t in given[1]])
    # A graph for 9 alone: its last iteration leaves a single position, and autograd has a decision on it. 16, 12 and 11
    # share a graph.
    assert cresset.stats()["graphs"] <= 4, cresset.stats()["recompiles"]
    assert cresset.stats()["eager_calls"] == 0


def test_associative_scan_rejects_what_torch_rejects():
    cresset.reset()
    f = cresset.compile(lambda a, **how: scans.associative_scan(torch.add, a, **how))
    for how in [dict(dim=0), dict(dim=3, combine_mode="generic"), dict(dim=0, combine_mode="other")]:
        if how == dict(dim=0) and TORCH >= (2, 14):  # pointwise on CPU: accepted since then
            assert_same(f(torch.ones(3), **how), torch.arange(1.0, 4.0))
            continue
        with pytest.raises(Exception) as expected:
            scans.associative_scan(torch.add, torch.ones(3), **how)
        with pytest.raises(expected.type) as got:
            f(torch.ones(3), **how)
        assert str(got.value) == str(expected.value)
    if TORCH >= (2, 14):  # accepts a length of 0
        assert_same(f(torch.ones(0, 2), dim=0, combine_mode="generic"), torch.ones(0, 2))
        return
    with pytest.raises(ValueError, match="scan dimension > 0"):
        f(torch.ones(0, 2), dim=0, combine_mode="generic")


# ---- Called from eager code


def test_cond_outside_of_compiled_code():
    scale = torch.tensor(3.0)

    def choose(p, x):
        return cresset.cond(p, lambda x: x * scale, lambda x: x - 1, (x,))

    x = torch.randn(4)
    for p, expected in ((True, x * 3), (False, x - 1), (True, x * 3)):
        torch.testing.assert_close(choose(torch.tensor(p), x), expected)
    assert cresset.stats()["graphs"] == 1
    for n in (5, 1, 9, 2):
        scale = torch.tensor(float(n))  # another tensor in the closure
        torch.testing.assert_close(choose(torch.tensor(True), torch.ones(n)), torch.ones(n) * n)
    assert cresset.stats()["graphs"] == 2, "the second one takes the closure's tensor as an input"


def test_cond_outside_of_compiled_code_rejects_effects():
    seen = []

    def noting(x):
        seen.append(1)
        return x + 1

    with pytest.raises(cresset.CaptureError, match="noting"):
        cresset.cond(torch.tensor(True), noting, lambda x: x, (torch.ones(2),))
    assert len(seen) <= 1, "as eager leaves it"


def test_many_conds_outside_of_compiled_code_do_not_share_variants():
    def places(n):
        branches = [eval(f"(lambda x: x + {i}, lambda x: x - {i})") for i in range(n)]
        return [lambda p, x, b=b: cresset.cond(p, *b, (x,)) for b in branches]

    chosen = places(80)
    for _ in range(2):
        for i, f in enumerate(chosen):
            torch.testing.assert_close(
                f(torch.tensor(i % 2 == 0), torch.ones(3)), torch.ones(3) + (i if i % 2 == 0 else -i)
            )
    assert cresset.stats()["graphs"] == 80


def test_while_loop_outside_of_compiled_code():
    out = cresset.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))
    torch.testing.assert_close(out, (torch.tensor(5), torch.full((2,), 32.0)))
