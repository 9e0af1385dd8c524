"""Decompositions of functions of a length, an offset or a step alone (base.py): diagonals, triangles, window functions,
frequencies, sequences of several lengths, broadcast sizes."""

from .. import _C
from .._genuine import math, torch
from .base import form, hide, is_dense, is_float
from .pooling import Windows, apart

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_nn = torch._C._nn

# ---- diagonals


@form(torch.diagonal, torch._C.TensorBase.diagonal)
def diagonal(input, offset=0, dim1=0, dim2=1):
    rank = input.dim() if is_dense(input) else 0
    if not -rank <= dim1 < rank or not -rank <= dim2 < rank:
        return torch.diagonal(input, offset, dim1, dim2)
    dim, start = (dim2, offset) if offset >= 0 else (dim1, -offset)
    rest = input.shape[dim] - start
    if rest < 0:
        start, rest = input.shape[dim], 0
    return input.narrow(dim, start, rest).diagonal(0, dim1, dim2)


diagonal_of = diagonal


@form(torch.diag_embed, torch._C.TensorBase.diag_embed)
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    usual = is_dense(input) and input.dim() > 0 and input.dtype is not torch.bool
    if not usual or (dim1, dim2) != (-2, -1):
        return torch.diag_embed(input, offset, dim1, dim2)
    right, below = (offset, 0) if offset >= 0 else (0, -offset)
    return torch.constant_pad_nd(torch.diag_embed(input), (right, below, below, right))


@form(torch.diag, torch._C.TensorBase.diag)
def diag(input, diagonal=0):
    if not is_dense(input) or input.dim() not in (1, 2) or input.dtype is torch.bool:
        return torch.diag(input, diagonal)
    return diag_embed(input, diagonal) if input.dim() == 1 else diagonal_of(input, diagonal).clone()


@form(torch.diagflat, torch._C.TensorBase.diagflat)
def diagflat(input, offset=0):
    if not is_dense(input) or input.dtype is torch.bool:
        return torch.diagflat(input, offset)
    return diag_embed(input.reshape(-1), offset)


# ---- triangles


def count_below(rows, columns, offset):
    """The number of elements on and below a diagonal: none in the first rows, one more in each row, then whole rows."""
    none = torch.sym_min(torch.sym_max(-offset, 0), rows)
    whole = torch.sym_min(torch.sym_max(columns - offset, 0), rows)
    return (whole - none) * (none + whole + 1 + 2 * offset) // 2 + (rows - whole) * columns


def indices(first, in_row, count):
    """Row and column of `count` elements, row by row: row i has in_row[i] elements from column first[i] on."""
    ends, at = in_row.cumsum(0), torch.arange(count)
    row = torch.searchsorted(ends, at, right=True)
    return torch.stack([row, at - (ends - in_row)[row] + first[row]])


@form(torch.tril_indices)
def tril_indices(row, col, offset=0, *, dtype=torch.int64, device=None):
    if row < 0 or col < 0 or dtype is not torch.int64:
        return torch.tril_indices(row, col, offset, dtype=dtype, device=device)
    in_row = (torch.arange(row, device=device) + (offset + 1)).clamp(min=0, max=col)
    return indices(torch.zeros_like(in_row), in_row, count_below(row, col, offset))


@form(torch.triu_indices)
def triu_indices(row, col, offset=0, *, dtype=torch.int64, device=None):
    if row < 0 or col < 0 or dtype is not torch.int64:
        return torch.triu_indices(row, col, offset, dtype=dtype, device=device)
    first = (torch.arange(row, device=device) + offset).clamp(min=0, max=col)
    return indices(first, col - first, row * col - count_below(row, col, offset - 1))


@form(torch.combinations, always=True)
def combinations(input, r=2, with_replacement=False):
    if not is_dense(input) or input.dim() != 1 or type(r) is not int or r != 2:
        return torch.combinations(input, r, with_replacement)
    count = input.shape[0]
    return input[triu_indices(count, count, 0 if with_replacement else 1)].T.contiguous()


# ---- functions of a position


def angles(length, periodic, turns, dtype, device):
    """The angles of `turns` turns over a window; None for windows with a special meaning."""
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if dtype not in (torch.float32, torch.float64) or length < 2:
        return None
    last = length if periodic else length - 1
    return torch.arange(length, dtype=dtype, device=device) * (turns * math.pi / last)


@form(torch.hann_window)
def hann_window(window_length, periodic=True, *, dtype=None, device=None):
    x = angles(window_length, periodic, 2, dtype, device)
    if x is None:
        return torch.hann_window(window_length, periodic, dtype=dtype, device=device)
    return 0.5 - 0.5 * x.cos()


@form(torch.hamming_window)
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, device=None):
    x = angles(window_length, periodic, 2, dtype, device)
    if x is None:
        return torch.hamming_window(window_length, periodic, alpha, beta, dtype=dtype, device=device)
    return x.cos() * -beta + alpha


@form(torch.blackman_window)
def blackman_window(window_length, periodic=True, *, dtype=None, device=None):
    x = angles(window_length, periodic, 2, dtype, device)
    if x is None:
        return torch.blackman_window(window_length, periodic, dtype=dtype, device=device)
    return (x * 2).cos() * 0.08 - x.cos() * 0.5 + 0.42


@form(torch.bartlett_window)
def bartlett_window(window_length, periodic=True, *, dtype=None, device=None):
    x = angles(window_length, periodic, 2 / math.pi, dtype, device)
    if x is None:
        return torch.bartlett_window(window_length, periodic, dtype=dtype, device=device)
    return torch.where(x <= 1, x, 2 - x)


@form(torch.kaiser_window)
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, device=None):
    x = angles(window_length, periodic, 2 / math.pi, dtype, device)
    if x is None:
        return torch.kaiser_window(window_length, periodic, beta, dtype=dtype, device=device)
    whole = torch.full((), beta, dtype=x.dtype, device=device)
    return torch.special.i0(whole * (1 - (x - 1).square()).clamp(min=0).sqrt()) / torch.special.i0(whole)


def frequencies(n, dtype):
    return n > 0 and dtype in (None, torch.float32, torch.float64)


@form(torch.fft.fftfreq)
def fftfreq(n, d=1.0, *, dtype=None, device=None):
    if not frequencies(n, dtype):
        return torch.fft.fftfreq(n, d, dtype=dtype, device=device)
    place = torch.arange(n, dtype=torch.get_default_dtype() if dtype is None else dtype, device=device)
    return torch.where(place < (n + 1) // 2, place, place - n) * (1 / (n * d))


@form(torch.fft.rfftfreq)
def rfftfreq(n, d=1.0, *, dtype=None, device=None):
    if not frequencies(n, dtype):
        return torch.fft.rfftfreq(n, d, dtype=dtype, device=device)
    dtype = torch.get_default_dtype() if dtype is None else dtype
    return torch.arange(n // 2 + 1, dtype=dtype, device=device) * (1 / (n * d))


@form(torch.logspace)
def logspace(start, end, steps, base=10.0, *, dtype=None, device=None):
    if isinstance(steps, (float, torch.SymFloat)):
        return torch.logspace(start, end, steps)  # raises the error
    kind = torch.get_default_dtype() if dtype is None else dtype
    tensors = isinstance(start, torch.Tensor) or isinstance(end, torch.Tensor)
    if kind not in (torch.float32, torch.float64) or tensors or base <= 0:
        return torch.logspace(start, end, steps, base, dtype=dtype, device=device)
    return torch.pow(base, torch.linspace(start, end, steps, dtype=dtype, device=device))


@form(torch.vander, always=True)
def vander(x, N=None, increasing=False):
    count = None if not is_float(x) or x.dim() != 1 else x.shape[0] if N is None else N
    if count is None or count < 1:
        return torch.vander(x, N, increasing)
    powers = x.unsqueeze(1).expand(-1, count - 1).cumprod(1)
    out = torch.cat([torch.ones_like(x).unsqueeze(1), powers], 1)
    return out if increasing else out.flip(1)


# ---- parts of a tensor replaced


@form(torch.diagonal_scatter, torch._C.TensorBase.diagonal_scatter)
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    rank = input.dim() if is_dense(input) and is_dense(src) and input.is_contiguous() else 0
    if not -rank <= dim1 < rank or not -rank <= dim2 < rank or input.dtype != src.dtype:
        return torch.diagonal_scatter(input, src, offset, dim1, dim2)
    out = input.clone()
    part = diagonal_of(out, offset, dim1, dim2)
    if part.dim() != src.dim() or not all(m == n for m, n in zip(part.shape, src.shape)):
        return torch.diagonal_scatter(input, src, offset, dim1, dim2)
    part.copy_(src)
    return out


@form(torch._C._VariableFunctions.block_diag, always=True)
def block_diag(tensors):
    """Decomposed with gradients only: ATen's derivative keeps the sizes as numbers."""
    usual = isinstance(tensors, (list, tuple)) and len(tensors) > 0 and all(is_dense(t) for t in tensors)
    usual = usual and all(t.dim() <= 2 and t.dtype == tensors[0].dtype for t in tensors)
    if not usual or not torch.is_grad_enabled() or not any(t.requires_grad for t in tensors):
        return torch._C._VariableFunctions.block_diag(tensors)
    blocks = [t if t.dim() == 2 else t.reshape(1, -1) for t in tensors]
    before, width, rows = 0, sum(t.shape[1] for t in blocks), []
    for block in blocks:
        sides = [block.new_zeros(block.shape[0], n) for n in (before, width - before - block.shape[1])]
        rows.append(torch.cat([sides[0], block, sides[1]], 1))
        before = before + block.shape[1]
    return torch.cat(rows)


# ---- repetitions


def repeats_each(input, repeats, dim):
    """Whether each slice has its own number of repetitions. For a single slice, ATen would ask whether the number is
    for all."""
    usual = is_dense(input) and is_dense(repeats) and repeats.dim() == 1 and repeats.dtype is torch.int64
    return usual and type(dim) is int and -input.dim() <= dim < input.dim() and repeats.shape[0] == input.shape[dim]


@form(torch.repeat_interleave, torch._C.TensorBase.repeat_interleave, always=True)
def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    flat = input.reshape(-1) if dim is None and is_dense(input) and isinstance(repeats, torch.Tensor) else input
    at = 0 if dim is None else dim
    if not repeats_each(flat, repeats, at):
        return torch.repeat_interleave(input, repeats, dim, output_size=output_size)
    return flat.index_select(at, torch.repeat_interleave(repeats, output_size=output_size))


# ---- the rest


@form(torch.round, torch._C.TensorBase.round)
def round(input, *, decimals=0):
    if not is_float(input) or input.dtype not in (torch.float32, torch.float64):
        return torch.round(input, decimals=decimals)
    if decimals >= 0:
        unit = torch.full((), 10**decimals, dtype=input.dtype)
        return torch.round(input * unit) / unit
    unit = torch.full((), 10**-decimals, dtype=input.dtype)
    return torch.round(input / unit) * unit


@form(torch.rot90, torch._C.TensorBase.rot90)
def rot90(input, k=1, dims=(0, 1)):
    return torch.rot90(input, int(k % 4), dims)


@form(torch._C._VariableFunctions.stft)
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    given = (hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)
    hop = n_fft // 4 if hop_length is None else hop_length
    usual = is_float(input) and is_float(window) and 1 <= input.dim() <= 2 and window.dim() == 1
    usual = usual and return_complex and not align_to_window and win_length in (None, n_fft) and hop > 0 and n_fft > 0
    if not usual or window.shape[0] != n_fft or input.shape[-1] < n_fft:
        return torch._C._VariableFunctions.stft(input, n_fft, *given)
    frames = apart(input, [Windows(input.shape[-1], n_fft, hop, 0)]) * window
    norm = "ortho" if normalized else "backward"
    if onesided is None or onesided:
        return torch.fft.rfft(frames, norm=norm).transpose(-1, -2)
    return torch.fft.fft(frames, norm=norm).transpose(-1, -2)


@form(_nn.pad_sequence, always=True)
def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    def original():
        return _nn.pad_sequence(sequences, batch_first, padding_value, padding_side)

    if not isinstance(sequences, (list, tuple)) or len(sequences) == 0 or padding_side not in ("left", "right"):
        return original()
    first = sequences[0]
    if not all(is_dense(s) and s.dim() == first.dim() > 0 and s.dtype == first.dtype for s in sequences):
        return original()
    if any(s.shape[1:] != first.shape[1:] for s in sequences):
        return original()
    longest = first.shape[0]
    for s in sequences:
        longest = torch.sym_max(longest, s.shape[0])
    padded = []
    for s in sequences:
        missing = (longest - s.shape[0], *s.shape[1:])
        filling = torch.full(missing, padding_value, dtype=s.dtype, device=s.device)
        padded.append(torch.cat([filling, s] if padding_side == "left" else [s, filling]))
    return torch.stack(padded, 0 if batch_first else 1)


# ---- sizes


@form(torch._C._infer_size)
def infer_size(a, b):
    x = torch.broadcast_tensors(torch.empty(()).expand(a), torch.empty(()).expand(b))[0]
    return x.size()


hide(globals())
