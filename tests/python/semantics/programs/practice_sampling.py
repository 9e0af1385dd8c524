"""Programs of inference from research code: samplers, solvers, searches, trackers, tokenizers, frames of audio."""

from __future__ import annotations

import abc
import collections
import dataclasses
import heapq
import itertools
import math
import re
import struct

import torch
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@growing
def ode_adaptive(compiled):

    class Solver:
        A = [[], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9]]

        def __init__(self, f, rtol=0.01):
            self.f, self.rtol, self.accepted, self.rejected, self.h = (f, rtol, 0, 0, 0.3)

        def stages(self, t, y, h):
            ks = []
            for row in self.A:
                yi = y
                for a, k in zip(row, ks):
                    yi = yi + h * a * k
                ks.append(self.f(t + h * sum(row), yi))
            return ks

        def solve(self, y, t0, t1):
            t, traj = (t0, [y])
            while t < t1:
                h = min(self.h, t1 - t)
                ks = self.stages(t, y, h)
                hi = y + h * (0.1 * ks[0] + 0.3 * ks[1] + 0.2 * ks[2] + 0.4 * ks[3])
                lo = y + h * (0.2 * ks[0] + 0.2 * ks[1] + 0.3 * ks[2] + 0.3 * ks[3])
                err = (hi - lo).abs().max() / (self.rtol * (1 + y.abs().max()))
                if err <= 1:
                    t, y = (t + h, hi)
                    traj.append(y)
                    self.accepted += 1
                    self.h = h * min(2.0, 0.9 * float(err + 1e-08) ** (-0.25))
                else:
                    self.rejected += 1
                    self.h = h * max(0.2, 0.9 * float(err) ** (-0.25))
            return (torch.stack(traj), round(t, 5))

    s = Solver(lambda t, y: -y * 3 + math.cos(t))
    f = compiled(s.solve)
    for i in range(8):
        traj, t = f(data(i, 2), 0.0, 1.0 + 0.1 * i)
        yield (traj[-1], t, len(traj), s.accepted, s.rejected, round(s.h, 4))


@growing
def speculative_tree(compiled):

    @dataclasses.dataclass(order=True)
    class Node:
        score: float
        token: int = dataclasses.field(compare=False)
        parent: Node | None = dataclasses.field(default=None, compare=False, repr=False)
        depth: int = dataclasses.field(default=0, compare=False)

        @property
        def path(self):
            node, out = (self, [])
            while node is not None:
                out.append(node.token)
                node = node.parent
            return out[::-1]

    torch.manual_seed(1)
    emb = nn.Embedding(11, 11)

    @torch.no_grad()
    def search(start, width, depth):
        heap = [Node(0.0, start)]
        for _ in range(depth):
            cand = []
            toks = torch.tensor([n.token for n in heap])
            lp = emb(toks).log_softmax(-1)
            val, idx = lp.topk(width, -1)
            for n, vs, ts in zip(heap, val.tolist(), idx.tolist()):
                for v, t in zip(vs, ts):
                    cand.append(Node(round(n.score - v, 4), t, n, n.depth + 1))
            heap = heapq.nsmallest(width, cand)
        best = min(heap)
        return (best.path, best.score, repr(best), [n.token for n in heap])

    f = compiled(search)
    for i in range(8):
        yield f(i % 11, 2 + i % 2, 3)


@growing
def tracker_assign(compiled):

    class Track:
        _ids = itertools.count(1)

        def __init__(self, box):
            self.id, self.box, self.age, self.hits = (next(Track._ids), box, 0, 1)

        def update(self, box):
            self.box = 0.7 * self.box + 0.3 * box
            self.age = 0
            self.hits += 1

    def iou(a, b):
        lt = torch.max(a[:, None, :2], b[None, :, :2])
        rb = torch.min(a[:, None, 2:], b[None, :, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[..., 0] * wh[..., 1]

        def area(t):
            return (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])

        return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-06)

    class Tracker:
        def __init__(self):
            self.tracks, self.lost = ([], [])

        def step(self, dets):
            unmatched = set(range(len(dets)))
            if self.tracks:
                m = iou(torch.stack([t.box for t in self.tracks]), dets)
                pairs = sorted(
                    ((float(m[i, j]), i, j) for i in range(m.shape[0]) for j in range(m.shape[1])), reverse=True
                )
                used = set()
                for s, i, j in pairs:
                    if s < 0.1:
                        break
                    if i in used or j not in unmatched:
                        continue
                    self.tracks[i].update(dets[j])
                    used.add(i)
                    unmatched.discard(j)
            for t in self.tracks:
                t.age += 1
            for j in sorted(unmatched):
                self.tracks.append(Track(dets[j]))
            self.lost += [t.id for t in self.tracks if t.age > 2]
            self.tracks = [t for t in self.tracks if t.age <= 2]
            return {t.id: t.box for t in self.tracks}

    tr = Tracker()
    f = compiled(tr.step)
    for i in range(8):
        xy = data(i // 2, 2 + i % 2, 2).abs() * 4 + 0.1 * i
        yield (f(torch.cat([xy, xy + 3], 1)), list(tr.lost), [t.hits for t in tr.tracks])


@growing
def diffusion_schedulers(compiled):

    class Scheduler(abc.ABC):
        def __init__(self, n):
            self.n, self.betas = (n, torch.linspace(0.001, 0.2, n))
            self.abar = (1 - self.betas).cumprod(0)

        @abc.abstractmethod
        def step(self, x, eps, t, prev): ...

        @property
        def timesteps(self):
            return list(reversed(range(0, self.n, 2)))

    class DDIM(Scheduler):
        def __init__(self, n, eta=0.0):
            super().__init__(n)
            self.eta = eta

        def step(self, x, eps, t, prev):
            a, ap = (self.abar[t], self.abar[prev] if prev >= 0 else torch.tensor(1.0))
            x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            s = self.eta * ((1 - ap) / (1 - a) * (1 - a / ap)).sqrt()
            return ap.sqrt() * x0 + (1 - ap - s**2).clamp_min(0).sqrt() * eps + s * torch.randn_like(x)

    class Euler(Scheduler):
        def step(self, x, eps, t, prev):
            def sig(i):
                return ((1 - self.abar[i]) / self.abar[i]).sqrt() if i >= 0 else torch.tensor(0.0)

            return x + eps * (sig(prev) - sig(t))

    torch.manual_seed(1)
    net = nn.Linear(4, 4)

    def sample(x, sched, guidance, callback=None):
        for i, (t, prev) in enumerate(itertools.zip_longest(sched.timesteps, sched.timesteps[1:], fillvalue=-1)):
            c, u = (net(x), net(x * 0))
            x = sched.step(x, u + guidance * (c - u), t, prev)
            if callback is not None and callback(i, x):
                break
        return x

    seen = []
    f = compiled(torch.no_grad()(sample))
    for i in range(8):
        sched = [DDIM(6), Euler(6), DDIM(8, 0.5)][i % 3]
        torch.manual_seed(i)
        yield (
            f(
                data(i, 2, 4),
                sched,
                1.0 + i,
                (lambda k, x: seen.append((k, round(float(x.mean()), 3))) or k == 2) if i % 2 else None,
            ),
            list(seen),
        )


@growing
def gnn_sampler(compiled):

    class Graph:
        def __init__(self, edges):
            self.adj = collections.defaultdict(set)
            [self.add(*e) for e in edges]

        def add(self, a, b):
            self.adj[a].add(b)
            self.adj[b].add(a)

        def hops(self, start, k):
            seen, frontier = ({start}, [start])
            for _ in range(k):
                frontier = sorted(set(itertools.chain.from_iterable(self.adj[n] for n in frontier)) - seen)
                seen.update(frontier)
                yield frontier

    g = Graph([(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6)])
    torch.manual_seed(0)
    lin = nn.Linear(3, 3)
    feats = data(7, 8, 3)

    def embed(start, k, gate):
        h = feats[start]
        for depth, nodes in enumerate(g.hops(start, k)):
            if not nodes:
                break
            m = lin(feats[nodes]).mean(0)
            if (m.norm() > gate).item():
                h = h + m / (depth + 1)
            else:
                h = h * 0.5
        return (h, sorted(g.adj))

    f = compiled(embed)
    for i in range(9):
        if i == 4:
            g.add(3, 7)
        yield f(i % 3, 1 + i % 3, 0.1 * i)


@steady
def viterbi_generator(compiled):

    def lattice(em, trans):
        score, back = (em[0], [])
        while True:
            cmd = yield score
            if cmd is None:
                break
            total = score[:, None] + trans + cmd
            score, ptr = total.max(0)
            back.append(ptr)
        path = [int(score.argmax())]
        for ptr in reversed(back):
            path.append(int(ptr[path[-1]]))
        return path[::-1]

    def decode(em, trans):
        g = lattice(em, trans)
        next(g)
        for e in em[1:]:
            g.send(e)
        try:
            g.send(None)
        except StopIteration as stop:
            return (stop.value, g.gi_frame is None)

    f = compiled(decode)
    for i in range(8):
        yield f(data(i, 4, 3), data(i + 20, 3, 3))


@growing
def bpe_tokenizer(compiled):

    class BPE:
        def __init__(self, merges):
            self.ranks = {tuple(m.split()): i for i, m in enumerate(merges)}
            self.cache = {}

        def __call__(self, word):
            if word in self.cache:
                return self.cache[word]
            parts = list(word)
            while len(parts) > 1:
                pair = min(itertools.pairwise(parts), key=lambda q: self.ranks.get(q, 1000000000.0))
                if pair not in self.ranks:
                    break
                out, i = ([], 0)
                while i < len(parts):
                    if tuple(parts[i : i + 2]) == pair:
                        out.append("".join(pair))
                        i += 2
                    else:
                        out.append(parts[i])
                        i += 1
                parts = out
            self.cache[word] = parts
            return parts

    bpe = BPE(["l o", "lo w", "e r", "n e", "ne w"])
    vocab = collections.defaultdict(itertools.count().__next__)
    torch.manual_seed(0)
    emb = nn.Embedding(40, 3)

    def encode(text, scale):
        ids = [vocab[t] for w in text.split() for t in bpe(w)]
        return (emb(torch.tensor(ids)).mean(0) * scale, ids, len(bpe.cache))

    f = compiled(encode)
    for i, t in enumerate(["low lower", "new newer low", "slow", "low lower", "er er", "wool", "newest low", "low"]):
        yield f(t, 1.0 + i)


@growing
def counter_histograms(compiled):

    class Vocab:
        def __init__(self):
            self.counts, self.index = (collections.Counter(), {"<unk>": 0})

        def update(self, text):
            words = re.findall("\\w+", text.lower())
            self.counts.update(words)
            for w in words:
                self.index.setdefault(w, len(self.index))
            return words

        def encode(self, words):
            return [self.index.get(w, 0) for w in words]

    v = Vocab()
    torch.manual_seed(0)
    emb = torch.randn(64, 3)

    def embed(text, extra):
        ids = v.encode(v.update(text))
        w = torch.tensor([1.0 / v.counts[k] for k in re.findall("\\w+", text.lower())])
        e = emb[torch.tensor(ids)]
        return ((e * w[:, None]).sum(0) + extra, v.counts.most_common(2), len(v.index))

    f = compiled(embed)
    for i, t in enumerate(
        [
            "the cat sat",
            "The dog ran off",
            "a cat and a dog",
            "sat the mat",
            "one two three four",
            "five cat six",
            "seven the",
            "x y z the",
        ]
    ):
        yield f(t, data(i, 3))


@growing
def nms_soft_classes(compiled):

    def iou(b, bs):
        lt, rb = (torch.max(b[:2], bs[:, :2]), torch.min(b[2:], bs[:, 2:]))
        wh = (rb - lt).clamp(min=0)
        i = wh.prod(1)
        return i / ((b[2:] - b[:2]).prod() + (bs[:, 2:] - bs[:, :2]).prod(1) - i)

    def post(boxes, scores, labels, thr):
        keep = collections.defaultdict(list)
        for c in labels.unique().tolist():
            idx = (labels == c).nonzero().squeeze(1)
            order = idx[scores[idx].argsort(descending=True)]
            while len(order):
                i, order = (order[0], order[1:])
                keep[c].append(i.item())
                if len(order) == 0:
                    break
                order = order[iou(boxes[i], boxes[order]) < thr]
        flat = sorted(itertools.chain(*keep.values()), key=lambda i: -scores[i].item())
        return (boxes[flat], {k: len(v) for k, v in keep.items()}, flat)

    f = compiled(post)
    for i in range(8):
        xy = data(i, 6, 2).abs() * 3
        yield f(torch.cat([xy, xy + 2], 1), data(i + 1, 6).sigmoid(), torch.arange(6) % (1 + i % 3), 0.2)


@steady
def struct_audio_frames(compiled):

    class Ring:
        def __init__(self, n):
            self.buf, self.pos, self.full = (torch.zeros(n), 0, False)

        def push(self, chunk):
            n = chunk.numel()
            end = self.pos + n
            if end <= self.buf.numel():
                self.buf[self.pos : end] = chunk
            else:
                k = self.buf.numel() - self.pos
                self.buf[self.pos :] = chunk[:k]
                self.buf[: end - self.buf.numel()] = chunk[k:]
                self.full = True
            self.pos = end % self.buf.numel()
            return torch.roll(self.buf, -self.pos) if self.full else self.buf[: self.pos]

    ring = Ring(10)

    def feed(raw, gain):
        vals = struct.unpack(f"<{len(raw) // 2}h", raw)
        x = torch.tensor(vals, dtype=torch.float32) / 32768 * gain
        w = ring.push(x)
        e = w.square().mean().sqrt()
        return (w, 20 * math.log10(max(e.item(), 1e-06)), ring.pos)

    f = compiled(feed)
    for i in range(10):
        yield f(struct.pack("<3h", *[(i * 977 + k * 3511) % 30000 - 15000 for k in range(3)]), 1.0 + i / 2)
