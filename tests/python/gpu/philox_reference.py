"""Random numbers of eager mode on GPUs, computed with numpy: Philox 4x32-10, cuRAND's transformations, and the threads of
torch's kernels. A seed and an offset give the numbers; each function also returns the offset after them."""

from __future__ import annotations

import math

import numpy as np
import torch

THREADS = 256  # of a block


def blocks(seed, streams, counters):
    """Four words for each stream and counter: an array (n, 4) of uint64."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    streams, counters = (np.asarray(x, np.uint64) for x in np.broadcast_arrays(streams, counters))
    words = [counters & low, counters >> half, streams & low, streams >> half]
    keys = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (b >> half) ^ words[1] ^ np.uint64(keys[0]),
            b & low,
            (a >> half) ^ words[3] ^ np.uint64(keys[1]),
            a & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(words, -1)


def threads_for(count):
    gpu = torch.cuda.get_device_properties(0)
    most = gpu.multi_processor_count * (gpu.max_threads_per_multi_processor // THREADS)
    return min(most, -(-count // THREADS)) * THREADS


def words_of_elements(seed, offset, count, each):
    """The block of each element and its place among the `each` elements of the block; the offset afterwards."""
    if count == 0:
        return np.zeros((0, 4), np.uint64), np.zeros(0, np.int64), offset
    threads = threads_for(count)
    call, thread = np.divmod(np.arange(count), threads)
    found = blocks(seed, thread, offset // 4 + call // each)
    return found, call % each, offset + ((count - 1) // (threads * each) + 1) * 4


def uniform32(words):
    return words.astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)


def bits53(low, high):
    return low ^ (high << np.uint64(21))


def uniform64(low, high):
    return bits53(low, high).astype(np.float64) * 2.0**-53 + 2.0**-54


def pick(words, place):
    return np.take_along_axis(words, place[:, None], 1)[:, 0]


def uniforms(seed, offset, count, wide=False):
    """In (0, 1]."""
    words, place, after = words_of_elements(seed, offset, count, 2 if wide else 4)
    if wide:
        return uniform64(pick(words, 2 * place), pick(words, 2 * place + 1)), after
    return uniform32(pick(words, place)), after


def uniform(seed, offset, count, dtype, low=0.0, high=1.0):
    drawn, after = uniforms(seed, offset, count, dtype == torch.float64)
    low, high = torch.tensor(low, dtype=dtype), torch.tensor(high, dtype=dtype)
    exact = torch.from_numpy(drawn).double() * (high - low).double() + low.double()
    value = exact.float().to(dtype) if dtype != torch.float64 else exact
    return torch.where(value == high, low, value), after


def normal(seed, offset, count, dtype, mean=0.0, std=1.0):
    wide = dtype == torch.float64
    words, place, after = words_of_elements(seed, offset, count, 2 if wide else 4)
    if wide:
        first = uniform64(words[:, 0], words[:, 1])
        angle = math.pi * (bits53(words[:, 2], words[:, 3]).astype(np.float64) * 2.0**-52 + 2.0**-53)
    else:
        pair = place & ~1
        first = uniform32(pick(words, pair)).astype(np.float64)
        step = np.float64(np.float32(2**-32) * np.float32(6.2831855))
        angle = (pick(words, pair + 1).astype(np.float32).astype(np.float64) * step + step / 2).astype(np.float32)
        angle = angle.astype(np.float64)
    drawn = np.sqrt(-2 * np.log(first)) * np.where(place % 2 == 0, np.sin(angle), np.cos(angle))
    return torch.from_numpy(drawn * std + mean).to(dtype), after


def exponential(seed, offset, count, dtype, rate=1.0):
    drawn, after = uniforms(seed, offset, count, dtype == torch.float64)
    half = np.finfo(drawn.dtype).eps / 2
    logarithm = np.where(drawn >= 1 - half, -half, np.log(drawn.astype(np.float64)))
    return torch.from_numpy(-logarithm / rate).to(dtype), after


def bernoulli(seed, offset, count, dtype, p):
    drawn, after = uniforms(seed, offset, count, dtype == torch.float64)
    return torch.from_numpy(drawn < drawn.dtype.type(p)).to(dtype), after


def bernoulli_by(seed, offset, p, dtype):
    """p: a tensor with a probability for each element."""
    at = np.arange(p.numel())
    drawn = uniform32(pick(blocks(seed, at // 4, offset // 4), at % 4))
    held = p.flatten().to(dtype if dtype == torch.float64 else torch.float32)
    return (torch.from_numpy(drawn) <= held).to(dtype), offset + (12 if p.numel() else 0)


def integers(seed, offset, count, low, high):
    wide = high - low >= 2**28
    words, place, after = words_of_elements(seed, offset, count, 2 if wide else 4)
    drawn = pick(words, place)
    if wide:
        drawn = pick(words, 2 * place) << np.uint64(32) | pick(words, 2 * place + 1)
    return torch.from_numpy((drawn % np.uint64(high - low)).astype(np.int64) + low), after


def vector_of(x):
    """How many neighbours a thread of dropout takes at once."""
    ordered = sorted(zip(x.stride(), x.shape, strict=True))
    expected, dense = 1, True
    for stride, size in ordered:
        dense = dense and (size == 1 or stride == expected)
        expected *= size
    vector = 16 // x.element_size() if dense else 1
    while vector > 1 and (x.numel() % vector or x.data_ptr() % (vector * x.element_size())):
        vector //= 2
    return vector


def dropout_mask(seed, offset, x, p):
    """The mask of native_dropout for a tensor: in the order of rows for a contiguous x or one without vectors."""
    count, vector = x.numel(), vector_of(x)
    threads = threads_for(max(count, 1))
    after = offset + (((count - 1) // (threads * 4) + 1) * 4 if count else 0)
    if vector == 1:
        drawn = uniforms(seed, offset, count)[0]
    else:
        group, inside = np.divmod(np.arange(count), vector)
        call, thread = np.divmod(group, threads)
        drawn = uniform32(
            pick(blocks(seed, thread, offset // 4 + call * max(vector // 4, 1) + inside // 4), inside % 4)
        )
    kept = 1 - p if x.dtype == torch.float64 else np.float32(1 - p)
    return torch.from_numpy(drawn < kept), after
