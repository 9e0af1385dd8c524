#include "frontend/api/compiled_function.h"

#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/log.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/meta_shape_rule.h"
#include "bridge/capture/rng_state.h"
#include "bridge/executor/index_errors.h"
#include "frontend/api/log_lines.h"
#include "frontend/api/reports.h"
#include "frontend/cache_entries/automatic_dynamic.h"
#include "frontend/cache_entries/released_inputs.h"
#include "frontend/cpython/errors.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/replay/replay.h"
#include "frontend/segments/call_capture.h"
#include "frontend/segments/capture_state.h"
#include "frontend/segments/next_segment.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/other_tracers.h"
#include "frontend/values/deferred_iterators.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {
namespace {

// The call's arguments as (tuple, dict), created only when a capture or a traversal needs them.
struct Packed {
  PyRef args, kwargs;
};

Packed pack(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  Packed packed{checked(PyTuple_New(count)), checked(PyDict_New())};
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(packed.args.get(), i, args[i]);
  }
  for (Py_ssize_t i = 0; kwnames != nullptr && i < PyTuple_GET_SIZE(kwnames); ++i)
    if (PyDict_SetItem(packed.kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[count + i]) < 0) throw PythonError{};
  return packed;
}

bool requires_grad(const CallLeaves& leaves) {
  return std::any_of(leaves.tensors.begin(), leaves.tensors.end(),
                     [](const at::Tensor& t) { return t.requires_grad(); });
}

}  // namespace

// Where torch's stance allows no capture, the modules inside of an eager call are not compiled either.
static bool allows_captures() {
  const Stance stance = torch_controls().stance;
  return stance != Stance::EagerOnRecompile && stance != Stance::FailOnRecompile;
}

PyObject* CompiledFunction::call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  ++live_totals().eager_calls;
  std::optional<NativeRest> rest;
  if (allows_captures()) rest.emplace(*this);
  return PyObject_Vectorcall(function_.get(), args, nargsf, kwnames);
}

bool CompiledFunction::is_call_of(PyObject* module, PyObject* call) const {
  PyObject* const function = function_.get();
  return PyMethod_Check(function) && PyMethod_GET_SELF(function) == module && PyMethod_GET_FUNCTION(function) == call;
}

// Only the tensors of the arguments: `leaves` has no others yet.
static bool serve_marks(const MarksOfInputs& marks, const CallLeaves& leaves) {
  auto known = marks.begin();
  for (uint32_t i = 0; i < leaves.tensors.size(); ++i) {
    while (known != marks.end() && known->first < i) ++known;
    if (std::find(leaves.floats.begin(), leaves.floats.end(), i) != leaves.floats.end()) continue;
    const MarkedDims now = marked_dims(python_tensor(leaves.tensors[i]).get());
    if (now.any() && !(known != marks.end() && known->first == i ? known->second : MarkedDims{}).serve(now))
      return false;
  }
  return true;
}

struct CompiledFunction::Found {
  std::shared_ptr<CacheEntry> entry;  // nullptr: no entry serves the call
  CallLeaves leaves;
  c10::SmallVector<int64_t, 32> symbols;
  int passed = 0;  // kinds of guards which hold for the entry examined last: modes, arguments, state
};

bool CompiledFunction::serves(CacheEntry& v, const TorchState& state, PyObject* args, PyObject* kwargs, Found& found,
                              GuardFailure* why) const {
  ++live_totals().cache_entries_checked;
  found.leaves.clear();
  found.passed = 0;
  std::string* const text = why != nullptr ? &why->text : nullptr;
  const auto miss_of = [&](GuardKind kind) {
    if (why != nullptr) why->kind = kind;
    return false;
  };
  const auto miss = [&](GuardKind kind, const char* what) {
    if (text != nullptr) *text = what;
    return miss_of(kind);
  };
  if (v.state != state || !are_alive(v.modes)) {
    if (text != nullptr) *text = difference(v.state, state);
    return miss_of(GuardKind::Modes);
  }
  found.passed = 1;
  if (!match(v.args, args, found.leaves, text) || !match(v.kwargs, kwargs, found.leaves, text))
    return miss_of(GuardKind::Argument);
  found.passed = 2;
  const size_t tensors = found.leaves.tensors.size(), ints = found.leaves.ints.size();  // of the arguments
  if (may_have_marks() && !serve_marks(v.marks, found.leaves))
    return miss(GuardKind::Argument, "a dimension of a tensor was marked anew (mark_dynamic, mark_static, ...)");
  if (!(options_.evaluate ? v.guards.holds(text) : v.modules.holds(text))) return miss_of(GuardKind::State);
  if (!v.guards.gather(found.leaves, text)) return miss_of(GuardKind::State);
  found.passed = 3;
  if (v.wants_gradients && !requires_grad(found.leaves))
    return miss(GuardKind::Argument, "no tensor among the arguments requires gradients any more");
  if (v.program == nullptr) return true;
  if (state.in_dual_level() && v.program->any_tangent(found.leaves.tensors))
    return miss(GuardKind::Argument, "a tensor has a tangent (torch.autograd.forward_ad)");
  found.symbols.resize(v.symbol_count);
  if (v.program->matches(found.leaves.tensors, found.leaves.ints, found.symbols.data(), why)) return true;
  if (why != nullptr && (why->kind == GuardKind::Tensor || why->kind == GuardKind::Number))
    why->kind =
        why->position < (why->kind == GuardKind::Tensor ? tensors : ints) ? GuardKind::Argument : GuardKind::State;
  return false;
}

bool CompiledFunction::find_likely(CacheEntries& among, const CallHints& hints, const TorchState& state, PyObject* args,
                                   PyObject* kwargs, Found& found) {
  const CallHints::Likely* known = hints.find(args, kwargs);
  if (known == nullptr) return false;
  const CallHints::Likely likely = *known;  // a copy, since checks may run Python code
  for (const std::weak_ptr<CacheEntry>& one : likely) {
    std::shared_ptr<CacheEntry> v = one.lock();
    if (v == nullptr || !serves(*v, state, args, kwargs, found, nullptr)) continue;
    v->has_served = true;
    among.use(v);
    found.entry = std::move(v);
    return true;
  }
  return false;
}

// Checks may run Python code and let other threads run, so only owned references are kept across a check.
CompiledFunction::Found CompiledFunction::find(CacheEntries& among, CallHints& hints, const TorchState& state,
                                               PyObject* args, PyObject* kwargs, GuardFailure* why) {
  Found found;
  const bool many = among.size() > CallHints::kFew;
  if (many && find_likely(among, hints, state, args, kwargs, found)) return found;
  int nearest = -1;  // guards that an entry passed before the reason
  found.entry = among.find([&](CacheEntry& v) {
    GuardFailure reason;
    if (serves(v, state, args, kwargs, found, why != nullptr ? &reason : nullptr)) return true;
    if (why != nullptr && found.passed > nearest) nearest = found.passed, *why = std::move(reason);
    return false;
  });
  if (found.entry == nullptr) return found;
  found.entry->has_served = true;
  if (many) hints.put(args, kwargs, found.entry);
  return found;
}

double CompiledFunction::check_ns(PyObject* args, PyObject* kwargs, int64_t count) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i)
    if (find(cache_entries_, hints_, TorchState::now(), args, kwargs, nullptr).entry == nullptr) return -1;
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() / static_cast<double>(count);
}

std::string CompiledFunction::name() const {
  return settings_.name.empty() ? name_of(function_.get()) : settings_.name;
}

std::string CompiledFunction::why_missed(const TorchState& state, PyObject* args, PyObject* kwargs) {
  if (cache_entries_.empty()) return "it is not compiled yet";
  GuardFailure why;
  find(cache_entries_, hints_, state, args, kwargs, &why);
  return why.text;
}

// The exceptions by which cresset refuses a call. Such a capture is none in vain: the next call is refused as well.
namespace {
struct OwnErrors {
  PyObject* capture = module_attribute(python_names::kApi, "CaptureError");
  PyObject* constraint = module_attribute(python_names::kApi, "ConstraintError");
  bool is_raised() const {
    return PyErr_Occurred() != nullptr &&
           (PyErr_ExceptionMatches(capture) != 0 || PyErr_ExceptionMatches(constraint) != 0);
  }
};
}  // namespace

std::shared_ptr<CacheEntry> CompiledFunction::capture(const TorchState& state, PyObject* args, PyObject* kwargs,
                                                      bridge::CaptureLock& lock, PyRef& result) {
  static const OwnErrors refusals;
  auto entry = std::make_shared<CacheEntry>();
  entry->state = state;
  entry->modes = modes_now();
  const std::string name = this->name();
  // The result is not kept as a cache entry, since no guard could recognize this kind of call.
  const auto run_eagerly = [&](std::string why) {
    lock.give();
    PyErr_Clear();
    entry->eager_reason = {BreakKind::UnguardedState, std::move(why)};
    record_break(*entry, name);
    ++live_totals().eager_calls;
    const NativeRest rest(*this);
    result = PyRef::steal(PyObject_Call(function_.get(), args, kwargs));
    return entry;
  };
  if (options_.auto_dynamic && profile_ == nullptr) profile_ = std::make_unique<ShapeProfile>(function_.get());
  if (profile_ != nullptr) profile_->add_varying(dynamic_.ints);
  try {
    SpecBuilder now(nullptr, options_.evaluate);
    now.varying_objects = &dynamic_.objects;  // guarded by parts, as in the existing entries
    const ArgSpec args_now = now.build(args, "args"), kwargs_now = now.build(kwargs, "kwargs");
    worth_.dropped += learn(dynamic_, cache_entries_, args_now, kwargs_now, options_.evaluate);
    SpecBuilder builder(options_.dynamic ? &dynamic_.ints : nullptr, options_.evaluate);
    tell_what_varies(dynamic_, builder);
    builder.every_int = options_.dynamic && options_.evaluate && !options_.auto_dynamic;
    std::tie(entry->args, entry->kwargs) = builder.build_both(args, "args", kwargs, "kwargs");
    take_state(entry->guards, dynamic_, builder, options_.dynamic);
  } catch (const UnsupportedArgument& e) {
    return run_eagerly("argument " + e.path + " of type " + e.type_name + " cannot be guarded");
  }
  CallLeaves leaves;
  if (!match(entry->args, args, leaves, nullptr) || !match(entry->kwargs, kwargs, leaves, nullptr))
    return run_eagerly("an argument does not equal itself");
  ModuleGuards names(/*names_only=*/true);
  ModuleGuards& modules = options_.evaluate ? names : entry->modules;
  modules.add_reachable(function_.get());
  if (profile_ != nullptr) profile_->observe(entry->args, entry->kwargs, leaves);
  const size_t known = how_much_is_known();
  result = capture_call(request(modules, lock), entry, args, kwargs);
  if (plain_sizes_ && options_.dynamic) {
    options_.dynamic = options_.auto_dynamic = false;
    if (!result && PyErr_Occurred() == nullptr) return capture(state, args, kwargs, lock, result);
  }
  if (result || !refusals.is_raised()) note_worth(*entry, known);
  if (!entry->eager_reason.empty()) {
    entry->wants_gradients = requires_grad(leaves) && entry->eager_reason.is(BreakKind::RequiredGradients);
    record_break(*entry, name);
    ++live_totals().eager_calls;
  }
  if (entry->rejected != nullptr) rejected_.push_back(std::move(*std::exchange(entry->rejected, nullptr)));
  const bool failed = entry->raised || (!entry->eager_reason.empty() && !result);
  if (!failed) keep(entry, name);  // the next call may have valid input
  return entry;
}

void CompiledFunction::keep(const std::shared_ptr<CacheEntry>& entry, const std::string& name) {
  cache_entries_.add(entry);
  drop_of_gone_models_locked();
  if (!drop_least_used(cache_entries_, *entry, options_.cache_entry_limit)) return;
  ++worth_.dropped;
  if (std::exchange(warned_limit_, true)) return;
  PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                   "cresset: %s has more than %lld cache entries; the least used one is dropped, and compiled again "
                   "when it is needed. %s",
                   name.c_str(), static_cast<long long>(options_.cache_entry_limit), misses_.worst().c_str());
}

// find() for an entry which runs now. Calls that change state run one at a time.
CompiledFunction::Found CompiledFunction::find_locked(CacheEntries& among, CallHints& hints, const TorchState& state,
                                                      PyObject* args, PyObject* kwargs, WriteLock& lock) {
  Found found = find(among, hints, state, args, kwargs, nullptr);
  const auto changes_state = [&] { return found.entry && found.entry->program && found.entry->changes_state; };
  if (!changes_state() || !lock.take()) return found;
  found = find(among, hints, state, args, kwargs, nullptr);  // another thread may have invalidated the entry
  if (!changes_state()) lock.give();
  return found;
}

// If no entry was found: takes the capture lock, or waits for the thread that holds it, and searches again after each
// capture. Returns false when the other thread continues to capture.
bool CompiledFunction::find_or_take(CacheEntries& among, CallHints& hints, const TorchState& state, PyObject* args,
                                    PyObject* kwargs, WriteLock& write_lock, bridge::CaptureLock& lock, Found& found) {
  while (found.entry == nullptr && !lock.take()) {
    if (!wait_for(lock)) return false;
    found = find(among, hints, state, args, kwargs, nullptr);  // created by the other thread?
    if (found.entry == nullptr) return true;
    lock.give();  // released first: the holder of the write lock may wait for it
    found = find_locked(among, hints, state, args, kwargs, write_lock);
  }
  return true;
}

// Runs the program and returns the Python objects of its results.
std::vector<PyRef> CompiledFunction::run_entry(CacheEntry& entry, Found& found, PyObject* frames) {
  std::vector<at::Tensor> results;
  std::optional<c10::InferenceMode> inference;
  if (entry.in_inference) inference.emplace(true);
  std::optional<at::RecordFunction> record;  // for profilers
  if (auto watching = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION)) {
    const std::vector<c10::IValue> tensors(found.leaves.tensors.begin(), found.leaves.tensors.end());
    record.emplace(std::move(*watching));
    record->before("cresset: " + name(), c10::ArrayRef<const c10::IValue>(tensors.data(), tensors.size()));
  }
  const bool releases = frames != nullptr && !entry.released.empty();
  if (releases) {
    entry.program->check_assumptions(found.symbols.data());
    take_out(entry.released, frames);
  }
  const auto run = [&] {
    return releases ? entry.program->run_releasing(found.leaves.tensors, found.symbols.data())
                    : entry.program->run(found.leaves.tensors, found.symbols.data());
  };
  if (entry.program->is_small()) {
    results = run();
  } else {
    py::gil_scoped_release no_gil;
    results = run();
  }
  std::vector<PyRef> out;
  out.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const int32_t input = entry.program->returned_input(i);
    out.push_back(checked(input >= 0 ? THPVariable_Wrap(found.leaves.tensors[static_cast<size_t>(input)])
                                     : THPVariable_Wrap(std::move(results[i]))));
  }
  return out;
}

// Runs before the side effects, which may change the paths to these objects.
static void make_fates(const std::vector<Fate>& fates, Ingredients& with) {
  for (const Fate& fate : fates)
    if (fate.lives_on) make(fate.reconstruction, with);
}

// Reads the numbers in state again, because a capturing or eager thread may have changed them since the guards were
// checked. The segment uses the new numbers if its guards still hold.
void CompiledFunction::read_again(Found& found, PyObject* args, PyObject* kwargs) const {
  const CacheEntry& entry = *found.entry;
  if (!entry.changes_state || entry.program->is_small() || is_only_thread()) return;
  using Kind = runtime::SymbolSource::Kind;
  const std::vector<bridge::SymbolBinding>& bindings = entry.program->symbols();
  for (const bridge::SymbolBinding& binding : bindings)
    if (binding.source.kind == Kind::Computed) return;  // may depend on data and on a changed number
  Found now;
  if (!serves(*found.entry, TorchState::now(), args, kwargs, now, nullptr)) return;
  for (size_t i = 0; i < bindings.size(); ++i)  // sizes and elements belong to the finished run
    if (bindings[i].source.kind == Kind::IntArgument) found.symbols[i] = now.symbols[i];
}

// Runs segments until the end of the call. args, kwargs: of the first segment.
PyObject* CompiledFunction::run_segments(Found found, WriteLock& lock, PyObject* args, PyObject* kwargs,
                                         size_t& segments) {
  PyRef held_args, held_kwargs;
  std::shared_ptr<ResumePoint> point;  // the beginning of the segment; nullptr: the first segment
  for (;; ++segments) {
    CacheEntry& entry = *found.entry;
    const std::shared_ptr<CacheEntry> held = found.entry;
    Ingredients with;
    with.args = args;
    with.kwargs = kwargs;
    with.state = found.leaves.state;
    const bool released = point != nullptr && !entry.released.empty();
    const auto by_python = [&] {
      lock.give();
      return natively(point.get(), std::move(held_args), args, kwargs);
    };
    std::optional<bridge::SavedGenerator> generator;
    if (entry.program->draws() && !released) generator.emplace();
    try {
      with.tensors = run_entry(entry, found, point != nullptr ? args : nullptr);
    } catch (const bridge::PredictionError& e) {
      if (released) throw;  // their programs contain no operators with predicted sizes
      forget(point != nullptr ? point->resume_entries : cache_entries_, held, e);
      return by_python();
    } catch (const bridge::AssumptionFailed& e) {
      CRESSET_LOG(GraphBreaks, name() + ": one call runs eagerly: " + e.what_without_backtrace());
      return by_python();
    } catch (const bridge::IndexReported&) {  // perhaps an earlier call's
      throw;
    } catch (const c10::Error& e) {  // the program may catch it, and needs the right line
      if (released || !entry.program->may_run_again(generator.has_value())) throw;
      if (generator) generator->restore();
      CRESSET_LOG(GraphBreaks,
                  name() + ": one call runs eagerly, since data made an operator raise: " + e.what_without_backtrace());
      return by_python();
    }
    read_again(found, args, kwargs);
    with.numbers.resize(entry.numbers.output_count());
    if (!with.numbers.empty()) entry.numbers.run(found.symbols.data(), with.numbers.data());
    with.shared.resize(entry.shared_slots);
    find_generators(entry.fates, with);
    if (entry.next.point == nullptr) {
      LateIterators late;
      const Replay side_effects(entry.side_effects, with);
      PyRef result = make(entry.result, with);
      make_fates(entry.fates, with);
      side_effects.happen();
      lock.give();
      late.settle(&make_whole);
      settle_generators(entry.fates, with);
      entry.after.set();
      return result.release();
    }
    PyRef result = go_on(entry, with, lock, found, held_args, held_kwargs);
    if (found.entry == nullptr) return result.release();
    point = held->next.point;
    args = held_args.get();
    kwargs = held_kwargs.get();
  }
}

// Runs the code of a segment in CPython.
PyObject* CompiledFunction::natively(const ResumePoint* point, PyRef frames, PyObject* args, PyObject* kwargs) {
  ++(point != nullptr ? live_totals().eager_fallbacks : live_totals().eager_calls);
  std::optional<NativeRest> rest;
  if (allows_captures()) rest.emplace(*this);
  if (point == nullptr) return PyObject_Call(function_.get(), args, kwargs);
  return resume(point->place, std::move(frames), PyDict_GetItemString(kwargs, "value"),
                PyDict_GetItemString(kwargs, "raised"), /*natively=*/true)
      .release();
}

// Performs the operation with the frame's handled exception set, so that it becomes the context of a new exception.
static PyRef perform_while_handling(const Place& place, PyRef& frames, const Operation& operation) {
  const PyRef exception = PyRef::borrow(handled_in(frames.get()));
  if (exception.get() == Py_None) return perform_at(place, frames, operation);
  const PyRef outside = PyRef::steal(PyErr_GetHandledException());
  PyErr_SetHandledException(exception.get());
  PyRef value = perform_at(place, frames, operation);
  PyErr_SetHandledException(outside.get());
  return value;
}

// Continues after a graph break. CPython performs the operation. `next` receives the fitting segment; otherwise the
// result comes from a new capture or from the eager fallback.
PyRef CompiledFunction::go_on(const CacheEntry& entry, Ingredients& with, WriteLock& write_lock, Found& next,
                              PyRef& args, PyRef& kwargs) {
  const std::shared_ptr<ResumePoint>& point = entry.next.point;  // the caller keeps the entry
  LateIterators late;
  std::optional<Replay> side_effects(std::in_place, entry.side_effects, with);
  PyRef frames = make(entry.next.frames, with);
  Operation operation = entry.next.operation;
  for (const Reconstruction& operand : entry.next.operands) operation.operands.push_back(make(operand, with));
  make_fates(entry.fates, with);
  side_effects->happen();
  side_effects.reset();
  write_lock.give();
  late.settle(&make_whole);
  settle_generators(entry.fates, with);
  entry.after.set();
  next = {};
  with = {};
  args = kwargs = {};  // releases the objects which the program released
  PyRef value = perform_while_handling(point->place, frames, operation);
  if (value && point->drops_value) value = PyRef::borrow(Py_None);
  operation = {};
  const PyRef exception = value ? PyRef() : PendingError().normalized();
  const TorchState state = TorchState::now();
  args = std::move(frames);
  kwargs = outcome(value.get(), exception.get());
  next = find_locked(point->resume_entries, point->hints, state, args.get(), kwargs.get(), write_lock);
  bridge::CaptureLock lock;
  const bool is_traced = left_to_others(args.get(), kwargs.get());
  const bool watched = is_watched() || is_traced;
  if (!watched)
    find_or_take(point->resume_entries, point->hints, state, args.get(), kwargs.get(), write_lock, lock, next);
  point->worth.served += next.entry != nullptr;
  const bool rests = next.entry == nullptr && point->worth.rests();
  if (next.entry != nullptr && next.entry->eager_reason.empty()) return {};
  if (next.entry == nullptr && torch_controls().stance == Stance::FailOnRecompile)
    return PyRef::steal(refuse_recompile("no graph segment from " + point->place.text() + " on serves this call"));
  if (next.entry == nullptr && !watched && !rests && allows_captures() && lock.take()) {
    if (const uint64_t sizes = eager_sizes(point->resume_entries, state, args.get(), kwargs.get())) {
      lock.give();
      PyObject* const of = kwargs.get();
      return PyRef::steal(run_loop(sizes, point.get(), std::move(args), nullptr, of));
    }
    if (std::shared_ptr<CacheEntry> fresh = resume_entry(entry.next, state, args.get(), kwargs.get())) {
      const ModuleGuards no_names;
      const auto began = SizeLoops::Clock::now();
      PyRef result = capture_from(request(no_names, lock), point, fresh, std::move(args), value.get(), exception.get());
      loops_.compiled(*fresh, SizeLoops::Clock::now() - began);
      return result;
    }
  }
  const auto why = [&]() -> std::string {
    if (next.entry != nullptr) return next.entry->eager_reason.text();
    if (is_traced) return "another tracer is at work";
    if (watched) return kWatched;
    if (rests) return "nothing came of the captures before";
    if (!allows_captures()) return "torch.compiler.set_stance('eager_on_recompile') holds";
    return lock.take() ? "no further graph segment can begin there" : "another thread is capturing";
  };
  CRESSET_LOG(GraphBreaks, name() + ": eager fallback from " + point->place.text() + ": " + why());
  lock.give();
  next = {};
  ++live_totals().eager_fallbacks;
  const NativeRest rest(*this);
  return resume(point->place, std::move(args), value.get(), exception.get(), /*natively=*/true);
}

std::shared_ptr<CacheEntry> CompiledFunction::resume_entry(const Break& from, const TorchState& state, PyObject* args,
                                                           PyObject* kwargs) {
  if (!from.point->resume_entries.empty()) {
    GuardFailure why;
    find(from.point->resume_entries, from.point->hints, state, args, kwargs, &why);
    note_recompile(name() + ", from " + from.point->place.text() + ": " + why.text);
    if (const std::shared_ptr<CacheEntry> now =
            make_resume_entry(options_, from, state, args, kwargs, /*numbers=*/true))
      from.point->worth.dropped +=
          learn(from.point->automatic_dynamic, from.point->resume_entries, now->args, now->kwargs, /*floats=*/true);
  }
  return make_resume_entry(options_, from, state, args, kwargs, /*numbers=*/true);
}

std::shared_ptr<void> CompiledFunction::begin_eager_fallback() {
  return std::make_shared<NativeRest>(*this, /*of_capture=*/true);
}

CaptureRequest CompiledFunction::request(const ModuleGuards& names, bridge::CaptureLock& lock) {
  return {function_.get(),   name(),   options_, profile_.get(),
          TorchState::now(), names,    points_,  inference_apart_,
          plain_sizes_,      dynamic_, *this,    lock};
}

PyObject* CompiledFunction::refuse_break(const CacheEntry& entry) const {
  set_error("CaptureError",
            "cresset: fullgraph=True, but " + name() + " cannot be captured whole: " + entry.eager_reason.text() +
                "; remedy: change that line, or drop fullgraph=True to run it eagerly " + entry.eager_reason.advice());
  return nullptr;
}

namespace {

thread_local int calls_in_progress = 0;

// Autocast regions restore the switch of the autocast cache. A region that began during a capture would restore the
// capture's setting, which is off.
struct InCall {
  InCall() {
    if (calls_in_progress++ == 0) begin_log_lines();
  }
  ~InCall() {
    if (--calls_in_progress == 0) send_log_lines();
    at::autocast::set_autocast_cache_enabled(autocast_caches);
  }
  const bool autocast_caches = at::autocast::is_autocast_cache_enabled();
};

}  // namespace

bool inside_compiled_call() { return calls_in_progress != 0; }

// Warns about permanent eager mode, except for inner modules.
void CompiledFunction::warn_eager(bool& warned, const std::string& why) const {
  if (warned || calls_in_progress > 1) return;
  warned = true;
  PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "cresset: %s runs eagerly: %s", name().c_str(), why.c_str());
  PyErr_Clear();
}

// torch.compiler.reset() drops the cache entries of all compiled functions.
static void obey_resets() {
  static uint64_t seen = 0;  // under the GIL
  if (const uint64_t now = torch_controls().resets; std::exchange(seen, now) != now) clear_live_functions();
}

static PyObject* refuse_stance() {
  return PyErr_Format(PyExc_RuntimeError, "cresset: torch.compiler.set_stance() has no such stance: %R",
                      torch_controls().object.get());
}

PyObject* CompiledFunction::call(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  std::optional<OutOfCapture> out;
  if (NativeRest::in_capture())
    out.emplace();
  else if (bridge::Capture::current() != nullptr)
    return PyObject_Vectorcall(function_.get(), args, nargsf, kwnames);
  ++live_totals().calls;
  const InCall in_call;
  const UseFeedback learning(feedback_);
  const NoNativeRest compiled;
  HANDLE_TH_ERRORS
  if (!out) obey_resets();
  const Stance stance = out ? Stance::Default : torch_controls().stance;
  if (stance == Stance::Invalid) return refuse_stance();
  if (stance == Stance::ForceEager) {
    ++live_totals().eager_calls;
    return PyObject_Vectorcall(function_.get(), args, nargsf, kwnames);
  }
  if (PyObject* const result = serve(args, nargsf, kwnames)) return result;
  throw python_error();  // reports C++ warnings with the exception saved
  END_HANDLE_TH_ERRORS
}

PyObject* CompiledFunction::serve(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  try {
    if (traced_by_others()) return call_eager(args, nargsf, kwnames);
    if (torch::autograd::AnomalyMode::is_enabled()) {
      warn_eager(warned_anomaly_, "torch.autograd.detect_anomaly is on, which looks at every operator's gradient");
      return call_eager(args, nargsf, kwnames);
    }
    if (timing_.runs_eagerly()) return run_timed(args, nargsf, kwnames);
    const auto began = timing_.start();
    const Packed packed = pack(args, nargsf, kwnames);
    const TorchState state = TorchState::now();
    WriteLock write_lock(write_mutex_);
    Found found = find_locked(cache_entries_, hints_, state, packed.args.get(), packed.kwargs.get(), write_lock);
    worth_.served += found.entry != nullptr;
    if (found.entry == nullptr)
      if (PyObject* result = nullptr; runs_uncaptured(state, packed.args.get(), packed.kwargs.get(), result))
        return result;
    bridge::CaptureLock lock;
    if (found.entry == nullptr && captures_in_vain())
      return natively(nullptr, {}, packed.args.get(), packed.kwargs.get());
    if (found.entry == nullptr && hold_tracer_proxies(packed.args.get(), packed.kwargs.get()))
      return call_eager(args, nargsf, kwnames);
    if (found.entry == nullptr)
      if (const uint64_t sizes = eager_sizes(cache_entries_, state, packed.args.get(), packed.kwargs.get()))
        return run_loop(sizes, nullptr, {}, packed.args.get(), packed.kwargs.get());
    if (found.entry == nullptr && options_.evaluate && cresset_eval_is_watched()) {
      if (!note_watched(name(), options_.fullgraph)) return nullptr;
      return natively(nullptr, {}, packed.args.get(), packed.kwargs.get());
    }
    if (found.entry == nullptr && !options_.fullgraph && packs_saved_tensors()) {
      note_packing();
      return natively(nullptr, {}, packed.args.get(), packed.kwargs.get());
    }
    if (!find_or_take(cache_entries_, hints_, state, packed.args.get(), packed.kwargs.get(), write_lock, lock, found)) {
      CRESSET_LOG(GraphBreaks, name() + ": one call runs eagerly: another thread is capturing");
      return natively(nullptr, {}, packed.args.get(), packed.kwargs.get());
    }
    if (found.entry == nullptr) return call_first(state, packed.args.get(), packed.kwargs.get(), lock);
    lock.give();
    if (!found.entry->eager_reason.empty()) {
      if (options_.fullgraph) return refuse_break(*found.entry);
      if (found.entry->wants_gradients) warn_eager(warned_gradients_, found.entry->eager_reason.text());
      return call_eager(args, nargsf, kwnames);
    }
    size_t segments = 1;
    const int64_t fallbacks = live_totals().eager_fallbacks;
    PyObject* const result =
        run_segments(std::move(found), write_lock, packed.args.get(), packed.kwargs.get(), segments);
    timing_.ran(segments, live_totals().eager_fallbacks != fallbacks, began);
    return result;
  } catch (const PythonError&) {
    return nullptr;
  }
}

size_t CompiledFunction::how_much_is_known() const { return feedback_.size() + dynamic_.size() + inference_apart_; }

// Records whether the capture produced a usable entry, or feedback for a different capture.
void CompiledFunction::note_worth(const CacheEntry& entry, size_t known_before) {
  worth_.captured((entry.eager_reason.empty() && !entry.raised) || how_much_is_known() != known_before);
  const bool is_useful = entry.eager_reason.empty() && !entry.raised;
  if (is_useful || options_.fullgraph || !worth_.is_in_vain() || std::exchange(warned_vain_, true)) return;
  const SavedError raised;
  warn_in_vain(name(), entry.eager_reason);
}

uint64_t CompiledFunction::eager_sizes(const CacheEntries& among, const TorchState& state, PyObject* args,
                                       PyObject* kwargs) const {
  return options_.fullgraph ? 0 : loops_.eager_sizes(among, state, args, kwargs);
}

PyObject* CompiledFunction::run_loop(uint64_t sizes, const ResumePoint* point, PyRef frames, PyObject* args,
                                     PyObject* kwargs) {
  const auto began = SizeLoops::Clock::now();
  PyRef result = PyRef::steal(natively(point, std::move(frames), args, kwargs));
  if (!result || !loops_.ran_eagerly(sizes, SizeLoops::Clock::now() - began)) return result.release();
  const BreakReason reason(BreakKind::Limits, "a loop over sizes, of which each needs a program of its own");
  const std::string why = name() + ": " + reason.text();
  CRESSET_LOG(GraphBreaks, why + ": calls run eagerly until their sizes have come often enough");
  note_reason(name(), reason);
  PyErr_WarnFormat(
      PyExc_RuntimeWarning, 1,
      "cresset: %s: calls of sizes that come seldom run eagerly. Where the loop can be an operator of torch's, "
      "a program is for all sizes.",
      why.c_str());
  PyErr_Clear();
  return result.release();
}

PyObject* CompiledFunction::call_first(const TorchState& state, PyObject* args, PyObject* kwargs,
                                       bridge::CaptureLock& lock) {
  if (!cache_entries_.empty()) {
    GuardFailure why;
    find(cache_entries_, hints_, state, args, kwargs, &why);
    note_recompile(name() + ": " + readable_guard(function_.get(), why.text));
    misses_.note(why);
  }
  PyRef result;
  const auto began = SizeLoops::Clock::now();
  const std::shared_ptr<CacheEntry> entry = capture(state, args, kwargs, lock, result);
  loops_.compiled(*entry, SizeLoops::Clock::now() - began);
  if (result && options_.fullgraph && !entry->eager_reason.empty()) return refuse_break(*entry);
  return result.release();
}

// A predicted size was wrong, detected before any write. The next call captures again and specializes the sizes of this
// operator.
void CompiledFunction::forget(CacheEntries& among, const std::shared_ptr<CacheEntry>& entry,
                              const bridge::PredictionError& error) {
  bridge::note_unpredictable(error.op());
  among.erase(entry);
  note_recompile(name() + ": " + error.what());
}

void CompiledFunction::clear_cache_entries() {
  cache_entries_.clear();
  rejected_.clear();
  points_.clear();
  dynamic_ = {};
  feedback_.clear();
  inference_apart_ = false;
  hints_.clear();
  has_run_eagerly_ = false;
  misses_.clear();
  inner_modules_.clear();
  worth_ = {};
  warned_vain_ = warned_packing_ = false;
  timing_ = {};
  loops_ = {};
}

int CompiledFunction::visit(visitproc visit, void* arg) const {
  Py_VISIT(function_.get());
  Py_VISIT(options_.guard_filter.get());
  const auto all = [&](const CacheEntries& cache_entries) {
    for (const std::shared_ptr<CacheEntry>& v : cache_entries) {
      if (v.use_count() > 1) continue;
      if (const int r = v->visit(visit, arg)) return r;
    }
    return 0;
  };
  if (const int r = all(cache_entries_)) return r;
  if (const int r = dynamic_.visit(visit, arg)) return r;
  if (const int r = feedback_.visit(visit, arg)) return r;
  if (const int r = inner_modules_.visit(visit, arg)) return r;
  for (const std::shared_ptr<ResumePoint>& point : points_) {
    for (const Place::Frame& frame : point->place.frames) Py_VISIT(frame.code.get());
    if (const int r = all(point->resume_entries)) return r;
    if (const int r = point->automatic_dynamic.visit(visit, arg)) return r;
  }
  return 0;
}

int CacheEntry::visit(visitproc visit, void* arg) const {
  for (const PyRef& mode : modes) Py_VISIT(mode.get());
  if (const int r = frontend::visit(args, visit, arg)) return r;
  if (const int r = frontend::visit(kwargs, visit, arg)) return r;
  if (const int r = frontend::visit(result, visit, arg)) return r;
  if (const int r = frontend::visit(next.frames, visit, arg)) return r;
  for (const PyRef& constant : next.constants) Py_VISIT(constant.get());
  for (const Fate& fate : fates)
    if (const int r = frontend::visit(fate.reconstruction, visit, arg)) return r;
  for (const Reconstruction& operand : next.operands)
    if (const int r = frontend::visit(operand, visit, arg)) return r;
  if (const int r = modules.visit(visit, arg)) return r;
  if (const int r = guards.visit(visit, arg)) return r;
  for (const ReplayedEffect& e : side_effects)
    if (const int r = frontend::visit(e, visit, arg)) return r;
  return 0;
}

}  // namespace cresset::frontend
