# size: table
"""News in CPython 3.12, with graph breaks, in the form of programs_language_312."""

PROGRAMS = """
## type parameters and breaks
generic_function_reads_its_parameter
def named[T](a: T):
    n = float(a.sum())
    return T.__name__, a * n
return named(x)

generic_class_over_a_break
class Holder[T]:
    def __init__(self, value: T):
        self.value = value
    def total(self):
        return float(self.value.sum())
h = Holder[torch.Tensor](x)
n = h.total()
return h.value * n, Holder.__type_params__[0].__name__, h.__orig_class__.__args__[0] is torch.Tensor

alias_over_a_break
type Pair[T] = tuple[T, w.missing] | list[T]
n = float(x.sum())
try:
    Pair.__value__
except AttributeError as error:
    message = str(error)
w.missing = int
value = Pair.__value__
del w.missing
return n, message, str(value), x * 2, Pair.__name__

alias_of_itself
type Tree = dict[str, Tree] | None
n = float(x.sum())
return Tree.__value__.__args__[0].__args__[1] is Tree, n, x + 1

aliases_in_a_loop
out = []
for k in range(3):
    type A = list[k]
    n = float((x * k).sum())
    out.append((A, n))
return [str(a.__value__) for a, n in out], [n for a, n in out]

bounds_are_lazy
log = w.log
def bound(t):
    log.append("asked")
    return int if float(t.sum()) > 0 else str
def f[T: bound(x), U: (bound(x), bound(-x))](a: T) -> U:
    return a * 2
before = len(log)
y = f(x)
n = float(y.sum())
T, U = f.__type_params__
return before, T.__bound__, U.__constraints__, T.__bound__, y * n

generic_with_defaults
def f[T](a: T, b=x, *, c=3) -> T:
    return a * c + b
return f(x), f(x, c=4), f.__defaults__[0] is x, sorted(f.__annotations__)

decorated_generics
def note(f):
    w.log.append(f.__name__)
    return f
@note
class A[T]:
    @note
    def m[U](self, v: U):
        return v * float(v.sum())
@note
def g[T](v: T):
    return v + 1
return A().m(x), g(x)

generic_in_a_comprehension
fs = []
for k in range(3):
    def f[T](a: T, k=k):
        return T.__name__, a * k
    fs.append(f)
return [f(x) for f in fs]

generic_and_super
class A[T]:
    def __init_subclass__(cls, **kw):
        w.log.append((cls.__name__, sorted(kw)))
    def go(self, v: T) -> T:
        return v + 1
class B[S](A[S], tag=1):
    def go[R](self, v: R):
        return super().go(v) * float(v.sum()), S.__name__, R.__name__, __class__.__name__
return B[int]().go(x)

generics_rebuilt
def make():
    class Item[T]:
        scale = 2
        def __call__(self, v):
            return v * self.scale
    return Item
I = make()
i = I()
n = float(i(x).sum())
return i(x) * n, I.__name__, isinstance(i, I)

original_bases
class A[T](list):
    pass
class B(A[int]):
    pass
return [str(b) for b in types.get_original_bases(B)], [b.__name__ for b in types.get_original_bases(A)[:1]], x

old_typevars
T = typing.TypeVar("T", infer_variance=True)
class Old(typing.Generic[T]):
    def get(self):
        return x * 2
n = float(x.sum())
o = Old[int]()
return o.get() * n, T.__infer_variance__

override_is_seen
class A:
    def f(self, t):
        return t
class B(A):
    @typing.override
    def f(self, t):
        return t * 2
return B().f(x), B.f.__override__

## texts and breaks
texts_with_breaks
return f"{x.sum().item():{">" + str(w.n + 10)}.{w.n}f}", f"{ {'a': float(x.sum())}['a'] }", f"{(lambda v: v * 2)(w.n)}", f"{(k := w.n)}", k

texts_in_texts
items = ["a", "b"]
t = f"{"|".join(f"{i}:{f"{x[0, 0].item():.1f}"}" for i in items)}"
return t, f"{'\\n'.join(items)!r}", f"{x.shape[0]=}", f"{x.shape[0] = :>5}", f"{{}}{w.n!r:{'>'}{6}}"

texts_by_objects
class Shown:
    def __format__(self, spec):
        w.log.append(spec)
        return f"<{spec}:{float(x.sum()):.1f}>"
    def __repr__(self):
        return f"shown {x[0].sum().item():.1f}"
    def __str__(self):
        return "text"
s = Shown()
return f"{s:a{w.n}b}", f"{s!r:>20}", f"{s!s}", f"{s}", x * 2

## comprehensions and breaks
comprehension_breaks_two_deep
i, j = 5, 6
out = [[float((x * i).sum()) + j for j in range(2)] for i in range(3)]
return out, i, j, x * i

comprehension_breaks_then_unbound
out = [v.sum().item() for v in (x, x * 2)]
try:
    return v
except NameError as error:
    return str(error), out

comprehension_deletes
k = 1
del k
out = [float((x * k).sum()) for k in range(2)]
try:
    k
except UnboundLocalError as error:
    out.append(str(error))
k = 3
return out, x * k

comprehension_cells_and_breaks
m = 10
fns = [(lambda: (m, float((m * x).sum()))) for m in range(3) if float(x.sum()) > -1e9]
def outer():
    return m
return m, outer(), [fn() for fn in fns]

comprehension_of_a_cell_of_the_function
k = 7
def inner():
    return k
out = [(float((x * k).sum()), inner()) for k in range(3)]
k += 1
return out, k, inner()

comprehension_condition_breaks
d = {"a": x, "b": -x, "c": x * 2}
good = [k for k, v in d.items() if v.sum().item() > 0]
best = {k: v * 2 for k, v in d.items() if float(v.max()) > 1}
return good, best

comprehension_raises_after_a_break
k = 4
def bad(v):
    if float(x.abs().sum()) > 0 and v == 2:
        raise ValueError(v)
    return x * v
try:
    return [bad(k) for k in range(4)]
except ValueError as error:
    return str(error), k, x + k
finally:
    w.log.append(k)

comprehension_in_a_generator
def gen():
    k = 9
    for _ in range(2):
        rows = [float((x * k).sum()) for k in range(2)]
        got = yield rows, k
        k = got or k
g = gen()
a = next(g)
b = g.send(11)
return a, b, list(g)

comprehension_in_a_lambda_and_class
class Here:
    n = 3
    rows = [v * 2 for v in range(n)]
    names = [n for n in "ab"]
    f = lambda self, n=4: [n + m for m in range(2)]
return Here.rows, Here.names, Here.n, Here().f(), x

comprehension_in_a_class_breaks
class Here:
    k = 4
    rows = [float((t * 2).sum()) for t in [x, x + 1]]
    twice = x * k
return Here.rows, Here.twice, "t" in vars(Here)

comprehension_at_module_level
names = {"x": x}
exec("k = 5\\nrows = [float((x * k).sum()) for k in range(3)]\\nsquares = {k: x * k for k in range(2)}\\n", names)
return names["rows"], names["k"], names["squares"]

comprehension_nonlocal
total = 0
def add(v):
    nonlocal total
    total += v
    return total
out = [add(float((x * total).sum())) for _ in range(3)]
return out, total

comprehension_and_frame_locals
import sys
y = 3
names = [sorted(n for n in sys._getframe().f_locals if n in ("y", "k", "w", "x")) for k in range(2)]
after = [(float(x.sum()), sorted(n for n in locals() if n in ("y", "k"))) for k in range(2)]
return names, after

comprehension_async_breaks
async def numbers():
    for i in range(3):
        yield x * i
async def twice(v):
    return float(v.sum()) * 2
async def main():
    i = 8
    a = [await twice(v) async for v in numbers()]
    b = [v for i in (1, 2) async for v in numbers() if i == 1]
    return a, b, i
c = main()
try:
    c.send(None)
except StopIteration as stop:
    return stop.value

comprehension_with_many_names
names = {f"n{i}": i for i in range(300)}
text = "def f(x):\\n" + "".join(f"    n{i} = {i}\\n" for i in range(300)) + "    rows = [float((x * n299).sum()) + n298 for n299 in range(3)]\\n    return rows, n299, x * n298\\n"
space = {}
exec(text, space)
return space["f"](x)

comprehension_iterates_lazily
def source():
    for i in range(4):
        w.log.append(("gives", i))
        yield i
out = [(w.log.append(("takes", i)), x * i)[1] for i in source() if i != 2]
return out

comprehension_sets_of_numbers
s = {int(v.sum().item()) for v in (x, x * 2, x)}
d = {i: (j := float(x.sum()) * i) for i in range(3)}
return sorted(s), d, j

comprehension_walrus_breaks
hits = [y for k in range(3) if (y := float((x * k).sum())) >= 0 or True]
return hits, y, x * y

## patterns and breaks
match_with_breaks
def kind(v):
    match v:
        case {"t": torch.Tensor() as t, **rest} if t.sum().item() > 0:
            return "positive", t * 2, rest
        case {"t": t, "n": int(n) | float(n)}:
            return "number", t * n
        case [a, *_, b] if float(x.sum()) > -1e9:
            return "ends", a, b
        case Point(left=torch.Tensor() as t, right=2 | 3 as r):
            return "point", t * r
        case Point(left, right):
            return "other", left, right
        case str() as s if len(s) > w.n:
            return "text", s
        case None | True | False:
            return "single", v
        case _:
            return "none", v
values = [{"t": x, "k": 1}, {"t": -x, "n": 2.5}, [x, 1, 2], (1, x), Point(x), Point(x, 9), "long", "a", None, True, 7]
return [kind(v) for v in values]

match_binds_over_a_break
out = []
for v in ([x, 1], [x], {"a": x, "b": [1, {"c": x}]}, Pair(x, 3)):
    match v:
        case Pair(left=l, right=r):
            out.append((l * r, float(l.sum())))
        case [t, n]:
            s = float(t.sum())
            out.append((t * s, n))
        case [t]:
            out.append(t.sum().item())
        case {"b": [n, {"c": t}]}:
            out.append((t * float(t.sum()), n))
return out

match_args_of_a_property
class Two:
    __match_args__ = ("first", "second")
    def __init__(self, t):
        self.t = t
    @property
    def first(self):
        return float(self.t.sum())
    @property
    def second(self):
        w.log.append("second")
        return self.t * 2
match Two(x):
    case Two(0, _):
        return "zero"
    case Two(n, t) if n > 1e9:
        return "large"
    case Two(n, second=t):
        return n, t

match_sequence_of_a_class
class Items(collections.abc.Sequence):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        if i > 1:
            raise IndexError
        return x * i + float(x.sum())
match Items():
    case [a]:
        return a
    case [a, b]:
        return a, b

match_sizes
match x.shape:
    case (3, n):
        return "three", n, x * n
    case [m, n] if m > n:
        return "tall", x[: m - n]
    case _:
        return "other", x

## generators and breaks
throw_with_three_arguments
import warnings
def gen():
    try:
        yield x
    except ValueError as error:
        yield str(error), float(x.sum())
g = gen()
next(g)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    got = g.throw(ValueError, ValueError("old"), None)
return got, [s.category.__name__ for s in seen]

generators_that_break_and_return
def inner(k):
    total = 0.0
    for i in range(k):
        total += float((x * i).sum())
        got = yield x * i
        if got is not None:
            total += float(got.sum())
    return total
def outer():
    a = yield from inner(2)
    b = yield from inner(3)
    return a, b
g = outer()
out = [next(g)]
try:
    while True:
        out.append(g.send(out[-1] + 1))
except StopIteration as stop:
    return out, stop.value

generator_finally_breaks
def gen():
    try:
        yield x
        yield x * 2
    finally:
        w.log.append(float(x.sum()))
        y = x * 3
        w.log.append(float(y.sum()))
out = []
for v in gen():
    out.append(v)
    break
g = gen()
next(g)
g.close()
return out

async_generator_breaks
async def numbers(k):
    try:
        for i in range(k):
            got = yield x * i + float(x.sum())
            w.log.append(got)
    except ValueError as error:
        yield str(error)
async def main():
    g = numbers(3)
    a = await g.__anext__()
    b = await g.asend("sent")
    c = await g.athrow(ValueError("thrown"))
    await g.aclose()
    return a, b, c
c = main()
try:
    c.send(None)
except StopIteration as stop:
    return stop.value
"""
