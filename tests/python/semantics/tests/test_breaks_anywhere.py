"""The programs of test_library.py, with graph breaks before random statements, in functions of all kinds: objects alive
across a graph break are unchanged.

CRESSET_TEST_FULL=1: all programs, under more seeds; CRESSET_BREAKS_SEED chooses other seeds. Run as a script, SEED KIND
NAME prints the changed program and its differences.
"""

from __future__ import annotations

import ast
import os
import random
import sys
import zlib
from pathlib import Path

sys.path.extend(map(str, Path(__file__).resolve().parents[2].glob("*")))  # where this file is a script
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("harness")))  # where this file is a script

import pytest
import test_library as library
from described import same_text

import cresset

FULL = os.environ.get("CRESSET_TEST_FULL", "") not in ("", "0")
FIRST = int(os.environ.get("CRESSET_BREAKS_SEED", 1))
SEEDS = range(FIRST, FIRST + (4 if FULL else 1))
BREAKS = {
    "print": "print('|')",
    "item": "float(torch.ones(2).sum())",
    "break": "__import__('cresset').graph_break()",
}
# Programs that may behave differently with breaks inside, and the reasons.
LEFT_OUT = {
    **library.KNOWN,
    "hash_eq_changed_key": "counts how often keys are compared, which making a dictionary anew adds to",
    "keys_hashed_by_the_program_are_asked_as_often": "likewise",
    "hashed_set_over_break": "a set that the call made is made anew (docs/semantics.md)",
    "gc_questions": "the collector rests during a capture",
    "gc_disable": "likewise",
    "between_weights_swapped_tied": "its sums cancel, so that the order in which they are rounded shows",
    "type_errors": "more resume entries than are kept, with a warning",
    "symbols_in_c_functions": "likewise",
    "plain_data_loop": "likewise",
    "plain_data_loop_over_a_break": "likewise",
    "plain_data_loop_over_keys": "likewise",
    "symbols_as_defaults_and_annotations": "which constants are one object (docs/semantics.md)",
    "yields_in_expressions": "likewise",
    "lru_with_sizes": "likewise",
    "exc_group_class": "likewise",
    "recursion_error": "how deep the limit lets a recursion get (docs/semantics.md)",
    "iter_protocols": "how often C code asks for a length in advance (docs/semantics.md)",
}


class Inserted(ast.NodeTransformer):
    """Statements of functions, with a break before some."""

    def __init__(self, chance, often, text):
        self.chance, self.often, self.text, self.inside = chance, often, text, False

    def statements(self, statements):
        out = []
        for i, statement in enumerate(statements):
            docstring = i == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            declares = isinstance(statement, (ast.Global, ast.Nonlocal))
            if self.inside and not docstring and not declares and self.chance.random() < self.often:
                out += ast.parse(self.text).body
            out.append(self.visit(statement))
        return out

    def body(self, node, inside):
        before, self.inside = self.inside, inside
        node.body = self.statements(node.body)
        self.inside = before
        return node

    def visit_FunctionDef(self, node):
        return self.body(node, True)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        return self.body(node, False)

    def generic_visit(self, node):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, self.statements(getattr(node, field)))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self.statements(part.body)
        return node


def with_breaks(name, row, seed, kind):
    """The row of the changed program."""
    prelude, lines = row
    top = [line[1:] for line in lines if line.startswith("|")]
    body = ["    " + line for line in lines if not line.startswith("|")]
    source = "\n".join([*top, "def changed(w, x):", *body])
    chance = random.Random(zlib.crc32(f"{seed} {kind} {name}".encode()))
    changed = Inserted(chance, chance.choice([0.15, 0.3, 0.6]), BREAKS[kind]).visit(ast.parse(source))
    text = ast.unparse(ast.fix_missing_locations(changed)).split("\n")
    return prelude, ["|" + line for line in text] + ["return changed(w, x)"]


def differs(name, row, grad):
    expected = library.run(name, row, lambda f: f, grad)
    if library.run(name, row, lambda f: f, grad) != expected:
        return None  # contains the time of day, or addresses
    cresset.reset()
    got = library.run(name, row, cresset.compile, grad)
    for mine, its in zip(got, expected):
        if mine != its and not same_text(mine, its):
            return library.around(mine, its)
    return None


def chosen(name, seed):
    return FULL or zlib.crc32(f"{name} {seed}".encode()) % 6 == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", library.ROWS)
def test_breaks(name, seed):
    if name in LEFT_OUT:
        pytest.skip(LEFT_OUT[name])
    if not chosen(name, seed):
        pytest.skip("under CRESSET_TEST_FULL=1")
    for kind in BREAKS:
        what = differs(name, with_breaks(name, library.ROWS[name], seed, kind), seed % 2 == 0)
        assert what is None, f"{kind}: {what}"


if __name__ == "__main__":
    seed, kind, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    changed = with_breaks(name, library.ROWS[name], seed, kind)
    print("\n".join(line.removeprefix("|") for line in changed[1]))
    for grad in (False, True):
        print(differs(name, changed, grad))
    print(cresset.stats()["graph_break_reasons"])
