#include "sym/shifted_sum.h"

#include <algorithm>
#include <array>

#include "sym/arith.h"
#include "sym/interval.h"

namespace cresset::sym {
namespace {

constexpr size_t kTerms = 16, kFactors = 6;  // multiplied out, 16 terms are at most 16 * 2^6
constexpr int64_t kLimit = int64_t{1} << 62;

// A product of factors, each measured from its least value, with its coefficient in the sum.
struct Product {
  std::array<uint32_t, kFactors> above;
  uint32_t count;
  int64_t coefficient;

  bool is_of_same(const Product& other) const {
    return count == other.count && std::equal(above.begin(), above.begin() + count, other.above.begin());
  }
};
using Shifted = SmallVector<Product, 32>;

// coefficient * product(least_i + above_i), multiplied out. Returns false when a number exceeds the limit.
bool add_product(Shifted& sum, std::span<const ExprId> factors, std::span<const int64_t> least, int64_t coefficient) {
  for (uint32_t chosen = 0; chosen < (1u << factors.size()); ++chosen) {
    Product product{{}, 0, coefficient};
    for (size_t i = 0; i < factors.size(); ++i) {
      if ((chosen >> i) & 1) {
        product.above[product.count++] = factors[i].index;
      } else {
        product.coefficient = saturating_mul(product.coefficient, least[i]);
      }
    }
    const auto same = std::find_if(sum.begin(), sum.end(), [&](const Product& p) { return p.is_of_same(product); });
    const int64_t total = saturating_add(same != sum.end() ? same->coefficient : 0, product.coefficient);
    if (std::max(product.coefficient, total) > kLimit || std::min(product.coefficient, total) < -kLimit) return false;
    if (same != sum.end()) {
      same->coefficient = total;
    } else if (total != 0 || product.count == 0) {
      sum.push_back(product);
    }
  }
  return true;
}

}  // namespace

bool falls_from(ExprPool& pool, std::span<const Term> sum, int64_t bound, const std::function<int64_t(ExprId)>& least) {
  if (sum.size() > kTerms) return false;
  bool has_product = false;  // without a product, ranges are equally strong
  for (const Term& term : sum) {
    const size_t count = pool.factors(term.monomial).size();
    if (count > kFactors) return false;
    has_product |= count > 1;
  }
  if (!has_product) return false;
  Shifted shifted;
  for (const Term& term : sum) {
    ExprList factors;
    factors.assign(pool.factors(term.monomial));
    std::array<int64_t, kFactors> lows;
    for (size_t i = 0; i < factors.size(); ++i)
      if ((lows[i] = least(factors[i])) == Interval::kNegInf) return false;
    if (!add_product(shifted, factors, {lows.data(), factors.size()}, term.coefficient)) return false;
  }
  return std::all_of(shifted.begin(), shifted.end(),
                     [bound](const Product& p) { return p.coefficient <= (p.count == 0 ? bound : 0); });
}

}  // namespace cresset::sym
