"""What autograd knows of views: hooks between views, messages about views of several, writes that it does not see."""

from __future__ import annotations

import warnings

import pytest
import torch

import cresset


def outcome(f, make, order=1):
    """The gradients after a call, or the first exception; then whether the argument was written."""
    leaf = torch.arange(1.0, 13.0, dtype=torch.float64).reshape(3, 4).requires_grad_()
    x = make(leaf)
    before = x._version
    try:
        results = [t for t in f(x) if isinstance(t, torch.Tensor) and t.requires_grad]
        loss = sum(((t * t).sum() for t in results), (x * x).sum())
        first = torch.autograd.grad(loss, leaf, create_graph=order == 2)[0]
        found = [first.tolist()]
        if order == 2:
            found.append(torch.autograd.grad((first * first).sum(), leaf)[0].tolist())
        return found, x._version > before
    except RuntimeError as error:
        return str(error)


def assert_same(f, make, order=1):
    compiled = cresset.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            mine, its = outcome(compiled, make, order), outcome(f, make, order)
            assert type(mine) is type(its), (mine, its)
            if isinstance(its, str):
                assert mine == its
            else:
                torch.testing.assert_close(torch.tensor(mine[0]), torch.tensor(its[0]), rtol=1e-6, atol=1e-9)
                assert mine[1] == its[1]


def hooked(view, other, hook=lambda g: g * g + 1):
    def f(x):
        v = view(x)
        w = other(v)
        v.register_hook(hook)
        return v, w

    return f


MAKE = {"leaf": lambda leaf: leaf, "history": lambda leaf: leaf * 1, "part": lambda leaf: (leaf * 1)[1:]}
HOOKED = {
    "row": (lambda x: x[-1], lambda v: v.expand_as(v)),
    "shape": (lambda x: x.swapaxes(-1, 0), lambda v: v.view(v.shape[0], -1) if v.is_contiguous() else v.mT),
    "strided": (lambda x: x[1:], lambda v: v.as_strided((2,), (1,), v.storage_offset())),
    "of several": (lambda x: x.split(1)[-1], lambda v: v.t()),
    "of a new tensor": (lambda x: x.sin()[1:], lambda v: v[0]),
    "two steps": (lambda x: x.t(), lambda v: v[1:].diagonal()),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("name", HOOKED)
def test_hooks_between_views(name, make, order):
    assert_same(hooked(*HOOKED[name]), MAKE[make], order)


def test_views_are_views_of_each_other():
    def f(x):
        v = x[1:]
        return v, v.t(), v.t()[0]

    compiled = cresset.compile(f)
    for _ in range(3):
        found = []
        for g in (f, compiled):
            leaf = torch.ones(3, 2).requires_grad_()
            a, b, c = g(leaf)
            found.append([t.tolist() for t in torch.autograd.grad((c * 3).sum() + b.sum(), [a, b])])
        assert found[0] == found[1]


SEVERAL = {
    "split": lambda x: x.split(1)[1],
    "chunk": lambda x: x.chunk(2, 1)[-1],
    "unbind": lambda x: x.unbind(1)[2],
    "sizes": lambda x: x.split_with_sizes([1, x.shape[0] - 1])[1],
}


@pytest.mark.parametrize("make", ["leaf", "history"])
@pytest.mark.parametrize("name", SEVERAL)
def test_messages_name_the_views(name, make):
    """Writes to one view of several, and uses after a write to their base."""

    def late(x):
        v = SEVERAL[name](x)
        return (v.mul_(2),) if calls == "inside" else (v,)

    def f(x):
        (v,) = late(x)
        return (v,)

    def written(x):
        v = SEVERAL[name](x)
        x.detach().mul_(2)
        return (v,)

    calls = "outside"
    assert_same(written, MAKE[make])
    compiled = cresset.compile(f)
    for _ in range(3):
        texts = []
        for g in (f, compiled):
            (v,) = g(MAKE[make](torch.ones(3, 4, dtype=torch.float64).requires_grad_()))
            with pytest.raises(RuntimeError) as error:
                v.mul_(2)
            texts.append(str(error.value))
        assert texts[0] == texts[1]


GAPS = {
    "data": lambda x: x.data.mul_(2),
    "no_grad": lambda x: torch.no_grad()(x.mul_)(2),
    "of a part": lambda x: x.data[1:].mul_(2),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("function", [torch.sin, lambda x: x * x, lambda x: (x[1:] * x[:-1]).sin()])
def test_written_arguments_with_gaps(function, name, order):
    """The value of such an argument is saved without its gaps."""

    def f(x):
        GAPS[name](x)
        return (function(x),)

    assert_same(f, lambda leaf: leaf[:, ::2], order)


ONE_ROW = {
    "flattened column": lambda x: x[:1, 0].flatten().add_(1),
    "reshaped diagonal": lambda x: torch.linalg.diagonal(x[None]).flatten().mul_(2),
    "contiguous rows": lambda x: x[:1, ::2].contiguous()[0].neg_(),
}


@pytest.mark.parametrize("caught", [False, True])
@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("name", ONE_ROW)
def test_writes_to_views_by_size(name, make, caught):
    """A copy for most sizes is a view of the argument at a size of 1: autograd must know before the write."""

    def f(x):
        try:
            v = ONE_ROW[name](x)
        except RuntimeError as error:
            if not caught:
                raise
            return (str(error),)
        return (v,)

    assert_same(f, lambda leaf: MAKE[make](leaf)[:1])


UNSEEN = {
    "no_grad": lambda y: y[1:].mul_(2),
    "data": lambda y: y.data.add_(1),
    "detached": lambda y: y.detach()[0].zero_(),
}


def doubled_in_no_grad_mode(x):
    with torch.no_grad():
        x.mul_(2)


KEEP_HISTORIES = {
    "no_grad": doubled_in_no_grad_mode,
    "data": lambda x: x.data.mul_(2),
    "twice": lambda x: (x.data.mul_(2), doubled_in_no_grad_mode(x)),
    "part": lambda x: x.data[:1].zero_(),
    "integers": lambda x: x.data.view(torch.int64).add_(1),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("of", ["tensor", "view", "own", "view of own"])
@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("name", KEEP_HISTORIES)
def test_unseen_writes_keep_histories(name, make, of, order):
    """Weights clipped through `.data` before their use, for one: gradients do not flow through the write."""

    def f(x):
        y = x * 3 if "own" in of else x
        v = y.t() if "view" in of else y
        KEEP_HISTORIES[name](y)
        return (v.sin(),)

    assert_same(f, MAKE[make], order)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("function", [torch.relu, torch.sin, lambda x: x * x])
def test_writes_as_integers(function, order):
    """The elements come from integers, and the history is that of the tensor of which they are a view."""

    def f(x):
        v = x.t()
        v.view(torch.int64).add_(1)
        return (function(v),)

    assert_same(f, MAKE["history"], order)


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize("function", [torch.clone, lambda x: x * 3, lambda x: x + 1])
def test_second_gradients_beside_unseen_writes(name, function):
    def f(x):
        y = function(x)
        with torch.no_grad():
            UNSEEN[name](y)
        return (y,)

    assert_same(f, MAKE["leaf"], order=2)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seen", [lambda v: v.sub_(0.5), lambda v: v.mul_(v)])
@pytest.mark.parametrize("make", ["history", "part"])
def test_unseen_writes_behind_seen_ones(make, seen, order):
    """The argument's history is that of its contents before the write in no_grad mode."""

    def f(x):
        v = x[:, ::2]
        seen(v)
        with torch.no_grad():
            v.fill_(3)
        return ()

    def own(x):
        y = x * 2
        v = y[:, ::2]
        seen(v)
        with torch.no_grad():
            v.fill_(3)
        return (y,)

    assert_same(f, MAKE[make], order)
    assert_same(own, MAKE[make], order)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_view_as_dtype_in_inference_mode(dtype):
    """It is an inference tensor, and writes to it do not count for the argument."""

    def f(x):
        v = x.view(dtype)
        v.fill_(1)
        return v

    compiled = cresset.compile(f)
    for _ in range(3):
        found = []
        for g in (f, compiled):
            x = torch.ones(3, 4, dtype=torch.float64)
            with torch.inference_mode():
                v = g(x)
            found.append((x.tolist(), x._version, v.is_inference()))
        assert found[0] == found[1]


RESHAPED = {
    "squeeze": lambda v: v.squeeze_(-1),
    "unsqueeze": lambda v: v.unsqueeze_(0),
    "transpose": lambda v: v.transpose_(0, 1),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("lazily", [torch._neg_view, lambda x: torch.view_as_complex(torch.stack([x, x], -1)).conj()])
@pytest.mark.parametrize("name", RESHAPED)
@torch.no_grad()
def test_lazy_tensors_change_shape_in_place(name, lazily):
    def f(x):
        v = lazily(x)
        RESHAPED[name](v)
        return v, v * 1

    compiled = cresset.compile(f)
    for _ in range(2):
        found = []
        for g in (f, compiled):
            v, w = g(torch.arange(6.0).reshape(3, 2, 1))
            found.append((v.resolve_conj().resolve_neg().tolist(), v.stride(), v.is_conj(), v.is_neg(), w.tolist()))
        assert found[0] == found[1]


@torch.no_grad()
def test_views_after_bases():
    """A program made for a tensor of its own serves views, too: gradients by autograd.grad()."""
    compiled = cresset.compile(lambda a: a.add_(1))
    for make in (lambda leaf: leaf * 1, lambda leaf: (leaf * 1)[0], lambda leaf: (leaf * 1)[1:]):
        with torch.enable_grad():
            leaf = torch.arange(12.0).reshape(3, 4).requires_grad_()
            a = make(leaf)[0]
            compiled(a)
            other = make(leaf)[0].add_(1)
            mine, its = (torch.autograd.grad((t * t).sum(), leaf)[0] for t in (a, other))
            assert torch.equal(mine, its)


def written_beside_a_hook(x):
    y = x + x
    y.register_hook(lambda g: g)
    return (y.view(-1).mul_(2),)


def filled(x):
    y = x.relu().unsafe_split(1, -1)[-1]
    y.fill_(3)
    return (y,)


def copied_without_a_record(x):
    y = x.select_scatter(x.select(-1, 0), -1, 0)
    z = y.as_strided(y.shape, y.stride())
    with torch.no_grad():
        z.copy_(z)
    return (z,)


def part_written(x):
    y = x * 1
    z = y.as_strided((1, 2), (2, 1))
    z.sub_(0.5)
    return (z,)


RESULTS = {
    "written beside a hook": written_beside_a_hook,
    "negative view": lambda x: (torch._neg_view(x.cumsum(-1)),),
    "filled": filled,
    "copied without a record": copied_without_a_record,
    "part written": part_written,
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("name", RESULTS)
def test_results_that_are_views(name, make, order):
    assert_same(RESULTS[name], MAKE[make], order)


def test_gradient_of_a_strided_view_of_parts():
    """Elements outside of `x.real` get no gradient through a view of it."""

    def f(x):
        return x.real.as_strided((1, 2), (2, 1))

    def gradient(g):
        leaf = torch.complex(torch.arange(1.0, 7), torch.arange(6.0)).requires_grad_()
        g(leaf * 1).square().sum().backward()
        return leaf.grad

    compiled = cresset.compile(f)
    for _ in range(2):
        torch.testing.assert_close(gradient(compiled), gradient(f))


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("make", MAKE)
def test_views_of_unrecorded_views(make, record):
    """A recorded view of a view made in no_grad mode has a node, but no gradient reaches the base."""

    def f(x):
        with torch.no_grad():
            v = x[1:]
        with torch.set_grad_enabled(record):
            return (v.t(),)

    assert_same(f, MAKE[make])


def test_offsets_of_views_without_elements():
    def f(x):
        v = x.narrow(-1, 1, x.shape[-1] - 1)
        return v.storage_offset(), v

    compiled = cresset.compile(f)
    for n in (3, 1, 2, 1):
        x = torch.arange(8.0)[::2][:n]
        (mine, view), (its, other) = compiled(x), f(x)
        assert (mine, view.storage_offset()) == (its, other.storage_offset())
