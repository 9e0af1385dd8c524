#include "sym_property.h"

#include <fmt/format.h>

#include "random_expr.h"
#include "sym/eval.h"
#include "sym/parse.h"
#include "sym/prover.h"
#include "sym/rebuild.h"
#include "sym/shape_env.h"
#include "sym/size_program.h"
#include "sym/validate.h"

namespace cresset::sym::testing {
namespace {

using Values = std::vector<int64_t>;

std::optional<int64_t> value(const ExprPool& pool, ExprId e, const Values& values) {
  return eval(pool, e, [&](VarId var) -> std::optional<int64_t> {
    return var.index < values.size() ? std::optional(values[var.index]) : std::nullopt;
  });
}

std::string show(const Values& values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) out += fmt::format("{}x{}={}", i ? " " : "", i, values[i]);
  return out;
}

VarNames names_of(size_t count) {
  VarNames names;
  for (uint32_t i = 0; i < count; ++i) names[VarId{i}] = fmt::format("x{}", i);
  return names;
}

// Variables are created first, so that variable i of the trees is VarId{i}.
struct World {
  explicit World(uint64_t seed, bool with_indices, bool keep_log = false) : random(seed, kVars) {
    if (keep_log) env.keep_log();
    for (size_t i = 0; i < kVars; ++i) {
      const bool index = with_indices && i >= kVars - kIndices;
      if (index) {
        extents.push_back(vars[static_cast<size_t>(random.number(0, 1))]);
        if (random.number(0, 3) == 0) extents.back() = env.pool().constant(random.number(1, 6));
        vars.push_back(env.new_index_var(extents.back()));
        ranges.push_back({0, kHigh});
        hints.push_back(0);
        continue;
      }
      const int64_t lo = random.number(0, 4) == 0 ? random.number(-3, 2) : random.number(0, 2);
      const bool bounded = random.number(0, 2) == 0;
      const Interval range{lo, bounded ? random.number(lo, kHigh) : Interval::kPosInf};
      hints.push_back(random.number(lo, bounded ? range.hi : kHigh));
      vars.push_back(env.new_backed(fmt::format("x{}", i), hints.back(), range));
      ranges.push_back({range.lo, std::min(range.hi, kHigh)});
    }
  }

  bool admissible(const Values& values) {
    for (size_t i = 0; i < extents.size(); ++i) {
      const size_t index = kVars - kIndices + i;
      if (values[index] >= *value(env.pool(), extents[i], values)) return false;
    }
    for (const TreePtr& guard : guards) {
      const std::optional<int64_t> held = meaning(*guard, values);
      if (!held || *held == 0) return false;
    }
    return true;
  }

  // Calls visit(values) for all values in the box [lo, hi] of each variable, until it returns a failure.
  template <class Visit>
  std::string for_all(const std::vector<Interval>& box, Visit&& visit) {
    Values values;
    for (const Interval& r : box) values.push_back(r.lo);
    for (;;) {
      if (std::string failure = visit(values); !failure.empty()) return failure;
      size_t i = 0;
      while (i < box.size() && ++values[i] > box[i].hi) values[i] = box[i].lo, ++i;
      if (i == box.size()) return "";
    }
  }

  // A random condition that holds for the hints, recorded as a guard.
  void add_guard() {
    TreePtr tree = random.condition(2);
    if (!admissible(hints)) return;  // an index of an extent that is empty: no guard is asked there
    Values at = hints;
    const std::optional<int64_t> held = meaning(*tree, at);
    if (!held) return;
    if (*held == 0) tree = std::make_shared<Tree>(Tree{Op::Not, 0, tree, nullptr});
    const ExprId condition = build(env.pool(), *tree, vars);
    if (!env.evaluate(condition, [] { return Reason{}; })) return;  // mentions an index
    guards.push_back(tree);
  }

  static constexpr size_t kVars = 5, kIndices = 2;
  static constexpr int64_t kHigh = 6;
  RandomExpr random;
  ShapeEnv env;
  std::vector<ExprId> vars, extents;
  std::vector<Interval> ranges;
  Values hints;
  std::vector<TreePtr> guards;
};

// Variables: two sizes, then an index for each of three extents made of them; a flat index over the extents.
struct Reshape {
  explicit Reshape(uint64_t seed) : random(seed, 1) {
    ExprPool& pool = env.pool();
    for (int i = 0; i < 2; ++i) sizes.push_back(env.new_backed("s", 3));
    if (random.number(0, 2) == 0) env.evaluate(pool.eq(sizes[0], sizes[1]), [] { return Reason{}; });
    if (random.number(0, 2) == 0) env.evaluate(sizes[0], [] { return Reason{}; });
    divisors = {pool.constant(random.number(2, 5)), sizes[0], sizes[1]};
    flat = pool.constant(random.number(0, 4) == 0 ? random.number(-2, 3) : 0);
    ExprId stride = pool.constant(1);
    for (int i = 0; i < 3; ++i) {
      extents.push_back(random.number(0, 2) ? pick(sizes) : pool.constant(random.number(1, 4)));
      if (random.number(0, 3) == 0) extents.back() = pool.mul(extents.back(), pool.constant(random.number(2, 3)));
      flat = pool.add(flat, pool.mul(env.new_index_var(extents.back()), stride));
      stride = pool.mul(stride, extents.back());
      divisors.push_back(stride);
    }
  }

  ExprId pick(const std::vector<ExprId>& from) {
    return from[static_cast<size_t>(random.number(0, static_cast<int64_t>(from.size()) - 1))];
  }

  std::vector<ExprId> questions() {
    ExprPool& pool = env.pool();
    std::vector<ExprId> out;
    for (int i = 0; i < 12; ++i) {
      const ExprId base = i < 4 || random.number(0, 1) ? flat : pick(out), by = pick(divisors);
      ExprId question = random.number(0, 1) ? pool.floor_div(base, by) : pool.mod(base, by);
      if (random.number(0, 3) == 0) question = pool.add(question, pool.mul(by, pool.floor_div(base, by)));
      out.push_back(random.number(0, 5) ? question : pool.lt(base, by));
    }
    return out;
  }

  template <class Visit>
  std::string for_all_points(Visit&& visit) {
    Values at(5);
    for (at[0] = 0; at[0] <= 4; ++at[0]) {
      for (at[1] = 0; at[1] <= 4; ++at[1]) {
        bool guarded = true;
        for (const SizeGuard& g : env.guards()) guarded = guarded && value(env.pool(), g.condition, at) == 1;
        int64_t e[3];
        for (size_t i = 0; i < 3; ++i) e[i] = *value(env.pool(), extents[i], at);
        for (int64_t n = 0; guarded && n < e[0] * e[1] * e[2]; ++n) {
          at[2] = n % e[0], at[3] = n / e[0] % e[1], at[4] = n / e[0] / e[1];
          if (std::string failure = visit(at); !failure.empty()) return failure;
        }
      }
    }
    return "";
  }

  RandomExpr random;
  ShapeEnv env;
  std::vector<ExprId> sizes, extents, divisors;
  ExprId flat;
};

std::string guards_text(const World& world) {
  std::string out;
  for (const TreePtr& guard : world.guards) out += "\n  guard " + text(*guard);
  for (size_t i = 0; i < world.extents.size(); ++i) {
    out += fmt::format("\n  index x{} < {}", World::kVars - World::kIndices + i,
                       to_string(world.env.pool(), world.extents[i], names_of(World::kVars)));
  }
  for (size_t i = 0; i < world.ranges.size(); ++i) {
    out += fmt::format("\n  x{} in [{}, {}..]", i, world.ranges[i].lo, world.ranges[i].hi);
  }
  return out;
}

}  // namespace

std::string check_canonical_form(uint64_t seed) {
  constexpr size_t kVars = 3;
  RandomExpr random(seed, kVars);
  ExprPool pool;
  std::vector<ExprId> vars;
  VarIds ids;
  for (uint32_t i = 0; i < kVars; ++i) {
    vars.push_back(pool.var(pool.new_var()));
    ids[fmt::format("x{}", i)] = VarId{i};
  }
  const TreePtr tree = random.number(0, 1) ? random.integer(4) : random.condition(3);
  const ExprId e = build(pool, *tree, vars);
  const std::string printed = to_string(pool, e, names_of(kVars));
  for (int i = 0; i < 40; ++i) {
    const Values at = {random.number(-9, 9), random.number(0, 30), random.number(-2, 4)};
    const std::optional<int64_t> want = meaning(*tree, at);
    if (!want) continue;
    const std::optional<int64_t> got = value(pool, e, at);
    if (got != want) {
      return fmt::format("{} became {} = {} instead of {} at {}", text(*tree), printed, got.value_or(-999999), *want,
                         show(at));
    }
  }
  const Result<ExprId> parsed = parse(pool, printed, ids);
  if (!parsed) return fmt::format("{} does not parse: {}", printed, describe(parsed.fallback()));
  if (*parsed != e) {
    return fmt::format("{} printed as {} reads back as {}", text(*tree), printed,
                       to_string(pool, *parsed, names_of(kVars)));
  }
  return "";
}

std::string check_facts(uint64_t seed) {
  World world(seed, /*with_indices=*/true);
  ExprPool& pool = world.env.pool();
  for (int64_t i = world.random.number(0, 4); i > 0; --i) world.add_guard();
  struct Question {
    TreePtr tree;
    ExprId built, simplified;
    Interval range;
  };
  std::vector<Question> questions;
  for (int i = 0; i < 8; ++i) {
    const TreePtr tree = i % 2 ? world.random.integer(3) : world.random.condition(3);
    const ExprId e = build(pool, *tree, world.vars);
    questions.push_back({tree, e, world.env.simplify(e), world.env.range(e)});
  }
  return world.for_all(world.ranges, [&](const Values& at) -> std::string {
    if (!world.admissible(at)) return "";
    for (const Question& q : questions) {
      const std::optional<int64_t> want = meaning(*q.tree, at);
      if (!want) continue;
      const std::optional<int64_t> got = value(pool, q.simplified, at);
      if (got == want && q.range.contains(*want)) continue;
      return fmt::format("{}\n  built {}\n  simplified {} = {} in [{}, {}] instead of {} at {}{}", text(*q.tree),
                         to_string(pool, q.built, names_of(World::kVars)),
                         to_string(pool, q.simplified, names_of(World::kVars)), got.value_or(-999999), q.range.lo,
                         q.range.hi, *want, show(at), guards_text(world));
    }
    return "";
  });
}

std::string check_index_arithmetic(uint64_t seed) {
  Reshape reshape(seed);
  const std::vector<ExprId> questions = reshape.questions();
  std::vector<ExprId> simplified;
  for (const ExprId q : questions) simplified.push_back(reshape.env.simplify(q));
  const ExprPool& pool = reshape.env.pool();
  return reshape.for_all_points([&](const Values& at) -> std::string {
    for (size_t i = 0; i < questions.size(); ++i) {
      const std::optional<int64_t> want = value(pool, questions[i], at), got = value(pool, simplified[i], at);
      if (!want || want == got) continue;
      const VarNames names = names_of(5);
      std::string extents;
      for (const ExprId extent : reshape.extents) extents += " " + to_string(pool, extent, names);
      return fmt::format("{} became {} = {} instead of {} at {}; extents{}", to_string(pool, questions[i], names),
                         to_string(pool, simplified[i], names), got.value_or(-999999), *want, show(at), extents);
    }
    return "";
  });
}

std::string check_minimized_guards(uint64_t seed) {
  World world(seed, /*with_indices=*/false);
  ExprPool& pool = world.env.pool();
  for (int64_t i = world.random.number(1, 8); i > 0; --i) world.add_guard();
  const std::vector<SizeGuard> minimized = world.env.minimized_guards();
  std::vector<ExprId> conditions;
  for (const SizeGuard& guard : minimized) conditions.push_back(guard.condition);
  std::unordered_map<VarId, uint32_t> slots;
  for (uint32_t i = 0; i < World::kVars; ++i) slots[VarId{i}] = i;
  const SizeProgram program = SizeProgram::compile(pool, conditions, slots);
  std::vector<Interval> box;
  for (const Interval& r : world.ranges) box.push_back({r.lo < 0 ? r.lo - 1 : 0, r.hi + 1});
  return world.for_all(box, [&](const Values& at) -> std::string {
    bool in_range = true;
    for (size_t i = 0; i < at.size(); ++i) in_range &= world.env.symbols()[i].range.contains(at[i]);
    for (const TreePtr& guard : world.guards) {
      if (!meaning(*guard, at)) return "";  // divides by zero: the program would have raised
    }
    const bool want = in_range && world.admissible(at);
    const bool got = program.first_zero(at.data()) < 0;
    if (want == got) return "";
    std::string list;
    for (const ExprId c : conditions) list += "\n  check " + to_string(pool, c, names_of(World::kVars));
    return fmt::format("guards {} {}{}{}", got ? "accept" : "reject", show(at), list, guards_text(world));
  });
}

// Small limits: what Z3 cannot settle at once is left to the other properties, which try all points of a box.
std::string check_proofs(uint64_t seed) {
  if (!Prover::available()) return "";
  World world(seed, /*with_indices=*/true, /*keep_log=*/true);
  for (int64_t i = world.random.number(1, 3); i > 0; --i) world.add_guard();
  for (int i = 0; i < 2; ++i) world.env.simplify(build(world.env.pool(), *world.random.integer(2), world.vars));
  ValidationLimits limits;
  limits.query_ms = 20;
  limits.total_s = 0.25;
  const ValidationReport report = validate(world.env, world.env.minimized_guards(), limits);
  return report.ok() ? "" : report.text() + guards_text(world);
}

}  // namespace cresset::sym::testing
