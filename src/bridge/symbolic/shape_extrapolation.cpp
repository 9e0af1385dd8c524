#include "bridge/symbolic/shape_extrapolation.h"

#include <algorithm>
#include <map>

#include "sym/eval.h"

namespace cresset::bridge {

using sym::ExprId;
using sym::VarId;

namespace {

constexpr int64_t kGeneralSize = 12;   // general value for an unbacked size, with halves, thirds and quarters
constexpr int64_t kSteps[] = {24, 7};  // the first keeps most divisibilities, the second keeps none

// Moves the hint by `step`: upwards or, at the end of the range, downwards.
int64_t moved(int64_t hint, int64_t step, sym::Interval range) {
  if (hint + step <= range.hi) return hint + step;
  return std::max(range.lo, hint - step);
}

}  // namespace

SizePredictor::SizePredictor(sym::ShapeEnv& env, const std::vector<ExprId>& sizes) : env_(env), sizes_(sizes) {
  for (const ExprId e : sizes_) env_.pool().collect_vars(e, vars_);
  std::sort(vars_.begin(), vars_.end());
  vars_.erase(std::unique(vars_.begin(), vars_.end()), vars_.end());
  for (const VarId var : vars_) {
    const ExprId symbol = env_.pool().var(var);
    const std::optional<int64_t> hint = env_.hint(symbol);
    const sym::Interval range = env_.range(symbol);
    hints_[var] = hint ? *hint : std::clamp(kGeneralSize, range.lo, range.hi);
    guesses_ = guesses_ || !hint;
  }
  Point factors;
  for (const VarId var : vars_) factors[var] = 1;
  place_points(factors);
  for (int i = 0; i < 3; ++i) {  // a small step of n does not move n // 160
    bool any = false;
    for (const ExprId e : sizes_) {
      if (!is_still(e, points_)) continue;
      std::vector<VarId> of_it;
      env_.pool().collect_vars(e, of_it);
      for (const VarId var : of_it) factors[var] *= 8, any = true;
    }
    if (!any) break;
    place_points(factors);
  }
}

void SizePredictor::place_points(const Point& factors) {
  points_.clear();
  int64_t spread = 0;
  for (const int64_t step : kSteps) {
    Point all = hints_;
    for (const VarId var : vars_) {
      const sym::Interval range = env_.range(env_.pool().var(var));
      Point one = hints_;
      one[var] = moved(hints_[var], step * factors.at(var), range);
      points_.push_back(std::move(one));
      all[var] = moved(hints_[var], step * factors.at(var) * (2 + spread++ % 3), range);
    }
    if (vars_.size() > 1) points_.push_back(std::move(all));
  }
}

bool SizePredictor::is_still(ExprId size, const std::vector<Point>& points) const {
  if (points.empty() || env_.pool().is_const(size)) return false;
  const std::optional<int64_t> here = value(hints_, size);
  return std::all_of(points.begin(), points.end(), [&](const Point& point) { return value(point, size) == here; });
}

std::vector<ExprId> SizePredictor::still() const {
  std::vector<Point> points;
  for (const Observation& o : seen_) points.push_back(o.point);
  std::vector<ExprId> out;
  std::copy_if(sizes_.begin(), sizes_.end(), std::back_inserter(out), [&](ExprId e) { return is_still(e, points); });
  return out;
}

std::optional<int64_t> SizePredictor::value(const Point& point, ExprId e) const {
  return sym::eval(env_.pool(), env_.simplify(e), [&](VarId var) -> std::optional<int64_t> {
    const auto at = point.find(var);
    return at == point.end() ? std::nullopt : std::optional<int64_t>(at->second);
  });
}

void SizePredictor::observe(const Point& point, std::vector<int64_t> numbers) {
  seen_.push_back({point, std::move(numbers)});
}

bool SizePredictor::moves_all(const Point& point) const {
  return std::all_of(vars_.begin(), vars_.end(), [&](VarId var) { return point.at(var) != hints_.at(var); });
}

std::vector<VarId> SizePredictor::never_moved() const {
  std::vector<VarId> out;
  std::copy_if(vars_.begin(), vars_.end(), std::back_inserter(out), [&](VarId var) {
    return std::none_of(seen_.begin(), seen_.end(),
                        [&](const Observation& o) { return o.point.at(var) != hints_.at(var); });
  });
  return out.size() < vars_.size() ? out : std::vector<VarId>();
}

std::vector<std::vector<VarId>> SizePredictor::perhaps_equal(const std::vector<Point>& taken) const {
  std::map<int64_t, std::vector<VarId>> stuck;
  for (const VarId var : vars_) {
    const bool moves = std::any_of(taken.begin(), taken.end(), [&](const Point& point) {
      return point.at(var) != hints_.at(var) && std::all_of(vars_.begin(), vars_.end(), [&](VarId other) {
               return other == var || point.at(other) == hints_.at(other);
             });
    });
    if (!moves) stuck[hints_.at(var)].push_back(var);
  }
  std::vector<std::vector<VarId>> pairs, whole;
  for (const auto& [hint, vars] : stuck) {
    for (size_t i = 0; i < vars.size(); ++i)
      for (size_t j = i + 1; j < vars.size(); ++j) pairs.push_back({vars[i], vars[j]});
    if (vars.size() > 2) whole.push_back(vars);
  }
  pairs.insert(pairs.end(), whole.begin(), whole.end());
  return pairs;
}

std::vector<SizePredictor::Point> SizePredictor::points_moving(const std::vector<VarId>& together) const {
  std::vector<Point> out;
  for (const int64_t step : kSteps) {
    Point point = hints_;
    for (const VarId var : together) point[var] = moved(hints_.at(var), step, env_.range(env_.pool().var(var)));
    out.push_back(std::move(point));
  }
  return out;
}

bool SizePredictor::observed_enough() const {
  return vars_.empty() ||
         std::any_of(seen_.begin(), seen_.end(), [&](const Observation& o) { return moves_all(o.point); });
}

std::vector<SizePredictor::Point> SizePredictor::closer_points() const {
  std::vector<Point> out;
  constexpr int64_t kSmall = 8;  // a window, a padding, a factor
  for (const int64_t step : {24, 12, 6, 2, 1}) {
    for (const int64_t small_step : {1, -1, 3}) {
      Point point = hints_;
      for (auto& [var, value] : point) {
        const bool small = value < kSmall;
        value = moved(value, small ? small_step : step, env_.range(env_.pool().var(var)));
      }
      out.push_back(std::move(point));
    }
  }
  return out;
}

bool SizePredictor::agrees(ExprId e, size_t i) const {
  return std::all_of(seen_.begin(), seen_.end(),
                     [&](const Observation& o) { return value(o.point, e) == o.numbers[i]; });
}

bool SizePredictor::fit(const std::vector<int64_t>& base) {
  for (const Observation& o : seen_)
    if (o.numbers.size() != base.size()) return false;
  if (!observed_enough()) return false;
  for (size_t i = 0; i < base.size(); ++i) {
    const ExprId e = candidate(i, base[i]);
    if (!e.valid()) return false;
    expressions_.push_back(e);
  }
  return true;
}

ExprId SizePredictor::candidate(size_t i, int64_t base) {
  const auto fits = [&](ExprId e) { return value(hints_, e) == base && agrees(e, i); };
  if (const ExprId e = env_.pool().constant(base); fits(e)) return e;
  for (const ExprId e : sizes_)
    if (fits(e)) return e;
  if (const ExprId e = affine(i, base); e.valid()) return e;
  for (const ExprId size : sizes_)
    if (const ExprId e = affine_in(size, i, base); e.valid()) return e;
  for (const ExprId size : sizes_) {  // the half of a spectrum: size // 2 + 1
    const ExprId half = env_.pool().floor_div(size, env_.pool().constant(2));
    const int64_t offset = base - value(hints_, half).value_or(0);
    if (const ExprId e = env_.pool().add(half, env_.pool().constant(offset)); fits(e)) return e;
  }
  std::vector<ExprId> known = sizes_;
  known.insert(known.end(), expressions_.begin(), expressions_.end());
  for (const ExprId a : known) {
    for (const ExprId b : known) {
      sym::ExprPool& pool = env_.pool();
      for (const ExprId e : {pool.min(a, b), pool.max(a, b), pool.mul(a, b)})
        if (fits(e)) return e;
    }
  }
  return {};
}

// base + sum of slope * (symbol - hint), with slopes from the points which move a single symbol.
ExprId SizePredictor::affine(size_t i, int64_t base) {
  sym::ExprPool& pool = env_.pool();
  ExprId e = pool.constant(base);
  for (const VarId var : vars_) {
    for (const Observation& o : seen_) {
      const int64_t step = o.point.at(var) - hints_.at(var);
      const bool alone =
          std::all_of(vars_.begin(), vars_.end(), [&](VarId v) { return v == var || o.point.at(v) == hints_.at(v); });
      if (!alone || step == 0) continue;
      const int64_t change = o.numbers[i] - base;
      if (change % step != 0) return {};
      const ExprId distance = pool.sub(pool.var(var), pool.constant(hints_.at(var)));
      e = pool.add(e, pool.mul(pool.constant(change / step), distance));
      break;
    }
  }
  return value(hints_, e) == base && agrees(e, i) ? e : ExprId{};
}

// slope * size + constant, for a size which is no affine function of the symbols (a padded `(n + 1) // 2`).
ExprId SizePredictor::affine_in(ExprId size, size_t i, int64_t base) const {
  sym::ExprPool& pool = env_.pool();
  const std::optional<int64_t> here = value(hints_, size);
  for (const Observation& o : seen_) {
    const std::optional<int64_t> there = value(o.point, size);
    if (!here || !there || *here == *there) continue;
    const int64_t change = o.numbers[i] - base, step = *there - *here;
    if (change % step != 0) return {};
    const int64_t slope = change / step;
    const ExprId e = pool.add(pool.mul(pool.constant(slope), size), pool.constant(base - slope * *here));
    return agrees(e, i) ? e : ExprId{};
  }
  return {};
}

}  // namespace cresset::bridge
