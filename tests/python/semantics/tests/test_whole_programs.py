"""The programs of programs/whole_scripts.py and of tables in its form, against eager: yielded values, output, random draws, and
the number of compilations."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
import torch
from described import Describer, same_text
from programs.algorithms import PROGRAMS as ALGORITHMS
from programs.attributes import PROGRAMS as ATTRIBUTES
from programs.breaks_in_odd_places import PROGRAMS as ODD_PLACES
from programs.builders import PROGRAMS as BUILDERS
from programs.callable_arguments import PROGRAMS as GIVEN
from programs.control_flow import PROGRAMS as CONTROL
from programs.iterators import PROGRAMS as ITERATORS
from programs.language_forms import PROGRAMS as FORMS
from programs.learning_algorithms import PROGRAMS as LEARNING
from programs.loops import PROGRAMS as LOOPS
from programs.loops_of_numbers import PROGRAMS as LOOPS_OF_NUMBERS
from programs.losses import PROGRAMS as LOSSES
from programs.object_inspection import PROGRAMS as CLOSE_LOOKS
from programs.perception import PROGRAMS as PERCEPTION
from programs.practice_designs import PROGRAMS as PRACTICE_DESIGNS
from programs.practice_sampling import PROGRAMS as PRACTICE_SAMPLING
from programs.practice_training import PROGRAMS as PRACTICE_TRAINING
from programs.program_designs import PROGRAMS as DESIGNS
from programs.registries import PROGRAMS as REGISTRIES
from programs.replaced_state import PROGRAMS as MOVING
from programs.research_code import PROGRAMS as RESEARCH
from programs.schemes import PROGRAMS as SCHEMES
from programs.scripts import PROGRAMS as SCRIPTS
from programs.sequences import PROGRAMS as SEQUENCES
from programs.subclasses import PROGRAMS as SUBCLASSES
from programs.systems import PROGRAMS as SYSTEMS
from programs.utility_code import PROGRAMS as EVERYDAY
from programs.varying_values import PROGRAMS as CHANGING
from programs.varying_values_in_containers import PROGRAMS as PLACES
from programs.whole_scripts import PROGRAMS as WHOLE

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
