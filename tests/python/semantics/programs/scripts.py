"""Training and evaluation scripts as users write them. As programs/whole_scripts.py has them; `steady` programs must stop
compiling, `captured` programs must not have an eager call."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


def net(*widths):
    torch.manual_seed(7)
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


@steady
def step_with_gradient_scaler(compiled):
    model = net(4, 8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    for i in range(10):
        loss = step(data(i, 3, 4), data(i + 50, 3, 2))
        yield loss.shape, scaler.get_scale(), all(p.grad is not None for p in model.parameters())


@steady
def forward_of_scaled_loss(compiled):
    model = net(4, 8, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2)
    f = compiled(lambda x, y: F.mse_loss(model(x), y))
    for i in range(8):
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(f(data(i, 3, 4), data(i + 50, 3, 2))).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        yield norm, list(model.parameters()), scaler.get_scale()


class Average(nn.Module):
    def __init__(self, model, decay=0.9):
        super().__init__()
        self.module, self.decay, self.updates = copy.deepcopy(model), decay, 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for kept, new in zip(self.module.state_dict().values(), model.state_dict().values()):
            if kept.dtype.is_floating_point:
                kept.mul_(d).add_(new, alpha=1 - d)


@steady
def exponential_moving_average(compiled):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.3)
    average = Average(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    update = compiled(average.update)
    for i in range(10):
        optimizer.zero_grad()
        model(data(i, 5, 3)).square().mean().backward()
        optimizer.step()
        update(model)
        yield [t.clone() for t in average.module.state_dict().values()], average.updates


@steady
def scheduled_step(compiled):
    model = net(3, 4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda e: 0.5 * (1 + math.cos(math.pi * e / 12)))

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        loss = (model(x) - y).abs().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(12):
        yield step(data(i, 4, 3), data(i + 9, 4, 1)), scheduler.get_last_lr()
        scheduler.step()


@steady
def scheduler_inside(compiled):
    model = net(3, 4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 3)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], [3])

    @compiled
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.detach()

    for i in range(12):
        yield step(data(i, 4, 3)), scheduler.get_last_lr(), list(model.parameters())


@steady
def gradients_accumulated(compiled):
    model, batch = net(3, 4, 1), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = {"step": 0, "micro": 0}

    @compiled
    def micro(x, every):
        state["micro"] += 1
        loss = model(x).pow(2).mean() / every
        loss.backward()
        if state["micro"] % every == 0:
            nn.utils.clip_grad_value_(model.parameters(), 0.05)
            optimizer.step()
            optimizer.zero_grad()
            state["step"] += 1
        return loss.detach()

    for i in range(16):
        batch.append(micro(data(i, 2, 3), 4))
        yield batch[-1], dict(state), list(model.parameters())


@steady
def clipped_by_norm(compiled):
    model = net(3, 4, 1)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    history = []

    @compiled
    def step(x, limit):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        return loss.detach(), norm

    for i in range(10):
        history.append(step(data(i, 4, 3), 0.1 * (i + 1)))
        yield history[-1], list(model.parameters())


@steady
def metrics_and_early_stopping(compiled):
    @dataclasses.dataclass
    class Meter:
        name: str
        total: float = 0.0
        count: int = 0
        best: float = math.inf
        history: list = dataclasses.field(default_factory=list)

        def update(self, value, n=1):
            self.total += value * n
            self.count += n
            self.history.append(value)
            if value < self.best:
                self.best = value
                return True
            return False

        @property
        def mean(self):
            return self.total / max(self.count, 1)

        def __str__(self):
            return f"{self.name}: {self.mean:.4f} (best {self.best:.4f})"

    meter, patience = Meter("loss"), {"left": 3}

    @compiled
    def evaluate(x):
        loss = x.square().mean()
        if meter.update(loss.item(), len(x)):
            patience["left"] = 3
        else:
            patience["left"] -= 1
        print(str(meter))
        return loss, patience["left"] <= 0

    for i in range(12):
        yield evaluate(data(i % 5, 3 + i % 2, 2)), meter, dict(patience)


@steady
def adversaries(compiled):
    generator, critic = net(2, 6, 2), net(2, 6, 1)
    opt_g, opt_c = torch.optim.Adam(generator.parameters(), 1e-2), torch.optim.Adam(critic.parameters(), 1e-2)
    counts = collections.Counter()

    @compiled
    def step(real, noise):
        opt_c.zero_grad()
        fake = generator(noise)
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        loss_c = F.binary_cross_entropy_with_logits(critic(real), ones) + F.binary_cross_entropy_with_logits(
            critic(fake.detach()), zeros
        )
        loss_c.backward()
        opt_c.step()
        counts["critic"] += 1
        loss_g = None
        if counts["critic"] % 2 == 0:
            opt_g.zero_grad()
            loss_g = F.binary_cross_entropy_with_logits(critic(generator(noise)), ones)
            loss_g.backward()
            opt_g.step()
            counts["generator"] += 1
        return loss_c.detach(), None if loss_g is None else loss_g.detach()

    for i in range(14):
        yield step(data(i, 4, 2), data(i + 30, 4, 2)), dict(counts), list(generator.parameters())


@steady
def denoising_sampler(compiled):
    model = net(3, 8, 2)
    betas = torch.linspace(1e-3, 0.2, 20)
    alphas = torch.cumprod(1 - betas, 0)

    @compiled
    @torch.no_grad()
    def sample(x, steps):
        ts = list(range(0, 20, 20 // steps))
        for now, before in zip(reversed(ts), reversed([-1] + ts[:-1])):
            a = alphas[now]
            b = alphas[before] if before >= 0 else torch.tensor(1.0)
            eps = model(torch.cat([x, torch.full((len(x), 1), now / 20)], 1))
            x0 = (x - (1 - a).sqrt() * eps) / a.sqrt()
            x = b.sqrt() * x0 + (1 - b).sqrt() * eps
        return x

    for i in range(8):
        yield sample(data(i, 2 + i % 3, 2), [4, 5, 4, 10][i % 4])


@steady
def sequence_to_sequence(compiled):
    torch.manual_seed(3)
    encoder, decoder, out = nn.GRU(4, 6, batch_first=True), nn.GRUCell(4, 6), nn.Linear(6, 4)
    parameters = [*encoder.parameters(), *decoder.parameters(), *out.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    @compiled
    def step(source, target, forced):
        optimizer.zero_grad()
        _, h = encoder(source)
        h, token, loss = h[0], torch.zeros(len(source), 4), 0.0
        for t in range(target.shape[1]):
            h = decoder(token, h)
            y = out(h)
            loss = loss + F.mse_loss(y, target[:, t])
            token = target[:, t] if forced else y.detach()
        loss = loss / target.shape[1]
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(12):
        yield step(data(i, 2, 3 + i % 2, 4), data(i + 20, 2, 3, 4), i % 2 == 0)


@steady
def policy_with_clipped_ratio(compiled):
    torch.manual_seed(5)
    policy, value = net(3, 8, 2), net(3, 8, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=0.01)
    memory = {"obs": [], "act": [], "logp": [], "rew": [], "val": []}

    @compiled
    @torch.no_grad()
    def act(obs):
        logits = policy(obs)
        action = logits.argmax(-1)
        logp = torch.log_softmax(logits, -1).gather(-1, action[:, None])[:, 0]
        v = value(obs)[:, 0]
        for key, item in zip(("obs", "act", "logp", "val"), (obs, action, logp, v)):
            memory[key].append(item)
        return action

    @compiled
    def advantages(gamma=0.9, lam=0.8):
        out, last = [], torch.zeros_like(memory["val"][0])
        for t in reversed(range(len(memory["rew"]))):
            after = memory["val"][t + 1] if t + 1 < len(memory["rew"]) else torch.zeros_like(last)
            delta = memory["rew"][t] + gamma * after - memory["val"][t]
            last = delta + gamma * lam * last
            out.insert(0, last)
        return torch.stack(out)

    @compiled
    def learn(obs, action, old, adv, clip):
        optimizer.zero_grad()
        logp = torch.log_softmax(policy(obs), -1).gather(-1, action[:, None])[:, 0]
        ratio = (logp - old).exp()
        loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
        loss = loss + 0.5 * F.mse_loss(value(obs)[:, 0], adv)
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
        return loss.detach()

    for episode in range(6):
        for t in range(4):
            action = act(data(episode * 10 + t, 2, 3))
            memory["rew"].append(action.float() - 0.5)
        adv = advantages()
        flat = [torch.cat(memory[k]) for k in ("obs", "act", "logp")]
        yield [learn(*flat, adv.flatten(), 0.2 - 0.01 * episode) for _ in range(2)], adv
        for held in memory.values():
            held.clear()


@steady
def replay_buffer_with_target(compiled):
    online = net(3, 6, 2)
    target = copy.deepcopy(online)
    buffer = collections.deque(maxlen=6)
    optimizer, stats = torch.optim.SGD(online.parameters(), 0.05), {"updates": 0, "eps": 1.0}

    @compiled
    def learn(gamma):
        batch = list(buffer)[-4:]
        s, a, r, n = (torch.stack(part) for part in zip(*batch))
        with torch.no_grad():
            goal = r + gamma * target(n).max(-1).values
        loss = F.smooth_l1_loss(online(s).gather(1, a[:, None])[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        stats["updates"] += 1
        stats["eps"] *= 0.9
        if stats["updates"] % 3 == 0:
            target.load_state_dict(online.state_dict())
        return loss.detach()

    for i in range(16):
        s = data(i, 3)
        buffer.append((s, torch.tensor(i % 2), s.sum(), s.roll(1)))
        if len(buffer) >= 4:
            yield learn(0.9), dict(stats), list(target.parameters())


@bounded
def checkpoint_with_print(compiled):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            y = self.linear(x).tanh()
            if y.abs().max() > 100:
                print("large")
            return y + x

    torch.manual_seed(1)
    first, block, last = nn.Linear(4, 4), Block(), nn.Linear(4, 2)

    @compiled
    def f(x):
        x = first(x).relu()
        x = checkpoint(block, x, use_reentrant=False)
        return last(x).sigmoid()

    for i in range(8):
        y = f(data(i, 3, 4))
        y.sum().backward()
        yield y, block.linear.weight.grad.clone()


@steady
def mapped_with_break_around(compiled):
    scale = {"n": 1.0}

    @compiled
    def f(x, y):
        x = (x * 2).relu()
        if x.sum() > 1000:
            return x
        z = torch.func.vmap(lambda a, b: (a * b).sum() * scale["n"])(x, y)
        print(f"{float(z.sum()):.3f}")
        return (z - z.mean()).exp()

    for i in range(8):
        scale["n"] = 1.0 + i
        yield f(data(i, 3, 2), data(i + 7, 3, 2))


@bounded
def mapped_with_print_inside(compiled):
    @compiled
    def f(x):
        x = (x * 2).relu()

        def row(a):
            print("row", a.shape)
            return (a * a).sum()

        z = torch.func.vmap(row)(x)
        return (z - z.mean()).exp()

    for i in range(8):
        yield f(data(i, 3, 2))


@bounded
def differentiated_with_print_inside(compiled):
    @compiled
    def f(w, x):
        x = (x * 2).relu()

        def loss(w):
            y = (x @ w).tanh().sum()
            print("loss", y.shape)
            return y

        g = torch.func.grad(loss)(w)
        return (g - g.mean()).exp() * x.sum()

    for i in range(8):
        yield f(data(i, 2), data(i + 5, 3, 2))


@bounded
def custom_function_that_prints(compiled):
    class Shown(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            print("forward", tuple(x.shape))
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            print("backward", tuple(g.shape))
            return g * (x > 0)

    weight = torch.full((3,), 0.5, requires_grad=True)

    @compiled
    def f(x):
        h = (x * weight).sin()
        h = Shown.apply(h)
        return (h * 2).cos()

    for i in range(8):
        weight.grad = None
        y = f(data(i, 2, 3))
        y.sum().backward()
        yield y, weight.grad


@bounded
def custom_function_with_item(compiled):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.scale = x.abs().max().item()
            return x / (ctx.scale + 1)

        @staticmethod
        def backward(ctx, g):
            return g / (ctx.scale + 1)

    weight = torch.full((3,), 0.5, requires_grad=True)

    @compiled
    def f(x):
        h = (x * weight).sin()
        return (Scaled.apply(h) * 2).cos()

    for i in range(8):
        weight.grad = None
        y = f(data(i, 2, 3))
        y.sum().backward()
        yield y, weight.grad


@bounded
def retained_gradient(compiled):
    model, last = net(3, 4), nn.Linear(4, 1)
    seen = {}

    @compiled
    def f(x):
        h = model(x)
        h.retain_grad()
        seen["h"] = h
        return last(h.relu()).sum()

    for i in range(8):
        f(data(i, 2, 3)).backward()
        yield seen["h"].grad, model[0].weight.grad.clone()


@growing
def hooks_for_a_while(compiled):
    model, seen = net(3, 4, 1), []

    @compiled
    def f(x, watch):
        handles = [m.register_forward_hook(lambda m, a, out: seen.append(out.mean())) for m in model] if watch else []
        y = model(x)
        for handle in handles:
            handle.remove()
        return y * 2

    for i in range(10):
        yield f(data(i, 2, 3), i % 2 == 0), len(seen), seen[-1], [len(m._forward_hooks) for m in model]


@growing
def backward_hooks_on_modules(compiled):
    model, seen = net(3, 4, 1), []
    handle = model[0].register_full_backward_hook(lambda m, gi, go: seen.append(go[0].abs().sum()))
    f = compiled(model)
    for i in range(8):
        if i == 6:
            handle.remove()
        model.zero_grad()
        f(data(i, 2, 3)).sum().backward()
        yield len(seen), seen[-1] if seen else None, model[0].weight.grad


@growing
def numpy_schedules(compiled):
    schedule = np.linspace(0.1, 1.0, 16)
    table = {"weights": np.ones(3)}

    @compiled
    def f(x, rate, k):
        return x * rate + table["weights"].sum() * k + float(schedule[3])

    for i in range(12):
        table["weights"] = np.full(3, 0.5 * i)
        yield f(data(i, 3), schedule[i], np.int64(i))


@steady
def numpy_state_in_module(compiled):
    class Normalizer(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean, self.var, self.count = np.zeros(3), np.ones(3), np.float64(1e-4)

        def update(self, x):
            delta = x.mean(0) - self.mean
            total = self.count + len(x)
            self.mean = self.mean + delta * len(x) / total
            self.var = (self.var * self.count + x.var(0) * len(x)) / total
            self.count = total

        def forward(self, x):
            mean, var = torch.from_numpy(self.mean).float(), torch.as_tensor(self.var, dtype=torch.float32)
            return (x - mean) / (var + 1e-8).sqrt() * float(self.count)

    module = Normalizer()
    f = compiled(module)
    for i in range(12):
        module.update(data(i, 4, 3).numpy().astype(np.float64))
        yield f(data(i + 40, 2, 3)), module.count


@steady
def numpy_masks_of_blocks(compiled):
    @compiled
    def f(x):
        n = x.shape[0]
        mask = np.zeros((n, n), dtype=np.int64)
        for i in range(n):
            mask[i, max(0, i - 1) : i + 2] = 1
        left = np.stack([np.arange(n), np.arange(n)[::-1]])
        return x * torch.from_numpy(mask).sum(1, keepdim=True) + torch.tensor(left.sum(0)).unsqueeze(1)

    for i in range(10):
        yield f(data(i, 4, 2))


@bounded
def evaluation_loop_with_loader(compiled):
    def loader(n, epoch):
        for i in range(n):
            yield {"x": data(epoch * 10 + i, 3, 4), "y": torch.arange(3) % 2}

    model = net(4, 6, 2)

    @compiled
    @torch.inference_mode()
    def evaluate(batches):
        right, seen, losses = 0, 0, []
        model.eval()
        for batch in batches:
            logits = model(batch["x"])
            losses.append(F.cross_entropy(logits, batch["y"]).item())
            right += (logits.argmax(-1) == batch["y"]).sum().item()
            seen += len(batch["y"])
        model.train()
        return right / seen, sum(losses) / len(losses)

    for epoch in range(6):
        yield evaluate(list(loader(3, epoch))), evaluate(loader(2, epoch)), model.training


@steady
def freezing_layers(compiled):
    model = net(3, 4, 4, 1)
    f = compiled(model)

    def freeze(until):
        for i, layer in enumerate(model):
            for p in layer.parameters():
                p.requires_grad_(i >= until)

    for i in range(16):
        freeze((i % 4) * 2 % 5)
        model.zero_grad()
        y = f(data(i, 2, 3))
        y.sum().backward()
        yield y, [None if p.grad is None else p.grad.clone() for p in model.parameters()]


@growing
def saved_and_loaded(compiled):
    model, optimizer = net(3, 4, 1), None
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    store = []

    @compiled
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(12):
        yield step(data(i, 2, 3)), list(model.parameters())
        if i % 4 == 1:
            store.append(copy.deepcopy((model.state_dict(), optimizer.state_dict())))
        if i % 4 == 3:
            model.load_state_dict(store[-1][0])
            optimizer.load_state_dict(store[-1][1])


@bounded
def copies_of_modules_inside(compiled):
    base = net(3, 4, 1)

    @compiled
    def f(x, n):
        twins = [copy.deepcopy(base) for _ in range(n)]
        with torch.no_grad():
            for k, twin in enumerate(twins):
                for p in twin.parameters():
                    p.add_(0.1 * k)
        return torch.stack([twin(x) for twin in twins]).mean(0)

    for i in range(8):
        yield f(data(i, 2, 3), 2)


@steady
def mixing_and_label_smoothing(compiled):
    rng, model = np.random.RandomState(0), net(3, 5, 3)

    @compiled
    def loss(x, y, lam, order):
        mixed = lam * x + (1 - lam) * x[order]
        logits = model(mixed)
        a = F.cross_entropy(logits, y, label_smoothing=0.1)
        return lam * a + (1 - lam) * F.cross_entropy(logits, y[order], label_smoothing=0.1)

    for i in range(12):
        lam = rng.beta(0.4, 0.4)
        yield loss(data(i, 4, 3), torch.arange(4) % 3, lam, torch.from_numpy(rng.permutation(4)))


@steady
def contrastive_queue(compiled):
    encoder = net(3, 4)

    class Queue(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", F.normalize(data(0, 8, 4), dim=1))
            self.register_buffer("at", torch.zeros(1, dtype=torch.long))

        @torch.no_grad()
        def push(self, keys):
            at = int(self.at)
            self.keys[at : at + len(keys)] = keys
            self.at[0] = (at + len(keys)) % 8

    queue = Queue()

    @compiled
    def step(x, y, temperature):
        q, k = F.normalize(encoder(x), dim=1), F.normalize(encoder(y), dim=1).detach()
        positive = (q * k).sum(1, keepdim=True)
        logits = torch.cat([positive, q @ queue.keys.clone().T], 1) / temperature
        queue.push(k)
        return F.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long))

    for i in range(12):
        loss = step(data(i, 2, 3), data(i + 3, 2, 3), 0.07 + 0.01 * i)
        loss.backward()
        yield loss, queue.keys, queue.at


@steady
def profiler_sections(compiled):
    times, clock = collections.defaultdict(list), iter(range(10**6))

    @contextlib.contextmanager
    def section(name):
        begin = next(clock)
        try:
            yield
        finally:
            times[name].append(next(clock) - begin)

    model = net(3, 4, 1)

    @compiled
    def f(x):
        with section("forward"):
            y = model(x)
        with section("loss"):
            return y.square().mean()

    for i in range(8):
        yield f(data(i, 2, 3)), {k: list(v) for k, v in times.items()}
