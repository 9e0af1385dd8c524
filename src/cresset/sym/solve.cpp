#include "sym/solve.h"

#include <algorithm>
#include <numeric>

#include "sym/arith.h"

namespace cresset::sym {
namespace {

enum class Outcome : uint8_t { Found, None, GaveUp };

// The values to try for a variable, in order.
class Choices {
 public:
  Choices(Interval range, bool down, int64_t start) : range_(range), down_(down), next_(start), up_from_(start) {}

  bool take(int64_t& value) {
    if (next_ >= range_.lo && next_ <= range_.hi && !wrapped_) {
      value = next_;
      next_ += down_ ? -1 : 1;
      return true;
    }
    if (!wrapped_) wrapped_ = true, next_ = range_.lo;
    if (down_ || next_ >= up_from_ || next_ > range_.hi) return false;
    value = next_++;
    return true;
  }

 private:
  Interval range_;
  bool down_, wrapped_ = false;
  int64_t next_, up_from_;
};

class Search {
 public:
  Search(const ExprPool& pool, std::span<const VarId> order, std::span<const ExprId> conditions,
         const SolveLimits& limits)
      : pool_(pool), order_(order), conditions_(conditions), limits_(limits), left_(limits.choices) {}

  // `start_of` picks the first value to try in a range.
  template <class StartOf>
  Outcome run(Box box, size_t position, bool down_first, StartOf&& start_of) {
    if (!box.narrow(conditions_)) return Outcome::None;
    while (position < order_.size() && box.of(order_[position]).is_point()) ++position;
    if (position == order_.size()) return settle(box);
    const Interval range = box.of(order_[position]);
    const bool down = down_first && position == 0;
    Choices choices(range, down, start_of(range));
    bool gave_up = false;
    int64_t value = 0;
    for (int64_t tried = 0; choices.take(value); ++tried) {
      if (tried >= limits_.tries || --left_ < 0) return Outcome::GaveUp;
      Box next = box;
      next.set(order_[position], Interval::point(value));
      const Outcome outcome = run(std::move(next), position + 1, down_first, start_of);
      if (outcome == Outcome::Found) return outcome;
      gave_up |= outcome == Outcome::GaveUp;
      if (left_ < 0) return Outcome::GaveUp;
    }
    return gave_up || range.hi == Interval::kPosInf || range.lo == Interval::kNegInf ? Outcome::GaveUp : Outcome::None;
  }

  const Assignment& values() const { return values_; }

 private:
  Outcome settle(const Box& box) {
    for (const ExprId condition : conditions_) {
      if (box.range(condition) != Interval::point(1)) return Outcome::None;
    }
    values_.clear();
    for (const VarId var : order_) values_[var] = box.of(var).lo;
    return Outcome::Found;
  }

  const ExprPool& pool_;
  std::span<const VarId> order_;
  std::span<const ExprId> conditions_;
  const SolveLimits& limits_;
  int64_t left_;
  Assignment values_;
};

int64_t random_start(Interval range, int64_t spread, std::mt19937_64& rng) {
  const int64_t low = range.lo == Interval::kNegInf ? std::min<int64_t>(range.hi, 0) - spread : range.lo;
  const int64_t high = std::min(range.hi, saturating_add(low, spread));
  if (rng() % 4 == 0) return std::min(low + static_cast<int64_t>(rng() % 3), high);
  if (rng() % 16 == 0) return high;
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

}  // namespace

void Solver::declare(VarId var, Interval range) {
  vars_.push_back(var);
  ranges_.push_back(range);
}

void Solver::exclude(std::span<const ExprId> conditions) {
  ExprId outside = pool_.constant(0);
  for (const ExprId condition : conditions) outside = pool_.logical_or(outside, pool_.logical_not(condition));
  require(outside);
}

Box Solver::start() const {
  Box box(pool_);
  for (size_t i = 0; i < vars_.size(); ++i) box.set(vars_[i], ranges_[i]);
  return box;
}

Solution Solver::search(std::span<const VarId> order, Order how, uint64_t seed, int64_t spread) {
  std::mt19937_64 rng(seed);
  Search search(pool_, order, conditions_, limits_);
  const auto start_of = [&](Interval range) {
    if (how == Order::Random) return random_start(range, spread, rng);
    if (how == Order::Down && range.hi != Interval::kPosInf) return range.hi;
    return range.lo == Interval::kNegInf ? std::min<int64_t>(range.hi, 0) : range.lo;
  };
  const Outcome outcome = search.run(start(), 0, how == Order::Down, start_of);
  if (outcome == Outcome::Found) return {Solution::Status::Found, search.values()};
  if (outcome == Outcome::None) return {Solution::Status::None, {}};
  return limits_.z3_ms > 0 ? ask_z3() : Solution{};
}

// Z3 gives an arbitrary solution. Halving the sum of the sizes while a solution exists brings it near the smallest.
Solution Solver::ask_z3() {
  constexpr int kHalvings = 24;
  Prover prover(pool_);
  prover.set_timeout(limits_.z3_ms);
  for (size_t i = 0; i < vars_.size(); ++i) {
    prover.assume({Assumption::Kind::Range, pool_.var(vars_[i]), ranges_[i], {}});
  }
  for (const ExprId condition : conditions_) prover.assume(condition, Division::Program);
  Solution best;
  ExprId sum = pool_.constant(0);
  for (const VarId var : vars_) sum = pool_.add(sum, pool_.var(var));
  for (int i = 0; i < kHalvings; ++i) {
    bool decided = false;
    const std::optional<Assignment> model = prover.model(&decided);
    if (!model) {
      if (!best.found() && decided) best.status = Solution::Status::None;
      break;
    }
    best = {Solution::Status::Found, *model, true};
    int64_t total = 0;
    for (const auto& [var, value] : *model) total = saturating_add(total, value);
    prover.assume(pool_.le(sum, pool_.constant(total > 0 ? total / 2 : saturating_add(total, -1))));
  }
  return best;
}

Solution Solver::smallest() { return search(vars_, Order::Up, 0, 0); }

Solution Solver::sample(uint64_t seed, int64_t spread) {
  std::vector<VarId> order = vars_;
  std::mt19937_64 rng(seed ^ 0x9E3779B97F4A7C15ull);
  std::shuffle(order.begin(), order.end(), rng);
  Solution found = search(order, Order::Random, seed, spread);
  return found.status == Solution::Status::GaveUp ? smallest() : found;
}

ValidRange Solver::valid_range(VarId var) {
  ValidRange out;
  Box box = start();
  if (!box.narrow(conditions_)) return {{1, 0}, true, true};
  out.ends = box.of(var);
  std::vector<VarId> order{var};
  for (const VarId other : vars_) {
    if (other != var) order.push_back(other);
  }
  if (const Solution low = search(order, Order::Up, 0, 0); low.found() && !low.by_z3) {
    out.ends.lo = low.values.at(var), out.exact_low = true;
  }
  if (out.ends.hi != Interval::kPosInf) {
    const Solution high = search(order, Order::Down, 0, 0);
    if (high.found() && !high.by_z3) out.ends.hi = high.values.at(var), out.exact_high = true;
  }
  for (const ExprId condition : conditions_) {
    const Expr& e = pool_[condition];
    if (e.kind != Kind::Eq) continue;
    const ExprId lhs = pool_.operands(condition)[0];
    if (pool_[lhs].kind != Kind::Mod || pool_.operands(lhs)[0] != pool_.var(var)) continue;
    const ExprId divisor = pool_.operands(lhs)[1];
    if (!pool_.is_const(divisor) || pool_.const_value(divisor) <= out.step) continue;
    out.step = pool_.const_value(divisor);
    out.remainder = pool_.const_value(pool_.operands(condition)[1]);
  }
  return out;
}

}  // namespace cresset::sym
