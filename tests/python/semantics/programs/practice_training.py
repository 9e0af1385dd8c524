"""Programs of training from research code: policies, adapters, experts, flows, adversaries, scales."""

from __future__ import annotations

import collections
import contextlib
import itertools
import random
import typing

import torch
from torch import nn
from torch.nn import functional as F

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@growing
def ppo_minibatches(compiled):

    class Rollout(typing.NamedTuple):
        obs: torch.Tensor
        act: torch.Tensor
        logp: torch.Tensor
        adv: torch.Tensor

        def __getitem__(self, k):
            if isinstance(k, (torch.Tensor, slice)):
                return Rollout(*(t[k] for t in self))
            return tuple.__getitem__(self, k)

    torch.manual_seed(0)
    pi = nn.Linear(3, 4)
    opt = torch.optim.Adam(pi.parameters(), lr=0.02)
    stats = collections.defaultdict(list)

    def epoch(batch, n, clip):
        perm = torch.randperm(batch.obs.shape[0])
        for mb in perm.chunk(n):
            b = batch[mb]
            dist = torch.distributions.Categorical(logits=pi(b.obs))
            ratio = (dist.log_prob(b.act) - b.logp).exp()
            adv = (b.adv - b.adv.mean()) / (b.adv.std() + 1e-08)
            loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean() - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            g = nn.utils.clip_grad_norm_(pi.parameters(), 0.5)
            opt.step()
            stats["loss"].append(loss.item())
            stats["norm"].append(float(g))
            kl = (b.logp - dist.log_prob(b.act)).mean().item()
            if kl > 0.05:
                stats["stopped"].append(round(kl, 4))
                break
        return {k: sum(v) / len(v) for k, v in stats.items() if v}

    f = compiled(epoch)
    for i in range(7):
        obs = data(i, 8 + 2 * (i % 2), 3)
        act = (data(i + 9, obs.shape[0]).abs() * 7).long() % 4
        yield (
            f(Rollout(obs, act, torch.full((obs.shape[0],), -1.4), data(i + 5, obs.shape[0])), 2, 0.2),
            {k: len(v) for k, v in stats.items()},
        )


@growing
def dqn_agent(compiled):

    class SumTree:
        def __init__(self, n):
            self.n, self.tree, self.data, self.at = (n, [0.0] * (2 * n), [None] * n, 0)

        def add(self, p, item):
            self.data[self.at] = item
            self.set(self.at, p)
            self.at = (self.at + 1) % self.n

        def set(self, i, p):
            i += self.n
            d = p - self.tree[i]
            while i:
                self.tree[i] += d
                i //= 2

        def find(self, v):
            i = 1
            while i < self.n:
                i *= 2
                if v > self.tree[i]:
                    v -= self.tree[i]
                    i += 1
            return i - self.n

    torch.manual_seed(0)
    q, target = (nn.Linear(3, 2), nn.Linear(3, 2))
    target.load_state_dict(q.state_dict())
    tree, rng = (SumTree(8), random.Random(3))
    opt = torch.optim.RMSprop(q.parameters(), lr=0.01)

    def learn(s, a, r, s2, step):
        tree.add(1.0 + abs(r), (s, a, r, s2))
        if step < 3:
            return None
        idx = [tree.find(rng.random() * tree.tree[1]) for _ in range(2)]
        batch = [tree.data[i] for i in idx]
        S, S2 = (torch.stack([b[0] for b in batch]), torch.stack([b[3] for b in batch]))
        A, R = (torch.tensor([b[1] for b in batch]), torch.tensor([b[2] for b in batch]))
        with torch.no_grad():
            y = R + 0.9 * target(S2).gather(1, q(S2).argmax(1, keepdim=True)).squeeze(1)
        td = y - q(S).gather(1, A[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(td, torch.zeros_like(td))
        opt.zero_grad()
        loss.backward()
        opt.step()
        for i, e in zip(idx, td.detach().abs().tolist()):
            tree.set(i, e + 0.001)
        if step % 4 == 0:
            target.load_state_dict(q.state_dict())
        return (loss.detach(), idx)

    f = compiled(learn)
    for i in range(10):
        yield (f(data(i, 3), i % 2, 0.25 * i, data(i + 1, 3), i), round(tree.tree[1], 3), q.weight)


@growing
def lora_hooks(compiled):

    class LoRA:
        def __init__(self, layer, r, alpha):
            torch.manual_seed(r)
            self.A = torch.randn(r, layer.in_features) * 0.1
            self.B = torch.randn(layer.out_features, r) * 0.1
            self.scale, self.calls, self.enabled = (alpha / r, 0, True)
            self.handle = layer.register_forward_hook(self)

        def __call__(self, module, args, out):
            self.calls += 1
            if not self.enabled:
                return None
            return out + F.linear(F.linear(args[0], self.A), self.B) * self.scale

        def remove(self):
            self.handle.remove()

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    adapters = {n: LoRA(m, 2, 4.0) for n, m in net.named_modules() if isinstance(m, nn.Linear)}
    f = compiled(lambda x: net(x))
    for i in range(10):
        if i == 3:
            adapters["0"].enabled = False
        if i == 5:
            adapters["2"].scale = 0.25
        if i == 7:
            adapters["0"].remove()
        yield (f(data(i, 2, 4)), {k: a.calls for k, a in adapters.items()})


@growing
def observer_quant(compiled):

    class MinMax(nn.Module):
        def __init__(self, bits=8, avg=0.1):
            super().__init__()
            self.bits, self.avg = (bits, avg)
            self.register_buffer("lo", torch.tensor(float("inf")))
            self.register_buffer("hi", torch.tensor(float("-inf")))
            self.n = 0

        def forward(self, x):
            mn, mx = x.detach().aminmax()
            if torch.isinf(self.lo):
                self.lo.copy_(mn)
                self.hi.copy_(mx)
            else:
                self.lo += self.avg * (mn - self.lo)
                self.hi += self.avg * (mx - self.hi)
            self.n += 1
            return x

        def qparams(self):
            qmax = 2**self.bits - 1
            scale = ((self.hi - self.lo) / qmax).clamp_min(1e-08)
            zp = (-self.lo / scale).round().clamp(0, qmax).int()
            return (scale, zp)

    class QLinear(nn.Linear):
        def __init__(self, *a):
            super().__init__(*a)
            self.obs, self.mode = (MinMax(), "observe")

        def forward(self, x):
            match self.mode:
                case "observe":
                    x = self.obs(x)
                case "fake":
                    s, z = self.obs.qparams()
                    q = (x / s + z).round().clamp(0, 2**self.obs.bits - 1)
                    x = x + ((q - z) * s - x).detach()
                case str() as m if m.startswith("off"):
                    pass
                case other:
                    raise ValueError(f"mode {other!r} of {type(self).__name__}")
            return super().forward(x)

    torch.manual_seed(0)
    net = nn.Sequential(QLinear(4, 3), nn.ReLU(), QLinear(3, 2))
    f = compiled(net)
    for i in range(10):
        for m in net.modules():
            if isinstance(m, QLinear):
                m.mode = ["observe", "observe", "observe", "fake", "fake", "off1", "observe", "fake", 3, "fake"][i]
        try:
            y = f(data(i, 5, 4))
            net.zero_grad()
            y.sum().backward()
            yield (y, net[0].weight.grad, net[0].obs.n, net[2].obs.lo)
        except ValueError as e:
            yield str(e)


@growing
def moe_capacity_loop(compiled):

    class Expert(nn.Module):
        def __init__(self, d, act):
            super().__init__()
            self.fc, self.act, self.seen = (nn.Linear(d, d), act, 0)

        def forward(self, x):
            self.seen += x.shape[0]
            return self.act(self.fc(x))

    class MoE(nn.Module):
        def __init__(self, d, n, k, cap):
            super().__init__()
            torch.manual_seed(0)
            self.gate = nn.Linear(d, n)
            self.experts = nn.ModuleList(
                Expert(d, a) for a in itertools.islice(itertools.cycle([torch.tanh, F.relu, torch.sin]), n)
            )
            self.k, self.cap, self.dropped = (k, cap, 0)

        def forward(self, x):
            p = self.gate(x).softmax(-1)
            w, idx = p.topk(self.k, -1)
            out = torch.zeros_like(x)
            for e, expert in enumerate(self.experts):
                rows, slot = (idx == e).nonzero(as_tuple=True)
                if rows.numel() == 0:
                    continue
                if rows.numel() > self.cap:
                    self.dropped += rows.numel() - self.cap
                    rows, slot = (rows[: self.cap], slot[: self.cap])
                out = out.index_add(0, rows, expert(x[rows]) * w[rows, slot, None])
            load = F.one_hot(idx, len(self.experts)).float().mean((0, 1))
            return (out, (load * p.mean(0)).sum() * len(self.experts))

    m = MoE(4, 3, 2, 4)
    f = compiled(m)
    for i in range(8):
        m.zero_grad()
        y, aux = f(data(i, 3 + i % 4, 4))
        (y.square().mean() + aux).backward()
        yield (
            y,
            aux,
            m.gate.weight.grad,
            m.dropped,
            [e.seen for e in m.experts],
            [None if e.fc.bias.grad is None else e.fc.bias.grad.clone() for e in m.experts],
        )


@growing
def triplet_semihard(compiled):

    class Miner:
        def __init__(self, margin):
            self.margin, self.history = (margin, collections.Counter())

        def __call__(self, emb, labels):
            d = torch.cdist(emb, emb)
            out = []
            for a, p in itertools.permutations(range(len(labels)), 2):
                if labels[a] != labels[p]:
                    continue
                neg = [
                    (float(d[a, n]), n)
                    for n in range(len(labels))
                    if labels[n] != labels[a] and d[a, n] < d[a, p] + self.margin
                ]
                if neg:
                    out.append((a, p, min(neg)[1]))
            self.history["triplets"] += len(out)
            return out

    m = Miner(0.3)

    def loss(emb, labels):
        ts = m(emb, labels)
        if not ts:
            return emb.sum() * 0
        a, p, n = map(list, zip(*ts))
        return F.triplet_margin_loss(emb[a], emb[p], emb[n], margin=0.3)

    f = compiled(loss)
    for i in range(7):
        e = data(i, 4, 2).requires_grad_()
        loss_now = f(e, [0, 0, 1, 1] if i % 2 else [0, 1, 0, 1])
        loss_now.backward()
        yield (loss_now, e.grad, dict(m.history))


@growing
def normalizing_flow_nll(compiled):

    class Coupling(nn.Module):
        def __init__(self, d, flip):
            super().__init__()
            self.net, self.flip = (nn.Sequential(nn.Linear(d // 2, 8), nn.Tanh(), nn.Linear(8, d)), flip)

        def forward(self, x, inverse=False):
            a, b = x.chunk(2, -1)
            if self.flip:
                a, b = (b, a)
            s, t = self.net(a).chunk(2, -1)
            s = s.tanh()
            b, ld = ((b - t) * (-s).exp(), -s.sum(-1)) if inverse else (b * s.exp() + t, s.sum(-1))
            return (torch.cat([b, a] if self.flip else [a, b], -1), ld)

    class ActNorm(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.register_buffer("ready", torch.tensor(False))
            self.loc, self.logs = (nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(d)))

        def forward(self, x, inverse=False):
            if not self.ready and self.training:
                with torch.no_grad():
                    self.loc.copy_(-x.mean(0))
                    self.logs.copy_(-(x.std(0) + 1e-06).log())
                    self.ready.fill_(True)
            if inverse:
                return (x * (-self.logs).exp() - self.loc, -self.logs.sum())
            return ((x + self.loc) * self.logs.exp(), self.logs.sum())

    torch.manual_seed(0)
    flow = nn.ModuleList(m for i in range(2) for m in (ActNorm(4), Coupling(4, bool(i % 2))))

    def nll(x, back):
        z, ld = (x, 0)
        for m in flow:
            z, more = m(z)
            ld = ld + more
        loss = (0.5 * z.square().sum(-1) - ld).mean()
        if back:
            y = z
            for m in reversed(flow):
                y, _ = m(y, inverse=True)
            return (loss, (y - x).abs().max() < 0.0001)
        return loss

    f = compiled(nll)
    opt = torch.optim.SGD(flow.parameters(), lr=0.01)
    for i in range(8):
        out = f(data(i, 5, 4), i % 3 == 2)
        opt.zero_grad()
        (out[0] if isinstance(out, tuple) else out).backward()
        opt.step()
        yield (out, flow[0].loc)


@steady
def ema_swap_context(compiled):

    class EMA:
        def __init__(self, model, decay):
            self.model, self.decay, self.shadow, self.n = (
                model,
                decay,
                {k: v.detach().clone() for k, v in model.named_parameters()},
                0,
            )

        @torch.no_grad()
        def update(self):
            self.n += 1
            d = min(self.decay, (1 + self.n) / (10 + self.n))
            for k, v in self.model.named_parameters():
                self.shadow[k].lerp_(v, 1 - d)

        @contextlib.contextmanager
        def applied(self):
            saved = {k: v.data for k, v in self.model.named_parameters()}
            try:
                for k, v in self.model.named_parameters():
                    v.data = self.shadow[k]
                yield self.model
            finally:
                for k, v in self.model.named_parameters():
                    v.data = saved[k]

    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    ema = EMA(net, 0.99)
    opt = torch.optim.AdamW(net.parameters(), lr=0.05)

    def step(x, y, evaluate):
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        ema.update()
        if evaluate:
            with ema.applied() as m, torch.no_grad():
                return (loss.item(), F.mse_loss(m(x), y).item())
        return (loss.item(), None)

    f = compiled(step)
    for i in range(10):
        yield (f(data(i, 4, 3), data(i + 1, 4, 1), i % 3 == 0), ema.shadow["weight"], net.weight)


@steady
def maml_second_order(compiled):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    meta = torch.optim.Adam(net.parameters(), lr=0.01)

    def outer(tasks, inner_lr, steps):
        total = 0.0
        for xs, ys, xq, yq in tasks:
            fast = dict(net.named_parameters())
            for _ in range(steps):
                loss = F.mse_loss(torch.func.functional_call(net, fast, (xs,)), ys)
                grads = torch.autograd.grad(loss, tuple(fast.values()), create_graph=True)
                fast = {k: v - inner_lr * g for (k, v), g in zip(fast.items(), grads)}
            total = total + F.mse_loss(torch.func.functional_call(net, fast, (xq,)), yq)
        meta.zero_grad()
        (total / len(tasks)).backward()
        meta.step()
        return total.item()

    f = compiled(outer)
    for i in range(7):
        yield (
            f(
                [
                    (
                        data(10 * i + k, 4, 1),
                        data(10 * i + k + 1, 4, 1),
                        data(10 * i + k + 2, 4, 1),
                        data(10 * i + k + 3, 4, 1),
                    )
                    for k in range(2)
                ],
                0.1,
                1 + i % 2,
            ),
            net[0].weight,
        )


@growing
def gan_alternating(compiled):
    torch.manual_seed(0)
    G, D = (nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1)))
    og, od = (torch.optim.Adam(G.parameters(), lr=0.02), torch.optim.Adam(D.parameters(), lr=0.02))
    log = []

    def step(real, i):
        z = torch.randn(real.shape[0], 2)
        fake = G(z)
        od.zero_grad()
        ld = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
        eps = torch.rand(real.shape[0], 1)
        mix = (eps * real + (1 - eps) * fake.detach()).requires_grad_()
        (g,) = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
        (ld + 0.1 * ((g.norm(dim=1) - 1) ** 2).mean()).backward()
        od.step()
        if i % 2 == 0:
            for q in D.parameters():
                q.requires_grad_(False)
            og.zero_grad()
            lg = F.softplus(-D(G(z))).mean()
            lg.backward()
            og.step()
            for q in D.parameters():
                q.requires_grad_(True)
            log.append(("g", round(lg.item(), 3)))
        log.append(("d", round(ld.item(), 3)))
        return len(log)

    f = compiled(step)
    for i in range(8):
        yield (f(data(i, 4, 3), i), log[-2:], G.weight)


@growing
def amp_like_scaler(compiled):

    class Scaler:
        def __init__(self):
            self.scale, self.good, self.skipped = (1024.0, 0, 0)

        def step(self, opt, loss):
            opt.zero_grad()
            (loss * self.scale).backward()
            grads = [p.grad for g in opt.param_groups for p in g["params"] if p.grad is not None]
            bad = any(not torch.isfinite(g).all() for g in grads)
            if bad:
                self.scale /= 2
                self.good = 0
                self.skipped += 1
                return False
            torch._foreach_mul_(grads, 1 / self.scale)
            opt.step()
            self.good += 1
            if self.good % 3 == 0:
                self.scale *= 2
            return True

    torch.manual_seed(0)
    net = nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    sc = Scaler()

    def step(x):
        return sc.step(opt, net(x).square().mean())

    f = compiled(step)
    for i in range(10):
        yield (f(data(i, 3, 2) * (float("inf") if i in (2, 5) else 1)), sc.scale, sc.skipped, net.weight)
