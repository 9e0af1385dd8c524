"""What cannot work as it is on what stands in for tensors and sizes: what is called in its place while something is captured.

Of numbers: `integers`, `numpy_integers`, `floats`, `ranges`; of numpy's `arrays`; of tensors and torch's functions: `tensors`,
`functions`; of those that would start another compiler: `compilers`; the rest: `outside`. Functions are known by identity (src/frontend/substitutes.h).
"""

from .. import _C, _autograd, _control_flow, _equivalents, _forms, _loops, _wrappers  # noqa: F401  (in use from then on)
from . import compilers, floats, functions, integers, outside, ranges  # noqa: F401
from .arrays import copy_of_array, place_of_view, view_of_array  # noqa: F401  (which the front end asks for here)
from .numpy_integers import NumpyInt, of_numpy, plain  # noqa: F401  (likewise, as the next ones)
from .outside import place_of_warning, warn_again, warn_caller  # noqa: F401
from .ranges import (  # noqa: F401
    RangeIterator,
    _iterator_over_items,
    _iterator_over_keys,
    _iterator_over_values,
    _reduced_quietly,
    _rest_of_set,
    _set_state_quietly,
)
from .tensors import get_item, is_contiguous, product, set_item, stride  # noqa: F401
