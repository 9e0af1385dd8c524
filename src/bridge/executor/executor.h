// Runs a compiled program on real tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace cresset::bridge {

class BoundContext;
class FrozenWeights;

// An operator returned sizes which its shape rule did not predict. Nothing was written to the call's inputs.
class PredictionError : public std::runtime_error {
 public:
  PredictionError(std::string op, const std::string& what) : std::runtime_error(what), op_(std::move(op)) {}
  const std::string& op() const { return op_; }

 private:
  std::string op_;
};

struct ExecutorStats {
  int64_t calls = 0;
  int64_t contexts_bound = 0;    // distinct symbol values, counted again after an eviction
  int64_t restride_copies = 0;   // extern results copied because of their strides
  int64_t adopted_results = 0;   // extern results kept in their own memory instead of planned memory
  int64_t arena_bytes = 0;       // planned for intermediates by the last call
  int64_t peak_arena_bytes = 0;  // maximum over all calls
};

// Thread safe: each call has a context of its own. Needs no GIL and never touches Python.
class Executor {
 public:
  // `frozen` tells which constants count as unchanging; nullptr: none. It outlives the executor.
  Executor(driver::Compiled compiled, std::vector<at::Tensor> constants, FrozenWeights* frozen = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `symbols` are values in the order of Program::symbols. Results are plain tensors. An operator's exception passes
  // through unchanged; the inputs then are unmodified, because writes to them come last. On a GPU also raises the error
  // of an index that an earlier call reported (index_errors.h).
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> symbols);
  // As run(), but releases each input after the last step which reads it.
  std::vector<at::Tensor> run_releasing(std::vector<at::Tensor> inputs, c10::ArrayRef<int64_t> symbols);

  const runtime::Program& program() const { return compiled_.program; }
  const driver::Stats& compile_stats() const { return compiled_.stats; }
  const std::vector<at::Tensor>& constants() const { return constants_; }
  ExecutorStats stats() const;
  // What is done about CUDA graphs in the last call's sizes; empty: nothing is wanted, or a call runs.
  std::string graph_state() const;
  void drop_contexts();  // frees the memory of idle contexts

 private:
  struct CheckedOut;
  template <class Call>
  std::vector<at::Tensor> watched(BoundContext& context, Call&& call);
  std::unique_ptr<BoundContext> check_out(c10::ArrayRef<int64_t> symbols);
  void check_in(std::unique_ptr<BoundContext> context);
  void drop_old_graphs();

  const driver::Compiled compiled_;
  const std::vector<at::Tensor> constants_;
  FrozenWeights* const frozen_;
  const bool on_gpu_;
  std::atomic<bool> waited_ = false;  // for the reports of the first call
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<BoundContext>> idle_;  // most recently used last
  ExecutorStats stats_;
};

// Tells code generation the vector-math functions which libtorch exports. Idempotent.
void configure_codegen();

// Frees memory kept for later calls (unused arenas).
void trim_memory();

}  // namespace cresset::bridge
