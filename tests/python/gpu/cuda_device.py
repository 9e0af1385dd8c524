"""The CUDA devices of the tests of this folder: the machine's, or simulated ones where torch is a CPU build."""

from __future__ import annotations

import pytest
import simulator
import torch


def use():
    """Gives this process CUDA devices, and cresset its GPU. Returns the simulator's module; None: the devices are
    real."""
    if torch.version.cuda is None:
        simulated = simulator.load_or_skip()
        simulator.use_for_cresset(simulated)
        return simulated
    if not torch.cuda.is_available():
        pytest.skip("this machine has no GPU", allow_module_level=True)
    return None
