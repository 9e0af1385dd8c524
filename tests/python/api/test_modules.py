"""Compiled modules stay modules: state, hooks, training flags, copies; and follow the modes of torch."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from compare import assert_same, assert_same_call
from torch import nn

import cresset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, scale=1.0):
        self.calls += 1
        return self.drop(self.norm(self.linear(x)).relu()) * scale


def net(**changes) -> Net:
    torch.manual_seed(0)
    module = Net()
    with torch.no_grad():
        module.norm.running_var.uniform_(0.5, 1.5)
    return module.eval(**changes)


@torch.no_grad()
def test_module_stays_a_module():
    module = net()
    compiled = cresset.compile(module)
    assert isinstance(compiled, nn.Module)
    x = torch.randn(3, 4)
    torch.testing.assert_close(compiled(x), module(x))
    assert set(compiled.state_dict()) == set(module.state_dict())
    assert compiled.linear is module.linear
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in module.parameters()]
    compiled.load_state_dict(module.state_dict())
    assert not compiled.training
    with pytest.raises(AttributeError):
        _ = compiled.no_such_attribute


@torch.no_grad()
def test_buffers_mutated_in_forward():
    module, other = net(), net()
    compiled = cresset.compile(module)
    for n in (3, 5, 1):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x), other(x))
    assert module.calls.item() == 3


@torch.no_grad()
def test_batch_norm_training_updates_statistics():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train()
    other = copy.deepcopy(module)
    compiled = cresset.compile(module)
    for n in (2, 4, 3):
        x = torch.randn(n, 3, 8, 8)
        torch.testing.assert_close(compiled(x), other(x), rtol=1e-4, atol=1e-5)
    assert_same(dict(module.state_dict()), dict(other.state_dict()))


@torch.no_grad()
def test_train_and_eval_switch():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.9))
    compiled = cresset.compile(module)
    x = torch.ones(64, 4)
    module.eval()
    torch.testing.assert_close(compiled(x), module(x))
    module.train()
    assert (compiled(x) == 0).float().mean() > 0.5
    compiled.eval()
    assert not module.training
    torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_dropout_draws_anew_each_call():
    compiled = cresset.compile(lambda x: nn.functional.dropout(x, 0.5, training=True))
    x = torch.ones(256)
    assert not torch.equal(compiled(x), compiled(x))
    torch.manual_seed(5)
    first = compiled(x)
    torch.manual_seed(5)
    assert torch.equal(compiled(x), first)


@torch.no_grad()
def test_to_another_dtype():
    module = net()
    compiled = cresset.compile(module)
    x = torch.randn(3, 4)
    compiled(x)
    compiled.double()
    torch.testing.assert_close(compiled(x.double()), module(x.double()))
    compiled.to(torch.bfloat16)
    torch.testing.assert_close(compiled(x.bfloat16()), module(x.bfloat16()))


@torch.no_grad()
def test_parameter_replaced_or_moved():
    module = nn.Linear(3, 3)
    compiled = cresset.compile(module)
    x = torch.ones(2, 3)
    torch.testing.assert_close(compiled(x), module(x))
    module.weight = nn.Parameter(torch.zeros(3, 3))
    torch.testing.assert_close(compiled(x), module(x))
    module.weight.data = torch.ones(3, 3)
    torch.testing.assert_close(compiled(x), module(x))
    module.bias = None
    torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_submodule_replaced():
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    compiled = cresset.compile(module)
    x = torch.randn(4, 3)
    torch.testing.assert_close(compiled(x), module(x))
    module[1] = nn.Tanh()
    torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_hooks_run():
    module = nn.Linear(3, 3)
    compiled = cresset.compile(module)
    x = torch.ones(2, 3)
    compiled(x)
    handle = module.register_forward_hook(lambda m, args, out: out * 2)
    torch.testing.assert_close(compiled(x), module(x))
    handle.remove()
    torch.testing.assert_close(compiled(x), module(x))
    handle = module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    torch.testing.assert_close(compiled(x), module(x))
    handle.remove()


@torch.no_grad()
def test_tied_weights():
    module = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    module[1].weight = module[0].weight
    compiled = cresset.compile(module)
    x = torch.randn(2, 4)
    torch.testing.assert_close(compiled(x), module(x))
    module[0].weight.mul_(2)
    torch.testing.assert_close(compiled(x), module(x))


@torch.no_grad()
def test_deepcopy_and_pickle():
    compiled = cresset.compile(net())
    x = torch.randn(3, 4)
    compiled(x)
    twin = copy.deepcopy(compiled)
    twin.linear.weight.zero_()
    assert not torch.equal(twin(x), compiled(x))
    again = pickle.loads(pickle.dumps(compiled))
    torch.testing.assert_close(again(x), compiled(x))


@torch.no_grad()
def test_saved_weights_load_into_the_plain_module(tmp_path):
    compiled = cresset.compile(net())
    torch.save(compiled.state_dict(), tmp_path / "weights.pt")
    plain = net()
    plain.load_state_dict(torch.load(tmp_path / "weights.pt"))


# ------------------------------------------------------------------------------------------------- modes


def test_python_scalars():
    """A scalar argument may vary: the result follows it."""

    def function(x, n, f, flag, text):
        y = x * n + f
        return y.relu() if flag else y - len(text)

    compiled = cresset.compile(function)
    for args in ((2, 0.5, True, "a"), (3, 0.5, True, "a"), (3, 0.25, True, "a"), (3, 0.25, False, "a"), (3, 0.25, False, "bb"), (2, 0.5, True, "a")):  # fmt: skip
        x = torch.randn(3)
        torch.testing.assert_close(compiled(x, *args), function(x, *args))


def test_dtype_rank_and_structure_changes():
    compiled = cresset.compile(lambda x: (x * 2).sum(-1))
    for x in (torch.ones(3), torch.ones(2, 3), torch.ones(3, dtype=torch.int64), torch.ones(2, 3), torch.ones(1, 2, 3)):
        assert_same(compiled(x), (x * 2).sum(-1))


def test_grad_mode_switch():
    """Under grad mode with tensors that require it, the result can be differentiated, as in eager."""
    linear = nn.Linear(3, 2)
    compiled = cresset.compile(linear)
    x = torch.randn(4, 3)
    with torch.no_grad():
        assert not compiled(x).requires_grad
    out = compiled(x)
    assert out.requires_grad
    out.sum().backward()
    got = linear.weight.grad.clone()
    linear.weight.grad = None
    linear(x).sum().backward()
    torch.testing.assert_close(got, linear.weight.grad)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), linear(x))


@pytest.mark.parametrize("made", [torch.nn.Parameter, torch.Tensor.clone])
@pytest.mark.parametrize(
    "views",
    [
        lambda t: t.unbind(1),
        lambda t: t.split(2, 1),
        lambda t: t.split([1, 3], 1),
        lambda t: t.chunk(2, 1),
        lambda t: torch.tensor_split(t, 2, 1),
        lambda t: t.detach().unbind(1),
        lambda t: list(t),
        lambda t: t[:1].chunk(2, 1),
    ],
)
def test_several_views_in_inference_mode(made, views):
    given = made(torch.randn(3, 4))
    with torch.inference_mode():
        compiled = cresset.compile(lambda t: [v * 2 for v in views(t)] + [views(t)[0]])
        want = [v * 2 for v in views(given)] + [views(given)[0]]
        for _ in range(2):
            got = compiled(given)
            torch.testing.assert_close(got, want)
            assert [t.is_inference() for t in got] == [t.is_inference() for t in want]
            assert got[-1].data_ptr() == want[-1].data_ptr()


def test_views_of_what_inference_mode_made():
    with torch.inference_mode():
        x = torch.arange(12.0).reshape(3, 4)
    views = cresset.compile(lambda t: (t[1:], t.t(), t.unbind(0)[1], t * 2))
    for _ in range(2):
        assert [t.is_inference() for t in views(x)] == [True, True, True, False]


def test_inference_mode():
    compiled = cresset.compile(lambda x: x * 2 + 1)
    x = torch.randn(3)
    with torch.inference_mode():
        out = compiled(x)
        assert out.is_inference()
    torch.testing.assert_close(compiled(x), x * 2 + 1)
    assert not compiled(x).is_inference()


@torch.no_grad()
def test_autocast_switch():
    linear = nn.Linear(8, 8)
    compiled = cresset.compile(linear)
    x = torch.randn(4, 8)
    assert compiled(x).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(compiled(x), linear(x))
        assert compiled(x).dtype is torch.bfloat16
    assert compiled(x).dtype is torch.float32


@torch.no_grad()
def test_autocast_inside():
    def function(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = x @ y
        return z, z.float() @ y

    assert_same_call(function, cresset.compile(function), torch.randn(4, 4), torch.randn(4, 4))


LIBRARY = torch.library.Library("cresset_autocast", "DEF")  # keeps the operators alive
LIBRARY.define("product(Tensor a, Tensor b) -> Tensor")
LIBRARY.impl("product", lambda a, b: a.add(1) @ b, "CompositeExplicitAutograd")

OF_OTHERS = {
    "library": lambda x, y: torch.ops.cresset_autocast.product(x, y) * 2,
    "pseudo-inverse": lambda x, y: torch.linalg.pinv(x) @ y,
    "bilinear": lambda x, y: nn.functional.bilinear(x, x, y.expand(3, 4, 4)),
}


@torch.no_grad()
@pytest.mark.parametrize("name", OF_OTHERS)
def test_autocast_reaches_what_operators_are_made_of(name):
    """A kernel that calls operators runs under the program's autocast."""
    apply = OF_OTHERS[name]

    def function(x, y):
        before = apply(x, y) + 1
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = apply(x * 2, y) + 1
        return before, inside, apply(x, y)

    compiled = cresset.compile(function)
    for _ in range(3):
        assert_same_call(function, compiled, torch.randn(4, 4), torch.randn(4, 4))


def test_default_dtype_switch():
    compiled = cresset.compile(lambda x: x + torch.ones(3) / 2)
    x = torch.arange(3)
    assert compiled(x).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    assert compiled(x).dtype is torch.float64
    torch.set_default_dtype(torch.float32)
    assert compiled(x).dtype is torch.float32


def test_grad_mode_inside():
    def function(x):
        with torch.no_grad():
            y = x * 2
        return y + torch.is_grad_enabled()

    check = cresset.compile(function)
    torch.testing.assert_close(check(torch.ones(2)), function(torch.ones(2)))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("which", ["mean", "variance", "both"])
def test_batch_norm_whose_statistics_share_one_element(which, request):
    """Eager writes the shared element once for each channel; several threads do it in no order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    request.addfinalizer(lambda: torch.set_num_threads(threads))

    def f(x, mean, variance):
        return torch.nn.functional.batch_norm(x, mean, variance, training=True)

    compiled = cresset.compile(f)
    for _ in range(2):
        found = []
        for fn in (f, compiled):
            torch.manual_seed(0)
            mean = torch.zeros(1).expand(3) if which != "variance" else torch.zeros(3)
            variance = torch.ones(1).expand(3) if which != "mean" else torch.ones(3)
            found.append([fn(torch.randn(4, 3, 2), mean, variance), mean, variance])
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(b, a)


class _Registering(nn.Module):
    """A class that is notified of subclasses, which must state their kind."""

    told: list = []

    def __init_subclass__(cls, /, kind, **rest):
        super().__init_subclass__(**rest)
        _Registering.told.append((cls.__name__, kind))

    def forward(self, x):
        return x + 1


class _Registered(_Registering, kind="first"):
    pass


def test_compiling_tells_no_init_subclass():
    compiled, kept_out = cresset.compile(_Registered()), cresset.disable(_Registered())
    assert _Registering.told == [("_Registered", "first")]
    assert torch.equal(compiled(torch.zeros(2)), torch.ones(2)) and torch.equal(kept_out(torch.zeros(2)), torch.ones(2))

    class Own(type(compiled), kind="second"):
        pass

    assert _Registering.told.pop() == ("Own", "second")
