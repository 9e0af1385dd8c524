#include "codegen/common/emit_scalar.h"

#include <limits>

#include "loop/scalar_eval.h"

namespace cresset::codegen {

using llvm::CmpInst;
using llvm::Value;
using llvm::Intrinsic::ID;
using loop::Op;
namespace Intrinsic = llvm::Intrinsic;

Value* ScalarEmitter::emit(ScalarId id) {
  const loop::Scalar& scalar = s_.scalar(id);
  const IndexForm& form = s_.plan.scalar_index[id.index];
  if (scalar.op == Op::Const) return constant(scalar);
  if (scalar.op == Op::Size) return machine_.size(form);
  if (scalar.op == Op::Load) return machine_.load(scalar, form);
  if (scalar.op == Op::Scan) return s_.value(scalar.a);  // over one point: backends emit those over loops
  if (scalar.op == Op::Philox) return philox(scalar);
  if (Value* known = against_bound(scalar)) return known;
  Value* operands[3] = {};
  const ScalarId ids[3] = {scalar.a, scalar.b, scalar.c};
  bool vector = false;
  for (int i = 0; i < 3; ++i) {
    if (!ids[i].valid()) continue;
    operands[i] = s_.value(ids[i]);
    vector |= EmitState::is_vector(operands[i]);
  }
  for (Value*& operand : operands)
    if (operand != nullptr && vector) operand = s_.splat(operand);
  return compute(scalar, s_.scalar(scalar.a).dtype, operands);
}

// Compares neighbouring positions with a bound shared by all lanes, as in masks. The lanes' indices are compared, in 32
// bits, with the distance of the bound from lane 0.
Value* ScalarEmitter::against_bound(const loop::Scalar& scalar) {
  if (s_.lanes == 1 || scalar.op < Op::Eq || scalar.op > Op::Ge) return nullptr;
  for (const bool swapped : {false, true}) {
    const ScalarId line = swapped ? scalar.b : scalar.a;
    Value* bound = s_.value(swapped ? scalar.a : scalar.b);
    Value* first = nullptr;
    if (s_.scalar(line).op != Op::Size || s_.scalar(line).dtype != DType::I64 || EmitState::is_vector(bound)) continue;
    if (index_.access(s_.plan.scalar_index[line.index], first) != IndexEmitter::Access::Contiguous) continue;
    Value* apart =
        s_.ir.CreateBinaryIntrinsic(Intrinsic::ssub_sat, bound, s_.widened_index(first));  // the bound may be data
    apart = s_.ir.CreateBinaryIntrinsic(Intrinsic::smin, apart, s_.i64(s_.lanes));
    apart = s_.ir.CreateBinaryIntrinsic(Intrinsic::smax, apart, s_.i64(-1));
    apart = s_.splat(s_.ir.CreateTrunc(apart, s_.ir.getInt32Ty()));
    Value* lane = s_.ir.CreateTrunc(s_.iota(), apart->getType());
    return swapped ? comparison(scalar.op, DType::I32, apart, lane) : comparison(scalar.op, DType::I32, lane, apart);
  }
  return nullptr;
}

// The four words of a block, as i32. Operands are i64, all plain or all vectors of one length.
std::array<Value*, 4> ScalarEmitter::philox_words(Value* seed, Value* stream, Value* counter) {
  llvm::IRBuilder<>& ir = s_.ir;
  llvm::Type* narrow = counter->getType()->getWithNewType(ir.getInt32Ty());
  const auto low = [&](Value* v) { return ir.CreateTrunc(v, narrow); };
  const auto high = [&](Value* v) { return low(ir.CreateLShr(v, s_.constant_int_like(v, 32))); };
  std::array<Value*, 4> words{low(counter), high(counter), low(stream), high(stream)};
  Value* keys[] = {low(seed), high(seed)};
  for (int round = 0; round < 10; ++round) {
    Value* products[2];
    for (size_t i = 0; i < 2; ++i) {
      Value* wide = ir.CreateZExt(words[2 * i], counter->getType());
      products[i] = ir.CreateMul(wide, s_.constant_int_like(wide, loop::kPhiloxMultipliers[i]), "", /*HasNUW=*/true);
    }
    words = {ir.CreateXor(ir.CreateXor(high(products[1]), words[1]), keys[0]), low(products[1]),
             ir.CreateXor(ir.CreateXor(high(products[0]), words[3]), keys[1]), low(products[0])};
    for (size_t i = 0; i < 2; ++i)
      keys[i] = ir.CreateAdd(keys[i], s_.constant_int_like(keys[i], static_cast<int32_t>(loop::kPhiloxKeySteps[i])));
  }
  return words;
}

// Four lanes that have the numbers of a block, in order, share the block.
Value* ScalarEmitter::philox(const loop::Scalar& scalar) {
  llvm::IRBuilder<>& ir = s_.ir;
  Value *seed = s_.value(scalar.a), *stream = s_.value(scalar.b), *position = s_.value(scalar.c);
  const auto each = [&]() -> Value* {
    const bool vector = EmitState::is_vector(seed) || EmitState::is_vector(stream) || EmitState::is_vector(position);
    const auto spread = [&](Value* v) { return vector ? s_.splat(v) : v; };
    Value* at = spread(position);
    const auto words = philox_words(spread(seed), spread(stream), ir.CreateLShr(at, s_.constant_int_like(at, 2)));
    Value* which = ir.CreateAnd(at, s_.constant_int_like(at, 3));
    Value* out = words[3];
    for (int i = 3; i-- > 0;)
      out = ir.CreateSelect(ir.CreateICmpEQ(which, s_.constant_int_like(which, i)), words[static_cast<size_t>(i)], out);
    return ir.CreateZExt(out, at->getType());
  };
  // Positions made of bits: an element takes several numbers of a block.
  const Op made_by = s_.scalar(scalar.c).op;
  const bool takes_several = made_by == Op::BitAnd || made_by == Op::BitOr;
  if (!EmitState::is_vector(position) || s_.lanes % 4 != 0 || EmitState::is_vector(seed) || takes_several)
    return each();
  std::vector<int> first;  // of each four lanes
  for (int lane = 0; lane < s_.lanes; ++lane) first.push_back(lane & ~3);
  Value* lane = ir.CreateIntCast(s_.iota(), position->getType(), /*isSigned=*/true);
  Value* starts = ir.CreateAnd(ir.CreateShuffleVector(position, first), s_.constant_int_like(position, ~3));
  Value* shared = ir.CreateICmpEQ(position, ir.CreateOr(starts, ir.CreateAnd(lane, s_.constant_int_like(position, 3))));
  if (EmitState::is_vector(stream))
    shared = ir.CreateAnd(shared, ir.CreateICmpEQ(stream, ir.CreateShuffleVector(stream, first)));
  return index_.where(ir.CreateAndReduce(shared), [&] { return philox_blocks(seed, stream, position); }, each);
}

Value* ScalarEmitter::philox_blocks(Value* seed, Value* stream, Value* position) {
  llvm::IRBuilder<>& ir = s_.ir;
  Value* out = llvm::PoisonValue::get(s_.widened(ir.getInt64Ty(), s_.lanes));
  for (int lane = 0; lane < s_.lanes; lane += 4) {
    const auto at = [&](Value* v) {
      return EmitState::is_vector(v) ? ir.CreateExtractElement(v, static_cast<uint64_t>(lane)) : v;
    };
    const auto words = philox_words(seed, at(stream), ir.CreateLShr(at(position), 2));
    for (uint64_t i = 0; i < 4; ++i)
      out = ir.CreateInsertElement(out, ir.CreateZExt(words[i], ir.getInt64Ty()), static_cast<uint64_t>(lane) + i);
  }
  return out;
}

Value* ScalarEmitter::constant(const loop::Scalar& scalar) {
  llvm::Type* type = s_.register_type(scalar.dtype);
  if (is_float(scalar.dtype)) return llvm::ConstantFP::get(type, scalar.number);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(scalar.integer), /*isSigned=*/!is_unsigned(scalar.dtype));
}

Value* ScalarEmitter::compute(const loop::Scalar& scalar, DType from, Value* const* v) {
  if (scalar.op == Op::Cast) return cast(from, scalar.dtype, v[0]);
  if (scalar.op == Op::BitCast) return bit_cast(from, scalar.dtype, v[0]);
  if (scalar.op == Op::RoundTo) return machine_.round_to(scalar.round, v[0]);
  if (scalar.op == Op::Select) return s_.ir.CreateSelect(v[0], v[1], v[2]);
  if (scalar.op >= Op::Eq && scalar.op <= Op::Ge) return comparison(scalar.op, from, v[0], v[1]);
  if (scalar.op == Op::IsNan) return s_.ir.CreateFCmpUNO(v[0], v[0]);
  if (scalar.op == Op::IsInf) {
    Value* magnitude = s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, v[0]);
    return s_.ir.CreateFCmpOEQ(magnitude, s_.constant_like(v[0], std::numeric_limits<double>::infinity()));
  }
  if (scalar.op == Op::Fma) {
    if (!is_float(from)) return s_.ir.CreateAdd(s_.ir.CreateMul(v[0], v[1]), v[2]);
    return s_.ir.CreateIntrinsic(v[0]->getType(), Intrinsic::fma, {v[0], v[1], v[2]});
  }
  if (is_float(from)) return v[1] == nullptr ? float_unary(scalar, v[0]) : float_binary(scalar, v[0], v[1]);
  return v[1] == nullptr ? integer_unary(scalar, v[0]) : integer_binary(scalar, v[0], v[1]);
}

// Results of out-of-range conversions are unspecified; freeze keeps the undefined value from spreading. Types under 32
// bits are converted through i32, as in scalar code on x86 and Arm.
Value* ScalarEmitter::cast(DType from, DType to, Value* v) {
  llvm::Type* type = v->getType()->getWithNewType(s_.register_type(to));
  if (to == DType::Bool)
    return is_float(from) ? s_.ir.CreateFCmpUNE(v, s_.constant_like(v, 0))
                          : s_.ir.CreateICmpNE(v, s_.constant_int_like(v, 0));
  if (is_float(to)) {
    if (is_float(from)) return s_.ir.CreateFPCast(v, type);
    return is_unsigned(from) ? s_.ir.CreateUIToFP(v, type) : s_.ir.CreateSIToFP(v, type);
  }
  if (!is_float(from)) return s_.ir.CreateIntCast(v, type, /*isSigned=*/!is_unsigned(from));
  llvm::Type* whole = to == DType::I64 ? type : v->getType()->getWithNewType(s_.ir.getInt32Ty());
  return s_.ir.CreateIntCast(s_.ir.CreateFreeze(s_.ir.CreateFPToSI(v, whole)), type, /*isSigned=*/true);
}

Value* ScalarEmitter::bit_cast(DType from, DType to, Value* v) {
  if (from == DType::Bool) v = s_.ir.CreateZExt(v, v->getType()->getWithNewType(s_.ir.getInt8Ty()));
  if (to == DType::Bool) return s_.ir.CreateICmpNE(v, s_.constant_int_like(v, 0));
  return s_.ir.CreateBitCast(v, v->getType()->getWithNewType(s_.register_type(to)));
}

Value* ScalarEmitter::comparison(Op op, DType from, Value* a, Value* b) {
  const bool real = is_float(from), u = is_unsigned(from);
  auto make = [&](CmpInst::Predicate f, CmpInst::Predicate s, CmpInst::Predicate un) {
    return real ? s_.ir.CreateFCmp(f, a, b) : s_.ir.CreateICmp(u ? un : s, a, b);
  };
  switch (op) {
    case Op::Eq:
      return make(CmpInst::FCMP_OEQ, CmpInst::ICMP_EQ, CmpInst::ICMP_EQ);
    case Op::Ne:
      return make(CmpInst::FCMP_UNE, CmpInst::ICMP_NE, CmpInst::ICMP_NE);
    case Op::Lt:
      return make(CmpInst::FCMP_OLT, CmpInst::ICMP_SLT, CmpInst::ICMP_ULT);
    case Op::Le:
      return make(CmpInst::FCMP_OLE, CmpInst::ICMP_SLE, CmpInst::ICMP_ULE);
    case Op::Gt:
      return make(CmpInst::FCMP_OGT, CmpInst::ICMP_SGT, CmpInst::ICMP_UGT);
    case Op::Ge:
      return make(CmpInst::FCMP_OGE, CmpInst::ICMP_SGE, CmpInst::ICMP_UGE);
    default:
      CRESSET_CHECK(false, "not a comparison");
  }
}

Value* ScalarEmitter::sign(DType dtype, Value* a) {
  if (is_float(dtype)) {
    Value* zero = s_.constant_like(a, 0);
    Value* up = s_.ir.CreateSelect(s_.ir.CreateFCmpOGT(a, zero), s_.constant_like(a, 1), zero);
    return s_.ir.CreateSelect(s_.ir.CreateFCmpOLT(a, zero), s_.constant_like(a, -1), up);
  }
  Value* zero = s_.constant_int_like(a, 0);
  if (is_unsigned(dtype)) return s_.ir.CreateZExt(s_.ir.CreateICmpNE(a, zero), a->getType());
  Value* up = s_.ir.CreateZExt(s_.ir.CreateICmpSGT(a, zero), a->getType());
  return s_.ir.CreateOr(up, s_.ir.CreateSExt(s_.ir.CreateICmpSLT(a, zero), a->getType()));
}

Value* ScalarEmitter::float_unary(const loop::Scalar& scalar, Value* a) {
  switch (scalar.op) {
    case Op::Neg:
      return s_.ir.CreateFNeg(a);
    case Op::Abs:
      return s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, a);
    case Op::Sign:
      return sign(scalar.dtype, a);
    case Op::Sqrt:
      return s_.ir.CreateUnaryIntrinsic(Intrinsic::sqrt, a);
    case Op::Rsqrt:
      return s_.ir.CreateFDiv(s_.constant_like(a, 1), s_.ir.CreateUnaryIntrinsic(Intrinsic::sqrt, a));
    case Op::Floor:
      return s_.ir.CreateUnaryIntrinsic(Intrinsic::floor, a);
    case Op::Ceil:
      return s_.ir.CreateUnaryIntrinsic(Intrinsic::ceil, a);
    case Op::Trunc:
      return s_.ir.CreateUnaryIntrinsic(Intrinsic::trunc, a);
    case Op::Round:
      return s_.ir.CreateUnaryIntrinsic(Intrinsic::roundeven, a);
    default:
      return machine_.math(scalar.op, {a});
  }
}

Value* ScalarEmitter::extreme(bool greatest, DType dtype, Value* a, Value* b) {
  if (!is_float(dtype)) {
    const ID id = is_unsigned(dtype) ? (greatest ? Intrinsic::umax : Intrinsic::umin)
                                     : (greatest ? Intrinsic::smax : Intrinsic::smin);
    return s_.ir.CreateBinaryIntrinsic(id, a, b);
  }
  // The sign of a zero result is unspecified: a specified sign would double the cost.
  llvm::FastMathFlags flags;
  flags.setNoSignedZeros();
  llvm::IRBuilder<>::FastMathFlagGuard guard(s_.ir);
  s_.ir.setFastMathFlags(flags);
  return s_.ir.CreateBinaryIntrinsic(greatest ? Intrinsic::maximum : Intrinsic::minimum, a, b);
}

Value* ScalarEmitter::remainder(Value* a, Value* b) {
  Value* zero = s_.constant_like(a, 0);
  Value* m = machine_.fmod(a, b);
  Value* signs_differ = s_.ir.CreateXor(s_.ir.CreateFCmpOLT(b, zero), s_.ir.CreateFCmpOLT(m, zero));
  Value* adjust = s_.ir.CreateAnd(s_.ir.CreateFCmpUNE(m, zero), signs_differ);
  return s_.ir.CreateSelect(adjust, s_.ir.CreateFAdd(m, b), m);
}

Value* ScalarEmitter::float_binary(const loop::Scalar& scalar, Value* a, Value* b) {
  switch (scalar.op) {
    case Op::Add:
      return s_.ir.CreateFAdd(a, b);
    case Op::Sub:
      return s_.ir.CreateFSub(a, b);
    case Op::Mul:
      return s_.ir.CreateFMul(a, b);
    case Op::Div:
      return s_.ir.CreateFDiv(a, b);
    case Op::Fmod:
      return machine_.fmod(a, b);
    case Op::Remainder:
      return remainder(a, b);
    case Op::CopySign:
      return s_.ir.CreateBinaryIntrinsic(Intrinsic::copysign, a, b);
    case Op::Maximum:
      return extreme(/*greatest=*/true, scalar.dtype, a, b);
    case Op::Minimum:
      return extreme(/*greatest=*/false, scalar.dtype, a, b);
    case Op::Fmax:
      return s_.ir.CreateBinaryIntrinsic(Intrinsic::maxnum, a, b);
    case Op::Fmin:
      return s_.ir.CreateBinaryIntrinsic(Intrinsic::minnum, a, b);
    default:
      return machine_.math(scalar.op, {a, b});
  }
}

Value* ScalarEmitter::integer_unary(const loop::Scalar& scalar, Value* a) {
  switch (scalar.op) {
    case Op::Neg:
      return s_.ir.CreateNeg(a);
    case Op::Abs:
      return is_unsigned(scalar.dtype) ? a : s_.ir.CreateBinaryIntrinsic(Intrinsic::abs, a, s_.ir.getFalse());
    case Op::Sign:
      return sign(scalar.dtype, a);
    case Op::BitNot:
      return s_.ir.CreateNot(a);
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round:
      return a;
    default:
      CRESSET_CHECK(false, "operator has no meaning on one integer");
  }
}

Value* ScalarEmitter::integer_binary(const loop::Scalar& scalar, Value* a, Value* b) {
  switch (scalar.op) {
    case Op::Add:
      return s_.ir.CreateAdd(a, b);
    case Op::Sub:
      return s_.ir.CreateSub(a, b);
    case Op::Mul:
      return s_.ir.CreateMul(a, b);
    case Op::FloorDivInt:
    case Op::TruncDivInt:
    case Op::Fmod:
    case Op::Remainder:
      return divide(scalar.op, scalar.dtype, a, b);
    case Op::Maximum:
    case Op::Fmax:
      return extreme(/*greatest=*/true, scalar.dtype, a, b);
    case Op::Minimum:
    case Op::Fmin:
      return extreme(/*greatest=*/false, scalar.dtype, a, b);
    case Op::BitAnd:
      return s_.ir.CreateAnd(a, b);
    case Op::BitOr:
      return s_.ir.CreateOr(a, b);
    case Op::BitXor:
      return s_.ir.CreateXor(a, b);
    case Op::ShiftLeft:
    case Op::ShiftRight:
      return shift(scalar.op, scalar.dtype, a, b);
    default:
      CRESSET_CHECK(false, "operator has no meaning on two integers");
  }
}

// Never traps: a divisor of 0 acts as 1. A divisor of -1 under the least integer also acts as 1, because this quotient
// wraps to itself.
Value* ScalarEmitter::divide(Op op, DType dtype, Value* a, Value* b) {
  Value* zero = s_.constant_int_like(b, 0);
  Value* one = s_.constant_int_like(b, 1);
  Value* safe = s_.ir.CreateSelect(s_.ir.CreateICmpEQ(b, zero), one, b);
  const bool quotient_wanted = op == Op::FloorDivInt || op == Op::TruncDivInt;
  if (is_unsigned(dtype)) return quotient_wanted ? s_.ir.CreateUDiv(a, safe) : s_.ir.CreateURem(a, safe);
  const unsigned bits = b->getType()->getScalarSizeInBits();
  Value* least = llvm::ConstantInt::get(b->getType(), llvm::APInt::getSignedMinValue(bits));
  Value* overflows = s_.ir.CreateAnd(s_.ir.CreateICmpEQ(a, least), s_.ir.CreateICmpEQ(b, s_.constant_int_like(b, -1)));
  safe = s_.ir.CreateSelect(overflows, one, safe);
  Value* quotient = s_.ir.CreateSDiv(a, safe);
  if (op == Op::TruncDivInt) return quotient;
  Value* rest = s_.ir.CreateSub(a, s_.ir.CreateMul(quotient, safe));
  if (op == Op::Fmod) return rest;
  Value* signs_differ = s_.ir.CreateICmpSLT(s_.ir.CreateXor(rest, safe), zero);
  Value* adjust = s_.ir.CreateAnd(s_.ir.CreateICmpNE(rest, zero), signs_differ);
  if (op == Op::Remainder) return s_.ir.CreateSelect(adjust, s_.ir.CreateAdd(rest, safe), rest);
  return s_.ir.CreateSub(quotient, s_.ir.CreateZExt(adjust, quotient->getType()));
}

Value* ScalarEmitter::shift(Op op, DType dtype, Value* a, Value* b) {
  const unsigned bits = a->getType()->getScalarSizeInBits();
  Value* outside = s_.ir.CreateICmpUGE(b, s_.constant_int_like(b, bits));
  if (op == Op::ShiftLeft) {
    Value* amount = s_.ir.CreateSelect(outside, s_.constant_int_like(b, 0), b);
    return s_.ir.CreateSelect(outside, s_.constant_int_like(a, 0), s_.ir.CreateShl(a, amount));
  }
  Value* amount = s_.ir.CreateSelect(outside, s_.constant_int_like(b, bits - 1), b);
  if (!is_unsigned(dtype)) return s_.ir.CreateAShr(a, amount);
  return s_.ir.CreateSelect(outside, s_.constant_int_like(a, 0), s_.ir.CreateLShr(a, amount));
}

}  // namespace cresset::codegen
