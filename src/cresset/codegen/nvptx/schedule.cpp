#include "codegen/nvptx/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "codegen/nvptx/index_bounds.h"
#include "codegen/nvptx/launch.h"
#include "loop/canonical.h"

namespace cresset::codegen::nvptx {
namespace {

using loop::Kernel;
using loop::Op;
using sym::Kind;

constexpr int64_t kVectorBytes = 16;                  // of one access of a thread
constexpr int64_t kMostGathered = 4;                  // elements between lanes that gathers read well
constexpr int kMostLanes = 8;                         // registers: a lane of bytes takes as many as one of floats
constexpr int kRandomLanes = 4;                       // numbers of a block; more blocks at once take too many registers
constexpr int64_t kMostTileBytes = 24 * 1024;         // of shared memory, so that a multiprocessor holds 8 blocks
constexpr int kFewThreads = 256, kManyThreads = 512;  // of a block with a row in shared memory
constexpr int kMostKeptRegisters = 96;                // of the values that a thread keeps for later passes

class Scheduler : Planner {
 public:
  explicit Scheduler(const Kernel& kernel) : Planner(kernel, out_) {}

  Schedule run() {
    collapse();
    choose_vector_loop();
    find_live();
    choose_tile();
    find_levels();
    for (uint16_t p = 0; p <= out_.analysis.stages; ++p) out_.needed.push_back(needed_in(p));
    choose_lanes();
    prove_unsigned();
    find_scans();
    find_big();
    find_coarse();
    keep_rows();
    join_passes();
    find_divisors();
    find_in_place();
    find_numbers();
    return std::move(out_);
  }

 private:
  const loop::Buffer& buffer(loop::BufferId id) const { return kernel_.buffers[id.index]; }

  // An access that few loops move touches little memory.
  double share(ExprId e, const Loop& along) {
    constexpr double kOfLoop = 1.0 / 16;
    bool indirect = false;
    loop::for_each_bound_scalar(kernel_, e, [&](ScalarId) { indirect = true; });
    double out = 1;
    for (const auto* loops : {&space().outer, &space().inner})
      for (const Loop& loop : *loops)
        if (!indirect && loop.var != along.var && !pool_.uses_var(e, loop.var)) out *= kOfLoop;
    return out;
  }

  // Bytes that neighbours along the loop read and write side by side, less those that they would gather.
  double votes_for(const Loop& loop) {
    const bool has_rows = !space().inner.empty();
    double votes = 0;
    auto vote = [&](ExprId e, DType dtype, double weight, bool is_point) {
      sym::ExprPool::Affine form;
      if (!e.valid() || (has_rows && !is_point) || !pool_.uses_var(e, loop.var)) return;
      const bool affine = pool_.affine_in(e, loop.var, form);
      const bool side_by_side = affine && pool_.is_const(form.coefficient, 1);
      votes += share(e, loop) * (side_by_side ? weight * static_cast<double>(byte_size(dtype)) : has_rows ? -8.0 : 0.0);
    };
    for (size_t i = 0; i < count(); ++i)
      if (scalar(i).op == Op::Load)
        vote(space().scalar[i], buffer(scalar(i).buffer).dtype, 1, out_.analysis.is_point[i] != 0);
    for (size_t i = 0; i < kernel_.stores.size(); ++i)
      vote(space().store[i], buffer(kernel_.stores[i].buffer).dtype, 2, out_.analysis.store_is_point[i] != 0);
    return std::max(votes, 0.0);
  }

  void choose_vector_loop() {
    const Loop* best = nullptr;
    double most = -1;
    for (const auto* list : {&space().inner, &space().outer})
      for (auto it = list->rbegin(); it != list->rend(); ++it)
        if (const double votes = votes_for(*it); votes > most) best = &*it, most = votes;
    set_loops(*best);
    // Reductions over one point have no inner loops left: columns of one step.
    const bool folds = !space().inner.empty() || out_.analysis.stages > 0;
    out_.shape = !folds ? Shape::Points : out_.vector_is_inner() ? Shape::Rows : Shape::Columns;
  }

  // Whether lanes of the load are neighbours along loop `along`, and far apart along the vector loop.
  bool crosses(size_t i, const Loop& along) {
    const loop::Scalar& s = scalar(i);
    if (!out_.live[i] || s.op != Op::Load || s.a.valid()) return false;
    bool indirect = false;
    loop::for_each_bound_scalar(kernel_, s.expr, [&](ScalarId) { indirect = true; });
    sym::ExprPool::Affine by_vector, by_tile;
    const ExprId e = space().scalar[i];
    if (indirect || !pool_.affine_in(e, vector_var(), by_vector) || !pool_.affine_in(e, along.var, by_tile))
      return false;
    const ExprId step = by_vector.coefficient;
    const bool steps = !pool_.is_const(step) || std::abs(pool_.const_value(step)) > kMostGathered;
    return steps && only_sizes(step) && pool_.is_const(by_tile.coefficient, 1);
  }

  // The loop along which most bytes are read in neighbours that the vector loop would gather.
  void choose_tile() {
    out_.tiled.assign(count(), 0);
    if (out_.shape != Shape::Points) return;
    int64_t most = 0;
    for (size_t k = 0; k < out_.vector; ++k) {
      int64_t bytes = 0;
      for (size_t i = 0; i < count(); ++i)
        if (crosses(i, out_.loops[k])) bytes += byte_size(buffer(scalar(i).buffer).dtype);
      if (bytes > most) most = bytes, out_.tile = k;
    }
    if (!out_.has_tile()) return;
    int64_t widest = 0, shared = 0;
    for (const loop::Buffer& b : kernel_.buffers) widest = std::max(widest, byte_size(b.dtype));
    out_.tile_side = widest <= 2 ? 2 * kTileThreadsX : kTileThreadsX;
    for (size_t i = 0; i < count(); ++i) {
      if (!crosses(i, out_.loops[out_.tile])) continue;
      shared += byte_size(buffer(scalar(i).buffer).dtype) * out_.tile_side * (out_.tile_side + 2);
      if (shared > kMostTileBytes) break;
      out_.tiled[i] = 1;
    }
  }

  bool is_loop_variable(VarId var) const {
    return std::any_of(out_.loops.begin(), out_.loops.end(), [&](const Loop& l) { return l.var == var; });
  }
  bool only_sizes(ExprId e) {
    std::vector<VarId> vars;
    pool_.collect_vars(e, vars);
    const auto is_size = [&](VarId var) {
      const auto binds = [&](const loop::Binding& b) { return b.var == var; };
      return !is_loop_variable(var) && std::none_of(kernel_.bindings.begin(), kernel_.bindings.end(), binds);
    };
    return std::all_of(vars.begin(), vars.end(), is_size);
  }

  // Whether lanes are neighbours whose first address is a sum of strides times loop variables: the strides must then be
  // multiples of the lanes.
  bool is_whole(const IndexForm& form, std::vector<ExprId>& strides) {
    if (!form.coefficient.valid() || !pool_.is_const(form.coefficient, 1)) return false;
    ExprId rest = form.rest;
    std::vector<ExprId> found;
    const auto steps_by = [&](VarId var) {
      sym::ExprPool::Affine part;
      if (var == vector_var() || !pool_.uses_var(rest, var)) return true;
      if (!pool_.affine_in(rest, var, part) || !only_sizes(part.coefficient)) return false;
      found.push_back(part.coefficient);
      rest = part.rest;
      return true;
    };
    for (const Loop& loop : out_.loops)
      if (!steps_by(loop.var)) return false;
    // Rows of a table: an index from memory that all lanes share.
    for (const loop::Binding& b : kernel_.bindings)
      if (!out_.is_vector[b.scalar.index] && !steps_by(b.var)) return false;
    found.push_back(rest);
    if (!only_sizes(rest)) return false;
    strides.insert(strides.end(), found.begin(), found.end());
    return true;
  }

  void choose_lanes() {
    out_.whole_load.assign(count(), 0);
    out_.whole_store.assign(kernel_.stores.size(), 0);
    out_.aligned_buffer.assign(kernel_.buffers.size(), 0);
    int64_t widest = 0, narrowest = kVectorBytes;
    std::vector<ExprId> strides;
    auto whole = [&](const IndexForm& form, loop::BufferId id) {
      if (!is_whole(form, strides)) return false;
      widest = std::max(widest, byte_size(buffer(id).dtype));
      narrowest = std::min(narrowest, byte_size(buffer(id).dtype));
      out_.aligned_buffer[id.index] = 1;
      return true;
    };
    for (size_t i = 0; i < count(); ++i)
      if (out_.live[i] && scalar(i).op == Op::Load) out_.whole_load[i] = whole(out_.scalar_index[i], scalar(i).buffer);
    for (size_t i = 0; i < kernel_.stores.size(); ++i)
      out_.whole_store[i] = whole(out_.store_index[i], kernel_.stores[i].buffer);
    if (widest == 0) return;
    if (!out_.has_tail()) strides.push_back(out_.loops[out_.vector].extent);
    // Indices of 8 bytes beside narrower elements take two accesses: with two lanes too few gathers are under way.
    const int64_t accesses = widest > 4 && narrowest < widest ? 2 : 1;
    const int64_t most = draws() ? kRandomLanes : kMostLanes;
    out_.lanes = lanes_for(strides, static_cast<int>(std::min<int64_t>(accesses * kVectorBytes / widest, most)));
    const ExprId lanes = pool_.constant(out_.lanes);
    for (const ExprId stride : strides) {
      const ExprId rest = env_.simplify(pool_.mod(stride, lanes));
      if (pool_.is_const(rest, 0)) continue;
      if (pool_.is_const(rest)) return void(out_.lanes = 1);
      if (std::find(out_.conditions.begin(), out_.conditions.end(), rest) == out_.conditions.end() &&
          only_kernel_sizes(rest))
        out_.conditions.push_back(rest);
    }
  }

  bool draws() const {
    for (size_t i = 0; i < count(); ++i)
      if (out_.live[i] && scalar(i).op == Op::Philox) return true;
    return false;
  }

  // As many lanes as usual strides are multiples of: groups of 20 channels take 4. Odd strides take narrow variants.
  int lanes_for(const std::vector<ExprId>& strides, int most) {
    for (int lanes = most; lanes > 1; lanes /= 2)
      if (std::all_of(strides.begin(), strides.end(), [&](ExprId s) { return env_.typical_or(s, 0) % lanes == 0; }))
        return lanes;
    return most;
  }

  // env_.simplify may name an equal symbol that the kernel does not have.
  bool only_kernel_sizes(ExprId e) {
    const std::vector<VarId> symbols = kernel_.size_symbols();
    std::vector<VarId> vars;
    pool_.collect_vars(e, vars);
    const bool ours = std::all_of(vars.begin(), vars.end(), [&](VarId var) {
      return std::find(symbols.begin(), symbols.end(), var) != symbols.end();
    });
    if (!ours) out_.lanes = 1;  // not to be decided at a launch
    return ours;
  }

  // Scalars that reach nothing but values rounded to 16 bits. Relative errors of 2^-17 do not show there.
  void find_coarse() {
    out_.coarse.assign(count(), 1);
    const auto exact = [&](ScalarId id) { out_.coarse[id.index] = 0; };
    for (const loop::Store& s : kernel_.stores) {
      if (byte_size(buffer(s.buffer).dtype) > 2) exact(s.value);
      if (s.condition.valid()) exact(s.condition);
      loop::for_each_bound_scalar(kernel_, s.address, exact);
    }
    for (size_t i = count(); i-- > 0;) {
      const loop::Scalar& s = scalar(i);
      const bool arg = s.combine == loop::Combine::ArgMax || s.combine == loop::Combine::ArgMin;
      const bool decides = s.dtype != DType::F32 || s.op == Op::Scan || (s.op == Op::Reduce && arg);
      if (s.op == Op::RoundTo || (out_.coarse[i] && !decides)) {
        loop::for_each_bound_scalar(kernel_, s.expr, exact);
        if (s.op == Op::Select || s.op == Op::Load) exact_if_valid(s.a);
        continue;
      }
      loop::for_each_operand(kernel_, s, exact);
    }
  }
  void exact_if_valid(ScalarId id) {
    if (id.valid()) out_.coarse[id.index] = 0;
  }

  void find_scans() {
    if (out_.first_inner() == out_.loops.size()) return;
    for (uint32_t i = 0; i < count(); ++i)
      if (out_.live[i] && scalar(i).op == Op::Scan) out_.scans.push_back({i});
  }

  // Values of a row that several passes need, latest in dependence order first: what one keeps, the next may not need.
  KeptRow keep_values(bool heavy, int most_registers) {
    KeptRow out;
    int registers = 0;
    for (size_t i = count(); i-- > 0;) {
      const bool dear = scalar(i).op == Op::Load || (heavy && is_heavy(scalar(i).op));
      if (!dear || !out_.live[i] || out_.depth[i] <= out_.row_depth()) continue;
      std::vector<uint16_t> passes;
      for (uint16_t p = 0; p <= out_.analysis.stages; ++p)
        if (needed_in(p)[i]) passes.push_back(p);
      const int words = static_cast<int>(std::max<int64_t>(1, byte_size(scalar(i).dtype) / 4));
      const int its = words * kKeptChunks * (out_.is_vector[i] ? out_.lanes : 1);
      if (passes.size() < 2 || registers + its > most_registers) continue;
      registers += its;
      out_.spilled.push_back({static_cast<uint32_t>(i)});
      out_.spilled_first.push_back(passes[0]);
    }
    for (uint16_t p = 0; p <= out_.analysis.stages; ++p) out.needed.push_back(needed_in(p));
    out.scalars = std::move(out_.spilled);
    out.first = std::move(out_.spilled_first);
    out_.spilled.clear();
    out_.spilled_first.clear();
    return out;
  }

  void keep_rows() {
    if (out_.shape != Shape::Rows || out_.analysis.stages == 0 || !out_.scans.empty()) return;
    out_.kept = keep_values(/*heavy=*/true, kMostKeptRegisters);
    out_.shared = keep_values(/*heavy=*/false, std::numeric_limits<int>::max());
  }

  // Sum(exp(x - max)) where max is the Max of x.
  ScalarId maximum_of(ScalarId sum) {
    const loop::Scalar& s = kernel_[sum];
    if (s.op != Op::Reduce || s.combine != loop::Combine::Sum || s.dtype != DType::F32) return {};
    const loop::Scalar& exp = kernel_[s.a];
    if (exp.op != Op::Exp || kernel_[exp.a].op != Op::Sub) return {};
    const loop::Scalar &difference = kernel_[exp.a], &max = kernel_[difference.b];
    const bool fits = max.op == Op::Reduce && max.combine == loop::Combine::Max && max.a == difference.a;
    return fits ? difference.b : ScalarId{};
  }

  // A pass that only joined sums need is left out.
  void join_passes() {
    out_.skipped.assign(out_.analysis.stages + 1u, 0);
    if (out_.shape == Shape::Points) return;
    for (uint16_t pass = 1; pass < out_.analysis.stages; ++pass) {
      std::vector<std::pair<ScalarId, ScalarId>> pairs;
      bool all = true;
      for (uint32_t i = 0; i < count() && all; ++i) {
        if (!out_.live[i] || scalar(i).op != Op::Reduce || out_.analysis.stage[i] != pass + 1) continue;
        const ScalarId max = maximum_of({i});
        all = max.valid() && out_.analysis.stage[max.index] == pass && !has_sum(max, pairs);
        pairs.emplace_back(max, ScalarId{i});
      }
      if (!all || pairs.empty() || out_.skipped[pass - 1u]) continue;
      out_.joined.insert(out_.joined.end(), pairs.begin(), pairs.end());
      out_.skipped[pass] = 1;
    }
  }
  static bool has_sum(ScalarId max, const std::vector<std::pair<ScalarId, ScalarId>>& pairs) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == max; });
  }

  void add_divisor(ExprId e) {
    if (pool_.is_const(e) || std::find(out_.divisors.begin(), out_.divisors.end(), e) != out_.divisors.end()) return;
    out_.divisors.push_back(e);
  }

  // What linear positions are divided by, loop by loop, and what indices are.
  void find_divisors() {
    for (size_t k = 0; k < out_.loops.size(); ++k) {
      add_divisor(out_.loops[k].extent);
      if (k == out_.vector && out_.lanes > 1)
        add_divisor(out_.chunks = pool_.floor_div(out_.loops[k].extent, pool_.constant(out_.lanes)));
    }
    for (const ExprId division : out_.unsigned_division) {
      const ExprId by = pool_.operands(division)[1];
      if (only_sizes(by)) add_divisor(by);
    }
  }

  void find_in_place() {
    for (const loop::Buffer& b : kernel_.buffers) out_.in_place |= b.read && b.written;
    out_.may_split = out_.analysis.stages > 0 && out_.scans.empty() && writes_points_in_place();
  }

  // Whether each buffer that is read and written is so at points of rows: a block which shares a row then reads nothing
  // that another block of the last launch writes.
  bool writes_points_in_place() const {
    const auto in_place = [&](loop::BufferId id) { return buffer(id).read && buffer(id).written; };
    for (size_t i = 0; i < count(); ++i)
      if (out_.live[i] && scalar(i).op == Op::Load && in_place(scalar(i).buffer) && !out_.analysis.is_point[i])
        return false;
    for (size_t i = 0; i < kernel_.stores.size(); ++i)
      if (in_place(kernel_.stores[i].buffer) && out_.store_in_row[i]) return false;
    return true;
  }

  ExprId greatest() {
    IndexBounds bounds(kernel_, out_);
    ExprId most = pool_.constant(1);
    auto with = [&](ExprId e) {
      if (e.valid()) most = pool_.max(most, bounds.of(e));
    };
    auto with_form = [&](const IndexForm& form) {
      with(form.expr);
      if (!form.coefficient.valid()) return;
      const ExprId line = bounds.product(bounds.of(form.coefficient), bounds.of(out_.loops[out_.vector].extent));
      most = pool_.max(most, bounds.cut(pool_.add(line, bounds.of(form.rest))));
    };
    for (size_t i = 0; i < count(); ++i)
      if (out_.live[i] && out_.scalar_index[i].expr.valid()) with_form(out_.scalar_index[i]);
    for (const IndexForm& form : out_.store_index) with_form(form);
    if (out_.position.expr.valid()) with_form(out_.position);
    ExprId outer = pool_.constant(1), inner = outer;
    for (const Loop& loop : out_.loops) {
      ExprId& points = loop.inner ? inner : outer;
      points = bounds.product(points, bounds.of(loop.extent));
    }
    return pool_.max(most, pool_.max(outer, inner));
  }

  // Passes over the data where nothing is kept.
  int64_t passes() {
    const bool stores = std::find(out_.store_in_row.begin(), out_.store_in_row.end(), 0) != out_.store_in_row.end();
    return out_.analysis.stages - std::count(out_.skipped.begin(), out_.skipped.end(), 1) + stores;
  }
  // Of shared memory, for each point of a row.
  int64_t row_bytes() {
    int64_t out = 0;
    for (size_t k = 0; k < out_.shared.scalars.size(); ++k) out += byte_size(out_.shared_dtype(kernel_, k));
    return out;
  }

  void find_big() {
    for (size_t i = 0; i < count(); ++i)
      out_.big |= out_.live[i] && scalar(i).dtype == DType::F64 && is_heavy(scalar(i).op);
  }

  void find_numbers() {
    int64_t reductions = 0, widest = 1, variants = 0;
    for (size_t i = 0; i < count(); ++i) {
      const loop::Scalar& s = scalar(i);
      const bool arg = s.combine == loop::Combine::ArgMax || s.combine == loop::Combine::ArgMin;
      if (out_.live[i] && s.op == Op::Reduce) reductions += arg ? 2 : 1;
      if (out_.live[i] && s.op == Op::Load) widest = std::max(widest, byte_size(buffer(s.buffer).dtype));
    }
    for (int v = 0; v < kVariants; ++v)
      if (out_.has(static_cast<Variant>(v))) variants |= int64_t{1} << v;
    ExprId holds = pool_.constant(1);
    for (const ExprId rest : out_.conditions) holds = pool_.logical_and(holds, pool_.eq(rest, pool_.constant(0)));
    std::vector<ExprId>& n = out_.numbers;
    n.resize(kFirstFree);
    auto set = [&](Number at, int64_t value) { n[at] = pool_.constant(value); };
    set(kShape, static_cast<int64_t>(out_.shape));
    set(kLanes, out_.lanes);
    set(kVariantSet, variants);
    set(kReductions, reductions);
    set(kStages, out_.passes_of_splits());
    set(kMaySplit, out_.may_split);
    set(kInOrder, !out_.scans.empty());
    set(kPasses, passes());
    set(kRowBytes, row_bytes());
    set(kSharedThreads, out_.shared_threads());
    set(kWidestBytes, widest);
    set(kBuffers, static_cast<int64_t>(kernel_.buffers.size()));
    set_by_value(n);
    set(kTileSide, out_.tile_side);
    n[kTileExtent] = out_.has_tile() ? out_.loops[out_.tile].extent : pool_.constant(1);
    n[kGreatest] = greatest();
    n[kWideHolds] = holds;
    n[kOuterPoints] = product_of(/*inner=*/false, /*with_vector=*/false);
    n[kVectorExtent] = out_.loops[out_.vector].extent;
    n[kInnerPoints] = product_of(/*inner=*/true, /*with_vector=*/false);
    for (size_t i = 0; i < kernel_.buffers.size(); ++i)
      n.push_back(pool_.constant(out_.aligned_buffer[i] ? out_.lanes * byte_size(kernel_.buffers[i].dtype) : 1));
    n.insert(n.end(), out_.divisors.begin(), out_.divisors.end());
  }

  void set_by_value(std::vector<ExprId>& numbers) {
    uint64_t which = 0, logs = 0;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      if (!kernel_.buffers[i].by_value) continue;
      which |= uint64_t{1} << i;
      logs |= static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(byte_size(kernel_.buffers[i].dtype))))
              << (2 * i);
    }
    numbers[kByValue] = pool_.constant(static_cast<int64_t>(which));
    numbers[kByValueLog] = pool_.constant(static_cast<int64_t>(logs));
  }

  Schedule out_;
};

}  // namespace

std::string_view suffix(Variant variant) {
  switch (variant) {
    case Variant::Wide:
      return "_wide";
    case Variant::Kept:
      return "_kept";
    case Variant::Tiled:
      return "_tiled";
    case Variant::Shared:
      return "_shared";
    case Variant::Narrow32:
      return "_narrow";
    case Variant::Narrow64:
      return "_any";
  }
  return "";
}

DType Schedule::shared_dtype(const loop::Kernel& kernel, size_t k) const {
  const loop::Scalar& s = kernel[shared.scalars[k]];
  return s.op == Op::Load && !s.a.valid() ? kernel.buffers[s.buffer.index].dtype : s.dtype;
}

int Schedule::shared_threads() const { return big ? kFewThreads : kManyThreads; }

bool Schedule::is_joined_sum(ScalarId id) const {
  return std::any_of(joined.begin(), joined.end(), [&](const auto& pair) { return pair.second == id; });
}

int64_t Schedule::passes_of_splits() const { return analysis.stages - std::count(skipped.begin(), skipped.end(), 1); }

// Rows and columns of any size are Narrow64's: one loop of them has nothing to divide, and little to index.
bool Schedule::has(Variant variant) const {
  switch (variant) {
    case Variant::Wide:
      return lanes > 1;
    case Variant::Kept:
      return lanes > 1 && shape == Shape::Rows && analysis.stages > 0 && scans.empty();
    case Variant::Tiled:
      return has_tile();
    case Variant::Shared:
      return !shared.scalars.empty();
    case Variant::Narrow32:
      return shape == Shape::Points || loops.size() > 2;
    case Variant::Narrow64:
      return true;
  }
  return false;
}

Schedule make_schedule(const Kernel& kernel) { return Scheduler(kernel).run(); }

std::string schedule_text(const Kernel& kernel, const Schedule& s) {
  loop::CanonicalNames names(kernel);
  for (size_t k = 0; k < s.loops.size(); ++k) names.set_name(s.loops[k].var, fmt::format("v{}", k));
  std::string out = fmt::format("shape {} vector {} lanes {} in place {}\n", static_cast<int>(s.shape), s.vector,
                                s.lanes, s.in_place);
  for (const uint8_t whole : s.whole_load) out += whole ? 'w' : '-';
  for (const uint8_t whole : s.whole_store) out += whole ? 'w' : '-';
  if (s.has_tile()) out += fmt::format(" tile {} of {}", s.tile, s.tile_side);
  for (const uint8_t tiled : s.tiled) out += tiled ? 't' : '-';
  out += '\n';
  for (const KeptRow* row : {&s.kept, &s.shared})
    for (size_t k = 0; k < row->scalars.size(); ++k)
      out += fmt::format("keep %{} {}\n", row->scalars[k].index, row->first[k]);
  for (const uint8_t coarse : s.coarse) out += coarse ? 'c' : '-';
  out += '\n';
  for (const auto& [max, sum] : s.joined) out += fmt::format("join %{} %{}\n", max.index, sum.index);
  for (const ExprId divisor : s.divisors) out += "d " + names.text(divisor) + "\n";
  return out + plan_text(kernel, s);
}

std::string describe(const Kernel& kernel, const Schedule& s) {
  constexpr const char* kShapes[] = {"points", "rows", "columns"};
  std::string out = fmt::format("schedule: {}", kShapes[static_cast<int>(s.shape)]);
  for (size_t k = 0; k < s.loops.size(); ++k)
    out += fmt::format(" {}{}[{}]", k == s.vector ? "vector " : "", s.loops[k].inner ? "inner" : "outer",
                       kernel.env().to_string(s.loops[k].extent));
  if (s.has_tile()) out += fmt::format("; tiles of {} along loop {}", s.tile_side, s.tile);
  return out + fmt::format("; {} lanes, {} kept\n", s.lanes, s.kept.scalars.size());
}

}  // namespace cresset::codegen::nvptx
