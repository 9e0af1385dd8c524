"""Writes of slices at indices from tensors (index_copy, index_put with a vector of indices), by a generated kernel."""

from __future__ import annotations

import cuda_device
import pytest
import torch
from test_programs import assert_same, copied, cuda

import cresset

simulated = cuda_device.use()
CALLS = 9


def integers(*values):
    return torch.tensor(values, dtype=torch.int64, device="cuda")


def put(cache, index, source, dim):
    cache[(slice(None),) * dim + (index,)] = source
    return cache


# name: (program, sizes of the cache, dimension, whether negative indices count from the end)
PROGRAMS = {
    "first": (lambda c, i, s: c.index_copy_(0, i, s), (9, 4, 8), 0, False),
    "middle": (lambda c, i, s: c.index_copy_(2, i, s), (2, 3, 9, 8), 2, False),
    "last": (lambda c, i, s: c.index_copy_(-1, i, s), (3, 9), 1, False),
    "a_vector": (lambda c, i, s: c.index_copy_(0, i, s), (9,), 0, False),
    "put_first": (lambda c, i, s: put(c, i, s, 0), (9, 4, 8), 0, True),
    "put_middle": (lambda c, i, s: put(c, i, s, 2), (2, 3, 9, 8), 2, True),
    "not_in_place": (lambda c, i, s: (c.index_copy(1, i, s), c * 2), (4, 9, 8), 1, False),
    "computed": (lambda c, i, s: (c + 1).index_copy(1, i, s.sin()).cos(), (4, 9, 8), 1, False),
    "read_after": (lambda c, i, s: c.index_copy_(1, i, s).exp().sum(-1), (4, 9, 8), 1, False),
    "twice": (lambda c, i, s: c.index_copy_(1, i, s).index_copy_(1, 8 - i, s + 1).sum(), (4, 9, 8), 1, False),
}


def arguments(name, values, transposed=False, dtype=torch.float32):
    _, sizes, dim, _ = PROGRAMS[name]
    source = list(sizes)
    source[dim] = len(values)
    made = cuda(*source)
    if transposed and len(source) > 2:  # as keys after a permutation of heads and tokens
        made = cuda(*(source[:-3] + [source[-2], source[-3], source[-1]])).transpose(-3, -2)
    return cuda(*sizes).to(dtype), integers(*values), made.to(dtype)


def check(compiled, program, given):
    """The same results, and the same contents of the cache."""
    its = copied(given)
    assert_same(compiled(*given), program(*its))
    assert_same(given, its)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, transposed):
    program, _, _, from_the_end = PROGRAMS[name]
    compiled = cresset.compile(program, fullgraph=True, mode="reduce-overhead")
    rows = [(3,), (4,), (0,), (8,), (5, 2, 7), (1, 3, 0), (4, 6, 8)] + [(-1,), (-9,)] * from_the_end
    for call in range(CALLS):
        given = arguments(name, rows[call % len(rows)], transposed)
        if name == "twice" and len(rows[call % len(rows)]) > 1 and 4 in rows[call % len(rows)]:
            continue
        check(compiled, program, given)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int8, torch.bool])
def test_dtypes(dtype):
    program = PROGRAMS["middle"][0]
    check(cresset.compile(program, fullgraph=True), program, arguments("middle", (5, 2), dtype=dtype))


@pytest.mark.skipif(simulated is None, reason="counts of the simulator")
@pytest.mark.parametrize("name", ["middle", "put_middle"])
def test_a_write_is_a_launch(name):
    program = PROGRAMS[name][0]
    compiled = cresset.compile(program, fullgraph=True)
    given = arguments(name, (5, 2))
    for _ in range(2):
        before = simulated.gpu_counters()["launches"]
        compiled(*given)
        assert simulated.gpu_counters()["launches"] - before == 1


def test_a_cache_is_filled_token_by_token():
    def step(keys, values, position, k, v):
        keys.index_copy_(2, position, k)
        values.index_copy_(2, position, v)
        mask = torch.arange(keys.size(2), device=keys.device) <= position
        return torch.nn.functional.scaled_dot_product_attention(k, keys, values, attn_mask=mask[None, None, None])

    compiled = cresset.compile(step, fullgraph=True, mode="reduce-overhead")
    mine = [torch.zeros(1, 2, 16, 8, device="cuda") for _ in range(2)]
    its = copied(mine)
    for token in range(12):
        new = [cuda(1, 1, 2, 8).transpose(1, 2) for _ in range(2)]
        got, expected = compiled(*mine, integers(token), *new), step(*its, integers(token), *new)
        torch.testing.assert_close(got, expected)
    for a, b in zip(mine, its, strict=True):
        assert torch.equal(a, b)
    assert cresset.stats()["graphs"] <= 2


@pytest.mark.parametrize("name, bad", [("middle", 9), ("middle", -1), ("put_middle", 9), ("put_middle", -10)])
def test_outside(name, bad):
    """The index is reported; nothing is written for it, and later calls work."""
    program, _, dim, _ = PROGRAMS[name]
    compiled = cresset.compile(program)
    compiled(*arguments(name, (3, 2)))
    cache, index, source = arguments(name, (3, bad))
    before = cache.clone()
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dimension {dim} with size 9"):
        compiled(cache, index, source)
        torch.cuda.synchronize()
        compiled(*arguments(name, (3, 2)))
    kept = [i for i in range(9) if i != 3]
    assert torch.equal(cache.select(dim, 0), before.select(dim, 0)) and torch.equal(
        cache.index_select(dim, integers(*kept)), before.index_select(dim, integers(*kept))
    )
    check(compiled, program, arguments(name, (4, 1)))
