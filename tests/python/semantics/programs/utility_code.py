"""Python code around tensors: configurations, registries, dispatch, parsing, strings. As programs/whole_scripts.py has them."""

from __future__ import annotations

import abc
import collections
import dataclasses
import decimal
import enum
import fractions
import functools
import inspect
import itertools
import json
import operator
import re
import string
import typing

import torch
from torch import nn

from programs.whole_scripts import data, table_of_programs

PROGRAMS, steady, bounded, growing = table_of_programs()


# ------------------------------------------------------------------------------------------- configurations, registries


@steady
def configurations_of_dataclasses(compiled):
    @dataclasses.dataclass(frozen=True)
    class Attention:
        heads: int = 2
        scale: float | None = None
        kinds: tuple[str, ...] = ("full",)

    @dataclasses.dataclass
    class Config:
        width: int = 4
        attention: Attention = dataclasses.field(default_factory=Attention)
        extra: dict = dataclasses.field(default_factory=dict)

        def __post_init__(self):
            self.head = self.width // self.attention.heads

    @compiled
    def f(x, config):
        q = x.view(-1, config.attention.heads, config.head)
        scale = config.attention.scale or config.head**-0.5
        w = torch.einsum("ihd,jhd->hij", q, q) * scale
        if "causal" in config.attention.kinds:
            w = w.masked_fill(torch.ones(w.shape[-2:], dtype=torch.bool).triu(1), -1e9)
        y = torch.einsum("hij,jhd->ihd", w.softmax(-1), q).flatten(1)
        changed = dataclasses.replace(config.attention, scale=0.5)
        return y * config.extra.get("gain", 1.0), dataclasses.asdict(config), changed

    for i in range(24):
        config = Config(
            attention=Attention(scale=None if i % 2 else 0.1 * (i + 1), kinds=("full", "causal")[: 1 + i % 2])
        )
        if i % 3 == 0:
            config.extra["gain"] = 1.0 + i
        yield f(data(i, 3, 4), config)


@steady
def registry_of_layers(compiled):
    registry = {}

    def register(name=None, **options):
        def add(cls):
            registry[name or cls.__name__.lower()] = (cls, options)
            return cls

        return add

    @register("double", factor=2.0)
    class Double:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor

    @register()
    class Shift:
        def __init__(self, by=1):
            self.by = by

        def __call__(self, x):
            return x + self.by

    def build(text):
        for part in filter(None, (p.strip() for p in text.split("|"))):
            name, _, argument = part.partition(":")
            cls, options = registry[name]
            yield cls(**options) if not argument else cls(float(argument))

    @compiled
    def f(x, text):
        for layer in build(text):
            x = layer(x)
        return x

    texts = ["double|shift", "shift:3|double:4", "double | double", "shift"]
    for i in range(12):
        yield f(data(i, 3), texts[i % 4])
    registry["shift"] = registry["double"]
    for i in range(12):
        yield f(data(i, 3), "shift|shift")


@steady
def attributes_by_decorator(compiled):
    def define(cls):
        names = [n for n in cls.__annotations__]

        def __init__(self, *args, **kwargs):
            for name, value in itertools.chain(zip(names, args), kwargs.items()):
                if name not in names:
                    raise TypeError(name)
                setattr(self, name, value)
            for name in names:
                if not hasattr(self, name):
                    setattr(self, name, getattr(cls, "_default_" + name)())

        def __eq__(self, other):
            return type(self) is type(other) and all(
                torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
                for a, b in ((getattr(self, n), getattr(other, n)) for n in names)
            )

        cls.__init__, cls.__eq__ = __init__, __eq__
        cls.__repr__ = lambda self: f"{cls.__name__}({', '.join(names)})"
        cls.__hash__ = None
        return cls

    @define
    class Batch:
        x: torch.Tensor
        weight: float
        tags: list
        _default_tags = staticmethod(list)
        _default_weight = staticmethod(lambda: 1.0)

    @compiled
    def f(batch):
        other = Batch(batch.x * 2, weight=batch.weight + 1)
        other.tags.append(repr(batch))
        return other, other.x * other.weight

    for i in range(10):
        yield f(Batch(data(i, 3)) if i % 2 else Batch(data(i, 3), 0.5 * i))


@steady
def descriptors_that_check(compiled):
    class Positive:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, instance, owner=None):
            return self if instance is None else getattr(instance, self.name)

        def __set__(self, instance, value):
            if value <= 0:
                raise ValueError(f"{self.name[1:]} must be positive, got {value}")
            setattr(instance, self.name, value)

    class Options:
        rate, size = Positive(), Positive()

        def __init__(self, rate, size):
            self.rate, self.size = rate, size

    options = Options(0.1, 3)

    @compiled
    def f(x, rate):
        try:
            options.rate = rate
        except ValueError as error:
            return x, str(error)
        options.size += 1
        return x * options.rate, options.size

    for i in range(12):
        yield f(data(i, 2), 0.1 * (i % 5) - 0.1)


@steady
def properties_kept(compiled):
    class Grid:
        def __init__(self, n):
            self.n = n

        @functools.cached_property
        def points(self):
            return torch.linspace(0, 1, self.n)

        @property
        def step(self):
            return 1.0 / (self.n - 1)

    @compiled
    def f(grid, x):
        return (grid.points * x.sum()).cumsum(0) * grid.step, "points" in vars(grid)

    kept = Grid(4)
    for i in range(12):
        yield f(kept if i % 2 else Grid(4 + i % 3), data(i, 2))


@steady
def enumerations_and_flags(compiled):
    class Mode(enum.Enum):
        SUM, MEAN = "sum", "mean"

        @classmethod
        def _missing_(cls, value):
            return cls.MEAN if value == "average" else None

        def __call__(self, x):
            return getattr(x, self.value)(-1)

    class What(enum.Flag):
        ABS, NEG, SCALED = enum.auto(), enum.auto(), enum.auto()

    class Level(enum.IntEnum):
        LOW, HIGH = 1, 10

    @compiled
    def f(x, mode, what, level):
        if What.ABS in what:
            x = x.abs()
        if what & What.NEG:
            x = -x
        if What.SCALED in what:
            x = x * level
        return Mode(mode)(x), sorted(m.name for m in Mode), level >= Level.HIGH

    for i in range(16):
        what = What(i % 2) | What.SCALED
        yield f(data(i, 2, 3), ["sum", "mean", "average"][i % 3], what, list(Level)[i % 2])


@growing
def typed_dicts_and_protocols(compiled):
    class Sample(typing.TypedDict, total=False):
        image: torch.Tensor
        label: int

    @typing.runtime_checkable
    class HasForward(typing.Protocol):
        def forward(self, x): ...

    class Plain:
        def forward(self, x):
            return x * 2

    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, value: T):
            self.value = value

    @compiled
    def f(sample: Sample, model):
        x = sample["image"]
        x = model.forward(x) if isinstance(model, HasForward) else x
        box: Box[torch.Tensor] = Box[torch.Tensor](x)
        return Sample(image=box.value, label=typing.cast(int, sample.get("label", -1)) + 1)

    for i in range(10):
        sample = Sample(image=data(i, 2)) if i % 2 else Sample(image=data(i, 2), label=i)
        yield f(sample, Plain() if i % 3 else object())


@steady
def dispatch_by_type(compiled):
    @functools.singledispatch
    def scale(value, by):
        return value

    @scale.register
    def _(value: torch.Tensor, by):
        return value * by

    @scale.register(list)
    @scale.register(tuple)
    def _(value, by):
        return type(value)(scale(v, by) for v in value)

    @scale.register
    def _(value: dict, by):
        return {k: scale(v, by) for k, v in value.items()}

    class Thing:
        @functools.singledispatchmethod
        def take(self, value):
            return value

        @take.register
        def _(self, value: int):
            return value + 1

    @compiled
    def f(tree, by):
        return scale(tree, by), Thing().take(3), Thing().take("s")

    for i in range(10):
        yield f({"a": data(i, 2), "b": [data(i + 1, 2), (data(i + 2, 1), "s")]}, 1.0 + i)


@steady
def calls_by_signature(compiled):
    def inject(function):
        wanted = inspect.signature(function).parameters

        @functools.wraps(function)
        def call(**available):
            missing = [n for n, p in wanted.items() if p.default is p.empty and n not in available]
            if missing:
                raise TypeError(f"missing {missing}")
            return function(**{k: v for k, v in available.items() if k in wanted})

        return call

    @inject
    def loss(prediction, target, weight=1.0):
        return ((prediction - target) ** 2).mean() * weight

    @compiled
    def f(x, y, **more):
        try:
            bound = inspect.signature(loss.__wrapped__).bind(x, y)
            bound.apply_defaults()
            return loss(prediction=x, target=y, unused=1, **more), list(bound.arguments)
        except TypeError as error:
            return str(error)

    for i in range(10):
        yield f(data(i, 2), data(i + 1, 2), **({"weight": 0.5 * i} if i % 2 else {}))


@steady
def abstract_classes_and_factories(compiled):
    class Layer(abc.ABC):
        kinds: typing.ClassVar[dict] = {}

        def __init_subclass__(cls, kind=None, **rest):
            super().__init_subclass__(**rest)
            Layer.kinds[kind] = cls

        @abc.abstractmethod
        def apply(self, x): ...

        @classmethod
        def make(cls, kind, *args):
            return cls.kinds[kind](*args)

    class Scale(Layer, kind="scale"):
        def __init__(self, by):
            self.by = by

        def apply(self, x):
            return x * self.by

    class Nothing(Layer, kind="nothing"):
        def apply(self, x):
            return x

    @compiled
    def f(x, kinds):
        for kind, *args in kinds:
            x = Layer.make(kind, *args).apply(x)
        try:
            Layer()
        except TypeError as error:
            return x, str(error)[:30]

    for i in range(10):
        yield f(data(i, 3), [("scale", 1.0 + i), ("nothing",)][: 1 + i % 2])


# --------------------------------------------------------------------------------------------------------------- texts


@steady
def patterns_of_axes(compiled):
    @functools.lru_cache(64)
    def parse(pattern):
        left, right = (re.findall(r"\(([^)]*)\)|(\w+)", side) for side in pattern.split("->"))
        return [tuple((a or b).split()) for a, b in left], [tuple((a or b).split()) for a, b in right]

    def rearrange(x, pattern, **sizes):
        left, right = parse(pattern)
        shape, names = [], [n for group in left for n in group]
        for group, size in zip(left, x.shape):
            known = [sizes.get(n) for n in group]
            rest = size
            for k in known:
                rest //= k or 1
            shape += [rest if k is None else k for k in known]
        order = [names.index(n) for group in right for n in group]
        x = x.reshape(shape).permute(order)
        out, at = [], 0
        for group in right:
            out.append(functools.reduce(operator.mul, x.shape[at : at + len(group)], 1))
            at += len(group)
        return x.reshape(out)

    @compiled
    def f(x, pattern, **sizes):
        return rearrange(x, pattern, **sizes) * 2

    for i in range(12):
        n = 2 + i % 3
        if i % 2:
            yield f(data(i, n, 6), "b (h d) -> h (b d)", h=2)
        else:
            yield f(data(i, n, 2, 3), "b c w -> (b w) c")


@steady
def names_of_parameters(compiled):
    pattern = re.compile(r"^(?P<layer>\d+)\.(?P<kind>weight|bias)$")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))

        def forward(self, x):
            groups = collections.defaultdict(list)
            for name, p in self.layers.named_parameters():
                match = pattern.match(name)
                groups[match["kind"]].append((int(match.group("layer")), p))
            decay = sum((p * p).sum() for _, p in sorted(groups["weight"], key=lambda item: item[0]))
            return self.layers(x).sum() + 0.1 * decay, {k: [i for i, _ in v] for k, v in groups.items()}

    net = Net()
    for p in net.parameters():
        nn.init.constant_(p, 0.1)
    f = compiled(net)
    for i in range(8):
        yield f(data(i, 2, 2))


@steady
def templates_and_translations(compiled):
    template = string.Template("$name has $count of ${unit}s")
    table = str.maketrans({"a": "b", "-": "_"})

    @compiled
    def f(x, name, counts):
        texts = [template.substitute(name=name.translate(table), count=c, unit="item") for c in counts]
        joined = "\n".join(f"{t:<24}|" for t in texts).title()
        return x * len(joined.split()), joined, "%s-%d" % (name, len(counts))  # noqa: UP031

    for i in range(12):
        yield f(data(i, 2), ["alpha-a", "beta"][i % 2], list(range(i % 3)))


@steady
def described_objects_in_logs(compiled):
    class Layer:
        def __init__(self, n, rate):
            self.n, self.rate = n, rate

        def __repr__(self):
            return f"Layer(n={self.n}, rate={self.rate:.2f})"

    layer = Layer(0, 0.5)

    @compiled
    def f(x):
        layer.n += 1
        layer.rate *= 0.9
        text = f"{layer} {layer!r:>30} {[layer.n, layer.rate]}"
        return x * layer.rate, text

    for i in range(12):
        yield f(data(i, 2))


@steady
def settings_as_json(compiled):
    @compiled
    def f(x, text):
        settings = json.loads(text)
        y = x * settings["scale"] + sum(settings["shifts"])
        return y, json.dumps({"n": len(settings["shifts"]), "scale": settings["scale"]}, sort_keys=True)

    for i in range(12):
        yield f(data(i, 2), json.dumps({"scale": 0.5 * i, "shifts": list(range(i % 3))}))


@growing
def numbers_of_all_kinds(compiled):
    rates = [decimal.Decimal("0.1"), fractions.Fraction(1, 3)]

    @compiled
    def f(x, i):
        rates[0] = rates[0] + decimal.Decimal("0.05")
        rates[1] = rates[1] * fractions.Fraction(2, 3)
        return x * float(rates[0]) + float(rates[1]) * i

    for i in range(12):
        yield f(data(i, 2), i), list(map(str, rates))


@steady
def texts_evaluated(compiled):
    held = {"expression": "x * 2"}

    @compiled
    def f(x, n):
        names = {"x": x, "n": n, "torch": torch}
        exec(f"y = {held['expression']} + n", names)
        return eval("y.relu() - n", names)

    for i in range(12):
        held["expression"] = ["x * 2", "torch.sin(x)", "x - 1"][i % 3]
        yield f(data(i, 2), i)
