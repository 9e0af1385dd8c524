// Tiles of transposed access: see Schedule::tile.
#include <numeric>

#include "codegen/cpu/emit_kernel.h"

namespace cresset::codegen::cpu {

using llvm::BasicBlock;
using llvm::Value;

// Emits a block of the vector loop times a block of the tile loop, in squares.
void KernelEmitter::tiles(Value* begin, Value* end) {
  Value* first = s_.vars[schedule_.loops[schedule_.tile].var];
  if (schedule_.tile_block == schedule_.width) return squares(first, begin, end);
  Value* last = s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, s_.ir.CreateAdd(first, s_.i64(schedule_.tile_block)),
                                            extent(schedule_.tile));
  for_loop(first, last, s_.i64(schedule_.width), [&](Value* row) { squares(row, begin, end); });
}

// Emits `width` points of the tile loop. First the transposed loads are written to tile memory, then the points are
// computed as usual.
void KernelEmitter::squares(Value* first_row, Value* begin, Value* end) {
  const VarId row_var = schedule_.loops[schedule_.tile].var, vector_var = schedule_.loops[schedule_.vector].var;
  const int width = schedule_.width;
  Value* row_count = s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, s_.i64(width),
                                                 s_.ir.CreateSub(extent(schedule_.tile), first_row));
  for_loop(begin, end, s_.i64(width), [&](Value* v) {
    s_.vars[vector_var] = v;
    s_.vars[row_var] = first_row;
    turn_all_over(s_.ir.CreateSub(end, v));
    Value* mask = tail_mask(v, end, width);
    for_loop(s_.i64(0), row_count, s_.i64(1), [&](Value* row_in_tile) {
      tile_row_ = row_in_tile;
      s_.vars[row_var] = s_.ir.CreateAdd(first_row, row_in_tile);
      with_lanes(width, mask, [&] {
        compute_level(2, 0);
        row();
      });
    });
    s_.vars[row_var] = first_row;
  });
}

// Transposes `columns` points of the vector loop. If there are few, as in the last square of a row or in a short
// dimension, half of the vectors are not loaded.
void KernelEmitter::turn_all_over(Value* columns) {
  const int width = schedule_.width, half = width / 2;
  const auto turn = [&](int most) {
    Value* count = s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, columns, s_.i64(most));
    for (uint32_t i = 0; i < kernel_.scalars.size(); ++i)
      if (schedule_.tiled[i]) turn_over({i}, count, most);
  };
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent(schedule_.vector));
  if (half < 4 || (known != nullptr && known->getSExtValue() % width == 0)) return turn(width);
  if (known != nullptr && known->getSExtValue() <= half) return turn(half);
  llvm::Function* function = s_.ir.GetInsertBlock()->getParent();
  BasicBlock* few = BasicBlock::Create(s_.ir.getContext(), "few", function);
  BasicBlock* many = BasicBlock::Create(s_.ir.getContext(), "many", function);
  BasicBlock* after = BasicBlock::Create(s_.ir.getContext(), "turned", function);
  s_.ir.CreateCondBr(s_.ir.CreateICmpSLE(columns, s_.i64(half)), few, many);
  for (const auto& [block, most] : {std::pair(few, half), std::pair(many, width)}) {
    s_.ir.SetInsertPoint(block);
    const size_t scope = index_.scope();
    turn(most);
    index_.leave(scope);
    s_.ir.CreateBr(after);
  }
  s_.ir.SetInsertPoint(after);
}

// Loads up to `count` <= `most` vectors along the tile loop, a vector for each point of the vector loop. Writes their
// transpose to tile memory. Past the end the last vector is loaded again; these lanes are never read.
void KernelEmitter::turn_over(ScalarId id, Value* count, int most) {
  const loop::Scalar& load = kernel_[id];
  const int width = schedule_.width;
  const DType dtype = kernel_.buffers[load.buffer.index].dtype;
  llvm::Type* element = s_.memory_type(dtype);
  llvm::Type* type = s_.widened(element, width);
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  const IndexForm& form = schedule_.scalar_index[id.index];
  const Loop& tile = schedule_.loops[schedule_.tile];
  Value* mask = tail_mask(s_.vars[tile.var], extent(schedule_.tile), width);
  Value* base = s_.ir.CreateGEP(element, s_.buffers[load.buffer.index], index_.emit(form.expr));
  Value* step = index_.emit(form.coefficient);
  Value* last = s_.ir.CreateSub(count, s_.i64(1));
  std::vector<Value*> rows;
  for (int i = 0; i < most; ++i) {
    Value* point = s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, s_.i64(i), last);
    Value* pointer = s_.ir.CreateGEP(element, base, s_.ir.CreateMul(point, step));
    rows.push_back(s_.ir.CreateMaskedLoad(type, pointer, align, mask, llvm::Constant::getNullValue(type)));
  }
  rows = most == width ? transpose(std::move(rows)) : transpose_wide(rows);
  tile_memory_.resize(kernel_.scalars.size());
  BasicBlock& entry = s_.ir.GetInsertBlock()->getParent()->getEntryBlock();
  if (tile_memory_[id.index] == nullptr) {
    llvm::AllocaInst* memory = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(llvm::ArrayType::get(type, width));
    memory->setAlignment(llvm::Align(64));
    tile_memory_[id.index] = memory;
  }
  for (int i = 0; i < width; ++i)
    s_.ir.CreateAlignedStore(rows[static_cast<size_t>(i)],
                             s_.ir.CreateConstGEP1_64(type, tile_memory_[id.index], static_cast<uint64_t>(i)), align);
}

// Transposes half as many rows as they have lanes, as two squares side by side. The other half of the lanes is zero
// then.
std::vector<Value*> KernelEmitter::transpose_wide(const std::vector<Value*>& rows) {
  const int height = static_cast<int>(rows.size());
  std::vector<int> lanes(rows.size()), widened;
  std::vector<Value*> out;
  for (int lane = 0; lane < 2 * height; ++lane) widened.push_back(lane);
  for (int first = 0; first < 2 * height; first += height) {
    std::iota(lanes.begin(), lanes.end(), first);
    std::vector<Value*> square;
    for (Value* row : rows) square.push_back(s_.ir.CreateShuffleVector(row, row, lanes));
    for (Value* row : transpose(std::move(square)))
      out.push_back(s_.ir.CreateShuffleVector(row, llvm::Constant::getNullValue(row->getType()), widened));
  }
  return out;
}

// Swaps the off-diagonal halves of ever smaller squares.
std::vector<Value*> KernelEmitter::transpose(std::vector<Value*> rows) {
  const int width = static_cast<int>(rows.size());
  for (int d = width / 2; d >= 1; d /= 2) {
    std::vector<int> upper, lower;
    for (int lane = 0; lane < width; ++lane) {
      upper.push_back((lane & d) == 0 ? lane : width + lane - d);
      lower.push_back((lane & d) == 0 ? lane + d : width + lane);
    }
    for (int i = 0; i < width; ++i) {
      if ((i & d) != 0) continue;
      Value *a = rows[i], *b = rows[i + d];
      rows[i] = s_.ir.CreateShuffleVector(a, b, upper);
      rows[i + d] = s_.ir.CreateShuffleVector(a, b, lower);
    }
  }
  return rows;
}

}  // namespace cresset::codegen::cpu
