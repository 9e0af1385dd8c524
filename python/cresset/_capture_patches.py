"""Methods of torch.Tensor that cannot work on stand-ins, replaced while something is captured."""

import threading

import torch

from . import _C

_lock = threading.Lock()
_depth = 0


def _new(self, *args, **kwargs):
    """Tensor.new: sizes give an uninitialized tensor, data gives a tensor of it, of self's dtype and device."""
    if not _C.is_capturing():
        return torch._C.TensorBase.new(self, *args, **kwargs)
    if len(args) == 1 and not isinstance(args[0], (int, torch.SymInt)):
        if isinstance(args[0], torch.Size):
            return self.new_empty(args[0])
        return torch.tensor(args[0], dtype=self.dtype, device=self.device)
    return self.new_empty(args)


def _hash(self):
    """A symbolic number that is hashed is pinned to its value, whose hash it has."""
    return hash(int(self))


# For good: a number that a capture left in a container is asked for its hash later, too.
torch.SymInt.__hash__ = _hash


def install():
    """Installs the replacements; the returned function takes them away again."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            torch.Tensor.new = _new
    return _remove


def _remove():
    global _depth
    with _lock:
        _depth -= 1
        if _depth == 0:
            del torch.Tensor.new
