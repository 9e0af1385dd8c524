# size: table
"""Programs of the language itself, by theme: the body of `f(w, x)`, after its name. `w` is a fresh namespace with
`log`, `n`, `items`, `names`, `box`; x is a matrix. Each program is called several times in the same world."""

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

"""
