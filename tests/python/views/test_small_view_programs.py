"""Small programs about views: each call is compared with eager mode in all that a user can see (view_program_compare).

A row has the argument, made of a leaf or of plain values, the mode around the calls, the order of the gradients, and
the body of the function."""

from __future__ import annotations

import textwrap

import pytest
from view_program_compare import PRELUDE, compare

import cresset

NO_MODE, INFERENCE = "contextlib.nullcontext", "torch.inference_mode"
ROWS = {
    # Gradients which are zero, and depend on the incoming gradient all the same.
    "a view is filled": ("leaf((3, 4)) * 1", NO_MODE, 2, "v = a.squeeze((0,))\nv.fill_(3)"),
    "all of a number is zeroed": ("leaf(()) * 1", NO_MODE, 2, "v = a.unsqueeze(0)\nv.zero_()"),
    "a base is zeroed": ("leaf(()) * 1", NO_MODE, 2, "v = a.t()\nv.sub_(0.5)\na.zero_()"),
    # Inference mode: which tensors count writes of an ordinary tensor.
    "dtype behind a break": (
        "plain((7,))",
        INFERENCE,
        0,
        "v = a.view(a.dtype)\nw = v.broadcast_to((1, *v.shape))\nw.add_(1)",
    ),
    "view of an unsafe part": (
        "plain((2, 2, 8))",
        INFERENCE,
        0,
        "v = a.unsafe_split(1, 0)[-1]\nw = v.reshape(*v.shape, 1)\nw.neg_()",
    ),
    "unsafe part": ("plain((4, 2))", INFERENCE, 0, "v = a.unsafe_chunk(2, 0)[0]\nv.neg_()"),
    # Messages name the node of the view.
    "diagonal of several": (
        "leaf((2, 3))",
        NO_MODE,
        1,
        "v = a.split(2, -1)[0]\ntry:\n    v.fill_diagonal_(4)\nexcept Exception as e:\n    return str(e)",
    ),
    "view of an unrecorded view": (
        "leaf(()) * 1",
        NO_MODE,
        1,
        "with torch.no_grad():\n    v = a.squeeze(0)\nw = v.squeeze((0,))\na.fill_(3)\nreturn (w,)",
    ),
    # Views without a record, whose memory was written since, and a write before.
    "turned part of an unrecorded view": (
        "leaf((6,))",
        NO_MODE,
        1,
        "v = a.unfold(-1, 1, 2)\nwith torch.no_grad():\n    w = v.as_strided(v.shape, v.stride()[::-1])\n"
        "    w[1::2].transpose_(0, 0)\nreturn (w,)",
    ),
    "outdated, and contiguous": (
        "leaf((4, 3)) * 1",
        "torch.no_grad",
        1,
        "v = a[1]\nv.div_(2)\nwith torch.enable_grad():\n    return (v.contiguous() is v,)",
    ),
    "unrecorded view of a written tensor": (
        "leaf((6, 3))",
        NO_MODE,
        1,
        "v = a.masked_fill(a > 0, 1)\nv.neg_()\nwith torch.no_grad():\n    w = v.unfold(-2, 1, 2)\nreturn (w,)",
    ),
    # Hooks of views, before a break and behind it.
    "hook before a part of complex numbers": (
        "complex_leaf((9,))",
        NO_MODE,
        1,
        "v = a.reshape_as(a)\nw = v.imag\nv.register_hook(lambda g: g.mul(g))\nreturn (w,)",
    ),
    "hook of a view that is read": (
        "leaf((5, 2))",
        NO_MODE,
        2,
        "v = a.squeeze(-1)\nw = v.sum(1)\nv.register_hook(lambda g: g * 2)\nreturn v, w",
    ),
    "hook of a view that is read and written": (
        "leaf((4, 2)) * 1",
        NO_MODE,
        1,
        "v = a[1:]\nw = v.sin()\nv.register_hook(lambda g: g + 1)\ntorch._foreach_add_([v], 1)\nreturn w, a",
    ),
    # A history of its own in the memory of the argument.
    "written alias by dtype": ("leaf((2, 3)) * 1", NO_MODE, 1, "v = a.view(a.dtype)\nv -= a\nreturn (v,)"),
    "written detached alias": ("leaf((2, 3)) * 1", NO_MODE, 1, "v = a.detach()\nv.mul_(a + 1)\nreturn (v,)"),
    # Formulas of second order read what is written unseen.
    "saved result": ("leaf((2,))", NO_MODE, 2, "v = a.relu()\nv.data.add_(1)\nreturn (v,)"),
    "read before": ("leaf((4,))", NO_MODE, 2, "v = a.tanh()\nw = v * v\nv.data.add_(1)\nreturn v, w"),
    "of a checkpoint": (
        "leaf((11,))",
        NO_MODE,
        2,
        "v = checkpoint(lambda t: t.sin(), a, use_reentrant=False)\na.data.add_(1)\nreturn (v,)",
    ),
    "through another dtype": (
        "values((4, 4), torch.float32).requires_grad_()",
        NO_MODE,
        2,
        "v = a.view(torch.float64)\nv[..., 0] = 2\nreturn (a.flip(0),)",
    ),
    "strided row": ("leaf((4, 3))", NO_MODE, 2, "v = a[..., 0].as_strided((2,), (1,))\nreturn (v * v,)"),
    # Strides of single elements, read from views with a conjugate or negative bit.
    "zeros like": ("plain((4,))", NO_MODE, 0, "v = torch._neg_view(a[::2])[..., ::2]\nreturn (torch.zeros_like(v),)"),
    "resolved": ("complex_plain((7,))", NO_MODE, 0, "v = a.conj()[-1].unsqueeze(0)\nreturn (v.imag.resolve_neg(),)"),
    "scatter": (
        "complex_plain((1, 3)).as_strided((1, 3), (7, 1))",
        NO_MODE,
        0,
        "return (torch.as_strided_scatter(a.conj(), torch.zeros(2, dtype=a.dtype), (2,), (1,)),)",
    ),
    # A change of geometry counts as a write of the argument that a size of 1 makes the memory's owner.
    "turned copy": (
        "plain((4, 2)).permute((1, 0))",
        NO_MODE,
        0,
        "v = a[..., None][::2]\nw = v.reshape(-1, v.shape[-1])\nw.transpose_(1, 1)",
    ),
}

MAKERS = """

def plain(sizes):
    return values(sizes, torch.float64)

def complex_plain(sizes):
    return values(sizes, torch.complex128)

def leaf(sizes):
    return plain(sizes).requires_grad_()

def complex_leaf(sizes):
    return complex_plain(sizes).requires_grad_()
"""


@pytest.mark.parametrize("name", ROWS)
def test_small_program(name):
    made, around, order, body = ROWS[name]
    base, rest = made.split(" * 1") if made.endswith(" * 1") else (made, None)
    leaves = "[x]" if order else "[]"
    call = f"    x = {base}\n    a = x{' * 1' if rest is not None else ''}\n    return {leaves}, [a]\n"
    calls = "\n".join(f"def call{i}():\n{call}" for i in range(3))
    settings = f"AROUND = {around}\nORDER = {order}\nAFTER = False\n"
    source = "\n".join([PRELUDE, MAKERS, calls, settings, "def f(a):\n" + textwrap.indent(body, "    ")])
    cresset.reset()
    assert compare(source, cresset.compile) is None
