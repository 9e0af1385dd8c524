#include "ops/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "ops/op_def.h"
#include "ops/result_types.h"
#include "ops/view_groups.h"

namespace cresset::ops {

using graph::TensorType;
using graph::ValueId;
using loop::ScalarId;
using sym::ExprId;

// ---- OpArgs

std::vector<int64_t> OpArgs::constants(size_t i) const {
  std::vector<int64_t> out;
  for (const ExprId e : integers(i)) out.push_back(graph_->pool().const_value(e));
  return out;
}

// ---- ShapeContext

namespace {
sym::Reason reason_for(const graph::Graph& graph, std::string_view op) {
  return {std::string(op), graph.locations[graph.current_location]};
}
}  // namespace

std::optional<bool> ShapeContext::decided(ExprId condition) {
  return env().evaluate(condition, [&] { return reason_for(graph_, op_); });
}

Fallback ShapeContext::needs(ExprId condition) const {
  const std::string text = graph_.env().to_string(condition);
  return {FallbackReason::DataDependent, fmt::format("{} differs by {}, which only tensor data can tell", op_, text),
          fmt::format("state what always holds: cresset.check({}) or cresset.check({})", text,
                      graph_.env().to_string(graph_.pool().logical_not(condition)))};
}

// A data-dependent condition counts as false, and the program asserts this at run time.
bool ShapeContext::decide(ExprId condition) {
  if (std::optional<bool> known = decided(condition)) return *known;
  env().assume(pool().logical_not(condition), fmt::format("{} takes {} to be false", op_, env().to_string(condition)));
  return false;
}

// A data-dependent condition cannot be guarded. It becomes an assertion which the program checks at run time.
bool ShapeContext::require(ExprId condition) {
  if (demands_ == Demands::KnownOnly) return proved(condition);
  if (std::optional<bool> known = decided(condition)) return *known;
  return env().assume(condition, fmt::format("{} needs {}", op_, env().to_string(condition)));
}

bool ShapeContext::require_equal(ExprId a, ExprId b) { return a == b || require(pool().eq(a, b)); }

int64_t ShapeContext::constant(ExprId e) {
  if (pool().is_const(e)) return pool().const_value(e);
  const std::optional<int64_t> value = env().specialize(e, reason_for(graph_, op_));
  CRESSET_CHECK(value, fmt::format("{}: {} depends on data and must be known", op_, env().to_string(e)));
  return *value;
}

std::vector<int64_t> ShapeContext::constants(const std::vector<ExprId>& es) {
  std::vector<int64_t> out;
  out.reserve(es.size());
  for (const ExprId e : es) out.push_back(constant(e));
  return out;
}

namespace {

// The size of a broadcast dimension; nullopt: the sizes do not match. A guard on equality of two sizes keeps both
// dynamic, so it is preferred to a guard which specializes a size to 1.
std::optional<ExprId> broadcast_size(ShapeContext& shapes, ExprId a, ExprId b) {
  if (a == b) return a;
  sym::ExprPool& pool = shapes.pool();
  sym::ShapeEnv& env = shapes.env();
  if (pool.is_const(a, 1)) return b;
  if (pool.is_const(b, 1)) return a;
  if (env.known_equal(a, b)) return pool.is_const(b) ? b : a;
  const ExprId one = pool.constant(1);
  if (env.known_equal(a, one)) return b;
  if (env.known_equal(b, one)) return a;
  const std::optional<int64_t> ha = env.hint(a), hb = env.hint(b);
  if (ha && hb && *ha != *hb) {
    if (*ha == 1 && shapes.decide(pool.eq(a, one))) return b;
    if (*hb == 1 && shapes.decide(pool.eq(b, one))) return a;
  }
  // Beside a data-dependent size, a size of 1 counts as broadcast: both would be equal only by chance.
  if (ha == 1 && !hb && shapes.decide(pool.eq(a, one))) return b;
  if (hb == 1 && !ha && shapes.decide(pool.eq(b, one))) return a;
  // A slice of a data-dependent size, x[:1], has a single element unless the size is 0.
  const auto at_most_one = [&](ExprId e) { return !env.hint(e) && env.range(e).hi == 1; };
  if (at_most_one(b) && !at_most_one(a) && shapes.require(pool.eq(b, one))) return a;
  if (at_most_one(a) && !at_most_one(b) && shapes.require(pool.eq(a, one))) return b;
  if (!shapes.require_equal(a, b)) return std::nullopt;
  return pool.is_const(b) ? b : a;
}

}  // namespace

Result<std::vector<ExprId>> ShapeContext::broadcast(const std::vector<ExprId>& a, const std::vector<ExprId>& b) {
  if (a == b) return a;
  const std::vector<ExprId>& longer = a.size() >= b.size() ? a : b;
  const std::vector<ExprId>& shorter = a.size() >= b.size() ? b : a;
  std::vector<ExprId> out = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const std::optional<ExprId> size = broadcast_size(*this, longer[offset + i], shorter[i]);
    if (!size)
      return invalid(fmt::format("sizes {} and {} do not broadcast in dimension {}",
                                 env().to_string(longer[offset + i]), env().to_string(shorter[i]), offset + i));
    out[offset + i] = *size;
  }
  return out;
}

Result<int64_t> ShapeContext::wrap_dim(ExprId dim, size_t rank) {
  const int64_t bound = rank == 0 ? 1 : static_cast<int64_t>(rank);
  const int64_t d = constant(dim);
  if (d < -bound || d >= bound)
    return invalid(fmt::format("dimension {} is out of range [{}, {}]", d, -bound, bound - 1));
  return d < 0 ? d + bound : d;
}

Fallback ShapeContext::invalid(std::string why) const {
  return {FallbackReason::InvalidArguments, fmt::format("{}: {}", op_, why), ""};
}

Fallback ShapeContext::unsupported(std::string why) const {
  return {FallbackReason::UnsupportedArguments, fmt::format("{}: {}", op_, why), ""};
}

// ---- ElementContext

ScalarId ElementContext::element_where(ScalarId, ValueId value, const std::vector<ExprId>& index) {
  std::vector<ExprId> inside = index;
  const TensorType& type = graph().type(value);
  for (size_t i = 0; i < inside.size(); ++i) {
    if (env().known_equal(type.sizes[i], pool().constant(0))) {
      const DType dtype = compute_dtype(type.dtype);
      return is_float(dtype) ? scalars().constant(dtype, 0) : scalars().constant_int(dtype, 0);
    }
    const ExprId last = pool().sub(type.sizes[i], pool().constant(1));
    inside[i] = env().simplify(pool().min(pool().max(inside[i], pool().constant(0)), last));
  }
  return element(value, inside);
}

DataIndex ElementContext::data_index(ScalarId, ValueId, ValueId, size_t, bool) {
  CRESSET_CHECK(false, "an index from a tensor where nothing can report it");
  return {};
}

bool ElementContext::is_read_at_zero(ExprId size, ExprId index) {
  if (pool().is_const(size)) return pool().is_const(size, 1);
  if (std::find(wide_.begin(), wide_.end(), size) != wide_.end()) return false;
  if (is_broadcast(env(), size, index)) return true;
  if (pool().is_var(size) || env().hint_or(size, 0) != 1) wide_.push_back(size);  // at every index
  return false;
}

ScalarId ElementContext::broadcast_element(ValueId value, const std::vector<ExprId>& index) {
  const TensorType& type = graph().type(value);
  CRESSET_CHECK(type.rank() <= index.size(), "an operand has more dimensions than the result");
  const size_t offset = index.size() - type.rank();
  std::vector<ExprId> own(index.begin() + static_cast<std::ptrdiff_t>(offset), index.end());
  const TensorType& result = result_type(0);
  for (size_t i = 0; i < own.size(); ++i) {
    if (result.rank() == index.size() && result.sizes[offset + i] == type.sizes[i]) continue;
    if (is_read_at_zero(type.sizes[i], own[i])) own[i] = pool().constant(0);
  }
  return element(value, own);
}

ScalarId ElementContext::operand(const OpArgs& args, size_t i, const std::vector<ExprId>& index, DType dtype) {
  if (!args.is_tensor(i)) return number_operand(args, i, dtype);
  const ValueId value = args.value(i);
  const ScalarId scalar = broadcast_element(value, index);
  return graph().type(value).dtype == dtype ? scalar : scalars().cast(scalar, dtype);
}

ScalarId ElementContext::number_operand(const OpArgs& args, size_t i, DType dtype) {
  const DType held = compute_dtype(dtype);
  const graph::Arg& arg = args[i];
  ScalarId scalar;
  if (const double* number = std::get_if<double>(&arg)) {
    scalar = is_float(held)
                 ? scalars().constant(held, *number)
                 : scalars().constant_int(held, held == DType::Bool ? *number != 0 : static_cast<int64_t>(*number));
  } else if (const bool* flag = std::get_if<bool>(&arg)) {
    scalar = is_float(held) ? scalars().constant(held, *flag) : scalars().constant_int(held, *flag);
  } else {
    const ExprId e = args.integer(i);
    if (!pool().is_const(e)) return scalars().cast(scalars().size(e), dtype);
    const int64_t n = pool().const_value(e);
    scalar = is_float(held) ? scalars().constant(held, static_cast<double>(n))
                            : scalars().constant_int(held, held == DType::Bool ? n != 0 : n);
  }
  return held == dtype ? scalar : scalars().cast(scalar, dtype);
}

ExprId ElementContext::indirect(ScalarId scalar) {
  const DType dtype = scalars().dtype(scalar);
  CRESSET_CHECK(is_integral(dtype, false), "an index must be an integer");
  return scalars().bind_index(dtype == DType::I64 ? scalar : scalars().cast(scalar, DType::I64));
}

// ---- GraphBuilder

std::vector<ValueId> GraphBuilder::call_multi(std::string_view op, std::vector<graph::Arg> args) {
  const graph::OpId id = graph::op_id(op);
  const OpDef* def = find(id);
  CRESSET_CHECK(def != nullptr && def->shape != nullptr, fmt::format("{} has no shape rule", op));
  ShapeContext shapes(graph_, name_of(*def));
  Result<Types> types = result_types(shapes, *def, args);
  const graph::NodeId node = graph_.add_node(id, std::move(args), std::move(types).value());
  appended_.push_back(node);
  return graph_.node(node).results;
}

ValueId GraphBuilder::call(std::string_view op, std::vector<graph::Arg> args) {
  return call_multi(op, std::move(args)).at(0);
}

graph::Arg GraphBuilder::integers(const std::vector<int64_t>& vs) {
  std::vector<ExprId> out;
  out.reserve(vs.size());
  for (const int64_t v : vs) out.push_back(graph_.pool().constant(v));
  return out;
}

ValueId GraphBuilder::cast(ValueId v, DType dtype) {
  if (graph_.type(v).dtype == dtype) return v;
  using graph::None;
  return call("aten::_to_copy", {v, dtype, None{}, None{}, None{}, false, None{}});
}

}  // namespace cresset::ops
