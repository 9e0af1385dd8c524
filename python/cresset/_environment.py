"""Checks every environment variable that cresset reads, once, when cresset is imported. Gives the log to `logging`."""

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


_levels = set()


def _is_handled():
    if logging.getLogger("cresset").hasHandlers():
        return True
    loggers = logging.root.manager.loggerDict.copy().items()
    return any(name.startswith("cresset.") and getattr(logger, "handlers", None) for name, logger in loggers)


def _receive(line):
    """Whether anyone handles the lines of CRESSET_LOG; hands a line, (area, text), to the logger of its area. An area
    that is on was asked for: its logger's level is INFO, unless the program has chosen one."""
    if line is None:
        return _is_handled()
    area, text = line
    logger = logging.getLogger(f"cresset.{area}")
    if area not in _levels:
        _levels.add(area)
        if logger.level == logging.NOTSET and logging.getLogger("cresset").level == logging.NOTSET:
            logger.setLevel(logging.INFO)
    logger.info("%s", text)
    return True


_check()
_C.set_log_receiver(_receive)
