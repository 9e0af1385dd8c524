#include "frontend/api/compiled_function.h"

#include <ATen/autocast_mode.h>
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
#include "frontend/cpython/errors.h"
#include "frontend/replay/replay.h"
#include "frontend/segments/call_capture.h"
#include "frontend/segments/capture_state.h"
#include "frontend/segments/next_segment.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/other_tracers.h"
#include "frontend/values/deferred_iterators.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/pending_error.h"
#include "frontend/variants/automatic_dynamic.h"
#include "frontend/variants/released_inputs.h"

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

std::string name_of(PyObject* function) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(function, "__qualname__"));
  if (!name) {
    PyErr_Clear();
    return Py_TYPE(function)->tp_name;
  }
  const char* text = PyUnicode_AsUTF8(name.get());
  return text != nullptr ? text : "?";
}

bool requires_grad(const CallLeaves& leaves) {
  return std::any_of(leaves.tensors.begin(), leaves.tensors.end(),
                     [](const at::Tensor& t) { return t.requires_grad(); });
}

void note_recompile(const std::string& line) {
  live_totals().recompiles.push_back(line);
  CRESSET_LOG(Recompiles, line);
}

// Once for each function: such calls may be many.
void note_watched(const std::string& name) {
  CRESSET_LOG(Recompiles, "one call runs eagerly: " + name + ": " + kWatched);
  const NotedReason noted{name, {BreakKind::Debugger, kWatched}};
  std::vector<NotedReason>& reasons = live_totals().break_reasons;
  if (std::find(reasons.begin(), reasons.end(), noted) == reasons.end()) reasons.push_back(noted);
}

void record_break(Variant& variant, const std::string& name) {
  ++live_totals().graph_breaks;
  note_reason(name, variant.eager_reason);
  CRESSET_LOG(Recompiles, name + " runs eagerly: " + variant.eager_reason.text());
}

}  // namespace

PyObject* CompiledFunction::call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  ++live_totals().eager_calls;
  const NativeRest rest(*this);
  return PyObject_Vectorcall(function_.get(), args, nargsf, kwnames);
}

bool CompiledFunction::is_call_of(PyObject* module, PyObject* call) const {
  PyObject* const function = function_.get();
  return PyMethod_Check(function) && PyMethod_GET_SELF(function) == module && PyMethod_GET_FUNCTION(function) == call;
}

struct CompiledFunction::Found {
  std::shared_ptr<Variant> variant;  // nullptr: no entry serves the call
  CallLeaves leaves;
  c10::SmallVector<int64_t, 32> symbols;
};

bool CompiledFunction::serves(Variant& v, const TorchState& state, PyObject* args, PyObject* kwargs, Found& found,
                              GuardFailure* why) const {
  ++live_totals().variants_checked;
  found.leaves.clear();
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
  if (!match(v.args, args, found.leaves, text) || !match(v.kwargs, kwargs, found.leaves, text))
    return miss_of(GuardKind::Argument);
  const size_t tensors = found.leaves.tensors.size(), ints = found.leaves.ints.size();  // of the arguments
  if (!(options_.evaluate ? v.facts.holds(text) : v.modules.holds(text))) return miss_of(GuardKind::State);
  if (!v.facts.gather(found.leaves, text)) return miss_of(GuardKind::State);
  if (v.wants_gradients && !requires_grad(found.leaves))
    return miss(GuardKind::Argument, "no tensor among the arguments requires gradients any more");
  if (v.entry == nullptr) return true;
  if (state.in_dual_level() && v.entry->any_tangent(found.leaves.tensors))
    return miss(GuardKind::Argument, "a tensor has a tangent (torch.autograd.forward_ad)");
  found.symbols.resize(v.symbol_count);
  if (v.entry->matches(found.leaves.tensors, found.leaves.ints, found.symbols.data(), why)) return true;
  if (why != nullptr && (why->kind == GuardKind::Tensor || why->kind == GuardKind::Number))
    why->kind =
        why->position < (why->kind == GuardKind::Tensor ? tensors : ints) ? GuardKind::Argument : GuardKind::State;
  return false;
}

bool CompiledFunction::find_likely(Variants& among, const CallHints& hints, const TorchState& state, PyObject* args,
                                   PyObject* kwargs, Found& found) {
  const CallHints::Likely* known = hints.find(args, kwargs);
  if (known == nullptr) return false;
  const CallHints::Likely likely = *known;  // a copy, since checks may run Python code
  for (const std::weak_ptr<Variant>& one : likely) {
    std::shared_ptr<Variant> v = one.lock();
    if (v == nullptr || !serves(*v, state, args, kwargs, found, nullptr)) continue;
    v->has_served = true;
    among.use(v);
    found.variant = std::move(v);
    return true;
  }
  return false;
}

// Checks may run Python code and let other threads run, so only owned references are kept across a check.
CompiledFunction::Found CompiledFunction::find(Variants& among, CallHints& hints, const TorchState& state,
                                               PyObject* args, PyObject* kwargs, GuardFailure* why) {
  Found found;
  const bool many = among.size() > CallHints::kFew;
  if (many && find_likely(among, hints, state, args, kwargs, found)) return found;
  found.variant =
      among.find([&](Variant& v) { return serves(v, state, args, kwargs, found, std::exchange(why, nullptr)); });
  if (found.variant == nullptr) return found;
  found.variant->has_served = true;
  if (many) hints.put(args, kwargs, found.variant);
  return found;
}

double CompiledFunction::check_ns(PyObject* args, PyObject* kwargs, int64_t count) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i)
    if (find(variants_, hints_, TorchState::now(), args, kwargs, nullptr).variant == nullptr) return -1;
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() / static_cast<double>(count);
}

std::string CompiledFunction::name() const { return name_of(function_.get()); }

std::shared_ptr<Variant> CompiledFunction::capture(const TorchState& state, PyObject* args, PyObject* kwargs,
                                                   bridge::CaptureTurn& turn, PyRef& result) {
  auto variant = std::make_shared<Variant>();
  variant->state = state;
  variant->modes = modes_now();
  const std::string name = name_of(function_.get());
  // The result is not kept as a cache entry, since no guard could recognize this kind of call.
  const auto run_eagerly = [&](std::string why) {
    turn.give();
    PyErr_Clear();
    variant->eager_reason = {BreakKind::UnguardedState, std::move(why)};
    record_break(*variant, name);
    ++live_totals().eager_calls;
    const NativeRest rest(*this);
    result = PyRef::steal(PyObject_Call(function_.get(), args, kwargs));
    return variant;
  };
  if (options_.auto_dynamic && profile_ == nullptr) profile_ = std::make_unique<ShapeProfile>(function_.get());
  if (profile_ != nullptr) profile_->add_varying(varying_.ints);
  try {
    SpecBuilder now(nullptr, options_.evaluate);
    now.varying_objects = &varying_.objects;  // guarded by parts, as in the existing entries
    const ArgSpec args_now = now.build(args, "args"), kwargs_now = now.build(kwargs, "kwargs");
    worth_.dropped += learn(varying_, variants_, args_now, kwargs_now, options_.evaluate);
    SpecBuilder builder(options_.dynamic ? &varying_.ints : nullptr, options_.evaluate);
    tell_what_varies(varying_, builder);
    builder.every_int = options_.dynamic && options_.evaluate && !options_.auto_dynamic;
    std::tie(variant->args, variant->kwargs) = builder.build_both(args, "args", kwargs, "kwargs");
    take_state(variant->facts, varying_, builder, options_.dynamic);
  } catch (const UnsupportedArgument& e) {
    return run_eagerly("argument " + e.path + " of type " + e.type_name + " cannot be guarded");
  }
  CallLeaves leaves;
  if (!match(variant->args, args, leaves, nullptr) || !match(variant->kwargs, kwargs, leaves, nullptr))
    return run_eagerly("an argument does not equal itself");
  ModuleGuards names(/*names_only=*/true);
  ModuleGuards& modules = options_.evaluate ? names : variant->modules;
  modules.add_reachable(function_.get());
  if (profile_ != nullptr) profile_->observe(variant->args, variant->kwargs, leaves);
  const size_t known = how_much_is_known();
  result = capture_call(request(modules, turn), variant, args, kwargs);
  if (plain_sizes_ && options_.dynamic) {
    options_.dynamic = options_.auto_dynamic = false;
    if (!result && PyErr_Occurred() == nullptr) return capture(state, args, kwargs, turn, result);
  }
  note_worth(*variant, known);
  if (!variant->eager_reason.empty()) {
    variant->wants_gradients = requires_grad(leaves) && variant->eager_reason.is(BreakKind::RequiredGradients);
    record_break(*variant, name);
    ++live_totals().eager_calls;
  }
  if (variant->rejected != nullptr) rejected_.push_back(std::move(*std::exchange(variant->rejected, nullptr)));
  const bool failed = variant->raised || (!variant->eager_reason.empty() && !result);
  if (!failed) keep(variant, name);  // the next call may have valid input
  return variant;
}

void CompiledFunction::keep(const std::shared_ptr<Variant>& variant, const std::string& name) {
  variants_.add(variant);
  drop_of_gone_models_in_turn();
  if (!drop_least_used(variants_, *variant, options_.entry_limit)) return;
  ++worth_.dropped;
  if (std::exchange(warned_limit_, true)) return;
  PyErr_WarnFormat(
      PyExc_RuntimeWarning, 1,
      "cresset: %s has more than %lld compiled variants; the least used one is dropped, and compiled again "
      "when it is needed. %s",
      name.c_str(), static_cast<long long>(options_.entry_limit), misses_.worst().c_str());
}

// find() for an entry which runs now. Calls that change state run one at a time.
CompiledFunction::Found CompiledFunction::find_in_turn(Variants& among, CallHints& hints, const TorchState& state,
                                                       PyObject* args, PyObject* kwargs, WriteTurn& turn) {
  Found found = find(among, hints, state, args, kwargs, nullptr);
  const auto changes_state = [&] { return found.variant && found.variant->entry && found.variant->changes_state; };
  if (!changes_state() || !turn.take()) return found;
  found = find(among, hints, state, args, kwargs, nullptr);  // another thread may have invalidated the entry
  if (!changes_state()) turn.give();
  return found;
}

// If no entry was found: takes the capture lock, or waits for the thread that holds it, and searches again after each
// capture. Returns false when the other thread continues to capture.
bool CompiledFunction::find_or_take(Variants& among, CallHints& hints, const TorchState& state, PyObject* args,
                                    PyObject* kwargs, WriteTurn& turn_to_write, bridge::CaptureTurn& turn,
                                    Found& found) {
  while (found.variant == nullptr && !turn.take()) {
    if (!wait_for(turn)) return false;
    found = find(among, hints, state, args, kwargs, nullptr);  // created by the other thread?
    if (found.variant == nullptr) return true;
    turn.give();  // released first: the holder of the write lock may wait for it
    found = find_in_turn(among, hints, state, args, kwargs, turn_to_write);
  }
  return true;
}

// Runs the program and returns the Python objects of its results.
std::vector<PyRef> CompiledFunction::run_entry(Variant& variant, Found& found, PyObject* frames) {
  std::vector<at::Tensor> results;
  std::optional<c10::InferenceMode> inference;
  if (variant.in_inference) inference.emplace(true);
  const bool releases = frames != nullptr && !variant.released.empty();
  if (releases) {
    variant.entry->check_assumptions(found.symbols.data());
    take_out(variant.released, frames);
  }
  const auto run = [&] {
    return releases ? variant.entry->run_releasing(found.leaves.tensors, found.symbols.data())
                    : variant.entry->run(found.leaves.tensors, found.symbols.data());
  };
  if (variant.entry->is_small()) {
    results = run();
  } else {
    py::gil_scoped_release no_gil;
    results = run();
  }
  std::vector<PyRef> out;
  out.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const int32_t input = variant.entry->returned_input(i);
    out.push_back(checked(input >= 0 ? THPVariable_Wrap(found.leaves.tensors[static_cast<size_t>(input)])
                                     : THPVariable_Wrap(std::move(results[i]))));
  }
  return out;
}

// Runs before the side effects, which may change the paths to these objects.
static void make_fates(const std::vector<Fate>& fates, Ingredients& with) {
  for (const Fate& fate : fates)
    if (fate.lives_on) make(fate.recipe, with);
}

// Reads the numbers in state again, because a capturing or eager thread may have changed them since the guards were
// checked. The segment uses the new numbers if its guards still hold.
void CompiledFunction::read_again(Found& found, PyObject* args, PyObject* kwargs) const {
  const Variant& variant = *found.variant;
  if (!variant.changes_state || variant.entry->is_small() || is_only_thread()) return;
  using Kind = runtime::SymbolSource::Kind;
  const std::vector<bridge::SymbolBinding>& bindings = variant.entry->symbols();
  for (const bridge::SymbolBinding& binding : bindings)
    if (binding.source.kind == Kind::Computed) return;  // may depend on data and on a changed number
  Found now;
  if (!serves(*found.variant, TorchState::now(), args, kwargs, now, nullptr)) return;
  for (size_t i = 0; i < bindings.size(); ++i)  // sizes and elements belong to the finished run
    if (bindings[i].source.kind == Kind::IntArgument) found.symbols[i] = now.symbols[i];
}

// Runs segments until the end of the call. args, kwargs: of the first segment.
PyObject* CompiledFunction::run_pieces(Found found, WriteTurn& turn, PyObject* args, PyObject* kwargs, size_t& pieces) {
  PyRef held_args, held_kwargs;
  std::shared_ptr<Point> point;  // the beginning of the segment; nullptr: the first segment
  for (;; ++pieces) {
    Variant& variant = *found.variant;
    const std::shared_ptr<Variant> held = found.variant;
    Ingredients with;
    with.args = args;
    with.kwargs = kwargs;
    with.state = found.leaves.state;
    const bool released = point != nullptr && !variant.released.empty();
    const auto by_python = [&] {
      turn.give();
      return natively(point.get(), std::move(held_args), args, kwargs);
    };
    std::optional<bridge::SavedGenerator> generator;
    if (variant.entry->draws() && !released) generator.emplace();
    try {
      with.tensors = run_entry(variant, found, point != nullptr ? args : nullptr);
    } catch (const bridge::PredictionError& e) {
      if (released) throw;  // their programs contain no operators with predicted sizes
      forget(point != nullptr ? point->successors : variants_, held, e);
      return by_python();
    } catch (const bridge::AssumptionFailed& e) {
      CRESSET_LOG(Recompiles, name() + ": one call runs eagerly: " + e.what_without_backtrace());
      return by_python();
    } catch (const c10::Error& e) {  // the program may catch it, and needs the right line
      if (released || !variant.entry->may_run_again(generator.has_value())) throw;
      if (generator) generator->restore();
      CRESSET_LOG(Recompiles,
                  name() + ": one call runs eagerly, since data made an operator raise: " + e.what_without_backtrace());
      return by_python();
    }
    read_again(found, args, kwargs);
    with.numbers.resize(variant.numbers.output_count());
    if (!with.numbers.empty()) variant.numbers.run(found.symbols.data(), with.numbers.data());
    with.shared.resize(variant.shared_slots);
    find_generators(variant.fates, with);
    if (variant.next.point == nullptr) {
      LateIterators late;
      const Replay effects(variant.effects, with);
      PyRef result = make(variant.result, with);
      make_fates(variant.fates, with);
      effects.happen();
      turn.give();
      late.settle(&make_whole);
      settle_generators(variant.fates, with);
      variant.after.set();
      return result.release();
    }
    PyRef result = go_on(variant, with, turn, found, held_args, held_kwargs);
    if (found.variant == nullptr) return result.release();
    point = held->next.point;
    args = held_args.get();
    kwargs = held_kwargs.get();
  }
}

// Runs the code of a segment in CPython.
PyObject* CompiledFunction::natively(const Point* point, PyRef frames, PyObject* args, PyObject* kwargs) {
  ++(point != nullptr ? live_totals().native_stretches : live_totals().eager_calls);
  const NativeRest rest(*this);
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
PyRef CompiledFunction::go_on(const Variant& variant, Ingredients& with, WriteTurn& turn_to_write, Found& next,
                              PyRef& args, PyRef& kwargs) {
  const std::shared_ptr<Point>& point = variant.next.point;  // the caller keeps the entry
  LateIterators late;
  std::optional<Replay> effects(std::in_place, variant.effects, with);
  PyRef frames = make(variant.next.frames, with);
  Operation operation = variant.next.operation;
  for (const Recipe& operand : variant.next.operands) operation.operands.push_back(make(operand, with));
  make_fates(variant.fates, with);
  effects->happen();
  effects.reset();
  turn_to_write.give();
  late.settle(&make_whole);
  settle_generators(variant.fates, with);
  variant.after.set();
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
  next = find_in_turn(point->successors, point->hints, state, args.get(), kwargs.get(), turn_to_write);
  bridge::CaptureTurn turn;
  const bool is_traced = left_to_others(args.get(), kwargs.get());
  const bool watched = is_watched() || is_traced;
  if (!watched)
    find_or_take(point->successors, point->hints, state, args.get(), kwargs.get(), turn_to_write, turn, next);
  point->worth.served += next.variant != nullptr;
  const bool rests = next.variant == nullptr && point->worth.rests();
  if (next.variant != nullptr && next.variant->eager_reason.empty()) return {};
  if (next.variant == nullptr && !watched && !rests && turn.take()) {
    if (const uint64_t sizes = eager_sizes(point->successors, state, args.get(), kwargs.get())) {
      turn.give();
      PyObject* const of = kwargs.get();
      return PyRef::steal(run_loop(sizes, point.get(), std::move(args), nullptr, of));
    }
    if (std::shared_ptr<Variant> fresh = successor(variant.next, state, args.get(), kwargs.get())) {
      const ModuleGuards no_names;
      const auto began = SizeLoops::Clock::now();
      PyRef result = capture_from(request(no_names, turn), point, fresh, std::move(args), value.get(), exception.get());
      loops_.compiled(*fresh, SizeLoops::Clock::now() - began);
      return result;
    }
  }
  const auto why = [&]() -> std::string {
    if (next.variant != nullptr) return next.variant->eager_reason.text();
    if (is_traced) return "another tracer is at work";
    if (watched) return kWatched;
    if (rests) return "nothing came of the captures before";
    return turn.take() ? "no further piece can begin there" : "another thread is capturing";
  };
  CRESSET_LOG(Recompiles, name() + ": goes on natively from " + point->place.text() + ": " + why());
  turn.give();
  next = {};
  ++live_totals().native_stretches;
  const NativeRest rest(*this);
  return resume(point->place, std::move(args), value.get(), exception.get(), /*natively=*/true);
}

std::shared_ptr<Variant> CompiledFunction::successor(const Break& from, const TorchState& state, PyObject* args,
                                                     PyObject* kwargs) {
  if (!from.point->successors.empty()) {
    GuardFailure why;
    find(from.point->successors, from.point->hints, state, args, kwargs, &why);
    note_recompile(name() + ", from " + from.point->place.text() + ": " + why.text);
    if (const std::shared_ptr<Variant> now = make_successor(options_, from, state, args, kwargs, /*numbers=*/true))
      from.point->worth.dropped +=
          learn(from.point->varying, from.point->successors, now->args, now->kwargs, /*floats=*/true);
  }
  return make_successor(options_, from, state, args, kwargs, /*numbers=*/true);
}

std::shared_ptr<void> CompiledFunction::begin_native_rest() {
  return std::make_shared<NativeRest>(*this, /*of_capture=*/true);
}

CaptureRequest CompiledFunction::request(const ModuleGuards& names, bridge::CaptureTurn& turn) {
  return {function_.get(),   name(),   options_, profile_.get(),
          TorchState::now(), names,    points_,  inference_apart_,
          plain_sizes_,      varying_, *this,    turn};
}

PyObject* CompiledFunction::refuse_break(const Variant& variant) const {
  set_error("CaptureError", "cresset: fullgraph=True, but " + name_of(function_.get()) +
                                " cannot be captured whole: " + variant.eager_reason.text() +
                                "; remedy: change that line, or drop fullgraph=True to run it eagerly " +
                                variant.eager_reason.advice());
  return nullptr;
}

namespace {

thread_local int calls_in_progress = 0;

// Autocast regions restore the switch of the autocast cache. A region that began during a capture would restore the
// capture's setting, which is off.
struct InCall {
  InCall() { ++calls_in_progress; }
  ~InCall() {
    --calls_in_progress;
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
    if (race_.runs_eagerly()) return run_in_race(args, nargsf, kwnames);
    const auto began = race_.start();
    const Packed packed = pack(args, nargsf, kwnames);
    const TorchState state = TorchState::now();
    WriteTurn turn_to_write(turns_);
    Found found = find_in_turn(variants_, hints_, state, packed.args.get(), packed.kwargs.get(), turn_to_write);
    worth_.served += found.variant != nullptr;
    bridge::CaptureTurn turn;
    if (found.variant == nullptr && captures_in_vain())
      return natively(nullptr, {}, packed.args.get(), packed.kwargs.get());
    if (found.variant == nullptr && hold_stand_ins(packed.args.get(), packed.kwargs.get()))
      return call_eager(args, nargsf, kwnames);
    if (found.variant == nullptr)
      if (const uint64_t sizes = eager_sizes(variants_, state, packed.args.get(), packed.kwargs.get()))
        return run_loop(sizes, nullptr, {}, packed.args.get(), packed.kwargs.get());
    if (found.variant == nullptr && options_.evaluate && cresset_eval_is_watched()) {
      note_watched(name());
      return natively(nullptr, {}, packed.args.get(), packed.kwargs.get());
    }
    if (found.variant == nullptr && !options_.fullgraph && packs_saved_tensors()) {
      note_packing();
      return natively(nullptr, {}, packed.args.get(), packed.kwargs.get());
    }
    if (!find_or_take(variants_, hints_, state, packed.args.get(), packed.kwargs.get(), turn_to_write, turn, found)) {
      CRESSET_LOG(Recompiles, name() + ": one call runs eagerly: another thread is capturing");
      return natively(nullptr, {}, packed.args.get(), packed.kwargs.get());
    }
    if (found.variant == nullptr) return call_first(state, packed.args.get(), packed.kwargs.get(), turn);
    turn.give();
    if (!found.variant->eager_reason.empty()) {
      if (options_.fullgraph) return refuse_break(*found.variant);
      if (found.variant->wants_gradients) warn_eager(warned_gradients_, found.variant->eager_reason.text());
      return call_eager(args, nargsf, kwnames);
    }
    size_t pieces = 1;
    const int64_t stretches = live_totals().native_stretches;
    PyObject* const result =
        run_pieces(std::move(found), turn_to_write, packed.args.get(), packed.kwargs.get(), pieces);
    race_.ran(pieces, live_totals().native_stretches != stretches, began);
    return result;
  } catch (const PythonError&) {
    return nullptr;
  }
}

size_t CompiledFunction::how_much_is_known() const { return feedback_.size() + varying_.size() + inference_apart_; }

// Records whether the capture produced a usable entry, or feedback for a different capture.
void CompiledFunction::note_worth(const Variant& variant, size_t known_before) {
  worth_.captured((variant.eager_reason.empty() && !variant.raised) || how_much_is_known() != known_before);
  const bool is_useful = variant.eager_reason.empty() && !variant.raised;
  if (is_useful || options_.fullgraph || !worth_.is_in_vain() || std::exchange(warned_vain_, true)) return;
  const SetAside raised;
  warn_in_vain(name(), variant.eager_reason);
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
  CRESSET_LOG(Recompiles, name() + ": one call runs eagerly: nothing came of the captures before");
  if (warned_vain_) return true;
  if (std::exchange(warned_worth_, true)) return true;
  const std::string worst = misses_.worst();
  note_reason(name(), {BreakKind::Limits, "too many variants served no other call. " + worst});
  PyErr_WarnFormat(
      PyExc_RuntimeWarning, 1,
      "cresset: %s was compiled anew for calls that no later one was like; calls that no variant serves run "
      "eagerly from now on, until others are served. %s",
      name().c_str(), worst.c_str());
  PyErr_Clear();
  return true;
}

PyObject* CompiledFunction::run_in_race(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto began = race_.start();
  ++live_totals().eager_calls;
  PyRef result = PyRef::steal(PyObject_Vectorcall(function_.get(), args, nargsf, kwnames));
  if (!race_.ran_eagerly(began) || !result) return result.release();
  const std::string times = fmt::format("{} pieces take {:.3g} ms a call, where eager takes {:.3g}", race_.pieces(),
                                        race_.compiled_ms(), race_.eager_ms());
  CRESSET_LOG(Recompiles, name() + ": calls run eagerly: " + times);
  if (std::exchange(warned_race_, true)) return result.release();
  note_reason(name(), {BreakKind::Limits, times});
  PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                   "cresset: %s: its %s: it runs eagerly, and is timed again later. cresset.explain tells where its "
                   "pieces end, and why.",
                   name().c_str(), times.c_str());
  PyErr_Clear();
  return result.release();
}

uint64_t CompiledFunction::eager_sizes(const Variants& among, const TorchState& state, PyObject* args,
                                       PyObject* kwargs) const {
  return options_.fullgraph ? 0 : loops_.eager_sizes(among, state, args, kwargs);
}

PyObject* CompiledFunction::run_loop(uint64_t sizes, const Point* point, PyRef frames, PyObject* args,
                                     PyObject* kwargs) {
  const auto began = SizeLoops::Clock::now();
  PyRef result = PyRef::steal(natively(point, std::move(frames), args, kwargs));
  if (!result || !loops_.ran_eagerly(sizes, SizeLoops::Clock::now() - began)) return result.release();
  const BreakReason reason(BreakKind::Limits, "a loop over sizes, of which each needs a program of its own");
  const std::string why = name() + ": " + reason.text();
  CRESSET_LOG(Recompiles, why + ": calls run eagerly until their sizes have come often enough");
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
                                       bridge::CaptureTurn& turn) {
  if (!variants_.empty()) {
    GuardFailure why;
    find(variants_, hints_, state, args, kwargs, &why);
    note_recompile(name() + ": " + why.text);
    misses_.note(why);
  }
  PyRef result;
  const auto began = SizeLoops::Clock::now();
  const std::shared_ptr<Variant> variant = capture(state, args, kwargs, turn, result);
  loops_.compiled(*variant, SizeLoops::Clock::now() - began);
  if (result && options_.fullgraph && !variant->eager_reason.empty()) return refuse_break(*variant);
  return result.release();
}

// A predicted size was wrong, detected before any write. The next call captures again and specializes the sizes of this
// operator.
void CompiledFunction::forget(Variants& among, const std::shared_ptr<Variant>& variant,
                              const bridge::PredictionError& error) {
  bridge::note_unpredictable(error.op());
  among.erase(variant);
  note_recompile(name() + ": " + error.what());
}

void CompiledFunction::clear_variants() {
  variants_.clear();
  rejected_.clear();
  points_.clear();
  varying_ = {};
  feedback_.clear();
  inference_apart_ = false;
  hints_.clear();
  misses_.clear();
  inner_modules_.clear();
  worth_ = {};
  warned_vain_ = warned_packing_ = false;
  race_ = {};
  loops_ = {};
}

int CompiledFunction::visit(visitproc visit, void* arg) const {
  Py_VISIT(function_.get());
  Py_VISIT(options_.guard_filter.get());
  const auto all = [&](const Variants& variants) {
    for (const std::shared_ptr<Variant>& v : variants) {
      if (v.use_count() > 1) continue;
      if (const int r = v->visit(visit, arg)) return r;
    }
    return 0;
  };
  if (const int r = all(variants_)) return r;
  if (const int r = varying_.visit(visit, arg)) return r;
  if (const int r = feedback_.visit(visit, arg)) return r;
  if (const int r = inner_modules_.visit(visit, arg)) return r;
  for (const std::shared_ptr<Point>& point : points_) {
    for (const Place::Frame& frame : point->place.frames) Py_VISIT(frame.code.get());
    if (const int r = all(point->successors)) return r;
    if (const int r = point->varying.visit(visit, arg)) return r;
  }
  return 0;
}

int Variant::visit(visitproc visit, void* arg) const {
  for (const PyRef& mode : modes) Py_VISIT(mode.get());
  if (const int r = frontend::visit(args, visit, arg)) return r;
  if (const int r = frontend::visit(kwargs, visit, arg)) return r;
  if (const int r = frontend::visit(result, visit, arg)) return r;
  if (const int r = frontend::visit(next.frames, visit, arg)) return r;
  for (const PyRef& constant : next.constants) Py_VISIT(constant.get());
  for (const Fate& fate : fates)
    if (const int r = frontend::visit(fate.recipe, visit, arg)) return r;
  for (const Recipe& operand : next.operands)
    if (const int r = frontend::visit(operand, visit, arg)) return r;
  if (const int r = modules.visit(visit, arg)) return r;
  if (const int r = facts.visit(visit, arg)) return r;
  for (const Effect& e : effects)
    if (const int r = frontend::visit(e, visit, arg)) return r;
  return 0;
}

}  // namespace cresset::frontend
