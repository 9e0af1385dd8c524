// Scans: passes over a row in order. A carry holds the fold over all chunks before.
#include "codegen/nvptx/emit_kernel.h"

namespace cresset::codegen::nvptx {

using llvm::Value;
using loop::Op;

// All threads of the group take part in every round, since they wait for each other. A thread past the end computes the
// first chunk again; its chunk is neither folded nor stored.
void KernelEmitter::scan_pass(uint16_t pass) {
  llvm::IRBuilder<>& ir = s_.ir;
  for (const ScalarId id : schedule_.scans) {
    const int lanes = schedule_.shape == Shape::Rows ? 1 : lanes_;
    Value* identity = reduces_.identity(id, lanes).value;
    carries_[id] = reduces_.slot(identity->getType());
    ir.CreateStore(identity, carries_[id]);
  }
  while_below(s_.index(0), end_, [&](Value* base) {
    Value* at = ir.CreateAdd(base, member_);
    inside_ = ir.CreateICmpULT(at, end_);
    take_apart(ir.CreateSelect(inside_, at, s_.index(0)), inner_digits_);
    const int before = s_.lanes;
    s_.lanes = lanes_;
    compute_inside(schedule_.needed[pass]);
    if (pass < schedule_.analysis.stages) {
      s_.mask = s_.splat_mask(inside_);
      fold_all();
      end_round();
      s_.mask = nullptr;
    } else {
      store_points(pass, active_ == nullptr ? inside_ : ir.CreateAnd(inside_, active_));
    }
    s_.lanes = before;
    return ir.CreateAdd(base, members_);
  });
}

Value* KernelEmitter::scan(ScalarId id) {
  llvm::IRBuilder<>& ir = s_.ir;
  if (schedule_.shape == Shape::Rows) return scan_in_group(id);
  // A thread of columns walks down alone.
  llvm::AllocaInst* carry = carries_.at(id);
  Value* before = ir.CreateLoad(carry->getAllocatedType(), carry);
  Value* v = s_.splat(s_.value(s_.scalar(id).a));
  Value* out = reduces_.combine(s_.scalar(id), {before, nullptr}, {v, nullptr}).value;
  ir.CreateStore(out, carry);
  return out;
}

// Lanes in order, then the threads before, then the chunks before.
Value* KernelEmitter::scan_in_group(ScalarId id) {
  llvm::IRBuilder<>& ir = s_.ir;
  const loop::Scalar& scalar = s_.scalar(id);
  const auto combine = [&](Value* a, Value* b) { return reduces_.combine(scalar, {a, nullptr}, {b, nullptr}).value; };
  Value *identity = reduces_.identity(id, 1).value, *v = s_.splat(s_.value(scalar.a));
  std::vector<Value*> lanes;
  for (int lane = 0; lane < lanes_; ++lane) {
    Value* one = EmitState::is_vector(v) ? ir.CreateExtractElement(v, static_cast<uint64_t>(lane)) : v;
    one = ir.CreateSelect(inside_, one, identity);
    lanes.push_back(lanes.empty() ? one : combine(lanes.back(), one));
  }
  llvm::AllocaInst* carry = carries_.at(id);
  const GroupEmitter::Prefix prefix = group_.scan_rows(id, lanes.back());
  Value* chunks_before = ir.CreateLoad(carry->getAllocatedType(), carry);
  Value* start = combine(chunks_before, prefix.before);
  ir.CreateStore(combine(chunks_before, prefix.all), carry);
  Value* out = llvm::PoisonValue::get(v->getType());
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    Value* one = combine(start, lanes[lane]);
    out = lanes_ == 1 ? one : ir.CreateInsertElement(out, one, lane);
  }
  return out;
}

}  // namespace cresset::codegen::nvptx
