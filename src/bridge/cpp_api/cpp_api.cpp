// include/cresset/compile.h: the cache entries of a C++ function, guarded and run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <unordered_set>

#include "base/log.h"
#include "base/options.h"
#include "bridge/aten/torch_modes.h"
#include "bridge/capture/capture_lock.h"
#include "bridge/capture/meta_shape_rule.h"
#include "bridge/dispatch/capture_kernel.h"
#include "bridge/guarded_program/entry_cache.h"
#include "bridge/guarded_program/guarded_program.h"
#include "cresset/compile.h"

namespace cresset {

namespace cpp_api {

using bridge::TorchModes;

// What decides, beside sizes, whether a call can be captured.
struct Kind {
  c10::ScalarType dtype;
  c10::Device device;
  c10::Layout layout;
  int64_t rank;
  bool requires_grad, defined;
  bool operator==(const Kind&) const = default;

  static Kind of(const at::Tensor& t) {
    if (!t.defined()) return {c10::kFloat, c10::kCPU, c10::kStrided, 0, false, false};
    return {t.scalar_type(), t.device(), t.layout(), t.dim(), t.requires_grad(), true};
  }
};

std::vector<Kind> kinds_of(const std::vector<at::Tensor>& inputs) {
  std::vector<Kind> kinds;
  std::transform(inputs.begin(), inputs.end(), std::back_inserter(kinds), Kind::of);
  return kinds;
}

// A call that was not captured is captured again after this many calls like it, and then after twice as many: its sizes
// or its data may have been the reason.
constexpr int64_t kFirstRest = 8, kLongestRest = int64_t{1} << 16;

struct CacheEntry {
  TorchModes modes;
  uint64_t user = 0;                                // of CompileSettings::state
  std::unique_ptr<bridge::GuardedProgram> program;  // null: calls of these kinds run eagerly
  std::vector<Kind> kinds;
  uint64_t used = 0;
  int64_t rest = kFirstRest, left = kFirstRest;  // eager calls between two captures, and until the next capture

  bool is_eager() const { return program == nullptr; }
  bool is_like(const CacheEntry& other) const {
    return modes == other.modes && user == other.user && kinds == other.kinds;
  }
};
using Pointer = std::shared_ptr<CacheEntry>;

bool wants_gradients(bool grad_mode, const std::vector<at::Tensor>& tensors) {
  return grad_mode &&
         std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& t) { return t.requires_grad(); });
}

}  // namespace cpp_api

using namespace cpp_api;

struct CompiledFunction::State {
  TensorFunction function;
  CompileSettings settings;
  std::shared_mutex mutex;  // of the two below
  bridge::EntryCache<CacheEntry> programs, eager;
  std::unordered_set<std::string> unpredictable;  // operators (meta_shape_rule.h)
  std::mutex stats_mutex;
  CompiledStats stats;

  Pointer find(const TorchModes& modes, uint64_t user, const std::vector<at::Tensor>& inputs,
               std::vector<int64_t>& symbols, GuardFailure* why);
  bool rests_now(const TorchModes& modes, uint64_t user, const std::vector<at::Tensor>& inputs);
  void keep(const Pointer& entry);
  void note(const bridge::GuardedProgram& program, int64_t operators);
  class KnownOperators;
  Pointer capture(const TorchModes& modes, uint64_t user, const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> run(const Pointer& entry, const std::vector<at::Tensor>& inputs, int64_t* symbols);
  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> call_eagerly(const std::vector<at::Tensor>& inputs, const std::string& why);  // this time
};

// The program that serves the call.
Pointer CompiledFunction::State::find(const TorchModes& modes, uint64_t user, const std::vector<at::Tensor>& inputs,
                                      std::vector<int64_t>& symbols, GuardFailure* why) {
  const auto serves = [&](const CacheEntry& entry) {
    if (entry.modes != modes || entry.user != user) {
      if (why != nullptr && why->text.empty())
        why->text = entry.modes != modes ? difference(entry.modes, modes) : "CompileSettings::state changed";
      return false;
    }
    symbols.resize(entry.program->symbol_count());
    return entry.program->matches(inputs, {}, symbols.data(), why != nullptr && why->text.empty() ? why : nullptr);
  };
  Pointer found;
  bool is_first = true;
  {
    const std::shared_lock lock(mutex);
    found = programs.peek(serves);
    is_first = found == nullptr || programs.is_first(found);
  }
  if (is_first) return found;
  const std::unique_lock lock(mutex);
  programs.use(found);
  return found;
}

// Whether calls like this one could not be captured, and are not to be captured again yet.
bool CompiledFunction::State::rests_now(const TorchModes& modes, uint64_t user, const std::vector<at::Tensor>& inputs) {
  CacheEntry call;
  call.modes = modes, call.user = user, call.kinds = kinds_of(inputs);
  const std::unique_lock lock(mutex);
  const Pointer known = eager.find([&](const CacheEntry& e) { return e.is_like(call); });
  if (known == nullptr) return false;
  if (settings.fullgraph || --known->left < 0) {
    known->left = known->rest = std::min(2 * known->rest, kLongestRest);
    return false;
  }
  return true;
}

void CompiledFunction::State::keep(const Pointer& entry) {
  const std::unique_lock lock(mutex);
  const int64_t limit = std::max<int64_t>(settings.entry_limit, 1);
  const auto one_group = [](const CacheEntry&) { return 0; };
  if (!entry->is_eager()) {
    programs.add(entry);
    if (programs.drop_least_used(*entry, limit, limit, one_group))
      CRESSET_LOG(Recompiles, "the least recently used of " + std::to_string(limit) + " cache entries is dropped");
    return;
  }
  if (eager.find([&](const CacheEntry& e) { return e.is_like(*entry); }) != nullptr) return;
  eager.add(entry);
  eager.drop_least_used(*entry, limit, limit, one_group);
}

void CompiledFunction::State::note(const bridge::GuardedProgram& program, int64_t operators) {
  const std::lock_guard lock(stats_mutex);
  ++stats.graphs;
  stats.operators_captured += operators;
  stats.kernels += program.stats().kernels;
  stats.extern_calls += program.stats().extern_calls;
}

// A call that no program may serve, whatever its arguments; nullptr: any other call.
static const char* why_not_now(const TorchModes& modes) {
  if (bridge::python_modes_are_on()) return "modes of Python's, or hooks of saved tensors, look at operators";
  if (modes.transforms != 0) return "a transform of torch.func, or a level of forward-mode AD, is open";
  return nullptr;
}

// Of the function, for the capture that this thread begins.
class CompiledFunction::State::KnownOperators {
 public:
  explicit KnownOperators(State& of) {
    const std::shared_lock lock(of.mutex);
    operators_ = of.unpredictable;
    around_ = bridge::exchange_unpredictable(&operators_);
  }
  ~KnownOperators() { bridge::exchange_unpredictable(around_); }
  KnownOperators(const KnownOperators&) = delete;

 private:
  std::unordered_set<std::string> operators_, *around_ = nullptr;
};

Pointer CompiledFunction::State::capture(const TorchModes& modes, uint64_t user,
                                         const std::vector<at::Tensor>& inputs) {
  auto entry = std::make_shared<CacheEntry>();
  entry->modes = modes, entry->user = user, entry->kinds = kinds_of(inputs);
  BreakReason reason;
  bool raised = false;
  bridge::install_capture_kernels();
  const KnownOperators known(*this);
  auto session = std::make_shared<bridge::Capture>(settings.dynamic);
  try {
    std::vector<at::Tensor> proxies, results;
    for (size_t i = 0; i < inputs.size(); ++i)
      proxies.push_back(session->add_input(inputs[i], "x" + std::to_string(i), {}));
    {
      bridge::Capture::Scope scope(*session);
      results = function(proxies);
    }
    if (!session->closed()) {
      bridge::Captured captured = session->finish(results);
      if (wants_gradients(modes.grad_mode, inputs) || wants_gradients(modes.grad_mode, captured.constants)) {
        reason = {BreakKind::RequiredGradients,
                  "gradients are wanted: call it under torch::NoGradGuard to compile for inference"};
      } else {
        const int64_t operators = captured.operators;
        driver::Options options;
        options.eager_rounding = settings.eager_rounding;
        options.freeze = settings.freeze;
        entry->program = std::make_unique<bridge::GuardedProgram>(std::move(captured), inputs, options);
        note(*entry->program, operators);
      }
    }
  } catch (const InternalError&) {
    throw;
  } catch (const bridge::CaptureAbort& e) {
    reason = e.reason();
  } catch (const std::exception& e) {
    // Whatever is wrong, running the function itself shows it as it is.
    raised = !session->closed();
    reason = {BreakKind::Raised, e.what()};
  }
  if (!session->why_closed().empty()) reason = session->why_closed();
  if (entry->is_eager()) {
    if (settings.fullgraph && !raised)
      throw std::runtime_error("cresset: fullgraph was asked for, but the function cannot be captured whole: " +
                               reason.with_remedy());
    CRESSET_LOG(Recompiles, "runs eagerly: " + reason.text());
    const std::lock_guard lock(stats_mutex);
    stats.eager_reasons.push_back(reason.with_remedy());
  }
  if (!raised) keep(entry);
  return entry;
}

std::vector<at::Tensor> CompiledFunction::State::call_eagerly(const std::vector<at::Tensor>& inputs,
                                                              const std::string& why) {
  CRESSET_LOG(Recompiles, "one call runs eagerly: " + why);
  {
    std::lock_guard lock(stats_mutex);
    ++stats.calls;
    ++stats.eager_calls;
  }
  return function(inputs);
}

std::vector<at::Tensor> CompiledFunction::State::call(const std::vector<at::Tensor>& inputs) {
  if (bridge::Capture::current() != nullptr) return function(inputs);
  const TorchModes modes = TorchModes::now();
  if (const char* const why = why_not_now(modes)) return call_eagerly(inputs, why);
  const uint64_t user = settings.state ? settings.state() : 0;
  std::vector<int64_t> symbols;
  Pointer entry = find(modes, user, inputs, symbols, nullptr);
  if (entry == nullptr && rests_now(modes, user, inputs))
    return call_eagerly(inputs, "calls like it were not captured");
  bridge::CaptureLock capture_lock;
  if (entry == nullptr && !capture_lock.take()) {
    if (!capture_lock.wait()) return call_eagerly(inputs, "another thread is capturing");
    entry = find(modes, user, inputs, symbols, nullptr);  // made meanwhile?
  }
  if (entry == nullptr) {
    GuardFailure why;
    find(modes, user, inputs, symbols, &why);
    if (!why.text.empty()) {
      const std::lock_guard lock(stats_mutex);
      stats.recompiles.push_back(why.text);
    }
    entry = capture(modes, user, inputs);
    if (!entry->is_eager()) {
      symbols.resize(entry->program->symbol_count());
      CRESSET_CHECK(entry->program->matches(inputs, {}, symbols.data(), &why),
                    "a new cache entry rejects the call that it was made for: " + why.text);
    }
  }
  capture_lock.give();
  {
    const std::lock_guard lock(stats_mutex);
    ++stats.calls;
    if (entry->is_eager()) ++stats.eager_calls;
  }
  return entry->is_eager() ? function(inputs) : run(entry, inputs, symbols.data());
}

std::vector<at::Tensor> CompiledFunction::State::run(const Pointer& entry, const std::vector<at::Tensor>& inputs,
                                                     int64_t* symbols) {
  try {
    return entry->program->run(inputs, symbols);
  } catch (const bridge::AssumptionFailed& e) {
    CRESSET_LOG(Recompiles, std::string("one call runs eagerly: ") + e.what_without_backtrace());
  } catch (const bridge::PredictionError& e) {  // before anything was written: capture again with pinned sizes
    const std::unique_lock lock(mutex);
    unpredictable.emplace(e.op());
    programs.erase(entry);
  }
  return function(inputs);
}

CompiledFunction::CompiledFunction(TensorFunction function, CompileSettings settings)
    : state_(std::make_shared<State>()) {
  state_->function = std::move(function);
  state_->settings = std::move(settings);
}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(const CompiledFunction&) = default;
CompiledFunction& CompiledFunction::operator=(const CompiledFunction&) = default;

std::vector<at::Tensor> CompiledFunction::operator()(const std::vector<at::Tensor>& inputs) const {
  return state_->call(inputs);
}

CompiledStats CompiledFunction::stats() const {
  std::lock_guard lock(state_->stats_mutex);
  return state_->stats;
}

CompiledFunction compile_function(TensorFunction function, CompileSettings settings) {
  if (const std::vector<std::string> wrong = wrong_options(); !wrong.empty())
    throw std::invalid_argument(
        fmt::format("cresset: environment variables have wrong values:\n  {}", fmt::join(wrong, "\n  ")));
  [[maybe_unused]] static const bool once = [] {
    for (const std::string& line : deprecated_options()) log::write(log::Area::Recompiles, line);
    return true;
  }();
  bridge::configure_codegen();
  return CompiledFunction(std::move(function), std::move(settings));
}

}  // namespace cresset
