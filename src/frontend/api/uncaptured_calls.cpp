// Calls which run eagerly without a capture: torch's stance or the recompile limit forbids the capture, earlier
// captures were in vain, or eager mode is faster.
#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "frontend/api/compiled_function.h"
#include "frontend/cpython/errors.h"
#include "frontend/guards/torch_modes.h"

namespace cresset::frontend {

PyObject* CompiledFunction::run_alone(PyObject* args, PyObject* kwargs) {
  ++live_totals().eager_calls;
  return PyObject_Call(function_.get(), args, kwargs);
}

PyObject* CompiledFunction::refuse_recompile(const std::string& why) const {
  const char* const rule =
      torch_controls().skips_guards ? "set_stance(skip_guard_eval_unsafe=True)" : "set_stance('fail_on_recompile')";
  PyErr_Format(
      PyExc_RuntimeError,
      "cresset: %s would be compiled again, which torch.compiler.%s forbids: %s; remedy: make such a call before "
      "the stance is set, or set the stance 'eager_on_recompile'",
      name().c_str(), rule, why.c_str());
  return nullptr;
}

void CompiledFunction::observe_sizes(PyObject* args, PyObject* kwargs) {
  if (!options_.auto_dynamic) return;
  if (profile_ == nullptr) profile_ = std::make_unique<ShapeProfile>(function_.get());
  try {
    SpecBuilder builder(nullptr, options_.evaluate);
    const ArgSpec positional = builder.build(args, "args"), named = builder.build(kwargs, "kwargs");
    CallLeaves leaves;
    if (match(positional, args, leaves, nullptr) && match(named, kwargs, leaves, nullptr))
      profile_->observe(positional, named, leaves);
  } catch (const UnsupportedArgument&) {
    PyErr_Clear();
  }
}

PyObject* CompiledFunction::beyond_recompile_limit(PyObject* args, PyObject* kwargs) {
  const auto limit = static_cast<long long>(settings_.recompile_limit);
  const std::string why = "recompile_limit=" + std::to_string(limit) + " is reached. " + misses_.worst();
  if (options_.fullgraph) {
    set_error("CaptureError", "cresset: fullgraph=True, but " + name() + " would be compiled again: " + why);
    return nullptr;
  }
  if (!std::exchange(warned_recompiles_, true)) {
    note_reason(name(), {BreakKind::Limits, why});
    PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                     "cresset: %s: calls that no cache entry serves run eagerly from now on: %s", name().c_str(),
                     why.c_str());
    PyErr_Clear();
  }
  return run_alone(args, kwargs);
}

bool CompiledFunction::runs_uncaptured(const TorchState& state, PyObject* args, PyObject* kwargs, PyObject*& result) {
  const TorchControls& controls = torch_controls();
  if (controls.stance == Stance::FailOnRecompile || controls.skips_guards) {
    result = refuse_recompile(why_missed(state, args, kwargs));
    return true;
  }
  if (controls.stance == Stance::EagerOnRecompile) return result = run_alone(args, kwargs), true;
  const bool waits = controls.stance == Stance::EagerThenCompile || controls.stance == Stance::AotEagerThenCompile;
  if (waits && !std::exchange(has_run_eagerly_, true)) {
    observe_sizes(args, kwargs);
    return result = run_alone(args, kwargs), true;
  }
  const int64_t limit = settings_.recompile_limit;
  if (limit < 0 || static_cast<int64_t>(cache_entries_.size()) < limit) return false;
  return result = beyond_recompile_limit(args, kwargs), true;
}

void CompiledFunction::note_packing() {
  if (std::exchange(warned_packing_, true)) return;
  note_reason(name(), {BreakKind::SavedTensorHooks, kPacking});
  PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "cresset: %s: %s: such calls run eagerly.", name().c_str(), kPacking);
  PyErr_Clear();
}

// Whether more captures would only compile programs which serve no other call.
bool CompiledFunction::captures_in_vain() {
  if (options_.fullgraph) return false;
  if (!worth_.rests() && !worth_.exhausted()) return false;
  CRESSET_LOG(GraphBreaks, name() + ": one call runs eagerly: nothing came of the captures before");
  if (warned_vain_) return true;
  if (std::exchange(warned_worth_, true)) return true;
  const std::string worst = misses_.worst();
  note_reason(name(), {BreakKind::Limits, "too many cache entries served no other call. " + worst});
  PyErr_WarnFormat(
      PyExc_RuntimeWarning, 1,
      "cresset: %s was compiled anew for calls that no later one was like; calls that no cache entry serves run "
      "eagerly from now on, until others are served. %s",
      name().c_str(), worst.c_str());
  PyErr_Clear();
  return true;
}

PyObject* CompiledFunction::run_timed(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto began = timing_.start();
  ++live_totals().eager_calls;
  PyRef result = PyRef::steal(PyObject_Vectorcall(function_.get(), args, nargsf, kwnames));
  if (!timing_.ran_eagerly(began) || !result) return result.release();
  const std::string times = fmt::format("{} graph segments take {:.3g} ms a call, eager mode takes {:.3g}",
                                        timing_.segments(), timing_.compiled_ms(), timing_.eager_ms());
  CRESSET_LOG(GraphBreaks, name() + ": calls run eagerly: " + times);
  if (std::exchange(warned_timing_, true)) return result.release();
  note_reason(name(), {BreakKind::Limits, times});
  PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                   "cresset: %s: its %s: it runs eagerly, and is timed again later. cresset.explain tells where its "
                   "graph breaks are, and why.",
                   name().c_str(), times.c_str());
  PyErr_Clear();
  return result.release();
}

}  // namespace cresset::frontend
