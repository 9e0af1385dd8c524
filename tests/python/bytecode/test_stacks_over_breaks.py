"""Native work between two graph segments finds the program's frames below it. sys._getframe, inspect, logging, warnings
and tracebacks report the same as eager, also in calls without evaluation."""

import inspect
import io
import logging
import os
import sys
import traceback
import warnings

import pytest
import torch

import cresset

WRITTEN = io.StringIO()
LOGGER = logging.getLogger("test_stacks_over_breaks")
LOGGER.propagate = False
LOGGER.setLevel(logging.INFO)
HANDLER = logging.StreamHandler(WRITTEN)
HANDLER.setFormatter(logging.Formatter("%(funcName)s:%(lineno)d %(message)s"))
LOGGER.addHandler(HANDLER)


# A frame held by a name prevents a graph break inside of its function: such calls are opaque.
def look(x):
    own = sys._getframe()
    number = float(x.sum())
    callers = [(f.function, f.lineno) for f in inspect.stack()[1:4]]
    return number, callers, own.f_back.f_code.co_name


def log(x):
    own = sys._getframe()
    LOGGER.info("%s of %s", float(x.sum()), own.f_code.co_name, stacklevel=2)


def warn(x):
    own = sys._getframe()
    warnings.warn(f"{float(x.sum())} of {own.f_code.co_name}", stacklevel=2)


def fail(x):
    own = sys._getframe()
    raise ValueError(f"{float(x.sum())} of {own.f_code.co_name}")


class Looks:
    __call__ = __add__ = __getitem__ = staticmethod(look)

    def __bool__(self):
        return look(torch.ones(1))[0] > 0


LOOKS = Looks()


def by_call(x):
    y = x + 1
    return look(y), y


def two_deep(x):
    def inner(z):
        return look(z * 2)

    out = [inner(x + i) for i in range(2)]
    with torch.no_grad():
        out.append(inner(x))
    return out


def by_operators(x):
    y = x + 1
    return LOOKS(y), LOOKS + y, LOOKS[y], 1 if LOOKS else 2


def by_key(x):
    y = x + 1
    return sorted([3, 1, 2], key=lambda k: look(y)[0] * k), y


def by_logging(x):
    y = x + 1
    log(y)
    return y * 2


def by_warning(x):
    y = x + 1
    warn(y)
    return y * 2


def in_traceback(x):
    y = x + 1
    try:
        fail(y)
    except ValueError as error:
        return [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)], y


def out_of_it(x):
    y = x + 1
    fail(y)


def in_a_generator(x):
    def each(z):
        for i in range(2):
            log(z + i)
            warn(z)
            yield look(z + i)

    out = []
    for found in each(x + 1):
        out.append(found)
    return out


def deprecated(x, level):
    warnings.warn("not any more", DeprecationWarning, stacklevel=level)
    LOGGER.warning("not any more", stacklevel=level)
    return x * 2


def of_callers(x):
    """The caller of the compiled function differs at each call."""
    out = [deprecated(x, level) for level in (1, 2, 3, 4, 40)]
    warnings.warn("of the caller", stacklevel=2)
    LOGGER.info("of the caller", stacklevel=2)
    return out


def given_to_itself(x):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for level in (1, 2, 3):
            deprecated(x, level)
        warnings.warn("of the caller", stacklevel=2)
    return x + len(seen), [(str(w.message), w.category, w.filename, w.lineno) for w in seen]


def one_place(function, x):
    return function(x)


def another_place(function, x):
    x = x + 0
    return function(x)


def deep_place(function, x, n=3):
    return deep_place(function, x, n - 1) if n else function(x)


PLACES = [one_place, another_place, deep_place]


def told(function, x, place=one_place):
    WRITTEN.truncate(0)
    WRITTEN.seek(0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = place(function, x)
        except ValueError as error:
            result = str(error), [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)[1:]]
    return repr(result), WRITTEN.getvalue(), [(str(w.message), w.filename, w.lineno) for w in seen]


PROGRAMS = [by_call, two_deep, by_operators, by_key, by_logging, by_warning, in_traceback, out_of_it]
PROGRAMS += [in_a_generator, of_callers, given_to_itself]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_who_looks_at_the_stack(program):
    cresset.reset()
    compiled = cresset.compile(program)
    for i in range(7):
        x, place = torch.full((2 + i % 2,), float(i)), PLACES[i % 3]
        assert told(compiled, x, place) == told(program, x, place), i


@pytest.mark.skipif(sys.version_info < (3, 12), reason="prefixes came with CPython 3.12")
def test_warnings_that_skip_files():
    def program(x):
        warnings.warn("not in this file, or in it", skip_file_prefixes=(__file__,))
        warnings.warn("not in this folder", skip_file_prefixes=(os.path.dirname(__file__),))
        return x + 1

    cresset.reset()
    compiled = cresset.compile(program)
    for place in PLACES:
        assert told(compiled, torch.ones(2), place) == told(program, torch.ones(2), place)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="f_locals is a copy")
def test_locals_that_a_callee_changes():
    def program(x):
        def change(k):
            caller = sys._getframe(1)
            number = float(caller.f_locals["y"].sum())
            caller.f_locals["y"] = caller.f_locals["y"] * k
            return number

        y = x + 1
        return change(2), change(3), y

    cresset.reset()
    compiled = cresset.compile(program)
    for i in range(4):
        x = torch.full((2,), float(i))
        assert repr(compiled(x)) == repr(program(x)), i
