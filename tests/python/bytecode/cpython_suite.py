"""Runs CPython's own test files, plainly and with every frame evaluated by cresset.

A server: reads `file mode` lines, runs each in a fork of itself, answers a line of JSON: {test: outcome}, or
{"crashed": why}. tests/python/bytecode/test_evaluator.py talks to it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import traceback
import unittest

from cresset import _C


class Outcomes(unittest.TestResult):
    """The outcome of each test, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: dict[str, str] = {}

    def note(self, test, outcome: str, error=None) -> None:
        self.outcomes[test.id()] = outcome
        if error is not None and error[0] is not None:
            print("=====", test.id(), file=sys.stderr)
            traceback.print_exception(*error, file=sys.stderr)

    def addSuccess(self, test):
        self.note(test, "passed")

    def addFailure(self, test, err):
        self.note(test, "failed", err)

    def addError(self, test, err):
        self.note(test, "raised", err)

    def addSkip(self, test, reason):
        self.note(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.note(test, "failed as expected")

    def addUnexpectedSuccess(self, test):
        self.note(test, "passed unexpectedly")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(subtest, "failed", err)


def run(name: str, evaluated: bool) -> dict[str, str]:
    module = importlib.import_module("test." + name)
    suite = unittest.TestLoader().loadTestsFromModule(module)
    outcomes = Outcomes()
    if evaluated:
        _C._eval_begin()
    try:
        suite.run(outcomes)
    finally:
        if evaluated:
            _C._eval_end()
    return outcomes.outcomes


def in_child(name: str, mode: str, folder: str) -> None:
    os.chdir(folder)
    log = os.open("log", os.O_CREAT | os.O_WRONLY, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdin = open(0)  # noqa: SIM115
    with open("outcomes", "w") as out:
        json.dump(run(name, mode == "evaluated"), out)


def serve(line: str) -> dict[str, str]:
    name, mode = line.split()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                in_child(name, mode, folder)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != 0:
            with open(os.path.join(folder, "log"), errors="replace") as log:
                return {"crashed": f"status {status}: {log.read()[-2000:]}"}
        with open(os.path.join(folder, "outcomes")) as out:
            return json.load(out)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(serve(line)), flush=True)
