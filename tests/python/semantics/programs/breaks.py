"""Programs with reads of data in the middle: in loops, `with`, `try`, nested calls, comprehensions. Rows as in
programs_effects."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import math

import torch

from programs.effects import Box, ramp, table, world

ROWS, row = table()


SIGNS = (lambda: ramp(3, 4), lambda: -ramp(3, 4), lambda: ramp(5, 2), lambda: -ramp(2, 2))


# ------------------------------------------------------------------------------------------------- one break


@row
def item_in_the_middle(w, x):
    y = x * 2
    n = y.sum().item()
    return y + n


@row
def item_changes(w, x):
    w.log.append(1)
    n = x.sum().item()
    w.log.append(n)
    return x * n


@row(inputs=(lambda: ramp(3, 4), lambda: ramp(5, 4), lambda: ramp(2, 2), lambda: ramp(7, 1)))
def int_of_a_sum(w, x):
    n = int(x.abs().sum())
    w.log.append(n)
    return x.new_zeros(n + 1) + n


@row
def tolist_in_the_middle(w, x):
    for v in (x * 2).flatten().tolist()[:3]:
        w.log.append(v)
    return x + 1


@row(inputs=SIGNS)
def branch_on_data(w, x):
    y = x + 1
    if y.sum() > 4:
        w.log.append("big")
        return y * 2
    w.log.append("small")
    return y - 1


@row(inputs=SIGNS)
def branch_negated(w, x):
    if not (x.mean() > 0):
        return x - 1
    return x + 1


@row(inputs=SIGNS)
def conditional_expression(w, x):
    return x * (2 if x.sum() > 0 else 3)


@row(inputs=SIGNS)
def and_of_tensors(w, x):
    return (x.sum() > 0) and x + 1


@row(inputs=SIGNS)
def or_of_tensors(w, x):
    return (x.sum() > 0) or x.max()


@row(inputs=SIGNS)
def assert_on_data(w, x):
    assert x.sum() > 0, "negative"
    return x + 1


@row
def format_in_the_middle(w, x):
    y = x.sum()
    w.log.append(f"{y:.2f} {y}")
    return x * 2


class Lines(list):
    """A file with a record of its lines."""

    def write(self, text):
        self.append(text)


@row(make=lambda: world(file=Lines()))
def print_in_the_middle(w, x):
    y = x * 3
    print(y.sum(), file=w.file)
    return y + 1


@row(make=lambda: world(names=["a", "b", "c"]), inputs=(lambda: torch.tensor([0, 2, 1]),) * 2)
def index_a_list_by_a_tensor(w, x):
    return w.names[x[1]], x + 1


@row(make=lambda: world(table={2: "two"}), inputs=(lambda: torch.tensor([2]),) * 2)
def look_up_by_item(w, x):
    return w.table[x.item()], x * 2


# ------------------------------------------------------------------------------------------------- several breaks


@row
def three_items(w, x):
    a = x.sum().item()
    y = x + a
    b = y.max().item()
    z = y * b
    w.log.append((a, b, z.min().item()))
    return z


@row
def loop_with_breaks(w, x):
    for _ in range(5):
        x = x * 0.5
        w.log.append(x.sum().item())
    return x


@row
def loop_until(w, x):
    steps = 0
    while x.abs().max() > 0.1:
        x = x * 0.5
        steps += 1
    w.log.append(steps)
    return x


@row(make=lambda: world(layers=[lambda x: x + 1, lambda x: x * 2, lambda x: x.relu()]))
def loop_over_a_list(w, x):
    for i, layer in enumerate(w.layers):
        x = layer(x)
        if x.sum() > 3:
            w.log.append(i)
    return x


@row
def loop_over_items(w, x):
    total = 0.0
    for name, t in {"a": x, "b": x * 2}.items():
        total += t.sum().item()
        w.log.append(name)
    return total, x


@row
def zip_and_break(w, x):
    out = []
    for a, b in zip(x, x * 2):
        out.append(a + b.sum().item())
    return torch.stack(out)


@row(inputs=SIGNS)
def break_out_of_the_loop(w, x):
    for i in range(10):  # noqa: B007
        x = x + 1
        if x.min() > 2:
            break
    else:
        w.log.append("never")
    return x, i


@row
def twenty_breaks(w, x):
    for _ in range(20):
        x = x + x.mean().item() * 0.1
    return x


@row
def comprehension(w, x):
    return [t.sum().item() for t in x], x * 2


# ------------------------------------------------------------------------------------------------- in calls


def scaled(x):
    y = x * 2
    return y / y.abs().max().item()


@row
def break_in_a_call(w, x):
    y = scaled(x)
    w.log.append("between")
    return scaled(y + 1) * 3


def deep(x, n):
    if n == 0:
        return x * x.sum().item()
    return deep(x + 1, n - 1) + n


@row
def break_in_recursion(w, x):
    return deep(x, 4)


@row
def break_in_a_method(w, x):
    class Scaler:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            self.by = self.by + x.sum().item()
            return x * self.by

    s = Scaler(2)
    return s(s(x)), s.by


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        torch.nn.init.ones_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = self.linear(x)
        if y.abs().max() > 1:
            y = y / y.abs().max()
        return y


@row(make=lambda: world(net=torch.nn.Sequential(Norm(), Norm())))
def break_in_modules(w, x):
    return w.net(x).detach(), w.net[0].calls


@row
def closure_over_a_local(w, x):
    scale = 2.0

    def apply(t):
        nonlocal scale
        scale = scale + t.sum().item()
        return t * scale

    return apply(apply(x)), scale


@row
def keyword_arguments(w, x):
    def f(t, *, by=1, **rest):
        return t * by + t.sum().item() + len(rest)

    return f(x, by=3, other=1)


@row
def partial(w, x):
    f = functools.partial(torch.clamp, min=x.min().item())
    return f(x + 1)


# ------------------------------------------------------------------------------------------------- with, try


@row
def inside_no_grad(w, x):
    with torch.no_grad():
        y = x * 2
        n = y.sum().item()
        y = y + n
    w.log.append(torch.is_grad_enabled())
    return y


@row
def inside_enable_grad(w, x):
    with torch.enable_grad():
        y = x * 2
        n = y.sum().item()
        w.log.append(torch.is_grad_enabled())
    return y + n


@row
def inside_inference_mode(w, x):
    with torch.inference_mode():
        n = (x * 2).sum().item()
    return x + n


class Recorder:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, *what):
        self.log.append("exit" if what[0] is None else what[0].__name__)
        return False


@row
def inside_a_context_manager(w, x):
    with Recorder(w.log) as r:
        y = x * 2
        r.log.append(y.sum().item())
        y = y + 1
    return y


@contextlib.contextmanager
def recording(log):
    log.append("enter")
    try:
        yield 3
    finally:
        log.append("exit")


@row
def inside_a_generator_context(w, x):
    with recording(w.log) as n:
        y = x * n
        w.log.append(y.sum().item())
    return y


@row(inputs=SIGNS)
def inside_try(w, x):
    try:
        y = x * 2
        if y.sum() > 0:
            raise ValueError("positive")
        y = y + 1
    except ValueError as e:
        w.log.append(str(e))
        y = x
    finally:
        w.log.append("finally")
    return y


@row
def inside_except(w, x):
    try:
        raise KeyError("k")
    except KeyError as e:
        n = x.sum().item()
        w.log.append((type(e).__name__, n))
    return x * 2


@row
def inside_finally(w, x):
    try:
        y = x + 1
    finally:
        w.log.append(x.sum().item())
    return y * 2


@row
def raises_after_a_break(w, x):
    n = x.sum().item()
    w.log.append(n)
    raise RuntimeError(f"{n:.1f}")


@row
def operation_raises(w, x):
    y = x * 2
    try:
        y.item()
    except RuntimeError:
        w.log.append("not one element")
    return y + 1


# --------------------------------------------------------------------------------------- objects alive across breaks


@row
def list_lives_on(w, x):
    parts = [x, x * 2]
    alias = parts
    n = x.sum().item()
    parts.append(x + n)
    return len(alias), torch.cat(parts)


@row
def dict_lives_on(w, x):
    d = {"x": x, "n": 0}
    d["n"] = (x * 2).sum().item()
    d["y"] = d["x"] + d["n"]
    return d


@row
def object_lives_on(w, x):
    b = Box(x * 2)
    b.n = b.value.sum().item()
    b.value = b.value + b.n
    return b.value, b.n


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor


@row
def dataclass_lives_on(w, x):
    p = Pair(x, x * 2)
    n = p.second.sum().item()
    p.first = p.first + n
    return p.first, p.second


@row
def set_and_deque_live_on(w, x):
    s, q = {1, 2}, collections.deque([x], maxlen=2)
    n = x.sum().item()
    s.add(3)
    q.append(x * n)
    return sorted(s), list(q)


@row
def generator_lives_on(w, x):
    def produce():
        for i in range(3):
            yield x * i

    total = 0
    for t in produce():
        total = total + t.sum().item()
    return x + total


@row
def views_live_on(w, x):
    y = x * 2
    v = y[0]
    n = y.sum().item()
    v.add_(n)
    return y, v


@row
def input_views_live_on(w, x):
    v = x[0]
    n = x.sum().item()
    v.add_(1)
    return v * n


@row
def write_before_the_break(w, x):
    x.mul_(2)
    n = x.sum().item()
    x.add_(n)
    return x


@row(make=lambda: world(box=Box(0)))
def attribute_before_and_after(w, x):
    w.box.value += 1
    n = x.sum().item()
    w.box.value += n
    return x * w.box.value


@row(make=lambda: world(box=Box()))
def tensor_kept_before_the_break(w, x):
    w.box.value = x * 2
    n = w.box.value.sum().item()
    return w.box.value + n


@row
def size_lives_on(w, x):
    n, m = x.shape
    s = x.sum().item()
    w.log.append((n, m, type(n).__name__))
    return x.reshape(m, n) * s


@row(inputs=(lambda: ramp(3, 4), lambda: ramp(4, 4), lambda: ramp(3, 4), lambda: ramp(6, 2)))
def mask_then_item(w, x):
    found = x[x > 0]
    w.log.append(found.sum().item())
    return found * 2, found.shape[0]


@row
def random_after_a_break(w, x):
    a = torch.rand(3)
    n = x.sum().item()
    b = torch.rand(3)
    return a, b * n


@row
def seed_between(w, x):
    a = torch.rand(2)
    torch.manual_seed(3)
    b = torch.rand(2)
    return a, b


@row
def numpy_in_the_middle(w, x):
    a = (x * 2).numpy()
    return torch.from_numpy(a + 1) * 3


@row
def math_of_an_item(w, x):
    return x * math.sqrt(x.abs().sum().item())


@row
def or_on_a_tensor(w, x):
    y = x.sum() or x + 1
    w.log.append(1)
    z = (y > 0).all() and y * 2
    return (z if z is not False else 0), x.max() - x.max() or "none", (x.sum() > 0) or (x.mean() > 5) or w.log


@row(inputs=(lambda: ramp(3, 4), lambda: -ramp(3, 4), lambda: ramp(3, 4) * 0, lambda: ramp(2, 2)))
def and_in_the_middle_of_an_expression(w, x):
    def pick(a, b):
        return [a, (a.sum() and b) or a * 3, b]

    return sum(len(pick(x, x * 2)[i].shape) for i in (0, 2)), pick(x, x * 2), 1 + (x.sum() and 2 * x)


@row
def chained_comparison_of_tensors(w, x):
    total = x.sum()
    if -5 < total < 100:
        w.log.append("between")
    return 0 < x.max() < 2, total
