"""Programs with context managers, of torch and their own, some with breaks inside. Rows as in programs_transforms."""

from __future__ import annotations

import contextlib

import torch
from torch import nn

import cresset
from programs.overrides import LOG, Dispatched, Functions
from programs.transforms import mlp, table, world

ROWS, row = table()


# ------------------------------------------------------------------------------------------------- contexts


class Entered:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append("out" if kind is None else kind.__name__)
        return self.swallow


@row
def context_of_a_class(w, x):
    with Entered(w.log) as e:
        e.log.append("body")
        y = x * 2
    return y


@row
def context_that_swallows(w, x):
    y = x
    with Entered(w.log, swallow=True):
        y = x * 2
        if x.shape[0] != 5:
            raise KeyError("gone")
        y = y + 1
    return y


@row
def context_with_a_break_inside(w, x):
    with Entered(w.log):
        y = x * 2
        if y.sum() > 0:
            w.log.append("positive")
        return y + 1


@contextlib.contextmanager
def scaled(log, by):
    log.append("begin")
    try:
        yield by * 2
    except ValueError as e:
        log.append(str(e))
    finally:
        log.append("end")


@row
def context_of_a_generator(w, x):
    with scaled(w.log, 2) as n:
        y = x * n
    return y


@row
def context_of_a_generator_that_catches(w, x):
    y = x
    with scaled(w.log, 2):
        y = x + 1
        raise ValueError("caught")
    return y


@row
def context_of_a_generator_with_a_break(w, x):
    with scaled(w.log, 3) as n:
        y = x * n
        if y.sum() > 0:
            y = y + 1
    return y * 2


@row
def stack_of_contexts(w, x):
    with contextlib.ExitStack() as stack:
        n = stack.enter_context(scaled(w.log, 1))
        stack.callback(w.log.append, "callback")
        stack.enter_context(Entered(w.log))
        y = x * n
    with contextlib.nullcontext(3) as k, contextlib.suppress(ZeroDivisionError):
        y = y * k
        k // 0
    return y


class Decorating(contextlib.ContextDecorator):
    def __enter__(self):
        LOG.append("in")

    def __exit__(self, *exc):
        LOG.append("out")


@Decorating()
def decorated(x):
    return x * 3


@row
def context_as_a_decorator(w, x):
    LOG.clear()
    y = decorated(x)
    w.log.append(list(LOG))
    return y


@row
def autocast_region(w, x):
    x = x.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
        with torch.autocast("cpu", enabled=False):
            z = x @ x.t()
    return y.dtype, z.dtype, y.float().sum() * 0, z


@torch.autocast("cpu", dtype=torch.bfloat16)
def in_low_precision(x):
    return torch.nn.functional.linear(x, x)


@row
def autocast_as_a_decorator(w, x):
    y = in_low_precision(x.float())
    return y.dtype, torch.is_autocast_enabled("cpu"), y.shape


@row
def fork_of_the_generator(w, x):
    torch.manual_seed(1)
    a = torch.rand(4, dtype=x.dtype)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        b = torch.rand(4, dtype=x.dtype)
    c = torch.rand(4, dtype=x.dtype)
    return x + a, b, c


@row
def generator_of_its_own(w, x):
    g = torch.Generator().manual_seed(4)
    return x + torch.rand(4, generator=g, dtype=x.dtype), torch.randperm(5, generator=g)


@row
def default_dtype_changes(w, x):
    torch.set_default_dtype(torch.float64)
    try:
        y = torch.ones(4)
    finally:
        torch.set_default_dtype(torch.float32)
    return y.dtype, torch.ones(1).dtype, x + y


@row
def deterministic_flags(w, x):
    was = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        y = x.cumsum(0)
        now = torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(was)
    return was, now, y


@contextlib.contextmanager
def evaluation(net):
    was = net.training
    net.eval()
    try:
        yield net
    finally:
        net.train(was)


@row(make=lambda: world(net=nn.Sequential(mlp(), nn.Dropout(0.5))))
def evaluation_for_a_while(w, x):
    with evaluation(w.net) as net, torch.no_grad():
        y = net(x)
    return y, w.net.training


# ------------------------------------------------------------------------------------------------- breaks in contexts


@row
def autocast_with_a_break(w, x):
    x = x.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
        if y.sum() > 0:
            w.log.append(str(y.dtype))
        z = x @ y.float()
    u = x @ x.t()
    return z.dtype, u.dtype, torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled(), u


@row
def inference_mode_with_a_break(w, x):
    with torch.inference_mode():
        y = x * 2
        if y.sum() > 0:
            w.log.append(y.is_inference())
        y = y + 1
    return y.is_inference(), torch.is_inference_mode_enabled(), y.sum().item()


@row
def dtype_with_a_break(w, x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(4)
    if x.sum() > 0:
        y = y + torch.zeros(4)
    torch.set_default_dtype(torch.float32)
    return y.dtype, torch.get_default_dtype(), x + y


@row
def modes_that_stay_changed(w, x):
    torch.set_grad_enabled(x.shape[0] == 3)
    return x * 2, torch.is_grad_enabled()


@row
def mode_with_a_break(w, x):
    with Functions(w.log):
        y = torch.sin(x)
        if y.sum() > 0:
            y = y + 1
        z = y * 2
    return z - 1


@row
def dispatch_mode_with_a_break(w, x):
    with Dispatched() as mode:
        y = torch.sin(x)
        cresset.graph_break("here")
        z = y * 2
    return len(mode.seen) > 0, z - 1
