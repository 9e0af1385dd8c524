"""Decompositions of functions of start, end and step, which may be symbolic floats (base.py), and of upsampling by
symbolic factors."""

from .. import _C
from .._genuine import math, torch
from .._numbers import FLOATS, INTS, NUMBERS
from .base import form, hide, is_float, laid_out_like

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_nn = torch._C._nn


def is_number(value):
    return type(value) in NUMBERS


def has_float(numbers):
    return any(type(n) in FLOATS for n in numbers)


@form(torch.arange)
def arange(start, end=None, step=1, *, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """arange() of floats: each call computes the number of elements."""

    def original():
        of_ends = (start,) if end is None else (start, end, step)
        return torch.arange(*of_ends, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)

    first, last = (0, start) if end is None else (start, end)
    numbers = (first, last, step)
    if not all(is_number(n) for n in numbers) or not has_float(numbers) or requires_grad:
        return original()
    kind = torch.get_default_dtype() if dtype is None else dtype
    if kind not in (torch.float32, torch.float64) or layout is not torch.strided:
        return original()
    if step == 0 or not (last >= first if step > 0 else last <= first):
        return original()  # raises the error
    count = math.ceil((last - first) / step)
    return (torch.arange(count, dtype=torch.float64, device=device) * step + first).to(kind)


# ---- images by factors


def source(count, factor, dtype):
    """The source position of each element of the result, before rounding. The kernel divides in the dtype."""
    return torch.arange(count, dtype=dtype), torch.full((), 1 / factor, dtype=dtype)


def is_times(count, size, factor):
    """Whether count is factor * size, as a tensor: the answer decides only which element is taken."""
    return torch.full((), count) == factor * size


def nearest(input, dim, count, factor, exact):
    place, scale = source(count, factor, torch.float32)
    size = input.shape[dim]
    at = ((place + 0.5) * scale).floor() if exact else (place * scale).floor()
    if not exact:  # for these two sizes the kernels ignore the factor
        at = torch.where(is_times(count, size, 2), (place / 2).floor(), at)
        at = torch.where(is_times(count, size, 1), place, at)
    return input.index_select(dim, at.long().clamp(max=size - 1))


def between(input, dim, at):
    """Linear interpolation between two elements."""
    low = at.floor()
    shape = [1] * input.dim()
    shape[dim] = -1
    weight = (at - low).to(input.dtype).view(shape)
    low = low.long()
    high = (low + 1).clamp(max=input.shape[dim] - 1)
    return input.index_select(dim, low) * (1 - weight) + input.index_select(dim, high) * weight


def from_corner_to_corner(count, size, dtype):
    """Positions of `count` elements; the first and the last are aligned with the ends of `size` elements."""
    last = torch.full((), count - 1, dtype=dtype)
    return torch.arange(count, dtype=dtype) * ((size - 1) / last.clamp(min=1))


def linear(input, dim, count, factor, corners):
    size = input.shape[dim]
    if corners:
        at = from_corner_to_corner(count, size, input.dtype)
    else:
        place, scale = source(count, factor, input.dtype)
        at = torch.where(is_times(count, size, 1), place, ((place + 0.5) * scale - 0.5).clamp(min=0))
    return between(input, dim, at.clamp(max=size - 1))


def cubic_weights(t):
    """Weights of the elements at -1, 0, 1 and 2 for a position between 0 and 1."""
    a = -0.75

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def cubic(input, dim, count, factor, corners):
    size = input.shape[dim]
    if corners:
        at = from_corner_to_corner(count, size, input.dtype)
    else:
        at, scale = source(count, factor, input.dtype)
        at = (at + 0.5) * scale - 0.5
    low = at.floor()
    shape = [1] * input.dim()
    shape[dim] = -1
    out = 0
    for i, weight in enumerate(cubic_weights(at - low)):
        taken = input.index_select(dim, (low.long() + (i - 1)).clamp(min=0, max=size - 1))
        out = out + taken * weight.view(shape)
    return out


def larger_by(upsample, along, has_corners):
    """Registers the decomposition of an upsampling. Integer factors give output sizes; float factors go dimension by
    dimension."""

    def made(input, output_size, factors, corners, original):
        if output_size is not None or not isinstance(factors, (list, tuple)) or len(factors) != input.dim() - 2:
            return original()
        if all(type(f) in INTS for f in factors) and all(f >= 1 for f in factors):
            return sized(input, [n * f for n, f in zip(input.shape[2:], factors)], corners)
        usual = is_float(input) and input.dtype in (torch.float32, torch.float64)
        if not usual or not all(is_number(f) and f > 0 for f in factors) or not all(n > 0 for n in input.shape[1:]):
            return original()
        counts = [math.floor(n * f) for n, f in zip(input.shape[2:], factors)]
        if not all(n > 0 for n in counts):
            return original()
        out = input
        for i in reversed(range(len(counts))):
            out = along(out, i + 2, counts[i], factors[i], corners)
        return laid_out_like(out, input)

    def sized(input, sizes, corners):
        return upsample(input, sizes, corners, None) if has_corners else upsample(input, sizes, None)

    def form_of(input, output_size, scale_factors):
        return made(input, output_size, scale_factors, False, lambda: upsample(input, output_size, scale_factors))

    def form_of_corners(input, output_size, align_corners, scale_factors):
        return made(
            input,
            output_size,
            scale_factors,
            align_corners,
            lambda: upsample(input, output_size, align_corners, scale_factors),
        )

    form(upsample)(form_of_corners if has_corners else form_of)


def nearest_of(exact):
    return lambda input, dim, count, factor, corners: nearest(input, dim, count, factor, exact)


_nearest, _nearest_exact = nearest_of(False), nearest_of(True)
for _rank in ("1d", "2d", "3d"):
    larger_by(getattr(_nn, f"upsample_nearest{_rank}"), _nearest, False)
    larger_by(getattr(_nn, f"_upsample_nearest_exact{_rank}"), _nearest_exact, False)
for _name in ("linear1d", "bilinear2d", "trilinear3d"):
    larger_by(getattr(_nn, f"upsample_{_name}"), linear, True)
larger_by(_nn.upsample_bicubic2d, cubic, True)

hide(globals())
