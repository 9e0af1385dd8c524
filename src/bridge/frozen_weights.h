// Constants that a program takes to stay as they are (driver::Options::freeze): what is computed from them alone
// (passes/freeze.h), and how libraries want them laid out. Both are made again once one of them was written to, which
// autograd's version counters tell.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/executor.h"
#include "compile/compile.h"

namespace cresset::bridge {

class FrozenWeights {
 public:
  // Takes what is computed from such constants out of the graph, and adds the results to `constants`. nullptr: no
  // constant can be taken to stay as it is. The graph must have no gradients.
  static std::unique_ptr<FrozenWeights> freeze(graph::Graph& graph, std::vector<at::Tensor>& constants,
                                               const driver::Options& options);

  // Before a call: computes again what is no longer so. Safe from several threads; weights that are written while
  // another thread computes with them are as torn as they are in eager.
  void refresh();

  bool contains(uint32_t constant) const { return constant >= fixed_.size() || fixed_[constant]; }
  size_t value_count() const { return values_.size(); }
  driver::Stats stats() const;

  // A number that changes when what is packed must be packed again.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // One for each key: made by whoever asks first.
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
  std::vector<Mark> marks_;  // of those that are fixed
  std::unordered_map<std::string, at::Tensor> packed_;
  std::atomic<uint64_t> generation_ = 1;
};

// What a prepared call holds of one weight.
class PackedWeight {
 public:
  // `ask` asks frozen.packed(), where what is held is not what it would give.
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
