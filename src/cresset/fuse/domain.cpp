#include "fuse/domain.h"

#include <algorithm>

namespace cresset::fuse {
namespace {

// One side of a refinement: a cursor over dimensions, and the remainder of the current dimension.
class Side {
 public:
  Side(sym::ShapeEnv& env, const std::vector<ExprId>& extents, std::vector<std::vector<size_t>>& parts)
      : env_(env), extents_(extents), parts_(parts) {
    parts_.assign(extents.size(), {});
    skip_ones();
  }
  bool done() const { return dim_ == extents_.size(); }
  ExprId left() const { return left_; }
  // Part `part` covers the most significant piece of the remainder. `rest` is the new remainder.
  void take(size_t part, std::optional<ExprId> rest) {
    parts_[dim_].push_back(part);
    if (rest) {
      left_ = *rest;
    } else {
      ++dim_;
      skip_ones();
    }
  }

 private:
  void skip_ones() {
    while (dim_ < extents_.size() && env_.pool().is_const(env_.simplify(extents_[dim_]), 1)) ++dim_;
    if (dim_ < extents_.size()) left_ = env_.simplify(extents_[dim_]);
  }
  sym::ShapeEnv& env_;
  const std::vector<ExprId>& extents_;
  std::vector<std::vector<size_t>>& parts_;
  size_t dim_ = 0;
  ExprId left_;
};

std::vector<ExprId> terms_of(const sym::ExprPool& pool, ExprId e) {
  if (pool[e].kind != sym::Kind::Add) return {e};
  const auto operands = pool.operands(e);
  return {operands.begin(), operands.end()};
}

// a / b for products of a constant and atoms. The division is structural, so b may be zero; then a is zero too.
std::optional<ExprId> monomial_quotient(sym::ExprPool& pool, ExprId a, ExprId b) {
  const auto factors = [&](ExprId e) {
    if (pool[e].kind != sym::Kind::Mul) return std::vector<ExprId>{e};
    const auto operands = pool.operands(e);
    return std::vector<ExprId>(operands.begin(), operands.end());
  };
  int64_t constant = 1;
  std::vector<ExprId> left;
  for (ExprId f : factors(a)) {
    if (pool.is_const(f))
      constant *= pool.const_value(f);
    else
      left.push_back(f);
  }
  for (ExprId f : factors(b)) {
    if (pool.is_const(f)) {
      if (constant % pool.const_value(f) != 0) return std::nullopt;
      constant /= pool.const_value(f);
      continue;
    }
    const auto it = std::find(left.begin(), left.end(), f);
    if (it == left.end()) return std::nullopt;
    left.erase(it);
  }
  left.push_back(pool.constant(constant));
  return pool.product(left);
}

struct Digit {
  size_t dim;
  ExprId coefficient;
};

// Appends the digits of a mixed-radix number, least significant first, if `e` is a number of this kind over unused
// variables.
bool digits_of(sym::ShapeEnv& env, const std::vector<loop::Dim>& dims, ExprId e, ExprId size, std::vector<bool>& used,
               std::vector<Digit>& digits) {
  sym::ExprPool& pool = env.pool();
  std::vector<Digit> found;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!pool.uses_var(e, dims[d].var)) continue;
    sym::ExprPool::Affine affine;
    if (used[d] || !pool.affine_in(e, dims[d].var, affine)) return false;
    found.push_back({d, affine.coefficient});
    used[d] = true;
    e = affine.rest;
  }
  if (!pool.is_const(e, 0)) return false;
  ExprId expected = pool.constant(1);
  while (!found.empty()) {
    auto next = std::find_if(found.begin(), found.end(),
                             [&](const Digit& d) { return env.known_equal(d.coefficient, expected); });
    if (next == found.end()) return false;
    expected = pool.mul(expected, dims[next->dim].extent);
    digits.push_back(*next);
    found.erase(next);
  }
  return env.known_equal(expected, size);
}

}  // namespace

sym::VarId IndexVars::at(ExprId extent, size_t number) {
  std::vector<sym::VarId>& made = made_[extent];
  if (made.size() <= number) made.resize(number + 1);
  if (!made[number].valid()) made[number] = env_.pool().var_of(env_.new_index_var(extent));
  return made[number];
}

std::optional<ExprId> exact_quotient(sym::ShapeEnv& env, ExprId a, ExprId b) {
  sym::ExprPool& pool = env.pool();
  if (pool.is_const(b, 0)) return std::nullopt;
  const std::vector<ExprId> numerator = terms_of(pool, a), denominator = terms_of(pool, b);
  if (denominator.size() == 1) {
    ExprId q = pool.constant(0);
    for (ExprId term : numerator) {
      const std::optional<ExprId> part = monomial_quotient(pool, term, b);
      if (!part) return std::nullopt;
      q = pool.add(q, *part);
    }
    return q;
  }
  // The quotient of two sums, if it is a monomial: (s0 + 1) * 4 * s1 by (s0 + 1).
  for (ExprId term : numerator) {
    const std::optional<ExprId> q = monomial_quotient(pool, term, denominator[0]);
    if (q && pool.mul(*q, b) == a) return q;
  }
  return std::nullopt;
}

std::optional<Refinement> refine(sym::ShapeEnv& env, const std::vector<ExprId>& a, const std::vector<ExprId>& b) {
  Refinement out;
  Side left(env, a, out.of_a), right(env, b, out.of_b);
  while (!left.done() && !right.done()) {
    const size_t part = out.extents.size();
    const ExprId x = left.left(), y = right.left();
    if (env.known_equal(x, y)) {
      out.extents.push_back(x);
      left.take(part, {});
      right.take(part, {});
    } else if (auto q = exact_quotient(env, x, y)) {
      out.extents.push_back(y);
      left.take(part, *q);
      right.take(part, {});
    } else if (auto r = exact_quotient(env, y, x)) {
      out.extents.push_back(x);
      left.take(part, {});
      right.take(part, *r);
    } else {
      return std::nullopt;
    }
  }
  if (!left.done() || !right.done()) return std::nullopt;
  return out;
}

ExprId combine(sym::ExprPool& pool, const std::vector<ExprId>& parts, const std::vector<ExprId>& extents) {
  ExprId sum = pool.constant(0);
  for (size_t i = 0; i < parts.size(); ++i) sum = pool.add(pool.mul(sum, extents[i]), parts[i]);
  return sum;
}

std::optional<Index> coordinates(sym::ShapeEnv& env, const std::vector<loop::Dim>& dims,
                                 const std::vector<ExprId>& extents) {
  std::vector<ExprId> have;
  for (const loop::Dim& dim : dims) have.push_back(dim.extent);
  const std::optional<Refinement> parts = refine(env, have, extents);
  if (!parts) return std::nullopt;
  sym::ExprPool& pool = env.pool();
  std::vector<ExprId> var_of_part(parts->extents.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (parts->of_a[d].size() > 1) return std::nullopt;
    for (size_t p : parts->of_a[d]) var_of_part[p] = pool.var(dims[d].var);
  }
  Index index;
  for (const std::vector<size_t>& run : parts->of_b) {
    std::vector<ExprId> vars, sizes;
    for (size_t p : run) vars.push_back(var_of_part[p]), sizes.push_back(parts->extents[p]);
    index.push_back(combine(pool, vars, sizes));
  }
  return index;
}

std::optional<std::unordered_map<sym::VarId, ExprId>> invert(sym::ShapeEnv& env, const std::vector<loop::Dim>& dims,
                                                             const Index& index, const std::vector<ExprId>& sizes,
                                                             const Index& target) {
  sym::ExprPool& pool = env.pool();
  std::unordered_map<sym::VarId, ExprId> solution;
  std::vector<bool> used(dims.size(), false);
  for (size_t k = 0; k < index.size(); ++k) {
    std::vector<Digit> digits;
    if (pool.is_const(env.simplify(sizes[k]), 1)) continue;
    if (!digits_of(env, dims, index[k], sizes[k], used, digits)) return std::nullopt;
    ExprId rest = target[k];
    for (size_t i = 0; i < digits.size(); ++i) {
      const loop::Dim& dim = dims[digits[i].dim];
      const bool last = i + 1 == digits.size();
      solution[dim.var] = env.simplify(last ? rest : pool.mod(rest, dim.extent));
      if (!last) rest = env.simplify(pool.floor_div(rest, dim.extent));
    }
  }
  for (size_t d = 0; d < dims.size(); ++d)
    if (!used[d]) return std::nullopt;
  return solution;
}

}  // namespace cresset::fuse
