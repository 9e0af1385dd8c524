# size: table
"""Programs from vision and audio code: suppression, matching and tracking of boxes, pyramids of features, spectra in
streams, each called repeatedly while its state changes."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import typing

import torch
import torch.nn.functional as F
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


def boxes_of(seed, n):
    corner = data(seed, n, 2).abs() * 4
    return torch.cat([corner, corner + 1 + data(seed + 50, n, 2).abs() * 3], 1)


def overlaps(a, b):
    low, high = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])  # noqa: E731
    return inter / (area(a)[:, None] + area(b)[None] - inter)


# ------------------------------------------------------------------------------------------------ detection


@steady
def suppression_in_a_loop(compiled):
    def nms(boxes, scores, threshold):
        order, keep = scores.argsort(descending=True), []
        while order.numel() > 0:
            best = order[0]
            keep.append(best)
            if order.numel() == 1:
                break
            iou = overlaps(boxes[best][None], boxes[order[1:]])[0]
            order = order[1:][iou <= threshold]
        return torch.stack(keep) if keep else torch.empty(0, dtype=torch.long)

    f = compiled(nms)
    for i in range(10):
        yield f(boxes_of(i, 5 + i % 3), torch.rand(5 + i % 3), 0.3 + 0.02 * i)


@growing
def soft_suppression_per_class(compiled):
    def soft(boxes, scores, sigma):
        scores = scores.clone()
        for i in range(len(scores) - 1):
            best = i + int(scores[i:].argmax())
            swap = torch.tensor([best, i])
            boxes = boxes.clone()
            boxes[[i, best]] = boxes[swap]
            scores[[i, best]] = scores[swap]
            iou = overlaps(boxes[i : i + 1], boxes[i + 1 :])[0]
            scores[i + 1 :] *= torch.exp(-(iou**2) / sigma)
        return boxes, scores

    class Head:
        def __init__(self, classes):
            self.classes, self.seen = classes, collections.Counter()

        def __call__(self, boxes, logits):
            out = {}
            for c in range(self.classes):
                chosen = logits[:, c] > 0
                if not chosen.any():
                    continue
                b, s = soft(boxes[chosen], logits[chosen, c].sigmoid(), 0.5)
                out[c] = b[s > 0.2]
                self.seen[c] += len(out[c])
            return out

    head = Head(2)
    f = compiled(head)
    for i in range(8):
        yield f(boxes_of(i % 4, 4), data(i % 4 + 9, 4, 2)), dict(head.seen)


@steady
def anchors_by_level(compiled):
    class AnchorGenerator(nn.Module):
        def __init__(self, sizes, ratios):
            super().__init__()
            self.sizes, self.ratios = sizes, ratios
            self.cells = [self.cell(s, r) for s, r in zip(sizes, ratios)]
            self.cache = {}

        @staticmethod
        def cell(scales, ratios):
            scales, ratios = torch.as_tensor(scales), torch.as_tensor(ratios)
            h = torch.sqrt(ratios)
            w = 1 / h
            ws, hs = (w[:, None] * scales[None]).view(-1), (h[:, None] * scales[None]).view(-1)
            return (torch.stack([-ws, -hs, ws, hs], 1) / 2).round()

        def grid(self, sizes, strides):
            out = []
            for (height, width), (sh, sw), base in zip(sizes, strides, self.cells):
                x, y = torch.arange(width) * sw, torch.arange(height) * sh
                gy, gx = torch.meshgrid(y, x, indexing="ij")
                shifts = torch.stack([gx.reshape(-1), gy.reshape(-1)] * 2, 1)
                out.append((shifts.view(-1, 1, 4) + base.view(1, -1, 4)).reshape(-1, 4))
            return out

        def forward(self, image, maps):
            sizes = [m.shape[-2:] for m in maps]
            strides = [[image.shape[-2] // h, image.shape[-1] // w] for h, w in sizes]
            key = str(sizes) + str(strides)
            if key not in self.cache:
                self.cache[key] = self.grid(sizes, strides)
            return torch.cat(self.cache[key])

    make = AnchorGenerator(((8.0, 16.0), (32.0,)), ((0.5, 1.0, 2.0),) * 2)
    f = compiled(make)
    for i in range(10):
        n = (4, 6)[i % 2]
        yield f(data(i, 3, n * 8, n * 8), [data(i, 2, n, n), data(i, 2, n // 2, n // 2)]), len(make.cache)


@steady
def matcher_and_sampler(compiled):
    class Matcher:
        BELOW, BETWEEN = -1, -2

        def __init__(self, high, low, allow_low_quality=True):
            assert low <= high
            self.high, self.low, self.allow = high, low, allow_low_quality

        def __call__(self, quality):
            if quality.numel() == 0:
                raise ValueError("no boxes for one image")
            values, matches = quality.max(0)
            every = matches.clone() if self.allow else None
            matches[values < self.low] = self.BELOW
            matches[(values >= self.low) & (values < self.high)] = self.BETWEEN
            if self.allow:
                best = quality.max(1).values
                _, cols = torch.where(quality == best[:, None])
                matches[cols] = every[cols]
            return matches

    matcher = Matcher(0.5, 0.2)

    @compiled
    def assign(truth, anchors, labels):
        try:
            at = matcher(overlaps(truth, anchors))
        except ValueError as e:
            return str(e), None
        chosen = labels[at.clamp(min=0)].clone()
        chosen[at == Matcher.BELOW] = 0
        chosen[at == Matcher.BETWEEN] = -1
        positive = torch.where(chosen >= 1)[0]
        return chosen, overlaps(anchors[positive], truth[at[positive]]).diagonal().sum()

    for i in range(10):
        n = (3, 2, 0, 4)[i % 4]
        yield assign(boxes_of(i, n), boxes_of(i + 20, 8), torch.arange(1, n + 1) if n else torch.zeros(1).long())
        if i == 3:
            matcher.allow = False


@steady
def deltas_encoded_by_a_coder(compiled):
    @dataclasses.dataclass(frozen=True)
    class Coder:
        weights: tuple[float, float, float, float]
        clip: float = math.log(1000.0 / 16)

        def split(self, boxes):
            w, h = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
            return boxes[:, 0] + 0.5 * w, boxes[:, 1] + 0.5 * h, w, h

        def encode(self, truth, anchors):
            tx, ty, tw, th = self.split(truth)
            ax, ay, aw, ah = self.split(anchors)
            parts = (tx - ax) / aw, (ty - ay) / ah, torch.log(tw / aw), torch.log(th / ah)
            return torch.stack([w * p for w, p in zip(self.weights, parts)], 1)

        def decode(self, deltas, anchors):
            x, y, w, h = self.split(anchors)
            dx, dy, dw, dh = (d / k for d, k in zip(deltas.unbind(1), self.weights))
            dw, dh = dw.clamp(max=self.clip), dh.clamp(max=self.clip)
            cx, cy, nw, nh = dx * w + x, dy * h + y, dw.exp() * w, dh.exp() * h
            return torch.stack([cx - nw / 2, cy - nh / 2, cx + nw / 2, cy + nh / 2], 1)

    coder = Coder((10.0, 10.0, 5.0, 5.0))

    @compiled
    def round_trip(truth, anchors):
        deltas = coder.encode(truth, anchors)
        back = coder.decode(deltas + 0.01, anchors)
        return deltas, back, F.smooth_l1_loss(back, truth, beta=1 / 9)

    for i in range(8):
        anchors = boxes_of(i, 3 + i % 4).requires_grad_(i % 2 == 0)
        out = round_trip(boxes_of(i + 9, 3 + i % 4), anchors)
        if i % 2 == 0:
            out[2].backward()
        yield out, anchors.grad


@growing
def average_precision_accumulated(compiled):
    class Evaluator:
        def __init__(self):
            self.records, self.positives = [], 0

        def update(self, boxes, scores, truth):
            iou, used = overlaps(boxes, truth), set()
            self.positives += truth.shape[0]
            for i in scores.argsort(descending=True).tolist():
                j = int(iou[i].argmax())
                hit = float(iou[i, j]) > 0.3 and j not in used
                if hit:
                    used.add(j)
                self.records.append((float(scores[i]), hit))

        def compute(self):
            if not self.records:
                return 0.0
            ordered = sorted(self.records, key=lambda r: -r[0])
            hits = torch.tensor([float(h) for _, h in ordered]).cumsum(0)
            precision = hits / torch.arange(1, len(ordered) + 1)
            recall = hits / max(self.positives, 1)
            steps = torch.diff(recall, prepend=torch.zeros(1))
            return float((steps * precision).sum())

    ev = Evaluator()
    update = compiled(ev.update)
    for i in range(8):
        update(boxes_of(i, 3), data(i, 3).sigmoid(), boxes_of(i, 2) + 0.1)
        yield ev.positives, [h for _, h in ev.records], ev.compute()


# ------------------------------------------------------------------------------------------------ following


@steady
def kalman_tracks(compiled):
    class Kalman:
        def __init__(self, dt=1.0):
            self.A = torch.eye(4)
            self.A[:2, 2:] = dt * torch.eye(2)
            self.H, self.Q, self.R = torch.eye(2, 4), 0.01 * torch.eye(4), 0.1 * torch.eye(2)

        def predict(self, mean, cov):
            return self.A @ mean, self.A @ cov @ self.A.T + self.Q

        def update(self, mean, cov, z):
            s = self.H @ cov @ self.H.T + self.R
            gain = torch.linalg.solve(s, self.H @ cov).T
            return mean + gain @ (z - self.H @ mean), (torch.eye(4) - gain @ self.H) @ cov

    class Track:
        ids = itertools.count(1)

        def __init__(self, z, kalman):
            self.id, self.kalman, self.age, self.missed = next(self.ids), kalman, 0, 0
            self.mean, self.cov = torch.cat([z, torch.zeros(2)]), torch.eye(4)

        def step(self, z=None):
            self.mean, self.cov = self.kalman.predict(self.mean, self.cov)
            self.age += 1
            if z is None:
                self.missed += 1
            else:
                self.mean, self.cov = self.kalman.update(self.mean, self.cov, z)
                self.missed = 0
            return self.mean[:2]

    kalman = Kalman()
    tracks = [Track(torch.tensor([0.0, 0.0]), kalman), Track(torch.tensor([5.0, 5.0]), kalman)]

    @compiled
    def frame(points):
        seen = set()
        for track in tracks:
            d = torch.stack([torch.dist(p, track.mean[:2]) for p in points])
            at = int(d.argmin())
            if d[at] < 3 and at not in seen:
                seen.add(at)
                track.step(points[at])
            else:
                track.step()
        return [t.mean for t in tracks], [t.missed for t in tracks]

    for i in range(10):
        points = torch.tensor([[0.5 * i, 0.4 * i], [5 - 0.2 * i, 5 + 0.3 * i if i != 4 else 50.0]])
        yield frame(list(points)), [t.age for t in tracks]


@steady
def optical_flow_by_iterations(compiled):
    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.update = nn.Conv2d(4, 2, 3, padding=1)
            self.hidden = None

        @staticmethod
        def warp(x, flow):
            _, _, h, w = x.shape
            ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            grid = torch.stack([xs, ys], -1).float() + flow.permute(0, 2, 3, 1)
            scale = torch.tensor([w - 1, h - 1]) / 2
            return F.grid_sample(x, grid / scale - 1, align_corners=True, padding_mode="border")

        def forward(self, a, b, iterations=3, keep=True):
            flow = a.new_zeros(a.shape[0], 2, *a.shape[-2:])
            if self.hidden is not None and self.hidden.shape == flow.shape:
                flow = self.hidden
            predictions = []
            for _ in range(iterations):
                flow = flow.detach()
                flow = flow + self.update(torch.cat([a, self.warp(b, flow), flow], 1)).tanh()
                predictions.append(flow)
            if keep:
                self.hidden = flow.detach()
            return predictions

    torch.manual_seed(2)
    net = Flow()
    f = compiled(net)
    for i in range(12):
        size = 6 if i < 3 else 7
        out = f(data(i, 1, 1, size, size), data(i + 1, 1, 1, size, size), keep=i % 3 != 2)
        loss = sum(0.8 ** (len(out) - k - 1) * p.abs().mean() for k, p in enumerate(out))
        net.zero_grad()
        loss.backward()
        yield loss, net.update.weight.grad


# ------------------------------------------------------------------------------------------------ pictures


@steady
def transforms_from_a_table(compiled):
    TABLE: dict[str, typing.Callable] = {}

    def transform(name=None, **defaults):
        def add(function):
            def call(image, **kwargs):
                return function(image, **{**defaults, **kwargs})

            TABLE[name or function.__name__] = call
            return function

        return add

    @transform(factor=1.0)
    def brightness(image, factor):
        return (image * factor).clamp(0, 1)

    @transform("blur", sigma=1.0, radius=1)
    def gaussian(image, sigma, radius):
        at = torch.arange(-radius, radius + 1).float()
        kernel = torch.exp(-(at**2) / (2 * sigma**2))
        kernel = kernel / kernel.sum()
        c = image.shape[0]
        x = F.conv2d(image[None], kernel.view(1, 1, 1, -1).expand(c, 1, 1, -1), padding=(0, radius), groups=c)
        return F.conv2d(x, kernel.view(1, 1, -1, 1).expand(c, 1, -1, 1), padding=(radius, 0), groups=c)[0]

    @transform(top=0, left=0, size=4)
    def crop(image, top, left, size):
        return image[..., top : top + size, left : left + size]

    @compiled
    def augment(image, plan):
        for name, kwargs in plan:
            image = TABLE[name](image, **kwargs)
        return image

    for i in range(10):
        plan = [("crop", {"top": i % 3, "left": (i * 2) % 3}), ("blur", {"sigma": 0.5 + 0.1 * i})]
        if i >= 3:
            plan.append(("brightness", {"factor": 1 + 0.05 * i}))
        yield augment(data(i, 3, 8, 8).sigmoid(), plan)


@bounded
def patches_masked_and_restored(compiled):
    def patchify(images, p):
        n, c, h, w = images.shape
        if h % p or w % p:
            raise ValueError(f"{h}x{w} is not a multiple of {p}")
        x = images.reshape(n, c, h // p, p, w // p, p)
        return x.permute(0, 2, 4, 3, 5, 1).reshape(n, -1, p * p * c)

    def mask(x, ratio, noise):
        n, length, d = x.shape
        kept = int(length * (1 - ratio))
        shuffle = noise.argsort(1)
        restore = shuffle.argsort(1)
        chosen = torch.gather(x, 1, shuffle[:, :kept, None].expand(-1, -1, d))
        masked = torch.ones(n, length)
        masked[:, :kept] = 0
        return chosen, torch.gather(masked, 1, restore), restore

    token = nn.Parameter(torch.zeros(1, 1, 12))

    @compiled
    def loss(images, ratio):
        target = patchify(images, 2)
        chosen, masked, restore = mask(target, ratio, torch.rand(target.shape[:2]))
        fill = token.expand(chosen.shape[0], restore.shape[1] - chosen.shape[1], -1)
        x = torch.gather(torch.cat([chosen, fill], 1), 1, restore[..., None].expand(-1, -1, chosen.shape[2]))
        return (((x - target) ** 2).mean(-1) * masked).sum() / masked.sum()

    for i in range(9):
        size = (4, 8, 6, 5)[i % 4]
        token.grad = None
        try:
            out = loss(data(i, 2, 3, size, size), 0.5 + 0.05 * (i % 5))
            out.backward()
        except ValueError as e:
            out = repr(e)
        yield out, token.grad


@steady
def features_taken_by_hooks(compiled):
    class Extractor:
        def __init__(self, model, layers):
            self.features, self.handles = {}, []
            for name, module in model.named_modules():
                if name in layers:
                    self.handles.append(module.register_forward_hook(self.keep(name)))

        def keep(self, name):
            def hook(module, inputs, output):
                self.features[name] = output.flatten(1)

            return hook

        def close(self):
            while self.handles:
                self.handles.pop().remove()

    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3), nn.Flatten(), nn.Linear(8, 3))
    extractor = Extractor(net, {"0", "2"})

    @compiled
    def style(x, y):
        def gram(f):
            return f @ f.T / f.shape[1]

        net(x)
        wanted = {k: gram(v) for k, v in extractor.features.items()}
        out = net(y)
        return sum(F.mse_loss(gram(v), wanted[k]) for k, v in extractor.features.items()), out

    for i in range(8):
        if i == 2:
            extractor.close()
            extractor.features.clear()
        loss, out = style(data(i, 2, 1, 6, 6), data(i + 3, 2, 1, 6, 6))
        yield loss, out, sorted(extractor.features)


# ------------------------------------------------------------------------------------------------ sound


@steady
def mel_features_normalized(compiled):
    class Mel(nn.Module):
        def __init__(self, bins, mels, rate):
            super().__init__()
            hz = lambda m: 700 * (10 ** (m / 2595) - 1)  # noqa: E731
            top = 2595 * math.log10(1 + rate / 2 / 700)
            points = torch.tensor([hz(top * i / (mels + 1)) for i in range(mels + 2)])
            freqs = torch.linspace(0, rate / 2, bins)
            slopes = points[None] - freqs[:, None]
            down, up = -slopes[:, :-2] / points.diff()[:-1], slopes[:, 2:] / points.diff()[1:]
            self.register_buffer("bank", torch.min(down, up).clamp(min=0))
            self.register_buffer("mean", torch.zeros(mels))
            self.register_buffer("count", torch.zeros((), dtype=torch.long))

        @torch.no_grad()
        def forward(self, wave, n_fft=16, hop=4):
            spec = torch.stft(wave, n_fft, hop, window=torch.hann_window(n_fft), return_complex=True)
            mel = (spec.abs().pow(2).transpose(1, 2) @ self.bank).clamp(min=1e-6).log10()
            if self.training:
                n = mel.shape[0] * mel.shape[1]
                self.count += n
                self.mean += (mel - self.mean).sum((0, 1)) / self.count
            return mel - self.mean

    net = Mel(9, 4, 8000)
    f = compiled(net)
    for i in range(9):
        if i == 3:
            net.eval()
        yield f(data(i, 2, 32 + 8 * (i % 3))), net.mean, net.count


@steady
def streaming_windows_with_tails(compiled):
    class Framer:
        def __init__(self, size, hop):
            self.size, self.hop, self.tail, self.frames = size, hop, None, 0

        def push(self, chunk):
            x = chunk if self.tail is None else torch.cat([self.tail, chunk])
            if len(x) < self.size:
                self.tail = x
                return None
            frames = x.unfold(0, self.size, self.hop)
            self.tail = x[frames.shape[0] * self.hop :]
            self.frames += frames.shape[0]
            return frames * torch.hamming_window(self.size)

        def flush(self):
            tail, self.tail = self.tail, None
            return None if tail is None or not len(tail) else F.pad(tail, (0, self.size - len(tail)))

    framer = Framer(8, 4)

    @compiled
    def spectrum(chunk):
        frames = framer.push(chunk)
        if frames is None:
            return "wait"
        return torch.fft.rfft(frames).abs().log1p().mean(0)

    for i in range(12):
        yield spectrum(data(i, (5, 3, 9, 16)[i % 4])), framer.frames
        if i == 7:
            yield framer.flush()


@growing
def ctc_decoding_to_text(compiled):
    class Decoder:
        def __init__(self, labels, blank=0):
            self.labels, self.blank, self.carry, self.said = labels, blank, -1, []

        def __call__(self, logits):
            best, text = logits.argmax(-1), []
            for i in best.tolist():
                if i != self.carry and i != self.blank:
                    text.append(self.labels[i])
                self.carry = i
            word = "".join(text)
            if word:
                self.said.append(word)
            return word, logits.log_softmax(-1).gather(1, best[:, None]).sum()

    decoder = Decoder("-abc ")
    f = compiled(decoder)
    for i in range(10):
        yield f(data(i, 5, 5)), list(decoder.said)


@steady
def viterbi_over_states(compiled):
    class Crf(nn.Module):
        def __init__(self, tags):
            super().__init__()
            self.start, self.trans = nn.Parameter(data(1, tags)), nn.Parameter(data(2, tags, tags))

        def score(self, emissions, tags):
            out = self.start[tags[0]] + emissions[0, tags[0]]
            for i in range(1, len(tags)):
                out = out + self.trans[tags[i - 1], tags[i]] + emissions[i, tags[i]]
            return out

        def partition(self, emissions):
            alpha = self.start + emissions[0]
            for row in emissions[1:]:
                alpha = torch.logsumexp(alpha[:, None] + self.trans, 0) + row
            return alpha.logsumexp(0)

        @torch.no_grad()
        def decode(self, emissions):
            score, history = self.start + emissions[0], []
            for row in emissions[1:]:
                best, at = (score[:, None] + self.trans).max(0)
                history.append(at)
                score = best + row
            path = [int(score.argmax())]
            for at in reversed(history):
                path.append(int(at[path[-1]]))
            return path[::-1]

    crf = Crf(3)
    loss = compiled(lambda e, t: crf.partition(e) - crf.score(e, t))
    decode = compiled(crf.decode)
    optimizer = torch.optim.SGD(crf.parameters(), 0.2)
    for i in range(14):
        e, t = data(i, 4, 3), torch.tensor([i % 3, 1, (i + 1) % 3, 2])
        optimizer.zero_grad()
        out = loss(e, t)
        out.backward()
        optimizer.step()
        yield out, decode(e), crf.trans
