#include "loop/collapse.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "sym/rebuild.h"

namespace cresset::loop {
namespace {

class Collapser {
 public:
  explicit Collapser(const Kernel& kernel) : kernel_(kernel), env_(kernel.env()), pool_(env_.pool()) {
    for (const Dim& dim : kernel.dims) known_.insert(dim.var);
    for (const Binding& b : kernel.bindings) known_.insert(b.var);
    const std::vector<VarId> symbols = kernel.size_symbols();
    known_.insert(symbols.begin(), symbols.end());
    for (VarId symbol : symbols) {  // equal symbols share a representative, which the kernel may not mention
      const ExprId r = env_.simplify(pool_.var(symbol));
      if (pool_.is_var(r) && !known_.count(pool_.var_of(r))) ours_.try_emplace(pool_.var_of(r), pool_.var(symbol));
    }
  }

  IndexSpace run() {
    gather();
    drop_unit_loops(space_.outer);
    drop_unit_loops(space_.inner);
    split(space_.outer);
    split(space_.inner);
    order(space_.outer);
    order(space_.inner);
    merge(space_.outer);
    merge(space_.inner);
    return std::move(space_);
  }

 private:
  // Like env_.simplify, but the result mentions only variables of the kernel, because a call passes only these symbols.
  ExprId simplify(ExprId e) {
    ExprId out = env_.simplify(e);
    if (!ours_.empty()) out = pool_.substitute(out, ours_);
    std::vector<VarId> vars;
    pool_.collect_vars(out, vars);
    return std::all_of(vars.begin(), vars.end(), [&](VarId v) { return known_.count(v) != 0; }) ? out : e;
  }

  template <class F>
  void for_each_expr(F&& f) {
    for (ExprId& e : space_.scalar)
      if (e.valid()) f(e);
    for (ExprId& e : space_.store) f(e);
    if (space_.position.valid()) f(space_.position);
  }

  void gather() {
    for (const Dim& dim : kernel_.dims) {
      const bool inner = dim.kind == Dim::Kind::Inner;
      (inner ? space_.inner : space_.outer).push_back({dim.var, simplify(dim.extent), inner});
    }
    bool wants_position = false;
    for (const Scalar& s : kernel_.scalars) {
      space_.scalar.push_back(s.expr.valid() ? simplify(s.expr) : ExprId{});
      wants_position |= s.op == Op::Reduce && (s.combine == Combine::ArgMax || s.combine == Combine::ArgMin);
    }
    for (const Store& s : kernel_.stores) space_.store.push_back(simplify(s.address));
    if (!wants_position) return;
    space_.position = pool_.constant(0);
    for (const Loop& loop : space_.inner)
      space_.position = pool_.add(pool_.mul(space_.position, loop.extent), pool_.var(loop.var));
  }

  void replace(VarId var, ExprId with) {
    const std::unordered_map<VarId, ExprId> map{{var, with}};
    for_each_expr([&](ExprId& e) { e = simplify(pool_.substitute(e, map)); });
  }

  void drop_unit_loops(std::vector<Loop>& loops) {
    std::erase_if(loops, [&](const Loop& loop) {
      if (!pool_.is_const(loop.extent, 1)) return false;
      replace(loop.var, pool_.constant(0));
      return true;
    });
  }

  // Splits loops whose variable is divided by a divisor of their extent, as in flattened dimensions. The loop
  // becomes two: o * divisor + i.
  void split(std::vector<Loop>& loops) {
    for (size_t k = 0; k < loops.size();) {
      const ExprId divisor = divisor_of(loops[k]);
      if (divisor.valid())
        split_by(loops, k, divisor);
      else
        ++k;
    }
  }

  // Returns a divisor of the loop's variable in some expression which also divides the extent. Short rows are excluded:
  // a vector holds several short rows, and division is faster there.
  ExprId divisor_of(const Loop& loop) {
    constexpr int64_t kShort = 8;
    ExprId found;
    for_each_expr([&](ExprId& e) {
      if (found.valid() || !pool_.uses_var(e, loop.var)) return;
      visit_divisions(e, [&](ExprId dividend, ExprId divisor) {
        if (found.valid() || dividend != pool_.var(loop.var) || !is_size(divisor)) return;
        if (env_.typical_or(divisor, 0) < kShort || env_.known_equal(divisor, loop.extent)) return;
        if (times(loop.extent, divisor).valid()) found = divisor;
      });
    });
    return found;
  }

  template <class F>
  void visit_divisions(ExprId e, F&& f) {
    const sym::Kind kind = pool_[e].kind;
    const std::vector<ExprId> operands(pool_.operands(e).begin(), pool_.operands(e).end());
    if (kind == sym::Kind::FloorDiv || kind == sym::Kind::Mod) f(operands[0], operands[1]);
    for (ExprId operand : operands) visit_divisions(operand, f);
  }

  bool is_size(ExprId e) {
    std::vector<VarId> vars;
    pool_.collect_vars(e, vars);
    const auto is_loop = [&](VarId var) {
      const auto walks = [&](const Loop& loop) { return loop.var == var; };
      return std::any_of(space_.outer.begin(), space_.outer.end(), walks) ||
             std::any_of(space_.inner.begin(), space_.inner.end(), walks) ||
             std::any_of(kernel_.bindings.begin(), kernel_.bindings.end(),
                         [&](const Binding& b) { return b.var == var; });
    };
    return std::none_of(vars.begin(), vars.end(), is_loop);
  }

  // Returns extent / divisor when the division is exact; invalid otherwise.
  ExprId times(ExprId extent, ExprId divisor) {
    const ExprId quotient = env_.simplify(pool_.floor_div(extent, divisor));
    if (env_.known_equal(pool_.mul(quotient, divisor), extent)) return quotient;
    sym::TermList by, terms;  // symbols may be 0; then the extent is 0 too, and the loop is empty
    pool_.terms(divisor, by);
    pool_.terms(extent, terms);
    ExprId sum = pool_.constant(0), monomial;
    for (const sym::Term& term : terms) {
      if (by.size() != 1 || !by[0].monomial.valid() || !term.monomial.valid()) return {};
      if (term.coefficient % by[0].coefficient != 0) return {};
      if (!pool_.monomial_quotient(term.monomial, by[0].monomial, monomial)) return {};
      const int64_t coefficient = term.coefficient / by[0].coefficient;
      sum = pool_.add(sum, monomial.valid() ? pool_.scaled(monomial, coefficient) : pool_.constant(coefficient));
    }
    return sum;
  }

  // Rewrites `e` over o and i, where var == o * divisor + i.
  struct Split {
    ExprId var, divisor, o, i;
  };
  ExprId apply(const Split& split, ExprId e) {
    if (e == split.var) return pool_.add(pool_.mul(split.o, split.divisor), split.i);
    if (!pool_.uses_var(e, pool_.var_of(split.var))) return e;
    const sym::Kind kind = pool_[e].kind;
    std::vector<ExprId> operands(pool_.operands(e).begin(), pool_.operands(e).end());
    const bool divides = kind == sym::Kind::FloorDiv || kind == sym::Kind::Mod;
    if (divides && operands[0] == split.var && operands[1] == split.divisor)
      return kind == sym::Kind::Mod ? split.i : split.o;
    for (ExprId& operand : operands) operand = apply(split, operand);
    return sym::rebuild(pool_, e, operands);
  }

  void split_by(std::vector<Loop>& loops, size_t k, ExprId divisor) {
    const Loop loop = loops[k];
    const ExprId count = times(loop.extent, divisor);
    const Split split{pool_.var(loop.var), divisor, env_.new_index_var(count), env_.new_index_var(divisor)};
    known_.insert(pool_.var_of(split.o));
    known_.insert(pool_.var_of(split.i));
    for_each_expr([&](ExprId& e) { e = simplify(apply(split, e)); });
    loops[k] = {pool_.var_of(split.o), count, loop.inner};
    loops.insert(loops.begin() + static_cast<ptrdiff_t>(k) + 1, {pool_.var_of(split.i), divisor, loop.inner});
  }

  // The typical |coefficient| of `var` in the accesses. Stores come first, since scattered stores cost most.
  std::optional<int64_t> stride_hint(VarId var) {
    for (const auto* list : {&space_.store, &space_.scalar}) {
      for (ExprId e : *list) {
        sym::ExprPool::Affine form;
        if (!e.valid() || !pool_.uses_var(e, var) || !pool_.affine_in(e, var, form)) continue;
        constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
        const int64_t stride = env_.typical_or(form.coefficient, kNone);
        if (stride != kNone) return std::abs(stride);
      }
    }
    return std::nullopt;
  }

  // Puts the greatest stride outermost. Every order is correct: outer points are independent, and folds are unordered.
  void order(std::vector<Loop>& loops) {
    std::vector<std::pair<int64_t, Loop>> keyed;
    for (const Loop& loop : loops) {
      const std::optional<int64_t> stride = stride_hint(loop.var);
      if (!stride) return;
      keyed.emplace_back(*stride, loop);
    }
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < loops.size(); ++i) loops[i] = keyed[i].second;
  }

  void merge(std::vector<Loop>& loops) {
    for (size_t i = loops.size(); i-- > 1;) {
      if (try_merge(loops[i - 1], loops[i])) loops.erase(loops.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  // With m = o * extent(i) + i, replaces i by m - o * extent(i). If o then vanishes everywhere, m alone is enough.
  bool try_merge(Loop& o, const Loop& i) {
    if (!affine_parts_cancel(o, i)) return false;
    const ExprId extent = simplify(pool_.mul(o.extent, i.extent));
    const ExprId m = env_.new_index_var(extent);
    known_.insert(pool_.var_of(m));
    const ExprId replacement = pool_.sub(m, pool_.mul(pool_.var(o.var), i.extent));
    const std::unordered_map<VarId, ExprId> map{{i.var, replacement}};
    IndexSpace saved = space_;
    bool ok = true;
    for_each_expr([&](ExprId& e) {
      if (!ok || (!pool_.uses_var(e, i.var) && !pool_.uses_var(e, o.var))) return;
      e = simplify(pool_.substitute(e, map));
      ok = !pool_.uses_var(e, o.var);
    });
    if (!ok) {
      space_.scalar = std::move(saved.scalar);
      space_.store = std::move(saved.store);
      space_.position = saved.position;
      return false;
    }
    o = {pool_.var_of(m), extent, o.inner};
    return true;
  }

  // A cheap rejection before variables are created: affine accesses must satisfy coefficient(o) == coefficient(i) *
  // extent.
  bool affine_parts_cancel(const Loop& o, const Loop& i) {
    bool ok = true;
    for_each_expr([&](ExprId& e) {
      sym::ExprPool::Affine outer, inner;
      if (!ok || !pool_.affine_in(e, o.var, outer) || !pool_.affine_in(e, i.var, inner)) return;
      ok = env_.known_equal(outer.coefficient, pool_.mul(inner.coefficient, i.extent));
    });
    return ok;
  }

  const Kernel& kernel_;
  sym::ShapeEnv& env_;
  sym::ExprPool& pool_;
  IndexSpace space_;
  std::unordered_set<VarId> known_;
  std::unordered_map<VarId, ExprId> ours_;  // foreign representative -> a symbol of the kernel
};

}  // namespace

IndexSpace collapsed_space(const Kernel& kernel) { return Collapser(kernel).run(); }

}  // namespace cresset::loop
