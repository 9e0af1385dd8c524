// A fast check that a program's constants are unchanged: the guards on them (guarded_program.h) in a compact form, for
// every call.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace cresset::bridge {

class ConstantMarks {
 public:
  // The caller keeps the constants alive. with_grad: requires_grad counts, because the program records gradients.
  void set(const std::vector<at::Tensor>& constants, bool with_grad);
  // Returns true only if nothing has changed. A program has hundreds of parameters of a few kinds: they are checked by
  // kind, in address order.
  bool hold() const;

 private:
  struct Kind {
    int64_t keys, mark;
    uint32_t rank, first;  // index in numbers_
    uint32_t begin, end;   // range in tensors_
  };
  template <size_t kRank>  // 0: any rank
  bool holds(const Kind& kind, const c10::TensorImpl& t) const;
  template <size_t kRank>
  bool hold(const Kind& kind) const;

  bool with_grad_ = false;
  std::vector<Kind> kinds_;
  std::vector<const c10::TensorImpl*> tensors_;
  std::vector<int64_t> numbers_;  // sizes, strides
};

}  // namespace cresset::bridge
