// Strides of results as eager gives them, at sizes of 0 and 1, too.
//
// A graph's formulas of strides are those of sizes in general. A dimension of one element has a stride, too, and ATen's
// choice of it follows no formula: a tensor that is dense in two orders counts as row-major, and arguments may have any
// stride there. Users see it, and it decides whether memory counts as channels last. A program for each such size would
// be compiled in vain, for elements lie where they lie. So the shape rules of the operators between arguments and
// results are asked again, with the numbers of the call, where one of its sizes is 0 or 1 or an argument's strides are
// not those of the formulas. Answers are kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bridge/captured.h"
#include "sym/size_program.h"

namespace cresset::bridge {

class VisibleStrides {
 public:
  using Answer = std::vector<std::vector<int64_t>>;  // by result; empty: as its formula says

  // nullptr: the formulas of these results are right for all sizes. Of the captured graph, before passes change it.
  static std::unique_ptr<VisibleStrides> of(const Captured& captured, size_t real_inputs,
                                            const std::unordered_map<sym::VarId, uint32_t>& slots);
  ~VisibleStrides();

  // nullptr: as the formulas say. symbols: all that the results mention are known.
  std::shared_ptr<const Answer> find(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;

 private:
  struct Steps;  // what is asked again
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
// Whether the two address the same elements.
bool same_addresses(c10::IntArrayRef sizes, c10::IntArrayRef a, c10::IntArrayRef b);

}  // namespace cresset::bridge
