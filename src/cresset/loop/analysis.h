// Analyses for all consumers of a kernel: the level of each scalar, and the pass in which it can be computed.
#pragma once

#include <vector>

#include "loop/kernel.h"

namespace cresset::loop {

struct Analysis {
  std::vector<uint8_t> is_point;        // by scalar: has a value for each point (else for each outer point)
  std::vector<uint16_t> stage;          // by scalar: number of passes over the inner dims to complete before it
  std::vector<uint8_t> store_is_point;  // by store: executed at each point (else once for each outer point)
  uint16_t stages = 0;                  // the greatest stage: k + 1 passes, the last only for stores
};
Analysis analyze(const Kernel& kernel);

// Calls f(ScalarId) for each scalar which `scalar` needs: operands, mask, and bound variables of its expression. Point
// scalars bound in an address count as operands.
template <class F>
void for_each_operand(const Kernel& kernel, const Scalar& scalar, F&& f);
template <class F>
void for_each_bound_scalar(const Kernel& kernel, ExprId expr, F&& f);
// The same for a store: its value, its condition, and bound variables of its address.
template <class F>
void for_each_stored(const Kernel& kernel, const Store& store, F&& f) {
  f(store.value);
  if (store.condition.valid()) f(store.condition);
  for_each_bound_scalar(kernel, store.address, f);
}

template <class F>
void for_each_bound_scalar(const Kernel& kernel, ExprId expr, F&& f) {
  if (!expr.valid() || kernel.bindings.empty()) return;
  for (const Binding& binding : kernel.bindings)
    if (kernel.env().pool().uses_var(expr, binding.var)) f(binding.scalar);
}

template <class F>
void for_each_operand(const Kernel& kernel, const Scalar& scalar, F&& f) {
  for (ScalarId operand : {scalar.a, scalar.b, scalar.c})
    if (operand.valid()) f(operand);
  for_each_bound_scalar(kernel, scalar.expr, f);
}

}  // namespace cresset::loop
