// Whether a program's constants are as they were: what the guards on them say (entry.h), for one look at each call.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace cresset::bridge {

class ConstantMarks {
 public:
  // The caller keeps them. with_grad: whether it counts that gradients are wanted of them, as it does where they are
  // recorded.
  void set(const std::vector<at::Tensor>& constants, bool with_grad);
  // True only if nothing has changed. Hundreds of parameters, of a few kinds: kind by kind, in the order of addresses.
  bool hold() const;

 private:
  struct Kind {
    int64_t keys, mark;
    uint32_t rank, first;  // in numbers_
    uint32_t begin, end;   // in tensors_
  };
  template <size_t kRank>  // 0: any
  bool holds(const Kind& kind, const c10::TensorImpl& t) const;
  template <size_t kRank>
  bool hold(const Kind& kind) const;

  bool with_grad_ = false;
  std::vector<Kind> kinds_;
  std::vector<const c10::TensorImpl*> tensors_;
  std::vector<int64_t> numbers_;  // sizes, strides
};

}  // namespace cresset::bridge
