#include "ops/pointwise_types.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/device_traits.h"

namespace cresset::ops {

using graph::TensorType;
using sym::ExprId;

bool accepts(unsigned accept, DType dtype) {
  switch (category(dtype)) {
    case DTypeCategory::Bool:
      return (accept & kBool) != 0;
    case DTypeCategory::Integer:
      return (accept & kInt) != 0;
    case DTypeCategory::Float:
      return (accept & kFloat) != 0;
    case DTypeCategory::Float8:
      return (accept & kFloat8) != 0;
    case DTypeCategory::Complex:
    case DTypeCategory::Other:
      return false;
  }
  return false;
}

Fallback unsupported_dtype(DType dtype, std::string_view what) {
  return {FallbackReason::UnsupportedDtype, fmt::format("{} on {}", what, to_string(dtype)), ""};
}

DType number_dtype(const graph::Arg& arg, DType default_dtype) {
  if (std::holds_alternative<double>(arg)) return default_dtype;
  if (std::holds_alternative<bool>(arg)) return DType::Bool;
  CRESSET_CHECK(std::holds_alternative<ExprId>(arg), "a number was expected");
  return DType::I64;
}

namespace {

using MaybeDType = std::optional<DType>;

MaybeDType promote(MaybeDType a, MaybeDType b) {
  if (!a) return b;
  return b ? cresset::promote(*a, *b) : *a;
}

// A lower rank decides only if its category is higher.
MaybeDType combine(MaybeDType higher, MaybeDType lower) {
  if (!higher || !lower) return higher ? higher : lower;
  return category(*lower) > category(*higher) ? cresset::promote(*higher, *lower) : *higher;
}

}  // namespace

DType result_dtype(const graph::Graph& graph, const OpArgs& args, std::span<const size_t> operands,
                   DType default_dtype) {
  MaybeDType ranked, zero_dim, numbers;
  for (const size_t i : operands) {
    if (args.is_none(i)) continue;
    if (!args.is_tensor(i)) {
      numbers = promote(numbers, number_dtype(args[i], default_dtype));
      continue;
    }
    const TensorType& type = graph.type(args.value(i));
    MaybeDType& rank = type.rank() > 0 ? ranked : zero_dim;
    rank = promote(rank, type.dtype);
  }
  return combine(ranked, combine(zero_dim, numbers)).value();
}

DType comparison_dtype(ElementContext& context, const OpArgs& args, std::span<const size_t> operands) {
  return result_dtype(context.graph(), args, operands, DType::F32);
}

namespace {

// An operand as seen by the iterator: an operand of another dtype is converted first, which keeps dense strides but not
// gaps.
struct Operands {
  std::deque<TensorType> converted;
  std::vector<const TensorType*> types;
};

Result<Operands> collect(ShapeContext& shapes, const OpArgs& args, std::span<const size_t> operands, DType common,
                         size_t kept) {
  Operands out;
  for (const size_t& i : operands) {
    if (args.is_none(i)) continue;
    if (!args.is_tensor(i)) {
      out.types.push_back(nullptr);
      continue;
    }
    const TensorType& type = args.tensor(i);
    if (!traits_of(type.device.kind).has_kernels) return shapes.unsupported("no kernels for an operand's device");
    const auto position = static_cast<size_t>(&i - operands.data());
    if (type.dtype == common || position < kept) {
      out.types.push_back(&type);
      continue;
    }
    TensorType& copy = out.converted.emplace_back(type);
    copy.strides = shapes.like_strides(type);
    out.types.push_back(&copy);
  }
  return out;
}

}  // namespace

Result<Types> pointwise_result(ShapeContext& shapes, const OpArgs& args, std::span<const size_t> operands, DType common,
                               DType result, size_t kept) {
  CRESSET_TRY(const Operands seen, collect(shapes, args, operands, common, kept));
  TensorType out;
  out.dtype = result;
  bool first = true;
  for (const TensorType* type : seen.types) {
    if (type == nullptr) continue;
    if (first) {
      out.sizes = type->sizes;
      first = false;
      continue;
    }
    CRESSET_TRY(out.sizes, shapes.broadcast(out.sizes, type->sizes));
  }
  out.strides = shapes.pointwise_strides(out.sizes, seen.types);
  return Types{std::move(out)};
}

Result<Types> promoted_shape(ShapeContext& shapes, const OpArgs& args, std::span<const size_t> operands,
                             unsigned accept, Out out) {
  DType common = result_dtype(shapes.graph(), args, operands, shapes.default_dtype);
  if (!accepts(accept, common)) return unsupported_dtype(common, "a pointwise operator");
  if (out == Out::Float && is_integral(common)) common = shapes.default_dtype;
  if (out == Out::Bool && shapes.default_dtype != DType::F32 && common == shapes.default_dtype &&
      result_dtype(shapes.graph(), args, operands, DType::F32) != common)
    return shapes.unsupported("a comparison whose dtype comes from the default dtype");
  return pointwise_result(shapes, args, operands, common, out == Out::Bool ? DType::Bool : common);
}

Result<Types> same_dtype_shape(ShapeContext& shapes, const OpArgs& args, std::span<const size_t> operands,
                               unsigned accept) {
  const DType expected = args.tensor(operands[0]).dtype;
  for (const size_t i : operands)
    if (args.is_tensor(i) && args.tensor(i).dtype != expected)
      return shapes.unsupported("operands of different dtypes");
  return promoted_shape(shapes, args, operands, accept, Out::Common);
}

std::optional<double> constant_number(const graph::Graph& graph, const graph::Arg& arg) {
  if (const double* number = std::get_if<double>(&arg)) return *number;
  if (const bool* flag = std::get_if<bool>(&arg)) return *flag ? 1.0 : 0.0;
  if (const ExprId* e = std::get_if<ExprId>(&arg))
    if (const ExprId known = graph.env().simplify(*e); graph.pool().is_const(known))
      return static_cast<double>(graph.pool().const_value(known));
  return std::nullopt;
}

}  // namespace cresset::ops
