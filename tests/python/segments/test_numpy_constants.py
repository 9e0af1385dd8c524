"""Programs with arrays of numpy, beside eager: values, dtypes, order in memory, and shared memory between arrays and
tensors. Arrays of different calls are distinct."""

import numpy as np
import pytest
import torch
from numpy_programs import ENDED, WHOLE

import cresset


def equal(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.strides == b.strides and a.flags.writeable == b.flags.writeable
        return same and np.array_equal(a, b)
    if isinstance(a, torch.Tensor):
        same = a.dtype == b.dtype and a.stride() == b.stride()
        return same and a.shape == b.shape and torch.allclose(a.double(), b.double())
    return a == b


def memory_of(result):
    """All arrays in the result, and the arrays of its tensors."""
    if isinstance(result, np.ndarray):
        return [result]
    if isinstance(result, torch.Tensor):
        return [result.detach().numpy()]
    items = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else ()
    return [array for item in items for array in memory_of(item)]


def sharing(result):
    arrays = memory_of(result)
    return [(np.shares_memory(a, b), a is b) for i, a in enumerate(arrays) for b in arrays[:i]]


def calls(function, compiled, count=4):
    before = []
    for step in range(count):
        torch.manual_seed(step)
        x = torch.randn(4, 4)
        np.random.seed(step)
        expected = function(x.clone())
        state = np.random.get_state()[1].tolist()
        np.random.seed(step)
        got = compiled(x.clone())
        assert np.random.get_state()[1].tolist() == state
        assert equal(got, expected), (step, got, expected)
        assert sharing(got) == sharing(expected), step
        assert not any(np.shares_memory(a, b) for a in before for b in memory_of(got)), "arrays of another call"
        before += memory_of(got)


@pytest.mark.parametrize("name", WHOLE)
def test_known_arrays_are_computed_once(name):
    cresset.reset()
    calls(WHOLE[name], cresset.compile(WHOLE[name], fullgraph=True))
    stats = cresset.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_calls"]) == (1, 0, 0)
    assert not stats["recompiles"]


@pytest.mark.filterwarnings("ignore:__array_wrap__")
@pytest.mark.parametrize("name", ENDED)
def test_others_end_the_piece(name):
    cresset.reset()
    calls(ENDED[name], cresset.compile(ENDED[name]))
    assert cresset.stats()["eager_calls"] == 0


def test_one_program_for_all_sizes():
    """No program is specialized to an array with a size in it."""
    cresset.reset()
    compiled = cresset.compile(ENDED["of_shapes"])
    for n in (4, 5, 3, 7, 2):
        x = torch.randn(n, n)
        assert equal(compiled(x), ENDED["of_shapes"](x))
    assert not cresset.stats()["recompiles"]


def test_arrays_of_state_are_not_known():
    """Later calls find another array there, or the same array with new contents."""

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.size, self.cache, self.history = 3, None, []

        def forward(self, x):
            if self.cache is None:
                self.cache = np.ones(self.size) * 2
            self.history.append(np.arange(2))
            return x * float(self.cache.sum()), [h.copy() for h in self.history], self.cache.copy()

    cresset.reset()
    eager, module = Module(), Module()
    compiled = cresset.compile(module)
    for step in range(6):
        x = torch.randn(2, 2)
        assert equal(compiled(x), eager(x))
        if step == 3:
            eager.cache[1] = module.cache[1] = 7
    assert equal(module.history, eager.history)


def test_a_number_that_varies_is_no_constant():
    def program(x, n):
        return x + torch.from_numpy(np.arange(3) * n), np.full((2,), n)

    cresset.reset()
    compiled = cresset.compile(program)
    for n in (1, 2, 5, 1.5, 7, 2):
        x = torch.randn(3)
        assert equal(compiled(x, n), program(x, n))


@pytest.mark.parametrize("inference", [False, True])
def test_gradients_beside_arrays(inference):
    def program(x, w):
        return (x * w * torch.from_numpy(np.linspace(0, 1, 4, dtype=np.float32))).sum()

    cresset.reset()
    compiled = cresset.compile(program)
    w, v = (torch.ones(4, requires_grad=True) for _ in range(2))
    for _ in range(3):
        x = torch.randn(4)
        if inference:
            with torch.inference_mode():
                assert equal(compiled(x, w), program(x, v))
            continue
        compiled(x, w).backward()
        program(x, v).backward()
        assert torch.allclose(w.grad, v.grad)
