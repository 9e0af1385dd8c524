// A Program bound to one vector of symbol values: sizes evaluated, addresses planned, kernel arguments and ATen
// arguments laid out. A call patches the addresses that changed and runs the tape. Used by one call at a time.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bridge/device_memory.h"
#include "bridge/result_memory.h"
#include "runtime/arena_plan.h"
#include "runtime/program.h"

namespace cresset::bridge {

class ExternKernel;
class FrozenWeights;

// A tensor slot with its numbers evaluated.
struct BoundSlot {
  runtime::Home home;
  at::ScalarType dtype;
  uint32_t root;            // the slot whose memory this one lies in; itself unless a View
  int64_t byte_offset = 0;  // of element 0, from the root's element 0
  std::vector<int64_t> sizes, strides;
  int64_t numel = 0;
  // What ATen calls are given. Inputs, constants and fresh outputs: the tensor itself, set at each call. Others: a
  // wrapper that follows its root's address, made once.
  const at::Tensor* tensor = nullptr;
  at::Tensor wrapper;
};

// The memory of a slot that is no view, and who must hear when its address changes.
struct BoundRoot {
  char* base = nullptr;                               // element 0
  std::vector<std::pair<void**, int64_t>> listeners;  // kernel arguments: base + offset
  c10::intrusive_ptr<c10::StorageImpl> storage;       // of the wrappers; does not own the memory
  int64_t storage_shift = 0;                          // bytes from base to the storage's first byte, <= 0
  uint32_t heir = runtime::TensorId::kNone;           // the arena slot that continues this one's memory
  at::Tensor owner;  // Fresh, Extern and adopted results, inputs that are let go: keeps the memory
};

struct ContextStats {
  int64_t restride_copies = 0;  // extern results copied because their strides were not the planned ones
  int64_t adopted = 0;          // extern results whose memory took the place of the planned memory
};

class BoundContext {
 public:
  BoundContext(const runtime::Program& program, const std::vector<at::Tensor>& constants,
               c10::ArrayRef<int64_t> symbols, FrozenWeights* frozen = nullptr);
  ~BoundContext();

  // Runs the program. `inputs` and the constants must stay alive meanwhile.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs);
  std::vector<at::Tensor> run_releasing(std::vector<at::Tensor> inputs);

  c10::ArrayRef<int64_t> symbols() const { return symbols_; }
  int64_t arena_bytes() const { return plan_.most(); }
  ContextStats& stats() { return stats_; }

  // ---- for extern calls
  int64_t size(runtime::SizeRef ref) const { return sizes_[ref.index]; }
  std::vector<int64_t> sizes(const std::vector<runtime::SizeRef>& refs) const;
  const BoundSlot& slot(runtime::TensorId id) const { return slots_[id.index]; }
  const at::Tensor& tensor(runtime::TensorId id) const { return *slots_[id.index].tensor; }
  // The planned memory of a result (home Arena, Fresh or View) as a tensor; allocates a Fresh one.
  const at::Tensor& planned(runtime::TensorId id);
  bool has_planned_memory(runtime::TensorId id) const { return slots_[id.index].home != runtime::Home::Extern; }
  // For PlaceResults: the planned memory of results that an operator allocates itself (not of one that is given planned
  // memory to write to: what it allocates besides could get the same), and what is free during the current step.
  PlaceResults::Places places(c10::ArrayRef<runtime::TensorId> results) const;
  PlaceResults::Places gaps() const;
  // After an operator that asked for bytes which no gap had room for. True: with one gap for all that it asked for,
  // calls may need less memory; the next ones have it if they do.
  bool want_gap(const PlaceResults& placed);
  // Whether the tensor lies in planned memory that nobody needs after the current step.
  bool dies_in_this_step(runtime::TensorId id) const;
  // `result` is what the slot holds from now on: its memory takes the planned memory's place when sizes and strides
  // agree, otherwise it is copied. `op` is named in errors.
  void adopt(runtime::TensorId id, at::Tensor result, std::string_view op);
  int threads() const { return launching_.host_threads; }
  // Where the tensor is a constant that stays as it is: what keeps it in the layouts of libraries. nullptr otherwise.
  FrozenWeights* frozen(runtime::TensorId id) const;
  // Of such a tensor: tells it from others of the program.
  std::string frozen_key(runtime::TensorId id) const;

 private:
  struct BoundLaunch {
    std::unique_ptr<runtime::BoundKernel> kernel;
    uint32_t position;
    std::optional<runtime::ArenaPlan::Place> scratch;  // none: behind the arena
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
    uint32_t fresh_begin = 0, fresh_end = 0;  // fresh_: roots to allocate before it
    uint32_t position = 0;                    // counted without Release
  };

  // Binding (executor_bind.cpp).
  void bind_slot(uint32_t index);
  void bind_steps();
  std::byte* bind_launch(const runtime::Launch& launch, std::byte* params);  // returns what is left of the block
  void bind_copy(const runtime::Copy& copy);
  void bind_extern(const runtime::ExternCall& call);
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
  // nullptr: a result that is allocated by whoever makes it.
  char* planned_address(uint32_t root) const {
    if (slots_[root].home == runtime::Home::Arena) return arena_place(root);
    return roots_[root].owner.defined() ? roots_[root].base : nullptr;
  }
  uint32_t last_heir(uint32_t root) const;
  void allocate_fresh(uint32_t begin, uint32_t end);
  void allocate_host(uint32_t host);
  void place_scratch();
  void run_step(const BoundStep& step);
  void run_launch(const BoundLaunch& launch);
  void run_copy(const BoundCopy& copy);
  std::vector<at::Tensor> take_outputs();
  at::Tensor take_output(runtime::TensorId id);
  void copy_into(runtime::TensorId id, const at::Tensor& from);
  void end_call();

  const runtime::Program& program_;
  const std::vector<at::Tensor>& constants_;
  FrozenWeights* const frozen_;
  const DeviceMemory& memory_;
  runtime::LaunchContext launching_;  // of the call that runs
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
    int64_t missed;  // bytes that were allocated beside the arena
  };
  std::vector<WantedGap> gaps_wanted_;
  std::vector<runtime::Scratch> gaps_made_;
  std::vector<uint32_t> gaps_asked_;                   // steps
  std::vector<std::pair<uint32_t, uint32_t>> hosted_;  // an output, and what lies in its memory until it is written
  uint32_t position_ = 0;                              // of the step that runs
  uint32_t arena_end_ = 0;                             // the step before which the arena is given back
  std::vector<uint32_t> drops_, fresh_;
  uint32_t fresh_unused_ = 0;  // fresh_ from here on: what no step writes
  int64_t scratch_bytes_ = 0;
  int scratch_threads_ = 0;       // that scratch was placed for
  uint64_t last_arenas_[3] = {};  // by part
  char* arena_bases_[3] = {};
  ContextStats stats_;
};

}  // namespace cresset::bridge
