#include "bridge/decompositions/idle_mask.h"

#include "bridge/capture/arguments.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"
#include "bridge/capture/trace_tensor.h"
#include "ops/known_elements.h"

namespace cresset::bridge {
namespace {

// Fused kernels take masks of queries and keys, or of batches and heads as well. For other masks eager mode chooses
// another kernel, whose result may have other strides.
bool has_usual_form(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key) {
  if (query.dim() != 4 || key.dim() != 4 || (mask.dim() != 2 && mask.dim() != 4)) return false;
  const c10::SymInt whole[] = {query.sym_size(0), query.sym_size(1), query.sym_size(2), key.sym_size(2)};
  for (int64_t d = 1; d <= mask.dim(); ++d) {
    const c10::SymInt size = mask.sym_size(-d);
    if (size.maybe_as_int() != 1 && !size.sym_eq(whole[4 - d]).guard_bool(__FILE__, __LINE__)) return false;
  }
  return true;
}

bool is_true_everywhere(Capture& capture, const at::Tensor& mask) {
  sym::ShapeEnv& env = capture.env();
  std::vector<sym::ExprId> conditions;
  // A condition at its limit holds for a single size, or nearly so: it is no reason for a guard.
  const auto at_most = [&](sym::ExprId a, sym::ExprId b) {
    const sym::ExprId condition = env.pool().le(a, b);
    if (const std::optional<bool> known = env.statically_known(condition)) return *known;
    const std::optional<int64_t> low = env.hint(a), high = env.hint(b);
    if (!low || !high || *low >= *high) return false;
    conditions.push_back(condition);
    return true;
  };
  if (ops::KnownElements(capture.graph(), at_most).truth(value_of(capture, mask)) != true) return false;
  for (const sym::ExprId condition : conditions)
    if (!env.evaluate(condition, [] { return current_reason(); }).value_or(false)) return false;
  return true;
}

}  // namespace

bool is_idle_mask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key) {
  const TraceTensor* const trace = mask.scalar_type() == at::kBool ? TraceTensor::from(mask) : nullptr;
  Capture* const capture = Capture::current();
  if (trace == nullptr || capture == nullptr || capture->closed() || mask.device() != query.device()) return false;
  return is_true_everywhere(*capture, mask) && has_usual_form(mask, query, key);
}

}  // namespace cresset::bridge
