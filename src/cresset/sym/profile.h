// The profile of a function's sizes, kept between runs: the sizes that varied, and whether a symbol for them was
// useful.
//
// Keys are sources ("x.size(0)"), so a profile does not depend on the order of inputs. A profile only decides which
// sizes are symbolic from the first call on. A wrong or stale profile costs a compilation, but never correctness.
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
  bool specialized = false;    // a program specialized the size although it was a symbol
  std::vector<int64_t> sizes;  // a few typical sizes, least recent first

  bool operator==(const SizeRecord&) const = default;
};

class Profile {
 public:
  static constexpr size_t kMostSizes = 4;

  // Records the value of a call. Returns true when the size is thereby first known to vary.
  bool observe(const std::string& source, int64_t value);
  void note_specialized(const std::string& source) { records_[source].specialized = true; }
  // Returns whether the size should be a symbol at the next capture: it varied, and no program specialized it. A
  // specialized size stays static while it has few values. Beyond this number another attempt is cheaper than a cache
  // entry for each value.
  bool wants_symbol(const std::string& source) const;
  std::optional<int64_t> typical(const std::string& source) const;  // the most recent size

  // Merges the profile of another process. The flags do not depend on the order of merges; the order of sizes does.
  void merge(const Profile& other);

  const std::map<std::string, SizeRecord>& records() const { return records_; }
  bool empty() const { return records_.empty(); }
  bool operator==(const Profile&) const = default;

  // The text has a line for each size: "x.size(0)<tab>varied,pinned<tab>3,8". Malformed lines are ignored when reading.
  std::string to_text() const;
  static Profile from_text(std::string_view text);

 private:
  std::map<std::string, SizeRecord> records_;
};

}  // namespace cresset::sym
