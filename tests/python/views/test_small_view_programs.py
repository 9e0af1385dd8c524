"""Small programs about views: each call is compared with eager mode in all that a user can see (view_program_compare).

A row has the argument, made of a leaf or of plain values (`leaf(sizes) * 1[::2]` is a view of a product), the mode around
the calls, the order of the gradients, and the body of the function."""

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
    # Writes without autograd's knowledge, before gradients of formulas that read the memory.
    "checkpoint of a part": (
        "leaf((6,)) * 1[::2]",
        NO_MODE,
        1,
        "a.mul_(2)\nv = checkpoint(lambda t: t.sin(), a, use_reentrant=False)\na.data.add_(1)\nreturn (v,)",
    ),
    "checkpoint of memory written twice": (
        "leaf((4,)) * 1",
        NO_MODE,
        2,
        "v = torch.empty_like(a).copy_(a)\nw = v[1:]\nw.data.add_(1)\n"
        "u = checkpoint(lambda t: t.sin(), w, use_reentrant=False)\nw.data.add_(1)\nreturn v, u",
    ),
    "result written as integers": (
        "leaf((4,))",
        NO_MODE,
        1,
        "v = torch.stack([a, a]).unfold(-1, 2, 2)\nw = v.masked_fill(v > 0, 1)\n"
        "v.view(torch.int32).mul_(2)\nreturn (w,)",
    ),
    # Histories of writes.
    "list with a view twice": (
        "leaf(()) * 1",
        NO_MODE,
        2,
        "v = a.as_strided(a.shape, a.stride())\ntorch._foreach_mul_([v, v], 2)",
    ),
    "real numbers conjugated in place": (
        "leaf((2, 3)) * 1",
        NO_MODE,
        2,
        "v = a[0]\nv.conj_physical_()\nreturn (v.abs(),)",
    ),
    "write that ends the segment inside of an operator": (
        "complex_leaf((3,))",
        NO_MODE,
        1,
        "v = a * torch.ops.aten.alias(a)\nw = torch.view_as_real(v).unfold(0, 1, 2)\nw.mul_(2)\nreturn (v,)",
    ),
    "history made anew from a base of complex numbers": (
        "complex_leaf((4, 3, 2)) * 1.real",
        NO_MODE,
        1,
        "v = a.squeeze(-2)\nwith torch.no_grad():\n    w = a.diagonal()\n    w.t_()\nreturn (v.clone(),)",
    ),
    "view of a copy that is a view": (
        "leaf((6, 2)) * 1[::2]",
        NO_MODE,
        1,
        "v = a[..., ::2].flatten()[None]\nv.scatter_(-1, torch.zeros_like(v, dtype=torch.int64), 2)",
    ),
    # as_strided_scatter has a derivative of its own, for some layouts.
    "scatter by strides": (
        "leaf((4, 3))",
        NO_MODE,
        2,
        "return (torch.as_strided_scatter(a, torch.zeros(2, dtype=a.dtype), (2,), (1,)),)",
    ),
    "scatter by strides in another order": (
        "leaf((4, 3)) * 1.t()",
        NO_MODE,
        1,
        "try:\n    return (torch.as_strided_scatter(a, torch.zeros(2, dtype=a.dtype), (2,), (1,)),)\n"
        "except Exception as e:\n    return (str(e),)",
    ),
    "scatter between the elements": (
        "plain((2, 8))[..., ::2]",
        NO_MODE,
        0,
        "v = a.select_scatter(a.select(-1, 0), -1, 0)\nreturn (v.as_strided((2,), (1,)),)",
    ),
    # Hooks of views.
    "hook of elements that share memory": (
        "leaf((1,)) * 1.expand(4)",
        NO_MODE,
        1,
        "v = a.transpose(0, 0)\nw = v.view(v.shape[0], -1)\nv.register_hook(lambda g: g.mul(g))\nreturn (w,)",
    ),
    "hook of one of several": (
        "leaf((5, 4))",
        NO_MODE,
        2,
        "v = a.masked_fill(a > 0, 1).split(2, 0)[-1]\nv.register_hook(lambda g: g * 2)\nreturn (v,)",
    ),
    "hook of the base of a view": (
        "leaf((3,))",
        NO_MODE,
        2,
        "v = a * a\nw = v.transpose(0, -1)\nw.lerp_(w, 0.5)\nv.register_hook(lambda g: g)\nreturn (w,)",
    ),
    "hook of a result that no gradient reaches": (
        "leaf((3,)) * 1",
        NO_MODE,
        1,
        "v = torch.as_strided_copy(a[None], (2,), (1,))\nw = a[:1]\nw.zero_()\nv.register_hook(lambda g: g.mul(g))",
    ),
    # A copy in a format that a size of 1 makes a view of, whose source is a copy for certain.
    "view of a copy in another format": (
        "plain((4, 1, 4, 3))[::2]",
        NO_MODE,
        0,
        "v = a.contiguous(memory_format=torch.channels_last)\nw = v.reshape(v.shape[0], -1)\nv.mul_(2)\nreturn (w,)",
    ),
    "part of computed rows": (
        "leaf((4, 2))",
        NO_MODE,
        2,
        "v = torch.cat([a, a]).as_strided((1, 2), (2, 1))\nv.fill_diagonal_(4)\nreturn (v,)",
    ),
    # Inputs that no formula reads, written behind a break.
    "sums of a tensor that is written": (
        "leaf((4, 4)) * 1",
        NO_MODE,
        2,
        "v = a.cumsum(0)\nfloat(v.sum())\na.pow_(2)\nreturn (v,)",
    ),
    # Memory that a call without a rule hands on, and a kernel takes over.
    "kernel behind another dtype": (
        "plain((2, 4))",
        NO_MODE,
        0,
        "v = a.view(torch.int64) * 1\nv.scatter_reduce_(-2, torch.zeros_like(v), v * 2, 'sum')\n"
        "w = v[1:, 1:]\nw.scatter_reduce_(-2, torch.zeros_like(w), w * 2, 'sum')",
    ),
    "difference with a factor": (
        "plain((4, 3))",
        NO_MODE,
        0,
        "v = a * 1e308\nreturn (v.sub(v, alpha=2),)",
    ),
    "view of a saved view": (
        "values((4, 3), torch.float32).requires_grad_() * 1",
        "lambda: torch.autocast('cpu', dtype=torch.bfloat16)",
        1,
        "v = a.mT.diagonal()\nw = torch.nn.functional.linear(v, v)\nfloat(w)\na.fill_(3)\nreturn (w,)",
    ),
    # Parts that reach outside of the view from which they come.
    "written part outside of its view": (
        "values((2, 2, 2), torch.float64).requires_grad_() * 1",
        NO_MODE,
        2,
        "a[1:].as_strided((2,), (2,), 1).sub_(0.5)",
    ),
    "multiplied part outside of its view": (
        "values((3, 4), torch.float64).requires_grad_() * 1",
        NO_MODE,
        2,
        "v = a[:, 2:].as_strided((3, 2), (4, 1), 0)\nv.mul_(3)\nreturn (v.sin(),)",
    ),
    "read part outside of its view": (
        "values((3, 4), torch.float64).requires_grad_() * 1",
        NO_MODE,
        2,
        "v = a[1:].as_strided((2, 2), (4, 1), 1)\nw = v * v\nv.add_(w)\nreturn (w,)",
    ),
    # Parts without elements that have version counters of their own.
    "written part without elements": ("plain((4, 0))", NO_MODE, 0, "a.unsafe_split(1, 0)[-1].sub_(0.5)"),
    "columns of a part": ("plain((4, 4)).mT", NO_MODE, 0, "v = a.unsafe_split(1, 1)[-1][..., 1:]\nv.mul_(2)"),
    "part of windows": ("plain((8,))", NO_MODE, 0, "v = a.unfold(0, 2, 1).unsafe_split(1, 1)[-1]\nv[1:, 1:].sub_(1)"),
    "part over a graph break": (
        "plain((4, 0))",
        NO_MODE,
        0,
        "v = a.unsafe_split(2, 0)[-1]\nprint(end='')\nv.mul_(2)\nreturn v",
    ),
    # contiguous() gives a tensor back where its sizes of 0 and 1 make it contiguous.
    "contiguous row": ("plain((4, 2))", NO_MODE, 0, "v = a[:, :1][:1]\nreturn v, v.contiguous()"),
    "contiguous without elements": ("plain((4, 2))", NO_MODE, 0, "v = a.t()[:, :0]\nreturn v, v.contiguous()"),
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
    base, rest = made.split(" * 1") if " * 1" in made else (made, None)
    leaves = "[x]" if order else "[]"
    call = f"    x = {base}\n    a = {'x' if rest is None else f'(x * 1){rest}'}\n    return {leaves}, [a]\n"
    calls = "\n".join(f"def call{i}():\n{call}" for i in range(3))
    settings = f"AROUND = {around}\nORDER = {order}\nAFTER = False\n"
    source = "\n".join([PRELUDE, MAKERS, calls, settings, "def f(a):\n" + textwrap.indent(body, "    ")])
    cresset.reset()
    assert compare(source, cresset.compile) is None
