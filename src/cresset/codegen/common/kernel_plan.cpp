#include "codegen/common/kernel_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "loop/canonical.h"

namespace cresset::codegen {

using loop::Op;

size_t KernelPlan::first_inner() const {
  size_t k = 0;
  while (k < loops.size() && !loops[k].inner) ++k;
  return k;
}

uint16_t KernelPlan::loop_depth(size_t k) const {
  if ((k == vector || k == tile) && !vector_is_inner()) return 2;
  if (!loops[k].inner) return 1;
  return static_cast<uint16_t>(row_depth() + 1 + (k - first_inner()));
}

bool is_heavy(Op op) {
  return (op >= Op::Exp && op <= Op::Lgamma && op != Op::Sqrt && op != Op::Rsqrt) || op == Op::Pow || op == Op::Atan2 ||
         op == Op::Hypot || op == Op::Philox;
}

void Planner::collapse() {
  plan_.analysis = loop::analyze(kernel_);
  space_ = collapsed_space(kernel_);
  if (space_.outer.empty() && space_.inner.empty()) add_dummy_loop();
}

void Planner::add_dummy_loop() {
  const ExprId one = pool_.constant(1);
  space_.outer.push_back({pool_.var_of(env_.new_index_var(one)), one, false});
}

void Planner::set_loops(const Loop& vector) {
  for (const Loop& loop : space_.outer)
    if (loop.var != vector.var) plan_.loops.push_back(loop);
  if (!vector.inner) plan_.loops.push_back(vector);
  plan_.vector = plan_.loops.size() - 1;
  for (const Loop& loop : space_.inner)
    if (loop.var != vector.var) plan_.loops.push_back(loop);
  if (!vector.inner) return;
  plan_.vector = plan_.loops.size();
  plan_.loops.push_back(vector);
}

void Planner::find_live() {
  plan_.live.assign(count(), 0);
  auto mark = [&](ScalarId s) { plan_.live[s.index] = 1; };
  for (const loop::Store& s : kernel_.stores) loop::for_each_stored(kernel_, s, mark);
  for (size_t i = count(); i-- > 0;)
    if (plan_.live[i]) loop::for_each_operand(kernel_, scalar(i), mark);
}

IndexForm Planner::index_form(ExprId e) {
  IndexForm out{e, {}, {}};
  sym::ExprPool::Affine form;
  if (!e.valid() || !pool_.affine_in(e, vector_var(), form)) return out;
  out.coefficient = form.coefficient;
  out.rest = form.rest;
  return out;
}

// Depth and vector-ness of an expression from its variables.
void Planner::levels_of(ExprId e, uint16_t& depth, bool& vector) {
  if (!e.valid()) return;
  std::vector<VarId> vars;
  pool_.collect_vars(e, vars);
  for (VarId var : vars) {
    for (size_t k = 0; k < plan_.loops.size(); ++k)
      if (plan_.loops[k].var == var) depth = std::max(depth, plan_.loop_depth(k));
    vector |= var == vector_var();
    for (const loop::Binding& b : kernel_.bindings) {
      if (b.var != var) continue;
      depth = std::max(depth, plan_.depth[b.scalar.index]);
      vector |= plan_.is_vector[b.scalar.index] != 0;
    }
  }
}

void Planner::find_levels() {
  plan_.depth.assign(count(), 0);
  plan_.is_vector.assign(count(), 0);
  for (size_t i = 0; i < count(); ++i) {
    uint16_t depth = 0;
    bool vector = false;
    for (ScalarId operand : {scalar(i).a, scalar(i).b, scalar(i).c}) {
      if (!operand.valid()) continue;
      depth = std::max(depth, plan_.depth[operand.index]);
      vector |= plan_.is_vector[operand.index] != 0;
    }
    levels_of(space_.scalar[i], depth, vector);
    if (scalar(i).op == Op::Reduce) {
      depth = plan_.row_depth();
      vector &= !plan_.vector_is_inner();
    }
    if (scalar(i).op == Op::Scan && plan_.first_inner() != plan_.loops.size()) {
      depth = std::max(depth, plan_.loop_depth(plan_.loops.size() - 1));
      vector |= plan_.vector_is_inner();
    }
    plan_.depth[i] = depth;
    plan_.is_vector[i] = vector;
    plan_.scalar_index.push_back(index_form(space_.scalar[i]));
  }
  for (size_t i = 0; i < kernel_.stores.size(); ++i) {
    uint16_t depth = plan_.depth[kernel_.stores[i].value.index];
    if (const ScalarId condition = kernel_.stores[i].condition; condition.valid())
      depth = std::max(depth, plan_.depth[condition.index]);
    bool vector = false;
    levels_of(space_.store[i], depth, vector);
    // A point store stays inside the inner loops even when nothing in it varies there: they may be empty.
    const bool point = plan_.analysis.store_is_point[i] != 0 && plan_.first_inner() != plan_.loops.size();
    plan_.store_in_row.push_back(depth <= plan_.row_depth() && !point);
    plan_.store_index.push_back(index_form(space_.store[i]));
  }
  plan_.position = index_form(space_.position);
}

// Scalars needed inside the inner loops of one pass, closed over operands.
std::vector<uint8_t> Planner::needed_in(uint16_t pass) {
  std::vector<uint8_t> need(count(), 0);
  auto mark = [&](ScalarId s) { need[s.index] = 1; };
  if (pass == plan_.analysis.stages) {
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      if (plan_.store_in_row[i]) continue;
      loop::for_each_stored(kernel_, kernel_.stores[i], mark);
    }
  } else {
    for (size_t i = 0; i < count(); ++i)
      if (plan_.live[i] && scalar(i).op == Op::Reduce && plan_.analysis.stage[i] == pass + 1) mark(scalar(i).a);
  }
  for (size_t i = count(); i-- > 0;) {
    if (plan_.depth[i] <= plan_.row_depth()) need[i] = 0;
    if (!need[i] || reloaded_in(i, pass)) continue;
    loop::for_each_operand(kernel_, scalar(i), mark);
  }
  return need;
}

bool Planner::reloaded_in(size_t i, uint16_t pass) const {
  for (size_t k = 0; k < plan_.spilled.size(); ++k)
    if (plan_.spilled[k].index == i) return pass > plan_.spilled_first[k];
  return false;
}

ExprId Planner::product_of(bool inner, bool with_vector) {
  ExprId out = pool_.constant(1);
  for (size_t k = 0; k < plan_.loops.size(); ++k)
    if (plan_.loops[k].inner == inner && (with_vector || k != plan_.vector))
      out = pool_.mul(out, plan_.loops[k].extent);
  return out;
}

void Planner::prove_unsigned() {
  std::vector<ExprId>& proved = plan_.unsigned_division;
  for (const IndexForm& form : plan_.scalar_index) prove_unsigned(form.expr);
  for (const IndexForm& form : plan_.store_index) prove_unsigned(form.expr);
  prove_unsigned(plan_.position.expr);
  std::sort(proved.begin(), proved.end());
  proved.erase(std::unique(proved.begin(), proved.end()), proved.end());
}

void Planner::prove_unsigned(ExprId e) {
  if (!e.valid()) return;
  const sym::Kind kind = pool_[e].kind;
  const std::vector<ExprId> operands(pool_.operands(e).begin(), pool_.operands(e).end());
  for (ExprId operand : operands) prove_unsigned(operand);
  if (kind != sym::Kind::FloorDiv && kind != sym::Kind::Mod) return;
  if (is_not_negative(operands[1]) && is_not_negative(operands[0])) plan_.unsigned_division.push_back(e);
}

// Also where only a bound of a loop says so: of what counts down from its extent.
bool Planner::is_not_negative(ExprId e) {
  return env_.range(e).lo >= 0 || env_.known_true(pool_.ge(e, pool_.constant(0)));
}

std::string plan_text(const loop::Kernel& kernel, const KernelPlan& plan) {
  loop::CanonicalNames names(kernel);
  for (size_t k = 0; k < plan.loops.size(); ++k) names.set_name(plan.loops[k].var, fmt::format("v{}", k));
  std::string out;
  auto put = [&](ExprId e) { out += e.valid() ? names.text(e) + "\n" : "-\n"; };
  for (const Loop& loop : plan.loops) out += (loop.inner ? "i " : "o ") + names.text(loop.extent) + "\n";
  for (const IndexForm& form : plan.scalar_index) put(form.expr);
  for (const IndexForm& form : plan.store_index) put(form.expr);
  put(plan.position.expr);
  for (size_t k = 0; k < plan.spilled.size(); ++k)
    out += fmt::format("spill %{} {}\n", plan.spilled[k].index, plan.spilled_first[k]);
  std::vector<std::string> divisions;
  for (ExprId e : plan.unsigned_division) divisions.push_back(names.text(e));
  std::sort(divisions.begin(), divisions.end());
  for (const std::string& division : divisions) out += "u " + division + "\n";
  return out;
}

}  // namespace cresset::codegen
