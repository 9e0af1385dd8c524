#include "ops/effects.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ops/op_def.h"

namespace cresset::ops {

bool has_effects(const graph::Node& node) {
  static constexpr std::array<std::string_view, 28> kPrefixes = {"aten::rand",
                                                                 "aten::bernoulli",
                                                                 "aten::normal",
                                                                 "aten::uniform",
                                                                 "aten::dropout",
                                                                 "aten::native_dropout",
                                                                 "aten::multinomial",
                                                                 "aten::poisson",
                                                                 "aten::exponential",
                                                                 "aten::geometric",
                                                                 "aten::log_normal",
                                                                 "aten::cauchy",
                                                                 "aten::random",
                                                                 "aten::_fused_dropout",
                                                                 "aten::rrelu",
                                                                 "aten::binomial",
                                                                 "aten::_standard_gamma",
                                                                 "aten::_sample_dirichlet",
                                                                 "aten::_assert",
                                                                 "aten::sym_constrain",
                                                                 "aten::alpha_dropout",
                                                                 "aten::feature_dropout",
                                                                 "aten::_scaled_dot_product_flash",
                                                                 "prim::random",
                                                                 "cresset::normal_fill",
                                                                 "cresset::bernoulli_fill",
                                                                 "cresset::get_rng_state",
                                                                 "cresset::set_rng_state"};
  static constexpr auto kInitials = [] {  // first characters after the namespace; they decide most names
    std::array<bool, 128> out{};
    for (const std::string_view p : kPrefixes) out[static_cast<size_t>(p[p.find("::") + 2])] = true;
    return out;
  }();
  if (node.results.empty()) return true;
  const std::string_view name = graph::op_name(node.op);
  const size_t initial = name.starts_with("aten::") && name.size() > 6 ? static_cast<unsigned char>(name[6]) : 0;
  if (initial > 0 && initial < kInitials.size() && !kInitials[initial]) return false;
  if (std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view p) { return name.starts_with(p); }))
    return true;
  return !name.starts_with("aten::") && !name.starts_with("prim::") && find(node.op) == nullptr;
}

bool draws(const graph::Node& node) {
  return has_effects(node) && !graph::op_name(node.op).starts_with("aten::_scaled_dot_product_flash");
}

bool follows_memory_order(const graph::Node& node) {
  static const graph::OpId view = graph::op_id("aten::as_strided"), copy = graph::op_id("aten::as_strided_copy"),
                           write = graph::op_id("aten::as_strided_scatter");
  return node.op == view || node.op == copy || node.op == write || draws(node);
}

}  // namespace cresset::ops
