# size: table
"""Programs whose world is changed from outside between their calls, and programs of the language's corners. As
programs_library, with the prelude of programs_torch."""

PROGRAMS = r"""
between_hooks_added_removed
|NET = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).requires_grad_(False)
|nn.init.constant_(NET[0].weight, 0.2); nn.init.zeros_(NET[0].bias)
|HS = []; LOGS = []
|def between(w, i):
|    w.n += 1
|    if i in (1, 3): HS.append(NET[0].register_forward_hook(lambda m, a, o: LOGS.append(i) or o + i))
|    if i == 2: HS.append(NET.register_forward_pre_hook(lambda m, a: (a[0] * 2,)))
|    if i == 4: HS.pop(0).remove()
|    if i == 6:
|        while HS: HS.pop().remove()
return NET(x), list(LOGS)

between_weights_swapped_tied
|A = nn.Linear(4, 4, bias=False).requires_grad_(False); B = nn.Linear(4, 4, bias=False).requires_grad_(False)
|nn.init.constant_(A.weight, 0.2); nn.init.constant_(B.weight, 0.7)
|def between(w, i):
|    if i == 1: A.weight, B.weight = B.weight, A.weight
|    if i == 2: B.weight = A.weight
|    if i == 3: A.weight.data = A.weight.data.clone() * 2
|    if i == 4: A.weight = nn.Parameter(torch.ones(4, 4).t()[:, :], requires_grad=False)
|    if i == 5: A.weight.data = torch.ones(4, 4, dtype=torch.float32)[:, :] * i
|    if i == 6: B.weight = nn.Parameter(torch.ones(2, 4), requires_grad=False)
A.weight.add_(0.5) if w.n == 2 else None
return B(A(x)), A.weight is B.weight, A.weight.data_ptr() == B.weight.data_ptr()

between_default_dtype_and_modes
|def between(w, i):
|    torch.set_default_dtype([torch.float32, torch.float64, torch.float32, torch.float64, torch.float32, torch.float32][i - 1])
|    w.n += 1
try: return torch.ones(3) * w.n, torch.tensor(1.5) + x.sum(), torch.arange(3) / 2, torch.zeros(2).dtype
finally: torch.set_default_dtype(torch.float32) if w.n == 8 else None

between_class_attributes
|class Cfg: scale = 2; names = ["a"]; act = staticmethod(torch.relu)
|class Sub(Cfg): pass
|def between(w, i):
|    if i == 1: Cfg.scale = 3
|    if i == 2: Sub.scale = 5
|    if i == 3: Cfg.names.append("b")
|    if i == 4: del Sub.scale; Cfg.act = staticmethod(torch.tanh)
|    if i == 5: Sub.__call__ = lambda s, t: t * 9
|    if i == 6: Sub.__bases__ = (Base2,)
|class Base2: scale = 11; names = []; act = staticmethod(torch.sin)
s = Sub()
return s.act(x) * s.scale, len(s.names), callable(s), Sub.__mro__[1].__name__

between_methods_patched
|class M(nn.Module):
|    def forward(s, t): return s.step(t) + 1
|    def step(s, t): return t * 2
|NET = M()
|def between(w, i):
|    if i == 1: NET.step = lambda t: t * 3
|    if i == 2: M.step = lambda s, t: t * 4
|    if i == 3: del NET.step
|    if i == 4: NET.forward = types.MethodType(lambda s, t: t - 1, NET)
|    if i == 5: del NET.forward; M.forward = lambda s, t: s.step(t) * 10
|    if i == 6: NET.__class__ = type("M2", (M,), {"step": lambda s, t: t * 0})
return NET(x), type(NET).__name__

between_function_code_swapped
|def f1(t, k=2): return t * k
|def f2(t, k=3): return t + k
|def between(w, i):
|    if i == 1: f1.__code__ = f2.__code__
|    if i == 2: f1.__defaults__ = (7,)
|    if i == 3: f1.__kwdefaults__ = {}
|    if i == 4: f2.__dict__["k"] = 1
|    if i == 5: globals()["f1"] = f2
return f1(x), f1.__defaults__, getattr(f1, "k", None)

between_global_types_change
|VAL = 1
|def between(w, i):
|    global VAL
|    VAL = [1, 2.0, True, None, "s", torch.ones(4), np.float32(2)][i]
if VAL is None: return x, "none"
if isinstance(VAL, str): return x, VAL * 2
return x * VAL, type(VAL).__name__, VAL == 1 if not isinstance(VAL, torch.Tensor) else 0

between_dict_order_and_keys
|D = {"a": 1, "b": 2, "c": 3}
|def between(w, i):
|    if i == 1: D["a"] = D.pop("a")
|    if i == 2: D.update(b=5)
|    if i == 3: D.clear(); D.update({"z": 1})
|    if i == 4: D[1] = 2; D[1.0] = 3; D[True] = 4
|    if i == 5: D[(1, "t")] = x0
|x0 = torch.ones(4)
y = x
for k, v in D.items(): y = y * 2 + v
return y, list(D), D.get(1), D.get("b", -1)

between_list_aliasing
|L = [1, 2]; OUT = {"l": L, "m": [3]}
|def between(w, i):
|    if i == 1: OUT["m"] = L
|    if i == 2: L.append(L[0])
|    if i == 3: OUT["l"] = list(L)
|    if i == 4: OUT["m"] = OUT["l"]
|    if i == 5: OUT["l"].append(OUT)
OUT["l"].append(w.n); OUT["m"].append(-1)
return x * sum(v for v in OUT["l"] if isinstance(v, int)), OUT["l"] is OUT["m"], len(L), len(OUT["m"])

between_closure_cells
|def mk():
|    k = 1; t = torch.ones(4); l = []
|    def f(v): l.append(k); return v * k + t
|    def s(a, b):
|        nonlocal k, t
|        k, t = a, b
|    return f, s, l
|F_, S_, L_ = mk()
|def between(w, i): S_(*[(2, torch.ones(4)), (2.5, torch.zeros(4)), (3, torch.ones(1)), (True, torch.ones(4, dtype=torch.float64)), (torch.tensor(2.0), 5), ("", 0)][i - 1])
try: return F_(x), len(L_)
except TypeError as e: return str(e), len(L_)

between_enum_and_constants
|class E(enum.Enum):
|    A = 1
|    B = 2
|CUR = [E.A]
|def between(w, i): CUR[0] = E.B if i % 2 else E.A; w.cfg.act = "tanh" if i > 3 else "relu"
match (CUR[0], w.cfg.act):
    case (E.A, "relu"): return x + 1
    case (E.B, str(a)) if a == "relu": return x * 2, a
    case (e, "tanh"): return x.tanh(), e.name

between_module_structure
|NET = nn.ModuleDict({"a": nn.Identity()})
|def between(w, i):
|    if i == 1: NET["b"] = nn.Tanh()
|    if i == 2: NET["a"] = nn.Hardtanh(-0.1, 0.1)
|    if i == 3: del NET["b"]
|    if i == 4: NET["c"] = NET["a"]
|    if i == 5: NET["a"].max_val = 0.05
|    if i == 6: NET.register_buffer("scale", torch.tensor(3.0))
for k in NET: x = NET[k](x) + 0.1
return x * getattr(NET, "scale", 1), len(list(NET.modules())), [n for n, _ in NET.named_buffers()]

between_training_flags_and_requires_grad
|NET = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)); nn.init.constant_(NET[0].weight, 0.2); nn.init.zeros_(NET[0].bias)
|def between(w, i):
|    if i == 1: NET.eval()
|    if i == 2: NET.requires_grad_(False)
|    if i == 3: NET[1].train()
|    if i == 4: NET[0].bias.requires_grad_(True)
|    if i == 5: NET[1].p = 0.0
|    if i == 6: NET[1].inplace = True; NET[1].p = 0.9
torch.manual_seed(3)
y = NET(x)
return y, y.requires_grad, y.grad_fn is None, NET.training

between_input_kinds
|KIND = [0]
|def between(w, i): KIND[0] = i
k = KIND[0]
t = [x, x.t(), x.double(), x[:, ::2], x.expand(2, *x.shape), x.int(), x > 0][k]
u = t + t
return u, u.is_contiguous(), t.sum(), t.stride(), (u * 2.0).dtype, t.any()

between_subclass_parameter
|class MyP(nn.Parameter): pass
|class MyT(torch.Tensor): pass
|NET = nn.Linear(4, 2, bias=False).requires_grad_(False); nn.init.constant_(NET.weight, 0.5)
|def between(w, i):
|    if i == 2: NET.weight = MyP(torch.ones(2, 4), requires_grad=False)
|    if i == 4: NET.weight = nn.Parameter(torch.ones(2, 4).as_subclass(MyT), requires_grad=False)
|    if i == 5: NET.weight = nn.Parameter(torch.zeros(2, 4), requires_grad=False)
y = NET(x)
return y, type(NET.weight).__name__, type(y).__name__

exceptions_break_loop_state
got = []
for i, r in enumerate(x):
    try:
        if i == w.n % 3: raise KeyError(i)
        got.append(r * i)
    except KeyError as e:
        got.append(e.args[0]); continue
    else: got.append("ok")
    finally: w.log.append(i)
    if i > 2: break
else: got.append("all")
return got, len(w.log)

exception_args_from_state
|class Bad(Exception):
|    def __init__(self, cfg, t): super().__init__(cfg, t); self.cfg, self.t = cfg, t
try: raise Bad(w.cfg, x * 2)
except Bad as e: k = e
w.log.append(k.args[0].hidden)
return k.cfg is w.cfg, k.args[1] is k.t, k.t, k, w.log

exception_kept_in_state
try: [1][w.n]
except IndexError as e: w.last = e
try:
    try: raise ValueError(w.n) from w.last
    finally: w.log.append("f")
except ValueError as e: c = e.__cause__; w.last2 = e
return x + 1, c is w.last, str(w.last), w.last2.__cause__ is c, w.last.__traceback__ is not None

exception_group_split
try: raise ExceptionGroup("g", [ValueError(w.n), TypeError("t"), ExceptionGroup("h", [KeyError("k"), ValueError(1)])])
except* ValueError as g: a = [str(e) for e in g.exceptions]; x = x * 2
except* (TypeError, KeyError) as g: b = g.message, len(g.exceptions)
return x, a, b

exception_suppress_context_variants
def run(k):
    try:
        try: {}["a"]
        except KeyError as e:
            if k == 0: raise ValueError("v") from None
            if k == 1: raise ValueError("v") from e
            if k == 2: raise
            raise ValueError("v")
    except Exception as e: return type(e).__name__, e.__suppress_context__, repr(e.__cause__), repr(e.__context__), e.__traceback__.tb_lineno - e.__traceback__.tb_frame.f_code.co_firstlineno
return [run((w.n + i) % 4) for i in range(4)], x

generator_send_state_machine
def machine(t):
    tot = 0; cmd = yield "ready"
    while True:
        try:
            match cmd:
                case ("add", k): tot = tot + t * k; cmd = yield tot
                case "reset": tot = 0; cmd = yield None
                case None: return tot
                case _: raise ValueError(cmd)
        except ValueError as e: cmd = yield str(e)
m = machine(x); out = [next(m)]
for c in (("add", w.n), "bad", ("add", 1), "reset", ("add", 2)): out.append(m.send(c))
try: m.send(None)
except StopIteration as e: out.append(e.value)
return out

generator_throw_return_values
def g():
    try: yield x
    except ValueError as e: yield x * e.args[0]
    except GeneratorExit: w.log.append("exit"); raise
    finally: w.log.append("fin")
    return "done"
a = g(); y = next(a); z = a.throw(ValueError(w.n))
b = g(); next(b); b.close()
c = g(); next(c)
try: c.throw(KeyError, KeyError("k"))
except KeyError as e: k = repr(e)
return y, z, next(a, "end"), w.log[-4:], k, b.gi_frame is None

generator_lazy_side_effect_order
def src(n):
    for i in range(n): w.log.append(("s", i)); yield x[i % x.shape[0]] + i
def mul(it, k):
    for v in it: w.log.append("m"); yield v * k
it = mul(src(w.n), 2)
a = next(it); b = list(itertools.islice(it, 2)); w.log.append("mid"); c = sum(it, torch.zeros(4))
return a, b, c, w.log[-6:]

generator_recursion_and_context
|@contextlib.contextmanager
|def scope(w, n):
|    w.log.append("+" + n)
|    try: yield n.upper()
|    except RuntimeError as e: w.log.append("!" + str(e)); raise ValueError("from " + n) from e
|    finally: w.log.append("-" + n)
try:
    with scope(w, "a") as a, scope(w, "b") as b:
        if w.n % 2: raise RuntimeError("r")
        y = x * 2
except ValueError as e: y = str(e), repr(e.__cause__), type(e.__cause__.__cause__).__name__
return y, w.log[-6:]

async_with_and_iter_sync_run
class It:
    def __init__(s, n): s.i, s.n = 0, n
    def __aiter__(s): return s
    async def __anext__(s):
        if s.i >= s.n: raise StopAsyncIteration
        s.i += 1; return s.i
class C:
    async def __aenter__(s): w.log.append("in"); return 2
    async def __aexit__(s, *a): w.log.append("out"); return a[0] is ZeroDivisionError
async def work(t):
    async with C() as k:
        async for i in It(w.n): t = t + i * k
        if w.n % 2: 1 // 0
    return t, [j async for j in It(2)]
def run(c):
    try:
        while True: c.send(None)
    except StopIteration as e: return e.value
return run(work(x)), w.log[-2:]

asyncio_run_inside
import asyncio
async def a(k): await asyncio.sleep(0); return x * k
async def main(): return await asyncio.gather(a(1), a(w.n))
return asyncio.run(main())

match_classes_and_guards
|@dataclasses.dataclass
|class Lin: w: int; b: int = 0
|@dataclasses.dataclass
|class Seq: parts: list
|def ev(l, t):
|    match l:
|        case Lin(w=k, b=0): return t * k
|        case Lin(k, b) if b > 2: return t * k + b
|        case Lin(): return t
|        case Seq([first, *rest]): return ev(Seq(rest), ev(first, t))
|        case Seq([]): return t
|        case {"op": ("sin" | "cos") as op, **kw}: return getattr(t, op)() * kw.get("k", 1)
|        case [int() | float() as s, *_]: return t + s
|        case str(): raise TypeError(l)
|        case None | True: return -t
|        case _: return ("?", type(l).__name__)
try: ev("s", x)
except TypeError as e: m = str(e)
return ev(Seq([Lin(w.n), {"op": "sin", "k": 2}, [w.n, 2], None, Lin(2, w.n)]), x), ev(3j, x), m

walrus_in_conditions_and_comps
n = 0
while (n := n + 1) < w.n and (s := x.shape[0] * n) < 20: pass
vals = [y for i in range(4) if (y := i * w.n) % 2 == 0]
d = {k: v for k in "ab" if (v := len(k) + w.n)}
if (m := max(vals, default=None)) is not None and (z := m + 1) > 3: x = x * z
return x, n, s, vals, y, d, m, (lambda: (q := w.n) + q)()

star_args_shuffle
def f(a, b=2, /, c=3, *args, d, e=5, **kw): return a, b, c, args, d, e, sorted(kw.items())
a = f(*[1, w.n], **{"d": 1, "z": x.shape[0]}); b = f(1, *range(w.n), d=2, **dict(e=1), **{"q": 0})
errs = []
for bad in (lambda: f(), lambda: f(1, a=2, d=1), lambda: f(1, d=1, **{"d": 2}), lambda: f(1, b=2), lambda: f(*[1], **{1: 2})):
    try: errs.append(bad())
    except TypeError as e: errs.append(str(e).replace(f.__qualname__, "f"))
return a, b, errs, x

nested_function_defaults_late
fs = []; k = w.n
for i in range(3):
    def g(t, i=i, *, j=k): nonlocal k; k += 1; return t * i + j + k
    fs.append(g)
out = [g(x) for g in fs]; fs[0].__defaults__ = (9,); fs[1].__kwdefaults__["j"] = 0
return out, [g(x) for g in fs], k

global_and_nonlocal_swap
|CNT = 0; TOT = torch.zeros(4)
|def bump(t):
|    global CNT, TOT, FRESH
|    CNT += 1; TOT = TOT + t.sum(0); FRESH = CNT * 2
|    return FRESH
r = bump(x)
if w.n == 4: del globals()["FRESH"]
return x * r, CNT, TOT, "FRESH" in globals()

del_and_unbound_locals
a = w.n
if a % 2: del a
try: y = x * a
except UnboundLocalError as e: y = str(e)
def inner():
    try: return zz
    except NameError as e: return type(e).__name__, str(e), e.name
zz = 1; del zz
try: undefined_thing
except NameError as e: n = e.name, str(e)
return y, inner(), n

chained_compare_side_effects
c = []
def v(k): c.append(k); return k
a = v(1) < v(w.n) < v(4); b = v(3) == v(3) != v(w.n) in (1, 2); d = not v(0) or v(w.n) and v(7)
return x + a + b, d, c

in_place_ops_on_everything
l = [1]; m = l; l += (2, 3); l *= 2; s = {1}; q = s; s |= {w.n}; s -= {1}; d = {"a": 1}; e = d; d |= {"b": 2}; t = (1,); u = t; t += (2,); z = "a"; z *= w.n; b = bytearray(b"x"); c = b; b += b"y"; i = w.n; i **= 2; i //= 3; i <<= 1; i ^= 5; i %= 7; f = 1.5; f @= M2()
return x, l is m, m, q, e, u, t, z, c, i, f
|class M2:
|    def __rmatmul__(s, o): return o * 2

slice_objects_and_getitem
class P:
    def __getitem__(s, k): return k
    def __setitem__(s, k, v): w.log.append((k, v))
    def __delitem__(s, k): w.log.append(("del", k))
p = P(); p[1:w.n, ..., None] = 2; del p[::2]
sl = slice(1, None, 2)
return p[1:2], p[::w.n, 3], p[...], x[sl], x[(sl, slice(None, 2))], sl.indices(w.n), w.log[-2:], [*range(9)][sl], x[..., None].shape

tensor_index_kinds
i = torch.tensor([0, 1]); m = x[:, 0] > x[:, 0].mean() - 100
return x[i % x.shape[0]], x[:, [0, 2]], x[..., -1], x[None, :, 1:3], x[m].shape[0], x[i % x.shape[0], i], x[0][w.n % 4], x[-1:, [True, False, True, False]], x[[]].shape, x[()] is x, x[True].shape

tensor_iteration_unpack
a, *r = x.t(); (p, q), *_ = x[:2, :2].t(), 1
m = {i: v.sum() for i, v in enumerate(x)}
return a, r, p, q, m, [c.shape for c in x.chunk(2)], list(zip(x, range(2))), len(x), max(x.shape), [*x[0]]

tensor_bool_in_python_logic
t = x.sum() > 0
a = "pos" if t else "neg"; b = t and 1; c = (x.numel() > 4) and x.shape; d = not t
l = [v for v in x.flatten()[:3] if v > -0.3]
return a, b, c, d, l, any(v > 0.2 for v in x[0]), all(x[0] < 100), sorted([x[0, 1], x[0, 0]]), max(x[0, 0], x[0, 1]), bool(x[0, 0] == x[0, 0])

number_protocol_of_items
n = (x[0, 0] * 10).round().int().item(); f = x.mean().item()
return [0] * abs(n), n % 3, f"{f:.3f}", round(f, 2), x.shape[0] ** n if n < 3 else 0, int(x.sum()), divmod(n, 3), math.floor(f), n.bit_length(), x * n

device_and_dtype_helpers
t = torch.empty_like(x).fill_(w.n).to(x); d = torch.device("cpu")
return t, x.to("cpu") is x, x.to(torch.float64).dtype, x.type(), x.new_zeros(2), x.new_tensor([w.n]), d == x.device, str(d), torch.promote_types(torch.int8, x.dtype), torch.finfo(x.dtype).eps, torch.iinfo(torch.int8).max, x.element_size(), torch.result_type(x, 1.0), torch.can_cast(torch.float, torch.int), x.is_floating_point(), hash(torch.float32) == hash(x.dtype), {x.dtype: 1}
"""
