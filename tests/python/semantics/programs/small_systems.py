# size: table
"""Small systems: a parser, caches, an event queue, plugins, descriptors, a pipeline of coroutines, a training loop, a
beam search, a tokenizer (rows as in programs/standard_library.py)."""

PROGRAMS = r"""
expression_parser
import re
|TOKEN = __import__("re").compile(r"\s*(?:(\d+)|(.))")
|class Parser:
|    def __init__(s, text, env):
|        s.tokens = [(n, o) for n, o in TOKEN.findall(text)]; s.i = 0; s.env = env
|    def peek(s): return s.tokens[s.i] if s.i < len(s.tokens) else ("", "")
|    def take(s): t = s.peek(); s.i += 1; return t
|    def expr(s):
|        v = s.term()
|        while s.peek()[1] in ("+", "-") and s.peek()[1]:
|            v = v + s.term() if s.take()[1] == "+" else v - s.term()
|        return v
|    def term(s):
|        v = s.atom()
|        while s.peek()[1] == "*": s.take(); v = v * s.atom()
|        return v
|    def atom(s):
|        n, o = s.take()
|        if n: return int(n)
|        if o == "(":
|            v = s.expr(); s.take(); return v
|        if o.isalpha(): return s.env[o]
|        raise SyntaxError(f"{o!r} at {s.i}")
out = []
for text in ("x*2+1", f"({w.n}+x)*n", "x-x*x", "x + %"):
    try: out.append(Parser(text, {"x": x, "n": w.n}).expr())
    except SyntaxError as e: out.append(str(e)); print(e)
return out

lru_with_sizes
|class LRU:
|    def __init__(s, most): s.most, s.d, s.hits, s.misses = most, collections.OrderedDict(), 0, 0
|    def get(s, key, make):
|        try:
|            v = s.d[key]; s.d.move_to_end(key); s.hits += 1
|        except KeyError:
|            s.misses += 1; v = s.d[key] = make()
|            while len(s.d) > s.most: s.d.popitem(last=False)
|        return v
|C = LRU(2)
a = C.get(("rope", x.shape[0]), lambda: torch.arange(x.shape[0]).float())
b = C.get(("mask", w.n % 2), lambda: torch.ones(1) * w.n)
print(len(C.d))
c = C.get(("rope", x.shape[0]), lambda: None)
return x.sum(1) * a + b, c is a, C.hits, C.misses, list(C.d)

event_queue
import heapq
|class Event:
|    order = 0
|    def __init__(s, at, name, run): s.at, s.name, s.run = at, name, run; Event.order += 1; s.n = Event.order
|    def __lt__(s, o): return (s.at, s.n) < (o.at, o.n)
q = []; log = []; state = {"v": x, "t": 0}
def later(dt, name, f): heapq.heappush(q, Event(state["t"] + dt, name, f))
def tick():
    state["v"] = state["v"] + 1
    if state["t"] < 4: later(2, "tick", tick)
def scale(): state["v"] = state["v"] * w.n; print("scale")
later(1, "tick", tick); later(2, "scale", scale); later(2, "stop", lambda: q.clear() if w.n > 6 else None)
while q:
    e = heapq.heappop(q); state["t"] = e.at; e.run(); log.append((e.at, e.name))
return state["v"], log, Event.order - 0 > 0

plugins_by_subclass
|class Plugin:
|    REGISTRY = {}
|    def __init_subclass__(cls, /, name=None, **kw):
|        super().__init_subclass__(**kw); cls.name = name or cls.__name__.lower(); Plugin.REGISTRY[cls.name] = cls
|    def __call__(s, v): raise NotImplementedError(s.name)
|class Double(Plugin):
|    def __call__(s, v): return v * 2
|class Shift(Plugin, name="move"):
|    def __init__(s, by=1): s.by = by
|    def __call__(s, v): print(s.name); return v + s.by
|class Broken(Plugin): pass
out = x
for name in ("double", "move", "broken", "none"):
    try:
        cls = Plugin.REGISTRY[name]
        out = (cls(w.n) if name == "move" else cls())(out)
    except (KeyError, NotImplementedError) as e:
        out = out + len(str(e))
return out, sorted(Plugin.REGISTRY)

descriptor_with_weakrefs
|import weakref
|class Cached:
|    def __init__(s, f): s.f = f; s.store = weakref.WeakKeyDictionary()
|    def __set_name__(s, owner, name): s.name = name
|    def __get__(s, o, t=None):
|        if o is None: return s
|        if o not in s.store: s.store[o] = s.f(o)
|        return s.store[o]
|class Layer:
|    def __init__(s, k): s.k = k
|    @Cached
|    def weight(s): return torch.arange(4).float() * s.k
|L = Layer(2)
y = x @ L.weight
print(len(Layer.weight.store))
z = Layer(w.n); y = y + (x @ z.weight)
return y, L.weight.sum(), Layer.weight.name

async_pipeline
|import asyncio
|async def produce(q, x, n):
|    for i in range(n): await q.put(x + i)
|    await q.put(None)
|async def consume(q):
|    total = 0
|    while (v := await q.get()) is not None: total = total + v
|    return total
|async def main(x, n):
|    q = asyncio.Queue(2)
|    _, t = await asyncio.gather(produce(q, x, n), consume(q))
|    return t
y = x * 2
t = asyncio.run(main(y, w.n % 3 + 1))
return t + 1

dataclass_fields
|import dataclasses
|@dataclasses.dataclass
|class Setup:
|    n: int
|    scale: float = 1.0
|    tags: list = dataclasses.field(default_factory=list)
|    total: int = dataclasses.field(init=False, default=0)
|    start: dataclasses.InitVar[int] = 3
|    flag: bool = dataclasses.field(default=False, kw_only=True)
|    def __post_init__(s, start): s.total = s.n + start; s.tags.append(f"t{s.n}")
c = Setup(w.n, scale=x.shape[0] / 2, flag=w.n % 2 == 0)
print("b")
d = dataclasses.replace(c, n=w.n + 1, start=1, tags=[])
e = dataclasses.asdict(d)
return x * c.scale + c.total, d.total, d.tags, e, c == d, [f.name for f in dataclasses.fields(c)]

flags_and_dispatch
|import enum
|class Op(enum.Flag):
|    ADD = enum.auto(); MUL = enum.auto(); NEG = enum.auto()
|    ALL = ADD | MUL | NEG
|@functools.singledispatch
|def apply(op, v): raise TypeError(type(op).__name__)
|@apply.register
|def _(op: Op, v):
|    for one in Op:
|        if one in op: v = {Op.ADD: lambda: v + 1, Op.MUL: lambda: v * 3, Op.NEG: lambda: -v}[one]()
|    return v
|@apply.register(int)
|def _(op, v): print("int"); return v * op
|@apply.register(list)
|@apply.register(tuple)
|def _(op, v):
|    for o in op: v = apply(o, v)
|    return v
r = apply([Op.ADD | Op.NEG, w.n, (Op.MUL, Op.ALL & ~Op.ADD)], x)
try: apply("no", x)
except TypeError as e: return r, str(e), Op(w.n % 8), (Op.ADD | Op.MUL) & Op.ADD

exit_stack_with_pop_all
|class R:
|    LOG = []
|    def __init__(s, n, swallow=False): s.n, s.swallow = n, swallow
|    def __enter__(s): R.LOG.append(("in", s.n)); return s
|    def __exit__(s, t, v, tb): R.LOG.append(("out", s.n, t and t.__name__)); return s.swallow
R.LOG.clear()
y = x
with contextlib.ExitStack() as st:
    for i in range(w.n % 3 + 1): st.enter_context(R(i, i == 0))
    st.callback(lambda: R.LOG.append("cb")); print("b")
    y = y * 2
    if w.n % 2: raise ValueError(w.n)
    keep = st.pop_all(); R.LOG.append("kept"); keep.close()
return y, list(R.LOG)

training_loop
|torch.manual_seed(1)
|M = torch.nn.Linear(4, 1); E = {k: v.clone() for k, v in M.state_dict().items()}; O = torch.optim.SGD(M.parameters(), 0.1, momentum=0.9)
|S = torch.optim.lr_scheduler.StepLR(O, 2, 0.5); STEP = [0]
with torch.enable_grad():
    for i, part in enumerate(x.split(2)):
        loss = M(part).pow(2).mean() / 2
        loss.backward()
        if (i + 1) % 2 == 0 or i == (x.shape[0] - 1) // 2:
            n = torch.nn.utils.clip_grad_norm_(M.parameters(), 1.0)
            O.step(); O.zero_grad(); S.step(); STEP[0] += 1
            print(f"{STEP[0]} {S.get_last_lr()[0]:.4f}")
            with torch.no_grad():
                for k, v in M.state_dict().items(): E[k].mul_(0.9).add_(v, alpha=0.1)
return {k: v.clone() for k, v in E.items()}, float(loss.detach()), STEP[0]

beam_search_by_lists
torch.manual_seed(0)
T = torch.randn(5, 5)
beams = [([0], 0.0)]
for step in range(w.n % 3 + 2):
    cand = []
    for seq, score in beams:
        lp = torch.log_softmax(T[seq[-1]] + x.mean(), 0)
        top = lp.topk(2)
        for v, i in zip(top.values.tolist(), top.indices.tolist()): cand.append((seq + [i], score + v))
    beams = sorted(cand, key=lambda c: -c[1])[:2]
    if all(b[0][-1] == 4 for b in beams): break
return x * len(beams), [(s, round(v, 4)) for s, v in beams]

tokenizer_bpe
|MERGES = {}; CALLS = [0]
|def merge(ids, pair, new):
|    out, i = [], 0
|    while i < len(ids):
|        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair: out.append(new); i += 2
|        else: out.append(ids[i]); i += 1
|    return out
CALLS[0] += 1
ids = list(f"abab{w.n}ab".encode())
for k in range(2):
    counts = collections.Counter(zip(ids, ids[1:]))
    pair = max(counts, key=lambda p: (counts[p], p))
    MERGES.setdefault(pair, 256 + len(MERGES)); ids = merge(ids, pair, MERGES[pair])
emb = torch.arange(512.0)[torch.tensor(ids)]
return emb.sum() * x, ids, len(MERGES), CALLS[0]

machine_of_a_table
|class Machine:
|    TABLE = {("idle", "go"): "run", ("run", "pause"): "wait", ("wait", "go"): "run", ("run", "stop"): "idle"}
|    def __init__(s): s.state, s.hist = "idle", []
|    def fire(s, e):
|        new = s.TABLE.get((s.state, e))
|        if new is None: raise LookupError(f"{s.state}/{e}")
|        s.hist.append((s.state, e)); s.state = new
|        getattr(s, "on_" + new, lambda: None)()
|    def on_run(s): s.speed = getattr(s, "speed", 0) + 1
|    def on_wait(s): print("wait", s.speed)
|MACHINE = Machine()
for e in ["go", "pause", "go", "stop", "stop"][: w.n % 5 + 1]:
    try: MACHINE.fire(e)
    except LookupError as err: MACHINE.hist.append(str(err))
return x * MACHINE.speed if hasattr(MACHINE, "speed") else x, MACHINE.state, MACHINE.hist[-3:]

protocols_and_abc
|import typing, abc
|@typing.runtime_checkable
|class Sized2(typing.Protocol):
|    def size2(self) -> int: ...
|class Base(abc.ABC):
|    @abc.abstractmethod
|    def f(s, v): ...
|    @classmethod
|    def __subclasshook__(cls, C): return True if "quack" in vars(C) else NotImplemented
|class A(Base):
|    def f(s, v): return v + s.size2()
|    def size2(s): return w0.n
|class D:
|    quack = 1
|w0 = types.SimpleNamespace(n=0)
w0.n = w.n; a = A()
r = isinstance(a, Sized2), isinstance(D(), Base), isinstance(3, Sized2), issubclass(A, Base)
try: Base()
except TypeError as e: print(type(e).__name__)
return a.f(x), r

ema_and_scaler
|torch.manual_seed(2)
|M = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5), torch.nn.Tanh(), torch.nn.Linear(3, 2)); HIST = []
|AVG = torch.optim.swa_utils.AveragedModel(M, avg_fn=lambda a, b, n: a * 0.5 + b * 0.5)
|O = torch.optim.AdamW(M.parameters(), lr=0.01); S = torch.optim.lr_scheduler.LambdaLR(O, lambda e: 1 / (1 + e))
M.train(w.n % 2 == 1)
with torch.enable_grad():
    torch.manual_seed(w.n)
    y = M(x); loss = torch.nn.functional.cross_entropy(y, torch.arange(x.shape[0]) % 2)
    O.zero_grad(set_to_none=True); loss.backward(); O.step(); S.step()
AVG.update_parameters(M); HIST.append(round(loss.item(), 4))
if len(HIST) > 3: HIST.pop(0); print(HIST)
with torch.no_grad(): z = AVG(x)
return z, list(HIST), S.last_epoch, [g["lr"] for g in O.param_groups]

gradients_accumulated
|torch.manual_seed(3)
|M = torch.nn.Linear(4, 2); O = torch.optim.SGD(M.parameters(), 0.1); C = {"step": 0, "seen": 0, "log": []}
C["step"] += 1; C["seen"] += x.shape[0]
with torch.enable_grad():
    loss = M(x).square().mean() / 3
    loss.backward()
if C["step"] % 3 == 0:
    n = torch.nn.utils.clip_grad_norm_(M.parameters(), 0.5)
    C["log"].append((C["step"], round(float(n), 4))); O.step(); O.zero_grad()
return loss.detach(), dict(C), M.weight.grad is None

scheduler_of_tasks
|class Task:
|    def __init__(s, name, gen): s.name, s.gen, s.done = name, gen, False
|def worker(x, k):
|    total = x * 0
|    for i in range(k):
|        got = yield ("step", i)
|        total = total + (x if got is None else got)
|    return total
def run(tasks):
    ready = collections.deque(tasks); out = {}; trace = []
    while ready:
        t = ready.popleft()
        try:
            what, i = t.gen.send(out.get("last") if t.done is None else None); trace.append((t.name, what, i)); ready.append(t)
            if i == 1: print(t.name)
        except StopIteration as e: out[t.name] = e.value
    return out, trace
out, trace = run([Task("a", worker(x, 2)), Task("b", worker(x + 1, w.n % 3)), Task("c", worker(x, 3))])
return out, trace

streaming_statistics
|class Running:
|    __slots__ = ("n", "mean", "m2")
|    def __init__(s): s.n, s.mean, s.m2 = 0, 0.0, 0.0
|    def push(s, v):
|        s.n += 1; d = v - s.mean; s.mean += d / s.n; s.m2 += d * (v - s.mean); return s
|    def __repr__(s): return f"Running({s.n}, {s.mean:.3f})"
|R = Running(); PER = collections.defaultdict(Running)
for row in x: R.push(row.sum().item()); PER[row.shape[0] + w.n % 2].push(float(row[0]))
print(R)
return x - R.mean, R.n, repr(R), {k: repr(v) for k, v in PER.items()}

interpreter_of_bytecode
|OPS = {}
|def op(name, arity):
|    def deco(f): OPS[name] = (arity, f); return f
|    return deco
|@op("add", 2)
|def _(a, b): return a + b
|@op("mul", 2)
|def _(a, b): return a * b
|@op("relu", 1)
|def _(a): return a.relu()
|@op("dbg", 1)
|def _(a): print("dbg", tuple(a.shape)); return a
program = [("push", x), ("push", w.n), "mul", "relu", "dbg", ("push", x), "add", ("store", "r"), ("load", "r"), "nop"]
stack, env, err = [], {}, None
for ins in program:
    match ins:
        case ("push", v): stack.append(v)
        case ("store", name): env[name] = stack.pop()
        case ("load", str(name)): stack.append(env[name])
        case str(name) if name in OPS:
            n, f = OPS[name]; args = stack[-n:]; del stack[-n:]; stack.append(f(*args))
        case other: err = f"unknown {other}"
return stack, env, err

paged_cache
|class Pages:
|    def __init__(s, size): s.size, s.pages, s.table, s.free = size, [], {}, []
|    def append(s, seq, row):
|        t = s.table.setdefault(seq, [])
|        if not t or t[-1][1] == s.size:
|            i = s.free.pop() if s.free else len(s.pages)
|            if i == len(s.pages): s.pages.append(torch.zeros(s.size, row.shape[-1]))
|            t.append([i, 0])
|        i, k = t[-1]; s.pages[i][k] = row; t[-1][1] += 1
|    def gather(s, seq): return torch.cat([s.pages[i][:k] for i, k in s.table[seq]])
|    def drop(s, seq): s.free += [i for i, _ in s.table.pop(seq)]
|P = Pages(2)
for row in x: P.append(w.n % 2, row)
y = P.gather(w.n % 2)
if len(P.table) == 2: print("drop"); P.drop(1 - w.n % 2)
return y.sum(0), len(P.pages), P.free, {k: [list(e) for e in v] for k, v in P.table.items()}

retry_and_context
class Flaky(Exception): pass
def retry(times, on):
    def deco(f):
        @functools.wraps(f)
        def g(*a, **k):
            for i in range(times):
                try: return f(*a, attempt=i, **k)
                except on as e:
                    last = e; print("retry", i)
            raise RuntimeError("gave up") from last
        return g
    return deco
@retry(3, Flaky)
def work(v, attempt):
    if attempt < w.n % 5: raise Flaky(attempt)
    return v * (attempt + 1)
try: return work(x), work.__name__
except RuntimeError as e: return x, str(e), repr(e.__cause__)

vocabulary_builder
|class Vocab:
|    def __init__(s): s.itos, s.stoi = ["<unk>"], {"<unk>": 0}
|    def __getitem__(s, t):
|        if t not in s.stoi: s.stoi[t] = len(s.itos); s.itos.append(t)
|        return s.stoi[t]
|    def __len__(s): return len(s.itos)
|    def __contains__(s, t): return t in s.stoi
|V = Vocab(); E = torch.arange(64.0)
words = f"the {w.n} cats saw {w.n % 2} the dog".split()
ids = [V[t] for t in words]
y = E[torch.tensor(ids)].sum()
print(len(V))
return x * y, ids, len(V), "cats" in V, V.itos[-2:]

priority_batching
import bisect
|QUEUE = []; SEQ = itertools.count()
bisect.insort(QUEUE, (-x.shape[0], next(SEQ), w.n))
batch = []
while QUEUE and sum(-q[0] for q in batch) - QUEUE[0][0] <= 8: batch.append(QUEUE.pop(0))
if not batch: print("empty")
pad = torch.nn.utils.rnn.pad_sequence([torch.full((-q[0],), float(q[2])) for q in batch] or [x[:, 0]], batch_first=True)
return pad, [q[1:] for q in batch], len(QUEUE)

lazy_graph
class Node:
    made = 0
    def __init__(s, f, *deps): s.f, s.deps, s.value, s.users = f, deps, None, []; Node.made += 1; [d.users.append(s) for d in deps]
    def get(s):
        if s.value is None: s.value = s.f(*(d.get() for d in s.deps))
        return s.value
    def set(s, v):
        s.value = v; todo = list(s.users)
        while todo:
            n = todo.pop(); n.value = None; todo += n.users
a = Node(lambda: x); b = Node(lambda v: v * w.n, a); c = Node(torch.add, a, b); d = Node(lambda p, q: p.sum() + q.mean(), b, c)
r = d.get(); print("b"); a.set(x + 1); s = d.get(); b.set(x)
return r, s, d.get(), Node.made, [n.value is None for n in (a, b, c, d)]
"""
