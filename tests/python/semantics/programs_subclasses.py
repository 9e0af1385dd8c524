"""Tensors of Python classes among the arguments, and made in the call."""

from __future__ import annotations

import torch
from programs_whole import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


class Picture(torch.Tensor):
    def size_of_it(self):
        return self.shape[-1]


class Logged(torch.Tensor):
    log = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append((func.__name__, [t.__name__ for t in types]))
        return super().__torch_function__(func, types, args, kwargs or {})


@steady
def tensors_of_a_class_given(compiled):
    @compiled
    def f(a, k):
        b = a * k + a.size_of_it()
        return b, type(b) is Picture, a, isinstance(a, torch.Tensor), b.sum()

    for i in range(8):
        a = data(i, 2, 3 + i % 3).as_subclass(Picture)
        b, *others = f(a, 1.5 + i)
        yield b, others, others[1] is a


@bounded
def batches_with_tensors_of_classes(compiled):
    @compiled
    def f(batch):
        image = batch["image"]
        image.mul_(2)
        batch["mean"] = image.mean()
        if batch["mean"] > 0:
            return [image + 1, batch["other"] - batch["factor"], image.as_subclass(torch.Tensor)]
        return [batch["other"], batch["other"] * batch["factor"]]

    for i in range(8):
        batch = {
            "image": data(i, 3).as_subclass(Picture),
            "other": data(i + 1, 3).as_subclass(Logged),
            "factor": data(9, 3),
        }
        yield f(batch), batch, list(Logged.log)
        Logged.log.clear()


@growing
def attributes_of_tensors_of_a_class(compiled):
    @compiled
    def f(a):
        b = a.exp()
        b.unit = getattr(a, "unit", "none") + "!"
        a.seen = True
        return b

    for i in range(8):
        a = data(i, 3).as_subclass(Picture)
        if i > 3:
            a.unit = "m" if i % 2 else "s"
        b = f(a)
        yield b, b.unit, a.seen


@steady
def gradients_through_tensors_of_a_class(compiled):
    weight = torch.ones(3, requires_grad=True)
    f = compiled(lambda a, b: ((a * weight).sin() + b).sum())
    for i in range(8):
        weight.grad = None
        a = data(i, 2, 3).requires_grad_() if i % 2 else data(i, 2, 3)
        a = a.as_subclass(Picture)
        loss = f(a, a if i % 4 == 0 else data(i + 1, 2, 3))
        loss.backward()
        yield loss, weight.grad


@steady
def gradients_through_a_class_inside(compiled):
    weight = torch.ones(3, requires_grad=True)
    f = compiled(lambda a: ((a.as_subclass(Picture) * weight).sum(), a.as_subclass(Picture)))
    for i in range(6):
        weight.grad = None
        loss, same = f(data(i, 3))
        loss.backward()
        yield loss, weight.grad, same
