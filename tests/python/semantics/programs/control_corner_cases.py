# size: table
"""Unusual flow of control, with a break at an odd place: exceptions, generators, contexts. As programs_library."""

PROGRAMS = r"""
nested_generators_break
def inner(n):
    try:
        for i in range(n):
            got = yield x * i
            if got is not None: w.log.append(got)
    finally: w.log.append("inner done")
    return n * 10
def outer(n):
    try: r = yield from inner(n)
    finally: w.log.append("outer done")
    yield r
g = outer(w.n); out = [next(g).sum().item()]
try:
    while True:
        v = g.send(len(out)); out.append(v.sum().item() if isinstance(v, torch.Tensor) else v)
except StopIteration as e: out.append(e.value)
return out

return_in_finally
def f(t):
    try:
        if t.sum().item() > 0: return "pos"
        raise ValueError("neg")
    except ValueError as e: return str(e)
    else: return "else"
    finally:
        w.log.append("fin")
        if w.n == 4: return "swallowed"
return f(x), f(-x)

continue_in_finally
out = []
for i in range(w.n):
    try:
        if i % 2: continue
        out.append((x * i).sum().item())
    except KeyError: pass
    else: out.append("e")
    finally:
        out.append(i)
        if i == 4: break
return out

exitstack_order
with contextlib.ExitStack() as st:
    st.callback(w.log.append, "cb")
    @st.callback
    def _(): w.log.append(x.sum().item())
    cm = st.enter_context(contextlib.nullcontext(x * w.n))
    st.push(lambda *e: w.log.append(e[0].__name__ if e[0] else None) or (e[0] is ZeroDivisionError))
    v = cm.sum().item()
    if w.n % 2: 1 / 0
return v, w.log[-3:]

suppress_partial
out = []
with contextlib.suppress(KeyError, IndexError):
    out.append(x.sum().item()); out.append({}["q"]); out.append("never")
with contextlib.suppress(ZeroDivisionError):
    out.append(w.n // (w.n - 4))
return out

contextmanager_exceptions
@contextlib.contextmanager
def cm(n):
    w.log.append(("enter", n))
    try: yield x * n
    except ValueError as e: w.log.append(("caught", str(e)))
    finally: w.log.append("exit")
with cm(w.n) as t:
    v = t.sum().item()
    if v > 0: raise ValueError(f"bad {x.shape[0]}")
    w.log.append("fine")
return v

async_by_send
async def leaf(n): return x * n
class Aw:
    def __init__(s, v): s.v = v
    def __await__(s):
        got = yield s.v
        return got
async def main():
    a = await leaf(w.n)
    b = await Aw(a.sum().item())
    c = await Aw("second")
    return a, b, c
co = main(); out = []
try:
    out.append(co.send(None)); out.append(co.send(x.shape[0])); co.send("end")
except StopIteration as e: out.append(e.value)
return out

async_for_with
class It:
    def __init__(s, n): s.n = n
    def __aiter__(s): return s
    async def __anext__(s):
        if s.n == 0: raise StopAsyncIteration
        s.n -= 1
        return x[s.n % x.shape[0]].sum().item()
class CM:
    async def __aenter__(s): w.log.append("in"); return 2
    async def __aexit__(s, *e): w.log.append(e[0] and e[0].__name__); return True
async def main():
    out = []
    async with CM() as k:
        async for v in It(w.n): out.append(v * k)
        raise KeyError(1)
    return out, [q async for q in It(2)]
try: main().send(None)
except StopIteration as e: return e.value

del_local_nameerror
z = x * 2
s = z.sum().item()
del z
out = []
try: z
except UnboundLocalError as e: out.append(str(e))
def g():
    return inner
try: g()
except NameError as e: out.append(str(e))
inner = 3
def h():
    nonlocal inner
    inner += x.shape[0]; return inner
out.append(h()); del inner
try: h()
except NameError as e: out.append(str(e))
try: undefined_name + s
except NameError as e: out.append((str(e), e.name))
return out

exception_notes
def f(n):
    try:
        if x.sum().item() * n > 0: raise ValueError(f"v{n}")
        raise KeyError(n)
    except Exception as e:
        e.add_note(f"note {x.shape[0]}"); e.extra = w.n
        raise
out = []
for n in (1, -1):
    try: f(n)
    except (ValueError, KeyError) as e: out.append((type(e).__name__, [*e.args], e.__notes__, e.extra, e.__traceback__.tb_next.tb_lineno - e.__traceback__.tb_lineno))
return out

exception_groups
out = []
def work(n):
    errs = []
    for i in range(n):
        try:
            if (x * i).sum().item() > 0: raise ValueError(i)
            if i % 2: raise TypeError(str(i))
            1 / (i - 2)
        except Exception as e: errs.append(e)
    if errs: raise ExceptionGroup(f"g{n}", errs)
try: work(w.n)
except* ValueError as g: out.append(("v", [e.args for e in g.exceptions]))
except* (TypeError, ZeroDivisionError) as g: out.append((g.message, len(g.exceptions), [type(e).__name__ for e in g.exceptions]))
return out

except_star_reraise
out = []
try:
    try: raise ExceptionGroup("a", [ValueError(w.n), ExceptionGroup("b", [KeyError("k"), ValueError(x.shape[0])])])
    except* ValueError as g:
        out.append(x.sum().item()); out.append([str(e) for e in g.exceptions])
except ExceptionGroup as g: out.append((g.message, repr(g.exceptions), g.subgroup(KeyError) is not None, g.split(ValueError)[0]))
return out

warnings_levels
def a(): warnings.warn(f"size {x.shape[0]}", DeprecationWarning, stacklevel=2)
def b(): a()
b(); s = x.sum().item(); b()
with warnings.catch_warnings(record=True) as rec:
    warnings.simplefilter("always"); warnings.warn("inner", UserWarning); a()
return len(rec), [str(r.message) for r in rec], rec[0].lineno - rec[1].lineno, s

warnings_as_errors_over_a_break
with warnings.catch_warnings():
    warnings.simplefilter("error", UserWarning)
    try: warnings.warn(f"n{w.n} {x.sum().item() > 0}")
    except UserWarning as e: return str(e), e.args

recursion_error
def f(n, t): return f(n + 1, t)
try: f(0, x)
except RecursionError as e: return str(e)[:30], x.sum().item()

generator_throw_close
log = []
def g():
    try:
        while True:
            try: v = yield x.sum().item()
            except ValueError as e: log.append(str(e)); yield "handled"
            else: log.append(v)
    except GeneratorExit: log.append("exit"); raise
    finally: log.append(x.shape[0])
k = g(); a = next(k); b = k.throw(ValueError(f"n{w.n}")); c = k.send(None); k.close()
try: next(k)
except StopIteration as e: log.append(e.value)
return a, b, c, log

generator_state_over_calls
|def counter():
|    n = 0
|    while True:
|        got = yield n
|        n += 1 if got is None else got
|GEN = counter(); next(GEN)
a = GEN.send(w.n); s = (x * a).sum().item(); b = next(GEN)
return x * b, a, s

try_in_loop_with_else
out = []
for i, row in enumerate(x):
    try:
        v = row.sum().item()
        if v < 0: raise ValueError(i)
        if i == 2: continue
    except ValueError as e: out.append(("neg", e.args[0]))
    else: out.append(("ok", i))
    finally: out.append(i * w.n)
else: out.append("end")
return out

with_multiple_and_as
class CM:
    def __init__(s, n, eat=()): s.n = n; s.eat = eat
    def __enter__(s): w.log.append(("in", s.n)); return x * s.n
    def __exit__(s, t, v, tb):
        w.log.append(("out", s.n, t and t.__name__, v and str(v), tb is not None)); return t is not None and issubclass(t, s.eat)
with CM(1, (KeyError,)) as a, CM(w.n, (ValueError,)) as b:
    s = (a + b).sum().item()
    if s > 0: raise KeyError("k")
    else: raise ValueError("v")
return s, w.log[-4:]

yields_in_expressions
def g():
    a = (yield 1) + (yield 2); b = f"{(yield 3)}-{a}"
    return a, b
k = g(); next(k); k.send(w.n); k.send(x.shape[0])
s = x.sum().item()
try: k.send("z")
except StopIteration as e: return e.value, s

exc_context_chain
def f():
    try: x.sum().item() / 0 if w.n % 2 else {}["k"]
    except ZeroDivisionError as e: raise ValueError("outer") from e
    except KeyError: raise TypeError(f"n{w.n}")
try: f()
except (ValueError, TypeError) as e:
    v = x.mean().item()
    return type(e.__cause__), type(e.__context__), e.__suppress_context__, str(e), v, e.__traceback__ is not None

exc_reraised_same_object
saved = []
def f():
    try: raise ValueError(x.sum().item())
    except ValueError as e: saved.append(e); raise
try: f()
except ValueError as e2:
    v = x.mean().item()
    r = e2 is saved[0], v
try: raise saved[0]
except ValueError as e3: return r, e3 is saved[0], e3.args

exc_group_class
class MyGroup(ExceptionGroup):
    def derive(self, excs): return MyGroup(self.message, excs)
try: raise MyGroup("m", [ValueError(w.n), TypeError(x.sum().item())])
except* ValueError as g: r = type(g).__name__, g.exceptions[0].args
except* TypeError as g: r2 = type(g).__name__, g.exceptions[0].args
return r, r2

exc_in_generator_cleanup
log = []
def g():
    try: yield x.sum().item(); yield 2
    finally: log.append(w.n);
for v in g():
    log.append(v); break
try:
    for v in g(): raise KeyError(v)
except KeyError as e: log.append(e.args)
return log

stopiteration_in_generator
def g():
    yield x.sum().item()
    raise StopIteration(w.n)
k = g(); a = next(k)
try: next(k)
except RuntimeError as e: return a, str(e), type(e.__cause__), e.__cause__.value

finally_overrides
def f(n):
    for i in range(n):
        try: return (x * i).sum().item()
        finally:
            if i < 2: continue
    return "end"
def g():
    try: raise ValueError(1)
    finally: return x.mean().item()
return f(w.n), g(), f(0)

sys_exc_info_break
out = []
try: {}[w.n]
except KeyError:
    out.append(sys.exc_info()[0].__name__); v = x.sum().item(); out.append((sys.exc_info()[1].args, v))
    try: 1 / 0
    except ZeroDivisionError as e: out.append(type(e.__context__).__name__); u = x.mean().item(); out.append(sys.exc_info()[0].__name__)
    out.append(sys.exc_info()[0].__name__)
out.append(sys.exc_info())
return out

traceback_text
def inner(n):
    if x.sum().item() * n > 0: raise ValueError(f"n{n}")
    raise KeyError(n)
try: inner(w.n)
except Exception as e:
    t = traceback.format_exc(); tb = traceback.extract_tb(e.__traceback__)
    return [l.strip() for l in t.splitlines() if "Error" in l or "line" in l], [(f.name, f.lineno) for f in tb], traceback.format_exception_only(e)

assert_messages
out = []
for k in (w.n, 3):
    try: assert x.shape[0] == k, f"want {k}, got {x.shape[0]} {x.sum().item() > 0}"
    except AssertionError as e: out.append(str(e))
try: assert x.sum() > 1e9
except AssertionError as e: out.append(e.args)
return out
"""
