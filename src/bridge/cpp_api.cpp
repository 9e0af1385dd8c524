// include/cresset/compile.h: cache entries of a C++ function, guarded and run.
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>

#include "base/log.h"
#include "base/options.h"
#include "bridge/capture_kernel.h"
#include "bridge/capture_turn.h"
#include "bridge/entry.h"
#include "bridge/generic_rule.h"
#include "cresset/compile.h"

namespace cresset {

namespace {

struct Surroundings {
  uint64_t user = 0;
  bool grad = false, inference = false, autocast = false;
  c10::ScalarType autocast_dtype = c10::kFloat, default_dtype = c10::kFloat;
  bool operator==(const Surroundings&) const = default;
};

struct Variant {
  Surroundings surroundings;
  std::unique_ptr<bridge::Entry> entry;  // null: runs eagerly
  size_t arguments = 0;
};

}  // namespace

struct CompiledFunction::State {
  TensorFunction function;
  CompileSettings settings;
  std::shared_mutex mutex;  // of variants
  std::vector<std::shared_ptr<Variant>> variants;
  std::unordered_set<std::string> unpredictable;  // operators (generic_rule.h), under the same mutex
  std::mutex stats_mutex;
  CompiledStats stats;

  Surroundings surroundings() const {
    Surroundings s;
    s.user = settings.state ? settings.state() : 0;
    s.grad = c10::GradMode::is_enabled();
    s.inference = c10::InferenceMode::is_enabled();
    s.autocast = at::autocast::is_autocast_enabled(at::kCPU);
    if (s.autocast) s.autocast_dtype = at::autocast::get_autocast_dtype(at::kCPU);
    s.default_dtype = c10::get_default_dtype_as_scalartype();
    return s;
  }

  std::shared_ptr<Variant> find(const Surroundings& now, const std::vector<at::Tensor>& inputs,
                                std::vector<int64_t>& symbols, std::string* why) {
    std::shared_lock lock(mutex);
    for (const std::shared_ptr<Variant>& v : variants) {
      if (!(v->surroundings == now)) continue;
      if (v->entry == nullptr && v->arguments == inputs.size()) return v;
      if (v->entry == nullptr) continue;
      symbols.resize(v->entry->symbol_count());
      if (v->entry->matches(inputs, {}, symbols.data(), why)) return v;
    }
    return nullptr;
  }

  class KnownOperators;
  std::shared_ptr<Variant> capture(const Surroundings& now, const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs);
  // For this call only.
  std::vector<at::Tensor> call_eagerly(const std::vector<at::Tensor>& inputs, const std::string& why);
};

namespace {

bool wants_gradients(bool grad_mode, const std::vector<at::Tensor>& tensors) {
  return grad_mode &&
         std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& t) { return t.requires_grad(); });
}

}  // namespace

// RAII: installs the function's unpredictable operators for the capture which this thread begins.
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

std::shared_ptr<Variant> CompiledFunction::State::capture(const Surroundings& now,
                                                          const std::vector<at::Tensor>& inputs) {
  auto variant = std::make_shared<Variant>();
  variant->surroundings = now;
  variant->arguments = inputs.size();
  std::string reason;
  bool raised = false;
  bridge::install_capture_kernels();
  const KnownOperators known(*this);
  auto session = std::make_shared<bridge::Capture>(settings.dynamic);
  try {
    std::vector<at::Tensor> stand_ins, results;
    for (size_t i = 0; i < inputs.size(); ++i)
      stand_ins.push_back(session->add_input(inputs[i], "x" + std::to_string(i), {}));
    {
      bridge::Capture::Scope scope(*session);
      results = function(stand_ins);
    }
    if (!session->closed()) {
      bridge::Captured captured = session->finish(results);
      if (wants_gradients(now.grad, inputs) || wants_gradients(now.grad, captured.constants)) {
        reason = "gradients are wanted: call it under torch::NoGradGuard to compile for inference";
      } else {
        const int64_t operators = captured.operators;
        driver::Options options;
        options.eager_rounding = settings.eager_rounding;
        options.freeze = settings.freeze;
        variant->entry = std::make_unique<bridge::Entry>(std::move(captured), inputs, options);
        std::lock_guard lock(stats_mutex);
        ++stats.graphs;
        stats.operators_captured += operators;
        stats.kernels += variant->entry->stats().kernels;
        stats.extern_calls += variant->entry->stats().extern_calls;
      }
    }
  } catch (const InternalError&) {
    throw;
  } catch (const bridge::CaptureAbort& e) {
    reason = e.what_without_backtrace();
  } catch (const std::exception& e) {
    // Running the function itself shows any error in its original form.
    raised = !session->closed();
    reason = e.what();
  }
  if (!session->why_closed().empty()) reason = session->why_closed();
  if (variant->entry == nullptr) {
    if (settings.fullgraph && !raised)
      throw std::runtime_error("cresset: fullgraph was asked for, but the function cannot be captured whole: " +
                               reason);
    CRESSET_LOG(Recompiles, "runs eagerly: " + reason);
    std::lock_guard lock(stats_mutex);
    stats.eager_reasons.push_back(reason);
  }
  if (!raised) {
    std::unique_lock lock(mutex);
    variants.insert(variants.begin(), variant);
  }
  return variant;
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
  const Surroundings now = surroundings();
  std::vector<int64_t> symbols;
  std::string why;
  std::shared_ptr<Variant> variant = find(now, inputs, symbols, nullptr);
  bridge::CaptureTurn turn;
  if (variant == nullptr && !turn.take()) {
    if (!turn.wait()) return call_eagerly(inputs, "another thread is capturing");
    variant = find(now, inputs, symbols, nullptr);  // made meanwhile?
  }
  if (variant == nullptr) {
    find(now, inputs, symbols, &why);
    if (!why.empty()) {
      std::lock_guard lock(stats_mutex);
      stats.recompiles.push_back(why);
    }
    variant = capture(now, inputs);
    if (variant->entry != nullptr) {
      symbols.resize(variant->entry->symbol_count());
      CRESSET_CHECK(variant->entry->matches(inputs, {}, symbols.data(), &why),
                    "a new variant rejects the call it was made for: " + why);
    }
  }
  turn.give();
  {
    std::lock_guard lock(stats_mutex);
    ++stats.calls;
    if (variant->entry == nullptr) ++stats.eager_calls;
  }
  if (variant->entry == nullptr) return function(inputs);
  try {
    return variant->entry->run(inputs, symbols.data());
  } catch (const bridge::AssumptionFailed&) {
    return function(inputs);
  } catch (const bridge::PredictionError& e) {  // before anything was written: capture again with specialized sizes
    const std::unique_lock lock(mutex);
    unpredictable.emplace(e.op());
    std::erase(variants, variant);
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
  bridge::configure_codegen();
  return CompiledFunction(std::move(function), std::move(settings));
}

}  // namespace cresset
