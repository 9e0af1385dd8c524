"""Ranges with symbolic ends, min() and max() of sizes, and iterators rebuilt after a graph break."""

import builtins
import warnings

import torch

from .. import _C
from .._genuine import capability, own
from .._numbers import INTS, SYMINTS

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_range = builtins.range


def _parts(args):
    return (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]


def _is_empty(start, stop, step):
    return not (stop > start if step > 0 else stop < start)


def _step_count(start, stop, step):
    return (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step


def _of_steps(*args):
    """range(): only the number of steps is specialized, not a symbolic end. range(0, n, 128) is the same loop for every
    n from 1 to 128. Returns a true range, whose ``stop`` may lie behind the given end."""
    if len(args) > 3 or not any(type(a) in SYMINTS for a in args):
        return _range(*args)
    start, stop, step = _parts(args)
    step = int(step)
    if step == 0 or _is_empty(start, stop, step):
        return _range(0, 0, step)
    start = int(start)
    return _range(start, start + int(_step_count(start, stop, step)) * step, step)


_MOST_LISTED = 256


def symbolic_range(*args):
    """The range of a loop. If start or step is symbolic, neither is specialized, and the result is a list."""
    start, stop, step = _parts(args)
    if not (type(start) in SYMINTS or type(step) in SYMINTS) or step == 0:
        return _of_steps(*args)
    if _is_empty(start, stop, step):
        return []
    steps = _step_count(start, stop, step)
    if steps > _MOST_LISTED:
        return _of_steps(*args)
    listed = []
    for i in _range(int(steps)):
        listed.append(start + i * step if i else start)
    return listed


class RangeIterator:
    """An iterator over a range with a symbolic position: a single graph segment serves every round of a loop."""

    def __init__(self, over, index):
        self.range, self.index = over, index

    def __iter__(self):
        return self

    def __next__(self):
        index = self.index
        if index >= len(self.range):
            raise StopIteration
        self.index = index + 1
        return self.range.start + index * self.range.step

    def __reduce__(self):
        return iter, (self.range,), self.index


def _moved_on(iterator, taken):
    for _ in range(taken):  # a dictionary may have no entries yet: then it is rebuilt later
        next(iterator, None)
    return iterator


# Rebuild iterators of a dictionary's views after a graph break. Only guards use `left`, the remaining items.
def _iterator_over_keys(dictionary, taken, left):
    return _moved_on(iter(dictionary), taken)


def _iterator_over_values(dictionary, taken, left):
    return _moved_on(iter(dictionary.values()), taken)


def _iterator_over_items(dictionary, taken, left):
    return _moved_on(iter(dictionary.items()), taken)


def _rest_of_set(items, left, size):
    """Rebuilds the iterator of a set: a rebuilt set may have another order."""
    for item in left:
        if len(items) != size:
            break
        yield item
    if len(items) != size:
        raise RuntimeError("Set changed size during iteration")


def _reduced_quietly(iterator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return iterator.__reduce__()


def _set_state_quietly(iterator, state):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        iterator.__setstate__(state)


def _symbolic(values):
    """Whether the values are integers and at least one is a symbolic size."""
    kinds = {type(v) for v in values}
    return not kinds.isdisjoint(SYMINTS) and kinds <= {*INTS}


def extremum(builtin, symbolic):
    """min() or max(): of sizes it is an expression, where a comparison would be a decision."""

    def extremum(*args, **kwargs):
        values = args[0] if len(args) == 1 and type(args[0]) in (tuple, list, torch.Size) else args
        if kwargs or (len(args) == 1 and values is args) or not _symbolic(values):
            return builtin(*args, **kwargs)
        out = values[0]
        for value in values[1:]:
            out = symbolic(out, value)
        return out

    extremum.__name__ = extremum.__qualname__ = builtin.__name__
    return extremum


@capability("min(), max() and range() of sizes")
def _begin():
    for name, symbolic in (("min", torch.sym_min), ("max", torch.sym_max)):
        builtin = own(builtins, name)
        _C._call_for_symbols(builtin, extremum(builtin, symbolic))
    _C._call_for_symbols(own(builtins, "range"), symbolic_range)
