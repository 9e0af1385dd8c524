"""Functions without arguments that are called repeatedly, and super(), are classified once: the consequences of each
call are still seen, and guarded."""

import numpy
import torch
from compare import assert_same_call

import cresset


class Base:
    def __init__(self, by):
        self.by = by

    def change(self, x):
        return x + self.by


class Other:
    def __init__(self, by):
        self.by = by

    def change(self, x):
        return x * self.by


class Left(Base):
    def change(self, x):
        return super().change(x) - 1


class Right(Other):
    def change(self, x):
        return super().change(x) - 2


def twice(x, objects):
    for each in objects:
        x = each.change(x)
    return x


def test_each_super_finds_its_own_class():
    objects = [Left(1), Right(2), Left(3), Right(4)]
    assert_same_call(lambda x: twice(x, objects), cresset.compile(lambda x: twice(x, objects)), torch.randn(3))


def test_what_a_later_super_finds_is_guarded(monkeypatch):
    objects, x = [Left(1), Right(2)], torch.randn(3)
    compiled = cresset.compile(twice)
    assert torch.equal(compiled(x, objects), twice(x, objects))
    monkeypatch.setattr(Other, "change", lambda self, x: x - self.by)
    assert torch.equal(compiled(x, objects), twice(x, objects))
    objects[1].by = 7
    assert torch.equal(compiled(x, objects), twice(x, objects))


def test_states_of_torch_asked_for_several_times():
    def program(x):
        out = []
        for enabled in (True, False, True):
            with torch.set_grad_enabled(enabled):
                out.append((torch.is_grad_enabled(), torch._C._get_tracing_state(), x * 2))
        with torch.inference_mode():
            out.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), x * 3))
        return out, torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    assert_same_call(program, cresset.compile(program), torch.randn(3))


def test_a_mode_that_is_asked_for_twice_is_guarded():
    def program(x):
        return [x + torch.is_grad_enabled() + torch.are_deterministic_algorithms_enabled() for _ in range(3)]

    compiled, x = cresset.compile(program), torch.zeros(2)
    for enabled in (True, False, True):
        with torch.set_grad_enabled(enabled):
            for got, expected in zip(compiled(x), program(x), strict=True):
                assert torch.equal(got, expected)
    torch.use_deterministic_algorithms(True)
    try:
        for got, expected in zip(compiled(x), program(x), strict=True):
            assert torch.equal(got, expected)
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_key_is_looked_for_without_looking_at_values():
    held = {"scale": numpy.ones(3), "shift": [numpy.zeros(2)]}

    def program(x):
        if "scale" in held:
            x = x * 2
        return x + 1 if "bias" not in held else x

    compiled, x = cresset.compile(program), torch.randn(3)
    cresset.reset()
    assert torch.equal(compiled(x), program(x))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0)
    held["bias"] = numpy.ones(1)
    assert torch.equal(compiled(x), program(x))
    del held["scale"]
    assert torch.equal(compiled(x), program(x))
