#include "ops/view_groups.h"

#include <algorithm>

#include "base/check.h"

namespace cresset::ops {

using sym::ExprId;
using sym::ExprPool;
using sym::ShapeEnv;
using sym::Term;
using sym::TermList;

namespace {

// A monomial order compatible with multiplication: at the first differing atom, the smaller id is the greater monomial.
bool greater_monomial(const ExprPool& pool, const ExprId& a, const ExprId& b) {
  const std::span<const ExprId> fa = pool.factors(a), fb = pool.factors(b);
  for (size_t i = 0; i < std::min(fa.size(), fb.size()); ++i)
    if (fa[i] != fb[i]) return fa[i] < fb[i];
  return fa.size() > fb.size();
}

Term leading_term(const ExprPool& pool, ExprId e) {
  TermList terms;
  pool.terms(e, terms);
  Term best = terms[0];
  for (const Term& term : terms)
    if (term.monomial != best.monomial && greater_monomial(pool, term.monomial, best.monomial)) best = term;
  return best;
}

constexpr int kMaxQuotientTerms = 16;

}  // namespace

std::optional<ExprId> divide_exactly(ExprPool& pool, ExprId a, ExprId b) {
  if (pool.is_const(b, 0)) return std::nullopt;
  if (a == b) return pool.constant(1);
  const Term divisor = leading_term(pool, b);
  ExprId quotient = pool.constant(0);
  for (int step = 0; step < kMaxQuotientTerms; ++step) {
    if (pool.is_const(a, 0)) return quotient;
    const Term lead = leading_term(pool, a);
    ExprId monomial;
    if (lead.coefficient % divisor.coefficient != 0) return std::nullopt;
    if (!pool.monomial_quotient(lead.monomial, divisor.monomial, monomial)) return std::nullopt;
    const int64_t coefficient = lead.coefficient / divisor.coefficient;
    const ExprId term = monomial.valid() ? pool.scaled(monomial, coefficient) : pool.constant(coefficient);
    quotient = pool.add(quotient, term);
    a = pool.sub(a, pool.mul(term, b));
  }
  return std::nullopt;
}

bool is_one(ShapeEnv& env, ExprId size) {
  if (env.pool().is_const(size)) return env.pool().is_const(size, 1);
  return env.known_equal(size, env.pool().constant(1));
}

bool is_broadcast(ShapeEnv& env, ExprId size, ExprId index) {
  if (env.pool().is_const(size)) return env.pool().is_const(size, 1);
  const ExprId is_one = env.pool().eq(size, env.pool().constant(1));
  if (const std::optional<bool> known = env.statically_known(is_one)) return *known;
  const ExprId now = env.simplify(size);
  return !env.pool().is_var(now) && env.hint_or(now, 0) == 1 && !env.known_true(env.pool().lt(index, now)) &&
         env.evaluate(is_one, [] { return sym::Reason{"a size that is broadcast", ""}; }).value_or(false);
}

namespace {

std::vector<size_t> wide_dims(ShapeEnv& env, const Sizes& sizes, const SizeEquality& equal) {
  const ExprId one = env.pool().constant(1);
  std::vector<size_t> out;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!is_one(env, sizes[i]) && !(equal && equal(sizes[i], one))) out.push_back(i);
  return out;
}

// products[k]: the product of the sizes of dims[k..]; products[dims.size()] is 1.
Sizes suffix_products(ShapeEnv& env, const Sizes& sizes, const std::vector<size_t>& dims) {
  Sizes out(dims.size() + 1, env.pool().constant(1));
  for (size_t k = dims.size(); k-- > 0;) out[k] = env.pool().mul(sizes[dims[k]], out[k + 1]);
  return out;
}

}  // namespace

std::vector<DimGroup> match_dims(ShapeEnv& env, const Sizes& old_sizes, const Sizes& new_sizes,
                                 const SizeEquality& equal, const SizeEquality& equal_to_one) {
  const std::vector<size_t> old_dims = wide_dims(env, old_sizes, equal_to_one),
                            new_dims = wide_dims(env, new_sizes, equal_to_one);
  const Sizes old_products = suffix_products(env, old_sizes, old_dims);
  const Sizes new_products = suffix_products(env, new_sizes, new_dims);
  std::vector<DimGroup> groups;
  size_t old_end = old_dims.size(), new_end = new_dims.size();
  const auto close = [&](size_t old_begin, size_t new_begin) {
    groups.push_back({{old_dims.begin() + std::ptrdiff_t(old_begin), old_dims.begin() + std::ptrdiff_t(old_end)},
                      {new_dims.begin() + std::ptrdiff_t(new_begin), new_dims.begin() + std::ptrdiff_t(new_end)}});
    old_end = old_begin;
    new_end = new_begin;
  };
  for (size_t i = old_dims.size(); i-- > 1;) {
    for (size_t j = new_end; j-- > 1;) {
      if (!equal(old_products[i], new_products[j])) continue;
      close(i, j);
      break;
    }
  }
  if (old_end > 0 && new_end > 0) close(0, 0);
  std::reverse(groups.begin(), groups.end());
  return groups;
}

Index delinearize(ShapeEnv& env, ExprId position, const Sizes& sizes) {
  ExprPool& pool = env.pool();
  Index out(sizes.size(), pool.constant(0));
  const std::vector<size_t> dims = wide_dims(env, sizes, nullptr);
  for (size_t k = dims.size(); k-- > 0;) {
    const ExprId size = sizes[dims[k]];
    out[dims[k]] = k == 0 ? position : env.simplify(pool.mod(position, size));
    if (k > 0) position = env.simplify(pool.floor_div(position, size));
  }
  return out;
}

Index reshape_index(ShapeEnv& env, const Sizes& old_sizes, const Sizes& new_sizes, const Index& index) {
  ExprPool& pool = env.pool();
  Index out(old_sizes.size(), pool.constant(0));
  const auto equal = [&](ExprId a, ExprId b) { return a == b || env.known_equal(a, b); };
  for (const DimGroup& group : match_dims(env, old_sizes, new_sizes, equal)) {
    ExprId position = pool.constant(0);
    for (const size_t dim : group.new_dims) position = pool.add(pool.mul(position, new_sizes[dim]), index[dim]);
    Sizes sizes;
    for (const size_t dim : group.old_dims) sizes.push_back(old_sizes[dim]);
    // An element has a position only if no size is 0.
    const Index parts = delinearize(env, env.simplify_address(position), sizes);
    for (size_t k = 0; k < parts.size(); ++k) out[group.old_dims[k]] = parts[k];
  }
  return out;
}

namespace {

// If a dimension is requested in blocks (h // k of them, beside k), requires that k divides h. The total number of
// elements implies this only for all dimensions together. Loops, and later divisions of sizes, need it for each
// dimension.
void require_whole_blocks(ShapeContext& shapes, ExprId numel, const Sizes& requested, const Sizes& old_sizes) {
  ExprPool& pool = shapes.pool();
  if (shapes.env().hint_or(numel, 0) == 0) return;
  const auto has = [](const Sizes& sizes, ExprId size) {
    return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  };
  for (const ExprId blocks : requested) {
    if (pool[blocks].kind != sym::Kind::FloorDiv) continue;
    const ExprId whole = pool.operands(blocks)[0], block = pool.operands(blocks)[1];
    if (!has(old_sizes, whole) || !has(requested, block)) continue;
    const ExprId rest = pool.mod(whole, block);
    if (shapes.env().hint(rest) == 0) shapes.require(pool.eq(rest, pool.constant(0)));
  }
}

Result<ExprId> infer_one(ShapeContext& shapes, ExprId numel, const Sizes& others) {
  ExprPool& pool = shapes.pool();
  for (const ExprId size : others)
    if (!shapes.require(pool.ge(size, pool.constant(1)))) return shapes.invalid("-1 is ambiguous beside a size of 0");
  const ExprId rest = shapes.env().simplify(pool.product(others));
  if (const std::optional<ExprId> size = divide_exactly(pool, numel, rest)) return *size;
  const ExprId quotient = shapes.env().simplify(pool.floor_div(numel, rest));
  if (!shapes.require_equal(pool.mul(quotient, rest), numel)) return shapes.invalid("-1 does not divide evenly");
  return quotient;
}

}  // namespace

Result<Sizes> infer_sizes(ShapeContext& shapes, const Sizes& requested, const Sizes& old_sizes) {
  ExprPool& pool = shapes.pool();
  const ExprId numel = shapes.env().simplify(graph::numel(pool, old_sizes));
  Sizes sizes = requested, others;
  std::optional<size_t> unknown;
  require_whole_blocks(shapes, numel, requested, old_sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (is_minus_one(shapes, sizes[i])) {
      if (unknown) return shapes.invalid("only one dimension can be inferred");
      unknown = i;
      continue;
    }
    if (!shapes.require(pool.ge(sizes[i], pool.constant(0)))) return shapes.invalid("a size is negative");
    others.push_back(sizes[i]);
  }
  if (unknown) {
    CRESSET_TRY(sizes[*unknown], infer_one(shapes, numel, others));
    return sizes;
  }
  if (!shapes.require_equal(shapes.env().simplify(pool.product(sizes)), numel))
    return shapes.invalid("the shape does not fit the number of elements");
  return sizes;
}

namespace {

// The dimensions of a group must lie in memory like a single dimension.
bool mergeable(ShapeContext& shapes, const graph::TensorType& type, const std::vector<size_t>& dims) {
  ExprPool& pool = shapes.pool();
  for (size_t k = dims.size(); k-- > 1;) {
    const ExprId joined = pool.mul(type.strides[dims[k]], type.sizes[dims[k]]);
    if (!shapes.require_equal(type.strides[dims[k - 1]], joined)) return false;
  }
  return true;
}

std::optional<Sizes> group_strides(ShapeContext& shapes, const graph::TensorType& type, const Sizes& sizes,
                                   const SizeEquality& equal, const SizeEquality& equal_to_one = nullptr) {
  ExprPool& pool = shapes.pool();
  Sizes strides(sizes.size());
  for (const DimGroup& group : match_dims(shapes.env(), type.sizes, sizes, equal, equal_to_one)) {
    if (!mergeable(shapes, type, group.old_dims)) return std::nullopt;
    ExprId stride = type.strides[group.old_dims.back()];
    for (size_t k = group.new_dims.size(); k-- > 0;) {
      strides[group.new_dims[k]] = stride;
      stride = pool.mul(stride, sizes[group.new_dims[k]]);
    }
  }
  // The stride of a dimension of size 1 skips the dimensions to its right.
  ExprId next = type.rank() == 0 ? pool.constant(1) : type.strides.back();
  for (size_t i = sizes.size(); i-- > 0;) {
    if (!strides[i].valid()) strides[i] = next;
    next = pool.mul(strides[i], sizes[i]);
  }
  return strides;
}

}  // namespace

namespace {

using Numbers = std::vector<int64_t>;

std::optional<Numbers> known_numbers(const ExprPool& pool, const Sizes& exprs) {
  Numbers out;
  for (const ExprId e : exprs) {
    if (!pool.is_const(e)) return std::nullopt;
    out.push_back(pool.const_value(e));
  }
  return out;
}

// Strides of a view of what has no elements: row-major ones, in which an empty dimension counts as one element.
Numbers strides_over_nothing(const Numbers& sizes) {
  Numbers strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  return strides;
}

// Dimensions that lie in memory as one are taken from the innermost outwards; new dimensions divide each such run among
// them. One element steps over what its run has to its right, and belongs to the run that ends there.
std::optional<Numbers> divided_runs(const Numbers& had, const Numbers& lay, const Numbers& sizes) {
  Numbers strides(sizes.size(), 1);
  if (had.empty()) return strides;
  size_t next = sizes.size(), old = had.size();
  while (old > 0) {
    const int64_t inner = lay[old - 1];
    int64_t count = 1;
    do count *= had[--old];
    while (old > 0 && (had[old - 1] == 1 || lay[old - 1] == count * inner));
    int64_t taken = 1;
    for (; next > 0 && (taken < count || sizes[next - 1] == 1); taken *= sizes[--next])
      strides[next - 1] = taken * inner;
    if (taken != count) return std::nullopt;
  }
  return next == 0 ? std::optional(std::move(strides)) : std::nullopt;
}

}  // namespace

std::optional<Sizes> known_view_strides(ExprPool& pool, const graph::TensorType& type, const Sizes& sizes) {
  const std::optional<Numbers> had = known_numbers(pool, type.sizes), lay = known_numbers(pool, type.strides),
                               wanted = known_numbers(pool, sizes);
  if (!had || !lay || !wanted) return std::nullopt;
  const bool is_empty = std::find(had->begin(), had->end(), 0) != had->end();
  if (is_empty && *had == *wanted) return type.strides;
  const std::optional<Numbers> strides = is_empty ? strides_over_nothing(*wanted) : divided_runs(*had, *lay, *wanted);
  if (!strides) return std::nullopt;
  Sizes out;
  for (const int64_t stride : *strides) out.push_back(pool.constant(stride));
  return out;
}

Result<Sizes> view_strides(ShapeContext& shapes, const graph::TensorType& type, const Sizes& sizes) {
  const bool contiguous = shapes.is_contiguous(type);
  // With different strides at dimensions of size 1, these strides carry over to new dimensions of size 1. A convolution
  // derives its layout from them.
  if (contiguous && type.strides == shapes.contiguous_strides(type.sizes)) return shapes.contiguous_strides(sizes);
  ShapeEnv& env = shapes.env();
  const auto proved = [&](ExprId a, ExprId b) { return a == b || env.known_equal(a, b); };
  if (std::optional<Sizes> strides = group_strides(shapes, type, sizes, proved)) return *std::move(strides);
  if (contiguous) return shapes.contiguous_strides(sizes);
  // Sizes which are equal only in this call may still match; then the view is valid for equal sizes only.
  const auto happens = [&](ExprId a, ExprId b) {
    const std::optional<int64_t> ha = env.hint(a), hb = env.hint(b);
    return ha && hb && *ha == *hb && shapes.require_equal(a, b);
  };
  if (std::optional<Sizes> strides = group_strides(shapes, type, sizes, happens)) return *std::move(strides);
  // Sizes which are 1 only in this call may also match, since no stride applies to them.
  if (std::optional<Sizes> strides = group_strides(shapes, type, sizes, happens, happens)) return *std::move(strides);
  // Without elements every stride is valid.
  const ExprId count = graph::numel(shapes.pool(), type.sizes);
  if (env.hint(count) == 0 && shapes.require_equal(count, shapes.pool().constant(0)))
    return shapes.contiguous_strides(sizes);
  return shapes.invalid("the strides do not allow this view without a copy");
}

}  // namespace cresset::ops
