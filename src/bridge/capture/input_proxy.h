// Input proxies: a real tensor takes part in a capture under its own identity.
//
// Until release, the tensor's own TensorImpl answers for a proxy tensor: symbolic sizes, the trace key. Every holder in
// Python or C++ (a list, a weak reference, autograd's saved variables) sees the same tensor before, during and after
// the capture; its autograd state and version counter stay its own. The impl's vtable pointer is replaced by the vtable
// of a subclass without data members. Rejected alternative: swapping impls under the Python object needs sole ownership
// and leaves C++ holders with the old impl.
//
// A wrapper (a tensor with __torch_dispatch__ and without memory) is an input proxy only for its sizes: operators on it
// belong to the program. It is not kept alive.
//
// Other threads may use the tensor meanwhile: they see its real sizes and memory, and operators receive an alias.
#pragma once

#include <ATen/core/Tensor.h>

#include "bridge/capture/trace_tensor.h"

namespace cresset::bridge {

class InputProxy {
 public:
  // Whether this tensor can become an input proxy: a plain strided tensor which is not yet a proxy.
  static bool possible(const at::Tensor& real);

  static bool possible_wrapper(const at::Tensor& real);

  InputProxy(const at::Tensor& real, const at::Tensor& proxy);
  InputProxy(InputProxy&& other) noexcept = default;
  InputProxy& operator=(InputProxy&& other) noexcept = delete;
  ~InputProxy() { release(); }

  // Restores the tensor. Idempotent.
  void release();

  // An alias of the real tensor: same memory, sizes, version counter; no autograd state.
  const at::Tensor& alias() const { return alias_; }
  at::Tensor real() const { return at::Tensor(impl_); }  // not for wrappers
  // Valid even after a wrapper has died: the weak reference keeps it.
  TraceTensor* proxy() const { return proxy_; }

  // The proxy tensor behind `impl` in this thread's capture; nullptr when `impl` is no input proxy of it.
  static TraceTensor* proxy_of(const c10::TensorImpl* impl);
  // The real tensor behind an input proxy of any capture; undefined for other tensors.
  static at::Tensor alias_of(const at::Tensor& tensor);

 private:
  c10::intrusive_ptr<c10::TensorImpl> impl_;
  c10::weak_intrusive_ptr<c10::TensorImpl> wrapper_;  // for wrappers, instead of impl_
  TraceTensor* proxy_ = nullptr;
  at::Tensor alias_;
};

}  // namespace cresset::bridge
