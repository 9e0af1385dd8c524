"""Random programs do what they do without the compiler. CRESSET_TEST_FULL=1: ten thousand of them; CRESSET_GENERATED and
CRESSET_GENERATED_SEED choose others."""

from __future__ import annotations

import os

import pytest
import torch
from program_compare import compare, program_of, shrink
from program_generator import generate

import cresset

FULL = os.environ.get("CRESSET_TEST_FULL", "") not in ("", "0")
COUNT = int(os.environ.get("CRESSET_GENERATED", 10000 if FULL else 300))
FIRST = int(os.environ.get("CRESSET_GENERATED_SEED", 0))
BATCH = 50


def evaluated(f):
    return cresset.compile(f, options={"frontend": "evaluate"})


def differs(source):
    return compare(source, evaluated)


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_generated(first):
    failures = []
    for seed in range(first, min(first + BATCH, FIRST + COUNT)):
        source = generate(seed)
        with torch.set_grad_enabled(seed % 2 == 0):
            what = differs(source)
            if what is not None:
                small = shrink(source, differs) if not failures else source
                failures.append(f"seed {seed}: {what}\n{program_of(source)}\nshrunk:\n{program_of(small)}")
        cresset.reset()
    assert not failures, "\n\n".join(failures)
