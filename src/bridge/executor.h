// Runs a compiled program on real tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace cresset::bridge {

class BoundContext;
class FrozenWeights;

// An operator returned other sizes than its shape rule said. Nothing was written to the call's inputs.
class PredictionError : public std::runtime_error {
 public:
  PredictionError(std::string op, const std::string& what) : std::runtime_error(what), op_(std::move(op)) {}
  const std::string& op() const { return op_; }

 private:
  std::string op_;
};

struct ExecutorStats {
  int64_t calls = 0;
  int64_t contexts_bound = 0;    // distinct symbol values met, counting again what was evicted
  int64_t restride_copies = 0;   // extern results copied because of their strides
  int64_t adopted_results = 0;   // extern results used where they were returned, instead of planned memory
  int64_t arena_bytes = 0;       // planned for intermediates by the last call
  int64_t peak_arena_bytes = 0;  // greatest such
};

// Safe from several threads at once: each call has a context of its own. Needs no GIL. Never touches Python.
class Executor {
 public:
  // frozen: which constants stay as they are, as far as anyone knows; nullptr: none. Outlives the executor.
  Executor(driver::Compiled compiled, std::vector<at::Tensor> constants, FrozenWeights* frozen = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `symbols`: values in Program::symbols order. Results are plain tensors. What an operator raises is passed on as it
  // is; inputs are then as they were, for writes to them come last.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> symbols);
  // The same, letting go of each input after the last step that reads it.
  std::vector<at::Tensor> run_releasing(std::vector<at::Tensor> inputs, c10::ArrayRef<int64_t> symbols);

  const runtime::Program& program() const { return compiled_.program; }
  const driver::Stats& compile_stats() const { return compiled_.stats; }
  const std::vector<at::Tensor>& constants() const { return constants_; }
  ExecutorStats stats() const;
  void drop_contexts();  // frees what idle contexts hold

 private:
  struct CheckedOut;
  std::unique_ptr<BoundContext> check_out(c10::ArrayRef<int64_t> symbols);
  void check_in(std::unique_ptr<BoundContext> context);

  const driver::Compiled compiled_;
  const std::vector<at::Tensor> constants_;
  FrozenWeights* const frozen_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<BoundContext>> idle_;  // most recently used last
  ExecutorStats stats_;
};

// Gives code generation the vector-math functions that libtorch exports. Idempotent.
void configure_codegen();

// Frees the memory kept for calls to come (arenas not in use).
void trim_memory();

}  // namespace cresset::bridge
