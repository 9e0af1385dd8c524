"""Checks every environment variable that cresset reads, once, when cresset is imported."""

import logging
import warnings

from . import _C


def _check():
    wrong = _C.wrong_options()
    if wrong:
        raise ValueError("cresset: environment variables have wrong values:\n  " + "\n  ".join(wrong))
    for line in _C.deprecated_options():
        logging.getLogger("cresset").warning("cresset: %s", line)
    problem = _C.cache_folder_problem()
    if problem:
        warnings.warn(f"cresset: {problem}", stacklevel=2)


_check()
