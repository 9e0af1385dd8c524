# size: table
"""Programs about state changed by calls, structures made by calls, and loops over sizes. As programs_library."""

PROGRAMS = r"""
chain_of_attributes
|class A: pass
|ROOT = A(); ROOT.b = A(); ROOT.b.c = A(); ROOT.b.c.v = 1
ROOT.b.c.v += 1
if w.n == 5: ROOT.b = A(); ROOT.b.c = A(); ROOT.b.c.v = 100
return x * ROOT.b.c.v

dict_of_callables_mutated
|OPS = {"a": torch.relu, "b": torch.tanh}
if w.n == 4: OPS["a"] = torch.sigmoid
return {k: f(x) for k, f in OPS.items()}

list_of_modules_swapped
|MS = [nn.ReLU(), nn.Tanh()]
if w.n % 2: MS.reverse()
for m in MS: x = m(x) + 1
return x, [type(m).__name__ for m in MS]

dataclass_of_the_call_is_ordered_after_a_break
class A:
    n: int
    s: str = "a"
    __annotations__ = {"n": int, "s": str}
print("b")
A = dataclasses.dataclass(order=True)(A)
print("c")
return x * max(A(2), A(w.n)).n, [a.n for a in sorted([A(3), A(w.n), A(1)])], A(1) < A(2)

dataclass_of_the_call_is_frozen_after_a_break
@dataclasses.dataclass
class B:
    n: int
print("b")
@dataclasses.dataclass(frozen=True, unsafe_hash=True)
class A:
    n: int
print("c")
try: A(1).n = 2
except dataclasses.FrozenInstanceError as e: told = str(e)
return x * A(w.n).n, told, B(1), hash(A(1)) == hash(A(1))

order_given_to_a_class_of_the_call_after_a_break
class A:
    def __init__(s, n): s.n = n
print("b")
try:
    had = "__lt__" in vars(A)
    if had: raise TypeError("has an order already")
    A.__lt__ = lambda s, o: s.n < o.n
except TypeError as e: had = str(e)
print("c")
return x * sorted([A(3), A(w.n)])[0].n, had

hooks_given_to_a_class_of_the_call_after_a_break
class A: pass
print("b")
told = ["__setattr__" in vars(A), "__delattr__" in vars(A)]
def keep(s, name, value): object.__setattr__(s, name, value * 2)
type.__setattr__(A, "__setattr__", keep)
setattr(A, "__delattr__", lambda s, name: None)
print("c")
a = A(); a.n = w.n
del a.n
return x * a.n, told

monkeypatch_method
|class A:
|    def f(s, t): return t + 1
|AA = A()
if w.n == 4: AA.f = lambda t: t * 100
if w.n == 6: del AA.f
return AA.f(x)

monkeypatch_module_function
|MOD = types.ModuleType("MOD"); MOD.f = lambda t: t + 1
if w.n == 4: MOD.f = lambda t: t - 1
return MOD.f(x)

number_of_an_object_in_a_cell_over_a_break
v = types.SimpleNamespace(n=w.n + w.n)
print("b")
v.n += 4
total = v.n
def g(): return v.n, w.names.__setitem__("c", total)
return x * total, g()

numbers_written_by_way_of_a_namespace_over_breaks
if w.n == 5: w.cfg = Config(hidden=9)
d = vars(w.cfg)
print("b")
d["hidden"] = d["hidden"] + 1
print("b")
return x * w.cfg.hidden

slot_of_a_dict_beside_its_items
|class D(dict):
|    __slots__ = ("misses",)
|    def __missing__(s, k):
|        s.misses = getattr(s, "misses", 0) + 1
|        return k * 2
|CACHE = D()
r = CACHE["q"]
print("b")
return x, r, CACHE.misses, CACHE["q"]

slot_of_a_list_beside_its_items
|class L(list):
|    __slots__ = ("seen",)
|ITEMS = L([1, 2])
ITEMS.seen = getattr(ITEMS, "seen", 0) + len(ITEMS)
return x * ITEMS[0], ITEMS.seen, [*ITEMS]

partial_that_is_set_over_breaks
p = functools.partial(int)
print("b")
p.__setstate__((torch.add, (x,), {"alpha": w.n}, {"k": 1}))
print("b")
return p(x), p.k

keys_with_numbers_in_them_over_breaks
|class Key:
|    def __init__(s, v):
|        print("b"); s.v = v
|    def __hash__(s): return s.v % 2
|    def __eq__(s, o): return s.v == o.v
d = {Key(i): i for i in range(w.n)}
d[Key(1)] = "new"
return x * len(d), d[Key(1)], [k.v for k in d]

keys_hashed_by_the_program_are_asked_as_often
|ASKED = []
|class Key:
|    def __init__(s, v, n): s.v, s.n = v, n
|    def __hash__(s): ASKED.append(s.v); return s.v % 2
|    def __eq__(s, o): ASKED.append((s.v, o.v)); return s.v == o.v
ASKED.clear()
d = {Key(i, w.n): i * w.n for i in range(3)}
print("b")
d[Key(1, 0)] = "new"
print("b")
return x * len(d), d[Key(2, 0)], [k.n for k in d], list(d.values()), list(ASKED)

numbers_in_a_set_with_keys_of_the_program
|ASKED = []
|class Key:
|    def __init__(s, v): s.v = v
|    def __hash__(s): ASKED.append(s.v); return 1
|    def __eq__(s, o): return isinstance(o, Key) and s.v == o.v
s = {Key(1), Key(2), w.n}
s |= {x.shape[0] * 100, frozenset([w.n, 7])}
y = x * len(s)
print(len(s), w.n in s, frozenset([7, w.n]) in s)
return y, Key(2) in s, sorted(map(str, (k for k in s if not isinstance(k, Key))))

keys_hashed_by_the_program_in_results
|class Key:
|    def __init__(s, v, n): s.v, s.n = v, n
|    def __hash__(s): return hash(s.v)
|    def __eq__(s, o): return s.v == o.v
k = Key("a", w.n)
d = {k: x * w.n, Key("b", x): 3, ("t", Key("c", w.n)): 1, frozenset([Key("d", w.n)]): 2}
w.kept = d
return d[Key("a", 0)], [getattr(j, "n", None) for j in d], any(j is k for j in d), [j.n for j in [*d][3]]

dataclasses_as_keys_over_breaks
|import dataclasses
|@dataclasses.dataclass(frozen=True)
|class Key:
|    a: int
|    b: str
|    c: int = dataclasses.field(default=0, compare=False)
d = {Key(w.n, "a", w.n): x * w.n, Key(2, "b"): w.n}
print("b")
return d[Key(w.n, "a")], [(k.a, k.b, k.c) for k in d]

tuples_of_numbers_in_two_places
|class Box: pass
a, b = Box(), Box(); a.t = (x.shape[0], w.n); b.t = a.t
l = [a.t, (w.n, a.t)]; p = functools.partial(max, b.t)
print("b")
r = l[0] is a.t, b.t is l[1][1], p.args[0] is a.t, l[1] is a.t
print("b")
return x * b.t[1], r, a.t is b.t, {id(t) for t in (*l, a.t, b.t)} == {id(l[0]), id(l[1])}

tuples_of_numbers_of_an_exception
try:
    t = w.n, "m"
    raise ValueError(*t)
except ValueError as e:
    saved = e.args
    print("b")
    r = e.args is saved, t is saved
    e.args = t
    print("b")
    return x * saved[0], r, e.args is t, e.args == saved

tuples_of_numbers_that_hold_themselves
def items(*args):
    for a in args:
        yield args, a
l = [w.n]; t = (w.n, l); l.append(t)
g = items(t, (w.n, 1)); first = next(g)
print("b")
second = next(g)
return x * t[1][1][0], l[1] is t, first[1] is t, first[0] is second[0], second[1] == first[0][1]

tuples_with_names_of_numbers_in_two_places
|P = collections.namedtuple("P", "a b")
t = P(x.shape[0], w.n); l = [t, t]; d = {"k": (t, P(*t))}
print("b")
return x * t.b, l[0] is l[1], l[0] is t, d["k"][0] is t, d["k"][1] is t, type(l[0]).__name__

numbers_under_keys_whose_hash_breaks
|class Key:
|    def __init__(s, v): s.v = v
|    def __hash__(s): print("h"); return hash(s.v)
|    def __eq__(s, o): print("e"); return s.v == o.v
|w_d = {}
w_d[Key("a")] = x.shape[0]
w_d[Key("b")] = (w.n, [w.n])
return x * 2, sorted(str((k.v, v, type(v))) for k, v in w_d.items())

iterator_of_a_list_that_the_piece_fills
fs = []
k = w.n
print("b")
for i in range(3):
    def g(t, i=i, j=k):
        print("b")
        return t * i + j
    fs.append(g)
return [g(x) for g in fs]

iterator_of_a_list_that_says_it_has_ended
v = list(w.items)
it = iter(v)
n = sum(it)
print("b")
v.append(7)
return x * n, list(it), len(v)

globals_dict_write
globals()["GV"] = globals().get("GV", 0) + 1
return x * GV

vars_of_object
d = vars(w.cfg); d["hidden"] = d["hidden"] + 1
return x * w.cfg.hidden, sorted(vars(w.cfg))

setattr_loop
for k, v in w.names.items(): setattr(w.cfg, k, v)
return [getattr(w.cfg, k, None) for k in "abc"], x, hasattr(w.cfg, "c")

delattr_and_default
w.tmp = x.sum()
del w.tmp
return getattr(w, "tmp", None), hasattr(w, "tmp"), x + 1

inplace_ops_on_state
w.items += [w.n]; w.items[0] *= 2; w.items[-1:] = [7, 8]; w.names |= {"z": w.n}
return w.items, w.names, x

augmented_in_closure
tot = 0
def add(v):
    nonlocal tot
    tot += v
for r in x: add(r.sum())
return tot

tensor_list_in_state
|HIST = []
HIST.append(x.mean()); del HIST[:-3]
return torch.stack(HIST), len(HIST)

ring_buffer
|RB = torch.zeros(4, 4); POS = [0]
RB[POS[0] % 4] = x[0]; POS[0] += 1
return RB.clone(), POS[0]

ema_dict
|EMA = {}
for k, v in {"a": x.mean(), "b": x.sum()}.items():
    EMA[k] = v if k not in EMA else EMA[k] * 0.9 + v * 0.1
return dict(EMA)

nested_default_dicts
d = collections.defaultdict(lambda: collections.defaultdict(int))
for i in w.items: d[i % 2][i] += 1
return {k: dict(v) for k, v in d.items()}, x

defaultdict_of_tensors
d = collections.defaultdict(lambda: torch.zeros(4))
for i, r in enumerate(x): d[i % 2] = d[i % 2] + r
return dict(d), d.default_factory is not None

dict_views_over_break
d = {"a": x, "b": w.n}
ks = d.keys(); vs = d.values(); it = d.items()
print("q")
d["c"] = 1
return list(ks), len(vs), len(it)

views_as_results
d = {"a": x, "b": w.n}
return d.keys(), d.values(), d.items()

mappingproxies
m = types.MappingProxyType({"a": x, "b": w.n})
return m["a"] + 1, list(m), dict(m), m

simple_namespaces
ns = types.SimpleNamespace(a=x, b=w.n); ns.c = ns.a * ns.b
print("q")
return ns, ns == types.SimpleNamespace(**vars(ns)) if False else ns.b, repr(types.SimpleNamespace(a=w.n))

properties_made_in_call
class A:
    def __init__(s): s._v = x
    @property
    def v(s): return s._v
    @v.setter
    def v(s, t): s._v = t * 2
a = A(); a.v = a.v + 1
return a.v

descriptors_with_state
|class Cached:
|    def __init__(s, f): s.f, s.n = f, 0
|    def __get__(s, o, t=None):
|        s.n += 1
|        return s.f(o)
|class A:
|    v = Cached(lambda s: w_global)
|w_global = 3
|AA = A()
return x * AA.v, A.__dict__["v"].n

getattr_chain
|class Lazy:
|    def __init__(s): s.log = []
|    def __getattr__(s, n):
|        if n.startswith("_"): raise AttributeError(n)
|        s.log.append(n); v = len(n); setattr(s, n, v); return v
|LZ = Lazy()
return x * LZ.abc, LZ.log[-1], getattr(LZ, "_x", "none"), LZ.zz

callable_objects
|class Scaler:
|    def __init__(s, k): s.k, s.calls = k, 0
|    def __call__(s, t): s.calls += 1; return t * s.k
|SC = Scaler(3)
return SC(x), SC.calls, list(map(SC, [x]))[0]

operators_with_state
|class Vec:
|    ops = []
|    def __init__(s, t): s.t = t
|    def __add__(s, o): s.ops.append("add"); return Vec(s.t + (o.t if isinstance(o, Vec) else o))
|    __radd__ = __add__
|    def __matmul__(s, o): return Vec(s.t @ o.t.T)
|    def __getitem__(s, k): return Vec(s.t[k])
|    def __len__(s): return s.t.shape[0]
|    def __iter__(s): return (Vec(r) for r in s.t)
|    def __contains__(s, k): return k < len(s)
|    def __bool__(s): return len(s) > 2
|    def __neg__(s): return Vec(-s.t)
|    def __eq__(s, o): return isinstance(o, Vec) and s.t is o.t
|    def __hash__(s): return id(s.t)
|    def __repr__(s): return f"Vec{tuple(s.t.shape)}"
v = Vec(x)
r = sum([v, v], 1) + 2
return r.t, (v @ v).t, v[0].t, len(v), [u.t.sum() for u in v], 2 in v, bool(v), (-v).t, v == Vec(x), repr(v), f"{v}", len(Vec.ops)

context_stack_in_state
|STACK = []
|@contextlib.contextmanager
|def push(k):
|    STACK.append(k)
|    try: yield STACK
|    finally: STACK.pop()
with push(w.n), push(2): y = x * sum(STACK)
return y, STACK

generator_closed_early
def rows():
    try:
        for r in x: yield r
    finally: w.log.append("closed")
g = rows(); a = next(g); g.close()
b = next(iter(rows()))
return a + b, w.log

recursion_over_structure
def walk(t, f):
    if isinstance(t, dict): return {k: walk(v, f) for k, v in t.items()}
    if isinstance(t, (list, tuple)): return type(t)(walk(v, f) for v in t)
    return f(t) if isinstance(t, torch.Tensor) else t
return walk({"a": [x, (x, 1)], "b": {"c": x.T}}, lambda t: t * w.n)

default_arguments_evaluated
def f(t, k=w.n, *, s=x.shape[0], acc=[]):
    acc.append(k); return t * k + s, acc
return f(x), f(x, 1), f.__defaults__[0], f.__kwdefaults__

lambda_defaults_in_loop
fs = [lambda t, i=i: t * i for i in range(w.n % 4)]
return [f(x) for f in fs], len(fs)

try_in_loop
out = []
for k in w.items + [0]:
    try: out.append(6 // k)
    except ZeroDivisionError: out.append("z"); continue
    finally: out.append("f")
    if k == 9: break
else: out.append("else")
return out, x

reraise_with_context
#R
try: {}["k"]
except KeyError as e: raise ValueError(f"bad {w.n}") from e

raise_in_finally
#R
try: raise ValueError(1)
finally: raise TypeError(x.shape[0])

custom_exception_with_tensor
|class E(Exception):
|    def __init__(s, m, t): super().__init__(m); s.t = t
try: raise E("m", x * 2)
except E as e: y = e.t; m = str(e); a = e.args
return y, m, a

exception_from_torch
try: x @ x.new_ones(7, 7)
except RuntimeError as e: m = str(e)
try: torch.ones(2).view(3)
except RuntimeError as e: m2 = str(e)
return m, m2, x

assertion_with_message
#R
assert x.shape[0] == 3, f"rows {x.shape[0]}"
return x

suppress_and_else
with contextlib.suppress(KeyError, ValueError): w.names["zz"]
with contextlib.suppress(ZeroDivisionError):
    1 / (x.shape[0] - 3); w.log.append("ok")
return w.log, x

warnings_once
warnings.warn("w1"); warnings.warn("w1"); warnings.warn(DeprecationWarning("d"))
return x

string_builder
buf = []
for n, p in w.net.named_parameters(): buf.append(f"{n}:{tuple(p.shape)}:{p.dtype}")
return "|".join(buf), str(w.net), x

format_tensors
return f"{x.shape}", f"{x.shape[0]}x{x.shape[1]}", "{}".format(x.dtype), str(x.device), f"{x.dim()}", f"{w.n:0{x.shape[1]}d}", f"{x.shape[0] / 2:.1f}", x

bytes_and_ints
n = x.shape[0]
return bytes([n, 1]), bytearray(n), (n).to_bytes(2, "big"), int("1" * n), int(str(n), 16) , n.bit_length(), b"a" * n, list(b"ab"), ord(chr(n + 64)), x

sorting_rows
rows = sorted(enumerate(x.sum(1).tolist()), key=lambda p: (-round(p[1], 3), p[0]))
return [i for i, _ in rows], x[[i for i, _ in rows]]

argsort_groups
ks = [i % 2 for i in range(x.shape[0])]
g = {k: [i for i, q in enumerate(ks) if q == k] for k in sorted(set(ks))}
return {k: x[v].sum(0) for k, v in g.items()}

sliding_windows
n = x.shape[0]
return [x[i:i + 2].sum() for i in range(n - 1)], [x[max(0, i - 1):i + 1].shape[0] for i in range(n)]

chunked_processing
out = []
for s in range(0, x.shape[0], 2):
    out.append(x[s:s + 2] * (s + 1))
return torch.cat(out), len(out)

padding_to_multiple
n = x.shape[0]; m = -n % 4
y = F.pad(x, (0, 0, 0, m))
return y, m, y.view(-1, 4, 4).shape, (n + 3) // 4 * 4

triangle_loops
n = min(x.shape[0], 3)
return [[(i, j) for j in range(i + 1)] for i in range(n)], torch.tensor([[i * j for j in range(n)] for i in range(n)])

while_with_size
n = x.shape[0]; k = 0
while n > 1: n //= 2; k += 1
return k, x * k

sizes_in_state
if x.shape[0] not in w.names: w.names[x.shape[0]] = len(w.names)
w.last = x.shape
return w.names[x.shape[0]], w.last, x + 0

max_size_seen
w.max = max(getattr(w, "max", 0), x.shape[0])
return w.max, x

size_histogram
|H = collections.Counter()
H[x.shape[0]] += 1
return dict(H), H.most_common(1), x

shape_keyed_cache
|C = {}
k = (x.shape, x.dtype, w.cfg.act)
if k not in C: C[k] = torch.ones(x.shape[0])
return C[k] + 1, len(C)

mask_cache_grow
|MC = {"m": torch.zeros(0, 0)}
n = x.shape[0]
if MC["m"].shape[0] < n: MC["m"] = torch.ones(n, n).tril()
return MC["m"][:n, :n] @ x

rope_cache_module
|class Rope(nn.Module):
|    def __init__(s):
|        super().__init__(); s.register_buffer("cos", torch.zeros(0), persistent=False); s.seen = 0
|    def forward(s, t):
|        n = t.shape[0]
|        if n > s.seen: s.cos = torch.arange(n).float().cos(); s.seen = n
|        return t * s.cos[:n, None]
|NET = Rope()
return NET(x), NET.seen, list(NET.state_dict())

sampler_object
|class Sampler:
|    def __init__(s, seed): s.g = random.Random(seed); s.hist = []
|    def pick(s, xs): v = s.g.choice(xs); s.hist.append(v); return v
|SP = Sampler(1)
return x * SP.pick([1, 2, 3]), SP.hist[-1]

observer_pattern
|class Subject:
|    def __init__(s): s.obs = []
|    def notify(s, v):
|        for o in list(s.obs): o(v)
|SU = Subject(); GOT = []
|SU.obs.append(lambda v: GOT.append(v.sum()))
SU.notify(x)
if w.n == 4: SU.obs.append(lambda v: GOT.append(v.shape[0]))
return len(GOT), GOT[-1]

state_machine
|class M:
|    state = "idle"
|    def step(s, t):
|        match s.state:
|            case "idle": s.state = "run"; return t
|            case "run": s.state = "done"; return t * 2
|            case _: s.state = "idle"; return -t
|MM = M()
return MM.step(x), MM.state

linked_list
|class Node:
|    def __init__(s, v, nxt=None): s.v, s.nxt = v, nxt
head = None
for r in x: head = Node(r, head)
out = []
while head: out.append(head.v); head = head.nxt
return torch.stack(out)

tree_with_parents
class T:
    def __init__(s, v, p=None):
        s.v, s.p, s.kids = v, p, []
        if p: p.kids.append(s)
r = T(x); a = T(x + 1, r); b = T(x + 2, a)
return b.p.p.v is x, sum(k.v.sum() for k in r.kids), r

graph_cycle_result
class N: pass
a, b = N(), N(); a.o, b.o = b, a; a.t = x * 2
return a, b

self_referencing_list
l = [x]; l.append(l)
return l[1] is l, l[1][1][0] is x, len(l)

dict_with_itself
d = {"x": x}; d["self"] = d
return d["self"]["self"] is d

matrix_class_hierarchy
|class Base:
|    registry = []
|    def __init__(s, *a, **k): s.args = a; s.k = k; s.setup()
|    def setup(s): pass
|class Mid(Base):
|    def setup(s): super().setup(); s.scale = s.k.get("scale", 1)
|class Leaf(Mid):
|    def setup(s): super().setup(); s.scale *= 2
|    def __call__(s, t): return t * s.scale + len(s.args)
return Leaf(1, 2, scale=w.n)(x), Leaf.__mro__[1].__name__, isinstance(Leaf(), Base)

mixin_super_chain
|class A:
|    def f(s, t): return t + 1
|class B(A):
|    def f(s, t): return super().f(t) * 2
|class C(A):
|    def f(s, t): return super().f(t) + 10
|class D(B, C):
|    def f(s, t): return super(D, s).f(t) - w_c
|w_c = 3
return D().f(x), [c.__name__ for c in D.mro()]

typing_checks
return isinstance(x, torch.Tensor), isinstance(w.items, list | tuple), isinstance(x.shape[0], (int, float)), typing.get_origin(list[int]) is list, typing.cast(int, w.n), isinstance(x.shape, collections.abc.Sequence), isinstance({}, collections.abc.Mapping), x

inspect_uses
def g(a, b=2, *c, d, **e): pass
s = inspect.signature(g)
return list(s.parameters), s.parameters["b"].default, inspect.isfunction(g), inspect.getfullargspec(g).args, x

functools_wraps_stack
def deco(k):
    def outer(f):
        @functools.wraps(f)
        def inner(*a, **kw): return f(*a, **kw) * k
        inner.k = k
        return inner
    return outer
@deco(2)
@deco(w.n)
def g(t): "doc"; return t + 1
return g(x), g.__name__, g.__doc__, g.k, g.__wrapped__.k

partialmethods
|class A:
|    def f(s, t, k): return t * k
|    dbl = functools.partialmethod(f, k=2)
|    @functools.cached_property
|    def big(s): return 100
a = A()
return a.dbl(x), a.big, "big" in vars(a)

cmp_to_key
return sorted([3, 1, x.shape[0]], key=functools.cmp_to_key(lambda a, b: b - a)), x

reduce_with_tensors
return functools.reduce(torch.maximum, list(x)), functools.reduce(lambda a, b: a @ b, [x, x.T, x]), functools.reduce(operator.add, w.items, 0)

accumulate_tensors
return list(itertools.accumulate(x, lambda a, b: a * 0.5 + b)), list(itertools.accumulate(w.items, max))

zip_unzip
a, b = zip(*[(r, i) for i, r in enumerate(x)])
return torch.stack(a), b, list(zip(x, w.items))[0][1]

chain_islice
return [r.sum() for r in itertools.islice(itertools.chain(x, x + 1), 1, 4)], list(itertools.islice(itertools.cycle(w.items), 5))

product_grid
return torch.tensor(list(itertools.product(range(min(x.shape[0], 3)), [0, w.n])))

deque_windows
d = collections.deque(maxlen=2); out = []
for r in x:
    d.append(r)
    if len(d) == 2: out.append(d[0] + d[1])
return out, d

heap_topk
h = []
for i, v in enumerate(x.sum(1).tolist()):
    heapq.heappush(h, (round(v, 3), i))
    if len(h) > 2: heapq.heappop(h)
return sorted(h)

json_state
w.cfg.extra = json.loads(json.dumps({"n": w.n, "s": list(x.shape)}))
return x * w.cfg.extra["n"], w.cfg.extra

pickle_config
c = pickle.loads(pickle.dumps(w.cfg))
return x * c.hidden, c == w.cfg, c is w.cfg

isinstance_dispatch
out = []
for v in (x, w.n, "s", None, [1], 2.5, x.shape, x.dtype, True):
    match v:
        case torch.Tensor(): out.append("tensor")
        case bool(): out.append("bool")
        case int(): out.append("int")
        case str(): out.append("str")
        case None: out.append("none")
        case torch.Size(): out.append("size")
        case list(): out.append("list")
        case float(): out.append("float")
        case _: out.append("?")
return out

sum_of_products
n, m = x.shape
return sum(i * j for i in range(n) for j in range(m)), sum(x[i, j] for i in range(n) for j in range(m) if (i + j) % 2 == 0)

bool_tensors
a = x > 0
return a & (x < 0.5), a | ~a, a ^ a, a.any(), a.all().item(), int(a.sum()), bool(a[0, 0]), x[a], torch.where(a, 1, 0)

number_chains
n = x.shape[0]
return n + 1.5, n * 2 - 3, (n + 1) // 2, n / 2 + n, -n, abs(n - 4), n ** 2, 2 ** n, n % 3 == 0, n > 2 and n < 6, (n, n + 1) < (4, 0), min(n, 4) * 2, max(n, 4) - n, round(n * 1.5), int(n * 0.7), float(n), str(n) + "!", [n] * 2, (n,) + (1,), {n: n}, {n}, n if n else 0, bool(n), hash((n,)) == hash((n,)), divmod(n, 2), n & 1, n | 2, n ^ 1, n << 1, n >> 1, ~n

struct_sequences_of_the_interpreter
import sys, time, os
stamp = time.gmtime(w.n)
return x * (2 if sys.version_info >= (3, 8) else 3), stamp.tm_year, tuple(stamp)[0], sys.flags.optimize, sys.version_info[:2] > (3, 0)

struct_sequences_that_a_break_gives
import time, sys
s = float(x.sum())
stamp = time.gmtime(w.n * 86400 * 366)
y = x * stamp.tm_year
print("year", stamp.tm_year)
return y + stamp[0], stamp, sys.float_info.dig, s

cached_functions_of_types_made_by_the_call
import typing
from collections.abc import Sequence
kinds = typing.Union[Sequence[torch.Tensor], typing.List[int]]
y = typing.cast(kinds, (x, x + 1))
z = typing.cast(typing.Optional[tuple[torch.Tensor, ...]], y)
return z[0] * w.n, typing.Union[int, None] == typing.Optional[int], typing.get_args(kinds)[1]

forms_of_types_live_over_a_break
import typing
form, either, many = list[torch.Tensor], int | None, tuple[int, ...] | dict[str, list[int]]
pair = typing.Union[tuple[torch.Tensor, ...], form]
y = x * 2
print("between", form, either)
return y * w.n, form == list[torch.Tensor], either, many, isinstance(w.n, either), typing.get_origin(form), pair == typing.Union[tuple[torch.Tensor, ...], form]
"""
