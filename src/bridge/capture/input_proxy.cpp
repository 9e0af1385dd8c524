#include "bridge/capture/input_proxy.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <typeinfo>

#include "base/check.h"
#include "bridge/capture/capture.h"

namespace cresset::bridge {
namespace {

// The state to which an input proxy is restored.
struct InputProxyState final : c10::BackendMeta {
  at::Tensor proxy, alias;
  Capture* capture = nullptr;
  bool is_wrapper = false;
  void* class_pointer = nullptr;
  c10::DispatchKeySet keys;
  c10::intrusive_ptr<c10::BackendMeta> meta;
};

// Number of threads which read a proxy's state at this moment. A thread which removes the state waits for them before
// it frees the state. A reader registers first and then tests whether the state is present; sections are a few
// instructions long.
std::atomic<int> readers = 0;
struct Reading {
  Reading() { readers.fetch_add(1); }
  ~Reading() { readers.fetch_sub(1); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
};

// Without data members, since it is laid over impls of other classes.
class InputProxyImpl final : public c10::TensorImpl {
 public:
  using c10::TensorImpl::TensorImpl;

  // nullptr: another thread has released the tensor between the call and this question. Requires a Reading.
  InputProxyState* state() const {
    c10::BackendMeta* meta = extra_meta_ != nullptr ? extra_meta_->backend_meta_.get() : nullptr;
    return meta != nullptr && typeid(*meta) == typeid(InputProxyState) ? static_cast<InputProxyState*>(meta) : nullptr;
  }
  // This thread sees the proxy tensor; other threads see the tensor itself.
  const TraceTensor* proxy() const {
    const Reading reading;
    const InputProxyState* s = state();
    const bool ours = s != nullptr && Capture::current() == s->capture;
    return ours ? static_cast<TraceTensor*>(s->proxy.unsafeGetTensorImpl()) : nullptr;
  }
  bool is_wrapper() const {
    const Reading reading;
    const InputProxyState* s = state();
    return s != nullptr && s->is_wrapper;
  }
  at::Tensor alias() const {
    const Reading reading;
    const InputProxyState* s = state();
    return s != nullptr ? s->alias : at::Tensor();
  }

  c10::IntArrayRef sizes_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->sizes_custom() : sizes_default();
  }
  c10::IntArrayRef strides_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->strides_custom() : strides_default();
  }
  int64_t numel_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->numel_custom() : numel_default();
  }
  int64_t storage_offset_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->storage_offset_custom() : storage_offset_default();
  }
  int64_t dim_custom() const override { return static_cast<int64_t>(sizes_default().size()); }
  int64_t size_custom(int64_t d) const override {
    return sizes_custom()[static_cast<size_t>(c10::maybe_wrap_dim(d, dim_custom(), /*wrap_scalar=*/false))];
  }
  c10::SymIntArrayRef sym_sizes_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->sym_sizes_custom() : c10::fromIntArrayRefKnownNonNegative(sizes_default());
  }
  c10::SymIntArrayRef sym_strides_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->sym_strides_custom() : c10::fromIntArrayRefKnownNonNegative(strides_default());
  }
  c10::SymInt sym_numel_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->sym_numel_custom() : c10::SymInt(numel_default());
  }
  c10::SymInt sym_storage_offset_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->sym_storage_offset_custom() : c10::SymInt(storage_offset_default());
  }
  c10::SymInt sym_size_custom(int64_t d) const override {
    return sym_sizes_custom()[static_cast<size_t>(c10::maybe_wrap_dim(d, dim_custom(), /*wrap_scalar=*/false))];
  }
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->sym_is_contiguous_custom(format) : c10::SymBool(is_contiguous_default(format));
  }
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->sym_is_non_overlapping_and_dense_custom()
                        : c10::SymBool(is_non_overlapping_and_dense_default());
  }
  bool is_strides_like_custom(at::MemoryFormat format) const override {
    const TraceTensor* t = proxy();
    return t != nullptr ? t->is_strides_like_custom(format) : is_strides_like_default(format);
  }
  bool has_storage() const override {
    ask_memory();
    return c10::TensorImpl::has_storage();
  }
  const c10::Storage& storage() const override {
    ask_memory();
    return storage_;
  }
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                              bool allow_change) const override {
    const TraceTensor* t = is_wrapper() ? nullptr : proxy();
    if (t != nullptr) return t->shallow_copy_and_detach(version, allow_change);
    const at::Tensor real = alias();
    if (!real.defined()) return c10::TensorImpl::shallow_copy_and_detach(version, allow_change);
    return real.unsafeGetTensorImpl()->shallow_copy_and_detach(version, allow_change);
  }
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                              bool allow_change) const override {
    return shallow_copy_and_detach(static_cast<const c10::VariableVersion&>(version), allow_change);
  }
  // guest.data = other: the segment ends, then the tensor is ordinary again.
  void shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& other) override {
    ask_memory();
    c10::TensorImpl::shallow_copy_from(other);
  }

  // The order of steps matters to other threads which read the tensor meanwhile.
  void enter(c10::intrusive_ptr<InputProxyState> state, void* input_proxy_class);
  void leave();

 private:
  // A request for the elements: deferred operators run first, and the tensor is no input proxy afterwards.
  void ask_memory() const {
    if (proxy() != nullptr && !is_wrapper())
      Capture::current()->flush({BreakKind::MemoryAccess, "the memory of a tensor is asked for"});
  }
};
static_assert(sizeof(InputProxyImpl) == sizeof(c10::TensorImpl));
void* class_pointer(const c10::TensorImpl* impl) {
  void* pointer;
  std::memcpy(&pointer, static_cast<const void*>(impl), sizeof pointer);
  return pointer;
}
void set_class_pointer(c10::TensorImpl* impl, void* pointer) {
  std::memcpy(static_cast<void*>(impl), &pointer, sizeof pointer);
}

void InputProxyImpl::enter(c10::intrusive_ptr<InputProxyState> state, void* input_proxy_class) {
  state->keys = key_set_;
  state->meta = get_backend_meta_intrusive_ptr();
  state->class_pointer = class_pointer(this);
  c10::DispatchKeySet keys(kTraceKey);
  keys = keys.add(is_cuda() ? c10::DispatchKey::AutocastCUDA : c10::DispatchKey::AutocastCPU);
  if (!is_inference()) keys = keys.add(c10::DispatchKey::AutogradPrivateUse3).add(c10::DispatchKey::ADInplaceOrView);
  if (state->is_wrapper) keys = key_set_;
  set_backend_meta(std::move(state));
  set_class_pointer(this, input_proxy_class);
  set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);
  key_set_ = keys;
}

void InputProxyImpl::leave() {
  const c10::intrusive_ptr<c10::BackendMeta> hold = get_backend_meta_intrusive_ptr();
  const InputProxyState& state = *this->state();
  key_set_ = state.keys;
  set_custom_sizes_strides(SizesStridesPolicy::Default);
  set_class_pointer(this, state.class_pointer);
  set_backend_meta(state.meta);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (readers.load() != 0) std::this_thread::yield();
}

void* input_proxy_class() {
  static void* const pointer = [] {
    const auto sample = c10::make_intrusive<InputProxyImpl>(c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                            caffe2::TypeMeta::Make<float>(), c10::Device(c10::kCPU));
    return class_pointer(sample.get());
  }();
  return pointer;
}

bool is_input_proxy(const c10::TensorImpl* impl) { return class_pointer(impl) == input_proxy_class(); }

}  // namespace

bool InputProxy::possible(const at::Tensor& real) {
  const c10::TensorImpl* impl = real.unsafeGetTensorImpl();
  return (typeid(*impl) == typeid(c10::TensorImpl) || typeid(*impl) == typeid(TraceTensor)) &&
         real.layout() == c10::kStrided && TraceTensor::from(real) == nullptr && impl->has_storage() &&
         !impl->is_python_dispatch();
}

bool InputProxy::possible_wrapper(const at::Tensor& real) {
  const c10::TensorImpl* impl = real.unsafeGetTensorImpl();
  const bool is_one = is_input_proxy(impl) && static_cast<const InputProxyImpl*>(impl)->is_wrapper();
  return is_one || (typeid(*impl) == typeid(c10::TensorImpl) && impl->is_python_dispatch() &&
                    real.layout() == c10::kStrided && !impl->has_symbolic_sizes_strides());
}

InputProxy::InputProxy(const at::Tensor& real, const at::Tensor& proxy)
    : wrapper_(c10::intrusive_ptr<c10::TensorImpl>()), proxy_(static_cast<TraceTensor*>(proxy.unsafeGetTensorImpl())) {
  auto state = c10::make_intrusive<InputProxyState>();
  state->proxy = proxy;
  state->capture = &proxy_->capture();
  state->is_wrapper = possible_wrapper(real);
  CRESSET_CHECK(possible(real) || state->is_wrapper, "a tensor of this kind cannot have an input proxy");
  if (state->is_wrapper) {
    wrapper_ = c10::weak_intrusive_ptr<c10::TensorImpl>(real.getIntrusivePtr());
  } else {
    impl_ = real.getIntrusivePtr();
    alias_ = at::Tensor(impl_->shallow_copy_and_detach(impl_->version_counter(), /*allow_change=*/true));
    state->alias = alias_;
  }
  static_cast<InputProxyImpl*>(real.unsafeGetTensorImpl())->enter(std::move(state), input_proxy_class());
}

void InputProxy::release() {
  if (const auto alive = impl_ ? impl_ : wrapper_.lock()) static_cast<InputProxyImpl*>(alive.get())->leave();
  impl_.reset();
  wrapper_.reset();
}

TraceTensor* InputProxy::proxy_of(const c10::TensorImpl* impl) {
  if (!is_input_proxy(impl) || static_cast<const InputProxyImpl*>(impl)->is_wrapper()) return nullptr;
  return const_cast<TraceTensor*>(static_cast<const InputProxyImpl*>(impl)->proxy());
}

at::Tensor InputProxy::alias_of(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return is_input_proxy(impl) ? static_cast<const InputProxyImpl*>(impl)->alias() : at::Tensor();
}

}  // namespace cresset::bridge
