"""Functions of functools.lru_cache, called with numbers that vary (src/frontend/session/session_lru_cache.h).

A cached function promises equal results for equal arguments. So its code is run on symbols, if the code has no side
effects and returns plain containers of numbers, which must not be changed. If the cache has a result for the numbers of
the capturing call, the results must agree. In any other case there is a graph break, and the cache is asked natively.
After two calls with side effects in the code, the graph break comes at once.
"""

import types

from .. import _C

_Method = types.MethodType


def by_its_code(function, /, *args, **kwargs):
    of, given = (function.__func__, (function.__self__, *args)) if type(function) is _Method else (function, args)
    code = of.__wrapped__
    if type(code) is types.FunctionType and _C.begin_subgraph((of, given, kwargs)):
        try:
            result = code(*given, **kwargs)
        except Exception as error:
            if _C.abandon_subgraph(f"it raises {type(error).__name__}"):
                _C.cached_did_more(of)
        except BaseException:
            _C.abandon_subgraph("it is interrupted")
            raise
        else:
            if _C.end_subgraph([]) is None:
                _C.cached_did_more(of)
            elif _C.cached_may_give(of, given, kwargs, result):
                return result
        _C.explain_subgraph("a cached function", None)
    return function(*args, **kwargs)


_C._hide_frames(by_its_code.__code__)
