"""Polyfills for iterators of itertools, in Python.

A polyfill is evaluated in the head of a loop, where no other code sees the iterator. Its frame survives a graph break
as any frame does, with symbols for varying numbers. Functions of the program called in the frame may have graph breaks,
too (src/frontend/trace_rules/polyfills.h). The originals report wrong arguments.
"""

import itertools

from .. import _C
from .builtins import _hide, builtins

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

_list, _tuple, _len, _range, _next, _iter = (
    builtins.list,
    builtins.tuple,
    builtins.len,
    builtins.range,
    builtins.next,
    builtins.iter,
)
_is_instance, _type, _bool, _int, _str = builtins.isinstance, builtins.type, builtins.bool, builtins.int, builtins.str
_count, _islice, _product, _combinations = itertools.count, itertools.islice, itertools.product, itertools.combinations
_repeat = itertools.repeat
_nothing = object()


def _is_number(value):
    return _is_instance(value, (_int, float, complex))


def count_of(start=0, step=1):
    return _counted(start, step) if _is_number(start) and _is_number(step) else _count(start, step)


def _counted(number, step):
    while True:
        yield number
        number = number + step


def cycle_of(iterable, /):
    if _type(iterable) in (_tuple, _range, _str):
        return _cycled(iterable)
    return _cycled_as_seen(_iter(iterable))


def _cycled(items):
    while items:
        for item in items:  # noqa: UP028
            yield item


def _cycled_as_seen(items):
    seen = []
    for item in items:
        seen.append(item)
        yield item
    while seen:
        for item in seen:
            yield item


def repeat_of(object, times=_nothing):
    if times is _nothing:
        return _repeated(object)
    return _repeated_times(object, times) if _is_instance(times, _int) else _repeat(object, times)


def _repeated(thing):
    while True:
        yield thing


def _repeated_times(thing, times):
    for _ in _range(times):
        yield thing


def chain_of(*iterables):
    return _chained(_iter(iterables))


def chain_from(iterables, /):
    return _chained(_iter(iterables))


def _chained(iterables):
    for items in iterables:
        for item in items:  # noqa: UP028  (`yield from` would keep no position in this frame)
            yield item


def islice_of(iterable, /, *bounds):
    for bound in bounds:
        if bound is not None and not (_is_instance(bound, _int) and bound >= 0):
            return _islice(iterable, *bounds)
    if _len(bounds) == 1:
        start, stop, step = None, bounds[0], None
    else:
        start, stop, step = bounds if _len(bounds) == 3 else (*bounds, None)
    start, step = 0 if start is None else start, 1 if step is None else step
    if step < 1:
        return _islice(iterable, *bounds)
    if stop is not None and start == 0 and step == 1:
        return _first(_iter(iterable), stop)
    return _sliced(_iter(iterable), start, stop, step)


def _first(items, count):
    for _ in _range(count):
        item = _next(items, _nothing)
        if item is _nothing:
            return
        yield item


def _sliced(items, wanted, stop, step):
    """Items before the next wanted item are taken when it is requested; items before `stop` are taken at the end."""
    at = 0
    while True:
        while at < wanted:
            if _next(items, _nothing) is _nothing:
                return
            at += 1
        if stop is not None and at >= stop:
            return
        item = _next(items, _nothing)
        if item is _nothing:
            return
        at += 1
        wanted += step
        if stop is not None and wanted > stop:
            wanted = stop
        yield item


def product_of(*iterables, repeat=1):
    if not (_is_instance(repeat, _int) and repeat >= 0):
        return _product(*iterables, repeat=repeat)
    pools = []
    for iterable in iterables:
        pools.append(_tuple(iterable))
    return _multiplied(pools * repeat)


def _multiplied(pools):
    total = 1
    for pool in pools:
        total *= _len(pool)
    for number in _range(total):
        items, rest = [], total
        for pool in pools:
            rest //= _len(pool)
            items.append(pool[number // rest % _len(pool)])
        yield _tuple(items)


def combinations_of(iterable, r):
    if not (_is_instance(r, _int) and r >= 0):
        return _combinations(iterable, r)
    return _combined(_tuple(iterable), r)


def _combined(pool, r):
    count = _len(pool)
    if r > count:
        return
    at = _list(_range(r))
    while True:
        items = []
        for i in at:
            items.append(pool[i])
        yield _tuple(items)
        last = r - 1
        while last >= 0 and at[last] == last + count - r:
            last -= 1
        if last < 0:
            return
        at[last] += 1
        for i in _range(last + 1, r):
            at[i] = at[i - 1] + 1


def zip_longest_of(*iterables, fillvalue=None):
    iterators = []
    for iterable in iterables:
        iterators.append(_iter(iterable))
    return _zipped(iterators, fillvalue)


def _zipped(iterators, fill):
    left = _len(iterators)
    while left:
        items = []
        for i in _range(_len(iterators)):
            item = _nothing if iterators[i] is None else _next(iterators[i], _nothing)
            if item is _nothing:
                left -= iterators[i] is not None
                if not left:
                    return
                iterators[i], item = None, fill
            items.append(item)
        yield _tuple(items)


def pairwise_of(iterable, /):
    return _paired(_iter(iterable))


def _paired(items):
    before = _next(items, _nothing)
    if before is _nothing:
        return
    for item in items:
        pair = before, item
        before = item
        yield pair


def accumulate_of(iterable, func=None, *, initial=None):
    return _accumulated(_iter(iterable), func, initial)


def _accumulated(items, function, total):
    if total is None:
        total = _next(items, _nothing)
        if total is _nothing:
            return
    yield total
    for item in items:
        total = total + item if function is None else function(total, item)
        yield total


def takewhile_of(predicate, iterable, /):
    return _taken(predicate, _iter(iterable))


def _taken(predicate, items):
    for item in items:
        if not predicate(item):
            return
        yield item


def dropwhile_of(predicate, iterable, /):
    return _dropped(predicate, _iter(iterable))


def _dropped(predicate, items):
    for item in items:
        if not predicate(item):
            yield item
            break
    for item in items:
        yield item


def starmap_of(function, iterable, /):
    return _mapped(function, _iter(iterable))


def _mapped(function, items):
    for args in items:
        yield function(*args)


def filterfalse_of(function, iterable, /):
    return _rejected(function, _iter(iterable))


def _rejected(function, items):
    for item in items:
        if function is None or function is _bool:
            if not item:
                yield item
        elif not function(item):
            yield item


def compress_of(data, selectors):
    return _selected(_iter(data), _iter(selectors))


def _selected(items, selectors):
    for item in items:
        chosen = _next(selectors, _nothing)
        if chosen is _nothing:
            return
        if chosen:
            yield item


def range_of(*bounds):
    """range() with a symbolic bound: a graph segment of a loop covers a single round, whatever the number of rounds."""
    start, stop, step = (0, *bounds, 1) if _len(bounds) == 1 else (*bounds, 1)[:3]
    return _rising(start, stop, step) if step > 0 else _falling(start, stop, step)


def _rising(number, stop, step):
    while number < stop:
        yield number
        number = number + step


def _falling(number, stop, step):
    while number > stop:
        yield number
        number = number + step


def rows_of(tensor, length):
    i = 0
    while i < length:
        yield tensor[i]
        i = i + 1


for _thing in _list(globals().values()):
    if hasattr(_thing, "__code__") and _thing.__globals__ is globals():
        _hide(_thing.__code__)

# (builtin, polyfill, least and most positional arguments, names; -1: any number)
LOOPS = [
    (_range, range_of, 1, 3, ()),
    (_count, count_of, 0, 2, ("start", "step")),
    (itertools.cycle, cycle_of, 1, 1, ()),
    (_repeat, repeat_of, 1, 2, ("object", "times")),
    (itertools.chain, chain_of, 0, -1, ()),
    (itertools.chain.from_iterable, chain_from, 1, 1, ()),
    (_islice, islice_of, 2, 4, ()),
    (_product, product_of, 0, -1, ("repeat",)),
    (_combinations, combinations_of, 2, 2, ("iterable", "r")),
    (itertools.zip_longest, zip_longest_of, 0, -1, ("fillvalue",)),
    (itertools.pairwise, pairwise_of, 1, 1, ()),
    (itertools.accumulate, accumulate_of, 1, 2, ("iterable", "func", "initial")),
    (itertools.takewhile, takewhile_of, 2, 2, ()),
    (itertools.dropwhile, dropwhile_of, 2, 2, ()),
    (itertools.starmap, starmap_of, 2, 2, ()),
    (itertools.filterfalse, filterfalse_of, 2, 2, ()),
    (itertools.compress, compress_of, 2, 2, ("data", "selectors")),
]
_C._use_loops(LOOPS)
