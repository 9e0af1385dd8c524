"""Runs a program eagerly and compiled, and compares values, sharing, side effects, output and exceptions.

python program_compare.py SEED        prints a program and its differences from eager
python program_compare.py SEED COUNT  searches for differing programs, from this seed on, and shrinks them
"""

from __future__ import annotations

import ast
import contextlib
import io
import signal
import sys
import traceback
import types

import torch
from program_generator import generate

# ------------------------------------------------------------------------------------------------- its behavior


def canonical(value, names, depth=0):
    """The value as nested tuples; a repeated object refers to its first occurrence: sharing is compared, too."""
    if value is None or isinstance(value, (bool, int, float, str, type)):
        return type(value).__name__, value
    if id(value) in names:
        return "the object", names[id(value)][0]
    names[id(value)] = len(names), value  # held: addresses stay taken
    if isinstance(value, torch.Tensor):
        return (
            "tensor",
            str(value.dtype),
            tuple(value.shape),
            tuple(value.stride()),
            value.requires_grad,
            value.tolist(),
        )
    if isinstance(value, dict):
        return type(value).__name__, [(canonical(k, names), canonical(v, names)) for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, [canonical(v, names) for v in sorted(value)]
    if isinstance(value, (list, tuple, types.GeneratorType)) or type(value).__name__ == "deque":
        return type(value).__name__, [canonical(v, names) for v in value]
    if hasattr(value, "__dict__"):
        return type(value).__name__, [(k, canonical(v, names)) for k, v in vars(value).items()]
    return type(value).__name__, "?"


def difference(got, expected, path=""):
    """The first difference between two canonical values; else None."""
    if isinstance(got, (tuple, list)) and isinstance(expected, (tuple, list)) and len(got) == len(expected):
        for i, (a, b) in enumerate(zip(got, expected)):
            if where := difference(a, b, f"{path}.{i}"):
                return where
        return None
    # An integer that float64 cannot distinguish from its neighbors came from a float64, by int() of data.
    beyond = type(got) is type(expected) is int and min(abs(got), abs(expected)) > 2**53
    if beyond or (isinstance(got, float) and isinstance(expected, float)):
        close = abs(got - expected) <= 1e-8 * max(1.0, abs(expected)) or (got != got and expected != expected)
        return None if close or got == expected else f"{path}: {got!r} instead of {expected!r}"
    if type(got) is type(expected) and got == expected:
        return None
    return f"{path}: {got!r} instead of {expected!r}"


def inputs(seed):
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(n, 4, dtype=torch.float64, generator=random) for n in (3, 3, 2, 3, 5)]


def history(source, wrap, seed=0):
    """The results and side effects of the program's calls in sequence, with changes of its state in between."""
    out = io.StringIO()
    module = types.ModuleType("generated")
    module.out = out
    exec(compile(source, "<generated>", "exec"), module.__dict__)
    f = wrap(module.f)
    w = module.make()
    steps = []
    for i, x in enumerate(inputs(seed)):
        if i == 3:
            w.flag = not w.flag
            module.table["a"] = 7
        given = x.clone()
        try:
            result, raised = f(w, given), None
        except Exception as e:
            result, raised = None, (type(e).__name__, str(e))
            if isinstance(e, NameError | SyntaxError):
                raised = raised[:1]
        names = {}
        state = [given, result, vars(w), module.counter, module.table]
        steps.append((raised, [canonical(v, names) for v in state], out.getvalue()))
    return steps


class TooLong(BaseException):
    """A BaseException, which no `except` of a program catches."""


@contextlib.contextmanager
def at_most(seconds):
    def stop(number, frame):
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # repeatedly: a program's `with` may swallow it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def compare(source, compile, seed=0):
    """None when the compiled program behaves as in eager mode, else the difference."""
    try:
        with at_most(5):
            expected = history(source, lambda f: f, seed)
    except (TooLong, Exception):
        return None  # shrunk to an endless loop, or to values that cannot be compared
    try:
        with at_most(60):
            got = history(source, compile, seed)
    except BaseException:
        return "the comparison failed:\n" + traceback.format_exc()
    for i, (mine, its) in enumerate(zip(got, expected)):
        if where := difference(mine, its):
            return f"call {i}: {where[:400]}"
    return None


def shrink(source, differs):
    """Removes statements for as long as `differs` holds for the rest."""
    smaller = True
    while smaller:
        smaller = False
        tree = ast.parse(source)
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "f")
        bodies = [
            body
            for node in ast.walk(function)
            for field in ("body", "orelse", "finalbody")
            if isinstance(body := getattr(node, field, None), list)
        ]
        for body in bodies:
            for i in reversed(range(len(body))):
                removed = body.pop(i)
                inner = [s for field in ("body", "orelse", "finalbody") for s in getattr(removed, field, [])]
                for instead in [[], inner, [ast.Pass()]]:
                    if (instead is inner and not inner) or (not body and not instead):
                        continue
                    body[i:i] = instead
                    try:
                        text = ast.unparse(ast.fix_missing_locations(tree))
                        compile(text, "<smaller>", "exec")
                        if len(text) < len(source) and differs(text):
                            smaller, source = True, text
                            break
                    except SyntaxError:
                        pass
                    del body[i : i + len(instead)]
                else:
                    body.insert(i, removed)
    return source


def program_of(source):
    """The part specific to the program."""
    return source[source.index("def f(w, x):") :]


def main(seed, count=1):
    import cresset

    def evaluated(f):
        return cresset.compile(f, options={"frontend": "evaluate"})

    def differs(source):
        cresset.reset()
        return compare(source, evaluated)

    failures = 0
    for s in range(seed, seed + count):
        source = generate(s)
        if count == 1:
            print(program_of(source))
        what = differs(source)
        if what is None:
            continue
        failures += 1
        small = shrink(source, differs)
        print(f"seed {s}: {what}\nshrunk to: {differs(small)}\n{program_of(small)}\n", flush=True)
    print(f"{failures} of {count} differ; graph breaks: {cresset.stats()['graph_breaks']}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
