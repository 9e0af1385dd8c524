// cresset._C: conversion only.
#include <torch/csrc/utils/pybind.h>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "bridge/aten/cuda_setup.h"
#include "bridge/autograd/gradients.h"
#include "bridge/capture/sym_node.h"
#include "bridge/device/cuda/allocation_pool.h"
#include "bridge/dispatch/capture_kernel.h"
#include "bridge/executor/executor.h"
#include "bridge/executor/graph_replay.h"
#include "bridge/extern_kernels/autotune.h"
#include "codegen/backend.h"
#include "codegen/files.h"
#include "frontend/api/compiled_function.h"
#include "frontend/api/control.h"
#include "frontend/api/control_flow.h"
#include "frontend/api/log_lines.h"
#include "frontend/api/stale_entries.h"
#include "frontend/cpython/source_lines.h"
#include "frontend/eval/debug.h"
#include "frontend/eval/hooks.h"
#include "frontend/eval/interpreter.h"
#include "frontend/segments/call_capture.h"
#include "frontend/segments/segment.h"
#include "frontend/session/session_lru_cache.h"
#include "python/graph_taker.h"
#include "python/numbers.h"
#include "python/shapes.h"
#include "python/state_of.h"

namespace py = pybind11;
using namespace cresset;
using python::state_of;

namespace {

// {operator: {"calls", "ms"}}, the most expensive operator first.
py::dict capture_operators(const bridge::CaptureCosts& costs) {
  using Row = std::pair<std::string_view, bridge::CaptureCosts::Operator>;
  std::vector<Row> rows(costs.operators.begin(), costs.operators.end());
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(-a.second.nanoseconds, a.first) < std::pair(-b.second.nanoseconds, b.first);
  });
  py::dict out;
  for (const auto& [name, cost] : rows) {
    py::dict row;
    row["calls"] = cost.calls;
    row["ms"] = double(cost.nanoseconds) / 1e6;
    out[py::str(std::string(name))] = row;
  }
  return out;
}

py::dict memo_misses(const bridge::CaptureCosts& costs) {
  py::dict out;
  for (size_t i = 0; i < costs.memo_misses.size(); ++i)
    out[py::str(std::string(ops::kMemoMisses[i]))] = costs.memo_misses[i];
  return out;
}

py::dict describe(const BreakReason& why) {
  py::dict row;
  row["kind"] = py::str(std::string(why.name()));
  row["description"] = py::str(std::string(cresset::describe(why.kind)));
  row["text"] = why.text();
  row["detail"] = why.detail;
  row["location"] = why.location;
  row["remedy"] = py::str(std::string(why.remedy()));
  return row;
}

void describe_breaks(const frontend::Totals& totals, py::dict& out) {
  py::list texts, details;
  for (const frontend::NotedReason& noted : totals.break_reasons) {
    texts.append(noted.text());
    py::dict row = describe(noted.why);
    row["function"] = noted.function;
    details.append(row);
  }
  out["graph_break_reasons"] = texts;
  out["graph_break_details"] = details;
}

py::dict stats() {
  const frontend::Totals t = frontend::totals();
  py::dict out;
  out["calls"] = t.calls;
  out["graphs"] = t.graphs;
  out["recompiles"] = t.recompiles;
  out["graph_breaks"] = t.graph_breaks;
  describe_breaks(t, out);
  out["eager_calls"] = t.eager_calls;
  out["operators_captured"] = t.operators_captured;
  out["shape_rule_entries"] = t.shape_rule_entries;
  out["generic_rule_entries"] = t.generic_rule_entries;
  out["shape_memo_hits"] = t.shape_memo_hits;
  out["shape_memo_misses"] = memo_misses(t.capture_costs);
  out["capture_operators"] = capture_operators(t.capture_costs);
  out["nodes"] = t.nodes;
  out["guards_asked"] = t.guards_asked;
  out["guards_checked"] = t.guards_checked;
  out["cache_entries_checked"] = t.cache_entries_checked;
  out["steps_proved"] = t.steps_proved;
  out["steps_not_proved"] = t.steps_not_proved;
  out["ms_validation"] = t.ms_validation;
  out["kernels"] = t.kernels;
  out["backward_graphs"] = t.backward_graphs;
  out["distinct_kernels"] = t.distinct_kernels;
  out["extern_calls"] = t.extern_calls;
  out["eager_fallbacks"] = t.eager_fallbacks;
  out["double_backward_fallbacks"] = bridge::double_backward_fallbacks().load();
  out["ms_setup"] = t.ms_setup;
  out["ms_capture"] = t.ms_capture;
  out["ms_lowering"] = t.ms_lowering;
  out["ms_codegen"] = t.ms_codegen;
  out["programs_from_disk"] = t.programs_from_disk;
  out["frozen_values"] = t.frozen_values;
  const bridge::GraphCounters graphs = bridge::graph_counters();
  py::dict cuda_graphs;
  cuda_graphs["recordings"] = graphs.recordings;
  cuda_graphs["replays"] = graphs.replays;
  cuda_graphs["node_updates"] = graphs.node_updates;
  cuda_graphs["misses"] = graphs.misses;
  out["cuda_graphs"] = cuda_graphs;
  const codegen::CodegenStats code = codegen::total_stats();  // of the whole process; reset() keeps these counters
  out["kernels_generated"] = code.kernels_compiled;
  out["kernels_from_disk"] = code.disk_hits;
  return out;
}

py::object compile_function(py::object function, bool dynamic, bool fullgraph, bool eager_rounding, bool fuse,
                            bool freeze, bool keep_text, bool auto_dynamic, bool evaluate, bool symbolic_numbers,
                            const py::object& guard_filter, int64_t cache_entry_limit, bool keep_rejected,
                            std::string name, int64_t recompile_limit, bool through_aten,
                            const std::string& cuda_graphs, py::object taker) {
  frontend::CompileOptions options;
  options.dynamic = dynamic;
  options.fullgraph = fullgraph;
  options.auto_dynamic = auto_dynamic;
  options.symbolic_numbers = symbolic_numbers;
  options.code.eager_rounding = eager_rounding;
  options.code.fuse = fuse;
  options.code.freeze = freeze;
  options.code.cuda_graphs = cuda_graphs == "always"  ? driver::CudaGraphs::Always
                             : cuda_graphs == "never" ? driver::CudaGraphs::Never
                                                      : driver::CudaGraphs::Auto;
  options.keep_text = keep_text;
  options.keep_rejected = keep_rejected;
  options.through_aten = through_aten;
  options.code.taker = python::graph_taker(std::move(taker));
  if (!guard_filter.is_none()) options.guard_filter = frontend::PyRef::borrow(guard_filter.ptr());
  options.cache_entry_limit =
      cache_entry_limit > 0 ? cache_entry_limit : std::max<int64_t>(1, option_int(Option::CACHE_ENTRY_LIMIT));
  options.evaluate = evaluate && cresset_eval_unsupported() == nullptr;
  if (recompile_limit > 0) {
    options.resume_entry_limit = recompile_limit;
    options.cache_entry_limit = std::max(options.cache_entry_limit, recompile_limit);
  }
  PyObject* made =
      frontend::new_compiled_function(function.ptr(), std::move(options), {std::move(name), recompile_limit});
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

// Describes each cache entry (`CacheEntry`) of a compiled function, for cresset.explain and tests.
py::dict describe(const frontend::CacheEntry& entry, const std::string& begins) {
  py::dict row;
  row["begins"] = begins;
  const BreakReason ends = entry.next.point != nullptr ? entry.next.why : BreakReason();
  row["ends"] = ends.text();
  row["eager_reason"] = entry.eager_reason.text();
  const BreakReason& why = entry.eager_reason.empty() ? ends : entry.eager_reason;
  row["break_reason"] = why.empty() ? py::object(py::none()) : py::object(describe(why));
  row["state_guards"] = entry.guards.texts();
  if (entry.program == nullptr) return row;
  const driver::Stats& s = entry.program->stats();
  const bridge::Executor& executor = entry.program->executor();
  row["graph"] = entry.program->graph_text();
  row["guards"] = entry.program->guard_texts();
  row["program"] = runtime::print(executor.program());
  row["kernels"] = executor.program().kernel_text;
  row["kernel_count"] = s.kernels;
  row["extern_calls"] = s.extern_calls;
  row["operators"] = s.nodes_captured;
  row["ms_passes"] = s.ms_passes;
  row["ms_lower"] = s.ms_lower;
  row["ms_codegen"] = s.ms_codegen;
  row["bytes_planned"] = executor.stats().arena_bytes;
  row["peak_bytes"] = executor.stats().peak_arena_bytes;
  row["cuda_graphs"] = executor.graph_state();
  return row;
}

// Cache entries for the beginning of a call come first, then the resume entries of each resume point.
py::list cache_entries(const py::object& object) {
  py::list out;
  const frontend::CompiledFunction& state = state_of(object);
  const frontend::CacheEntries first = state.cache_entries();  // a copy: entries may go meanwhile (gone_models.h)
  for (const auto& v : first) out.append(describe(*v, ""));
  const frontend::ResumePoints points = state.points();
  for (const auto& point : points)
    for (const auto& v : frontend::CacheEntries(point->resume_entries)) out.append(describe(*v, point->place.text()));
  return out;
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  m.doc() = "cresset's native module";
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const bridge::DivisionByZero& e) {
      PyErr_SetString(PyExc_ZeroDivisionError, e.what());
    } catch (const bridge::BeyondInt64& e) {
      PyErr_SetString(PyExc_OverflowError, e.what());
    }
  });
  frontend::add_compiled_function_type(m.ptr());
  m.def("compile", &compile_function, py::arg("function"), py::arg("dynamic"), py::arg("fullgraph"),
        py::arg("eager_rounding"), py::arg("fuse"), py::arg("freezing") = false, py::arg("keep_text") = false,
        py::arg("auto_dynamic") = false, py::arg("evaluate") = false, py::arg("capture_scalar_outputs") = false,
        py::arg("guard_filter_fn") = py::none(), py::arg("cache_entry_limit") = 0, py::arg("keep_rejected") = false,
        py::arg("name") = "", py::arg("recompile_limit") = -1, py::arg("through_aten") = false,
        py::arg("cuda_graphs") = "auto", py::arg("taker") = py::none());
  m.def("cache_entries", &cache_entries);
  m.def("keep_texts", [](bool on) { return frontend::keeps_texts.exchange(on); });
  // For gc.callbacks.
  m.def("after_collection", [](std::string_view phase, const py::dict& info) {
    constexpr int64_t kFull = 2;  // a collection of all generations
    if (phase != "stop" || frontend::inside_compiled_call()) return;
    if (info["generation"].cast<int64_t>() == kFull) frontend::drop_of_gone_models();
  });
  m.def("clear_cache_entries", [](const py::object& f) { state_of(f).clear_cache_entries(); });
  m.def("check_ns", [](const py::object& f, const py::tuple& args, const py::dict& kwargs, int64_t count) {
    return state_of(f).check_ns(args.ptr(), kwargs.ptr(), count);
  });
  m.def("note_marks", &frontend::note_marks);
  m.def("is_disabled", [] { return option_flag(Option::DISABLE); });
  m.def("stats", &stats);
  // For tests: `options` holds a codegen::nvptx::NvptxOptions with a simulated device, `pools` a
  // bridge::MakeAllocationPool for the device's memory.
  m.def("use_gpu", [](const py::capsule& options, const py::capsule& pools) {
    bridge::use_gpu(*options.get_pointer<codegen::nvptx::NvptxOptions>());
    bridge::set_allocation_pools(*pools.get_pointer<bridge::MakeAllocationPool>());
  });
  m.def("break_kinds", [] {  // (name, description, remedy) of each kind of graph break
    py::list rows;
#define CRESSET_BREAK_KIND(name, description, remedy) rows.append(py::make_tuple(#name, description, remedy));
#include "base/break_reasons.def"
#undef CRESSET_BREAK_KIND
    return rows;
  });
  m.def("reset_stats", [] {
    frontend::reset_totals();
    bridge::reset_graph_counters();
  });
  m.def("learned", [](const py::object& f) { return state_of(f).feedback().texts(); });
  frontend::install_source_lines();
  frontend::add_control_functions(m.ptr());
  frontend::add_control_flow_functions(m.ptr());
  frontend::add_cached_function_functions(m.ptr());
  m.attr("_builtins") = py::reinterpret_borrow<py::dict>(cresset_eval_builtins());
  m.def("is_capturing", &frontend::is_capturing);
  m.def("trim_memory", &bridge::trim_memory);
  m.def("wrong_options", &wrong_options);
  m.def("deprecated_options", &deprecated_options);
  m.def("cache_folder_problem", &cache_folder_problem);
  // The folder of the disk cache ("": it is off), its files which this process used, and the machine which code is for.
  m.def("cache_folder", [] { return option_flag(Option::NO_DISK_CACHE) ? std::string() : cache_folder(); });
  m.def("used_cache_files", &codegen::used_files);
  m.def("bound_cache", &codegen::bound_folder);
  m.def("target_text", [] { return codegen::backend_of(DeviceKind::Cpu)->target_text(); });
  m.def("log_areas", [](const std::string& areas) { log::enable(areas); });
  m.def("set_log_receiver", [](const py::object& receiver) { frontend::set_log_receiver(receiver.ptr()); });
  m.def("send_log_lines", &frontend::send_log_lines);
  if (cresset_eval_add_functions(m.ptr()) < 0) throw py::error_already_set();
  python::init_shapes(m);
  python::init_numbers(m);
  bridge::configure_codegen();
  // Registered at import, as torch registers its own kernels. No call reaches these kernels before a capture.
  bridge::register_capture_kernels();
}
