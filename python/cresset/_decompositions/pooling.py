"""Decompositions of operators on windows (base.py): pools, unfold and fold, whose windows and steps may be sizes."""

from .. import _C
from .._genuine import math, torch
from .base import form, hide, holds, is_dense, is_float, is_symbol, laid_out_like, several

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_nn = torch._C._nn


class Windows:
    """The windows of a pool along a dimension: starts, length, and padding on either side."""

    def __init__(self, length, size, step, pad, spread=1):
        self.length, self.size, self.step, self.pad, self.spread = length, size, step, pad, spread
        self.reach = (size - 1) * spread + 1
        self.is_whole = pad == 0 and spread == 1 and bool(size == length)
        self.count = 1 if self.is_whole else (length + 2 * pad - self.reach) // step + 1

    def ends_even(self):
        """Whether the last window ends with the input, where ceil_mode has no effect."""
        return self.is_whole or (self.length + 2 * self.pad - self.reach) % self.step == 0

    def fit(self):
        within = (self.size > 0, self.step > 0, self.length > 0, self.length + 2 * self.pad >= self.reach)
        return all(holds(condition) for condition in within)

    def has_pad(self):
        """False if the padding is known to be empty."""
        return not (type(self.pad) is int and self.pad == 0)


def places(windows):
    """The index of each element in each window, counted with the padding in front."""
    first = torch.arange(windows.count) * windows.step
    return first.unsqueeze(1) + torch.arange(windows.size) * windows.spread


def taken_apart(tensor, dim, windows):
    """The padded tensor as windows: dim counts the windows, and the next dimension counts the elements of a window."""
    if windows.is_whole:
        return tensor.unsqueeze(dim)
    if type(windows.size) is int and windows.size == 1 and type(windows.step) is int and windows.step == 1:
        return tensor.unsqueeze(dim + 1)
    if windows.spread == 1 and windows.step == windows.size:
        used = tensor.narrow(dim, 0, windows.count * windows.size)
        return used.unflatten(dim, (windows.count, windows.size))
    taken = tensor.index_select(dim, places(windows).reshape(-1))
    return taken.unflatten(dim, (windows.count, windows.size))


def in_transform():
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_differentiated(tensor):
    """Whether strided views must be avoided: their derivatives specialize the number of elements."""
    return in_transform() or (tensor.requires_grad and torch.is_grad_enabled())


def apart(tensor, windows):
    """The last dimensions as windows: each becomes two, the number of windows and the elements of a window."""
    if is_differentiated(tensor):
        for i in range(len(windows)):  # from the last dimension on
            tensor = taken_apart(tensor, tensor.dim() - 1 - 2 * i, windows[-1 - i])
        return tensor
    tensor = tensor.contiguous()
    sizes, strides, between, lead = [], [], 1, tensor.dim() - len(windows)
    for length, w in zip(reversed(tensor.shape[lead:]), reversed(windows)):
        sizes[:0], strides[:0] = [w.count, w.size], [between * w.step, between * w.spread]
        between = between * length
    for length in reversed(tensor.shape[:lead]):
        sizes.insert(0, length)
        strides.insert(0, between)
        between = between * length
    return tensor.as_strided(sizes, strides)


def all_positive(numbers):
    return all(holds(n > 0) for n in numbers)


def windows_of(input, rank, sizes, steps, pads, spreads=1):
    """The windows along each of the last dimensions; None for arguments unsuitable for the operator."""
    if not is_float(input) or input.dim() not in (rank + 1, rank + 2):
        return None
    sizes = several(sizes, rank)
    steps = sizes if steps is None or steps == [] or steps == () else several(steps, rank)
    pads, spreads = several(pads, rank), several(spreads, rank)
    if sizes is None or steps is None or pads is None or spreads is None:
        return None
    if any(p < 0 for p in pads) or any(s < 1 for s in spreads) or not all_positive(input.shape[-rank - 1 :]):
        return None
    out = []
    for length, size, step, pad, spread in zip(input.shape[-rank:], sizes, steps, pads, spreads):
        if not all_positive((size, step)):
            return None
        out.append(Windows(length, size, step, pad, spread))
    return out if all(w.fit() for w in out) else None


def steps_given(stride):
    return () if stride is None else stride


def padded(input, windows, value=0.0):
    if not any(w.has_pad() for w in windows):
        return input
    pads = []
    for w in reversed(windows):
        pads += [w.pad, w.pad]
    return torch.constant_pad_nd(input, pads, value)


def elements(windows):
    """The number of input elements in each window."""
    first = torch.arange(windows.count) * windows.step - windows.pad
    return (first + windows.size).clamp(max=windows.length) - first.clamp(min=0)


def means(input, rank, sizes, steps, pads, ceil_mode, count_pads, divisor, original):
    windows = windows_of(input, rank, sizes, steps, pads)
    if windows is None or any(2 * w.pad > w.size or (ceil_mode and not w.ends_even()) for w in windows):
        return original()
    if divisor is not None and divisor == 0:
        return original()  # raises the error
    out = apart(padded(input, windows), windows)
    inner = [-1 - 2 * i for i in range(rank)]
    if divisor is None and (count_pads or not any(w.has_pad() for w in windows)):
        out = out.mean(inner)
    else:
        if divisor is None:
            divisor = elements(windows[0])
            for w in windows[1:]:
                divisor = divisor.unsqueeze(-1) * elements(w)
        out = out.sum(inner) / divisor
    return laid_out_like(out, input) if rank == 2 else out.contiguous()


@form(torch.avg_pool1d, varied=True)
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    def original():
        return torch.avg_pool1d(input, kernel_size, steps_given(stride), padding, ceil_mode, count_include_pad)

    return means(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None, original)


def means_of_images(function, rank):
    @form(function, varied=True)
    def avg_pool(
        input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        def original():
            return function(
                input, kernel_size, steps_given(stride), padding, ceil_mode, count_include_pad, divisor_override
            )

        counts = ceil_mode, count_include_pad, divisor_override
        return means(input, rank, kernel_size, stride, padding, *counts, original)


means_of_images(_nn.avg_pool2d, 2)
means_of_images(_nn.avg_pool3d, 3)


def largest_of(tensor, dim, at):
    """The first largest element of each window, and its position along dim. at: the positions of each window's
    elements."""
    taken = tensor.index_select(dim, at.reshape(-1)).unflatten(dim, tuple(at.shape))
    values, chosen = taken.max(dim + 1)
    shape = [1] * tensor.dim()
    shape[dim] = -1
    first = torch.arange(at.shape[0]).view(shape) * at.shape[1]
    return values, at.reshape(-1)[chosen + first]


def largest(input, rank, all_places):
    """The largest elements of windows along the last dimensions, in turn, with their indices: the first in memory
    order."""
    values, index = input, None
    for i in range(rank):
        dim = input.dim() - 1 - i
        at = all_places[-1 - i]
        if at is None:  # the whole dimension
            values, place = values.max(dim, keepdim=True)
        else:
            values, place = largest_of(values, dim, at)
        index = place if index is None else index.gather(dim, place) + place * strides_below(input, dim)
    return laid_out_like(values, input), laid_out_like(index, input)


def strides_below(input, dim):
    out = 1
    for n in input.shape[dim + 1 :]:
        out = out * n
    return out


def places_within(windows):
    if windows.is_whole:
        return None
    return (places(windows) - windows.pad).clamp(min=0, max=windows.length - 1)


def maxima(input, rank, sizes, steps, pads, spreads, ceil_mode, original):
    windows = windows_of(input, rank, sizes, steps, pads, spreads)
    if windows is None or any(2 * w.pad > w.size or (ceil_mode and not w.ends_even()) for w in windows):
        return original()
    if any(w.has_pad() and not (type(w.spread) is int and w.spread == 1) for w in windows):
        return original()  # an element clamped into the window may lie outside of it
    values, index = largest(input, rank, [places_within(w) for w in windows])
    if not is_differentiated(input):  # an unused result of the two is not computed
        greatest = apart(padded(input, windows, -math.inf), windows).amax([-1 - 2 * i for i in range(rank)])
        values = laid_out_like(greatest, input)
    return values, index


def maxima_of(function, with_indices, rank):
    @form(with_indices, varied=True)
    def max_pool_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        def original():
            return with_indices(input, kernel_size, steps_given(stride), padding, dilation, ceil_mode)

        return maxima(input, rank, kernel_size, stride, padding, dilation, ceil_mode, original)

    @form(function, varied=True)
    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        def original():
            return (function(input, kernel_size, steps_given(stride), padding, dilation, ceil_mode),)

        return maxima(input, rank, kernel_size, stride, padding, dilation, ceil_mode, original)[0]


maxima_of(torch.max_pool1d, torch.max_pool1d_with_indices, 1)
maxima_of(torch.max_pool2d, _nn.max_pool2d_with_indices, 2)
maxima_of(torch.max_pool3d, _nn.max_pool3d_with_indices, 3)


# ---- pools of a given number of windows


@form(torch.adaptive_avg_pool1d, varied=True)
def adaptive_avg_pool1d(input, output_size):
    counts = several(output_size, 1)
    if counts is None or not is_dense(input) or input.dim() not in (2, 3):
        return torch.adaptive_avg_pool1d(input, output_size)
    return _nn.adaptive_avg_pool2d(input.unsqueeze(-2), (1, counts[0])).squeeze(-2)


def places_of_some(length, count):
    """Positions of the elements of windows over a whole length. Shorter windows repeat their last element."""
    of = torch.arange(count)
    first, end = of * length // count, ((of + 1) * length + count - 1) // count
    longest = (length + count - 1) // count + 1
    return torch.minimum(first.unsqueeze(1) + torch.arange(longest), end.unsqueeze(1) - 1)


def adaptive_maxima(input, rank, counts, original):
    counts = several(counts, rank)
    usual = counts is not None and is_float(input) and input.dim() in (rank + 1, rank + 2)
    if not usual or not all_positive(counts) or not all_positive(input.shape[1:]):
        return original()
    lengths = input.shape[-rank:]
    found = largest(input, rank, [places_of_some(n, c) for n, c in zip(lengths, counts)])
    # ATen's operator on volumes has no other layout
    return tuple(t.contiguous() for t in found) if rank == 3 else found


@form(torch.adaptive_max_pool1d, varied=True)
def adaptive_max_pool1d(input, output_size):
    return adaptive_maxima(input, 1, output_size, lambda: torch.adaptive_max_pool1d(input, output_size))


@form(_nn.adaptive_max_pool2d, varied=True)
def adaptive_max_pool2d(input, output_size):
    return adaptive_maxima(input, 2, output_size, lambda: _nn.adaptive_max_pool2d(input, output_size))


@form(_nn.adaptive_max_pool3d, varied=True)
def adaptive_max_pool3d(input, output_size):
    return adaptive_maxima(input, 3, output_size, lambda: _nn.adaptive_max_pool3d(input, output_size))


# ---- windows themselves


@form(torch._C.TensorBase.unfold, varied=True)
def unfold(self, dimension, size, step):
    rank = self.dim()
    if in_transform() or not -rank <= dimension < rank or not 0 < size <= self.shape[dimension] or step <= 0:
        return self.unfold(dimension, size, step)
    sizes, strides = list(self.shape), list(self.stride())
    sizes[dimension] = (sizes[dimension] - size) // step + 1
    between = strides[dimension]
    strides[dimension] = between * step
    return self.as_strided([*sizes, size], [*strides, between])


@form(_nn.im2col, varied=True)
def im2col(input, kernel_size, dilation, padding, stride):
    windows = None
    if is_dense(input):
        windows = windows_of(input, 2, kernel_size, stride, padding, dilation)
    if windows is None:
        return _nn.im2col(input, kernel_size, dilation, padding, stride)
    rows, columns = windows
    image = padded(input if input.dim() == 4 else input.unsqueeze(0), windows)
    taken = apart(image, windows)  # batch, channel, rows, in row, columns, in column
    batch, channels = image.shape[:2]
    shape = (batch, channels * rows.size * columns.size, rows.count * columns.count)
    out = taken.permute(0, 1, 3, 5, 2, 4).clone(memory_format=torch.contiguous_format).view(shape)
    return out if input.dim() == 4 else out.squeeze(0)


@form(_nn.col2im, varied=True)
def col2im(input, output_size, kernel_size, dilation, padding, stride):
    def original():
        return _nn.col2im(input, output_size, kernel_size, dilation, padding, stride)

    sizes, steps, pads = several(kernel_size, 2), several(stride, 2), several(padding, 2)
    spreads, out = several(dilation, 2), several(output_size, 2)
    if not is_float(input) or input.dim() not in (2, 3) or None in (sizes, steps, pads, spreads, out):
        return original()
    if not any(is_symbol(n) for n in (*sizes, *steps, *spreads, *pads)):
        return original()  # only the output size is symbolic here, which torch accepts
    if any(n <= 0 for n in (*sizes, *steps, *spreads, *out)) or any(p < 0 for p in pads):
        return original()
    rows, columns = (Windows(*of) for of in zip(out, sizes, steps, pads, spreads))
    channels = input.shape[-2] // (rows.size * columns.size)
    fits = rows.fit() and columns.fit() and input.shape[-1] == rows.count * columns.count
    if not fits or input.shape[-2] != channels * rows.size * columns.size or input.shape[-2] == 0:
        return original()
    height, width = out[0] + 2 * pads[0], out[1] + 2 * pads[1]
    lead = input.shape[:-2]
    blocks = input.reshape(*lead, channels, rows.size, columns.size, rows.count, columns.count)
    at = places(rows).T[:, None, :, None] * width + places(columns).T[None, :, None, :]
    image = torch.zeros(*lead, channels, height * width, dtype=input.dtype, device=input.device)
    image = image.index_add(-1, at.reshape(-1), blocks.flatten(-4))
    image = image.unflatten(-1, (height, width))
    return image.narrow(-2, pads[0], out[0]).narrow(-1, pads[1], out[1]).contiguous()


def split_channels(input, factor):
    """Whether guards say that the number of channels is divisible by factor * factor."""
    return factor > 0 and input.dim() >= 3 and input.shape[-3] % (factor * factor) == 0


@form(torch.pixel_shuffle)
def pixel_shuffle(input, upscale_factor):
    n = upscale_factor
    if not is_dense(input) or not split_channels(input, n):
        return torch.pixel_shuffle(input, n)
    *lead, channels, height, width = input.shape
    channels = channels // (n * n)
    blocks = input.reshape(*lead, channels, n, n, height, width)
    k = len(lead)
    moved = blocks.permute(*range(k), k, k + 3, k + 1, k + 4, k + 2).clone(memory_format=torch.contiguous_format)
    return laid_out_like(moved.view(*lead, channels, height * n, width * n), input)


@form(torch.pixel_unshuffle)
def pixel_unshuffle(input, downscale_factor):
    n = downscale_factor
    usual = is_dense(input) and input.dim() >= 3 and n > 0
    if not usual or input.shape[-1] % n != 0 or input.shape[-2] % n != 0:
        return torch.pixel_unshuffle(input, n)
    *lead, channels, height, width = input.shape
    blocks = input.reshape(*lead, channels, height // n, n, width // n, n)
    k = len(lead)
    moved = blocks.permute(*range(k), k, k + 2, k + 4, k + 1, k + 3).clone(memory_format=torch.contiguous_format)
    return laid_out_like(moved.view(*lead, channels * n * n, height // n, width // n), input)


hide(globals())
hide({**vars(Windows)}, of=globals())
