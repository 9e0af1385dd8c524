"""The state of CUDA devices inside of compiled functions: streams, events, the current device, memory. Each call has the
effects of eager mode, the first as well as later ones."""

from __future__ import annotations

import cuda_device
import pytest
import torch

simulated = cuda_device.use()

import cresset  # noqa: E402

TWO = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


@pytest.fixture(autouse=True)
def as_before():
    cresset.reset()
    yield
    torch.cuda.set_device(0)
    torch.cuda.set_stream(torch.cuda.default_stream())


def inputs():
    return torch.rand(4, 8, device="cuda")


def test_work_in_a_stream_context():
    side, seen = torch.cuda.Stream(), []

    def program(x):
        y = x * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            seen.append(torch.cuda.current_stream() == side)
            z = y.sin() + 1
        torch.cuda.current_stream().wait_stream(side)
        return z * 3

    compiled = cresset.compile(program)
    for _ in range(4):
        x = inputs()
        torch.testing.assert_close(compiled(x), (x * 2).sin() * 3 + 3)
    assert seen == [True] * 4


def test_a_stream_that_is_set_stays_set():
    side = torch.cuda.Stream()

    def program(x):
        torch.cuda.set_stream(side)
        return x + 1

    compiled = cresset.compile(program)
    for _ in range(3):
        torch.cuda.set_stream(torch.cuda.default_stream())
        x = inputs()
        torch.cuda.synchronize()  # the program's stream does not wait for this one
        got = compiled(x)
        assert torch.cuda.current_stream() == side
        torch.testing.assert_close(got, x + 1)


def test_events():
    def program(x, begin, end):
        begin.record()
        y = (x + 1).exp()
        end.record()
        end.synchronize()
        return y, end.query()

    compiled = cresset.compile(program)
    for _ in range(3):
        x, events = inputs(), [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        y, done = compiled(x, *events)
        torch.testing.assert_close(y, (x + 1).exp())
        assert done
        assert all(event.event_id != 0 for event in events) if hasattr(events[0], "event_id") else True


@TWO
def test_the_current_device_that_is_set_stays_set():
    def program(x, number):
        torch.cuda.set_device(number)
        return x + 1, torch.cuda.current_device()

    compiled = cresset.compile(program)
    for number in (1, 0, 1, 0, 1):
        x = inputs()
        y, found = compiled(x, number)
        torch.testing.assert_close(y, x + 1)
        assert found == number == torch.cuda.current_device()


@TWO
def test_tensors_made_on_the_current_device():
    def program(x):
        return torch.ones(3, device="cuda") * 2, x + 1

    compiled = cresset.compile(program)
    for number in (0, 1, 0, 1):
        torch.cuda.set_device(number)
        made, y = compiled(inputs())
        assert made.device == y.device == torch.device("cuda", number)


@TWO
def test_a_device_context():
    def program(x):
        with torch.cuda.device(1):
            made = torch.ones(3, device="cuda")
        return made * 2, x + 1

    compiled = cresset.compile(program)
    for _ in range(3):
        made, _ = compiled(inputs())
        assert made.device.index == 1 and torch.cuda.current_device() == 0


def test_memory_is_asked_at_each_call():
    def program(x):
        return x + 1, torch.cuda.memory_allocated()

    compiled, kept = cresset.compile(program), []
    found = []
    for _ in range(3):
        kept.append(torch.zeros(1 << 16, device="cuda"))
        found.append(compiled(inputs())[1])
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize(
    "query",
    [
        torch.cuda.is_available,
        torch.cuda.device_count,
        torch.cuda.current_device,
        lambda: torch.cuda.get_device_properties(0).multi_processor_count,
        pytest.param(
            torch.cuda.is_current_stream_capturing,
            marks=pytest.mark.skipif(simulated is not None, reason="CPU builds of torch lack it"),
        ),
    ],
    ids=["is_available", "device_count", "current_device", "properties", "capturing"],
)
def test_constant_queries_stay_in_the_graph(query):
    def program(x):
        return x * 2, query(), x + 1

    compiled, x = cresset.compile(program, fullgraph=True), inputs()
    for _ in range(2):
        got = compiled(x)
        torch.testing.assert_close((got[0], got[2]), (x * 2, x + 1))
        assert got[1] == query()


@TWO
def test_the_current_device_stays():
    """Loading kernels takes a context of its own for a moment."""
    for current in (1, 0):
        torch.cuda.set_device(current)
        compiled = cresset.compile(lambda x, k=current: (x * (k + 2)).softmax(-1) + x.sum(0))
        for n in (3, 3, 5):
            x = torch.ones(n, 4, device="cuda")
            assert x.device.index == current
            assert compiled(x).device == x.device
            assert torch.cuda.current_device() == current
        replayed = cresset.compile(lambda x, k=current: (x + k).cumsum(0).sin(), options={"cuda_graphs": "always"})
        x = torch.ones(300, 4, device="cuda")
        for _ in range(8):
            torch.testing.assert_close(replayed(x), (x + current).cumsum(0).sin())
        assert torch.cuda.current_device() == current
    torch.cuda.set_device(0)
