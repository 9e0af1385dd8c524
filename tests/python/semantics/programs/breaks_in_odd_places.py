"""Graph breaks at odd places, numbers distinguished by C code, exceptions alive across breaks. As programs/whole_scripts.py
has them."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@steady
def numpy_number_beside_others(compiled):
    k, half = np.int64(2), np.float64(0.5)

    @compiled
    def f(x, scale):
        numbers = scale * half, x.shape[0] / k, half + x.shape[0], half < scale
        return x * numbers[0], [type(v).__name__ for v in numbers], numbers

    for i in range(16):
        yield f(torch.ones(3 + i % 7), 0.25 * i)


@steady
def methods_of_numbers_by_name(compiled):
    @compiled
    def f(x, k):
        multiply = k.__mul__
        return x * 2, multiply(2), multiply(2.0), k.__mul__(2.0), k.__lt__(3.0), k.__rsub__(3), dir(k)

    for i in range(6):
        yield f(torch.ones(3), i + 2)


@steady
def numbers_without_items(compiled):
    @compiled
    def f(x, n):
        messages = []
        try:
            del n[0]
        except TypeError as e:
            messages.append(str(e))
        try:
            n[0] = x
        except TypeError as e:
            messages.append(str(e))
        return x * 2, messages

    for i in range(6):
        yield f(torch.ones(3), i + 2)
    for i in range(10):
        yield f(torch.ones(3), i + 2.5)


@bounded
def raised_again_from_several_lines(compiled):
    lines = []

    class Scope:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            lines.append(traceback and traceback.tb_lineno)
            print("left")

    @compiled
    def f(x, mode):
        try:
            with Scope():
                if mode == 0:
                    raise KeyError(0)
                if mode == 1:
                    raise ValueError(1)
                if mode == 2:
                    [][mode]
                if mode == 3:
                    {}["q"]
                y = x * 2
        except Exception as e:
            return x, type(e).__name__, str(e), e.__traceback__.tb_lineno
        return y

    for i in range(10):
        yield f(data(i, 2), i % 5), len(lines), [line and line - lines[0] for line in lines]


@growing
def errors_over_breaks(compiled):
    @compiled
    def f(x, k):
        try:
            if k == 0:
                raise ConnectionError(f"call {k}")
            if k == 1:
                raise OSError(2, "no such", "name")
            if k == 2:
                raise FileNotFoundError(2, "gone")
            if k == 3:
                raise OSError
            if k == 4:
                raise ImportError("m", name="n", path="p")
            if k == 5:
                raise TimeoutError(110, "late")
            if k == 6:
                os.stat("/nonexistent/file")
        except Exception as e:
            print(x.sum().item() > 0)
            asked = ("filename", "filename2", "errno", "strerror", "name", "msg")
            return x * 2, str(e), repr(e), e.args, type(e), [getattr(e, name, 0) for name in asked]

    for i in range(21):
        yield f(data(i, 2), i % 7)


@bounded
def asked_when_it_is_compiled(compiled):
    asked = []

    class Bag(nn.Module):
        def __init__(self, **parts):
            super().__init__()
            self.parts = nn.ModuleDict(parts)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                asked.append(name)
                parts = self.__dict__["_modules"].get("parts")
                if parts is not None and name in parts:
                    return parts[name]
                raise

        def forward(self, x, names):
            for name in names:
                x = getattr(self, name)(x)
            return x

    torch.manual_seed(1)
    bag = Bag(a=nn.Linear(3, 3), b=nn.Tanh())
    asked.clear()
    f = compiled(bag)
    for i in range(4):
        yield f(data(i, 2, 3), ["ab", "b"][i % 2]), list(asked)
