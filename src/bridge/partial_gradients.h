// Backward programs for passes in which some results have no gradients (passes/absent_tangents.h).
//
// Which results those are is known in the pass: the program is made then, and kept. Lowering may ask questions of sizes
// that nobody checks any more by that time; where it does, there is no such program, and zeros stand for what is
// missing. Nor is there one where the environment has learned more than the variant's guards say by then: what follows
// a break, captured with the same symbols, may hold them to more.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "bridge/gradients.h"
#include "compile/compile.h"
#include "sym/asked.h"

namespace cresset::bridge {

// Of the first `count` tensors. Empty when all are.
std::vector<bool> which_are_given(const std::vector<at::Tensor>& tensors, size_t count);

struct PartialProgram {
  Executable program;
  std::vector<bool> given, absent;  // inputs that it takes; outputs that it does not give

  // As of the whole program, with what is missing undefined.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, const std::vector<int64_t>& symbols) const;
};

class PartialPrograms {
 public:
  // whole: the backward program; its first inputs are the tangents. constants, slots: outlive this.
  PartialPrograms(const graph::Graph& whole, size_t tangents, const std::vector<at::Tensor>& constants,
                  const std::unordered_map<sym::VarId, uint32_t>& slots, const driver::Options& options)
      : whole_(whole), tangents_(tangents), constants_(constants), slots_(slots), options_(options) {}

  // The variant's guards are what the environment knows now.
  void seal() { sealed_ = sym::asked(whole_.env()); }
  // nullptr: there is none. By any thread.
  const PartialProgram* get(const std::vector<bool>& given);

 private:
  std::unique_ptr<PartialProgram> make(const std::vector<bool>& given);
  std::unique_ptr<driver::Deferred> lowered(std::unique_ptr<graph::Graph> program);

  // Results that take turns at being without gradients.
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
