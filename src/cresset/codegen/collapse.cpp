#include "codegen/collapse.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace cresset::codegen {
namespace {

using loop::Combine;
using loop::Dim;
using loop::Kernel;
using loop::Op;

class Collapser {
 public:
  explicit Collapser(const Kernel& kernel) : kernel_(kernel), env_(kernel.env()), pool_(env_.pool()) {
    for (const Dim& dim : kernel.dims) known_.insert(dim.var);
    for (const loop::Binding& b : kernel.bindings) known_.insert(b.var);
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
    order(space_.outer);
    order(space_.inner);
    merge(space_.outer);
    merge(space_.inner);
    return std::move(space_);
  }

 private:
  // env_.simplify, but only over variables that the kernel has: its symbols are all that a call passes.
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
    for (const loop::Scalar& s : kernel_.scalars) {
      space_.scalar.push_back(s.expr.valid() ? simplify(s.expr) : ExprId{});
      wants_position |= s.op == Op::Reduce && (s.combine == Combine::ArgMax || s.combine == Combine::ArgMin);
    }
    for (const loop::Store& s : kernel_.stores) space_.store.push_back(simplify(s.address));
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

  // The hint of |coefficient| of `var` in the accesses that mention it; stores first, since scattered stores cost most.
  std::optional<int64_t> stride_hint(VarId var) {
    for (const auto* list : {&space_.store, &space_.scalar}) {
      for (ExprId e : *list) {
        sym::ExprPool::Affine form;
        if (!e.valid() || !pool_.uses_var(e, var) || !pool_.affine_in(e, var, form)) continue;
        if (std::optional<int64_t> hint = env_.hint(form.coefficient)) return std::abs(*hint);
      }
    }
    return std::nullopt;
  }

  // Greatest stride outside. Any order is right: outer points are independent, folds have no order.
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

  // With m = o * extent(i) + i, replaces i by m - o * extent(i); when o vanishes everywhere, m alone is enough.
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

  // Cheap rejection before variables are made: affine accesses must satisfy coefficient(o) == coefficient(i) * extent.
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

}  // namespace cresset::codegen
