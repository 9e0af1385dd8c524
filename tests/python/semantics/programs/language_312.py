# size: table
"""News in CPython 3.12, in the form of programs_language: run by test_language.py on 3.12 and later."""

PROGRAMS = """
## inlined comprehensions (PEP 709)
comprehension_keeps_the_outer_name
i = w.n
values = [x[i % 3] * i for i in range(3)]
return i, sum(values)

comprehension_hides_an_unbound_name
values = [j for j in range(3)]
try:
    return j
except UnboundLocalError as error:
    return str(error), x + len(values)

comprehension_and_locals
y = x * 2
seen = [sorted(locals()) for k in range(2)]
return seen, y

comprehension_raises
def bad(v):
    if v == 2:
        raise ValueError(v)
    return x * v
k = 7
try:
    out = [bad(k) for k in range(4)]
except ValueError as error:
    out = [str(error), k, x + k]
return out

comprehension_with_a_cell
m = 10
fns = [lambda: m * x for m in range(3)]
return m, [fn() for fn in fns]

comprehension_in_comprehension
k = 5
grid = [[x * (a + k) for a in range(b)] for b in range(3)]
return k, grid

comprehension_with_a_break
k = 3
out = [float((x * k).sum()) + k for k in range(3)]
return out, x + k

dict_and_set_comprehensions
k = 1
d = {k: x * k for k in range(3)}
s = {k for k in range(4)}
return k, d, sorted(s)

comprehension_over_a_generator
def gen():
    for i in range(3):
        yield x + i
i = 9
return [g * 2 for g in gen()], i

comprehension_walrus
out = [last := x * k for k in range(3)]
return out, last

comprehension_under_a_handler
k = 4
try:
    raise KeyError(k)
except KeyError as error:
    out = [x * k for k in error.args]
    k += 1
return out, k

comprehension_breaks_in_a_handler
k = 4
try:
    raise KeyError(k)
except KeyError as error:
    out = [x * k + x.sum().item() for k in range(2)]
return out, k

comprehension_in_a_class_body
class Here:
    base = w.n
    values = [v * 2 for v in range(3)]
    n = [Box for _ in range(1)][0].__name__
return Here.values, Here.n, x * Here.base

## type parameters (PEP 695)
generic_function
def first[T](items: list[T]) -> T:
    return items[0]
return first([x, 2]) * 2, [p.__name__ for p in first.__type_params__]

generic_function_with_bounds
def pick[T: (int, str), U: torch.Tensor, *Ts, **P](a: T, b: U) -> U:
    return b
T, U, Ts, P = pick.__type_params__
return pick(1, x) + 1, T.__constraints__, U.__bound__ is torch.Tensor, Ts.__name__, P.__name__

generic_class
class Holder[T]:
    kind = T.__name__
    def __init__(self, value: T):
        self.value = value
    def get(self) -> T:
        return self.value
    def map[U](self, fn) -> "Holder[U]":
        return Holder(fn(self.value))
return Holder(x).map(lambda v: v * 2).get(), Holder.kind, str(Holder[int].__args__)

generic_class_with_a_base
class Base[T]:
    def scale(self, t):
        return t * 2
class Derived[T](Base[T]):
    def scale(self, t):
        return super().scale(t) + 1
return Derived().scale(x), len(Derived.__type_params__), Derived.__orig_bases__[0].__origin__.__name__

type_alias
type Number = int | float
type Matrix[T] = list[list[T]]
return Number.__value__ == int | float, Matrix.__name__, str(Matrix[int]), x * 2

type_parameter_names_in_a_class
class Outer[T]:
    name = "outer"
    def method[U](self, a=name):
        return a
return Outer().method(), x + 1

## f-strings (PEP 701)
nested_quotes
d = {"a": w.n}
return f"{d["a"]}", f"{f"{f"{1 + 1}"}"}", f"{x.shape[0]:>{w.n + 3}}", x * 2

strings_with_lines_in_them
return f"{
    w.n  # a comment
}", f"{'\\n'.join(["a", "b"])}", x

## super in one instruction
zero_argument_super
class A:
    tag = "a"
    @property
    def prop(self):
        return x * 3
    @classmethod
    def make(cls):
        return cls.tag
    def go(self, t):
        return t + 1
class B(A):
    tag = "b"
    @property
    def prop(self):
        return super().prop + 1
    @classmethod
    def make(cls):
        return super().make() + "!"
    def go(self, t):
        return super().go(t) * 2
b = B()
return b.prop, B.make(), b.go(x)

two_argument_super
class A:
    def go(self, t):
        return t + 1
class B(A):
    def go(self, t):
        return super(B, self).go(t) * 2
return B().go(x)

super_that_misses
class A:
    def go(self):
        return super().nothing
return x, A().go()

super_by_another_name
def super(*args):
    class S:
        go = staticmethod(lambda t: t * len(args))
    return S
class A:
    def go(self, t):
        return super(A, self).go(t)
return A().go(x)

super_with_a_break
class A:
    def go(self, t):
        return float(t.sum())
class B(A):
    def go(self, t):
        return super().go(t) + 1
return B().go(x) * x

super_in_a_module
class Deep(Net):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.ones(4))
    def forward(self, t):
        return super().forward(t) + self.bias
    def extra_repr(self):
        return super().extra_repr() + "?"
net = Deep()
return net(x), net.extra_repr()

## slices
slices_of_tensors
y = x.clone()
y[1:2] = 0
y[:, 1:3] += 1
z = y[1:]
y[:1] = z[:1] * 2
return y, z, x[:-1], x[0:w.n]

slices_of_lists
items = list(range(6))
items[1:3] = [x, x * 2]
del items[4:]
return items, items[1:2], (1, 2, 3)[:2], "abc"[1:]

slices_of_objects
class Sliced:
    def __getitem__(self, key):
        return x[key] * 2, str(key)
    def __setitem__(self, key, value):
        w.log.append((str(key), value))
s = Sliced()
s[1:2] = w.n
s[:] = 3
return s[0:1], s[1:]

slices_that_break
class Sliced:
    def __getitem__(self, key):
        return float(x[key].sum())
    def __setitem__(self, key, value):
        w.log.append(float(value.sum()))
s = Sliced()
s[:2] = x
return s[:1] * x, s[1:2]

slices_that_raise
class Sliced:
    def __getitem__(self, key):
        raise ValueError(f"no {key}")
try:
    return Sliced()[1:2]
except ValueError as error:
    return str(error), x * 2, (1, 2)[x.shape[0]:]

slices_by_data
n = int(x.abs().sum().item() > 0) + 1
return x[:n] * 2, x[n:] + 1

## generators
generator_that_stops_wrongly
def gen():
    yield x
    raise StopIteration("early")
out = []
try:
    for v in gen():
        out.append(v * 2)
except RuntimeError as error:
    out += [str(error), type(error.__cause__).__name__]
return out

delegates_with_values
def inner():
    got = yield x
    return got * 2
def outer():
    return (yield from inner()) + 1
g = outer()
first = next(g)
try:
    g.send(x)
except StopIteration as stop:
    return first, stop.value

delegate_breaks
def inner():
    total = (yield x).sum().item()
    return total
def outer():
    value = yield from inner()
    yield x * value
g = outer()
next(g)
return g.send(x + 1)

throw_into_a_delegate
def inner():
    try:
        yield x
    except ValueError as error:
        yield x * 2
        raise StopIteration(str(error)) from None
def outer():
    try:
        value = yield from inner()
    except RuntimeError as error:
        value = str(error)
    yield value
g = outer()
next(g)
a = g.throw(ValueError("in"))
return a, next(g)

close_while_it_yields
def gen():
    try:
        yield x
        yield x + 1
    finally:
        w.log.append("closed")
g = gen()
a = next(g)
g.close()
return a, list(g)

async_for_and_with
class Manager:
    async def __aenter__(self):
        return x
    async def __aexit__(self, *info):
        w.log.append(info[0] is None)
async def numbers():
    for i in range(3):
        yield x * i
async def main():
    out = []
    async with Manager() as t:
        async for v in numbers():
            out.append(v + t)
    return out
coroutine = main()
try:
    coroutine.send(None)
except StopIteration as stop:
    return stop.value

## exceptions
except_star
try:
    raise ExceptionGroup("both", [ValueError(1), TypeError(2)])
except* ValueError as group:
    w.log.append(str(group.exceptions))
except* TypeError as group:
    w.log.append(str(group.exceptions))
return x * 2

except_star_raises_the_rest
try:
    try:
        raise ExceptionGroup("both", [ValueError(1), KeyError(2)])
    except* ValueError:
        y = x * 2
except ExceptionGroup as rest:
    return str(rest), [repr(e) for e in rest.exceptions], y

and_or_values
a = w.n and x
b = x.shape[0] == 100 or x * 2
c = (x.sum() > 0) or x
d = (x.sum() > 0) and x * 3
return a, b, c, d

## groups of exceptions
except_star_breaks
out = []
try:
    raise ExceptionGroup("g", [ValueError(1), TypeError(2), ExceptionGroup("in", [ValueError(3), KeyError(4)])])
except* ValueError as group:
    out.append((float(x.sum()), [repr(e) for e in group.exceptions]))
    y = x * len(group.exceptions)
except* (TypeError, KeyError) as group:
    out.append(repr(group))
    y = y + float(y.sum())
finally:
    out.append("end")
return out, y

except_star_naked
out = []
try:
    n = float(x.sum())
    raise ValueError("naked")
except* ValueError as group:
    out.append((type(group).__name__, str(group), repr(group.exceptions), n))
else:
    out.append("else")
try:
    y = x * 2
except* ValueError:
    out.append("never")
else:
    out.append("else")
return out, y

except_star_raises_in_a_handler
out = []
try:
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError:
        n = float(x.sum())
        raise KeyError("new")
    except* TypeError as group:
        out.append(repr(group.exceptions))
        raise
except ExceptionGroup as group:
    def flat(e):
        return [flat(s) for s in e.exceptions] if isinstance(e, BaseExceptionGroup) else repr(e)
    out.append(flat(group))
return out, x * 2

except_star_derived
class Mine(ExceptionGroup):
    def derive(self, excs):
        w.log.append(("derive", len(excs), float(x.sum())))
        return Mine(self.message, excs)
try:
    try:
        raise Mine("m", [ValueError(1), TypeError(2)])
    except* ValueError as group:
        out = [type(group).__name__]
except Mine as rest:
    out.append(repr(rest.exceptions))
return out, x

except_star_in_a_generator
def gen():
    try:
        yield x
    except* ValueError as group:
        yield float(x.sum()), repr(group)
    yield "end"
g = gen()
next(g)
return g.throw(ExceptionGroup("g", [ValueError(1)])), list(g)

except_star_in_a_loop
out = []
for k in range(3):
    try:
        if k == 1:
            raise ExceptionGroup("g", [ValueError(k), OSError(k)])
        out.append(float((x * k).sum()))
    except* OSError:
        out.append("os")
    except* ValueError as group:
        out.append(str(group.exceptions[0]))
return out, x + len(out)

groups_split
group = ExceptionGroup("g", [ValueError(x.shape[0]), ExceptionGroup("h", [TypeError("t")])])
match, rest = group.split(ValueError)
n = float(x.sum())
return repr(match), repr(rest), repr(group.subgroup(lambda e: isinstance(e, TypeError))), n

notes
try:
    error = ValueError("a")
    error.add_note(f"sum {float(x.sum()):.1f}")
    raise error
except ValueError as error:
    error.add_note("second")
    return error.__notes__, x

## sums, which keep what rounding loses
sums_of_floats_are_compensated
a = sum(0.1 for _ in range(10)), sum([0.1] * 10), sum(v for v in (1e100, 1.0, -1e100)), sum((0.1 for _ in range(10)), 1)
b = sum(v for v in (1, 0.1, 0.2, True, 0.3)), sum((v for v in (0.1, 0.2, 0.3)), 0.0), sum(v for v in (2**70, 0.1, 0.2, 0.3))
return [repr(v) for v in a + b], x

sums_over_breaks
def parts():
    for k in range(1, 11):
        yield x.numel() * 0.0 + 0.1 * k + float(x.sum()) * 0
s = sum(parts())
return repr(s), x * s

sums_of_floats_of_sizes
s = sum([x.shape[0] * 0.1] * 10)
t = sum(x.shape[0] * 0.1 for _ in range(10))
return repr(s), repr(t), x * int(s)

sums_of_infinities
inf = float("inf")
return [repr(sum(v for v in vs)) for vs in ((inf, 1.0), (inf, -inf), (1e308, 1e308, -1e308), (-0.0, -0.0), ())], x, repr(sum((v for v in (-0.0,)), -0.0))

sums_of_products
return math.sumprod([1.0, 2.0, w.n], [0.1, 0.2, 0.3]), x * math.sumprod((1, 2), (3, 4))

## the library
slices_are_hashable
d = {slice(1, w.n): x, slice(None): x * 2}
n = float(x.sum())
return d[slice(1, w.n)] * n, hash(slice(1, 2)) == hash(slice(1, 2)), slice(0, 1) in d

batches
out = [t for t in itertools.batched(range(5), w.n)]
n = float(x.sum())
for a, *b in itertools.batched([x, x * 2, n], 2):
    out.append((a, b))
return out

iterator_of_batches_over_a_break
it = itertools.batched([1, 2, 3, 4, 5], 2)
a = next(it)
n = float(x.sum())
b = next(it)
return a, b, list(it), n

buffers_by_classes
class Buffer:
    def __init__(self):
        self.data = bytearray(range(8))
    def __buffer__(self, flags):
        w.log.append(("asked", float(x.sum())))
        return memoryview(self.data)
    def __release_buffer__(self, view):
        w.log.append("released")
        view.release()
b = Buffer()
with memoryview(b) as view:
    total = sum(view)
t = torch.frombuffer(b, dtype=torch.uint8)
y = t * 2
return total, y, bytes(b), isinstance(b, collections.abc.Buffer)

members_by_value
return 1 in Color, 7 in Color, Color.RED in Color, 3 in Flag, [c.name for c in Color if float(x.sum()) or True], x

protocols
@typing.runtime_checkable
class Sized(typing.Protocol):
    def area(self): ...
class Yes:
    def area(self):
        return x * 2
class No:
    pass
out = [isinstance(v, Sized) for v in (Yes(), No(), x)]
n = float(x.sum())
return out, Yes().area() * n, issubclass(Yes, Sized)

integers_are_integers
return (x.shape[0]).is_integer(), (4.0).is_integer(), (x.shape[0] / 2).is_integer(), (5).is_integer(), x

bool_inverted
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    a = ~(x.shape[0] > 1)
    b = ~True
return a, b, [str(s.category.__name__) for s in seen], x

refcounts_of_what_is_immortal
import sys
before = sys.getrefcount(None), sys.getrefcount(True), sys.getrefcount(1), sys.getrefcount("")
n = float(x.sum())
out = [None] * 100 + [True] * 100 + [1] * 100
return before == (sys.getrefcount(None), sys.getrefcount(True), sys.getrefcount(1), sys.getrefcount("")), n

unpacked_keyword_types
class Options(typing.TypedDict, total=False):
    k: int
def f(t, **kw: typing.Unpack[Options]):
    return t * kw.get("k", 1)
return f(x, k=w.n), f(x), Options(k=1)
"""
