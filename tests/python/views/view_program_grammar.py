"""The views, writes and reads in random programs about views, and the layouts of their arguments.

A template is a string: {x} is its tensor, {y} another tensor, {d} and {e} two dimensions of {x}, {p} their permutation,
{m} a -1 for each dimension. Rows are grouped by their effect: a group is drawn first, then a row of it. An unsuitable
row (another rank, another dtype) raises when the program is tried, and another row is drawn.
"""

from __future__ import annotations

import math

VIEWS = {
    "slice": [
        "{x}[1:]",
        "{x}[:-1]",
        "{x}[::2]",
        "{x}[1::2]",
        "{x}[..., 1:]",
        "{x}[..., ::2]",
        "{x}[:, :2]",
        "{x}[1:2]",
        "{x}[:0]",
        "{x}.narrow({d}, 0, 1)",
        "{x}.narrow({d}, 1, {x}.shape[{d}] - 1)",
        "{x}[1:, 1:]",
    ],
    "select": ["{x}[0]", "{x}[-1]", "{x}.select({d}, 0)", "{x}[..., 0]", "{x}[:, 0]", "{x}[:, -1]", "{x}[..., :1, 0]"],
    "order": [
        "{x}.transpose({d}, {e})",
        "{x}.mT",
        "{x}.t()",
        "{x}.T",
        "{x}.permute({p})",
        "{x}.movedim({d}, {e})",
        "{x}.swapaxes({d}, {e})",
        "{x}.swapdims({d}, {e})",
        "torch.moveaxis({x}, {d}, {e})",
    ],
    "insert": [
        "{x}.unsqueeze({d})",
        "{x}[None]",
        "{x}[..., None]",
        "{x}.expand(2, {m})",
        "{x}.expand_as({x})",
        "{x}.broadcast_to((1, *{x}.shape))",
        "torch.atleast_2d({x})",
        "torch.atleast_3d({x})",
        "torch.broadcast_tensors({x}, {x})[0]",
    ],
    "remove": ["{x}.squeeze()", "{x}.squeeze({d})", "{x}.squeeze(({d},))", "{x}.unsqueeze({d}).squeeze({d})"],
    "group": [
        "{x}.view(-1)",
        "{x}.reshape(-1)",
        "{x}.flatten()",
        "{x}.flatten(0, 1)",
        "{x}.ravel()",
        "{x}.view({x}.shape)",
        "{x}.view_as({x})",
        "{x}.view({x}.shape[0], -1)",
        "{x}.reshape({x}.shape[0], -1)",
        "{x}.reshape(-1, {x}.shape[-1])",
        "{x}.unflatten({d}, (1, -1))",
        "{x}.unflatten({d}, (-1, 1))",
        "{x}.view(1, *{x}.shape)",
        "{x}.reshape(*{x}.shape, 1)",
        "{x}.reshape({x}.shape[::-1])",
        "{x}.reshape_as({x})",
        "{x}.unsafe_chunk(1, {d})[0].view(-1)",
    ],
    "diagonal": ["{x}.diagonal()", "{x}.diagonal(1)", "{x}.diagonal(0, {d}, {e})", "torch.linalg.diagonal({x})"],
    "unfold": ["{x}.unfold({d}, 1, 1)", "{x}.unfold({d}, 2, 2)", "{x}.unfold({d}, 1, 2)", "{x}.unfold({d}, 2, 1)"],
    "parts": [
        "{x}.split(1, {d})[0]",
        "{x}.split(2, {d})[-1]",
        "{x}.chunk(2, {d})[-1]",
        "{x}.unbind({d})[0]",
        "{x}.tensor_split(2, {d})[1]",
        "{x}.unsafe_chunk(2, {d})[0]",
        "{x}.unsafe_split(1, {d})[-1]",
        "{x}.split_with_sizes([1, {x}.shape[{d}] - 1], {d})[1]",
        "torch.hsplit({x}, 1)[0]",
        "torch.vsplit({x}, 1)[0]",
    ],
    "strided": [
        "{x}.as_strided({x}.shape, {x}.stride())",
        "{x}.as_strided((2,), (1,))",
        "{x}.as_strided((2,), (2,), 1)",
        "{x}.as_strided((1, 2), (2, 1))",
        "{x}.as_strided((1,), (1,), {x}.storage_offset())",
        "{x}.as_strided(({x}.shape[0],), ({x}.stride(0),))",
        "{x}.as_strided({x}.shape[::-1], {x}.stride()[::-1])",
    ],
    "bits": [
        "{x}.view(torch.int64)",
        "{x}.view(torch.float64)",
        "{x}.view(torch.int32)",
        "{x}.view({x}.dtype)",
        "{x}.view(torch.float32)",
    ],
    "complex": [
        "{x}.conj()",
        "{x}.real",
        "{x}.imag",
        "{x}.mH",
        "{x}.adjoint()",
        "{x}.H",
        "{x}.resolve_conj()",
        "{x}.resolve_neg()",
        "torch.view_as_real({x})",
        "torch.view_as_complex({x})",
        "torch._neg_view({x})",
        "{x}.conj().imag",
        "{x}.imag.resolve_neg()",
    ],
    "same": [
        "{x}.detach()",
        "{x}.data",
        "{x}.contiguous()",
        "{x}.contiguous(memory_format=torch.channels_last)",
        "{x}.to(memory_format=torch.channels_last)",
        "{x}.to({x}.dtype)",
        "{x}.double()",
        "{x}.type_as({x})",
        "{x}.positive()",
        "torch.ops.aten.alias({x})",
        "{x}[...]",
        "{x}[:]",
        "{x}.cpu()",
        "{x}.requires_grad_({x}.requires_grad)",
        "{x}.clone()",
    ],
}

# Where a write ends in another tensor than the first tensor of the template, {x} must be a name.
WRITES = {
    "numbers": ["{x}.add_(1)", "{x}.mul_(2)", "{x}.neg_()", "{x}.fill_(3)", "{x}.zero_()", "{x}.sub_(0.5)"],
    "complex numbers": ["{x}.mul_(1j)", "{x}.fill_(1 + 2j)", "{x}.conj_physical_()", "{x}.add_(2j)"],
    "functions": [
        "{x}.sin_()",
        "{x}.sigmoid_()",
        "{x}.clamp_(-1, 1)",
        "{x}.abs_()",
        "{x}.pow_(2)",
        "{x}.relu_()",
        "{x}.div_(2)",
        "{x}.tril_()",
        "{x}.cumsum_(0)",
    ],
    "tensors": [
        "{x}.copy_({y})",
        "{x}.add_({y})",
        "{x}.mul_({y})",
        "{x}.sub_({y}, alpha=2)",
        "{x}.addcmul_({y}, {y})",
        "{x}.lerp_({y}, 0.5)",
        "torch.add({y}, 1, out={x})",
        "torch.mul({x}, 3, out={x})",
        "{x}.copy_({y}.flip(0))",
        "{x}.copy_({x} * 2)",
    ],
    "assignments": [
        "{x}[0] = 1",
        "{x}[..., 0] = 2",
        "{x}[1:] = 0",
        "{x}[...] = {y}",
        "{x}[:1] = {y}",
        "{x}[0] += 1",
        "{x}[..., 1:] *= 2",
        "{x}[torch.tensor([0])] = 5",
        "{x}[{x} > 0.3] = 1",
        "{x}[0] = {x}[-1] * 2",
        "{n} += 1",
        "{n} *= 2",
        "{n} -= {y}",
    ],
    "indices": [
        "{x}.index_fill_({d}, torch.tensor([0]), 7)",
        "{x}.index_add_({d}, torch.tensor([0]), {x}.narrow({d}, 0, 1) * 1)",
        "{x}.index_copy_({d}, torch.tensor([0]), {x}.narrow({d}, 0, 1) * 2)",
        "{x}.scatter_({d}, torch.zeros_like({x}, dtype=torch.int64), 2)",
        "{x}.scatter_add_({d}, torch.zeros_like({x}, dtype=torch.int64), {x} * 1)",
        "{x}.scatter_reduce_({d}, torch.zeros_like({x}, dtype=torch.int64), {x} * 2, 'sum')",
        "{x}.masked_fill_({x} > 0, 1)",
        "{x}.put_(torch.tensor([0]), torch.ones(1, dtype={x}.dtype))",
        "{x}.fill_diagonal_(4)",
        "{x}.index_put_((torch.tensor([0]),), torch.ones((), dtype={x}.dtype), accumulate=True)",
    ],
    "shape": ["{n}.t_()", "{n}.transpose_({d}, {e})", "{n}.unsqueeze_(0)", "{n}.squeeze_()", "{n}.squeeze_({d})"],
    "lists": ["torch._foreach_add_([{x}], 1)", "torch._foreach_mul_([{x}, {y}], 2)", "torch._foreach_neg_([{x}])"],
    "unseen by autograd": ["{x}.data.add_(1)", "{x}.detach().mul_(2)"],
}

READS = {
    "numbers": ["{x} * 2", "{x} + 3", "{x} - 1", "-{x}", "{x} * {x}", "{x} / 2"],
    "tensors": ["{x} + {y}", "{x} * {y}", "torch.cat([{x}, {x}])", "torch.stack([{x}, {x}])", "{x} - {y}.sum()"],
    "sums": ["{x}.sum()", "{x}.sum({d})", "{x}.mean()", "{x}.cumsum({d})", "{x}.sum(0, keepdim=True)"],
    "functions": ["{x}.sin()", "{x}.sigmoid()", "{x}.abs()", "{x}.tanh()", "{x}.relu()"],
    "copies": [
        "{x}.clone()",
        "{x}.flip(0)",
        "{x}.roll(1)",
        "{x}.contiguous()",
        "torch.zeros_like({x})",
        "torch.empty_like({x}).copy_({x})",
        "torch.empty_strided({x}.shape, {x}.stride(), dtype={x}.dtype).copy_({x})",
        "{x}.clone(memory_format=torch.contiguous_format)",
        "{x}.resolve_conj().clone()",
    ],
    "dtypes": ["{x}.to(torch.complex128)", "{x}.float()", "{x} > 0", "{x}.double()", "{x}.to(torch.float64) + 1"],
    "choices": ["torch.where({x} > 0, {x}, {x} * 2)", "{x}.masked_fill({x} > 0, 1)", "{x}.tril()"],
    "scatters": [
        "torch.as_strided_copy({x}, (2,), (1,))",
        "torch.as_strided_scatter({x}, torch.zeros(2, dtype={x}.dtype), (2,), (1,))",
        "{x}.select_scatter({x}.select({d}, 0) * 3, {d}, 0)",
        "{x}.slice_scatter({x}[1:] * 2, 0, 1)",
        "{x}.diagonal_scatter({x}.diagonal() * 2)",
        "torch.unbind_copy({x})[0]",
        "torch.transpose_copy({x}, {d}, {e})",
        "torch.view_copy({x}, (-1,))",
        "torch.expand_copy({x}, (2, {m}))",
    ],
    "products": [
        "{x} @ {x}.mT",
        "torch.nn.functional.linear({x}, {x})",
        "{x}.float() @ {x}.float().mT",
        "torch.nn.functional.softmax({x}, -1)",
        "torch.linalg.vector_norm({x})",
        "{x}.bfloat16().sum()",
    ],
    "facts": [
        "({x}.stride(), {x}.storage_offset())",
        "({x}.is_contiguous(), {x}.is_conj(), {x}.is_neg())",
        "({x}.requires_grad, {x}.is_leaf)",
        "{x}.is_contiguous(memory_format=torch.channels_last)",
        "{x} is a",
        "{x}.data_ptr() == a.data_ptr()",
    ],
    "breaks": [
        "float({x}.sum().real)",
        "len({x}.tolist())",
        "bool({x}.sum().real > 0.7)",
        "{x}.detach().numpy().shape",
    ],
}


def layouts(s: tuple[int, ...], kind: str) -> list[tuple[str, tuple[int, ...], str]]:
    """Forms of an argument with sizes `s` and dtype `kind`: a string with {} for a tensor of values, its sizes and
    dtype."""
    ways = [("{}", s, kind)]
    if not s:
        return [*ways, ("{}[1]", (3,), kind)]
    n, back = math.prod(s), tuple(range(len(s)))[::-1]
    ways += [
        (f"{{}}[3:].view({s})", (n + 3,), kind),
        ("{}[2:]", (s[0] + 2, *s[1:]), kind),
        ("{}[1:-1]", (s[0] + 2, *s[1:]), kind),
        ("{}[::2]", (s[0] * 2, *s[1:]), kind),
        ("{}[..., ::2]", (*s[:-1], s[-1] * 2), kind),
        ("{}[..., 1::2]", (*s[:-1], s[-1] * 2), kind),
        ("{}[1]", (2, *s), kind),
        ("{}[..., 1]", (*s, 2), kind),
        (f"{{}}.expand({s})", (1, *s[1:]), kind),
        (f"{{}}.permute({back})", s[::-1], kind),
    ]
    if len(s) == 4:
        ways += [("{}.to(memory_format=torch.channels_last)", s, kind)] * 3
    if 1 in s:
        d = s.index(1)
        strides = tuple(7 if size == 1 else math.prod(s[i + 1 :]) for i, size in enumerate(s))
        ways += [(f"{{}}.unsqueeze({d})", (*s[:d], *s[d + 1 :]), kind), (f"{{}}.as_strided({s}, {strides})", s, kind)]
    if kind == "complex128":
        ways += [("{}.conj()", s, kind), (f"{{}}.permute({back}).conj()", s[::-1], kind)]
        ways += [("torch.view_as_complex({})", (*s, 2), "float64")]
    if kind == "float64":
        ways += [(text, s, "complex128") for text in ("{}.real", "{}.imag", "{}.conj().imag")]
        ways += [("torch._neg_view({})", s, kind)]
    return ways
