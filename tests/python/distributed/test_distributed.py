"""Programs of several processes (distributed_programs.py), in eager mode and compiled: each process has the same
results. Two processes for each kind of program. `make test-full` adds four processes, and every collective at every
place of a program."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import FULL
from distributed_programs import COLLECTIVES, FAMILIES, POSITIONS

SCRIPT = Path(__file__).with_name("distributed_programs.py")
SECONDS = 600 if FULL else 240  # limit for processes in a deadlock
PROCESSES = (2, 4) if FULL else (2,)


def chosen():
    """Without `make test-full`: every collective at one place, and one at every place."""
    few = {f"{c.__name__} {POSITIONS[i % 2].__name__}" for i, c in enumerate(COLLECTIVES)}
    few |= {f"{COLLECTIVES[0].__name__} {p.__name__}" for p in POSITIONS}
    for family, programs in FAMILIES.items():
        for name in programs:
            if FULL or family != "collectives" or name in few:
                yield f"{family}/{name}"


NAMES = list(chosen())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


_done: dict[tuple[int, str], list[dict[str, str]]] = {}


def differences(processes, family):
    """By process: the differences, by program."""
    if (processes, family) in _done:
        return _done[processes, family]
    names = [name for name in NAMES if name.startswith(family)]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as files:
        port = str(free_port())
        outputs = [Path(folder) / f"{i}.json" for i in range(processes)]
        logs = [files.enter_context((Path(folder) / f"{i}.log").open("w+")) for i in range(processes)]
        running = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(i), str(processes), port, str(outputs[i]), *names],
                stdout=logs[i],
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            for i in range(processes)
        ]
        try:
            for process in running:
                process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            for process in running:
                process.kill()
                process.wait()
        found = [json.loads(o.read_text()) if o.exists() else {} for o in outputs]
        for log, result in zip(logs, found):
            log.seek(0)
            result[""] = log.read()[-300:]
    _done[processes, family] = found
    return found


@pytest.mark.parametrize("processes", PROCESSES)
@pytest.mark.parametrize("name", NAMES)
def test_as_in_eager_mode(name, processes):
    for rank, found in enumerate(differences(processes, name.partition("/")[0])):
        assert name in found, f"process {rank} did not come to it: {found['']}"
        assert not found[name], f"process {rank}: {found[name]}"
