#include "bridge/extern_kernels/cuda/product_operands.h"

#include <c10/core/ScalarType.h>

namespace cresset::bridge {
namespace {

using runtime::TensorId;

bool leaves_scale(const runtime::ExternArg& arg, const BoundContext& context) {
  if (const auto* number = std::get_if<double>(&arg)) return *number == 1;
  const auto* size = std::get_if<runtime::SizeRef>(&arg);
  return size != nullptr && context.size(*size) == 1;
}

}  // namespace

std::optional<ProductOperands> product_operands(const runtime::ExternCall& call, const BoundContext& context) {
  static const graph::OpId mm = graph::op_id("aten::mm"), addmm = graph::op_id("aten::addmm");
  const size_t first = call.op == addmm ? 1 : 0;
  if ((call.op != mm && call.op != addmm) || call.args.size() < first + 2) return std::nullopt;
  for (size_t i = first + 2; i < call.args.size(); ++i)
    if (!leaves_scale(call.args[i], context)) return std::nullopt;
  const auto *a = std::get_if<TensorId>(&call.args[first]), *b = std::get_if<TensorId>(&call.args[first + 1]);
  const auto* bias = first == 0 ? nullptr : std::get_if<TensorId>(&call.args[0]);
  if (a == nullptr || b == nullptr || (first == 1 && bias == nullptr) || call.results.size() != 1) return std::nullopt;
  const TensorId out = call.results[0];
  if (!out.valid() || !context.has_planned_memory(out)) return std::nullopt;
  const at::ScalarType dtype = context.slot(*a).dtype;
  if (dtype != at::kHalf && dtype != at::kBFloat16 && dtype != at::kFloat) return std::nullopt;
  if (bias != nullptr && context.slot(*bias).sizes != std::vector<int64_t>{context.slot(*b).sizes[1]})
    return std::nullopt;
  return ProductOperands{bias == nullptr ? std::nullopt : std::optional(*bias), *a, *b, out};
}

}  // namespace cresset::bridge
