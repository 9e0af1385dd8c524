"""Forms of torch's functions for symbolic numbers: base.py says what they are. In use from when this is imported."""

from . import draws, losses, norms, numbers, places, products, ranges, special, statistics, windows  # noqa: F401
