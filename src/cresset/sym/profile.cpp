#include "sym/profile.h"

#include <algorithm>
#include <charconv>

namespace cresset::sym {
namespace {

constexpr std::string_view kHeader = "cresset sizes 1";

void remember(std::vector<int64_t>& sizes, int64_t value) {
  std::erase(sizes, value);
  sizes.push_back(value);
  if (sizes.size() > Profile::kMostSizes) sizes.erase(sizes.begin());
}

// Calls f(part) for each part of `text` between separators.
template <class F>
void split(std::string_view text, char separator, F&& f) {
  while (!text.empty()) {
    const size_t end = text.find(separator);
    f(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::optional<SizeRecord> parse_record(std::string_view flags, std::string_view sizes) {
  SizeRecord record;
  bool good = true;
  split(flags, ',', [&](std::string_view flag) {
    if (flag == "varied") {
      record.varied = true;
    } else if (flag == "pinned") {
      record.specialized = true;
    } else {
      good = good && flag == "steady";
    }
  });
  split(sizes, ',', [&](std::string_view number) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    good = good && error == std::errc() && end == number.data() + number.size();
    if (good) remember(record.sizes, value);
  });
  return good ? std::optional(record) : std::nullopt;
}

}  // namespace

bool Profile::observe(const std::string& source, int64_t value) {
  SizeRecord& record = records_[source];
  const bool other = !record.sizes.empty() && record.sizes.back() != value;
  remember(record.sizes, value);
  if (!other || record.varied) return false;
  record.varied = true;
  return true;
}

bool Profile::wants_symbol(const std::string& source) const {
  const auto it = records_.find(source);
  if (it == records_.end() || !it->second.varied) return false;
  return !it->second.specialized || it->second.sizes.size() >= kMostSizes;
}

std::optional<int64_t> Profile::typical(const std::string& source) const {
  const auto it = records_.find(source);
  if (it == records_.end() || it->second.sizes.empty()) return std::nullopt;
  return it->second.sizes.back();
}

void Profile::merge(const Profile& other) {
  for (const auto& [source, theirs] : other.records_) {
    SizeRecord& mine = records_[source];
    // Two processes with one different size each: the size varies between them.
    const bool differ = !mine.sizes.empty() && !theirs.sizes.empty() && mine.sizes.back() != theirs.sizes.back();
    mine.varied = mine.varied || theirs.varied || differ;
    mine.specialized = mine.specialized || theirs.specialized;
    for (const int64_t size : theirs.sizes) {
      if (std::find(mine.sizes.begin(), mine.sizes.end(), size) == mine.sizes.end()) remember(mine.sizes, size);
    }
  }
}

std::string Profile::to_text() const {
  std::string out(kHeader);
  out += '\n';
  for (const auto& [source, record] : records_) {
    if (source.find_first_of("\t\n") != std::string::npos) continue;
    out += source + '\t' + (record.varied ? "varied" : "steady") + (record.specialized ? ",pinned" : "") + '\t';
    for (size_t i = 0; i < record.sizes.size(); ++i) out += (i ? "," : "") + std::to_string(record.sizes[i]);
    out += '\n';
  }
  return out;
}

Profile Profile::from_text(std::string_view text) {
  Profile out;
  if (!text.starts_with(kHeader)) return out;
  split(text.substr(kHeader.size()), '\n', [&](std::string_view line) {
    const size_t first = line.find('\t');
    const size_t second = first == std::string_view::npos ? first : line.find('\t', first + 1);
    if (second == std::string_view::npos || first == 0) return;
    const auto record = parse_record(line.substr(first + 1, second - first - 1), line.substr(second + 1));
    if (record) out.records_[std::string(line.substr(0, first))] = *record;
  });
  return out;
}

}  // namespace cresset::sym
