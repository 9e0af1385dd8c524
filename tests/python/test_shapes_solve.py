"""cresset.shapes and cresset.solve: what a function's sizes may be, and inputs for each class of them."""

from __future__ import annotations

import torch

import cresset


def branches(x):
    if x.shape[0] > 4:
        return x * 2
    if x.shape[0] % 2 == 0:
        return x - 1
    return x.sum(0)


def test_the_walk_meets_every_class_and_ends():
    solved = cresset.solve(branches, torch.randn(9, 3))
    assert solved.status == "covered"
    sizes = sorted(s.args[0].shape[0] for s in solved)
    assert sizes == [0, 1, 5]
    compiled = cresset.compile(branches)
    for s in solved:
        torch.testing.assert_close(compiled(*s.args), branches(*s.args))


def test_samples_that_eager_rejects_carry_its_error():
    solved = cresset.solve(lambda x, y: x @ y, torch.randn(3, 4), torch.randn(4, 5), limit=4)
    good = [s for s in solved if s.error is None]
    bad = [s for s in solved if s.error is not None]
    assert good and bad
    assert all("mat" in str(s.error) or "size" in str(s.error) for s in bad)


def test_shapes_show_ranges_and_lines():
    def function(x, y):
        return x.view(4, x.shape[0] // 4).sum(0) + y

    shown = cresset.shapes(function)(torch.randn(8), torch.randn(2))
    text = str(shown)
    assert "args[0].size(0)" in text and "multiples of 4" in text, text
    assert "test_shapes_solve.py" in text, text
    (variant,) = shown.variants
    assert variant["smallest"] is not None
    assert len(variant["guards"]) <= len(variant["asked"])


def test_the_smallest_inputs_are_accepted():
    def function(x, y):
        h = torch.nn.functional.conv2d(x, y, stride=2, padding=1)
        return h.flatten(2).transpose(1, 2)

    x, y = torch.randn(2, 3, 17, 16), torch.randn(8, 3, 3, 3)
    for sample in cresset.solve(function, x, y, limit=3):
        if sample.error is None:
            torch.testing.assert_close(
                cresset.compile(function)(*sample.args), function(*sample.args), rtol=1e-4, atol=1e-4
            )
