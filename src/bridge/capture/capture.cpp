#include "bridge/capture/capture.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/op_schema.h"
#include "bridge/capture/autograd_state.h"
#include "bridge/capture/sym_node.h"
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
      autocast_cache_(at::autocast::is_autocast_cache_enabled()) {
  inference_at_begin.push_back(c10::InferenceMode::is_enabled());
  current_capture = &capture;
  // Autocast would keep casts of parameters in a process-wide cache, and find real tensors there.
  at::autocast::set_autocast_cache_enabled(false);
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
  current_capture = previous_;
}

void Capture::Scope::switch_to(Capture& next) {
  current_capture = &next;
  enter_dispatch_state();
}

void Capture::leave_dispatch_state() {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  if (!keys.included_.has(kTraceKey)) return;
  keys.included_ = without_trace_key(keys.included_);
  keys.excluded_ = keys.excluded_.remove(c10::DispatchKey::BackendSelect);
  c10::impl::_force_tls_local_dispatch_key_set(keys);
}

Capture::StepAside::StepAside() : saved_(c10::impl::tls_local_dispatch_key_set()) { leave_dispatch_state(); }
Capture::StepAside::~StepAside() { c10::impl::_force_tls_local_dispatch_key_set(saved_); }

uint64_t Capture::enlist(TraceTensor& tensor) {
  const std::lock_guard lock(live_mutex_);
  tensor.live_position_ = live_.size();
  live_.push_back(&tensor);
  return serial_++;
}

void Capture::strike(TraceTensor& tensor) {
  const std::lock_guard lock(live_mutex_);
  live_[tensor.live_position_] = live_.back();
  live_[tensor.live_position_]->live_position_ = tensor.live_position_;
  live_.pop_back();
}

StorageId Capture::add_storage(graph::ValueId value, OutputSpec::Kind home, uint32_t position) {
  Storage& storage = storages_.emplace_back();
  storage.value = storage.first = value;
  storage.home = home;
  storage.position = position;
  return StorageId{static_cast<uint32_t>(storages_.size() - 1)};
}

at::Tensor Capture::make_tensor(StorageId storage, ViewChainPtr chain, graph::ValueId value, sym::ExprId offset) {
  const graph::TensorType& type = graph_->type(value);
  return at::Tensor(c10::make_intrusive<TraceTensor>(shared_from_this(), storage, std::move(chain), value,
                                                     storages_[storage.index].version, type, offset,
                                                     to_torch(type.device)));
}

namespace {

DType dtype_or_abort(const at::Tensor& real) {
  const std::optional<DType> dtype = from_torch(real.scalar_type());
  if (!dtype)
    abort_capture(BreakKind::UnsupportedDtype,
                  c10::str("tensors of dtype ", real.scalar_type(), " have no representation in a graph"));
  return *dtype;
}

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
    const bool fixed = !mark.unbacked &&
                       (mark.policy == sym::Policy::Static || (!dynamic_ && mark.policy != sym::Policy::MarkedDynamic));
    if (fixed) {
      out.type.sizes.push_back(pool.constant(real.size(d)));
      continue;
    }
    const std::string source = c10::str(name, ".size(", d, ")");
    any_unbacked_ = any_unbacked_ || mark.unbacked;
    const sym::ExprId size = mark.unbacked ? env().new_unbacked(source, mark.range)
                                           : env().new_backed(source, real.size(d), mark.range, mark.policy);
    if (pool.is_var(size)) {
      symbols_.push_back(
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
    symbols_.push_back(
        {pool.var_of(s), {runtime::SymbolSource::Kind::InputStride, position, static_cast<uint32_t>(d)}});
    out.type.strides[d] = s;
  }
  return out;
}

graph::TensorType Capture::constant_geometry(const at::Tensor& real) {
  graph::TensorType type;
  sym::ExprPool& pool = env().pool();
  type.dtype = dtype_or_abort(real);
  type.device = *from_torch(real.device());
  const c10::IntArrayRef sizes = real.sizes(), strides = real.strides();
  type.sizes.reserve(sizes.size());
  type.strides.reserve(strides.size());
  for (const int64_t s : sizes) type.sizes.push_back(pool.constant(s));
  for (const int64_t s : strides) type.strides.push_back(pool.constant(s));
  return type;
}

// Assigns a storage to a real tensor. The first tensor over a piece of memory is its base. A second tensor becomes a
// view of the base if this can be expressed; otherwise the memory must not be written.
at::Tensor Capture::adopt(const at::Tensor& real, graph::ValueId base_value, OutputSpec::Kind home, uint32_t position) {
  const void* memory = real.has_storage() ? real.storage().unsafeGetStorageImpl() : nullptr;
  const StorageId id = add_storage(base_value, home, position);
  storages_[id.index].real_offset = real.storage_offset();
  Storage& storage = storages_[id.index];
  storage.real = real;
  storage.required_grad = real.requires_grad();
  storage.first_version = version_of(real);
  storage.gradient_node = gradient_node(real);
  storage.history = History::of(real);
  if (storage.required_grad && counters.notes == nullptr) counters.notes = std::make_shared<AutogradNotes>();
  if (memory != nullptr) {
    auto [it, fresh] = storage_of_memory_.try_emplace(memory, id);
    if (!fresh) {
      storages_[id.index].ambiguous = true;
      storages_[it->second.index].ambiguous = true;
    }
  }
  at::Tensor result = make_tensor(id, nullptr, base_value, env().pool().constant(0));
  lifted_[real.unsafeGetTensorImpl()] = result;
  return result;
}

at::Tensor Capture::add_input(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks) {
  const uint32_t position = static_cast<uint32_t>(graph_->inputs.size());
  const auto known = lifted_.find(real.unsafeGetTensorImpl());
  const at::Tensor alias = known != lifted_.end() ? Guest::alias_of(real) : at::Tensor();
  const at::Tensor& shown = alias.defined() ? alias : real;
  reject_exotic(shown);
  reject_tangent(real);
  Geometry geometry = input_geometry(shown, position, name, marks);
  real_inputs_.push_back(shown);
  input_layouts_.push_back(geometry.layout);
  const graph::ValueId value = graph_->add_input(std::move(geometry.type), std::move(name));
  // The same tensor twice has a single proxy tensor, but every argument position exists.
  if (known != lifted_.end()) return known->second;
  return adopt(real, value, OutputSpec::Kind::Input, position);
}

void Capture::add_guest(const at::Tensor& real, std::string name, const std::vector<DimMark>& marks) {
  use_guests_ = true;
  const bool fresh = lifted_.find(real.unsafeGetTensorImpl()) == lifted_.end();
  if (fresh && !Guest::possible(real))
    abort_capture(BreakKind::TensorSubclass, "an argument that is a tensor of a kind of its own");
  const at::Tensor stand_in = add_input(real, std::move(name), marks);
  if (!fresh) return;
  guests_.emplace_back(real, stand_in);
  real_inputs_.back() = guests_.back().alias();
}

void Capture::add_wrapper(const at::Tensor& wrapper, const at::Tensor& stand_in) {
  wrappers_.emplace_back(wrapper, stand_in);
}

c10::SymInt Capture::add_int_argument(int64_t value, std::string name) {
  const sym::ExprId e = env().new_backed(name, value, sym::Interval::all());
  uint32_t position = 0;
  for (const SymbolBinding& s : symbols_)
    if (s.source.kind == runtime::SymbolSource::Kind::IntArgument) ++position;
  symbols_.push_back({env().pool().var_of(e), {runtime::SymbolSource::Kind::IntArgument, position, 0}});
  return SymNode::make_int(env_ptr(), e);
}

c10::SymFloat Capture::add_float_argument(const at::Tensor& real, std::string name) {
  const uint64_t bit = float_arguments_ < 64 ? uint64_t{1} << float_arguments_++ : 0;
  const size_t place = graph_->inputs.size();
  const at::Tensor stand_in = add_input(real, std::move(name), {});
  const double number = real.item<double>();
  if (bit == 0) return c10::SymFloat(number);
  if (!std::isfinite(number))
    return pinned_floats |= bit, c10::SymFloat(number);  // Python's arithmetic treats it specially
  SymNode::Known known{number, bit, {}, FloatExpr::argument(number, place)};
  return c10::SymFloat(SymNode::make_value(env_ptr(), stand_in, std::move(known)));
}

void Capture::set_location() {
  if (const auto line = forward_lines_.differentiated()) {
    graph_->current_location = *line;
    return;
  }
  if (locate) locate(*this);
  forward_lines_.note(graph_->current_location);
}

void Capture::note_number(TraceTensor& tensor, FloatExpr::Ref made_by) {
  numbers_[value_of(tensor).index] = std::move(made_by);
}

std::optional<bool> Capture::decide(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right,
                                    OfData of_data) {
  for (const FloatGuard& guard : float_guards_)
    if (guard.same(left, relation, right)) return guard.expected;
  constexpr size_t kMost = 8192;
  if (float_guards_.size() >= kMost) return std::nullopt;
  set_location();
  FloatGuard& guard = float_guards_.emplace_back(left, relation, right, current_reason().location);
  guard.of_data = of_data;
  return guard.expected;
}

std::optional<sym::ExprId> Capture::computed_number(const FloatExpr::Ref& made) {
  for (const SymbolBinding& s : symbols_)
    if (s.source.kind == runtime::SymbolSource::Kind::Computed && computed_[s.source.position].same(*made))
      return env().pool().var(s.var);
  constexpr size_t kMost = 128;
  if (computed_.size() >= kMost || !ComputedNumber::is_whole(made->number)) return std::nullopt;
  const sym::VarNames sources = sym::source_names(env());
  FloatExpr::Names names{{}, {}, [&](sym::ExprId size) { return sym::to_string(env().pool(), size, sources); }};
  for (const graph::ValueId input : graph_->inputs) names.inputs.push_back(graph_->value(input).name);
  for (const graph::ValueId constant : graph_->constants) names.constants.push_back(graph_->value(constant).name);
  std::string source = made->text(names);
  constexpr size_t kLongest = 160;  // limit: names of nested numbers would grow with each level
  if (source.size() > kLongest) source = source.substr(0, kLongest) + "...";
  const sym::ExprId e = env().new_backed(std::move(source), static_cast<int64_t>(made->number), sym::Interval::all());
  const auto position = static_cast<uint32_t>(computed_.size());
  computed_.emplace_back(made);
  symbols_.push_back({env().pool().var_of(e), {runtime::SymbolSource::Kind::Computed, position, 0}});
  return e;
}

at::Tensor Capture::lift(const at::Tensor& real) {
  if (auto it = lifted_.find(real.unsafeGetTensorImpl()); it != lifted_.end()) return it->second;
  reject_exotic(real);
  reject_tangent(real);
  const auto memory = storage_of_memory_.find(real.has_storage() ? real.storage().unsafeGetStorageImpl() : nullptr);
  if (memory != storage_of_memory_.end() && storages_[memory->second.index].version > 0)
    abort_capture(BreakKind::AliasedWrite, "memory that was written is reached in another way");
  const uint32_t position = static_cast<uint32_t>(constants_.size());
  const auto named = names_.find(real.unsafeGetTensorImpl());
  const graph::ValueId value =
      graph_->add_constant(constant_geometry(real), named != names_.end() ? named->second : std::string());
  constants_.push_back(real);
  return adopt(real, value, OutputSpec::Kind::Constant, position);
}

at::Tensor Capture::make_result(graph::ValueId value) {
  return make_tensor(add_storage(value, OutputSpec::Kind::GraphOutput, 0), nullptr, value, env().pool().constant(0));
}

at::Tensor Capture::make_view(TraceTensor& parent, graph::OpId op, std::vector<graph::Arg> args, graph::ValueId value,
                              sym::ExprId offset, std::optional<std::vector<Extent>> within) {
  auto link = std::make_shared<ViewChain>();
  link->parent = parent.chain();
  link->op = op;
  link->args = std::move(args);
  link->parent_type = parent.type();
  link->type = graph_->type(value);
  if (within) {
    link->within = std::move(*within);
  } else if (link->parent != nullptr) {
    link->within = link->parent->within;
  }
  at::Tensor out = make_tensor(parent.storage_id(), std::move(link), value, offset);
  TraceTensor::from(out)->mark(parent.is_conj(), parent.is_neg());
  return out;
}

at::Tensor Capture::base_of(const TraceTensor& view) {
  return make_tensor(view.storage_id(), nullptr, storages_[view.storage_id().index].value, env().pool().constant(0));
}

namespace {

constexpr uint8_t kCanary = 0xA5;

}  // namespace

// torch.tensor and similar functions fill an `empty` through data_ptr, unnoticed. A canary detects this: memory without
// the canary was written, and its contents become a constant of the program.
at::Tensor Capture::make_watched_empty(graph::ValueId value) {
  at::Tensor result = make_result(value);
  TraceTensor& trace = *TraceTensor::from(result);
  std::vector<int64_t> sizes, strides;
  for (const sym::ExprId e : trace.type().sizes) sizes.push_back(env().pool().const_value(e));
  for (const sym::ExprId e : trace.type().strides) strides.push_back(env().pool().const_value(e));
  at::Tensor memory;
  {
    StepAside aside;
    memory = at::detail::empty_strided_cpu(sizes, strides, to_torch(trace.type().dtype));
  }
  std::memset(memory.mutable_data_ptr(), kCanary, memory.storage().nbytes());
  trace.attach_memory(memory.storage(), sizes, strides);
  storages_[trace.storage_id().index].watched = memory;
  return result;
}

void Capture::settle_watched(Storage& storage) {
  if (!storage.watched.defined()) return;
  const at::Tensor memory = std::exchange(storage.watched, at::Tensor());
  const auto* bytes = static_cast<const uint8_t*>(memory.const_data_ptr());
  const size_t count = memory.storage().nbytes();
  if (std::all_of(bytes, bytes + count, [](uint8_t b) { return b == kCanary; })) return;
  StepAside aside;
  constants_.push_back(memory.clone());
  storage.value = graph_->add_constant(constant_geometry(constants_.back()), "");
  ++storage.version;
  written_.push_back(static_cast<uint32_t>(&storage - storages_.data()));
}

graph::ValueId Capture::parent_value(const Storage& storage, const ViewChain& link) {
  if (link.parent == nullptr) return storage.value;
  std::vector<graph::Arg> args = link.parent->args;
  args[0] = parent_value(storage, *link.parent);
  return append(link.parent->op, std::move(args), {link.parent->type})[0];
}

graph::ValueId Capture::memory_of(TraceTensor& tensor) {
  if (&tensor.capture() != this) abort_capture(BreakKind::UnguardedState, "a tensor of another capture");
  Storage& storage = storages_[tensor.storage_id().index];
  settle_watched(storage);
  if (tensor.version == storage.version) return tensor.value;
  if (tensor.chain() == nullptr) {
    tensor.value = storage.value;
  } else {
    std::vector<graph::Arg> args = tensor.chain()->args;
    args[0] = parent_value(storage, *tensor.chain());
    tensor.value = append(tensor.chain()->op, std::move(args), {tensor.chain()->type})[0];
  }
  tensor.version = storage.version;
  return tensor.value;
}

graph::ValueId Capture::read(const TraceTensor& tensor, graph::ValueId memory) {
  static const graph::OpId conj = graph::op_id("aten::conj_physical"), neg = graph::op_id("aten::neg");
  if (tensor.is_conj()) memory = call(conj, {memory})[0];
  return tensor.is_neg() ? call(neg, {memory})[0] : memory;
}

namespace {

bool decided(sym::ShapeEnv& env, sym::ExprId condition) {
  return env.evaluate(condition, [] { return current_reason(); }).value_or(false);
}

}  // namespace

bool Capture::starts_storage(const TraceTensor& tensor) {
  const Storage& storage = storages_[tensor.storage_id().index];
  if (storage.real_offset != 0) return false;
  if (storage.home == OutputSpec::Kind::Input) input_layouts_[storage.position].at_start = true;
  return true;
}

// ATen's test: compares the memory ranges of dense tensors; any other tensors pass.
bool Capture::overlaps_partly(const TraceTensor& target, const TraceTensor& read) {
  if (target.storage_id() != read.storage_id()) return false;
  const graph::TensorType &a = target.type(), &b = read.type();
  if (target.offset() == read.offset() && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides)
    return false;
  if (!geometry::is_non_overlapping_and_dense(env(), a.sizes, a.strides) ||
      !geometry::is_non_overlapping_and_dense(env(), b.sizes, b.strides))
    return false;
  sym::ExprPool& pool = env().pool();
  const auto counted = [&](sym::ExprId elements, DType dtype) {  // in bytes for different element sizes
    return byte_size(a.dtype) == byte_size(b.dtype) ? elements : pool.mul(elements, pool.constant(byte_size(dtype)));
  };
  const sym::ExprId a_begin = counted(target.offset(), a.dtype),
                    a_end = pool.add(a_begin, counted(geometry::numel(env(), a.sizes), a.dtype));
  const sym::ExprId b_begin = counted(read.offset(), b.dtype),
                    b_end = pool.add(b_begin, counted(geometry::numel(env(), b.sizes), b.dtype));
  if (decided(env(), pool.le(a_end, b_begin)) || decided(env(), pool.le(b_end, a_begin))) return false;
  const bool same_range = decided(env(), pool.logical_and(pool.eq(a_begin, b_begin), pool.eq(a_end, b_end)));
  return !same_range || a.strides != b.strides;
}

// For an operator with a result, the answer depends on the name alone and is cached.
static bool draws(graph::OpId op, const graph::Node& node) {
  thread_local std::vector<int8_t> known;  // by operator; 0: not yet known
  if (known.size() <= op.index) known.resize(op.index + 64);
  int8_t& found = known[op.index];
  if (found == 0) found = ops::draws(node) ? 1 : -1;
  return found > 0;
}

std::vector<graph::ValueId> Capture::append(graph::OpId op, std::vector<graph::Arg> args,
                                            std::vector<graph::TensorType> types) {
  for (const graph::TensorType& type : types)
    for (const sym::ExprId size : type.sizes)
      if (env().pool().is_const(size) && env().pool().const_value(size) < 0)
        abort_capture(BreakKind::InvalidArguments, "a result of negative size");
  if (any_unbacked_) assume_sizes(types);
  const graph::NodeId id = graph_->add_node(op, std::move(args), std::move(types));
  const graph::Node& node = graph_->node(id);
  if (backward_ != nullptr && in_part() && open_regions_of_autocast() != backward_->regions_of_autocast)
    backward_->in_own_casts.insert(id);
  if (!node.results.empty() && draws(op, node)) ++draws_;
  return node.results;
}

namespace {

// A written tensor keeps its layout, including the gaps of a piece of another tensor (aten::unsafe_split).
graph::ValueId laid_out(Capture& capture, graph::ValueId value, graph::ValueId like) {
  const graph::Graph& graph = capture.graph();
  const std::vector<sym::ExprId>&had = graph.type(like).strides, &has = graph.type(value).strides;
  const bool same = std::equal(had.begin(), had.end(), has.begin(), has.end(),
                               [&](sym::ExprId a, sym::ExprId b) { return capture.env().known_equal(a, b); });
  return same ? value : capture.call(graph::op_id("aten::copy"), {like, value, false})[0];
}

}  // namespace

void Capture::note_hidden_alias(const TraceTensor& source, const TraceTensor& result) {
  Storage& alias = storages_[result.storage_id().index];
  alias.hidden_alias = alias.ambiguous = storages_[source.storage_id().index].ambiguous = true;
}

void Capture::require_writable(const TraceTensor& tensor) const {
  const Storage& storage = storages_[tensor.storage_id().index];
  if (storage.ambiguous)
    abort_capture(BreakKind::AliasedWrite, "a write to memory that several arguments or parameters share");
  if (storage.home == OutputSpec::Kind::GraphOutput) return;
  // The program writes all of the caller's tensor, eager mode only the view: the tensor must not overlap itself.
  const graph::TensorType& whole = graph_->type(storage.first);
  if (!geometry::is_non_overlapping_and_dense(graph_->env(), whole.sizes, whole.strides) &&
      !geometry::decide_non_overlapping(graph_->env(), whole.sizes, whole.strides, [] { return current_reason(); }))
    abort_capture(BreakKind::AliasedWrite, "a write to a tensor whose elements share their memory");
}

void Capture::write(TraceTensor& tensor, graph::ValueId value) {
  Storage& storage = storages_[tensor.storage_id().index];
  require_writable(tensor);
  if (!possible_views_.empty()) guard_copies_of(tensor.storage_id().index);
  // Makes a written parameter an input proxy: a request for its memory must find the write done.
  if (use_guests_ && storage.version == 0 && storage.home == OutputSpec::Kind::Constant &&
      Guest::possible(storage.real))
    guests_.emplace_back(storage.real, lifted_.at(storage.real.unsafeGetTensorImpl()));
  settle_watched(storage);
  graph::ValueId current = scattered(tensor, read(tensor, value));
  // A write through a transposed view would leave the value transposed, and a value computed from an argument with gaps
  // has none.
  storage.value = current = laid_out(*this, current, storage.value);
  if (storage.first.index < current.index) notes_->lies_as[current] = storage.first;
  ++storage.version;
  written_.push_back(tensor.storage_id().index);
  if (tensor.chain() == nullptr) {
    tensor.value = current;
    tensor.version = storage.version;
  }
}

bool Capture::has_effects_since(const Done& before) const {
  const auto is_old = [&](uint32_t storage) {
    return storage < before.storages || storages_[storage].home != OutputSpec::Kind::GraphOutput;
  };
  return draws_ != before.draws ||
         std::any_of(written_.begin() + static_cast<long>(before.writes), written_.end(), is_old);
}

}  // namespace cresset::bridge
