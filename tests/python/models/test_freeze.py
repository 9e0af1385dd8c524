"""options={"freezing": True}: values that depend on weights alone are computed once, and again after a write to the
weights."""

from __future__ import annotations

import copy
import threading

import pytest
import torch
from compare import assert_same, error, same_strides, tensors
from torch import nn
from torch.nn import functional as F

import cresset

FREEZE = {"freezing": True}
FLOOR = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}


class Images(nn.Module):
    """Convolutions with all foldable neighbors, and some that cannot be folded."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.grouped = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.norm2 = nn.BatchNorm2d(16, affine=False)
        self.pointwise = nn.Conv2d(16, 32, 1)
        self.norm3 = nn.BatchNorm2d(32)
        self.up = nn.ConvTranspose2d(32, 8, 2, stride=2)
        self.norm4 = nn.BatchNorm2d(8)
        self.scale = nn.Parameter(torch.rand(8, 1, 1))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.norm1(self.first(x)))
        y = self.grouped(x)
        x = self.norm2(y) + y  # read twice
        x = F.silu(self.norm3(self.pointwise(x)))
        x = self.norm4(self.up(x)) * self.scale
        return self.head(x.mean((2, 3)))


class Rows(nn.Module):
    """Linear layers with factors behind them, parametrized weights, and tables of positions."""

    def __init__(self, width=32):
        super().__init__()
        self.a, self.b = nn.Linear(width, 64), nn.Linear(64, width, bias=False)
        self.gamma, self.shift = nn.Parameter(torch.rand(width)), nn.Parameter(torch.rand(1, 1, width))
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(width, width))
        self.table = nn.Parameter(torch.randn(9, width))
        self.register_buffer("index", torch.arange(12).reshape(3, 4) % 9)
        self.register_buffer("positions", torch.arange(6))

    def forward(self, x):
        mask = self.positions[:, None] >= self.positions[None, :]
        x = self.b(F.gelu(self.a(x))) * self.gamma + self.shift
        bias = self.table[self.index].sum(0).mean(0)
        return self.normed(x) + bias, mask.float().sum() * 2 + x.sum()


def settle(module):
    """Statistics and factors other than a module's initial values."""
    torch.manual_seed(1)
    for child in module.modules():
        if isinstance(child, nn.BatchNorm2d):
            child.running_mean.normal_()
            child.running_var.uniform_(0.5, 2)
            if child.affine:
                child.weight.data.uniform_(0.5, 2)
                child.bias.data.normal_()
    return module.eval()


CASES = {
    "images": (Images, lambda n: torch.randn(n, 3, 10, 8)),
    "rows": (Rows, lambda n: torch.randn(n, 7, 32)),
    "rows alone": (Rows, lambda n: torch.randn(n, 32)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@torch.no_grad()
def test_equal_to_eager_at_every_size(name, dtype):
    torch.manual_seed(0)
    make, data = CASES[name]
    module = settle(make()).to(dtype)
    double = copy.deepcopy(module).double()
    compiled = cresset.compile(module, options=FREEZE, fullgraph=True)
    for n in (3, 1, 5, 3, 2, 8, 3, 3):  # libraries are tried in turn
        x = data(n).to(dtype)
        got, eager, reference = compiled(x), module(x), double(x.double())
        same_strides(got, eager)
        for (path, a), (_, b), (_, r) in zip(tensors(got), tensors(eager), tensors(reference), strict=True):
            ours, theirs = error(a, r), error(b, r)
            assert ours <= max(2 * theirs, FLOOR[dtype]), f"{path}: {ours:.3g} off fp64, eager is {theirs:.3g} off"
    assert len(compiled_variants(compiled)) == 1


def compiled_variants(compiled):
    return cresset._C.cache_entries(compiled._cresset_call)


@torch.no_grad()
def test_batch_norm_and_layer_scale_leave_no_kernel():
    torch.manual_seed(0)
    module = settle(nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()))
    x = torch.randn(2, 3, 8, 8)
    plain, frozen = cresset.compile(copy.deepcopy(module)), cresset.compile(module, options=FREEZE)
    torch.testing.assert_close(frozen(x), plain(x))
    (before,), (after,) = compiled_variants(plain), compiled_variants(frozen)
    assert "relu" in after["program"] and "convolution_epilogue" in after["program"]
    assert after["program"].count("launch") < before["program"].count("launch")


@torch.no_grad()
def test_weights_that_are_written_are_noticed():
    torch.manual_seed(0)
    module = settle(Images())
    compiled = cresset.compile(module, options=FREEZE)
    x = torch.randn(2, 3, 8, 8)

    def check():
        for _ in range(3):
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-5)

    check()
    graphs = cresset.stats()["graphs"]
    for parameter in module.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
        check()
    module.norm1.running_mean.add_(1)
    check()
    module.load_state_dict({k: v * 0.9 for k, v in module.state_dict().items()})
    check()
    module.first.weight.data = module.first.weight.data * 2  # other memory, no write
    check()
    assert cresset.stats()["graphs"] == graphs
    module.head.weight = nn.Parameter(torch.randn_like(module.head.weight))
    check()


@torch.no_grad()
def test_results_are_the_callers():
    """Frozen values are not returned themselves: a write to a result must not change later results."""
    weight = torch.randn(4, 4)

    def function(x):
        doubled = weight * 2
        return doubled, doubled.t(), x @ doubled

    compiled = cresset.compile(function, options=FREEZE)
    x = torch.randn(3, 4)
    for _ in range(3):
        for result in compiled(x):
            result.add_(100)
    assert_same(compiled(x), function(x))


@torch.no_grad()
def test_what_the_program_writes_is_not_frozen():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(4))
            self.weight = nn.Parameter(torch.randn(4))

        def forward(self, x):
            self.seen.add_(1)
            return x * (self.seen * 2) + self.weight.exp()

    eager = Counting().eval()
    module = copy.deepcopy(eager)
    compiled = cresset.compile(module, options=FREEZE)
    x = torch.randn(3, 4)
    for _ in range(4):
        assert_same(compiled(x), eager(x))
    assert_same(module.seen, eager.seen)


def test_training_is_not_frozen():
    torch.manual_seed(0)
    eager = settle(Rows())
    module = copy.deepcopy(eager)
    compiled = cresset.compile(module, options=FREEZE)
    x = torch.randn(3, 32)
    for model in (eager, compiled):
        model(x)[0].sum().backward()
    for (name, got), (_, expected) in zip(module.named_parameters(), eager.named_parameters(), strict=True):
        torch.testing.assert_close(got.grad, expected.grad, msg=lambda text, name=name: f"{name}: {text}")
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x)[0], eager(x)[0], rtol=1e-4, atol=1e-5)
            for model in (module, eager):
                model.gamma.mul_(1.5)


def test_inference_mode_and_threads():
    torch.manual_seed(0)
    module = settle(Images())
    compiled = cresset.compile(module, options=FREEZE)
    x = torch.randn(2, 3, 8, 8)
    with torch.inference_mode():
        torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        module.first.weight.mul_(2)
        expected = module(x)
    wrong = []

    def work():
        with torch.no_grad():
            for _ in range(20):
                if not torch.allclose(compiled(x), expected, rtol=1e-4, atol=1e-5):
                    wrong.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@torch.no_grad()
def test_it_is_counted_and_off_by_default():
    torch.manual_seed(0)
    module = settle(Images())
    cresset.reset()
    cresset.compile(module)(torch.randn(2, 3, 8, 8))
    assert cresset.stats()["frozen_values"] == 0
    cresset.compile(module, options=FREEZE)(torch.randn(2, 3, 8, 8))
    assert cresset.stats()["frozen_values"] > 0
    cresset.reset()
    cresset.compile(module, options={"freezing": True})(torch.randn(2, 3, 8, 8))  # torch.compile's name
    assert cresset.stats()["frozen_values"] > 0
