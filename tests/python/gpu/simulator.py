"""Gives this process simulated CUDA devices: torch's CPU build gets CUDA tensors in memory of the host, and cresset a GPU
whose kernels run on the host. Nothing is undone: tests load the simulator in a process of their own.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

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


def use_for_cresset(module) -> None:
    """Gives cresset the simulated GPU."""
    import cresset

    cresset._C.use_gpu(module.gpu_options())


def _index(device) -> int:
    if device is None:
        return torch.accelerator.current_device_index()
    index = device if isinstance(device, int) else torch.device(device).index
    return torch.accelerator.current_device_index() if index is None else index


def _properties(device=None):
    index = _index(device)
    if not 0 <= index < torch.cuda.device_count():
        raise AssertionError("Invalid device id")
    return SimpleNamespace(
        name="Simulated GPU",
        major=9,
        minor=0,
        total_memory=80 << 30,
        multi_processor_count=132,
        max_threads_per_multi_processor=2048,
        shared_memory_per_block_optin=227 << 10,
        warp_size=32,
        L2_cache_size=60 << 20,
        gcnArchName="",
    )


def _enable_torch(module) -> None:
    """Puts answers for the simulated devices in the place of functions which torch's CPU build lacks."""
    cuda = torch.cuda
    cuda._lazy_init = lambda: None
    cuda._initialized = True
    cuda.is_initialized = lambda: True
    cuda._is_compiled = lambda: True
    cuda.is_available = lambda: True
    torch._C._cuda_getDeviceCount = lambda: module.devices
    cuda.current_device = lambda: torch.accelerator.current_device_index()
    cuda.set_device = lambda device: torch.accelerator.set_device_index(_index(device))
    cuda._exchange_device = lambda index: _exchange(index)
    cuda._maybe_exchange_device = lambda index: _exchange(index)
    cuda.synchronize = lambda device=None: None
    cuda.current_stream = lambda device=None: torch.accelerator.current_stream(_index(device))
    cuda.is_current_stream_capturing = lambda: False
    cuda.get_device_properties = _properties
    cuda.get_device_name = lambda device=None: _properties(device).name
    cuda.get_device_capability = lambda device=None: (9, 0)
    cuda.is_bf16_supported = lambda including_emulation=True: True
    cuda.empty_cache = lambda: None
    cuda.default_generators = tuple(module.default_generator(i) for i in range(module.devices))
    cuda.memory_allocated = lambda device=None: module.memory(_index(device))["live_bytes"]
    cuda.max_memory_allocated = lambda device=None: module.memory(_index(device))["peak_bytes"]
    cuda.reset_peak_memory_stats = lambda device=None: module.reset_peak(_index(device))


def _exchange(index: int) -> int:
    old = torch.accelerator.current_device_index()
    if index >= 0:
        torch.accelerator.set_device_index(index)
    return old
