"""Checks every environment variable that cresset reads, once, when cresset is imported."""

import warnings

from . import _C


def _check():
    wrong = _C.wrong_options()
    if wrong:
        raise ValueError("cresset: environment variables have wrong values:\n  " + "\n  ".join(wrong))
    problem = _C.cache_folder_problem()
    if problem:
        warnings.warn(f"cresset: {problem}", stacklevel=2)


_check()
