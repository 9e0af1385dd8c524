"""Programs from research code: samplers, generation, replay buffers, message passing, routers and mining losses, each
called repeatedly while its state changes."""

from __future__ import annotations

import abc
import collections
import dataclasses
import math
import random
import typing

import torch
import torch.nn.functional as F
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


# ------------------------------------------------------------------------------------------------ diffusion


@steady
def ddpm_sampler(compiled):
    class Schedule:
        def __init__(self, steps, kind="cosine"):
            self.steps = steps
            if kind == "cosine":
                t = torch.linspace(0, 1, steps + 1)
                bar = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
                self.betas = (1 - bar[1:] / bar[:-1]).clamp(max=0.999)
            else:
                self.betas = torch.linspace(1e-4, 0.02, steps)
            self.alphas = 1 - self.betas
            self.bars = torch.cumprod(self.alphas, 0)

        def extract(self, name, t, shape):
            out = getattr(self, name).gather(0, t)
            return out.reshape(t.shape[0], *((1,) * (len(shape) - 1)))

    class Eps(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Embedding(10, 4)
            self.net = nn.Linear(4, 4)

        def forward(self, x, t):
            return self.net(torch.tanh(x + self.time(t)))

    torch.manual_seed(3)
    s, net = Schedule(10), Eps()

    @torch.no_grad()
    def p_sample(x, i):
        t = torch.full((x.shape[0],), i, dtype=torch.long)
        beta, bar = s.extract("betas", t, x.shape), s.extract("bars", t, x.shape)
        alpha = s.extract("alphas", t, x.shape)
        mean = (x - beta / torch.sqrt(1 - bar) * net(x, t)) / torch.sqrt(alpha)
        if i == 0:
            return mean
        return mean + torch.sqrt(beta) * torch.randn_like(x)

    step = compiled(p_sample)
    for n in (3, 2):
        x = data(n, n, 4)
        for i in reversed(range(s.steps)):
            x = step(x, i)
        yield x
    yield step(data(7, 5, 4), 4)


@steady
def dpm_multistep(compiled):
    class Solver:
        order = 2

        def __init__(self, sigmas):
            self.sigmas, self.outputs, self.index, self.lower = sigmas, [None] * self.order, 0, 0

        def step(self, out, x):
            self.outputs = self.outputs[1:] + [out]
            s, nxt = self.sigmas[self.index], self.sigmas[self.index + 1]
            h = math.log(s) - math.log(nxt)
            if self.lower < 1 or self.outputs[0] is None:
                x = x * (nxt / s) + out * (1 - math.exp(-h))
            else:
                before = self.sigmas[self.index - 1]
                r = (math.log(before) - math.log(s)) / h
                d1 = (self.outputs[-1] - self.outputs[-2]) / r
                x = x * (nxt / s) + (out + 0.5 * d1) * (1 - math.exp(-h))
            self.lower = min(self.lower + 1, self.order)
            self.index += 1
            return x

    net = nn.Linear(3, 3)
    nn.init.eye_(net.weight)
    solver = Solver([14.0 * 0.8**i for i in range(24)])

    @torch.no_grad()
    @compiled
    def denoise(x, guidance):
        cond, uncond = net(torch.cat([x, -x])).chunk(2)
        return solver.step(uncond + guidance * (cond - uncond), x)

    x = data(1, 2, 3)
    for i in range(22):
        x = denoise(x, 1.5 + 0.1 * i)
        yield x, solver.index, solver.lower


# ------------------------------------------------------------------------------------------------ generation


class Tiny(nn.Module):
    def __init__(self, vocab=11, width=6):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab, width), nn.Linear(width, vocab)

    def forward(self, ids, cache=None):
        h = self.embed(ids)
        h = h if cache is None else torch.cat([cache, h], 1)
        return self.head(torch.tanh(h.cumsum(1)))[:, -ids.shape[1] :], h


@steady
def speculative_decoding(compiled):
    torch.manual_seed(5)
    draft, target = Tiny(), Tiny()

    @dataclasses.dataclass
    class Stats:
        drafted: int = 0
        accepted: int = 0

        @property
        def rate(self):
            return self.accepted / max(1, self.drafted)

    stats = Stats()

    @torch.no_grad()
    def propose(ids, k):
        out = ids
        for _ in range(k):
            out = torch.cat([out, draft(out)[0][:, -1:].argmax(-1)], 1)
        return out

    @torch.no_grad()
    def verify(ids, proposed):
        n = ids.shape[1]
        choices = target(proposed)[0][:, n - 1 :].argmax(-1)
        given = proposed[:, n:]
        agree = int((choices[:, :-1] == given).long().cumprod(1).sum())
        stats.drafted += given.shape[1]
        stats.accepted += agree
        return torch.cat([ids, given[:, :agree], choices[:, agree : agree + 1]], 1)

    propose, verify = compiled(propose), compiled(verify)
    ids = torch.tensor([[1, 2]])
    for _ in range(10):
        ids = verify(ids, propose(ids, 3))
        yield ids, stats, round(stats.rate, 4)


@steady
def generated_tokens_in_a_list(compiled):
    torch.manual_seed(2)
    net = Tiny()

    @torch.no_grad()
    @compiled
    def next_token(tokens, cache, temperature):
        logits, cache = net(torch.tensor([[tokens[-1]]]), cache)
        logits = logits[0, -1] / temperature
        k = torch.topk(logits, 5)
        token = k.indices[torch.softmax(k.values, 0).argmax()].item()
        tokens.append(token)
        return cache, len(tokens)

    tokens, cache = [1, 4], None
    for i in range(80):
        cache, n = next_token(tokens, cache, 0.7 + 0.05 * i)
        yield n, list(tokens)


@growing
def logits_processors(compiled):
    class Processor(abc.ABC):
        @abc.abstractmethod
        def __call__(self, ids, scores): ...

    class Temperature(Processor):
        def __init__(self, t):
            self.t = t

        def __call__(self, ids, scores):
            return scores / self.t

    class Repetition(Processor):
        def __init__(self, penalty):
            self.penalty = penalty

        def __call__(self, ids, scores):
            score = torch.gather(scores, 1, ids)
            score = torch.where(score < 0, score * self.penalty, score / self.penalty)
            return scores.scatter(1, ids, score)

    class TopP(Processor):
        def __init__(self, p):
            self.p = p

        def __call__(self, ids, scores):
            ordered, at = torch.sort(scores, descending=False)
            remove = ordered.softmax(-1).cumsum(-1) <= 1 - self.p
            remove[..., -1:] = 0
            return scores.masked_fill(remove.scatter(1, at, remove), -float("inf"))

    class MinLength(Processor):
        def __init__(self, n, eos):
            self.n, self.eos = n, eos

        def __call__(self, ids, scores):
            if ids.shape[-1] < self.n:
                scores[:, self.eos] = -float("inf")
            return scores

    class Chain(list):
        def __call__(self, ids, scores, **kwargs):
            for processor in self:
                scores = processor(ids, scores)
            return scores

    chain = Chain([Temperature(0.8), Repetition(1.3), MinLength(6, 0), TopP(0.9)])
    step = compiled(lambda ids, logits: torch.multinomial(chain(ids, logits.clone()).softmax(-1), 1))
    ids = torch.tensor([[1], [3]])
    for i in range(10):
        ids = torch.cat([ids, step(ids, data(i, 2, 9))], 1)
        if i == 5:
            chain[0].t = 1.2
        if i == 7:
            chain.pop(1)
        yield ids


@steady
def beam_search_tensors(compiled):
    torch.manual_seed(2)
    net = Tiny()

    @torch.no_grad()
    def advance(ids, scores, done, eos, penalty):
        beams, vocab = ids.shape[0], net.head.out_features
        logp = net(ids)[0][:, -1].log_softmax(-1)
        frozen = torch.full_like(logp, -1e9)
        frozen[:, eos] = 0
        total = scores[:, None] + torch.where(done[:, None], frozen, logp)
        _, at = (total / ids.shape[1] ** penalty).view(-1).topk(beams)
        rows, tokens = torch.div(at, vocab, rounding_mode="floor"), at % vocab
        ids = torch.cat([ids[rows], tokens[:, None]], 1)
        done = done[rows] | (tokens == eos)
        return ids, total.view(-1)[at], done, bool(done.all())

    step = compiled(advance)
    ids, scores, done = torch.tensor([[1]] * 3), torch.tensor([0.0, -1e9, -1e9]), torch.zeros(3, dtype=torch.bool)
    for _ in range(10):
        ids, scores, done, stop = step(ids, scores, done, 4, 0.7)
        yield ids, scores, stop


# ------------------------------------------------------------------------------------------------ learning by acting


@steady
def gae_and_ppo(compiled):
    torch.manual_seed(1)
    policy, value = nn.Linear(3, 2), nn.Linear(3, 1)

    class Rollout:
        def __init__(self, n):
            self.n = n
            self.reset()

        def reset(self):
            self.obs, self.acts, self.logp, self.rews, self.vals = [], [], [], [], []

        def add(self, **kw):
            for name, item in kw.items():
                getattr(self, name).append(item)

        def full(self):
            return len(self.obs) == self.n

    buffer = Rollout(4)

    @compiled
    def act(obs):
        with torch.no_grad():
            dist = torch.distributions.Categorical(logits=policy(obs))
            a = dist.sample()
            buffer.add(obs=obs, acts=a, logp=dist.log_prob(a), vals=value(obs).squeeze(-1))
        return a

    @compiled
    def losses(last, gamma, lam, clip=0.2):
        vals = torch.stack(buffer.vals)
        rews = torch.tensor(buffer.rews)
        adv, gae = torch.zeros_like(vals), torch.zeros(())
        for t in reversed(range(buffer.n)):
            nxt = last if t == buffer.n - 1 else vals[t + 1]
            gae = rews[t] + gamma * nxt - vals[t] + gamma * lam * gae
            adv[t] = gae
        obs, acts = torch.stack(buffer.obs), torch.stack(buffer.acts)
        dist = torch.distributions.Categorical(logits=policy(obs))
        ratio = (dist.log_prob(acts) - torch.stack(buffer.logp)).exp()
        norm = (adv - adv.mean()) / (adv.std() + 1e-8)
        surrogate = torch.min(ratio * norm, ratio.clamp(1 - clip, 1 + clip) * norm).mean()
        return -surrogate + F.mse_loss(value(obs).squeeze(-1), adv + vals) - 0.01 * dist.entropy().mean()

    opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], 0.05)
    for i in range(16):
        act(data(i, 3))
        buffer.rews.append(0.25 * (i % 3))
        if buffer.full():
            loss = losses(torch.tensor(0.1), 0.99, 0.95)
            opt.zero_grad()
            loss.backward()
            opt.step()
            buffer.reset()
            yield loss, policy.weight


@steady
def ring_buffer_of_tensors(compiled):
    class Ring:
        def __init__(self, capacity, width):
            self.store, self.at, self.size = torch.zeros(capacity, width), 0, 0

        def push(self, rows):
            n = rows.shape[0]
            where = (torch.arange(n) + self.at) % len(self.store)
            self.store[where] = rows
            self.at = (self.at + n) % len(self.store)
            self.size = min(self.size + n, len(self.store))

        def sample(self, k):
            return self.store[torch.randint(0, self.size, (k,))]

        def __len__(self):
            return self.size

    ring = Ring(10, 3)

    @compiled
    def step(x):
        ring.push(x)
        if len(ring) >= 4:
            return ring.sample(4).mean(0), ring.at
        return x.mean(0), ring.at

    for i in range(14):
        yield step(data(i, 1 + i % 3, 3)), len(ring)


@growing
def transitions_as_named_tuples(compiled):
    class Transition(typing.NamedTuple):
        state: torch.Tensor
        action: int
        reward: float
        done: bool = False

    memory = collections.deque(maxlen=6)
    rng = random.Random(0)
    q = nn.Linear(2, 3)
    nn.init.constant_(q.weight, 0.1)

    @compiled
    def observe(s, a, r):
        memory.append(Transition(s, a, r, done=r > 1.0))
        return len(memory)

    @compiled
    def learn(batch, gamma):
        batch = Transition(*zip(*batch))
        s, r = torch.stack(batch.state), torch.tensor(batch.reward)
        a, d = torch.tensor(batch.action), torch.tensor(batch.done).float()
        with torch.no_grad():
            goal = r + gamma * (1 - d) * q(s).max(1).values
        return F.smooth_l1_loss(q(s).gather(1, a[:, None])[:, 0], goal)

    for i in range(14):
        n = observe(data(i, 2), i % 3, 0.2 * (i % 7))
        yield n, learn(rng.sample(list(memory), min(n, 3)), 0.9)


@steady
def epsilon_greedy_with_random(compiled):
    rng = random.Random(4)
    net = nn.Linear(2, 4)
    nn.init.constant_(net.bias, 0.5)

    @dataclasses.dataclass
    class Agent:
        eps: float = 1.0
        decay: float = 0.9
        floor: float = 0.05
        counts: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(int))

        def act(self, obs):
            self.eps = max(self.floor, self.eps * self.decay)
            if rng.random() < self.eps:
                action = rng.randrange(4)
                self.counts["random"] += 1
            else:
                with torch.no_grad():
                    action = int(net(obs).argmax())
                self.counts["greedy"] += 1
            return action, obs * action

    agent = Agent()
    f = compiled(agent.act)
    for i in range(20):
        yield f(data(i, 2)), agent.eps, dict(agent.counts)


# ------------------------------------------------------------------------------------------------ graphs


@steady
def message_passing(compiled):
    class Conv(nn.Module):
        def __init__(self, aggr="sum"):
            super().__init__()
            self.aggr, self.lin = aggr, nn.Linear(6, 3)

        def message(self, src, dst, weight=None):
            out = self.lin(torch.cat([src, dst - src], -1))
            return out if weight is None else out * weight[:, None]

        def aggregate(self, msg, index, n):
            out = torch.zeros(n, msg.shape[1])
            if self.aggr == "mean":
                count = torch.zeros(n).index_add_(0, index, torch.ones(len(index))).clamp_(min=1)
                return out.index_add_(0, index, msg) / count[:, None]
            if self.aggr == "max":
                idx = index[:, None].expand_as(msg)
                return out.scatter_reduce(0, idx, msg, "amax", include_self=False)
            return out.index_add_(0, index, msg)

        def forward(self, x, edges, **kwargs):
            src, dst = edges
            return F.relu(self.aggregate(self.message(x[src], x[dst], **kwargs), dst, x.size(0)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList([Conv("sum"), Conv("mean"), Conv("max")])
            self.jumps = []

        def forward(self, x, edges, batch):
            self.jumps.clear()
            for i, conv in enumerate(self.convs):
                x = x + conv(x, edges, **({"weight": torch.ones(edges.shape[1])} if i == 1 else {}))
                self.jumps.append(x.detach().norm())
            n = int(batch.max()) + 1
            return torch.zeros(n, x.shape[1]).index_add(0, batch, x)

    torch.manual_seed(0)
    net = Net()
    f = compiled(net)
    for i in range(8):
        n, e = 4 + i % 3, 6 + i % 4
        g = torch.Generator().manual_seed(i)
        edges = torch.randint(0, n, (2, e), generator=g)
        batch = torch.sort(torch.randint(0, 2, (n,), generator=g)).values
        out = f(data(i, n, 3), edges, batch)
        out.sum().backward()
        yield out, len(net.jumps), net.convs[0].lin.weight.grad


@steady
def heterogeneous_graph(compiled):
    class HeteroConv(nn.Module):
        def __init__(self, relations):
            super().__init__()
            self.convs = nn.ModuleDict({"__".join(r): nn.Linear(2, 2) for r in relations})

        def forward(self, x_dict, edge_dict):
            out = collections.defaultdict(list)
            for relation, (src, dst) in edge_dict.items():
                s, _, d = relation
                if "__".join(relation) not in self.convs:
                    continue
                h = self.convs["__".join(relation)](x_dict[s])[src]
                out[d].append(torch.zeros_like(x_dict[d]).index_add(0, dst, h))
            return {k: torch.stack(v).sum(0).relu() for k, v in out.items()}

    torch.manual_seed(0)
    relations = [("user", "buys", "item"), ("item", "of", "user"), ("user", "knows", "user")]
    net = HeteroConv(relations)
    f = compiled(net)
    for i in range(8):
        g = torch.Generator().manual_seed(i)
        x = {"user": data(i, 3 + i % 2, 2), "item": data(i + 50, 4, 2)}
        edges = {}
        for r in relations:
            sizes = [len(x[r[0]]), len(x[r[2]])]
            edges[r] = [torch.randint(0, n, (5 + i % 3,), generator=g) for n in sizes]
        yield f(x, edges)


# ------------------------------------------------------------------------------------------------ routers, losses


@steady
def switch_router_with_capacity(compiled):
    class Experts(nn.Module):
        def __init__(self, n=3, width=4):
            super().__init__()
            self.gate = nn.Linear(width, n, bias=False)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width)) for _ in range(n)
            )
            self.register_buffer("load", torch.zeros(n))
            self.aux = None

        def forward(self, x):
            flat = x.reshape(-1, x.shape[-1])
            probs = self.gate(flat).softmax(-1)
            w, at = probs.topk(2, -1)
            w = w / w.sum(-1, keepdim=True)
            out = torch.zeros_like(flat)
            mask = F.one_hot(at, len(self.experts)).permute(2, 1, 0)
            for i, expert in enumerate(self.experts):
                slot, token = torch.where(mask[i])
                if token.numel() == 0:
                    continue
                out.index_add_(0, token, expert(flat[token]) * w[token, slot, None])
            with torch.no_grad():
                self.load.mul_(0.9).add_(mask.sum((1, 2)) * 0.1)
            self.aux = (probs.mean(0) * mask.float().mean((1, 2))).sum() * len(self.experts)
            return out.view_as(x)

    torch.manual_seed(4)
    net = Experts()
    f = compiled(net)
    for i in range(8):
        y = f(data(i, 2, 3 + i % 3, 4))
        (y.pow(2).mean() + 0.01 * net.aux).backward()
        yield y, net.load, net.aux, net.gate.weight.grad


@growing
def triplet_mining(compiled):
    class Miner:
        def __init__(self, margin, kind="hard"):
            self.margin, self.kind, self.mined = margin, kind, 0

        def __call__(self, z, y):
            d = torch.cdist(z, z)
            same = y[:, None] == y[None]
            eye = torch.eye(len(y), dtype=torch.bool)
            if self.kind == "hard":
                pos = d.masked_fill(~same | eye, float("-inf")).max(1).values
                neg = d.masked_fill(same, float("inf")).min(1).values
                keep = torch.isfinite(pos) & torch.isfinite(neg)
                loss = F.relu(pos[keep] - neg[keep] + self.margin)
            else:
                a, p = torch.where(same & ~eye)
                loss = F.relu(d[a, p] - d[a].masked_fill(same[a], 9.0).min(1).values + self.margin)
            self.mined += int((loss > 0).sum())
            return loss.sum() / max(loss.numel(), 1)

    miner = Miner(0.5)
    net = nn.Linear(3, 2)
    nn.init.eye_(net.weight)
    f = compiled(lambda x, y: miner(net(x), y))
    for i in range(9):
        if i == 5:
            miner.kind = "all"
        n = 5 + i % 3
        y = torch.randint(0, 3, (n,), generator=torch.Generator().manual_seed(i))
        loss = f(data(i, n, 3), y)
        loss.backward()
        yield loss, miner.mined, net.weight.grad


@steady
def contrastive_queue(compiled):
    class MoCo(nn.Module):
        def __init__(self, dim=3, size=8, m=0.9):
            super().__init__()
            self.q, self.k = nn.Linear(4, dim), nn.Linear(4, dim)
            for a, b in zip(self.q.parameters(), self.k.parameters()):
                b.data.copy_(a.data)
                b.requires_grad = False
            self.m = m
            self.register_buffer("queue", F.normalize(torch.ones(dim, size), dim=0))
            self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

        @torch.no_grad()
        def momentum(self):
            for a, b in zip(self.q.parameters(), self.k.parameters()):
                b.data = b.data * self.m + a.data * (1.0 - self.m)

        @torch.no_grad()
        def enqueue(self, keys):
            n, at = keys.shape[0], int(self.ptr)
            self.queue[:, at : at + n] = keys.T
            self.ptr[0] = (at + n) % self.queue.shape[1]

        def forward(self, a, b):
            q = F.normalize(self.q(a), dim=1)
            with torch.no_grad():
                self.momentum()
                k = F.normalize(self.k(b), dim=1)
            pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
            neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
            logits = torch.cat([pos, neg], 1) / 0.2
            self.enqueue(k)
            return logits, torch.zeros(logits.shape[0], dtype=torch.long)

    torch.manual_seed(0)
    net = MoCo()
    opt = torch.optim.SGD(net.q.parameters(), 0.1)
    f = compiled(net)
    for i in range(10):
        opt.zero_grad()
        loss = F.cross_entropy(*f(data(i, 2, 4), data(i + 20, 2, 4)))
        loss.backward()
        opt.step()
        yield loss, net.queue, net.ptr


@growing
def focal_with_ignored(compiled):
    class Focal(nn.Module):
        def __init__(self, gamma=2.0, alpha=None, reduction="mean", ignore=-100):
            super().__init__()
            if alpha is not None and not isinstance(alpha, torch.Tensor):
                alpha = torch.tensor(alpha)
            self.gamma, self.alpha, self.reduction, self.ignore = gamma, alpha, reduction, ignore

        def __repr__(self):
            return f"{type(self).__name__}({self.gamma})"

        def forward(self, x, y):
            if x.ndim > 2:
                c = x.shape[1]
                x = x.permute(0, *range(2, x.ndim), 1).reshape(-1, c)
                y = y.view(-1)
            keep = y != self.ignore
            y = y[keep]
            if len(y) == 0:
                return torch.tensor(0.0)
            x = x[keep]
            logp = F.log_softmax(x, -1)
            ce = F.nll_loss(logp, y, weight=self.alpha, reduction="none")
            pt = logp[torch.arange(len(x)), y].exp()
            loss = (1 - pt) ** self.gamma * ce
            return getattr(loss, self.reduction)() if self.reduction != "none" else loss

    net = Focal(alpha=[1.0, 2.0, 0.5])
    f = compiled(net)
    for i in range(10):
        if i == 6:
            net.reduction = "sum"
        g = torch.Generator().manual_seed(i)
        shape = (2, 3, 4) if i % 2 else (6, 3)
        y = torch.randint(0, 3, (shape[0], *shape[2:]), generator=g)
        y[y == i % 3] = -100
        yield f(data(i, *shape).requires_grad_(), y)
    yield f(data(0, 2, 3), torch.full((2,), -100))
