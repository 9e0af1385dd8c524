# size: table
"""Programs of the language, of control: generators, exceptions, patterns, modules; as programs_language has them."""

PROGRAMS = """
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

"""
