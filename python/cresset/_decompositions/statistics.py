"""Decompositions along a dimension (base.py): quantiles, histograms, covariances, integrals, differences."""

from .. import _C
from .._genuine import math, torch
from .._numbers import FLOATS, NUMBERS, SYMFLOATS
from .base import form, hide, holds, is_dense, is_float, is_of_data, is_symbol, product_of

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

# ---- quantiles


def is_quantile(input, q, interpolation):
    usual = is_float(input) and type(q) in FLOATS and interpolation in PLACES
    return usual and input.dtype in (torch.float32, torch.float64) and input.dim() > 0


PLACES = {
    "linear": lambda rank, low: rank - low,
    "lower": lambda rank, low: torch.zeros_like(rank),
    "higher": lambda rank, low: (rank != low).to(rank.dtype),
    "nearest": lambda rank, low: rank.round() - low,
    "midpoint": lambda rank, low: (rank != low) * 0.5,
}


def picked(ordered, at, place):
    """Elements at a position along a dimension: a position for all, or for each."""
    return ordered.gather(at, place) if place.dim() > 0 else ordered.index_select(at, place.view(1))


def quantile_of(input, q, dim, keepdim, interpolation, without_nan):
    along = input.reshape(-1) if dim is None else input
    at = 0 if dim is None else dim
    ordered = along.sort(at).values  # NaN comes last
    last = along.shape[at] - 1
    if without_nan:
        last = along.isnan().logical_not().sum(at, keepdim=True) - 1
    rank = torch.full((), q, dtype=input.dtype) * last
    if without_nan:
        rank = rank.clamp(min=0)
    low = rank.floor()
    weight = PLACES[interpolation](rank, low).to(input.dtype)
    out = picked(ordered, at, low.long())
    if interpolation != "lower":
        out = torch.lerp(out, picked(ordered, at, rank.ceil().long()), weight)
    if not without_nan:
        out = torch.where(along.isnan().any(at, keepdim=True), math.nan, out)
    if dim is not None:
        return out if keepdim else out.squeeze(at)
    return out.view([1] * input.dim()) if keepdim else out.squeeze(0)


def form_of_quantile(function, method, without_nan):
    name = function.__name__

    @form(function, method, always=True)
    def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
        if (
            not is_quantile(input, q, interpolation)
            or not 0 <= q <= 1
            or not holds(input.numel() > 0, f"{name}() input tensor must be non-empty")
        ):
            return function(input, q, dim, keepdim, interpolation=interpolation)
        return quantile_of(input, q, dim, keepdim, interpolation, without_nan)


form_of_quantile(torch.quantile, torch._C.TensorBase.quantile, False)
form_of_quantile(torch.nanquantile, torch._C.TensorBase.nanquantile, True)


# ---- histograms


@form(torch.histc, torch._C.TensorBase.histc)
def histc(input, bins=100, min=0, max=0):
    usual = is_float(input) and input.dtype in (torch.float32, torch.float64)
    input = input.detach() if usual else input  # the operator has no derivative
    if usual and bins > 0 and not is_symbol(min) and not is_symbol(max) and min == max == 0:
        return _C.called("aten::histc", input, bins, 0, 0)  # the range comes from the data, which may be empty
    if not usual or not bins > 0 or not min < max or not max - min < math.inf:
        return torch.histc(input, bins, min, max)
    x = input.reshape(-1)
    first, last = (torch.full((), n, dtype=x.dtype) for n in (min, max))
    within = (x >= first) & (x <= last)
    place = (torch.where(within, x, first) - first) * bins / (last - first)
    place = place.long().clamp(max=bins - 1)
    return torch.zeros(bins, dtype=x.dtype).index_add(0, place, within.to(x.dtype))


# ---- covariances


@form(torch.cov, torch._C.TensorBase.cov)
def cov(input, *, correction=1, fweights=None, aweights=None):
    usual = is_float(input) and 0 < input.dim() <= 2 and fweights is None and aweights is None
    if not usual or not input.numel() > 0 or not input.shape[-1] > correction:
        return torch.cov(input, correction=correction, fweights=fweights, aweights=aweights)
    rows = input if input.dim() == 2 else input.unsqueeze(0)
    rest = rows - rows.mean(1, keepdim=True)
    return (rest @ rest.T / (rows.shape[1] - correction)).squeeze()


# ---- variances


def counted(input, dim):
    """The number of input elements for each result."""
    dims = range(input.dim()) if dim is None or dim == [] or dim == () else (dim,) if type(dim) is int else dim
    return product_of(input.shape[d] for d in dims)


def is_own_correction(input, dim, correction):
    """Whether ATen's operator or its derivative would specialize a symbolic correction. Without degrees of freedom,
    eager mode warns."""
    if not is_float(input) or not is_symbol(correction):
        return False
    wants_gradient = input.requires_grad and torch.is_grad_enabled()
    return (wants_gradient or type(correction) in SYMFLOATS) and holds(counted(input, dim) > correction)


def corrected(variance, input, dim, correction):
    """The variance of all elements, corrected to an estimate with fewer degrees of freedom."""
    count = torch.full((), counted(input, dim), dtype=torch.float64)
    return variance * (count / (count - correction)).to(variance.dtype)


@form(torch.var, torch._C.TensorBase.var)
def var(input, dim=None, *, correction=1, keepdim=False):
    if not is_own_correction(input, dim, correction):
        return torch.var(input, dim, correction=correction, keepdim=keepdim)
    return corrected(torch.var(input, dim, correction=0, keepdim=keepdim), input, dim, correction)


variance_of = var


@form(torch.std, torch._C.TensorBase.std)
def std(input, dim=None, *, correction=1, keepdim=False):
    if not is_own_correction(input, dim, correction):
        return torch.std(input, dim, correction=correction, keepdim=keepdim)
    return rooted(variance_of(input, dim, correction=correction, keepdim=keepdim))


def rooted(variance):
    """The derivative is 0 where the variance is 0."""
    some = variance != 0
    return torch.where(some, torch.where(some, variance, 1.0).sqrt(), 0.0)


@form(torch.var_mean)
def var_mean(input, dim=None, *, correction=1, keepdim=False):
    if not is_own_correction(input, dim, correction):
        return torch.var_mean(input, dim, correction=correction, keepdim=keepdim)
    variance, mean = torch.var_mean(input, dim, correction=0, keepdim=keepdim)
    return corrected(variance, input, dim, correction), mean


@form(torch.std_mean)
def std_mean(input, dim=None, *, correction=1, keepdim=False):
    if not is_own_correction(input, dim, correction):
        return torch.std_mean(input, dim, correction=correction, keepdim=keepdim)
    variance, mean = torch.var_mean(input, dim, correction=0, keepdim=keepdim)
    return rooted(corrected(variance, input, dim, correction)), mean


# ---- integrals and differences


def is_integrated(y, dim):
    return is_float(y) and y.dim() > 0 and -y.dim() <= dim < y.dim() and y.shape[dim] >= 1


def means_of_neighbours(y, dim):
    before = (slice(None),) * (dim % y.dim())
    return (y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]) / 2


@form(torch.trapezoid, torch.trapz)
def trapezoid(y, x=None, *, dx=1, dim=-1):
    if x is not None or not is_integrated(y, dim):
        return torch.trapezoid(y, x, dim=dim) if x is not None else torch.trapezoid(y, dx=dx, dim=dim)
    return means_of_neighbours(y, dim).sum(dim) * dx


@form(torch.cumulative_trapezoid)
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    if x is not None or not is_integrated(y, dim):
        given = {"dx": dx} if x is None else {"x": x}
        return torch.cumulative_trapezoid(y, dim=dim, **given)
    return means_of_neighbours(y, dim).cumsum(dim) * dx


@form(torch.diff, torch._C.TensorBase.diff, always=True)
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """Differences along a data-dependent length, which may be 0: an empty input has no differences."""
    rank = input.dim() if is_float(input) else 0
    usual = type(n) is int and n == 1 and prepend is None and append is None and -rank <= dim < rank
    if not usual or not is_of_data(input.shape[dim]):
        return torch.diff(input, n, dim, prepend, append)
    length = input.shape[dim]
    count = torch.sym_max(length - 1, 0)
    return input.narrow(dim, length - count, count) - input.narrow(dim, 0, count)


def gradient_along(input, dim, step):
    count = input.shape[dim]
    inner = (input.narrow(dim, 2, count - 2) - input.narrow(dim, 0, count - 2)) / (2 * step)
    first = (input.narrow(dim, 1, 1) - input.narrow(dim, 0, 1)) / step
    last = (input.narrow(dim, count - 1, 1) - input.narrow(dim, count - 2, 1)) / step
    return torch.cat([first, inner, last], dim)


@form(torch.gradient, always=True)
def gradient(input, *, spacing=None, dim=None, edge_order=1):
    def original():
        given = {"spacing": spacing, "dim": dim, "edge_order": edge_order}
        return torch.gradient(input, **{k: v for k, v in given.items() if v is not None})

    steps = 1 if spacing is None else spacing
    one = type(steps) in NUMBERS
    if not is_float(input) or not one or type(edge_order) is not int or edge_order != 1 or input.dim() == 0:
        return original()
    dims = list(range(input.dim())) if dim is None else [dim] if type(dim) is int else dim
    if not isinstance(dims, (list, tuple)) or not all(type(d) is int for d in dims):
        return original()
    rank = input.dim()
    if not all(-rank <= d < rank for d in dims) or len({d % rank for d in dims}) != len(dims):
        return original()
    if not all(input.shape[d] >= 2 for d in dims):
        return original()
    return tuple(gradient_along(input, d, steps) for d in dims)


@form(torch.hsplit, torch._C.TensorBase.hsplit)
def hsplit(input, sections):
    if not is_dense(input) or not isinstance(sections, (list, tuple)) or input.dim() == 0:
        return torch.hsplit(input, sections)
    return torch.tensor_split(input, sections, dim=0 if input.dim() == 1 else 1)


@form(torch.vsplit, torch._C.TensorBase.vsplit)
def vsplit(input, sections):
    if not is_dense(input) or not isinstance(sections, (list, tuple)) or input.dim() < 2:
        return torch.vsplit(input, sections)
    return torch.tensor_split(input, sections, dim=0)


@form(torch.dsplit, torch._C.TensorBase.dsplit)
def dsplit(input, sections):
    if not is_dense(input) or not isinstance(sections, (list, tuple)) or input.dim() < 3:
        return torch.dsplit(input, sections)
    return torch.tensor_split(input, sections, dim=2)


@form(torch.tensor_split, torch._C.TensorBase.tensor_split, always=True)
def tensor_split(input, indices_or_sections, dim=0):
    """Splits into n parts; the first parts have an element more if the length is not divisible, without a decision on
    it. The parts are writable slices, unlike the parts of a split."""
    n = indices_or_sections
    if type(n) is not int or n < 1 or not is_dense(input) or not -input.dim() <= dim < input.dim():
        return torch.tensor_split(input, n, dim)
    length = input.shape[dim]
    if type(length) is int:
        return torch.tensor_split(input, n, dim)
    parts, begin = [], 0
    for i in range(n):
        size = (length + n - 1 - i) // n
        parts.append(input.narrow(dim, begin, size))
        begin = begin + size
    return tuple(parts)


hide(globals())
for _made in (form_of_quantile,):
    hide({"made": _made}, of=globals())
hide(PLACES, of=globals())
