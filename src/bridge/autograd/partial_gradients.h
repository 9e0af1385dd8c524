// Backward programs for passes in which some results have no gradients (passes/absent_tangents.h).
//
// The set of these results is known only in the pass, which then makes and keeps the program. Two obstacles lead to no
// program, and zeros replace the missing gradients. First, lowering may ask questions about sizes, which cannot become
// guards so late. Second, the environment may have learned more than the cache entry's guards state: a segment after a
// graph break uses the same symbols and may restrict them further.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "bridge/autograd/gradients.h"
#include "compile/compile.h"
#include "sym/asked.h"

namespace cresset::bridge {

struct PartialProgram {
  Executable program;
  std::vector<bool> given, absent;  // inputs which the program takes; outputs which it lacks

  // As for the whole program, with missing tensors undefined.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, const std::vector<int64_t>& symbols) const;
};

class PartialPrograms {
 public:
  // whole: the backward program; its first inputs are the tangents. constants, slots: outlive this object.
  PartialPrograms(const graph::Graph& whole, size_t tangents, const std::vector<at::Tensor>& constants,
                  const std::unordered_map<sym::VarId, uint32_t>& slots, const driver::Options& options)
      : whole_(whole), tangents_(tangents), constants_(constants), slots_(slots), options_(options) {}

  // The cache entry's guards cover the present knowledge of the environment.
  void seal() { sealed_ = sym::asked(whole_.env()); }
  // nullptr: there is no program for these tangents. Thread safe.
  const PartialProgram* get(const std::vector<bool>& given);

 private:
  std::unique_ptr<PartialProgram> make(const std::vector<bool>& given);
  std::unique_ptr<driver::Deferred> lowered(std::unique_ptr<graph::Graph> program);

  // Limit on programs, for results which alternate between having and lacking gradients.
  static constexpr size_t kMost = 64;

  const graph::Graph whole_;
  const size_t tangents_;
  const std::vector<at::Tensor>& constants_;
  const std::unordered_map<sym::VarId, uint32_t>& slots_;
  const driver::Options options_;
  std::mutex mutex_;
  std::optional<sym::Asked> sealed_;
  std::map<std::vector<bool>, std::unique_ptr<PartialProgram>> made_;
};

}  // namespace cresset::bridge
