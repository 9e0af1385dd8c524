"""Programs with side effects. Each row: name, a function that makes a fresh world (a namespace), the function of
(world, x), and the inputs of its calls, in order."""

from __future__ import annotations

import collections
import types

import torch


def world(**things):
    return types.SimpleNamespace(log=[], **things)


class Box:
    """An object with state."""

    def __init__(self, value=None):
        self.value = value


def ones(*shape):
    return torch.ones(*shape)


def ramp(*shape):
    n = torch.Size(shape).numel()
    return torch.arange(n, dtype=torch.float32).reshape(shape) * 0.5 - 1


def table():
    """An empty table, and its decorator for adding a program."""
    rows = []

    def row(function=None, *, make=world, inputs=(lambda: ramp(3, 4),) * 3):
        def add(f):
            rows.append((f.__name__, make, f, inputs))
            return f

        return add if function is None else add(function)

    return rows, row


ROWS, row = table()


# ------------------------------------------------------------------------------------------------- writes


@row
def append_number(w, x):
    w.log.append(1)
    return x + 1


@row
def append_result(w, x):
    y = x * 2
    w.log.append(y)
    return y + 1


@row
def append_input(w, x):
    w.log.append(x)
    return x + 1


@row
def append_view(w, x):
    y = x * 2
    w.log.append(y[0])
    y.add_(1)
    return y


@row(make=lambda: world(box=Box(0)))
def count_calls(w, x):
    w.box.value += 1
    return x * w.box.value


@row(make=lambda: world(box=Box()))
def keep_result(w, x):
    w.box.value = x.relu()
    return w.box.value * 2


@row(make=lambda: world(box=Box()))
def keep_shape(w, x):
    w.box.value = x.shape[0]
    return x + w.box.value


@row(make=lambda: world(seen={}))
def dictionary(w, x):
    w.seen[x.shape[0]] = x.sum()
    return len(w.seen) + x


@row(make=lambda: world(queue=collections.deque(maxlen=2)))
def queue(w, x):
    w.queue.append(x.mean())
    return sum(w.queue)


@row(make=lambda: world(box=Box()))
def new_tensors_of_numbers(w, x):
    w.box.value = torch.tensor(0)
    w.log.append(torch.tensor([1.0, 2.0]))
    w.box.value.add_(1)
    if x.sum() > 0:
        w.box.value.add_(5)
        w.log[-1].mul_(2)
    y = torch.tensor([3, 4])
    w.log.append(y)
    return x + w.box.value, y, torch.tensor([[7]]).t()


@row(make=lambda: world(given=[]))
def results_that_are_written_later(w, x):
    for t in w.given:
        t.zero_()
    w.given.append(torch.tensor([1, 2]))
    return x * 2, w.given[-1]


@row(make=lambda: world(box=Box()))
def new_list_in_an_attribute(w, x):
    w.box.value = [1]
    w.box.value.append(2)
    w.log.append(w.box.value)
    w.log.append(len(w.box.value))
    return x * 2


@row(make=lambda: world(box=Box()))
def new_object_in_an_attribute(w, x):
    w.box.value = Box([])
    w.box.value.value.append(x.shape[0])
    if x.sum() > 0:
        w.box.value.value.append(x + 1)
    w.log.append(w.box.value.value)
    return w.box.value


@row(make=lambda: world(table={}, queue=collections.deque()))
def new_containers_in_containers(w, x):
    w.table["a"] = []
    w.table["a"].append(1)
    w.table.update(b={})
    w.table["b"]["n"] = 2
    w.queue.extend([[], []])
    w.queue[-1].append(3)
    w.log += [[4]]
    w.log[-1].append(5)
    w.table.setdefault("c", []).append(6)
    w.log.append((w.table["a"], w.table["b"]))
    return x + 1


@row(make=lambda: world(call=None))
def new_list_in_a_cell(w, x):
    if w.call is None:
        items = None

        def call(y):
            nonlocal items
            items = [y * 2]
            items.append(len(items))
            w.log.append(items)
            return items

        w.call = call
        return x
    return w.call(x)


@row(make=lambda: world(total=torch.zeros(3, 4)))
def accumulate_in_place(w, x):
    w.total += x
    return w.total * 2


@row(make=lambda: world(total=torch.zeros(3, 4)))
def accumulate_anew(w, x):
    w.total = w.total + x
    return w.total


@row
def write_input(w, x):
    x.add_(1)
    w.log.append(float(x.sum()))
    x.mul_(2)
    return x


@row
def write_view_of_input(w, x):
    x[0].zero_()
    y = x.view(-1)
    y[1] = 7
    return y, x


@row
def alias_of_result(w, x):
    y = x + 1
    z = y.t()
    w.log.append(z)
    y.mul_(3)
    return z, y


# ------------------------------------------------------------------------------------------------- data is asked for


@row
def item_between(w, x):
    y = x + 1
    w.log.append(y.sum().item())
    z = y * 2
    w.log.append(z.max().item())
    return z


@row
def branch(w, x):
    y = x * 2
    if y.sum() > 0:
        w.log.append("positive")
        return y + 1
    w.log.append("negative")
    return y - 1


@row
def loop_until(w, x):
    steps = 0
    while x.abs().sum() > 1:
        x = x / 2
        steps += 1
        w.log.append(steps)
    return x, steps


@row
def numpy_between(w, x):
    y = x + 1
    array = y.numpy()
    array[0, 0] = 5
    w.log.append(array.sum())
    return y * 2


@row
def tolist_between(w, x):
    w.log.append((x * 2).tolist())
    return x.relu()


@row
def text_between(w, x):
    w.log.append(repr(x * 2))
    w.log.append(f"{x.shape}")
    return x.relu()


@row
def data_pointer(w, x):
    y = x * 2
    w.log.append(y.data_ptr() == y.view(-1).data_ptr())
    return y


@row
def set_data(w, x):
    y = x * 2
    y.data = x + 1
    return y * 1


@row
def resize_in_place(w, x):
    y = x * 2
    y.unsqueeze_(0)
    x.t_()
    return y, x


@row
def mask_select(w, x):
    y = x[x > 0]
    w.log.append(y.shape[0])
    return y * 2


@row
def view_lives_on(w, x):
    y = x * 2
    v = y[1:]
    w.log.append(y.sum().item())
    v.add_(1)
    return y, v


@row
def buffer_read_back(w, x):
    if not hasattr(w, "mean"):
        w.mean = torch.zeros(4)
    w.mean.mul_(0.5).add_(x.mean(0))
    w.log.append(w.mean.tolist())
    return x - w.mean


@row
def random_numbers(w, x):
    a = torch.rand_like(x)
    w.log.append(a.sum().item())
    return x + torch.randn(3, 4) + a


# ------------------------------------------------------------------------------------------------- exceptions


@row
def raises_after_writes(w, x):
    w.log.append("before")
    x.add_(1)
    w.log.append(x * 2)
    raise KeyError("mine")


@row
def raises_and_catches(w, x):
    y = x + 1
    try:
        w.log.append("try")
        z = x @ y
        w.log.append("never")
        return z
    except RuntimeError as e:
        w.log.append(str(e))
    finally:
        w.log.append("finally")
    return y


@row
def bad_index_in_the_middle(w, x):
    y = x.clone()
    w.log.append("before")
    index = torch.tensor([7])
    return y[index]


@row
def exception_carries_a_tensor(w, x):
    raise ValueError(x * 2, x.shape[0])


@row
def raises_on_second_call(w, x):
    w.log.append(len(w.log))
    if len(w.log) == 2:
        raise RuntimeError("second")
    return x * len(w.log)


# ------------------------------------------------------------------------------------------------- results


@row
def sizes_in_results(w, x):
    return {"n": x.shape[0], "shape": x.shape, "list": [x.numel(), (x.size(1), x + 1)]}


@row
def one_list_twice(w, x):
    items = [x + 1]
    return items, items, {"again": items}


@row
def made_objects(w, x):
    box = Box(x * 2)
    return box, [box], Box(box)


@row
def generator_result(w, x):
    def parts():
        for i in range(3):
            w.log.append(i)
            yield x + i

    return list(parts())


@row
def identity(w, x):
    y = x
    w.log.append(y is x)
    return y is x, y, x
