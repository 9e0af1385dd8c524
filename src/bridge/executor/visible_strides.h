// Result strides exactly as in eager mode, also at sizes of 0 and 1.
//
// A graph's stride formulas hold for general sizes. A dimension of one element also has a stride, and ATen's choice of
// it follows no formula: a tensor which is dense in two orders counts as row-major, and arguments may have any stride
// there. Users see the stride, and it decides whether memory counts as channels last. A separate program for each such
// size would be wasteful, because the elements have the same addresses. Therefore the shape rules of the operators
// between arguments and results run again with the numbers of the call. This happens where a size is 0 or 1, or an
// argument's strides differ from the formulas. Answers are cached.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bridge/capture/captured.h"
#include "sym/size_program.h"

namespace cresset::bridge {

class VisibleStrides {
 public:
  using Answer = std::vector<std::vector<int64_t>>;  // by result; empty: the formula is right

  // Built from the captured graph, before passes change it. nullptr: the formulas of these results hold for all sizes.
  static std::unique_ptr<VisibleStrides> of(const Captured& captured, size_t real_inputs,
                                            const std::unordered_map<sym::VarId, uint32_t>& slots);
  ~VisibleStrides();

  // nullptr: the formulas hold. symbols: the values of all symbols which the results mention.
  std::shared_ptr<const Answer> find(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;

 private:
  struct Steps;  // the computations to repeat
  class Maker;
  explicit VisibleStrides(std::unique_ptr<Steps> steps);
  bool is_general(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;

  static constexpr size_t kKept = 8;
  std::unique_ptr<Steps> steps_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::vector<int64_t>, std::shared_ptr<const Answer>>> kept_;
  mutable size_t next_ = 0;
};

// The tensor with these strides: in place where only dimensions of at most one element differ, else a copy.
at::Tensor with_strides(at::Tensor tensor, c10::IntArrayRef strides);
// Whether the two stride lists address the same elements.
bool same_addresses(c10::IntArrayRef sizes, c10::IntArrayRef a, c10::IntArrayRef b);

}  // namespace cresset::bridge
