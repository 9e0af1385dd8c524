"""Functions of many graph segments: timed beside eager mode, which runs faster segments; and lists read in loops."""

import warnings

import pytest
import torch

import cresset


def calls(function, count):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [function(i) for i in range(count)]
    return results, [str(w.message) for w in caught if "runs eagerly, and is timed again" in str(w.message)]


def many_breaks(parts, log):
    """Each graph segment gets all values, and computes next to nothing."""

    def function(step):
        total = 0.0
        for part in parts:
            total += max(0.5, (part * step).sum().item())
        log.append(step)
        return total

    return function


def test_many_small_pieces_run_eagerly_in_the_end():
    ours, theirs = [], []
    parts = [torch.full((4,), float(i % 7)) for i in range(48)]
    results, warned = calls(cresset.compile(many_breaks(parts, ours)), 40)
    assert results == [many_breaks(parts, theirs)(i) for i in range(40)]
    assert ours == theirs == list(range(40))
    stats = cresset.stats()
    assert len(warned) == 1 and "where eager takes" in warned[0]
    assert any("graph segments take" in reason for reason in stats["graph_break_reasons"])
    assert stats["eager_calls"] >= 12


def test_few_pieces_are_not_timed():
    log = []
    results, warned = calls(cresset.compile(many_breaks([torch.ones(3)] * 8, log)), 60)
    assert results[:3] == [4.0, 24.0, 48.0] and log == list(range(60))
    assert not warned and cresset.stats()["eager_calls"] == 0


def test_what_is_raised_in_the_calls_that_are_timed():
    parts = [torch.ones(2) for _ in range(48)]

    def function(step):
        total = 0.0
        for part in parts:
            total += (part * step).sum().item()
        if step >= 24:
            raise ValueError(f"step {step}, {total}")
        return total

    compiled = cresset.compile(function)
    for step in range(36):
        if step < 24:
            assert compiled(step) == 96.0 * step
        else:
            with pytest.raises(ValueError, match=f"^step {step}, {96.0 * step}$"):
                compiled(step)


def test_a_loop_over_a_history_that_grows_and_ends_growing():
    """No graph break at each item: a program for each length, as long as there are few."""

    def make():
        history = []

        def function(x):
            if len(history) == 12:
                history.pop(0)
            history.append(x + 1)
            out = x
            for i in range(len(history) - 1, -1, -1):
                out = out + history[i] * (i + 1)
            return out

        return function

    ours, theirs = cresset.compile(make()), make()
    for step in range(40):
        x = torch.arange(3.0) + step
        torch.testing.assert_close(ours(x), theirs(x))
    before = cresset.stats()
    for step in range(5):
        x = torch.arange(3.0) - step
        torch.testing.assert_close(ours(x), theirs(x))
    after = cresset.stats()
    assert after["graphs"] == before["graphs"] and after["eager_fallbacks"] == before["eager_fallbacks"]
    assert before["graphs"] < 80
