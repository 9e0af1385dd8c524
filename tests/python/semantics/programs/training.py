# size: table
"""Programs in the idioms of torch's users: buffers, hooks, parametrizations, transforms, modes, arrays, strings. As
programs_library, with the prelude of programs_torch."""

PROGRAMS = r"""
bn_like_counter_module
|class BN(nn.Module):
|    def __init__(s, c):
|        super().__init__(); s.register_buffer("mean", torch.zeros(c)); s.register_buffer("var", torch.ones(c)); s.register_buffer("seen", torch.tensor(0)); s.mom = 0.1; s.hits = 0
|    def forward(s, t):
|        if s.training:
|            m, v = t.mean(0), t.var(0, unbiased=False)
|            with torch.no_grad():
|                s.mean.mul_(1 - s.mom).add_(m.detach() * s.mom); s.var.copy_(s.var * (1 - s.mom) + v.detach() * s.mom); s.seen += 1
|            s.hits += 1
|        else: m, v = s.mean, s.var
|        return (t - m) / (v + 1e-5).sqrt()
|NET = BN(4)
NET.train(w.n % 2 == 0)
return NET(x), NET.hits, NET.training

ema_shadow_swap
|class EMA:
|    def __init__(s, net, d): s.d, s.shadow, s.saved = d, {n: p.detach().clone() for n, p in net.named_parameters()}, None
|    @torch.no_grad()
|    def update(s, net):
|        for n, p in net.named_parameters(): s.shadow[n].lerp_(p, 1 - s.d)
|    @contextlib.contextmanager
|    def applied(s, net):
|        s.saved = {n: p.detach().clone() for n, p in net.named_parameters()}
|        try:
|            for n, p in net.named_parameters(): p.data.copy_(s.shadow[n])
|            yield s
|        finally:
|            for n, p in net.named_parameters(): p.data.copy_(s.saved[n])
|            s.saved = None
|NET = nn.Linear(4, 2).requires_grad_(False); nn.init.constant_(NET.weight, 1.0); nn.init.zeros_(NET.bias)
|SH = EMA(NET, 0.5)
NET.weight.add_(w.n * 0.1); SH.update(NET)
with SH.applied(NET): a = NET(x)
return a, NET(x), SH.saved

weights_tied_then_untied
|class T(nn.Module):
|    def __init__(s):
|        super().__init__(); s.enc = nn.Linear(4, 4, bias=False); s.dec = nn.Linear(4, 4, bias=False)
|        nn.init.constant_(s.enc.weight, 0.5); nn.init.constant_(s.dec.weight, 0.25)
|    def forward(s, t): return s.dec(s.enc(t))
|NET = T().requires_grad_(False)
if w.n == 3: NET.dec.weight = NET.enc.weight
if w.n == 5: NET.dec.weight = nn.Parameter(NET.enc.weight.clone() * 3, requires_grad=False)
if w.n == 4: NET.enc.weight.mul_(2)
return NET(x), NET.dec.weight is NET.enc.weight, len(list(NET.parameters()))

layers_appended_and_popped
|NET = nn.Sequential(nn.Hardtanh(-2., 2.))
if w.n % 3 == 0: NET.append(nn.Softplus())
elif w.n % 3 == 1 and len(NET) > 1: NET.pop(-1)
else: NET.insert(0, nn.LeakyReLU(w.n / 10))
return NET(x), [type(m).__name__ for m in NET], sorted(NET._modules)

hooks_toggle_by_call
|NET = nn.Sequential(nn.Identity(), nn.Tanh())
|H = []
|GOT = []
if H: H.pop().remove()
else: H.append(NET[0].register_forward_hook(lambda m, a, o: (GOT.append(tuple(o.shape)), o * w.n)[1]))
return NET(x), len(GOT), len(NET[0]._forward_hooks)

hook_order_and_pre_kwargs
|class M(nn.Module):
|    def forward(s, t, *, k=1): return t * k
|NET = M(); LOGS = []
hs = [NET.register_forward_pre_hook(lambda m, a, kw: (a, {**kw, "k": kw.get("k", 1) + w.n}), with_kwargs=True),
      NET.register_forward_hook(lambda m, a, o: LOGS.append("a")), NET.register_forward_hook(lambda m, a, o: LOGS.append("b"), prepend=True)]
y = NET(x, k=2); z = NET(x)
for h in hs: h.remove()
return y, z, LOGS[-4:], NET(x)

parametrize_on_the_fly
|class Sym(nn.Module):
|    def forward(s, t): return t.triu() + t.triu(1).mT
|NET = nn.Linear(4, 4, bias=False).requires_grad_(False); nn.init.constant_(NET.weight, 0.3)
if w.n == 3: parametrize.register_parametrization(NET, "weight", Sym())
if w.n == 6: parametrize.remove_parametrizations(NET, "weight")
return NET(x), parametrize.is_parametrized(NET), type(NET).__name__, sorted(dict(NET.named_parameters()))

parametrize_right_inverse_assign
|class Exp(nn.Module):
|    def forward(s, t): return t.exp()
|    def right_inverse(s, t): return t.log()
|NET = nn.Linear(4, 4, bias=False); nn.init.constant_(NET.weight, 0.5); parametrize.register_parametrization(NET, "weight", Exp()); NET.requires_grad_(False)
with torch.no_grad(): NET.weight = torch.full((4, 4), float(w.n))
return NET(x), NET.parametrizations.weight.original

spectral_norm_steps
|torch.manual_seed(1)
|NET = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)).requires_grad_(False)
NET.train(w.n % 2 == 0)
a = NET(x); b = NET(x)
return a.shape, torch.linalg.matrix_norm(NET.weight, 2).round(decimals=3), a, b

weight_norm_magnitude
|torch.manual_seed(1)
|NET = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)).requires_grad_(False)
NET.parametrizations.weight.original0.mul_(w.n)
return NET(x), NET.weight.norm(dim=1)

checkpoint_with_kwargs_and_state
from torch.utils.checkpoint import checkpoint
calls = []
def block(t, *, k, cfg):
    calls.append(k); cfg["n"] = cfg.get("n", 0) + 1
    return (t * k).sin(), {"k": k}
cfg = {}
y, d = checkpoint(block, x, k=w.n, cfg=cfg, use_reentrant=False)
return y, d, cfg, calls

func_vmap_nested_dict
from torch.func import vmap
f = lambda d, s: {"o": d["a"] * s + d["b"], "n": d["a"].sum()}
r = vmap(f, in_dims=({"a": 0, "b": None}, None))({"a": x, "b": x[0]}, float(w.n))
return r, vmap(vmap(lambda a: a * w.n))(x)

func_grad_of_closure_state
from torch.func import grad, vmap
k = w.n
def f(p, t):
    w.log.append("f")
    return (p["a"] * t).sin().sum() * k
g = grad(f)({"a": x[0].detach()}, x.detach())
pg = vmap(grad(lambda v: (v ** 2).sum()))(x.detach())
return g, pg, len(w.log)

functional_call_with_partial_state
from torch.func import functional_call
p = {"weight": w.net.weight * w.n}
return functional_call(w.net, p, (x,)), functional_call(w.net, {}, (x,)), w.net.weight

distribution_losses
d = torch.distributions.Normal(x, (x.abs() + 0.1) * w.n); e = torch.distributions.Normal(x * 0, 1.0)
l = torch.distributions.kl_divergence(d, e).sum(-1)
try: torch.distributions.Normal(x, -1.0, validate_args=True)
except ValueError as er: m = str(er)[:40]
return l, d.log_prob(x + 1), d.entropy(), d.batch_shape, m, repr(d.expand((2, *x.shape)).batch_shape), d.cdf(x)

distribution_seeded_samples
torch.manual_seed(w.n)
d = torch.distributions.Categorical(logits=x)
a = d.sample(); b = torch.distributions.Bernoulli(probs=x.sigmoid()).sample((2,))
c = torch.distributions.Dirichlet(x[0].abs() + 1).sample()
return a, d.log_prob(a), b, c.shape, d.probs.sum(-1)

autograd_function_two_outputs
|class SplitScale(torch.autograd.Function):
|    @staticmethod
|    def forward(ctx, t, k):
|        ctx.k = k; ctx.save_for_backward(t); ctx.mark_non_differentiable(m := t > 0)
|        return t * k, m
|    @staticmethod
|    def backward(ctx, g, _):
|        t, = ctx.saved_tensors
|        return g * ctx.k + t * 0, None
p = x.detach().clone().requires_grad_()
y, m = SplitScale.apply(p, w.n)
if torch.is_grad_enabled(): y.sum().backward()
return y.detach(), m, p.grad, y.requires_grad, m.requires_grad

autograd_function_class_state
|class Count(torch.autograd.Function):
|    fwd = 0; bwd = 0
|    @classmethod
|    def bump(cls): cls.fwd += 1
|    @staticmethod
|    def forward(ctx, t): Count.bump(); return t.clone()
|    @staticmethod
|    def backward(ctx, g): Count.bwd += 1; return g * Count.fwd
with torch.enable_grad():
    p = x.detach().requires_grad_(); y = Count.apply(Count.apply(p)); g, = torch.autograd.grad(y.sum(), p)
return g, Count.fwd, Count.bwd

torch_function_mode_logging_nested
|class Log(TorchFunctionMode):
|    def __init__(s): s.names = []
|    def __torch_function__(s, f, t, a=(), k=None):
|        s.names.append(getattr(f, "__name__", str(f))); return f(*a, **(k or {}))
with Log() as a:
    y = x + w.n
    with Log() as b: z = torch.relu(y) * 2
return y, z, a.names, b.names

torch_function_mode_rewrites_dtype
|class F64(TorchFunctionMode):
|    def __torch_function__(s, f, t, a=(), k=None):
|        k = dict(k or {})
|        if f in (torch.zeros, torch.ones, torch.full): k.setdefault("dtype", torch.float64)
|        return f(*a, **k)
with F64(): z = torch.ones(x.shape[0]) * w.n
return z, torch.ones(2).dtype, z + x.sum(1)

tensor_subclass_with_units
|class U(torch.Tensor):
|    @staticmethod
|    def __new__(c, t, unit): r = torch.Tensor._make_subclass(c, t.detach()); r.unit = unit; return r
|    @classmethod
|    def __torch_function__(c, f, t, a=(), k=None):
|        r = super().__torch_function__(f, t, a, k or {})
|        us = [v.unit for v in a if isinstance(v, U)]
|        if isinstance(r, U): r.unit = us[0] if us else "?"
|        if f is torch.Tensor.add and len(set(us)) > 1: raise ValueError(f"{us}")
|        return r
a = U(x, "m"); b = U(x, "s" if w.n % 2 else "m")
try: c = a + b; m = c.unit
except ValueError as e: c = a * 2; m = str(e)
return c, m, type(c).__name__, type(c[0]).__name__, (a.sum()).unit

inplace_view_chain_alias
y = x.clone(); a = y[1:]; b = a[:, 1:3]; c = y.view(-1)
b.add_(w.n); c[0] = 100.0; a.mul_(2)
y[0, ::2] -= 1
d = y.t(); d[0].zero_()
return y, a, b, c, d, b._base is y if not torch.is_grad_enabled() else None

inplace_arguments_partially
x[0] = w.n; x[:, -1].mul_(3); x.clamp_(min=-1)
v = x.diagonal(); v.fill_(7) if w.n % 2 else None
return x.sum(), v

default_dtype_flip
old = torch.get_default_dtype()
torch.set_default_dtype(torch.float64 if w.n % 2 else torch.float32)
try: a = torch.ones(x.shape[0]); b = torch.tensor([1.5]); c = torch.arange(3.0); e = torch.linspace(0, 1, 2)
finally: torch.set_default_dtype(old)
return a + x.sum(1), b, c, e, torch.ones(1)

train_eval_toggle_nested
|NET = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.2), nn.Identity()))
NET.train(w.n % 2 == 0); NET[1].eval()
torch.manual_seed(w.n)
y = NET(x)
return y, [m.training for m in NET.modules()]

argument_structures_change
def g(a, *rest, scale=1, **kw):
    if isinstance(a, dict): a = a["t"]
    elif isinstance(a, (list, tuple)): a = a[0]
    return a * scale + sum(rest) + sum(kw.values())
args = [(x,), ({"t": x},), ([x, 1], 2), ((x,), 1, 2)][w.n % 4]
return g(*args, **({"scale": w.n} if w.n % 2 else {"q": x}))

gather_state_dict_strings
sd = w.net.state_dict(); ks = [k for k in sd if not k.startswith("st")]
sd2 = {f"m.{k}": v.clone() * w.n for k, v in sd.items()}
r = w.net.load_state_dict({k[2:]: v for k, v in sd2.items()}) if w.n < 4 else w.net.load_state_dict({}, strict=False)
return x * w.net.weight, ks, r, type(sd).__name__, sd._metadata[""]

apply_freeze_by_type
|NET = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
for i, p in enumerate(NET.parameters()): p.data.fill_(0.1 * (i + 1))
NET.apply(lambda m: m.requires_grad_(isinstance(m, nn.LayerNorm) and w.n % 2 == 0))
return NET(x), [p.requires_grad for p in NET.parameters()], sum(p.numel() for p in NET.parameters() if p.requires_grad)

optimizer_param_groups_manual
|P = [torch.ones(4), torch.zeros(4)]
|OPT = torch.optim.SGD([{"params": [P[0]], "lr": 0.5}, {"params": [P[1]]}], lr=0.1, momentum=0.9)
for p in P: p.grad = x.detach().mean(0) * w.n
OPT.step(); OPT.zero_grad()
OPT.param_groups[0]["lr"] *= 0.5
return x * P[0] + P[1], [g["lr"] for g in OPT.param_groups], len(OPT.state), P[0].grad

lr_scheduler_objects
|P = torch.ones(4); OPT = torch.optim.SGD([P], lr=1.0); S = torch.optim.lr_scheduler.StepLR(OPT, 2, 0.5)
P.grad = x.detach().mean(0); OPT.step(); S.step()
return x * P, S.get_last_lr(), S.last_epoch

clip_and_norms
g = [x * w.n, x.sum(0)]
tot = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(t) for t in g]))
c = torch.clamp(1.0 / (tot + 1e-6), max=1.0)
f = torch._foreach_mul(g, 2.0); torch._foreach_add_(f, 1.0)
return [t * c for t in g], tot, f, torch.nn.utils.get_total_norm(g) if hasattr(torch.nn.utils, "get_total_norm") else 0

pytree_custom_and_errors
|class Pair:
|    def __init__(s, a, b): s.a, s.b = a, b
|if not any(k is Pair for k in pytree.SUPPORTED_NODES): pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
l, s = pytree.tree_flatten({"p": Pair(x, w.n), "q": [None, (1, "s")]})
r = pytree.tree_unflatten([v * 2 if isinstance(v, (int, torch.Tensor)) else v for v in l], s)
m = pytree.tree_map_only(torch.Tensor, lambda t: t.shape[0], {"p": Pair(x, 1)})
return r, len(l), m["p"].a, pytree.tree_all(lambda v: v is not None, [1, 2])

random_python_and_numpy
random.seed(w.n); np.random.seed(w.n)
i = random.randrange(x.shape[1]); p = random.sample(range(4), 2); q = np.random.permutation(3).tolist(); s = random.Random(5).choice("abc")
r = np.random.default_rng(w.n).integers(0, 10, 2).tolist()
return x[:, i], x[:, p], q, s, r, random.random()

generator_state_objects
|GEN = torch.Generator()
GEN.manual_seed(w.n); a = torch.rand(2, generator=GEN); st = GEN.get_state(); b = torch.randn(2, generator=GEN)
GEN.set_state(st); c = torch.randn(2, generator=GEN)
return a, b, c, torch.equal(b, c), x + a[0], GEN.initial_seed()

generator_made_in_call_seeded
g = torch.Generator().manual_seed(w.n)
p = torch.randperm(x.shape[0], generator=g); n = torch.normal(0.0, 1.0, (2,), generator=g)
return x[p], n, torch.multinomial(torch.ones(3), 2, generator=g)

numpy_views_both_ways
a = x.detach().numpy(); b = torch.from_numpy(a[::2].copy()) * w.n
a2 = np.concatenate([a, a]).mean(axis=0); c = torch.as_tensor(a2)
return b + c, a.shape, float(a2[0].round(3)), np.asarray(x.detach()).sum().dtype.name, torch.tensor(np.float64(w.n)).dtype

numpy_scalars_as_args
k = np.int64(w.n); f = np.float32(0.5); b = np.bool_(w.n % 2)
return x * k, x * f, (x * float(f)).dtype, x if b else -x, torch.full((2,), k), x[: k % 2 + 1], torch.zeros(int(k)).shape, x.sum(int(np.argmax([1, 2])))

logging_with_handler_and_exc
|L = logging.getLogger("h2"); L.propagate = False; L.setLevel(10); S = io.StringIO(); L.handlers = [logging.StreamHandler(S)]
|L.handlers[0].setFormatter(logging.Formatter("%(levelname)s:%(funcName)s:%(lineno)d:%(message)s"))
try: 1 / (w.n - 3)
except ZeroDivisionError: L.exception("bad %d", w.n, exc_info=False)
else: L.info("shape %s n %r", tuple(x.shape), w.n)
return x * 2, S.getvalue()

warnings_filters_and_stack
def dep(k):
    warnings.warn(f"old {k}", DeprecationWarning, stacklevel=2)
    return k
with warnings.catch_warnings(record=True) as got:
    warnings.simplefilter("always"); a = dep(w.n); b = dep(x.shape[0])
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try: dep(1)
    except DeprecationWarning as e: m = str(e)
return x * a + b, [(str(g.message), g.category.__name__, g.lineno) for g in got], m

fstrings_of_tensors_and_sizes
t = torch.tensor([1.5, 2.0]); s = x.shape
return f"{t[0]:.2f} {t.shape} {s[0]=} {w.n!r:>5} {w.n:+d} {s} {list(s)}", f"{torch.tensor(3)}", "%s %d" % (t.dtype, s[1]), "{:.1f}|{!s}".format(t[1].item(), t), x * 2

format_spec_nested_dynamic
wd, pr = w.n + 4, w.n % 3
return f"{x.shape[0]:>{wd}}|{3.14159:{wd}.{pr}f}|{'a':*^{wd}}|{w.n:#x}|{1e6:,}|{True!s:<6}|", x + wd

string_parse_to_ops
|OPS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
def ev(s, env):
    st = []
    for tok in s.split():
        if tok in OPS: b, a = st.pop(), st.pop(); st.append(OPS[tok](a, b))
        else: st.append(env[tok] if tok in env else float(tok))
    return st.pop()
try: ev("x +", {"x": x})
except IndexError as e: m = str(e)
return ev(["x 2 * n +", "x n / x -"][w.n % 2], {"x": x, "n": w.n}), m

textwrap_and_tables
rows = [[str(v) for v in r] for r in ((1, w.n), x.shape, ("a" * w.n, None))]
wd = [max(map(len, c)) for c in zip(*rows)]
t = "\n".join("|".join(c.rjust(k) for c, k in zip(r, wd)) for r in rows)
return t, textwrap.shorten("a b c " * w.n, 10), x * wd[0], t.splitlines()[-1].partition("|")
"""
