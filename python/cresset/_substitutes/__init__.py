"""Substitutes, called during a capture for functions that do not work on proxy tensors and symbolic sizes.

Numbers: `integers`, `numpy_integers`, `floats`, `ranges`. Arrays of numpy: `arrays`. Tensors and torch's functions:
`tensors`, `functions`. Functions that would start another compiler: `compilers`. The rest: `outside`. Functions are
recognized by identity (src/frontend/trace_rules/substitutes.h).
"""

from .. import _C, _decompositions  # noqa: F401  (registers itself)
from .._polyfills import autograd, builtins, control_flow, itertools, wrapper_subclass  # noqa: F401  (registers itself)
from . import (  # noqa: F401
    graph_breaks,
    other_compilers,
    ranges,
    shape_questions,
    sym_float,
    sym_int,
    torch_functions,
    torch_marks,
)
from .graph_breaks import place_of_warning, warn_again, warn_caller  # noqa: F401
from .numpy_arrays import copy_of_array, place_of_view, view_of_array  # noqa: F401  (the front end looks them up here)
from .ranges import (  # noqa: F401
    RangeIterator,
    _iterator_over_items,
    _iterator_over_keys,
    _iterator_over_values,
    _reduced_quietly,
    _rest_of_set,
    _set_state_quietly,
)
from .sym_numpy_int import NumpyInt, of_numpy, plain  # noqa: F401  (likewise, as the next imports)
from .tensor_methods import get_item, is_contiguous, product, set_item, stride  # noqa: F401
