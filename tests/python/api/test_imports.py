"""Imports of the package, and their time: a process's first call imports nothing beyond its program's needs."""

import ctypes
import subprocess
import sys

import pytest
import torch

import cresset


def run(program: str) -> str:
    """The output of a program in a new process."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_program_without_symbols_imports_no_decompositions():
    program = """
import sys, torch, cresset
cresset.compile(lambda x: torch.nn.functional.layer_norm(x, (4,)) + torch.arange(4))(torch.ones(3, 4))
print(*sorted(name for name in sys.modules if name.startswith(("cresset._decompositions.", "statistics"))))
"""
    assert run(program) == "cresset._decompositions.arithmetic"


def test_the_first_call_imports_nothing():
    program = """
import sys, torch, cresset
before = set(sys.modules)
cresset.compile(lambda x: torch.nn.functional.layer_norm(x, (4,)) + 1)(torch.ones(3, 4))
print(*sorted(set(sys.modules) - before))
"""
    assert run(program) == ""


def test_the_module_exports_its_entry_alone():
    """Symbols of its static libraries are local: no look-up at import, no table between a call and its callee."""
    module = ctypes.CDLL(cresset._C.__file__)
    assert hasattr(module, "PyInit__C")
    assert not hasattr(module, "LLVMInitializeX86Target") and not hasattr(module, "_ZTVN4llvm6ModuleE")
    assert not hasattr(module, "LLVMContextCreate")


def faults_of_a_capture(count):
    """Page faults while capturing a function that reads this many names of its module."""
    names = [f"v{i}" for i in range(count)]
    program = f"""
import gc, resource, torch, cresset
{"; ".join(f"{name} = {i}" for i, name in enumerate(names))}
def function(x):
    return x + ({" + ".join(names)})
x = torch.ones(3)
function(x)
faults = []
def counting(x):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    function(x)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return x
gc.disable()
with torch.no_grad():
    cresset.compile(lambda x: x + 1)(x)
    cresset.compile(counting)(x)
print(min(faults))
"""
    return int(run(program))


def test_what_names_are_kept_in_is_there_with_the_import():
    """Each page would cost two faults in the first capture. Further faults of the capture depend on the machine."""
    few, many = (min(faults_of_a_capture(count) for _ in range(3)) for count in (4, 400))
    assert many - few < 10


def test_padding_by_sizes_takes_no_form():
    """Its C code accepts sizes; a decomposition would cost a capture more than the operator itself."""
    program = """
import sys, torch, cresset
f = cresset.compile(lambda x: torch.nn.functional.pad(x, (1, x.shape[0])) + torch.constant_pad_nd(x, (x.shape[0], 1), 2.0))
for n in (4, 5, 6):
    x = torch.ones(n, n)
    torch.testing.assert_close(f(x), torch.nn.functional.pad(x, (1, n)) + torch.constant_pad_nd(x, (n, 1), 2.0))
print(cresset.stats()["graphs"], "cresset._decompositions.scalar_arguments" in sys.modules)
g = cresset.compile(lambda x, v: torch.nn.functional.pad(x, (1, 1), value=v))
for v in (0.5, 1.5, 2.5):
    torch.testing.assert_close(g(x, v), torch.nn.functional.pad(x, (1, 1), value=v))
print(cresset.stats()["graphs"] <= 3, "cresset._decompositions.scalar_arguments" in sys.modules)
"""
    assert run(program).split() == ["1", "False", "True", "True"]


def test_a_form_is_imported_where_it_is_wanted():
    program = """
import sys, torch, cresset
f = cresset.compile(lambda x: torch.nn.functional.avg_pool1d(x[None], x.shape[-1]))
for n in (6, 8, 10):
    x = torch.randn(2, n)
    torch.testing.assert_close(f(x), torch.nn.functional.avg_pool1d(x[None], n))
print(cresset.stats()["graphs"], "cresset._decompositions.pooling" in sys.modules, "cresset._decompositions.random" in sys.modules)
"""
    assert run(program) == "1 True False"


def test_the_table_of_decompositions_says_what_the_modules_do():
    program = """
import importlib, torch, cresset
from cresset import _C, _decompositions
from cresset._decompositions import base

class Recorder:
    def __getattr__(self, name):
        return getattr(_C, name)

    def _use_form(self, original, form, always, varied):
        found.add((original, form.__module__, int(always)))

base._C, found, said = Recorder(), set(), {(f, m, int(a)) for f, m, a in _decompositions.rows()}
for module in sorted({module for _, module, _ in said}):
    importlib.import_module(module)
print(*sorted(map(repr, found ^ said)), len(found) > 150)
"""
    set_up = "import torch, cresset; cresset.compile(lambda x: x + 1)(torch.ones(2))\n"
    assert run(set_up + program) == "True"


@pytest.mark.parametrize("within", [False, True], ids=["before", "within"])
def test_a_library_that_is_imported_later_is_called_as_a_whole(within):
    """statistics adds fractions in loops over bits: evaluated, it would be an endless number of graph segments."""
    program = f"""
import torch, cresset
def first(x): return x + 1
cresset.compile(first)(torch.ones(2))
{"" if within else "import statistics"}
def function(x):
    {"import statistics" if within else ""}
    return x * statistics.fmean([x.shape[0], 2.5]) + statistics.pstdev([1, 2.5])
compiled = cresset.compile(function)
for n in (3, 4, 3):
    x = torch.randn(n)
    torch.testing.assert_close(compiled(x), function(x))
print(any("statistics.pstdev: it adds fractions" in reason for reason in map(str, cresset.stats()["graph_break_reasons"])))
"""
    assert run(program) == "True"


def test_functions_that_say_they_are_of_a_library():
    """The marks for a library's functions check the name alone, which any function may have."""

    def mean(x):
        return x + 1

    for name in ("statistics", None, 3, ["statistics"]):
        mean.__module__ = name
        assert torch.equal(cresset.compile(lambda x: mean(x) * 2)(torch.ones(3)), torch.full((3,), 4.0))
