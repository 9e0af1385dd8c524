"""The build for a CPython without an evaluator: src/frontend/eval/unsupported.c defines all that the front end uses."""

import re
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3] / "src"
EVALUATOR = SOURCES / "frontend/eval"
NAME = re.compile(r"\bcresset_[a-z_]+\b")


def test_every_function_of_the_evaluator_has_a_stub():
    declared, inline = set(), set()
    for header in EVALUATOR.glob("*.h"):
        text = header.read_text()
        declared |= set(re.findall(r"^(?:extern )?[\w* ]+?\b(cresset_[a-z_]+)(?:\(.*|;.*)$", text, re.MULTILINE))
        inline |= set(re.findall(r"static inline [\w* ]+?\b(cresset_[a-z_]+)\(", text))
    used = set()
    for folder in ("frontend", "python"):
        for source in (SOURCES / folder).rglob("*.cpp"):
            used |= set(NAME.findall(source.read_text()))
    stubs = set(NAME.findall((EVALUATOR / "unsupported.c").read_text()))
    wanted = (used & declared) - inline
    assert len(wanted) > 50 and wanted - stubs == set()
