"""Whole steps of training in one compiled function: forward, backward, the optimizer's step, gradients dropped."""

import copy

import pytest
import torch
from torch import nn

import cresset


class Training:
    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)).double()
        self.average = copy.deepcopy(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.02)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.05, total_steps=100)
        self.calls, self.kept, self.norms = 0, [], []

    def loss(self, x, y):
        self.calls += 1
        return nn.functional.cross_entropy(self.model(x), y)


def plain(t, x, y):
    t.optimizer.zero_grad()
    loss = t.loss(x, y)
    loss.backward()
    t.optimizer.step()
    return loss.detach()


def everything(t, x, y):
    loss = t.loss(x, y)
    loss.backward()
    t.norms.append(nn.utils.clip_grad_norm_(t.model.parameters(), 0.5))
    t.optimizer.step()
    t.schedule.step()
    t.model.zero_grad()
    with torch.no_grad():
        for a, b in zip(t.average.parameters(), t.model.parameters()):
            a.lerp_(b, 0.1)
    return loss.item(), all(p.grad is None for p in t.model.parameters())


def accumulated(t, x, y):
    (t.loss(x, y) / 2).backward()
    if t.calls % 2 == 0:
        t.optimizer.step()
        t.optimizer.zero_grad(set_to_none=t.calls % 4 == 0)
    return [None if p.grad is None else p.grad.clone() for p in t.model.parameters()]


def dropped_and_read(t, x, y):
    first = t.model[0].weight
    t.kept.append(first.grad)
    before = first.grad is None
    first.grad = None
    between = first.grad is None
    t.loss(x, y).backward()
    old = first.grad
    first.grad = None
    print(end="")
    del first.grad
    t.loss(x, y).backward()
    return before, between, old, first.grad, first.grad is old, first.grad * 2


def dropped_before_it_is_used(t, x, y):
    first = t.model[0].weight
    gradient = first.grad
    first.grad = None
    scaled = gradient * 2 if gradient is not None else x.sum()
    t.loss(x, y).backward()
    first.grad.mul_(3)
    return scaled, first.grad


def given_back(t, x, y):
    first = t.model[0].weight
    t.loss(x, y).backward()
    gradient = first.grad
    first.grad = None
    first.grad = gradient * 0.5
    return first.grad, t.model[3].bias.grad


def raises(t, x, y):
    t.optimizer.zero_grad()
    if t.calls > 2:
        raise ValueError("enough")
    t.loss(x, y).backward()
    t.optimizer.step()


def of_arguments(t, x, y):
    inputs = x.clone().requires_grad_()
    t.loss(inputs, y).backward()
    gradient = inputs.grad
    inputs.grad = None
    t.optimizer.zero_grad()
    return gradient, inputs.grad


def two_optimizers(t, x, y):
    for _ in range(2):
        t.optimizer.zero_grad()
        t.loss(x, y).backward()
        t.optimizer.step()
    for p in t.model[0].parameters():
        p.grad = None
    return t.loss(x, y).detach()


def on_failure(t, x, y):
    try:
        t.model[0].weight.grad = 5
    except TypeError as error:
        t.model[0].weight.grad = None
        return str(error)


PROGRAMS = [
    plain,
    everything,
    accumulated,
    dropped_and_read,
    dropped_before_it_is_used,
    given_back,
    raises,
    of_arguments,
    two_optimizers,
    on_failure,
]


def run(step, training, x, y):
    try:
        return step(training, x, y)
    except ValueError as error:
        return str(error)


def state_of(t):
    parameters = list(t.model.parameters())
    states = [[v for _, v in sorted(t.optimizer.state[p].items())] for p in parameters]
    return parameters, [p.grad for p in parameters], list(t.average.parameters()), states, t.calls, t.kept, t.norms


def assert_alike(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.requires_grad == b.requires_grad
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_alike(x, y)
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-8)
    else:
        assert a == b


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_eager(program):
    cresset.reset()
    expected, got = Training(), Training()
    compiled = cresset.compile(program)
    for i in range(8):
        x = torch.randn(3 + i % 3, 6, dtype=torch.double)
        y = torch.randint(0, 3, (len(x),))
        assert_alike(run(program, expected, x, y), run(compiled, got, x, y))
        assert_alike(state_of(expected), state_of(got))
    assert program is raises or cresset.stats()["eager_calls"] == 0


def test_a_step_is_two_pieces():
    """The graph segments before and after the engine that runs the backward pass."""
    cresset.reset()
    training, step = Training(), cresset.compile(plain)
    for i in range(6):
        step(training, torch.randn(3 + i % 3, 6, dtype=torch.double), torch.zeros(3 + i % 3, dtype=torch.long))
    stats = cresset.stats()
    assert (stats["eager_calls"], stats["eager_fallbacks"]) == (0, 0)
    assert stats["graphs"] <= 6
    assert all("run_backward" in reason for reason in stats["graph_break_reasons"])


@pytest.mark.parametrize("form", ["arguments", "method", "schedule"])
def test_whoever_holds_the_optimizer(form):
    """As an argument, in an object whose method is compiled, beside a schedule that writes to it."""
    cresset.reset()
    model = nn.Linear(6, 3)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)

    def update(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if form == "schedule":
            schedule.step()
        return loss.detach()

    class Trainer:
        def __init__(self):
            self.model, self.optimizer, self.calls = model, optimizer, 0

        def step(self, x):
            self.calls += 1
            return update(self.model, self.optimizer, x)

    compiled = cresset.compile(Trainer().step if form == "method" else lambda x: update(model, optimizer, x))
    if form == "arguments":
        step = cresset.compile(update)
        compiled = lambda x: step(model, optimizer, x)  # noqa: E731
    for i in range(8):
        compiled(torch.randn(2 + i % 3, 6))
    stats = cresset.stats()
    assert (stats["eager_calls"], stats["eager_fallbacks"]) == (0, 0)
    assert stats["graphs"] <= 8
    assert all("run_backward" in reason for reason in stats["graph_break_reasons"])


def test_gradients_are_dropped_in_one_piece():
    model = nn.Linear(3, 2)

    def forward(x):
        for p in model.parameters():
            p.grad = None
        return model(x)

    compiled = cresset.compile(forward, fullgraph=True)
    for _ in range(3):
        compiled(torch.randn(2, 3)).sum().backward()
        assert all(p.grad is not None for p in model.parameters())
        with torch.no_grad():
            compiled(torch.randn(4, 3))
        assert all(p.grad is None for p in model.parameters())
