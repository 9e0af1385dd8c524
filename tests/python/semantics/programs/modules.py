# size: table
"""Programs with modules: hooks, buffers, containers, changing weights, training steps. As programs_library, with the
prelude of programs_torch."""

PROGRAMS = r"""
hook_replaces_output
|NET = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).requires_grad_(False)
|SEEN = {}
|def keep(m, args, out): SEEN[type(m).__name__] = out.detach(); return out * 2
|HS = [m.register_forward_hook(keep) for m in NET]
if w.n == 5: HS[0].remove()
y = NET(x)
return y, sorted(SEEN)

hook_with_kwargs
|class M(nn.Module):
|    def forward(s, t, *, scale=1.0, flag=False): return t * scale + (1 if flag else 0)
|NET = M(); CALLS = []
|def pre(m, args, kwargs): CALLS.append(sorted(kwargs)); return args, {**kwargs, "flag": True}
|NET.register_forward_pre_hook(pre, with_kwargs=True)
|NET.register_forward_hook(lambda m, a, k, o: (o, k["scale"]), with_kwargs=True)
return NET(x, scale=w.n), NET(x, scale=0.5)

hook_prepended_order
|NET = nn.Identity(); ORDER = []
|NET.register_forward_hook(lambda m, i, o: ORDER.append("a"))
|NET.register_forward_hook(lambda m, i, o: ORDER.append("b"), prepend=True)
|NET.register_forward_pre_hook(lambda m, i: ORDER.append("p"))
return NET(x + w.n), list(ORDER)

hook_always_call
|class Bad(nn.Module):
|    def forward(s, t):
|        if t.shape[0] == 5: raise ValueError(f"bad {t.shape}")
|        return t + 1
|NET = Bad(); CALLED = []
|NET.register_forward_hook(lambda m, i, o: CALLED.append(o is None), always_call=True)
try: return NET(x), list(CALLED)
except ValueError as e: return str(e), list(CALLED)

global_module_hooks
seen = []
h = nn.modules.module.register_module_forward_hook(lambda m, i, o: seen.append(type(m).__name__))
try: y = nn.Sequential(nn.ReLU(), nn.Sigmoid())(x)
finally: h.remove()
return y, seen, nn.Tanh()(x)

feature_extractor
|class Extract(nn.Module):
|    def __init__(s, net, names):
|        super().__init__(); s.net, s.names, s.features = net, names, {}
|        for n in names: dict(net.named_modules())[n].register_forward_hook(s.save(n))
|    def save(s, n):
|        def fn(_, __, output): s.features[n] = output
|        return fn
|    def forward(s, t):
|        s.net(t)
|        return {k: v.mean() for k, v in s.features.items()}
|NET = Extract(nn.Sequential(nn.Hardtanh(), nn.Sequential(nn.ReLU(), nn.Tanh())), ["0", "1.1"])
return NET(x), list(NET.features)

batch_norm_training
|NET = nn.BatchNorm1d(4, momentum=None if False else 0.2)
NET.train(w.n % 3 != 0)
with torch.no_grad():
    y = NET(torch.cat([x, x + 1, x * 2]))
return y, NET.num_batches_tracked, NET.running_mean, NET.training

running_minmax_observer
|class Obs(nn.Module):
|    def __init__(s):
|        super().__init__()
|        s.register_buffer("lo", torch.tensor(float("inf"))); s.register_buffer("hi", torch.tensor(float("-inf")))
|        s.enabled = True
|    def forward(s, t):
|        if s.enabled and t.numel():
|            s.lo.copy_(torch.min(s.lo, t.min())); s.hi.copy_(torch.max(s.hi, t.max()))
|        return t.clamp(s.lo, s.hi)
|NET = Obs()
NET.enabled = w.n != 4
return NET(x * w.n), NET.lo, NET.hi

vector_quantizer_ema
|class VQ(nn.Module):
|    def __init__(s):
|        super().__init__()
|        s.register_buffer("code", torch.linspace(-1, 1, 12).reshape(3, 4)); s.register_buffer("count", torch.zeros(3))
|    def forward(s, t):
|        d = torch.cdist(t, s.code); i = d.argmin(-1)
|        one = F.one_hot(i, 3).to(t.dtype)
|        if s.training:
|            s.count.mul_(0.9).add_(one.sum(0), alpha=0.1)
|            s.code.data.add_((one.t() @ t - s.code) * 0.01)
|        q = F.embedding(i, s.code)
|        return t + (q - t).detach(), i
|NET = VQ()
NET.train(w.n % 2 == 0)
return NET(x), NET.count

dropout_train_eval
|NET = nn.Sequential(nn.Dropout(0.5), nn.AlphaDropout(0.1), nn.Dropout1d(0.3))
NET.train() if w.n % 2 else NET.eval()
torch.manual_seed(w.n)
return NET(x), NET[0].training

stochastic_depth
|class Drop(nn.Module):
|    def __init__(s, p): super().__init__(); s.p = p
|    def forward(s, t):
|        if not s.training or s.p == 0.0: return t
|        keep = 1 - s.p; shape = (t.shape[0],) + (1,) * (t.ndim - 1)
|        m = t.new_empty(shape).bernoulli_(keep)
|        if keep > 0.0: m.div_(keep)
|        return t * m
|    def extra_repr(s): return f"p={round(s.p, 3):0.3f}"
|NET = nn.ModuleList(Drop(p.item()) for p in torch.linspace(0, 0.5, 3))
torch.manual_seed(3)
for d in NET: x = d(x)
return x, repr(NET[1])

zip_layers_with_names
|NET = nn.ModuleDict({f"l{i}": nn.Hardtanh(-1, i + 1.0) for i in range(3)})
outs = []
for (name, m), k in zip(NET.items(), itertools.count(w.n)):
    x = m(x) + k; outs.append((name, x.shape[0]))
for i, (a, b) in enumerate(zip(NET, NET.values())): outs.append((i, a, b.max_val))
return x, outs, "l1" in NET, [*reversed(list(NET.keys()))]

module_list_ops
|NET = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
a = NET[:2]; b = NET[-1]; c = NET[1:] + NET[:1]
return a[0](x), b(x), [type(m).__name__ for m in c], len(a), type(a).__name__, NET[-1] is b, [i for i, m in enumerate(NET) if isinstance(m, nn.Tanh)]

module_list_inserts
|NET = nn.ModuleList([nn.ReLU()])
if len(NET) < 4:
    NET.insert(0, nn.Hardtanh(0, w.n + 0.0)); NET.extend([nn.Identity()])
if w.n == 6: NET.pop(0); del NET[-1]
for m in NET: x = m(x)
return x, [type(m).__name__ for m in NET]

sequential_edits
|NET = nn.Sequential(collections.OrderedDict(a=nn.ReLU(), b=nn.Tanh(), c=nn.Identity()))
if w.n == 3: NET.add_module("d", nn.Sigmoid()); NET.c = nn.Hardtanh()
if w.n == 5: del NET.b
if w.n == 6: NET.append(nn.Softsign()); NET[0] = nn.GELU()
return NET(x), [n for n, _ in NET.named_children()], len(NET[1:])

parameter_list_and_dict
|class M(nn.Module):
|    def __init__(s):
|        super().__init__()
|        s.ps = nn.ParameterList([nn.Parameter(torch.full((4,), i + 1.0), requires_grad=False) for i in range(3)])
|        s.pd = nn.ParameterDict({"a": torch.ones(4), "b": torch.zeros(4)}).requires_grad_(False)
|    def forward(s, t):
|        for i, p in enumerate(s.ps): t = t * p + s.ps[i // 2]
|        for k, p in s.pd.items(): t = t + p * len(k)
|        return t, "a" in s.pd, len(s.ps), list(s.pd.keys())
|NET = M()
if w.n == 4: NET.ps.append(nn.Parameter(torch.ones(4), requires_grad=False)); NET.pd["c"] = torch.ones(4)
return NET(x)

named_parameters_norms
|NET = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.1 * (i + 1)) for i, p in enumerate(NET.parameters())]
norms = {n: p.norm().item() for n, p in NET.named_parameters() if p.dim() > 1}
total = sum(p.numel() for p in NET.parameters())
return NET(x), {k: round(v, 4) for k, v in norms.items()}, total, [n for n, _ in NET.named_modules()]

freeze_by_name
|NET = nn.Sequential(collections.OrderedDict(body=nn.Linear(4, 4), head=nn.Linear(4, 2)))
|with torch.no_grad(): [p.fill_(0.1) for p in NET.parameters()]
for n, p in NET.named_parameters(): p.requires_grad_(n.startswith("head") and w.n % 2 == 0)
y = NET(x)
return y.detach(), y.requires_grad, [p.requires_grad for p in NET.parameters()]

weight_tying
|class M(nn.Module):
|    def __init__(s):
|        super().__init__(); s.emb = nn.Embedding(5, 4).requires_grad_(False); s.head = nn.Linear(4, 5, bias=False).requires_grad_(False)
|        s.emb.weight.fill_(0.5) if False else None
|        s.head.weight = s.emb.weight
|    def forward(s, t): return s.head(s.emb(t))
|NET = M()
|with torch.no_grad(): NET.emb.weight.copy_(torch.linspace(0, 1, 20).reshape(5, 4))
if w.n == 4: NET.head.weight = nn.Parameter(NET.emb.weight * 2, requires_grad=False)
i = torch.arange(x.shape[0]) % 5
return NET(i), NET.head.weight is NET.emb.weight, len(list(NET.parameters()))

buffer_replaced_non_persistent
|class Mask(nn.Module):
|    def __init__(s):
|        super().__init__(); s.register_buffer("mask", torch.ones(2, 2).tril().bool(), persistent=False)
|    def forward(s, n):
|        if s.mask.shape[0] < n: s.register_buffer("mask", torch.ones(n, n).tril().bool(), persistent=False)
|        return s.mask[:n, :n]
|NET = Mask()
m = NET(x.shape[0])
return (x @ x.t()).masked_fill(~m, float("-inf")), NET.mask.shape, list(NET.state_dict()), "mask" in NET._non_persistent_buffers_set

rotary_grows
|class Rope(nn.Module):
|    def __init__(s, dim):
|        super().__init__(); s.max_len = 0
|        s.register_buffer("inv", 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim)), persistent=False)
|    def grow(s, n):
|        if n > s.max_len:
|            s.max_len = n; f = torch.outer(torch.arange(n).float(), s.inv); e = torch.cat((f, f), -1)
|            s.register_buffer("cos", e.cos(), persistent=False); s.register_buffer("sin", e.sin(), persistent=False)
|    def forward(s, t):
|        s.grow(t.shape[0])
|        a, b = t.chunk(2, -1)
|        return t * s.cos[: t.shape[0]] + torch.cat((-b, a), -1) * s.sin[: t.shape[0]]
|NET = Rope(4)
return NET(x), NET.max_len, NET.cos.shape

cache_by_seq_len
|class Pos(nn.Module):
|    def __init__(s): super().__init__(); s._cache = {}; s.hits = 0
|    def get(s, n, device, dtype):
|        key = (n, device.type, dtype)
|        if key not in s._cache: s._cache[key] = torch.arange(n, device=device, dtype=dtype)[:, None] / 10
|        else: s.hits += 1
|        return s._cache[key]
|    def forward(s, t): return t + s.get(t.shape[0], t.device, t.dtype)
|NET = Pos()
return NET(x), NET.hits, sorted(k[0] for k in NET._cache)

alibi_lru_cache
|@functools.lru_cache(maxsize=8)
|def slopes(h): return torch.tensor([2.0 ** (-(i + 1)) for i in range(h)])
|@functools.cache
|def bias(n, h): return slopes(h)[:, None] * torch.arange(n)[None].float()
return bias(x.shape[0], 4).t() + x, bias.cache_info()._asdict()

cached_property_module
|class M(nn.Module):
|    def __init__(s): super().__init__(); s.k = 3; s.made = 0
|    @functools.cached_property
|    def table(s): s.made += 1; return torch.arange(4.0) * s.k
|    def forward(s, t): return t + s.table
|NET = M()
if w.n == 4: NET.k = 7; del NET.__dict__["table"]
if w.n == 6: NET.table = torch.zeros(4)
return NET(x), NET.made

module_getattr_delegates
|class Wrap(nn.Module):
|    def __init__(s, m): super().__init__(); s.module = m
|    def __getattr__(s, n):
|        try: return super().__getattr__(n)
|        except AttributeError: return getattr(s.module, n)
|    def forward(s, *a, **k): return s.module(*a, **k)
|NET = Wrap(nn.Hardtanh(-0.2, 0.3))
NET.module.max_val = 0.1 * w.n
try: NET.nothing
except AttributeError as e: err = str(e)
return NET(x), NET.min_val, NET.max_val, err, hasattr(NET, "inplace")

module_call_override
|class M(nn.Module):
|    calls = 0
|    def __call__(s, *a, **k):
|        s.last = len(a); return super().__call__(*a, **k) * 2
|    def forward(s, t, u=None): return t if u is None else t + u
|NET = M()
return NET(x), NET(x, x), NET.last

forward_reassigned
|NET = nn.Linear(4, 4).requires_grad_(False)
|with torch.no_grad(): NET.weight.copy_(torch.eye(4)); NET.bias.zero_()
|OLD = NET.forward
|def patched(t): return OLD(t) + 100
if w.n == 4: NET.forward = patched
if w.n == 6: del NET.forward
return NET(x)

methodtype_bound
|NET = nn.Identity()
|def fwd(self, t, k=1): return t * k + self.bias
if w.n == 2: NET.bias = 0.5; NET.forward = types.MethodType(fwd, NET)
if w.n == 5: NET.bias = -1
return NET(x), NET.forward.__self__ is NET

submodule_swap_in_forward
|class M(nn.Module):
|    def __init__(s): super().__init__(); s.act = nn.ReLU(); s.n = 0
|    def forward(s, t):
|        s.n += 1
|        if s.n == 3: s.act = nn.Sigmoid()
|        if s.n == 5: s.act = None
|        return t if s.act is None else s.act(t)
|NET = M()
return NET(x), NET.n, NET.act

apply_init
|NET = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)).requires_grad_(False)
|@torch.no_grad()
|def init(m):
|    if isinstance(m, nn.Linear): m.weight.fill_(0.1 * K[0]); nn.init.zeros_(m.bias)
|    elif isinstance(m, nn.LayerNorm): nn.init.ones_(m.weight); nn.init.constant_(m.bias, 0.5)
|K = [1]
K[0] = w.n
NET.apply(init)
return NET(x)

init_random
|NET = nn.Linear(4, 3).requires_grad_(False)
torch.manual_seed(w.n)
nn.init.kaiming_uniform_(NET.weight, a=5**0.5); nn.init.trunc_normal_(NET.bias, std=0.02)
fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(NET.weight)
return NET(x), fan_in, fan_out, nn.init.calculate_gain("leaky_relu", 0.2)

deepcopy_module_in_forward
|NET = nn.Linear(4, 4).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.2) for p in NET.parameters()]
other = copy.deepcopy(NET)
with torch.no_grad(): other.weight.mul_(w.n)
return other(x), NET(x), other.weight is NET.weight

ema_model_update
|NET = nn.Linear(4, 2).requires_grad_(False); EMA = copy.deepcopy(NET)
|with torch.no_grad(): [p.fill_(0.3) for p in NET.parameters()]; [p.fill_(0.0) for p in EMA.parameters()]
with torch.no_grad():
    for p, q in zip(EMA.parameters(), NET.parameters()): p.mul_(0.9).add_(q, alpha=0.1)
    for b, c in zip(EMA.buffers(), NET.buffers()): b.copy_(c)
return EMA(x), EMA.bias

state_dict_copy
|NET = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).requires_grad_(False).eval()
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
sd = {k: v.clone() for k, v in NET.state_dict().items()}
sd["0.weight"] += w.n
own = NET.state_dict()
return [(k, v.shape, own[k].data_ptr() == v.data_ptr()) for k, v in sd.items()], NET.load_state_dict(sd), NET(x)

state_dict_hooks
|class M(nn.Linear):
|    def get_extra_state(s): return {"k": K[0]}
|    def set_extra_state(s, v): K.append(v["k"])
|NET = M(4, 2).requires_grad_(False); K = [1]
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
K[0] = w.n
sd = NET.state_dict(); NET.load_state_dict(sd)
return list(sd), sd["_extra_state"], K[-1], NET(x)

requires_grad_toggle
|NET = nn.Linear(4, 2)
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
NET.requires_grad_(w.n % 2 == 0)
y = NET(x).sum()
return y.detach(), y.requires_grad, y.grad_fn is None

set_grad_enabled_param
|NET = nn.Linear(4, 2)
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
with torch.set_grad_enabled(w.n % 2 == 0):
    y = NET(x); a = y.requires_grad, torch.is_grad_enabled()
torch.set_grad_enabled(True); b = torch.is_grad_enabled()
torch.set_grad_enabled(False)
return y.detach(), a, b

inner_gradient_step
|NET = nn.Linear(4, 1)
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
with torch.enable_grad():
    loss = (NET(x) - 1).pow(2).mean()
    gs = torch.autograd.grad(loss, list(NET.parameters()))
with torch.no_grad():
    for p, g in zip(NET.parameters(), gs): p -= 0.1 * g
return loss.detach(), gs, NET.weight.detach()

sgd_in_call
|NET = nn.Linear(4, 1); OPT = torch.optim.SGD(NET.parameters(), lr=0.1, momentum=0.9)
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
with torch.enable_grad():
    OPT.zero_grad(set_to_none=w.n % 2 == 0)
    loss = F.mse_loss(NET(x), torch.ones(x.shape[0], 1)); loss.backward()
nn.utils.clip_grad_norm_(NET.parameters(), 1.0)
OPT.step()
for g in OPT.param_groups: g["lr"] *= 0.9
return loss.item(), [round(g["lr"], 5) for g in OPT.param_groups], NET.bias.detach()

adamw_closure
|NET = nn.Linear(4, 1); OPT = torch.optim.AdamW(NET.parameters(), lr=0.01)
|with torch.no_grad(): [p.fill_(0.5) for p in NET.parameters()]
def closure():
    OPT.zero_grad()
    with torch.enable_grad(): loss = NET(x).pow(2).mean()
    loss.backward()
    return loss
l = OPT.step(closure)
return l.item(), NET.weight.detach().clone(), len(OPT.state)

custom_scheduler
|class Warm:
|    def __init__(s, opt, warm): s.opt, s.warm, s.step_n = opt, warm, 0; s.base = [g["lr"] for g in opt.param_groups]
|    def step(s):
|        s.step_n += 1
|        k = min(1.0, s.step_n / s.warm)
|        for g, b in zip(s.opt.param_groups, s.base): g["lr"] = b * k
|NET = nn.Linear(4, 1).requires_grad_(False); OPT = torch.optim.SGD(NET.parameters(), lr=0.5); SCH = Warm(OPT, 4)
SCH.step()
return x * OPT.param_groups[0]["lr"], SCH.step_n

spectral_norm_like
|class SN(nn.Module):
|    def __init__(s):
|        super().__init__(); s.w = nn.Parameter(torch.linspace(0, 1, 12).reshape(3, 4), requires_grad=False)
|        s.register_buffer("u", F.normalize(torch.ones(3), dim=0))
|    def forward(s, t):
|        if s.training:
|            for _ in range(2):
|                v = F.normalize(s.w.t() @ s.u, dim=0); s.u.copy_(F.normalize(s.w @ v, dim=0))
|        v = F.normalize(s.w.t() @ s.u, dim=0)
|        return t @ (s.w / (s.u @ s.w @ v)).t()
|NET = SN()
return NET.train(w.n < 5)(x), NET.u

parametrization_cached
|class Sym(nn.Module):
|    def forward(s, t): return t.triu() + t.triu(1).t()
|NET = nn.Linear(4, 4, bias=False).requires_grad_(False)
|with torch.no_grad(): NET.weight.copy_(torch.arange(16.0).reshape(4, 4))
|parametrize.register_parametrization(NET, "weight", Sym())
with parametrize.cached():
    a, b = NET.weight, NET.weight
return NET(x), a is b, NET.weight is a, parametrize.is_parametrized(NET)

weight_norm_old
|NET = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.3 * (i + 1)) for i, p in enumerate(NET.parameters())]
return NET(x), sorted(n for n, _ in NET.named_parameters())

lazy_linear
|NET = nn.LazyLinear(3)
y = NET(x)
return y.shape, type(NET).__name__, NET.in_features

utils_fusion
|CONV = nn.Conv1d(4, 4, 1).requires_grad_(False).eval(); BN = nn.BatchNorm1d(4).eval().requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.3) for p in CONV.parameters()]
f = fuse_conv_bn_eval(CONV, BN)
return f(x.t()[None]), BN(CONV(x.t()[None])), f.training

train_loop_meters
|class Meter:
|    def __init__(s): s.reset()
|    def reset(s): s.val = s.avg = s.sum = s.count = 0
|    def update(s, v, n=1): s.val = v; s.sum += v * n; s.count += n; s.avg = s.sum / s.count
|    def __str__(s): return f"{s.val:.2f} ({s.avg:.1f})"
|METERS = collections.defaultdict(Meter)
METERS["loss"].update(x.mean().item(), x.shape[0]); METERS["acc"].update((x > 0).float().mean().item())
if w.n == 5: METERS["loss"].reset()
return {k: str(m) for k, m in METERS.items()}

lazy_meters_tensor
|class Meter:
|    def __init__(s): s.sum = torch.zeros(()); s.count = 0
|    def update(s, v): s.sum = s.sum + v.detach().sum(); s.count += v.numel()
|    @property
|    def avg(s): return s.sum / max(s.count, 1)
|M = Meter()
M.update(x)
return M.avg, M.count

early_stopping
|class Stop:
|    def __init__(s, patience): s.patience, s.best, s.bad = patience, None, 0
|    def __call__(s, v):
|        if s.best is None or v < s.best: s.best, s.bad = v, 0
|        else: s.bad += 1
|        return s.bad >= s.patience
|STOP = Stop(2)
stop = STOP(float(x.sum()))
return x + 1 if not stop else x - 1, STOP.bad, stop

grad_scaler_like
|class Scaler:
|    def __init__(s): s.scale, s.good = 4.0, 0
|    def step(s, t):
|        t = t * s.scale
|        if torch.isfinite(t).all():
|            s.good += 1
|            if s.good % 2 == 0: s.scale *= 2
|            return t / s.scale
|        s.scale /= 2; s.good = 0
|        return None
|S = Scaler()
if w.n == 4: x = x / 0
return S.step(x), S.scale, S.good

checkpointed_blocks
|from torch.utils.checkpoint import checkpoint
|NET = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)]).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.2) for p in NET.parameters()]
|class Cfg: use = True
Cfg.use = w.n % 2 == 0
for m in NET: x = checkpoint(m, x, use_reentrant=False) if Cfg.use else m(x)
return x

model_outputs
|@dataclasses.dataclass
|class Out(collections.OrderedDict):
|    logits: object = None
|    loss: object = None
|    def __post_init__(s):
|        for f in dataclasses.fields(s):
|            v = getattr(s, f.name)
|            if v is not None: s[f.name] = v
|    def __getitem__(s, k):
|        return super().__getitem__(k) if isinstance(k, str) else s.to_tuple()[k]
|    def to_tuple(s): return tuple(s[k] for k in s.keys())
o = Out(logits=x + 1, loss=x.sum() if w.n % 2 else None)
return o, o.to_tuple(), o[0], list(o), o.logits is o["logits"]

model_outputs_over_breaks
|@dataclasses.dataclass
|class Out(collections.OrderedDict):
|    logits: object = None
|    loss: object = None
|    def __post_init__(s):
|        print("b")
|        for f in dataclasses.fields(s):
|            v = getattr(s, f.name)
|            if v is not None: s[f.name] = v
|    def __getitem__(s, k):
|        print("b")
|        return super().__getitem__(k) if isinstance(k, str) else s.to_tuple()[k]
|    def to_tuple(s): return tuple(s[k] for k in s.keys())
o = Out(logits=x + 1, loss=x.sum() if w.n % 2 else None)
return o, o.to_tuple(), o[0]

generation_mixin
|class Gen:
|    def prepare(s, ids, past=None, **kw): return {"ids": ids if past is None else ids[-1:], "past": past, **kw}
|class LM(nn.Module, Gen):
|    def __init__(s): super().__init__(); s.emb = nn.Embedding(7, 4).requires_grad_(False); nn.init.constant_(s.emb.weight, 0.1)
|    def forward(s, ids, past=None, use_cache=True):
|        h = s.emb(ids).cumsum(0) + (past if past is not None else 0)
|        return types.SimpleNamespace(logits=h @ s.emb.weight.t(), past=h[-1] if use_cache else None)
|NET = LM()
ids = torch.arange(x.shape[0]) % 7; past = None
for _ in range(3):
    out = NET(**NET.prepare(ids, past, use_cache=w.n != 4)); past = out.past
    ids = torch.cat([ids, out.logits[-1:].argmax(-1)])
return ids, past
"""
