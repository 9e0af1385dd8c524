"""``torch.compile(model, backend="cresset")``: torch's own front end captures, cresset compiles what it captured.

torch finds ``backend`` by the entry point in pyproject.toml.
"""

from ._api import compile

_MODES = {"default": None}


def backend(graph_module, example_inputs, *, mode=None, options=None):
    """Compiles a graph that torch captured. ``mode`` and ``options`` are those of :func:`cresset.compile`."""
    if hasattr(graph_module, "real_recompile"):  # its code is made when it is first called, else
        graph_module.real_recompile()
    return compile(graph_module.forward, mode=_MODES.get(mode, mode), options=options)
