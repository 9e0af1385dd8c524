// The operands of plain products on a GPU: aten::mm, and aten::addmm with a bias of the columns.
#pragma once

#include <optional>

#include "bridge/executor/executor_context.h"
#include "runtime/program.h"

namespace cresset::bridge {

struct ProductOperands {
  std::optional<runtime::TensorId> bias;  // one number a column, 1-dim
  runtime::TensorId a, b, out;            // [rows, inner], [inner, columns], [rows, columns]: planned memory
};

// nullopt: another operator, scaled operands, or a dtype other than f32, f16 and bf16.
std::optional<ProductOperands> product_operands(const runtime::ExternCall& call, const BoundContext& context);

}  // namespace cresset::bridge
