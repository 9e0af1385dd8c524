// Squares of two loops through shared memory. A warp reads neighbours of the tile loop, and later takes neighbours of
// the vector loop from shared memory.
#include "codegen/nvptx/emit_kernel.h"

namespace cresset::codegen::nvptx {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

// Elements from row to row of a square. Rows take an odd number of 4-byte words, so that the elements of a column lie
// in different banks.
int64_t pitch(int side, DType dtype) { return side + std::max<int64_t>(1, 4 / byte_size(dtype)); }

}  // namespace

Value* KernelEmitter::tile_slot(size_t i, Value* slot) {
  const DType dtype = kernel_.buffers[kernel_.scalars[i].buffer.index].dtype;
  if (tile_memory_[i] == nullptr) {
    const auto elements = static_cast<uint64_t>(schedule_.tile_side * pitch(schedule_.tile_side, dtype));
    auto* type = llvm::ArrayType::get(s_.memory_type(dtype), elements);
    tile_memory_[i] = new llvm::GlobalVariable(s_.module, type, /*isConstant=*/false,
                                               llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type), "tile",
                                               nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    tile_memory_[i]->setAlignment(llvm::Align(16));
  }
  return s_.ir.CreateGEP(s_.memory_type(dtype), tile_memory_[i], slot);
}

void KernelEmitter::tiles() {
  llvm::IRBuilder<>& ir = s_.ir;
  tile_memory_.assign(kernel_.scalars.size(), nullptr);
  compute_level(0, 0);
  const VarId vector = schedule_.loops[schedule_.vector].var, tile = schedule_.loops[schedule_.tile].var;
  std::vector<Digit> order;
  const auto square = [&](size_t loop) {
    Value* extent = index_.emit(schedule_.loops[loop].extent);
    Value* count =
        ir.CreateUDiv(ir.CreateAdd(extent, s_.index(schedule_.tile_side - 1)), s_.index(schedule_.tile_side));
    order.push_back({loop, count, nullptr, schedule_.tile_side});
  };
  square(schedule_.vector);
  square(schedule_.tile);
  for (size_t k = schedule_.loops.size(); k-- > 0;)
    if (k != schedule_.vector && k != schedule_.tile) order.push_back(digit(k));
  take_apart(sreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x), order);
  Value *corner = s_.vars.at(vector), *tile_corner = s_.vars.at(tile);
  s_.vars.erase(vector);
  s_.vars.erase(tile);
  compute_level(1, 0);
  load_tiles(corner, tile_corner);
  group_.barrier();
  const auto fits = [&](Value* at, size_t loop) {
    Value* end = ir.CreateAdd(at, s_.index(schedule_.tile_side));
    return ir.CreateICmpULE(end, index_.emit(schedule_.loops[loop].extent));
  };
  Value* whole = ir.CreateAnd(fits(corner, schedule_.vector), fits(tile_corner, schedule_.tile));
  when(whole, [&] { tile_points(corner, tile_corner, true); });
  when(ir.CreateNot(whole), [&] { tile_points(corner, tile_corner, false); });
}

// All loads before the first store: none waits for another. Coordinates past an end repeat the last ones.
void KernelEmitter::load_tiles(Value* corner, Value* tile_corner) {
  llvm::IRBuilder<>& ir = s_.ir;
  const VarId vector = schedule_.loops[schedule_.vector].var, tile = schedule_.loops[schedule_.tile].var;
  Value *x = sreg(Intrinsic::nvvm_read_ptx_sreg_tid_x), *y = sreg(Intrinsic::nvvm_read_ptx_sreg_tid_y);
  const auto last = [&](size_t loop) { return ir.CreateSub(index_.emit(schedule_.loops[loop].extent), s_.index(1)); };
  Value *last_vector = last(schedule_.vector), *last_tile = last(schedule_.tile);
  for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (!schedule_.tiled[i]) continue;
    const loop::Scalar& scalar = kernel_.scalars[i];
    const int64_t row = pitch(schedule_.tile_side, kernel_.buffers[scalar.buffer.index].dtype);
    std::vector<std::pair<Value*, Value*>> loaded;  // value, slot
    for (int down = 0; down < schedule_.tile_side; down += kTileThreadsY) {
      for (int along = 0; along < schedule_.tile_side; along += kTileThreadsX) {
        Value *r = ir.CreateAdd(y, s_.index(down)), *c = ir.CreateAdd(x, s_.index(along));
        const size_t scope = index_.scope();
        s_.vars[vector] = ir.CreateBinaryIntrinsic(Intrinsic::umin, ir.CreateAdd(corner, r), last_vector);
        s_.vars[tile] = ir.CreateBinaryIntrinsic(Intrinsic::umin, ir.CreateAdd(tile_corner, c), last_tile);
        Value* v = memory_.raw_load(scalar, schedule_.scalar_index[i]);
        index_.leave(scope);
        loaded.emplace_back(v, ir.CreateAdd(ir.CreateMul(r, s_.index(row)), c));
      }
    }
    for (const auto& [v, slot] : loaded)
      ir.CreateAlignedStore(v, tile_slot(i, slot), llvm::Align(v->getType()->getPrimitiveSizeInBits() / 8));
  }
}

void KernelEmitter::tile_points(Value* corner, Value* tile_corner, bool whole) {
  llvm::IRBuilder<>& ir = s_.ir;
  const size_t vector = schedule_.vector, tile = schedule_.tile;
  Value *x = sreg(Intrinsic::nvvm_read_ptx_sreg_tid_x), *y = sreg(Intrinsic::nvvm_read_ptx_sreg_tid_y);
  for (int down = 0; down < schedule_.tile_side; down += kTileThreadsY) {
    for (int along = 0; along < schedule_.tile_side; along += kTileThreadsX) {
      Value *r = ir.CreateAdd(x, s_.index(along)), *c = ir.CreateAdd(y, s_.index(down));
      Value *at = ir.CreateAdd(corner, r), *tile_at = ir.CreateAdd(tile_corner, c);
      Value* inside = nullptr;
      if (!whole)
        inside = ir.CreateAnd(ir.CreateICmpULT(at, index_.emit(schedule_.loops[vector].extent)),
                              ir.CreateICmpULT(tile_at, index_.emit(schedule_.loops[tile].extent)));
      const size_t scope = index_.scope();
      when(inside, [&] {
        s_.vars[schedule_.loops[vector].var] = at;
        s_.vars[schedule_.loops[tile].var] = tile_at;
        tile_point(r, c);
      });
      index_.leave(scope);
    }
  }
}

// One point: `row` and `column` are its place in the square.
void KernelEmitter::tile_point(Value* row, Value* column) {
  llvm::IRBuilder<>& ir = s_.ir;
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (!schedule_.live[i] || schedule_.depth[i] != 2) continue;
    if (!schedule_.tiled[i]) {
      s_.values[i] = compute({i});
      continue;
    }
    const DType dtype = kernel_.buffers[kernel_.scalars[i].buffer.index].dtype;
    Value* slot = ir.CreateAdd(ir.CreateMul(row, s_.index(pitch(schedule_.tile_side, dtype))), column);
    llvm::Type* type = s_.memory_type(dtype);
    Value* raw = ir.CreateAlignedLoad(type, tile_slot(i, slot), llvm::Align(type->getPrimitiveSizeInBits() / 8));
    s_.values[i] = memory_.from_memory(dtype, raw);
  }
  for (size_t i = 0; i < kernel_.stores.size(); ++i) memory_.store(kernel_.stores[i], schedule_.store_index[i], false);
}

}  // namespace cresset::codegen::nvptx
