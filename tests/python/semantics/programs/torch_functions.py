# size: table
"""Programs in the idioms of torch's users: changing modules, hooks, caches, decoding, collating, modes. As
programs_library."""

PRELUDE = """
import torch.utils._pytree as pytree
from torch.nn.utils import rnn, parameters_to_vector, vector_to_parameters, clip_grad_norm_, parametrize, fuse_conv_bn_eval
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class Cache:
    def __init__(self): self.k, self.v, self.seen = [], [], 0
    def update(self, k, v, i):
        if len(self.k) <= i:
            self.k.append(k); self.v.append(v)
        else:
            self.k[i] = torch.cat([self.k[i], k], 0); self.v[i] = torch.cat([self.v[i], v], 0)
        self.seen += k.shape[0] if i == 0 else 0
        return self.k[i], self.v[i]
    def __len__(self): return self.seen
"""

PROGRAMS = r"""
hooks_that_count
|NET = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).requires_grad_(False)
|COUNTS = collections.Counter()
|for _n, _m in NET.named_modules(): _m.register_forward_hook(lambda m, i, o, n=_n: COUNTS.update([n]))
torch.manual_seed(0)
return NET(x).shape, dict(COUNTS)

hook_handles_in_call
|NET = nn.Linear(4, 2).requires_grad_(False)
seen = []
hs = [NET.register_forward_hook(lambda m, i, o: seen.append(o.shape)), NET.register_forward_pre_hook(lambda m, i: (i[0] + w.n,))]
try: y = NET(torch.ones_like(x)).shape
finally:
    for h in hs: h.remove()
return y, seen, len(NET._forward_hooks)

buffer_updates
|class M(nn.Module):
|    def __init__(s):
|        super().__init__(); s.register_buffer("m", torch.zeros(4)); s.register_buffer("n", torch.tensor(0)); s.register_buffer("z", None)
|    def forward(s, t):
|        s.n += 1
|        s.m.lerp_(t.mean(0), 0.1)
|        if s.z is None: s.z = t.sum(0)
|        else: s.z = s.z + 1
|        return (t - s.m) / s.n
|NET = M()
return NET(x), sorted(NET.state_dict()), NET.z

module_list_mutation
|NET = nn.ModuleList([nn.Identity()])
if len(NET) < 3: NET.append(nn.Hardtanh(0, float(w.n)))
for m in NET: x = m(x)
return x, len(NET), [type(m).__name__ for m in NET], NET[-1].max_val if len(NET) > 1 else 0

module_dict_iteration
|NET = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
if w.n == 4: NET["c"] = nn.Sigmoid()
if w.n == 6: del NET["a"]
out = {k: m(x) for k, m in NET.items()}
return out, list(NET.keys()), "c" in NET, len(NET)

sequential_slices
|NET = nn.Sequential(*[nn.Hardtanh(-i - 1.0, i + 1.0) for i in range(4)])
return NET[1:3](x), NET[-1](x), len(NET[: w.n % 4]), [m.max_val for m in NET]

parameter_replaced
|NET = nn.Linear(4, 3).requires_grad_(False)
if w.n % 2: NET.weight = nn.Parameter(torch.ones(3, 4) * w.n, requires_grad=False)
NET.bias = nn.Parameter(torch.zeros(3), requires_grad=False)
return NET(x).sum() * 0 + NET.weight.sum() * (w.n % 2), isinstance(NET.bias, nn.Parameter)

parameter_data_set
|NET = nn.Linear(4, 3, bias=False).requires_grad_(False)
NET.weight.data = torch.full((3, 4), float(w.n))
y = NET(x)
NET.weight.data.mul_(2)
return y, NET.weight

load_state_dict_inside
|NET = nn.Linear(4, 3, bias=False).requires_grad_(False)
sd = {"weight": torch.full((3, 4), float(w.n))}
r = NET.load_state_dict(sd)
return NET(x), str(r), list(NET.state_dict())

load_state_dict_error
|NET = nn.Linear(4, 3, bias=False).requires_grad_(False)
try: NET.load_state_dict({"weights": torch.ones(3, 4), "weight": torch.ones(2, 4)})
except RuntimeError as e: m = str(e)
return m, x * 2

load_state_dict_not_strict
|NET = nn.Linear(4, 3).requires_grad_(False)
r = NET.load_state_dict({"bias": torch.full((3,), float(w.n)), "zz": x}, strict=False)
return r.missing_keys, r.unexpected_keys, NET.bias + 0

state_dict_prefix
sd = w.net.state_dict(prefix="p.")
return list(sd), sd["p.weight"] is w.net.weight, sd["p.weight"].data_ptr() == w.net.weight.data_ptr(), x * sd["p.weight"]

params_to_vector
v = parameters_to_vector([w.net.weight, torch.ones(2, 2)])
ps = [torch.zeros(4), torch.zeros(2, 2)]
vector_to_parameters(v * w.n, ps)
return v, ps, x

pad_sequences
seqs = [x[:1, 0], x[:2, 0] if x.shape[0] > 1 else x[:1, 1], x[:, 0]]
p = rnn.pad_sequence(seqs, batch_first=True, padding_value=-1.0)
return p, rnn.unpad_sequence(p, torch.tensor([1, min(2, x.shape[0]), x.shape[0]]), batch_first=True)

pack_sequences
p = rnn.pack_padded_sequence(x[None].expand(2, -1, -1), torch.tensor([x.shape[0], 1]), batch_first=True, enforce_sorted=False)
u, l = rnn.pad_packed_sequence(p, batch_first=True)
return u, l, p.batch_sizes

rearrange_own
def rearrange(t, pattern, **axes):
    left, right = [s.split() for s in pattern.split("->")]
    sizes = dict(zip(left, t.shape)); sizes.update(axes)
    order = [left.index(a) for a in right]
    return t.permute(order).reshape([sizes[a] for a in right])
return rearrange(x, "n c -> c n"), rearrange(x[None], "b n c -> n b c")

pytree_all
tree = {"a": [x, (w.n, None)], "b": collections.OrderedDict(z=x + 1), "c": w.cfg}
leaves, spec = pytree.tree_flatten(tree)
m = pytree.tree_map(lambda v: v * 2 if isinstance(v, torch.Tensor) else v, tree)
return m, len(leaves), spec.num_leaves, pytree.tree_unflatten(leaves, spec)["a"][0] is x, pytree.tree_all(lambda v: v is not None, [x]), pytree.tree_map_only(torch.Tensor, torch.neg, tree)["b"]["z"], [pytree.keystr(k) for k, _ in pytree.tree_flatten_with_path(tree)[0]]

pytree_registered
|class Node:
|    def __init__(s, l, r): s.l, s.r = l, r
|pytree.register_pytree_node(Node, lambda n: ([n.l, n.r], None), lambda c, _: Node(*c))
t = Node(x, Node(w.n, x + 1))
o = pytree.tree_map(lambda v: v + 1, t)
return o.l, o.r.l, o.r.r, len(pytree.tree_leaves(t))

kv_cache
|C = Cache()
k, v = C.update(x, x * 2, 0)
k2, v2 = C.update(x + 1, x, 1)
return (k @ k2.T).sum(), len(C), C.k[0].shape, bool(C)

beam_search
lp = F.log_softmax(x @ torch.ones(4, 5).cumsum(1), -1)
beams = [([], 0.0)]
for t in range(min(3, lp.shape[0])):
    cand = []
    for seq, score in beams:
        top, idx = lp[t].topk(2)
        for s, i in zip(top.tolist(), idx.tolist()): cand.append((seq + [i], round(score + s, 3)))
    beams = sorted(cand, key=lambda b: (-b[1], b[0]))[: 2]
return beams

nms_loop
boxes = torch.stack([x[:, 0], x[:, 1], x[:, 0] + 1, x[:, 1] + 1], 1)
scores = x.sum(1)
order = scores.argsort(descending=True).tolist(); keep = []
while order:
    i = order.pop(0); keep.append(i)
    rest = []
    for j in order:
        lt = torch.maximum(boxes[i, :2], boxes[j, :2]); rb = torch.minimum(boxes[i, 2:], boxes[j, 2:])
        inter = (rb - lt).clamp(min=0).prod()
        if inter / (2 - inter) <= 0.5: rest.append(j)
    order = rest
return keep, boxes[keep]

collate
samples = [{"x": r, "n": i, "name": f"s{i}"} for i, r in enumerate(x)]
def collate(items):
    e = items[0]
    if isinstance(e, torch.Tensor): return torch.stack(items)
    if isinstance(e, int): return torch.tensor(items)
    if isinstance(e, dict): return {k: collate([d[k] for d in items]) for k in e}
    return items
return collate(samples)

default_collate
from torch.utils.data import default_collate
return default_collate([{"x": r, "n": i, "f": 1.5} for i, r in enumerate(x)])

masks_positions
n = x.shape[0]
causal = torch.full((n, n), float("-inf")).triu(1)
pos = torch.arange(n)[:, None] - torch.arange(n)[None]
alibi = -pos.abs() * torch.tensor([2.0 ** -(i + 1) for i in range(2)])[:, None, None]
keep = (torch.arange(n) < n - 1)[None].expand(n, -1)
return causal + alibi, keep, (pos >= 0) & keep, torch.where(keep, 0.0, -1e9), pos.clamp(-2, 2) + 2, causal.masked_fill(~keep, -5)

size_methods
s = x.shape
return s + (1,), (1,) + s, s * 2, s[1:], s[::-1], s.numel(), s.count(4), s.index(4), tuple(s), list(s), s == (3, 4), s != x.T.shape, hash(s) == hash(tuple(s)), repr(s), str(s), f"{s}", len(s), 4 in s, torch.Size([*s, 2]), type(s + (1,)), isinstance(s, tuple), s < (4,), max(s), sum(s), s[-1], math.prod(s), torch.Size(s) is s, x.size() == s, {s: 1}[tuple(s)], type(s[1:]), type(s * 2), x.stride(), type(x.stride())

numpy_interop
a = np.asarray([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
return x + torch.from_numpy(a), np.add(x.numpy(), 1).sum(), np.asarray(x).shape, torch.as_tensor(a) * w.n, x.numpy() @ a, np.ones(3)[x.shape[0] % 3], torch.tensor(np.float64(2.5)), x * np.float32(2), np.float32(2) * x, np.stack([r.numpy() for r in x]).shape

torch_function_logging
|class L(torch.Tensor):
|    SEEN = []
|    @classmethod
|    def __torch_function__(cls, func, types, args=(), kwargs=None):
|        cls.SEEN.append(torch.overrides.resolve_name(func) or func.__name__)
|        return super().__torch_function__(func, types, args, kwargs or {})
y = x.as_subclass(L)
z = (y + 1).relu().sum(0)
return z.as_subclass(torch.Tensor), type(z).__name__, list(L.SEEN[-6:])

function_mode_stack
|class Scale(TorchFunctionMode):
|    def __init__(s, k): s.k = k
|    def __torch_function__(s, func, types, args=(), kwargs=None):
|        r = func(*args, **(kwargs or {}))
|        return r * s.k if func is torch.relu else r
with Scale(2), Scale(w.n): y = torch.relu(x)
return y, torch.relu(x)

dispatch_mode_counts
|class C(TorchDispatchMode):
|    def __init__(s): super().__init__(); s.n = collections.Counter()
|    def __torch_dispatch__(s, func, types, args=(), kwargs=None):
|        s.n[func._schema.name] += 1
|        return func(*args, **(kwargs or {}))
with C() as c: y = x.relu().add(1).sum(0)
return y, dict(c.n)

grad_modes_nested
out = [torch.is_grad_enabled()]
with torch.no_grad():
    out.append(torch.is_grad_enabled())
    with torch.enable_grad(): out.append(torch.is_grad_enabled()); y = (x.clone().requires_grad_() * 2)
    with torch.set_grad_enabled(w.n % 2 == 0): out.append(torch.is_grad_enabled())
torch.set_grad_enabled(torch.is_grad_enabled())
return out, y.requires_grad, y.detach(), torch.is_inference_mode_enabled()

inference_mode_tensors
with torch.inference_mode(): y = x * 2; a = y.is_inference()
z = y + 1
return a, y.is_inference(), z.is_inference(), z, x.is_inference()

autocast_nesting
with torch.autocast("cpu", dtype=torch.bfloat16):
    a = (x @ x.T).dtype
    with torch.autocast("cpu", enabled=False): b = (x @ x.T).dtype
    c = torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")
    d = (x + 1).dtype, F.softmax(x @ x.T, -1).dtype
return a, b, c, d, torch.is_autocast_enabled("cpu")

fork_rng_inside
with torch.random.fork_rng():
    torch.manual_seed(w.n); a = torch.rand(2)
b = torch.rand(2)
return a, b, x

generator_objects
g = torch.Generator().manual_seed(w.n)
a = torch.rand(2, generator=g); s = g.initial_seed(); st = g.get_state().sum() >= 0
return a, s, torch.randperm(4, generator=g), bool(st), x

torch_generator_in_state
|GEN = torch.Generator().manual_seed(3)
return torch.rand(x.shape, generator=GEN) + x, torch.randint(0, 5, (2,), generator=GEN)

default_dtype_scope
d = torch.get_default_dtype()
torch.set_default_dtype(torch.float64)
try: y = torch.ones(2) * 0.1; z = torch.tensor(1.5)
finally: torch.set_default_dtype(d)
return y, z.dtype, torch.ones(1).dtype, x

default_device_scope
with torch.device("cpu"): y = torch.ones(2)
with torch.device("meta"): z = torch.ones(x.shape[0])
return y, z.device.type, z.shape, x

printoptions
torch.set_printoptions(precision=2)
try: s = str(x)
finally: torch.set_printoptions(profile="default")
return s, repr(x[0]), str(x.shape), f"{x[0, 0]:.2f}", str(x.dtype)

warnings_in_module
def old(k):
    warnings.warn(f"old {k}", DeprecationWarning, stacklevel=2)
    return k
with warnings.catch_warnings(record=True) as ws:
    warnings.simplefilter("always"); old(w.n); old(x.shape[0])
return [str(q.message) for q in ws], x

warnings_as_errors
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try: warnings.warn("e", UserWarning)
    except UserWarning as e: m = repr(e)
return m, x + 1

scheduler_loop
|SCHED = dataclasses.make_dataclass("SCHED", ["steps", "betas"])(4, torch.linspace(0.1, 0.4, 4))
alphas = (1 - SCHED.betas).cumprod(0)
for t in reversed(range(SCHED.steps)):
    eps = x * 0.1
    x = (x - (1 - alphas[t]).sqrt() * eps) / alphas[t].sqrt()
    if t > 0: x = x + 0.01 * t
return x

greedy_decode
|EMB = torch.arange(20.0).reshape(5, 4) / 10
ids = [0]
while len(ids) < 5:
    h = EMB[torch.tensor(ids)].mean(0) + x.mean(0)
    nxt = (EMB @ h).argmax().item()
    ids.append(nxt)
    if nxt == 2: break
return ids

sampling_topp
logits = x[0] * 3
probs = logits.softmax(-1); sp, si = probs.sort(descending=True)
keep = sp.cumsum(0) - sp < 0.8
probs = torch.zeros_like(probs).scatter(0, si, sp * keep)
i = torch.multinomial(probs / probs.sum(), 1)
return i, probs

stopping_criteria
|class Stop(abc.ABC):
|    @abc.abstractmethod
|    def __call__(s, t): ...
|class MaxLen(Stop):
|    def __init__(s, n): s.n = n
|    def __call__(s, t): return t.shape[0] >= s.n
|class Both(list):
|    def __call__(s, t): return any(c(t) for c in s)
stop = Both([MaxLen(8 + w.n)])
while not stop(x): x = torch.cat([x, x[-1:] + 1])
return x.shape, x[-1]

logits_processors
|PROCS = [lambda i, s: s / 2.0, lambda i, s: s.masked_fill(torch.arange(s.shape[-1]) == i[-1], -math.inf)]
ids = [w.n % 4]
for p in PROCS: x = p(ids, x)
return x, [p.__name__ for p in PROCS]

config_driven
cfgd = {"layers": [{"type": "scale", "k": w.n}, {"type": "act", "name": w.cfg.act}, {"type": "noop"}]}
ops = {"scale": lambda t, k: t * k, "act": lambda t, name: getattr(torch, name)(t), "noop": lambda t: t}
for l in cfgd["layers"]:
    l = dict(l); x = ops[l.pop("type")](x, **l)
return x

running_stats
|class Stats:
|    __slots__ = ("n", "mean", "m2")
|    def __init__(s): s.n, s.mean, s.m2 = 0, torch.zeros(4), torch.zeros(4)
|    def update(s, t):
|        for r in t:
|            s.n += 1; d = r - s.mean; s.mean = s.mean + d / s.n; s.m2 = s.m2 + d * (r - s.mean)
|        return s
|ST = Stats()
ST.update(x)
return ST.mean, ST.m2 / max(ST.n - 1, 1), ST.n

slots_made
|class P:
|    __slots__ = ("a", "b", "__weakref__")
|    def __init__(s, a, b): s.a, s.b = a, b
p = P(x, w.n); q = P(p, x.shape[0])
return q, q.a.a is x

slots_across_break
|class P:
|    __slots__ = ("a", "b")
|    def __init__(s, a, b): s.a, s.b = a, b
p = P(x * 2, [w.n])
k = int(x.sum())
p.b.append(k); p.a = p.a + k
return p.a, p.b

slots_and_dict
|class Base:
|    __slots__ = ("a",)
|class P(Base):
|    def __init__(s, a): s.a = a; s.z = a + 1
p = P(x)
print(float(p.a.sum()) > 0)
return p, p.a, p.z

scoped_registry_of_modules
|MODS = {"lin": nn.Linear(4, 4).requires_grad_(False)}
nn.init.constant_(MODS["lin"].weight, 0.5); nn.init.zeros_(MODS["lin"].bias)
for n, p in MODS["lin"].named_parameters(): p.mul_(w.n)
return MODS["lin"](x), sum(p.numel() for p in MODS["lin"].parameters())

lora_wrap
|class Lora(nn.Module):
|    def __init__(s, base, r):
|        super().__init__(); s.base = base
|        s.a = nn.Parameter(torch.ones(r, base.in_features) * 0.1, requires_grad=False); s.b = nn.Parameter(torch.ones(base.out_features, r), requires_grad=False)
|        s.on = True
|    def __getattr__(s, n):
|        try: return super().__getattr__(n)
|        except AttributeError: return getattr(super().__getattr__("base"), n)
|    def forward(s, t):
|        y = s.base(t)
|        return y + t @ s.a.T @ s.b.T if s.on else y
|NET = Lora(nn.Linear(4, 3).requires_grad_(False), 2)
NET.on = w.n % 2 == 0
nn.init.ones_(NET.base.weight); nn.init.zeros_(NET.base.bias)
return NET(x), NET.in_features, hasattr(NET, "zz")

apply_and_freeze
|NET = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
def freeze(m):
    for p in m.parameters(recurse=False): p.requires_grad_(False)
    w.log.append(type(m).__name__)
NET.apply(freeze).eval()
nn.init.ones_(NET[0].weight); nn.init.zeros_(NET[0].bias)
return NET(x), list(w.log), any(p.requires_grad for p in NET.parameters()), NET.training

train_toggle
|NET = nn.BatchNorm1d(4).requires_grad_(False)
NET.train(w.n % 2 == 0 and x.shape[0] > 1)
return NET(x), NET.running_mean + 0, NET.num_batches_tracked + 0

module_to_dtype
|NET = nn.Linear(4, 2).requires_grad_(False)
nn.init.ones_(NET.weight); nn.init.zeros_(NET.bias)
NET.to(torch.float64 if w.n % 2 else torch.float32)
return NET(x.to(NET.weight.dtype))

module_deepcopied
m = copy.deepcopy(w.net); m.weight.data.mul_(w.n)
return m(x), w.net.weight + 0, m.weight is w.net.weight

get_submodule_paths
|NET = nn.Sequential(collections.OrderedDict(a=nn.Sequential(nn.Tanh()), b=nn.ReLU()))
return NET.get_submodule("a.0")(x), [n for n, _ in NET.named_modules()], NET.b is NET.get_submodule("b"), repr(NET), dict(NET.named_children()).keys()

attribute_errors_of_modules
try: w.net.nothing
except AttributeError as e: m = str(e)
try: w.net.weight = 3
except TypeError as e: m2 = str(e)
return m, m2, hasattr(w.net, "steps"), x

register_errors
try: w.net.register_buffer("count", x)
except KeyError as e: m = str(e)
try: nn.ModuleDict({"a.b": nn.ReLU()})
except KeyError as e: m2 = str(e)
return m, m2, x

functional_errors
ms = []
for f in (lambda: x @ x, lambda: torch.cat([x, x[:, :2]]), lambda: x.view(7, 7), lambda: x.reshape(-1, 3), lambda: F.cross_entropy(x, torch.zeros(9, dtype=torch.long)), lambda: torch.stack([x, x.T]), lambda: x.squeeze(5), lambda: x[9, 9], lambda: x[:, 0, 0], lambda: x.expand(2, 2), lambda: x.to("nonsense"), lambda: x.foo, lambda: torch.zeros(-1), lambda: x + "a", lambda: x.unflatten(1, (3, 3)), lambda: F.linear(x, torch.ones(2, 3)), lambda: x.permute(0, 0), lambda: x.transpose(0, 3), lambda: torch.arange(0, 5, -1), lambda: x.sum(dim=4), lambda: x.index_select(0, torch.tensor([99])), lambda: x.gather(1, torch.tensor([[1]]).float()), lambda: nn.Linear(3, 2)(x), lambda: x.split([1, 1]), lambda: x.chunk(0), lambda: torch.tensor([[1], [1, 2]]), lambda: x.clamp(), lambda: x.item(), lambda: bool(x), lambda: x.repeat(2), lambda: F.pad(x, (1,)), lambda: torch.einsum("ij,jk", x, x), lambda: x.narrow(0, 5, 9), lambda: x.unfold(0, 99, 1), lambda: x.type(torch.float99)):
    try: f(); ms.append("ok")
    except Exception as e: ms.append((type(e).__name__, str(e)[:160]))
return ms

gradcheck_masked
from torch.func import grad
m = x > 0
return grad(lambda t: (t * m).sum())(x), m

func_grad_masked_select
from torch.func import grad
m = torch.ones_like(x, dtype=torch.bool)
return grad(lambda t: t.masked_select(m).sum())(x)

func_grad_block_diag
from torch.func import grad
return grad(lambda t: torch.block_diag(t, t).sum())(x)

checkpoint_no_grad
from torch.utils.checkpoint import checkpoint
with torch.no_grad(): y = checkpoint(lambda t: t.sin() * w.n, x, use_reentrant=False)
return y

checkpoint_reentrant_no_grad
from torch.utils.checkpoint import checkpoint
with torch.no_grad(): y = checkpoint(lambda t: t.sin(), x, use_reentrant=True)
return y

one_hot_under_vmap
#R
return torch.func.vmap(lambda t: F.one_hot(t, -1))(torch.tensor([0, 1, 2]))

one_hot_plain
return F.one_hot(torch.arange(3) % 3), F.one_hot(torch.tensor([0, 2]), 4)

one_hot_bad
#R
return F.one_hot(torch.tensor([5]), 3)

vmap_one_hot_given
return torch.func.vmap(lambda t: F.one_hot(t, 3))(torch.tensor([0, 1, 2]))

symint_to_numpy
n = x.shape[0]
return np.zeros(n).shape, np.arange(n).sum(), np.full((n, 2), n).tolist(), np.array([n, n > 2]).tolist(), np.int64(n), np.sqrt(n), np.ones((n,))[n - 1], np.prod(x.shape), np.isclose(n, 3.0), np.linspace(0, 1, n).tolist(), np.array(n), np.array(x.shape).tolist()

symint_in_torch_functions
n, m = x.shape
return torch.zeros(n, m), torch.full((n,), m), torch.arange(n, 0, -1), torch.eye(n, m), torch.linspace(0, n, m), x.view(n * m), x.reshape(m, n), x.expand(2, n, m).shape, x.repeat(n, 1).shape, x.narrow(0, n - 1, 1), x.split(n), x.split([1, n - 1]) if n > 1 else 0, x.chunk(n), x.roll(n), torch.tensor(n), torch.tensor([n, 1.5]), torch.scalar_tensor(n), x.new_full((n,), n), torch.randint(n, n + 1, (2,)), x.unfold(1, 2, 2), F.pad(x, (n, 0)), F.interpolate(x[None, None], size=(n * 2, m)), F.adaptive_avg_pool1d(x[None], n), torch.combinations(torch.arange(n)), torch.tril_indices(n, n), torch.cartesian_prod(torch.arange(n), torch.arange(2)), torch.Size([n, m]), torch.broadcast_shapes((n, 1), (m,)), torch.empty(n).shape, torch.bucketize(torch.tensor(1.5), torch.arange(n))

symfloat_in_torch
n = x.shape[0]; f = n / 4
return x * f, x + f, f * x, x ** f, torch.full((2,), f), torch.tensor(f), torch.tensor([f, n]), x.clamp(max=f), torch.pow(2.0, x * f), F.leaky_relu(x, f), torch.lerp(x, x + 1, f), x.masked_fill(x > 0, f), torch.where(x > 0, f, 0.0), x.add(x, alpha=f), math.sqrt(f), x.div(f), x // f, x % f, torch.isclose(torch.tensor(f), torch.tensor(n / 4)), torch.quantile(x, min(f, 1.0)), F.dropout(x, f * 0), x.fill_(f) if False else 0, x.sub(f), f - x, x.new_tensor(f), torch.addcmul(x, x, x, value=f), F.layer_norm(x, (4,), eps=f), x.renorm(2, 0, f), torch.arange(0, 1, 1 / n)

bools_in_torch
n = x.shape[0]; b = n > 2
return x.sum(0, keepdim=b), x.sort(descending=b)[0], x.argmax(0, keepdim=b), torch.full((2,), b), torch.tensor(b), torch.tensor([b, not b]), x * b, x + b, torch.where(x > 0, b, False), x.std(0, unbiased=b), x.cumsum(0).mul(b), torch.zeros(2, dtype=torch.bool) | b, F.softmax(x, 0) if b else x, x.to(torch.float64, copy=b), torch.ones(1, requires_grad=b).requires_grad, torch.nn.Linear(2, 2, bias=b).bias is None, x.topk(1, largest=b)[0], torch.norm(x, keepdim=b), x.masked_fill(torch.tensor(b), 0), torch.stack([x, x])[int(b)], torch.searchsorted(torch.arange(4), 2, right=b), torch.bincount(torch.tensor([int(b)])), torch.logical_not(torch.tensor(b)), F.interpolate(x[None, None], scale_factor=2, mode="bilinear", align_corners=b), nn.functional.gelu(x), x.unique(sorted=b).shape

optimizer_steps
|P = nn.Parameter(torch.ones(4)); OPT = torch.optim.SGD([P], lr=0.1, momentum=0.9)
with torch.enable_grad(): loss = (x * P).sum()
OPT.zero_grad(); loss.backward(); OPT.step()
return P.detach().clone(), loss.detach(), OPT.state[P]["momentum_buffer"].clone()

lr_scheduler
|P = nn.Parameter(torch.ones(4)); OPT = torch.optim.SGD([P], lr=1.0); SCH = torch.optim.lr_scheduler.StepLR(OPT, 2, 0.5)
lr = SCH.get_last_lr()[0]
OPT.step(); SCH.step()
return x * lr, OPT.param_groups[0]["lr"]

clip_gradients
|P = nn.Parameter(torch.ones(4))
with torch.enable_grad(): (x * P).sum().backward()
n = torch.nn.utils.clip_grad_norm_([P], 1.0)
g = P.grad.clone(); P.grad = None
return n, g

grad_accumulation
|P = nn.Parameter(torch.ones(4))
with torch.enable_grad(): (x * P).sum().backward()
return P.grad.clone()

autograd_inside_loop
y = x.clone().requires_grad_()
for _ in range(3):
    with torch.enable_grad(): l = (y ** 2).sum()
    g, = torch.autograd.grad(l, y)
    y = (y - 0.1 * g).detach().requires_grad_()
return y.detach()

hooks_on_tensors
with torch.enable_grad():
    y = x.clone().requires_grad_(); log = []
    z = y * 2; z.register_hook(lambda g: log.append(g.shape)); z.retain_grad()
    z.sum().backward()
return log, z.grad, y.grad

custom_function_ctx
|class Sq(torch.autograd.Function):
|    @staticmethod
|    def forward(ctx, t, k): ctx.save_for_backward(t); ctx.k = k; return t * t * k
|    @staticmethod
|    def backward(ctx, g): t, = ctx.saved_tensors; return 2 * t * g * ctx.k, None
with torch.enable_grad():
    y = x.clone().requires_grad_(); Sq.apply(y, w.n).sum().backward()
return y.grad

einsum_paths
return torch.einsum("ij,ij->i", x, x), torch.einsum("ij,kj->ik", x, x), torch.tensordot(x, x, dims=([1], [1])), torch.bilinear(x, x, torch.ones(2, 4, 4), None)

sparse_round
s = x.to_sparse()
return s.to_dense(), s._nnz(), torch.sparse.mm(s, x.T)

quantiles_and_stats
return x.quantile(0.5), x.median(), x.mode(0).values, x.var(0, correction=0), x.histc(4), torch.cov(x), torch.corrcoef(x) if x.shape[0] > 1 else 0, x.kthvalue(1, 0).values, x.cummax(0).values, torch.trapezoid(x, dim=0), x.diff(dim=0), x.logcumsumexp(0)

linalg_ops
a = x.T @ x + torch.eye(4)
return torch.linalg.inv(a), torch.linalg.solve(a, x.T), torch.linalg.det(a), torch.linalg.cholesky(a), torch.linalg.norm(x), torch.linalg.matrix_rank(a), torch.linalg.eigvalsh(a)

index_tricks
n = x.shape[0]
i = torch.arange(n)
y = x.clone(); y[i, i % 4] = 7; y[-1] += 1; y[:, ::2] *= 2; y[y > 6] = 0
z = x.clone(); z.index_add_(0, i, x); z.scatter_(1, (i % 4)[:, None], 9.0); z.index_fill_(1, torch.tensor([0]), 3)
return y, z, x[[0, -1]], x[..., None].shape, x[i.tolist()], x[:, [True, False, True, False]], x.take(torch.tensor([0, 1])), torch.take_along_dim(x, i[:, None] % 4, 1), x[None, :, 1:3], x[(i > 0)], x[slice(None), 1], x[torch.tensor(0)], x[np.array([0])], x[0][1], x[-1, -1]

inplace_on_views
y = x.clone(); v = y[0]; v.add_(1); u = y.T; u[0].mul_(2); y.view(-1)[::2].zero_(); c = y.chunk(2, 1); c[0].fill_(5)
return y, v, u, c

out_arguments
o = torch.empty_like(x)
r = torch.add(x, 1, out=o); torch.mul(x, 2, out=o[:, :2].clone() if False else o)
return r is o, o

dtype_logic
return x.half().dtype, x.to(torch.int32), x.double() + x, (x > 0).sum().dtype, x.long() / 2, torch.result_type(x, 1.0), torch.promote_types(torch.int8, torch.float16), torch.can_cast(torch.float, torch.int), x.type_as(torch.ones(1, dtype=torch.float64)).dtype, torch.finfo(x.dtype).max, torch.iinfo(torch.int8).min, x.bool(), x.to(torch.bfloat16).float(), torch.tensor([1, 2.5]).dtype, torch.tensor(True).dtype, x.byte() if False else 0
"""
