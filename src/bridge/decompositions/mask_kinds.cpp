#include "bridge/decompositions/mask_kinds.h"

#include "bridge/capture/arguments.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"
#include "bridge/capture/trace_tensor.h"
#include "ops/affine_elements.h"
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

bool is_true_everywhere(Capture& capture, graph::ValueId mask) {
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
  if (ops::KnownElements(capture.graph(), at_most).truth(mask) != true) return false;
  for (const sym::ExprId condition : conditions)
    if (!env.evaluate(condition, [] { return current_reason(); }).value_or(false)) return false;
  return true;
}

// Whether an element tells index -2 >= index -1.
bool is_causal(Capture& capture, graph::ValueId mask) {
  ops::AffineElements elements(capture.graph(), [&](graph::ValueId v) { return is_true_everywhere(capture, v); });
  const std::optional<ops::Affine> found = elements.at_least_zero(mask);
  if (!found || found->steps.size() < 2 || !capture.env().pool().is_const(found->base, 0)) return false;
  std::vector<int64_t> wanted(found->steps.size(), 0);
  wanted[wanted.size() - 2] = 1;
  wanted.back() = -1;
  return found->steps == wanted;
}

// Guards on it where it holds in this call.
bool as_many_keys_as_queries(Capture& capture, const at::Tensor& query, const at::Tensor& key) {
  sym::ShapeEnv& env = capture.env();
  const sym::ExprId equal = env.pool().eq(SymNode::expr_of(capture.env_ptr(), query.sym_size(2)),
                                          SymNode::expr_of(capture.env_ptr(), key.sym_size(2)));
  if (const std::optional<bool> known = env.statically_known(equal)) return *known;
  return env.hint(equal) == 1 && env.evaluate(equal, [] { return current_reason(); }).value_or(false);
}

}  // namespace

MaskKind kind_of_mask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key) {
  const TraceTensor* const trace = mask.scalar_type() == at::kBool ? TraceTensor::from(mask) : nullptr;
  Capture* const capture = Capture::current();
  if (trace == nullptr || capture == nullptr || capture->closed() || mask.device() != query.device())
    return MaskKind::Other;
  const graph::ValueId value = value_of(*capture, mask);
  if (is_true_everywhere(*capture, value))
    return has_usual_form(mask, query, key) ? MaskKind::KeepsAll : MaskKind::Other;
  const bool causal =
      query.dim() == 4 && key.dim() == 4 && is_causal(*capture, value) && as_many_keys_as_queries(*capture, query, key);
  return causal && has_usual_form(mask, query, key) ? MaskKind::Causal : MaskKind::Other;
}

}  // namespace cresset::bridge
