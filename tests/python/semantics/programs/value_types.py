# size: table
"""Programs about the nature of values: symbolic numbers as ints, floats and bools, objects alive across a graph break,
state of all kinds. As programs_library."""

PROGRAMS = r"""
frozensets_of_symbols
n = x.shape[0]
f = frozenset([n, 2]);
return f, f, frozenset([(n, 1)]), n in f, len(f)

frozensets_of_tensors
y = x + 1
f = frozenset([y])
return next(iter(f)) is y, f, y

slices_with_tensors
k = torch.tensor(1)
y = x * 2
s = slice(y, None)
return s.start is y, s, slice(0, x.shape[0] - 1)

slices_kept
w.log.append(slice(0, x.shape[0])); w.s = slice(w.n)
return x[w.s], w.items[w.log[-1]]

partial_results
p = functools.partial(torch.add, x, alpha=w.n)
q = functools.partial(p, 1)
p.note = x.shape[0]
return p, q(), functools.partial(max, x.shape[0])(2)

partial_setstate
p = functools.partial(int)
p.__setstate__((torch.add, (x,), {"alpha": w.n}, {"k": 1}))
return p(x), p.k

partial_in_state
|P = functools.partial(torch.mul)
P.n = w.n
return P(x, w.n), P.n, P.keywords

itemgetters
g = operator.itemgetter(0); h = operator.attrgetter("shape"); m = operator.methodcaller("sum", 0, keepdim=True)
print(w.n)
return g(x), h(x), m(x), g, sorted([(2, "a"), (1, "b")], key=operator.itemgetter(1)), min([x, x.T], key=operator.methodcaller("size", 0)).shape

counter_results
c = collections.Counter([x.shape[0], w.n, 1])
c[x.shape[1]] += 2
return c, c.most_common()

counter_of_tokens
c = collections.Counter(torch.arange(6).remainder(x.shape[0]).tolist())
return c, sorted(c.items()), max(c, key=c.get)

slots_dataclass
|@dataclasses.dataclass(slots=True)
|class S:
|    a: torch.Tensor
|    b: int = 1
|    c: list = dataclasses.field(default_factory=list)
s = S(x * 2, x.shape[0]); s.c.append(w.n)
k = float(s.a.sum())
s.b += 1
return s, dataclasses.replace(s, b=0), k, dataclasses.asdict(s)["b"]

slots_in_state
|class S:
|    __slots__ = ("n", "t", "hist")
|    def __init__(s): s.n, s.t, s.hist = 0, torch.zeros(4), []
|ST = S()
ST.n += 1; ST.t = ST.t + x.sum(0); ST.hist.append(ST.n)
print(ST.n)
ST.n += 1
return ST.t * ST.n, ST.hist[-1], hasattr(ST, "zz")

slots_as_arguments
|class S:
|    __slots__ = ("t", "n")
|    def __init__(s, t, n): s.t, s.n = t, n
def g(s): s.t = s.t + s.n; s.n += 1; return s
s = S(x, x.shape[0])
r = g(g(s))
return r.t, r.n, r is s

slots_unset_and_deleted
|class S:
|    __slots__ = ("a", "b")
s = S(); s.a = x;
print("b")
try: s.b
except AttributeError as e: m = str(e)
del s.a
return m, hasattr(s, "a"), s

slots_inherited_mangled
|class A:
|    __slots__ = ("__p", "q")
|    def __init__(s, p): s.__p = p; s.q = 0
|    def p(s): return s.__p
|class B(A):
|    __slots__ = ("r",)
|    def __init__(s, p): super().__init__(p); s.r = p + 1
b = B(x)
print("k")
b.q += w.n
return b.p() * b.q, b.r, b

slots_of_list_subclass
|class L(list):
|    __slots__ = ("tag",)
l = L([x, 1]); l.tag = w.n
print("k")
return l, l.tag, l[0] + 1

fractions_live_on
f = fractions.Fraction(w.n, 6)
print(f)
return f + fractions.Fraction(1, x.shape[0]), x * float(f)

paths_live_on
p = pathlib.PurePosixPath("/a") / str(w.n)
print(p)
return str(p / "b"), x, p

decimals_live_on
d = decimal.Decimal(w.n) / 3
print(d)
return d + 1, x * float(d), d

dates_live_on
d = datetime.datetime(2020, 1, w.n); t = datetime.timedelta(days=w.n)
print(d)
return d + t, d.strftime("%d"), x * t.days, d

matches_live_on
m = re.match(r"(\w)(\d+)", f"a{w.n}")
print(m.group(1))
return m.group(2), m.span(), x * int(m[2])

uuids_live_on
u = uuid.UUID(int=w.n)
print(u)
return str(u), u.int * x

ids_of_objects
a = [1]; b = {"k": x}
ids = {id(a): "a", id(b): "b", id(x): "x"}
print("brk")
return ids.get(id(a)), ids[id(b)], ids[id(x)], len(ids)

ids_returned
a = [x]
return id(a) == id(a), id(x) == id(x), type(id(a))

deepcopy_all
m = {}
a = {"x": x, "l": [x, w.items], "t": (1, [2])}
c = copy.deepcopy(a, m)
return c, c["l"][0] is c["x"], c["t"] is a["t"], c["l"][1] is w.items

deepcopy_config
c = copy.deepcopy(w.cfg); c.extra["n"] = w.n
return x * c.hidden, c, w.cfg.extra

deepcopy_twice_shared
l = [1, 2]
a, b = copy.deepcopy((l, l))
k = float(x.sum())
a.append(k)
return a, b, a is b

symbools
n = x.shape[0]
b = n > 2
return type(b) is bool, isinstance(b, bool), isinstance(b, int), b is True, b is not False, b + 1, b.__class__, str(b), f"{b}", b & True, b | False, not b, int(b), [10, 20][b], {True: "t", False: "f"}[b], b == True, b == 1, hash(b), repr([b]), b ^ True, bool(b), b and 5, sum([b, b]), -b, b * 2, "a" * b, (b, 1) == (True, 1), x

symbools_passed_on
n = x.shape[0]
class C: pass
c = C(); c.flag = n > 2; w.flag = n == 3; w.flags = [n > 4, n < 4]
return c, w.flag, sorted(w.flags), json.dumps({"f": n > 2}), str([n > 2]), "%s" % (n > 2), {n > 2, True}, max(n > 2, n > 3), [i for i in range(3) if (n > 2) is (i > 1)], any([n > 9, n > 2]), all([n > 1]), sum(d > 2 for d in x.shape), x

symbool_arguments_of_torch
n = x.shape[0]
return x.sum(0, keepdim=n > 2), F.dropout(x, 0.5, training=n > 99), torch.where(torch.tensor(n > 2), x, -x), F.gelu(x, approximate="tanh" if n > 2 else "none"), x * (n > 2), torch.tensor([n > 2, n > 4]), torch.full((2,), n > 2), nn.functional.one_hot(torch.tensor(int(n > 2)), 2)

module_flags
|NET = nn.BatchNorm1d(4).requires_grad_(False)
NET.train(x.shape[0] > 2)
m = nn.Dropout(0.5).train(x.shape[0] > 99)
return NET(x), NET.training, NET.running_mean + 0, m(x), m.training

class_of_symbols
n, f = x.shape[0], x.shape[0] / 2
return n.__class__, f.__class__, (n > 2).__class__, n.__class__.__name__, isinstance(n, numbers.Integral), isinstance(n, numbers.Number), isinstance(f, numbers.Real), isinstance(n, typing.SupportsIndex), isinstance(n, collections.abc.Hashable), type(n).__mro__, issubclass(type(n), int), isinstance(n, (str, int)), isinstance(n, int | str), callable(n), n.__class__(7), type(n)("5"), type(n) in (int, float), {int: "i"}[type(n)], type(n) is n.__class__, x

operators_of_subclasses
|class I(enum.IntEnum):
|    ONE = 1; TWO = 2
|class MyInt(int):
|    def __radd__(s, o): return ("radd", int(o))
|    def __gt__(s, o): return "gt"
n = x.shape[0]
return I.ONE + n, n + I.ONE, n * I.TWO, n == I.TWO, n - I.ONE, I.TWO ** n, n > I.ONE, I.ONE < n, n + MyInt(3), n < MyInt(3), MyInt(3) + n, n // I.TWO, n % I.TWO, True + n, n + True, divmod(n, I.TWO), x * I.TWO, max(n, I.TWO), [1, 2, 3, 4, 5, 6, 7, 8][I.ONE], n & I.TWO, x[I.ONE - 1]

unbound_number_methods
n = x.shape[0]
return int.__add__(n, 1), int.__repr__(n), int.bit_length(n), float.__mul__(2.5, n), (5).__add__(n), int.__eq__(n, 3), float.__pow__(2.0, n), int.__lt__(n, 4), list(map(int.__neg__, [n, 2])), functools.reduce(int.__mul__, [n, 2, 3]), sorted([n, 1], key=int.__neg__), operator.index(n), int.to_bytes(n, 2, "little"), float.fromhex("0x1"), str.__mul__("a", n), (2.5).__mul__(n), int.__hash__(n), x

math_special
n = x.shape[0]
return math.ldexp(1.5, n), math.frexp(n), math.gcd(n, 12), math.factorial(n), math.comb(n + 2, n), math.log10(n), math.floor(n / 2), math.ceil(n / 2), math.trunc(n / 2), math.sqrt(n), math.prod([n, n]), math.isfinite(n), math.sin(n), math.atan2(n, 1), math.dist((n, 1), (0, 0)), math.hypot(n, n), math.fsum([n] * 3), math.copysign(n, -1.0), cmath.sqrt(-n), x

groupby_data
|data = ["a", 1]
n = x.shape[0]
return [(k.__name__, list(g)) for k, g in itertools.groupby([n, 1, "a", "b", 2.5, n > 2], type)], x

maps_of_types
n = x.shape[0]
return list(map(type, [n, 1, n / 2, n > 2])), [*filter(None, [n - 3, n, 0])], list(map(str, [n, n > 2, n / 2])), list(map(isinstance, [n, n], [int, str])), sorted(map(repr, [n, n > 1])), list(map(float, [n])), list(map(bool, [n, n - 3])), x

gc_questions
return gc.isenabled(), x + 1

gc_disable
e = gc.isenabled()
gc.disable()
try: y = x * 2
finally:
    if e: gc.enable()
return y, gc.isenabled()

constant_identity
|def k(): return (1, 2)
|K1 = "a b"
a = (1, 2); b = (1, 2)
return a is b, k() is k(), K1 is K1, x, () is tuple(), a

constant_identity_of_state
|T = (1, "a")
|CACHE = {"k": T}
return CACHE["k"] is T, CACHE["k"], x + 1

sets_change_kind
|S = {1}
if w.n == 4: S.clear(); S.add(True)
if w.n == 6: S.clear(); S.add(1.0)
return sorted(S), x

import_that_failed
try:
    import no_such_module_here
    r = no_such_module_here.k
except ImportError as e: r = type(e).__name__
if w.n == 4:
    m = types.ModuleType("no_such_module_here"); m.k = 5; sys.modules["no_such_module_here"] = m
if w.n == 6: sys.modules.pop("no_such_module_here", None)
return r, x

index_errors
out = []
for k in (9, -9):
    try: out.append(x[k])
    except IndexError as e: out.append(str(e))
    try: out.append(x.select(1, k))
    except IndexError as e: out.append(str(e))
n = x.shape[0]
try: x[n]
except IndexError as e: out.append(str(e))
try: x[:, n + 4]
except IndexError as e: out.append(str(e))
return out

eval_exec
|GLOB = {"k": 2}
a = eval("w.n + 1"); b = eval("k * 2", GLOB); ns = {}
exec("def f(t): return t * 2\ny = 3", ns)
return ns["f"](x) + a, b, ns["y"], eval("x + 1"), eval(compile("w.n", "<e>", "eval")), ast.literal_eval("[1, 2]")

logging_calls
|LOGGER = logging.getLogger("semt"); LOGGER.propagate = False
|class H(logging.Handler):
|    REC = []
|    def emit(s, r): s.REC.append(r.getMessage())
|LOGGER.handlers[:] = [H()]; LOGGER.setLevel(logging.INFO); H.REC = []
LOGGER.info("n=%d", w.n); LOGGER.debug("no %s", x.shape[0])
y = x * 2
LOGGER.warning("shape %s", tuple(y.shape))
return y, list(H.REC)

made_dataclasses
@dataclasses.dataclass
class D:
    a: int
    b: object = None
    def go(s): return s.a * 2
N = collections.namedtuple("N", "p q"); E = enum.Enum("E", "A B")
class T(typing.NamedTuple):
    z: int = 1
d = D(w.n, x)
return d.go(), N(1, x).q, E.A.name, T().z, dataclasses.fields(D)[0].name, d.b is x

generator_in_state
|def counter():
|    i = 0
|    while True:
|        i += 1
|        yield i
|GEN = counter()
return x * next(GEN), next(GEN)

generator_in_state_send
|def acc():
|    t = 0
|    while True:
|        v = yield t
|        t = t + v
|GEN = acc(); next(GEN)
return GEN.send(x.sum())

class_attribute_counter
|class T:
|    made = 0
|    reg = {}
|    def __init__(s): T.made += 1; s.id = T.made; T.reg[s.id] = w_n
|w_n = 5
t = T()
return x * t.id, T.made, len(T.reg)

class_attribute_set
|class T: k = 1
T.k = w.n
y = x * T.k
setattr(T, "z", w.n + 1)
return y, T.z, T().k

class_attribute_deleted
|class T: k = 1
|class U(T): k = 2
if "k" in vars(U): del U.k
else: U.k = w.n
return x * U.k

classmethod_state
|class Pool:
|    _items = None
|    @classmethod
|    def get(cls):
|        if cls._items is None: cls._items = []
|        cls._items.append(len(cls._items))
|        return cls._items
return len(Pool.get()), x * Pool.get()[-1]

singleton_metaclass
|class Single(type):
|    _inst = {}
|    def __call__(cls, *a):
|        if cls not in cls._inst: cls._inst[cls] = super().__call__(*a)
|        return cls._inst[cls]
|class Conf(metaclass=Single):
|    def __init__(s, n): s.n = n
return x * Conf(w.n).n, Conf(9) is Conf(1)

borg
|class Borg:
|    _s = {}
|    def __init__(s): s.__dict__ = s._s
b = Borg(); b.n = getattr(b, "n", 0) + 1
return x * Borg().n

function_attributes
|def f(t):
|    f.calls += 1
|    return t * f.calls
|f.calls = 0
return f(x), f(x), f.calls

mutable_default
def outer(): pass
|def g(t, acc=[]):
|    acc.append(t.shape[0])
|    return t * len(acc)
return g(x), g.__defaults__[0][-1]

closures_in_state
|def make_counter():
|    n = 0
|    def inc():
|        nonlocal n
|        n += 1
|        return n
|    return inc
|INC = make_counter()
return x * INC(), INC()

memo_dict
|MEMO = {}
|def fib(n):
|    if n < 2: return n
|    if n not in MEMO: MEMO[n] = fib(n - 1) + fib(n - 2)
|    return MEMO[n]
return x * fib(w.n), fib(x.shape[0]), len(MEMO)

weak_methods
|class K:
|    def m(s, t): return t * 2
|KK = K(); WM = weakref.WeakMethod(KK.m); WR = weakref.ref(KK); PX = weakref.proxy(KK)
return WM()(x), WR() is KK, PX.m(x)

context_managers_of_state
|class Timer:
|    total = 0
|    def __enter__(s): s.n = getattr(s, "n", 0) + 1; return s
|    def __exit__(s, *a): s.last = a[0]; return True
|TM = Timer()
with TM as t:
    y = x * t.n
    if w.n % 2: raise ValueError
return y, TM.last

threads_locals
|TL = threading.local()
TL.n = getattr(TL, "n", 0) + 1
return x * TL.n

locks
|LOCK = threading.Lock()
with LOCK: y = x + w.n
return y, LOCK.locked()

queues
q = queue.Queue(); q.put(x); q.put(w.n)
return q.get() * q.get(), q.empty()

heaps_of_tuples
h = []
for i, r in enumerate(x): heapq.heappush(h, (-i % 3, i, r))
return [heapq.heappop(h)[2] for _ in range(len(h))][0], heapq.nlargest(2, [3, 1, x.shape[0]]), heapq.merge([1, 3], [2]).__next__()

bisect_keys
a = [1, 3, x.shape[0]]; a.sort(); bisect.insort(a, w.n)
return a, bisect.bisect_left(a, 3), bisect.bisect(a, 3, key=lambda v: v), x

string_io
s = io.StringIO(); s.write(f"{w.n}"); print("a", x.shape[0], file=s, end="|")
return s.getvalue(), x

csv_like
rows = [dict(zip("abc", r)) for r in [[1, 2, w.n], [3, 4, x.shape[0]]]]
return {k: [r[k] for r in rows] for k in rows[0]}, sorted(rows, key=lambda r: (-r["c"], r["a"])), x

nested_comprehensions
return [[(i, j) for j in range(i)] for i in range(x.shape[0])], {i: {j for j in range(i)} for i in range(3)}, [y for r in [[1, 2], [w.n]] for y in r if y > 1], x

generator_pipeline
def src():
    for r in x: yield r
def sc(it, k):
    for v in it: yield v * k
def batched(it, n):
    it = iter(it)
    while b := list(itertools.islice(it, n)): yield torch.stack(b)
return list(batched(sc(src(), w.n), 2))

string_joins
return ", ".join(f"{k}={v}" for k, v in w.names.items()), "\n".join(map(str, x.shape)), "{:>{w}}".format("a", w=x.shape[0]), "a".ljust(x.shape[0], "."), textwrap.dedent("  a"), "%-*s|" % (x.shape[0], "z"), f"{x.shape[0]:{w.n}d}", f"{w.n=}", f"{x.shape[0]=}", f"{'a':>{x.shape[0]}}", x

printing
print("n", w.n, x.shape[0], sep="-"); print(x.shape, x.dtype, [x.shape[0]], {"k": x.shape[1]}, (x.shape[0] > 2), x.shape[0] / 2); print(f"{x.shape[0]}", file=sys.stderr)
pprint.pprint({"a": [x.shape[0]] * 2, "s": tuple(x.shape)})
return x

complex_numbers
n = x.shape[0]
return complex(n, 1), n * 1j, (n + 2j).real, abs(complex(n, 4)), n ** 1j != 0, x

big_ints
n = x.shape[0]
return n * 10 ** 20, n << 70, 2 ** (n * 30), (n + 10 ** 30) % 7, hash(n * 10 ** 20), n * 2 ** 62, -(n * 2 ** 63), x

float_edges
n = x.shape[0]
return n / 3 * 3 == n, float("inf") * n, n * float("nan") != 0, n / 0.5, n // 0.7, n % 0.7, round(n / 7, 3), int(n / 2), (n / 2).is_integer(), (n / 4).as_integer_ratio(), float(n).hex(), n * 0.1, str(n / 3), repr(n / 2), f"{n / 3:.2f}", x

zero_division
out = []
n = x.shape[0] - 3
for f in (lambda: 1 / n, lambda: 1 // n, lambda: 1 % n, lambda: divmod(5, n), lambda: 0 ** -abs(n) if n == 0 else 1, lambda: math.log(n), lambda: math.sqrt(-1 - n)):
    try: out.append(f())
    except Exception as e: out.append((type(e).__name__, str(e)))
return out, x

type_errors
n = x.shape[0]; out = []
for f in (lambda: n + "a", lambda: "a" + n, lambda: n[0], lambda: n(), lambda: len(n), lambda: [1][n / 2], lambda: n < "a", lambda: {}[n], lambda: [][n], lambda: n.foo, lambda: iter(n), lambda: int("a" * n), lambda: n @ 2, lambda: "%d" % "a", lambda: [].index(n), lambda: n.__foo__, lambda: (1,) + n, lambda: [1] + n, lambda: next(n), lambda: range(n / 2), lambda: "abc"[n / 2], lambda: sum(n), lambda: max(n), lambda: sorted(n), lambda: set(n), lambda: tuple(n), lambda: dict(n), lambda: "a".join([n]), lambda: bytes("a", n), lambda: n.append(1), lambda: ord(n), lambda: chr(-n), lambda: abs("a"), lambda: isinstance(1, n), lambda: (lambda a: a)(n, n), lambda: f"{n:s}", lambda: "{:s}".format(n), lambda: round(n, "a"), lambda: pow(n, 2, 0), lambda: n | 1.5, lambda: ~(n / 2), lambda: n << -1, lambda: del_(n)):
    try: out.append(f())
    except Exception as e: out.append((type(e).__name__, str(e)))
return out, x

symbols_in_c_functions
n, m = x.shape; out = []
for f in (lambda: struct.pack("<i", n), lambda: array.array("i", [n]), lambda: bytes([n]), lambda: chr(n), lambda: hex(n), lambda: "a" * n, lambda: [0] * n, lambda: "abcdefgh"[n], lambda: "abc".center(n + 4), lambda: datetime.timedelta(days=n), lambda: datetime.date(2020, n, n), lambda: decimal.Decimal(n), lambda: fractions.Fraction(n, m), lambda: random.Random(n).random(), lambda: np.int32(n), lambda: itertools.repeat(1, n).__length_hint__(), lambda: list(itertools.islice("abcdefgh", n)), lambda: list(itertools.combinations(range(n), 2)).__len__(), lambda: collections.deque([1, 2, 3], maxlen=n).maxlen, lambda: heapq.nlargest(n, [3, 1, 2]), lambda: textwrap.shorten("a b c d e f g", n + 6), lambda: "x".zfill(n), lambda: "a,b,c".split(",", n), lambda: "aaa".replace("a", "b", n), lambda: "abcabc".find("c", n), lambda: re.sub("a", "b", "aaaaaaa", count=n), lambda: slice(n).indices(n), lambda: range(10)[n], lambda: range(n).index(0), lambda: (1, 2, 3, 4, 5, 6, 7, 8)[:n], lambda: int("12", n + 9), lambda: round(2.123456789, n), lambda: sum([n, 2.5]), lambda: complex(n), lambda: divmod(17, n), lambda: pow(2, n, 7), lambda: bin(n), lambda: oct(n), lambda: ascii(n), lambda: format(n, "b"), lambda: operator.mul(n, 2), lambda: operator.itemgetter(n % 2)([5, 6]), lambda: math.comb(9, n), lambda: math.isqrt(n), lambda: bytearray(n), lambda: memoryview(b"abcdefgh")[n], lambda: int.from_bytes(b"ab", "big") + n, lambda: n.to_bytes(2, "big"), lambda: time.gmtime(n).tm_sec, lambda: calendar.monthrange(2020, n), lambda: uuid.UUID(int=n).int, lambda: statistics.mean([n, m]), lambda: bisect.bisect([1, 2, 3, 4, 5], n), lambda: colorsys.rgb_to_hsv(n, 0, 0), lambda: sys.intern(str(n)), lambda: "%c" % (n + 60), lambda: "{:>{}}".format("a", n), lambda: f"{n!s:>4}", lambda: "abc"[n:], lambda: [1, 2, 3, 4][-1 * (n > 2)], lambda: min(n, 2.5), lambda: max([n, m], default=0), lambda: sorted({n: 1, m: 2}), lambda: frozenset(range(n)), lambda: dict.fromkeys(range(n), n), lambda: enumerate("ab", n).__next__(), lambda: zip(range(n), "abc").__next__(), lambda: isinstance(n, numbers.Integral), lambda: hash((n, "a")) == hash((int(n), "a")), lambda: json.dumps([n, n > 2, n / 2]), lambda: pickle.loads(pickle.dumps([n, n > 2])), lambda: copy.deepcopy([n, (n,)]), lambda: repr([n, (n,), {n}, {n: n}]), lambda: str((n, n > 2, n / 2)), lambda: eval("k + 1", {"k": n}), lambda: ast.literal_eval(str(n)), lambda: string.ascii_letters[n], lambda: base64.b64encode(bytes(n)), lambda: zlib.crc32(bytes(n)), lambda: hashlib.md5(bytes(n)).hexdigest()[:4], lambda: pprint.pformat([n]), lambda: reprlib.repr([n]), lambda: types.SimpleNamespace(a=n), lambda: functools.reduce(operator.add, [n, m]), lambda: list(accumulate([n, m])) if 0 else n, lambda: collections.Counter({"a": n}).total(), lambda: "".join(chr(97 + i) for i in range(n))):
    try: out.append(f())
    except Exception as e: out.append((type(e).__name__, str(e)[:100]))
return out

symbols_in_class_body
n = x.shape[0]
class K:
    size = n
    half = n / 2
    big = n > 2
    sizes = [n] * 2
    def f(s, k=n): return k + s.size
    @staticmethod
    def g(): return n
w.K = None
return K.size, K().f(), K.g(), K.half, K.big, K.sizes

symbols_in_exceptions
try: raise ValueError(x.shape[0], {"n": x.shape[0]}, [x.shape[0] > 2])
except ValueError as e: w.err = e; a = list(e.args)
try: raise StopIteration(x.shape[0])
except StopIteration as e: v = e.value
try: raise KeyError(x.shape[0])
except KeyError as e: s = str(e)
try: sys.exit(x.shape[0])
except SystemExit as e: c = e.code
return a, v, s, c

symbols_as_defaults_and_annotations
n = x.shape[0]
def f(a: n, b=n, *, c=n > 2) -> n: return a + b
return f(1), f.__defaults__, f.__kwdefaults__, f.__annotations__, inspect.signature(f).parameters["b"].default

symbols_in_namedtuples
N = collections.namedtuple("N", "a b")
n = N(x.shape[0], x.shape[1] > 2)
@dataclasses.dataclass(frozen=True)
class D:
    a: int
    b: object = None
d = D(x.shape[0], n)
return n, n._asdict(), n._replace(a=n.a + 1), d, dataclasses.replace(d, a=d.a * 2), hash(D(d.a)) == hash(D(int(d.a))), d == D(x.shape[0], n), {d.a: 1, n: 2}, dataclasses.astuple(d)

symbols_matched
def kind(v):
    match v:
        case True: return "true"
        case False: return "false"
        case 3: return "three"
        case int(k) if k > 4: return ("big", k)
        case int(): return "int"
        case float(f): return ("float", f)
        case (3, b): return ("pair", b)
        case {"n": 3}: return "map"
        case {"n": k}: return ("mapk", k)
n = x.shape[0]
return [kind(v) for v in (n, n > 2, n / 2, (n, n), {"n": n}, n + 4, n == 5)]

symbols_compared
n, m = x.shape
return [n == 3, n != 3, n == 3.0, n == "3", n is None, n in (1, 2, 3), n in [m], n in {3: 1}, n in range(4), n in {2, 3}, (n, m) == (3, 4), [n] == [3], {"a": n} == {"a": 3}, {n} == {3}, n == True, n < m < 10, not n == 3, (n > 2) == (m > 2), (n > 2) != True, (n > 2) is (m > 2), (n > 2) in (True,), n == n, n <= 2.5, None in (n,), n.__eq__(3), n.__lt__(4), (n > 2).__and__(True)]

symbols_in_logging
L = logging.getLogger("semt6"); L.propagate = False
buf = io.StringIO(); h = logging.StreamHandler(buf); h.setFormatter(logging.Formatter("%(levelname)s %(funcName)s %(message)s")); L.handlers[:] = [h]; L.setLevel(10)
L.info("n=%d %s", x.shape[0], x.shape); L.debug(f"{x.shape[0] > 2}"); L.error("k", extra={"z": 1})
try: 1 / 0
except ZeroDivisionError: L.error("bad", exc_info=False)
return buf.getvalue(), x

logging_place
|LG = logging.getLogger("semt7"); LG.propagate = False; LG.setLevel(10)
|class H(logging.Handler):
|    def emit(s, r): GOT.append((r.lineno, r.funcName, r.getMessage(), r.levelname, r.name))
|GOT = []; LG.handlers[:] = [H()]
def inner(): LG.warning("in %s", w.n)
LG.info("first"); inner(); LG.log(15, "%s", x.shape[0]); LG.info("up", stacklevel=1)
y = x * 2
LG.info("sum %.3f", y.sum())
LG.setLevel(20 if w.n % 2 else 10)
return y, GOT[-5:], LG.isEnabledFor(15)

slots_with_weakrefs
|class S:
|    __slots__ = ("a", "__weakref__", "__dict__")
|    def __init__(s, a): s.a = a; s.extra = 1
s = S(x); r = weakref.ref(s)
print(s.extra)
s.more = s.a + 1
return r() is s, s.more, s

slots_class_hierarchy_in_list
|class A:
|    __slots__ = ("x",)
|class B(A):
|    __slots__ = ("y",)
|class C(B):
|    __slots__ = ()
cs = []
for i, r in enumerate(x):
    c = C(); c.x = r; c.y = i; cs.append(c)
print(len(cs))
return sum(c.x * c.y for c in cs), cs[0]

frozen_slots_dataclass
|@dataclasses.dataclass(frozen=True, slots=True)
|class P:
|    a: int
|    t: torch.Tensor = None
p = P(w.n, x)
print(p.a)
try: p.a = 3
except dataclasses.FrozenInstanceError as e: m = str(e)
return p, m, dataclasses.replace(p, a=9), p.t is x

class_attributes_read
|class Conf:
|    size = 3
|    table = {"a": 1}
|    names = ["x"]
if w.n == 4: Conf.size = 5
if w.n == 5: Conf.table["a"] = 7
Conf.names.append(w.n)
return x * Conf.size + Conf.table["a"], len(Conf.names)

property_on_class_changed
|class A:
|    @property
|    def k(s): return 2
|AA = A()
if w.n == 4: A.k = property(lambda s: 10)
return x * AA.k

bound_methods_kept
|class A:
|    def __init__(s): s.n = 0
|    def inc(s, k=1): s.n += k; return s.n
|AA = A(); INC = AA.inc
INC(); f = AA.inc; f(2)
return x * INC(), f.__self__ is AA, AA.n

dict_order_changes
if w.n % 2: w.names["a"] = w.names.pop("a")
return list(w.names), next(iter(w.names)), x

set_of_symbols_state
|SEEN = set()
SEEN.add(x.shape[0]); SEEN.add((x.shape, w.n))
return len(SEEN), x.shape[0] in SEEN, (tuple(x.shape), w.n) in SEEN

class_of_its_own_below_another
|class Base:
|    scale = 2
|    table = [1]
class K(Base):
    own = [x.shape[0]]
    def f(s, t): return t * s.scale
if w.n == 4: Base.scale = 5
if w.n == 5: Base.table.append(7)
return K().f(x), K.own, K.table[-1], K.scale

truth_of_numbers_of_a_class
|class Count:
|    def __init__(s, n): s.n = n
|    def __bool__(s): return s.n > 3
|    def __contains__(s, k): return s.n > k
|    def __len__(s): return s.n
|    def __eq__(s, o): return s.n == o
|    __hash__ = None
c = Count(x.shape[0]); d = Count(w.n)
return x * (2 if c else 3), 2 in c, len(c), c == 3, not d, bool(d), [1] if c and d else [2], any([c, d]), c in [3, d]

complex_numbers_beside_tensors
return x * (1 + 2j), x + w.n * 1j, x * complex(x.shape[0], w.n), (x.to(torch.complex64) * 2j).real, x.sum() - 1j
"""
