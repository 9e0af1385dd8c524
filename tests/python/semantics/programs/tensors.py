# size: table
"""Programs with subclasses of tensors, modes, distributions, numpy, random numbers, views, dtypes, and unbacked
scalars. As programs_library, with the prelude of programs_torch."""

PROGRAMS = r"""
subclass_wraps
|class T(torch.Tensor):
|    log = []
|    @classmethod
|    def __torch_function__(c, f, types, args=(), kw=None):
|        c.log.append(f.__name__); return super().__torch_function__(f, types, args, kw or {})
t = x.as_subclass(T)
y = (t + 1).relu() * w.n
return type(y).__name__, y.as_subclass(torch.Tensor), T.log[-3:], isinstance(y, torch.Tensor), len(T.log)

subclass_metadata
|class Named(torch.Tensor):
|    @staticmethod
|    def __new__(c, d, name="x"): r = torch.Tensor._make_subclass(c, d); r.tag = name; return r
|    @classmethod
|    def __torch_function__(c, f, types, args=(), kw=None):
|        r = super().__torch_function__(f, types, args, kw or {})
|        if isinstance(r, Named): r.tag = "+".join(a.tag for a in args if isinstance(a, Named) and hasattr(a, "tag"))
|        return r
a = Named(x, "a"); b = Named(x * 2, "b"); c = a + b
return c.tag, c.as_subclass(torch.Tensor), (c * 2).tag

subclass_argument
|class K(torch.Tensor): pass
k = x.as_subclass(K); k.tag = w.n
y = torch.cat([k, k]); z = k[0]
return type(y).__name__, k.tag, hasattr(y, "tag"), y.sum().as_subclass(torch.Tensor), type(z.data).__name__

torch_function_on_object
|class Lazy:
|    def __init__(s, t): s.t, s.n = t, 0
|    @classmethod
|    def __torch_function__(c, f, types, args=(), kw=None):
|        def un(a): return a.t if isinstance(a, c) else a
|        r = f(*[un(a) for a in args], **{k: un(v) for k, v in (kw or {}).items()})
|        return Lazy(r) if isinstance(r, torch.Tensor) else r
l = Lazy(x); r = torch.add(l, l, alpha=w.n); q = torch.relu(r)
return type(q).__name__, q.t, torch.numel(l) if False else q.t.shape

function_mode_counts
|class Count(TorchFunctionMode):
|    def __init__(s): super().__init__(); s.c = collections.Counter()
|    def __torch_function__(s, f, types, args=(), kw=None): s.c[getattr(f, "__name__", "?")] += 1; return f(*args, **(kw or {}))
with Count() as m: y = F.relu(x + 1) * torch.ones(x.shape[0], 1)
return y, dict(m.c)

function_mode_rewrites
|class NoRelu(TorchFunctionMode):
|    def __torch_function__(s, f, types, args=(), kw=None):
|        if f is torch.relu: return args[0] * K[0]
|        return f(*args, **(kw or {}))
|K = [1]
K[0] = w.n
with NoRelu(): a = torch.relu(x)
return a, torch.relu(x)

function_mode_default_device
with torch.device("cpu"): a = torch.ones(2); b = torch.tensor([w.n])
return a + x[:1, :2], b, str(a.device)

distributions_normal
d = torch.distributions.Normal(x.mean(), x.abs().sum() + 0.1)
torch.manual_seed(w.n)
s = d.rsample((2,))
return s, d.log_prob(s), d.entropy(), d.mean, d.cdf(s), repr(d.batch_shape)

distributions_categorical
d = torch.distributions.Categorical(logits=x)
torch.manual_seed(1)
a = d.sample()
return a, d.log_prob(a), d.entropy(), d.probs.argmax(-1), torch.distributions.kl_divergence(d, torch.distributions.Categorical(logits=x * 2))

distributions_validate
try: torch.distributions.Normal(x, -x.abs() - 1, validate_args=True)  # torch.compile changes the default
except ValueError as e: m = str(e).split("\n")[0]
d = torch.distributions.Bernoulli(logits=x, validate_args=False)
return m, d.log_prob((x > 0).float()), d.variance

distributions_transformed
base = torch.distributions.Normal(torch.zeros(4), 1.0)
d = torch.distributions.TransformedDistribution(base, [torch.distributions.transforms.TanhTransform()])
i = torch.distributions.Independent(torch.distributions.Normal(x, 1.0), 1)
return d.log_prob(x.tanh() * 0.9), i.log_prob(x + 0.1), i.event_shape, torch.distributions.Beta(2.0, 3.0).log_prob(torch.tensor(0.3))

gumbel_softmax_seeded
torch.manual_seed(w.n)
return F.gumbel_softmax(x, tau=0.5, hard=True), torch.rand(2), torch.randint(0, w.n, (3,)), torch.randperm(x.shape[0])

torch_generators_in_state
|GEN = torch.Generator().manual_seed(5)
a = torch.rand(2, generator=GEN); b = torch.randn(x.shape, generator=GEN)
if w.n == 4: GEN.manual_seed(5)
return x * a[0] + b

generator_in_call
g = torch.Generator(); g.manual_seed(w.n)
a = torch.rand(3, generator=g); st = g.get_state(); b = torch.rand(3, generator=g); g.set_state(st)
return a, torch.equal(b, torch.rand(3, generator=g)), x + b[0], g.initial_seed()

random_modules
random.seed(w.n); np.random.seed(w.n); torch.manual_seed(w.n)
a = random.random(), random.randint(0, 9), random.choice([1, 2, 3]); b = np.random.rand(2); l = [1, 2, 3, 4]; random.shuffle(l)
return x * a[0] + torch.rand(1), a, b, l, random.sample(range(10), 3)

np_generator
|RNG = np.random.default_rng(3)
k = RNG.integers(0, 10); v = RNG.normal(size=4).astype("float32")
return x * int(k) + torch.from_numpy(v), RNG.permutation(4).tolist()

random_layerdrop
|NET = nn.ModuleList(nn.Hardtanh(-i - 1.0, 1.0) for i in range(3))
random.seed(0); used = []
for i, m in enumerate(NET):
    if random.uniform(0, 1) < 0.5: continue
    used.append(i); x = m(x)
return x + w.n, used

numpy_round_trip
a = x.numpy(); b = np.concatenate([a, a * w.n]); t = torch.from_numpy(b)
a[0, 0] = 5
return t, x[0, 0], b.shape, b.dtype, np.asarray(x.shape), torch.as_tensor(a) is x

numpy_table
|def sincos(n, d):
|    pos = np.arange(n)[:, None] / np.power(10000, 2 * (np.arange(d) // 2) / d)
|    pos[:, 0::2], pos[:, 1::2] = np.sin(pos[:, 0::2]), np.cos(pos[:, 1::2])
|    return torch.tensor(pos, dtype=torch.float32)
return x + sincos(x.shape[0], 4)

numpy_scalars
k = np.float32(1.5); i = np.int64(w.n); b = np.bool_(True)
return x * k, x[: i], x + i, x.sum() * np.pi, bool(b), float(k) * x.shape[0], torch.tensor([k, i]), k * x.shape[0], np.prod(x.shape)

numpy_masks
m = np.array([True, False, True, True]); idx = np.array([0, 2])
return x[:, torch.from_numpy(m)], x[:, idx], np.where(m)[0], x[:, m]

inplace_views_chain
y = x.clone(); v = y[0]; u = v[1:3]; u.mul_(w.n); y[:, 0] += 1; y.t()[2].zero_(); v += 1
z = y.view(-1); z[-1] = 9
return y, v, u, z

inplace_argument_views
a, b = x[:, :2], x[:, 2:]
a.add_(b); b.copy_(a * w.n); x[0].fill_(1.0)
return a, x

inplace_on_expanded
y = x[:1].expand(3, 4)
try: y.add_(1); r = "ok"
except RuntimeError as e: r = str(e).split(".")[0]
return r, x

slices_assign_patterns
y = torch.zeros(x.shape[0] + 2, 6)
y[1:-1, 1:5] = x; y[0] = y[1]; y[..., -1] = w.n; y[[0, -1], 0] = 7; y[y < 0] = 0; y[:, 2:4] *= 2; y[torch.arange(x.shape[0]), 0] = x[:, 0]
return y, y[None, ::2, :, None].shape, y[..., 1].sum()

ids_and_is
y = x.view_as(x); z = x.contiguous(); u = x.to(torch.float32); v = x.clone()
return y is x, z is x, u is x, v is x, x.data_ptr() == y.data_ptr(), x.detach().data_ptr() == v.data_ptr(), y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), x.float() is x, x.expand(-1, -1) is x, y, v

aliases_in_result
y = x + 1
return y, y[0], {"a": y, "b": [y.t(), y]}, (x, x.t(), x[1:]), y.view(-1)

dtype_branches
def cast(t, dt): return t if t.dtype == dt else t.to(dt)
h = cast(x, torch.float16 if w.n % 2 else torch.bfloat16)
if h.dtype in (torch.float16, torch.bfloat16): eps = torch.finfo(h.dtype).eps
else: eps = 1e-6
return cast(h, torch.float32) + eps, h.dtype, cast(x, torch.float32) is x, torch.promote_types(h.dtype, torch.int32), h.dtype.is_floating_point, torch.iinfo(torch.int8).max

upcast_norm
|class RMS(nn.Module):
|    def __init__(s): super().__init__(); s.weight = nn.Parameter(torch.ones(4) * 2, requires_grad=False); s.eps = 1e-6
|    def forward(s, t):
|        dt = t.dtype; t = t.to(torch.float32)
|        return s.weight * (t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + s.eps)).to(dt)
|NET = RMS()
return NET(x), NET(x.half()).dtype, NET(x.bfloat16()).float()

module_half
|NET = nn.Linear(4, 4).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.25) for p in NET.parameters()]
if w.n == 4: NET.bfloat16()
if w.n == 6: NET.float()
p = next(NET.parameters())
return NET(x.to(p.dtype)).float(), p.dtype, next(iter(NET.buffers()), None)

autocast_scopes
with torch.autocast("cpu", dtype=torch.bfloat16, enabled=w.n % 2 == 0):
    y = x @ x.t(); on = torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu", enabled=False): z = x @ x.t()
return y.dtype, z.dtype, on, z, torch.get_autocast_dtype("cpu")

autocast_decorator
|@torch.autocast("cpu", dtype=torch.bfloat16)
|def f(a): return F.linear(a, a), torch.is_autocast_enabled("cpu")
|@torch.no_grad()
|def g(a): return a * 2, torch.is_grad_enabled()
|@torch.inference_mode()
|def h(a): return a + 1
r = h(x)
return f(x)[0].dtype, f(x)[1], g(x), r.is_inference(), r + 1 if not torch.is_grad_enabled() else 0

hasattr_patterns
out = []
for o in (x, w.net, w.cfg, torch.nn.functional, 3):
    out.append([hasattr(o, n) for n in ("shape", "forward", "hidden", "relu", "real")])
f = getattr(torch, "not_there", None) or torch.relu
k = getattr(w.cfg, "missing", getattr(w, "n"))
return out, f(x) * k, getattr(x, "grad_fn", 1) is None, getattr(w.net, "bias", "none")

is_torch_things
return torch.is_tensor(x), torch.is_floating_point(x), x.is_floating_point(), torch.is_complex(x), isinstance(w.net.weight, nn.Parameter), isinstance(w.net.steps, nn.Buffer) if hasattr(nn, "Buffer") else 0, x.is_leaf, x.layout, x.is_sparse, torch.overrides.is_tensor_like(x), torch.jit.is_scripting(), torch.compiler.is_compiling() and False, x + 1

pytree_maps
|Pt = collections.namedtuple("Pt", "a b")
tree = {"x": x, "l": [x + 1, (w.n, None)], "p": Pt(x * 2, "s")}
leaves, spec = pytree.tree_flatten(tree)
t2 = pytree.tree_map(lambda v: v * 2 if isinstance(v, torch.Tensor) else v, tree)
t3 = pytree.tree_unflatten([v if not isinstance(v, torch.Tensor) else v.sum() for v in leaves], spec)
return t2, t3, spec.num_leaves, pytree.tree_map_only(torch.Tensor, lambda v: v.shape, tree), pytree.tree_all(lambda v: v is not tree, tree)

vmap_inside
f = lambda a, b: (a * b).sum() * w.n
return torch.vmap(f, in_dims=(0, None))(x, torch.ones(4)), torch.func.vmap(lambda r: r.sort().values)(x)

func_grad_inside
g = torch.func.grad(lambda a: (a.tanh() * w.n).sum())(x)
j = torch.func.jacrev(lambda a: a.pow(2))(x[0]); v, vjp = torch.func.vjp(torch.sin, x)
return g, j, v, vjp(x)[0]

functional_call
|NET = nn.Linear(4, 2).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.1) for p in NET.parameters()]
ps = {k: v * w.n for k, v in NET.named_parameters()}
return torch.func.functional_call(NET, ps, (x,)), NET(x), torch.func.functional_call(NET, {"bias": torch.ones(2)}, x)

stack_module_state
|NETS = [nn.Linear(4, 2).requires_grad_(False) for _ in range(2)]
|with torch.no_grad(): [p.fill_(0.1 * (i + 1)) for i, m in enumerate(NETS) for p in m.parameters()]
params, buffers = torch.func.stack_module_state(NETS)
base = copy.deepcopy(NETS[0]).to("meta")
return torch.vmap(lambda p, b, t: torch.func.functional_call(base, (p, b), (t,)), in_dims=(0, 0, None))(params, buffers, x)

autograd_function
|class Round(torch.autograd.Function):
|    @staticmethod
|    def forward(ctx, t, k): ctx.save_for_backward(t); ctx.k = k; return (t * k).round() / k
|    @staticmethod
|    def backward(ctx, g): t, = ctx.saved_tensors; return g * ctx.k * (t.abs() < 1), None
with torch.enable_grad():
    t = x.detach().requires_grad_(); y = Round.apply(t, w.n).sum(); g, = torch.autograd.grad(y, t)
return y.detach(), g, Round.apply(x, 2)

grad_penalty
|D = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).requires_grad_(False)
|with torch.no_grad(): [p.fill_(0.3) for p in D.parameters()]
with torch.enable_grad():
    t = x.clone().requires_grad_(True); out = D(t)
    g, = torch.autograd.grad(out, t, grad_outputs=torch.ones_like(out), create_graph=True)
    gp = ((g.norm(2, dim=1) - 1) ** 2).mean()
return gp.detach(), g.detach()

tensor_hooks
log = []
with torch.enable_grad():
    t = x.clone().requires_grad_(); h = t.register_hook(lambda g: log.append(g.shape) or g * 2)
    y = (t * t).sum(); y.backward(); h.remove()
return t.grad, log

tensor_attributes
y = x + 1; y.name_ = "q"; y._meta = {"n": w.n}
z = y; u = y.clone()
return z.name_, hasattr(u, "name_"), vars(y), y

tensor_in_dict_keys
d = {x: 1}; y = x + 1; d[y] = 2; s = {x, y, x}
return d[x], d[y], len(s), x in d, (x + 1) in d, [k.shape for k in d], hash(x) == id(x)

tensor_iteration
rows = [r for r in x]; a, *b = x; u = list(zip(x, x.flip(0))); m = dict(enumerate(x.unbind(1)))
return rows, a, len(b), u[0], m[0], sum(x), len(x), max(len(r) for r in x), [float(v) for v in x[0]] if w.n == 4 else None, reversed(x)[0] if False else x[-1]

tensor_truth
out = []
if (x > 0).all(): out.append("pos")
elif torch.any(x > 0): out.append("some")
else: out.append("none")
out.append("y" if x.sum() else "n"); out.append(bool(x.numel())); out.append(x.max() > 0 and w.n)
while x.abs().max() > 0.5: x = x / 2
return x, out, not x[0, 0], [r.shape for r in x if r.sum() > 0]

tensor_numbers
n = int((x.sum() * 10).round()); f = float(x.mean()); v = x.tolist(); i = x.argmax().item()
return x * n, f"{f:.3f}", i, divmod(i, 4), torch.full((abs(n) % 3 + 1,), f), [round(a, 2) for a in v[0]], complex(x[0, 0]).real == x[0, 0].item()

index_from_tensor
i = x.argmax(); l = [10, 20, 30]; k = torch.tensor(1)
return l[k], x[k], x[:, i % 4], range(5)[k], "abc"[k], x.flatten()[i], x[: k + 1]

dynamic_split
sizes = [x.shape[0] - 1, 1]
a, b = x.split(sizes); c = x.chunk(2, 1); t = torch.tensor_split(x, (1, 3), 1); p = x.unfold(0, 1, 1)
return a, b, [q.shape for q in c], [q.shape for q in t], p.shape, torch.stack([*x.split(1)]).shape

mask_and_nonzero
m = x > 0; i = m.nonzero(); v = x[m]; a, b = torch.where(m); u, c = torch.unique((x * 3).round(), return_counts=True)
return i.shape[1], v.sum() + w.n, a.shape == b.shape, u * c, x.masked_select(m).numel() == v.shape[0], v.shape[0] > 3

topk_sampling
torch.manual_seed(w.n)
p = F.softmax(x, -1); v, i = torch.topk(p, 2); k = torch.multinomial(v, 1)
s, si = torch.sort(x, descending=True); keep = s.cumsum(-1) < 0.5; keep[..., 0] = True
return i.gather(-1, k), x.masked_fill(~keep.scatter(1, si, keep), -1e9), torch.bincount(i.flatten(), minlength=4)

padding_collation
seqs = [r[: i % 4 + 1] for i, r in enumerate(x)]
n = max(len(s) for s in seqs); out = x.new_full((len(seqs), n), -100.0); mask = torch.zeros(len(seqs), n, dtype=torch.bool)
for i, s in enumerate(seqs): out[i, : s.shape[0]] = s; mask[i, : len(s)] = True
return out, mask, rnn.pad_sequence(seqs, batch_first=True, padding_value=w.n), mask.sum(1)

sparse_and_complex
c = torch.view_as_complex(x.view(x.shape[0], 2, 2)); s = x.to_sparse() if w.n == 3 else None
return torch.view_as_real(c * c.conj()), c.abs(), s.to_dense() if s is not None else 0, torch.polar(x.abs(), x).real, torch.fft.rfft(x).imag

conj_imag_shares
c = torch.complex(x, x * 2)
i = c.conj().imag; r = c.real
r.mul_(2)
return c, i, r

set_data_and_swap
y = x + 1; z = torch.zeros(2)
z.data = y.data; z.mul_(2)
return y, z, z.shape

set_and_resize
y = torch.empty(0); y.set_(x.clone()); y2 = torch.empty(0).resize_(x.shape[0], 2).fill_(w.n)
return y, y2, x.new_empty(0).shape, y.storage_offset()

out_variants
o = torch.empty(0); torch.add(x, 1, out=o); b = torch.empty_like(x); r = torch.mul(x, w.n, out=b)
v, i = torch.empty(0), torch.empty(0, dtype=torch.long); torch.max(x, 1, out=(v, i))
return o, b, r is b, v, i

size_arithmetic
n, m = x.shape; s = torch.Size([n, *x.shape[1:], m // 2])
return s, s.numel(), s + (1,), x.shape[::-1], x.shape == (n, 4), (n, m) < (3, 5), sum(x.shape), math.prod(s), n << 1, n | 1, -n // 2, n % -3, n ** 2, abs(-n), ~n, n ^ m, x.shape.index(4), 4 in x.shape, s.count(n), [0] * n, "ab" * n, x.shape[-1:], divmod(n, m), pow(n, 2, 5)

size_floats
n = x.shape[0]
return math.ceil(n / 2), math.floor(n * 0.7), round(n / 3, 2), int(n * 1.5), math.sqrt(n), math.log2(n), n ** 0.5, n / 2 == 1.5, math.isclose(n / 3, 1.0), float(n), n * 1.0, math.gcd(n, 6), math.copysign(n, -1), f"{n / 7:.4f}", max(n, 3.5), min(n / 2, 2), math.comb(n, 1), n.bit_length(), (n / 2).is_integer(), n.__index__(), math.hypot(n, 4)

number_methods
n = x.shape[0]; m = w.n
return n.real, n.imag, n.numerator, n.conjugate(), (n).to_bytes(2, "big"), int.from_bytes(bytes([n]), "big"), hex(n), bin(m), oct(n), chr(n + 65), str(n).zfill(3), n.__class__ is int, type(n) is type(m), [n] == [m], {n: 1}.get(m), hash(n) == hash(int(n)), isinstance(n, int), n.as_integer_ratio(), x

setattr_on_size
n = x.shape[0]
try: setattr(n, "a", 1); r = "set"
except AttributeError as e: r = str(e)
try: n.b = 2; r2 = "set"
except AttributeError as e: r2 = str(e)
return r, r2, x

interpolate_and_pool
t = x[None, None]
return F.interpolate(t, scale_factor=2, mode="nearest"), F.interpolate(t, size=(x.shape[0], 2), mode="bilinear", align_corners=False), F.adaptive_avg_pool2d(t, (1, 2)), F.pad(t, (1, 1, 0, w.n % 3)), F.max_pool2d(t, 1, 1)
"""
