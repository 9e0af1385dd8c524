"""Schemes of training: optimizers and gradients by hand, routers, adapters, observers, flows, distillation."""

from __future__ import annotations

import collections
import itertools
import random

import torch
from torch import nn
from torch.nn import functional as F

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@growing
def observer_histograms_for_quantization(compiled):

    class Obs(nn.Module):
        def __init__(self, bits=8):
            super().__init__()
            self.register_buffer("lo", torch.tensor(float("inf")))
            self.register_buffer("hi", torch.tensor(float("-inf")))
            self.register_buffer("hist", torch.zeros(4))
            self.bits, self.enabled, self.seen = (bits, True, 0)

        def forward(self, x):
            if self.enabled:
                self.seen += x.numel()
                self.lo.copy_(torch.minimum(self.lo, x.min()))
                self.hi.copy_(torch.maximum(self.hi, x.max()))
                self.hist += torch.histc(x, 4, -2, 2)
            return x

        def qparams(self):
            n = 2**self.bits - 1
            scale = (self.hi - self.lo) / n
            zero = torch.clamp(torch.round(-self.lo / scale), 0, n)
            return (scale, zero.to(torch.int64))

    class Fake(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.obs, self.mode = (inner, Obs(), "calibrate")

        def forward(self, x):
            y = self.inner(self.obs(x))
            if self.mode == "convert":
                s, z = self.obs.qparams()
                q = torch.clamp(torch.round(y / s) + z, 0, 255)
                y = (q - z) * s
            return y

    torch.manual_seed(0)
    net = nn.Sequential(Fake(nn.Linear(3, 4)), nn.ReLU(), Fake(nn.Linear(4, 2)))
    f = compiled(net)
    with torch.no_grad():
        for i in range(9):
            if i == 4:
                for m in net.modules():
                    if isinstance(m, Obs):
                        m.enabled = False
                    if isinstance(m, Fake):
                        m.mode = "convert"
            if i == 7:
                net[0].obs.enabled = True
            yield (f(data(i, 5, 3)), [m.seen for m in net.modules() if isinstance(m, Obs)], net[0].obs.hist.clone())


@growing
def lora_stack_with_forward_hooks(compiled):
    torch.manual_seed(5)
    base = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2))

    class Lora:
        def __init__(self, m, r, name):
            self.a, self.b, self.name = (
                nn.Parameter(torch.randn(r, m.in_features) * 0.1),
                nn.Parameter(torch.randn(m.out_features, r)),
                name,
            )
            self.scale, self.calls = (1.0, 0)
            self.handle = m.register_forward_hook(self)

        def __call__(self, m, inp, out):
            self.calls += 1
            return out + self.scale * (inp[0] @ self.a.T @ self.b.T)

    loras = {}
    f = compiled(base)
    for i in range(10):
        if i == 2:
            loras["x"] = Lora(base[0], 2, "x")
        if i == 4:
            loras["y"] = Lora(base[2], 1, "y")
        if i == 6:
            loras["x"].scale = 0.5
        if i == 8:
            loras.pop("x").handle.remove()
        y = f(data(i, 3, 4))
        y.sum().backward()
        yield (y.detach(), {k: (el.calls, el.a.grad.clone()) for k, el in loras.items()})


@steady
def gumbel_router_with_aux_loss(compiled):

    class Router(nn.Module):
        def __init__(self, d, n):
            super().__init__()
            torch.manual_seed(4)
            self.gate, self.experts = (nn.Linear(d, n), nn.ModuleList(nn.Linear(d, d) for _ in range(n)))
            self.register_buffer("load", torch.zeros(n))
            self.aux = None

        def forward(self, x, k=1):
            logits = self.gate(x)
            if self.training:
                logits = logits + torch.rand_like(logits) * 0.1
            p = logits.softmax(-1)
            w, idx = p.topk(k, -1)
            out = torch.zeros_like(x)
            for e, ex in enumerate(self.experts):
                rows, col = torch.where(idx == e)
                if rows.numel() == 0:
                    continue
                out = out.index_add(0, rows, ex(x[rows]) * w[rows, col][:, None])
            frac = F.one_hot(idx, len(self.experts)).float().mean((0, 1))
            self.load.mul_(0.9).add_(frac, alpha=0.1)
            self.aux = (frac * p.mean(0)).sum() * len(self.experts)
            return out

    r = Router(3, 4)
    f = compiled(r)
    for i in range(9):
        r.train(i % 3 != 2)
        y = f(data(i, 5 + i % 2, 3), 1 + i % 2)
        r.zero_grad()
        (y.square().mean() + r.aux).backward()
        yield (
            y.detach(),
            r.load.clone(),
            r.aux.detach(),
            [None if e.weight.grad is None else e.weight.grad.sum() for e in r.experts],
        )


@growing
def hand_written_lion_with_groups(compiled):

    class Lion(torch.optim.Optimizer):
        def __init__(self, params, lr=0.01, betas=(0.9, 0.99), wd=0.0):
            super().__init__(params, dict(lr=lr, betas=betas, weight_decay=wd))

        @torch.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for g in self.param_groups:
                for p in filter(lambda p: p.grad is not None, g["params"]):
                    p.mul_(1 - g["lr"] * g["weight_decay"])
                    st = self.state[p]
                    if not st:
                        st["m"] = torch.zeros_like(p)
                        st["step"] = 0
                    st["step"] += 1
                    b1, b2 = g["betas"]
                    p.add_(torch.sign(st["m"] * b1 + p.grad * (1 - b1)), alpha=-g["lr"])
                    st["m"].mul_(b2).add_(p.grad, alpha=1 - b2)
            return loss

    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    opt = Lion([{"params": net[0].parameters(), "weight_decay": 0.1}, {"params": net[2].parameters(), "lr": 0.05}])

    @compiled
    def train(x, y):

        def closure():
            opt.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            return loss

        return opt.step(closure)

    for i in range(9):
        if i == 5:
            opt.param_groups[1]["lr"] *= 0.1
        yield (
            train(data(i, 4, 3), data(i + 9, 4, 1)).detach(),
            net[0].weight.detach().clone(),
            [opt.state[p]["step"] for p in net.parameters()],
        )


@steady
def triplets_with_memory_and_ema_centers(compiled):

    class Loss(nn.Module):
        def __init__(self, n, d):
            super().__init__()
            self.register_buffer("centers", torch.zeros(n, d))
            self.register_buffer("seen", torch.zeros(n, dtype=torch.long))
            self.hard = 0

        def forward(self, e, y):
            with torch.no_grad():
                for c in y.unique().tolist():
                    m = e[y == c].mean(0)
                    self.centers[c] = m if self.seen[c] == 0 else 0.9 * self.centers[c] + 0.1 * m
                    self.seen[c] += 1
            d = torch.cdist(e, e)
            same = y[:, None] == y[None]
            pos = d.masked_fill(~same, 0).amax(1)
            neg = d.masked_fill(same, float("inf")).amin(1)
            ok = torch.isfinite(neg)
            if not ok.any():
                return e.sum() * 0
            t = F.relu(pos[ok] - neg[ok] + 0.2)
            self.hard += int((t > 0).sum())
            return t.mean() + 0.1 * (e - self.centers[y]).square().mean()

    el = Loss(3, 2)
    f = compiled(el)
    for i in range(8):
        e = data(i, 6, 2).requires_grad_()
        y = torch.tensor([0, 0, 1, 1, 2, 2]) if i != 3 else torch.zeros(6, dtype=torch.long)
        v = f(e, y)
        v.backward()
        yield (v.detach(), e.grad, el.centers.clone(), el.seen.tolist(), el.hard)


@bounded
def distillation_with_temperature_schedule(compiled):

    class Kd:
        def __init__(self, teacher, student, schedule):
            self.t, self.s, self.schedule, self.history, self.epoch = (teacher, student, schedule, [], 0)

        def __call__(self, x, y):
            temp = next(self.schedule, 1.0)
            with torch.no_grad():
                t = self.t(x)
            s = self.s(x)
            kd = F.kl_div((s / temp).log_softmax(-1), (t / temp).softmax(-1), reduction="batchmean") * temp**2
            ce = F.cross_entropy(s, y, label_smoothing=0.1 if self.epoch % 2 else 0.0)
            self.history.append((round(temp, 2), kd.item()))
            self.epoch += 1
            return 0.7 * kd + 0.3 * ce

    torch.manual_seed(3)
    kd = Kd(nn.Linear(3, 4), nn.Linear(3, 4), (4.0 * 0.8**i for i in itertools.count()))
    f = compiled(kd.__call__)
    for i in range(8):
        loss = f(data(i, 5, 3), torch.arange(5) % 4)
        loss.backward()
        yield (loss.detach(), kd.s.weight.grad.clone(), list(kd.history))


@steady
def pcgrad_and_gradnorm(compiled):
    torch.manual_seed(0)
    shared, heads = (nn.Linear(3, 4), nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)]))
    weights, base = (torch.ones(2), [])
    rng = random.Random(3)

    @compiled
    def step(x, ys):
        z = shared(x).tanh()
        losses = [F.mse_loss(h(z), y) for h, y in zip(heads, ys)]
        if not base:
            base.extend(el.item() for el in losses)
        ps = list(shared.parameters())
        grads = []
        for w, el in zip(weights, losses):
            grads.append(torch.cat([g.flatten() for g in torch.autograd.grad(w * el, ps, retain_graph=True)]))
        order = list(range(2))
        rng.shuffle(order)
        out = [g.clone() for g in grads]
        for i in order:
            for j in order:
                if i != j:
                    dot = out[i] @ grads[j]
                    if dot < 0:
                        out[i] = out[i] - dot / grads[j].norm() ** 2 * grads[j]
        g = sum(out)
        n = 0
        with torch.no_grad():
            for p in ps:
                k = p.numel()
                p -= 0.05 * g[n : n + k].view_as(p)
                n += k
            rel = torch.stack([el.detach() / b for el, b in zip(losses, base)])
            weights.copy_(rel / rel.mean())
        return ([el.detach() for el in losses], order)

    for i in range(8):
        yield (
            step(data(i, 5, 3), [data(i + 20, 5, 1), data(i + 30, 5, 1)]),
            weights.clone(),
            shared.weight.detach().clone(),
        )


@steady
def flows_with_logdet_and_inverse(compiled):

    class ActNorm(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.s, self.b = (nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d)))
            self.ready = False

        def forward(self, x):
            if not self.ready:
                with torch.no_grad():
                    self.b.copy_(-x.mean(0))
                    self.s.copy_(1 / (x.std(0) + 0.001))
                self.ready = True
            return ((x + self.b) * self.s, self.s.abs().log().sum().expand(x.shape[0]))

        def inverse(self, y):
            return y / self.s - self.b

    class Spline(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(d, 4))

        def forward(self, x):
            k = F.softplus(self.w).cumsum(1)
            i = torch.searchsorted(k.detach(), x.abs().T.contiguous().clamp(max=2)).T.clamp(max=3)
            g = 1 + 0.1 * torch.gather(k.T, 0, i)
            return (x * g, g.log().sum(1))

        def inverse(self, y):
            return y

    class Flow(nn.Sequential):
        def forward(self, x):
            ld = torch.zeros(x.shape[0])
            for m in self:
                x, el = m(x)
                ld = ld + el
            return (x, ld)

        def inverse(self, y):
            for m in reversed(self):
                y = m.inverse(y)
            return y

    fl = Flow(ActNorm(2), Spline(2), ActNorm(2))
    f, inv = (compiled(fl), compiled(fl.inverse))
    for i in range(8):
        if i == 4:
            for m in fl:
                if isinstance(m, ActNorm):
                    m.ready = False
        z, ld = f(data(i, 4 + i % 2, 2))
        fl.zero_grad()
        (0.5 * z.square().sum(1) - ld).mean().backward()
        yield (z.detach(), ld.detach(), fl[1].w.grad.clone(), inv(z.detach()).detach())


@steady
def sliding_stats_of_grads_by_hooks(compiled):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    stats, skipped = (collections.defaultdict(lambda: collections.deque(maxlen=3)), [])
    for name, p in net.named_parameters():
        p.register_hook(lambda g, name=name: (stats[name].append(g.norm().item()), g * 0.5)[1])

    @compiled
    def step(x, y, limit):
        net.zero_grad(set_to_none=True)
        loss = F.mse_loss(net(x), y)
        loss.backward()
        total = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
        if not torch.isfinite(total) or total > limit:
            skipped.append(round(total.item(), 3))
            return (loss.detach(), False)
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
        return (loss.detach(), True)

    for i in range(9):
        yield (
            step(data(i, 3, 2), data(i + 7, 3, 1) * (10 if i == 4 else 1), 1.5),
            {k: [round(v, 4) for v in d] for k, d in stats.items()},
            list(skipped),
        )


@steady
def buffers_read_as_numbers(compiled):

    class Codebook(nn.Module):
        def __init__(self, n, d):
            super().__init__()
            torch.manual_seed(0)
            self.register_buffer("inited", torch.tensor([False]))
            self.register_buffer("embed", torch.randn(n, d))
            self.register_buffer("cluster", torch.zeros(n))

        def forward(self, x):
            if not self.inited.item():
                self.embed.data.copy_(x[: self.embed.shape[0]])
                self.inited.data.copy_(torch.tensor([True]))
            idx = torch.cdist(x, self.embed).argmin(-1)
            if self.training:
                onehot = F.one_hot(idx, self.embed.shape[0]).float()
                self.cluster.mul_(0.9).add_(onehot.sum(0), alpha=0.1)
                dead = self.cluster < 0.05
                if torch.any(dead):
                    self.embed.data[dead] = x[: int(dead.sum())]
            return (self.embed[idx], idx)

    c = Codebook(3, 2)
    f = compiled(c)
    for i in range(9):
        c.train(i % 4 != 3)
        yield (f(data(i, 6, 2)), c.embed.clone(), c.cluster.clone())


@growing
def decimal_learning_rates(compiled):
    import decimal
    import fractions

    class Sched:
        def __init__(self):
            self.lr, self.k = (decimal.Decimal("0.1"), fractions.Fraction(1, 3))

        def step(self):
            self.lr *= decimal.Decimal("0.9")
            self.k += fractions.Fraction(1, 7)

    s = Sched()

    @compiled
    def f(x):
        y = x * float(s.lr) + float(s.k)
        s.step()
        return y.tanh()

    for i in range(10):
        yield (f(data(i, 3)), str(s.lr), str(s.k))
