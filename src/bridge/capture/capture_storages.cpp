// The storages of a capture: aliasing, writes, and memory that is written behind the dispatcher. Views:
// possible_views.cpp.
#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cstring>

#include "bridge/aten/dtypes.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/storage_table.h"
#include "bridge/capture/sym_node.h"
#include "bridge/symbolic/tensor_geometry.h"

namespace cresset::bridge {

StorageId StorageTable::add(graph::ValueId value, OutputSpec::Kind home, uint32_t position) {
  Storage& storage = storages_.emplace_back();
  storage.value = storage.first = value;
  storage.home = home;
  storage.position = position;
  return StorageId{static_cast<uint32_t>(storages_.size() - 1)};
}

static const void* storage_impl_of(const at::Tensor& real) {
  return real.has_storage() ? real.storage().unsafeGetStorageImpl() : nullptr;
}

void StorageTable::note_memory(const at::Tensor& real, StorageId id) {
  const void* const memory = storage_impl_of(real);
  if (memory == nullptr) return;
  const auto [it, fresh] = storage_of_memory_.try_emplace(memory, id);
  if (fresh) return;
  storages_[id.index].ambiguous = true;
  storages_[it->second.index].ambiguous = true;
}

const Storage* StorageTable::of_memory(const at::Tensor& real) const {
  const auto found = storage_of_memory_.find(storage_impl_of(real));
  return found != storage_of_memory_.end() ? &storages_[found->second.index] : nullptr;
}

bool StorageTable::is_callers(const TraceTensor& tensor) const {
  return storages_[tensor.storage_id().index].home != OutputSpec::Kind::GraphOutput;
}

static constexpr uint8_t kCanary = 0xA5;

// torch.tensor and similar functions fill an `empty` through data_ptr, unnoticed. A canary detects this: memory without
// the canary was written, and its contents become a constant of the program.
void StorageTable::watch(TraceTensor& trace) {
  std::vector<int64_t> sizes, strides;
  for (const sym::ExprId e : trace.type().sizes) sizes.push_back(recorder_.env().pool().const_value(e));
  for (const sym::ExprId e : trace.type().strides) strides.push_back(recorder_.env().pool().const_value(e));
  at::Tensor memory;
  {
    const Capture::StepAside aside;
    memory = at::detail::empty_strided_cpu(sizes, strides, to_torch(trace.type().dtype));
  }
  std::memset(memory.mutable_data_ptr(), kCanary, memory.storage().nbytes());
  trace.attach_memory(memory.storage(), sizes, strides);
  storages_[trace.storage_id().index].watched = memory;
}

void StorageTable::note_hidden_alias(const TraceTensor& source, const TraceTensor& result) {
  Storage& alias = storages_[result.storage_id().index];
  alias.hidden_alias = alias.ambiguous = storages_[source.storage_id().index].ambiguous = true;
}

void StorageTable::require_writable(const TraceTensor& tensor) const {
  const Storage& storage = storages_[tensor.storage_id().index];
  if (storage.ambiguous)
    abort_capture(BreakKind::AliasedWrite, "a write to memory that several arguments or parameters share");
  if (storage.home == OutputSpec::Kind::GraphOutput) return;
  // The program writes all of the caller's tensor, eager mode only the view: the tensor must not overlap itself.
  const graph::TensorType& whole = recorder_.graph().type(storage.first);
  if (!geometry::is_non_overlapping_and_dense(recorder_.graph().env(), whole.sizes, whole.strides) &&
      !geometry::decide_non_overlapping(recorder_.graph().env(), whole.sizes, whole.strides,
                                        [] { return current_reason(); }))
    abort_capture(BreakKind::AliasedWrite, "a write to a tensor whose elements share their memory");
}

bool StorageTable::starts_storage(const TraceTensor& tensor) {
  const Storage& storage = storages_[tensor.storage_id().index];
  if (storage.real_offset != 0) return false;
  if (storage.home == OutputSpec::Kind::Input) input_layouts_[storage.position].at_start = true;
  return true;
}

void StorageTable::settle_watched(Storage& storage) {
  if (!storage.watched.defined()) return;
  const at::Tensor memory = std::exchange(storage.watched, at::Tensor());
  const auto* bytes = static_cast<const uint8_t*>(memory.const_data_ptr());
  const size_t count = memory.storage().nbytes();
  if (std::all_of(bytes, bytes + count, [](uint8_t b) { return b == kCanary; })) return;
  const Capture::StepAside aside;
  recorder_.constants().push_back(memory.clone());
  storage.value = recorder_.graph().add_constant(recorder_.constant_geometry(recorder_.constants().back()), "");
  ++storage.version;
  written_.push_back(static_cast<uint32_t>(&storage - storages_.data()));
}

graph::ValueId StorageTable::parent_value(const Storage& storage, const ViewChain& link) {
  if (link.parent == nullptr) return storage.value;
  std::vector<graph::Arg> args = link.parent->args;
  args[0] = parent_value(storage, *link.parent);
  return recorder_.append(link.parent->op, std::move(args), {link.parent->type})[0];
}

static bool decided(sym::ShapeEnv& env, sym::ExprId condition) {
  return env.evaluate(condition, [] { return current_reason(); }).value_or(false);
}

// ATen's test: compares the memory ranges of dense tensors; any other tensors pass.
bool StorageTable::overlaps_partly(const TraceTensor& target, const TraceTensor& read) {
  if (target.storage_id() != read.storage_id()) return false;
  const graph::TensorType &a = target.type(), &b = read.type();
  if (target.offset() == read.offset() && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides)
    return false;
  if (!geometry::is_non_overlapping_and_dense(recorder_.env(), a.sizes, a.strides) ||
      !geometry::is_non_overlapping_and_dense(recorder_.env(), b.sizes, b.strides))
    return false;
  sym::ExprPool& pool = recorder_.env().pool();
  const auto counted = [&](sym::ExprId elements, DType dtype) {  // in bytes for different element sizes
    return byte_size(a.dtype) == byte_size(b.dtype) ? elements : pool.mul(elements, pool.constant(byte_size(dtype)));
  };
  const sym::ExprId a_begin = counted(target.offset(), a.dtype),
                    a_end = pool.add(a_begin, counted(geometry::numel(recorder_.env(), a.sizes), a.dtype));
  const sym::ExprId b_begin = counted(read.offset(), b.dtype),
                    b_end = pool.add(b_begin, counted(geometry::numel(recorder_.env(), b.sizes), b.dtype));
  if (decided(recorder_.env(), pool.le(a_end, b_begin)) || decided(recorder_.env(), pool.le(b_end, a_begin)))
    return false;
  const bool same_range = decided(recorder_.env(), pool.logical_and(pool.eq(a_begin, b_begin), pool.eq(a_end, b_end)));
  return !same_range || a.strides != b.strides;
}

}  // namespace cresset::bridge
