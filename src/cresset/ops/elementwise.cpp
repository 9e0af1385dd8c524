#include "ops/elementwise.h"

#include <unordered_set>

#include "ops/families.h"

namespace cresset::ops {
namespace {

std::unordered_set<const OpDef*> elementwise_rows() {
  std::unordered_set<const OpDef*> out;
  for (const auto& family : {activation_ops(), compare_ops(), gradient_ops(), pointwise_binary_ops(),
                             pointwise_bitwise_ops(), pointwise_copy_ops(), pointwise_divide_ops(),
                             pointwise_power_ops(), pointwise_select_ops(), pointwise_unary_ops()})
    for (const OpDef& def : family)
      if (def.op_class == OpClass::Pointwise && !def.traits.at_other_indices) out.insert(&def);
  for (const OpDef& def : create_ops())
    if (def.schema.find("(Tensor self") != std::string_view::npos && def.schema.find("SymInt[]") == std::string::npos)
      out.insert(&def);
  return out;
}

}  // namespace

bool is_elementwise(graph::OpId op) {
  static const std::unordered_set<const OpDef*> rows = elementwise_rows();
  return rows.contains(find(op));
}

}  // namespace cresset::ops
