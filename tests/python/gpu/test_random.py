"""Random numbers of kernels: the numbers and the generator's state of eager mode, and of a reference in numpy."""

from __future__ import annotations

import cuda_device
import philox_reference as reference
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import cresset

simulated = cuda_device.use()
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SEED, OFFSET = 0x123456789ABCDEF, 8
# Elements: part of a block of threads, more than one, more than all threads that an H200 runs at once, and than four
# elements for each of them.
SIZES = [5, 1000, 270_337, 1_100_001] if simulated is None else [5, 1000, 270_337]


def generator():
    torch.cuda.init()
    return torch.cuda.default_generators[torch.cuda.current_device()]


def start(seed=SEED, offset=OFFSET):
    generator().manual_seed(seed)
    generator().set_offset(offset)
    return seed, offset


def drawn(program, *args):
    """The program's result, and the generator's offset after it."""
    start()
    return program(*args), generator().get_offset()


def assert_close(got, expected, dtype=None):
    """f32's normal and exponential numbers come from functions which GPUs approximate."""
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}
    least = tolerance[dtype or got.dtype]
    torch.testing.assert_close(got.cpu(), expected.cpu(), rtol=least, atol=least)


def launches():
    return simulated.gpu_counters()["launches"] if simulated is not None else 0


# name: (program of n and dtype, the reference's numbers, whether each bit is the same)
FILLS = {
    "rand": (lambda n, dtype: torch.rand(n, dtype=dtype, device="cuda"), reference.uniform, True),
    "uniform": (
        lambda n, dtype: torch.empty(n, dtype=dtype, device="cuda").uniform_(-2, 3),
        lambda *args: reference.uniform(*args, -2, 3),
        True,
    ),
    "randn": (lambda n, dtype: torch.randn(n, dtype=dtype, device="cuda"), reference.normal, False),
    "normal": (
        lambda n, dtype: torch.empty(n, dtype=dtype, device="cuda").normal_(1, 3),
        lambda *args: reference.normal(*args, 1, 3),
        False,
    ),
    "exponential": (
        lambda n, dtype: torch.empty(n, dtype=dtype, device="cuda").exponential_(2),
        lambda *args: reference.exponential(*args, 2),
        False,
    ),
    "bernoulli": (
        lambda n, dtype: torch.empty(n, dtype=dtype, device="cuda").bernoulli_(0.3),
        lambda *args: reference.bernoulli(*args, 0.3),
        True,
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FILLS)
def test_fill(name, dtype, compiled):
    program, expected, exact = FILLS[name]
    fill = cresset.compile(lambda n: program(n, dtype)) if compiled else lambda n: program(n, dtype)
    for n in SIZES:
        before = launches()
        got, after = drawn(fill, n)
        assert not compiled or simulated is None or launches() == before + 1
        numbers, last = expected(SEED, OFFSET, n, dtype)
        assert after == last
        if exact and dtype != torch.float64:
            assert got.cpu().equal(numbers)
        else:
            assert_close(got, numbers)


INTEGERS = [
    (torch.int64, -5, 100),
    (torch.int32, 0, 10),
    (torch.int64, 0, 2**28 - 1),
    (torch.int64, 0, 2**28),
    (torch.int64, -3, 2**40),
]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("dtype", "low", "high"), INTEGERS)
def test_integers(dtype, low, high, compiled):
    def program(n):
        return torch.randint(low, high, (n,), dtype=dtype, device="cuda")

    fill = cresset.compile(program) if compiled else program
    for n in SIZES[:3]:
        before = launches()
        got, after = drawn(fill, n)
        assert not compiled or simulated is None or launches() == before + 1
        numbers, last = reference.integers(SEED, OFFSET, n, low, high)
        assert after == last
        assert got.cpu().equal(numbers.to(dtype))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_probabilities(dtype, compiled):
    program = cresset.compile(torch.bernoulli) if compiled else torch.bernoulli
    for n in (5, 1003):
        p = torch.linspace(0, 1, n, device="cuda").to(dtype)
        got, after = drawn(program, p)
        numbers, last = reference.bernoulli_by(SEED, OFFSET, p.cpu(), dtype)
        assert after == last
        assert got.cpu().equal(numbers)


# Arguments of dropout: dense ones of even and odd sizes, in other orders, with gaps, and at odd addresses.
DROPPED = {
    "vectors": lambda dtype: torch.randn(64, 96, device="cuda").to(dtype),
    "pairs": lambda dtype: torch.randn(25, 42, device="cuda").to(dtype),
    "odd": lambda dtype: torch.randn(63, 97, device="cuda").to(dtype),
    "many": lambda dtype: torch.randn(278_528, device="cuda").to(dtype),
    "transposed": lambda dtype: torch.randn(64, 96, device="cuda").to(dtype).t(),
    "odd_transposed": lambda dtype: torch.randn(63, 97, device="cuda").to(dtype).t(),
    "columns": lambda dtype: torch.randn(64, 96, device="cuda").to(dtype)[:, :48],
    "expanded": lambda dtype: torch.randn(96, device="cuda").to(dtype).expand(64, 96),
    "one_behind": lambda dtype: torch.randn(1025, device="cuda").to(dtype)[1:],
    "two_behind": lambda dtype: torch.randn(1026, device="cuda").to(dtype)[2:],
    "four_behind": lambda dtype: torch.randn(1028, device="cuda").to(dtype)[4:],
    "images": lambda dtype: torch.randn(2, 8, 6, 6, device="cuda").to(dtype).to(memory_format=torch.channels_last),
    "number": lambda dtype: torch.randn((), device="cuda").to(dtype),
}


def in_order_of_memory(x, flat):
    """The flat tensor in the order of a dense tensor's memory, as a tensor like x."""
    if reference.vector_of(x) == 1:
        return flat.view(x.shape)
    out = torch.empty_like(x, dtype=flat.dtype, device="cpu")
    return out.set_(flat.untyped_storage(), 0, x.shape, x.stride())


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", DROPPED)
def test_dropout(name, dtype, compiled):
    x = DROPPED[name](dtype)
    program = cresset.compile(torch.native_dropout) if compiled else torch.native_dropout
    before = launches()
    (got, mask), after = drawn(program, x, 0.4, True)
    assert not compiled or simulated is None or launches() == before + 1
    flat, last = reference.dropout_mask(SEED, OFFSET, x, 0.4)
    expected = in_order_of_memory(x, flat)
    assert after == last
    assert mask.cpu().equal(expected)
    assert mask.dtype == torch.bool
    assert mask.stride() == got.stride() == torch.empty_like(x).stride()
    held = torch.float64 if dtype == torch.float64 else torch.float32
    scale = torch.tensor(1 / torch.tensor(0.6, dtype=held).item(), dtype=held)
    assert got.cpu().equal((x.cpu().to(held) * expected * scale).to(dtype))


def on_intermediates(x):
    y = x * 2
    return (
        F.dropout(y, 0.3) + F.dropout(y.t(), 0.3).t(),
        F.dropout(y.view(-1), 0.3),
        F.dropout(y[1:], 0.3),
        F.dropout(y.flatten()[1:], 0.3),
        F.dropout(y[:, 1:], 0.3),
    )


# name: (program, arguments of a call with n rows); the numbers are eager mode's, bit by bit or nearly.
PROGRAMS = {
    "dropout": lambda x: F.dropout(x.sin(), 0.1) + x,
    "on_intermediates": on_intermediates,
    "several": lambda x: F.dropout(F.dropout(F.dropout(x, 0.2), 0.3).cos(), 0.4),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3, training=True),
    "feature_dropout": lambda x: F.dropout1d(x, 0.3),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x, 0.3, training=True),
    "all_and_none": lambda x: (F.dropout(x, 0.0), F.dropout(x, 1.0), torch.native_dropout(x, 0.0, True)[0]),
    "not_in_training": lambda x: torch.native_dropout(x, 0.5, False),
    "like": lambda x: torch.rand_like(x) + torch.randn_like(x) + torch.randint_like(x, 0, 9, dtype=torch.int64),
    "like_transposed": lambda x: (torch.rand_like(x.t()), torch.rand_like(x[:, ::2]), torch.randn_like(x.t()[1:])),
    "in_place": lambda x: x.clone().uniform_(2, 3) + x.clone().t().normal_(1, 2).t() + x.clone().bernoulli_(0.5),
    "parts_in_place": lambda x: (x.clone()[:, 1:].uniform_(), x.clone().t()[1:].exponential_(2), x.clone()[1:].normal_()),
    "numbers": lambda x: torch.empty_like(x).exponential_(1.5) * torch.bernoulli(x.sigmoid()) * torch.bernoulli(x, 0.3),
    "bools": lambda x: (torch.empty_like(x, dtype=torch.bool).bernoulli_(0.3), torch.empty_like(x).bernoulli_(x.sigmoid())),
    "integers": lambda x: torch.randint(x.shape[0] + 3, x.shape, device="cuda") + torch.randint(-5, 5, (16,), device="cuda"),
    "beside_library": lambda x: (
        torch.rand_like(x) + torch.randperm(x.shape[1], device="cuda"),
        torch.multinomial(x.abs() + 1, 2) + torch.randn(2, device="cuda"),
        torch.empty_like(x).cauchy_() + torch.rand_like(x),
    ),
    "distributions": lambda x: (torch.normal(x, 2.0), torch.distributions.Normal(x, 1.0, validate_args=False).rsample()),
    "unused": lambda x: (torch.rand_like(x), F.dropout(x, 0.5), torch.randn(7, device="cuda"), x + 1)[3],
    "empty": lambda x: (torch.rand_like(x[:0]), F.dropout(x[:0], 0.5), torch.rand(0, 3, device="cuda"), torch.rand_like(x)),
    "reduced": lambda x: (F.dropout(x, 0.5).sum(1), torch.rand_like(x).softmax(0)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, dtype):
    program = PROGRAMS[name]
    compiled = cresset.compile(program)
    for n in (8, 5, 33, 8):
        x = torch.randn(n, 16, device="cuda").to(dtype)
        expected, last = drawn(program, x)
        got, after = drawn(compiled, x)
        assert after == last
        for a, b in zip(*([t] if isinstance(t, torch.Tensor) else t for t in (got, expected)), strict=True):
            assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
            assert_close(a, b, torch.float32 if not a.dtype.is_floating_point else None)
    assert cresset.stats()["graph_breaks"] == 0


def test_dropout_is_part_of_the_kernel_before_and_after():
    program = cresset.compile(lambda x, y: F.layer_norm(F.dropout(x.relu(), 0.1) + y, (64,)), fullgraph=True)
    x, y = (torch.randn(128, 64, device="cuda") for _ in range(2))
    program(x, y)
    before = launches()
    got, _ = drawn(program, x, y)
    assert simulated is None or launches() == before + 1
    assert_close(got, drawn(lambda x, y: F.layer_norm(F.dropout(x.relu(), 0.1) + y, (64,)), x, y)[0])


def test_calls_of_eager_mode_between():
    program = cresset.compile(lambda x: F.dropout(x, 0.5) + torch.rand_like(x))
    x = torch.randn(10, 10, device="cuda")

    def mixed(f):
        return [f(x), torch.rand(3, device="cuda"), f(x), torch.randperm(5, device="cuda")]

    expected, last = drawn(mixed, lambda x: F.dropout(x, 0.5) + torch.rand_like(x))
    got, after = drawn(mixed, program)
    assert after == last
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b, torch.float32)


class Block(nn.Module):
    def __init__(self, features=32, layers=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(layers))
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        for layer in self.layers:
            x = x + self.drop(F.gelu(layer(x)))
        return x


def step_of(model, apply):
    def step(x):
        for p in model.parameters():
            p.grad = None
        loss = apply(x).square().mean()
        loss.backward()
        return loss.detach(), *(p.grad.clone() for p in model.parameters())

    return step


@pytest.mark.parametrize("graphs", ["never", "always"])
def test_training(graphs):
    torch.manual_seed(0)
    model = Block(layers=5).cuda()
    compiled = cresset.compile(model, options={"cuda_graphs": graphs})
    eager, mine = step_of(model, model), step_of(model, compiled)
    replays = cresset.stats()["cuda_graphs"]["replays"]
    start()
    inputs = [torch.randn(16, 32, device="cuda") for _ in range(9)]
    expected = [drawn(eager, x) for x in inputs]
    start()
    losses = set()
    for x, (wanted, last) in zip(inputs, expected, strict=True):
        got, after = drawn(mine, x)
        assert after == last
        losses.add(got[0].item())
        for a, b in zip(got, wanted, strict=True):
            assert_close(a, b)
    assert len(losses) == len(inputs)
    if simulated is None:  # whose products are written into planned memory
        assert (cresset.stats()["cuda_graphs"]["replays"] > replays) == (graphs == "always")


def test_graphs_draw_other_numbers_at_each_replay():
    def program(x):
        for _ in range(6):
            x = F.dropout(x @ x, 0.5) + torch.rand_like(x)
        return x

    compiled = cresset.compile(program, options={"cuda_graphs": "always"})
    x = torch.randn(16, 16, device="cuda") / 4
    start()
    expected = [program(x) for _ in range(10)]
    last = generator().get_offset()
    start()
    replays = cresset.stats()["cuda_graphs"]["replays"]
    got = [compiled(x) for _ in range(10)]
    assert generator().get_offset() == last
    assert cresset.stats()["cuda_graphs"]["replays"] - replays > 5
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b, torch.float16)


def test_checkpoint_draws_the_same_numbers_again():
    torch.manual_seed(0)
    model = Block().cuda()

    def through_checkpoint(x):
        return checkpoint(model, x, use_reentrant=False)

    eager = step_of(model, through_checkpoint)
    x = torch.randn(8, 32, device="cuda", requires_grad=True)
    expected, last = drawn(eager, x)
    inner = cresset.compile(model)
    for around in (cresset.compile(through_checkpoint), lambda x: checkpoint(inner, x, use_reentrant=False)):
        for _ in range(3):
            got, after = drawn(step_of(model, around), x)
            assert after == last
            for a, b in zip(got, expected, strict=True):
                assert_close(a, b)


def test_types_are_inferred_without_a_draw():
    def program():
        return torch.normal(0.3, 1.6, [2, 3], device="cuda") + torch.rand(3, device="cuda")

    expected, last = drawn(program)
    got, after = drawn(cresset.compile(program))
    assert after == last
    assert_close(got, expected)


def test_fork_rng():
    def program(x):
        with torch.random.fork_rng(devices=[0], device_type="cuda"):
            y = F.dropout(x, 0.5)
        return y + torch.rand_like(x)

    compiled = cresset.compile(program)
    x = torch.ones(64, device="cuda")
    expected, last = drawn(program, x)
    for _ in range(3):
        got, after = drawn(compiled, x)
        assert after == last
        assert_close(got, expected)


def test_generator_argument():
    def program(x, g):
        return torch.rand(5, device="cuda", generator=g) + torch.empty_like(x).normal_(generator=g) + torch.rand_like(x)

    compiled = cresset.compile(program)
    x = torch.ones(5, device="cuda")
    expected, last = drawn(program, x, torch.Generator("cuda").manual_seed(3))
    got, after = drawn(compiled, x, torch.Generator("cuda").manual_seed(3))
    assert after == last
    assert_close(got, expected)


@pytest.mark.skipif(simulated is not None, reason="the simulator has no graphs of torch's")
def test_recorded_by_the_caller():
    compiled = cresset.compile(lambda x: F.dropout(x * 2, 0.5))
    x = torch.ones(4096, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            compiled(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = compiled(x)
    start()
    expected = [F.dropout(x * 2, 0.5) for _ in range(2)]
    start()
    for wanted in expected:
        graph.replay()
        assert_close(y, wanted)


def test_wrong_parameters_raise():
    for program in (
        lambda x: x.clone().uniform_(3, 2),
        lambda x: x.clone().normal_(0, -1),
        lambda x: x.clone().exponential_(-1),
        lambda x: x.clone().bernoulli_(1.5),
        lambda x: torch.randint(5, 5, (3,), device="cuda"),
        lambda x: F.dropout(x, 1.5),
    ):
        x = torch.ones(5, device="cuda")
        with pytest.raises((RuntimeError, ValueError)) as expected:
            program(x)
        with pytest.raises(type(expected.value)) as got:
            cresset.compile(program)(x)
        assert str(got.value).splitlines()[0] == str(expected.value).splitlines()[0]
