# size: table
"""Programs in the idioms of Python's users: configurations, decorators, context managers, generators, matches, objects. As
programs_library, with the prelude of programs_torch."""

PROGRAMS = r"""
config_from_dict
|@dataclasses.dataclass
|class Block:
|    dim: int = 4
|    act: str = "relu"
|    drops: list = dataclasses.field(default_factory=list)
|    @classmethod
|    def of(c, d): return c(**{f.name: d[f.name] for f in dataclasses.fields(c) if f.name in d})
b = Block.of({"dim": w.n, "drop": 1, "act": w.cfg.act}); c = Block()
b.drops.append(x.shape[0])
return getattr(F, b.act)(x) * b.dim, b, c, b == c, dataclasses.asdict(b)

config_inheritance
|@dataclasses.dataclass
|class Base:
|    lr: float = 0.1
|    steps: int = 2
|    def __post_init__(s): s.total = s.lr * s.steps
|@dataclasses.dataclass(order=True)
|class Child(Base):
|    name: str = "c"
|    tags: tuple = ()
|    cache: dict = dataclasses.field(default_factory=dict, repr=False, compare=False)
c = Child(lr=0.5, steps=w.n); d = dataclasses.replace(c, name="d")
c.cache["x"] = x
return x * c.total, c, d, c < d, repr(d), d.cache is c.cache

config_frozen_hash
|@dataclasses.dataclass(frozen=True)
|class Key:
|    n: int
|    name: str = "k"
|TABLE = {}
k = Key(x.shape[0]); TABLE.setdefault(k, []).append(w.n)
try: k.n = 3
except dataclasses.FrozenInstanceError as e: err = str(e)
return x * len(TABLE[k]), {repr(q): v for q, v in TABLE.items()}, err, k == Key(x.shape[0])

config_initvar
|@dataclasses.dataclass
|class C:
|    a: int
|    k: dataclasses.InitVar[int] = 2
|    b: int = dataclasses.field(init=False)
|    def __post_init__(s, k): s.b = s.a * k
c = C(w.n, x.shape[1])
return c, x + c.b, dataclasses.fields(c)[1].name

attr_dict
|class AttrDict(dict):
|    def __getattr__(s, k):
|        try: return s[k]
|        except KeyError: raise AttributeError(k) from None
|    def __setattr__(s, k, v): s[k] = v
|CFG = AttrDict(a=1, nested=AttrDict(b=2))
CFG.a += 1; CFG.nested.b = w.n; CFG["t" + str(w.n)] = 1
try: CFG.zz
except AttributeError as e: err = str(e)
return x * CFG.a * CFG.nested.b, err, len(CFG), AttrDict(y=x)

dot_path_lookup
|CFG = {"model": {"layers": [{"dim": 4}, {"dim": 8}]}}
def get(d, path):
    for p in path.split("."): d = d[int(p)] if p.isdigit() else d[p]
    return d
get(CFG, "model.layers.1")["dim"] += w.n
try: get(CFG, "model.nope")
except KeyError as e: err = repr(e)
return x * get(CFG, "model.layers.1.dim"), err

yaml_like_parse
text = f'''
name: net{w.n}
dims: [4, {x.shape[0]}, 2]
scale: 0.5
# comment
'''
cfg = {}
for line in text.strip().splitlines():
    if not line or line.startswith("#"): continue
    k, _, v = line.partition(":"); v = v.strip()
    cfg[k] = json.loads(v) if v.startswith("[") else (float(v) if v.replace(".", "").isdigit() else v)
return x * cfg["scale"], cfg

einops_parse
def rearrange(t, pattern, **axes):
    left, right = [p.strip() for p in pattern.split("->")]
    tok = re.findall(r"\([^)]*\)|\S+", left); shape, names = [], []
    for s, d in zip(tok, t.shape):
        if s[0] == "(":
            inner = s[1:-1].split(); known = math.prod(axes[a] for a in inner if a in axes)
            for a in inner: shape.append(axes.get(a, d // known)); names.append(a)
        else: shape.append(d); names.append(s)
    t = t.reshape(shape); out = re.findall(r"\([^)]*\)|\S+", right); flat = [a for s in out for a in s.strip("()").split()]
    t = t.permute([names.index(a) for a in flat]); sizes = dict(zip(names, shape)); final = []
    for s in out: final.append(math.prod(sizes[a] for a in s.strip("()").split()))
    return t.reshape(final)
return rearrange(x, "b (h d) -> h b d", h=2), rearrange(x, "b c -> (c b)"), rearrange(x, "b (h d) -> (b d) h", d=2)

einsum_strings
eq = ",".join(["bi", "bj"]) + "->" + "".join(sorted("ijb"))
ops = [x, x * w.n]
return torch.einsum(eq, *ops), torch.einsum("...i->...", x), eq

decorated_forward
|def log_calls(prefix):
|    def deco(f):
|        @functools.wraps(f)
|        def inner(*a, **k):
|            inner.calls += 1
|            return f(*a, **{"k": 2, **k})
|        inner.calls = 0; inner.prefix = prefix
|        return inner
|    return deco
|@log_calls("p")
|def step(t, k=1, *, bias=0.0):
|    "doc"
|    return t * k + bias
return step(x), step(x, bias=w.n), step(x, k=w.n), step.calls, step.__name__, step.__doc__, inspect.signature(step).parameters["bias"].default

decorator_class
|class Counted:
|    def __init__(s, f): functools.update_wrapper(s, f); s.f, s.n = f, 0
|    def __call__(s, *a, **k): s.n += 1; return s.f(*a, **k)
|    def __get__(s, o, t=None): return s if o is None else functools.partial(s, o)
|class A:
|    k = 2
|    @Counted
|    def m(s, t): return t * s.k
|OBJ = A()
OBJ.k = w.n
return OBJ.m(x), OBJ.m(x + 1), A.m.n, A.m.__name__

kwargs_filtering
|def target(t, scale=1.0, *, shift=0.0): return t * scale + shift
opts = {"scale": w.n, "shift": 1, "junk": 3}
ok = {k: v for k, v in opts.items() if k in inspect.signature(target).parameters}
try: target(x, **opts)
except TypeError as e: err = str(e)
try: target(x, 1, scale=3)
except TypeError as e: err2 = str(e)
return target(x, **ok), sorted(ok), err, err2

default_args_validation
def attention(q, k=None, v=None, *, heads=2, mask=None, scale=None):
    k = q if k is None else k; v = k if v is None else v
    assert q.shape[-1] % heads == 0, f"{q.shape[-1]=} not divisible by {heads=}"
    assert q.dim() == 2 and k.size(0) == v.size(0), f"got {tuple(q.shape)}"
    d = q.shape[-1] // heads; s = scale or d ** -0.5
    q, k, v = (t.view(t.shape[0], heads, d).transpose(0, 1) for t in (q, k, v))
    a = (q @ k.transpose(-2, -1)) * s
    if mask is not None: a = a.masked_fill(mask, float("-inf"))
    return (a.softmax(-1) @ v).transpose(0, 1).flatten(1)
try: attention(x, heads=3)
except AssertionError as e: err = str(e)
return attention(x), attention(x, x + 1, mask=torch.ones(x.shape[0], x.shape[0]).triu(1).bool()), err

shape_assert_messages
try:
    assert x.shape[0] == 3, f"expected 3 rows, got {x.shape[0]} of {x.shape} ({x.dtype})"
except AssertionError as e: return str(e), x
return "ok", x

shape_checks_raise
def check(t, spec):
    if len(t.shape) != len(spec): raise ValueError(f"rank {t.dim()} != {len(spec)}")
    bad = [(i, a, b) for i, (a, b) in enumerate(zip(t.shape, spec)) if b is not None and a != b]
    if bad: raise ValueError("; ".join(f"dim {i}: {a} != {b}" for i, a, b in bad))
    return t
out = []
for spec in [(None, 4), (3, 4), (None,), (2, 5)]:
    try: out.append(check(x, spec).sum())
    except ValueError as e: out.append(str(e))
return out

contextmanager_sets_state
|STATE = {"depth": 0, "log": []}
|@contextlib.contextmanager
|def scope(name):
|    STATE["depth"] += 1; STATE["log"].append(name)
|    try: yield STATE["depth"]
|    except ValueError: STATE["log"].append("caught")
|    finally: STATE["depth"] -= 1
with scope("a") as d, scope("b") as e:
    y = x * d * e
    if w.n % 2: raise ValueError("no")
    y = y + 1
return y, STATE["depth"], len(STATE["log"])

exit_stack_modules
|NET = nn.Sequential(nn.Tanh(), nn.ReLU())
|@contextlib.contextmanager
|def override(m, **kw):
|    old = {k: getattr(m, k, None) for k in kw}
|    for k, v in kw.items(): setattr(m, k, v)
|    try: yield m
|    finally:
|        for k, v in old.items(): setattr(m, k, v)
with contextlib.ExitStack() as st:
    ms = [st.enter_context(override(m, training=w.n % 2 == 0)) for m in NET]
    st.callback(w.log.append, w.n)
    a = [m.training for m in NET]; y = NET(x)
return y, a, [m.training for m in NET], w.log

nullcontext_choice
ctx = torch.no_grad() if w.n % 2 else contextlib.nullcontext()
with ctx as c, contextlib.suppress(KeyError):
    y = x * 2; g = torch.is_grad_enabled(); {}["a"]
return y, g, c

timer_context
|class Timer:
|    total = 0
|    def __enter__(s): s.t = time.perf_counter(); return s
|    def __exit__(s, *e): s.dt = time.perf_counter() - s.t; type(s).total += 1; return False
with Timer() as t: y = x.relu()
return y, t.dt >= 0, Timer.total

redirecting_output
buf = io.StringIO()
with contextlib.redirect_stdout(buf): print("n", w.n, x.shape); y = x + 1
return y, buf.getvalue()

generator_pipeline_tensors
def chunks(t, n):
    for i in range(0, t.shape[0], n): yield t[i : i + n]
def scaled(it, k):
    for c in it: yield c * k
def total(it):
    s = 0
    for c in it: s = s + c.sum(0)
    return s
return total(scaled(chunks(x, 2), w.n)), [c.shape for c in chunks(x, 2)]

generator_send_protocol
def ema(beta):
    avg, n = None, 0
    while True:
        v = yield avg, n
        if v is None: return "end"
        avg = v if avg is None else avg * beta + v * (1 - beta); n += 1
g = ema(0.5); next(g); outs = [g.send(r) for r in x[:2]]
try: g.send(None)
except StopIteration as e: end = e.value
return outs, end

generator_throw_cleanup
log = []
def gen():
    try:
        while True:
            try: yield x * len(log)
            except KeyError as e: log.append(e.args[0])
    finally: log.append("closed")
g = gen(); a = next(g); b = g.throw(KeyError("k")); g.close()
return a, b, log

generator_in_class
|class Loader:
|    def __init__(s, n): s.n, s.epoch = n, 0
|    def __iter__(s):
|        s.epoch += 1
|        for i in range(s.n): yield i, s.epoch
|    def __len__(s): return s.n
|LOADER = Loader(2)
tot = 0
for i, e in LOADER: tot = tot + x * (i + e)
return tot, len(LOADER), LOADER.epoch, list(LOADER)

iterator_in_state
|class Cycle:
|    def __init__(s, d): s.d, s.it = d, iter(d)
|    def next(s):
|        try: return next(s.it)
|        except StopIteration: s.it = iter(s.d); return next(s.it)
|C = Cycle([1, 2, 3])
return x * C.next(), C.next()

yield_from_tree
|TREE = {"a": 1, "b": {"c": 2, "d": [3, {"e": 4}]}}
def leaves(t, path=()):
    if isinstance(t, dict):
        for k, v in t.items(): yield from leaves(v, (*path, k))
    elif isinstance(t, list):
        for i, v in enumerate(t): yield from leaves(v, path + (i,))
    else: yield ".".join(map(str, path)), t
TREE["b"]["c"] = w.n
return {p: x * v for p, v in leaves(TREE)}

match_configs
def build(c):
    match c:
        case {"type": "scale", "k": float() | int() as k, **rest}: return x * k, rest
        case {"type": "act", "name": ("relu" | "tanh") as n}: return getattr(torch, n)(x)
        case [first, *_, last] if first != last: return x + last
        case (a,): return a
        case str() as s if s.startswith("z"): return torch.zeros_like(x)
        case None: return None
        case Config(hidden=h, act="tanh"): return x.tanh() * h
        case Config(hidden=h): return x * h
        case _: raise NotImplementedError(f"{c!r}")
out = [build(c) for c in ({"type": "scale", "k": w.n, "o": 1}, {"type": "act", "name": "tanh"}, [1, 2, w.n], (x,), "zero", None, w.cfg)]
try: build(3.5)
except NotImplementedError as e: out.append(str(e))
return out

match_shapes
match tuple(x.shape):
    case (3, c): r = x * c
    case (b, 4) if b > 4: r = x[:4]
    case (1, *rest): r = x.expand(2, *rest)
    case _: r = x - 1
match x.dim(), w.cfg.act:
    case 2, "relu": r = r.relu()
    case 2, act: r = getattr(r, act)()
return r

enum_dispatch
|class Mode(enum.Enum):
|    A = "a"; B = "b"
|    @classmethod
|    def parse(c, s): return c(s.lower())
|    def __call__(s, t): return t.relu() if s is Mode.A else t.tanh()
|class Opt(enum.Flag):
|    NONE = 0; X = enum.auto(); Y = enum.auto(); XY = X | Y
m = Mode.parse("A" if w.n % 2 else "B"); o = Opt.X | (Opt.Y if w.n > 3 else Opt.NONE)
try: Mode.parse("q")
except ValueError as e: err = str(e)
return m(x), o, Opt.Y in o, o == Opt.XY, err, m.name, [e.value for e in Mode], ~o

int_enum_index
|class Ax(enum.IntEnum):
|    ROW = 0; COL = 1
|class S(str, enum.Enum):
|    MEAN = "mean"; SUM = "sum"
return x.sum(Ax.COL), x.size(Ax.ROW), getattr(x, S.MEAN.value)(), f"{S.SUM.value} {Ax.COL:d}", [1, 2, 3][Ax.COL], S("sum") == "sum"

named_tuples_typed
|class Batch(typing.NamedTuple):
|    ids: object
|    mask: object = None
|    @property
|    def size(s): return s.ids.shape[0]
b = Batch(x); c = b._replace(mask=x > 0)
i, m = c
return b, c, c.size, c._asdict(), Batch._fields, c.mask is m, Batch(*c) == c if False else len(c), isinstance(c, tuple)

typed_dicts
|class TD(typing.TypedDict, total=False):
|    a: int
|    b: str
d: TD = {"a": w.n}; d["b"] = "q"
return d, TD.__annotations__["a"], typing.get_type_hints(TD)["b"], x * d["a"]

abc_interfaces
|class Layer(abc.ABC):
|    @abc.abstractmethod
|    def run(s, t): ...
|    @property
|    @abc.abstractmethod
|    def name(s): ...
|class Add(Layer):
|    name = "add"
|    def run(s, t): return t + 1
|class Nope(Layer): pass
try: Nope()
except TypeError as e: err = str(e)
l = Add()
return l.run(x), isinstance(l, Layer), issubclass(int, Layer), err, isinstance([1], collections.abc.Sequence), isinstance({}, collections.abc.Mapping), isinstance(l.run, collections.abc.Callable), isinstance(x, collections.abc.Iterable)

nested_containers_move
def to(o, f):
    if isinstance(o, torch.Tensor): return f(o)
    if isinstance(o, tuple) and hasattr(o, "_fields"): return type(o)(*(to(v, f) for v in o))
    if isinstance(o, collections.abc.Mapping): return type(o)({k: to(v, f) for k, v in o.items()})
    if isinstance(o, collections.abc.Sequence) and not isinstance(o, str): return type(o)(to(v, f) for v in o)
    if dataclasses.is_dataclass(o): return dataclasses.replace(o, **{g.name: to(getattr(o, g.name), f) for g in dataclasses.fields(o)})
    return o
P = collections.namedtuple("P", "u v")
data = {"a": x, "b": [x, (x, "s")], "p": P(x, 1), "o": collections.OrderedDict(z=x), "c": w.cfg}
r = to(data, lambda t: t.double() * w.n)
return r, r["b"][0] is r["a"], type(r["p"]).__name__

walrus_loops
vals = []
i = 0
while (chunk := x[i : i + 2]).shape[0] and len(vals) < 5: vals.append(chunk.sum()); i += 2
if any((last := v) is not None for v in vals): pass
return vals, last, [y := w.n, y ** 2], (k := x.shape[0]) + k

star_everything
def f(*a, k=0, **kw): return a, k, kw
first, *mid, last = *x.shape, *w.items
args = [*range(2), *w.names]; d = {**w.names, "z": 1, **{"a": w.n}}
return f(*args, *mid, k=first, **d), x * last, [*x][0]

closures_shared_cells
def make():
    n, hist = w.n, []
    def inc(t):
        nonlocal n
        n += 1; hist.append(t.sum()); return t * n
    def get(): return n, hist
    return inc, get
inc, get = make(); a = inc(x); b = inc(a)
fs = [lambda t, i=i: t + i for i in range(3)]; gs = [lambda t: t + i for i in range(3)]
return a, b, get(), [f(x).sum() for f in fs], [g(x).sum() for g in gs]

closures_kept_in_state
|CBS = []
n = w.n
def cb(t):
    nonlocal n
    n += 1
    return t * n
CBS.append(cb)
return [c(x) for c in CBS[-3:]], len(CBS)

recursion_nested_fn
def fold(ts):
    if len(ts) == 1: return ts[0]
    m = len(ts) // 2
    return fold(ts[:m]) * 2 + fold(ts[m:])
return fold(list(x)), fold([x] * (w.n % 3 + 1))

properties_with_setters
|class P:
|    def __init__(s): s._k, s.log = 1, []
|    @property
|    def k(s): return s._k
|    @k.setter
|    def k(s, v):
|        if v > 5: raise ValueError(f"{v} too large")
|        s.log.append((s._k, v)); s._k = v
|    @k.deleter
|    def k(s): s._k = 0
|OBJ = P()
try: OBJ.k = w.n; err = None
except ValueError as e: err = e.args; del OBJ.k
return x * OBJ.k, err, OBJ.log[-2:], vars(P)["k"].fset is not None

cached_property_plain
|class P:
|    def __init__(s, t): s.t, s.n = t, 0
|    @functools.cached_property
|    def norm(s): s.n += 1; return s.t.norm()
|PP = [P(torch.ones(2))]
p = P(x); q = p.norm + p.norm
if w.n == 5: PP[0] = P(torch.zeros(3))
return q, p.n, PP[0].norm, PP[0].n, "norm" in vars(p)

getattr_getattribute_logging
|class Proxy:
|    def __init__(s, o): object.__setattr__(s, "_o", o); object.__setattr__(s, "_log", [])
|    def __getattribute__(s, n):
|        if n in ("_o", "_log"): return object.__getattribute__(s, n)
|        s._log.append(n); return getattr(s._o, n)
|    def __setattr__(s, n, v): s._log.append("=" + n); setattr(s._o, n, v)
p = Proxy(w.cfg); p.hidden = p.hidden + 1
return x * p.hidden, p._log, p.__class__.__name__, w.cfg.hidden

operator_overloads
|class V:
|    def __init__(s, t): s.t = t
|    def __add__(s, o): return V(s.t + (o.t if isinstance(o, V) else o))
|    __radd__ = __add__
|    def __matmul__(s, o): return V(s.t @ o.t.t())
|    def __getitem__(s, i): return V(s.t[i])
|    def __iadd__(s, o): s.t = s.t + o; return s
|    def __eq__(s, o): return isinstance(o, V) and s.t is o.t
|    def __hash__(s): return 7
|    def __bool__(s): return s.t.shape[0] > 2
|    def __len__(s): return s.t.shape[0]
|    def __contains__(s, k): return k == s.t.shape[0]
|    def __call__(s, k): return s.t * k
|    def __neg__(s): return V(-s.t)
|    def __rmul__(s, k): return V(s.t * k)
|    def __format__(s, spec): return f"V[{spec}:{len(s)}]"
v = V(x); u = v; u += 1
return (v + 1).t, (2 + v).t, (v @ v).t, v[0].t, u is v, v == V(v.t), len({v, V(v.t)}), bool(v), 3 in v, v(2), sum([v, v], 0).t, (3 * -v).t, f"{v:q}"

callable_defaults_mutable
|def collect(t, acc=[], seen={}):
|    acc.append(t.shape[0]); seen[t.shape] = seen.get(t.shape, 0) + 1
|    return acc, seen
acc, seen = collect(x); collect(x * 2)
return x * len(acc), list(acc), len(seen), collect.__defaults__[0] is acc

mutable_class_attribute
|class A:
|    shared = []
|    count = 0
|    def __init__(s): s.shared.append(A.count); type(s).count += 1
a = A(); b = A()
return x * A.count, A.shared, a.shared is b.shared

class_registry_counter
|class Node:
|    _ids = itertools.count()
|    all = weakref.WeakValueDictionary()
|    def __init__(s, t): s.id = next(Node._ids); s.t = t; Node.all[s.id] = s
a = Node(x); b = Node(x + 1)
return a.id, b.id, len(Node.all), a.t + b.t

init_subclass_kwargs
|class Base:
|    subs = {}
|    def __init_subclass__(c, /, key=None, **k): super().__init_subclass__(**k); Base.subs[key or c.__name__] = c
|class A(Base, key="a"):
|    def f(s, t): return t + 1
|class B(Base):
|    def f(s, t): return t * 2
return [c().f(x) for c in Base.subs.values()], list(Base.subs), Base.subs["a" if w.n % 2 else "B"]().f(x)

multiple_inheritance_super
|class L0:
|    def __init__(s, **k): s.order = []; super().__init__()
|    def f(s, t): s.order.append("L0"); return t
|class L1(L0):
|    def __init__(s, a=1, **k): super().__init__(**k); s.a = a
|    def f(s, t): s.order.append("L1"); return super().f(t * s.a)
|class L2(L0):
|    def __init__(s, b=2, **k): super().__init__(**k); s.b = b
|    def f(s, t): s.order.append("L2"); return super().f(t + s.b)
|class D(L1, L2):
|    def f(s, t): return super(D, s).f(t)
d = D(a=w.n, b=3)
return d.f(x), d.order, [c.__name__ for c in D.__mro__], d.a, d.b

slots_and_weakref
|class S:
|    __slots__ = ("a", "b", "__weakref__")
|    def __init__(s, a): s.a = a
s = S(x); r = weakref.ref(s)
try: s.c = 1
except AttributeError as e: err = str(e)
had = r() is s
del s
return had, r() is None, err

copy_protocols
|class C:
|    def __init__(s): s.t, s.l = None, [1]
|    def __copy__(s): c = C(); c.t = s.t; c.l = s.l; return c
|    def __deepcopy__(s, memo): c = C(); c.t = s.t.clone(); c.l = copy.deepcopy(s.l, memo); return c
c = C(); c.t = x + 1; d = copy.copy(c); e = copy.deepcopy(c); d.l.append(w.n)
return c.l, d.t is c.t, e.t, e.l

exceptions_own_classes
|class ShapeError(ValueError):
|    def __init__(s, got, want): super().__init__(f"got {got}, want {want}"); s.got, s.want = got, want
|def need(t, n):
|    if t.shape[0] != n: raise ShapeError(t.shape[0], n)
|    return t
try: y = need(x, w.n)
except ShapeError as e: y = x[: e.want] if e.got > e.want else x.sum(0); msg = str(e), e.args, e.got
else: msg = None
finally: w.log.append(w.n)
return y, msg, w.log

exception_chaining_reported
def inner():
    try: return {}["k"]
    except KeyError as e: raise RuntimeError(f"n={w.n}") from e
try: inner()
except RuntimeError as e:
    c = e.__cause__; t = traceback.format_exception_only(type(e), e)
    return x, repr(c), t, type(e.__context__).__name__, e.__traceback__.tb_next is not None

exception_escapes
w.log.append(w.n)
y = x * 2
if w.n == 4: raise IndexError(f"row {x.shape[0]}")
if w.n == 6: y[100]
w.log.append("end")
return y, w.log

try_finally_return
def f(k):
    try:
        if k: return x * k
        raise ValueError
    except ValueError: return x - 1
    finally: w.log.append(k)
def g():
    for i in range(3):
        try:
            if i == 1: continue
            if i == 2: break
        finally: w.log.append(("g", i))
    return i
return f(w.n % 3), g(), w.log

nested_try_tensor
try:
    try: y = x.view(-1, 3)
    except RuntimeError as e: y = x.reshape(-1, 2); m = str(e).split(".")[0]
    else: m = "fits"
    z = y[:, 5] if w.n == 5 else y
except IndexError as e: z = str(e)
return z, m

logging_levels
|LOG = logging.getLogger("prog"); LOG.setLevel(logging.WARNING); LOG.propagate = False
|H = logging.StreamHandler(io.StringIO())
|LOG.handlers = [H]
LOG.debug("hidden %s", x.shape); LOG.warning("n=%d", w.n)
if LOG.isEnabledFor(logging.INFO): x = x * 100
return x + 1, H.stream.getvalue()

warn_once_helper
|SEEN = set()
|def warn_once(m):
|    if m not in SEEN: SEEN.add(m); warnings.warn(m, UserWarning, stacklevel=2)
warn_once("first"); warn_once(f"rows {x.shape[0]}")
return x + 1, len(SEEN)

deprecated_decorator
|def deprecated(msg):
|    def deco(f):
|        @functools.wraps(f)
|        def g(*a, **k): warnings.warn(f"{f.__name__} is deprecated: {msg}", DeprecationWarning, stacklevel=2); return f(*a, **k)
|        return g
|    return deco
|@deprecated("use new")
|def old(t): return t + 1
return old(x), old.__wrapped__(x)

string_formatting_all
s = x.shape
return f"{s[0]:>5}|{s[1]:03d}|{s[0] / s[1]:.3f}|{w.n!r:^6}|{s!s}|{tuple(s)}", "%s-%5.2f-%x" % (s[0], s[0] / 3, s[1]), "{0}{k[a]}{1.act}".format(w.n, w.cfg, k=w.names), str(x.dtype), x.device.type, repr(x.size()), x

text_tables
rows = [("name", "n"), *((k, v) for k, v in sorted(w.names.items()))]
wd = [max(len(str(r[i])) for r in rows) for i in range(2)]
t = "\n".join(" | ".join(str(c).ljust(k) for c, k in zip(r, wd)) for r in rows)
return textwrap.indent(textwrap.dedent(t), "> "), t.count("|"), x * len(t)

sorting_by_sizes
ts = [x, x[:1], x[:, :2], torch.cat([x, x])]
a = sorted(ts, key=lambda t: t.numel()); b = sorted(range(4), key=lambda i: (-ts[i].shape[0], ts[i].shape[1], i))
c = max(ts, key=len); d = min(ts, key=torch.numel); ts.sort(key=lambda t: t.shape, reverse=True)
return [t.shape for t in a], b, c.shape, d.shape, [t.shape for t in ts]

bucket_by_length
seqs = [x[:i] for i in (1, 2, 1, 3)]
b = collections.defaultdict(list)
for s in seqs: b[min(4, 1 << (s.shape[0] - 1).bit_length())].append(s)
return {k: torch.cat(v) for k, v in sorted(b.items())}, {k: len(v) for k, v in b.items()}

groupby_itertools
seqs = sorted([x, x[:2], x[1:], x[:1]], key=len)
return {k: sum(t.sum() for t in g) for k, g in itertools.groupby(seqs, key=len)}

comprehensions_tensors
d = {f"r{i}": r for i, r in enumerate(x)}
s = {t.shape for t in d.values()}; g = {k: v for k, v in d.items() if not k.endswith("0")}
inv = {id(v): k for k, v in d.items()}
n = [[a * b for a in r[:2]] for r, b in zip(x[:2], w.items)]
return d, len(s), g, inv[id(d["r0"])], n, {k: len(v) for k, v in w.__dict__.items() if hasattr(v, "__len__")}
"""
