# size: table
"""What CPython 3.13 brought, as programs_language has it: run by test_language.py on 3.13 and later."""

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
"""
