# size: table
"""Programs with caches, registries, counters, containers of the library, and their use in decoders and models. As
programs_library, with the prelude of programs_torch."""

PROGRAMS = r"""
global_cache_dict
|CACHE = {}
def table(n, dt):
    key = (n, dt)
    if key not in CACHE: CACHE[key] = torch.arange(n, dtype=dt)[:, None]
    return CACHE[key]
return x + table(x.shape[0], torch.float32), len(CACHE), table(2, torch.int64)

global_cache_bounded
|CACHE = collections.OrderedDict()
k = x.shape[0]
if k in CACHE: CACHE.move_to_end(k)
else:
    CACHE[k] = x.mean(1)
    if len(CACHE) > 2: CACHE.popitem(last=False)
return CACHE[k], list(CACHE)

lru_method_cache
|class A:
|    def __init__(s): s.n = 0
|    @functools.lru_cache(None)
|    def t(s, k): s.n += 1; return torch.full((4,), float(k))
|OBJ = A()
return x + OBJ.t(x.shape[0]), OBJ.n, A.t.cache_info().hits

memoize_decorator
|def memo(f):
|    cache = {}
|    @functools.wraps(f)
|    def g(*a):
|        if a not in cache: cache[a] = f(*a)
|        return cache[a]
|    g.cache = cache
|    return g
|@memo
|def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
return x * fib(x.shape[0] + 3), len(fib.cache)

weak_key_cache_over_a_break
|CACHE = weakref.WeakKeyDictionary()
|class K: pass
|KEEP = []
k = K(); CACHE[k] = w.n
if w.n % 2: KEEP.append(k)
r = CACHE[k]; del k
__import__("cresset").graph_break()
return x * r, len(CACHE), sorted(CACHE.values())

weak_key_cache
|CACHE = weakref.WeakKeyDictionary()
|class K: pass
|KEEP = []
k = K(); CACHE[k] = w.n
if w.n % 2: KEEP.append(k)
r = CACHE[k]; del k
return x * r, len(CACHE), sorted(CACHE.values())

weak_refs_to_modules
|NET = nn.Tanh(); REF = weakref.ref(NET); PROXY = weakref.proxy(NET)
m = REF()
return m(x), m is NET, REF() is m, PROXY(x + w.n), PROXY.training

weak_callback
|LOG = []
class A: pass
a = A(); r = weakref.ref(a, lambda _: LOG.append(w.n)); a = None
return r() is None, list(LOG), x + 1

observer_list
|class Subject:
|    def __init__(s): s.obs = []
|    def attach(s, f): s.obs.append(f); return lambda: s.obs.remove(f)
|    def notify(s, *a): return [f(*a) for f in s.obs]
|SUB = Subject(); SUB.attach(lambda t: t.sum())
off = SUB.attach(lambda t: t * w.n)
r = SUB.notify(x)
if w.n % 2: off()
return r, len(SUB.obs)

thread_local_state
|TL = threading.local()
TL.depth = getattr(TL, "depth", 0) + 1
try: y = x * TL.depth
finally: TL.depth -= 1
return y, TL.depth

lock_guarded_counter
|LOCK = threading.Lock(); RL = threading.RLock(); N = [0]
with LOCK: N[0] += 1; y = x * N[0]
with RL:
    with RL: y = y + 1
return y, LOCK.locked()

singleton_new
|class Single:
|    _inst = None
|    def __new__(c, *a):
|        if c._inst is None: c._inst = super().__new__(c); c._inst.n = 0
|        return c._inst
|    def __init__(s, k=1): s.n += k
a = Single(); b = Single(2)
return x * a.n, a is b, a.n

class_counter_in_forward
|class M(nn.Module):
|    calls = 0
|    def forward(s, t):
|        M.calls += 1; type(s).last = t.shape[0]
|        return t * M.calls
|NET = M()
return NET(x), M.calls, M.last

class_attr_cache
|class M(nn.Module):
|    _cache = {}
|    @classmethod
|    def mask(c, n):
|        if n not in c._cache: c._cache[n] = torch.ones(n, n).triu(1)
|        return c._cache[n]
|    def forward(s, t): return t.t() @ s.mask(t.shape[0])
|NET = M()
return NET(x), sorted(M._cache)

class_attr_toggled
|class Flags: debug = False; level = 0
Flags.debug = not Flags.debug; Flags.level += x.shape[0]
y = x + 1 if Flags.debug else x - 1
if hasattr(Flags, "tmp"): del Flags.tmp
else: Flags.tmp = w.n
return y, Flags.level, getattr(Flags, "tmp", None)

class_method_patched_in_call
|class A:
|    def f(s, t): return t + 1
|OBJ = A()
old = A.f; A.f = lambda s, t: old(s, t) * w.n
try: y = OBJ.f(x)
finally: A.f = old
return y, OBJ.f(x)

instance_monkeypatch_in_call
|OBJ = types.SimpleNamespace(f=lambda t: t + 1)
old = OBJ.f
OBJ.f = lambda t: old(t) * w.n
y = OBJ.f(x); OBJ.f = old
return y, OBJ.f(x), OBJ.f is old

mock_patch
|MOD = types.ModuleType("MOD"); MOD.k = 1
from unittest import mock
with mock.patch.object(MOD, "k", w.n): y = x * MOD.k
with mock.patch.dict(w.names, {"zz": 5}): n = len(w.names)
return y, MOD.k, n, len(w.names)

dict_subclass_default
|class D(dict):
|    def __missing__(s, k): s[k] = len(s); return s[k]
|VOCAB = D()
ids = [VOCAB[t] for t in f"a b a c{w.n}".split()]
return x * sum(ids), ids, len(VOCAB), type(VOCAB.copy()).__name__

list_subclass_hooks
|class L(list):
|    __slots__ = ("n",)
|    def append(s, v): s.n = getattr(s, "n", 0) + 1; super().append(v)
|LOG = L()
LOG.append(x.sum()); l = L([1, 2]); l.append(w.n)
return LOG[-1], LOG.n, l, l.n, l + [1], type(l[:1]).__name__, LOG[-2:]

user_dict_list
|class Cfg(collections.UserDict):
|    def __setitem__(s, k, v): super().__setitem__(k.lower(), v)
|CFG = Cfg(A=1)
CFG["B"] = w.n; CFG.update(C=2)
return CFG["b"] * x, dict(CFG), "a" in CFG, len(CFG), collections.UserList([3, 1]).data

chain_map_scopes
|BASE = {"k": 1, "z": 2}
c = collections.ChainMap({"k": w.n}, BASE); d = c.new_child({"q": x.shape[0]})
d["k"] = 5; BASE["z"] += 1
return d["k"], c["k"], d["z"] * x, list(d), d.parents["k"], len(d)

counters_merge
c = collections.Counter(); c.update("abca"); c["a"] += w.n; c.subtract({"b": 1})
d = c + collections.Counter(a=1, z=2)
return d.most_common(2), +c, c.total(), list(c.elements())[:3], x * d["a"], c & d == c & d

deque_history
|HIST = collections.deque(maxlen=3)
HIST.append(x.mean()); HIST.rotate(1)
return torch.stack(tuple(HIST)), len(HIST), HIST[0], HIST.maxlen

heap_beams
h = []
for i, r in enumerate(x.sum(1)): heapq.heappush(h, (i * 7 % 5, i, r))
a = heapq.heappop(h) if len(h) > 1 else None
return [k for k, *_ in heapq.nsmallest(2, h)], a, heapq.nlargest(1, h, key=lambda e: e[1])

bisect_buckets
edges = [1, 3, 8]; b = bisect.bisect_left(edges, x.shape[0]); bisect.insort(edges, w.n)
return x * b, edges, bisect.bisect(edges, x.shape[0] / 2)

itertools_mix
a = list(itertools.chain.from_iterable([[1, 2], [w.n]])); b = list(itertools.accumulate(a, operator.mul)); c = list(itertools.pairwise(a))
d = list(itertools.islice(itertools.cycle(a), 5)); e = list(itertools.zip_longest(a, x, fillvalue=None)); f = list(itertools.starmap(pow, [(2, 3), (w.n, 2)]))
g = list(itertools.takewhile(lambda v: v < 3, a)), list(itertools.dropwhile(lambda v: v < 2, a)), list(itertools.compress("abc", [1, 0, 1])), list(itertools.filterfalse(bool, [0, 1])), list(itertools.combinations(range(3), 2)), list(itertools.permutations("ab"))
return a, b, c, d, e[0][1], len(e), f, g, [sum(t) for t in itertools.product((1, 2), repeat=2)], list(itertools.repeat(x.shape[0], 2))

operator_uses
g = operator.itemgetter(0, -1); h = operator.attrgetter("shape", "dtype"); m = operator.methodcaller("sum", 0)
return g(x), h(x), m(x), functools.reduce(operator.add, x), operator.matmul(x, x.t()), operator.length_hint([1]), operator.index(x.shape[0]), operator.iadd([1], [w.n]), operator.concat((1,), (2,)), operator.truth(x.shape[0] - 3), operator.contains(w.items, 3)

functools_mix
p = functools.partial(torch.add, alpha=w.n); q = functools.partial(p, x); r = functools.partial(max, x.shape[0])
f = functools.reduce(lambda a, b: lambda t: b(a(t)), [torch.relu, torch.tanh]); c = functools.cmp_to_key(lambda a, b: b - a)
return q(x), f(x), sorted([1, 3, 2], key=c), r(2), r, p.keywords, q.func is torch.add, functools.partial(int, base=2)("101")

partial_of_builtins
ps = {"max": functools.partial(max, w.n), "min": functools.partial(min, x.shape[0], 3), "sum": functools.partial(sum, start=1), "any": functools.partial(any), "len": len, "sorted": functools.partial(sorted, reverse=True)}
return ps, ps["max"](2), ps["min"](), ps["sum"]([1, 2]), ps["sorted"]([1, 3, w.n]), x

builtins_kept
|HOLD = []
HOLD[:] = [max, min, sum, isinstance, len, list, map, zip, sorted, getattr, torch.relu, print, range, type, super, enumerate]
d = {"agg": max if w.n % 2 else min}
return [h.__name__ for h in HOLD], HOLD[0] is max, d, d["agg"](1, x.shape[0]), x

math_functions
n = x.shape[0]
return math.prod(x.shape), math.log(n + 1), math.exp(-n), math.factorial(n), math.isqrt(n), math.lcm(n, 4), math.dist([n], [0]), math.fmod(n, 2), math.frexp(n), math.modf(n / 2), math.trunc(n / 2), math.fsum([n, 0.1]), math.degrees(n), math.pow(n, 2), math.inf > n, math.isnan(n), math.perm(n, 1), math.remainder(n, 3), math.atan2(n, 1), math.ulp(n), x

re_uses
s = f"layer{w.n}.weight block.{x.shape[0]}.bias"
p = re.compile(r"(?P<name>\w+?)\.?(?P<num>\d+)\.(?P<rest>\w+)")
m = p.search(s)
return [d.groupdict() for d in p.finditer(s)], m.span(), re.sub(r"\d+", lambda g: str(int(g[0]) + 1), s), re.split(r"[. ]", s), re.findall(r"\d+", s), bool(re.match("layer", s)), re.fullmatch(r".*bias", s) is not None, re.escape("a.b"), x

json_round_trips
d = {"n": w.n, "s": list(x.shape), "f": 0.5, "o": None, "b": True, "t": x[0].tolist() if w.n == 4 else []}
t = json.dumps(d, sort_keys=True, indent=1); u = json.loads(t)
try: json.dumps({"t": x})
except TypeError as e: m = str(e)
try: json.loads("{bad")
except json.JSONDecodeError as e: m2 = str(e), e.pos
return t, u == d, m, m2, json.loads("[1, 2.5, \"a\"]"), json.dumps({"a": x.shape[0]}, default=str), x

copies
a = [x, [1, {"k": w.n}], (x, [2])]; b = copy.copy(a); c = copy.deepcopy(a); d = a[:]; e = list(a); f = a.copy()
c[1][1]["k"] = 100; b[1].append(5)
return a, c, b[0] is x, c[0] is c[2][0], d == e, f[2] is a[2], {**{"a": a}}["a"] is a

inspect_used
def f(a, b: int = 2, *c, d, e=None, **g): "doc"; return a
s = inspect.signature(f); b = s.bind(1, d=w.n); b.apply_defaults()
return str(s), b.arguments["b"], [p.kind.name for p in s.parameters.values()], inspect.getdoc(f), inspect.isfunction(f), inspect.ismethod(w.net.forward), inspect.getfullargspec(f).kwonlyargs, inspect.isclass(Config), f.__code__.co_varnames[:2], list(inspect.signature(w.net.forward).parameters), inspect.getmro(bool)[1].__name__, inspect.currentframe().f_code.co_name, x

typing_uses
T = typing.TypeVar("T")
class Box(typing.Generic[T]):
    def __init__(s, v: T): s.v = v
b = Box[int](w.n)
@typing.overload
def g(a: int): ...
def g(a): return a
@typing.runtime_checkable
class HasF(typing.Protocol):
    def forward(s): ...
return b.v, typing.get_origin(typing.List[int]), typing.get_args(typing.Dict[str, int]), typing.cast(int, x) is x, isinstance(w.net, HasF), isinstance(3, HasF), typing.Optional[int], Box[int].__origin__ is Box, typing.get_type_hints(Config)["hidden"], g(x)

string_dispatch
|ACT = {"relu": F.relu, "gelu": functools.partial(F.gelu, approximate="tanh"), "silu": nn.SiLU(), "swish": lambda t: t * t.sigmoid(), **{f"leaky{i}": functools.partial(F.leaky_relu, negative_slope=i / 10) for i in range(2)}}
names = ["relu", "gelu", "silu", "swish", "leaky1"]
try: ACT["nope"]
except KeyError as e: err = f"unknown {e.args[0]!r}, expected one of {sorted(ACT)}"
return {n: ACT[n](x) for n in names[: w.n % 3 + 3]}, err

globals_changed
global COUNT, LAST
COUNT = globals().get("COUNT", 0) + 1; LAST = x.sum()
return x * COUNT, LAST

module_constants
|EPS = 1e-5; MODE = "a"; DIMS = (1, 2); NEG = float("-inf"); TABLE = {"a": torch.ones(4), "b": torch.zeros(4)}
if w.n == 4: globals()["MODE"] = "b"
if w.n == 5: TABLE["b"] = torch.full((4,), 3.0)
return x * TABLE[MODE] + EPS, torch.full_like(x, NEG).softmax(-1).isnan().any(), DIMS[0]

env_and_paths
os.environ["PROG_N"] = str(w.n)
p = pathlib.Path("/tmp") / f"m{w.n}" / "w.pt"
return os.environ.get("PROG_N"), os.getenv("PROG_MISSING", "d"), p.suffix, p.parent.name, str(p.with_suffix(".bin")), os.path.join("a", "b"), os.path.splitext("a.b.c"), x * int(os.environ["PROG_N"])

time_stamps
t = time.time(); y = x @ x.t(); dt = time.time() - t; m = time.monotonic()
return y, dt >= 0, isinstance(m, float), datetime.timedelta(seconds=w.n).total_seconds()

hashing
h = hashlib.sha256(f"{w.n}-{tuple(x.shape)}".encode()).hexdigest()[:8]; u = zlib.crc32(b"abc"); b = base64.b64encode(bytes([w.n])).decode()
return h, u, b, x, hash("a") == hash("a"), struct.pack("<if", w.n, 0.5), struct.unpack("<H", b"\x01\x02")

bytes_of_tensors
b = x.numpy().tobytes(); t = torch.frombuffer(bytearray(b), dtype=torch.float32).reshape(x.shape); s = io.BytesIO(); torch.save(x, s); s.seek(0); u = torch.load(s)
return t, u, len(b), pickle.loads(pickle.dumps({"a": w.n}))

printing_tensors
print(x[0, :2], w.n, sep="|", end="!\n"); s = repr(x[:1]); t = f"{x.shape}"; u = "%s" % (x.dtype,)
return s, t, u, str(x[0, 0] * 2), format(x[0, 0].item(), ".2f"), f"{x[0, 0]:.2f}", repr(torch.Size([x.shape[0]]))

assert_close_used
try: torch.testing.assert_close(x, x + (1 if w.n % 2 else 0))
except AssertionError as e: return str(e).split("\n")[0], x
return torch.equal(x, x.clone()), torch.allclose(x, x + 1e-9), x

tensor_eq_lists
l = [x, x + 1]
try: (x + 1) in [x]; r = "?"
except RuntimeError as e: r = str(e)[:40]
return x in l, l.index(x), any(t is x for t in l), r, l == [x, l[1]], (x, 1) == (x, 1), l.count(x) if x.numel() == 1 else 0

nested_functions_defs
def outer(k):
    def mid(t):
        def inner(u): return u * k + w.n
        return inner(t) + 1
    return mid
class Local:
    base = w.n
    def __init__(s, t): s.t = t
    def get(s): return s.t + s.base
    @staticmethod
    def st(a): return a * 2
    @classmethod
    def cl(c, a): return c(a)
return outer(2)(x), Local(x).get(), Local.st(x), Local.cl(x).get(), Local.__qualname__, outer.__closure__[0].cell_contents is w

lambda_zoo
fs = [(lambda t, k=k: t * k) for k in range(2)]; comp = lambda *f: functools.reduce(lambda a, b: lambda v: a(b(v)), f)
return [f(x) for f in fs], comp(torch.relu, lambda t: t + w.n)(x), (lambda: (yield x))().__next__(), (lambda *a, **k: (a, k))(1, z=2), list(map(lambda a, b: a * b, x, [1, 2, 3])), list(filter(lambda r: r.shape[0] > 3, x))

recursive_module_tree
|class Tree(nn.Module):
|    def __init__(s, d): super().__init__(); s.kids = nn.ModuleList([Tree(d - 1) for _ in range(2)] if d else []); s.d = d
|    def forward(s, t): return sum((k(t) for k in s.kids), t * s.d)
|NET = Tree(2)
return NET(x), len(list(NET.modules())), [n for n, m in NET.named_modules() if isinstance(m, Tree) and not len(m.kids)][:2]

transformer_block
|class Attn(nn.Module):
|    def __init__(s, d, h):
|        super().__init__(); s.h, s.qkv, s.o = h, nn.Linear(d, 3 * d), nn.Linear(d, d)
|        for p in s.parameters(): nn.init.constant_(p, 0.1)
|        s.register_buffer("mask", torch.ones(8, 8).tril().bool()[None], persistent=False)
|    def forward(s, t, need=False):
|        n, d = t.shape; q, k, v = (u.view(n, s.h, -1).transpose(0, 1) for u in s.qkv(t).chunk(3, -1))
|        a = (q @ k.mT / math.sqrt(d // s.h)).masked_fill(~s.mask[:, :n, :n], float("-inf")).softmax(-1)
|        y = s.o((a @ v).transpose(0, 1).reshape(n, d))
|        return (y, a) if need else y
|NET = nn.ModuleList(Attn(4, 2) for _ in range(2)).requires_grad_(False)
ws = []
for i, b in enumerate(NET):
    r = b(x, need=i == len(NET) - 1)
    if isinstance(r, tuple): r, a = r; ws.append(a)
    x = x + r
return x, ws

mixture_of_experts
|NET = nn.ModuleList([nn.Hardtanh(-i - 1.0, i + 1.0) for i in range(3)])
g = x[:, :3].softmax(-1); top, idx = g.topk(2, -1); out = torch.zeros_like(x)
for e, m in enumerate(NET):
    r, k = torch.where(idx == e)
    if r.numel() == 0: continue
    out.index_add_(0, r, m(x[r]) * top[r, k, None])
return out, torch.bincount(idx.flatten(), minlength=3)

beam_scores
|class Beam:
|    __slots__ = ("ids", "score")
|    def __init__(s, ids, score): s.ids, s.score = ids, score
|    def __lt__(s, o): return s.score > o.score
bs = [Beam([], 0.0)]
for t in range(2):
    nxt = []
    for b in bs:
        lp = (x[0] * (t + 1)).log_softmax(-1)
        for v, i in zip(*lp.topk(2)): nxt.append(Beam(b.ids + [i.item()], b.score + v.item()))
    bs = sorted(nxt)[:2]
return [b.ids for b in bs], [round(b.score, 2) for b in bs], x * w.n

kv_cache_tuple
|PAST = [None]
k = x if PAST[0] is None or x.shape[0] == 1 else torch.cat([PAST[0], x])
PAST[0] = k[-6:]
return k.sum(0), k.shape[0], PAST[0].shape

kv_cache_static
|class Static:
|    def __init__(s, n): s.k = torch.zeros(n, 4); s.pos = 0
|    def update(s, k):
|        n = k.shape[0]
|        if s.pos + n > s.k.shape[0]: s.reset()
|        s.k[s.pos : s.pos + n] = k; s.pos += n
|        return s.k[: s.pos]
|    def reset(s): s.k.zero_(); s.pos = 0
|KV = Static(10)
return KV.update(x), KV.pos

ema_loss_scale
|class Track:
|    beta = 0.9
|    def __init__(s): s.v, s.t = 0.0, 0
|    def update(s, l):
|        s.t += 1; s.v = s.beta * s.v + (1 - s.beta) * l
|        return s.v / (1 - s.beta ** s.t)
|TR = Track()
return x * TR.update(w.n * 1.0), TR.t, TR.update(x.shape[0])

schedule_functions
|def cosine(step, total, base=1.0, warm=2):
|    if step < warm: return base * step / max(1, warm)
|    p = (step - warm) / max(1, total - warm)
|    return base * max(0.0, 0.5 * (1.0 + math.cos(math.pi * p)))
return x * cosine(w.n, 10), [round(cosine(i, 5), 4) for i in range(3)], x * torch.tensor(cosine(w.n + 1, 10))

window_partition
def part(t, k):
    n, c = t.shape; p = (k - n % k) % k
    t = F.pad(t, (0, 0, 0, p)); return t.view(-1, k, c), p
def rev(t, p): t = t.flatten(0, 1); return t[: t.shape[0] - p] if p > 0 else t
a, p = part(x, 2)
return a, p, rev(a * w.n, p), torch.roll(x, shifts=(-1, 1), dims=(0, 1))

relative_positions
n = x.shape[0]; c = torch.stack(torch.meshgrid(torch.arange(n), torch.arange(2), indexing="ij")).flatten(1)
r = (c[:, :, None] - c[:, None]).permute(1, 2, 0).contiguous(); r[..., 0] += n - 1; r[:, :, 0] *= 3
return r.sum(-1), (torch.arange(n)[:, None] - torch.arange(n)[None]).clamp(-2, 2) + 2

timestep_embedding
def emb(t, dim, mx=10000):
    h = dim // 2; f = torch.exp(-math.log(mx) * torch.arange(h, dtype=torch.float32) / h)
    a = t[:, None].float() * f[None]; e = torch.cat([a.cos(), a.sin()], -1)
    if dim % 2: e = torch.cat([e, torch.zeros_like(e[:, :1])], -1)
    return e
return emb(torch.arange(x.shape[0]), 4), emb(torch.tensor([w.n]), 5)

losses_with_reduction
def loss(a, b, reduction="mean", ignore=-100, smooth=0.0):
    l = F.cross_entropy(a, b, reduction="none", ignore_index=ignore, label_smoothing=smooth)
    if reduction == "mean": return l.sum() / (b != ignore).sum().clamp(min=1)
    return {"sum": l.sum, "none": lambda: l}[reduction]()
t = torch.arange(x.shape[0]) % 4; t[0] = -100
try: loss(x, t, "max")
except KeyError as e: m = repr(e)
return loss(x, t), loss(x, t, "sum", smooth=0.1), loss(x, t, reduction="none"), m

contrastive_matrix
a = F.normalize(x, dim=-1); s = a @ a.t() / 0.07; n = s.size(0); m = ~torch.eye(n, dtype=torch.bool)
return s.masked_select(m).view(n, -1), F.cross_entropy(s, torch.arange(n)), s.diag(), s[m].numel() == n * (n - 1)
"""
