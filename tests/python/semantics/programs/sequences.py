"""Programs over sequences of many lengths: batches, tokens, edits, frames of audio, histories."""

from __future__ import annotations

import bisect
import collections
import itertools
import math
import re
import string

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


@growing
def collator_with_buckets(compiled):

    class Bucketer:
        def __init__(self, edges):
            self.edges, self.buckets, self.emitted = (edges, collections.defaultdict(list), 0)

        def add(self, seq):
            k = bisect.bisect_left(self.edges, seq.shape[0])
            self.buckets[k].append(seq)
            if len(self.buckets[k]) == 2:
                batch, self.buckets[k] = (self.buckets[k], [])
                self.emitted += 1
                n = max(s.shape[0] for s in batch)
                out = torch.zeros(len(batch), n)
                mask = torch.zeros(len(batch), n, dtype=torch.bool)
                for i, s in enumerate(batch):
                    out[i, : s.shape[0]] = s
                    mask[i, : s.shape[0]] = True
                return {"x": out, "mask": mask, "lengths": [s.shape[0] for s in batch]}
            return None

    b = Bucketer([3, 6, 9])
    f = compiled(b.add)
    for i, n in enumerate([2, 5, 3, 8, 4, 7, 2, 1, 9, 6]):
        yield (f(data(i, n)), b.emitted, {k: len(v) for k, v in b.buckets.items()})


@steady
def crf_forward_and_decode(compiled):

    class CRF(nn.Module):
        def __init__(self, n):
            super().__init__()
            torch.manual_seed(1)
            self.trans = nn.Parameter(torch.randn(n, n))
            self.start, self.end = (nn.Parameter(torch.randn(n)), nn.Parameter(torch.randn(n)))

        def score(self, em, tags, mask):
            s = self.start[tags[0]] + em[0].gather(1, tags[0][:, None]).squeeze(1)
            for t in range(1, em.shape[0]):
                step = self.trans[tags[t - 1], tags[t]] + em[t].gather(1, tags[t][:, None]).squeeze(1)
                s = s + step * mask[t]
            last = mask.long().sum(0) - 1
            return s + self.end[tags.gather(0, last[None]).squeeze(0)]

        def norm(self, em, mask):
            a = self.start + em[0]
            for t in range(1, em.shape[0]):
                n = torch.logsumexp(a[:, :, None] + self.trans + em[t][:, None], 1)
                a = torch.where(mask[t][:, None].bool(), n, a)
            return torch.logsumexp(a + self.end, 1)

        def decode(self, em):
            a, back = (self.start + em[0], [])
            for t in range(1, em.shape[0]):
                v, idx = (a[:, :, None] + self.trans).max(1)
                a = v + em[t]
                back.append(idx)
            best = [(a + self.end).argmax(1)]
            for idx in reversed(back):
                best.append(idx.gather(1, best[-1][:, None]).squeeze(1))
            return torch.stack(best[::-1]).T.tolist()

        def forward(self, em, tags, mask):
            return ((self.norm(em, mask) - self.score(em, tags, mask)).mean(), self.decode(em.detach()))

    crf = CRF(4)
    f = compiled(crf)
    for i in range(8):
        T = 3 + i % 3
        em = data(i, T, 2, 4)
        tags = (data(i + 50, T, 2).abs() * 10).long() % 4
        mask = torch.ones(T, 2)
        mask[-1, 0] = i % 2
        loss, path = f(em, tags, mask)
        crf.zero_grad()
        loss.backward()
        yield (loss.detach(), path, crf.trans.grad.clone())


@growing
def speculative_decoding_with_two_models(compiled):
    torch.manual_seed(3)
    big, small = (nn.Embedding(7, 7), nn.Embedding(7, 7))

    class Spec:
        def __init__(self, k):
            self.k, self.accepted, self.rejected = (k, 0, collections.Counter())

        @torch.no_grad()
        def step(self, tokens):
            draft = list(tokens)
            for _ in range(self.k):
                draft.append(int(small(torch.tensor(draft[-1])).argmax()))
            probs = big(torch.tensor(draft[len(tokens) - 1 : -1])).softmax(-1)
            for i, t in enumerate(draft[len(tokens) :]):
                if probs[i, t] >= 0.5 * probs[i].max():
                    tokens.append(t)
                    self.accepted += 1
                else:
                    self.rejected[i] += 1
                    tokens.append(int(probs[i].argmax()))
                    break
            return len(tokens)

    s = Spec(3)
    f = compiled(s.step)
    toks = [1]
    for _i in range(10):
        n = f(toks)
        yield (n, list(toks), s.accepted, dict(s.rejected))
        if len(toks) > 12:
            toks = toks[-2:]


@growing
def wer_and_edit_distance(compiled):

    class Wer:
        def __init__(self):
            self.err, self.n, self.ops = (0, 0, collections.Counter())

        def __call__(self, logits, refs, vocab):
            hyp = logits.argmax(-1).tolist()
            for h, r in zip(hyp, refs):
                h = [k for k, _ in itertools.groupby(h) if k]
                d = list(range(len(r) + 1))
                for i, a in enumerate(h, 1):
                    prev, d[0] = (d[0], i)
                    for j, b in enumerate(r, 1):
                        prev, d[j] = (d[j], min(d[j] + 1, d[j - 1] + 1, prev + (a != b)))
                self.err += d[-1]
                self.n += len(r)
                self.ops[len(h) - len(r)] += 1
            return (self.err / self.n, " ".join(vocab[k] for k in h))

    w = Wer()
    f = compiled(w)
    for i in range(8):
        yield (f(data(i, 2, 5, 4), [[1, 2], [3, 1, 2]], ["", "a", "b", "c"]), dict(w.ops))


@growing
def bpe_merges_then_embed(compiled):

    class Bpe:
        def __init__(self):
            self.merges, self.vocab, self.cache = ({("a", "b"): 0, ("ab", "c"): 1, ("b", "c"): 2}, {}, {})

        def pairs(self, w):
            return set(itertools.pairwise(w))

        def word(self, w):
            if w in self.cache:
                return self.cache[w]
            parts = tuple(w)
            while len(parts) > 1:
                best = min(self.pairs(parts), key=lambda p: (self.merges.get(p, math.inf), p))
                if best not in self.merges:
                    break
                out, i = ([], 0)
                while i < len(parts):
                    if i + 1 < len(parts) and (parts[i], parts[i + 1]) == best:
                        out.append("".join(best))
                        i += 2
                    else:
                        out.append(parts[i])
                        i += 1
                parts = tuple(out)
            self.cache[w] = parts
            return parts

        def encode(self, s):
            return [self.vocab.setdefault(p, len(self.vocab)) for w in s.split() for p in self.word(w)]

    b = Bpe()
    torch.manual_seed(0)
    emb = nn.EmbeddingBag(16, 3)

    @compiled
    def f(texts):
        ids = [b.encode(t) for t in texts]
        off = torch.tensor([0, *itertools.accumulate(map(len, ids))][:-1])
        return (emb(torch.tensor(list(itertools.chain.from_iterable(ids))), off), ids)

    ts = ["abc ab", "cab bca", "abc", "bb abc cab", "ab"]
    for i in range(10):
        y, ids = f([ts[i % 5], ts[(i + 2) % 5]])
        yield (y.detach(), ids, len(b.cache), list(b.vocab))


@growing
def audio_vad_and_overlap_add(compiled):

    class Frames:
        def __init__(self, n, hop):
            self.n, self.hop, self.win, self.tail, self.voiced = (n, hop, torch.hann_window(n), None, [])

        def __call__(self, x):
            if self.tail is not None:
                x = torch.cat([self.tail, x])
            if x.shape[-1] < self.n:
                self.tail = x
                return None
            fr = x.unfold(-1, self.n, self.hop) * self.win
            used = (fr.shape[0] - 1) * self.hop + self.hop
            self.tail = x[used:]
            spec = torch.fft.rfft(fr)
            power = spec.abs().square().mean(-1)
            flags = (power > power.median()).tolist()
            self.voiced += [i for i, v in enumerate(flags) if v]
            y = torch.zeros((fr.shape[0] - 1) * self.hop + self.n)
            for i, r in enumerate(torch.fft.irfft(spec, n=self.n)):
                y[i * self.hop : i * self.hop + self.n] += r
            return y

    fr = Frames(8, 4)
    f = compiled(fr)
    for i in range(9):
        yield (f(data(i, [10, 3, 12, 16][i % 4])), list(fr.voiced), None if fr.tail is None else fr.tail.clone())


@steady
def lists_given_of_growing_length(compiled):

    @compiled
    def nxt(tokens, emb):
        w = emb[tokens[-1]] + emb[tokens[0]]
        t = int(w.argmax())
        tokens.append(t % 5)
        return (w, len(tokens))

    emb = data(0, 5, 5)
    toks = [1]
    for _ in range(70):
        yield (nxt(toks, emb), list(toks))


@growing
def frames_that_fill_lists_between_reads(compiled):

    @compiled
    def f(xs, limit):
        kept, scores = ([], [])
        for x in xs:
            s = x.sum().item()
            if s > limit:
                continue
            kept.append(x)
            scores.append(round(s, 3))
        return (torch.stack(kept) if kept else None, scores)

    for i in range(8):
        yield f([data(i * 20 + k, 2) for k in range(16)], 0.3)


@growing
def history_by_step_number(compiled):

    class Meter:
        def __init__(self):
            self.step, self.history, self.best = (0, {}, (None, math.inf))

        def update(self, loss):
            self.step += 1
            self.history[self.step] = loss.detach()
            if self.step % 3 == 0:
                del self.history[self.step - 2]
            return (loss * 2, self.step in self.history, len(self.history))

    m = Meter()
    f = compiled(m.update)
    for i in range(14):
        yield (f(data(i, 2).sum()), m.step, sorted(m.history))


@growing
def sparse_block_attention(compiled):

    class Attn(nn.Module):
        def __init__(self, d, block):
            super().__init__()
            torch.manual_seed(6)
            self.qkv, self.block, self.cache = (nn.Linear(d, 3 * d), block, {})

        def mask(self, n, causal):
            key = (n, causal)
            if key not in self.cache:
                b = torch.arange(n) // self.block
                m = (b[:, None] - b[None]).abs() <= 1
                if causal:
                    m &= torch.ones(n, n, dtype=torch.bool).tril()
                self.cache[key] = m
            return self.cache[key]

        def forward(self, x, causal=False):
            q, k, v = self.qkv(x).chunk(3, -1)
            s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            return s.masked_fill(~self.mask(x.shape[-2], causal), float("-inf")).softmax(-1) @ v

    a = Attn(4, 2)
    f = compiled(a)
    for i in range(9):
        y = f(data(i, 1 + i % 2, [4, 6, 5][i % 3], 4), causal=i % 2 == 0)
        yield (y.detach(), sorted(a.cache))


@growing
def env_vectorised_with_infos(compiled):

    class Env:
        def __init__(self, n):
            self.s, self.t, self.n, self.rng, self.episodes = (
                torch.zeros(n, 2),
                [0] * n,
                n,
                np.random.default_rng(0),
                [],
            )

        def step(self, a):
            self.s = self.s + 0.3 * torch.tanh(a)
            self.t = [t + 1 for t in self.t]
            r = -self.s.norm(dim=1)
            done = (r < -0.9) | (torch.tensor(self.t) >= 5)
            infos = []
            for i in range(self.n):
                if done[i]:
                    self.episodes.append((i, self.t[i]))
                    infos.append({"terminal": self.s[i].clone(), "len": self.t[i]})
                    self.s[i] = torch.from_numpy(self.rng.normal(size=2)).float() * 0.1
                    self.t[i] = 0
                else:
                    infos.append({})
            return (self.s.clone(), r, done, infos)

    env = Env(3)
    torch.manual_seed(0)
    pi = nn.Linear(2, 2)

    @compiled
    def rollout(obs):
        with torch.no_grad():
            return env.step(pi(obs))

    obs = env.s
    for _i in range(10):
        obs, r, d, info = rollout(obs)
        yield (obs, r, d, info, list(env.episodes))


@steady
def graph_attention_with_dropping(compiled):

    class Gat(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            torch.manual_seed(2)
            self.lin, self.a = (nn.Linear(d, h * d), nn.Parameter(torch.randn(h, 2 * d)))
            self.h, self.alpha = (h, None)

        def propagate(self, ei, x, n):
            src, dst = ei
            e = F.leaky_relu((torch.cat([x[src], x[dst]], -1) * self.a).sum(-1), 0.2)
            m = torch.full((n, self.h), float("-inf")).scatter_reduce(0, dst[:, None].expand_as(e), e, "amax")
            e = (e - m[dst]).exp()
            z = torch.zeros(n, self.h).index_add(0, dst, e)
            self.alpha = (e / z[dst]).detach()
            return torch.zeros(n, self.h, x.shape[-1]).index_add(0, dst, x[src] * (e / z[dst])[..., None])

        def forward(self, x, ei):
            n = x.shape[0]
            if ei.numel():
                ei = ei[:, ei[0] != ei[1]]
            ei = torch.cat([ei, torch.arange(n).expand(2, n)], 1)
            return self.propagate(ei, self.lin(x).view(n, self.h, -1), n).mean(1)

    g = Gat(3, 2)
    f = compiled(g)
    for i in range(8):
        n = 3 + i % 3
        ei = (data(i, 2, 4 + i % 2).abs() * 10).long() % n
        y = f(data(i + 40, n, 3), ei)
        g.zero_grad()
        y.sum().backward()
        yield (y.detach(), g.alpha.shape, g.a.grad.clone())


@growing
def parsing_and_formatting_logs(compiled):

    class Fmt(string.Formatter):
        def format_field(self, v, spec):
            if spec == "t":
                return f"{tuple(v.shape)}"
            return super().format_field(v, spec)

    fmt = Fmt()
    lines = []

    @compiled
    def f(x, tag, step):
        y = x * step
        line = fmt.format("{0:t}|{tag!r:>6}|{s:03d}", y, tag=tag, s=step)
        m = re.match("\\((\\d+),", line)
        lines.append(line)
        print(line, end=";")
        return (y * int(m.group(1)), f"{float(y.mean()):.2f}", f"{tag}-{step / 3:5.1f}")

    for i in range(10):
        yield (f(data(i, 2 + i % 3), "abc"[i % 3], i + 1), lines[-1])


@growing
def lists_of_boxes_given_and_looped(compiled):

    @compiled
    def f(boxes, labels, thr):
        out = []
        for b, el in zip(boxes, labels):
            area = (b[2] - b[0]) * (b[3] - b[1])
            if el in ("car", "bus") and area > thr:
                out.append(b / 2)
        labels.append(f"n{len(out)}")
        return (out, len(labels), boxes[-1] if boxes else None)

    for i in range(12):
        yield f(
            [data(i * 7 + k, 4) for k in range(i % 9)],
            ["car", "dog", "bus", "cat", "car", "bus", "dog", "car", "x"][: i % 9],
            0.1,
        )


@growing
def accumulating_list_that_is_looped_sometimes(compiled):

    @compiled
    def f(log, x, show):
        log.append(x.sum())
        if show:
            return (sum((v * k for k, v in enumerate(log))), log[0])
        return (x, len(log))

    log = []
    for i in range(90):
        yield (f(log, data(i, 2), i % 6 == 5), len(log))


@growing
def list_that_is_sliced_and_copied(compiled):

    @compiled
    def f(hist, x):
        hist.append(x)
        recent = hist[-3:]
        other = list(hist)
        other.reverse()
        hist[0] = hist[0] + 1
        return (
            torch.stack(recent).mean(0),
            other[0],
            x in hist if False else len(other),
            hist.index(x) if False else None,
        )

    h = []
    for i in range(60):
        yield (f(h, data(i, 2)), len(h))


@growing
def aliased_list_in_two_places(compiled):

    class Buf:
        def __init__(self):
            self.items = []

    b = Buf()

    @compiled
    def f(buf, items, x):
        items.append(x)
        n = len(buf.items)
        buf.items[0] += 1
        return (items[0] * n, items is buf.items)

    for i in range(60):
        yield (f(b, b.items, data(i, 2)), len(b.items))


@steady
def written_in_place_while_in_a_list(compiled):

    @compiled
    def f(bank, x):
        bank.append(x)
        x.mul_(2)
        y = bank[0] + bank[-1]
        bank[0].add_(1)
        return (y, x + 1)

    bank = []
    for i in range(60):
        yield (f(bank, data(i, 2)), [t.clone() for t in bank[:2]])


@steady
def infinite_cycle_of_loader_iterators(compiled):

    class Cycle:
        def __init__(self, xs):
            self.xs, self.it = (xs, iter(xs))

        def __next__(self):
            try:
                return next(self.it)
            except StopIteration:
                self.it = iter(self.xs)
                return next(self.it)

        def __iter__(self):
            return self

    c = Cycle([data(k, 2) for k in range(3)])
    it = itertools.cycle([1.0, 2.0])
    cnt = itertools.count()

    @compiled
    def f(x):
        return next(c) + x

    @compiled
    def g(x):
        return x * next(it) + next(cnt)

    for i in range(9):
        yield (f(data(i, 2)), g(data(i, 2)))
