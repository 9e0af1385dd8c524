"""torch.func's transforms over several sizes. Where torch has rules for plain sizes alone, there is a recapture with
plain sizes, or a graph break; no call raises an exception unknown to eager."""

import pytest
import torch
import torch.nn.functional as F
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import cresset


def shifted(x):
    y = torch.zeros_like(x)
    y[:, 1:] = x[:, :-1]
    return y


def changed(x):
    y = x.clone()
    y.mul_(2)
    y[:, 0] += 1
    return y


def loss_of(function):
    return lambda x: function(x).pow(2).sum()


TRANSFORMS = {
    "vmap": lambda f: lambda x: vmap(lambda row: f(row[None]))(x),
    "grad": lambda f: lambda x: grad(loss_of(f))(x),
    "of each sample": lambda f: lambda x: vmap(grad(lambda row: loss_of(f)(row[None])))(x),
    "jvp": lambda f: lambda x: jvp(f, (x,), (torch.ones_like(x),)),
    "hvp": lambda f: lambda x: jvp(grad(loss_of(f)), (x,), (torch.ones_like(x),))[1],
    "jacrev": lambda f: lambda x: jacrev(f)(x),
    "jacfwd": lambda f: lambda x: jacfwd(f)(x),
    "hessian": lambda f: lambda x: hessian(loss_of(f))(x),
}
PROGRAMS = {
    "a written part": shifted,
    "written parts of a copy": changed,
    "an image of so many": lambda x: F.interpolate(x, size=x.shape[-1] + 1),
    "linear": lambda x: F.interpolate(x, size=x.shape[-1], mode="linear"),
    "by a factor": lambda x: F.interpolate(x, scale_factor=2.0),
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "group norm": lambda x: F.group_norm(x, 1),
    "product": lambda x: x.prod(1),
    "cumulative product": lambda x: x.cumprod(1),
    "cut": lambda x: x.split([1, x.shape[1] - 1], 1)[1],
    "halves": lambda x: x.chunk(2, 1)[0],
    "spectrum": lambda x: torch.fft.rfft(x).abs(),
    "around the end": lambda x: F.pad(x, (1, 0), mode="circular"),
    "along a dimension": lambda x: torch.take_along_dim(x, x.argsort(1), 1),
    "convolution": lambda x: F.conv1d(x, torch.ones(3, x.shape[1], 3, dtype=x.dtype), padding=1),
}
SIZES = [(2, 4, 3), (3, 5, 4), (2, 3, 6)]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_equals_eager(transform, program):
    function = TRANSFORMS[transform](PROGRAMS[program])
    compiled = cresset.compile(function)
    for sizes in SIZES:
        x = torch.randn(sizes, dtype=torch.float64)
        torch.testing.assert_close(compiled(x), function(x))


# No graph break is possible inside: captured with the sizes of each call.
@pytest.mark.parametrize("transform", ["hvp", "hessian"])
@pytest.mark.parametrize("program", ["a written part", "written parts of a copy", "product", "cut", "spectrum"])
def test_plain_sizes_where_symbolic_ones_have_no_place(transform, program):
    compiled = cresset.compile(TRANSFORMS[transform](PROGRAMS[program]), fullgraph=True)
    for sizes in SIZES + SIZES:
        compiled(torch.randn(sizes))
    assert (cresset.stats()["graphs"], cresset.stats()["eager_calls"]) == (3, 0)


def test_written_parts_inside_of_vmap_have_one_program():
    compiled = cresset.compile(TRANSFORMS["of each sample"](changed), fullgraph=True)
    for sizes in SIZES:
        compiled(torch.randn(sizes))
    assert cresset.stats()["graphs"] == 1


def test_rules_are_torchs_own_behind_a_capture():
    def view(row):
        return torch.as_strided(row, (9,), (1,))

    def message():
        with pytest.raises(RuntimeError) as raised:
            vmap(view)(torch.zeros(2, 3))
        return str(raised.value).split("Exception raised")[0]

    before = message()
    TRANSFORMS["of each sample"](shifted)
    cresset.compile(TRANSFORMS["of each sample"](shifted))(torch.randn(2, 3, 4))
    assert message() == before


# The call cannot begin again: a graph segment with plain sizes begins instead.
@pytest.mark.parametrize("before", ["a write", "a break"])
@pytest.mark.parametrize("transform", ["hvp", "hessian", "jacfwd"])
@pytest.mark.parametrize("program", ["a written part", "product", "cut"])
def test_what_was_done_is_not_done_again(transform, program, before):
    notes = []
    transformed = TRANSFORMS[transform](PROGRAMS[program])

    def function(x):
        if before == "a write":
            notes.append(len(notes))
        else:
            x.sum().item()
        return transformed(x)

    compiled = cresset.compile(function)
    for i, sizes in enumerate(SIZES + SIZES):
        x = torch.randn(sizes, dtype=torch.float64)
        torch.testing.assert_close(compiled(x), transformed(x))
        assert notes == (list(range(i + 1)) if before == "a write" else [])
    assert cresset.stats()["eager_calls"] == 0
