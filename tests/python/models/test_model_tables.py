"""Architectures in tiny configurations over random sizes: equal to eager, and one compilation each."""

from __future__ import annotations

import pytest
from model_tables import TIMM_FIXED_SIZE, TOLD_APART, TOLD_APART_WITH_GRADIENTS, TRANSFORMERS, subjects, sweep

ALWAYS = [
    "bert",
    "canine",
    "fnet",
    "gemma3_text",
    "t5",
    "vit",
    "resnet18",
    "mobilenetv3_small_100",
    "vit_tiny_patch16_224",
]
TABLE = {name: subject for family in ("transformers", "timm") for name, subject in subjects(family).items()}


@pytest.mark.parametrize("name", TABLE)
def test_random_sizes(name, full):
    if not full and name not in ALWAYS:
        pytest.skip("the whole table runs in make test-full")
    row = sweep(TABLE[name], draws=4 if name in TIMM_FIXED_SIZE else 8)
    assert not row["differ"], row["differ"]
    assert row["equal"] >= 4
    if name not in TOLD_APART:
        assert (row["graphs"], row["graph_breaks"]) == (1, 0), row["causes"]


WITH_GRADIENTS = ["bert", "gpt2", "llama", "t5", "vit"]


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_random_sizes_with_gradients(name, full):
    if not full and name not in WITH_GRADIENTS:
        pytest.skip("the whole table runs in make test-full")
    row = sweep(TABLE[name], draws=4, gradients=True)
    assert not row["differ"], row["differ"]
    if name not in TOLD_APART | TOLD_APART_WITH_GRADIENTS:
        assert (row["graphs"], row["graph_breaks"]) == (1, 0), row["causes"]
