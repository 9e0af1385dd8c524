#include "ops/affine_elements.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "ops/op_def.h"
#include "ops/position_nodes.h"

namespace cresset::ops {
namespace {

using graph::Arg;
using graph::Node;
using graph::TensorType;
using graph::ValueId;

// Operators whose results have the elements in the same order, perhaps with dimensions of size 1 more or less.
bool keeps_order(std::string_view base) {
  constexpr std::array<std::string_view, 9> kNames{"alias",    "clone",        "detach", "reshape",  "squeeze",
                                                   "_to_copy", "_unsafe_view", "view",   "unsqueeze"};
  return std::find(kNames.begin(), kNames.end(), base) != kNames.end();
}

}  // namespace

AffineElements::Found AffineElements::deeper(ValueId v, Found (AffineElements::*find)(const Node& node), Known& known) {
  if (const auto found = known.find(v); found != known.end()) return found->second;
  if (!graph_.value(v).node.valid() || depth_ >= kDeepest) return std::nullopt;
  ++depth_;
  Found found = found_in(v, find);
  --depth_;
  known[v] = found;
  return found;
}

AffineElements::Found AffineElements::found_in(ValueId v, Found (AffineElements::*find)(const Node& node)) {
  const graph::Value& value = graph_.value(v);
  Found found = (this->*find)(graph_.node(value.node));
  if (found && found->steps.size() != value.type.sizes.size()) return std::nullopt;
  for (size_t d = 0; found && d < found->steps.size(); ++d)
    if (graph_.pool().is_const(value.type.sizes[d], 1)) found->steps[d] = 0;
  return found;
}

AffineElements::Found AffineElements::boolean(const Node& node) {
  const std::string_view base = base_name(node);
  const auto* first = node.args.empty() ? nullptr : std::get_if<ValueId>(&node.args[0]);
  if (first == nullptr) return std::nullopt;
  if (base == "bitwise_and" || base == "logical_and") {
    const auto* second = std::get_if<ValueId>(&node.args[1]);
    if (second == nullptr) return std::nullopt;
    const bool first_decides = is_true_(*second);
    if (!first_decides && !is_true_(*first)) return std::nullopt;
    Found found = at_least_zero(first_decides ? *first : *second);
    const size_t rank = graph_.type(node.results[0]).sizes.size();
    if (found) found->steps.insert(found->steps.begin(), rank - found->steps.size(), 0);
    return found;
  }
  if (graph_.type(*first).dtype == DType::Bool) return through(node, at_least_zero(*first));
  return comparison(node, base);
}

AffineElements::Found AffineElements::comparison(const Node& node, std::string_view relation) {
  const bool less = relation == "lt" || relation == "le", strict = relation == "lt" || relation == "gt";
  if (!less && relation != "gt" && relation != "ge") return std::nullopt;
  const size_t rank = graph_.type(node.results[0]).sizes.size();
  const Found a = operand(node.args[0], rank), b = operand(node.args[1], rank);
  if (!a || !b) return std::nullopt;
  Affine found = less ? combined(*b, *a, -1) : combined(*a, *b, -1);
  sym::ExprPool& pool = graph_.pool();
  if (strict) found.base = pool.sub(found.base, pool.constant(1));
  return found;
}

std::optional<int64_t> AffineElements::difference(const Node& node) {
  const size_t rank = graph_.type(node.results[0]).sizes.size();
  const Found a = operand(node.args[0], rank), b = operand(node.args[1], rank);
  if (!a || !b) return std::nullopt;
  const Affine found = combined(*a, *b, -1);
  const sym::ExprPool& pool = graph_.pool();
  const bool constant = std::all_of(found.steps.begin(), found.steps.end(), [](int64_t step) { return step == 0; });
  return constant && pool.is_const(found.base) ? std::optional(pool.const_value(found.base)) : std::nullopt;
}

AffineElements::Found AffineElements::integers(const Node& node) {
  const std::string_view base = base_name(node);
  if (graph_.type(node.results[0]).dtype != DType::I64) return std::nullopt;  // narrower integers overflow
  if (base == "arange") return range(node);
  if (base == "add" || base == "sub") return sum(node, base == "sub");
  if (base == "cat") return joined(node);
  const auto* source = node.args.empty() ? nullptr : std::get_if<ValueId>(&node.args[0]);
  if (source == nullptr || graph_.type(*source).dtype != DType::I64) return std::nullopt;
  const Found of = integer(*source);
  if (base == "index") return of ? chosen(node, *of) : std::nullopt;
  return base == "slice" ? part(node, of) : through(node, of);
}

// Broadcast to a number of dimensions.
AffineElements::Found AffineElements::operand(const Arg& arg, size_t rank) {
  Found found;
  if (const auto* value = std::get_if<ValueId>(&arg))
    found = integer(*value);
  else if (const auto* given = std::get_if<sym::ExprId>(&arg))
    found = number(*given);
  if (found) found->steps.insert(found->steps.begin(), rank - found->steps.size(), 0);
  return found;
}

// A sum of a few of them does not overflow.
AffineElements::Found AffineElements::number(sym::ExprId number) const {
  const sym::ExprPool& pool = graph_.pool();
  const bool moderate =
      pool.is_const(number) ? std::abs(pool.const_value(number)) <= kModerate : graph_.env().range(number).lo >= 0;
  return moderate ? Found(Affine{number, {}}) : std::nullopt;
}

AffineElements::Found AffineElements::range(const Node& node) const {
  const std::optional<Range> range = range_of(node, graph_.pool());
  if (!range || !graph_.pool().is_const(range->step)) return std::nullopt;
  const int64_t step = graph_.pool().const_value(range->step);
  Found found = number(range->start);
  if (found) found->steps = {step};
  return std::abs(step) <= kModerate ? found : std::nullopt;
}

AffineElements::Found AffineElements::sum(const Node& node, bool negated) {
  const size_t rank = graph_.type(node.results[0]).sizes.size();
  const Found a = operand(node.args[0], rank), b = operand(node.args[1], rank);
  if (!a || !b || !is_number(graph_, node.args[2], 1)) return std::nullopt;
  return combined(*a, *b, negated ? -1 : 1);
}

Affine AffineElements::combined(const Affine& a, const Affine& b, int64_t factor_of_b) const {
  sym::ExprPool& pool = graph_.pool();
  Affine out{factor_of_b < 0 ? pool.sub(a.base, b.base) : pool.add(a.base, b.base), a.steps};
  for (size_t d = 0; d < out.steps.size(); ++d) out.steps[d] += factor_of_b * b.steps[d];
  return out;
}

// (self, dim, start, end, step)
AffineElements::Found AffineElements::part(const Node& node, Found source) const {
  const auto &from = graph_.type(std::get<ValueId>(node.args[0])).sizes, &to = graph_.type(node.results[0]).sizes;
  if (!source || from == to) return source;
  sym::ExprPool& pool = graph_.pool();
  std::array<int64_t, 3> given{};  // dim, start, step
  constexpr std::array<size_t, 3> kPositions{1, 2, 4};
  for (size_t i = 0; i < given.size(); ++i) {
    const auto* number = std::get_if<sym::ExprId>(&node.args[kPositions[i]]);
    if (number == nullptr || !pool.is_const(*number)) return std::nullopt;
    given[i] = pool.const_value(*number);
  }
  const auto [dim, start, step] = given;
  if (start < 0 || start > kModerate || step > kModerate) return std::nullopt;
  int64_t& own = source->steps[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(from.size()) : dim)];
  if (std::abs(own) > kModerate / std::max<int64_t>(std::max(start, step), 1)) return std::nullopt;
  source->base = pool.add(source->base, pool.constant(own * start));
  own *= step;
  return source;
}

// (tensors, dim): where each part goes on as the parts before it.
AffineElements::Found AffineElements::joined(const Node& node) {
  const auto* parts = std::get_if<std::vector<graph::OptionalValue>>(&node.args[0]);
  const auto* given = std::get_if<sym::ExprId>(&node.args[1]);
  sym::ExprPool& pool = graph_.pool();
  if (parts == nullptr || parts->empty() || given == nullptr || !pool.is_const(*given)) return std::nullopt;
  const size_t rank = graph_.type(node.results[0]).sizes.size();
  const auto dim =
      static_cast<size_t>(pool.const_value(*given) + (pool.const_value(*given) < 0 ? static_cast<int64_t>(rank) : 0));
  std::vector<Affine> found;
  int64_t step = 0;  // of the parts of more than one element
  for (const graph::OptionalValue& v : *parts) {
    Found one = v && graph_.type(*v).sizes.size() == rank ? integer(*v) : std::nullopt;
    if (!one) return std::nullopt;
    step = step == 0 ? one->steps[dim] : step;
    found.push_back(*std::move(one));
  }
  Affine out = found[0];
  out.steps[dim] = step;
  sym::ExprId before = pool.constant(0);
  for (size_t i = 0; i < found.size(); ++i) {
    const sym::ExprId size = graph_.type(*(*parts)[i]).sizes[dim];
    if (pool.is_const(size, 1)) found[i].steps[dim] = step;
    const sym::ExprId expected = pool.add(out.base, pool.mul(pool.constant(step), before));
    if (found[i].steps != out.steps || pool.sub(found[i].base, expected) != pool.constant(0)) return std::nullopt;
    before = pool.add(before, size);
  }
  return out;
}

bool AffineElements::is_natural(const Affine& index) const {
  const sym::ExprPool& pool = graph_.pool();
  const bool from_zero =
      pool.is_const(index.base) ? pool.const_value(index.base) >= 0 : graph_.env().range(index.base).lo >= 0;
  return from_zero && std::all_of(index.steps.begin(), index.steps.end(), [](int64_t step) { return step >= 0; });
}

// (self, indices) with an index for each dimension.
AffineElements::Found AffineElements::chosen(const Node& node, const Affine& source) {
  const auto* indices = std::get_if<std::vector<graph::OptionalValue>>(&node.args[1]);
  if (indices == nullptr || indices->size() != source.steps.size()) return std::nullopt;
  const size_t rank = graph_.type(node.results[0]).sizes.size();
  Affine out{source.base, std::vector<int64_t>(rank, 0)};
  sym::ExprPool& pool = graph_.pool();
  for (size_t d = 0; d < indices->size(); ++d) {
    if (!(*indices)[d] || graph_.type(*(*indices)[d]).dtype != DType::I64) return std::nullopt;
    if (source.steps[d] == 0) continue;
    const Found index = operand(*(*indices)[d], rank);
    if (source.steps[d] != 1 || !index || !is_natural(*index)) return std::nullopt;
    out.base = pool.add(out.base, index->base);
    for (size_t i = 0; i < rank; ++i) out.steps[i] += index->steps[i];
  }
  return out;
}

// The source's function by the indices of the result.
AffineElements::Found AffineElements::through(const Node& node, Found source) const {
  if (!source) return std::nullopt;
  const std::string_view base = base_name(node);
  const std::vector<sym::ExprId>&from = graph_.type(std::get<ValueId>(node.args[0])).sizes,
        &to = graph_.type(node.results[0]).sizes;
  if (base == "expand") {
    source->steps.insert(source->steps.begin(), to.size() - from.size(), 0);
    return source;
  }
  if (!keeps_order(base)) return std::nullopt;
  const sym::ExprPool& pool = graph_.pool();
  Affine out{source->base, std::vector<int64_t>(to.size(), 0)};
  size_t d = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    if (pool.is_const(to[i], 1)) continue;
    while (d < from.size() && pool.is_const(from[d], 1)) ++d;
    if (d == from.size() || from[d] != to[i]) return std::nullopt;
    out.steps[i] = source->steps[d++];
  }
  while (d < from.size() && pool.is_const(from[d], 1)) ++d;
  return d == from.size() ? Found(std::move(out)) : std::nullopt;
}

}  // namespace cresset::ops
