#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "loop/float8.h"
#include "loop/kernel.h"
#include "loop/scalar_eval.h"

namespace cresset::loop {
namespace {

bool is_predicate(Op op) { return (op >= Op::Eq && op <= Op::Ge) || op == Op::IsNan || op == Op::IsInf; }

bool is_const(const Scalar& s) { return s.op == Op::Const; }
bool is_number(const Scalar& s, double value) {
  if (!is_const(s)) return false;
  return is_float(s.dtype) ? std::bit_cast<uint64_t>(s.number) == std::bit_cast<uint64_t>(value)
                           : s.integer == static_cast<int64_t>(value);
}

ScalarId add_const(Kernel& kernel, DType dtype, Value value) {
  Scalar s{.op = Op::Const, .dtype = dtype};
  s.number = is_float(dtype) ? round_number(dtype, value.number) : 0;
  s.integer = is_float(dtype) ? 0 : wrap_integer(dtype, value.integer);
  return kernel.add(s);
}

// Returns the constant value of `s` when its operands are constants and its semantics fix the result.
std::optional<Value> fold(const Kernel& kernel, const Scalar& s) {
  Value values[3];
  DType from = s.dtype;
  const ScalarId operands[3] = {s.a, s.b, s.c};
  for (int i = 0; i < 3; ++i) {
    if (!operands[i].valid()) continue;
    const Scalar& operand = kernel[operands[i]];
    if (!is_const(operand)) return std::nullopt;
    values[i] = {operand.number, operand.integer};
    if (i == 0) from = operand.dtype;
  }
  const bool divides = s.op == Op::FloorDivInt || s.op == Op::TruncDivInt || s.op == Op::Fmod || s.op == Op::Remainder;
  if (divides && !is_float(s.dtype) && values[1].integer == 0) return std::nullopt;
  return apply(s, from, values[0], values[1], values[2]);
}

// Simplifications which preserve every bit (of a NaN only its being a NaN).
std::optional<ScalarId> simplify_binary(const Kernel& kernel, Op op, ScalarId a, ScalarId b) {
  const Scalar& x = kernel[a];
  const Scalar& y = kernel[b];
  const bool real = is_float(x.dtype);
  switch (op) {
    case Op::Mul:
      if (is_number(y, 1)) return a;
      if (is_number(x, 1)) return b;
      break;
    case Op::Div:
    case Op::TruncDivInt:
    case Op::FloorDivInt:
      if (is_number(y, 1)) return a;
      break;
    case Op::Add:  // x + -0.0 == x for every x; x + 0.0 is not x for x = -0.0
      if (is_number(y, real ? -0.0 : 0)) return a;
      if (is_number(x, real ? -0.0 : 0)) return b;
      break;
    case Op::Sub:
      if (is_number(y, 0)) return a;
      break;
    case Op::BitAnd:
    case Op::BitOr:
    case Op::Maximum:
    case Op::Minimum:
      if (a == b) return a;
      break;
    case Op::Pow:
      if (is_number(y, 1)) return a;
      break;
    default:
      break;
  }
  return std::nullopt;
}

std::optional<ScalarId> simplify_bool(const Kernel& kernel, Op op, ScalarId a, ScalarId b) {
  if (kernel[a].dtype != DType::Bool) return std::nullopt;
  const bool is_and = op == Op::BitAnd, is_or = op == Op::BitOr;
  if (!is_and && !is_or) return std::nullopt;
  if (is_const(kernel[a])) std::swap(a, b);
  if (!is_const(kernel[b])) return std::nullopt;
  const bool value = kernel[b].integer != 0;
  return value == is_and ? a : b;  // x and true = x, x and false = false, x or false = x, x or true = true
}

}  // namespace

ScalarId ScalarBuilder::constant(DType dtype, double value) {
  CRESSET_CHECK(compute_dtype(dtype) == dtype, "scalars are never f16 or bf16");
  if (is_float(dtype)) return add_const(kernel_, dtype, {value, 0});
  const Scalar to{.op = Op::Cast, .dtype = dtype};
  return add_const(kernel_, dtype, apply(to, DType::F64, {value, 0}, {}, {}));
}

ScalarId ScalarBuilder::constant_int(DType dtype, int64_t value) {
  CRESSET_CHECK(compute_dtype(dtype) == dtype, "scalars are never f16 or bf16");
  if (!is_float(dtype)) return add_const(kernel_, dtype, {0, value});
  const Scalar to{.op = Op::Cast, .dtype = dtype};
  return add_const(kernel_, dtype, apply(to, DType::I64, {0, value}, {}, {}));
}

ScalarId ScalarBuilder::size(ExprId value) {
  const sym::ExprPool& pool = kernel_.env().pool();
  if (pool.is_const(value)) return constant_int(DType::I64, pool.const_value(value));
  if (pool.is_var(value)) {
    for (const Binding& binding : kernel_.bindings)
      if (binding.var == pool.var_of(value)) return binding.scalar;
  }
  return kernel_.add({.op = Op::Size, .dtype = DType::I64, .expr = value});
}

ScalarId ScalarBuilder::load(BufferId buffer, ExprId address, std::optional<ScalarId> mask) {
  const DType dtype = compute_dtype(kernel_.buffers[buffer.index].dtype);
  Scalar s{.op = Op::Load, .dtype = dtype, .expr = address, .buffer = buffer};
  if (mask && is_const(kernel_[*mask])) {
    if (kernel_[*mask].integer == 0) return constant_int(dtype, 0);
  } else if (mask) {
    CRESSET_CHECK(kernel_[*mask].dtype == DType::Bool, "a load's mask is bool");
    s.a = *mask;
  }
  return kernel_.add(s);
}

// Limits a number that a saturating conversion takes; NaN stays.
static ScalarId within(ScalarBuilder& b, DType dtype, ScalarId a) {
  if (dtype != DType::F8E4M3FN || !f8e4m3fn_saturates) return a;
  const ScalarId low = b.binary(Op::Maximum, a, b.constant(DType::F32, -kGreatestF8E4M3FN));
  return b.binary(Op::Minimum, low, b.constant(DType::F32, kGreatestF8E4M3FN));
}

ScalarId ScalarBuilder::cast(ScalarId a, DType dtype) {
  if (compute_dtype(dtype) != dtype) {
    const ScalarId wide = cast(a, DType::F32);
    const Scalar& operand = kernel_[wide];
    const bool rounded = operand.op == Op::RoundTo && operand.round == dtype;
    const bool narrow_load = operand.op == Op::Load && kernel_.buffers[operand.buffer.index].dtype == dtype;
    if (rounded || narrow_load) return wide;
    Scalar s{.op = Op::RoundTo, .dtype = DType::F32, .a = within(*this, dtype, wide), .round = dtype};
    if (std::optional<Value> value = fold(kernel_, s)) return add_const(kernel_, DType::F32, *value);
    return kernel_.add(s);
  }
  const DType from = kernel_[a].dtype;
  if (from == dtype) return a;
  if (kernel_[a].op == Op::Cast) {  // undoes a lossless cast
    const ScalarId inner = kernel_[a].a;
    const DType original = kernel_[inner].dtype;
    const bool widened = original == DType::Bool || (original == DType::F32 && from == DType::F64) ||
                         (is_integral(original) && is_integral(from) && promote(original, from) == from);
    if (widened && original == dtype) return inner;
  }
  Scalar s{.op = Op::Cast, .dtype = dtype, .a = a};
  if (std::optional<Value> value = fold(kernel_, s)) return add_const(kernel_, dtype, *value);
  return kernel_.add(s);
}

ScalarId ScalarBuilder::unary(Op op, ScalarId a) {
  CRESSET_CHECK(arity(op) == 1 && op != Op::Cast && op != Op::BitCast && op != Op::RoundTo && op != Op::Reduce,
                "not a plain unary operator");
  const Scalar& operand = kernel_[a];
  if ((op == Op::Neg || op == Op::BitNot) && operand.op == op) return operand.a;
  const bool is_rounding = op == Op::Floor || op == Op::Ceil || op == Op::Trunc || op == Op::Round;
  if (is_rounding && !is_float(operand.dtype)) return a;
  Scalar s{.op = op, .dtype = is_predicate(op) ? DType::Bool : operand.dtype, .a = a};
  if (is_predicate(op) && !is_float(operand.dtype)) return constant_int(DType::Bool, 0);
  if (std::optional<Value> value = fold(kernel_, s)) return add_const(kernel_, s.dtype, *value);
  return kernel_.add(s);
}

ScalarId ScalarBuilder::binary(Op op, ScalarId a, ScalarId b) {
  CRESSET_CHECK(arity(op) == 2, "not a binary operator");
  CRESSET_CHECK(kernel_[a].dtype == kernel_[b].dtype, "operands of different dtypes");
  Scalar s{.op = op, .dtype = is_predicate(op) ? DType::Bool : kernel_[a].dtype, .a = a, .b = b};
  if (std::optional<Value> value = fold(kernel_, s)) return add_const(kernel_, s.dtype, *value);
  if (std::optional<ScalarId> simple = simplify_binary(kernel_, op, a, b)) return *simple;
  if (std::optional<ScalarId> simple = simplify_bool(kernel_, op, a, b)) return *simple;
  if (op == Op::Pow && is_number(kernel_[b], 2)) return binary(Op::Mul, a, a);
  if (op == Op::Pow && is_number(kernel_[b], 3)) return binary(Op::Mul, binary(Op::Mul, a, a), a);
  return kernel_.add(s);
}

ScalarId ScalarBuilder::select(ScalarId condition, ScalarId then, ScalarId otherwise) {
  CRESSET_CHECK(kernel_[condition].dtype == DType::Bool, "select on a scalar that is not bool");
  CRESSET_CHECK(kernel_[then].dtype == kernel_[otherwise].dtype, "select between different dtypes");
  if (is_const(kernel_[condition])) return kernel_[condition].integer ? then : otherwise;
  if (then == otherwise) return then;
  return kernel_.add({.op = Op::Select, .dtype = kernel_[then].dtype, .a = condition, .b = then, .c = otherwise});
}

ScalarId ScalarBuilder::reduce(Combine combine, ScalarId a) {
  const bool arg = combine == Combine::ArgMax || combine == Combine::ArgMin;
  const bool logical = combine == Combine::Any || combine == Combine::All;
  CRESSET_CHECK(!logical || kernel_[a].dtype == DType::Bool, "any and all fold bools");
  return kernel_.add({.op = Op::Reduce, .dtype = arg ? DType::I64 : kernel_[a].dtype, .a = a, .combine = combine});
}

ScalarId ScalarBuilder::scan(Combine combine, ScalarId a) {
  return kernel_.add({.op = Op::Scan, .dtype = kernel_[a].dtype, .a = a, .combine = combine});
}

ExprId ScalarBuilder::bind_index(ScalarId scalar) {
  CRESSET_CHECK(kernel_[scalar].dtype == DType::I64, "only an i64 scalar can be an index");
  if (is_const(kernel_[scalar])) return kernel_.env().pool().constant(kernel_[scalar].integer);
  if (kernel_[scalar].op == Op::Size) return kernel_[scalar].expr;
  for (const Binding& binding : kernel_.bindings)
    if (binding.scalar == scalar) return kernel_.env().pool().var(binding.var);
  const ExprId index = kernel_.env().new_ranged_var(sym::Interval::all());
  kernel_.bindings.push_back({kernel_.env().pool().var_of(index), scalar});
  return index;
}

ScalarId ScalarBuilder::philox(ScalarId seed, ScalarId stream, ScalarId position) {
  for (const ScalarId operand : {seed, stream, position})
    CRESSET_CHECK(kernel_[operand].dtype == DType::I64, "operands of philox are i64");
  return kernel_.add({.op = Op::Philox, .dtype = DType::I64, .a = seed, .b = stream, .c = position});
}

ScalarBuilder::CheckedIndex ScalarBuilder::checked_index(ScalarId index, ExprId extent, BufferId report, int64_t site,
                                                         ScalarId told, ScalarId where) {
  CRESSET_CHECK(kernel_[index].dtype == DType::I64, "only an i64 scalar can be an index");
  const ScalarId zero = constant_int(DType::I64, 0);
  ScalarId outside = binary(Op::BitOr, binary(Op::Lt, index, zero), binary(Op::Ge, index, size(extent)));
  if (where.valid()) outside = binary(Op::BitAnd, outside, where);
  if (is_const(kernel_[outside]) && kernel_[outside].integer == 0) return {bind_index(index), std::nullopt};
  const ScalarId least = constant_int(DType::I64, kNothingReported + 1);  // what a report holds at least
  const ScalarId value = binary(Op::Maximum, told.valid() ? told : index, least);
  const Store store{report, kernel_.env().pool().constant(site), value, outside};
  const auto is_same = [&](const Store& s) {
    return s.buffer == store.buffer && s.address == store.address && s.value == store.value &&
           s.condition == store.condition;
  };
  if (std::none_of(kernel_.stores.begin(), kernel_.stores.end(), is_same)) kernel_.stores.push_back(store);
  CheckedIndex out{bind_index(select(outside, zero, index)), std::nullopt};
  if (kernel_.env().range(extent).lo < 1) out.mask = unary(Op::BitNot, outside);
  return out;
}

}  // namespace cresset::loop
