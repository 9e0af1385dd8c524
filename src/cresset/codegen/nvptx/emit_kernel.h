// A variant of a kernel as a function for NVPTX: threads and their loops around scalars, folds and stores.
#pragma once

#include <functional>
#include <string>

#include "codegen/common/emit_reduce.h"
#include "codegen/nvptx/emit_group.h"
#include "codegen/nvptx/emit_math.h"
#include "codegen/nvptx/launch.h"

namespace cresset::codegen::nvptx {

// Parameters of every variant, 8 bytes each: the buffers' addresses, the values of the kernel's size symbols, a
// multiplier for each of the schedule's divisors (magic_of), the address of the workspace, and two halves: the number
// of blocks that share an outer point (low), and the pass that this launch is to compute (high).
size_t parameter_count(const loop::Kernel& kernel, const Schedule& schedule);

// Most threads of a block of the variant.
int most_threads(const Schedule& schedule, Variant variant);

// nullptr, or the text of an operator that no code can be made for.
const char* unsupported(const loop::Kernel& kernel, const Schedule& schedule);

// Adds the variant's function, called `name`, to `module`. Reads the kernel's expression pool, never writes it.
void emit_kernel(const loop::Kernel& kernel, const Schedule& schedule, Variant variant, const std::string& name,
                 llvm::Module& module);

class KernelEmitter {
 public:
  KernelEmitter(const loop::Kernel& kernel, const Schedule& schedule, Variant variant, llvm::Module& module);
  void emit(const std::string& name);

 private:
  using Body = std::function<void(llvm::Value*)>;
  // A digit of a linear position, fastest first.
  struct Digit {
    size_t loop;
    llvm::Value* count;
    llvm::Value* magic;  // nullptr: none is known
    int lanes;           // points of the loop in a step
  };

  llvm::Function* declare(const std::string& name);
  llvm::Value* pointer(const loop::Buffer& buffer, llvm::Value* parameter);
  void prologue(llvm::Function* function);
  void set_magics(llvm::Function* function);
  std::vector<Digit> digits(bool inner);
  Digit digit(size_t loop);
  llvm::Value* chunks_of(size_t loop);
  llvm::Value* product(const std::vector<Digit>& digits);
  void take_apart(llvm::Value* linear, const std::vector<Digit>& digits);
  llvm::Value* sreg(llvm::Intrinsic::ID id);  // of index_bits

  void points();
  void points_at(llvm::Value* start, int lanes);
  void tail(llvm::Value* start);
  void tiles();
  void load_tiles(llvm::Value* corner, llvm::Value* tile_corner);
  void tile_points(llvm::Value* corner, llvm::Value* tile_corner, bool whole);
  void tile_point(llvm::Value* at, llvm::Value* slot);
  llvm::Value* tile_slot(size_t scalar, llvm::Value* slot);
  void rows();
  void leave_row_stores_to_one();
  void start_group();
  void start_splits(llvm::Value* chunks);
  bool keeps() const { return variant_ == Variant::Kept || variant_ == Variant::Shared; }
  bool may_split() const { return schedule_.may_split && !keeps(); }
  void reduction_pass(uint16_t pass);
  void store_pass();
  void row_stores();
  void chunk(llvm::Value* at, uint16_t pass);
  void kept_pass(uint16_t pass);
  void inner_pass(uint16_t pass);
  void scan_pass(uint16_t pass);
  llvm::Value* scan(ScalarId id);
  llvm::Value* scan_in_group(ScalarId id);
  std::vector<ReduceEmitter::Pair> own_part(uint16_t pass);
  std::vector<ReduceEmitter::Pair> left_parts();
  void leave_parts(const std::vector<ReduceEmitter::Pair>& values);
  llvm::Value* part_pointer(size_t word, llvm::Value* split, uint32_t lane);
  void for_part_words(const std::function<void(size_t word, size_t reduce, bool is_index)>& body);

  void compute_level(uint16_t depth, uint16_t stage);
  llvm::Value* compute(ScalarId id);
  void compute_inside(const std::vector<uint8_t>& needed);
  void compute_kept(uint16_t pass, int chunk);
  void compute_shared(uint16_t pass, llvm::Value* at);
  llvm::Value* shared_slot(size_t kept, llvm::Value* at);
  void fold_all();
  void end_round();
  void store_points(uint16_t pass, llvm::Value* condition);
  llvm::Value* stream(llvm::Value* begin, llvm::Value* end, llvm::Value* step, const Body& body);
  llvm::Value* while_below(llvm::Value* begin, llvm::Value* end, const std::function<llvm::Value*(llvm::Value*)>& body);
  void when(llvm::Value* condition, const std::function<void()>& body);
  llvm::BasicBlock* block(const char* name);

  const loop::Kernel& kernel_;
  const Schedule& schedule_;
  const Variant variant_;
  const int lanes_;
  GpuState s_;
  GpuIndexEmitter index_;
  MemoryEmitter memory_;
  GpuOps machine_;
  ScalarEmitter scalars_;
  ReduceEmitter reduces_;
  GroupEmitter group_;

  llvm::Value* workspace_ = nullptr;
  llvm::Value* splits_ = nullptr;  // i32
  llvm::Value* stage_ = nullptr;   // i32: the pass that this launch computes, when blocks share outer points
  llvm::Value* member_ = nullptr;  // of the group that shares an outer point
  llvm::Value* members_ = nullptr;
  llvm::Value* outer_ = nullptr;   // number of the outer point or chunk
  llvm::Value* outers_ = nullptr;  // how many there are
  int64_t rounds_ = 1;             // chunks whose loads are on their way at once
  llvm::Value* active_ = nullptr;  // i1; nullptr: always
  llvm::Value* begin_ = nullptr;   // inner chunks of this thread: from here...
  llvm::Value* end_ = nullptr;     // ... up to here, in steps of members_
  std::vector<Digit> inner_digits_;
  bool joins_ = false;           // the schedule's joined sums are computed with their maxima
  uint32_t launch_of_pass_ = 0;  // of several launches, the one that computes the pass
  std::vector<ScalarId> pass_reduces_;
  std::vector<Accumulator> accumulators_;                    // of the pass being emitted
  llvm::GlobalVariable* row_memory_ = nullptr;               // dynamic shared memory
  std::unordered_map<ScalarId, llvm::AllocaInst*> carries_;  // of scans, up to this chunk
  llvm::Value* inside_ = nullptr;                            // of a pass in order: this thread's chunk exists
  std::vector<llvm::GlobalVariable*> tile_memory_;           // by scalar
  std::vector<std::vector<llvm::AllocaInst*>> kept_memory_;  // [kept scalar][chunk]
};

}  // namespace cresset::codegen::nvptx
