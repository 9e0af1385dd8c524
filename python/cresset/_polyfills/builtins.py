"""Polyfills for builtins, in Python.

A polyfill is evaluated where the builtin would call back into the program. So the callee may contain a graph break
(src/frontend/trace_rules/polyfills.h). Frames of polyfills are hidden from the program and from tracebacks. Polyfills give the
builtins' results in the same order, and leave the builtins' own errors to the builtins.
"""

import _functools
import itertools
import operator
import sys
import types
import warnings
import weakref

from .. import _C

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins
builtins = types.SimpleNamespace(**_C._builtins)

_list, _tuple, _set, _dict, _sum = builtins.list, builtins.tuple, builtins.set, builtins.dict, builtins.sum
_max, _min, _sorted, _reduce = builtins.max, builtins.min, builtins.sorted, _functools.reduce
_len, _range, _next = builtins.len, builtins.range, builtins.next
_map, _filter, _starmap, _accumulate = builtins.map, builtins.filter, itertools.starmap, itertools.accumulate
_getattr, _setitem, _is_instance = builtins.getattr, operator.setitem, builtins.isinstance
_type, _is_subclass = builtins.type, builtins.type.__subclasscheck__
_add_note = BaseException.add_note
_warn = warnings.warn_explicit
_nothing = object()
_format, _str_of_object = builtins.format, object.__str__
_int, _bool, _float, _whole = builtins.int, builtins.bool, builtins.float, builtins.int.__int__
_LEAST, _MOST = -(2**63), 2**63 - 1


def list_of(values, /):
    out = []
    for value in values:
        out.append(value)
    return out


def first_of(values, count, /):
    """Takes a single item more than needed, as a sign of too many items."""
    out = []
    for value in values:
        out.append(value)
        if _len(out) > count:
            break
    return out


def next_of_external_generator(iterator, /):
    """For a generator from before the call."""
    return _next(iterator)


def tuple_of(values, /):
    return _tuple(list_of(values))


def set_of(values, /):
    out = set()
    for value in values:
        out.add(value)
    return out


def dict_of(values, /, **more):
    return _dict(list_of(values), **more)


def sum_of(values, /, start=0):
    if isinstance(start, (str, bytes, bytearray)):
        return _sum((), start)
    for value in values:
        start = start + value
    return start


def compensated_sum_of(values, /, start=0):
    """sum() of CPython 3.12, which adds the lost rounding of floats at the end. This covers floats, and ints within C's
    range, until an item of another type. No comparison of magnitudes is made, so that symbolic numbers stay symbols;
    the compensation is the same."""
    if isinstance(start, (str, bytes, bytearray)):
        return _sum((), start)
    kind, lost = _type(start), 0.0
    if kind is _int and not _LEAST <= start <= _MOST:
        kind = None
    for value in values:
        of = _type(value)
        if kind is _float and of is _float:
            total = start + value
            part = total - start
            lost = lost + ((start - (total - part)) + (value - part))
            start = total
        elif kind is _float and isinstance(value, _int) and _LEAST <= value <= _MOST:
            start = start + (value if of is _int or of is _bool else _whole(value))
        elif kind is _int and (of is _int or of is _bool):
            start = start + value
            if not (_LEAST <= value <= _MOST and _LEAST <= start <= _MOST):
                kind = None
        else:
            start = (_with_lost(start, lost) if kind is _float else start) + value
            kind, lost = _float if kind is _int and _type(start) is _float else None, 0.0
    return _with_lost(start, lost) if kind is _float else start


def _with_lost(total, lost):
    """Adds the compensation, unless the sum is infinite or overflowed on its way, or the sign of -0.0 would be lost."""
    if lost - lost == 0.0 and (total != 0.0 or lost != 0.0):
        return total + lost
    return total


def any_of(values, /):
    for value in values:  # noqa: SIM110  (any() is the builtin itself)
        if value:
            return True
    return False


def all_of(values, /):
    for value in values:  # noqa: SIM110
        if not value:
            return False
    return True


def max_of(values, /, *more, key=None, default=_nothing):
    if more:
        if default is not _nothing:
            return _max(values, *more, default=default)
        values = (values, *more)
    best = best_key = _nothing
    for value in values:
        of_value = value if key is None else key(value)
        if best_key is _nothing or of_value > best_key:
            best, best_key = value, of_value
    if best_key is not _nothing:
        return best
    return _max(()) if default is _nothing else default


def min_of(values, /, *more, key=None, default=_nothing):
    if more:
        if default is not _nothing:
            return _min(values, *more, default=default)
        values = (values, *more)
    best = best_key = _nothing
    for value in values:
        of_value = value if key is None else key(value)
        if best_key is _nothing or of_value < best_key:
            best, best_key = value, of_value
    if best_key is not _nothing:
        return best
    return _min(()) if default is _nothing else default


def sorted_of(values, /, *, key=None, reverse=False):
    items = list_of(values)
    if key is None:
        return _sorted(items, reverse=reverse)
    keys = []
    for item in items:
        keys.append(key(item))
    out = []
    for i in _sorted(_range(_len(items)), key=keys.__getitem__, reverse=reverse):
        out.append(items[i])
    return out


def _text_by(method, thing):
    text = _getattr(_type(thing), method)(thing)
    if not _is_instance(text, str):
        raise TypeError(f"{method} returned non-string (type {_type(text).__name__})")
    return text


def str_of(thing, /):
    return _text_by("__repr__" if _type(thing).__str__ is _str_of_object else "__str__", thing)


def repr_of(thing, /):
    return _text_by("__repr__", thing)


def format_by_class(thing, spec="", /):
    text = _type(thing).__format__(thing, spec)
    if not _is_instance(text, str):
        raise TypeError(f"__format__ must return a str, not {_type(text).__name__}")
    return text


def formatted_str_of(thing, spec="", /):
    text = str_of(thing)
    return _format(text, spec) if spec else text


def formatted_repr_of(thing, spec="", /):
    text = repr_of(thing)
    return _format(text, spec) if spec else text


def sort_by(items, /, *, key=None, reverse=False):
    mine, keys = items[:], []
    order = _list(_range(_len(mine)))
    items.clear()  # the list as code sees it in the meantime
    try:
        for item in mine:
            keys.append(key(item))
        order.sort(key=keys.__getitem__, reverse=reverse)
    finally:
        changed = _len(items) != 0
        items[:] = [mine[i] for i in order]
    if changed:
        raise ValueError("list modified during sort")


def reduce_of(function, values, initial=_nothing, /):
    for value in values:
        initial = value if initial is _nothing else function(initial, value)
    return _reduce(function, ()) if initial is _nothing else initial


def join_of(separator, values, /):
    return separator.join(list_of(values))


def extend_by(items, values, /):
    for value in values:
        items.append(value)


def add_note_to(error, note, /):
    """The notes of an exception are an ordinary list."""
    if isinstance(note, str) and isinstance(getattr(error, "__notes__", []), list):
        if not hasattr(error, "__notes__"):
            error.__notes__ = []
        error.__notes__.append(note)
    else:
        _add_note(error, note)


def with_names(function, names, variables):
    """eval() or exec() as called in a frame with these globals and locals."""

    def of_frame(source, /):
        return function(source, names, variables)

    return of_frame


def warn_of_place(registry, message, category, filename, lineno, module):
    """warnings.warn() as called at this place."""

    def of_place(*args, **kwargs):
        _warn(message, category, filename, lineno, module, registry)

    return of_place


def next_of_map(values, /):
    function, *iterators = values.__reduce__()[1]
    args = []
    for iterator in iterators:
        args.append(next(iterator))
    return function(*args)


def next_of_filter(values, /):
    function, iterator = values.__reduce__()[1]
    for value in iterator:
        if function is None or function is bool:
            if value:
                return value
        elif function(value):
            return value
    raise StopIteration


class _Gone:
    pass


def dead_reference():
    """A weak reference to a dead object, for reconstructions."""
    return weakref.ref(_Gone())


# Iterators in C whose function is a method of a number: Python calls it, as symbolic numbers need.
def _called(function):
    return lambda *args: function(*args)


def map_by_call(function, iterable, /, *others):
    return _map(_called(function), iterable, *others)


def filter_by_call(function, iterable, /):
    return _filter(_called(function), iterable)


def starmap_by_call(function, iterable, /):
    return _starmap(_called(function), iterable)


def accumulate_by_call(iterable, func, *, initial=None):
    return _accumulate(iterable, _called(func), initial=initial)


def next_of_zip(values, /):
    iterators = values.__reduce__()[1]
    if not iterators:
        raise StopIteration
    items = []
    for iterator in iterators:
        items.append(next(iterator))
    return _tuple(items)


def assign(owner, name, value, /):
    _C._assign(owner, name, value)


def data_of(tensor, /):
    """tensor.data of a tensor from before the call. Its memory may differ at each call; its versions are its own."""
    return tensor.detach().data


def attribute_of(owner, name, /):
    """getattr() of an object whose inspection must be visible: the call is a graph break."""
    return _getattr(owner, name)


def set_item(container, key, value, /):
    """The same for an assignment to an item."""
    _setitem(container, key, value)


def make_instance(cls, /, *args, **kwargs):
    """An instance of a class with __new__ in Python."""
    made = cls.__new__(cls, *args, **kwargs)
    if _is_subclass(cls, _type(made)):
        _type(made).__init__(made, *args, **kwargs)
    return made


class Map:
    """map(), for users that only take its items."""

    def __init__(self, function, *iterables):
        self.function = function
        self.iterators = iterators = []
        for iterable in iterables:
            iterators.append(iter(iterable))

    def __iter__(self):
        return self

    def __next__(self):
        args = []
        for iterator in self.iterators:
            args.append(next(iterator))
        return self.function(*args)


class Filter:
    """filter(), likewise."""

    def __init__(self, function, iterable):
        self.function, self.iterator = function, iter(iterable)

    def __iter__(self):
        return self

    def __next__(self):
        for value in self.iterator:
            if self.function is None or self.function is bool:
                if value:
                    return value
            elif self.function(value):
                return value
        raise StopIteration


class Enumerate:
    """enumerate(), likewise."""

    def __init__(self, iterable, start=0):
        self.iterator, self.index = iter(iterable), start

    def __iter__(self):
        return self

    def __next__(self):
        value = next(self.iterator)
        index = self.index
        self.index = index + 1
        return index, value


class Zip:
    """zip() without strict, likewise."""

    def __init__(self, *iterables):
        self.iterators = iterators = []
        for iterable in iterables:
            iterators.append(iter(iterable))

    def __iter__(self):
        return self

    def __next__(self):
        if not self.iterators:
            raise StopIteration
        items = []
        for iterator in self.iterators:
            items.append(next(iterator))
        return _tuple(items)


def _hide(code):
    _C._hide_frames(code)
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            _hide(constant)


for _thing in _list(globals().values()):
    for _function in _list(vars(_thing).values()) if isinstance(_thing, type) else [_thing]:
        if hasattr(_function, "__code__") and _function.__globals__ is globals() and _function is not _hide:
            _hide(_function.__code__)

# (builtin, polyfill, index of the argument whose items it takes; -1: always use the polyfill)
CONSUMERS = [
    (_list, list_of, 0),
    (_tuple, tuple_of, 0),
    (_set, set_of, 0),
    (_dict, dict_of, 0),
    (_sum, sum_of if sys.version_info < (3, 12) else compensated_sum_of, 0),
    (builtins.any, any_of, 0),
    (builtins.all, all_of, 0),
    (_max, max_of, 0),
    (_min, min_of, 0),
    (_sorted, sorted_of, 0),
    (_list.__dict__["sort"], sort_by, 0),
    (_reduce, reduce_of, 1),
    (str.__dict__["join"], join_of, 1),
    (_list.__dict__["extend"], extend_by, 1),
    (_add_note, add_note_to, -1),
]
ITERATORS = [(builtins.map, Map), (builtins.filter, Filter), (builtins.enumerate, Enumerate), (builtins.zip, Zip)]
_C._use_polyfills(CONSUMERS, ITERATORS, list_of, first_of, assign, data_of, attribute_of, set_item)
