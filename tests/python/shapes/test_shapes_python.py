"""Uses of sizes in Python besides operators: loops, least and greatest, branches."""

from __future__ import annotations

import builtins
import collections
import math
import types

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, assert_same_call

import cresset


def sweep(function, inputs, compilations):
    """Compiled once for the first inputs, called with all inputs; checks eager's results and the number of
    compilations."""
    compiled = cresset.compile(function)
    with torch.no_grad():
        for given in inputs:
            assert_same(compiled(*given), function(*given))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"]) == (compilations, 0), (
        stats["recompiles"],
        stats["graph_break_reasons"],
    )
    return stats["recompiles"]


def of_lengths(*lengths):
    return [(torch.randn(2, n, 8),) for n in lengths]


def blocks(x):
    return torch.stack([x[:, i : min(i + 8, x.size(1))].sum(1) for i in range(0, x.size(1), 8)])


def test_range_pins_the_number_of_steps_only():
    reasons = sweep(blocks, of_lengths(12, 9, 16, 10, 17, 24, 20), compilations=2)
    assert "(args[0].size(1) + 7)//8 == 2" in reasons[0] and "test_shapes_python.py" in reasons[0]


def test_range_downwards():
    def f(x):
        return sum(x[:, 0] * i for i in range(32, x.size(1), -9))

    sweep(f, of_lengths(12, 10, 6), compilations=1)


def test_empty_ranges_and_ranges_of_elements():
    def f(x):
        empty = list(range(x.size(1), 0)), list(range(0, x.size(1), -1))  # the kept range shows its end
        assert empty == ([], [])
        assert isinstance(range(3), range) and not isinstance(3, range) and issubclass(range, range)
        assert list(range(2, x.size(0) + 2)) == [2, 3] and range(x.size(0))[-1] == 1
        return x + len(range(x.size(0)))

    sweep(f, of_lengths(12, 9), compilations=1)


def test_range_raises_as_ever():
    def f(x):
        try:
            range(0, x.size(1), 0)
        except ValueError as e:
            return x, str(e)

    sweep(f, of_lengths(12, 9), compilations=1)


def test_builtins_are_restored():
    before = (builtins.range, builtins.min, builtins.max, F.scaled_dot_product_attention)
    sweep(blocks, of_lengths(12), compilations=1)
    assert (builtins.range, builtins.min, builtins.max, F.scaled_dot_product_attention) == before


def test_least_and_greatest_of_sizes_are_no_decision():
    def f(x, y):
        n = min(x.size(1), y.size(1))
        m = max([x.size(1), y.size(1), 3])
        return x[:, :n] + y[:, :n], torch.arange(m) * n

    rows = [(torch.randn(2, a), torch.randn(2, b)) for a, b in [(9, 7), (7, 9), (5, 5), (1, 2), (2, 1)]]
    sweep(f, rows, compilations=1)


def test_least_with_a_key_or_of_other_things_is_pythons():
    def f(x):
        n = min(x.size(0), 2.5) + max("ab", "b", key=len).count("a") + min([], default=1)
        return x * n + min(iter([x.size(0), 7]))

    sweep(f, of_lengths(12, 9), compilations=1)


@pytest.mark.parametrize("first", [1, 6])
def test_a_decided_boolean_is_given_to_an_operator(first):
    def f(q, mask=None):
        q = q[:, None]
        return F.scaled_dot_product_attention(q, q, q, is_causal=q.shape[2] > 1 and mask is None)

    sweep(f, of_lengths(first, 7 - first, 9), compilations=2)


def test_divided_lengths_are_general_sizes():
    """Whether a length divided by 4 is 1 needs no guard: torch's composites work for either answer."""

    weight = torch.randn(8, 8)

    def f(x):
        x = F.gelu(F.avg_pool1d(F.linear(x, weight).transpose(1, 2), 4)).transpose(1, 2)
        q = x.view(x.size(0), -1, 2, 4).transpose(1, 2)
        return torch.matmul(q, q.transpose(-1, -2))

    sweep(f, of_lengths(12, 5, 7, 16, 33), compilations=1)


def test_sizes_divided_as_tensors_stay_sizes():
    """torch.div() of a size alone: the tensor on its way to the operator holds no data; the facts about it are used."""

    def f(x):
        n = torch.div(x.size(1), 4, rounding_mode="trunc") - 1
        windows = x.view(x.size(0), torch.div(x.size(1), 4, rounding_mode="floor"), 4, x.size(2))
        return windows.sum(2) + torch.div(x.size(1), 3), x.new_zeros((x.size(0), n + 1)), torch.add(x.size(1), 1)

    sweep(f, of_lengths(12, 8, 16, 20), compilations=1)


def test_strides_of_sizes_that_are_one_at_first():
    weight = torch.randn(8, 2, 4)

    def f(x):
        x = x.transpose(1, 2)
        p, q = F.conv1d(x, weight, stride=4, padding=1, groups=4), F.avg_pool1d(x, 4, 4)
        n = min(p.size(-1), q.size(-1))
        return p[..., :n] + q[..., :n]

    sweep(f, of_lengths(4, 9, 32, 7), compilations=1)


def test_strides_of_what_the_program_lays_out():
    """A dimension of size 1 may have any stride, but not where the program's kernels write: no memory is read."""

    def f(x):
        y = x.sum(-1)[:, :, None, None] * 2
        y = y.transpose(1, 2).reshape(y.size(0), y.size(1), 1)
        y = y.view(y.size(0), y.size(1) // 4, 4, 1)
        size, stride = list(y.shape), list(y.stride())
        size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
        return y.as_strided(size, stride) + 1, y.stride()

    sweep(f, of_lengths(12, 8, 16, 20), compilations=1)


def test_fourier_transforms_of_any_size():
    def f(x):
        y = torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real
        return y + torch.fft.irfft(torch.fft.rfft(x, dim=1), n=x.size(1), dim=1)

    sweep(f, of_lengths(12, 9, 16, 5, 2), compilations=1)


def test_writing_a_whole_batch_does_not_ask_whether_there_is_one():
    def f(x):
        out = torch.zeros_like(x)
        out[:, 1:3] = x[:, :2] * 2
        out[:] = out + 1
        return out

    rows = [(torch.randn(n, 5, 8),) for n in (3, 0, 1, 4)]
    sweep(f, rows, compilations=1)


INDEX, MASK = torch.tensor([1, 0]), torch.tensor([True, False])
INDEXED = {
    "one": lambda n: n,
    "two": lambda n: (n, n),
    "all": lambda n: (n, n, n),
    "last": lambda n: (..., n),
    "both_ends": lambda n: (n, ..., n),
    "between": lambda n: (None, n, slice(1, None), n),
    "new_dimension": lambda n: (slice(None), n, None),
    "tensor": lambda n: (INDEX, n),
    "tensor_apart": lambda n: (n, slice(None), INDEX),
    "mask": lambda n: (MASK, n),
    "too_many": lambda n: (n, n, n, n),
    "out_of_range": lambda n: (n + 7,),
}


@pytest.mark.parametrize("name", INDEXED)
def test_indices_that_vary_stay_symbols(name):
    def f(x, n):
        y, z = x.clone(), x.clone()
        y[INDEXED[name](n)] = -1.5
        z[INDEXED[name](n)] = z[INDEXED[name](n)] * 2
        return x[INDEXED[name](n)], y, z

    cresset.reset()
    g = cresset.compile(f, options={"frontend": "evaluate"})
    x = torch.arange(60.0).reshape(2, 5, 6)
    for n in (0, 1, 0, -1, -2, 1):
        assert_same_call(f, g, x, n)
    if name not in ("mask", "too_many", "out_of_range"):
        assert cresset.stats()["graphs"] <= 3, cresset.stats()["recompiles"]  # the first, then a graph for each sign


def test_powers_of_sizes_stay_symbols():
    def f(x, n):
        return x / (n + 1) ** 0.7, x * n**1.0, x + n**-0.5

    cresset.reset()
    g = cresset.compile(f, options={"frontend": "evaluate"})
    for n in range(1, 7):
        assert_same_call(f, g, torch.arange(6.0), n)
    assert cresset.stats()["graphs"] == 1, cresset.stats()["recompiles"]


def test_a_power_that_is_looked_at_pins_the_size():
    def f(x, n):
        scale = n**0.5
        return x * scale if scale > 1.5 else x - scale, float(scale)

    cresset.reset()
    g = cresset.compile(f, options={"frontend": "evaluate"})
    for n in (1, 2, 3, 4, -2):
        if n > 0:
            assert_same_call(f, g, torch.arange(6.0), n)


def test_len_of_a_tensor_is_its_size():
    def f(x):
        return x.new_ones(len(x)), sum(x[i].sum() for i in range(0, len(x), 16)), len(x.shape), len(x) // 2

    sweep(f, [(torch.randn(n, 3),) for n in (4, 5, 1, 9)], compilations=1)
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        cresset.compile(lambda x: x * len(x))(torch.tensor(1.0))


def test_whether_a_tensor_is_contiguous_is_what_it_is_in_eager():
    """Sizes of 0 and 1 can make a transposed tensor contiguous, and the program sees the answer."""

    def f(x):
        y = x.transpose(1, 2)
        return y.is_contiguous(), x.is_contiguous(), y * 2, y.contiguous().is_contiguous()

    def g(x):
        y = x.permute(0, 2, 3, 1)
        return (
            y.is_contiguous(),
            x.is_contiguous(memory_format=torch.channels_last),
            y.is_contiguous(memory_format=torch.channels_last),
        )

    sizes = [(2, 3, 4), (2, 1, 1), (0, 3, 4), (1, 1, 5), (2, 5, 1), (3, 7, 2)]
    for function, inputs in [(f, [torch.randn(s) for s in sizes]), (g, [torch.randn(2, *s) for s in sizes])]:
        compiled = cresset.compile(function)
        for x in inputs:
            assert_same(compiled(x), function(x))
    assert cresset.stats()["graph_break_reasons"] == []


def test_distance_of_sizes():
    def f(x):
        return x * abs(x.size(1) - 4), x.new_ones(abs(x.size(1) - x.size(0))), max(x.shape), min(x.shape)

    sweep(f, [(torch.randn(n, m),) for n, m in ((4, 8), (5, 2), (3, 3), (1, 9))], compilations=1)


def test_functions_of_numpy_on_sizes_are_values():
    numpy = pytest.importorskip("numpy")

    def f(x):
        return x.reshape(int(numpy.prod(x.shape))) * float(numpy.sqrt(x.shape[1])), numpy.prod(x.shape[1:])

    compiled = cresset.compile(f)
    for n in (3, 5, 3):
        x = torch.randn(n, 4)
        assert_same(compiled(x), f(x))
    assert cresset.stats()["graph_break_reasons"] == []


def test_a_size_that_becomes_known_to_be_nothing():
    """A later fact shows that the difference is 0, after its use."""

    def f(x):
        y = x.new_ones(x.size(1) - x.size(2))
        return y * 2, f"{x.size(1)}"

    compiled = cresset.compile(f)
    for s in ((2, 0, 0), (2, 1, 1), (2, 3, 1)):
        assert_same(compiled(torch.randn(s)), f(torch.randn(s)))
    assert cresset.stats()["eager_calls"] == 0


def test_integers_beyond_64_bits():
    """Of arguments and sizes, at the first call and at a later one."""

    def f(x, n):
        return x + 1, n * n, n + 2**62, n**3 - n, x.size(0) * 10**18, n * 2**70, (n << 40) * x.size(0)

    numbers = [5, 7, 2**31, 2**33, 2**62, -(2**40), 3]
    for order in (numbers, numbers[::-1]):
        cresset.reset()
        compiled = cresset.compile(f)
        for i, n in enumerate(order):
            x = torch.randn(3 + 3 * (i % 4))
            assert_same(compiled(x, n), f(x, n))
        assert cresset.stats()["graph_break_reasons"] == []


def test_a_comparison_beyond_64_bits():
    def f(x, n):
        return x + 1 if n * n > 2**65 else x - 1

    compiled = cresset.compile(f)
    for n in (5, 7, 2**33, 2**32, 2**40, -5, 2**32 + 1):
        x = torch.randn(3)
        assert_same(compiled(x, n), f(x, n))


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64, torch.int64])
def test_linspace_of_sizes(dtype):
    def f(x):
        n, m = x.shape
        return (
            torch.linspace(0, 1, n, dtype=dtype),
            torch.linspace(-1, m, m, dtype=dtype),
            torch.linspace(0.5, n / 2, 5, dtype=dtype),
            torch.linspace(n, 1, steps=7, dtype=dtype),
        )

    inputs = [(torch.randn(n, m),) for n, m in ((4, 8), (5, 3), (1, 2), (2, 1), (9, 33))]
    if dtype is torch.int64:  # left to torch, which needs plain numbers
        compiled = cresset.compile(f)
        for given in inputs:
            assert_same(compiled(*given), f(*given))
    else:
        sweep(f, inputs, compilations=1)


def test_tensors_of_sizes():
    def f(x):
        n, m = x.shape
        return (
            torch.tensor(n),
            torch.tensor([n, m]) * 2,
            x / torch.tensor([[n, 1], [m, 2.5]]).sum(),
            torch.tensor(x.shape),
            torch.tensor([n / m, 0.5], dtype=torch.float64),
            torch.tensor([1, 2]),
        )

    sweep(f, [(torch.randn(n, m),) for n, m in ((4, 8), (5, 3), (1, 2))], compilations=1)


def test_shapes_that_are_broadcast():
    def f(x, y):
        x = x[:, None]
        shape = torch.broadcast_shapes(x.shape, (1, 1), y.shape, 1)
        return x.expand(shape) + y, list(shape)

    sweep(f, [(torch.randn(n), torch.randn(m)) for n, m in ((4, 8), (5, 3), (1, 2), (3, 1))], compilations=1)

    def bad(x, y):
        return torch.broadcast_shapes(x.shape, y.shape)

    with pytest.raises(RuntimeError) as expected:
        bad(torch.randn(2, 3), torch.randn(4, 3))
    compiled = cresset.compile(bad)
    with pytest.raises(RuntimeError) as got:
        compiled(torch.randn(2, 3), torch.randn(4, 3))
    assert str(got.value) == str(expected.value)


def test_sizes_in_frames_stay_symbols_after_a_break():
    """A later graph segment needs no second call to learn that they vary."""

    def f(x):
        n, rest = x.size(0), [x.size(1) * 2, x.size(0)]
        if x.sum() > 1e9:
            return x
        return x.reshape(n, -1) * rest[0] + x.new_ones(n, rest[0] // 2)

    compiled = cresset.compile(f)
    for shape in ((3, 4), (5, 6), (2, 8), (1, 3)):
        x = torch.randn(shape)
        assert_same(compiled(x), f(x))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (2, 1, 0), stats["recompiles"]


def test_one_hot_of_given_classes():
    def f(x, classes):
        return F.one_hot(x, classes), F.one_hot(x, 64).sum(0), F.one_hot(x % 3, x.size(0) + 3) * 1.5

    inputs = [(torch.randint(0, 5, (n, 2)), 5 + n) for n in (3, 4, 1, 0)]
    compiled = cresset.compile(f)
    for given in inputs:
        assert_same(compiled(*given), f(*given))
    assert cresset.stats()["graph_break_reasons"] == []
    for bad in (torch.tensor([[1, 7]]), torch.tensor([[-1, 2]])):
        with pytest.raises(RuntimeError) as expected:
            F.one_hot(bad, 7)
        with pytest.raises(RuntimeError) as got:
            compiled(bad, 7)
        assert str(got.value) == str(expected.value)


@pytest.mark.parametrize("align", [False, True])
def test_affine_grids_of_any_size(align):
    def f(x, theta):
        grid = F.affine_grid(theta, x.shape, align_corners=align)
        return F.grid_sample(x, grid, align_corners=align), grid

    sizes = [(2, 3, 5, 7), (1, 3, 4, 4), (3, 1, 9, 2), (4, 2, 2, 3)]
    sweep(f, [(torch.randn(s), torch.randn(s[0], 2, 3)) for s in sizes], compilations=1)


def test_products_and_quotients_of_sizes():
    def f(x):
        return x.new_ones(math.ceil(x.size(1) / 2.0)), x.shape.numel(), x.shape[1:].numel(), int(-x.size(1) / 2), x + 1

    sweep(f, [(torch.randn(n, m),) for n, m in ((4, 8), (5, 3), (1, 1), (2, 9))], compilations=1)


def test_half_of_a_difference():
    def f(x):
        return int((x.size(0) - x.size(1)) / 2), x * 2

    compiled = cresset.compile(f)
    for n, m in ((4, 8), (8, 4), (5, 2), (2, 5), (3, 3)):
        x = torch.randn(n, m)
        assert_same(compiled(x), f(x))
    assert cresset.stats()["graph_break_reasons"] == []


def test_sizes_as_keys_are_ints():
    kept = []

    def f(x):
        counts = collections.Counter(x.shape)
        table = {x.size(0): "rows", (x.size(1), "c"): 2, "plain": x.size(1)}
        kept.append({x.size(1): x.size(0)})
        return x * 2, counts, table, {x.size(0), 99}

    def types(result):
        return [[type(k) for k in d] for d in (result[1], result[2], result[3], kept[-1])] + [
            type(n) for k in result[2] if type(k) is tuple for n in k
        ]

    compiled = cresset.compile(f)
    for n, m in ((4, 8), (4, 8), (5, 3), (5, 5)):
        x = torch.randn(n, m)
        got, ours = compiled(x), kept[-1]
        expected = f(x)
        assert got[1:] == expected[1:] and ours == kept[-1]
        assert types(got) == types(expected)
        assert type(next(iter(ours))) is int and type(next(iter(ours.values()))) is int


def test_parts_that_are_empty():
    """Empty parts are not read, and eager's own answers for them are kept."""

    def f(x):
        padded = F.pad(x, (1, 2)), F.pad(x, (0, (-x.shape[-1]) % 4), value=3.0)
        return *padded, torch.nn.functional.pixel_unshuffle(x[:, None, :, :].repeat(1, 1, 2, 2), 2)

    compiled = cresset.compile(f)
    for sizes in ((2, 3, 5), (2, 3, 0), (0, 3, 5), (2, 0, 4), (1, 1, 1), (3, 2, 8)):
        assert_same_call(f, compiled, torch.randn(*sizes))
    assert cresset.stats()["graph_break_reasons"] == []


def test_cutting_more_than_there_is_raises():
    def f(x):
        return F.pad(x, (-1, 1))

    compiled = cresset.compile(f)
    for n in (2, 0, 1):
        assert_same_call(f, compiled, torch.randn(n, 3 * n))


@torch.jit.script
def _distances(q: torch.Tensor, k: torch.Tensor, most: int):
    if q.size(-2) != k.size(-2):
        return (torch.arange(q.size(-2))[:, None] - torch.arange(k.size(-2))[None]).clamp(-most, most)
    return q.new_zeros(q.size(-2), k.size(-2)).long()


def test_functions_of_torchscript_are_seen_through():
    """TorchScript takes sizes for plain ints: the original Python function is evaluated."""
    assert type(_distances) is torch._C.ScriptFunction and callable(_distances._torchdynamo_inline)

    def f(q, k):
        return q @ k.transpose(-1, -2) + _distances(q, k, most=3)

    stats = sweep(f, [(torch.randn(2, a, 4), torch.randn(2, b, 4)) for a, b in ((3, 4), (5, 7), (1, 9), (2, 1))], 1)
    assert stats == []


def test_a_traced_function_stays_what_it_is():
    traced = torch.jit.trace(lambda x: x * 2 + 1, torch.ones(3))
    sweep(lambda x: traced(x).sin(), [(torch.randn(n),) for n in (3, 5, 1)], 1)


def test_orders_of_contraction_are_no_guards(monkeypatch):
    """For opt_einsum, where installed: it chooses by sizes, and any order is right for all sizes."""
    from cresset._substitutes import torch_functions as functions

    asked = []

    class Library:
        @staticmethod
        def contract_path(equation, *shapes, optimize, **rest):
            asked.append(shapes)
            assert rest == {"shapes": True} and all(type(n) is int for shape in shapes for n in shape)
            path = [(len(shapes) - 2, len(shapes) - 1)] + [(0, 1)] * (len(shapes) - 2)
            return (path if shapes[0][0] > 2 else [(0, 1)] * (len(shapes) - 1)), None

    installed = types.SimpleNamespace(
        enabled=True, strategy="auto", is_available=lambda: True, get_opt_einsum=functions.get_opt_einsum
    )
    monkeypatch.setattr(torch.backends, "opt_einsum", installed)
    monkeypatch.setattr(functions, "_torch_get_opt_einsum", lambda: Library)
    f = lambda a, b, c: torch.einsum("bij,jk,kl->bil", a, b, c)  # noqa: E731
    compiled = cresset.compile(f, fullgraph=True)
    for n, m in ((3, 4), (2, 6), (1, 5), (5, 2)):
        a, b, c = torch.randn(n, 4, m), torch.randn(m, 7), torch.randn(7, n + 1)
        torch.testing.assert_close(compiled(a, b, c), a @ b @ c, rtol=1e-4, atol=1e-5)
    assert cresset.stats()["graphs"] == 1 and asked == [((3, 4, 4), (4, 7), (7, 4))]
