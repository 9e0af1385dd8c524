"""Gives this process simulated CUDA devices: torch's CPU build gets CUDA tensors in memory of the host, and cresset a GPU
whose kernels run on the host. Nothing is undone: tests load the simulator in a process of their own.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.utils._pytree import tree_map

ROOT = Path(__file__).resolve().parents[3]
NAME = "cresset_gpu_simulator"


def library() -> Path | None:
    """The built module; None: there is none. CRESSET_GPU_SIMULATOR names a file elsewhere."""
    given = os.environ.get("CRESSET_GPU_SIMULATOR")
    found = [Path(given)] if given else sorted(ROOT.glob(f"build/*/tests/gpu_simulator/{NAME}*.so"))
    found = [path for path in found if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def reason_to_skip() -> str | None:
    if torch.version.cuda is not None:
        return "torch has a CUDA library: tests use the machine's GPU"
    if library() is None:
        return f"{NAME} is not built (make build)"
    return None


def load():
    """The module, after CUDA was set up. The first call must come before the first backward pass."""
    if NAME in sys.modules:
        return sys.modules[NAME]
    spec = importlib.util.spec_from_file_location(NAME, library())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NAME] = module
    _enable_torch(module)
    return module


def load_or_skip():
    """load() for a test file: skips the file where there can be no simulator."""
    if reason := reason_to_skip():
        pytest.skip(reason, allow_module_level=True)
    return load()


def use_for_cresset(module) -> None:
    """Gives cresset the simulated GPU."""
    import cresset

    cresset._C.use_gpu(module.gpu_options(), module.allocation_pools())


def on_cuda(tree):
    """A copy of a structure on the GPU. Tensors keep their strides, and share memory where the originals do; "cpu" and
    torch.device("cpu") become the GPU."""
    storages = {}

    def move(value):
        if isinstance(value, torch.device | str):
            return "cuda" if str(value) == "cpu" else value
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        if storage._cdata not in storages:
            storages[storage._cdata] = torch.empty(0, dtype=torch.uint8).set_(storage).cuda().untyped_storage()
        out = torch.empty(0, dtype=value.dtype, device="cuda")
        out.set_(storages[storage._cdata], value.storage_offset(), value.shape, value.stride())
        out = torch._neg_view(out) if value.is_neg() else out
        out = torch._conj(out) if value.is_conj() else out
        return out.requires_grad_(value.requires_grad)

    return tree_map(move, tree)


class _Stream(torch.Stream):
    """In the place of torch.cuda.Stream, whose base class CPU builds lack."""

    def __new__(cls, device=None, priority=0, **kwargs):
        if "stream_id" in kwargs:
            return super().__new__(cls, **kwargs)
        return super().__new__(cls, device="cuda" if device is None else device, priority=priority)

    @property
    def cuda_stream(self):
        return self.native_handle


class _Event:
    """In the place of torch.cuda.Event. torch.Event takes no objects of subclasses, so that the object is a torch.Event."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
        return torch.Event(device="cuda", enable_timing=enable_timing, blocking=blocking)


# As torch.cuda.get_device_properties gives it: an H200's.
_PROPERTIES = SimpleNamespace(
    name="Simulated GPU",
    major=9,
    minor=0,
    total_memory=141 << 30,
    multi_processor_count=132,
    max_threads_per_multi_processor=2048,
    shared_memory_per_block=48 << 10,
    shared_memory_per_block_optin=227 << 10,
    regs_per_multiprocessor=65536,
    warp_size=32,
    L2_cache_size=60 << 20,
)


def _enable_torch(module) -> None:
    """Completes torch.cuda, in this process."""
    for name in dir(module):
        if name.startswith("_cuda_"):
            function = getattr(module, name)
            function.__module__ = "torch._C"  # as torch's own
            setattr(torch._C, name, function)
    torch._C._has_cuda = True
    cuda = torch.cuda
    cuda._initialized = True
    cuda._exchange_device = torch._C._cuda_exchangeDevice
    cuda._maybe_exchange_device = torch._C._cuda_maybeExchangeDevice
    cuda._get_device_properties = lambda device: _PROPERTIES
    cuda.default_generators = tuple(module.default_generator(i) for i in range(module.devices))
    cuda.Stream = cuda.streams.Stream = _Stream
    cuda.Event = cuda.streams.Event = _Event
