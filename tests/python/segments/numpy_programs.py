"""Programs with arrays of numpy. `WHOLE`: with equal values at every call, a single graph segment each. `ENDED`: an
array shared with tensors, a varying array, or another library causes a graph break."""

import copy
import operator

import numpy as np
import torch

WHOLE, ENDED = {}, {}


def whole(function):
    WHOLE[function.__name__] = function
    return function


def ended(function):
    ENDED[function.__name__] = function
    return function


@whole
def table_of_positions(x):
    table = np.zeros((4, 4), dtype=np.float32)
    position, rate = np.arange(4)[:, None], np.exp(np.arange(0, 4, 2) * -(np.log(10000.0) / 4))
    table[:, 0::2], table[:, 1::2] = np.sin(position * rate), np.cos(position * rate)
    return x + torch.from_numpy(table)


@whole
def filled_in_a_loop(x):
    mask = np.zeros((3, 2), dtype=np.int32)
    for i in range(3):
        for j in range(2):
            mask[i, j] = i + j
    return x + torch.tensor(mask).sum()


@whole
def triangle(x):
    return x.masked_fill(torch.from_numpy(np.triu(np.ones((4, 4)), k=1)).bool(), 0.0)


@whole
def window(x):
    return x * torch.tensor(np.hanning(4), dtype=x.dtype)


@whole
def numbers_of_arrays(x):
    steps, sizes, offsets = np.linspace(0, 1, 3), np.array([1, 3]), np.cumsum([0, 2, 2])
    parts = [x[a:b] + 1 for a, b in zip(offsets[:-1], offsets[1:])]  # noqa: RUF007  (of arrays)
    return [x * float(s) for s in steps], torch.split(x, [int(s) for s in sizes]), parts


@whole
def indices(x):
    grid = np.stack(np.meshgrid(np.arange(2), np.arange(2)), 0).reshape(2, -1)
    return x[np.argsort([3, 1, 2, 0])], x[:, np.array([True, False, True, True])], x[grid[0], grid[1]]


@whole
def indices_written(x):
    y = x.clone()
    y[np.array([0, 2])] = 5
    y[:, np.array([True, False, False, False])] = 7
    return y


@whole
def index_that_is_a_float(x):
    try:
        return x[np.array([0.5])]
    except IndexError as e:
        return type(e), x


@whole
def given_out(x):
    a = np.arange(6).reshape(2, 3)
    return x + 1, a, [a], {"k": a}


@whole
def given_out_with_a_view(x):
    a = np.zeros((4, 3))
    b = a[1:3, ::-1]
    a[2] = 5
    return x * 2, a, b, a[0], a.T


@whole
def view_without_its_base(x):
    return x, np.arange(12).reshape(3, 4)[1:, ::2], np.broadcast_to(np.arange(3), (2, 3))


@whole
def order_in_memory(x):
    return x, np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(6).reshape(2, 3).T.copy()


@whole
def in_containers(x):
    pieces, named = [np.zeros(2)], {"a": np.arange(3)}
    pieces.append(np.ones(2))
    named["a"][1] = 9
    return x * np.stack(pieces).sum(), pieces, named


@whole
def copies(x):
    a = np.arange(3)
    b = copy.deepcopy(a)
    b[0] = 5
    return x, a, b, copy.copy(a), operator.getitem(a, slice(1, None))


@whole
def changed_in_place(x):
    a, out = np.array([3, 1, 2]), np.zeros(3)
    a.sort()
    a += 1
    np.add(np.ones(3), 2, out=out)
    out.shape = (3, 1)
    np.copyto(out[1:], 4)
    return x[a[0]], a, out


@whole
def methods_of_ufuncs(x):
    return (
        x * np.add.reduce(np.arange(4)),
        np.maximum.accumulate(np.array([1, 3, 2])),
        np.multiply.outer([0, 1], [2, 3]),
    )


@whole
def attributes(x):
    a = np.arange(6).reshape(2, 3)
    return x * a.shape[1], a.dtype, a.ndim, a.size, a.flat[3], a.real.sum(), isinstance(a, np.ndarray), len(a)


@whole
def iterated(x):
    for row in np.arange(6).reshape(3, 2):
        x = x + int(row[0]) * row.sum()
    for i, (a, b) in enumerate(zip(np.arange(3), np.linspace(0, 1, 3))):
        x = x * float(b) + int(a) + i
    a, b = np.array([1, 2])
    return x * int(a) + float(b), x.reshape(*np.array([2, 8])), [x[i] for i in np.arange(3).tolist()]


@whole
def decided(x):
    a = np.zeros(3)
    if a.any():
        return x
    return (x * 2 if not (a == 0).all() else x * 3), 3 in np.arange(4), bool(np.isin(3, [1, 2, 3]))


@whole
def tensors_with_dtypes(x):
    a = np.arange(4, dtype=np.int32)
    return (
        x + torch.as_tensor(np.arange(4), dtype=torch.float32),
        torch.tensor(a, dtype=torch.float64),
        torch.tensor(np.full((4,), 7)),
        torch.from_numpy(np.arange(4).astype(np.float16)),
        torch.from_numpy(np.array([True, False])),
    )


@whole
def tensors_written(x):
    t = torch.from_numpy(np.ones(4, dtype=np.float32))
    t.add_(x[0])
    u = torch.tensor(np.ones(4, dtype=np.float32))
    u[1] = x[0, 0]
    return t, u


@whole
def tensor_of_a_view(x):
    a = np.ones((2, 4), dtype=np.float32)
    return x + torch.tensor(a[:, ::2]).sum() + torch.from_numpy(a[1])


@whole
def tensor_from_another_frame(x):
    def convert(b):
        return torch.from_numpy(b)

    a = np.zeros(4, dtype=np.float32)
    t = convert(a)
    t += 1
    return x + t


@whole
def linear_algebra(x):
    inverse = torch.from_numpy(np.linalg.inv(np.eye(4) * 2)).float()
    spectrum = np.abs(np.fft.fft(np.ones(4)))
    return (
        x @ inverse * float(spectrum.max()),
        float(np.linalg.norm(np.ones(4))),
        np.einsum("ij,ij->", np.eye(2), np.eye(2)),
    )


@whole
def of_shapes_that_are_known(x):
    n = x.shape[0]
    if n == 4:
        return x + torch.from_numpy(np.arange(n)), np.zeros((n, 2))[: n // 2] + n
    return x


@whole
def refused(x):
    try:
        np.zeros((2, 3)) + np.zeros(4)
    except ValueError as e:
        return str(e), x


@whole
def refused_in_a_call(x):
    try:
        return x + np.zeros(3).reshape(2)
    except ValueError as e:
        return str(e)


@whole
def refused_by_torch(x):
    try:
        return x + torch.from_numpy(np.arange(4)[::-1])
    except ValueError as e:
        return str(e)


@ended
def of_shapes(x):
    return x + torch.from_numpy(np.arange(x.shape[1])).float(), np.zeros((x.shape[0], 2))


@ended
def alive_over_a_break(x):
    a = np.zeros(4, dtype=np.int64)
    a[0] = 7
    n = int(x.sum().item() * 0)
    a[1] = n + 3
    return x + torch.from_numpy(a), a


@ended
def view_over_a_break(x):
    a = np.zeros((2, 4))
    b = a[0]
    x.sum().item()
    b += 2
    return a, b, x * float(a.sum())


@ended
def rows_over_breaks(x):
    for row in np.arange(6.0).reshape(3, 2):
        x = x + x.sum().item() * row[0]
    return x


@ended
def written_behind_the_tensor(x):
    a = np.zeros(4, dtype=np.float32)
    t = torch.from_numpy(a)
    a[1] = 3
    return x + t


@ended
def tensor_written_before_the_array_is_read(x):
    a = np.zeros(4, dtype=np.float32)
    t = torch.as_tensor(a)
    t += 2
    return x + float(a.sum())


@ended
def tensor_and_array_given_out(x):
    a = np.zeros((2, 4), dtype=np.float32)
    return torch.from_numpy(a[1]), a, x


@ended
def tensor_in_a_loop(x):
    a = np.zeros(4, dtype=np.float32)
    for _ in range(3):
        t = torch.from_numpy(a)
        t += 1
    return x + float(a.sum())


@ended
def read_by_a_closure(x):
    a = np.zeros(4, dtype=np.float32)

    def total():
        return float(a.sum())

    t = torch.from_numpy(a)
    t += 2
    return x + total()


@ended
def held_by_a_caller(x):
    def convert(b):
        return torch.from_numpy(b)

    a = np.zeros(4, dtype=np.float32)
    t = convert(a)
    t += 1
    return x + float(a.sum())


@ended
def held_by_a_list(x):
    arrays = [np.zeros(4, dtype=np.float32)]
    t = torch.from_numpy(arrays[0])
    t += 1
    return x, arrays


@ended
def seen_by_locals(x):
    a = np.zeros(4, dtype=np.float32)
    t = torch.from_numpy(a)
    t += 1
    names = locals()
    return x, names["a"]


@ended
def of_a_tensor(x):
    a = np.zeros(2)
    a[0] = x[0, 0]
    return a, x


@ended
def times_a_tensor(x):
    a = np.arange(4, dtype=np.float32)
    try:
        return a * x, type(a * x)
    except TypeError as e:
        return str(e)


@ended
def texts(x):
    return repr(np.arange(3)), str(np.ones(2)), f"{np.arange(2)}", "%s" % np.arange(1), x  # noqa: UP031


@ended
def functions_of_the_program(x):
    calls = []
    np.frompyfunc(lambda v: calls.append(v) or v, 1, 1)(np.arange(3))
    return x, len(calls), np.vectorize(lambda v: v + 1)(np.arange(3))


@ended
def of_objects(x):
    a = np.array([None, 1], dtype=object)
    return x, len(a)


@ended
def objects_that_are_tensors(x):
    a = np.zeros(2).astype(object)
    a[0] = x
    b = np.empty(2, dtype=object)
    b[1] = [x + 1]
    return a[0] * 2, b[1][0], np.matrix([[1, 2]]) * 2


@ended
def random_numbers(x):
    return x * np.random.uniform(0.5, 1.5), np.random.permutation(4)


@ended
def that_torch_has_no_dtype_for(x):
    return torch.from_numpy(np.arange(4, dtype=np.uint16)), x
