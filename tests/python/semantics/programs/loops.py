"""Programs from training scripts: optimizers written by hand, averages of weights, features of streams, trackers,
registries and retries, each called repeatedly while its state changes."""

from __future__ import annotations

import collections
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


# ------------------------------------------------------------------------------------------------ training loops


@steady
def optimizer_by_hand(compiled):
    class Lion:
        def __init__(self, params, lr=0.01, betas=(0.9, 0.99), decay=0.0):
            self.params, self.lr, self.betas, self.decay = list(params), lr, betas, decay
            self.state = collections.defaultdict(dict)
            self.steps = 0

        @torch.no_grad()
        def step(self):
            self.steps += 1
            lr = self.lr * min(1.0, self.steps / 4)
            for p in self.params:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "avg" not in state:
                    state["avg"] = torch.zeros_like(p)
                avg, (b1, b2) = state["avg"], self.betas
                p.mul_(1 - lr * self.decay)
                p.add_(torch.sign(avg * b1 + p.grad * (1 - b1)), alpha=-lr)
                avg.mul_(b2).add_(p.grad, alpha=1 - b2)

        def zero_grad(self):
            for p in self.params:
                p.grad = None

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.SiLU(), nn.Linear(4, 1))
    opt = Lion(net.parameters(), decay=0.1)
    loss_of, update = compiled(lambda x, y: F.huber_loss(net(x)[:, 0], y)), compiled(opt.step)
    for i in range(10):
        opt.zero_grad()
        loss = loss_of(data(i, 4, 3), data(i + 30, 4))
        loss.backward()
        update()
        yield loss, opt.steps, net[0].weight


@growing
def early_stopping_and_plateau(compiled):
    class Stop:
        def __init__(self, patience):
            self.patience, self.best, self.bad, self.stopped = patience, float("inf"), 0, False

        def __call__(self, value):
            if value < self.best - 1e-3:
                self.best, self.bad = value, 0
            else:
                self.bad += 1
                self.stopped = self.bad >= self.patience
            return self.stopped

    class Plateau:
        def __init__(self, lr, factor=0.5):
            self.lr, self.factor, self.history = lr, factor, collections.deque(maxlen=3)

        def step(self, value):
            self.history.append(value)
            if len(self.history) == 3 and self.history[-1] >= min(self.history):
                self.lr *= self.factor
            return self.lr

    stop, plateau, w = Stop(4), Plateau(0.4), torch.zeros(3)

    @compiled
    def epoch(x, number):
        loss = ((x @ w - 1) ** 2).mean()
        lr = plateau.step(loss.item())
        w.sub_(lr * (x.T @ (x @ w - 1)) * 2 / len(x))
        if stop(loss.item()):
            print(f"epoch {number}: stopped at {loss.item():.4f}, lr {lr:.3f}")
            return None
        return loss, lr

    for i in range(12):
        yield epoch(data(i, 5, 3), i), stop, plateau.lr


@steady
def exponential_moving_weights(compiled):
    class Ema:
        def __init__(self, model, decay=0.9):
            self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}
            self.decay, self.updates, self.kept = decay, 0, None

        @torch.no_grad()
        def update(self, model):
            self.updates += 1
            d = min(self.decay, (1 + self.updates) / (10 + self.updates))
            for n, p in model.named_parameters():
                self.shadow[n].lerp_(p, 1 - d)

        def __enter__(self):
            self.kept = {n: p.detach().clone() for n, p in net.named_parameters()}
            with torch.no_grad():
                for n, p in net.named_parameters():
                    p.copy_(self.shadow[n])
            return self

        def __exit__(self, *_):
            with torch.no_grad():
                for n, p in net.named_parameters():
                    p.copy_(self.kept[n])
            self.kept = None

    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    ema = Ema(net)
    update = compiled(lambda: ema.update(net))

    @compiled
    def evaluate(x):
        with ema, torch.no_grad():
            return net(x)

    opt = torch.optim.SGD(net.parameters(), 0.1)
    for i in range(10):
        opt.zero_grad()
        net(data(i, 2, 3)).pow(2).sum().backward()
        opt.step()
        update()
        yield evaluate(data(i, 2, 3)), ema.updates, ema.shadow


# ------------------------------------------------------------------------------------------------ signals, tracks, data


@steady
def streaming_speech_features(compiled):
    class Frontend:
        def __init__(self, frame=16, hop=8, bins=6):
            self.frame, self.hop, self.tail = frame, hop, torch.zeros(0)
            self.window = torch.hann_window(frame)
            self.filters = torch.rand(bins, frame // 2 + 1, generator=torch.Generator().manual_seed(0))
            self.mean, self.count = torch.zeros(bins), 0

        def push(self, chunk, dither=0.0):
            wave = torch.cat([self.tail, chunk + dither])
            n = 1 + (len(wave) - self.frame) // self.hop if len(wave) >= self.frame else 0
            if n == 0:
                self.tail = wave
                return None
            frames = wave.unfold(0, self.frame, self.hop) * self.window
            self.tail = wave[n * self.hop :]
            power = torch.fft.rfft(frames).abs() ** 2
            mel = torch.log(power @ self.filters.T + 1e-6)
            self.count += n
            self.mean += (mel.mean(0) - self.mean) * n / self.count
            return mel - self.mean

    front = Frontend()
    f = compiled(front.push)
    for i in range(12):
        yield f(data(i, 20 + 4 * (i % 3)), 0.001 * i), front.count, front.tail


@growing
def tracker_by_overlap(compiled):
    @dataclasses.dataclass
    class Track:
        id: int
        box: torch.Tensor
        hits: int = 1
        missed: int = 0

    class Tracker:
        def __init__(self, least=0.3):
            self.tracks, self.next_id, self.least = [], 0, least

        @staticmethod
        def iou(a, b):
            lt, rb = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
            inter = (rb - lt).clamp(min=0).prod(-1)
            areas = [(t[:, 2:] - t[:, :2]).prod(-1) for t in (a, b)]
            return inter / (areas[0][:, None] + areas[1][None] - inter)

        def update(self, boxes):
            free = set(range(len(boxes)))
            if self.tracks and len(boxes):
                overlap = self.iou(torch.stack([t.box for t in self.tracks]), boxes)
                for row, track in enumerate(self.tracks):
                    best = int(overlap[row].argmax())
                    if float(overlap[row, best]) > self.least and best in free:
                        free.remove(best)
                        track.box = 0.5 * track.box + 0.5 * boxes[best]
                        track.hits, track.missed = track.hits + 1, 0
                    else:
                        track.missed += 1
            for at in sorted(free):
                self.tracks.append(Track(self.next_id, boxes[at]))
                self.next_id += 1
            self.tracks = [t for t in self.tracks if t.missed < 2]
            return [(t.id, t.hits) for t in self.tracks]

    tracker = Tracker()
    f = compiled(tracker.update)
    for i in range(10):
        corner = torch.tensor([[0.0, 0.0], [20.0, 5.0]]) + 0.5 * i
        boxes = torch.cat([corner, corner + 10], 1)[: 1 + (i % 4 != 2)]
        yield f(boxes), [t.box for t in tracker.tracks]


@bounded
def registry_with_config(compiled):
    registry = {}

    def register(name):
        def add(cls):
            if name in registry:
                raise KeyError(f"{name} is there already")
            registry[name] = cls
            return cls

        return add

    @register("scale")
    class Scale:
        def __init__(self, factor=1.0):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor

    @register("clip")
    class Clip:
        def __init__(self, low=-1.0, high=1.0):
            self.low, self.high = low, high

        def __call__(self, x):
            return x.clamp(self.low, self.high)

    @compiled
    def build_and_run(x, config):
        for entry in config:
            settings = dict(entry)
            kind = settings.pop("type")
            try:
                x = registry[kind](**settings)(x)
            except KeyError as error:
                raise ValueError(f"unknown {kind!r}, known: {sorted(registry)}") from error
        return x

    for i in range(10):
        config = [{"type": "scale", "factor": 1.0 + i}, {"type": "clip", "high": 0.5 * i}][: 1 + i % 2]
        if i == 8:
            config.append({"type": "blur"})
        try:
            yield build_and_run(data(i, 3), config), len(config), config[0]["type"]
        except ValueError as error:
            yield str(error), repr(error.__cause__)


@growing
def retries_with_backoff(compiled):
    class Flaky:
        def __init__(self):
            self.calls, self.log = 0, []

        def __call__(self, x):
            self.calls += 1
            if self.calls % 3 == 1:
                raise ConnectionError(f"call {self.calls}")
            return x * 2

    def retry(times, *kinds):
        def wrap(function):
            def call(*args):
                for attempt in range(times):
                    try:
                        return function(*args)
                    except kinds as error:
                        service.log.append((attempt, str(error)))
                        if attempt == times - 1:
                            raise
                return None

            return call

        return wrap

    service = Flaky()
    f = compiled(retry(3, ConnectionError, TimeoutError)(lambda x: service(x) + 1))
    for i in range(12):
        yield f(data(i, 3)), service.calls, len(service.log), service.log[-1:]
