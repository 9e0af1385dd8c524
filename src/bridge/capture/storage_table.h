// The memory behind the trace tensors of a capture: aliasing, versions, views, and the proxies of real tensors.
//
// Invariants: each trace tensor has one storage, and a view has the storage of its base. A storage's value is its
// contents after all writes so far; its version counts these writes. A tensor whose version is older reads its value
// anew from the storage.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bridge/capture/captured.h"
#include "bridge/capture/graph_recorder.h"
#include "bridge/capture/storage_id.h"
#include "bridge/symbolic/view_or_copy.h"

namespace cresset::bridge {

class History;  // autograd_history.h
class LiveTensors;
class TraceTensor;
struct ViewChain;

struct Storage {
  graph::ValueId value;
  uint32_t version = 0, first_version = 0;  // writes; the real tensor's counter (version_counters.cpp)
  OutputSpec::Kind home = OutputSpec::Kind::GraphOutput;
  uint32_t position = 0;
  at::Tensor watched;                   // real memory given out for an `empty`
  at::Tensor real;                      // the input or constant
  bool ambiguous = false;               // shares memory with another storage in an unmodelled way: must not be written
  bool hidden_alias = false;            // the value of a view which autograd knows as a new tensor
  bool required_grad = false;           // requires_grad at first sight
  const void* gradient_node = nullptr;  // grad_fn at first sight
  std::shared_ptr<const History> history;  // autograd history at first sight
  bool is_root = false;                    // written, and a root of the backward pass
  int64_t real_offset = 0;                 // storage offset of the real base
  graph::ValueId first;                    // the value before the first write
};

class StorageTable {
 public:
  StorageTable(GraphRecorder& recorder, const LiveTensors& live) : recorder_(recorder), live_(live) {}

  StorageId add(graph::ValueId value, OutputSpec::Kind home, uint32_t position);
  // Notes the memory of a real tensor. A second storage of the same memory makes both ambiguous.
  void note_memory(const at::Tensor& real, StorageId id);
  const Storage* of_memory(const at::Tensor& real) const;  // nullptr: no storage has it
  Storage& operator[](uint32_t index) { return storages_[index]; }
  const Storage& operator[](uint32_t index) const { return storages_[index]; }
  auto begin() { return storages_.begin(); }
  auto end() { return storages_.end(); }
  auto begin() const { return storages_.begin(); }
  auto end() const { return storages_.end(); }
  size_t size() const { return storages_.size(); }

  // real tensor -> proxy tensor
  std::unordered_map<c10::TensorImpl*, at::Tensor>& proxies() { return lifted_; }
  void use_guests() { use_input_proxies_ = true; }
  bool uses_guests() const { return use_input_proxies_; }
  std::vector<InputLayout>& input_layouts() { return input_layouts_; }

  // Whether the tensor lies in the caller's memory, possibly as a view of a larger tensor.
  bool is_callers(const TraceTensor& tensor) const;
  // Whether a kernel of the program will write the tensor's memory. Its strides are then exact, including the strides
  // of dimensions of size 1, which operators and callers choose freely.
  bool lays_out(const TraceTensor& tensor) const;
  void note_hidden_alias(const TraceTensor& source, const TraceTensor& result);
  // Whether the caller's storage begins with the base of this tensor; a positive answer is guarded.
  bool starts_storage(const TraceTensor& tensor);
  // Guards all strides of this tensor: a computation depends on them, so a caller's tensor must keep them.
  void hold_strides(const TraceTensor& tensor);
  // Called where a program reads the storage offset of the tensor.
  void hold_offset(const TraceTensor& tensor);
  // Storage offset of the caller's tensor.
  int64_t real_offset(StorageId id) const { return storages_[id.index].real_offset; }

  // ---- Writes

  // Aborts where Capture::write() would. Called before the written value is computed, since a random operator draws
  // only once.
  void require_writable(const TraceTensor& tensor) const;
  void note_write(uint32_t storage) { written_.push_back(storage); }
  const std::vector<uint32_t>& written() const { return written_; }
  // The base's contents after a write of `value` to the view's memory.
  graph::ValueId scattered(const TraceTensor& tensor, graph::ValueId value);
  // The present contents of the parent of a view.
  graph::ValueId parent_value(const Storage& storage, const ViewChain& link);
  // Gives real memory to the result of a small `empty`, which shows writes made behind the dispatcher.
  void watch(TraceTensor& trace);
  // Makes the contents of watched memory a constant of the program, if the memory was written.
  void settle_watched(Storage& storage);
  // Whether a write to `target` overwrites only a part of `read`, which eager mode refuses. The answer is guarded.
  bool overlaps_partly(const TraceTensor& target, const TraceTensor& read);

  // ---- Views which eager mode may make where the capture copies (possible_views.cpp)

  // Records that `copy` was made where eager mode may return a view of `source` (view_or_copy.h).
  void note_copy(const TraceTensor& source, const TraceTensor& copy);
  // Whether eager mode returns the caller's tensor `self` itself, for the hinted sizes, where the capture made
  // `result`. If so, a guard restricts the program to these sizes.
  bool is_given_back(const at::Tensor& self, const at::Tensor& result, const ViewOrCopy& choice);
  // Called before a write to `storage`: tensors which share memory in eager mode must share it here.
  void guard_copies_of(uint32_t storage);
  std::optional<AsView> as_view(const TraceTensor& trace, const std::unordered_set<uint32_t>& escaping);
  const std::shared_ptr<LayoutNotes>& notes() const { return notes_; }

  // ---- Version counters of the caller's tensors (version_counters.cpp)

  uint32_t counted_writes(const Storage& storage) const;
  // Storages whose version counters moved, and how far.
  std::vector<std::pair<uint32_t, uint32_t>> moved_counters() const;
  void count_writes(int times) const;  // adds `times` * writes to version counters; -1 undoes the writes' counts
  void set_versions(std::vector<OutputSpec>& specs, const std::vector<at::Tensor>& outputs,
                    const std::vector<bool>& given_as_view) const;

 private:
  graph::ValueId scatter(const ViewChain& link, graph::ValueId parent, graph::ValueId value);
  graph::ValueId scattered_whole(graph::ValueId value, const graph::TensorType& parent, graph::OpId view,
                                 std::vector<graph::Arg> args);
  bool lies_in_base(const TraceTensor& tensor) const;
  const PossibleView* possible_view(uint32_t storage) const;
  bool guard_copy(const PossibleView& view);
  std::optional<int64_t> specialized(sym::ExprId e);
  std::optional<std::vector<int64_t>> specialized(const std::vector<sym::ExprId>& exprs);
  bool is_alive(uint32_t storage);
  bool shows(const PossibleView& view, const std::unordered_set<uint32_t>& escaping) const;

  GraphRecorder& recorder_;
  const LiveTensors& live_;
  std::vector<Storage> storages_;
  std::vector<uint32_t> written_;  // storages, in order of the writes
  std::vector<PossibleView> possible_views_;
  std::shared_ptr<LayoutNotes> notes_ = std::make_shared<LayoutNotes>();
  std::vector<InputLayout> input_layouts_;
  std::unordered_map<c10::TensorImpl*, at::Tensor> lifted_;
  std::unordered_map<const void*, StorageId> storage_of_memory_;  // real StorageImpl -> storage
  bool use_input_proxies_ = false;
};

}  // namespace cresset::bridge
