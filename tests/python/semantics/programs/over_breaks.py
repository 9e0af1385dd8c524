# size: table
"""Programs whose objects live across a graph break: iterators in C code with numbers, dictionaries of instances,
containers that fill themselves, leaves, tensors of inference mode. As programs_library, with the prelude of
programs_torch."""

PROGRAMS = r"""
iterators_that_hold_numbers
n = x.shape[0]
c = itertools.count(w.n); r = itertools.repeat(n * 2); h = itertools.chain([w.n], (n, n + 1)); a = itertools.accumulate([w.n, n, 3])
p = itertools.product((w.n, n), (1, n)); y = itertools.cycle([n, w.n]); l = itertools.zip_longest([1, 2], [n], fillvalue=n)
t, u = itertools.tee(i * n for i in range(3)); e = enumerate([n, w.n], n); z = zip([n], [w.n]); m = map(operator.add, [n], [w.n])
k = [next(i) for i in (c, a, y, t)]
print("|")
return x * next(c) + next(r) + next(h), next(h), next(a), list(p), next(y), list(l), next(t), next(u), list(e), list(z), list(m), k, next(c)

iterators_that_hold_numbers_twice
c = itertools.count(w.n)
out = []
for r, k in zip(x, c):
    print("|")
    out.append(r * k)
i = itertools.islice(c, x.shape[0])
print("|")
return out, [x * k for k in i]

count_in_a_while_loop
total = x
for i in itertools.count(x.shape[0]):
    if i > w.n + 4: break
    total = total + i
    print(i)
return total, i

context_variable_of_a_number
|VAR = contextvars.ContextVar("VAR", default=1)
t = VAR.set(VAR.get() + w.n)
print("|")
y = x * VAR.get()
VAR.reset(t)
return y, VAR.get()

defaults_of_numbers
k = w.n; n = x.shape[0]
def g(t, i=n, *, j=k): return t * i + j
g.scale = n; g.__annotations__["t"] = k
class K:
    @property
    def p(self): return n + k
o = K()
print("|")
return g(x), g.__defaults__, g.__kwdefaults__, g.scale * x, g.__annotations__, x + o.p

dictionary_of_an_object
|class P:
|    @property
|    def double(self): return vars(self)["v"] * 2
o = P(); o.v = w.n * 3
d = vars(o)
print("|")
d["k"] = x.shape[0]; e = o.__dict__
print("|")
o.q = 1
return x * o.v + o.k + o.double, d, o, e is d, vars(o) is d

dictionary_of_an_object_is_left
|class P: pass
o = P(); o.v = w.n * 3; o.t = x
print("|")
return vars(o)

dictionary_of_an_object_comes_first
|class P: pass
o = P(); o.v = w.n * 3
print("|")
return vars(o), x, o

defaultdict_in_a_loop
b = collections.defaultdict(list); c = collections.defaultdict(lambda: collections.defaultdict(int))
for i, n in enumerate((x[:1], x[:2], x[:1])):
    print("|")
    b[n.shape[0]].append(i)
    c[i % 2][n.shape[1]] += w.n
return {k: list(v) for k, v in b.items()}, c, b.default_factory, x

defaultdict_in_state_is_asked
|SEEN = collections.defaultdict(list); COUNTS = collections.defaultdict(int); NONE = collections.defaultdict(None)
SEEN[w.n % 3].append(x.shape[0]); COUNTS["calls"] += 1
a = SEEN["empty"]; b = COUNTS.__getitem__("other"); c = operator.getitem(COUNTS, "third")
try: NONE["k"]
except KeyError as e: m = str(e)
print("|")
return x * COUNTS["calls"], a, b, c, m, SEEN["empty"] is a, len(SEEN)

defaultdict_whose_factory_changes
|D = collections.defaultdict(int)
|def between(w, i): D.default_factory = [int, list, None, dict, lambda: 5, int, int][i]; D.clear()
try: return D["k"], x
except KeyError as e: return str(e), x

ordered_dict_with_attributes
d = collections.OrderedDict(a=x, b=w.n); d.note = x.shape[0]
print("|")
d["c"] = 1; d.move_to_end("a")
sd = w.net.state_dict()
print("|")
r = w.net.load_state_dict({k: v * 1 for k, v in sd.items()})
return d, d.note, sd._metadata[""], r, list(d)

attributes_are_asked_for_once
|ASKED = []
|class Spy:
|    def __init__(s, v):
|        print("|")
|        s.v = v
|    def __getattribute__(s, n):
|        ASKED.append(n)
|        return object.__getattribute__(s, n)
o = Spy(w.n)
y = x * o.v
print("|")
return y + o.v, list(ASKED)

leaf_of_detached_data
with torch.enable_grad():
    p = x.detach().requires_grad_()
    print("|")
    y = p * w.n
    g, = torch.autograd.grad(y.sum(), p)
return g, p.requires_grad, p.is_leaf

leaf_that_is_returned
with torch.enable_grad(): p = x.detach().requires_grad_(); q = p.view(-1)
return p, q

results_of_inference_mode
|@torch.inference_mode()
|def run(t): return t * 2, t.view(-1)
a, b = run(x)
print("|")
return a, a.is_inference(), b.is_inference()

result_of_inference_mode_beside_another
with torch.inference_mode(): a = x + w.n
return a, x * 2, a.is_inference()

in_place_operators_in_python
|class Mean:
|    __slots__ = ("n", "total")
|    def __init__(self): self.n, self.total = 0, 0.0
|    def __iadd__(self, v): self.n += 1; self.total = self.total + v; return self
|    def __imul__(self, v): return Mean()
|M = Mean(); ALL = [Mean()]
global M
M += x.mean(); ALL[0] += w.n
print("|")
M += w.n
if w.n == 4: ALL[0] *= 2
return M.total, M.n, ALL[0].n, x

what_a_class_counts_over_breaks
|class A: n = 0
|class B(A): pass
print("|")
A.n += 1
print("|")
b = B()
print("|")
return x * A.n, B.n, b.n, vars(A)["n"], "n" in vars(B)

classes_named_as_those_of_torch
|class SymNet(nn.Module):
|    def forward(self, t): CALLS.append(t.shape[0]); print("|"); return t * len(CALLS)
|class SymInt:
|    def __init__(self, v): CALLS.append(v); self.v = v
|    def double(self): CALLS.append("d"); return self.v * 2
|CALLS = []; NET = SymNet()
return NET(x) * SymInt(w.n).double(), list(CALLS)

parametrization_that_prints
|class Symmetric(nn.Module):
|    def forward(self, t): print("|"); return (t.triu() + t.triu(1).mT) * K[0]
|K = [1]; NET = nn.Linear(4, 4, bias=False).requires_grad_(False); nn.init.constant_(NET.weight, 0.3)
|parametrize.register_parametrization(NET, "weight", Symmetric())
|def between(w, i): K[0] += 1
return NET(x), NET.weight

empty_objects_over_break
s = torch.tensor(w.n * 1.0).shape; o = collections.OrderedDict(); q = collections.deque()
print("|")
o["n"] = w.n; q.append(x.shape[0])
return x + 1, s, o, q

iterators_of_dictionaries_over_breaks
d = {"a": w.n, "b": x.shape[0], "c": 3}
k, v, i = iter(d), iter(d.values()), iter(d.items())
out = [next(k), next(v), next(i)]
print("|")
d["c"] = w.n + 7
return x + 1, out, list(k), list(v), list(i), next(iter({}.values()), None)

numbers_from_data_in_a_map
return [y + 1 for y in map(lambda i: x + i * float(x.sum()), range(3))]

context_tokens
|import contextvars
|VAR = contextvars.ContextVar("VAR", default=0)
t = VAR.set(w.n)
print("b")
y = x * VAR.get()
VAR.reset(t)
print("b")
return y, VAR.get()

context_token_in_a_manager
|import contextvars
|VAR = contextvars.ContextVar("VAR", default="d")
|@contextlib.contextmanager
|def using(v):
|    t = VAR.set(v)
|    try: yield t
|    finally: VAR.reset(t)
r = []
with using("a") as t:
    print("b"); r.append(VAR.get())
    with using(w.n):
        r.append(VAR.get()); print("b"); r.append(VAR.get())
    r.append((VAR.get(), t.old_value is contextvars.Token.MISSING, t.var is VAR))
try: VAR.reset(t)
except RuntimeError as e: r.append(type(e).__name__)
return x * w.n, r, VAR.get()

context_set_and_left
|import contextvars
|VAR = contextvars.ContextVar("VAR", default=0)
a = VAR.get()
VAR.set(a + w.n)
y = x * VAR.get()
print("b")
return y, VAR.get()

context_of_a_tensor
|import contextvars
|VAR = contextvars.ContextVar("VAR")
t = VAR.set(x * w.n)
print("b")
y = VAR.get() + 1
VAR.reset(t)
return y, VAR.get(None)

context_set_without_breaks
|import contextvars
|VAR = contextvars.ContextVar("VAR", default=1)
t = VAR.set(w.n); y = x * VAR.get(); VAR.reset(t)
return y, VAR.get()

random_made_in_the_call
import random
r = random.Random(w.n); a = r.random()
y = x * a
b = r.randint(0, 10); c = r.choice([1, 2, 3]); l = [1, 2, 3, 4]; r.shuffle(l)
print("b")
return y + b, c, l, r.random(), r.gauss(0, 1)

random_made_and_kept
import random
w.rng = random.Random(3); y = x * w.rng.random()
print("b")
return y + w.rng.random(), w.rng.getrandbits(4)

random_in_a_class
import random
class Sampler:
    def __init__(s, seed): s.rng = random.Random(seed); s.log = []
    def draw(s, items): s.log.append(len(items)); return s.rng.choice(items)
s = Sampler(w.n)
y = s.draw([x, x + 1, x + 2]) * 2
print("b")
return y, s.draw(range(10)), s.log
"""
