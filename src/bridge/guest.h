// A real tensor that takes part in a capture under its own identity.
//
// Until released, the tensor's own TensorImpl answers for a stand-in: symbolic sizes, the trace key. Whoever holds it,
// in Python or C++ (a list, a weak reference, autograd's saved variables), sees one and the same tensor, before, during
// and after; its autograd state and version counter are its own throughout. What makes this possible: the impl's class
// pointer is exchanged for that of a class without members of its own. Swapping impls under the Python object instead
// was rejected: it needs sole ownership, and leaves C++ holders with the other one.
//
// A wrapper (a tensor with __torch_dispatch__ and without memory) is a guest for its sizes alone: operators on it are
// the program's. It is not kept alive.
//
// Other threads may use the tensor meanwhile: they see its real sizes and memory, and operators are given an alias.
#pragma once

#include <ATen/core/Tensor.h>

#include "bridge/trace_tensor.h"

namespace cresset::bridge {

class Guest {
 public:
  // Whether this tensor can be made a guest: a plain strided one, not a guest already.
  static bool possible(const at::Tensor& real);

  static bool possible_wrapper(const at::Tensor& real);

  Guest(const at::Tensor& real, const at::Tensor& stand_in);
  Guest(Guest&& other) noexcept = default;
  Guest& operator=(Guest&& other) noexcept = delete;
  ~Guest() { release(); }

  // Gives the tensor back what it was. Idempotent.
  void release();

  // An alias of the real tensor: same memory, sizes, version counter; no autograd state.
  const at::Tensor& alias() const { return alias_; }
  at::Tensor real() const { return at::Tensor(impl_); }  // of no wrapper
  TraceTensor* stand_in() const { return stand_in_; }    // of a wrapper that is gone, too: the weak reference keeps it

  // What stands in for `impl` in the capture of this thread; nullptr when it is no guest of it.
  static TraceTensor* stand_in_of(const c10::TensorImpl* impl);
  // The real tensor behind a guest of whichever capture; undefined when it is none.
  static at::Tensor alias_of(const at::Tensor& tensor);

 private:
  c10::intrusive_ptr<c10::TensorImpl> impl_;
  c10::weak_intrusive_ptr<c10::TensorImpl> wrapper_;  // instead
  TraceTensor* stand_in_ = nullptr;
  at::Tensor alias_;
};

}  // namespace cresset::bridge
