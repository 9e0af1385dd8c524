# size: table
"""The parts of random programs: the module around them, and expressions by kind."""

PRELUDE = """
import collections, contextlib, functools, itertools, math, operator
import torch

counter = 0
table = {"a": 1, "b": 2}

class Box:
    kind = "box"
    def __init__(self, value, items=()):
        self.value = value
        self.items = list(items)
    def bump(self, by=1):
        self.value += by
        return self.value
    @property
    def double(self):
        return self.value * 2
    def __len__(self):
        return len(self.items)
    def __iter__(self):
        return iter(self.items)
    def __getitem__(self, i):
        return self.items[i]
    def __add__(self, other):
        return Box(self.value + getattr(other, "value", other), self.items)
    def __eq__(self, other):
        return isinstance(other, Box) and self.value == other.value

class Sub(Box):
    def bump(self, by=1):
        return super().bump(by + 1)

class Manager:
    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow
    def __enter__(self):
        self.log.append("enter " + self.name)
        return self
    def __exit__(self, kind, value, trace):
        self.log.append(("exit " + self.name, None if kind is None else kind.__name__))
        return self.swallow

@contextlib.contextmanager
def managed(log, name):
    log.append("in " + name)
    try:
        yield len(name)
    finally:
        log.append("out " + name)

def numbers(limit):
    for i in range(limit):
        yield i
        if i % 3 == 2:
            yield -i

def rows(t, log):
    try:
        for i in range(2):
            yield t[i] * (i + 1)
    finally:
        log.append("rows done")

def apply(function, *args, **kwargs):
    return function(*args, **kwargs)

Pair = collections.namedtuple("Pair", "left right")
"""

MAKE = """
def make():
    import types
    return types.SimpleNamespace(log=[], n=3, flag=True, items=[1, 2, 3], names={"p": 1, "q": 2}, box=Box(2, [4, 5]),
                                 weight=torch.linspace(-1, 1, 4, dtype=torch.float64), last=None, seen=set(),
                                 queue=collections.deque([1, 2], maxlen=4))
"""

# For each kind: expressions without parts, and expressions with parts. <kind> stands for an expression of this kind.
EXPRESSIONS = {
    "int": (
        ["<literal>", "w.n", "counter", "len(w.items)"],
        [
            "(<int> + <int>)",
            "(<int> - <int>)",
            "(<int> * <small>)",
            "(<int> // 3)",
            "(<int> % 5)",
            "x.shape[0]",
            "w.box.value",
            "len(<ints>)",
            "sum(<ints>)",
            "(<int> if <condition> else <int>)",
            "max(<int>, <int>)",
            "abs(<int>)",
            "w.names.get('p', <int>)",
            "w.names.get('z', <int>)",
            "table['a']",
            "<box>.double",
            "<box>.bump(<small>)",
            "len(<box>)",
            "apply(lambda a, b=2: a + b, <int>)",
            "apply(lambda *a, **k: len(a) + len(k), <int>, <int>, k=<int>)",
            "int(<S> * 3.17)",
            "(lambda: <int>)()",
            "len(<str>)",
            "(<int> and <int>)",
            "(<int> or <int>)",
            "functools.reduce(operator.add, <ints>, <int>)",
            "next((i for i in <ints> if i > <int>), <int>)",
            "(<ints> or [<int>])[0]",
            "int(<M>.sum() > 0.1357)",
            "<M>.numel()",
        ],
    ),
    "plain": (
        ["w.n", "counter", "len(w.items)"],
        ["(<plain> + <plain>)", "x.shape[0]", "max(w.items, default=<small>)"],
    ),
    "float": (
        ["<real>", "2.5"],
        [
            "float(<S>)",
            "<S>.item()",
            "math.sin(<int>)",
            "(<int> / 3)",
            "<V>.tolist()[2]",
            "(<float> * 0.5)",
            "round(<float>, 3)",
        ],
    ),
    "condition": (
        ["w.flag", "w.last is None", "w.n > 2", "<literal> in w.items"],
        [
            "<int> > <int>",
            "<int> == <int>",
            "<int> in <ints>",
            "<int> not in w.seen",
            "<box>.value > <int>",
            "<ints>",
            "<int> < <int> < 4",
            "isinstance(w.box, Box)",
            "isinstance(<box>, Sub)",
            "'r' in w.names",
            "<S> > <real>",
            "any(i > <int> for i in <ints>)",
            "all([i < 5 for i in <ints>])",
            "(<condition> and <condition>)",
            "(<condition> or <condition>)",
            "not (<condition>)",
            "<box> == <box>",
            "bool(<V>[0] > <real>)",
            "(<M> > 2.7182).any()",
            "hasattr(w, 'note')",
        ],
    ),
    "ints": (
        ["w.items", "[<literal>, <literal>]", "[1]"],
        [
            "[i * <int> for i in range(3)]",
            "[i for i in <ints> if i != <int>]",
            "list(numbers(<small>))",
            "sorted(<ints>, key=lambda i: -i)",
            "<ints>[1:]",
            "<ints>[:2]",
            "<ints>[::-1]",
            "list(map(lambda i: i + <int>, <ints>))",
            "list(filter(lambda i: i > <int>, <ints>))",
            "[*<ints>, <int>]",
            "list(w.queue)",
            "list(w.names.values())",
            "list(dict.fromkeys(<ints>))",
            "list(itertools.chain([<int>], <ints>))",
            "list(itertools.accumulate(<ints>))",
            "[*w.box]",
            "sorted(w.seen)",
            "[a + b for a, b in zip(<ints>, range(9))]",
            "[i for i, _ in enumerate(<ints>)]",
            "<box>.items",
            "list({i % 3: i for i in <ints>}.values())",
            "[len(k) for k in w.names]",
            "[int(v * 2.71) for v in <V>.tolist()[:2]]",
            "[i + j for i in <ints>[:2] for j in range(2)]",
        ],
    ),
    "box": (["w.box", "Box(<literal>)"], ["Box(<int>, <ints>)", "Sub(<int>)", "(w.box + <int>)", "(<box> + <box>)"]),
    "M": (
        ["x", "x.clone()"],
        [
            "(<M> + <M>)",
            "(<M> * <V>)",
            "(<M> - <S>)",
            "(<M> * <float>)",
            "(<M> + <int>)",
            "(<M> / 3)",
            "(-<M>)",
            "<M>.relu()",
            "<M>.tanh()",
            "torch.sigmoid(<M>)",
            "<M>.flip(0)",
            "<M>.t().contiguous().t()",
            "torch.where(<M> > 0.1234, <M>, <M>)",
            "torch.cat([<M>[:1], <M>[1:]], 0)",
            "torch.stack([row for row in <M>])",
            "<M>.reshape(-1).view(-1, 4)",
            "(<M> if <condition> else <M>)",
            "apply(torch.mul, <M>, 0.5)",
            "sum((<M> for _ in range(2)), <M>)",
            "(lambda m: m * 2)(<M>)",
            "functools.partial(torch.add, <M>)(<int>)",
            "functools.reduce(torch.add, [<M>, <M>])",
            "torch.softmax(<M>, 1)",
            "(<M> @ torch.eye(4, dtype=torch.float64))",
            "<M>.masked_fill(<M> > 1.2345, 0.0)",
            "x.new_ones(x.shape)",
        ],
    ),
    "V": (
        ["w.weight", "x[0]"],
        [
            "<M>.sum(0)",
            "<M>[0]",
            "<M>[-1]",
            "<M>.mean(dim=0)",
            "(<V> * <int>)",
            "torch.full((4,), float(<int>), dtype=torch.float64)",
            "<V>.roll(1)",
            "sum(rows(<M>, w.log))",
            "torch.stack([<S>, <S>, <S>, <S>])",
            "<M>.amax(0)",
        ],
    ),
    "S": (
        ["x.mean()", "w.weight[1]"],
        [
            "<M>.mean()",
            "<V>.sum()",
            "<V>[1]",
            "<M>.tanh().amax()",
            "(<S> * 0.5)",
            "(<S> + <S>)",
            "max(<S>, <S>, key=float)",
        ],
    ),
    "str": (
        ["'text'", "f'{w.n}'"],
        [
            "f'{<plain>}'",
            "f'{<plain>:>4d}'",
            "f'{x.sum() > <real>!r:>6}'",
            "format(<S>, '.3f')",
            "'-'.join(str(i) for i in <ints>)",
            "'%d %s' % (<int>, w.flag)",
            "str(<ints>)",
            "'{} {}'.format(<int>, w.flag)",
            "f'{x.mean():.3f}'",
            "(<str> + <str>)",
            "<str>.upper()",
            "repr(<int>)",
        ],
    ),
    "any": (
        ["None", "<int>"],
        [
            "<int>",
            "<float>",
            "<M>",
            "<V>",
            "<S>",
            "<ints>",
            "<str>",
            "<box>",
            "(<any>, <any>)",
            "[<any>]",
            "{'k': <any>, 2: <any>}",
            "Pair(<any>, <any>)",
            "Box(<any>)",
            "{1, <int>}",
            "[<M>, *<ints>]",
            "w.last",
            "collections.OrderedDict(a=<any>)",
        ],
    ),
}
