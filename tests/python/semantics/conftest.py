"""Small programs, run in each front end."""

from __future__ import annotations

import pytest

import cresset


def _traced(function, world):
    """The old way knows nothing of state outside modules: each call is a first call."""
    return lambda x: cresset.trace(lambda x: function(world, x))(x)


def _evaluated(function, world):
    return cresset.compile(lambda x: function(world, x), options={"frontend": "evaluate"})


FRONT_ENDS = {"trace": _traced, "evaluate": _evaluated}


@pytest.fixture(params=FRONT_ENDS)
def front_end(request):
    """(function of (world, x), world) -> the compiled function of x."""
    return FRONT_ENDS[request.param]
