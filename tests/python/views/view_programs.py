"""Searches for random programs about views, writes and aliasing that differ from eager mode.

python view_programs.py SEED         prints a program, and its differences
python view_programs.py SEED COUNT   runs COUNT programs from this seed on; programs that differ, hang or crash are
shrunk and printed as standalone programs; a summary by kind ends the output

Programs run in turn in a separate process, which is restarted after a crash or a hang. The exit status tells whether
any program differed. CRESSET_VIEW_SHRINK: the number of failures to shrink (20), without failures in
view_programs_known.txt.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import sys
import time
import traceback
from collections import Counter

os.environ.setdefault("CRESSET_NO_DISK_CACHE", "1")

import torch
from view_program_compare import compare, history, known_failures, shrink, stand_alone
from view_program_generator import generate

import cresset

LIMIT = 20  # seconds for a program
SHRUNK = int(os.environ.get("CRESSET_VIEW_SHRINK", 20))
# The first row with a word of the program names its kind.
TAGS = [
    ("autocast", ["autocast"]),
    ("checkpoint", ["= checkpoint("]),
    ("hook", ["register_hook"]),
    (
        "conjugate or negative",
        ["conj", "mH", "adjoint", ".H", "imag", ".real", "neg_view", "resolve_neg", "as_complex"],
    ),
    ("as_strided", ["as_strided"]),
    ("dtype view", ["view(torch.", "view_as_real"]),
    ("data", [".data.", ".detach()"]),
    ("second gradient", ["ORDER = 2"]),
    ("gradient", ["ORDER = 1"]),
]


def differs(source, expected=None):
    cresset.reset()
    return compare(source, cresset.compile, expected)


def body(source):
    return source[source.index("def call") :]


def kind_of(source, what):
    text = body(source)
    tag = next((tag for tag, words in TAGS if any(word in text for word in words)), "plain")
    return f"{what} / {tag}"


class Child:
    """A forked process that runs `work(say)`; its output is read line by line."""

    def __init__(self, work):
        reader, writer = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            status = 1
            try:
                with os.fdopen(writer, "w", buffering=1) as out:
                    work(lambda *row: out.write(json.dumps(row) + "\n"))
                status = 0
            except BaseException:
                traceback.print_exc()
                status = 3
            finally:
                os._exit(status)
        os.close(writer)
        self.reader, self.rest, self.failed = reader, b"", False

    def rows(self, limit):
        """The output until the process ends, or is silent for this number of seconds."""
        while True:
            ready, _, _ = select.select([self.reader], [], [], limit)
            data = os.read(self.reader, 65536) if ready else b""
            if not data:
                break
            *lines, self.rest = (self.rest + data).split(b"\n")
            yield from map(json.loads, lines)
        self.end()

    def end(self):
        os.close(self.reader)
        for _ in range(20):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.failed = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 3
                break
            time.sleep(0.05)
        else:
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None

    def died_by(self):
        if self.failed:
            return "error"  # of the checker itself
        return "crash" if self.signal not in (None, signal.SIGKILL) else "hang"


def watched(work, *args):
    """Ends the process, with the stack on stderr, when `work` takes longer; also where no Python runs."""
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    try:
        return work(*args)
    finally:
        faulthandler.cancel_dump_traceback_later()


def run_seeds(seeds, say):
    for seed in seeds:
        say("generated", seed)
        source = generate(seed)
        say("run by eager mode", seed, source)
        expected = history(source, lambda f: f)
        say("run", seed, source)
        if found := watched(differs, source, expected):
            say("differs", seed, source, *found)
    say("done", None)


def run_all(seeds):
    """Yields (seed, source, kind, text) for each differing program."""
    seeds = list(seeds)
    while seeds:
        child, last = Child(lambda say, seeds=tuple(seeds): run_seeds(seeds, say)), ("generated", seeds[0])
        for row in child.rows(LIMIT + 10):
            if row[0] == "differs":
                yield tuple(row[1:])
            last = row
        if last[0] == "done":
            return
        state, seed, *source = last
        if state in ("run", "differs"):
            yield seed, source[0], child.died_by(), f"signal {child.signal}"
        else:
            print(f"# seed {seed}: torch itself ends the process where it is {state}")
        seeds = seeds[seeds.index(seed) + 1 :]


def apart(source, limit=6):
    """The kind of difference, determined in a separate process."""

    def work(say):
        with open(os.devnull, "w") as nowhere:
            faulthandler.dump_traceback_later(limit, exit=True, file=nowhere)
            found = differs(source)
        say(*(found or (None, None)))

    child = Child(work)
    rows = list(child.rows(limit + 2))
    if rows:
        return rows[0][0], rows[0][1]
    return child.died_by(), f"signal {child.signal}"


def shrunk(source, kind):
    """A smaller program of the same kind, and its difference."""

    def work(say):
        say(shrink(source, lambda text: (differs(text) or [None])[0] == kind))

    small = source
    if kind not in ("crash", "hang"):
        small = next((row[0] for row in Child(work).rows(60)), None)
    if small is None or kind in ("crash", "hang"):
        small = shrink(source, lambda text: apart(text)[0] == kind, 15)
    return small, apart(small)[1]


def main(seed, count=None):
    torch.set_num_threads(1)
    if count is None:
        source = generate(seed)
        print(stand_alone(source))
        print(apart(source))
        return 0
    begin, kinds, seeds, known, printed = time.time(), Counter(), [], known_failures(), 0
    for s, source, kind, text in run_all(range(seed, seed + count)):
        if s not in known and printed < SHRUNK:
            printed += 1
            source, why = shrunk(source, kind)
            print(f"# seed {s}: {kind_of(source, kind)}: {text}\n# shrunk: {why}\n{stand_alone(source)}", flush=True)
        kinds[kind_of(source, kind)] += 1
        seeds.append(f"{s}  # {kind_of(source, kind)}")
    print("\n".join(f"differs: {row}" for row in seeds))
    for kind, n in kinds.most_common():
        print(f"{n:6d}  {kind}")
    print(f"{sum(kinds.values())} of {count} programs from {seed} on differ; {time.time() - begin:.0f} s")
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
