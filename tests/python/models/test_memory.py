"""The peak of bytes held by a call."""

from __future__ import annotations

import time

import pytest
import torch

import cresset

ROWS, WIDTH = 1024, 256


def peak(call) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    held = most = 0
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


@torch.no_grad()
def test_a_piece_lets_go_of_what_the_one_before_it_made():
    """Products in a chain after a graph break: the argument of the first is not needed any more at the last."""
    weight = torch.randn(WIDTH, WIDTH) / WIDTH**0.5

    def function(x):
        x = x + 1
        time.sleep(0)
        for _ in range(4):
            x = x @ weight
        return x

    compiled, x = cresset.compile(function), torch.randn(ROWS, WIDTH)
    for _ in range(8):  # some calls choose a library
        got = compiled(x)
    torch.testing.assert_close(got, function(x))
    assert cresset.stats()["eager_calls"] == 0
    assert peak(lambda: compiled(x)) < 3.5 * 4 * ROWS * WIDTH


@torch.no_grad()
def test_what_lives_on_is_not_let_go_of():
    """Results that are arguments of the graph segment, or views of them; objects in containers and old variables."""

    def function(x, keep):
        y, z = x + 1, x + 2
        keep.append(z)
        time.sleep(0)
        a = y @ y
        time.sleep(0)
        b = a @ y
        return y, y[1:], a, b, z @ b, keep

    compiled = cresset.compile(function)
    for _ in range(3):
        x = torch.randn(8, 8)
        got, expected = compiled(x, [x]), function(x, [x])
        for a, b in zip([*got[:5], *got[5]], [*expected[:5], *expected[5]]):
            torch.testing.assert_close(a, b)
        assert got[1]._base is got[0] or got[1].data_ptr() == got[0][1:].data_ptr()


@torch.no_grad()
def test_a_write_is_done_as_soon_as_it_can_be():
    """The written tensor and its old contents are not needed any more when later products are made."""
    weight = torch.randn(WIDTH, WIDTH) / WIDTH**0.5

    def function(x):
        y = (x + 1) * 2
        time.sleep(0)
        y *= x
        z = y.relu() @ weight
        del y
        for _ in range(4):
            z = z @ weight
        return z

    compiled, x = cresset.compile(function), torch.randn(ROWS, WIDTH)
    for _ in range(8):
        got = compiled(x)
    torch.testing.assert_close(got, function(x), rtol=1e-4, atol=1e-4)
    assert cresset.stats()["eager_calls"] == 0
    assert peak(lambda: compiled(x)) < 3.5 * 4 * ROWS * WIDTH


@torch.no_grad()
def test_writes_are_seen_by_whoever_holds_the_tensor():
    """Early or late: readers before the write, results after it, other owners, a raising operator after it."""

    def function(x, keep, i):
        y, z, w = x + 1, x + 2, x + 3
        keep.append(z)
        view = w[1:]
        time.sleep(0)
        a = y @ x
        y += a
        z.mul_(2)
        b = y @ z
        w.sub_(b)
        view.add_(1)
        z.copy_(y)
        y.zero_()
        c = z @ b
        if i is not None:
            c = c[i]
        return a, b, c, z.clone(), w, view * 1, keep

    compiled = cresset.compile(function)
    for chosen in (None, None, None, torch.tensor([1, 0]), torch.tensor([2, 1]), torch.tensor([9])):
        x = torch.randint(-2, 3, (8, 8)).double()  # whole numbers: exact
        kept, expected_kept = [x], [x.clone()]
        try:
            expected = function(x, expected_kept, chosen)
        except IndexError:
            with pytest.raises(IndexError):
                compiled(x, kept, chosen)
        else:
            got = compiled(x, kept, chosen)
            for a, b in zip(got[:6], expected[:6]):
                torch.testing.assert_close(a, b)
        for a, b in zip(kept, expected_kept, strict=True):
            torch.testing.assert_close(a, b)


def test_what_a_library_needs_lies_in_an_output_that_is_there():
    """The columns of the convolution use the memory of the second product's result, which is freed after each call."""

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = torch.nn.Conv1d(3, 32, 64, stride=64)
            self.qkv = torch.nn.Linear(32, 96)

        def forward(self, x):
            y = self.patches(x).transpose(1, 2)
            batch, length, _ = y.shape
            q, k, v = self.qkv(y).reshape(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
            return (q @ k.transpose(-2, -1)).softmax(-1) @ v

    torch.manual_seed(0)
    module = Attention().double()
    compiled = cresset.compile(module)
    for batch in (2, 3, 3, 3, 1, 2, 4, 5) * 4:
        x = torch.randn(batch, 3, 4096, dtype=torch.float64)
        torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_a_batch_of_matrices_is_not_copied_all_at_once():
    """For every library: views that it cannot read are copied in parts of the batch."""
    batch, rows, inner, columns = 96, 128, 384, 64

    def function(a, b):
        return (a[..., :inner] @ b).relu().sum(-1)

    compiled = cresset.compile(function)
    for _ in range(2):
        a, b = torch.randn(batch, rows, inner + rows), torch.randn(batch, inner, columns)
        for _ in range(10):  # some calls choose a library
            got = compiled(a, b)
        torch.testing.assert_close(got, function(a, b), rtol=1e-4, atol=1e-3)
        assert peak(lambda a=a, b=b: compiled(a, b)) < 1.6 * 4 * batch * rows * columns
        batch -= 7
    assert cresset.stats()["graphs"] == 1
