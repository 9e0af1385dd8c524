#include "sym/shifted_sum.h"

#include <algorithm>
#include <map>
#include <vector>

#include "sym/arith.h"
#include "sym/interval.h"

namespace cresset::sym {
namespace {

constexpr size_t kTerms = 16, kFactors = 6;  // multiplied out, 16 terms are at most 16 * 2^6
constexpr int64_t kLimit = int64_t{1} << 62;

using Shifted = std::map<std::vector<uint32_t>, int64_t>;  // factors, each above its least value -> coefficient

// coefficient * product(least_i + above_i), multiplied out. False when a number leaves the limit.
bool add_product(Shifted& sum, std::span<const ExprId> factors, std::span<const int64_t> least, int64_t coefficient) {
  for (uint32_t chosen = 0; chosen < (1u << factors.size()); ++chosen) {
    std::vector<uint32_t> above;
    int64_t value = coefficient;
    for (size_t i = 0; i < factors.size(); ++i) {
      if ((chosen >> i) & 1) {
        above.push_back(factors[i].index);
      } else {
        value = saturating_mul(value, least[i]);
      }
    }
    int64_t& total = sum[above];
    total = saturating_add(total, value);
    if (std::max(value, total) > kLimit || std::min(value, total) < -kLimit) return false;
  }
  return true;
}

}  // namespace

bool falls_from(ExprPool& pool, std::span<const Term> sum, int64_t bound, const std::function<int64_t(ExprId)>& least) {
  if (sum.size() > kTerms) return false;
  Shifted shifted;
  bool has_product = false;  // of a sum without one, ranges say as much
  for (const Term& term : sum) {
    ExprList factors;
    factors.assign(pool.factors(term.monomial));
    if (factors.size() > kFactors) return false;
    has_product |= factors.size() > 1;
    std::vector<int64_t> lows;
    for (const ExprId factor : factors) lows.push_back(least(factor));
    if (std::find(lows.begin(), lows.end(), Interval::kNegInf) != lows.end()) return false;
    if (!add_product(shifted, {factors.begin(), factors.end()}, lows, term.coefficient)) return false;
  }
  return has_product && std::all_of(shifted.begin(), shifted.end(), [bound](const auto& term) {
           return term.second <= (term.first.empty() ? bound : 0);
         });
}

}  // namespace cresset::sym
