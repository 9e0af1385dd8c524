"""Losses over sizes: any batches, classes and positions are a single compilation, with gradients and without."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, assert_same_call

import cresset

SIZES = ((2, 3, 4), (3, 4, 5), (5, 7, 6), (1, 2, 2), (4, 1, 3))
REDUCTIONS = ("none", "mean", "sum")
SMOOTHING = (0.0, 0.1, 1.0)


def _loss(reduction, smoothing, **more):
    return lambda x, y, w: F.cross_entropy(x, y, weight=w, reduction=reduction, label_smoothing=smoothing, **more)


def _same_with_gradients(function, compiled, x, *others):
    mine = x.clone().requires_grad_()
    theirs = x.clone().requires_grad_()
    expected, got = function(theirs, *others), compiled(mine, *others)
    assert_same(got, expected)
    expected.sum().backward()
    got.sum().backward()
    assert_same(mine.grad, theirs.grad)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", SMOOTHING)
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_classes_with_weights(reduction, smoothing, rank):
    function = _loss(reduction, smoothing, ignore_index=1)
    compiled = cresset.compile(function)
    for batch, classes, length in SIZES:
        x = torch.randn(batch, classes, *[length] * rank)
        y = torch.randint(0, classes, (batch, *[length] * rank))
        y.view(-1)[0] = 0  # at least one element counts
        assert_same_call(function, compiled, x, y, torch.rand(classes))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", SMOOTHING)
@pytest.mark.parametrize("rank", [0, 1])
def test_probabilities_with_weights(reduction, smoothing, rank):
    function = _loss(reduction, smoothing)
    compiled = cresset.compile(function)
    for batch, classes, length in SIZES:
        x = torch.randn(batch, classes, *[length] * rank)
        assert_same_call(function, compiled, x, torch.rand_like(x).softmax(1), torch.rand(classes))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


@pytest.mark.parametrize("probable", [False, True])
@pytest.mark.parametrize("smoothing", SMOOTHING[:2])
def test_gradients_with_weights(probable, smoothing):
    function = _loss("mean", smoothing)
    compiled = cresset.compile(function)
    for batch, classes, length in SIZES:
        x = torch.randn(batch, classes, length)
        y = torch.rand_like(x).softmax(1) if probable else torch.randint(0, classes, (batch, length))
        _same_with_gradients(function, compiled, x, y, torch.rand(classes))
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0


def test_one_example_with_weights():
    for smoothing, probable in itertools.product(SMOOTHING, (False, True)):
        function = _loss("mean", smoothing)
        compiled = cresset.compile(function)
        for classes in (3, 5, 2):
            y = torch.rand(classes) if probable else torch.tensor(1)
            assert_same_call(function, compiled, torch.randn(classes), y, torch.rand(classes))


REJECTED = {
    "too few weights": (torch.randn(3, 4), torch.tensor([0, 1, 2]), torch.rand(3)),
    "too few weights of probabilities": (torch.randn(3, 4), torch.rand(3, 4), torch.rand(3)),
    "a class too many": (torch.randn(3, 4), torch.tensor([0, 1, 4]), torch.rand(4)),
    "too many targets": (torch.randn(3, 4), torch.tensor([0, 1, 2, 3]), torch.rand(4)),
    "weights in a matrix": (torch.randn(3, 4), torch.tensor([0, 1, 2]), torch.rand(4, 1)),
    "no classes": (torch.randn(3, 0), torch.rand(3, 0), torch.rand(0)),
    "no examples": (torch.randn(0, 4), torch.rand(0, 4), torch.rand(4)),
}


@pytest.mark.parametrize("name", REJECTED)
@pytest.mark.parametrize("smoothing", [0.1, 1.5])
def test_what_eager_does_with_others(name, smoothing):
    function = _loss("mean", smoothing)
    assert_same_call(function, cresset.compile(function), *REJECTED[name])


SMALL = {
    "one position": (torch.nn.Conv1d(4, 5, 3), [(2, 4, 3), (3, 4, 4), (2, 4, 9)]),
    "one place": (
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 3, 2, 1)),
        [(2, 3, 4, 4), (2, 3, 16, 9), (5, 3, 8, 8), (1, 3, 3, 3)],
    ),
    "one window": (
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 2), torch.nn.BatchNorm2d(4), torch.nn.MaxPool2d(2)),
        [(3, 3, 3, 3), (2, 3, 9, 9), (2, 3, 7, 12)],
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_gradients_of_what_one_element_is_left_of(name):
    """Autograd asks of each gradient whether it is broadcast; its size may be 1 in the first call."""
    module, shapes = SMALL[name]
    compiled = cresset.compile(module)
    for shape in shapes:
        x = torch.randn(shape)
        _same_with_gradients(lambda x: module(x), compiled, x)
    assert cresset.stats()["graphs"] == 1 and cresset.stats()["eager_calls"] == 0
