# size: table
"""Programs that use the standard library, by module: the body of `f(w, x)`, after its name. Lines that begin with | stand
in the module. `w` is a world that changes between the calls (test_library.py)."""

PRELUDE = """
import abc, array, bisect, collections, contextlib, copy, dataclasses, datetime, decimal, enum, fractions, functools, heapq, io, itertools, json, logging, math, operator, os, pathlib, pickle, random, re, statistics, string, struct, sys, types, typing, warnings, weakref, textwrap, uuid, hashlib, base64, secrets, numbers, inspect, contextvars, threading, queue, time, calendar, graphlib, shlex, fnmatch, html, zlib, binascii, colorsys, cmath, difflib, pprint, reprlib, traceback, gc, ast, dis, tokenize
from collections import *
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
G = {"k": 1}
@dataclasses.dataclass
class Config:
    hidden: int = 4
    layers: int = 2
    act: str = "relu"
    extra: dict = dataclasses.field(default_factory=dict)
    @property
    def double(self): return self.hidden * 2
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 4))
        self.register_buffer("steps", torch.zeros(()))
        self.count = 0
    def forward(self, t): return t * self.weight
def make():
    net = Net(); net.requires_grad_(False)
    return types.SimpleNamespace(log=[], n=2, items=[3, 1, 2], names={"a": 1, "b": 2}, net=net, cfg=Config())
def between(w, i):
    w.n += 1
    if i == 2: w.items.append(9)
    if i == 3: w.names["c"] = 3; w.cfg.act = "tanh"
    if i == 4: w.cfg = Config(hidden=8)
"""

PROGRAMS = r"""
registry_of_classes
|REG = {}
|def register(name):
|    def deco(c):
|        REG[name] = c
|        return c
|    return deco
|@register("relu")
|class Relu:
|    def __call__(self, t): return t.relu()
|@register("tanh")
|class Tanh:
|    def __call__(self, t): return t.tanh()
return REG[w.cfg.act]()(x) * w.cfg.hidden, sorted(REG)

registry_in_call
reg = {}
def register(f):
    reg[f.__name__] = f
    return f
@register
def a(t): return t + w.n
@register
def b(t): return t * w.n
for k in sorted(reg): x = reg[k](x)
return x, list(reg)

plugin_init_subclass
|class Base:
|    plugins = []
|    def __init_subclass__(cls, /, scale=1, **kw):
|        super().__init_subclass__(**kw)
|        cls.scale = scale
|        Base.plugins.append(cls)
|    def run(self, t): return t * self.scale
|class P1(Base, scale=2): pass
|class P2(P1, scale=3):
|    def run(self, t): return super().run(t) + 1
for c in Base.plugins: x = c().run(x)
return x, [c.__name__ for c in Base.plugins]

plugin_made_in_call
|class Base:
|    plugins = []
|    def __init_subclass__(cls, /, scale=1, **kw):
|        super().__init_subclass__(**kw)
|        cls.scale = scale
|        Base.plugins.append(cls)
class P3(Base, scale=w.n): pass
return x * P3.scale, len(Base.plugins)

set_name
|class Field:
|    def __set_name__(self, owner, name): self.name = "_" + name
|    def __get__(self, o, t=None):
|        if o is None: return self
|        return getattr(o, self.name, 0)
|    def __set__(self, o, v): setattr(o, self.name, v)
|class Rec:
|    a = Field(); b = Field()
|REC = Rec()
REC.a = x.sum(); REC.b += w.n
r = Rec(); r.a = x
return r.a + REC.b, vars(REC)

class_getitem
|class Tagged:
|    tag = None
|    def __class_getitem__(cls, item): return type(f"{cls.__name__}[{item}]", (cls,), {"tag": item})
|    def __call__(self, t): return t * self.tag
|T3 = Tagged[3]
return T3()(x), T3.__name__, Tagged[w.n]()(x)

generic_alias
|TV = typing.TypeVar("TV")
|class Stack(typing.Generic[TV]):
|    def __init__(self): self.items = []
|    def push(self, v: TV): self.items.append(v); return self
|    def pop(self) -> TV: return self.items.pop()
s = Stack[torch.Tensor]()
s.push(x).push(x + 1)
return s.pop(), len(s.items), typing.get_type_hints(Stack.push)["v"] is TV

lru_cached_helper
|CNT = [0]
|@functools.lru_cache(maxsize=4)
|def freqs(dim, base=10.0):
|    CNT[0] += 1
|    return base ** (-torch.arange(0, dim, 2).float() / dim)
return torch.outer(x[:, 0], freqs(x.shape[1])), freqs(w.cfg.hidden), freqs.cache_info().hits >= 0, CNT[0]

lru_cache_on_symbol
|@functools.lru_cache(maxsize=None)
|def mask(n): return torch.ones(n, n).tril()
return mask(x.shape[0]) @ x, mask(x.shape[0]) is mask(x.shape[0]), mask.cache_info()

lru_cache_evicts
|@functools.lru_cache(maxsize=2)
|def mask(n): return torch.ones(n, n).tril()
r = mask(x.shape[0]) @ x
for i in range(3): mask(i)
return r, mask.cache_info()

singledispatch_registered
|@functools.singledispatch
|def conv(v): return "obj"
|@conv.register
|def _(v: int): return v * 2
|@conv.register(list)
|def _(v): return [conv(u) for u in v]
|@conv.register(torch.Tensor)
|def _(v): return v + 1
return conv(x), conv(w.items), conv(x.shape[0]), conv("a"), conv(True)

singledispatch_late
|@functools.singledispatch
|def conv(v): return "obj"
if w.n == 4:
    conv.register(int, lambda v: v * 10)
return conv(w.n), conv(x.shape[0]), x * 2

singledispatchmethod
|class V:
|    @functools.singledispatchmethod
|    def go(self, v): return ("?", v)
|    @go.register
|    def _(self, v: int): return v + 1
|    @go.register
|    def _(self, v: torch.Tensor): return v * 3
v = V()
return v.go(x), v.go(x.shape[0]), v.go("s")

total_ordering_in_call
@functools.total_ordering
class O:
    def __init__(s, v): s.v = v
    def __eq__(s, o): return s.v == o.v
    def __lt__(s, o): return s.v < o.v
return [O(1) <= O(w.n), O(3) > O(w.n)], x * w.n

contextvars_used
|VAR = contextvars.ContextVar("VAR", default=1)
t = VAR.set(VAR.get() + w.n)
y = x * VAR.get()
VAR.reset(t)
return y, VAR.get()

contextvars_copy_run
|VAR = contextvars.ContextVar("VAR", default=1)
ctx = contextvars.copy_context()
def go(t):
    VAR.set(w.n)
    return t * VAR.get()
y = ctx.run(go, x)
return y, VAR.get(), ctx[VAR]

typed_namedtuple_methods
|class P(typing.NamedTuple):
|    a: int
|    b: torch.Tensor = None
|    def scaled(self, k): return self._replace(b=self.b * k)
p = P(w.n, x)
q = p.scaled(2)
return q, p._asdict(), P._fields, q.b is p.b, P._make([1, x]), P.__new__.__defaults__, hash(p._replace(b=None)) == hash((w.n, None))

enum_flags_ops
|class Fl(enum.Flag):
|    A = enum.auto(); B = enum.auto(); C = A | B
f = Fl.A | Fl.B
return f is Fl.C, [m.name for m in Fl], (~Fl.A).name, Fl.A in f, f.value, x * f.value, Fl(w.n % 4)

enum_str_int
|class S(str, enum.Enum):
|    A = "a"; B = "b"
|    @classmethod
|    def _missing_(cls, v): return cls.A
|class I(enum.IntEnum):
|    ONE = 1; TWO = 2
return S("a").value, S("zz"), S.A == "a", f"{S.B}", f"{I.TWO}", x * I.TWO, I(w.n % 2 + 1).name, str(I.ONE), I.ONE + x.shape[0], sorted(I, reverse=True), S.B.upper()

enum_auto_made_in_call
class E(enum.Enum):
    A = enum.auto()
    B = w.n + 10
return E.B.value * x, [e.name for e in E]

enum_functional
E = enum.Enum("E", ["X", "Y"])
return E.X.value + x, E["Y"].name

enum_with_methods
|class Act(enum.Enum):
|    RELU = "relu"; TANH = "tanh"
|    def __call__(self, t): return getattr(torch, self.value)(t)
|    @property
|    def nice(self): return self.name.title()
return Act(w.cfg.act)(x), Act[w.cfg.act.upper()].nice, {Act.RELU: 1}.get(Act(w.cfg.act)), Act.RELU.__members__ if False else len(Act.__members__)

exit_stack_callbacks
log = w.log
with contextlib.ExitStack() as st:
    st.callback(log.append, w.n)
    st.callback(lambda k: log.append(k), k=x.shape[0])
    @st.push
    def ex(t, v, tb): log.append(t and t.__name__); return True
    y = x * 2
    if w.n % 2: raise KeyError(w.n)
return y, list(log)

exit_stack_pop_all
with contextlib.ExitStack() as st:
    st.callback(w.log.append, "closed")
    keep = st.pop_all()
w.log.append("after")
keep.close()
return x, list(w.log)

contextmanager_values
|@contextlib.contextmanager
|def scope(w, k):
|    old = w.n; w.n = k
|    try: yield old
|    finally: w.n = old
with scope(w, 10) as o, scope(w, 20) as p:
    y = x * w.n + o + p
return y, w.n

contextdecorator
|class Track(contextlib.ContextDecorator):
|    depth = 0
|    def __enter__(self): Track.depth += 1; return self
|    def __exit__(self, *e): Track.depth -= 1; return False
|@Track()
|def g(t): return t * Track.depth
with Track(): y = g(x)
return y, Track.depth, g(x)

asynccontext_by_hand
class A:
    async def __aenter__(self): return 3
    async def __aexit__(self, *a): w.log.append("x")
async def go():
    async with A() as k: return x * k
c = go()
try: c.send(None)
except StopIteration as s: return s.value, list(w.log)

abc_register
|class Shape(abc.ABC):
|    @abc.abstractmethod
|    def area(self): ...
|    @classmethod
|    def __subclasshook__(cls, c): return True if hasattr(c, "area") else NotImplemented
|class Sq:
|    def area(self): return 4
try: Shape()
except TypeError as e: m = str(e)
return isinstance(Sq(), Shape), m, x * Sq().area(), issubclass(int, Shape)

protocol_runtime
|@typing.runtime_checkable
|class HasArea(typing.Protocol):
|    def area(self) -> int: ...
|class Sq:
|    def area(self): return 4
return isinstance(Sq(), HasArea), isinstance(3, HasArea), x * 2

weak_cache
|class K:
|    pass
|CACHE = weakref.WeakKeyDictionary()
|KEY = K()
if KEY not in CACHE: CACHE[KEY] = w.n
CACHE[KEY] += 1
tmp = K(); CACHE[tmp] = 5
n = len(CACHE); del tmp
return x * CACHE[KEY], n, len(CACHE)

weak_value_dict
d = weakref.WeakValueDictionary()
class V: pass
v = V(); v.t = x
d["a"] = v
y = d["a"].t + 1
del v
return y, len(d), d.get("a")

weakref_finalize
|LOG = []
|class K: pass
k = K(); weakref.finalize(k, LOG.append, w.n)
del k
return x * len(LOG), list(LOG)

string_template
t = string.Template("$a-${b}-$$")
return t.substitute(a=w.n, b=x.shape[0]), t.safe_substitute(a=1), x + 1

formatter
return string.Formatter().format("{0.n}-{items[0]}-{1!r:>10}", w, "q", items=w.items), x

format_map
class D(dict):
    def __missing__(s, k): return f"<{k}>"
return "{a}{b}{zz}".format_map(D(w.names)), x * 2

size_formats
n, m = x.shape
return f"{n:04d}|{n:+}|{n:x}|{n:b}|{n:e}|{n:,}|{n:>5}|{n:<5}|{n:^5}|{n!r}|{n/m:.3%}", "%d %s %05.1f %x %r" % (n, m, n, n, m), "{:d} {}".format(n, m), str(n).zfill(3), format(n, "08.3f"), x

regex_idioms
pat = re.compile(r"(?P<k>\w+)=(?P<v>\d+)")
s = f"a={w.n},b={x.shape[0]}"
d = {m["k"]: int(m["v"]) for m in pat.finditer(s)}
return d, re.sub(r"\d+", lambda m: str(int(m[0]) * 2), s), pat.match(s).groupdict(), re.split(r"[=,]", s), x * d["b"], pat.fullmatch("zz"), re.escape("a.b")

itertools_all
n = x.shape[0]
it = itertools
return (list(it.accumulate(range(n), initial=5)), list(it.accumulate([1, 2, n], operator.mul)), list(it.combinations(range(n), 2))[:3], list(it.combinations_with_replacement("ab", 2)), list(it.compress("abcdef", [1, 0, n])), list(it.islice(it.count(n, 2), 3)), list(it.islice(it.cycle("ab"), n)), list(it.dropwhile(lambda i: i < 2, range(n))), list(it.filterfalse(lambda i: i % 2, range(n))), list(it.pairwise(range(n))), list(it.permutations(range(min(n, 3)), 2)), list(it.product([0, 1], repeat=2)), list(it.repeat(n, 2)), list(it.starmap(pow, [(2, n), (n, 2)])), list(it.takewhile(lambda i: i < 2, range(n))), [list(t) for t in it.tee(range(n), 2)], list(it.zip_longest(range(n), "ab", fillvalue=None)), x)

itertools_product_tensors
return [a * b for a, b in itertools.product([x, x + 1], [1, w.n])], list(itertools.chain(*[[x], (x,)]))[1] is x

groupby_state
return {k: [v for v in g] for k, g in itertools.groupby(sorted(w.items), key=lambda i: i % 2)}, x

groupby_shapes
ts = [x, x + 1, x.T, x.T]
return [(k, len(list(g))) for k, g in itertools.groupby(ts, key=lambda t: t.shape[0])], x

tee_interleaved
a, b = itertools.tee(w.items)
next(a)
return [p + q for p, q in zip(a, b)], x

chain_map_ops
cm = collections.ChainMap({"z": x}, w.names, {"a": 100, "q": 1})
c2 = cm.new_child({"a": w.n}); c2["b"] = 5;
return c2["a"], c2["b"], w.names["b"], cm["q"], sorted(c2), c2.parents["a"], len(c2.maps), c2["z"] is x, dict(c2)["q"]

counter_arith
a = collections.Counter(w.items); b = collections.Counter([1, 1, w.n])
return a + b, a - b, a & b, a | b, +a, a.total(), list(a.elements()), a.most_common(1), x, a["zz"], a == b

userdict_userlist
class L(collections.UserDict):
    def __setitem__(s, k, v): super().__setitem__(k.upper(), v)
d = L(w.names); d["zz"] = x
class UL(collections.UserList): pass
u = UL(w.items) + [w.n]
return dict(d), d["ZZ"] is x, list(u), type(u).__name__, u[1:], collections.UserString("ab") * w.n

ordered_dict_all
d = collections.OrderedDict(zip("abc", [x, w.n, 3]))
d.move_to_end("a"); d.move_to_end("c", last=False)
p = d.popitem(last=False)
return p, list(d), d == {"b": w.n, "a": x} if False else len(d), list(reversed(d)), d | {"z": 1}

deque_maxlen
d = collections.deque(w.items, maxlen=3); d.append(w.n); d.extendleft([8, 9]); d.rotate(1)
return list(d), d.maxlen, d.count(8), d.index(8), x, repr(d)

operator_module
o = operator
return o.itemgetter(0, -1)(w.items), o.attrgetter("cfg.hidden", "n")(w), o.methodcaller("sum", 0)(x), o.add(x, 1), o.concat([1], [2]), o.contains(w.items, 9), o.countOf(w.items, 1), o.indexOf(w.items, 1), o.length_hint(iter(w.items)), o.index(x.shape[0]), o.truth(w.items), o.xor(w.n, 1), o.matmul(x, x.T), o.iadd([1], [2]), o.not_(x.shape[0]), o.is_(x, x), o.call(len, w.items)

math_on_sizes
n = x.shape[0]; m = math
return m.sqrt(n), m.log2(n), m.ceil(n / 2), m.floor(n / 2), m.isqrt(n), m.gcd(n, 6), m.lcm(n, 4), m.comb(n, 2), m.perm(n, 1), m.factorial(n), m.prod([n, 2]), m.hypot(n, 1), m.isclose(n, 3.0), m.copysign(n, -1), m.fmod(n, 2), m.modf(n / 2), m.frexp(n), m.ldexp(1.0, n), m.dist([n], [0]), m.trunc(n / 2), m.exp(-n), m.pow(n, 2), m.log(n, 2), m.fsum([n, 1]), m.radians(n), m.nextafter(n, 0), m.ulp(n), m.remainder(n, 3), x

statistics_of_state
return statistics.mean(w.items), statistics.median(w.items), statistics.pstdev(w.items), statistics.mode(w.items), x * statistics.fmean([x.shape[0], 2])

random_with_seed
r = random.Random(w.n)
k = r.sample(range(10), 3); r.shuffle(k)
return k, r.random(), r.choice(w.items), x * r.randint(1, 5), r.gauss(0, 1)

random_global
random.seed(w.n)
a = random.random()
return x * a, random.randint(0, 9)

random_state_held
|RNG = random.Random(0)
return x * RNG.random(), RNG.randrange(x.shape[0] + 1)

fractions_decimals
f = fractions.Fraction(x.shape[0], 6); d = decimal.Decimal(x.shape[0]) / 7
return f, f + 1, str(d.quantize(decimal.Decimal("0.01"))), x * float(f), f.limit_denominator(3), decimal.Decimal("1.1") + w.n

decimal_context
with decimal.localcontext() as c:
    c.prec = 3 + w.n
    d = decimal.Decimal(1) / 3
return str(d), x

datetimes
d = datetime.date(2020, 1, 31) + datetime.timedelta(days=x.shape[0], hours=w.n)
t = datetime.datetime(2020, 1, 1, 12) - datetime.datetime(2019, 1, 1)
return d.isoformat(), t.total_seconds(), d.weekday(), f"{d:%Y/%m}", x * t.days

json_structs
s = json.dumps({"n": x.shape[0], "items": w.items, "t": x[0].tolist(), "names": w.names}, sort_keys=True, indent=1)
d = json.loads(s)
return s, d["n"] * x, json.dumps([x.size(0)] * 2), json.loads("[1, 2.5, null]")

json_default_hook
def enc(o):
    if isinstance(o, torch.Tensor): return {"shape": list(o.shape)}
    raise TypeError(type(o).__name__)
s = json.dumps({"x": x, "n": w.n}, default=enc)
try: json.dumps(object)
except TypeError as e: m = str(e)
return s, m, x + 1

pickle_round
b = pickle.dumps({"t": x, "c": w.cfg, "n": x.shape[0]})
d = pickle.loads(b)
return d["t"] + 1, d["n"], d["c"].hidden

copy_with_tensors
a = {"x": x, "l": [x, w.items]}
b = copy.copy(a); c = copy.deepcopy(a)
return b["x"] is x, c["x"] is x, c["l"][0] is c["x"], b["l"] is a["l"], c, c["l"][1] == w.items

deepcopy_memo_hooks
class D:
    def __init__(s, t): s.t = t
    def __deepcopy__(s, memo): r = D(s.t * 2); memo[id(s)] = r; return r
    def __copy__(s): return D(s.t + 1)
d = D(x)
e = copy.deepcopy([d, d]); f = copy.copy(d)
return e[0] is e[1], e[0].t, f.t

struct_array_bytes
n = x.shape[0]
b = struct.pack("<ihd", n, w.n, 1.5)
a = array.array("i", [n, w.n]); a.append(7)
ba = bytearray(b"ab"); ba += bytes([n]); ba[0] = 65
mv = memoryview(ba)[1:]
return b, struct.unpack("<ihd", b), a.tolist(), bytes(ba), mv.tobytes(), mv[0], x * a[0], struct.calcsize("<i"), int.from_bytes(b[:4], "little"), n.to_bytes(2, "big"), n.bit_length(), (n).bit_count()

array_in_state
|ARR = array.array("d", [1.0, 2.0])
ARR.append(w.n)
return x * ARR[-1], len(ARR), sum(ARR)

bytearray_state
|BA = bytearray(b"abc")
BA.append(65 + w.n)
return bytes(BA), x * BA[-1]

paths
p = pathlib.PurePosixPath("/a/b") / f"c{w.n}.txt"
return str(p), p.suffix, p.stem, [q.name for q in p.parents], p.with_suffix(".bin").name, x * len(p.parts), os.path.join("a", str(x.shape[0])), os.path.splitext("a.b")

hashes
h = hashlib.sha256(str(w.items).encode()).hexdigest()[:8]
return h, base64.b64encode(bytes([x.shape[0]])), zlib.crc32(b"ab" * w.n), x, binascii.hexlify(b"ab")

dataclass_replace_asdict
c = dataclasses.replace(w.cfg, layers=x.shape[0], extra={"x": x})
d = dataclasses.asdict(c) if False else dataclasses.astuple(dataclasses.replace(c, extra={}))
return c, d, [f.name for f in dataclasses.fields(c)], c == w.cfg if False else c.double, dataclasses.is_dataclass(c), repr(w.cfg)

dataclass_asdict_tensor
c = dataclasses.replace(w.cfg, extra={"x": x})
d = dataclasses.asdict(c)
return d, d["extra"]["x"] is x

dataclass_kw_slots
|@dataclasses.dataclass(slots=True, kw_only=True, eq=True, unsafe_hash=True)
|class S:
|    a: int
|    b: list = dataclasses.field(default_factory=list, hash=False, compare=False)
|    c: dataclasses.InitVar[int] = 0
|    def __post_init__(self, c): self.b.append(c)
s = S(a=w.n, c=x.shape[0]); s2 = S(a=w.n)
try: S(1)
except TypeError as e: m = str(e)
try: s.zz = 1
except AttributeError as e: m2 = str(e)
return s, s == s2, hash(s) == hash(s2), m, m2, x, s.__slots__

dataclass_match_args
|@dataclasses.dataclass
|class Op:
|    name: str
|    args: tuple = ()
def ev(o):
    match o:
        case Op("add", (a, b)): return ev(a) + ev(b)
        case Op("mul", (a, *rest)):
            r = ev(a)
            for q in rest: r = r * ev(q)
            return r
        case Op(name="const", args=(c,)): return c
        case torch.Tensor(): return o
        case int() | float(): return o
        case _: raise ValueError(o)
return ev(Op("add", (Op("mul", (x, w.n, 2)), Op("const", (x.shape[0],)))))

attrs_like_metaclass
|class Meta(type):
|    def __new__(m, name, bases, ns):
|        fields = {k: v for k, v in ns.get("__annotations__", {}).items()}
|        c = super().__new__(m, name, bases, ns); c._fields = fields; return c
|    def __call__(cls, *a, **k):
|        o = cls.__new__(cls)
|        for n, v in zip(cls._fields, a): setattr(o, n, v)
|        for n, v in k.items(): setattr(o, n, v)
|        return o
|class A(metaclass=Meta):
|    p: int
|    q: object
a = A(w.n, q=x)
return a, a.q * a.p, A._fields

metaclass_getattr
|class M(type):
|    def __getattr__(c, n): return n.upper()
|    def __len__(c): return 3
|    def __iter__(c): return iter("abc")
|    def __contains__(c, k): return k == 1
|    def __instancecheck__(c, o): return o == 5
|class A(metaclass=M): pass
return A.foo, len(A), list(A), 1 in A, isinstance(5, A), isinstance(x.shape[1] + 1, A), x

generators_send_throw
def g():
    total = 0
    while True:
        try:
            v = yield total
            if v is None: return total
            total = total + v
        except ValueError as e: total = total * 2
        finally: w.log.append("f")
c = g(); next(c); c.send(x); c.throw(ValueError("a"));
try: c.send(None)
except StopIteration as s: r = s.value
return r, list(w.log)

generator_close_order
def g(k):
    try:
        yield x * k
        yield from g(k + 1) if k < 2 else ()
    finally: w.log.append(k)
c = g(w.n % 3)
a = next(c)
for b in c:
    if b.sum() is None: break
    break
c.close()
return a, list(w.log), c.gi_frame is None

generators_that_are_closed_from_within_over_a_break
def g(k):
    try:
        yield x * k
        yield from (g(k + 1) if k < 2 else ())
    finally: print("b"); w.log.append(k)
c = g(w.n % 3)
a = next(c)
for b in c: break
c.close()
return a, list(w.log), c.gi_frame is None

yield_from_return
def inner():
    r = yield x
    return r
def outer():
    v = yield from inner()
    yield v * 2
o = outer(); a = next(o); b = o.send(a + w.n)
return a is x, b, [type(e).__name__ for e in o]

async_by_hand
class Fut:
    def __init__(s, v): s.v = v
    def __await__(s):
        got = yield s.v
        return got
async def work(k):
    a = await Fut(k)
    b = await Fut(a + 1)
    return x * b
c = work(w.n); out = [c.send(None)]; out.append(c.send(5))
try: c.send(7)
except StopIteration as e: out.append(e.value)
return out

async_gather_scheduler
class Yield:
    def __await__(s): yield
async def task(i):
    for k in range(i):
        w.log.append((i, k)); await Yield()
    return x * i
ready = collections.deque(task(i) for i in range(1, 4)); res = []
while ready:
    t = ready.popleft()
    try: t.send(None)
    except StopIteration as e: res.append(e.value)
    else: ready.append(t)
return res, list(w.log)

async_generator
async def ag():
    for i in range(w.n): yield x * i
async def go(): return [t async for t in ag()]
c = go()
try: c.send(None)
except StopIteration as e: return e.value

nonlocal_counters
def counter():
    n = 0
    def inc(k=1):
        nonlocal n
        n += k
        return n
    def get(): return n
    return inc, get
inc, get = counter(); inc(); inc(w.n)
fs = [lambda k=k: k * get() for k in range(3)]
return x * get(), [f() for f in fs], inc.__closure__[0].cell_contents

except_star
try:
    raise ExceptionGroup("g", [ValueError(w.n), TypeError("t"), ExceptionGroup("h", [KeyError(x.shape[0])])])
except* ValueError as e: a = e.exceptions[0].args
except* (TypeError, KeyError) as e: b = e
return a, b, b.subgroup(KeyError), x

except_star_rest
#R
try:
    raise ExceptionGroup("g", [ValueError(w.n), TypeError("t")])
except* ValueError as e: w.log.append(len(e.exceptions))

notes
#R
e = RuntimeError("a", w.n); e.add_note(f"n {x.shape[0]}")
try: raise e
except RuntimeError as f: f.add_note("second"); raise

finally_order
def g():
    for i in range(3):
        try:
            if i == 1: continue
            if i == 2: break
            w.log.append(i)
        except ZeroDivisionError: pass
        else: w.log.append("else")
        finally: w.log.append(("fin", i))
    else: w.log.append("never")
    try: return x * 1
    finally: w.log.append("ret")
return g(), list(w.log)

walrus_everywhere
if (n := x.shape[0]) > 2 and (m := n * 2): pass
else: m = 0
d = {k: v for k in "ab" if (v := w.names.get(k))}
return [y := x * 2, y + n, m], d, (lambda: (z := 3) + z)(), [last := i for i in range(3)][-1] + last

match_all
def kind(v):
    match v:
        case None: return "none"
        case True | False: return "bool"
        case int(n) if n > 3: return f"big {n}"
        case 0 | 1 | 2: return "small"
        case int(): return "int"
        case -1.5: return "f"
        case "a" | "b" as s: return s
        case str(s): return s.upper()
        case [1, [p, *q], *r]: return p, q, r
        case (a, b): return a, b
        case []: return "empty"
        case {"k": k, "z": {"y": y}, **rest}: return k, y, rest
        case {"k": k}: return k
        case {}: return "map"
        case torch.Tensor(shape=(n, 4), dtype=torch.float32): return "t", n
        case torch.Tensor(): return "T"
        case Config(hidden=h, act="relu"): return h
        case Config(): return "cfg"
        case w.n: return "wn"
        case complex(real=r): return r
        case _: return "?"
return [kind(v) for v in (None, True, x.shape[0], 1, -1.5, "a", "q", [1, [2, 3], 4], (1, x), [], {"k": 1, "z": {"y": 2}, "o": 3}, {"k": x}, {}, x, x.T, w.cfg, 2j, {1, 2}, b"ab")]

star_unpacking
a, (b, *c), *d = [x, w.items, 1, 2, w.n]
def f(*a, k, **kw): return a, k, kw
return c, d, f(*w.items, *[1], k=x.shape[0], **{**w.names, "z": x}), [*w.names, *range(w.n)], {**w.names, "a": 0}, (*x.shape,)

slices_objects
s = slice(1, None, 2); n = x.shape[0]
return x[s], w.items[s], s.indices(n), slice(n), slice(-n, n).indices(10), x[slice(None), slice(0, 2)], "abcdefg"[slice(n)], range(n)[slice(1, None)], s == slice(1, None, 2), w.items[:n], x[:n // 2]

chained_compare
n = x.shape[0]
return 0 < n < 4 < 5, n == n == 3, 1 < n > 2, not n > 3, (n > 2) is True, (n == 3) + 1, [1 <= n <= k for k in range(5)], x if 1 < n != 5 else -x

short_circuit_values
n = x.shape[0] - 3
return n or "zero", n and "non", [] or w.items, w.names.get("c") or x, None or n, (n > 0 and n) , not n, 0 or n or None

str_methods_of_sizes
s = str(x.shape[0]) * 2
return s.isdigit(), s.rjust(6, "0"), s.partition("3"), s.encode(), s.translate({51: "x"}), s.center(7, "*"), int(s) * x, s.split("3"), ",".join(map(str, x.shape)), s.count("3"), s[::-1], s.find("5"), hex(x.shape[0]), oct(x.shape[0]), bin(x.shape[0]), chr(65 + x.shape[0]), repr(x.shape[0]), ascii(x.shape[0]), float(x.shape[0]), complex(x.shape[0]), "a" * x.shape[0], [0] * x.shape[0], bytes(x.shape[0])

divmod_round_pow
n = x.shape[0]
return divmod(n, 2), divmod(-n, 4), divmod(n, 2.5), round(n / 3, 2), round(n, -1), round(n / 2), pow(n, 2), pow(n, -1), pow(n, 3, 5), pow(2, n), n ** 0.5, -n // 2, -n % 4, n << 2, n >> 1, n & 1, n | 8, n ^ 3, ~n, abs(-n), +n, n.real, n.imag, n.numerator, n.conjugate(), int.__add__(n, 1), n.__add__(1), x

sorted_with_symbols
n, m = x.shape
return sorted([m, n, 2]), sorted([x, x.T], key=lambda t: t.shape[0])[0], max([n, m], key=lambda v: -v), min(n, m, 3), max([], default=n), min((n, "a"), (m, "b")), sorted(w.names.items(), key=lambda kv: -kv[1]), sum([n, m], start=1), sorted([3, n, 1], reverse=True), max(n, m) is n, x

any_all_tensors
return any(t.sum() > 0 for t in x), all(x[0] == x[0]), any([]), all([x.shape[0], 1]), bool(torch.any(x > 0)), x

zip_strict
#R
return list(zip(x, range(3), strict=True))

enumerate_reversed
return [(i, v * i) for i, v in enumerate(x, start=w.n)][0], list(reversed(w.items)), list(reversed(range(x.shape[0]))), [t for t in reversed(x)][0], list(enumerate("ab", x.shape[0]))

iter_sentinel
it = iter(w.items);
def pop(): return w.items[-1] if not w.log else w.log.pop()
w.log[:] = [1, 2, 9]
return list(iter(pop, 9)), x, list(iter(functools.partial(next, iter([1, 2, 3])), 3))

set_algebra
a = set(w.items); b = {1, w.n, x.shape[0]}
a |= {5}; a -= {3}; a ^= {1}
return a, a | b, a & b, a - b, a ^ b, a <= b, b.issubset(range(100)), a.isdisjoint(b), frozenset(b) in {frozenset(b): 1}, {x.shape: 1}[torch.Size(x.shape)], {frozenset({1, 2}): x}[frozenset([2, 1])] is x, x

tuple_equality_tensors
t = x[0, 0]
try: r = (x, 1) == (x, 1), (x, 1) == (x, 2), [x] == [x], {"a": x} == {"a": x}, x in [x], [x, t].index(x), (t,) == (t.clone(),), (1, x) < (2, x)
except Exception as e: r = type(e), str(e)
return r, x

tuple_equality_raises
#R
return (x,) == (x + 0,)

hash_of_symbols
n = x.shape[0]
d = {n: "n", (n, 4): "p", n + 0.0: "f"}
return hash(n) == hash(3), d[n], d.get((3, 4)), len(d), {n, 3, 3.0}, n in (3, 5), (n, 4) in {(3, 4): 1}, x
"""
