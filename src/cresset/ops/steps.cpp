#include "ops/steps.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace cresset::ops {
namespace {

// Without overloads. An extreme's derivative compares what it is of with it, so both must be rounded alike.
constexpr std::string_view kSteps[] = {
    "aten::amax",      "aten::amin",       "aten::ceil",      "aten::floor", "aten::floor_divide", "aten::fmod",
    "aten::frac",      "aten::hardshrink", "aten::heaviside", "aten::max",   "aten::min",          "aten::nan_to_num",
    "aten::remainder", "aten::round",      "aten::sgn",       "aten::sign",  "aten::threshold",    "aten::trunc",
};

// div with a rounding mode, too: without one it is none, and only rounds once more.
bool is_one(std::string_view name) {
  const std::string_view base = name.substr(0, name.find('.'));
  return std::find(std::begin(kSteps), std::end(kSteps), base) != std::end(kSteps) || name == "aten::div.Tensor_mode" ||
         name == "aten::div.Scalar_mode";
}

std::unordered_set<const OpDef*> step_rows() {
  std::unordered_set<const OpDef*> out;
  for (const OpDef* def : all())
    if (is_one(name_of(*def))) out.insert(def);
  return out;
}

}  // namespace

bool takes_steps(graph::OpId op) {
  static const std::unordered_set<const OpDef*> rows = step_rows();
  return rows.contains(find(op));
}

}  // namespace cresset::ops
