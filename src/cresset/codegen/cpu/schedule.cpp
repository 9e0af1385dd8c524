#include "codegen/cpu/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "loop/canonical.h"
#include "loop/collapse.h"

namespace cresset::codegen::cpu {
namespace {

using loop::IndexSpace;
using loop::Kernel;
using loop::Op;
using loop::Scalar;

constexpr int64_t kPointwiseBlock = 4096;    // elements in a work item of a pointwise kernel
constexpr double kGatherLoss = 2;            // cost of gathered bytes relative to contiguous bytes
constexpr int kLeastGathered = 4;            // bytes: narrower elements are gathered no faster
constexpr int64_t kMostStrided = 4;          // elements between lanes in accesses by whole vectors
constexpr int64_t kLongReduction = 1 << 18;  // inner points from which float sums have two levels of totals

bool is_heavy(Op op) {
  return (op >= Op::Exp && op <= Op::Lgamma && op != Op::Sqrt && op != Op::Rsqrt) || op == Op::Pow || op == Op::Atan2 ||
         op == Op::Hypot;
}

class Scheduler {
 public:
  Scheduler(const Kernel& kernel, int vector_bits) : kernel_(kernel), env_(kernel.env()), pool_(env_.pool()) {
    out_.width = vector_bits / 32;
  }

  Schedule run() {
    out_.analysis = loop::analyze(kernel_);
    space_ = collapsed_space(kernel_);
    choose_vector_loop();
    find_live();
    choose_tile();
    find_levels();
    plan_passes();
    choose_unroll();
    size_work();
    prove_unsigned();
    return std::move(out_);
  }

 private:
  size_t count() const { return kernel_.scalars.size(); }
  const Scalar& scalar(size_t i) const { return kernel_.scalars[i]; }

  // Returns the bytes accessed with unit or small strides along `loop`. A store counts double, since scattering costs
  // more than gathering. In kernels with rows, accesses at row level are ignored, because rows may have any number of
  // points. Reads with large or irregular strides then count against the loop. Along another loop they may be
  // contiguous, or uniform across lanes.
  double unit_stride_bytes(const Loop& loop) {
    const bool has_rows = !space_.inner.empty();
    double votes = 0;
    auto vote = [&](ExprId e, DType dtype, double weight, bool is_point) {
      sym::ExprPool::Affine form;
      if (has_rows && !is_point) return;
      if (!e.valid() || !pool_.uses_var(e, loop.var)) return;
      const bool affine = pool_.affine_in(e, loop.var, form);
      if (!affine && !cuts_lanes(e, loop)) return;
      const bool known = affine && pool_.is_const(form.coefficient);
      const int64_t apart = known ? std::abs(pool_.const_value(form.coefficient)) : 0;
      if (apart >= 1 && apart <= kMostStrided)
        votes += weight * static_cast<double>(byte_size(dtype)) / static_cast<double>(apart);
      else if (has_rows)
        votes -= kGatherLoss * std::max(kLeastGathered, static_cast<int>(byte_size(dtype)));
    };
    for (size_t i = 0; i < count(); ++i) {
      if (scalar(i).op != Op::Load) continue;
      vote(space_.scalar[i], kernel_.buffers[scalar(i).buffer.index].dtype, 1, out_.analysis.is_point[i] != 0);
    }
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      const DType dtype = kernel_.buffers[kernel_.stores[i].buffer.index].dtype;
      vote(space_.store[i], dtype, 2, out_.analysis.store_is_point[i] != 0);
    }
    return std::max(votes, 0.0);
  }

  // Whether `e` divides the loop's variable by a number smaller than the vector width.
  bool cuts_lanes(ExprId e, const Loop& loop) {
    const sym::Kind kind = pool_[e].kind;
    const std::vector<ExprId> operands(pool_.operands(e).begin(), pool_.operands(e).end());
    const bool divides = kind == sym::Kind::FloorDiv || kind == sym::Kind::Mod;
    if (divides && pool_.uses_var(operands[0], loop.var) && pool_.is_const(operands[1]) &&
        pool_.const_value(operands[1]) < out_.width)
      return true;
    return std::any_of(operands.begin(), operands.end(), [&](ExprId operand) { return cuts_lanes(operand, loop); });
  }

  // Whether the steps of an outer loop are rows whose single result elements are adjacent, and whose reads are uniform
  // or adjacent across rows. With a vector of rows, every point is then read once for all lanes, and no fold across
  // lanes ends a row. Rows may be shorter than a vector, but the number of rows may not. Without another outer loop
  // there would be too few work items.
  bool shares_reads(const Loop& loop) {
    if (space_.inner.empty() || space_.outer.size() < 2) return false;
    if (!pool_.is_const(loop.extent) || pool_.const_value(loop.extent) < out_.width) return false;
    const auto steps_by = [&](ExprId e, int64_t step) {
      sym::ExprPool::Affine form;
      return !e.valid() || (pool_.affine_in(e, loop.var, form) && pool_.is_const(form.coefficient, step));
    };
    for (size_t i = 0; i < count(); ++i) {
      const ExprId at = space_.scalar[i];
      if (scalar(i).op != Op::Load || !at.valid() || !out_.analysis.is_point[i]) continue;
      if (pool_.uses_var(at, loop.var) && !steps_by(at, 1)) return false;
    }
    for (size_t i = 0; i < kernel_.stores.size(); ++i)
      if (out_.analysis.store_is_point[i] || !steps_by(space_.store[i], 1)) return false;
    return true;
  }

  // The decision applies to all sizes, so it uses constants but no hints, which describe only the first call.
  double score(const Loop& loop) {
    const double lanes = pool_.is_const(loop.extent) ? static_cast<double>(pool_.const_value(loop.extent)) : out_.width;
    return (unit_stride_bytes(loop) + 0.01) * std::min(1.0, lanes / out_.width);
  }

  void choose_vector_loop() {
    if (space_.outer.empty() && space_.inner.empty()) add_dummy_loop();
    const Loop* best = nullptr;
    double best_score = -1;
    for (const auto* list : {&space_.inner, &space_.outer}) {
      for (auto it = list->rbegin(); it != list->rend(); ++it) {
        const double s = !it->inner && shares_reads(*it) ? std::numeric_limits<double>::infinity() : score(*it);
        if (s > best_score) best = &*it, best_score = s;
      }
    }
    const Loop vector = *best;
    for (const Loop& loop : space_.outer)
      if (loop.var != vector.var) out_.loops.push_back(loop);
    if (!vector.inner) out_.loops.push_back(vector);
    out_.vector = out_.loops.size() - 1;
    for (const Loop& loop : space_.inner)
      if (loop.var != vector.var) out_.loops.push_back(loop);
    if (!vector.inner) return;
    out_.vector = out_.loops.size();
    out_.loops.push_back(vector);
  }

  void add_dummy_loop() {
    const ExprId one = pool_.constant(1);
    space_.outer.push_back({pool_.var_of(env_.new_index_var(one)), one, false});
  }

  void find_live() {
    out_.live.assign(count(), 0);
    auto mark = [&](ScalarId s) { out_.live[s.index] = 1; };
    for (const loop::Store& s : kernel_.stores) {
      mark(s.value);
      loop::for_each_bound_scalar(kernel_, s.address, mark);
    }
    for (size_t i = count(); i-- > 0;)
      if (out_.live[i]) loop::for_each_operand(kernel_, scalar(i), mark);
  }

  // Whether load i has unit stride along loop `along`, and larger steps along the vector loop.
  bool crosses(size_t i, const Loop& along) {
    constexpr int64_t kWidestElement = 4;
    const Scalar& s = scalar(i);
    sym::ExprPool::Affine by_vector, by_tile;
    if (!out_.live[i] || s.op != Op::Load || s.a.valid()) return false;
    if (byte_size(kernel_.buffers[s.buffer.index].dtype) > kWidestElement) return false;
    bool indirect = false;
    loop::for_each_bound_scalar(kernel_, s.expr, [&](ScalarId) { indirect = true; });
    const ExprId e = space_.scalar[i];
    if (indirect || !pool_.affine_in(e, vector_var(), by_vector) || !pool_.affine_in(e, along.var, by_tile))
      return false;
    const ExprId step = by_vector.coefficient;
    const bool steps = !pool_.is_const(step) || std::abs(pool_.const_value(step)) > kMostStrided;
    return steps && pool_.is_const(by_tile.coefficient, 1) && !pool_.uses_var(by_vector.coefficient, along.var);
  }

  void choose_tile() {
    out_.tiled.assign(count(), 0);
    if (out_.first_inner() != out_.loops.size()) return;
    size_t most = 0;
    for (size_t k = 0; k < out_.vector; ++k) {
      const ExprId extent = out_.loops[k].extent;
      const bool short_loop = pool_.is_const(extent) && pool_.const_value(extent) < out_.width / 2;
      size_t found = 0;
      for (size_t i = 0; i < count(); ++i) found += crosses(i, out_.loops[k]);
      if (short_loop || found <= most) continue;
      most = found;
      out_.tile = k;
    }
    for (size_t i = 0; i < count() && out_.has_tile(); ++i) out_.tiled[i] = crosses(i, out_.loops[out_.tile]);
  }

  VarId vector_var() const { return out_.loops[out_.vector].var; }

  IndexForm index_form(ExprId e) {
    IndexForm out{e, {}, {}};
    sym::ExprPool::Affine form;
    if (!e.valid() || !pool_.affine_in(e, vector_var(), form)) return out;
    out.coefficient = form.coefficient;
    out.rest = form.rest;
    return out;
  }

  // Derives the depth of an expression from its variables, and whether it differs between lanes.
  void levels_of(ExprId e, uint16_t& depth, bool& vector) {
    if (!e.valid()) return;
    std::vector<VarId> vars;
    pool_.collect_vars(e, vars);
    for (VarId var : vars) {
      for (size_t k = 0; k < out_.loops.size(); ++k)
        if (out_.loops[k].var == var) depth = std::max(depth, out_.loop_depth(k));
      vector |= var == vector_var();
      for (const loop::Binding& b : kernel_.bindings) {
        if (b.var != var) continue;
        depth = std::max(depth, out_.depth[b.scalar.index]);
        vector |= out_.is_vector[b.scalar.index] != 0;
      }
    }
  }

  void find_levels() {
    out_.depth.assign(count(), 0);
    out_.is_vector.assign(count(), 0);
    for (size_t i = 0; i < count(); ++i) {
      uint16_t depth = 0;
      bool vector = false;
      for (ScalarId operand : {scalar(i).a, scalar(i).b, scalar(i).c}) {
        if (!operand.valid()) continue;
        depth = std::max(depth, out_.depth[operand.index]);
        vector |= out_.is_vector[operand.index] != 0;
      }
      levels_of(space_.scalar[i], depth, vector);
      if (scalar(i).op == Op::Reduce) {
        depth = out_.row_depth();
        vector &= !out_.vector_is_inner();
      }
      out_.depth[i] = depth;
      out_.is_vector[i] = vector;
      out_.scalar_index.push_back(index_form(space_.scalar[i]));
    }
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      uint16_t depth = out_.depth[kernel_.stores[i].value.index];
      bool vector = false;
      levels_of(space_.store[i], depth, vector);
      // A point store stays inside the inner loops even if it is invariant there, because the loops may be empty.
      const bool point = out_.analysis.store_is_point[i] != 0 && out_.first_inner() != out_.loops.size();
      out_.store_in_row.push_back(depth <= out_.row_depth() && !point);
      out_.store_index.push_back(index_form(space_.store[i]));
    }
    out_.position = index_form(space_.position);
  }

  // Scalars needed inside the inner loops of a pass, closed over operands.
  std::vector<uint8_t> needed_in(uint16_t pass) {
    std::vector<uint8_t> need(count(), 0);
    auto mark = [&](ScalarId s) { need[s.index] = 1; };
    if (pass == out_.analysis.stages) {
      for (size_t i = 0; i < kernel_.stores.size(); ++i) {
        if (out_.store_in_row[i]) continue;
        mark(kernel_.stores[i].value);
        loop::for_each_bound_scalar(kernel_, kernel_.stores[i].address, mark);
      }
    } else {
      for (size_t i = 0; i < count(); ++i)
        if (out_.live[i] && scalar(i).op == Op::Reduce && out_.analysis.stage[i] == pass + 1) mark(scalar(i).a);
    }
    for (size_t i = count(); i-- > 0;) {
      if (out_.depth[i] <= out_.row_depth()) need[i] = 0;
      if (!need[i] || reloaded_in(i, pass)) continue;
      loop::for_each_operand(kernel_, scalar(i), mark);
    }
    return need;
  }

  bool reloaded_in(size_t i, uint16_t pass) const {
    for (size_t k = 0; k < out_.spilled.size(); ++k)
      if (out_.spilled[k].index == i) return pass > out_.spilled_first[k];
    return false;
  }

  // Whether lanes read distant elements one by one, in rows which fit in caches.
  bool is_gathered(size_t i) {
    constexpr int64_t kMostKept = 1 << 16;
    if (scalar(i).op != Op::Load) return false;
    const int64_t rows = out_.vector_is_inner() ? 1 : out_.width;
    if (env_.typical_or(product_of(/*inner=*/true, /*with_vector=*/true), kMostKept) * rows >= kMostKept) return false;
    const ExprId step = out_.scalar_index[i].coefficient;
    return !step.valid() || !pool_.is_const(step) || std::abs(pool_.const_value(step)) > kMostStrided;
  }

  // Values which are expensive to compute or to read, and needed in more than one pass, go through scratch. Spilling a
  // value may make the recomputation of another unnecessary. Values are therefore considered one at a time, latest in
  // dependence order first.
  void plan_passes() {
    for (size_t i = count(); i-- > 0;) {
      if (!out_.live[i] || !out_.is_vector[i] || !(is_heavy(scalar(i).op) || is_gathered(i))) continue;
      std::vector<uint16_t> passes;
      for (uint16_t p = 0; p <= out_.analysis.stages; ++p)
        if (needed_in(p)[i]) passes.push_back(p);
      if (passes.size() < 2) continue;
      out_.spilled.push_back({static_cast<uint32_t>(i)});
      out_.spilled_first.push_back(passes[0]);
    }
    for (uint16_t p = 0; p <= out_.analysis.stages; ++p) out_.needed.push_back(needed_in(p));
  }

  // Several vectors at once give independent chains of dependent folds. Heavy bodies are parallel enough and would only
  // spill registers.
  void choose_unroll() {
    int cost = 0;
    bool has_doubles = false;  // or other values of 8 bytes, of which a vector takes two registers
    for (size_t i = 0; i < count(); ++i) {
      if (!out_.live[i] || scalar(i).op == Op::Const) continue;
      has_doubles |= out_.is_vector[i] != 0 && byte_size(scalar(i).dtype) == 8;
      has_doubles |= scalar(i).op == Op::Reduce && byte_size(scalar(i).dtype) == 8;  // the indices of ArgMax and ArgMin
      cost += is_heavy(scalar(i).op) ? 8 : 1;
    }
    const bool reduces = out_.analysis.stages > 0;
    out_.unroll = cost <= 10 ? (reduces ? 4 : 2) : cost <= 24 ? 2 : 1;
    if (out_.has_tile()) out_.unroll = 1;
    if (has_doubles && out_.unroll > 1) out_.unroll /= 2;
    const ExprId known = out_.loops[out_.vector].extent;
    while (out_.unroll > 1 && pool_.is_const(known) && pool_.const_value(known) < out_.width * out_.unroll)
      out_.unroll /= 2;
    // A constant extent, such as a hidden size, often needs no tail at all.
    if (pool_.is_const(known) && pool_.const_value(known) % out_.width == 0 && out_.vector_is_inner())
      while (pool_.const_value(known) % (out_.width * out_.unroll) != 0) out_.unroll /= 2;
    if (pool_.is_const(out_.loops[out_.vector].extent, 1)) out_.width = out_.unroll = 1;
    // Masks are free next to a long body where the machine has mask registers, and half the code compiles in half the
    // time.
    constexpr int kWidthWithMasks = 16;
    const bool sequential_inside = !out_.vector_is_inner() && out_.first_inner() != out_.loops.size();
    out_.masked = out_.width > 1 && (sequential_inside || (out_.unroll == 1 && out_.width == kWidthWithMasks));
  }

  ExprId product_of(bool inner, bool with_vector) {
    ExprId out = pool_.constant(1);
    for (size_t k = 0; k < out_.loops.size(); ++k)
      if (out_.loops[k].inner == inner && (with_vector || k != out_.vector)) out = pool_.mul(out, out_.loops[k].extent);
    return out;
  }

  // A work item: a block of the tile loop times a block of the vector loop. Each row of the block reads whole cache
  // lines and each column writes whole cache lines, few enough to stay in the caches.
  void size_tiles() {
    constexpr int64_t kBlock = 64;
    out_.tile_block = out_.block = kBlock;
    ExprId others = pool_.constant(1);
    for (size_t k = 0; k < out_.loops.size(); ++k)
      if (k != out_.vector && k != out_.tile) others = pool_.mul(others, out_.loops[k].extent);
    const ExprId height = pool_.constant(out_.tile_block), block = pool_.constant(out_.block);
    const ExprId columns = out_.loops[out_.vector].extent, rows = out_.loops[out_.tile].extent;
    out_.work_items = pool_.mul(others, pool_.mul(pool_.ceil_div(rows, height), pool_.ceil_div(columns, block)));
    out_.item_cost = pool_.mul(pool_.min(rows, height), pool_.min(columns, block));
    out_.scratch_bytes = pool_.constant(0);
  }

  void size_work() {
    if (out_.has_tile()) return size_tiles();
    const Loop& vector = out_.loops[out_.vector];
    const bool pointwise = out_.first_inner() == out_.loops.size();
    out_.block = pointwise ? kPointwiseBlock : static_cast<int64_t>(out_.width) * out_.unroll;
    int64_t weight = 1;
    for (size_t i = 0; i < count(); ++i)
      if (out_.live[i] && is_heavy(scalar(i).op)) weight += 4;
    const ExprId inner = product_of(/*inner=*/true, /*with_vector=*/true);
    const ExprId block = pool_.constant(out_.block), passes = pool_.constant(weight * (out_.analysis.stages + 1));
    out_.sum_levels = env_.typical_or(inner, 0) >= kLongReduction ? 2 : 1;
    out_.work_items = product_of(/*inner=*/false, /*with_vector=*/true);
    out_.item_cost = pool_.mul(inner, passes);
    if (!vector.inner) {
      out_.work_items = pool_.mul(product_of(false, false), pool_.ceil_div(vector.extent, block));
      out_.item_cost = pool_.mul(out_.item_cost, pool_.min(vector.extent, block));
    }
    const int64_t lanes = static_cast<int64_t>(out_.width) * out_.unroll;
    const ExprId slots =
        vector.inner ? pool_.add(inner, pool_.constant(lanes)) : pool_.mul(inner, pool_.constant(lanes));
    out_.scratch_bytes = pool_.mul(slots, pool_.constant(8 * static_cast<int64_t>(out_.spilled.size())));
  }

  void prove_unsigned() {
    for (const IndexForm& form : out_.scalar_index) prove_unsigned(form.expr);
    for (const IndexForm& form : out_.store_index) prove_unsigned(form.expr);
    prove_unsigned(out_.position.expr);
    std::sort(out_.unsigned_division.begin(), out_.unsigned_division.end());
    auto last = std::unique(out_.unsigned_division.begin(), out_.unsigned_division.end());
    out_.unsigned_division.erase(last, out_.unsigned_division.end());
  }

  void prove_unsigned(ExprId e) {
    if (!e.valid()) return;
    const sym::Kind kind = pool_[e].kind;
    const std::vector<ExprId> operands(pool_.operands(e).begin(), pool_.operands(e).end());
    for (ExprId operand : operands) prove_unsigned(operand);
    if (kind != sym::Kind::FloorDiv && kind != sym::Kind::Mod) return;
    if (is_not_negative(operands[1]) && is_not_negative(operands[0])) out_.unsigned_division.push_back(e);
  }

  // Also proves it from the bound of a loop, as for an index which counts down from its extent.
  bool is_not_negative(ExprId e) { return env_.range(e).lo >= 0 || env_.known_true(pool_.ge(e, pool_.constant(0))); }

  const Kernel& kernel_;
  sym::ShapeEnv& env_;
  sym::ExprPool& pool_;
  IndexSpace space_;
  Schedule out_;
};

}  // namespace

size_t Schedule::first_inner() const {
  size_t k = 0;
  while (k < loops.size() && !loops[k].inner) ++k;
  return k;
}

uint16_t Schedule::loop_depth(size_t k) const {
  if ((k == vector || k == tile) && !vector_is_inner()) return 2;
  if (!loops[k].inner) return 1;
  return static_cast<uint16_t>(row_depth() + 1 + (k - first_inner()));
}

Schedule make_schedule(const Kernel& kernel, int vector_bits) { return Scheduler(kernel, vector_bits).run(); }

std::string schedule_text(const Kernel& kernel, const Schedule& s) {
  loop::CanonicalNames names(kernel);
  for (size_t k = 0; k < s.loops.size(); ++k) names.set_name(s.loops[k].var, fmt::format("v{}", k));
  std::string out = fmt::format("vector {} width {} unroll {} masked {} block {} by {} sums {}\n", s.vector, s.width,
                                s.unroll, s.masked, s.block, s.tile_block, s.sum_levels);
  auto put = [&](ExprId e) { out += e.valid() ? names.text(e) + "\n" : "-\n"; };
  for (const Loop& loop : s.loops) out += (loop.inner ? "i " : "o ") + names.text(loop.extent) + "\n";
  for (const IndexForm& form : s.scalar_index) put(form.expr);
  for (const IndexForm& form : s.store_index) put(form.expr);
  put(s.position.expr);
  for (size_t k = 0; k < s.spilled.size(); ++k)
    out += fmt::format("spill %{} {}\n", s.spilled[k].index, s.spilled_first[k]);
  std::vector<std::string> divisions;
  for (ExprId e : s.unsigned_division) divisions.push_back(names.text(e));
  std::sort(divisions.begin(), divisions.end());
  for (const std::string& division : divisions) out += "u " + division + "\n";
  return out;
}

std::string describe(const Kernel& kernel, const Schedule& s) {
  std::string out = "schedule:";
  for (size_t k = 0; k < s.loops.size(); ++k) {
    const char* lanes = k == s.vector ? "vector " : k == s.tile ? "tile " : "";
    out += fmt::format(" {}{}[{}]", lanes, s.loops[k].inner ? "inner" : "outer",
                       kernel.env().to_string(s.loops[k].extent));
  }
  return out +
         fmt::format("; {} x {} lanes{}, {} spilled\n", s.width, s.unroll, s.masked ? " masked" : "", s.spilled.size());
}

}  // namespace cresset::codegen::cpu
