// Freezing: constants which a program assumes unchanged (driver::Options::freeze). This class keeps the values computed
// from them alone (passes/freeze.h) and the packed layouts of libraries. A write to a frozen constant shows in
// autograd's version counters; then everything is computed again.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/executor/executor.h"
#include "compile/compile.h"

namespace cresset::bridge {

class FrozenWeights {
 public:
  // Takes the computations on frozen constants out of the graph and adds their results to `constants`. The graph must
  // have no gradients. Returns nullptr if no constant can be frozen.
  static std::unique_ptr<FrozenWeights> freeze(graph::Graph& graph, std::vector<at::Tensor>& constants,
                                               const driver::Options& options);

  // Called before a call: recomputes outdated values. Thread safe. A weight written while another thread computes with
  // it gives a torn result, as in eager mode.
  void refresh();

  bool contains(uint32_t constant) const { return constant >= fixed_.size() || fixed_[constant]; }
  size_t value_count() const { return values_.size(); }
  driver::Stats stats() const;

  // A number which changes when packed layouts become outdated.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // The packed tensor of the key, made by `pack` at the first request.
  at::Tensor packed(const std::string& key, c10::function_ref<at::Tensor()> pack);

 private:
  struct Mark {
    const void* data;
    uint32_t version;
    bool operator==(const Mark&) const = default;
  };

  FrozenWeights(const std::vector<at::Tensor>& constants, std::vector<bool> fixed);
  static Mark mark_of(const at::Tensor& t);
  std::vector<Mark> marks() const;
  std::vector<at::Tensor> compute();

  const std::vector<at::Tensor> constants_;
  const std::vector<bool> fixed_;
  std::unique_ptr<Executor> program_;  // nullptr: there is nothing to compute
  std::vector<at::Tensor> values_;
  std::mutex mutex_;
  std::vector<Mark> marks_;  // of the fixed constants
  std::unordered_map<std::string, at::Tensor> packed_;
  std::atomic<uint64_t> generation_ = 1;
};

// The packed layout of a single weight, held by a prepared call.
class PackedWeight {
 public:
  // `ask` calls frozen.packed(); it is used when the held layout is outdated.
  const at::Tensor& get(const FrozenWeights& frozen, c10::function_ref<at::Tensor()> ask) {
    if (const uint64_t now = frozen.generation(); now != generation_) {
      packed_ = ask();
      generation_ = now;
    }
    return packed_;
  }

 private:
  at::Tensor packed_;
  uint64_t generation_ = 0;
};

}  // namespace cresset::bridge
