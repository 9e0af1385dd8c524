# size: table
"""Programs of the language itself, by theme: the body of `f(w, x)`, after its name. `w` is a fresh namespace with `log`,
`n`, `items`, `names`, `box`; x is a matrix. Each is called several times in one world."""

PRELUDE = """
import abc, bisect, collections, contextlib, copy, dataclasses, enum, functools, heapq, itertools, math, operator, re
import string, types, typing, weakref
import numpy as np
import torch
import torch.nn.functional as F

calls = 0

class Box:
    def __init__(self, value=0, *items):
        self.value, self.items = value, list(items)
    def __repr__(self):
        return f"Box({self.value})"

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 4))
        self.register_buffer("steps", torch.zeros(()))
        self.count = 0
    def forward(self, t):
        return t * self.weight

class Square:
    def __init__(self, side):
        self.side = side
    @functools.cached_property
    def area(self):
        global calls
        calls += 1
        return self.side * self.side

square = Square(3)

class Color(enum.Enum):
    RED = 1
    BLUE = 2

class Flag(enum.IntFlag):
    A = 1
    B = 2

@dataclasses.dataclass
class Point:
    left: object
    right: object = 2
    rest: list = dataclasses.field(default_factory=list)

@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: int = 1

Pair = collections.namedtuple("Pair", "left right", defaults=[5])

class Typed(typing.NamedTuple):
    t: object
    n: int = 3

def make():
    net = Net()
    net.requires_grad_(False)
    return types.SimpleNamespace(log=[], n=2, items=[3, 1, 2], names={"a": 1, "b": 2}, box=Box(1, 5, 6), net=net)
"""

PROGRAMS = """
cached_properties
    mine = Square(x.sum())
    first = mine.area
    w.log.append((square.area, "area" in vars(square), vars(mine).keys(), calls))
    del square.__dict__["area"]
    return first * mine.area + square.area, first is mine.area

class_methods_of_builtin_types
    keys = dict.fromkeys(w.items, x.sum())
    n = int.from_bytes(b"\\x01\\x02", "little")
    flat = list(itertools.chain.from_iterable([w.items, [n]]))
    w.items.append(n)
    return keys[3] * flat[-1], list(keys), flat, x * float.fromhex("0x1.8p1")

## dict views

keys_are_live
d = dict(w.names); k = d.keys(); d["c"] = 3
return list(k), len(k), x * len(k)

keys_set_operations
k = w.names.keys()
return sorted(k & {"a", "z"}), sorted(k | {"z"}), sorted(k - {"a"}), sorted(k ^ {"a", "z"}), k.isdisjoint({"q"}), x + 1

items_compare
return w.names.items() >= {("a", 1)}, ("b", 2) in w.names.items(), w.names.keys() == {"a", "b"}, x

values_of_tensors
d = {"p": x, "q": x + 1}
return sum(d.values()), [type(v).__name__ for v in d.values()]

reversed_dict
return list(reversed(w.names)), list(reversed(w.names.items())), x * 2

dict_changes_while_iterating
try:
    for k in w.names:
        w.names[k + "!"] = 1
except RuntimeError as e:
    w.log.append(str(e))
for k in [k for k in w.names if k.endswith("!")]:
    del w.names[k]
return x + len(w.names)

dict_merge
d = w.names | {"b": 5, "c": 6}; d |= [("e", 7)]
return d, {**w.names, "a": 0}, x

dict_pop_and_order
w.names["a"] = w.names.pop("a")
return list(w.names), x

dict_popitem
d = dict(w.names); got = d.popitem()
return got, d, x

setdefault_chain
w.names.setdefault("l", []).append(x.sum())
return len(w.names["l"]), x * 1

fromkeys_and_get
d = dict.fromkeys("abc", 0)
for c in "abca":
    d[c] += 1
return d, d.get("z"), d.get("z", x)

default_dict
d = collections.defaultdict(list)
for i in w.items:
    d[i % 2].append(x * i)
return dict(d), sorted(d)

counter_most_common
c = collections.Counter("abracadabra"); c.update(w.names)
return c.most_common(2), c["z"], c.total(), x

ordered_dict_moves
d = collections.OrderedDict(a=1, b=x, c=3); d.move_to_end("a"); d.move_to_end("c", last=False)
return list(d), d["b"] + 1

chain_map
c = collections.ChainMap({"z": 1}, w.names); c["a"] = 10
return dict(c), w.names["a"], x * c["z"]

missing_key_method
class D(dict):
    def __missing__(self, key):
        w.log.append(key)
        return len(self)
d = D(a=1)
return d["a"], d["q"], d.get("q"), x + d["zz"]

mapping_protocol
class M(collections.abc.Mapping):
    def __getitem__(self, k): return {"p": x, "q": x * 2}[k]
    def __iter__(self): return iter("pq")
    def __len__(self): return 2
m = M()
return dict(m), "p" in m, m.get("zz", 1), sum(m.values())

dict_subclass_writes
class D(dict):
    def __setitem__(self, k, v):
        w.log.append(("set", k))
        super().__setitem__(k, v)
d = D(); d["p"] = x; d.update(q=1)
return dict(d), d["p"] + 1

dict_comprehension_nested
return {i: {j: i * j for j in w.items} for i in range(2)}, x

dict_equality_of_order
return {"a": 1, "b": 2} == {"b": 2, "a": 1}, collections.OrderedDict(a=1, b=2) == collections.OrderedDict(b=2, a=1), x

dict_unhashable
try:
    {}[[1]]
except TypeError as e:
    return str(e), x

dict_views_repr
return repr(w.names.keys()), repr(w.names.items()), x

## lists, tuples, sets

slice_assignment
l = list(range(6)); l[1:3] = [9, 9, 9]; l[::2] = [0] * len(l[::2]); del l[-2:]
return l, x

extended_slice_error
l = [1, 2, 3, 4]
try:
    l[::2] = [1]
except ValueError as e:
    return str(e), x

list_sort_by_tensor_free_key
l = sorted(w.items, key=lambda i: (-i % 3, i)); w.items.sort(reverse=True)
return l, w.items[0], x + l[0]

sort_is_stable
l = [(1, "b"), (0, "a"), (1, "a")]
l.sort(key=operator.itemgetter(0))
return l, x

list_multiplication_shares
l = [[]] * 3; l[0].append(x.sum())
return l[0] is l[2], len(l[1]), l

nested_lists_made_apart
l = [[] for _ in range(3)]; l[0].append(x.sum())
return [len(i) for i in l], x

list_remove_index_count
l = [1, 2, 1, 3]; l.remove(1)
return l, l.index(1), l.count(1), x * l.pop(0)

list_compare
return [1, 2] < [1, 3], (1, 2, 3) > (1, 2), [1] == [1.0], x

starred_everywhere
a, (b, *c), *d = 1, (2, 3, 4), 5, 6
return [*c, *d], (*d, a), {**{"k": b}}, max(*d, 1), x

unpack_errors
try:
    a, b = w.items
except ValueError as e:
    return str(e), x

unpack_tensor_rows
a, b, *c = x
return a + b, len(c), c

swap_and_chain
a, b = 1, 2; a, b = b, a; c = d = [a]; c.append(b)
return d, c is d, x

walrus_in_comprehension
return [y for i in w.items if (y := i * 2) > 2], y, x

enumerate_zip
return list(enumerate(w.items, 1)), list(zip(w.items, "ab")), [a * b for a, b in zip(x, x)][0]

zip_strict
try:
    return list(zip([1], [1, 2], strict=True)), x
except ValueError as e:
    return str(e), x

itertools_many
a = list(itertools.accumulate(w.items)); b = list(itertools.product("ab", [1, 2])); c = list(itertools.combinations(w.items, 2))
return a, b, c, list(itertools.islice(itertools.count(3, 2), 3)), x

itertools_groups
return [(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 1])], list(itertools.zip_longest("ab", "c")), x

itertools_chain_tensors
return sum(itertools.chain([x, x * 2], (x + i for i in range(2)))), list(itertools.repeat(1, 2))

pairwise_takewhile
return list(itertools.pairwise(w.items)), list(itertools.takewhile(lambda i: i > 1, w.items)), list(itertools.dropwhile(bool, [1, 0, 2])), x

heap
h = list(w.items); heapq.heapify(h); heapq.heappush(h, 0)
return heapq.heappop(h), heapq.nsmallest(2, h), x * h[0]

bisecting
l = sorted(w.items); bisect.insort(l, 2)
return l, bisect.bisect_left(l, 2), bisect.bisect(l, 2), x

deque_rotates
d = collections.deque(w.items, maxlen=3); d.appendleft(x); d.rotate(1)
return list(d), d.maxlen, d[0] is x

set_algebra
a, b = {1, 2, 3}, set(w.items) - {1}
return sorted(a & b), sorted(a ^ b), a > b, sorted(a.union(b, [9])), x

set_mutation
s = set(); s.add(1); s.update([2, 3]); s.discard(9); s -= {2}; s |= {7}
return sorted(s), len(s), x * len(s)

frozen_sets
d = {frozenset([1, 2]): x}
return d[frozenset([2, 1])] + 1, hash(frozenset()) == hash(frozenset())

tuple_methods
t = (1, 2, 1)
return t.count(1), t.index(2), t + (3,), t * 2, t[::-1], x

range_methods
r = range(10, 0, -3)
return list(r), len(r), 4 in r, r.index(4), r[1:], x[: len(r)]

any_all_min_max
return any(i > 2 for i in w.items), all(w.items), min(w.items, key=lambda i: -i), max([], default=x)

map_filter_lazy
m = map(lambda i: w.log.append(i) or i + 1, w.items); first = next(m)
return first, list(filter(None, [0, 1, 2])), list(m), x

sum_with_start
return sum([[1], [2]], []), sum((x, x), x), sum(w.items, 0.5)

bytes_and_arrays
b = bytearray(b"abc"); b[0] = 65; b += b"d"
return bytes(b), b.hex(), bytes([1, 2])[0], memoryview(bytes(b))[1], x

copy_shallow_and_deep
a = [[1], x]; b = copy.copy(a); c = copy.deepcopy(w.items); b[0].append(2)
return a[0], c, b[1] is x, c is w.items

## strings and formats

format_specs
return f"{3.14159:.2f}|{42:>6}|{'s':^5}|{255:#x}|{1234567:,}|{w.n!r:>3}|{w.n=}", x

format_nested_width
width = 8
return f"{'a':>{width}}", f"{{literal}}", "{0}{1}{0}".format("a", w.n), "{a.value}".format(a=w.box), "{a[k]}".format(a={"k": 1}), x

percent_formats
return "%s %r %05.1f %x %%" % ("a", "b", 2.5, 255), "%(k)d" % {"k": 3}, x

custom_format
class P:
    def __format__(self, spec): return f"<{spec}>"
    def __str__(self): return "str"
return f"{P():abc}", f"{P()!s}", str(P()), x

string_methods
s = " The Quick "
return s.strip().split(), s.lower().title(), s.replace("Q", "k"), "a,b,c".rsplit(",", 1), "abc".partition("b"), "x".join("abc"), x

string_tests
return "abc".isalpha(), "12".isdigit(), "ab" in "cabd", "abc".find("z"), "abcabc".count("bc"), "a".zfill(3), x

string_index_slice
s = "hello"
return s[1:4], s[::-1], s[-1], s * 2, sorted(s), max(s), x

string_template
return string.Template("$a-${b}").substitute(a=1, b=w.n), string.ascii_lowercase[:3], x

regular_expressions
m = re.match(r"(?P<k>\\w+)=(\\d+)", "key=42")
return m.group("k"), int(m[2]), re.sub(r"\\d", "#", "a1b2"), re.findall(r"[a-z]", "a1b2"), re.split(r",\\s*", "a, b,c"), x

encode_decode
return "é".encode(), b"abc".decode(), "a".encode("utf-16").decode("utf-16"), ord("a"), chr(98), x

string_of_containers
return str([1, "a", None]), repr({"k": (1,)}), str(w.box), repr(1.0), x

shape_in_string
w.log.append(f"{tuple(x.shape)} {x.dim()}")
return "%d rows" % x.shape[0], str(x.dtype), x

multiline_and_join
lines = [f"{i}:{v}" for i, v in enumerate(w.items)]
return "\\n".join(lines).splitlines(), x

int_conversions
return int("ff", 16), int("0b11", 0), bin(5), oct(8), hex(255), float("1e3"), complex("1+2j").real, round(2.5), round(2.675, 2), x

## numbers

integer_arithmetic
return 7 // -2, -7 % 3, divmod(-7, 2), 2 ** 10, pow(3, 4, 5), -5 >> 1, 5 & 3 | 8, ~5, x * (7 // 2)

float_arithmetic
return 0.1 + 0.2, 7.5 // 2, -7.5 % 2, 1e308 * 10, math.isclose(0.3, 0.1 * 3), (2.5).is_integer(), x / 3

division_by_zero
for f in (lambda: 1 / 0, lambda: 1 % 0, lambda: 1.0 // 0):
    try:
        f()
    except ZeroDivisionError as e:
        w.log.append(str(e))
return x

chained_comparison
return 1 < w.n <= 3, 1 < 2 > 0, not 1 == 2 != 3, x

booleans_are_ints
return True + True, sum([True, False]), isinstance(True, int), x * True

math_functions
return math.gcd(12, 18), math.floor(-1.5), math.ceil(1.2), math.prod(w.items), math.comb(5, 2), math.hypot(3, 4), math.isnan(float("nan")), x

shapes_as_numbers
n, m = x.shape
return n * m == x.numel(), (n + 1) // 2, x.reshape(m, n), max(n, m)

complex_numbers
z = complex(1, 2) * 1j
return z.real, abs(3 + 4j), z.conjugate(), x

short_circuits
def say(v):
    w.log.append(v)
    return v
return say(0) or say(3), say(1) and say(0) and say(9), say([]) or x

truth_of_objects
class T:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
class B:
    def __bool__(self): return False
return bool(T(0)), bool(T(2)), not B(), (1 if T(0) else 2), x

## functions and closures

default_is_shared
def f(v, seen=[]):
    seen.append(v)
    return len(seen)
return f(1), f(2), x * f(3)

keyword_only_positional_only
def f(a, /, b, *args, c=3, **kw):
    return a, b, args, c, sorted(kw)
return f(1, 2), f(1, b=2, c=4, a=5), f(1, 2, 3, d=1), x

call_errors
def f(a, *, b): pass
for call in (lambda: f(), lambda: f(1), lambda: f(1, 2, b=1), lambda: f(1, b=1, c=2), lambda: f(1, b=2, **{"b": 3})):
    try:
        call()
    except TypeError as e:
        w.log.append(str(e).replace("f.<locals>.", ""))
return x

nonlocal_counter
n = 0
def up():
    nonlocal n
    n += 1
    return n
return [up() for _ in range(3)], n, x * up()

late_binding
fs = [lambda: i for i in range(3)]; gs = [lambda i=i: i for i in range(3)]
return [f() for f in fs], [g() for g in gs], x

closure_over_tensor
y = x * 2
def inner(k): return y * k
y = y + 1
return inner(2), inner.__closure__[0].cell_contents is y

closures_returned_and_called
def make_adder(k):
    def add(t): return t + k
    return add
w.box.fns = [make_adder(i) for i in range(2)]
return [f(x) for f in w.box.fns]

global_counter
global calls
calls += 1
return calls, x * calls

recursive_function
def fact(n): return 1 if n < 2 else n * fact(n - 1)
def depth(t, n): return t if n == 0 else depth(t * 0.5, n - 1)
return fact(6), depth(x, 4)

decorator_with_arguments
def times(n):
    def wrap(f):
        @functools.wraps(f)
        def inner(*a): return f(*a) * n
        return inner
    return wrap
@times(3)
def g(t): return t + 1
return g(x), g.__name__

cache_decorator
@functools.lru_cache(maxsize=None)
def slow(n):
    w.log.append(n)
    return n * 2
return slow(1), slow(1), slow(2), slow.cache_info().hits, x

partial_objects
p = functools.partial(lambda a, b, c=0: (a, b, c), 1, c=5)
return p(2), p(2, c=6), p.args, p.keywords, functools.partial(torch.add, x)(1)

reduce_and_operator
return functools.reduce(lambda a, b: a * 10 + b, w.items), operator.itemgetter(1, 0)(w.items), operator.attrgetter("value")(w.box), operator.methodcaller("upper")("a"), x

single_dispatch
@functools.singledispatch
def kind(v): return "other"
@kind.register
def _(v: int): return "int"
@kind.register(list)
def _(v): return "list"
return kind(1), kind([]), kind("s"), kind(True), x

function_attributes
def f(): return f.count
f.count = 3
f.count += 1
return f(), f.__name__, f.__defaults__, x

lambda_in_default
def f(a, g=lambda v: v * 2): return g(a)
return f(3), f(x), f(3, g=str)

star_args_from_generators
def f(*a, **k): return len(a), sorted(k)
return f(*(i for i in range(3)), *w.items, **{"p": 1}, **w.names), x

inspect_signature_names
def f(a, b=1, *c, d, **e): pass
return f.__code__.co_varnames, f.__code__.co_argcount, f.__kwdefaults__, x

closure_shadowing
v = 1
def f():
    v = 2
    def g(): return v
    v = 3
    return g()
return f(), v, x

comprehension_scope
i = "outer"
l = [i for i in range(3)]
return i, l, [j for i in [[1], [2]] for j in i], x

exec_like_dispatch
table = {"add": operator.add, "mul": operator.mul}
out = x
for name, v in [("add", 1), ("mul", 2), ("add", x)]:
    out = table[name](out, v)
return out

## object model

properties
class P:
    def __init__(self): self._v = 1
    @property
    def v(self):
        w.log.append("get")
        return self._v
    @v.setter
    def v(self, n):
        w.log.append("set")
        self._v = n
    @v.deleter
    def v(self): self._v = None
p = P(); p.v += 2
a = p.v
del p.v
return a, p._v, x

descriptors
class D:
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, o, t=None): return self if o is None else o.__dict__.get(self.name, 0) + 1
    def __set__(self, o, v): o.__dict__[self.name] = v
class C:
    a = D()
c = C(); c.a = 5
return c.a, C.a.name, vars(c), x

non_data_descriptor
class D:
    def __get__(self, o, t=None): return "from descriptor"
class C:
    a = D()
c = C(); before = c.a; c.__dict__["a"] = "own"
return before, c.a, x

getattr_fallback
class C:
    def __init__(self): self.real = 1
    def __getattr__(self, name):
        if name.startswith("no"): raise AttributeError(name)
        w.log.append(name)
        return len(name)
c = C()
return c.real, c.abc, getattr(c, "nothing", "default"), hasattr(c, "nope"), hasattr(c, "yes"), x

getattribute_override
class C:
    v = 1
    def __getattribute__(self, name):
        w.log.append(name)
        return object.__getattribute__(self, name)
c = C(); c.k = x
return c.v, c.k + 1

setattr_delattr
class C:
    def __setattr__(self, n, v):
        w.log.append(n)
        super().__setattr__(n, v)
    def __delattr__(self, n):
        w.log.append("del " + n)
        super().__delattr__(n)
c = C(); c.a = x; c.b = 1; del c.b
return c.a * 2, vars(c).keys() == {"a"}

slots
class S:
    __slots__ = ("a", "b")
s = S(); s.a = x
try:
    s.c = 1
except AttributeError as e:
    w.log.append(str(e))
return s.a + 1, hasattr(s, "b")

super_calls
class A:
    def f(self, t): return t + 1
    @classmethod
    def name(cls): return cls.__name__
class B(A):
    def f(self, t): return super().f(t) * 2
    @classmethod
    def name(cls): return "B" + super().name()
class C(B):
    def f(self, t): return super(B, self).f(t) - 1
return B().f(x), C().f(x), C.name()

multiple_inheritance
class A:
    def f(self): return ["A"]
class B(A):
    def f(self): return ["B"] + super().f()
class C(A):
    def f(self): return ["C"] + super().f()
class D(B, C):
    def f(self): return ["D"] + super().f()
return D().f(), [c.__name__ for c in D.__mro__], isinstance(D(), C), x

operator_overloads
class V:
    def __init__(self, t): self.t = t
    def __add__(self, o): return V(self.t + getattr(o, "t", o))
    __radd__ = __add__
    def __matmul__(self, o): return "matmul"
    def __neg__(self): return V(-self.t)
    def __iadd__(self, o):
        self.t = self.t + o
        return self
    def __eq__(self, o): return "eq"
    def __lt__(self, o): return "lt"
    def __getitem__(self, i): return i
    def __call__(self, *a): return len(a)
    def __contains__(self, i): return i == 3
v = V(x); v += 1
return (v + v).t, (1 + v).t, (-v).t, v @ v, v == 1, v < 1, v[1:2, ...], v(1, 2), 3 in v

reflected_not_implemented
class L:
    def __add__(self, o): return NotImplemented
class R:
    def __radd__(self, o): return "R"
try:
    L() + L()
except TypeError as e:
    w.log.append(str(e))
return L() + R(), x

class_body_and_scope
k = 3
class C:
    a = k
    b = [a for _ in range(2)] if False else [k]
    def f(self): return k
    n: int = 1
return C.a, C.b, C().f(), C.__annotations__, C.__qualname__, x

class_attributes_shared
class C:
    shared = []
    n = 0
a, b = C(), C(); a.shared.append(1); a.n += 1
return b.shared, b.n, a.n, C.n, x

metaclass
class M(type):
    def __new__(m, name, bases, ns, **kw):
        ns["made"] = sorted(k for k in ns if not k.startswith("__"))
        return super().__new__(m, name, bases, ns)
    def __call__(cls, *a):
        w.log.append("call")
        return super().__call__(*a)
    @property
    def nice(cls): return cls.__name__.lower()
class C(metaclass=M, flag=1):
    v = 2
    def __init__(self, t): self.t = t
return C(x).t + C.v, C.made, C.nice

init_subclass
class A:
    seen = []
    def __init_subclass__(cls, tag=None, **kw):
        super().__init_subclass__(**kw)
        A.seen.append((cls.__name__, tag))
class B(A, tag="b"): pass
return A.seen, x

new_and_init
class C:
    def __new__(cls, v):
        w.log.append("new")
        self = super().__new__(cls)
        return self
    def __init__(self, v): self.v = v
return C(x).v * 2, type(C(1)).__name__

singleton_new
class C:
    one = None
    def __new__(cls):
        if cls.one is None: cls.one = super().__new__(cls)
        return cls.one
return C() is C(), x

abstract_classes
class A(abc.ABC):
    @abc.abstractmethod
    def f(self): ...
class B(A):
    def f(self): return 1
try:
    A()
except TypeError as e:
    w.log.append(type(e).__name__)
return B().f(), issubclass(B, A), x

virtual_subclass
class A(abc.ABC):
    @classmethod
    def __subclasshook__(cls, c): return hasattr(c, "quack")
class D:
    def quack(self): pass
return isinstance(D(), A), isinstance(1, A), isinstance([], collections.abc.Sized), callable(len), x

iterator_protocol
class It:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0: raise StopIteration
        self.n -= 1
        return self.n
return list(It(3)), sum(x * i for i in It(2)), [*It(2)], 1 in It(3), dict(enumerate(It(2)))

getitem_iteration
class Old:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i * 10
a, b, c = Old()
return list(Old()), a + c, 20 in Old(), list(reversed(range(2))), x

hash_and_eq
class K:
    def __init__(self, v): self.v = v
    def __hash__(self): return hash(self.v)
    def __eq__(self, o): return self.v == o.v
d = {K(1): "one"}
return d[K(1)], len({K(1), K(1), K(2)}), K(3) in d, x

instance_dict_tricks
o = types.SimpleNamespace(**w.names); vars(o)["c"] = x
return o.a, o.c + 1, sorted(vars(o)), o == types.SimpleNamespace(a=1)

method_objects
m = w.items.append; m(4); f = w.box.__class__.__repr__
w.items.pop()
return m.__self__ is w.items, f(w.box), w.net.forward.__func__ is Net.forward, x

dynamic_class
C = type("C", (Box,), {"double": lambda self: self.value * 2, "tag": 7})
return C(4).double(), C.tag, C.__bases__[0].__name__, x

class_decorator
def add_tag(c):
    c.tag = c.__name__
    return c
@add_tag
class C: pass
return C.tag, x

static_and_class_methods
class C:
    n = 2
    @staticmethod
    def s(t): return t + 1
    @classmethod
    def c(cls, t): return t * cls.n
return C.s(x), C().c(x), C.c(x)

weak_references
b = Box(3); r = weakref.ref(b); alive = r() is b
del b
return alive, r() is None, x

total_ordering
@functools.total_ordering
class O:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v
return O(1) <= O(2), O(2) >= O(3), max([O(1), O(3)], key=lambda o: o.v).v, sorted([O(2), O(1)])[0].v, x

cached_property
class C:
    @functools.cached_property
    def v(self):
        w.log.append("computed")
        return x * 2
c = C()
return c.v, c.v is c.v

name_mangling
class C:
    def __init__(self): self.__v = 1
    def get(self): return self.__v
return C().get(), list(vars(C())), x

## dataclasses, enums, named tuples

dataclass_basics
p = Point(x, rest=[1]); q = Point(1)
return p.left + 1, repr(q), q == Point(1), dataclasses.asdict(q), [f.name for f in dataclasses.fields(p)]

dataclass_replace
p = dataclasses.replace(Point(x), right=5)
return p.left is x, p.right, dataclasses.is_dataclass(p)

dataclass_frozen_order
a, b = Frozen(1), Frozen(1, 2)
try:
    a.a = 2
except dataclasses.FrozenInstanceError as e:
    w.log.append(str(e))
return a < b, hash(a) == hash(Frozen(1)), sorted([b, a])[0] is a, x

dataclass_post_init
@dataclasses.dataclass
class D:
    t: object
    n: dataclasses.InitVar[int] = 2
    twice: object = dataclasses.field(init=False)
    def __post_init__(self, n): self.twice = self.t * n
return D(x).twice, D(x, 3).twice

enums
return Color.RED.name, Color(2) is Color.BLUE, Color["RED"].value, [c.name for c in Color], Color.RED == 1, x

enum_as_key
d = {Color.RED: x, Color.BLUE: x + 1}
return d[Color.RED] + d[Color(2)], Color.RED in Color

int_flags
f = Flag.A | Flag.B
return f.value, Flag.A in f, f & Flag.B == Flag.B, int(Flag.A) + 1, x * Flag.B

enum_errors
try:
    Color(5)
except ValueError as e:
    return str(e), x

named_tuples
p = Pair(x); q = p._replace(right=1)
return p.left + 1, p.right, q._asdict()["right"], Pair._fields, p[1], len(p)

named_tuple_classes
t = Typed(x)
a, b = t
return a is x, b, t._replace(n=4).n, isinstance(t, tuple), t

named_tuple_returned
return Pair(x * 2, Pair(1, x))

## context managers

nested_with
@contextlib.contextmanager
def say(n):
    w.log.append(n)
    try:
        yield n
    finally:
        w.log.append(-n)
with say(1) as a, say(2) as b:
    y = x * (a + b)
return y

with_swallows
class S:
    def __enter__(self): return self
    def __exit__(self, t, v, tb):
        w.log.append(t and t.__name__)
        return t is ValueError
with S():
    raise ValueError("gone")
return x

with_raises_in_exit
class S:
    def __enter__(self): pass
    def __exit__(self, *a): raise KeyError("exit")
try:
    with S():
        raise ValueError("body")
except KeyError as e:
    return str(e), type(e.__context__).__name__, x

exit_stack
with contextlib.ExitStack() as stack:
    stack.callback(w.log.append, "callback")
    stack.push(lambda t, v, tb: w.log.append("pushed"))
    y = x + 1
return y

return_inside_with
with contextlib.suppress(KeyError):
    if w.n:
        return x * 2
    {}["k"]
return x

suppress
with contextlib.suppress(KeyError, ValueError):
    w.log.append("before")
    {}["k"]
    w.log.append("never")
return x

null_and_closing
class C:
    def close(self): w.log.append("closed")
with contextlib.nullcontext(5) as five, contextlib.closing(C()):
    return x * five

redirect_stdout
import io
out = io.StringIO()
with contextlib.redirect_stdout(out):
    print("hello", w.n, sep="-", end="!")
return out.getvalue(), x

generator_context_throws
@contextlib.contextmanager
def guard():
    try:
        yield
    except ZeroDivisionError:
        w.log.append("caught")
with guard():
    1 / 0
return x

grad_modes
with torch.no_grad():
    a = torch.is_grad_enabled()
with torch.enable_grad():
    b = torch.is_grad_enabled()
return a, b, torch.is_grad_enabled(), x * 2

break_out_of_with
for i in range(3):
    with contextlib.ExitStack() as s:
        s.callback(w.log.append, i)
        if i == 1: break
return x * i

## generators

generator_send
def g():
    total = 0
    while True:
        v = yield total
        if v is None: return
        total += v
c = g(); next(c); c.send(1)
return c.send(5), x

generator_return_value
def inner():
    yield 1
    return "done"
def outer():
    r = yield from inner()
    yield r
return list(outer()), x

generator_throw_close
def g():
    try:
        yield 1
        yield 2
    except ValueError:
        yield "caught"
    finally:
        w.log.append("closed")
c = g(); next(c)
got = c.throw(ValueError()); c.close()
return got, x

generator_of_tensors
def g(t):
    for i in range(3):
        yield t * i
return sum(g(x)), [v.sum() for v in g(x)]

generator_expression_lazy
g = (w.log.append(i) or i for i in range(5))
first = next(g)
return first, list(itertools.islice(g, 2)), x

generator_kept_in_state
if not hasattr(w, "gen"):
    w.gen = (i * i for i in itertools.count())
return next(w.gen), x

stop_iteration_inside
def g():
    yield 1
    raise StopIteration
try:
    list(g())
except RuntimeError as e:
    return str(e), x

yield_in_try_finally
def g():
    try:
        for i in range(3): yield i
    finally:
        w.log.append("end")
for v in g():
    if v == 1: break
return v, x

pipeline_of_generators
evens = (i for i in range(10) if i % 2 == 0); squares = (i * i for i in evens)
return sum(squares), x * next(iter([3]))

delegating_to_list
def g():
    yield from w.items
    yield from (x, x + 1)
return list(g())[:3], len(list(g()))

recursive_generator
def walk(t):
    for v in t:
        if isinstance(v, list): yield from walk(v)
        else: yield v
return list(walk([1, [2, [3]], 4])), x

coroutine_run_by_hand
async def co(t):
    w.log.append("in")
    return t * 2
c = co(x)
try:
    c.send(None)
except StopIteration as e:
    return e.value

awaiting_each_other
async def inner(t): return t + 1
async def outer(t): return await inner(t) * await inner(t)
try:
    outer(x).send(None)
except StopIteration as e:
    return e.value

asynchronous_comprehension
async def gen():
    for i in range(3): yield i
async def main(): return [i * 2 async for i in gen() if i]
try:
    main().send(None)
except StopIteration as e:
    return e.value, x

async_with
class A:
    async def __aenter__(self): return 3
    async def __aexit__(self, *a): w.log.append("aexit")
async def main():
    async with A() as v: return x * v
try:
    main().send(None)
except StopIteration as e:
    return e.value

## exceptions

try_else_finally
try:
    y = x + 1
except ValueError:
    w.log.append("no")
else:
    w.log.append("else")
finally:
    w.log.append("finally")
return y

exception_chain
try:
    try:
        {}["k"]
    except KeyError as e:
        raise ValueError("new") from e
except ValueError as e:
    return repr(e), type(e.__cause__).__name__, e.__suppress_context__, x

exception_context
try:
    try:
        1 / 0
    except ZeroDivisionError:
        int("q")
except ValueError as e:
    return type(e.__context__).__name__, x

bare_raise
def f():
    try:
        raise KeyError(1)
    except KeyError:
        w.log.append("again")
        raise
try:
    f()
except KeyError as e:
    return e.args, x

return_in_finally
def f():
    try:
        return 1
    finally:
        return 2
def g():
    for i in range(3):
        try:
            continue
        finally:
            w.log.append(i)
    return i
return f(), g(), x

exception_variable_is_gone
try:
    raise ValueError(3)
except ValueError as e:
    kept = e
try:
    e
except NameError as n:
    return type(n).__name__, kept.args, x

custom_exceptions
class E(Exception):
    def __init__(self, a, t):
        super().__init__(a)
        self.t = t
try:
    raise E("m", x * 2)
except E as e:
    return e.t, str(e)

exception_groups
try:
    raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
except* ValueError as g:
    w.log.append([e.args for e in g.exceptions])
except* KeyError as g:
    w.log.append(len(g.exceptions))
return x

exception_matching_order
class A(Exception): pass
class B(A): pass
for e in (A, B, ValueError):
    try:
        raise e
    except B: w.log.append("B")
    except (A, ValueError) as v: w.log.append(type(v).__name__)
return x

assertions
try:
    assert w.n == 99, f"n is {w.n}"
except AssertionError as e:
    return str(e), x

traceback_lines
def bad():
    raise ValueError
try:
    bad()
except ValueError as e:
    tb = e.__traceback__
    return tb.tb_next.tb_frame.f_code.co_name, tb.tb_next.tb_lineno - tb.tb_lineno, x

torch_error_caught
try:
    x @ torch.ones(99, 2)
except RuntimeError as e:
    return "shapes" in str(e), x + 1

finally_with_break
while True:
    try:
        break
    finally:
        w.log.append("out")
return x

uncaught_in_nested
def a(): b()
def b(): raise LookupError("deep")
if w.n == 2:
    w.n = 3
    return x
a()

exception_in_comprehension
try:
    return [1 / i for i in (1, 0)], x
except ZeroDivisionError:
    return "caught", x

notes_and_args
e = ValueError("a", 2); e.add_note("n")
return e.args, e.__notes__, str(e), x

stop_on_iteration_default
return next(iter([]), x * 2)

## patterns

match_values
out = []
for v in (0, "s", None, 2.5, (1, 2), [1, 2, 3], {"k": 1}, Point(1, 2), Color.RED):
    match v:
        case 0 | 1: out.append("small")
        case str() as s: out.append(s)
        case None: out.append("none")
        case float(f): out.append(f)
        case (a, b): out.append(a + b)
        case [first, *rest]: out.append(rest)
        case {"k": k, **more}: out.append((k, more))
        case Point(left=l, right=2): out.append(l)
        case Color.RED: out.append("red")
return out, x

match_guards
match w.items:
    case [a, b, c] if a > b: y = x * a
    case _: y = x
return y

match_class_positional
class P:
    __match_args__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
match P(x, 3):
    case P(t, 3): return t * 2
    case _: return x

match_nested
match {"cmd": ["go", {"n": 2}], "t": x}:
    case {"cmd": [str(v), {"n": n}], "t": t}: return v, t * n

match_sequence_not_string
match "ab":
    case [a, b]: r = "sequence"
    case _: r = "no"
return r, x

match_shape
match tuple(x.shape):
    case (n, 4): return "four", x * 2
    case (n, m): return "other", x

match_literal_bool
match w.n > 1:
    case True: return "yes", x
    case False: return "no", x

match_star_middle
match [1, 2, 3, 4]:
    case [a, *m, z]: return a, m, z, x

## modules

module_state
w.net.count += 1
w.net.steps += 1
return w.net(x) * w.net.count, w.net.steps

forward_hooks
seen = []
h = w.net.register_forward_hook(lambda m, i, o: o + 1)
y = w.net(x); h.remove()
return y, w.net(x)

forward_pre_hooks
h = w.net.register_forward_pre_hook(lambda m, i: (i[0] * 2,))
y = w.net(x); h.remove()
return y

modules_made_inside
m = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten())
return m(x), len(m), [type(c).__name__ for c in m]

module_lists
m = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Tanh()]); d = torch.nn.ModuleDict({"r": torch.nn.ReLU()})
y = x
for layer in m: y = layer(y)
return y, d["r"](x), "r" in d

train_and_eval
w.net.eval(); a = w.net.training; w.net.train(); b = F.dropout(x, 0.5, training=a)
return a, b, w.net.training

state_dicts
s = w.net.state_dict()
return list(s), s["weight"] * 1, sum(p.numel() for p in w.net.parameters())

named_children_and_apply
m = torch.nn.Sequential(Net(), torch.nn.ReLU()); m.apply(lambda c: w.log.append(type(c).__name__))
return [n for n, _ in m.named_modules()], x

swap_parameter
w.net.weight.data.mul_(0.5)
return w.net(x)

module_attributes
m = w.net
try:
    m.nothing
except AttributeError as e:
    w.log.append(str(e))
m.extra = x.sum()
return hasattr(m, "weight"), m.extra

functional_call
return torch.func.functional_call(w.net, {"weight": torch.ones(4), "steps": torch.zeros(())}, (x,))

parametrization
from torch.nn.utils import parametrize
class Twice(torch.nn.Module):
    def forward(self, t): return t * 2
m = torch.nn.Linear(4, 4, bias=False); torch.nn.init.ones_(m.weight)
parametrize.register_parametrization(m, "weight", Twice())
with torch.no_grad():
    return m(x)

## torch and its kin

numpy_round_trip
a = x.detach().numpy()
return torch.from_numpy(np.sqrt(np.abs(a))), a.shape, float(np.mean(a))

numpy_scalars
return float(np.float64(2.5) * 2), int(np.int64(3)) + w.n, x * float(np.float32(0.5))

numpy_makes_tensor
return x + torch.tensor(np.arange(4, dtype=np.float32))

tensor_methods_by_name
return getattr(x, "sum")(dim=1), [getattr(torch, n)(x) for n in ("relu", "tanh")]

dtype_and_device_logic
y = x.to(torch.float64) if x.dtype == torch.float32 else x
return y.dtype == torch.float64, str(x.device), torch.finfo(x.dtype).max > 1e30, y.float()

indexing_many_ways
return x[0], x[:, 1:3], x[..., -1], x[None], x[[0, 1]], x[torch.tensor([1, 0])], x[x > 0], x[:, ::2]

index_assignment
y = x.clone(); y[0] = 7; y[:, 1] += 1; y[y < 0] = 0; y[[1, 2], [0, 1]] = torch.tensor([8.0, 9.0])
return y

in_place_chain
y = x.clone(); z = y.view(-1); z.mul_(2).add_(1); y[0].zero_()
return y, z

tensor_in_conditions
if (x > 100).any(): return "huge"
while x.sum() > 50: x = x / 2
return x

data_dependent_shapes
i = x.nonzero(); u = torch.unique(x > 0)
return i, u, x[x > 0].numel()

item_and_tolist
return x.sum().item() > 0, x[0].tolist(), int(x.argmax()), float(x[0, 0])

tensor_as_index
l = ["a", "b", "c"]
return l[torch.tensor(1)], x[torch.tensor(0)], [0] * torch.tensor(2)

tensor_iteration
return [r.sum() for r in x], len(x), list(x.shape), max(x[0]), sum(x)

tensor_equality
return torch.equal(x, x.clone()), (x == x).all().item(), x is x, x.shape == torch.Size([3, 4])

tensor_format
s = f"{x.sum():.3f}"; r = repr(torch.zeros(2)); w.log.append(s)
return r, x

einsum_and_friends
return torch.einsum("ij,kj->ik", x, x), torch.linalg.norm(x), torch.tril(x), torch.cumsum(x, 0)

vmap
return torch.func.vmap(lambda r: r * r.sum())(x)

grad_transform
return torch.func.grad(lambda t: (t ** 2).sum())(x)

jvp_transform
return torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))

vmap_of_grad
return torch.func.vmap(torch.func.grad(lambda r: (r * r).sum()))(x)

jacobian
return torch.func.jacrev(lambda r: r * 2)(x[0]), torch.func.jacfwd(torch.sin)(x[0])

autograd_inside
with torch.enable_grad():
    t = x.detach().clone().requires_grad_()
    (g,) = torch.autograd.grad((t * t).sum(), t)
return g

autograd_function
class Sq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t * t
    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return 2 * t * g
return Sq.apply(x)

checkpointing
from torch.utils.checkpoint import checkpoint
return checkpoint(lambda t: t.relu() * 2, x, use_reentrant=False)

distributions
d = torch.distributions.Normal(x, 1.0)
return d.log_prob(x + 1), d.mean, d.entropy()

distribution_categorical
d = torch.distributions.Categorical(logits=x)
return d.probs, d.log_prob(torch.zeros(x.shape[0], dtype=torch.long))

cond_operator
return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

cond_on_number
return torch.cond(x.shape[0] > 3, lambda t: t * 2, lambda t: t * 3, (x,))

cond_with_closures
k = w.n
def yes(t): return t * k
def no(t): return {"t": t - k}["t"]
return torch.cond(x.mean() > 0, yes, no, [x]), torch.cond(w.n > 1, yes, no, (x,))

cond_nested
def inner(t): return torch.cond(t.sum() > 1, lambda u: u + 1, lambda u: u - 1, (t,))
return torch.cond(x.sum() > 0, inner, lambda t: t * 2, (x,))

cond_by_another_name
from torch import cond as choose
return choose(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

cond_bad_predicate
try:
    torch.cond(x, lambda t: t, lambda t: t, (x,))
except RuntimeError as e:
    return "single-element" in str(e), x

while_loop_operator
from torch._higher_order_ops import while_loop
return while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 2), (torch.tensor(0), x))

torch_function_subclass
class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        w.log.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})
y = x.as_subclass(Logged) + 1
return type(y).__name__, y.as_subclass(torch.Tensor)

torch_function_duck
class Duck:
    def __torch_function__(self, func, types, args=(), kwargs=None): return func.__name__, len(args)
return torch.add(Duck(), 1), x

torch_function_mode
from torch.overrides import TorchFunctionMode
class M(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        w.log.append(func.__name__)
        return func(*args, **(kwargs or {}))
with M():
    y = torch.relu(x)
return y

torch_dispatch_mode
from torch.utils._python_dispatch import TorchDispatchMode
class M(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        w.log.append(func.__name__)
        return func(*args, **(kwargs or {}))
with M():
    y = torch.relu(x) + 1
return y

wrapper_subclass
class Two(torch.Tensor):
    @staticmethod
    def __new__(cls, a, b): return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)
    def __init__(self, a, b): self.a, self.b = a, b
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        pick = lambda n: [getattr(t, n) if isinstance(t, Two) else t for t in args]
        return Two(func(*pick("a")), func(*pick("b")))
y = Two(x, x * 10) + 1
return y.a, y.b

random_with_seed
torch.manual_seed(3)
return torch.rand(2, 2), torch.randn_like(x), torch.randint(0, 9, (3,)), F.dropout(x, 0.5)

random_state_restored
state = torch.get_rng_state(); a = torch.rand(2); torch.set_rng_state(state); b = torch.rand(2)
return torch.equal(a, b), x

default_dtype
torch.set_default_dtype(torch.float64)
try:
    y = torch.ones(2)
finally:
    torch.set_default_dtype(torch.float32)
return y.dtype == torch.float64, y

pytree_functions
from torch.utils import _pytree as pytree
d = {"p": [x, 1], "q": (x * 2,)}
leaves, spec = pytree.tree_flatten(d)
return len(leaves), pytree.tree_map(lambda v: v + 1, d), pytree.tree_unflatten(leaves, spec)["q"][0]

size_objects
s = x.shape
return s + (1,), s[1:], s.numel(), isinstance(s, tuple), torch.Size([2, 3])[0], list(s)

imports_inside
import math as m
from torch.nn import functional as fn
from collections import deque as dq
return m.sqrt(4), fn.relu(x), list(dq([1]))

tensor_attributes
x.tag = w.n; y = x * 2; y.note = "n"
return x.tag, hasattr(y, "tag"), y.note, y

sum_of_generator_with_break
return sum(float(r.sum()) for r in x), x

map_of_item
return list(map(torch.Tensor.item, x[0])), x

sorted_by_item
return sorted(x[0], key=lambda t: -t.item())[0], x

dict_of_items
return {i: v.item() for i, v in enumerate(x[0])}, x

min_max_of_tensors
return max(x[0], key=float), min(x[0]), sorted(x[0].tolist())

## functions that each call makes

their_defaults_are_their_own
def f(a, acc=[]):
    acc.append(1)
    return a * len(acc)
f(x)
print("|")
return f(x), f.__defaults__

their_keyword_defaults_are_their_own
def f(a, *, acc={}):
    acc[len(acc)] = float(a.sum())
    return len(acc)
f(x)
return f(x), f(x * 2)

their_attributes_are_their_own
f = lambda a: a * 2
f.seen = []
g = lambda a: a + 1
print("|")
f.seen.append(1)
g.seen = getattr(g, "seen", 0) + 1
return len(f.seen), g.seen, g(f(x))

each_call_has_others
f = lambda a: a * 2
class Here:
    def go(self, a):
        return a + 1
go = Here.go
print("|")
w.log.append(f)
return len(set(map(id, w.log))) == len(w.log), f(x), go is Here.go

## what objects do when they die

finalizers_break_when_the_program_has_ended
class Ends:
    def __init__(self, t):
        self.t = t
    def __del__(self):
        w.log.append(float(self.t.sum()))
e = Ends(x * 2)
return x * 3, x.shape[0]

finalizers_break_when_a_function_has_ended
class Ends:
    def __del__(self):
        w.log.append(float(self.t.sum()))
def f(t):
    e = Ends()
    e.t = t + 1
    return t * 2
y = f(x)
return y + float(y.sum())

## classes whose attributes differ between calls

classes_of_partial_functions
n = float(x.sum())
class Here:
    f = functools.partial(torch.mul, other=n)
    s = slice(0, int(abs(n)))
print("|")
return Here.f(x), x[Here.s]

classes_of_methods_of_containers
class Here:
    m = dict(a=x).get
print("|")
return Here.m("a") * 2

## warnings that the call takes itself

warnings_recorded_over_a_break
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    warnings.warn("first")
    n = float(x.sum())
    warnings.warn("second", DeprecationWarning)
return [(str(s.message), s.category.__name__, s.lineno) for s in seen], n

warnings_recorded_without_a_break
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for k in range(2):
        warnings.warn(f"again {k}")
return seen[1].message.args, len(seen), x * 2

warnings_shown_by_a_function
import warnings
seen = []
def show(message, *rest, **more):
    seen.append(str(message))
old = warnings.showwarning
warnings.showwarning = show
try:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("first")
        n = float(x.sum())
        warnings.warn("second")
finally:
    warnings.showwarning = old
return seen, n

## names of the frame

eval_in_a_loop
out = []
for k in range(3):
    out.append(eval("k * 2"))
return out, eval("x * k")

notes_over_a_break
error = ValueError("a")
error.add_note("first")
w.error = error
n = float(x.sum())
error.add_note(f"second {n:.1f}")
wrong = []
for note in (1, None):
    try:
        error.add_note(note)
    except TypeError as e:
        wrong.append(str(e))
return error.__notes__, wrong, x * n

## lists of what is compared, that nobody reads any more

dead_lists_of_bools
k = [n > 2 for n in x.shape]
m = [i for i, b in enumerate(k) if b]
n = int(x.abs().sum() * 2)
k2 = [v >= 1 for v in x[0].tolist()]
q = [i for i, b in enumerate(k2) if b]
return x * n, m, int(x.sum()) + len(q)
"""
