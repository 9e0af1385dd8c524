"""item() of scalars from before the call: the numbers are known at its start. Reading them causes no graph break, and
decisions on them are guards."""

import copy
import math

import pytest
import torch

import cresset


class State:
    """The state of a program: scalars of several kinds, two scalars with shared memory, plain Python values."""

    def __init__(self, dtype=torch.float32):
        self.step = torch.tensor(1.0, dtype=dtype)
        self.other = torch.tensor([0.5], dtype=dtype)
        self.pair = torch.tensor([2.0, 3.0], dtype=dtype)
        self.half = torch.tensor(1.5, dtype=torch.bfloat16)
        self.count = torch.tensor(0)
        self.learned = torch.nn.Parameter(torch.tensor(0.25, dtype=dtype))
        self.log, self.table = [], {}


def bias_correction(s, x):
    s.step += 1
    step = s.step.item()
    correction = 1 - 0.9**step
    return x * (0.1 / correction), correction**0.5, step


def read_before_and_after(s, x):
    before = s.step.item()
    s.step.mul_(1.1).sub_(0.3)
    after = float(s.step)
    return x * before + after, before < after, before, after


def of_one_element(s, x):
    s.other += 0.1
    return x / s.other.item(), s.other.item() * 2


def of_a_part(s, x):
    s.pair.add_(x.mean())
    first = s.pair[0].item()
    return x * first, first > 2


def of_shared_memory(s, x):
    view = s.pair[1]
    s.pair *= 1.5
    return x + view.item(), view.item()


def of_a_parameter(s, x):
    scale = s.learned.item()
    with torch.no_grad():
        s.learned.mul_(2)
    return x * scale, scale, s.learned.item()


def of_half_precision(s, x):
    s.half += 0.25
    return x * s.half.item(), s.half.item()


def of_a_whole_number(s, x):
    s.count += 1
    return x * s.count.item(), s.count.item()


def as_int(s, x):
    s.step += 1
    n = int(s.step.item())
    return x + n, n, [n] * (n % 3)


def as_text(s, x):
    s.step += 0.5
    return x, f"{s.step.item():.2f} {s.step.item()}", str(s.step.item())


def kept(s, x):
    s.step += 0.5
    s.log.append(s.step.item())
    s.table["last"] = s.step.item() * 2
    s.table[s.step.item()] = len(s.log)
    return x + s.log[-1], list(s.log)


def given_to_c(s, x):
    s.step += 0.5
    n = s.step.item()
    return (
        x,
        math.floor(n),
        math.isfinite(n),
        math.exp(-n),
        n.is_integer(),
        n.as_integer_ratio(),
        divmod(n, 0.4),
        round(n, 1),
    )


def over_a_break(s, x):
    s.step += 1
    n = s.step.item()
    cresset.graph_break()
    s.step += n
    return x * (n + s.step.item()), n, s.step.item()


def steered(s, x):
    s.step += 1
    if s.step.item() % 2 == 0:
        return x * 2
    return x - 1 if s.step.item() < 6 else x


def warm_up(s, x):
    s.step += 1
    rate = min(1.0, s.step.item() / 4) * (0.5 if s.step.item() > 3 else 1.0)
    return x * rate, rate


def toward_zero(s, x):
    s.step -= 0.5
    n = s.step.item()
    return x + n, math.copysign(1.0, n), n == 0, (0.0 if n == 0 else 1 / n)


def divided(s, x):
    s.step -= 0.5
    s.table["before"] = len(s.table)
    return x / (1 / s.step.item())


def grows_to_infinity(s, x):
    s.step.pow_(3).mul_(1e9)
    n = s.step.item()
    return x, n, n > 1e20, n * 0 == 0


def no_number(s, x):
    s.step.sub_(1).div_(s.step.clone())
    n = s.step.item()
    return x, n != n, max(n, 1.0)


def each_of_many(s, x):
    steps = [s.step, s.other]
    torch._foreach_add_(steps, torch.tensor(1.0), alpha=1.0)
    corrections = [1 - 0.9 ** t.item() for t in steps]
    return [x / c for c in corrections], [(c**0.5) * -1 for c in corrections]


def replaced(s, x):
    s.step = s.step * 1.5
    n = s.step.item()
    s.step = torch.tensor(n + 1)
    return x * n, s.step.item(), n


def set_anew(s, x):
    s.step.fill_(s.step.item() + 1)
    s.other.copy_(s.step * 2)
    s.pair.data = s.pair * 2
    return x + s.step.item() + s.other.item() + s.pair[1].item()


def sorted_by_it(s, x):
    s.step += 0.75
    names = sorted(["a", "bb", "ccc"], key=lambda name: abs(len(name) - s.step.item()))
    return x, names, max([s.step.item(), 2.0]), sum([s.step.item(), 1])


def raises(s, x):
    s.step += 1
    if s.step.item() > 3:
        raise ValueError("too far")
    return x * s.step.item()


PROGRAMS = [
    bias_correction,
    read_before_and_after,
    of_one_element,
    of_a_part,
    of_shared_memory,
    of_a_parameter,
    of_half_precision,
    of_a_whole_number,
    as_int,
    as_text,
    kept,
    given_to_c,
    over_a_break,
    steered,
    warm_up,
    toward_zero,
    divided,
    grows_to_infinity,
    no_number,
    each_of_many,
    replaced,
    set_anew,
    sorted_by_it,
    raises,
]
WITHOUT_A_BREAK = [bias_correction, read_before_and_after, of_one_element, of_a_parameter, each_of_many, as_int]


def seen(value):
    if isinstance(value, torch.Tensor):
        return ("tensor", value.dtype, tuple(value.shape), value.tolist())
    if isinstance(value, (list, tuple)):
        return type(value), [seen(v) for v in value]
    if isinstance(value, dict):
        return [(seen(k), seen(v)) for k, v in value.items()]
    return type(value), repr(value)


def outcome(function, state, x):
    try:
        result = seen(function(state, x))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        result = type(error), str(error)
    return result, seen(vars(state))


def close(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-7) or (a != a and b != b)
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        if len(a) == 2 and a[0] is float and a[0] is b[0]:
            return close(float(a[1]), float(b[1]))
        return len(a) == len(b) and all(map(close, a, b))
    return a == b


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_as_eager(function, dtype):
    cresset.reset()
    compiled, state, x = cresset.compile(function), State(dtype), torch.rand(5)
    expected_state = copy.deepcopy(state)
    for _ in range(8):
        expected, got = outcome(function, expected_state, x), outcome(compiled, state, x)
        assert close(expected, got), (expected, got)


@pytest.mark.parametrize("function", WITHOUT_A_BREAK, ids=lambda f: f.__name__)
@pytest.mark.parametrize("fullgraph", [False, True])
def test_in_one_piece(function, fullgraph):
    cresset.reset()
    compiled, state, x = cresset.compile(function, fullgraph=fullgraph), State(), torch.rand(5)
    for _ in range(5):
        compiled(state, x)
    stats = cresset.stats()
    assert (stats["graph_breaks"], stats["eager_calls"], stats["eager_fallbacks"]) == (0, 0, 0)
    assert stats["graphs"] <= 3  # a number read by the program may be specialized once


def test_decisions_that_change_are_pieces():
    """The first changed decision is the last guard of its kind: then each outcome has a graph segment."""
    cresset.reset()

    def many(s, x):
        for i in range(6):
            x = x * 2 if s.step.item() * (i + 1) % 3 > 1 else x + 1
        return x

    compiled, state = cresset.compile(many), State()
    for n in range(40):
        state.step.fill_(n / 7)
        assert torch.equal(compiled(state, torch.ones(3)), many(state, torch.ones(3)))
    before = cresset.stats()["graphs"]
    assert before <= 2 + 2 * 6 + 2
    for n in range(40):
        state.step.fill_(n / 7)
        compiled(state, torch.ones(3))
    assert cresset.stats()["graphs"] == before


def test_the_reason_is_told():
    cresset.reset()
    compiled, state = cresset.compile(warm_up), State()
    for _ in range(5):
        compiled(state, torch.ones(2))
    assert any("in warm_up" in reason for reason in cresset.stats()["recompiles"]), cresset.stats()["recompiles"]


OPTIMIZERS = [
    (torch.optim.Adam, {}),
    (torch.optim.Adam, {"amsgrad": True, "weight_decay": 0.01}),
    (torch.optim.AdamW, {}),
    (torch.optim.NAdam, {}),
    (torch.optim.RAdam, {}),
    (torch.optim.Adamax, {}),
    (torch.optim.Adagrad, {}),
    (torch.optim.ASGD, {}),
    (torch.optim.RMSprop, {"momentum": 0.9}),
]


@pytest.mark.parametrize("foreach", [False, True], ids=["single", "foreach"])
@pytest.mark.parametrize(
    "kind, options", OPTIMIZERS, ids=lambda v: v.__name__ if isinstance(v, type) else "-".join(v) or "plain"
)
def test_steps_of_optimizers(kind, options, foreach):
    cresset.reset()
    torch.manual_seed(0)
    models = [torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()]
    models.append(copy.deepcopy(models[0]))
    optimizers = [kind(m.parameters(), lr=0.05, foreach=foreach, **options) for m in models]
    steps = [optimizers[0].step, cresset.compile(lambda: optimizers[1].step())]
    for _ in range(8):
        x = torch.randn(3, 5, dtype=torch.double)
        for model, optimizer, step in zip(models, optimizers, steps):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            step()
        for a, b in zip(models[0].parameters(), models[1].parameters()):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    for a, b in zip(optimizers[0].state.values(), optimizers[1].state.values()):
        for name, value in a.items():
            torch.testing.assert_close(value, b[name], rtol=1e-9, atol=1e-11)


@pytest.fixture(params=[False, True], ids=["alone", "after_torch_compile"])
def beside_torch_compile(request):
    """torch.compile excludes methods of optimizers at its first use."""
    if request.param:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))


@pytest.mark.usefixtures("beside_torch_compile")
@pytest.mark.parametrize("foreach", [False, True], ids=["single", "foreach"])
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.Adamax])
def test_adam_is_one_piece(kind, foreach):
    cresset.reset()
    parameters = [torch.nn.Parameter(torch.randn(4, 3)) for _ in range(3)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    optimizer = kind(parameters, foreach=foreach)
    step = cresset.compile(lambda: optimizer.step())
    for _ in range(3):
        step()
    before = cresset.stats()
    for _ in range(4):
        step()
    after = cresset.stats()
    assert after["graphs"] == before["graphs"] and after["eager_calls"] == 0
    assert cresset.explain(optimizer.step)().graph_breaks == []
