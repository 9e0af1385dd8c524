# size: table
"""Unusual parts of the language and of the library, each with a graph break at an odd place, over calls with changing
state. As programs_library."""

PROGRAMS = r"""
match_tensor_dataclass
|@dataclasses.dataclass
|class P:
|    t: torch.Tensor
|    n: int = 0
|    __match_args__ = ("t", "n")
def f(v):
    match v:
        case P(t, 3): return "three", t.sum().item()
        case P(t=torch.Tensor() as u, n=n) if u.sum() > 0: return "pos", n
        case P(_, n): return "other", n
        case {"k": [a, *rest], **kw}: return a, rest, kw
        case [torch.Tensor(shape=(a, b)), *_]: return a, b
        case (int() | float()) as num: return num
        case str(s): return s[::-1]
        case None: return "none"
        case _: return "wild"
return [f(P(x, w.n)), f(P(-x, w.n)), f({"k": [w.n, 2, 3], "z": x}), f([x, 1]), f(x.shape[0]), f(x.sum().item()), f("ab"), f(None), f(x)]

closures_over_loop
fs = []
for i in range(w.n):
    def g(t, j=i): return t * i + j
    fs.append(g); fs.append(lambda t: t - i)
s = x.sum().item()
return [f(x).sum().item() for f in fs], i, s

descriptor_set_delete
|class D:
|    def __set_name__(s, o, n): s.n = "_" + n
|    def __get__(s, o, t=None): return s if o is None else o.__dict__.get(s.n, "unset")
|    def __set__(s, o, v):
|        if isinstance(v, torch.Tensor) and v.sum().item() < 0: raise ValueError(f"{s.n}: negative of {v.shape[0]}")
|        o.__dict__[s.n] = v
|    def __delete__(s, o): del o.__dict__[s.n]
|class C:
|    a = D(); b = D()
c = C(); c.a = x.abs()
try: c.b = x - 10
except ValueError as e: w.log.append(str(e))
r = c.a.sum().item(), c.b
del c.a
try: del c.a
except KeyError as e: w.log.append(repr(e))
return r, c.a, vars(c)

slots_state
|class S:
|    __slots__ = ("a", "n", "__weakref__")
|    def __init__(s): s.n = 0
|    def step(s, t):
|        s.n += 1
|        if not hasattr(s, "a"): s.a = t
|        else: s.a = s.a.mean() + t
|        return s.a
|OBJ = S()
y = OBJ.step(x); v = y.sum().item()
if w.n == 5: del OBJ.a
return y * v, OBJ.n, hasattr(OBJ, "a")

property_setter_chain
|class A:
|    def __init__(s): s._v = 1; s.log = []
|    @property
|    def v(s): s.log.append("get"); return s._v
|    @v.setter
|    def v(s, x): s.log.append(("set", x)); s._v = x
|    @v.deleter
|    def v(s): s.log.append("del"); s._v = None
|OBJ = A()
OBJ.v += w.n
if x.sum() > 0: OBJ.v = x.shape[0]
y = x * OBJ.v
del OBJ.v
OBJ.v = 2
return y, OBJ.log[-4:]

meta_call
|class Meta(type):
|    made = []
|    def __call__(cls, *a, **k):
|        o = super().__call__(*a, **k); cls.made.append(type(o).__name__); o.tag = len(cls.made); return o
|class A(metaclass=Meta):
|    def __init__(s, t): s.t = t; s.s = t.sum().item()
|class B(A):
|    pass
a = A(x); b = B(x * w.n)
return a.s, b.s, a.tag, b.tag, Meta.made[-2:]

singledispatch_tensors
|@functools.singledispatch
|def show(v): return f"obj:{v}"
|@show.register
|def _(v: int): return f"int:{v + 1}"
|@show.register(torch.Tensor)
|def _(v): return f"t:{tuple(v.shape)}:{v.sum().item() > 0}"
|@show.register(list)
|def _(v): return [show(q) for q in v]
return show(x), show(w.n), show([x, 1, "a", [x.shape[0]]]), show(2.5)

singledispatchmethod_state
|class P:
|    def __init__(s): s.seen = []
|    @functools.singledispatchmethod
|    def add(s, v): s.seen.append(("?", v))
|    @add.register
|    def _(s, v: torch.Tensor): s.seen.append(("t", v.sum().item()))
|    @add.register
|    def _(s, v: int): s.seen.append(("i", v))
|OBJ = P()
OBJ.add(x); OBJ.add(w.n); OBJ.add("z")
return OBJ.seen[-3:]

cached_property_break
|class P:
|    def __init__(s, t): s.t = t
|    @functools.cached_property
|    def total(s): w_log.append("calc"); return s.t.sum().item()
|    @functools.cached_property
|    def scaled(s): return s.t * s.total
|w_log = []
p = P(x); a = p.scaled; b = p.scaled
return a is b, a, list(vars(p)), len(w_log)

partialmethod_use
|class P:
|    def __init__(s): s.k = 0
|    def act(s, n, t, *, sign=1): s.k += n; return t * n * sign
|    inc = functools.partialmethod(act, 2); dec = functools.partialmethod(act, 3, sign=-1)
|OBJ = P()
a = OBJ.inc(x); v = a.sum().item(); b = OBJ.dec(x)
return a + b * v, OBJ.k

redirect_inside
f = io.StringIO()
with contextlib.redirect_stdout(f):
    print("in", x.sum().item() > 0, x.shape[0]); print(w.n, end="|", sep="")
print("out")
return f.getvalue()

deepcopy_state_break
|STATE = {"t": torch.ones(4), "l": [1, [2, 3]], "cfg": Config()}
s1 = copy.deepcopy(STATE); s1["l"][1].append(w.n); s1["t"] += x.sum().item()
s2 = copy.copy(STATE); s2["z"] = 1
STATE["l"][1][0] = w.n
return s1, s2["l"] is STATE["l"], STATE, s2["t"] is STATE["t"]

copy_hooks
|class C:
|    def __init__(s, t): s.t = t; s.n = 0
|    def __copy__(s): w2.append("copy"); c = C(s.t); c.n = s.n + 1; return c
|    def __deepcopy__(s, memo): w2.append("deep"); c = C(copy.deepcopy(s.t, memo)); c.n = -1; return c
|w2 = []
c = C(x); a = copy.copy(c); v = a.t.sum().item(); b = copy.deepcopy([c, c])
return a.n, b[0].n, b[0] is b[1], a.t is x, b[0].t is x, v, w2[-3:]

enum_flags
|class Perm(enum.Flag):
|    R = enum.auto(); W = enum.auto(); X = enum.auto()
|    RW = R | W
|class Color(str, enum.Enum):
|    RED = "r"; BLUE = "b"
|    @classmethod
|    def _missing_(cls, v): return cls.RED if v == "zz" else None
p = Perm.R | (Perm.X if x.sum() > 0 else Perm.W)
if w.n % 2: p ^= Perm.W
try: Color("q")
except ValueError as e: err = str(e)
return p.value, Perm.R in p, ~p == Perm.W, repr(p), Color("zz").name, Color("b") == "b", err, [c.value for c in Color], Perm(w.n % 8).value, bool(Perm(0))

intenum_sizes
|class Dim(enum.IntEnum):
|    ROW = 0; COL = 1
|    def size(self, t): return t.shape[self]
v = x.sum(Dim.COL).sum().item()
return Dim.ROW.size(x), x.shape[Dim.COL], Dim(w.n % 2).name, x.sum(Dim.ROW), Dim.COL + w.n, v, f"{Dim.ROW}", f"{Dim.COL:>3}"

dataclass_order_replace
|@dataclasses.dataclass(order=True, frozen=True)
|class V:
|    key: int
|    t: object = dataclasses.field(compare=False, default=None)
|    tags: tuple = ()
a = V(w.n, x); b = dataclasses.replace(a, key=x.shape[0], tags=(1, w.n))
s = a.t.sum().item()
try: a.key = 3
except dataclasses.FrozenInstanceError as e: err = str(e)
return a < b, max(a, b).key, sorted([a, b, V(3)])[0].key, err, b.t is x, hash(V(1)) == hash(V(1)), a == V(w.n), [f.name for f in dataclasses.fields(a)], s

sort_by_sizes
ts = [x, x[:1], torch.ones(w.n), x.T]
a = sorted(ts, key=lambda t: t.numel()); b = sorted(ts, key=lambda t: (t.dim(), -t.shape[0])); ts.sort(key=lambda t: t.sum().item(), reverse=True)
return [tuple(t.shape) for t in a], [tuple(t.shape) for t in b], [tuple(t.shape) for t in ts], min(ts, key=len).shape, max(ts, key=torch.numel).shape

zip_strict_over_a_break
out = []
try:
    for a, b in zip(range(x.shape[0]), [1, 2, 3], strict=True): out.append((a, b, x[a].sum().item()))
except ValueError as e: out.append(str(e))
try: out.append(list(zip("ab", range(w.n), strict=True)))
except ValueError as e: out.append(str(e))
return out

star_unpacking_over_a_break
a, *b, c = x.shape[0], *w.items, x
(d, *e), f = [range(w.n), x.sum().item()]
*g, = (k for k in "ab")
def fn(*p, k=0, **q): return p, k, q
return b, d, e, g, fn(*b, *g, **{"k": w.n, "z": f}), [*range(w.n), *b], {**w.names, "q": c}, {*b, w.n}

star_unpack_errors
out = []
for v in ([1], [1, 2], list(range(w.n))):
    try: a, b = v; out.append((a, b, (x * a).sum().item()))
    except ValueError as e: out.append(str(e))
    try: a, *b, c, d = v; out.append(b)
    except ValueError as e: out.append(str(e))
try: p, q, r = x
except ValueError as e: out.append(str(e))
return out

walrus_comprehension
r = [y for i in range(w.n) if (y := (x * i).sum().item()) > 0]
t = [(q := i * x.shape[0]) for i in range(3)]
if (m := len(r)) > 1: w.log.append(m)
return r, t, q, m, y, any((hit := v) > 2 for v in w.items) and hit

global_nonlocal_writes
|COUNT = 0
|TOTAL = None
def bump():
    global COUNT, TOTAL
    COUNT += w.n
    TOTAL = x.sum().item() if TOTAL is None else TOTAL + 1
k = 0
def nl():
    nonlocal k
    k += COUNT
    return k
bump(); nl(); v = x.mean().item(); bump(); nl()
return k, COUNT, v

class_body_tensors
class C:
    base = x * w.n
    total = base.sum().item()
    names = [k for k in ("a", "b")]
    if total > 0: sign = 1
    else: sign = -1
    def m(self): return self.base * self.sign
    class D: v = w.n
return C().m(), C.total, C.D.v, C.__qualname__, sorted(k for k in vars(C) if not k.startswith("__"))

init_subclass
|class Base:
|    reg = {}
|    def __init_subclass__(cls, /, tag=None, **k):
|        super().__init_subclass__(**k); Base.reg[tag or cls.__name__] = cls
class A(Base, tag=f"a{w.n}"): k = w.n
s = x.sum().item()
class B(Base): k = 2
return x * A.k, sorted(Base.reg), s, Base.reg["B"] is B

class_getitem_over_a_break
|class G:
|    def __class_getitem__(cls, k): SEEN.append(str(k)); return (cls, k)
|SEEN = []
a = G[w.n]; s = x.sum().item(); b = G[x.shape[0], int]; c = list[int]; d = dict[str, torch.Tensor]
return a[1], b[1], str(SEEN[-2:]), c == list[int], d.__args__, typing.get_origin(d), typing.Optional[int], G[1:2][1]

missing_dict
|class M(dict):
|    def __missing__(s, k): s.misses.append(k); v = s[k] = k * 2; return v
|OBJ = M(a=1); OBJ.misses = []
v = OBJ[w.n]; s = (x * v).sum().item(); u = OBJ[w.n]
try: g = OBJ.get("zz")
except KeyError: g = "no"
return v, u, g, len(OBJ), OBJ.misses[-2:], s, "zz" in OBJ

user_collections
|class UL(UserList):
|    def append(s, v): super().append(v); s.n = getattr(s, "n", 0) + 1
|class UD(UserDict):
|    def __setitem__(s, k, v): super().__setitem__(str(k), v)
|L = UL([1]); D = UD()
L.append(w.n); D[w.n] = x.sum().item(); D.update({1: 2}); L2 = L + [3]; L2 *= 2
return list(L)[-2:], L.n, sorted(D)[:3], type(L2).__name__, len(L2), D.get("1"), 1 in D, "1" in D, L[-1:], UserString("ab") + "c"

chainmap_counter
cm = ChainMap({"a": w.n}, w.names, {"z": x})
c = Counter("abca"); c.update({"a": w.n}); c.subtract({"b": x.shape[0]})
s = cm["z"].sum().item(); ch = cm.new_child({"b": 9}); ch["q"] = s
return cm["a"], sorted(ch), ch.parents["b"], +c, -c, c & Counter(a=2, b=5), c | Counter(z=1), c.most_common(2), c.total(), sorted(c.elements())[:3], c["nope"], list(ch.maps[0])

deque_ops
d = deque([1, 2, 3], maxlen=x.shape[0]); d.append(w.n); d.rotate(w.n); s = x.sum().item()
d.appendleft(s > 0); d.extend([7, 8]); d.extendleft([5])
e = d.copy(); e.clear()
try: d.insert(0, 1)
except IndexError as ex: err = str(ex)
else: err = None
return list(d), d.maxlen, d[0], d.count(7), len(e), err, d.index(8) if 8 in d else -1, list(reversed(d)), deque(range(9), 2) + deque([1])

nn_hooks_break
|NET = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).requires_grad_(False)
|SEEN = []
def hook(m, i, o):
    SEEN.append(round(o.sum().item(), 3)); return o * w.n if w.n % 2 else None
hs = [m.register_forward_hook(hook) for m in NET if isinstance(m, nn.Linear)]
pre = NET[0].register_forward_pre_hook(lambda m, a: (a[0] + 1,))
y = NET(torch.ones_like(x))
for h in hs: h.remove()
pre.remove()
return y.shape, len(SEEN), len(NET[0]._forward_hooks), SEEN[-1] == SEEN[-1]

hooks_with_kwargs_always
|class M(nn.Module):
|    def forward(s, t, *, k=1):
|        if t.sum().item() > 100: raise ValueError("big")
|        return t * k
|NET = M(); LOG = []
h1 = NET.register_forward_pre_hook(lambda m, a, k: (a, {**k, "k": w.n}), with_kwargs=True)
h2 = NET.register_forward_hook(lambda m, a, k, o: LOG.append(sorted(k)), with_kwargs=True, always_call=True)
try: y = NET(x); NET(x + 1000)
except ValueError as e: LOG.append(str(e))
finally: h1.remove(); h2.remove()
return y, LOG[-3:]

parametrized_module
|class Sym(nn.Module):
|    def forward(s, v): return v.triu() + v.triu(1).transpose(-1, -2)
|    def right_inverse(s, v): return v.triu()
|NET = nn.Linear(4, 4).requires_grad_(False)
if not parametrize.is_parametrized(NET): parametrize.register_parametrization(NET, "weight", Sym())
s = NET.weight.sum().item()
with parametrize.cached():
    a = NET.weight is NET.weight
y = NET(x)
if w.n == 5: parametrize.remove_parametrizations(NET, "weight")
return y, a, s, sorted(k for k, _ in NET.named_parameters())

autograd_function_loop
|class Scale(torch.autograd.Function):
|    @staticmethod
|    def forward(ctx, t, k):
|        ctx.k = k; ctx.save_for_backward(t); return t * k
|    @staticmethod
|    def backward(ctx, g):
|        (t,) = ctx.saved_tensors; return g * ctx.k + t * 0, None
y = x.clone().requires_grad_()
z = y
for i in range(w.n):
    z = Scale.apply(z, i + 1)
    if z.sum().item() > 50: break
(g,) = torch.autograd.grad(z.sum(), y) if torch.is_grad_enabled() else (None,)
return z.detach(), g, i

autograd_function_break_inside
|class F2(torch.autograd.Function):
|    @staticmethod
|    def forward(ctx, t):
|        v = t.sum().item(); ctx.v = v
|        return t * v if v > 0 else t - v
|    @staticmethod
|    def backward(ctx, g): return g * ctx.v
y = x.clone().requires_grad_(); out = []
for k in range(2):
    z = F2.apply(y * (k + 1)); out.append(z.detach())
    if torch.is_grad_enabled(): z.sum().backward()
return out, y.grad

contextvar_and_threadlocal
|CV = contextvars.ContextVar("cv", default=0)
|TL = threading.local()
tok = CV.set(CV.get() + w.n); TL.v = getattr(TL, "v", 0) + 1
y = x * CV.get(); s = y.sum().item(); z = y + TL.v
CV.reset(tok)
return z, s, CV.get(), TL.v

functools_misc
class A:
    def __init__(s, v): s.v = v
    def __eq__(s, o): return s.v == o.v
    def __lt__(s, o): return s.v < o.v
A = functools.total_ordering(A)
a, b = A(x.sum().item()), A(w.n)
@functools.wraps(make_it := (lambda t: t * 2))
def g(t): return make_it(t)
p = functools.partial(torch.add, x, alpha=w.n); q = functools.partial(p, 1)
return a >= b, a <= b, a > b, g(x), g.__wrapped__ is make_it, q(), functools.reduce(lambda u, v: u * v, range(1, x.shape[0]), w.n), sorted([3, 1, w.n], key=functools.cmp_to_key(lambda u, v: v - u)), q.func is torch.add, len(q.args)

nested_functions_defaults
def outer(a, b=[], *, c={}):
    b.append(a); c[a] = len(b)
    def inner(k=b): k.append(x.shape[0]); return len(k), dict(c)
    return inner
r1 = outer(w.n); v = x.sum().item(); r2 = outer(w.n + 1)
return r1(), r2(), outer.__defaults__, outer.__kwdefaults__, v

class_counters_and_instances
|class Node:
|    count = 0; all = []
|    def __new__(cls, *a): o = super().__new__(cls); Node.count += 1; return o
|    def __init__(s, v): s.v = v; s.id = Node.count; Node.all.append(s)
|    def __repr__(s): return f"Node({s.v},{s.id})"
|    def __eq__(s, o): return isinstance(o, Node) and s.v == o.v
|    def __hash__(s): return hash(s.v)
|    def __bool__(s): return s.v > 2
|    def __len__(s): return 7
|    def __call__(s, t): return t * s.v
|    def __getitem__(s, k): return (s.v, k)
|    def __contains__(s, k): return k == s.v
|    def __iter__(s): return iter([s.v, s.id])
|    def __add__(s, o): return Node(s.v + (o.v if isinstance(o, Node) else o))
|    __radd__ = __add__
a = Node(w.n); s = a(x).sum().item(); b = Node(3) + a; c = 1 + b
return repr(b), bool(a), len(c), a[1:2], w.n in a, list(a), {a, Node(w.n)} == {a}, Node.count, len(Node.all), sum([a, b]).v, s, a == b, [*b]

getattr_hooks
|class P:
|    def __init__(s): object.__setattr__(s, "d", {}); object.__setattr__(s, "log", [])
|    def __getattr__(s, k):
|        s.log.append(k)
|        try: return s.d[k]
|        except KeyError: raise AttributeError(f"no {k}") from None
|    def __setattr__(s, k, v): s.d[k] = v * 2 if isinstance(v, torch.Tensor) and v.sum().item() > 0 else v
|    def __delattr__(s, k): del s.d[k]
|    def __dir__(s): return sorted(s.d)
p = P(); p.t = x; p.n = w.n
try: p.zz
except AttributeError as e: err = str(e)
y = p.t + p.n; del p.n
return y, hasattr(p, "n"), getattr(p, "n", 5), err, p.log, dir(p)

dict_operations
d = {k: i for i, k in enumerate("abc")}; d |= {w.n: x}; s = d[w.n].sum().item()
p = d.pop("a"); q = d.popitem(); e = d.setdefault("z", []); e.append(s > 0); d.update(b=x.shape[0]); f = dict.fromkeys(range(x.shape[0]), 0); f[1] += w.n
return p, q[0], list(d), d["z"], list(reversed(d)), d.keys() & {"b", "q"}, {**f}, d.items() >= {("b", x.shape[0])}, dict(zip("ab", w.items)), list(f.values()), d.get("nope", w.n), "b" in d, len(d) == 3, list(d.items())[0]

set_operations
a = set(range(x.shape[0])); b = {w.n, 1, 9}; s = x.sum().item(); a ^= b; c = a & b; a.discard(100); a.add(s > 0); fs = frozenset(b)
try: a.remove("no")
except KeyError as e: err = e.args
return sorted(a), sorted(c), b <= fs, b.isdisjoint({5}), fs | {2}, hash(fs) == hash(frozenset(b)), err, {fs: 1}[frozenset(b)], len(a | b), sorted(b.symmetric_difference([1])), b > {1}

lru_cache_of_tensors
|@functools.lru_cache(maxsize=2)
|def mk(n): CALLS.append(n); return torch.arange(n)
|CALLS = []
a = mk(x.shape[0]); b = mk(w.n); s = a.sum().item(); c = mk(x.shape[0])
return a is c, b.clone(), s, len(CALLS), mk.cache_info().currsize

ema_and_patience
|class ES:
|    def __init__(s): s.best = None; s.bad = 0; s.hist = []
|    def step(s, v):
|        s.hist.append(v)
|        if s.best is None or v < s.best - 1e-6: s.best, s.bad = v, 0
|        else: s.bad += 1
|        return s.bad >= 2
|OBJ = ES()
stop = OBJ.step(abs(x.sum().item() - 3)); y = x * (0.5 if stop else 2)
return y, OBJ.bad, len(OBJ.hist), round(OBJ.best, 3)

tensor_loop_with_state_dict
d = defaultdict(list)
for r in x:
    k = "pos" if r.sum() > 0 else "neg"
    d[k].append(r.mean().item() > 0); w.names[k] = w.names.get(k, 0) + 1
return dict(d), w.names, {k: len(v) for k, v in d.items()}, sorted(d, key=lambda k: -len(d[k]))

bool_ops_short_circuit
log = []
def t(v, r): log.append(v); return r
a = t(1, x.sum() > 0) and t(2, x.shape[0]) or t(3, "z"); b = t(4, 0) or t(5, x.sum().item()); c = not t(6, x.mean() > 0); d = t(7, x.sum() > 0) if t(8, w.n > 3) else t(9, None)
e = 0 < t(10, x.shape[0]) < t(11, 4) < t(12, x.numel())
return log, a if not isinstance(a, torch.Tensor) else "t", b, c, d, e

slots_inheritance_defaults
class A:
    __slots__ = ("x", "y")
    def __init__(s, x): s.x = x
class B(A):
    __slots__ = ("z",)
    def __init__(s, x, z): super().__init__(x); s.z = z
b = B(x * w.n, x.shape[0]); v = b.x.sum().item()
try: b.y
except AttributeError as e: err = str(e)
try: b.q = 1
except AttributeError as e: err2 = str(e)
b.y = v; del b.z
c = copy.copy(b)
return err, err2, b.y, hasattr(b, "z"), c.y == b.y, c.x is b.x, [s for k in type(b).__mro__ for s in getattr(k, "__slots__", ())]

metaclass_prepare_order_over_a_break
class M(type):
    @classmethod
    def __prepare__(m, n, b, **k): return dict(order=[], k=k)
    def __new__(m, n, b, ns, **k): return super().__new__(m, n, b, {**ns, "made": w.n})
    def __init__(c, n, b, ns, **k): c.keys = [q for q in ns if not q.startswith("__")]
    def __getitem__(c, k): return (c.__name__, k)
    def __len__(c): return 3
    def __instancecheck__(c, o): return o == 7
    def __contains__(c, k): return k == "a"
class A(metaclass=M, opt=x.shape[0]):
    a = 1; order.append(w.n)
    def f(s): return s.a
v = (x * A.a).sum().item()
return A.made, A.keys, A[1], len(A), isinstance(7, A), "a" in A, A.order, A.k, A().f(), v

property_inheritance_super
class A:
    @property
    def v(s): return x * 2
    @classmethod
    def mk(cls, *a): return cls.__name__, a
    @staticmethod
    def st(k): return k + w.n
    def m(s): return ["A"]
class B(A):
    @property
    def v(s): return super().v + 1
    @classmethod
    def mk(cls, *a): return super().mk(*a, x.shape[0])
    def m(s): return ["B"] + super().m()
class C(A):
    def m(s): return ["C"] + super().m()
class D(B, C):
    def m(s):
        t = x.sum().item() > 0
        return ["D", t] + super().m()
return D().v, D.mk(1), D().st(2), D().m(), [k.__name__ for k in D.__mro__], D.m.__qualname__, super(D, D()).m()

generic_alias_typing
T = typing.TypeVar("T")
class Box(typing.Generic[T]):
    def __init__(s, v: T): s.v = v
    def map(s, f) -> "Box[T]": return Box(f(s.v))
class NT(typing.NamedTuple):
    a: torch.Tensor
    b: int = 3
class TD(typing.TypedDict, total=False):
    k: int
b = Box[int](w.n).map(lambda v: v * x.shape[0]); n = NT(x); s = n.a.sum().item(); td: TD = {"k": w.n}
return b.v, n.b, n._replace(b=w.n).b, NT._fields, n._asdict()["b"], td, typing.get_type_hints(Box.map).get("return") is not None if False else 1, s, isinstance(n, tuple), n[0] is x, len(n)

protocol_abc
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(s): ...
    @property
    @abc.abstractmethod
    def name(s): ...
    def describe(s): return f"{s.name}:{s.area():.2f}"
class Sq(Shape):
    name = "sq"
    def __init__(s, a): s.a = a
    def area(s): return s.a.sum().item() ** 2
try: Shape()
except TypeError as e: err = str(e)
@typing.runtime_checkable
class HasArea(typing.Protocol):
    def area(self): ...
q = Sq(x)
return q.describe(), err, isinstance(q, HasArea), isinstance(3, HasArea), issubclass(Sq, Shape), isinstance([], collections.abc.Sequence), isinstance(x, collections.abc.Iterable), isinstance({}, collections.abc.Mapping)

iter_protocols
class It:
    def __init__(s, n): s.n = n; s.i = 0
    def __iter__(s): return s
    def __next__(s):
        if s.i >= s.n: raise StopIteration
        s.i += 1
        return (x * s.i).sum().item()
class Seq:
    def __getitem__(s, i):
        if i >= 3: raise IndexError(i)
        return x.sum().item() * i
    def __len__(s): return 3
a = list(It(w.n)); b = [v for v in Seq()]; c = 5.0 in Seq(); d, *e = It(3); f = dict(zip("abc", It(3))); g = list(reversed(Seq())); h = max(It(2)); i = list(iter(lambda it=It(3): next(it, None), None)); j = sum(It(2)); k = sorted(It(3)); l = list(map(lambda v: v * 2, It(2))); m = list(enumerate(It(2), 1)); n = any(v > 100 for v in It(2)); o = tuple(itertools.islice(It(9), 1, 3)); p = [*It(1), *Seq()]
return a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p
"""
