"""Modules called in eager fallbacks, in code without any possible program."""

import gc
import traceback
import weakref

import pytest
import torch
import torch.nn.functional as F

import cresset


class Bar:
    """Like a progress bar: no other object may hold it, so the call's graph segment ends during its life."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        yield from self.items

    def __del__(self):
        pass


class Net(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first = torch.nn.Linear(width, 16)
        self.second = torch.nn.Linear(16, width)

    def forward(self, x):
        return self.second(F.gelu(self.first(x))) + x


class Named(Net):
    """Has a call of its own around torch's."""

    calls = 0

    def __call__(self, x):
        type(self).calls += 1
        return super().__call__(x) * 2


def loop(model, items):
    total = 0
    for x in Bar(items):
        y = model(x)
        if y.sum() > 1e9:
            break
        total = total + y.mean(0)
    return total


def items_of(*rows):
    return [torch.randn(n, 8) for n in rows]


@pytest.fixture(autouse=True)
def _afresh():
    torch.manual_seed(0)
    cresset.reset()
    yield
    cresset.reset()


def test_the_model_of_a_loop_that_runs_natively_is_compiled():
    model, items = Net(), items_of(2, 3, 4, 5)
    compiled = cresset.compile(loop)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(model, items), loop(model, items))
    stats = cresset.stats()
    assert stats["eager_fallbacks"] + stats["eager_calls"] == 3
    # The loop's first call captures the model's first call, meets the model again after the break, and compiles it
    # then.
    assert stats["calls"] == 3 + (len(items) - 2) + 2 * len(items)
    assert stats["recompiles"] == []


def test_in_the_call_that_is_captured_too():
    model = Net()
    with torch.no_grad():
        items = items_of(2, 3, 4, 5, 6)
        torch.testing.assert_close(cresset.compile(loop)(model, items), loop(model, items))
        assert cresset.stats()["calls"] == 1 + len(items) - 2
        assert cresset.stats()["kernels"] > 0


def train(model, optimizer, items):
    losses = []
    for x in Bar(items):
        loss = F.mse_loss(model(x), x.flip(0))
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def test_training_in_such_a_loop():
    items, results = items_of(4, 5, 6, 7), []
    for function in (train, cresset.compile(train)):
        torch.manual_seed(1)
        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        losses = [function(model, optimizer, items) for _ in range(3)]
        results.append((losses, [p.detach().clone() for p in model.parameters()]))
    assert cresset.stats()["backward_graphs"] > 0
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)


def test_a_compiled_function_inside_of_the_rest():
    calls = []

    @cresset.compile
    def inner(x):
        calls.append(cresset.is_compiling())
        return x.sin() + 1

    def outer(items):
        return [inner(x) for x in iter_bar(items)]

    def iter_bar(items):
        bar = Bar(items)
        for x in bar:
            if x.sum() < 1e9:
                yield x

    items = items_of(2, 3, 4)
    torch.testing.assert_close(cresset.compile(outer)(items), [x.sin() + 1 for x in items])
    assert calls[0] is True or calls[1] is True


def test_what_is_disabled_stays_so():
    @cresset.disable
    def call(model, x):
        return model(x)

    def outer(model, items):
        return [call(model, x) for x in Bar(items)]

    model, items = Net(), items_of(2, 3, 4)
    compiled = cresset.compile(outer)
    for _ in range(3):
        compiled(model, items)
    assert cresset.stats()["calls"] == 3


def test_a_call_of_the_modules_own_runs_once():
    model, items = Named(), items_of(2, 3, 4)
    compiled = cresset.compile(loop)
    want = loop(model, items)
    Named.calls = 0
    for i in range(3):
        torch.testing.assert_close(compiled(model, items), want)
        assert Named.calls == len(items) * (i + 1)


def test_errors_are_eagers():
    model, items = Net(), items_of(2, 3, 4)
    compiled = cresset.compile(loop)
    compiled(model, items)
    told = []
    for function in (loop, compiled):
        with pytest.raises(RuntimeError) as raised:
            function(model, [*items, torch.randn(2, 7)])
        names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
        told.append((str(raised.value), names[names.index("loop") :]))
    assert told[0][0] == told[1][0]
    assert "forward" in told[1][1]


class Decoder(Net):
    def decode(self, items):
        return loop(self, items)


def test_a_method_that_calls_its_own_module():
    model, items = Decoder(), items_of(2, 3, 4, 5)
    compiled = cresset.compile(model.decode)
    for _ in range(2):
        torch.testing.assert_close(compiled(items), model.decode(items))
    assert cresset.stats()["calls"] == 2 + (len(items) - 2) + len(items)


def test_a_module_that_cannot_be_compiled_has_its_own_compiled():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def forward(self, x):
            bar = Bar([x])
            for y in bar:
                if y.sum() > 1e9:
                    return y
                z = self.net(y)
            return z

    model, items = Outer(), items_of(2, 3, 4, 5)
    compiled = cresset.compile(loop)
    for _ in range(3):
        torch.testing.assert_close(compiled(model, items), loop(model, items))
    assert cresset.stats()["kernels"] > 0


def test_models_are_let_go_of():
    compiled = cresset.compile(loop)

    def use(compiled):
        model = Net()
        compiled(model, items_of(2, 3, 4))
        compiled(model, items_of(2, 3, 4))
        return weakref.ref(model)

    model = use(compiled)
    cresset.reset()
    gc.collect()
    assert model() is None
    model = use(compiled)
    del compiled
    gc.collect()
    assert model() is None


def test_a_model_for_each_call_is_not_compiled():
    def once(items):
        total = 0
        for x in Bar(items):
            total = total + Net()(x).sum().item()
        return total

    compiled = cresset.compile(once)
    items = items_of(2, 3, 4, 5)
    for _ in range(3):
        compiled(items)
    assert cresset.stats()["calls"] == 3


class Doubled(torch.utils.data.Dataset):
    def __init__(self, model):
        self.model = model

    def __len__(self):
        return 6

    def __getitem__(self, i):
        with torch.no_grad():
            return self.model(torch.full((1, 8), float(i)))[0]


def test_processes_that_are_forked_meanwhile():
    def outer(model, dataset):
        loader = torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=1, multiprocessing_context="fork")
        return [model(x).sum().item() for x in loader]

    model = Net()
    compiled = cresset.compile(outer)
    for _ in range(2):
        want = outer(model, Doubled(model))
        torch.testing.assert_close(compiled(model, Doubled(model)), want, rtol=1e-5, atol=1e-5)


def test_garbage_is_collected_in_the_rest_of_a_captured_call():
    def outer(items):
        out = []
        for _ in Bar(items):
            out.append(gc.isenabled())
        return out

    assert cresset.compile(outer)(items_of(2, 3))[-1] is True
    assert gc.isenabled()
