// Emits a kernel's function: the loop nest of its schedule around scalars, reductions and stores.
#pragma once

#include <functional>
#include <string>

#include "codegen/common/emit_reduce.h"
#include "codegen/cpu/cpu_ops.h"

namespace cresset::codegen::cpu {

struct EmitOptions {
  SymbolResolver resolver = nullptr;
  int vector_bits = 128;
  bool has_fma = false;     // fused multiply-add in hardware
  bool has_bf16 = false;    // AVX-512
  bool has_scalef = false;  // AVX-512
};

// Adds a KernelFn called `name` to `module`. The emitter reads the kernel's expression pool but never writes it.
// Kernels can therefore be emitted concurrently even when they share a pool.
void emit_kernel(const loop::Kernel& kernel, const Schedule& schedule, const EmitOptions& options,
                 const std::string& name, llvm::Module& module);

class KernelEmitter {
 public:
  KernelEmitter(const loop::Kernel& kernel, const Schedule& schedule, const EmitOptions& options, llvm::Module& module);
  void emit(const std::string& name);

 private:
  using Body = std::function<void(llvm::Value*)>;
  void prologue(llvm::Function* function);
  void start_items(llvm::Value* first);
  void next_item();
  void item();
  void vector_outer(llvm::Value* begin, llvm::Value* end);
  void tiles(llvm::Value* begin, llvm::Value* end);
  void squares(llvm::Value* first_row, llvm::Value* begin, llvm::Value* end);
  void turn_all_over(llvm::Value* columns);
  void turn_over(ScalarId load, llvm::Value* count, int most);
  std::vector<llvm::Value*> transpose(std::vector<llvm::Value*> rows);
  std::vector<llvm::Value*> transpose_wide(const std::vector<llvm::Value*>& rows);
  void row();
  void reduction_pass(uint16_t pass);
  void store_pass();

  // The inner loops from `k` on, around `body` (which reduces or stores).
  void inner_nest(size_t k, uint16_t pass);
  void sequential_loop(size_t k, uint16_t pass);
  void vector_loop(size_t k, uint16_t pass);
  void body(uint16_t pass);
  void end_runs(int lanes, size_t level);

  llvm::Value* compute(ScalarId id);
  void compute_level(uint16_t depth, uint16_t stage);  // row scalars and outer scalars
  void compute_inside(uint16_t depth, uint16_t pass);  // point scalars of a pass
  llvm::Value* spill_pointer(size_t spill);
  llvm::Value* inner_position(uint16_t depth);
  void for_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step, const Body& body);
  void for_runs(llvm::Value* begin, llvm::Value* end, int64_t step, int lanes, const Body& body);
  void with_lanes(int lanes, llvm::Value* mask, const std::function<void()>& body);
  llvm::Value* tail_mask(llvm::Value* start, llvm::Value* end, int lanes);
  llvm::Value* extent(size_t loop) { return extents_[loop]; }
  int wide_lanes() const { return schedule_.width * unroll_; }
  enum class Short { Never, Sometimes, Always };
  Short short_rows() const;
  void items(llvm::Value* begin, llvm::Value* end);
  bool runs_wanted() const;

  struct Digit {
    size_t loop;
    int64_t step;        // points of the loop in an item
    llvm::Value* count;  // number of values of the digit, at least 1
    llvm::AllocaInst* value;
  };

  const loop::Kernel& kernel_;
  const Schedule& schedule_;
  CpuState s_;
  IndexEmitter index_;
  MemoryEmitter memory_;
  CpuOps machine_;
  ScalarEmitter scalars_;
  ReduceEmitter reduces_;
  int unroll_ = 1;
  bool is_short_ = false;                  // emits the form for a vector loop of at most one vector
  std::vector<llvm::Value*> extents_;      // by loop
  std::vector<Digit> digits_;              // of the work item's number, fastest first
  llvm::Value* tile_row_ = nullptr;        // of the point being emitted
  std::vector<llvm::Value*> tile_memory_;  // by scalar: width x width elements of a transposed load
  std::vector<Accumulator> accumulators_;  // of the pass being emitted; for each reduction, widest first
};

}  // namespace cresset::codegen::cpu
