# size: table
"""Programs of the language with torch and its kin, and objects that live and die between calls; as programs_language
has them."""

PROGRAMS = """
## torch and its kin

numpy_round_trip
a = x.detach().numpy()
return torch.from_numpy(np.sqrt(np.abs(a))), a.shape, float(np.mean(a))

numpy_scalars
return float(np.float64(2.5) * 2), int(np.int64(3)) + w.n, x * float(np.float32(0.5))

numpy_makes_tensor
return x + torch.tensor(np.arange(4, dtype=np.float32))

tensor_methods_by_name
return getattr(x, "sum")(dim=1), [getattr(torch, n)(x) for n in ("relu", "tanh")]

dtype_and_device_logic
y = x.to(torch.float64) if x.dtype == torch.float32 else x
return y.dtype == torch.float64, str(x.device), torch.finfo(x.dtype).max > 1e30, y.float()

indexing_many_ways
return x[0], x[:, 1:3], x[..., -1], x[None], x[[0, 1]], x[torch.tensor([1, 0])], x[x > 0], x[:, ::2]

index_assignment
y = x.clone(); y[0] = 7; y[:, 1] += 1; y[y < 0] = 0; y[[1, 2], [0, 1]] = torch.tensor([8.0, 9.0])
return y

in_place_chain
y = x.clone(); z = y.view(-1); z.mul_(2).add_(1); y[0].zero_()
return y, z

tensor_in_conditions
if (x > 100).any(): return "huge"
while x.sum() > 50: x = x / 2
return x

data_dependent_shapes
i = x.nonzero(); u = torch.unique(x > 0)
return i, u, x[x > 0].numel()

item_and_tolist
return x.sum().item() > 0, x[0].tolist(), int(x.argmax()), float(x[0, 0])

tensor_as_index
l = ["a", "b", "c"]
return l[torch.tensor(1)], x[torch.tensor(0)], [0] * torch.tensor(2)

tensor_iteration
return [r.sum() for r in x], len(x), list(x.shape), max(x[0]), sum(x)

tensor_equality
return torch.equal(x, x.clone()), (x == x).all().item(), x is x, x.shape == torch.Size([3, 4])

tensor_format
s = f"{x.sum():.3f}"; r = repr(torch.zeros(2)); w.log.append(s)
return r, x

einsum_and_friends
return torch.einsum("ij,kj->ik", x, x), torch.linalg.norm(x), torch.tril(x), torch.cumsum(x, 0)

vmap
return torch.func.vmap(lambda r: r * r.sum())(x)

grad_transform
return torch.func.grad(lambda t: (t ** 2).sum())(x)

jvp_transform
return torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))

vmap_of_grad
return torch.func.vmap(torch.func.grad(lambda r: (r * r).sum()))(x)

jacobian
return torch.func.jacrev(lambda r: r * 2)(x[0]), torch.func.jacfwd(torch.sin)(x[0])

autograd_inside
with torch.enable_grad():
    t = x.detach().clone().requires_grad_()
    (g,) = torch.autograd.grad((t * t).sum(), t)
return g

autograd_function
class Sq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t * t
    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return 2 * t * g
return Sq.apply(x)

checkpointing
from torch.utils.checkpoint import checkpoint
return checkpoint(lambda t: t.relu() * 2, x, use_reentrant=False)

distributions
d = torch.distributions.Normal(x, 1.0)
return d.log_prob(x + 1), d.mean, d.entropy()

distribution_categorical
d = torch.distributions.Categorical(logits=x)
return d.probs, d.log_prob(torch.zeros(x.shape[0], dtype=torch.long))

cond_operator
return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

cond_on_number
return torch.cond(x.shape[0] > 3, lambda t: t * 2, lambda t: t * 3, (x,))

cond_with_closures
k = w.n
def yes(t): return t * k
def no(t): return {"t": t - k}["t"]
return torch.cond(x.mean() > 0, yes, no, [x]), torch.cond(w.n > 1, yes, no, (x,))

cond_nested
def inner(t): return torch.cond(t.sum() > 1, lambda u: u + 1, lambda u: u - 1, (t,))
return torch.cond(x.sum() > 0, inner, lambda t: t * 2, (x,))

cond_by_another_name
from torch import cond as choose
return choose(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

cond_bad_predicate
try:
    torch.cond(x, lambda t: t, lambda t: t, (x,))
except RuntimeError as e:
    return "single-element" in str(e), x

while_loop_operator
from torch._higher_order_ops import while_loop
return while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 2), (torch.tensor(0), x))

torch_function_subclass
class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        w.log.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})
y = x.as_subclass(Logged) + 1
return type(y).__name__, y.as_subclass(torch.Tensor)

torch_function_duck
class Duck:
    def __torch_function__(self, func, types, args=(), kwargs=None): return func.__name__, len(args)
return torch.add(Duck(), 1), x

torch_function_mode
from torch.overrides import TorchFunctionMode
class M(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        w.log.append(func.__name__)
        return func(*args, **(kwargs or {}))
with M():
    y = torch.relu(x)
return y

torch_dispatch_mode
from torch.utils._python_dispatch import TorchDispatchMode
class M(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        w.log.append(func.__name__)
        return func(*args, **(kwargs or {}))
with M():
    y = torch.relu(x) + 1
return y

wrapper_subclass
class Two(torch.Tensor):
    @staticmethod
    def __new__(cls, a, b): return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)
    def __init__(self, a, b): self.a, self.b = a, b
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        pick = lambda n: [getattr(t, n) if isinstance(t, Two) else t for t in args]
        return Two(func(*pick("a")), func(*pick("b")))
y = Two(x, x * 10) + 1
return y.a, y.b

random_with_seed
torch.manual_seed(3)
return torch.rand(2, 2), torch.randn_like(x), torch.randint(0, 9, (3,)), F.dropout(x, 0.5)

random_state_restored
state = torch.get_rng_state(); a = torch.rand(2); torch.set_rng_state(state); b = torch.rand(2)
return torch.equal(a, b), x

default_dtype
torch.set_default_dtype(torch.float64)
try:
    y = torch.ones(2)
finally:
    torch.set_default_dtype(torch.float32)
return y.dtype == torch.float64, y

pytree_functions
from torch.utils import _pytree as pytree
d = {"p": [x, 1], "q": (x * 2,)}
leaves, spec = pytree.tree_flatten(d)
return len(leaves), pytree.tree_map(lambda v: v + 1, d), pytree.tree_unflatten(leaves, spec)["q"][0]

size_objects
s = x.shape
return s + (1,), s[1:], s.numel(), isinstance(s, tuple), torch.Size([2, 3])[0], list(s)

imports_inside
import math as m
from torch.nn import functional as fn
from collections import deque as dq
return m.sqrt(4), fn.relu(x), list(dq([1]))

tensor_attributes
x.tag = w.n; y = x * 2; y.note = "n"
return x.tag, hasattr(y, "tag"), y.note, y

sum_of_generator_with_break
return sum(float(r.sum()) for r in x), x

map_of_item
return list(map(torch.Tensor.item, x[0])), x

sorted_by_item
return sorted(x[0], key=lambda t: -t.item())[0], x

dict_of_items
return {i: v.item() for i, v in enumerate(x[0])}, x

min_max_of_tensors
return max(x[0], key=float), min(x[0]), sorted(x[0].tolist())

## functions that each call makes

their_defaults_are_their_own
def f(a, acc=[]):
    acc.append(1)
    return a * len(acc)
f(x)
print("|")
return f(x), f.__defaults__

their_keyword_defaults_are_their_own
def f(a, *, acc={}):
    acc[len(acc)] = float(a.sum())
    return len(acc)
f(x)
return f(x), f(x * 2)

their_attributes_are_their_own
f = lambda a: a * 2
f.seen = []
g = lambda a: a + 1
print("|")
f.seen.append(1)
g.seen = getattr(g, "seen", 0) + 1
return len(f.seen), g.seen, g(f(x))

each_call_has_others
f = lambda a: a * 2
class Here:
    def go(self, a):
        return a + 1
go = Here.go
print("|")
w.log.append(f)
return len(set(map(id, w.log))) == len(w.log), f(x), go is Here.go

## what objects do when they die

finalizers_break_when_the_program_has_ended
class Ends:
    def __init__(self, t):
        self.t = t
    def __del__(self):
        w.log.append(float(self.t.sum()))
e = Ends(x * 2)
return x * 3, x.shape[0]

finalizers_break_when_a_function_has_ended
class Ends:
    def __del__(self):
        w.log.append(float(self.t.sum()))
def f(t):
    e = Ends()
    e.t = t + 1
    return t * 2
y = f(x)
return y + float(y.sum())

finalizers_run_where_the_program_lets_go_behind_a_break
class Ends:
    def __del__(self):
        w.log.append("gone")
e = Ends()
if x.sum() > -1e9:
    x = x + 1
del e
w.log.append("after")
return x * 2

weak_references_die_behind_a_break
class Held:
    pass
held = Held()
held.t = x * 2
r = weakref.ref(held)
if x.sum() > -1e9:
    x = x + 1
y = r().t + x
del held
return y, r() is None

weak_references_with_a_callback_behind_a_break
class Held:
    pass
held = Held()
r = weakref.ref(held, lambda _: w.log.append("gone"))
if x.sum() > -1e9:
    x = x + 1
del held
w.log.append("after")
return x, r() is None

## classes whose attributes differ between calls

classes_of_partial_functions
n = float(x.sum())
class Here:
    f = functools.partial(torch.mul, other=n)
    s = slice(0, int(abs(n)))
print("|")
return Here.f(x), x[Here.s]

classes_of_methods_of_containers
class Here:
    m = dict(a=x).get
print("|")
return Here.m("a") * 2

## warnings that the call takes itself

warnings_recorded_over_a_break
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    warnings.warn("first")
    n = float(x.sum())
    warnings.warn("second", DeprecationWarning)
return [(str(s.message), s.category.__name__, s.lineno) for s in seen], n

warnings_recorded_without_a_break
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for k in range(2):
        warnings.warn(f"again {k}")
return seen[1].message.args, len(seen), x * 2

warnings_shown_by_a_function
import warnings
seen = []
def show(message, *rest, **more):
    seen.append(str(message))
old = warnings.showwarning
warnings.showwarning = show
try:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("first")
        n = float(x.sum())
        warnings.warn("second")
finally:
    warnings.showwarning = old
return seen, n

## names of the frame

eval_in_a_loop
out = []
for k in range(3):
    out.append(eval("k * 2"))
return out, eval("x * k")

notes_over_a_break
error = ValueError("a")
error.add_note("first")
w.error = error
n = float(x.sum())
error.add_note(f"second {n:.1f}")
wrong = []
for note in (1, None):
    try:
        error.add_note(note)
    except TypeError as e:
        wrong.append(str(e))
return error.__notes__, wrong, x * n

## lists of what is compared, that nobody reads any more

dead_lists_of_bools
k = [n > 2 for n in x.shape]
m = [i for i, b in enumerate(k) if b]
n = int(x.abs().sum() * 2)
k2 = [v >= 1 for v in x[0].tolist()]
q = [i for i, b in enumerate(k2) if b]
return x * n, m, int(x.sum()) + len(q)
"""
