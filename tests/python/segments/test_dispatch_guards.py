"""Graph breaks while a guard of torch's dispatcher is alive: the guard's end brings dispatch keys back."""

import gc

import pytest
import torch

import cresset

GUARDS = {"torch_dispatch": torch._C._DisableTorchDispatch, "transforms": torch._C._DisableFuncTorch}


def deleted(guard):
    def function(x):
        alive = guard()
        y = x * 2
        gc.collect()  # a graph break
        inside = torch.ones(2, device="meta").device
        del alive
        return y, inside, torch.ones(2, device="meta").device, torch.ones(3) + y

    return function


def in_a_block(guard):
    def function(x):
        with guard():
            y = x * 2
            gc.collect()
            inside = torch.ones(2, device="meta").device
        return y, inside, torch.ones(2, device="meta").device, torch.ones(3) + y

    return function


def with_sparse_tensors(guard):
    def function(x):
        alive = guard()
        y = x * 2
        gc.collect()
        z = torch.eye(3).to_sparse()
        del alive
        return y, torch.mv(z, y), torch.ones(2, device="meta").device

    return function


@pytest.mark.parametrize("make", [deleted, in_a_block, with_sparse_tensors])
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("around", [False, True])
def test_factories_after_a_guard(guard, make, around):
    function = make(GUARDS[guard])
    compiled = cresset.compile(function)
    x = torch.randn(3)
    outer = GUARDS[guard]() if around else None
    try:
        for _ in range(3):
            for got, expected in zip(compiled(x), function(x), strict=True):
                if isinstance(expected, torch.Tensor):
                    torch.testing.assert_close(got, expected)
                else:
                    assert got == expected
    finally:
        del outer
    assert not torch._C._dispatch_tls_is_dispatch_key_excluded("BackendSelect")
    assert torch.ones(2, device="meta").device.type == "meta"
