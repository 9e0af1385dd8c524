// Names of symbols. A name depends only on the source of the symbol's value. The order of inputs and the symbols that
// were specialized have no influence. Caches and profiles keyed by names therefore hit from run to run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cresset::sym {

uint64_t source_hash(std::string_view source);  // equal in every process and on every machine

// Returns a name for each source: `prefix` and a number below `modulus`, the hash or the next free number. Sources are
// placed in the order of (hash, string), independent of their order in the list. Sources with `late` set are placed
// last, so that they cannot displace the rest. When there are more sources than numbers, numbers beyond the modulus are
// used.
struct NamedSource {
  std::string_view source;
  bool late = false;
};
std::vector<std::string> stable_names(std::span<const NamedSource> sources, std::string_view prefix,
                                      uint64_t modulus = 10000);

}  // namespace cresset::sym
