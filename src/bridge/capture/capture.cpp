#include "bridge/capture/capture.h"

#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/op_schema.h"
#include "bridge/aten/torch_modes.h"
#include "bridge/capture/autograd_state.h"
#include "bridge/capture/sym_node.h"
#include "bridge/capture/unseen_writes.h"
#include "bridge/symbolic/tensor_geometry.h"
#include "ops/effects.h"
#include "ops/op_def.h"
#include "sym/explain.h"

namespace cresset::bridge {
namespace {

thread_local Capture* current_capture = nullptr;

void enter_dispatch_state() {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.included_ = keys.included_ | c10::DispatchKeySet(kTraceKey);
  // Otherwise factory functions would redispatch past the trace key.
  keys.excluded_ = keys.excluded_.add(c10::DispatchKey::BackendSelect);
  c10::impl::_force_tls_local_dispatch_key_set(keys);
}

}  // namespace

Capture::Capture(bool dynamic)
    : default_dtype(*from_torch(c10::get_default_dtype_as_scalartype())), dynamic_(dynamic) {}

Capture::~Capture() = default;

Capture* Capture::current() { return current_capture; }
Capture* Capture::exchange_current(Capture* other) { return std::exchange(current_capture, other); }

// Inference mode also consists of dispatch keys. A segment may begin inside an inference-mode region and leave it, or
// enter a region which a later segment leaves. The states at the start of this thread's scopes, from the outermost:
static thread_local std::vector<bool> inference_at_begin;

static void follow_inference_mode(c10::impl::LocalDispatchKeySet& keys) {
  const bool on = c10::InferenceMode::is_enabled();
  constexpr c10::DispatchKey kInPlace = c10::DispatchKey::ADInplaceOrView;
  keys.included_ = on ? keys.included_.remove(kInPlace) : keys.included_.add(kInPlace);
  keys.excluded_ = on ? keys.excluded_ | c10::autograd_dispatch_keyset : keys.excluded_ - c10::autograd_dispatch_keyset;
}

Capture::Scope::Scope(Capture& capture)
    : previous_(current_capture),
      saved_(c10::impl::tls_local_dispatch_key_set()),
      autocast_cache_(at::autocast::is_autocast_cache_enabled()),
      autograd_threads_(c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
  inference_at_begin.push_back(c10::InferenceMode::is_enabled());
  current_capture = &capture;
  // Autocast would keep casts of parameters in a process-wide cache, and find real tensors there.
  at::autocast::set_autocast_cache_enabled(false);
  // The capture is in this thread alone.
  if (cuda_is_in_use()) c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  enter_dispatch_state();
}

// Autocast is also a matter of excluded keys, and its state belongs to the program: a segment which began inside an
// autocast region may leave it.
Capture::Scope::~Scope() {
  const bool in_inference = inference_at_begin.back();
  inference_at_begin.pop_back();
  if (in_inference != c10::InferenceMode::is_enabled()) follow_inference_mode(saved_);
  const c10::DispatchKeySet now = c10::impl::tls_local_dispatch_key_set().excluded_ & c10::autocast_dispatch_keyset;
  saved_.excluded_ = (saved_.excluded_ - c10::autocast_dispatch_keyset) | now;
  c10::impl::_force_tls_local_dispatch_key_set(saved_);
  at::autocast::set_autocast_cache_enabled(autocast_cache_);
  if (cuda_is_in_use()) c10::AutogradState::get_tls_state().set_multithreading_enabled(autograd_threads_);
  current_capture = previous_;
}

void Capture::Scope::switch_to(Capture& next) {
  current_capture = &next;
  enter_dispatch_state();
}

static void leave(c10::impl::LocalDispatchKeySet keys) {
  if (!keys.included_.has(kTraceKey)) return;
  keys.included_ = without_trace_key(keys.included_);
  keys.excluded_ = keys.excluded_.remove(c10::DispatchKey::BackendSelect);
  c10::impl::_force_tls_local_dispatch_key_set(keys);
}

// Whether a guard of the program's that excludes keys may be alive (torch._C._DisableTorchDispatch is one). Its end
// brings the excluded keys of its beginning back.
static bool may_have_guard(c10::DispatchKeySet excluded) {
  c10::DispatchKeySet usual = c10::default_excluded_set | c10::autocast_dispatch_keyset;
  usual = usual.add(c10::DispatchKey::BackendSelect);
  if (c10::InferenceMode::is_enabled()) usual = usual | c10::autograd_dispatch_keyset;
  return !(excluded - usual).empty();
}

// Without the trace key, the exclusion that such a guard brings back would send factory functions to the CPU. Under the
// trace key a closed capture runs operators natively.
void Capture::leave_dispatch_state() {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  if (!may_have_guard(keys.excluded_)) leave(keys);
}

Capture::StepAside::StepAside() : saved_(c10::impl::tls_local_dispatch_key_set()) { leave(saved_); }
Capture::StepAside::~StepAside() { c10::impl::_force_tls_local_dispatch_key_set(saved_); }

at::Tensor Capture::make_tensor(StorageId storage, ViewChainPtr chain, graph::ValueId value, sym::ExprId offset) {
  const graph::TensorType& type = graph().type(value);
  return at::Tensor(c10::make_intrusive<TraceTensor>(shared_from_this(), storage, std::move(chain), value,
                                                     storages_[storage.index].version, type, offset,
                                                     to_torch(type.device)));
}

namespace {

// Aborts for a tangent of a forward-mode level which was open before the capture.
void reject_tangent(const at::Tensor& real) {
  if (has_tangent(real))
    abort_capture(BreakKind::AutogradFeature, "a tensor of the caller's has a tangent (torch.autograd.forward_ad)");
}

void reject_exotic(const at::Tensor& real) {
  if (real.layout() != c10::kStrided) abort_capture(BreakKind::UnsupportedLayout, "a tensor that is not strided");
  if (real.is_conj() || real.is_neg())
    abort_capture(BreakKind::UnsupportedLayout, "a lazily conjugated or negated tensor");
  if (real.unsafeGetTensorImpl()->is_python_dispatch())
    abort_capture(BreakKind::TensorSubclass, "a tensor subclass with __torch_dispatch__");
  if (!from_torch(real.device()))
    abort_capture(BreakKind::UnsupportedDevice, "a tensor on device " + real.device().str());
}

// Dimensions of a dense tensor, innermost first; nullopt when the strides are not dense.
std::optional<std::vector<uint8_t>> dense_order(const at::Tensor& t) {
  std::vector<uint8_t> order(t.dim());
  std::iota(order.rbegin(), order.rend(), 0);
  const auto is_dense = [&] {
    int64_t expected = 1;
    for (const uint8_t d : order) {
      if (t.size(d) != 1 && t.stride(d) != expected) return false;
      expected *= t.size(d);
    }
    return true;
  };
  if (t.numel() == 0) return order;
  // Dimensions of size 1 may permit several orders: between channels-last and contiguous, ATen's choice counts.
  const at::MemoryFormat format =
      t.is_contiguous() && t.dim() >= 4 ? t.suggest_memory_format() : at::MemoryFormat::Contiguous;
  if (format != at::MemoryFormat::Contiguous && t.is_contiguous(format)) {
    order.assign({1});
    for (int64_t d = t.dim() - 1; d >= 2; --d) order.push_back(static_cast<uint8_t>(d));
    order.push_back(0);
    return order;
  }
  if (is_dense()) return order;
  std::stable_sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) { return t.stride(a) < t.stride(b); });
  // A dimension of size 1 has any stride; it stays where the stable sort leaves it.
  if (is_dense()) return order;
  return std::nullopt;
}

}  // namespace

Capture::Geometry Capture::input_geometry(const at::Tensor& real, uint32_t position, const std::string& name,
                                          const std::vector<DimMark>& marks) {
  Geometry out;
  sym::ExprPool& pool = env().pool();
  out.type.dtype = dtype_or_abort(real);
  out.type.device = *from_torch(real.device());
  for (int64_t d = 0; d < real.dim(); ++d) {
    const DimMark mark = d < static_cast<int64_t>(marks.size()) ? marks[d] : DimMark{};
    const bool is_marked = mark.policy == sym::Policy::MarkedDynamic || mark.policy == sym::Policy::Suggested;
    const bool fixed = !mark.unbacked && (mark.policy == sym::Policy::Static || (!dynamic_ && !is_marked));
    if (fixed) {
      out.type.sizes.push_back(pool.constant(real.size(d)));
      continue;
    }
    const std::string source = c10::str(name, ".size(", d, ")");
    if (mark.unbacked) recorder_.note_unbacked();
    const sym::ExprId size = mark.unbacked ? env().new_unbacked(source, mark.range)
                                           : env().new_backed(source, real.size(d), mark.range, mark.policy);
    if (pool.is_var(size)) {
      recorder_.symbols().push_back(
          {pool.var_of(size), {runtime::SymbolSource::Kind::InputSize, position, static_cast<uint32_t>(d)}});
      if (mark.typical) env().state_typical(pool.var_of(size), *mark.typical);
    }
    out.type.sizes.push_back(size);
  }
  out.type.strides.assign(real.dim(), pool.constant(0));
  if (std::optional<std::vector<uint8_t>> order = dense_order(real)) {
    out.layout.order = *order;
    sym::ExprId stride = pool.constant(1);
    for (const uint8_t d : *order) {
      out.type.strides[d] = stride;
      stride = pool.mul(stride, out.type.sizes[d]);
    }
    return out;
  }
  out.layout.dense = false;
  for (int64_t d = 0; d < real.dim(); ++d) {
    const int64_t stride = real.stride(d);
    if (stride <= 1 || !dynamic_) {
      out.type.strides[d] = pool.constant(stride);  // guarded by value
      continue;
    }
    const sym::ExprId s = env().new_backed(c10::str(name, ".stride(", d, ")"), stride, {2, sym::Interval::kPosInf});
    recorder_.symbols().push_back(
        {pool.var_of(s), {runtime::SymbolSource::Kind::InputStride, position, static_cast<uint32_t>(d)}});
    out.type.strides[d] = s;
  }
  return out;
}

// Assigns a storage to a real tensor. The first tensor over a piece of memory is its base. A second tensor becomes a
// view of the base if this can be expressed; otherwise the memory must not be written.
at::Tensor Capture::adopt(const at::Tensor& real, graph::ValueId base_value, OutputSpec::Kind home, uint32_t position) {
  const StorageId id = storages_.add(base_value, home, position);
  storages_[id.index].real_offset = real.storage_offset();
  Storage& storage = storages_[id.index];
  storage.real = real;
  storage.required_grad = real.requires_grad();
  storage.first_version = version_of(real);
  storage.gradient_node = gradient_node(real);
  storage.history = History::of(real);
  if (storage.required_grad && counters.notes == nullptr) counters.notes = std::make_shared<AutogradNotes>();
  storages_.note_memory(real, id);
  at::Tensor result = make_tensor(id, nullptr, base_value, env().pool().constant(0));
  storages_.proxies()[real.unsafeGetTensorImpl()] = result;
  return result;
}

at::Tensor Capture::add_input(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks) {
  const uint32_t position = static_cast<uint32_t>(graph().inputs.size());
  const auto known = storages_.proxies().find(real.unsafeGetTensorImpl());
  const at::Tensor alias = known != storages_.proxies().end() ? InputProxy::alias_of(real) : at::Tensor();
  const at::Tensor& shown = alias.defined() ? alias : real;
  reject_exotic(shown);
  reject_tangent(real);
  Geometry geometry = input_geometry(shown, position, name, marks);
  recorder_.inputs().push_back(shown);
  storages_.input_layouts().push_back(geometry.layout);
  const graph::ValueId value = graph().add_input(std::move(geometry.type), std::move(name));
  // The same tensor twice has a single proxy tensor, but every argument position exists.
  if (known != storages_.proxies().end()) return known->second;
  return adopt(real, value, OutputSpec::Kind::Input, position);
}

void Capture::add_input_proxy(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks) {
  storages_.use_guests();
  const bool fresh = storages_.proxies().find(real.unsafeGetTensorImpl()) == storages_.proxies().end();
  if (fresh && !InputProxy::possible(real))
    abort_capture(BreakKind::TensorSubclass, "an argument that is a tensor of a kind of its own");
  const at::Tensor proxy = add_input(real, std::move(name), marks);
  if (!fresh) return;
  input_proxies_.emplace_back(real, proxy);
  recorder_.inputs().back() = input_proxies_.back().alias();
}

void Capture::add_wrapper(const at::Tensor& wrapper, const at::Tensor& proxy) {
  wrappers_.emplace_back(wrapper, proxy);
}

c10::SymFloat Capture::add_float_argument(const at::Tensor& real, std::string name) {
  const uint64_t bit = float_arguments_ < 64 ? uint64_t{1} << float_arguments_++ : 0;
  const size_t place = graph().inputs.size();
  const at::Tensor proxy = add_input(real, std::move(name), {});
  const double number = real.item<double>();
  if (bit == 0) return c10::SymFloat(number);
  if (!std::isfinite(number))
    return specialized_floats |= bit, c10::SymFloat(number);  // Python's arithmetic treats it specially
  SymNode::Known known{number, bit, {}, FloatExpr::argument(number, place)};
  return c10::SymFloat(SymNode::make_value(env_ptr(), proxy, std::move(known)));
}

void Capture::set_location() {
  if (const auto line = forward_lines_.differentiated()) {
    graph().current_location = *line;
    return;
  }
  client().locate(*this);
  forward_lines_.note(graph().current_location);
}

// Whether the tensor has its history from the base of an argument, which belongs to the call.
static bool is_of_base_of_input(const StorageTable& storages, const at::Tensor& real) {
  const at::Tensor base = is_recorded_view(real) ? at::Tensor(real._base()) : real;
  return std::any_of(storages.begin(), storages.end(), [&](const Storage& s) {
    return s.home == OutputSpec::Kind::Input && s.real.defined() && is_recorded_view(s.real) &&
           s.real._base().is_same(base);
  });
}

at::Tensor Capture::lift(const at::Tensor& real) {
  if (auto it = storages_.proxies().find(real.unsafeGetTensorImpl()); it != storages_.proxies().end())
    return it->second;
  reject_exotic(real);
  reject_tangent(real);
  if (const Storage* const known = storages_.of_memory(real); known != nullptr && known->version > 0)
    abort_capture(BreakKind::AliasedWrite, "memory that was written is reached in another way");
  const auto named = names_.find(real.unsafeGetTensorImpl());
  if (named == names_.end() && real.requires_grad() && is_of_base_of_input(storages_, real))
    abort_capture(BreakKind::AutogradFeature, "a view of an argument, whose history autograd makes anew from its base");
  const uint32_t position = static_cast<uint32_t>(recorder_.constants().size());
  const graph::ValueId value =
      graph().add_constant(recorder_.constant_geometry(real), named != names_.end() ? named->second : std::string());
  recorder_.constants().push_back(real);
  return adopt(real, value, OutputSpec::Kind::Constant, position);
}

at::Tensor Capture::make_result(graph::ValueId value) {
  return make_tensor(storages_.add(value, OutputSpec::Kind::GraphOutput, 0), nullptr, value, env().pool().constant(0));
}

at::Tensor Capture::make_view(TraceTensor& parent, graph::OpId op, std::vector<graph::Arg> args, graph::ValueId value,
                              sym::ExprId offset, std::optional<std::vector<Extent>> within) {
  auto link = std::make_shared<ViewChain>();
  link->parent = parent.chain();
  link->op = op;
  link->args = std::move(args);
  link->parent_type = parent.type();
  link->type = graph().type(value);
  if (within) {
    link->within = std::move(*within);
  } else if (link->parent != nullptr && link->parent->type.dtype == link->type.dtype) {
    link->within = link->parent->within;
  }
  at::Tensor out = make_tensor(parent.storage_id(), std::move(link), value, offset);
  TraceTensor::from(out)->mark(parent.is_conj(), parent.is_neg());
  return out;
}

at::Tensor Capture::base_of(const TraceTensor& view) {
  return make_tensor(view.storage_id(), nullptr, storages_[view.storage_id().index].value, env().pool().constant(0));
}

at::Tensor Capture::make_watched_empty(graph::ValueId value) {
  at::Tensor result = make_result(value);
  storages_.watch(*TraceTensor::from(result));
  return result;
}

// The answers for a capture without a client.
CaptureClient& Capture::client() const {
  static CaptureClient none;
  return client_ != nullptr ? *client_ : none;
}

graph::ValueId Capture::memory_of(TraceTensor& tensor) {
  if (&tensor.capture() != this) abort_capture(BreakKind::UnguardedState, "a tensor of another capture");
  Storage& storage = storages_[tensor.storage_id().index];
  storages_.settle_watched(storage);
  if (tensor.version == storage.version) return tensor.value;
  if (tensor.chain() == nullptr) {
    tensor.value = storage.value;
  } else {
    std::vector<graph::Arg> args = tensor.chain()->args;
    args[0] = storages_.parent_value(storage, *tensor.chain());
    tensor.value = recorder_.append(tensor.chain()->op, std::move(args), {tensor.chain()->type})[0];
  }
  tensor.version = storage.version;
  return tensor.value;
}

graph::ValueId Capture::read(const TraceTensor& tensor, graph::ValueId memory) {
  static const graph::OpId conj = graph::op_id("aten::conj_physical"), neg = graph::op_id("aten::neg");
  const auto cloned = [&](graph::OpId op) {
    memory = recorder_.call(op, {memory})[0];
    storages_.notes()->clones.insert(memory);
  };
  if (tensor.is_conj()) cloned(conj);
  if (tensor.is_neg()) cloned(neg);
  return memory;
}

namespace {

// A written tensor keeps its layout, including the gaps of a piece of another tensor (aten::unsafe_split).
graph::ValueId laid_out(Capture& capture, graph::ValueId value, graph::ValueId like) {
  const graph::Graph& graph = capture.graph();
  const std::vector<sym::ExprId>&had = graph.type(like).strides, &has = graph.type(value).strides;
  const bool same = std::equal(had.begin(), had.end(), has.begin(), has.end(),
                               [&](sym::ExprId a, sym::ExprId b) { return capture.env().known_equal(a, b); });
  return same ? value : capture.recorder().call(graph::op_id("aten::copy"), {like, value, false})[0];
}

}  // namespace

// Autograd sees no write in no_grad mode, nor one to x.data or to the memory of x as integers: the history of the base
// stays the history of its contents before the write.
static void note_history(AutogradNotes& notes, const at::Tensor& base, graph::ValueId contents) {
  const auto* view = torch::autograd::impl::get_view_autograd_meta(base);
  if (view != nullptr && view->has_bw_view() && view->get_attr_version() != static_cast<uint32_t>(base._version()))
    return;  // an old history
  const std::optional<Origin> origin = origin_of(base);
  if (origin && !notes.value(*origin)) notes.note(base, contents);
}

// Whether autograd records nothing of a write to this tensor, whose base has a history.
static bool is_unseen_write(Capture& capture, TraceTensor& tensor) {
  StorageTable& storages = capture.storages();
  const Storage& storage = storages[tensor.storage_id().index];
  if (capture.counters.notes == nullptr || tensor.is_inference()) return false;
  at::Tensor written(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(&tensor));
  if (storage.real.defined()) {
    const auto proxy = storages.proxies().find(storage.real.unsafeGetTensorImpl());
    if (proxy != storages.proxies().end() && proxy->second.is_same(written)) written = storage.real;
  }
  if (c10::GradMode::is_enabled() && written.requires_grad()) return false;
  std::vector<at::Tensor> bases;
  if (storage.real.defined()) bases.push_back(storage.real);
  for (const at::Tensor& live : capture.live().all())
    if (const TraceTensor* trace = TraceTensor::from(live);
        trace != nullptr && trace->storage_id() == tensor.storage_id() && trace->chain() == nullptr)
      bases.push_back(live);
  std::erase_if(bases, [](const at::Tensor& base) { return base.is_inference() || !base.requires_grad(); });
  for (const at::Tensor& base : bases) note_history(*capture.counters.notes, base, storage.value);
  return !bases.empty();
}

void Capture::write(TraceTensor& tensor, graph::ValueId value) {
  Storage& storage = storages_[tensor.storage_id().index];
  storages_.require_writable(tensor);
  storages_.guard_copies_of(tensor.storage_id().index);
  const bool is_unseen = is_unseen_write(*this, tensor);
  const graph::ValueId before = storage.value;
  // Makes a written parameter an input proxy: a request for its memory must find the write done.
  if (storages_.uses_guests() && storage.version == 0 && storage.home == OutputSpec::Kind::Constant &&
      InputProxy::possible(storage.real))
    input_proxies_.emplace_back(storage.real, storages_.proxies().at(storage.real.unsafeGetTensorImpl()));
  storages_.settle_watched(storage);
  graph::ValueId current = storages_.scattered(tensor, read(tensor, value));
  // A write through a transposed view would leave the value transposed, and a value computed from an argument with gaps
  // has none.
  storage.value = current = laid_out(*this, current, storage.value);
  if (is_unseen) note_unseen_write(*counters.notes, before, current);
  if (storage.first.index < current.index) storages_.notes()->lies_as[current] = storage.first;
  ++storage.version;
  storages_.note_write(tensor.storage_id().index);
  if (tensor.chain() == nullptr) {
    tensor.value = current;
    tensor.version = storage.version;
  }
}

bool Capture::has_effects_since(const Done& before) const {
  const std::vector<uint32_t>& written = storages_.written();
  const auto is_old = [&](uint32_t storage) {
    return storage < before.storages || storages_[storage].home != OutputSpec::Kind::GraphOutput;
  };
  return recorder_.draws() != before.draws ||
         std::any_of(written.begin() + static_cast<long>(before.writes), written.end(), is_old);
}

}  // namespace cresset::bridge
