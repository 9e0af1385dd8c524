"""Tensors of Python classes among the arguments, and made in the call."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

from programs.whole_scripts import data, table_of_programs

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


class Other(Picture):
    def double(self):
        return self * 2

    @property
    def T2(self):
        return self.t() * 2


@bounded
def alias_twice(compiled):

    def f(a, b):
        a.add_(1)
        return (b * 2, a is b)

    g = compiled(f)
    for i in range(8):
        a = data(i, 3).as_subclass(Picture)
        b = a if i % 3 == 0 else a.as_subclass(torch.Tensor) if i % 3 == 1 else data(i, 3)
        yield (g(a, b), a, b)


@steady
def class_changes(compiled):
    g = compiled(lambda a: (a * 2, type(a).__name__, isinstance(a, Picture), getattr(a, "double", lambda: None)()))
    for i in range(9):
        a = data(i, 3)
        yield g([a, a.as_subclass(Picture), a.as_subclass(Other)][i % 3])


@steady
def in_dataclass_and_module(compiled):

    @dataclasses.dataclass
    class Batch:
        img: torch.Tensor
        n: int

    lin = nn.Linear(3, 2)

    def f(b):
        h = lin(b.img)
        b.img = h
        b.n += 1
        return (h.sum(0), type(h).__name__)

    g = compiled(f)
    for i in range(8):
        b = Batch(data(i, 2 + i % 2, 3).as_subclass(Picture), i)
        yield (g(b), b.img, b.n)


@growing
def state_and_argument(compiled):

    class S:
        pass

    s = S()
    s.t = data(0, 3).as_subclass(Picture)

    def f(a):
        out = s.t + a
        s.t = a
        return out

    g = compiled(f)
    for i in range(8):
        yield (g(data(i, 3).as_subclass(Picture)), s.t)


@steady
def property_and_methods(compiled):
    g = compiled(lambda a: (a.T2, a.double(), a.shape, a[0], a.reshape(-1).T))
    for i in range(6):
        yield g(data(i, 2, 2 + i % 2).as_subclass(Other))


@growing
def with_attrs_sometimes(compiled):

    def f(a):
        return (a * getattr(a, "k", 1), hasattr(a, "k"))

    g = compiled(f)
    for i in range(8):
        a = data(i, 3).as_subclass(Picture)
        if i % 2:
            a.k = i
        yield g(a)


@steady
def loops_over_breaks(compiled):

    def f(xs):
        out = []
        for x in xs:
            y = x * 2
            print("y")
            out.append(y + x)
        return (torch.stack([o.as_subclass(torch.Tensor) for o in out]).sum(), out)

    g = compiled(f)
    for i in range(6):
        yield g([data(i + k, 3).as_subclass(Picture) for k in range(3)])


@bounded
def leaf_gets_grad(compiled):

    def f(a):
        loss = (a * a).sum()
        loss.backward()
        return (loss.detach(), a.grad)

    g = compiled(f)
    for i in range(6):
        a = data(i, 3).as_subclass(Picture).detach().requires_grad_()
        yield (g(a), a.grad, type(a.grad).__name__)


@steady
def func_transform(compiled):
    g = compiled(lambda a: torch.func.grad(lambda t: (t**3).sum())(a))
    for i in range(5):
        yield g(data(i, 3).as_subclass(Picture))
