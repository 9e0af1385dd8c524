# size: table
"""Programs that read data in the middle of Python's own machinery: operators, protocols, handlers, generators,
containers. As programs_library, with the prelude of programs_torch."""

PROGRAMS = r"""
break_in_getitem
class D:
    def __getitem__(s, i):
        if i >= 2: raise IndexError
        return x * int(x[0, 0] * 0 + i + 1)
    def __len__(s): return 2
d = D()
return [t for t in d], d[1], len(d)

break_in_property
class A:
    @property
    def k(s): print("get"); return w.n
    @k.setter
    def k(s, v): print("set", v); w.log.append(v)
a = A(); a.k = a.k + 1
return x * a.k, getattr(a, "k", 3), hasattr(a, "k")

break_in_operators
class V:
    def __init__(s, t): s.t = t
    def __add__(s, o): return V(s.t + o.t * float(o.t.sum() * 0 + 1))
    def __eq__(s, o): return bool((s.t == o.t).all())
    def __lt__(s, o): return float(s.t.sum()) < float(o.t.sum())
    def __bool__(s): return bool(s.t.sum() > 0)
    def __hash__(s): return 3
a, b = V(x), V(x + 1)
return (a + b).t, a == b, a < b, "t" if a else "f", [v.t for v in sorted([b, a])], a in [b, a], max(a, b).t

break_in_context_manager
class C:
    def __enter__(s): print("in"); return s
    def __exit__(s, *e): print("out", e[0]); return e[0] is ValueError
with C() as c:
    y = x * w.n
    if y.sum() > 0: raise ValueError("v")
    y = y + 1
return y

break_in_contextmanager_gen
@contextlib.contextmanager
def cm(k):
    print("enter", k)
    try: yield k * 2
    finally: print("exit", k)
with cm(w.n) as a, cm(1) as b:
    y = x * a
    if bool(y.sum() > 0): y = y + b
return y

break_in_decorator
def trace(f):
    @functools.wraps(f)
    def g(*a, **k):
        print("call", f.__name__, len(a)); r = f(*a, **k); print("done", r.shape); return r
    return g
@trace
def h(t, k=1): return t * k
return h(x), h(x, k=w.n)

break_in_loop_else
for i in range(4):
    if float(x.sum()) + i > 2: break
    x = x + 0.1
else: i = -1
return x, i

break_in_while_state
n = 0
while x.abs().max() > 0.2 and n < 5: x = x * 0.5; n += 1; w.log.append(n)
return x, n, len(w.log)

break_in_try_finally
try:
    try: k = int(x.sum() * 3); y = x / k
    finally: w.log.append("f")
except ZeroDivisionError: y = x; w.log.append("z")
return y, w.log

break_in_generator_pipeline
def gen():
    for i, r in enumerate(x):
        if r.sum() > 0: yield i, r * w.n
        else: yield i, None
return [(i, r) for i, r in gen() if r is not None], sum(1 for _ in gen()), dict(gen())

break_in_comprehension
return [float(r.sum()) > 0 for r in x], {i: r for i, r in enumerate(x) if r.max() > 0.3}, any(bool(r.sum() > 0) for r in x), [r.item() for r in x[0]], sorted(range(x.shape[0]), key=lambda i: -float(x[i].sum()))

break_in_lambda_key
return max(x, key=lambda r: r.sum().item()), min([x, -x], key=lambda t: float(t.mean())), sorted([3, 1, 2], key=lambda k: int(x.numel()) * -k), list(filter(lambda r: bool(r.sum() > 0), x)), functools.reduce(lambda a, b: a if a.sum() > b.sum() else b, x)

break_in_closure_write
best, idx = None, -1
def see(i, r):
    nonlocal best, idx
    if best is None or r.sum() > best: best, idx = r.sum(), i
for i, r in enumerate(x): see(i, r)
return best, idx

break_in_recursion
def f(t, d):
    if d == 0 or bool(t.abs().sum() < 0.5): return t, d
    return f(t / 2, d - 1)
return f(x, 3)

break_in_class_body
class K:
    n = int(x.numel()); m = w.n
    def get(s): return s.n * s.m
return x * K().get()

break_in_init
class A:
    def __init__(s, t): s.n = int(t.sum() * 0) + w.n; s.t = t * s.n
a = A(x)
return a.t, a.n, vars(a).keys() == {"n", "t"}

break_in_new
class A:
    def __new__(c, t): s = super().__new__(c); s.k = float(t.numel()); return s
    def __init__(s, t): s.t = t * s.k
return A(x).t, A(x + 1).k

break_in_call_dunder
class F:
    def __call__(s, t): print("c"); return t + w.n
return F()(x), [F()(r) for r in x[:2]]

break_in_iter_protocol
class It:
    def __init__(s): s.i = 0
    def __iter__(s): return s
    def __next__(s):
        if s.i == 2 or bool(x.sum() > 100): raise StopIteration
        s.i += 1; return x * s.i
return list(It()), [*It()], sum(It()), dict(enumerate(It()))

break_in_getattr_hook
class A:
    def __getattr__(s, n):
        if n.startswith("t"): print("ask", n); return x * len(n)
        raise AttributeError(n)
a = A()
return a.t, a.two, getattr(a, "q", None), hasattr(a, "tt")

break_in_setitem_delitem
class D:
    def __init__(s): s.d = {}
    def __setitem__(s, k, v): print("set", k); s.d[k] = v
    def __delitem__(s, k): print("del", k); del s.d[k]
    def __contains__(s, k): print("in", k); return k in s.d
d = D(); d["a"] = x; d["b"] = x * 2; del d["a"]
return list(d.d), "b" in d, "a" not in d

break_in_module_forward
|class M(nn.Module):
|    def __init__(s): super().__init__(); s.register_buffer("c", torch.zeros(())); s.hist = []
|    def forward(s, t):
|        s.c += 1; m = float(t.mean()); s.hist.append(round(m, 1))
|        return t / (abs(m) + 1) * s.c
|NET = M()
return NET(NET(x)), NET.hist[-2:], NET.c

break_in_hook
|NET = nn.Sequential(nn.Tanh(), nn.ReLU()); LOG = []
|for _m in NET: _m.register_forward_hook(lambda m, i, o: LOG.append(round(float(o.sum()), 1)))
return NET(x * w.n), LOG[-2:]

break_in_dataclass_post_init
@dataclasses.dataclass
class B:
    t: object
    n: int = 0
    def __post_init__(s): s.n = int((s.t > 0).sum()) + s.n
b = B(x, w.n)
return b, dataclasses.replace(b, n=0).n

break_in_finally_return
def f():
    try: return x * w.n
    finally: print("fin", x.shape[0])
return f(), f()

break_in_nested_with_exceptions
log = []
class C:
    def __init__(s, n): s.n = n
    def __enter__(s): log.append(("in", s.n)); return s
    def __exit__(s, t, e, tb): log.append(("out", s.n, t and t.__name__)); return s.n == 2 and bool(x.numel() > 0)
try:
    with C(1), C(2), C(3):
        y = x * 2
        if float(y.sum()) > w.n / 10: raise KeyError("k")
        log.append("after")
except KeyError as e: log.append(repr(e))
return y, log

break_in_match
match int(x.argmax()) % 4, w.n:
    case 0, n: r = x * n
    case (3, n) if x.sum() > 0: r = x + n
    case k, _: r = x - k
return r

break_in_assert
try: assert (x > -0.3).all(), f"min {float(x.min()):.1f}"
except AssertionError as e: return str(e), x
return "ok", x * w.n

break_in_string_building
s = ""
for r in x: s += f"{r.mean():.1f},"
s += "|".join(str(int(v > 0)) for v in x[0])
return s, f"{x.sum().item():.2f} {x.dtype}", x * len(s)

break_in_args
def f(*a, k=None, **kw): return a, k, kw
return f(x, int(x.numel()), *[float(r[0]) for r in x[:2]], k=x.sum().item(), **{"z": bool(x.sum() > 0)})

break_in_chained_ternary
a = "big" if x.sum() > 1 else "mid" if x.sum() > 0 else "neg"
b = x.sum() > 0 and x.max() > 0.5
c = not (x < 0).any()
d = 0 < x.mean() < 1
return a, b, c, d, x.sum() > 0 or w.n

break_then_autograd_state
with torch.no_grad():
    a = x * 2
    if a.sum() > 0: b = torch.is_grad_enabled()
    else: b = None
c = torch.is_grad_enabled()
return a, b, c

break_under_autocast
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = x @ x.t()
    k = float(y.float().sum()) > 0
    z = y @ y
return z.dtype, k, (x @ x.t()).dtype

break_between_inplace
v = x[0]; v.add_(1); k = int(v.sum()); x.mul_(2); v.sub_(k)
return x, v, k

break_with_views_alive
a = x.clone(); v = a[1:]; t = a.t(); print(a.sum().item() > 0); v.zero_(); t.add_(w.n)
return a, v, t

break_with_aliases_in_containers
a = x + 1; d = {"a": a, "l": [a, a[0]]}; print("b"); d["a"].mul_(w.n); d["l"][1].add_(1)
return d, d["a"] is d["l"][0], a

break_with_iterators_alive
it = iter([1, 2, 3]); z = zip("ab", [x, x + 1]); e = enumerate(x); g = (i * w.n for i in range(4)); a = next(it), next(g), next(e)[0]
print("mid")
return a, list(it), [k for k, _ in z], [i for i, _ in e], list(g)

break_with_open_generators
def count():
    n = 0
    while True: n = (yield x * n) or n + 1
g = count(); a = next(g); print("1"); b = g.send(w.n); print("2"); c = next(g); g.close()
return a, b, c

break_with_exception_alive
try: raise ValueError("a", w.n)
except ValueError as e: saved = e
print("mid")
try: raise saved
except ValueError as e2: r = e2 is saved, e2.args, type(e2.__context__)
return r, x

break_in_except_block
try: {}["k"]
except KeyError as e:
    y = x * float(x.numel() > 0); c = sys.exc_info()[0].__name__
    try: raise RuntimeError("inner")
    except RuntimeError as f: r = f.__context__ is e
return y, c, r, sys.exc_info()[0]

break_with_partial_and_methods
f = functools.partial(torch.add, x, alpha=w.n); m = x.sum; b = w.items.append; print("m")
b(w.n)
return f(x), m(0), w.items, f.keywords

break_with_sets_dicts_of_sizes
s = {x.shape[0], 4}; d = {x.shape: "a", (1, x.shape[0]): x}; fs = frozenset({x.shape[0]}); print(len(s))
return s, list(map(repr, d)), fs, x.shape[0] in s, d[x.shape]

break_loop_carries_state
h = torch.zeros(4); outs = []
for t in range(x.shape[0]):
    h = torch.tanh(x[t] + h)
    if h.sum() > 1: h = h * 0
    outs.append(h)
return torch.stack(outs), h

break_early_exit_layers
|NET = nn.ModuleList(nn.Hardtanh(-1.0 / (i + 1), 1.0 / (i + 1)) for i in range(4))
for i, m in enumerate(NET):
    x = m(x * 2)
    if x.abs().max() < 0.6: break
return x, i

break_sampling_loop
torch.manual_seed(1); out = []
for _ in range(3):
    k = torch.multinomial(x[0].softmax(0), 1).item(); out.append(k)
    if k == 3: break
    x = x.roll(1, -1)
return out, x

break_dynamic_quant
s = x.abs().max().item() / 127 or 1.0; q = (x / s).round().clamp(-128, 127).to(torch.int8)
return q.float() * s, q.dtype, s > 0

break_metric_object
|class Acc:
|    def __init__(s): s.ok = s.n = 0
|    def update(s, p, t): s.ok += (p == t).sum().item(); s.n += len(t); return s
|    def compute(s): return s.ok / s.n
|ACC = Acc()
return ACC.update(x.argmax(-1), torch.full((x.shape[0],), 3)).compute(), ACC.n, x

break_nms_python
b = torch.stack([x[:, 0], x[:, 1], x[:, 0] + 1, x[:, 1] + 1], 1); order = x[:, 2].argsort(descending=True).tolist(); keep = []
while order:
    i = order.pop(0); keep.append(i)
    def iou(j):
        lt = torch.max(b[i, :2], b[j, :2]); rb = torch.min(b[i, 2:], b[j, 2:]); inter = (rb - lt).clamp(min=0).prod()
        return (inter / (2 - inter)).item()
    order = [j for j in order if iou(j) < 0.5]
return keep

break_tokenize_like
text = " ".join(str(int(v * 10)) for v in x[0]); vocab = {}
ids = [vocab.setdefault(t, len(vocab)) for t in text.split()]
return F.one_hot(torch.tensor(ids), len(vocab)).float() @ torch.ones(len(vocab)), ids, vocab

break_lazy_cache_on_data
|CACHE = {}
k = int(x.abs().sum()) % 3
if k not in CACHE: CACHE[k] = torch.full((4,), float(k))
return x + CACHE[k], sorted(CACHE)

break_inside_pytree
n = []
r = pytree.tree_map(lambda t: n.append(t.sum().item() > 0) or t * w.n, {"a": x, "b": [x - 1]})
return r, n

break_inside_vmap_free
f = torch.vmap(lambda r: r * 2); y = f(x); k = y.sum().item() > 0
return f(y) if k else y

break_with_module_attr_written
|NET = nn.Linear(4, 4).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.2) for p in NET.parameters()]
NET.last = x.sum(); print("p"); NET.seen = getattr(NET, "seen", 0) + int(NET.last > 0)
return NET(x), NET.seen

break_star_expr
a, *b = [float(r.sum()) for r in x]; c = [*x.tolist()[0], *b[:1]]; d = {**{"k": x.sum().item()}, "z": w.n}
return round(a, 3), len(b), [round(v, 3) for v in c], sorted(d)

break_in_index
l = [10, 20, 30, 40]; k = x[0].argmax()
return l[k], l[k - 1 : k + 1], "abcd"[k], x[:, k], range(9)[k], x[k % x.shape[0]], torch.arange(k), [0] * k

break_in_range
return [i for i in range(int(x.shape[0]))], sum(range(x.argmax() % 3)), list(range(torch.tensor(2))), x.repeat(1, int(x.numel() > 0))

break_int_conversions
t = x[0, 3]
return int(t * 10), float(t) > 0, bool(t), round(t.item(), 1), divmod(int(t * 10), 3), t.item() == t, math.floor(t), math.ceil(t * 10), complex(t) == t.item(), hash(t) == id(t), t.__index__ is not None, f"{t:.1f}", "%.1f" % t, str(t.item())[:3]

break_numpy_use
a = x.numpy() * w.n; m = a.mean(axis=0); k = int((a > 0).sum())
return torch.from_numpy(m), k, np.argsort(a[0]).tolist(), x[torch.from_numpy(a[:, 0] > 0)]

break_with_locals_and_frames
q = w.n; k = int(x.sum()); d = locals()
return sorted(d), d["q"], sys._getframe().f_code.co_name, sys._getframe().f_lineno > 0

break_del_variable
a = x + 1; b = a; del a
print("d")
try: a
except UnboundLocalError as e: m = str(e)
return b, m

break_global_counter
global COUNT
COUNT = globals().get("COUNT", 0) + 1
if float(x.sum()) > 0: COUNT += 10
return x * COUNT

break_many_small
for i in range(3):
    if x.mean().item() > -5: x = x + 1
    if x.max().item() > i: x = x - 0.5
    w.log.append(i)
return x, len(w.log)
"""
