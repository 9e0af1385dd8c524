"""The programs of programs_whole.py and of tables in its form, against eager: yielded values, output, random draws, and
the number of compilations."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
import torch
from described import Describer, same_text
from programs_algorithms import PROGRAMS as ALGORITHMS
from programs_attributes import PROGRAMS as ATTRIBUTES
from programs_builders import PROGRAMS as BUILDERS
from programs_changing_values import PROGRAMS as CHANGING
from programs_close_looks import PROGRAMS as CLOSE_LOOKS
from programs_control import PROGRAMS as CONTROL
from programs_designs import PROGRAMS as DESIGNS
from programs_everyday import PROGRAMS as EVERYDAY
from programs_forms import PROGRAMS as FORMS
from programs_given import PROGRAMS as GIVEN
from programs_iterators import PROGRAMS as ITERATORS
from programs_learning import PROGRAMS as LEARNING
from programs_loops import PROGRAMS as LOOPS
from programs_loops_of_numbers import PROGRAMS as LOOPS_OF_NUMBERS
from programs_losses import PROGRAMS as LOSSES
from programs_moving_state import PROGRAMS as MOVING
from programs_odd_places import PROGRAMS as ODD_PLACES
from programs_perception import PROGRAMS as PERCEPTION
from programs_places import PROGRAMS as PLACES
from programs_practice_designs import PROGRAMS as PRACTICE_DESIGNS
from programs_practice_sampling import PROGRAMS as PRACTICE_SAMPLING
from programs_practice_training import PROGRAMS as PRACTICE_TRAINING
from programs_registries import PROGRAMS as REGISTRIES
from programs_research import PROGRAMS as RESEARCH
from programs_schemes import PROGRAMS as SCHEMES
from programs_scripts import PROGRAMS as SCRIPTS
from programs_sequences import PROGRAMS as SEQUENCES
from programs_subclasses import PROGRAMS as SUBCLASSES
from programs_systems import PROGRAMS as SYSTEMS
from programs_whole import PROGRAMS as WHOLE

import cresset

PROGRAMS = {
    **WHOLE,
    **MOVING,
    **SCRIPTS,
    **EVERYDAY,
    **CLOSE_LOOKS,
    **CONTROL,
    **DESIGNS,
    **SYSTEMS,
    **BUILDERS,
    **ALGORITHMS,
    **CHANGING,
    **RESEARCH,
    **LOOPS,
    **LEARNING,
    **LOSSES,
    **PERCEPTION,
    **REGISTRIES,
    **GIVEN,
    **SEQUENCES,
    **SCHEMES,
    **FORMS,
    **ITERATORS,
    **PLACES,
    **PRACTICE_DESIGNS,
    **PRACTICE_SAMPLING,
    **PRACTICE_TRAINING,
    **SUBCLASSES,
    **ATTRIBUTES,
    **LOOPS_OF_NUMBERS,
    **ODD_PLACES,
}


def run(program, compiled):
    torch.manual_seed(0)
    out, steps, graphs = io.StringIO(), [], []
    with contextlib.redirect_stdout(out):
        for seen in program(compiled):
            steps.append(re.sub("0x[0-9a-f]+", "", Describer()(seen)) + f" {float(torch.rand(1)):.6f}")
            graphs.append(cresset.stats()["graphs"])
    return [*steps, out.getvalue()], graphs


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_whole_program(name):
    program, steady, captured = PROGRAMS[name]
    expected, _ = run(program, lambda f: f)
    cresset.reset()
    got, graphs = run(program, cresset.compile)
    assert len(got) == len(expected)
    for step, (mine, its) in enumerate(zip(got, expected)):
        assert mine == its or same_text(mine, its), step
    if steady:
        assert graphs[-1] == graphs[len(graphs) // 2], graphs
    if captured:
        assert cresset.stats()["eager_calls"] == 0, cresset.stats()["graph_break_reasons"]
