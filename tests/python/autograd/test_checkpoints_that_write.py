"""Checkpoints whose function writes buffers: a backward pass computes it again and writes again, from the buffers of
that time. Selective checkpoints. Code without compilation reports the reason once."""

from __future__ import annotations

import copy
import functools
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import checkpoint as checkpoints

import cresset


class Averaged(nn.Module):
    """Keeps an average of its inputs."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("average", torch.zeros(8))

    def forward(self, x):
        h = self.linear(x)
        if self.training:
            self.average.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
        return (h - self.average).tanh()


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros(8, dtype=torch.bool))

    def forward(self, x):
        self.count += 1
        self.seen.logical_or_((x > 1).any(0))
        return self.linear(x).sin()


class Rows(nn.Module):
    """Writes a part of a buffer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("queue", torch.zeros(4, 8))

    def forward(self, x):
        h = self.linear(x)
        self.queue[1:3] = self.queue[:2].clone() + h.detach()[:2]
        return h.cos()


def images(*layers):
    return nn.Sequential(nn.Unflatten(1, (2, 2, 2)), *layers, nn.Flatten())


MODULES = {
    "batch_norm": lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()),
    "two_norms": lambda: nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh()),
    "images": lambda: images(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU()),
    "small_momentum": lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, momentum=0.01)),
    "cumulative": lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, momentum=None)),
    "without_affine": lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, affine=False)),
    "without_statistics": lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, track_running_stats=False)),
    "instance_norm": lambda: images(nn.InstanceNorm2d(2, affine=True, track_running_stats=True), nn.Sigmoid()),
    "with_dropout": lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)),
    "spectral_norm": lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)), nn.ReLU()),
    "averaged": Averaged,
    "counted": Counted,
    "rows": Rows,
    "layer_norm": lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)),
}
KINDS = {"plain": dict(use_reentrant=False), "reentrant": dict(use_reentrant=True)}
AROUND = {
    "alone": lambda run, x: run(x).sum(),
    "between": lambda run, x: run(x.sin()).cos().sum(),
    "twice": lambda run, x: run(run(x)).square().mean(),
    "result": lambda run, x: run(x) * x,
    "two_results": lambda run, x: (run(x).sum(), x.sin().sum()),
    "broken": lambda run, x: broken(run, x),
}


def broken(run, x):
    h = run(x)
    cresset.graph_break()
    return run(h).sum()


def total(out):
    return sum(o.sum() for o in out) if isinstance(out, tuple) else out.sum()


def given(seed):
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def steps(f, module):
    for turn in range(3):
        x = given(turn)
        total(f(x)).backward()
        yield [x.grad, *module.state_dict().values()]


def accumulated(f, module):
    for turn in range(2):
        first, second = given(turn), given(turn + 9)
        losses = [total(f(first)), total(f(second))]
        for loss in losses:
            loss.backward()
        yield [first.grad, second.grad, *module.state_dict().values()]


def kept(f, module):
    for turn in range(2):
        x = given(turn)
        loss = total(f(x))
        loss.backward(retain_graph=True)
        loss.backward()
        yield [x.grad, *module.state_dict().values()]


def written_between(f, module):
    for turn in range(2):
        x = given(turn)
        loss = total(f(x))
        for buffer in module.buffers():
            buffer.mul_(2)
        loss.backward()
        yield [x.grad, *module.state_dict().values()]


def evaluated_between(f, module):
    for turn in range(4):
        module.train(turn % 2 == 0)
        x = given(turn)
        total(f(x)).backward()
        yield [x.grad, *module.state_dict().values()]


def of_part(f, module):
    for turn in range(2):
        x = given(turn)
        out = f(x)
        (out[0] if isinstance(out, tuple) else out).sum().backward()
        yield [x.grad, *module.state_dict().values()]


def of_other_part(f, module):
    for turn in range(2):
        x = given(turn)
        out = f(x)
        (out[1] if isinstance(out, tuple) else out).sum().backward()
        yield [x.grad, *module.state_dict().values()]


SCHEDULES = [steps, accumulated, kept, written_between, evaluated_between, of_part, of_other_part]


def observed(schedule, make, around, options, compile):
    torch.manual_seed(0)
    module = make()
    f = compile(lambda x: AROUND[around](lambda h: checkpoints.checkpoint(module, h, **options), x))
    out = []
    torch.manual_seed(1)
    try:
        for step in schedule(f, module):
            out.append([None if t is None else t.clone() for t in (*step, *(p.grad for p in module.parameters()))])
    except Exception as error:
        out.append([type(error).__name__, str(error).split("\n")[0][:60]])
    return out


def assert_as_eager(schedule, make, around, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = observed(schedule, make, around, options, lambda f: f)
        cresset.reset()
        got = observed(schedule, make, around, options, cresset.compile)
    assert len(got) == len(expected), (got[-1], expected[-1])
    for turn, (g, e) in enumerate(zip(got, expected, strict=True)):
        for one, other in zip(g, e, strict=True):
            if isinstance(other, torch.Tensor):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=3e-5, msg=lambda m, t=turn: f"step {t}: {m}")
            else:
                assert one == other


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.__name__)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODULES)
def test_buffers(name, kind, schedule):
    assert_as_eager(schedule, MODULES[name], "between", KINDS[kind])


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.__name__)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", ["batch_norm", "averaged", "with_dropout"])
def test_around(name, around, schedule):
    if (name, around) == ("averaged", "two_results"):
        pytest.skip("the first call runs natively, and its pass reads what the function had saved (docs/gradients.md)")
    assert_as_eager(schedule, MODULES[name], around, KINDS["plain"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [n for n in MODULES if n not in ("cumulative", "spectral_norm", "counted")])
def test_they_are_compiled(name, kind):
    module = MODULES[name]()
    cresset.reset()
    f = cresset.compile(lambda x: checkpoints.checkpoint(module, x.sin(), **KINDS[kind]).sum())
    before = cresset.stats()
    for turn in range(3):
        f(given(turn)).backward()
    after = cresset.stats()
    assert after["eager_calls"] == before["eager_calls"], after["graph_break_reasons"]
    assert after["backward_graphs"] - before["backward_graphs"] == 1


def whole_steps(module, options, compile):
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    @compile
    def step(x):
        loss = checkpoints.checkpoint(module, x.sin(), **options).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return [[step(given(turn)), *(t.clone() for t in module.state_dict().values())] for turn in range(3)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODULES)
def test_whole_steps(name, kind):
    torch.manual_seed(0)
    module = MODULES[name]()
    expected = whole_steps(copy.deepcopy(module), KINDS[kind], lambda f: f)
    cresset.reset()
    got = whole_steps(module, KINDS[kind], cresset.compile)
    for g, e in zip(got, expected, strict=True):
        for one, other in zip(g, e, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=3e-5)


# ---- Selective checkpoints

PRODUCTS = [torch.ops.aten.addmm.default, torch.ops.aten.mm.default]


def keep_products(ctx, op, *args, **kwargs):
    policy = checkpoints.CheckpointPolicy
    return policy.MUST_SAVE if op in PRODUCTS else policy.PREFER_RECOMPUTE


SELECTIONS = {
    "listed": functools.partial(checkpoints.create_selective_checkpoint_contexts, PRODUCTS),
    "by_policy": functools.partial(checkpoints.create_selective_checkpoint_contexts, keep_products),
    "made_by_function": lambda: checkpoints.create_selective_checkpoint_contexts(keep_products),
}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_selective_checkpoints(selection):
    options = dict(use_reentrant=False, context_fn=SELECTIONS[selection])
    make = lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8), nn.Dropout(0.3))  # noqa: E731
    assert_as_eager(steps, make, "between", options)
    stats = cresset.stats()
    assert stats["eager_calls"] == 0 and stats["backward_graphs"] == 1, stats["graph_break_reasons"]


# ---- Without compilation


def warned(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in caught if str(w.message).startswith("cresset:")]


def test_checkpoint_that_prints_is_told_of_once(capsys):
    def noisy(x):
        print("again")
        return x.sin()

    cresset.reset()
    f = cresset.compile(lambda x: checkpoints.checkpoint(noisy, x * 2, use_reentrant=False).sum())
    messages = warned(lambda: [f(given(i)).backward() for i in range(5)])
    assert len(messages) == 1 and "checkpoint" in messages[0]
    assert capsys.readouterr().out.count("again") == 10


def test_detect_anomaly():
    cresset.reset()
    f = cresset.compile(lambda x: (x - 1).clamp(min=0).sqrt().sum() * 0)

    def run():
        for _ in range(3):
            f(torch.ones(2, requires_grad=True)).backward()
            with torch.autograd.detect_anomaly(check_nan=True):
                loss = f(torch.ones(2, requires_grad=True))
                with pytest.raises(RuntimeError, match=r"SqrtBackward0.*returned nan"):
                    loss.backward()

    messages = warned(run)
    assert len(messages) == 1 and "detect_anomaly" in messages[0]


def test_detect_anomaly_inside():
    def step(x):
        h = x.sin()
        with torch.autograd.detect_anomaly():
            loss = (h * 0).sqrt().sum() * 0
            loss.backward()
        return loss

    cresset.reset()
    f = cresset.compile(step)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"SqrtBackward0.*returned nan"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f(torch.ones(2, requires_grad=True))


def test_deep_copies_are_apart():
    """A backward pass writes the buffers of its own call's module."""
    torch.manual_seed(0)
    modules = [nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)) for _ in "12"]
    others = copy.deepcopy(modules)
    cresset.reset()
    f = cresset.compile(lambda m, x: checkpoints.checkpoint(m, x, use_reentrant=False).sum())
    for m, o in zip(modules, others, strict=True):
        losses = [f(m, given(1)), checkpoints.checkpoint(o, given(1), use_reentrant=False).sum()]
        for loss in losses:
            loss.backward()
    for m, o in zip(modules, others, strict=True):
        for name, value in m.state_dict().items():
            torch.testing.assert_close(value, o.state_dict()[name])
        assert F.mse_loss(m[0].weight.grad, o[0].weight.grad) < 1e-10
