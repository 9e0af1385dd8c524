# size: table
"""News in CPython 3.13, in the form of programs_language: run by test_language.py on 3.13 and later."""

PROGRAMS = """
## frames' locals are seen through (PEP 667)
locals_are_a_snapshot
y = x * 2
first = locals()
y = x * 3
z = first["y"]
second = locals()
return first is second, sorted(first), sorted(second), z, second["y"]

locals_after_a_break
y = x * 2
n = float(y.sum())
z = x + n
seen = locals()
return sorted(seen), seen["n"], seen["y"], z

locals_in_comprehensions
y = 3
seen = [(sorted(locals()), k) for k in range(2)]
inner = [[sorted(locals()) for a in range(1)] for b in range(1)]
return seen, inner, x * y

locals_written_to
y = x * 2
locals()["y"] = 1
locals().update(y=2)
return y, locals()["y"]

exec_has_a_snapshot
y = 1
exec("y = 2; z = y")
try:
    return z, x
except NameError as error:
    return str(error), y, x + y

exec_with_keywords
names = {}
exec("z = y * 2", globals={"y": x}, locals=names)
return names["z"], eval("a + 1", locals={"a": x})

eval_sees_locals
y = x * 2
return eval("y + x"), eval("[y * k for k in (1, 2)]"), eval("sorted(locals())")

frame_locals_are_written_through
import sys
y = x * 2
sys._getframe().f_locals["y"] = x * 3
return y

frame_locals_as_a_mapping
import sys
y, n = x * 2, 1
proxy = sys._getframe().f_locals
proxy["n"] = 5
proxy["extra"] = n
n += 1
out = [n, proxy["n"], "extra" in proxy, "missing" in proxy, sorted(proxy), len(proxy), proxy.get("extra")]
out += [type(proxy).__name__, proxy.setdefault("n", 3), "extra" in locals(), proxy == sys._getframe().f_locals]
try:
    del proxy["n"]
except (TypeError, ValueError) as error:
    out.append(str(error))
proxy.update(n=7)
return out, n, y

frame_locals_of_the_caller
import sys
def helper():
    outer = sys._getframe(1).f_locals
    outer["y"] = outer["y"] + 1
    return sorted(outer)
y = x * 2
names = helper()
return names, y

frame_locals_of_cells
import sys
y = x * 2
def inner():
    return y
sys._getframe().f_locals["y"] = x * 5
return inner(), y

frame_locals_after_a_break
import sys
y = x * 2
n = float(y.sum())
proxy = sys._getframe().f_locals
proxy["n"] = n + 1
proxy["y"] = y + n
return n, y, float(y.sum()), proxy["n"]

frame_locals_kept_over_a_break
import sys
y, n = x * 2, 0
proxy = sys._getframe().f_locals
n = float(y.sum())
before = proxy["n"]
proxy["n"] = n + 1
return before, n, y

frame_locals_of_a_generator
def gen():
    a = x
    yield a * 2
    yield a * 3
g = gen()
first = next(g)
g.gi_frame.f_locals["a"] = x + 1
return first, next(g), sorted(g.gi_frame.f_locals)

frame_locals_of_a_traceback
def fails(a):
    b = a * 2
    raise ValueError(1)
try:
    fails(x)
except ValueError as error:
    names = error.__traceback__.tb_next.tb_frame.f_locals
    return sorted(names), names["b"]

frame_locals_of_a_class_body
import sys
class Made:
    a = 1
    sys._getframe().f_locals["b"] = x
    c = b
return Made.c, Made.a

vars_and_dir
y = x
return sorted(vars()), dir(), y * 2

## type parameters have defaults (PEP 696)
type_parameter_defaults
def pick[T = int, *Ts = *tuple[int, str], **P = [int]](v: T) -> T:
    return v
class Held[T = float]:
    def __init__(self, v):
        self.v = v
type Alias[T = str] = list[T]
out = [[repr(p.__default__) for p in pick.__type_params__], [p.has_default() for p in Held.__type_params__]]
return out, Alias.__type_params__[0].__default__, pick(x), Held(x).v

no_default
from typing import NoDefault, TypeVar
T = TypeVar("T")
return T.__default__ is NoDefault, TypeVar("S", default=int).__default__, x

## classes
static_attributes
class Made:
    def __init__(self):
        self.a = x
        self.b = 1
    def more(self):
        self.c = 2
return sorted(Made.__static_attributes__), Made.__firstlineno__ > 0, Made().a

property_names
class Made:
    @property
    def twice(self):
        return x * 2
return Made.twice.__name__, Made().twice

docstrings_lose_their_indent
def f():
    '''First.
        second
    '''
return f.__doc__, x

class_bodies_with_lambdas_in_annotations
class Made[T]:
    value: T = x
    scope = [T.__name__ for _ in range(1)]
return Made.value, Made.scope

copies_with_changes
p = copy.replace(Point(x, 1), left=x * 2)
q = copy.replace(Pair(x, 2), right=3)
r = copy.replace(types.SimpleNamespace(a=x, b=1), b=2)
return p.left, p.right, q.left, q.right, r.a, r.b

copies_by_a_method
class Own:
    def __init__(self, a):
        self.a = a
    def __replace__(self, /, **changes):
        w.log.append(sorted(changes))
        return Own(changes.get("a", self.a))
return copy.replace(Own(x), a=x + 1).a

deprecated_functions
import warnings
@warnings.deprecated("old")
def old(v):
    return v * 2
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    out = old(x)
return out, [str(s.message) for s in seen], old.__deprecated__

enum_members
class Kind(enum.StrEnum):
    A = enum.auto()
    B = "bee"
return [k.value for k in Kind], Kind("bee").name, x

## generators
close_gives_a_value
def gen():
    try:
        yield x
    except GeneratorExit:
        return "closed", x * 2
g = gen()
first = next(g)
return first, g.close(), g.close()

close_after_a_break
def gen():
    total = x
    try:
        while True:
            total = total + (yield total)
    except GeneratorExit:
        return total
g = gen()
next(g)
a = g.send(x)
n = float(a.sum())
b = g.send(n)
return g.close(), b

close_while_handling
def gen():
    try:
        raise ValueError(1)
    except ValueError:
        try:
            yield x
        except GeneratorExit:
            return "inner"
g = gen()
next(g)
return g.close(), x

close_delegating
def inner():
    try:
        yield x
    except GeneratorExit:
        return "inner"
def outer():
    got = yield from inner()
    return got
g = outer()
first = next(g)
n = float(first.sum())
return first * n, g.close(), g.gi_frame is None

thrown_into_a_delegate
def inner():
    try:
        yield x
    except ValueError:
        yield x * 2
    finally:
        w.log.append("inner")
def outer():
    try:
        yield from inner()
    finally:
        w.log.append("outer")
g = outer()
first = next(g)
n = float(first.sum())
kind = type(g.gi_yieldfrom).__name__
second = g.throw(ValueError("thrown"))
m = float(second.sum())
g.close()
return first * n, second * m, kind, g.gi_yieldfrom

suspended_delegate_of_an_iterator
def outer():
    yield from [x, x * 2, x * 3]
g = outer()
a = next(g)
n = float(a.sum())
kind = type(g.gi_yieldfrom).__name__
b = next(g)
try:
    g.throw(ValueError("thrown"))
except ValueError as error:
    return a * n, b, kind, str(error)

await_over_a_break
class Once:
    def __await__(self):
        got = yield x
        return got
async def inner():
    return await Once()
async def main():
    got = await inner()
    return got * 2
c = main()
sent = c.send(None)
n = float(sent.sum())
kind = type(c.cr_await).__name__
try:
    c.send(n)
except StopIteration as stop:
    return kind, stop.value, sent

async_generator_closed
async def numbers():
    try:
        yield x
        yield x * 2
    finally:
        w.log.append("closed")
async def main():
    g = numbers()
    async for v in g:
        break
    await g.aclose()
    return v
c = main()
try:
    c.send(None)
except StopIteration as stop:
    return stop.value

async_comprehensions
async def numbers():
    for i in range(3):
        yield x * i
async def main():
    return [v async for v in numbers()], {i: v async for v in numbers() for i in (1,)}
c = main()
try:
    c.send(None)
except StopIteration as stop:
    return stop.value

## texts, calls
texts
v = float(x.sum())
return f"{v!r:>12}", f"{v:.2f}", f"{w.n}{w.items!s}", f"{'é'!a}", f"{w.n=}", f"{x.shape!r:^{w.n * 20}}"

keywords_in_many_ways
def f(a, /, b=2, *c, d, e=5, **k):
    return a, b, c, d, e, sorted(k)
part = functools.partial(f, x, d=1)
return f(x, d=4), f(1, *w.items, d=x, z=1), part(e=w.n), f(*(1, 2), **{"d": x, "q": 2}), Box(value=x).value

methods_with_keywords
class Own:
    def m(self, v, *, k=1):
        return v * k
own = Own()
bound = own.m
return own.m(x, k=2), bound(x, k=w.n), Own.m(own, x), torch.sum(x, dim=0), x.sum(dim=1, keepdim=True)

replace_with_a_count
return "aaa".replace("a", "b", count=2), x

batched
return [list(b) for b in itertools.batched([x, 1, 2], 2)], x

batched_strictly
try:
    return list(itertools.batched([x, 1, 2], 2, strict=True))
except ValueError as error:
    return str(error), x

new_in_math
return math.fma(2.0, 3.0, w.n), x * math.fma(1.0, 2.0, 3.0)

namespaces_from_mappings
s = types.SimpleNamespace({"a": x, "b": 2}, c=3)
return s.a, s.b, s.c

is_the_lock_there
import sys
return sys._is_gil_enabled(), x

## loops, conditions
many_locals
a, b, c, d = x, x * 2, w.n, 4
a, b = b, a
c, d = d, c
a = e = b + c
f, g = e, a
return a, b, c, d, f is g

truths
out = []
for v in (0, 1, "", "a", [], [0], {}, None, x, w.box, 1.5, 0.0, (), (x,)):
    if v is x:
        out.append(bool((v.sum() > 0)))
    elif not v:
        out.append("no")
    else:
        out.append("yes" if v else "never")
while out and not len(out) < 10:
    out.pop()
return out, x

truth_of_comparisons
class Odd:
    def __lt__(self, other):
        return [other]
    def __eq__(self, other):
        return []
odd = Odd()
a = "lt" if odd < 1 else "ge"
b = "eq" if odd == 1 else "ne"
c = odd < 2
return a, b, c, 1 if (x < 0).all() == True else 2

loops_left_early
out = []
for i in range(5):
    for j in (1, 2):
        if i * j == 4:
            break
    else:
        out.append(i)
        continue
    out.append((i, j))
    if float(x.sum()) > 1e9:
        break
return out

del_of_a_local
y = x * 2
del y
try:
    return y
except UnboundLocalError as error:
    return str(error), x

names_of_errors
out = []
for wrong in (lambda: nothing, lambda: w.nothing, lambda: max(x, nowhere=1), lambda: math.nothing):
    try:
        wrong()
    except (NameError, AttributeError, TypeError) as error:
        out.append((str(error), getattr(error, "name", None)))
return out, x

recursion_is_limited
def deep(n):
    return 1 + deep(n + 1)
try:
    return deep(0)
except RecursionError as error:
    return str(error), x

positions_of_a_traceback
import traceback
def fails(v):
    return (v + 1) / (w.n - w.n)
try:
    fails(1)
except ZeroDivisionError as error:
    frames = traceback.extract_tb(error.__traceback__)
    return [(f.name, f.lineno, f.colno, f.end_colno) for f in frames][-1], x

## locals and breaks
locals_snapshot_over_a_break
y = x * 2
first = locals()
n = float(y.sum())
first["y"] = "mine"
z = y + n
second = locals()
return sorted(first), first["y"], sorted(second), second["y"], second["first"] is first

locals_in_a_generator
def gen(a):
    b = a * 2
    one = locals()
    yield one
    b = float(b.sum())
    two = locals()
    yield two, one is two
g = gen(x)
one = next(g)
two, same = next(g)
return sorted(one), one["b"], sorted(two), two["b"], same

locals_of_closures
k = x * 2
def inner():
    m = k
    n = float(k.sum())
    return sorted(locals()), locals()["k"], n
return inner()

locals_with_cells_unbound
def inner():
    return late
seen = sorted(n for n in locals() if n in ("late", "inner", "x"))
late = float(x.sum())
return seen, inner(), "late" in locals()

exec_after_a_break
y = 1
n = float(x.sum())
exec("y = 5; m = n * 2; w.log.append(y)")
space = {}
exec("z = x * n", globals() | {"x": x, "n": n}, space)
return y, space["z"], "m" in locals()

eval_in_comprehensions
k = 3
out = [eval("k * 2") for k in range(2)]
return out, eval("k"), x * eval("k + 1", {"k": w.n})

exec_in_a_class_body
class Here:
    a = 1
    exec("b = a + 1")
    locals()["c"] = x * 2
    n = float(c.sum())
    d = sorted(k for k in locals() if not k.startswith("_"))
return Here.b, Here.c, Here.d, Here.n

frame_locals_proxy_over_breaks
import sys
y = x * 2
proxy = sys._getframe().f_locals
for k in range(3):
    proxy["y"] = proxy["y"] + float(y.sum()) * k
    proxy["extra"] = k
return y, proxy["extra"], "extra" in locals(), list(reversed(proxy)) == list(proxy)[::-1]

frame_locals_proxy_or
import sys
y = 1
proxy = sys._getframe().f_locals
n = float(x.sum())
d = proxy | {"y": 2}
try:
    proxy |= {"y": 5, "q": 1}
except TypeError as error:
    d["error"] = str(error)
return type(d).__name__, d["y"], y, n, "q" in proxy

frame_locals_of_two_frames
import sys
def helper(k):
    caller = sys._getframe(1)
    mine = sys._getframe()
    n = float(caller.f_locals["y"].sum())
    caller.f_locals["y"] = caller.f_locals["y"] * k
    mine.f_locals["k"] = 10
    return n, k
y = x + 1
a = helper(2)
b = helper(3)
return a, b, y

pdb_like_tracing
import sys
y = x
def tracer(frame, event, arg):
    if event == "line" and "z" in frame.f_locals:
        frame.f_locals["z"] = frame.f_locals["z"] * 2
    return tracer
def traced(t):
    z = t + 1
    z = z
    return z
old = sys.gettrace()
sys.settrace(tracer)
try:
    out = traced(x)
finally:
    sys.settrace(old)
return out, float(out.sum())

## classes, copies, warnings
static_attributes_of_a_class_with_a_break
class Made:
    def __init__(self, t):
        self.a = t
        self.n = float(t.sum())
    def later(self):
        self.z = self.a * self.n
        return [self for self.q in (1, 2)]
m = Made(x)
m.later()
return sorted(Made.__static_attributes__), m.z, m.q, "__static_attributes__" in Made.__dict__

first_line_numbers
class A:
    pass
class B[T](A):
    x = 1
n = float(x.sum())
return B.__firstlineno__ - A.__firstlineno__, n

copies_that_break
class Own:
    def __init__(self, t, n=0):
        self.t, self.n = t, n
    def __replace__(self, /, **changes):
        n = float(self.t.sum())
        return Own(changes.get("t", self.t * n), n)
o = copy.replace(Own(x))
p = copy.replace(Frozen(1, 2), b=w.n)
q = copy.replace(Point(x, 1), right=o.n)
r = copy.replace(Typed(x), n=float(x.sum()))
out = []
for wrong in (lambda: copy.replace(Frozen(1), c=1), lambda: copy.replace(5), lambda: copy.replace(Pair(1), z=2)):
    try:
        wrong()
    except (TypeError, ValueError) as error:
        out.append(str(error))
return o.t, o.n, p, q.left, q.right, r, out

deprecated_classes
import warnings
@warnings.deprecated("gone", category=FutureWarning)
class Old:
    def __init__(self, t):
        self.t = t
class New(Old):
    pass
class Some:
    @warnings.deprecated("method")
    def go(self, t):
        return t * float(t.sum())
    @staticmethod
    @warnings.deprecated("static")
    def stat(t):
        return t + 1
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    a = Old(x).t
    b = New(x).t
    c = Some().go(x)
    d = Some.stat(x)
    class Sub(Old):
        pass
return a, b, c, d, [(str(s.message), s.category.__name__) for s in seen]

deprecated_without_warning
import warnings
@warnings.deprecated("quiet", category=None)
def quiet(t):
    return t * 2
return quiet(x), quiet.__deprecated__

deprecated_each_call
import warnings
@warnings.deprecated("loud", stacklevel=1)
def loud(t):
    return t * 2
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    out = [loud(x) for _ in range(2)]
    n = float(x.sum())
    out.append(loud(x) * n)
return out, len(seen)

partial_in_a_class_warns
import warnings
class A:
    p = functools.partial(torch.add, x)
    s = staticmethod(functools.partial(torch.mul, x))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    a = A().p(x)
    b = A().s(x)
return a, b, [(s.category.__name__, str(s.message)[:40]) for s in seen]

parameter_defaults_over_a_break
def default():
    w.log.append("default")
    return int if float(x.sum()) > 0 else str
def f[T = default()](a: T) -> T:
    return a * 2
y = f(x)
n = float(y.sum())
return f.__type_params__[0].__default__, f.__type_params__[0].__default__, y * n

generic_class_with_defaults
class A[T = int, *Ts = *tuple[int, str]]:
    def go(self, v: T):
        return v * float(v.sum())
return A().go(x), str(A.__parameters__), str(A[str]), str(A[str, int])

type_is_and_read_only
from typing import ReadOnly, TypeIs, TypedDict
class D(TypedDict):
    a: ReadOnly[int]
def is_tensor(v) -> TypeIs[torch.Tensor]:
    return isinstance(v, torch.Tensor)
n = float(x.sum())
return sorted(D.__readonly_keys__), is_tensor(x), n

docstrings
class Doc:
    '''Head.
    Body.
    '''.strip()
def f(t):
    '''
        a
          b
    '''
    return t * float(t.sum())
return f.__doc__, f(x)

names_in_class_scopes
class Outer[T]:
    k = 3
    class Inner:
        rows = [T.__name__ for _ in range(1)]
    type A = tuple[k, T]
    f = lambda self: x * Outer.k
n = float(x.sum())
return Outer.Inner.rows, str(Outer.A.__value__), Outer().f() * n

named_properties
class P:
    @property
    def a(self):
        return float(x.sum())
    @a.setter
    def a(self, v):
        w.log.append(v)
    @functools.cached_property
    def b(self):
        return x * self.a
p = P()
p.a = 3
return P.a.__name__, p.a, p.b, p.b is p.b

enum_dict_and_members
class K(enum.Enum):
    A = 1
    B = enum.member(2)
    C = enum.nonmember(3)
    def go(self, t):
        return t * self.value
return [k.go(x) for k in K], K.C, 1 in K, float(x.sum())

## generators that are closed
close_gives_over_breaks
def averager():
    total, count = x * 0, 0
    try:
        while True:
            got = yield
            total = total + got
            count += 1
            w.log.append(float(got.sum()))
    except GeneratorExit:
        n = float(total.sum())
        return total / count, n
g = averager()
next(g)
for k in range(2):
    g.send(x * k)
return g.close()

close_not_started
def gen():
    yield x
    return 1
g = gen()
a = g.close()
h = gen()
list(h)
return a, h.close(), x

## the rest
queues_shut_down
import queue
q = queue.Queue()
q.put(x)
a = q.get()
q.shutdown()
try:
    q.get()
except queue.ShutDown as error:
    return a * 2, type(error).__name__

math_of_313
return math.fma(x.shape[0], 2.0, w.n), [math.fma(0.1, 10.0, -1.0)], x * math.fma(1.5, 2.0, float(x.sum()))

errors_speak_of_keywords
out = []
def f(alpha, *, beta=1):
    return alpha
for wrong in (lambda: f(1, betta=2), lambda: f(x, gamma=1), lambda: f(), lambda: Box(vlaue=1)):
    try:
        wrong()
    except TypeError as error:
        out.append(str(error))
return out, x

errors_of_attributes
out = []
for wrong in (lambda: x.shpae, lambda: w.box.vlaue, lambda: "a".foo, lambda: math.sqroot):
    try:
        wrong()
    except AttributeError as error:
        out.append((str(error), error.name, error.obj is not None))
return out

loops_over_breaks
out = []
for i in range(3):
    for j in range(3):
        if i == j:
            continue
        v = float((x * i).sum()) + j
        if v > 1e9:
            break
        out.append(v)
    else:
        out.append("else")
while len(out) > 5:
    out.pop()
    if float(x.sum()) > 1e9:
        break
else:
    out.append("while")
return out

two_in_one_instructions
a, b, c = x, x * 2, 3
a, b = b, a
n = float(a.sum())
b = a = a + n
c, a = a, c
d = c if a else b
(e, f), g = (c, d), a
return a, b, c, d, e, f, g

del_and_check
a = x
if float(x.sum()) > 1e9:
    b = 1
try:
    b
except UnboundLocalError as error:
    a = a * 2
    t = str(error)
del a
return "a" in locals(), t, "error" in locals()

weak_and_timed
import weakref
class W:
    pass
o = W()
r = weakref.ref(o)
n = float(x.sum())
return r() is o, n
"""
