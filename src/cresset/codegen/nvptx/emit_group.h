// What threads that share an outer point tell each other: running values of reductions become one.
#pragma once

#include "codegen/common/emit_reduce.h"
#include "codegen/nvptx/gpu_state.h"

namespace cresset::codegen::nvptx {

class GroupEmitter {
 public:
  using Pair = ReduceEmitter::Pair;
  GroupEmitter(GpuState& state, ReduceEmitter& reduces) : s_(state), reduces_(reduces) {}

  // Of one pass's reductions: every thread of the group gets the values over all of its threads. All threads of a block
  // call it, at the same place.
  void across_rows(const std::vector<ScalarId>& reduces, std::vector<Pair>& values);
  void across_columns(const std::vector<ScalarId>& reduces, std::vector<Pair>& values);

  // Of a value of each thread: the fold over the threads before this one, and over all threads of the group.
  struct Prefix {
    llvm::Value *before, *all;
  };
  Prefix scan_rows(ScalarId scan, llvm::Value* v);

  void barrier() { s_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }
  // Words of 8 bytes that hold running values in memory: type-punned.
  llvm::Value* as_word(llvm::Value* v);
  llvm::Value* from_word(llvm::Value* word, llvm::Type* type);

 private:
  Pair butterfly(const loop::Scalar& reduce, Pair v);
  Pair joined(Pair a, llvm::BasicBlock* from_a, Pair b, llvm::BasicBlock* from_b);
  // Butterfly: from the thread whose number differs by exclusive or. Up: from the thread so many before. Index: from
  // that thread of the warp.
  enum class Shuffle : uint8_t { Butterfly, Up, Index };
  llvm::Value* shuffled(llvm::Value* v, Shuffle kind, llvm::Value* by);
  llvm::Value* shuffled_word(llvm::Value* i32, Shuffle kind, llvm::Value* by);
  Prefix scan_warp(ScalarId scan, llvm::Value* v, llvm::Value* lane, llvm::Value* last);
  llvm::Value* slot(llvm::Value* memory, llvm::Value* at);
  llvm::GlobalVariable* shared(int64_t words);
  size_t words_of(const std::vector<Pair>& values) const;

  GpuState& s_;
  ReduceEmitter& reduces_;
  llvm::GlobalVariable* shared_ = nullptr;
};

// Most threads of a block of columns, and their lanes: shared memory has room for so many.
inline constexpr int kColumnsThreads = 256;

}  // namespace cresset::codegen::nvptx
