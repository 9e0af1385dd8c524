# size: table
"""Unusual ways to keep and to change state, and descriptors with a graph break. As programs_library."""

PROGRAMS = r"""
locals_globals_eval
a = w.n; v = x.sum().item(); ns = {"a": a, "n": x.shape[0], "x": x}
r = eval("a + n", ns); exec("b = a * n\ndef f(q): return q + b", ns); g = ns["f"](x)
loc = sorted(k for k in locals() if not k.startswith("_")); q = eval("a * 2"); u = [eval("a + 1") for _ in range(1)] if False else 0
return r, g, ns["b"], loc, q, v, "w" in vars(), globals()["G"]["k"], type(ns["b"])

re_callbacks
seen = []
def sub(m): seen.append(m.group()); return str(int(m.group()) + w.n)
t = re.sub(r"\d+", sub, f"a{x.shape[0]}b{w.n}"); v = x.sum().item()
m = re.match(r"(?P<k>\w)(\d)", f"a{x.shape[0] % 10}z"); f = re.findall(r"\d", f"{w.n}{x.shape[0]}"); s = re.split(r"[,;]", "a,b;c", maxsplit=w.n % 2 + 1)
return t, seen, m.groupdict(), m.span(2), f, s, re.compile("x" * w.n).pattern, v, re.escape(f"{w.n}.")

pickle_state
|STATE = {"a": 1, "l": [1, 2]}
STATE["a"] = w.n; STATE["l"].append(x.shape[0])
b = pickle.dumps(STATE); r = pickle.loads(b); v = x.sum().item()
t = pickle.loads(pickle.dumps((x, w.n, {x.shape[0]})))
return r == STATE, r["l"] is STATE["l"], t, v, copy.deepcopy(STATE)["l"]

operator_overload_returns
|class V:
|    def __init__(s, v): s.v = v
|    def __add__(s, o): return V(s.v + (o.v if isinstance(o, V) else o))
|    def __iadd__(s, o): s.v = s.v + o; HIST.append(o if not isinstance(o, torch.Tensor) else "t"); return s
|    def __radd__(s, o): return V(o + s.v)
|    def __mul__(s, o): return NotImplemented
|    def __matmul__(s, o): return ("mm", s.v, o)
|    def __neg__(s): return V(-s.v)
|    def __eq__(s, o): return isinstance(o, V) and bool((torch.as_tensor(s.v) == torch.as_tensor(o.v)).all())
|    def __hash__(s): return 1
|    def __lt__(s, o): return float(torch.as_tensor(s.v).sum()) < float(torch.as_tensor(o.v).sum())
|    def __getattr__(s, k):
|        if k.startswith("__"): raise AttributeError(k)
|        return ("missing", k)
|    def __index__(s): return w_n[0]
|HIST = []; w_n = [2]
w_n[0] = w.n
a = V(x); b = a; a += w.n; a += x; c = a + V(x) + 1; d = sum([V(1), V(w.n)], V(0)); v = a.v.sum().item()
try: a * 2
except TypeError as e: err = str(e)
return a is b, c.v, d.v, (a @ 3)[2], (-d).v, a == b, a != V(x), min(V(x), V(x * 2)).v is not None, a.zz, err, [1, 2, 3, 4, 5, 6, 7, 8, 9][V(0)], HIST[-2:], v, sorted([V(3), V(1)], key=lambda q: q.v)[0].v, a in [b], {V(1): 2}[V(1)]

module_state_in_forward
|class M(nn.Module):
|    def __init__(s):
|        super().__init__(); s.l = nn.Linear(4, 4); s.register_buffer("n", torch.zeros(())); s.cache = None; s.hist = []; s.d = {}
|    def forward(s, t):
|        s.n += 1; s.hist.append(t.shape[0])
|        if s.cache is None or s.cache.shape != t.shape: s.cache = torch.zeros_like(t)
|        s.cache = s.cache * 0.5 + t; s.d[t.shape[0]] = s.d.get(t.shape[0], 0) + 1
|        if s.n.item() % 3 == 0: s.extra = nn.Parameter(torch.ones(t.shape[0]), requires_grad=False)
|        if hasattr(s, "extra") and len(s.hist) == 5: del s.extra
|        return s.l(s.cache)
|NET = M().requires_grad_(False)
y = NET(x); sd = NET.state_dict()
return y.shape, list(sd), NET.n, NET.hist[-2:], NET.d, [n for n, _ in NET.named_parameters()], NET.training, repr(NET.l)

module_containers
|NET = nn.ModuleDict({"a": nn.Identity(), "b": nn.ReLU()}); PL = nn.ParameterList([torch.zeros(2)]); ML = nn.ModuleList()
if f"m{w.n}" not in NET: NET[f"m{w.n}"] = nn.Hardtanh(-1.0, float(w.n))
ML.append(nn.Identity()); v = x.sum().item(); PL.append(torch.full((2,), float(w.n))); ML.insert(0, nn.Tanh()); ML.extend([nn.ReLU()])
if len(ML) > 6: del ML[1:]
y = x
for k, m in NET.items(): y = m(y)
p = NET.pop("b") if "b" in NET and w.n == 4 else None
return y, len(ML), [type(m).__name__ for m in ML[:2]], sum(q.sum() for q in PL), list(NET), type(p).__name__, v

load_state_in_call
|NET = nn.Linear(4, 2).requires_grad_(False)
sd = {k: torch.full_like(v, float(w.n)) for k, v in NET.state_dict().items()}
r = NET.load_state_dict(sd); v = NET.weight.sum().item(); NET.apply(lambda m: m.weight.data.mul_(2) if isinstance(m, nn.Linear) else None)
NET.weight.data[0] = x[0]; NET.train(w.n % 2 == 0); n2 = copy.deepcopy(NET); n2.bias.data.zero_()
try: NET.load_state_dict({"weight": torch.ones(3, 3)})
except RuntimeError as e: err = str(e)[:60]
return NET(x), str(r), v, NET.training, n2.bias, NET.bias, err

dataset_and_collate
class DS(torch.utils.data.Dataset):
    def __len__(s): return x.shape[0]
    def __getitem__(s, i): return {"x": x[i], "i": i, "s": f"k{i}"}
ld = torch.utils.data.DataLoader(DS(), batch_size=2); out = []
for b in ld: out.append((b["x"].sum().item(), b["i"], b["s"]))
c = torch.utils.data.default_collate([(1, x[0]), (w.n, x[0])])
return out, c[0], c[1].shape, len(ld)

logging_and_printing
lg = logging.getLogger("h1"); st = io.StringIO(); h = logging.StreamHandler(st); lg.handlers = [h]; lg.setLevel(logging.INFO); lg.propagate = False
lg.info("n=%d s=%.2f", x.shape[0], w.n); lg.debug("no %s", x); lg.warning("v %s", x.sum().item() > 0)
print("a", w.n, x.shape, sep="|", file=st); print(f"{x.shape[0]:>3}", end="", file=st); sys.stdout.write(f"w{w.n}\n")
try: 1 / 0
except ZeroDivisionError: lg.exception("ex %s", w.n)
t = st.getvalue().splitlines()
return t[:3], len(t) > 4, t[-1]

weak_collections
class K: pass
d = weakref.WeakValueDictionary(); k = K(); k.v = w.n; d["k"] = k; e = weakref.WeakKeyDictionary(); e[k] = x.shape[0]; s = weakref.WeakSet([k])
v = x.sum().item(); a = d["k"].v, e[k], len(s), len(d)
del k
return a, len(d), len(e), len(s), v, d.get("k")

contextlib_tools
@contextlib.contextmanager
def cm(tag):
    w.log.append(f"+{tag}")
    try: yield tag
    finally: w.log.append(f"-{tag}")
class D(contextlib.ContextDecorator):
    def __enter__(s): w.log.append("D"); return s
    def __exit__(s, *e): w.log.append(("X", e[0] is None)); return False
@D()
def f(n): return (x * n).sum().item()
@cm("deco")
def g(): return x.mean().item()
with contextlib.closing(types.SimpleNamespace(close=lambda: w.log.append("closed"))) as c, contextlib.ExitStack() as st:
    for i in range(w.n % 3 + 1): st.enter_context(cm(i))
    a = f(w.n), g(); st2 = st.pop_all()
st2.close()
with contextlib.nullcontext(5) as five, contextlib.chdir("/") if False else contextlib.nullcontext(): pass
return a, five, w.log[-10:]

class_attr_counters
|class C:
|    total = 0; names = []; table = {}
|    @classmethod
|    def bump(cls, n): cls.total += n; cls.names.append(n); cls.table[n] = cls.table.get(n, 0) + 1; return cls.total
|    @staticmethod
|    def reset(): C.total = 0
|class E(C):
|    total = 100
a = C.bump(w.n); v = x.sum().item(); b = E.bump(x.shape[0]); c = C.total, E.total
if w.n == 5: C.reset(); del E.total
return x * a, b, c, C.names[-2:], E.names is C.names, dict(C.table), "total" in vars(E), v

setattr_delattr_dynamic
o = types.SimpleNamespace()
for i in range(w.n): setattr(o, f"a{i}", x.shape[0] * i)
v = x.sum().item()
for k in list(vars(o)):
    if getattr(o, k) % 2: delattr(o, k)
vars(o)["z"] = v; o.__dict__.update(q=w.n); object.__setattr__(o, "y", [w.n])
return vars(o), hasattr(o, "a1"), getattr(o, "nope", w.n), sorted(o.__dict__), o == types.SimpleNamespace(**vars(o))

tuple_and_namedtuple_ops
P = typing.NamedTuple("P", [("a", int), ("b", float)])
p = P(w.n, 0.5); q = p._replace(a=x.shape[0]); v = x.sum().item(); r = P(*range(2)); t = (w.n, x.shape[0], v > 0)
a, *b = t; m = {p: 1, q: 2}
return p < q, p + t, q[0], q[-1], p.index(w.n), t.count(w.n), a, b, m[P(w.n, 0.5)], p == (w.n, 0.5), P._make([1, 2]), p._asdict(), hash(p) == hash((w.n, 0.5)), t[::-1], t * 2, (t,) + t[:1], max(p, q), sorted([q, p]), isinstance(p, tuple), str(p), r, len(t), not (), (*t, *p)

global_rebinding_module
|TABLE = {"f": None}; N = 0
|def helper(t): return t + N
global helper
old = helper
def helper(t): return old(t) * w.n
y = helper(x); v = y.sum().item(); TABLE["f"] = helper; globals()["N"] = x.shape[0]; z = TABLE["f"](x); helper = old
return y, z, v, N

recursion_structures
tree = {"v": x, "c": [{"v": x * 2, "c": []}, {"v": x.shape[0], "c": [{"v": w.n, "c": []}]}]}; tree["self"] = tree; l = [1]; l.append(l)
def walk(t): yield t["v"]; yield from (u for c in t["c"] for u in walk(c))
vals = [q.sum().item() if isinstance(q, torch.Tensor) else q for q in walk(tree)]
d = torch.utils._pytree.tree_map(lambda q: q * 2 if isinstance(q, (int, torch.Tensor)) else q, {"a": [x, (w.n, None)]})
return vals, tree["self"] is tree, l[1] is l, d, repr(l)

while_with_data
i = 0; y = x
while y.abs().sum() < 40 and i < 6:
    y = y * 1.5 + 0.1; i += 1
    if i == w.n: continue
    if y.max().item() > 8: break
else: i = -i
k = x.shape[0]; steps = []
while k > 1: k = k // 2 if k % 2 == 0 else 3 * k + 1; steps.append(k)
return y, i, steps

comprehension_scopes
k = 5; a = [k for k in range(w.n)]; b = {j: [i * j for i in range(j)] for j in range(x.shape[0])}; c = [(lambda: i)() for i in range(3)]; g = (x[i].sum().item() for i in range(x.shape[0]) if i % 2 == 0); d = next(g, None); e = {z for z in [x.sum().item(), w.n]} and 1; f = [q for r in [[1, w.n], [x.shape[0]]] for q in r if q > 1]; h = [[i, j] for i in range(2) for j in range(i)]; n = [fn() for fn in [lambda: k for k in range(2)]]
return k, a, b, c, d, list(g), e, f, h, n

slices_and_setitems
y = x.clone(); y[w.n % y.shape[0]] = 0; y[:, 0] += w.n; y[y > 1] = -1; y[0, 1:3] = torch.tensor([1.0, 2.0]); y[..., -1] *= x.shape[0]; v = y.sum().item(); y[-1:] = v; y[torch.arange(y.shape[0]) % 2 == 0, 2] = 9.0
l = [0] * 6; l[w.n % 6] = x.shape[0]; l[1:3] = [w.n] * 3; l[::2] = range(len(l[::2])); del l[w.n % 3]; l.insert(w.n % 4, "i"); l.pop(-1); l.extend(range(x.shape[0] % 3)); l.reverse(); l2 = l.copy(); l.sort(key=str); l.remove("i")
return y, l, l2, l.index(l[0]), l2.count(0)

numbers_in_tuple_break
out = []
for k in (w.n, w.n * 2, x.shape[0]): out.append((x * k).sum().item())
for a, b in ((w.n, 1), (2, x.shape[0])): out.append((x * a + b).sum().item())
return out

numbers_in_state_tuple_break
|T = {"v": (1, 2, 3), "s": [(1, 2)]}
T["v"] = (w.n, w.n * 2, w.n + 5); T["s"][0] = (x.shape[0], w.n); y = x
for k in T["v"]:
    y = y * k
    if y.sum() > 50: break
for a, b in T["s"]: y = y + a - b
return y, k

tensor_subclass_state
class Tg(torch.Tensor): pass
t = x.as_subclass(Tg); t.tag = w.n; u = t * 2; v = u.sum().item()
return type(u).__name__, getattr(u, "tag", None), t.tag, v, isinstance(u, Tg), (u + 1).as_subclass(torch.Tensor)

bare_raise_and_else
out = []
for i in range(w.n):
    try:
        try:
            if (x * i).sum().item() > 0: raise KeyError(i)
        except KeyError:
            if i % 2: raise
            out.append(("kept", i))
        else: out.append(("else", i))
    except KeyError as e: out.append(("outer", e.args[0]))
    finally: out.append("f")
return out

generator_in_state_advanced
|def gen():
|    i = 0
|    while True: yield i; i += 1
|S = {"g": gen(), "it": iter(range(100)), "c": itertools.count(5), "cy": itertools.cycle("ab"), "e": enumerate("abcdefghijklmnopqrstuvwxyz")}
a = next(S["g"]); b = next(S["it"]); v = x.sum().item(); c = next(S["c"]); d = next(S["cy"]); e = next(S["e"])
return a, b, c, d, e, v, x * (a + b)

closures_shared_cells_over_a_break
def mk():
    n = 0; t = x
    def inc(k=1):
        nonlocal n, t
        n += k; t = t + n
        return n
    def get(): return n, t
    return inc, get
i, g = mk(); i(); v = x.sum().item(); i(w.n); i(x.shape[0]); n, t = g()
fs = [lambda k=k: (k, n) for k in range(3)]; n = 99
return n, t, v, [f() for f in fs], i.__closure__[0].cell_contents == g.__closure__[0].cell_contents

inplace_ops_on_views
y = x.clone(); r = y[0]; r += w.n; y.t()[1] *= 2; z = y.view(-1); z[0] = x.shape[0]; s = y.sum().item(); z.add_(s); a, b = y.split(2, 1); a.zero_(); b.copy_(torch.ones_like(b) * w.n); y[y > w.n - 1].mul_(5); torch.add(y, 1, out=y); y.resize_(y.shape[0], 4) if False else None; y.index_fill_(0, torch.tensor([0]), 7.0); y.data.sub_(1); u = y.detach(); u[0, 0] = -1; y.unsqueeze_(0); y.squeeze_(0); y.transpose_(0, 1)
return y, r, z, a, s, y.shape, y.stride(), r.data_ptr() == z.data_ptr(), y._base is None

grad_modes_mixed
out = []
with torch.no_grad():
    a = x * 2; out.append(torch.is_grad_enabled())
    with torch.enable_grad(): b = x.clone().requires_grad_(); c = (b * w.n).sum(); out.append(c.requires_grad); v = c.item()
    d = c * 2; out.append(d.requires_grad)
with torch.inference_mode(): e = x + 1; out.append(e.is_inference())
prev = torch.is_grad_enabled(); torch.set_grad_enabled(not prev); f = (b * 2).requires_grad; torch.set_grad_enabled(prev); out.append(f)
(g,) = torch.autograd.grad(c, b)
@torch.no_grad()
def ng(t): return (t * b).requires_grad
with torch.autocast("cpu", dtype=torch.bfloat16): h = x @ x.T
return out, g, ng(x), h.dtype, h.float().sum().item(), v, a

hooks_on_tensors_break
b = x.clone().requires_grad_()
if not torch.is_grad_enabled(): return x
seen = []
h1 = b.register_hook(lambda g: seen.append(g.sum().item()) or g * w.n); y = (b ** 2).sum(); y.register_hook(lambda g: seen.append("y")) ; z = b * 3; z.retain_grad(); (y + z.sum()).backward(); h1.remove(); v = b.grad.sum().item()
b.grad = None; (b * 2).sum().backward(); b.grad.zero_(); b.grad += 1; post = b.register_post_accumulate_grad_hook(lambda t: seen.append("post")); (b * x.shape[0]).sum().backward(); post.remove()
return seen, v, b.grad, z.grad, y.grad_fn is not None

descriptor_gets
|NOW = types.SimpleNamespace(x=None, n=0)
|class Lazy:
|    def __init__(s, f): s.f = f; s.calls = 0
|    def __set_name__(s, o, n): s.n = n
|    def __get__(s, o, t=None):
|        if o is None: return s
|        s.calls += 1
|        v = s.f(o)
|        if v is None: raise AttributeError(f"no {s.n}")
|        return v
|class Method:
|    def __init__(s, f): s.f = f
|    def __get__(s, o, t): return functools.partial(s.f, o, t.__name__)
|class Data(Lazy):
|    def __set__(s, o, v): o.__dict__["_" + s.n] = v
|class A:
|    total = Lazy(lambda s: NOW.x.sum().item())
|    none = Lazy(lambda s: None)
|    big = Data(lambda s: (NOW.x * NOW.n).max().item() > s.__dict__.get("_big", 0))
|    @Method
|    def m(s, name, k=1): return name, k, NOW.x.mean().item()
|    def __getattr__(s, k): return ("missing", k)
NOW.x = x; NOW.n = w.n
a = A(); a.big = w.n
return a.total, a.none, a.big, a.m(k=w.n), A.total is vars(A)["total"], A.total.calls, getattr(a, "total"), hasattr(a, "none"), operator.attrgetter("total")(a), [q.total for q in [a, A()]]

cached_property_kinds
|NOW = types.SimpleNamespace(x=None, n=0)
|class P:
|    n = 0
|    @functools.cached_property
|    def v(s): P.n += 1; return NOW.x.sum().item() + NOW.n
|    @functools.cached_property
|    def fails(s):
|        P.n += 10
|        raise ValueError(f"at {NOW.x.shape[0]}")
|    @functools.cached_property
|    def nested(s): return s.v * 2, s.v
|class Q(P):
|    @functools.cached_property
|    def v(s): return super().v if False else NOW.x.mean().item()
|class S:
|    __slots__ = ("a",)
|    @functools.cached_property
|    def v(s): return 1
NOW.x = x; NOW.n = w.n
p, q = P(), Q(); out = []
for _ in range(2):
    try: p.fails
    except ValueError as e: out.append(str(e))
try: S().v
except TypeError as e: out.append(str(e))
r = p.nested, q.nested, p.v is p.v; del p.v
return r, p.v, P.n, out, sorted(vars(p)), isinstance(P.v, functools.cached_property)
"""
