"""The programs of the tables TABLES and TORCH_TABLES: results, sharing, output, warnings, modes, state, over several
calls in a changing world, against eager."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
import textwrap
import types
import warnings

import programs.arrays as programs_arrays
import programs.between_calls as programs_between_calls
import programs.breaks_inside as programs_breaks_inside
import programs.caches as programs_caches
import programs.classes as programs_classes
import programs.control_corner_cases as programs_unusual_control
import programs.introspection as programs_asked
import programs.iterators_held_over_breaks as programs_held_iterators
import programs.language_corner_cases as programs_unusual
import programs.model_idioms as programs_idioms
import programs.modules as programs_modules
import programs.over_breaks as programs_over_breaks
import programs.plain_data as programs_plain_data
import programs.small_systems as programs_small_systems
import programs.standard_library as programs_library
import programs.state as programs_state
import programs.state_corner_cases as programs_unusual_state
import programs.tensors as programs_tensors
import programs.torch_functions as programs_torch
import programs.training as programs_training
import programs.value_types as programs_values
import programs.values_held_over_breaks as programs_held
import programs.varying_numbers as programs_of_numbers
import pytest
import torch
from described import Describer, same_text

import cresset

SHAPES = [(3, 4), (3, 4), (5, 4), (2, 4), (3, 4), (1, 4), (7, 4)]


def programs(text, prelude=""):
    for part in re.split(r"\n\n+(?=\S)", text.strip("\n")):
        name, *lines = part.split("\n")
        yield name, (prelude, lines)


TABLES = programs_library, programs_values, programs_state
CAPTURED = (
    programs_modules,
    programs_idioms,
    programs_tensors,
    programs_caches,
    programs_breaks_inside,
    programs_held,
    programs_held_iterators,
    programs_arrays,
    programs_over_breaks,
    programs_plain_data,
    programs_classes,
    programs_training,
    programs_between_calls,
    programs_of_numbers,
    programs_unusual,
    programs_unusual_control,
    programs_unusual_state,
)
TORCH_TABLES = programs_torch, programs_asked, programs_small_systems, *CAPTURED
PROGRAMS = [row for table in TABLES for row in programs(table.PROGRAMS)]
PROGRAMS += [row for table in TORCH_TABLES for row in programs(table.PROGRAMS, programs_torch.PRELUDE)]
ROWS = dict(PROGRAMS)
NAMES_CAPTURED = {name for table in CAPTURED for name, _ in programs(table.PROGRAMS)}

# Programs of the newer tables that run eagerly as a whole: they raise, or hold objects without a reconstruction, or
# read data inside of C code.
EAGERLY = {
    "accumulate_function_breaks",
    "async_for_with",
    "autograd_function_break_inside",
    "break_in_getattr_hook",
    "break_in_getitem",
    "break_in_iter_protocol",
    "break_in_nested_with_exceptions",
    "break_in_operators",
    "cached_property_break",
    "cached_property_kinds",
    "class_body_tensors",
    "class_of_the_call_counts_over_a_break",
    "class_of_the_call_gets_a_tensor_over_breaks",
    "class_of_the_call_keeps_a_list_over_a_break",
    "comprehension_scopes",
    "context_of_a_tensor",
    "context_set_and_left",
    "context_token_in_a_manager",
    "context_tokens",
    "context_variable_of_a_number",
    "contextlib_tools",
    "contextvar_and_threadlocal",
    "copies",
    "dataclass_kwonly_slots_inherit",
    "dataset_and_collate",
    "deepcopy_module_in_forward",
    "defaults_of_numbers",
    "descriptor_gets",
    "exception_escapes",
    "generator_in_state_advanced",
    "generator_state_over_calls",
    "generic_alias_typing",
    "hooks_toggle_by_call",
    "init_subclass",
    "int_subclass_and_float_subclass",
    "iter_protocols",
    "iterators_of_the_program",
    "iterators_that_hold_numbers",
    "leaf_that_is_returned",
    "metaclass_prepare_order_over_a_break",
    "new_of_values",
    "pairwise_held",
    "parametrize_right_inverse_assign",
    "pickle_state_hooks",
    "property_inheritance_super",
    "random_in_a_class",
    "random_made_and_kept",
    "random_made_in_the_call",
    "registry_decorator_with_aliases",
    "result_of_inference_mode_beside_another",
    "results_of_inference_mode",
    "stack_module_state",
    "tee_in_state",
    "tensor_subclass_state",
    "tuple_and_namedtuple_ops",
    "typing_uses",
    "utils_fusion",
    "weak_collections",
    "weak_value_tensor_table",
    "what_a_bound_method_calls_holds_what_nobody_rebuilds",
    "with_multiple_and_as",
}
if sys.version_info >= (3, 12):
    EAGERLY -= {"tuple_and_namedtuple_ops"}
# Differences from eager today: program, and reason.
KNOWN = {}


def load(name, prelude, lines):
    top = [line[1:] for line in lines if line.startswith("|")]
    body = textwrap.indent("\n".join(line for line in lines if not line.startswith("|")), "    ")
    source = "\n".join([programs_library.PRELUDE, prelude, *top, f"def {name}(w, x):", body, ""])
    module = sys.modules["program"] = types.ModuleType("program")
    linecache.cache[f"<{name}>"] = len(source), None, source.splitlines(True), f"<{name}>"
    torch.utils.hooks.RemovableHandle.next_id = 0
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
        return module, module.make()


def modes():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
        float(torch.rand(1)),
    )


def called(f, w, x, grad):
    """The result or exception of the call; its output and warnings."""
    out, errors, result, raised = io.StringIO(), io.StringIO(), None, None
    with (
        torch.set_grad_enabled(grad),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(record=True) as given,
    ):
        warnings.simplefilter("always")
        try:
            result = f(w, x)
        except Exception as e:
            raised = e
        told = [out.getvalue(), errors.getvalue(), [(w.category.__name__, str(w.message)) for w in given], modes()]
    return result, Describer()(raised), str(told)


def run(name, row, wrap, grad):
    module, w = load(name, *row)
    f = wrap(getattr(module, name))
    torch.manual_seed(0)
    steps, live = [], []
    for i, shape in enumerate(SHAPES):
        n = torch.Size(shape).numel()
        x = (torch.arange(n, dtype=torch.float32).reshape(shape) * 0.1 - 0.4) * (-1 if i == 3 else 1) + i * 0.01
        if i:
            module.between(w, i)
        result, *told = called(f, w, x, grad)
        live.append((result, x))
        state = {k: v for k, v in vars(module).items() if k.isupper()}
        steps += [Describer()([result, x, w, state]), *told]
    steps.append(Describer()(live))
    return [re.sub("0x[0-9a-f]+", "", step) for step in steps]


def around(mine, its):
    """The place of the first difference."""
    at = next((i for i, (a, b) in enumerate(zip(mine, its)) if a != b), min(len(mine), len(its)))
    start = max(at - 80, 0)
    return f"...{mine[start : at + 120]}...\ninstead of\n...{its[start : at + 120]}..."


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("grad", [False, True], ids=["no_grad", "grad"])
def test_library(request, name, grad):
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    expected = run(name, ROWS[name], lambda f: f, grad)
    cresset.reset()
    got = run(name, ROWS[name], cresset.compile, grad)
    for mine, its in zip(got, expected):
        assert mine == its or same_text(mine, its), around(mine, its)
    if name in NAMES_CAPTURED and not grad:
        assert (cresset.stats()["eager_calls"] > 0) == (name in EAGERLY), cresset.stats()["graph_break_reasons"]


def test_names_are_different():
    assert len(PROGRAMS) == len(ROWS)
