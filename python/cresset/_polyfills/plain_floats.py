"""Functions of torch whose Python binding takes plain floats, with symbolic floats."""

import torch

from .. import _C

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins


def foreach_by_numbers(name, tensors, *args, **kwargs):
    """torch._foreach_mul_(tensors, numbers) and its kin, tensor by tensor."""
    method, results = name.removeprefix("_foreach_"), []
    for i, tensor in enumerate(tensors):
        mine = [a[i] if isinstance(a, (list, tuple)) else a for a in args]
        if method.rstrip("_") in ("addcdiv", "addcmul") and len(mine) == 3:
            results.append(getattr(tensor, method)(*mine[:2], value=mine[2]))
        else:
            results.append(getattr(tensor, method)(*mine, **kwargs))
    return tensors if name.endswith("_") else tuple(results)


def fused_step_by_number(name, *args, lr, **kwargs):
    """torch._fused_adamw_(..., lr=number) and its kin, whose overload takes the learning rate as a tensor. The rest of
    the numbers are constants of the program."""
    rate = torch.scalar_tensor(lr, dtype=torch.float64) if isinstance(lr, torch.SymFloat) else lr
    plain = {key: float(value) if isinstance(value, torch.SymFloat) else value for key, value in kwargs.items()}
    return getattr(torch, name)(*args, lr=rate, **plain)
