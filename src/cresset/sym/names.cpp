#include "sym/names.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "sym/shape_env.h"

namespace cresset::sym {

// FNV-1a: short, stable for ever, and good enough for a few dozen short strings.
uint64_t source_hash(std::string_view source) {
  uint64_t h = 0xCBF29CE484222325ull;
  for (const char c : source) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return h;
}

std::vector<std::string> stable_names(std::span<const NamedSource> sources, std::string_view prefix, uint64_t modulus) {
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&](size_t i) {
    return std::tuple(sources[i].late, source_hash(sources[i].source) % modulus, sources[i].source);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  std::unordered_set<uint64_t> taken;
  std::vector<std::string> names(sources.size());
  for (const size_t i : order) {
    uint64_t number = source_hash(sources[i].source) % modulus;
    for (uint64_t tries = 0; taken.contains(number); ++tries) {
      number = tries < modulus ? (number + 1) % modulus : modulus + taken.size();
    }
    taken.insert(number);
    names[i] = std::string(prefix) + std::to_string(number);
  }
  return names;
}

void ShapeEnv::name_by_source() {
  for (const bool backed : {true, false}) {
    std::vector<size_t> which;
    std::vector<NamedSource> sources;
    for (size_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i].hint.has_value() != backed) continue;
      which.push_back(i);
      sources.push_back({symbols_[i].source, pool_.is_const(simplify(pool_.var(symbols_[i].var)))});
    }
    const std::vector<std::string> names = stable_names(sources, backed ? "s" : "u");
    for (size_t i = 0; i < which.size(); ++i) symbols_[which[i]].name = names[i];
  }
}

}  // namespace cresset::sym
