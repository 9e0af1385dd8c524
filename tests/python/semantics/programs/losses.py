# size: table
"""Programs from training scripts: routers, flows, solvers, mining losses, pairs of networks, loops with callbacks, each
called repeatedly while its state changes."""

from __future__ import annotations

import collections
import dataclasses
import functools
import logging
import math
import random
import sys
import types

import torch
import torch.nn.functional as F
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


# ------------------------------------------------------------------------------------------------ routers, flows


@steady
def experts_with_noisy_gates(compiled):
    class Router(nn.Module):
        def __init__(self, width, experts, k):
            super().__init__()
            self.gate, self.noise, self.k = nn.Linear(width, experts), nn.Linear(width, experts), k
            self.register_buffer("load", torch.zeros(experts))

        def forward(self, x):
            logits = self.gate(x)
            if self.training:
                logits = logits + torch.randn_like(logits) * F.softplus(self.noise(x))
            top, at = logits.topk(self.k, -1)
            gates = torch.zeros_like(logits).scatter(1, at, top.softmax(-1))
            with torch.no_grad():
                self.load += (gates > 0).float().sum(0)
            importance = gates.sum(0)
            return gates, importance.var() / (importance.mean() ** 2 + 1e-10)

    class Moe(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = Router(3, 4, 2)
            self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def forward(self, x):
            gates, balance = self.router(x)
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                rows = torch.nonzero(gates[:, i], as_tuple=True)[0]
                if rows.numel() == 0:
                    continue
                out = out.index_add(0, rows, expert(x[rows]) * gates[rows, i, None])
            return out, balance

    torch.manual_seed(9)
    net = Moe()
    f = compiled(net)
    for i in range(10):
        net.train(i < 4)
        net.zero_grad()
        out, balance = f(data(i, 5 + i % 3, 3))
        (out.square().mean() + 0.01 * balance).backward()
        grads = [e.weight.grad is not None for e in net.experts]
        yield out, net.router.gate.weight.grad, net.router.load, grads


@steady
def coupling_flow_both_ways(compiled):
    class Coupling(nn.Module):
        def __init__(self, width, flip):
            super().__init__()
            self.flip, self.net = flip, nn.Linear(width // 2, width)

        def forward(self, x, reverse=False):
            a, b = x.chunk(2, 1)
            if self.flip:
                a, b = b, a
            s, t = self.net(a).chunk(2, 1)
            s = torch.tanh(s)
            b = (b - t) * torch.exp(-s) if reverse else b * torch.exp(s) + t
            pair = (b, a) if self.flip else (a, b)
            return torch.cat(pair, 1), (-s if reverse else s).sum(1)

    class ActNorm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.loc, self.scale = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.ones(width))
            self.ready = False

        def forward(self, x, reverse=False):
            if not self.ready and not reverse:
                with torch.no_grad():
                    self.loc.copy_(-x.mean(0))
                    self.scale.copy_(1 / (x.std(0) + 1e-6))
                self.ready = True
            log_det = self.scale.abs().log().sum().expand(len(x))
            return (x / self.scale - self.loc, -log_det) if reverse else (self.scale * (x + self.loc), log_det)

    class Flow(nn.Module):
        def __init__(self, *layers):
            super().__init__()
            self.layers = nn.ModuleList(layers)

        def forward(self, x, reverse=False):
            total = x.new_zeros(len(x))
            for layer in reversed(self.layers) if reverse else self.layers:
                x, log_det = layer(x, reverse=reverse)
                total = total + log_det
            return x, total

    torch.manual_seed(3)
    flow = Flow(ActNorm(4), Coupling(4, False), Coupling(4, True))
    f = compiled(flow)
    for i in range(8):
        z, log_det = f(data(i, 5, 4))
        loss = (0.5 * z.square().sum(1) - log_det).mean()
        flow.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in flow.parameters():
                p.sub_(0.05 * p.grad)
            back, _ = f(f(data(i, 5, 4))[0], reverse=True)
        yield loss, (back - data(i, 5, 4)).abs().max() < 1e-4, flow.layers[0].ready


@steady
def solver_with_adaptive_steps(compiled):
    class Tolerance(Exception):
        pass

    class Solver:
        A, B, E = [[], [1 / 2], [0, 3 / 4]], [2 / 9, 1 / 3, 4 / 9], [2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3]

        def __init__(self, f, rtol=1e-3):
            self.f, self.rtol, self.evaluations, self.rejected = f, rtol, 0, 0

        def stages(self, t, y, h):
            ks = []
            for row in self.A:
                ks.append(self.f(t, y + h * sum((a * k for a, k in zip(row, ks)), torch.zeros_like(y))))
                self.evaluations += 1
            return ks

        def integrate(self, y, t0, t1, h, most=40):
            t = t0
            while t < t1:
                h = min(h, t1 - t)
                ks = self.stages(t, y, h)
                error = (h * sum(e * k for e, k in zip(self.E, ks))).norm() / (self.rtol * (1 + y.norm()))
                if error.item() > 1:
                    self.rejected += 1
                    h *= max(0.2, 0.9 * error.item() ** -0.33)
                    if self.rejected > most:
                        raise Tolerance(f"{self.rejected} steps rejected")
                    continue
                t, y = t + h, y + h * sum(b * k for b, k in zip(self.B, ks))
                h *= min(3.0, 0.9 * max(error.item(), 1e-3) ** -0.33)
            return y

    w = data(1, 2, 2) * 0.5
    solver = Solver(lambda t, y: torch.tanh(y @ w) * math.cos(t))
    f = compiled(solver.integrate)
    for i in range(6):
        yield f(data(i, 3, 2), 0.0, 1.0, 0.5), solver.evaluations, solver.rejected


# ------------------------------------------------------------------------------------------------ losses


@steady
def margin_loss_with_mining(compiled):
    class Miner:
        def __init__(self, margin):
            self.margin, self.counts = margin, {"hard": 0, "semi": 0, "easy": 0}

        def __call__(self, distance, labels):
            same = labels[:, None] == labels[None]
            eye = torch.eye(len(labels), dtype=torch.bool)
            positive, negative = same & ~eye, ~same
            a, p, n = torch.where(positive[:, :, None] & negative[:, None, :])
            gap = distance[a, n] - distance[a, p]
            hard, semi = gap < 0, (gap >= 0) & (gap < self.margin)
            for name, m in (("hard", hard), ("semi", semi), ("easy", gap >= self.margin)):
                self.counts[name] += int(m.sum())
            chosen = hard | semi
            return a[chosen], p[chosen], n[chosen]

    class Loss(nn.Module):
        def __init__(self, miner):
            super().__init__()
            self.miner, self.embed = miner, nn.Linear(3, 2)

        def forward(self, x, labels):
            z = F.normalize(self.embed(x), dim=-1)
            d = torch.cdist(z, z)
            a, p, n = self.miner(d.detach(), labels)
            if len(a) == 0:
                return z.sum() * 0
            return F.relu(d[a, p] - d[a, n] + self.miner.margin).mean()

    torch.manual_seed(5)
    net = Loss(Miner(0.3))
    f = compiled(net)
    for i in range(9):
        net.zero_grad()
        loss = f(data(i, 6, 3), torch.arange(6) % (2 + i % 2) if i != 4 else torch.arange(6))
        loss.backward()
        yield loss, net.embed.weight.grad, dict(net.miner.counts)


@steady
def distillation_with_hints(compiled):
    class Student(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.body, self.head = nn.Linear(4, width), nn.Linear(width, 3)

        def forward(self, x, hidden=False):
            h = torch.relu(self.body(x))
            return (self.head(h), h) if hidden else self.head(h)

    @dataclasses.dataclass
    class Weights:
        kd: float = 1.0
        hint: float = 0.5
        ce: float = 1.0
        temperature: float = 2.0

        def anneal(self, rate):
            return dataclasses.replace(self, kd=self.kd * rate, temperature=max(1.0, self.temperature * rate))

    torch.manual_seed(8)
    teacher, student, bridge = Student(6).eval(), Student(3), nn.Linear(3, 6)
    history = []

    @compiled
    def losses(x, y, w):
        with torch.no_grad():
            goal, goal_hidden = teacher(x, hidden=True)
        out, hidden = student(x, hidden=True)
        parts = {"ce": F.cross_entropy(out, y)}
        soft = F.log_softmax(out / w.temperature, -1), F.softmax(goal / w.temperature, -1)
        parts["kd"] = F.kl_div(*soft, reduction="batchmean") * w.temperature**2
        if w.hint > 0:
            parts["hint"] = F.mse_loss(bridge(hidden), goal_hidden)
        history.append({k: v.detach() for k, v in parts.items()})
        return sum(getattr(w, k) * v for k, v in parts.items())

    w = Weights()
    for i in range(9):
        student.zero_grad()
        loss = losses(data(i, 5, 4), torch.arange(5) % 3, w)
        loss.backward()
        w = w.anneal(0.9)
        if i == 2:
            w.hint = 0.0
        yield loss, student.body.weight.grad, len(history), sorted(history[-1])


@steady
def meta_learning_with_fast_weights(compiled):
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(params, x):
        w1, b1, w2, b2 = params
        return F.linear(torch.tanh(F.linear(x, w1, b1)), w2, b2)

    def adapt(x, y, steps, rate, first_order=False):
        fast = list(net.parameters())
        for _ in range(steps):
            grads = torch.autograd.grad(F.mse_loss(forward(fast, x), y), fast, create_graph=not first_order)
            fast = [p - rate * g for p, g in zip(fast, grads)]
        return fast

    @compiled
    def meta(tasks, steps, rate):
        total = 0.0
        for x, y in tasks:
            half = len(x) // 2
            fast = adapt(x[:half], y[:half], steps, rate, first_order=steps > 1)
            total = total + F.mse_loss(forward(fast, x[half:]), y[half:])
        return total / len(tasks)

    for i in range(7):
        tasks = [(data(i + k, 6, 1), data(i + k, 6, 1) * (k + 1)) for k in range(2)]
        net.zero_grad()
        loss = meta(tasks, 1 + i % 2, 0.1 + 0.01 * i)
        loss.backward()
        yield loss, net[0].weight.grad


@steady
def adversarial_pair_with_penalty(compiled):
    torch.manual_seed(4)
    gen, critic = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    g_opt, c_opt = torch.optim.SGD(gen.parameters(), 0.05), torch.optim.SGD(critic.parameters(), 0.05)
    meters = collections.defaultdict(lambda: [0.0, 0])

    def note(**values):
        for k, v in values.items():
            m = meters[k]
            m[0] += float(v)
            m[1] += 1

    @compiled
    def critic_loss(real, fake, weight):
        mix = torch.rand(len(real), 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_(True)
        (grad,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((grad.norm(2, dim=1) - 1) ** 2).mean()
        return critic(fake).mean() - critic(real).mean() + weight * penalty, penalty

    @compiled
    def gen_loss(z):
        return -critic(gen(z)).mean()

    for i in range(8):
        c_opt.zero_grad()
        loss, penalty = critic_loss(data(i, 4, 3), gen(data(i, 4, 2)).detach(), 10.0)
        loss.backward()
        c_opt.step()
        note(critic=loss, penalty=penalty)
        if i % 2:
            critic.requires_grad_(False)
            g_opt.zero_grad()
            out = gen_loss(data(i + 9, 4, 2))
            out.backward()
            g_opt.step()
            critic.requires_grad_(True)
            note(gen=out)
        yield loss, penalty, {k: round(a / n, 4) for k, (a, n) in meters.items()}


@growing
def loop_with_callbacks_and_logs(compiled):
    lines = []

    class Lines(logging.Handler):
        def emit(self, record):
            lines.append(self.format(record))

    log = logging.getLogger("programs.loop")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers = [Lines()]

    class Callback:
        def on(self, event, trainer):
            method = getattr(self, f"on_{event}", None)
            if method is not None:
                method(trainer)

    class Stop(Exception):
        pass

    class Patience(Callback):
        def __init__(self, n):
            self.n, self.best, self.bad = n, math.inf, 0

        def on_step(self, trainer):
            if trainer.loss < self.best - 1e-4:
                self.best, self.bad = trainer.loss, 0
            else:
                self.bad += 1
            if self.bad >= self.n:
                raise Stop(f"no better for {self.bad} steps")

    class Logger(Callback):
        def on_begin(self, trainer):
            log.info("begin %s", type(trainer).__name__)

        def on_step(self, trainer):
            if trainer.steps % 2 == 0:
                log.info("step %d loss %.4f", trainer.steps, trainer.loss)

    class Trainer:
        def __init__(self, *callbacks):
            self.callbacks, self.steps, self.loss, self.stopped = callbacks, 0, None, False
            self.net = nn.Linear(2, 1)
            nn.init.constant_(self.net.weight, 1.0)
            nn.init.zeros_(self.net.bias)

        def emit(self, event):
            for callback in self.callbacks:
                callback.on(event, self)

        def step(self, x):
            if self.steps == 0:
                self.emit("begin")
            loss = self.net(x).square().mean()
            self.loss, self.steps = loss.item(), self.steps + 1
            try:
                self.emit("step")
            except Stop as stop:
                self.stopped = True
                log.warning("stopped: %s", stop)
            return loss

    trainer = Trainer(Patience(3), Logger())
    step = compiled(trainer.step)
    for i in range(9):
        loss = step(data(i, 4, 2))
        yield loss, trainer.stopped, list(lines)


@growing
def seeds_and_samplers_of_batches(compiled):
    class Sampler:
        def __init__(self, labels, per_class, seed):
            self.by_class = collections.defaultdict(list)
            for i, y in enumerate(labels):
                self.by_class[y].append(i)
            self.per_class, self.rng, self.epoch = per_class, random.Random(seed), 0

        def batch(self):
            self.epoch += 1
            out = []
            for y in sorted(self.by_class):
                pool = self.by_class[y]
                out += self.rng.sample(pool, min(self.per_class, len(pool)))
            self.rng.shuffle(out)
            return out

    xs, labels = data(1, 9, 3), [0, 1, 2, 0, 1, 2, 0, 1, 2]
    sampler = Sampler(labels, 2, 5)

    @compiled
    def prototypes():
        at = sampler.batch()
        x, y = xs[at], torch.tensor([labels[i] for i in at])
        onehot = F.one_hot(y, 3).float()
        means = onehot.T @ x / onehot.sum(0)[:, None]
        return means, -torch.cdist(x, means).log_softmax(-1).gather(1, y[:, None]).mean()

    for _ in range(8):
        yield prototypes(), sampler.epoch


@steady
def attempts_with_smaller_batches(compiled):
    class OutOfMemory(RuntimeError):
        pass

    budget = types.SimpleNamespace(rows=4, spent=0)

    def charge(x):
        if x.shape[0] > budget.rows:
            raise OutOfMemory(f"{x.shape[0]} rows, {budget.rows} fit")
        budget.spent += x.shape[0]
        return x

    def retry(function=None, *, most=3):
        if function is None:
            return functools.partial(retry, most=most)

        @functools.wraps(function)
        def wrapped(x, *args, parts=1, **kwargs):
            for attempt in range(most):
                try:
                    return torch.cat([function(p, *args, **kwargs) for p in x.chunk(parts)]), parts
                except OutOfMemory as e:
                    error, parts = e, parts * 2
                    print("retry", attempt, e, file=sys.stdout)
            raise RuntimeError(f"gave up after {most}") from error

        return wrapped

    w = data(3, 3, 3)

    @compiled
    @retry(most=3)
    def forward(x, scale=1.0):
        return charge(x) @ w * scale

    for i in range(18):
        try:
            yield forward(data(i, (3, 8, 4, 40)[i % 4], 3), scale=1 + 0.1 * i), budget.spent
        except RuntimeError as e:
            yield e, type(e.__cause__).__name__, budget.spent
