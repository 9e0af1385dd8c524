#include "bridge/capture/trace_tensor.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include "base/check.h"
#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/input_proxy.h"
#include "bridge/capture/sym_node.h"
#include "bridge/symbolic/tensor_geometry.h"

namespace cresset::bridge {

const c10::DispatchKey kTraceKey = c10::DispatchKey::PrivateUse3;

// operator- on key sets keeps backend bits, so the raw bits are removed.
c10::DispatchKeySet without_trace_key(c10::DispatchKeySet keys) {
  const uint64_t bits =
      c10::DispatchKeySet(kTraceKey).raw_repr() & ~c10::DispatchKeySet(c10::DispatchKey::CPU).raw_repr();
  return c10::DispatchKeySet(c10::DispatchKeySet::RAW, keys.raw_repr() & ~bits);
}

namespace {

c10::DispatchKeySet keys_for(c10::Device device) {
  // The device's own autocast key, because autocast would otherwise ignore trace tensors.
  const c10::DispatchKey autocast = device.is_cuda() ? c10::DispatchKey::AutocastCUDA : c10::DispatchKey::AutocastCPU;
  c10::DispatchKeySet keys({c10::DispatchKey::PrivateUse3, autocast});
  if (!c10::InferenceMode::is_enabled())
    keys = keys.add(c10::DispatchKey::AutogradPrivateUse3).add(c10::DispatchKey::ADInplaceOrView);
  return keys;
}

}  // namespace

TraceTensor::TraceTensor(std::shared_ptr<Capture> capture, StorageId storage, ViewChainPtr chain,
                         graph::ValueId value_now, uint32_t version_now, graph::TensorType type, sym::ExprId offset,
                         c10::Device device)
    : c10::TensorImpl(keys_for(device), c10::scalarTypeToTypeMeta(to_torch(type.dtype)), device),
      value(value_now),
      version(version_now),
      capture_(std::move(capture)),
      storage_id_(storage),
      chain_(std::move(chain)),
      type_(std::move(type)),
      offset_(offset) {
  set_custom_device(true);
  set_storage_access_should_throw();
  set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);
  refresh_rank();
  serial_ = capture_->live().enlist(*this);
}

TraceTensor::~TraceTensor() {
  if (!settled()) capture_->live().strike(*this);
}

TraceTensor* TraceTensor::from(const at::Tensor& tensor) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!impl->key_set().has_backend(c10::BackendComponent::PrivateUse3Bit)) return nullptr;
  if (TraceTensor* proxy = InputProxy::proxy_of(impl)) return proxy;
  return typeid(*impl) == typeid(TraceTensor) ? static_cast<TraceTensor*>(impl) : nullptr;  // the class is final
}

// In a few places TensorImpl reads the rank of its own arrays; their contents are never used.
void TraceTensor::refresh_rank() {
  sizes_and_strides_.resize(type_.sizes.size());
  numel_ = 1;
}

void TraceTensor::reset_caches() {
  int_sizes_.clear();
  int_strides_.clear();
  sym_sizes_.clear();
  sym_strides_.clear();
}

void TraceTensor::reset_geometry() {
  reset_caches();
  refresh_rank();
}

void TraceTensor::mark(bool conjugated, bool negated) {
  _set_conj(conjugated);
  _set_neg(negated);
}

void TraceTensor::become(const TraceTensor& other) {
  storage_id_ = other.storage_id_;
  chain_ = other.chain_;
  value = other.value;
  version = other.version;
  type_ = other.type_;
  offset_ = other.offset_;
  data_type_ = other.data_type_;
  mark(other.is_conj(), other.is_neg());
  reset_geometry();
}

const std::vector<int64_t>& TraceTensor::concrete(const std::vector<sym::ExprId>& exprs,
                                                  std::vector<int64_t>& cache) const {
  if (cache.size() == exprs.size()) return cache;
  cache.clear();
  // A number which only data can supply ends the segment and settles this tensor, so the expressions must be copied
  // first.
  const SymNode::Env env = asked().env_ptr();
  const std::vector<sym::ExprId> wanted = exprs;
  for (const sym::ExprId e : wanted) cache.push_back(SymNode::make_int(env, e).guard_int(__FILE__, __LINE__));
  return cache;
}

// A kernel or a binding needs plain numbers: the sizes are specialized by guards which name the operator.
c10::IntArrayRef TraceTensor::sizes_custom() const { return concrete(type_.sizes, int_sizes_); }
c10::IntArrayRef TraceTensor::strides_custom() const { return concrete(type_.strides, int_strides_); }

int64_t TraceTensor::numel_custom() const { return sym_numel_custom().guard_int(__FILE__, __LINE__); }
int64_t TraceTensor::storage_offset_custom() const { return sym_storage_offset_custom().guard_int(__FILE__, __LINE__); }
int64_t TraceTensor::size_custom(int64_t d) const { return sym_size_custom(d).guard_int(__FILE__, __LINE__); }

namespace {

// Indexing reads the first size of a 0-dim tensor before it checks the rank. A real tensor has 0 there.
c10::SymIntArrayRef none_but_readable() {
  static const c10::SymInt zero(0);
  return {&zero, size_t{0}};
}

c10::SymIntArrayRef symbolic(const SymNode::Env& env, const std::vector<sym::ExprId>& exprs,
                             std::vector<c10::SymInt>& cache) {
  if (exprs.empty()) return none_but_readable();
  if (cache.size() != exprs.size()) {
    cache.clear();
    for (const sym::ExprId e : exprs) cache.push_back(SymNode::make_int(env, env->simplify(e)));
  }
  return cache;
}

}  // namespace

Capture& TraceTensor::asked() const {
  if (!capture_->recorder().has_graph()) capture_->rethrow_deferred();
  TORCH_CHECK(capture_->recorder().has_graph(), "cresset: a tensor whose computation failed is used");
  return *capture_;
}

c10::SymIntArrayRef TraceTensor::sym_sizes_custom() const {
  return symbolic(asked().env_ptr(), type_.sizes, sym_sizes_);
}
c10::SymIntArrayRef TraceTensor::sym_strides_custom() const {
  return symbolic(asked().env_ptr(), type_.strides, sym_strides_);
}
c10::SymInt TraceTensor::sym_numel_custom() const {
  return SymNode::make_int(asked().env_ptr(), geometry::numel(asked().env(), type_.sizes));
}
// Relative to the caller's storage: autograd compares the offset with tensors outside of the capture, such as the base
// of an argument which is a view. In the capture itself the argument begins at 0.
c10::SymInt TraceTensor::sym_storage_offset_custom() const {
  const graph::TensorType* own = chain_ != nullptr ? &type_ : nullptr;
  const ViewChain* link = chain_.get();
  while (link != nullptr && link->parent != nullptr) link = link->parent.get();
  try {
    asked().storages().hold_offset(*this);
  } catch (const CaptureAbort& abort) {
    capture_->flush(abort.reason());
    return storage_offset_;  // the tensor is real now
  }
  const int64_t begin = asked().storages().real_offset(storage_id_);
  if (begin == 0) return SymNode::make_int(asked().env_ptr(), offset_);
  const int64_t from = link != nullptr ? byte_size(link->parent_type.dtype) : 1, to = own ? byte_size(own->dtype) : 1;
  sym::ExprPool& pool = asked().env().pool();
  return SymNode::make_int(asked().env_ptr(), pool.add(offset_, pool.constant(begin * from / to)));
}
c10::SymInt TraceTensor::sym_size_custom(int64_t d) const {
  const int64_t rank = static_cast<int64_t>(type_.sizes.size());
  const int64_t dim = c10::maybe_wrap_dim(d, rank, /*wrap_scalar=*/false);
  return SymNode::make_int(asked().env_ptr(), asked().env().simplify(type_.sizes[dim]));
}

c10::SymBool TraceTensor::sym_is_contiguous_custom(at::MemoryFormat format) const {
  sym::ShapeEnv& env = asked().env();
  switch (format) {
    case at::MemoryFormat::ChannelsLast:
    case at::MemoryFormat::ChannelsLast3d: {
      const size_t rank = format == at::MemoryFormat::ChannelsLast ? 4 : 5;
      if (ViewOrCopy::current() == nullptr) return geometry::is_channels_last(env, type_.sizes, type_.strides, rank);
      return geometry::decide_channels_last(env, type_.sizes, type_.strides, rank, [] { return current_reason(); });
    }
    default:
      return geometry::decide_contiguous(env, type_.sizes, type_.strides, [] { return current_reason(); });
  }
}
c10::SymBool TraceTensor::sym_is_non_overlapping_and_dense_custom() const {
  return geometry::is_non_overlapping_and_dense(asked().env(), type_.sizes, type_.strides);
}
bool TraceTensor::is_strides_like_custom(at::MemoryFormat format) const {
  const size_t rank = format == at::MemoryFormat::ChannelsLast3d ? 5 : 4;
  if (ViewOrCopy::current() != nullptr && type_.sizes.size() == rank) asked().storages().hold_strides(*this);
  return geometry::is_channels_last_like(asked().env(), type_.sizes, type_.strides, rank);
}

c10::intrusive_ptr<TraceTensor> TraceTensor::copy() const {
  // In inference mode, x.data of an ordinary tensor is ordinary.
  std::optional<c10::InferenceMode> as_this;
  const bool inference = !key_set().has_any(c10::inplace_or_view_ks);
  if (c10::InferenceMode::is_enabled() != inference) as_this.emplace(inference);
  auto out =
      c10::make_intrusive<TraceTensor>(capture_, storage_id_, chain_, value, version, type_, offset_, *device_opt_);
  out->mark(is_conj(), is_neg());
  return out;
}

// Autograd sees no writes through x.data: the history of `x` stays the history of its present value.
static void note_history(TraceTensor& trace) {
  const std::shared_ptr<AutogradNotes>& notes = trace.capture().counters.notes;
  if (notes == nullptr || trace.is_inference() || trace.is_conj() || trace.is_neg()) return;
  const at::Tensor self(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(&trace));
  const std::optional<Origin> origin = origin_of(self);
  const bool is_current = trace.version == trace.capture().storages()[trace.storage_id().index].version;
  if (self.requires_grad() && is_current && origin && !notes->value(*origin)) notes->note(self, trace.value);
}

c10::intrusive_ptr<c10::TensorImpl> TraceTensor::shallow_copy_and_detach(const c10::VariableVersion& version_counter,
                                                                         bool allow_change) const {
  if (settled()) return c10::TensorImpl::shallow_copy_and_detach(version_counter, allow_change);
  note_history(const_cast<TraceTensor&>(*this));
  c10::intrusive_ptr<TraceTensor> result = copy();
  if (!result->is_inference()) result->set_version_counter(version_counter);
  result->set_allow_tensor_metadata_change(allow_change);
  return result;
}
c10::intrusive_ptr<c10::TensorImpl> TraceTensor::shallow_copy_and_detach(c10::VariableVersion&& version_counter,
                                                                         bool allow_change) const {
  if (settled()) return c10::TensorImpl::shallow_copy_and_detach(std::move(version_counter), allow_change);
  note_history(const_cast<TraceTensor&>(*this));
  c10::intrusive_ptr<TraceTensor> result = copy();
  if (!result->is_inference()) result->set_version_counter(std::move(version_counter));
  result->set_allow_tensor_metadata_change(allow_change);
  return result;
}

// tensor.data = other, for trace tensors.
void TraceTensor::shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& impl) {
  const TraceTensor* other = settled() ? nullptr : from(at::Tensor(impl));
  if (other != nullptr) return become(*other);
  if (!settled()) capture_->flush({BreakKind::SideEffect, "a tensor is given the data of another one"});
  c10::TensorImpl::shallow_copy_from(impl);
}

// The autograd engine asks whether it may add in place to a gradient without other owners. The answer is no, so it adds
// two gradients into a new tensor. If Python functions have seen the gradient, the Python object counts as an owner,
// too.
static bool asked_by_engine(const c10::TensorImpl* tensor) {
  return c10::raw::intrusive_ptr::use_count(const_cast<c10::TensorImpl*>(tensor)) <= 2 &&
         torch::autograd::get_current_graph_task_id() >= 0;
}

bool TraceTensor::has_storage() const {
  if (!settled() && asked_by_engine(this)) return false;
  if (!settled() && storage_access_should_throw_)
    capture_->flush({BreakKind::MemoryAccess, "the memory of a tensor is asked for"});
  return c10::TensorImpl::has_storage();
}

const c10::Storage& TraceTensor::storage() const {
  if (!settled() && storage_access_should_throw_)
    capture_->flush({BreakKind::MemoryAccess, "the memory of a tensor is asked for"});
  return c10::TensorImpl::storage();
}

// Memory given out for an `empty` may be only partly filled (a list of symbols becomes a tensor). It stays this
// tensor's memory, with its present contents.
static void keep_memory(const c10::Storage& given_out, const c10::Storage& real) {
  if (given_out.nbytes() != real.nbytes() || real.data() == nullptr || real.data() == given_out.data()) return;
  std::memcpy(given_out.mutable_data(), real.data(), real.nbytes());
  c10::DataPtr memory = given_out.set_data_ptr(c10::DataPtr());
  given_out.set_data_ptr_noswap(real.set_data_ptr(std::move(memory)));
}

void TraceTensor::settle(const at::Tensor& real) {
  CRESSET_CHECK(!settled() && real.scalar_type() == c10::typeMetaToScalarType(data_type_),
                "a trace tensor is settled twice or with another dtype");
  // Whether the tensor is an inference tensor was decided at its creation.
  const c10::DispatchKeySet autograd = c10::getAutogradRelatedKeySetFromBackend(real.key_set().highestBackendKey());
  const c10::DispatchKeySet keys = is_inference() ? real.key_set() - autograd : real.key_set() | autograd;
  if (!storage_access_should_throw_) keep_memory(storage_, real.storage());
  storage_ = real.storage();
  storage_access_should_throw_ = false;
  sizes_and_strides_.set_sizes(real.sizes());
  sizes_and_strides_.set_strides(real.strides());
  storage_offset_ = real.storage_offset();
  set_custom_device(false);
  set_custom_sizes_strides(SizesStridesPolicy::Default);
  key_set_ = keys;
  refresh_numel();
  refresh_contiguous();
  capture_->live().strike(*this);
  capture_.reset();
  chain_.reset();
  type_ = {};
  // The caches live as long as the tensor: a decision on a symbolic size may cause this call, and its caller still
  // refers to the caches.
}

void TraceTensor::take_history(const at::Tensor& of) {
  if (is_inference()) return;  // it has neither a history nor a version counter
  const at::Tensor self(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(this));
  set_version_counter(of.unsafeGetTensorImpl()->version_counter());
  const auto* view = torch::autograd::impl::get_view_autograd_meta(of);
  if (view == nullptr) {
    set_autograd_meta(nullptr);
    if (!is_unrecorded_view(of))
      torch::autograd::impl::set_gradient_edge(self, torch::autograd::impl::gradient_edge(of));
    return;
  }
  const torch::autograd::ViewInfo& known = view->get_backward_view();
  auto again = known.has_view_fn() ? known.view_fn().clone_and_set() : nullptr;
  auto meta = std::make_unique<torch::autograd::DifferentiableViewMeta>(
      this, torch::autograd::ViewInfo(known.base_, std::move(again), known.rev_view_fn_), std::nullopt,
      /*shared_view_info=*/true, view->get_creation_meta());
  // After a write to its base a view has its history made anew when it is asked for its edge. Where autograd forbids
  // the write, the question raises, and the user may ask it.
  const bool stale = view->get_attr_version() != of.unsafeGetTensorImpl()->version_counter().current_version();
  const bool raises = stale && view->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT;
  if (raises) {
    meta->grad_fn_ = view->grad_fn_;
    meta->output_nr_ = view->output_nr_;
    meta->set_attr_version(view->get_attr_version());
  }
  set_autograd_meta(std::move(meta));
  if (!raises && !is_unrecorded_view(of))
    torch::autograd::impl::set_gradient_edge(self, torch::autograd::impl::gradient_edge(of));
}

void TraceTensor::attach_memory(c10::Storage storage, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  storage_access_should_throw_ = false;
  storage_ = std::move(storage);
  sizes_and_strides_.set_sizes(sizes);
  sizes_and_strides_.set_strides(strides);
  numel_ = c10::multiply_integers(sizes);
}

}  // namespace cresset::bridge
