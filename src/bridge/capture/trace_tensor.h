// The tensor which stands for a value while capturing: no memory, symbolic sizes, a view of a versioned storage.
#pragma once

#include <c10/core/TensorImpl.h>

#include <memory>
#include <optional>
#include <vector>

#include "bridge/aten/extent.h"
#include "bridge/capture/storage_id.h"
#include "graph/graph.h"

namespace cresset::bridge {

class Capture;

// Derivation of a view from its parent by a functional view operator. A chain leads from the base of a storage.
struct ViewChain {
  std::shared_ptr<const ViewChain> parent;  // nullptr: the parent is the base
  graph::OpId op;
  std::vector<graph::Arg> args;  // args[0] is the parent's value: filled in at replay
  graph::TensorType parent_type, type;
  // The views on which as_strided was called, outermost first. Elements outside of such a view get no gradient through
  // it, although the chain leads directly from the base: as_strided addresses the whole storage.
  std::vector<Extent> within;
};
using ViewChainPtr = std::shared_ptr<const ViewChain>;

class TraceTensor final : public c10::TensorImpl {
 public:
  TraceTensor(std::shared_ptr<Capture> capture, StorageId storage, ViewChainPtr chain, graph::ValueId value,
              uint32_t version, graph::TensorType type, sym::ExprId offset, c10::Device device);
  ~TraceTensor() override;

  // nullptr when the tensor is not a trace tensor (any more); an input proxy gives its proxy tensor. Costs a few
  // instructions for other tensors, because a key bit is tested first.
  static TraceTensor* from(const at::Tensor& tensor);

  Capture& capture() const { return *capture_; }
  const std::shared_ptr<Capture>& capture_ptr() const { return capture_; }
  StorageId storage_id() const { return storage_id_; }
  const ViewChainPtr& chain() const { return chain_; }
  const graph::TensorType& type() const { return type_; }
  sym::ExprId offset() const { return offset_; }

  // Sets the bits by which eager mode conjugates or negates a view when it is read (is_conj(), is_neg()). They are also
  // this tensor's dispatch keys. Memory has no such bits, so a tensor without a chain has none.
  void mark(bool conjugated, bool negated);

  // The tensor's present memory, without these bits; `version` is the storage version at the read.
  graph::ValueId value = {};
  uint32_t version = 0;
  uint64_t serial() const { return serial_; }  // creation order within a capture

  // In-place metadata changes (t_, unsqueeze_, set_data, out= resizing): takes over the identity of another trace
  // tensor.
  void become(const TraceTensor& other);

  c10::IntArrayRef sizes_custom() const override;
  c10::IntArrayRef strides_custom() const override;
  int64_t numel_custom() const override;
  int64_t storage_offset_custom() const override;
  int64_t dim_custom() const override { return static_cast<int64_t>(type_.sizes.size()); }
  int64_t size_custom(int64_t d) const override;
  c10::SymIntArrayRef sym_sizes_custom() const override;
  c10::SymIntArrayRef sym_strides_custom() const override;
  c10::SymInt sym_numel_custom() const override;
  c10::SymInt sym_storage_offset_custom() const override;
  c10::SymInt sym_size_custom(int64_t d) const override;
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override;
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override;
  bool is_strides_like_custom(at::MemoryFormat format) const override;
  c10::Device device_custom() const override { return *device_opt_; }
  // A request for memory ends the graph segment; afterwards the memory exists.
  bool has_storage() const override;
  const c10::Storage& storage() const override;
  const char* tensorimpl_type_name() const override { return "cresset::TraceTensor"; }
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version_counter,
                                                              bool allow_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version_counter,
                                                              bool allow_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& impl) override;

  // Gives the tensor real memory (a small concrete `empty` which code may fill behind the dispatcher).
  void attach_memory(c10::Storage storage, c10::IntArrayRef sizes, c10::IntArrayRef strides);

  // Makes this tensor an ordinary tensor with the memory and layout of `real`. Identity, autograd state and version
  // counter stay, so every holder in Python or C++ has the real tensor from now on.
  void settle(const at::Tensor& real);
  // Takes over the history and version counter of a fresh tensor.
  void take_history(const at::Tensor& of);
  bool settled() const { return capture_ == nullptr; }

 private:
  uint64_t serial_ = 0;
  friend class LiveTensors;       // live_position_
  friend class GradientRecorder;  // chain_
  c10::intrusive_ptr<TraceTensor> copy() const;
  void refresh_rank();
  void reset_caches();
  void reset_geometry();
  const std::vector<int64_t>& concrete(const std::vector<sym::ExprId>& exprs, std::vector<int64_t>& cache) const;
  Capture& asked() const;  // returns the capture; raises the original error for a tensor whose computation failed

  std::shared_ptr<Capture> capture_;
  StorageId storage_id_;
  size_t live_position_ = 0;  // in the capture's list of live tensors
  ViewChainPtr chain_;
  graph::TensorType type_;
  sym::ExprId offset_;
  mutable std::vector<int64_t> int_sizes_, int_strides_;
  mutable std::vector<c10::SymInt> sym_sizes_, sym_strides_;
};

// Dispatch keys of capture.
extern const c10::DispatchKey kTraceKey;
c10::DispatchKeySet without_trace_key(c10::DispatchKeySet keys);

}  // namespace cresset::bridge
