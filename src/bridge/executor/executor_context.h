// A Program bound to a vector of symbol values: sizes evaluated, addresses planned, kernel arguments and ATen arguments
// laid out. A call patches the changed addresses and runs the tape. A context serves one call at a time.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/compile_options.h"
#include "bridge/device/cpu/result_allocator.h"
#include "bridge/device/device_memory.h"
#include "runtime/arena_plan.h"
#include "runtime/program.h"

namespace cresset::bridge {

class ExternKernel;
class FrozenWeights;
class GraphReplay;
class ReportWords;

// A tensor slot with its numbers evaluated.
struct BoundSlot {
  runtime::Home home;
  at::ScalarType dtype;
  uint32_t root;            // the slot which owns the memory; the slot itself unless a View
  int64_t byte_offset = 0;  // of element 0, relative to the root's element 0
  std::vector<int64_t> sizes, strides;
  int64_t numel = 0;
  const DeviceMemory* memory = nullptr;
  // The argument of ATen calls. For inputs, constants and fresh outputs: the tensor itself, set at each call. For any
  // other slot: a wrapper, made once, which follows the root's address.
  const at::Tensor* tensor = nullptr;
  at::Tensor wrapper;

  // Bytes from element 0 to the end of the last element.
  int64_t extent() const;
};

// The memory of a slot which is no view, and the pointers to update when its address changes.
struct BoundRoot {
  char* base = nullptr;                               // element 0
  std::vector<std::pair<void**, int64_t>> listeners;  // kernel arguments: base + offset
  c10::intrusive_ptr<c10::StorageImpl> storage;       // storage of the wrappers; does not own the memory
  int64_t storage_shift = 0;                          // bytes from base to the storage's first byte, <= 0
  uint32_t heir = runtime::TensorId::kNone;           // the arena slot which continues this slot's memory
  at::Tensor owner;  // keeps the memory alive: Fresh, Extern and adopted results, released inputs
};

struct ContextStats {
  int64_t restride_copies = 0;  // extern results copied because of unplanned strides
  int64_t adopted = 0;          // extern results whose memory replaced the planned memory
  int64_t recordings = 0;       // CUDA graphs
};

class BoundContext {
 public:
  BoundContext(const runtime::Program& program, const std::vector<at::Tensor>& constants,
               c10::ArrayRef<int64_t> symbols, FrozenWeights* frozen = nullptr,
               driver::CudaGraphs cuda_graphs = driver::CudaGraphs::Never);
  ~BoundContext();

  // Runs the program. `inputs` and the constants must stay alive during the run.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs);
  std::vector<at::Tensor> run_releasing(std::vector<at::Tensor> inputs);

  c10::ArrayRef<int64_t> symbols() const { return symbols_; }
  int64_t arena_bytes() const { return plan_.most(); }
  ContextStats& stats() { return stats_; }
  // Waits for the call's kernels, so that their reports of indices have arrived; not while the stream is recorded.
  void wait_for_reports() const;
  GraphReplay* graphs() { return graphs_.get(); }  // nullptr: none are wanted

  // ---- for extern calls
  int64_t size(runtime::SizeRef ref) const { return sizes_[ref.index]; }
  std::vector<int64_t> sizes(const std::vector<runtime::SizeRef>& refs) const;
  const BoundSlot& slot(runtime::TensorId id) const { return slots_[id.index]; }
  const at::Tensor& tensor(runtime::TensorId id) const { return *slots_[id.index].tensor; }
  // The planned memory of a result (home Arena, Fresh or View) as a tensor; allocates a Fresh one.
  const at::Tensor& planned(runtime::TensorId id);
  bool has_planned_memory(runtime::TensorId id) const { return slots_[id.index].home != runtime::Home::Extern; }
  // For PlaceResults. places(): the planned memory of results which an operator allocates itself. It must exclude an
  // operator which writes to given planned memory, as its further allocations could get the same memory. gaps(): the
  // memory free during the current step.
  PlaceResults::Places places(c10::ArrayRef<runtime::TensorId> results) const;
  PlaceResults::Places gaps() const;
  // Requests a gap after an operator whose allocations found no room. Returns true if one gap for all allocations may
  // reduce the memory of calls; later calls then get the gap if it does.
  bool want_gap(const PlaceResults& placed);
  // Whether the tensor lies in planned memory which no later step needs.
  bool dies_in_this_step(runtime::TensorId id) const;
  // Makes `result` the contents of the slot. Its memory replaces the planned memory if sizes and strides agree;
  // otherwise it is copied. `op` is named in errors.
  void adopt(runtime::TensorId id, at::Tensor result, std::string_view op);
  const std::string& location(const runtime::ExternCall& call) const { return program_.locations[call.location]; }
  const runtime::LaunchContext& launch_context() const { return launching_; }  // of the running call
  // The device of the arena. PlaceResults serves programs with an arena in host memory.
  c10::Device arena_device() const { return memory_.device(); }
  // The cache of packed layouts for a frozen constant; nullptr for any other tensor.
  FrozenWeights* frozen(runtime::TensorId id) const;
  // A key which identifies the frozen constant within the program.
  std::string frozen_key(runtime::TensorId id) const;

 private:
  friend class GraphReplay;  // another way to run the tape

  struct BoundLaunch {
    std::unique_ptr<runtime::BoundKernel> kernel;
    uint32_t position;
    const DeviceMemory* memory;                        // of the device on which it runs
    std::optional<runtime::ArenaPlan::Place> scratch;  // none: behind the arena
    const runtime::Launch* step;
  };
  struct BoundCopy {
    runtime::TensorId from, to;
    bool bump_version;
  };
  enum class StepKind : uint8_t { Launch, Extern, Copy, Release };
  struct BoundStep {
    StepKind kind;
    uint32_t index;
    uint32_t drop_begin = 0, drop_end = 0;    // drops_: roots whose owner is not needed after this step
    uint32_t fresh_begin = 0, fresh_end = 0;  // fresh_: roots to allocate before this step
    uint32_t position = 0;                    // counted without Release
  };

  // Binding (executor_bind.cpp).
  void bind_slot(uint32_t index);
  void bind_steps();
  std::byte* bind_launch(const runtime::Launch& launch, std::byte* params);  // returns the unused rest of the block
  void bind_copy(const runtime::Copy& copy);
  void find_drops();
  void need_tensor(runtime::TensorId id);
  void make_wrapper(uint32_t index);
  void place_arena();
  void use_plan(runtime::ArenaPlan plan);
  void make_gaps();
  void plan_storages();
  void plan_fresh();

  // Running (executor_run.cpp).
  void set_root(uint32_t root, char* base);
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, std::vector<at::Tensor>* released);
  void bind_call(c10::ArrayRef<at::Tensor> inputs);
  using Part = runtime::ArenaPlan::Part;
  void bind_arena(Part part, const ArenaBlock& arena);
  void own_inputs(std::vector<at::Tensor>& inputs);
  char* address(const runtime::ArenaPlan::Place& place) const {
    char* const base =
        place.host.valid() ? roots_[place.host.index].base : arena_bases_[static_cast<size_t>(place.part)];
    return base + place.offset;
  }
  char* arena_place(uint32_t root) const { return address(plan_.places[root]); }
  // nullptr: the operator allocates the result itself.
  char* planned_address(uint32_t root) const {
    if (slots_[root].home == runtime::Home::Arena) return arena_place(root);
    return roots_[root].owner.defined() ? roots_[root].base : nullptr;
  }
  uint32_t last_heir(uint32_t root) const;
  void allocate_fresh(uint32_t begin, uint32_t end);
  void allocate_host(uint32_t host);
  void place_scratch();
  void run_tape(std::optional<HeldArena> (&arenas)[3]);
  void hold_arena(std::optional<HeldArena>& held, Part part, int64_t bytes);
  void bind_one_arena(char* base);
  void run_step(const BoundStep& step);
  void run_launch(const BoundLaunch& launch);
  void* scratch_of(const BoundLaunch& launch) const;  // of a launch in the arena's memory
  void run_copy(const BoundCopy& copy);
  std::vector<at::Tensor> take_outputs();
  at::Tensor take_output(runtime::TensorId id);
  void copy_into(runtime::TensorId id, const at::Tensor& from);
  void end_call();

  const runtime::Program& program_;
  const std::vector<at::Tensor>& constants_;
  FrozenWeights* const frozen_;
  const DeviceMemory& memory_;            // of the arena
  const std::optional<c10::Device> gpu_;  // of the kernels that run on one
  runtime::LaunchContext launching_;      // of the running call
  std::vector<int64_t> symbols_, sizes_;
  std::vector<BoundSlot> slots_;
  std::vector<BoundRoot> roots_;  // by slot index; unused for views
  std::vector<uint32_t> arena_roots_, owners_;
  std::vector<bool> tensor_needed_;
  std::vector<std::byte> params_;  // of all launches
  std::vector<BoundLaunch> launches_;
  std::vector<std::unique_ptr<ExternKernel>> externs_;
  std::vector<BoundCopy> copies_;
  std::vector<BoundStep> steps_;
  runtime::ArenaPlan plan_;
  struct WantedGap {
    runtime::Scratch scratch;
    int64_t missed;  // bytes allocated beside the arena
  };
  std::vector<WantedGap> gaps_wanted_;
  std::vector<runtime::Scratch> gaps_made_;
  std::vector<uint32_t> gaps_asked_;  // steps which have requested a gap
  // an output, and the slot which lies in its memory until it is written
  std::vector<std::pair<uint32_t, uint32_t>> hosted_;
  uint32_t position_ = 0;   // of the running step
  uint32_t arena_end_ = 0;  // the step before which the arena is released
  std::vector<uint32_t> drops_, fresh_;
  bool has_host_steps_ = false;
  uint32_t fresh_unused_ = 0;  // the entries of fresh_ from here on are written by no step
  int64_t scratch_bytes_ = 0;
  int scratch_threads_ = 0;       // thread count for which scratch was placed
  uint64_t last_arenas_[3] = {};  // by arena part
  char* arena_bases_[3] = {};
  ContextStats stats_;
  std::unique_ptr<GraphReplay> graphs_;
  std::unique_ptr<ReportWords> reports_;  // nullptr: no kernel reports indices
};

}  // namespace cresset::bridge
