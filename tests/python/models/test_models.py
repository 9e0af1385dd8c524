"""Unmodified transformers and timm models: equal to eager, and one compilation for every shape."""

from __future__ import annotations

import copy

import pytest
import torch
from compare import error, same_strides, same_structure, tensors
from models import MODELS, REAL, TINY, Model, seeded_call

import cresset

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
# Below this error (relative to the output's magnitude) the sides count as equal.
FLOOR = {torch.float32: 1e-4, torch.bfloat16: 1e-2}
REAL_IN_FULL = ["bert", "gpt2", "llama", "t5", "resnet50", "hrnet_w18"]

names = pytest.mark.parametrize("name", MODELS)
dtypes = pytest.mark.parametrize("dtype", DTYPES)


def reference_inputs(inputs):
    return {k: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in inputs.items()}


def check_values(model: Model, got, eager, reference, dtype: torch.dtype) -> None:
    """The compiled result is as near to fp64 as eager's is, within a factor of two."""
    same_structure(got, eager)
    same_strides(got, eager)
    expected = tensors(reference) if reference is not None else tensors(eager)
    for (path, a), (_, b), (_, r) in zip(tensors(got), tensors(eager), expected):
        if not b.is_floating_point():
            assert torch.equal(a, b), path
            continue
        ours, theirs = error(a, r), error(b, r)
        assert ours <= max(2 * theirs, FLOOR[dtype]), f"{path}: {ours:.3g} off fp64, eager is {theirs:.3g} off"


def run_sweep(model: Model, scale: str, dtype: torch.dtype, shapes, *, options=None, **input_options) -> None:
    module = model.build(scale, dtype)
    double = None if model.random else copy.deepcopy(module).double()
    compiled = cresset.compile(module, options=options)
    for i, (batch, length) in enumerate(shapes):
        inputs = model.inputs(module, batch, length, seed=i, **input_options)
        eager = seeded_call(model, module, inputs)
        reference = double and seeded_call(model, double, reference_inputs(inputs))
        got = seeded_call(model, compiled, inputs)
        check_values(model, got, eager, reference, dtype)
    check_compilations(model, shapes, **input_options)


def check_compilations(model: Model, shapes, mask: bool = False, use_cache: bool | None = False) -> None:
    stats = cresset.stats()
    assert (stats["graph_breaks"] == 0) != model.reads_data, stats["graph_break_reasons"]
    if model.reads_data:  # graph segments, some of which depend on the numbers read
        assert stats["graphs"] > 0
        return
    expected = model.compilations(shapes, cached=use_cache is not False)
    assert stats["graphs"] == expected, list(stats["recompiles"])
    assert len(stats["recompiles"]) == max(0, expected - 1)


@names
@dtypes
@torch.no_grad()
def test_sweep(name, dtype, full):
    """All sizes in fp32; in bf16 a few of them, and all in make test-full."""
    model = MODELS[name]
    run_sweep(model, TINY, DTYPES[dtype], model.sweep() if full or dtype == "fp32" else model.sweep()[:3])


@names
@torch.no_grad()
def test_frozen(name):
    model = MODELS[name]
    run_sweep(model, TINY, torch.float32, model.sweep()[:3], options={"freezing": True})


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if m.has_mask])
@torch.no_grad()
def test_padding_mask(name):
    model = MODELS[name]
    run_sweep(model, TINY, torch.float32, model.sweep()[:3], mask=True)


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if m.has_cache])
@torch.no_grad()
def test_cache_as_the_model_defaults(name):
    model = MODELS[name]
    run_sweep(model, TINY, torch.float32, model.sweep()[:3], use_cache=None)


@names
@torch.no_grad()
def test_batch_one_first(name):
    model = MODELS[name]
    run_sweep(model, TINY, torch.float32, [(1, model.sweep()[0][1]), *model.sweep()[:2]])


@pytest.mark.parametrize("name", ["bert", "gpt2", "resnet50"])
@torch.no_grad()
def test_static(name):
    model = MODELS[name]
    module = model.build()
    compiled = cresset.compile(module, dynamic=False)
    for batch, length in model.sweep()[:3]:
        inputs = model.inputs(module, batch, length)
        torch.testing.assert_close(
            [t for _, t in tensors(compiled(**inputs))], [t for _, t in tensors(module(**inputs))], rtol=1e-4, atol=1e-4
        )
    assert cresset.stats()["graphs"] == 3


@torch.no_grad()
def test_two_models_share_nothing_by_mistake():
    first, second = MODELS["bert"].build(seed=1), MODELS["bert"].build(seed=2)
    a, b = cresset.compile(first), cresset.compile(second)
    inputs = MODELS["bert"].inputs(first, 2, 12)
    for compiled, module in ((a, first), (b, second), (a, first)):
        torch.testing.assert_close(compiled(**inputs)[0], module(**inputs)[0], rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_new_weights_are_seen():
    module = MODELS["bert"].build(seed=1)
    compiled = cresset.compile(module)
    inputs = MODELS["bert"].inputs(module, 2, 12)
    compiled(**inputs)
    module.load_state_dict(MODELS["bert"].build(seed=2).state_dict())
    torch.testing.assert_close(compiled(**inputs)[0], module(**inputs)[0], rtol=1e-4, atol=1e-5)
    assert list(cresset.stats()["recompiles"]) == []


@torch.no_grad()
def test_decoding_with_a_cache():
    """A growing cache is a further varying size: prefill and a decoding step compile once each."""
    model = MODELS["gpt2"]
    module = model.build()
    compiled = cresset.compile(module)

    def generate(run):
        ids = model.inputs(module, 2, 9)["input_ids"]
        out = run(input_ids=ids, use_cache=True)
        logits = [out.logits]
        for _ in range(6):
            ids = out.logits[:, -1:].argmax(-1)
            out = run(input_ids=ids, past_key_values=out.past_key_values, use_cache=True)
            logits.append(out.logits)
        return logits

    for got, expected in zip(generate(compiled), generate(module)):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert cresset.stats()["graphs"] <= 3


@pytest.mark.parametrize("name", REAL_IN_FULL)
@torch.no_grad()
def test_real_configuration(name, full):
    if not full:
        pytest.skip("real configurations run in make test-full")
    model = MODELS[name]
    batch, length = model.bench[REAL]
    run_sweep(model, REAL, torch.float32, [(batch, length), (1, length // 2)])
