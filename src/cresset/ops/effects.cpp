#include "ops/effects.h"

#include "ops/op_traits.h"

namespace cresset::ops {
namespace {

bool draws(const graph::Node& node, const OpTraits& traits) {
  if (!traits.draws || traits.dropout < 0) return traits.draws;
  const auto* dropout = std::get_if<double>(&node.args.at(static_cast<size_t>(traits.dropout)));
  return dropout == nullptr || *dropout != 0;
}

}  // namespace

bool has_effects(const graph::Node& node) {
  if (node.results.empty()) return true;
  const OpTraits found = traits(node.op);
  return found.foreign || draws(node, found);
}

bool draws(const graph::Node& node) { return draws(node, traits(node.op)); }

bool follows_memory_order(const graph::Node& node) {
  const OpTraits found = traits(node.op);
  return found.by_memory || found.foreign || draws(node, found);
}

}  // namespace cresset::ops
