"""Caches and other inputs that a program writes on a GPU: written in place, without copies of the rest."""

from __future__ import annotations

import cuda_device
import pytest
import torch

simulated = cuda_device.use()

import cresset  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    cresset.reset()


def index_copy(cache, position, new):
    cache.index_copy_(2, position, new)
    return (cache * 2).sum(2)


def index_put(cache, position, new):
    cache[:, :, position] = new
    return cache.mean(-1)


def index_put_of_rows(cache, position, new):
    cache.view(-1, cache.shape[2], cache.shape[3])[:, position] = new.flatten(0, 1)
    return cache + 1


def scatter(cache, position, new):
    index = position[None, None, :, None].expand(new.shape)
    cache.scatter_(2, index, new)
    return cache.exp()


def scatter_add(cache, position, new):
    index = position[None, None, :, None].expand(new.shape)
    cache.scatter_add_(2, index, new)
    return cache.exp().amax(-1)


def index_add(cache, position, new):
    cache.index_add_(2, position, new, alpha=2)
    return cache.sin()


def twice(cache, position, new):
    cache.index_copy_(2, position, new)
    first = cache.sum(2)
    cache.index_copy_(2, position - 1, new * 2)
    return first, cache.sum(2)


def read_before(cache, position, new):
    before = cache.cos()
    cache.index_copy_(2, position, new)
    return before, cache.cos()


def read_again_as_it_was(cache, position, new):
    old = cache.clone()
    cache.index_copy_(2, position, new)
    return old - cache, old.sum()


def attention(cache, position, new):
    cache.index_copy_(2, position, new)
    return torch.nn.functional.scaled_dot_product_attention(new, cache, cache)


def copied_to_another(cache, position, new):
    once = cache.index_copy(2, position, new)
    cache.copy_(once)
    new.copy_(once[:, :, :1])
    return once.sum(2), cache.sum()


def returned(cache, position, new):
    return cache.index_copy_(2, position, new), cache[:, :, :2]


PROGRAMS = [
    index_copy, index_put, index_put_of_rows, scatter, scatter_add, index_add, twice, read_before, read_again_as_it_was,
    attention, copied_to_another, returned,
]  # fmt: skip
IN_PLACE = {index_copy, index_put, scatter, scatter_add, index_add, read_before}


@pytest.mark.parametrize("graphs", ["never", "always"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_caches(program, graphs):
    torch.manual_seed(0)
    mine = torch.rand(2, 3, 9, 4).cuda()
    its = mine.clone()
    compiled = cresset.compile(program, options={"cuda_graphs": graphs})
    for position in range(1, 9):
        at, new = torch.tensor([position]).cuda(), torch.rand(2, 3, 1, 4).cuda()
        its_new = new.clone()
        version, its_version = mine._version, its._version
        got, expected = compiled(mine, at, new), program(its, at, its_new)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(new, its_new)
        torch.testing.assert_close(mine, its)
        assert mine._version - version == its._version - its_version
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == 0


@pytest.mark.skipif(simulated is None, reason="counts of the simulator")
@pytest.mark.parametrize("program", sorted(IN_PLACE, key=lambda p: p.__name__), ids=lambda p: p.__name__)
def test_no_copy_of_the_cache(program):
    """The memory of a call is that of its results: no second cache is made."""
    cache = torch.rand(8, 8, 4096, 8).cuda()
    compiled = cresset.compile(
        lambda c, at, new: (program(c, at, new), None)[1],
        options={"cuda_graphs": "never"},
    )
    at, new = torch.tensor([5]).cuda(), torch.rand(8, 8, 1, 8).cuda()
    compiled(cache, at, new)
    simulated.reset_peak(0)
    before = simulated.memory(0)["live_bytes"]
    compiled(cache, at, new)
    assert simulated.memory(0)["peak_bytes"] - before < cache.nbytes // 2
