// arange and linspace: the element is computed from its index.
#include <cmath>

#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::Device;
using graph::TensorType;
using loop::Op;
using loop::ScalarBuilder;
using loop::ScalarId;
using sym::ExprId;
using sym::ExprPool;

// ---- arange: (end), (start, end) or (start, end, step), then dtype, layout, device, pin_memory

constexpr size_t kOptions = 4;

struct Range {
  const graph::Arg* start = nullptr;  // nullptr: 0
  const graph::Arg* end = nullptr;
  const graph::Arg* step = nullptr;  // nullptr: 1
};

Range range_of(const OpArgs& args) {
  const size_t numbers = args.count() - kOptions;
  if (numbers == 1) return {nullptr, &args[0], nullptr};
  return {&args[0], &args[1], numbers == 3 ? &args[2] : nullptr};
}

bool is_integer(const graph::Arg* number) { return number == nullptr || std::holds_alternative<ExprId>(*number); }

bool all_integers(const Range& range) {
  return is_integer(range.start) && is_integer(range.end) && is_integer(range.step);
}

ExprId integer_or(ExprPool& pool, const graph::Arg* number, int64_t otherwise) {
  return number == nullptr ? pool.constant(otherwise) : std::get<ExprId>(*number);
}

Result<ExprId> integer_length(ShapeContext& shapes, const Range& range) {
  ExprPool& pool = shapes.pool();
  const ExprId start = integer_or(pool, range.start, 0), end = integer_or(pool, range.end, 0);
  const ExprId step = integer_or(pool, range.step, 1), zero = pool.constant(0);
  const std::optional<bool> upwards = shapes.decided(pool.gt(step, zero));
  if (!upwards) return shapes.needs(pool.gt(step, zero));
  const bool up = *upwards;
  if (!up && !shapes.require(pool.lt(step, zero))) return shapes.invalid("the step must not be zero");
  const ExprId distance = shapes.env().simplify(up ? pool.sub(end, start) : pool.sub(start, end));
  if (!shapes.require(pool.ge(distance, zero))) return shapes.invalid("the bounds do not agree with the step's sign");
  return shapes.env().simplify(pool.ceil_div(distance, up ? step : pool.neg(step)));
}

double number_or(ShapeContext& shapes, const graph::Arg* number, double otherwise) {
  if (number == nullptr) return otherwise;
  if (const double* value = std::get_if<double>(number)) return *value;
  if (const bool* value = std::get_if<bool>(number)) return *value;
  return double(shapes.constant(std::get<ExprId>(*number)));
}

Result<ExprId> float_length(ShapeContext& shapes, const Range& range) {
  const double start = number_or(shapes, range.start, 0), end = number_or(shapes, range.end, 0);
  const double step = number_or(shapes, range.step, 1);
  const double length = (end - start) * step < 0 ? -1 : std::ceil((end - start) / step);
  if (step == 0 || !std::isfinite(start) || !std::isfinite(end) || !(length >= 0) || length > 9e15)
    return shapes.invalid("the bounds and the step make no range");
  return shapes.pool().constant(int64_t(length));
}

Result<Types> arange_shape(ShapeContext& shapes, const OpArgs& args) {
  const size_t dtype_arg = args.count() - kOptions;
  const Range range = range_of(args);
  const bool integers = all_integers(range);
  TensorType out;
  out.dtype = args.dtype(dtype_arg).value_or(integers ? DType::I64 : shapes.default_dtype);
  if (!args.is_none(dtype_arg + 2)) out.device = std::get<Device>(args[dtype_arg + 2]);
  if (category(out.dtype) == DTypeCategory::Complex || out.dtype == DType::Bool)
    return shapes.unsupported("a range of this dtype");
  if (!integers && !is_float(out.dtype)) return shapes.unsupported("an integer range between fractions");
  CRESSET_TRY(const ExprId length, integers ? integer_length(shapes, range) : float_length(shapes, range));
  return one(contiguous_like(shapes, out, {length}));
}

// The shape rule specialized the number, so its hint is its value.
double known_number(const sym::ShapeEnv& env, const graph::Arg* number, double otherwise) {
  if (number == nullptr) return otherwise;
  if (const double* value = std::get_if<double>(number)) return *value;
  if (const bool* value = std::get_if<bool>(number)) return *value;
  return double(env.hint_or(std::get<ExprId>(*number), 0));
}

ScalarId arange_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const Range range = range_of(args);
  ExprPool& pool = context.pool();
  ScalarBuilder& scalars = context.scalars();
  const DType dtype = context.result_type(result).dtype;
  if (all_integers(range)) {
    const ExprId offset = pool.mul(index[0], integer_or(pool, range.step, 1));
    return scalars.cast(scalars.size(pool.add(integer_or(pool, range.start, 0), offset)), dtype);
  }
  // Eager mode accumulates in double for float32.
  const ScalarId position = scalars.cast(scalars.size(index[0]), DType::F64);
  const ScalarId step = scalars.constant(DType::F64, known_number(context.env(), range.step, 1));
  const ScalarId start = scalars.constant(DType::F64, known_number(context.env(), range.start, 0));
  return scalars.cast(scalars.binary(Op::Add, start, scalars.binary(Op::Mul, position, step)), dtype);
}

// ---- linspace(start, end, steps, dtype, layout, device, pin_memory)

Result<Types> linspace_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out;
  out.dtype = args.dtype(3).value_or(shapes.default_dtype);
  if (!args.is_none(5)) out.device = std::get<Device>(args[5]);
  if (!is_float(out.dtype)) return shapes.unsupported("a range of this dtype");
  const ExprId steps = args.integer(2);
  if (!shapes.require(shapes.pool().ge(steps, shapes.pool().constant(0)))) return shapes.invalid("steps is negative");
  for (const size_t i : {0, 1})
    if (std::holds_alternative<ExprId>(args[i])) shapes.constant(args.integer(i));
  shapes.constant(steps);
  return one(contiguous_like(shapes, out, {steps}));
}

// The second half counts back from the end, so that the last element is exactly the end.
ScalarId linspace_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  ExprPool& pool = context.pool();
  ScalarBuilder& scalars = context.scalars();
  const DType dtype = context.result_type(result).dtype;
  const DType held = compute_dtype(dtype);
  const int64_t steps = context.env().hint_or(args.integer(2), 0);
  const double start = known_number(context.env(), &args[0], 0), end = known_number(context.env(), &args[1], 0);
  if (steps < 2) return scalars.cast(scalars.constant(held, start), dtype);
  const auto narrow = [&](double x) { return held == DType::F32 ? double(float(x)) : x; };
  const ScalarId step = scalars.constant(held, narrow((narrow(end) - narrow(start)) / double(steps - 1)));
  const ScalarId from_start = scalars.cast(scalars.size(index[0]), held);
  const ScalarId from_end = scalars.cast(scalars.size(pool.sub(pool.constant(steps - 1), index[0])), held);
  const ScalarId up = scalars.binary(Op::Add, scalars.constant(held, start), scalars.binary(Op::Mul, step, from_start));
  const ScalarId down = scalars.binary(Op::Sub, scalars.constant(held, end), scalars.binary(Op::Mul, step, from_end));
  const ScalarId first_half =
      scalars.binary(Op::Lt, scalars.size(index[0]), scalars.constant_int(DType::I64, steps / 2));
  return scalars.cast(scalars.select(first_half, up, down), dtype);
}

constexpr OpDef kCreateRangeOps[] = {
    {.schema = "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = arange_shape,
     .element = arange_element},
    {.schema = "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = arange_shape,
     .element = arange_element},
    {.schema = "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = arange_shape,
     .element = arange_element},
    {.schema = "aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = linspace_shape,
     .element = linspace_element},
};

}  // namespace

std::span<const OpDef> create_range_ops() { return kCreateRangeOps; }

}  // namespace cresset::ops
