// What is remembered between runs of the sizes of one function: which of them varied, and what became of that.
//
// Keys are sources ("x.size(0)"), so a profile fits whatever order inputs are met in. It only chooses what is symbolic
// from the first call on: a wrong or stale one costs a compilation, never correctness.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cresset::sym {

struct SizeRecord {
  bool varied = false;         // two calls differed
  bool pinned = false;         // a program in which it was a symbol fixed it all the same
  std::vector<int64_t> sizes;  // typical ones, least recent first; a few

  bool operator==(const SizeRecord&) const = default;
};

class Profile {
 public:
  static constexpr size_t kMostSizes = 4;

  // One call's value. True when this is news: the size is now known to vary.
  bool observe(const std::string& source, int64_t value);
  void note_pinned(const std::string& source) { records_[source].pinned = true; }
  // Whether it should be a symbol at the next capture: it varied, and being a symbol was of use. What was pinned stays
  // static while its sizes are few; beyond that one more try is cheaper than a variant a size.
  bool wants_symbol(const std::string& source) const;
  std::optional<int64_t> typical(const std::string& source) const;  // the most recent size

  // Joins what another process saw. Symmetric in what it decides; commutative but for the order of sizes.
  void merge(const Profile& other);

  const std::map<std::string, SizeRecord>& records() const { return records_; }
  bool empty() const { return records_.empty(); }
  bool operator==(const Profile&) const = default;

  // One line a size: "x.size(0)<tab>varied,pinned<tab>3,8". Lines that make no sense are left out when reading.
  std::string to_text() const;
  static Profile from_text(std::string_view text);

 private:
  std::map<std::string, SizeRecord> records_;
};

}  // namespace cresset::sym
