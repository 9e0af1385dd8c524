# size: table
"""Programs about the targets of guards: changing classes, tensors' gradients, orders of keys, parts of modes. As
programs_library, with the prelude of programs_torch."""

PROGRAMS = r"""
class_int_varies
|class A: n = 0
|class B(A): pass
A.n += 1
b = B()
return x * A.n, B.n, b.n, vars(A)["n"], "n" in vars(B)

class_written_then_read_below
|class A: k = 1; t = None
|class B(A): pass
|class C(B): k = 5
A.k = w.n; B.t = x.sum()
return x * B.k, C.k, B.t, A.t, C().t

class_tensor_replaced
|class A: mean = torch.zeros(4)
A.mean = A.mean * 0.5 + x.mean(0)
return x - A.mean

class_attribute_deleted_again
|class A: k = 3
|class B(A): pass
B.k = w.n; r = B.k
del B.k
return x * B.k, r, hasattr(B, "k")

class_setattr_by_name
|class A: pass
for i, n in enumerate("ab"): setattr(A, n, getattr(A, n, 0) + i + 1)
type.__setattr__(A, "c", w.n)
if w.n == 5: delattr(A, "a")
return x * A.b, A.c, getattr(A, "a", None)

class_with_metaclass_setter
|class Meta(type):
|    log = []
|    def __setattr__(c, n, v): Meta.log.append(n); super().__setattr__(n, v)
|    def __delattr__(c, n): Meta.log.append("-" + n); super().__delattr__(n)
|class A(metaclass=Meta): k = 0
A.k = A.k + w.n; A.tmp = 1
del A.tmp
return x * A.k, len(Meta.log), Meta.log[-2:]

class_counter_and_instances
|class Node:
|    made = 0
|    def __init__(s): Node.made += 1; s.id = Node.made
|NODES = []
a = Node(); b = Node(); NODES.append(b)
return x * a.id, b.id - a.id, Node.made, len(NODES), [n.id for n in NODES][-2:]

class_state_in_submodule
|class L(nn.Module):
|    seen = collections.Counter()
|    depth = 0
|    def forward(s, t):
|        L.depth += 1; s.seen[t.shape[0]] += 1
|        try: return t * L.depth
|        finally: L.depth -= 1
|NET = nn.Sequential(L(), nn.Sequential(L()))
return NET(x), L.depth, dict(L.seen)

class_text_and_floats
|class A: mode = "a"; lr = 0.5; opts = ("x", 1)
A.mode = A.mode + "b" if len(A.mode) < 4 else "a"; A.lr = A.lr * 0.5; A.opts = (A.mode, len(A.mode))
return x * A.lr, A.mode, A.opts

class_patched_for_a_while
|class A:
|    def f(s, t): return t + 1
|    g = staticmethod(lambda t: t)
|    @property
|    def p(s): return 2
|OBJ = A()
old = A.p; A.p = property(lambda s: 3); r = OBJ.p; A.p = old
A.g, keep = staticmethod(lambda t: t * 2), A.__dict__["g"]; q = OBJ.g(x); A.g = keep
return r, OBJ.p, q, OBJ.g(x)

ordered_dict_in_state
|OD = collections.OrderedDict(); LRU = collections.OrderedDict()
OD[x.shape[0]] = x.sum(); OD[w.n] = w.n
if len(OD) > 3: OD.popitem(last=False)
LRU[x.shape[0] % 3] = LRU.pop(x.shape[0] % 3, 0) + 1; LRU.move_to_end(x.shape[0] % 3, last=False)
if w.n == 5: del OD[next(iter(OD))]
return list(OD), list(LRU.items()), list(reversed(OD)), OD == collections.OrderedDict(OD)

ordered_dict_of_its_own
d = collections.OrderedDict(a=1, b=x, c=3); d.move_to_end("a"); d["b"] = d.pop("b") + 1
e = collections.OrderedDict([(x.shape[0], "n"), (9, "z")]); e.move_to_end(9, last=False)
print("m")
d.move_to_end("c", last=False)
return d, e, list(d), list(e), d.popitem(), list(d)

ordered_dict_subclass
|class D(collections.OrderedDict):
|    def __setitem__(s, k, v): super().__setitem__(k.lower(), v)
|    def __delitem__(s, k): super().__delitem__(k.lower())
|REG = D()
REG["A" + str(w.n)] = x.shape[0]; REG["B"] = w.n
if w.n > 4: del REG["B"]; REG.move_to_end("a4")
d = D(); d["Q"] = x; d["R"] = 1; d.move_to_end("q")
return list(REG.items()), d, list(d)

list_subclass_with_slots
|class L(list):
|    __slots__ = ("name", "n")
|    def __init__(s, it=(), name=""): super().__init__(it); s.name = name; s.n = 0
|    def append(s, v): s.n += 1; super().append(v)
|    def __getitem__(s, i): s.n += 10; return super().__getitem__(i)
|LOG = L(name="log")
LOG.append(w.n); a = L([x, 1], "own"); a.append(x.sum())
print("b")
a.append(2); LOG[0]
return a, a.name, a.n, LOG.n, len(LOG), type(a).__name__

dict_subclass_with_slots
|class D(dict):
|    __slots__ = ("misses",)
|    def __missing__(s, k): s.misses = getattr(s, "misses", 0) + 1; return k * 2
|CACHE = D()
d = D(a=x); r = d["zz"], CACHE["q"]
if w.n == 4: CACHE["q"] = 5
print("b")
return d, r, d.misses, CACHE.misses, CACHE["q"]

match_reads_attributes
|class P:
|    kind = "c"
|    __match_args__ = ("kind", "k")
|    def __init__(s, k): s.k = k
|    @property
|    def area(s): return s.k * 2
|OBJ = P(1)
OBJ.k += 1
if w.n == 4: OBJ.kind = "s"
if w.n == 6: P.kind = "d"; del OBJ.kind
match OBJ:
    case P("s", k): r = x * k
    case P(area=a) if a > 8: r = x + a
    case P(kind="c", k=3): r = x - 1
    case P(nothing=_): r = None
    case P(k=k): r = x * 100 * k
return r, OBJ.kind

match_attributes_that_compute
|class Lazy:
|    def __init__(s): s.asked = []
|    def __getattr__(s, n):
|        if n.startswith("_"): raise AttributeError(n)
|        s.asked.append(n); return len(n)
|OBJ = Lazy()
match OBJ:
    case Lazy(aa=3): r = 1
    case Lazy(bbb=n, aa=2): r = x * n
try:
    match OBJ:
        case Lazy(1, 2): pass
except TypeError as e: m = str(e)
return r, OBJ.asked[-3:], m

new_singleton_and_flyweight
|class Fly:
|    pool = {}
|    def __new__(c, k):
|        if k not in c.pool: c.pool[k] = super().__new__(c); c.pool[k].n = 0
|        return c.pool[k]
|    def __init__(s, k): s.k = k; s.n += 1
a = Fly(x.shape[0]); b = Fly(x.shape[0]); c = Fly("z")
return x * a.n, a is b, c.k, len(Fly.pool)

new_of_values
|class Pair(tuple):
|    def __new__(c, a, b=0): return super().__new__(c, (a, b))
|    def __init__(s, *a, **k): s.args = len(a)
|class Meters(float):
|    def __new__(c, v, unit="m"): s = super().__new__(c, v); s.unit = unit; return s
|class Level(int):
|    def __new__(c, v): return super().__new__(c, v + 1)
|class Other:
|    def __new__(c): return 5
|    def __init__(s): 1 / 0
p = Pair(x, b=w.n); m = Meters(2.5, unit="k"); l = Level(3)
try: Pair()
except TypeError as e: t = str(e)
return p, p.args, m * 2, m.unit, l, type(l).__name__, Other(), t, isinstance(p, tuple)

new_breaks_inside
|class T:
|    made = []
|    def __new__(c, t, **k):
|        print("new", sorted(k)); s = object.__new__(c); s.total = float(t.sum()); c.made.append(1); return s
|    def __init__(s, t, **k): print("init"); s.t = t * k.get("k", 1)
a = T(x, k=w.n); b = T(x * 2)
return a.t, b.t, len(T.made), a.total < b.total or a.total >= b.total

new_of_parameters
p = nn.Parameter(x.clone(), requires_grad=False); q = nn.Parameter(torch.ones(2) * w.n)
m = nn.Linear(4, 2, bias=False).requires_grad_(False); m.weight = nn.Parameter(p[:1].repeat(2, 1), requires_grad=False)
return p * 2, isinstance(p, nn.Parameter), q.requires_grad, m(x), type(p.data).__name__, q.detach()

attributes_deleted_in_python
|class A:
|    def __init__(s): object.__setattr__(s, "d", {})
|    def __setattr__(s, n, v): s.d[n] = v
|    def __delattr__(s, n): print("del", n); del s.d[n]
|class B:
|    def __init__(s): s._v = 1
|    @property
|    def v(s): return s._v
|    @v.deleter
|    def v(s): print("del v"); s._v = 0
|OBJ = A(); BB = B()
OBJ.a = x.sum(); OBJ.b = w.n
del OBJ.a
BB._v = w.n
del BB.v
return OBJ.d, BB.v, x

items_deleted_in_python
|class R:
|    def __init__(s): s.d = {}
|    def __setitem__(s, k, v): s.d[k] = v
|    def __delitem__(s, k):
|        if k not in s.d: raise KeyError(k)
|        print("gone", k); s.d.pop(k)
|REG = R()
REG[w.n] = x.sum(); REG["k"] = 1
del REG["k"]
try:
    del REG["zz"]
except KeyError as e: r = e.args
return dict(REG.d), r

map_handed_on
def scale(t): print("s", t.shape[0]); return t * w.n
def take(it): return list(it)
m = map(scale, [x, x[:1]]); f = filter(lambda t: bool(t.sum() > 0), [x, -x]); z = zip((float(r[0]) for r in x), "ab")
return take(m), take(f), [k for _, k in take(z)], tuple(map(scale, [x])), [*map(scale, [x])], sum(map(lambda r: r.sum() * int(r.numel()), x)), list(m)

map_partly_taken
def sq(t): print("q"); return t * t
m = map(sq, x)
a = next(m) if x.shape[0] > 1 else 0
rest = [r for r in m]
n = map(lambda a, b: a + float(b), [1.0, 2.0], x[0])
p, *q = n
return a, rest, round(p, 3), [round(v, 3) for v in q], next(m, "end")

iterators_of_the_program
class Count:
    def __init__(s, n): s.i, s.n = 0, n
    def __iter__(s): return s
    def __next__(s):
        if s.i >= s.n: raise StopIteration
        s.i += 1; print("n", s.i); return x[0] * s.i
class Bag:
    def __iter__(s): print("iter"); yield from [1, w.n]
class Sized(Bag):
    def __len__(s): return 2
a, b = Count(2); c = {i: v for i, v in enumerate(Count(2))}
return a, b, list(Bag()), tuple(Count(1)), set(Bag()) == {1, w.n}, list(Sized()), max(Bag()), dict(zip("ab", Bag())), [*Bag(), *Count(1)], ",".join(map(str, Bag()))

sets_that_guard_recursion
|RUNNING = set()
|class Node:
|    def __init__(s): s.kids = []
|    def show(s):
|        key = id(s)
|        if key in RUNNING: return "..."
|        RUNNING.add(key)
|        try: return "N(" + ",".join(k.show() for k in s.kids) + ")"
|        finally: RUNNING.discard(key)
n = Node(); m = Node(); n.kids += [m, n]
return n.show(), len(RUNNING), x + 1, repr(Config(hidden=w.n)), repr([Config()])

sets_taken_back
|S = {1, 2}
S.add(9); S.discard(9); S.add(1); S.discard(1)
S.add(w.n); S.add("t"); S.remove("t")
if w.n == 5: S.discard(3)
return sorted(S), x

numbers_have_no_attributes
n = x.shape[0]; out = []
for f in (lambda: setattr(n, "a", 1), lambda: setattr(n / 2, "b", 1), lambda: setattr(n > 2, "c", 1), lambda: n.foo, lambda: setattr(n, "real", 2), lambda: delattr(n, "a")):
    try: f(); out.append("done")
    except AttributeError as e: out.append(str(e))
return out, x

data_assigned
|NET = nn.Linear(4, 2).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
|BUF = torch.zeros(4)
NET.weight.data = NET.weight.data * 0.5 + x[:1].repeat(2, 1)
BUF.data = torch.full((w.n,), 2.0); y = x.clone(); y.data = y.data[:1]
NET.bias.requires_grad = w.n % 2 == 0
return NET(x).detach(), BUF.sum(), y, NET.bias.requires_grad, BUF.shape

data_assigned_in_loop
|NET = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
for n, p in NET.named_parameters():
    if p.dim() > 1: p.data = p.data.clamp(-0.3, 0.3) * w.n
return NET(x), [p.abs().max() for p in NET.parameters()]

weights_snapped
|NET = nn.Linear(4, 2).requires_grad_(False)
|with torch.no_grad(): NET.weight.copy_(torch.linspace(-1, 1, 8).reshape(2, 4)); NET.bias.zero_()
keep = {n: p.data.clone() for n, p in NET.named_parameters()}
NET.weight.data.mul_(0).add_(1); y = NET(x)
for n, p in NET.named_parameters(): p.data.copy_(keep[n])
return y, NET(x)

modes_inside_of_breaks
out = []
with torch.no_grad():
    a = float(x.sum()) > 0; out.append(torch.is_grad_enabled())
    with torch.enable_grad(): b = str(x[0, :1]); out.append(torch.is_grad_enabled())
out.append(torch.is_grad_enabled())
with torch.autocast("cpu", dtype=torch.bfloat16):
    c = (x @ x.t()); d = float(c.float().sum()) > 0; out.append(torch.is_autocast_enabled("cpu"))
    with torch.autocast("cpu", enabled=False): e = float(x.sum()); out.append((x @ x.t()).dtype)
out.append(torch.is_autocast_enabled("cpu"))
return out, c.dtype, (x @ x.t()).dtype

modes_and_exceptions_inside
try:
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        if x.sum() > -100: raise ValueError(f"{x[0, 0]:.2f} {x[0, :1]}")
except ValueError as e: m = e.args[0]
return m, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), (x @ x.t()).dtype

floats_of_data_that_vary
m = float(x.mean()); s = x.std().item() if x.shape[0] > 1 else 1.0
return x / (abs(m) + 1), x * abs(s - 1), abs(-m) >= 0, x * max(abs(m), 0.1), x + min(m, 0.0), x * (-m), x - (+m), x * round(m, 1), m == float(x.mean())

requires_grad_of_state
|P = nn.Parameter(torch.ones(4)); Q = torch.zeros(4)
P.requires_grad_(w.n % 2 == 0); Q.requires_grad_(w.n > 4)
with torch.no_grad(): y = x * P + Q
return y, P.requires_grad, Q.requires_grad, Q.is_leaf, P.grad is None

steps_by_hand
|P = nn.Parameter(torch.ones(2, 4)); MOM = torch.zeros(2, 4)
with torch.enable_grad():
    loss = (P[:1] * x).sum() + P.pow(2).mean()
    g, = torch.autograd.grad(loss, [P])
with torch.no_grad():
    MOM.mul_(0.9).add_(g); P.sub_(MOM, alpha=0.1)
return g, P.detach(), loss.detach()

steps_by_hand_in_place
|NET = nn.Linear(4, 1)
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
with torch.enable_grad():
    loss = (NET(x) - 1).pow(2).mean()
    gs = torch.autograd.grad(loss, list(NET.parameters()))
with torch.no_grad():
    for p, g in zip(NET.parameters(), gs): p -= 0.1 * g
return loss.detach(), gs, NET.weight.detach(), NET.weight.requires_grad, NET.weight.is_leaf

calls_of_a_metaclass_that_hands_on
|class Meta(type):
|    made = 0
|    def __call__(cls, *a, **k):
|        Meta.made += 1
|        return super().__call__(*a, **k)
|class A(metaclass=Meta):
|    def __init__(s, t, n=1):
|        if not (t > -1000).all(): raise ValueError("bad")
|        s.t = t * n
|class B(metaclass=Meta):
|    def __new__(cls, t):
|        o = super().__new__(cls); o.k = t.sum().item()
|        return o
|class C(metaclass=Meta): pass
a = A(x, n=2); b = B(x)
try: C(x)
except TypeError as e: said = str(e)
return a.t, b.k, said, Meta.made, type(C()) is C

calls_of_a_metaclass_that_keeps
|class One(type):
|    kept = {}
|    def __call__(cls, *a):
|        if cls not in One.kept: One.kept[cls] = super().__call__(*a)
|        return One.kept[cls]
|class A(metaclass=One):
|    def __init__(s, t): s.n = int(t.shape[0]); s.v = t.mean().item()
return A(x).v, A(x) is A(x), x * A(x).n

cached_function_beside_a_number_in_state
|@functools.lru_cache(None)
|def plan(shape, k): return tuple(n * k for n in shape), len(shape)
|class H: seen = 0
|h = H()
before = h.seen
sizes, rank = plan(tuple(x.shape), 2)
h.seen = x.shape[0]
return x.new_zeros(sizes).shape, rank, before + 1, x * before

weak_reference_to_a_parameter_over_a_break
|import weakref
|P = nn.Parameter(torch.ones(4))
t = (x + P).detach(); t.owner = weakref.ref(P)
y = x.sum().item()
return t + y, t.owner() is P, t.owner is weakref.ref(P), len(vars(t))

registered_class_is_made_over_a_break
|@dataclasses.dataclass
|class Out(collections.OrderedDict):
|    image: object
|    def __post_init__(s):
|        MADE.append(1)
|        s["image"] = s.image * s.image.sum().item()
|MADE = []
|pytree.register_pytree_node(Out, lambda o: (list(o.values()), list(o)), lambda v, c: Out(**dict(zip(c, v))))
o = Out(x)
return o["image"], list(o), len(MADE), type(o) is Out

what_a_bound_method_calls_holds_what_nobody_rebuilds
|class Part(functools.partial): __slots__ = "func"
|class A:
|    def __init__(s, t): s.t = t
|def inner(s, k):
|    p = Part(len); p.func = abs
|    n = s.t.sum().item()
|    return n * k, p.func is abs
def bound(t): return types.MethodType(inner, A(t))
return bound(x)(2), [bound(x * 2)(k) for k in range(2)]

sets_and_deques_of_tuples_over_a_break
seen = {(1, 2), (w.n, "a")}; queue = collections.deque([(x, 1), ()], maxlen=3); both = {(x.shape[0], 4)}
y = x.sum().item()
seen.add((1, 2)); queue.append((y,)); both.add((y, 4))
print(end="")
return (1, 2) in seen, sorted(map(str, seen)), list(queue), queue.maxlen, len(both)

property_behind_two_ways_of_setting
|class A:
|    def __init__(s): s.__dict__["_t"] = torch.ones(4)
|    @property
|    def t(s): return s._t
|    @t.setter
|    def t(s, v): object.__setattr__(s, "_t", v)
|    def __setattr__(s, n, v): super().__setattr__(n, v)
|a, b = A(), A()
a.t = x.mean(0)
c = A(); c.t = a.t + 1
object.__setattr__(b, "t", c.t * 2)
b.__setattr__("u", w.n)
return a.t, b._t, c.t, b.u, hasattr(b, "t")
"""
