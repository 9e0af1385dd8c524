"""The simulated CUDA devices themselves: CUDA tensors behave as torch's do, and their values are the CPU's."""

from __future__ import annotations

import threading

import pytest
import simulator
import torch

simulated = simulator.load_or_skip()


def test_devices():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.empty(2, device="cuda").device == torch.device("cuda:1")
    assert torch.empty(2, device="cuda").device == torch.device("cuda:0")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.empty(2, device="cuda:2")


def test_copies_between_devices():
    x = torch.randn(3, 4)
    on_first = x.cuda()
    on_second = on_first.to("cuda:1")
    assert (on_first.device.index, on_second.device.index) == (0, 1)
    assert on_second.cpu().equal(x) and on_first.cpu().equal(x)
    assert x.cuda().data_ptr() != x.data_ptr()
    on_first.copy_(torch.ones(4))
    assert on_first.cpu().equal(torch.ones(3, 4))
    y = torch.zeros(3, 4)
    assert y.copy_(on_second) is y and y.equal(x)
    assert x.t().cuda().stride() == x.t().stride()
    assert x.half().cuda().float().cpu().equal(x.half().float())


def test_views_share_storage():
    x = torch.arange(12.0, device="cuda").reshape(3, 4)
    for view in (x.t(), x[1:], x.view(4, 3), x.unsqueeze(0), x.diagonal(), x.unfold(1, 2, 1), x.split(2)[1]):
        assert view.is_cuda and view.untyped_storage()._cdata == x.untyped_storage()._cdata
        assert view._is_view() and view._base is not None
    x.t()[1].zero_()
    assert x[:, 1].cpu().equal(torch.zeros(3))
    assert x.add_(1) is x
    z = torch.view_as_complex(torch.randn(3, 2, device="cuda"))
    assert z.conj().is_conj() and z.conj().imag.is_neg()
    assert z.conj().cpu().equal(z.cpu().conj())


def test_changed_arguments():
    x = torch.empty(0, device="cuda")
    assert torch.add(torch.ones(3, device="cuda"), 1, out=x) is x
    assert x.cpu().equal(torch.full((3,), 2.0)) and x.untyped_storage().device.type == "cuda"
    x.resize_(2, 3)
    assert x.shape == (2, 3) and x.flatten()[:3].cpu().equal(torch.full((3,), 2.0))
    y = torch.zeros(4, device="cuda")
    x.set_(y)
    assert x.untyped_storage()._cdata == y.untyped_storage()._cdata and x.shape == (4,)
    x.set_()
    assert x.numel() == 0 and x.is_cuda
    y.t_().unsqueeze_(0)
    assert y.shape == (1, 4)
    y.data = torch.ones(2, device="cuda")
    assert y.shape == (2,)


def test_mixed_devices():
    x, on_cpu = torch.ones(3, device="cuda"), torch.ones(3)
    message = "Expected all tensors to be on the same device, but found at least two devices"
    for call in (
        lambda: x + on_cpu,
        lambda: on_cpu * x,
        lambda: torch.mm(x[None], on_cpu[:, None]),
        lambda: torch.cat([x, on_cpu]),
        lambda: x.add_(torch.ones(3, device="cuda:1")),
        lambda: torch.add(x, 1, out=on_cpu),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    assert (x + torch.tensor(2.0)).cpu().equal(torch.full((3,), 3.0))
    assert x[torch.tensor([0, 2])].is_cuda
    x[torch.tensor([True, False, True])] = 5
    assert x.tolist() == [5, 1, 5]
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        x.uniform_(generator=torch.Generator())


def test_fresh_memory_is_garbage():
    assert torch.empty(4, dtype=torch.uint8, device="cuda").tolist() == [0xA5] * 4
    simulated.set_garbage(0xFF)
    assert torch.empty(4, device="cuda").isnan().all()
    simulated.set_garbage(0xA5)
    assert torch.empty(1, device="cuda").data_ptr() % 512 == 0


def test_out_of_memory():
    simulated.set_memory_limit(1, simulated.memory(1)["live_bytes"] + (1 << 20))
    try:
        kept = torch.empty(1 << 19, dtype=torch.uint8, device="cuda:1")
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
            torch.empty(1 << 18, device="cuda:1")
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
            torch.cat([kept, kept])
        del kept
        torch.empty(1 << 18, device="cuda:1")
    finally:
        simulated.set_memory_limit(1, 0)


def test_memory_statistics():
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.empty(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4000
    del x
    assert torch.cuda.max_memory_allocated() - before == 4000
    y = torch.ones(10, 10, device="cuda", requires_grad=True)
    (y @ y).relu().sum().backward()
    del y
    assert torch.cuda.memory_allocated() == before


def test_random_numbers():
    def draw():
        x = torch.randn(5, device="cuda")
        return [x, torch.rand(5, device="cuda"), torch.nn.functional.dropout(x, 0.5), torch.randperm(5, device="cuda")]

    torch.manual_seed(3)
    state, first = torch.cuda.get_rng_state(), draw()
    torch.cuda.set_rng_state(state)
    host = torch.get_rng_state()
    assert all(a.equal(b) for a, b in zip(first, draw(), strict=True))
    assert torch.get_rng_state().equal(host), "the CPU's generator moved"
    assert not draw()[0].equal(first[0])
    generators = [torch.Generator(device="cuda").manual_seed(7) for _ in range(2)]
    assert torch.rand(3, generator=generators[0], device="cuda").equal(
        torch.rand(3, generator=generators[1], device="cuda")
    )
    assert generators[0].get_offset() == 4


def test_backward_runs_on_the_threads_of_devices():
    threads = []
    w = torch.randn(4, 4)
    grads = []
    for device in ("cpu", "cuda", "cuda:1"):
        x = w.detach().to(device).clone().requires_grad_()
        y = (x @ x).relu().sin()
        y.register_hook(lambda grad: threads.append(threading.get_ident()))
        y.sum().backward()
        assert x.grad.device == x.device
        grads.append(x.grad.cpu())
    torch.testing.assert_close(grads[1], grads[0])
    torch.testing.assert_close(grads[2], grads[0])
    assert threads[0] == threading.get_ident()
    assert len(set(threads)) == 3


def test_training():
    losses = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.LazyLinear(5),
        )
        model(torch.randn(2, 3, 6, 6))
        model, x = model.to(device), torch.randn(2, 3, 6, 6).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3], device=device))
            loss.backward()
            optimizer.step()
        losses.append(loss.detach().cpu())
    torch.testing.assert_close(losses[1], losses[0])


def test_autocast():
    x = torch.randn(3, 3, device="cuda")
    with torch.autocast("cuda"):
        assert (x @ x).dtype == torch.float16
        probabilities = (x.requires_grad_() @ x).softmax(0)
        assert probabilities.dtype == torch.float32
        probabilities[0].sum().backward()
        assert x.grad.dtype == torch.float32 and x.grad.isfinite().all()
    with torch.autocast("cuda", torch.bfloat16):
        assert torch.nn.functional.linear(x, x).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert (x @ x).dtype == torch.float32


def test_streams_and_events():
    side = torch.cuda.Stream()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != side
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        x = torch.ones(3, device="cuda") + 1
    torch.cuda.current_stream().wait_stream(side)
    x.record_stream(torch.cuda.current_stream())
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    end.record()
    torch.cuda.synchronize()
    assert begin.elapsed_time(end) >= 0 and end.query()


def test_pinned_memory():
    x = torch.randn(3).pin_memory()
    assert x.is_pinned() and not torch.randn(3).is_pinned()
    assert x.cuda(non_blocking=True).cpu().equal(x)
    assert torch.empty(3, pin_memory=True).is_pinned()


def test_operators_without_a_cuda_kernel():
    library = torch.library.Library("simulator_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    with pytest.raises(NotImplementedError):
        torch.ops.simulator_test.twice(torch.ones(2, device="cuda"))
    library._destroy()
