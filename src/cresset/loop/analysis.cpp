#include "loop/analysis.h"

#include <algorithm>

namespace cresset::loop {
namespace {

bool mentions_inner(const Kernel& kernel, ExprId expr) {
  if (!expr.valid()) return false;
  return std::any_of(kernel.dims.begin(), kernel.dims.end(), [&](const Dim& dim) {
    return dim.kind == Dim::Kind::Inner && kernel.env().pool().uses_var(expr, dim.var);
  });
}

}  // namespace

Analysis analyze(const Kernel& kernel) {
  Analysis out;
  const size_t count = kernel.scalars.size();
  out.is_point.resize(count);
  out.stage.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Scalar& scalar = kernel.scalars[i];
    bool point = mentions_inner(kernel, scalar.expr) || scalar.op == Op::Scan;
    uint16_t stage = 0;
    for_each_operand(kernel, scalar, [&](ScalarId operand) {
      point |= out.is_point[operand.index] != 0;
      stage = std::max(stage, out.stage[operand.index]);
    });
    const bool reduce = scalar.op == Op::Reduce;
    out.is_point[i] = point && !reduce;
    out.stage[i] = static_cast<uint16_t>(stage + reduce);
    out.stages = std::max(out.stages, out.stage[i]);
  }
  for (const Store& store : kernel.stores) {
    bool point = mentions_inner(kernel, store.address);
    for_each_stored(kernel, store, [&](ScalarId s) { point |= out.is_point[s.index] != 0; });
    out.store_is_point.push_back(point);
  }
  return out;
}

}  // namespace cresset::loop
