# size: table
"""Programs in the idioms of authors of trainers, configurations and classes. As programs_library, with the prelude of
programs_torch."""

PROGRAMS = r"""
trainer_class_callbacks
|class Callback:
|    def on_step(self, t, loss): pass
|    def on_end(self, t): pass
|class History(Callback):
|    def __init__(self): self.losses = []
|    def on_step(self, t, loss): self.losses.append(loss.detach().clone())
|class Stopper(Callback):
|    def __init__(self, k): self.k = k; self.stopped = False
|    def on_step(self, t, loss):
|        if t.step >= self.k: self.stopped = True; raise StopIteration(t.step)
|class Trainer:
|    def __init__(self, net, cbs): self.net, self.cbs, self.step = net, cbs, 0
|    def fire(self, what, *a):
|        for c in self.cbs: getattr(c, "on_" + what)(self, *a)
|    def run(self, x, k):
|        try:
|            for i in range(k):
|                self.step += 1
|                loss = self.net(x).pow(2).mean() / (i + 1)
|                self.fire("step", loss)
|        except StopIteration as e: return e.value, e.args
|        finally: self.fire("end")
|        return loss
|H = History()
t = Trainer(w.net, [H, Stopper(w.n * 2)])
a = t.run(x, w.n); b = t.run(x * 2, w.n + 2)
return a, b, len(H.losses), t.step, t.cbs[1].stopped

metric_tracker_welford
|class Welford:
|    __slots__ = ("n", "mean", "m2")
|    def __init__(self): self.n, self.mean, self.m2 = 0, 0.0, 0.0
|    def __iadd__(self, v):
|        self.n += 1; d = v - self.mean; self.mean = self.mean + d / self.n; self.m2 = self.m2 + d * (v - self.mean)
|        return self
|    @property
|    def var(self): return self.m2 / max(self.n - 1, 1)
|WELF = collections.defaultdict(Welford)
for k, v in zip("ab", (x.mean(), x.std(unbiased=False))): WELF[k] += v
WELF["a"] += w.n * 0.5
return {k: (v.n, v.mean, v.var) for k, v in WELF.items()}, WELF["a"].var - x

lr_warmup_closure
def make(base, warm, total):
    def lr(step):
        if step < warm: return base * (step + 1) / warm
        return base * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))
    return lr
sched = make(0.1, 2, 8)
w.log.append(round(sched(w.n), 6))
return x - sched(w.n) * x.sign(), w.log[-3:]

grad_accumulate_manual_dict
|GR = {}
g = {n: torch.ones_like(p) * w.n for n, p in w.net.named_parameters()}
for n, v in g.items(): GR[n] = v if n not in GR else GR[n] + v
if w.n % 3 == 0:
    for n in list(GR): GR[n] = GR[n] / 3
    done = dict(GR); GR.clear()
else: done = None
return done, {n: x @ v for n, v in GR.items()}

config_merge_chain
|DEFAULTS = {"lr": 0.1, "opt": {"name": "sgd", "mom": 0.9}, "steps": [1, 2]}
def merge(a, b):
    r = dict(a)
    for k, v in b.items():
        r[k] = merge(r[k], v) if isinstance(v, dict) and isinstance(r.get(k), dict) else v
    return r
c = merge(DEFAULTS, {"opt": {"mom": w.n / 10}, "rows": x.shape[0]})
assert c["steps"] is DEFAULTS["steps"] and c["opt"] is not DEFAULTS["opt"]
DEFAULTS["steps"].append(w.n)
return x * c["lr"] + c["opt"]["mom"], c, sorted(c)

frozen_config_replace_loop
|@dataclasses.dataclass(frozen=True, order=True)
|class LayerCfg:
|    width: int
|    depth: int = 1
|    act: str = dataclasses.field(default="relu", compare=False)
|    def scaled(self, k): return dataclasses.replace(self, width=self.width * k)
cs = sorted(LayerCfg(w.n + i % 2, 3 - i) for i in range(3))
big = max(cs).scaled(2)
return x * big.width, [dataclasses.astuple(c) for c in cs], hash(cs[0]) == hash(LayerCfg(cs[0].width, cs[0].depth)), len({*cs, cs[0]})

dataclass_field_metadata_casts
|@dataclasses.dataclass
|class Opt:
|    scale: float = dataclasses.field(default=1, metadata={"cast": float})
|    dims: tuple = dataclasses.field(default=(0,), metadata={"cast": tuple})
|    def __post_init__(self):
|        for f in dataclasses.fields(self):
|            setattr(self, f.name, f.metadata["cast"](getattr(self, f.name)))
o = Opt(w.n, [0, 1][: w.n % 2 + 1])
return x.sum(o.dims) * o.scale, o, type(o.scale).__name__

dataclass_kwonly_slots_inherit
|@dataclasses.dataclass(slots=True, kw_only=True)
|class A:
|    a: int
|    t: torch.Tensor = None
|@dataclasses.dataclass(slots=True, kw_only=True)
|class B(A):
|    b: list = dataclasses.field(default_factory=list)
o = B(a=w.n, t=x * 2); o.b.append(o.t.sum()); o.a += 1
try: o.zzz = 1
except AttributeError as e: m = str(e)
return o, m, dataclasses.asdict(o)["a"], B.__slots__, A.__slots__

namespace_recursion_to_dict
def ns(d): return types.SimpleNamespace(**{k: ns(v) if isinstance(v, dict) else v for k, v in d.items()})
def un(n): return {k: un(v) if isinstance(v, types.SimpleNamespace) else v for k, v in vars(n).items()}
c = ns({"a": w.n, "b": {"c": x.shape[0], "d": {"e": x}}})
c.b.d.f = c.b.c + c.a
return c.b.d.e * c.b.d.f, un(c) == un(ns(un(c))) if w.n > 100 else len(un(c)), repr(ns({"q": w.n}))

enum_flag_masks
|class Mode(enum.Flag):
|    TRAIN = enum.auto()
|    EVAL = enum.auto()
|    BOTH = TRAIN | EVAL
m = Mode.TRAIN if w.n % 2 else Mode.BOTH
r = [k.name for k in Mode if k in m]
return x * (2 if Mode.EVAL in m else 3), r, m.value, bool(m & Mode.EVAL), ~Mode.TRAIN, m

enum_lookup_missing
|class Act(enum.Enum):
|    RELU = "relu"
|    TANH = "tanh"
|    @classmethod
|    def _missing_(cls, v):
|        for m in cls:
|            if m.value == str(v).lower(): return m
|    def __call__(self, t): return getattr(torch, self.value)(t)
try: bad = Act("gelu")
except ValueError as e: bad = str(e)
return Act(w.cfg.act.upper())(x), bad, Act["RELU"] is Act("Relu"), list(Act.__members__)

str_enum_key_dispatch
|class K(str, enum.Enum):
|    A = "a"
|    B = "b"
|T = {K.A: 1.5, K.B: 2.5}
return {k: x * T[k] for k in K}, T["a"], K.A == "a", f"{K.A.value}-{K.B!r}", "b" in T, json.dumps({"k": K.A})

int_enum_arith_index
|class Ax(enum.IntEnum):
|    ROW = 0
|    COL = 1
return x.sum(Ax.COL), x.sum(dim=(Ax.ROW, Ax.COL)), x.shape[Ax.COL], Ax.ROW + 1, [10, 20][Ax.COL], x.size(Ax.ROW) * Ax.COL, sorted([Ax.COL, Ax.ROW])

registry_decorator_with_aliases
|LOSSES = {}
|def loss(*names, **meta):
|    def deco(f):
|        f.meta = meta
|        for n in names or (f.__name__,):
|            if n in LOSSES: raise KeyError(f"dup {n}")
|            LOSSES[n] = f
|        return f
|    return deco
|@loss("mse", "l2", weight=2.0)
|def _mse(a, b): return (a - b).pow(2).mean()
|@loss(weight=0.5)
|def l1(a, b): return (a - b).abs().mean()
tot = sum(LOSSES[n](x, x.flip(0)) * LOSSES[n].meta["weight"] for n in sorted(LOSSES))
try: loss("l2")(lambda: 0)
except KeyError as e: err = e.args
if w.n == 4: LOSSES.pop("l2")
return tot, err, len(LOSSES)

memo_by_shape_lru
|@functools.lru_cache(maxsize=2)
|def grid(n, m): return torch.arange(n * m).reshape(n, m).float()
g = grid(*x.shape); i = grid.cache_info()
return x + g, i.hits, i.misses, i.currsize, grid(*x.shape) is g

memo_hand_written_limited
|class Memo(dict):
|    def __init__(self, f, cap): super().__init__(); self.f, self.cap, self.made = f, cap, 0
|    def __missing__(self, k):
|        self.made += 1
|        if len(self) >= self.cap: self.pop(next(iter(self)))
|        v = self[k] = self.f(*k)
|        return v
|M = Memo(lambda n, k: torch.full((n,), float(k)), 2)
v = M[x.shape[0], w.n % 3]
return x.sum(1) + v, M.made, list(M), M[x.shape[0], w.n % 3] is v

cached_on_function_attribute
def table(n):
    c = table.__dict__.setdefault("c", {})
    if n not in c: c[n] = torch.tril(torch.ones(n, n))
    return c[n]
return table(x.shape[1]) @ x.t(), table(x.shape[1]) is table(x.shape[1]), len(table.c)

weak_key_module_cache
|CACHE = weakref.WeakKeyDictionary()
if w.net not in CACHE: CACHE[w.net] = []
CACHE[w.net].append(w.n)
return x * sum(CACHE[w.net]), len(CACHE)

weak_value_tensor_table
|TAB = weakref.WeakValueDictionary()
t = x * 2; TAB["k"] = t; u = TAB["k"]
same = u is t; n0 = len(TAB)
del t, u
return same, n0, len(TAB), TAB.get("k"), x + 1

weakref_callback_in_call
dead = []
class O: pass
o = O(); r = weakref.ref(o, lambda _: dead.append(w.n))
alive = r() is o; y = x * 2
del o
return y, alive, r(), dead

weak_method_observers
|class Sub:
|    def __init__(self): self.got = []
|    def on(self, v): self.got.append(v)
s = Sub(); obs = [weakref.WeakMethod(s.on)]
for o in obs: o()(w.n)
y = x + len(s.got); g = s.got
del s
return y, g, obs[0]()

decorator_stack_order
|def tag(k):
|    def deco(f):
|        @functools.wraps(f)
|        def g(*a, **kw):
|            TRACE.append(("in", k)); r = f(*a, **kw) * k; TRACE.append(("out", k)); return r
|        return g
|    return deco
|TRACE = []
|@tag(2)
|@tag(3)
|def h(t, *, b=1):
|    "doc"
|    return t + b
return h(x, b=w.n), list(TRACE[-4:]), h.__doc__, h.__name__, h.__wrapped__.__wrapped__.__kwdefaults__

decorator_class_with_get
|class Bound:
|    def __init__(self, f): self.f, self.calls = f, 0
|    def __get__(self, o, t=None):
|        if o is None: return self
|        return functools.partial(self, o)
|    def __call__(self, *a): self.calls += 1; return self.f(*a)
|class K:
|    def __init__(self, s): self.s = s
|    @Bound
|    def go(self, t): return t * self.s
k = K(w.n)
return k.go(x), K.go.calls, K.go(k, x + 1), type(K.__dict__["go"]).__name__

retry_decorator_exceptions
|def retry(times, exc):
|    def deco(f):
|        def g(*a):
|            for i in range(times):
|                try: return f(*a, i)
|                except exc as e: last = e; LOGGED.append((i, str(e)))
|            raise RuntimeError("gave up") from last
|        return g
|    return deco
|LOGGED = []
|@retry(3, (ValueError, RuntimeError))
|def flaky(t, need, i):
|    if i < need: raise ValueError(f"try {i}")
|    return t.view(t.shape[0], 2, -1) if i % 2 else t.view(-1)
try: y = flaky(x, w.n % 5)
except RuntimeError as e: y = repr(e), repr(e.__cause__)
return y, len(LOGGED), LOGGED[-1:]

context_decorator_timer
|class Region(contextlib.ContextDecorator):
|    depth = 0; seen = []
|    def __init__(self, n): self.n = n
|    def __enter__(self): Region.depth += 1; Region.seen.append((self.n, Region.depth)); return self
|    def __exit__(self, t, v, tb): Region.depth -= 1; return t is ZeroDivisionError
|@Region("f")
|def f(t, k):
|    with Region("g"): t = t / 2
|    with Region("z"): 1 // (k % 2)
|    return t * k
return f(x, w.n), Region.depth, len(Region.seen), Region.seen[-3:]

operator_overload_lazy_expr
|class E:
|    def __init__(self, f): self.f = f
|    def __add__(self, o): return E(lambda t: self.f(t) + (o.f(t) if isinstance(o, E) else o))
|    __radd__ = __add__
|    def __mul__(self, o): return E(lambda t: self.f(t) * (o.f(t) if isinstance(o, E) else o))
|    def __rsub__(self, o): return E(lambda t: o - self.f(t))
|    def __neg__(self): return E(lambda t: -self.f(t))
|    def __matmul__(self, o): return E(lambda t: self.f(t) @ o.f(t))
|    def __getitem__(self, i): return E(lambda t: self.f(t)[i])
|    def __call__(self, t): return self.f(t)
v = E(lambda t: t); e = 3 - (v * w.n + 1) @ E(lambda t: t.t())
return e(x), (-v[0])(x), (5 + v)(x), [q(x) for q in (v, v * v)]

operator_overload_vector
|class V:
|    def __init__(self, *c): self.c = c
|    def __eq__(self, o): return isinstance(o, V) and len(self.c) == len(o.c) and all(a is b or bool(a == b) for a, b in zip(self.c, o.c))
|    def __hash__(self): return hash(len(self.c))
|    def __add__(self, o): return V(*[a + b for a, b in zip(self.c, o.c)]) if isinstance(o, V) else NotImplemented
|    def __iter__(self): return iter(self.c)
|    def __len__(self): return len(self.c)
|    def __bool__(self): return any(c != 0 for c in self.c)
|    def __contains__(self, v): return v in self.c
|    def __abs__(self): return sum(abs(c) for c in self.c)
|    def __format__(self, s): return "<" + ",".join(format(c, s) for c in self.c) + ">"
a, b = V(w.n, 2), V(x.shape[0], 3)
try: a + 3
except TypeError as e: err = str(e)
p, q = a + b
return x * abs(a), p, q, err, a == V(w.n, 2), len({a, b, V(1, 1)}), f"{a:03d}", 2 in a, bool(V(0, 0))

divmod_and_rops
|class M:
|    def __init__(s, v): s.v = v
|    def __rpow__(s, o): return ("rpow", o, s.v)
|    def __rdivmod__(s, o): return divmod(o, s.v)
|    def __rlshift__(s, o): return o << s.v
|    def __index__(s): return s.v
|    def __int__(s): return s.v + 1
|    def __float__(s): return s.v + 0.5
|    def __round__(s, n=None): return ("round", n)
m = M(w.n % 3)
return 2 ** m, divmod(w.n, M(2)), 1 << m, x[m % 1 if False else 0], x.sum(m.__index__() % 2), int(m), float(m), round(m), round(m, 2), [5, 6, 7][m], list(range(m)), hex(m)

class_property_setters_validate
|class Temp:
|    def __init__(self): self._v = 0.0; self.sets = []
|    @property
|    def v(self): return self._v
|    @v.setter
|    def v(self, n):
|        if n > 5: raise ValueError(f"too hot: {n}")
|        self.sets.append(n); self._v = n
|    @v.deleter
|    def v(self): self._v = None
t = Temp()
try:
    for k in range(w.n, w.n + 3): t.v = k
except ValueError as e: msg = str(e)
else: msg = "fine"
last = t.v
if w.n % 2: del t.v
return x * (last or 1), t.sets, msg, t.v

descriptor_typed_fields
|class Typed:
|    def __set_name__(self, o, n): self.n = "_" + n
|    def __init__(self, t): self.t = t
|    def __get__(self, o, c): return self if o is None else getattr(o, self.n, None)
|    def __set__(self, o, v):
|        if not isinstance(v, self.t): raise TypeError(f"{self.n[1:]}: {type(v).__name__} is no {self.t.__name__}")
|        setattr(o, self.n, v)
|class Box:
|    k = Typed(int); t = Typed(torch.Tensor); s = Typed(str)
b = Box(); b.k = x.shape[0]; b.t = x * w.n; errs = []
for n, v in (("s", 3), ("t", [1]), ("k", x.shape[1])):
    try: setattr(b, n, v)
    except TypeError as e: errs.append(str(e))
return b.t + b.k, errs, vars(b).keys() - {"_t"}, b.s

metaclass_singletons_registry
|class Meta(type):
|    made = {}
|    def __call__(cls, *a, **k):
|        if cls not in Meta.made: Meta.made[cls] = super().__call__(*a, **k)
|        return Meta.made[cls]
|    def __len__(cls): return cls.SIZE
|    def __getitem__(cls, i): return cls.__name__ + str(i)
|    def __contains__(cls, v): return v < cls.SIZE
|    def __iter__(cls): return iter(range(cls.SIZE))
|class S(metaclass=Meta):
|    SIZE = 3
|    def __init__(self, v): self.v = v
a, b = S(w.n), S(100)
if w.n == 5: S.SIZE = 4
return x * a.v, a is b, len(S), S[w.n], 3 in S, list(S)

metaclass_prepare_order
|class Order(type):
|    @classmethod
|    def __prepare__(m, n, b, **k): return collections.OrderedDict(_pre=k.get("tag", 0))
|    def __new__(m, n, b, ns, **k):
|        c = super().__new__(m, n, b, dict(ns)); c.order = [q for q in ns if not q.startswith("__")]; return c
|    def __init__(c, n, b, ns, **k): super().__init__(n, b, ns)
class P(metaclass=Order, tag=w.n):
    z = 1
    def a(self): return x * self.z
    y = z + 1
return P().a() * P.y, P.order, P._pre

init_subclass_defaults_chain
|class Base:
|    kinds = {}
|    def __init_subclass__(cls, kind=None, **k):
|        super().__init_subclass__(**k)
|        if kind: Base.kinds[kind] = cls
|    def __new__(cls, kind="a", *a):
|        return object.__new__(Base.kinds[kind] if cls is Base else cls)
|    def __init__(self, kind="a", v=1): self.v = v
|class A(Base, kind="a"):
|    def f(self, t): return t + self.v
|class B(Base, kind="b"):
|    def f(self, t): return t * self.v
o = Base("ab"[w.n % 2], w.n)
return o.f(x), type(o).__name__, sorted(Base.kinds)

mro_cooperative_kwargs
|class R:
|    def __init__(self, **k):
|        if k: raise TypeError(f"left over: {sorted(k)}")
|class P(R):
|    def __init__(self, *, p=1, **k): super().__init__(**k); self.p = p
|    def go(self, t): return [("P", self.p)], t + self.p
|class Q(R):
|    def __init__(self, *, q=2, **k): super().__init__(**k); self.q = q
|    def go(self, t): return [("Q", self.q)], t * self.q
|class PQ(P, Q):
|    def go(self, t):
|        a, t = super().go(t); b, t = super(P, self).go(t)
|        return a + b, t
o = PQ(p=w.n, q=3)
try: PQ(z=w.n)
except TypeError as e: m = str(e)
return *o.go(x), m, [c.__name__ for c in PQ.__mro__]

super_in_classmethod_property
|class A:
|    base = 2
|    @classmethod
|    def mk(cls, v): o = cls.__new__(cls); o.v = v * cls.base; return o
|    @property
|    def val(self): return self.v
|    @staticmethod
|    def twice(t): return t * 2
|class B(A):
|    base = 3
|    @classmethod
|    def mk(cls, v): o = super().mk(v + 1); o.made = True; return o
|    @property
|    def val(self): return super().val + 1
|    def f(self, t): return super().twice(t) * self.val
o = B.mk(w.n)
return o.f(x), vars(o), A.mk(1).val

slots_descriptor_delete
|class P:
|    __slots__ = ("a", "t", "__weakref__")
|    def __init__(s, a): s.a = a
p = P(w.n); r = weakref.ref(p)
try: p.t
except AttributeError as e: m = str(e)
p.t = x * p.a; del p.a
try: p.a
except AttributeError as e: m2 = str(e)
return p.t, m, m2, r() is p, hasattr(p, "__dict__"), P.a.__name__

getattribute_counts_calls
|class Spy:
|    hits = collections.Counter()
|    def __init__(s, v): s.v = v
|    def __getattribute__(s, n):
|        if not n.startswith("__"): Spy.hits[n] += 1
|        return object.__getattribute__(s, n)
|    def __getattr__(s, n): Spy.hits["miss " + n] += 1; return 7
o = Spy(w.n)
y = x * o.v + o.absent
return y, dict(Spy.hits), hasattr(o, "zz"), getattr(o, "q", 1)

hash_eq_changed_key
|class Key:
|    n_eq = 0
|    def __init__(s, v): s.v = v
|    def __hash__(s): return s.v % 2
|    def __eq__(s, o): Key.n_eq += 1; return s.v == o.v
d = {Key(i): i for i in range(w.n)}
k = Key(1); d[k] = "new"
return x * len(d), d[Key(1)], Key.n_eq, Key(99) in d

copy_hooks_share_tensor
|class Pack:
|    def __init__(s, t, meta): s.t, s.meta = t, meta
|    def __copy__(s): return Pack(s.t, dict(s.meta, copied=1))
|    def __deepcopy__(s, memo): memo[id(s)] = r = Pack(s.t.clone(), copy.deepcopy(s.meta, memo)); return r
p = Pack(x * 2, {"l": [w.n]}); p.meta["self"] = p
c, d = copy.copy(p), copy.deepcopy(p)
d.meta["l"].append(1)
return c.t is p.t, d.t is p.t, d.meta["self"] is d, p.meta["l"], d.meta["l"], c.meta["copied"], d.t + c.t

pickle_state_hooks
|class St:
|    def __init__(s, a, t): s.a, s.t, s.tmp = a, t, object()
|    def __getstate__(s): d = dict(vars(s)); del d["tmp"]; return d
|    def __setstate__(s, d): s.__dict__.update(d); s.tmp = "again"
s = St(w.n, [1, 2]); r = pickle.loads(pickle.dumps(s))
return x * r.a, r.tmp, r.t, r.t is s.t

pickle_reduce_ex_copy
|class Pt:
|    def __init__(s, a, b): s.a, s.b = a, b
|    def __reduce__(s): return Pt, (s.a, s.b + 1), {"extra": s.a}
p = Pt(w.n, 1); q = copy.copy(p); r = copy.deepcopy(p)
return x * q.b, vars(q), vars(r)

class_of_the_call_counts_over_a_break
class K: n = 0
y = x + 1
print(end="")
K.n += w.n
return y * K.n, K.n

class_of_the_call_keeps_a_list_over_a_break
class K: log = []
y = x + 1
print(end="")
K.log.append(w.n)
return y, list(K.log), K.log[0]

class_of_the_call_gets_a_tensor_over_breaks
class K: pass
print(end="")
had = hasattr(K, "t"); K.t = x * 2
print(end="")
return K.t + 1, had, hasattr(K, "u")

class_of_the_call_is_used_over_a_break
class K:
    def __init__(s): s.v = 3
    def get(s): return s.v
k = K(); y = x * 2
print(end="")
k.v += w.n
return y * k.get(), isinstance(k, K), type(k).__name__
"""
