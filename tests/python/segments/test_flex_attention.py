"""torch.nn.attention.flex_attention and torch.compile inside of captured code: both are seen through, in a single
program."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import cresset

BIAS, TABLE = torch.randn(2, 64, 64), torch.randn(3, 128)
DOCUMENTS = torch.randint(0, 3, (3, 300)).sort(1)[0]


def relative(score, b, h, q, k):
    return score + (q - k) * 0.1


def biased(score, b, h, q, k):
    return score + BIAS[h, q, k]


def nested(score, b, h, q, k):
    return score + TABLE[b][q - k + 60]


def capped(score, b, h, q, k):
    return torch.tanh(score / 20) * 20


def causal(b, h, q, k):
    return q >= k


def in_documents(b, h, q, k):
    return (DOCUMENTS[b, q] == DOCUMENTS[b, k]) & (q >= k)


def expected(q, k, v, score_mod=None, mask_mod=None):
    """The documented result of the operator, element by element."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    keys = torch.arange(scores.shape[3])
    for modify in (score_mod, mask_mod and (lambda s, *i: torch.where(mask_mod(*i), s, -torch.inf))):
        if modify is None:
            continue
        of_row = torch.vmap(modify, in_dims=(0, None, None, None, 0))
        rows = itertools.product(*map(range, scores.shape[:3]))
        scores = torch.stack([of_row(scores[i], *map(torch.tensor, i), keys) for i in rows]).view(scores.shape)
    return scores.softmax(-1) @ v


def qkv(batch, length, heads=2):
    return torch.randn(batch, 2, length, 16), *(torch.randn(batch, heads, length, 16) for _ in range(2))


SCORES = {"plain": None, "relative": relative, "biased": biased, "nested": nested, "capped": capped}


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_any_length(name):
    compiled = cresset.compile(lambda q, k, v: flex_attention(q, k, v, score_mod=SCORES[name]))
    for batch, length in ((2, 16), (3, 24), (1, 40)):
        q, k, v = qkv(batch, length)
        torch.testing.assert_close(compiled(q, k, v), expected(q, k, v, SCORES[name]))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == cresset.stats()["eager_calls"] == 0


@pytest.mark.parametrize("mask_mod", [causal, in_documents], ids=["causal", "documents"])
def test_masks_made_inside(mask_mod):
    def function(q, k, v):
        mask = create_block_mask(mask_mod, q.shape[0], None, q.shape[2], k.shape[2], device="cpu")
        return flex_attention(q, k, v, block_mask=mask)

    compiled = cresset.compile(function)
    for batch, length in ((2, 130), (3, 140), (1, 256)):
        q, k, v = qkv(batch, length)
        torch.testing.assert_close(compiled(q, k, v), expected(q, k, v, None, mask_mod))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == cresset.stats()["eager_calls"] == 0


def test_a_mask_from_outside_and_grouped_heads():
    mask = create_block_mask(causal, None, None, 32, 32, device="cpu")
    compiled = cresset.compile(lambda q, k, v: flex_attention(q, k, v, block_mask=mask, enable_gqa=True))
    for batch in (2, 3):
        q, k, v = qkv(batch, 32, heads=1)
        torch.testing.assert_close(compiled(q, k, v), expected(q, k, v, None, causal))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


def test_what_it_rejects():
    compiled = cresset.compile(lambda q, k, v: flex_attention(q, k, v))
    q, k, v = qkv(2, 8)
    with pytest.raises(ValueError, match="same number of heads"):
        compiled(q, k[:, :1], v[:, :1])
    with pytest.raises(NotImplementedError, match="backward on CPU"):
        compiled(q.requires_grad_(), k, v)


def test_other_compilers_inside_are_seen_through():
    layer = nn.Linear(3, 3)
    outside = torch.compile(layer)

    def function(x):
        @torch.compile(dynamic=True)
        def double(y):
            return y * 2

        return double(torch.compile(layer)(x)) + outside(x)

    compiled = cresset.compile(function)
    for n in (2, 3, 5):
        x = torch.randn(n, 3)
        torch.testing.assert_close(compiled(x), layer(x) * 3)
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["graph_breaks"] == cresset.stats()["eager_calls"] == 0
    assert torch.compile is not cresset.compile and type(torch.compile(layer)) is not nn.Linear
