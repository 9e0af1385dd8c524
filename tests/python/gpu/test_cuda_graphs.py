"""CUDA graphs beside eager mode: programs recorded and replayed with other addresses, sizes and weights."""

from __future__ import annotations

import threading

import pytest
import torch
from test_programs import (
    MODELS,
    PROGRAMS,
    STRIDES_BY_KERNEL,
    Block,
    assert_same,
    autocast_step,
    copied,
    cuda,
    plain_step,
    simulated,
)
from torch import nn
from torch.nn import functional as F

import cresset

CALLS = 9  # three from the tape, then recordings, and replays with addresses that moved
# No step of these is in a graph: too few steps, or steps that read data.
NO_GRAPHS = {
    "branch", "causal_attention", "channels_last", "complex", "concatenated", "constant_tensor", "cross_entropy",
    "doubles", "embedding", "element_on_the_host", "factories", "from_the_host", "grouped_attention",
    "images", "integer_on_the_host", "item", "like", "mask", "masked_attention", "nonzero", "number_on_the_host",
    "pointwise", "resized_images", "sum_with_the_host", "to_the_host", "writes", "writes_columns", "attention",
    "batch_norm_statistics", "batch_norm_statistics_of_halves", "embedding_bags", "embedding_bags_with_the_end",
    "margin_losses", "bfloats", "computed_on_the_host", "halves", "indices", "indices_on_the_host", "linalg", "on_both", "scans",
    "shared_mask_attention", "there_and_back", "dropout",
}  # fmt: skip


def compiled_always(program):
    return cresset.compile(program, options={"cuda_graphs": "always"})


def graphs():
    return cresset.stats()["cuda_graphs"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    program, arguments = PROGRAMS[name]
    compiled = compiled_always(program)
    kept = []
    for call in range(CALLS):
        given = arguments(4)
        beside = copied(given)
        torch.manual_seed(call)
        expected = program(*beside)
        torch.manual_seed(call)
        got = compiled(*given)
        assert_same(given, beside)
        kept.append((got, expected))
    for got, expected in kept:  # results of earlier calls stay as they are
        assert_same(got, expected, strides=name not in STRIDES_BY_KERNEL)
    if simulated is not None:  # GPUs have other steps
        assert (graphs()["replays"] == 0) == (name in NO_GRAPHS), graphs()


def test_memory_of_graphs_that_is_made_again():
    """Pools of torch's allocator for 40 programs, one after another: its tables must tell them apart."""
    block, x = Block().cuda().eval(), cuda(2, 4, 16)
    for number in range(40):
        cresset.reset()
        compiled = compiled_always(lambda x, number=number: block(block(x)) * number)
        with torch.no_grad():
            for _ in range(CALLS):
                got = compiled(x)
            torch.testing.assert_close(got, block(block(x)) * number)
        assert graphs()["replays"] > 0, graphs()


class Deep(nn.Module):
    """Layers whose operators alternate between libraries and kernels."""

    def __init__(self, layers=3):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.scale = nn.Parameter(torch.ones(16))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.steps += 1
        return (self.blocks(x) * self.scale).softmax(-1)


def test_model_in_inference():
    model = Deep().cuda().eval()
    beside = Deep().cuda().eval()
    beside.load_state_dict(model.state_dict())
    compiled = compiled_always(model)
    kept = []
    with torch.no_grad():
        for _ in range(CALLS):
            x = cuda(2, 5, 16)
            kept.append((compiled(x), beside(x)))
    for got, expected in kept:
        assert_same(got, expected)
    assert_same(model.steps, beside.steps)
    assert graphs()["replays"] > 0


def test_other_weights():
    model = Deep().cuda().eval()
    compiled = compiled_always(model)
    x = cuda(2, 5, 16)
    with torch.no_grad():
        for call in range(3 * CALLS):
            if call % 3 == 0:  # other memory
                model.blocks[0].out.weight.data = cuda(16, 16)
            else:  # other numbers
                model.blocks[1].out.weight.mul_(1.1)
            assert_same(compiled(x), model(x))
    assert graphs()["replays"] > 0


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("step", [plain_step, autocast_step(torch.bfloat16)], ids=["f32", "autocast"])
@pytest.mark.parametrize("whole", [False, True], ids=["model", "whole_step"])
def test_training(name, whole, step):
    make, batch = MODELS[name]
    torch.manual_seed(0)
    models = [make().cuda() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    mine = torch.optim.SGD(models[1].parameters(), lr=0.01)
    reference = torch.optim.SGD(models[0].parameters(), lr=0.01)
    call = compiled_always(step) if whole else step
    model = models[1] if whole else compiled_always(models[1])
    tolerance = 1e-4 if step is plain_step else 2e-2
    for n in (4, 4, 4, 4, 4, 6, 4, 6, 4, 4):
        x = batch(n)
        got, expected = call(model, x, mine), step(models[0], x, reference)
        torch.testing.assert_close(got.detach(), expected.detach(), rtol=tolerance, atol=tolerance)
    for a, b in zip(models[1].state_dict().values(), models[0].state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=0.1 if step is not plain_step else 2e-3, atol=2e-2)
    assert graphs()["replays"] > 0 or name == "images"  # few steps follow each other


def test_gradients_accumulate():
    model, beside = Deep().cuda(), Deep().cuda()
    beside.load_state_dict(model.state_dict())
    compiled = compiled_always(model)
    for _ in range(CALLS):
        x = cuda(2, 5, 16)
        compiled(x).square().sum().backward()
        beside(x).square().sum().backward()
    for a, b in zip(model.parameters(), beside.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-4)


def test_many_sizes_share_memory():
    model = Deep().cuda().eval()
    compiled = compiled_always(model)
    sizes = [3, 17, 9, 3, 17, 9, 30, 3]
    with torch.no_grad():
        for n in sizes * 12:
            x = cuda(2, n, 16)
            assert_same(compiled(x), model(x))
    assert graphs()["replays"] > 0
    if simulated is not None:
        del x
        before = simulated.memory(0)["live_bytes"]
        with torch.no_grad():
            for n in sizes * 3:
                compiled(cuda(2, n, 16))
        assert simulated.memory(0)["live_bytes"] == before


def test_mode_and_options():
    x = cuda(4, 5, 16)
    model = Deep().cuda().eval()

    def replays(**settings):
        cresset.reset()
        compiled = cresset.compile(model, **settings)
        with torch.no_grad():
            for _ in range(CALLS):
                assert_same(compiled(x), model(x))
        return graphs()["replays"]

    assert replays(mode="reduce-overhead") > 0
    assert replays(options={"triton.cudagraphs": True}) > 0
    assert replays(options={"triton.cudagraphs": False}) == 0
    assert replays(mode="max-autotune-no-cudagraphs") == 0
    assert replays(options={"cuda_graphs": "never"}) == 0
    with pytest.raises(ValueError, match="unknown value 'on' of option 'cuda_graphs'; expected one of 'auto'"):
        cresset.compile(model, options={"cuda_graphs": "on"})


def replayed_model():
    """A model, its compiled form after enough calls for replays, and their argument."""
    model = Deep().cuda().eval()
    compiled = compiled_always(model)
    x = cuda(2, 5, 16)
    with torch.no_grad():
        for _ in range(CALLS):
            compiled(x)
    return model, compiled, x


def test_state_is_explained():
    kept = replayed_model()  # programs live as long as their functions
    (state,) = graphs()["programs"]
    del kept
    assert "graphs with" in state


def test_settings_of_libraries():
    _, compiled, x = replayed_model()
    with torch.no_grad():
        before = graphs()["recordings"]
        torch.backends.cuda.matmul.allow_tf32 ^= True
        try:
            for _ in range(3):
                compiled(x)
        finally:
            torch.backends.cuda.matmul.allow_tf32 ^= True
    assert graphs()["recordings"] > before


def test_streams():
    model = Deep().cuda().eval()
    compiled = compiled_always(model)
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    x = cuda(2, 5, 16)
    with torch.no_grad():
        expected = model(x)
        for call in range(2 * CALLS):
            side = streams[call % 2]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                got = compiled(x)
            torch.cuda.current_stream().wait_stream(side)
            assert_same(got, expected)


def test_threads():
    model = Deep().cuda().eval()
    compiled = compiled_always(model)
    wrong = []

    def calls(n):
        with torch.no_grad():
            for _ in range(CALLS):
                x = cuda(2, n, 16)
                if not torch.allclose(compiled(x), model(x), rtol=1e-4, atol=1e-4):
                    wrong.append(n)

    threads = [threading.Thread(target=calls, args=(n,)) for n in (4, 5, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(simulated is None, reason="a GPU's own checks of indices end its context")
def test_errors_of_operators():
    def program(x, i):
        y = (x.sin() @ x.cos().t()).softmax(-1).cumsum(0)
        return (y @ x).tanh().cumsum(1)[i].exp()

    compiled = compiled_always(program)
    x, good = cuda(6, 6), torch.arange(4)
    for _ in range(CALLS):
        assert_same(compiled(x, good), program(x, good))
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([0, 1, 2, 9]))
    assert_same(compiled(x, good), program(x, good))


@pytest.mark.skipif(simulated is None, reason="failures of the device, by the simulator")
def test_failures_of_the_device():
    model, compiled, x = replayed_model()
    with torch.no_grad():
        for n in (1, 2, 3):
            simulated.fail_launch(n)
            with pytest.raises(RuntimeError):
                for _ in range(CALLS):
                    compiled(x)
            simulated.fail_launch(0)
            for _ in range(CALLS):  # a failure while graphs are recorded would be no error: they would not be used
                assert_same(compiled(x), model(x))


def test_results_in_a_loop():
    """A result is the next call's argument."""
    program = torch.no_grad()(lambda x: F.layer_norm((x @ x.t()).softmax(-1) @ x, (16,)).cumsum(0).tanh())
    compiled = compiled_always(program)
    x = y = cuda(16, 16)
    for _ in range(2 * CALLS):
        x, y = compiled(x), program(y)
        assert_same(x, y)
