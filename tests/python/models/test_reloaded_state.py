"""Whole training steps with state reloaded or replaced between calls: as right as in eager mode, with the same captures
as before, a program for each state that stays."""

from __future__ import annotations

import collections
import copy
import io

import pytest
import torch
import torch.nn as nn

import cresset

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "one_by_one": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "two_groups": lambda p: torch.optim.AdamW([{"params": p[:2]}, {"params": p[2:], "lr": 0.02}], lr=0.01),
    "rate_in_a_tensor": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01)),
}


def through_bytes(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


def each_group(opt, change):
    for group in opt.param_groups:
        change(group)


def other_state(opt):
    opt.state = collections.defaultdict(dict, {p: dict(s) for p, s in opt.state.items()})


def other_states_of_parameters(opt):
    for p in list(opt.state):
        opt.state[p] = dict(opt.state[p])


def other_tensors(opt):
    for state in opt.state.values():
        for k, v in state.items():
            if isinstance(v, torch.Tensor):
                state[k] = v.clone()


RELOADS = {
    "load": lambda m, opt: opt.load_state_dict(opt.state_dict()),
    "load_a_copy": lambda m, opt: opt.load_state_dict(copy.deepcopy(opt.state_dict())),
    "load_from_a_file": lambda m, opt: opt.load_state_dict(through_bytes(opt.state_dict())),
    "load_twice": lambda m, opt: [opt.load_state_dict(opt.state_dict()) for _ in range(2)],
    "list_of_groups": lambda m, opt: setattr(opt, "param_groups", list(opt.param_groups)),
    "groups": lambda m, opt: setattr(opt, "param_groups", [dict(g) for g in opt.param_groups]),
    "one_group": lambda m, opt: opt.param_groups.__setitem__(0, dict(opt.param_groups[0])),
    "list_of_parameters": lambda m, opt: each_group(opt, lambda g: g.__setitem__("params", list(g["params"]))),
    "added_group": lambda m, opt: opt.add_param_group({"params": [m.extra]}),
    "state": lambda m, opt: other_state(opt),
    "states_of_parameters": lambda m, opt: other_states_of_parameters(opt),
    "tensors_of_state": lambda m, opt: other_tensors(opt),
    "cleared_state": lambda m, opt: opt.state.clear(),
    "rate": lambda m, opt: each_group(opt, lambda g: g.__setitem__("lr", g["lr"] / 2)),
    "weights": lambda m, opt: m.load_state_dict({k: v * 0.5 for k, v in m.state_dict().items()}),
    "assigned_weights": lambda m, opt: m.load_state_dict({k: v * 0.5 for k, v in m.state_dict().items()}, assign=True),
    "weights_and_state": lambda m, opt: [RELOADS["weights"](m, opt), RELOADS["load"](m, opt)],
    "copied_weights": lambda m, opt: [setattr(p, "data", p.data.clone()) for p in m.parameters()],
    "gradients_kept": lambda m, opt: opt.zero_grad(set_to_none=False),
}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        self.extra = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.layers(x) + self.extra


def train(compile, optimizer, reload, turns=9, at=(4,)):
    """(losses and weights, counts of each turn) of steps, with a reload before some."""
    torch.manual_seed(0)
    m = Model()
    opt = OPTIMIZERS[optimizer](list(m.layers.parameters()))

    @compile
    def step(x):
        loss = m(x).pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss

    seen, counts = [], []
    for turn in range(turns):
        if turn in at:
            RELOADS[reload](m, opt)
        before = cresset.stats()
        seen.append(step(torch.ones(2, 4) * (turn + 1)).detach())
        after = cresset.stats()
        counts.append({k: after[k] - before[k] for k in ("graphs", "graph_breaks", "eager_calls", "eager_fallbacks")})
    return seen + [p.detach().clone() for p in m.parameters()], counts


def check(optimizer, reload, turns, at):
    expected, _ = train(lambda f: f, optimizer, reload, turns, at)
    cresset.reset()
    got, counts = train(cresset.compile, optimizer, reload, turns, at)
    for a, b in zip(got, expected):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)
    pieces_of_first = counts[0]["graphs"] + counts[1]["graphs"]
    for turn in at:  # no more graph segments than the step had before
        assert counts[turn]["graph_breaks"] <= counts[0]["graph_breaks"], counts
        assert counts[turn]["graphs"] <= pieces_of_first, counts
    assert all(c["eager_calls"] == 0 and c["eager_fallbacks"] == 0 for c in counts), counts
    assert counts[-1]["graphs"] == 0, counts


@pytest.mark.parametrize("reload", RELOADS)
@pytest.mark.parametrize("optimizer", ["momentum", "adamw"])
def test_a_step_after_a_reload(optimizer, reload):
    check(optimizer, reload, 9, (4,))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_optimizer_is_loaded(optimizer):
    check(optimizer, "load", 9, (4,))


@pytest.mark.parametrize("reload", ["load", "load_a_copy", "groups", "weights_and_state"])
def test_a_state_that_is_loaded_now_and_then(reload):
    check("adamw", reload, 26, (4, 8, 12, 16, 20))
