// Names of symbols that depend on where their values come from, and on nothing else: not on the order in which inputs
// were met, nor on symbols that were tried and pinned. What is keyed by text (caches, profiles) hits from run to run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cresset::sym {

uint64_t source_hash(std::string_view source);  // the same in every process and on every machine

// One name a source: `prefix` and a number below `modulus` (the hash, or the next free number). Sources are placed in
// the order of (hash, text), whatever their order here; those with `late` set come after all others, so that they
// cannot displace them. More sources than numbers: numbers beyond the modulus.
struct NamedSource {
  std::string_view source;
  bool late = false;
};
std::vector<std::string> stable_names(std::span<const NamedSource> sources, std::string_view prefix,
                                      uint64_t modulus = 10000);

}  // namespace cresset::sym
