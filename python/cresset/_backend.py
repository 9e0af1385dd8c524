"""``torch.compile(model, backend="cresset")``: torch's own front end captures, and cresset compiles the graph.

torch finds ``backend`` by the entry point in pyproject.toml.
"""

from ._api.compile import compile

_MODES = {"default": None}


def backend(graph_module, example_inputs, *, mode=None, options=None):
    """Compiles a graph captured by torch. ``mode`` and ``options``: as for :func:`cresset.compile`."""
    if hasattr(graph_module, "real_recompile"):  # the code is generated at the first call otherwise
        graph_module.real_recompile()
    return compile(graph_module.forward, mode=_MODES.get(mode, mode), options=options)
