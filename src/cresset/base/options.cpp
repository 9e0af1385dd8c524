#include "base/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/files.h"

namespace cresset {
namespace {

struct OptionRow {
  const char* variable;
  const char* value;  // the default
  OptionKind kind;
  const char* allowed;  // of a Choice
};
constexpr OptionRow kOptionRows[] = {
#define CRESSET_OPTION(name, value, kind, allowed, meaning) {"CRESSET_" #name, value, OptionKind::kind, allowed},
#include "base/options.def"
#undef CRESSET_OPTION
};
struct OldName {
  std::string_view variable, now;
};
constexpr OldName kOldNames[] = {
#define CRESSET_OLD_OPTION(old, now) {"CRESSET_" #old, "CRESSET_" #now},
#include "base/old_options.def"
#undef CRESSET_OLD_OPTION
};
constexpr const char* kAreas =
#define CRESSET_LOG_AREA(area, name, meaning) name ","
#include "base/log_areas.def"
#undef CRESSET_LOG_AREA
    "all,help";
constexpr std::string_view kOn[] = {"1", "true", "on"}, kOff[] = {"0", "false", "off"};

template <class Names>
bool is_among(std::string_view text, const Names& names) {
  return std::find(std::begin(names), std::end(names), text) != std::end(names);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (comma != 0) words.push_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return words;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

bool is_allowed(const OptionRow& row, std::string_view text) {
  switch (row.kind) {
    case OptionKind::Flag:
      return is_among(text, kOn) || is_among(text, kOff);
    case OptionKind::Choice:
      return is_among(text, split(row.allowed));
    case OptionKind::Count:
      return whole_number(text).value_or(0) >= 1;
    case OptionKind::Areas: {
      const std::vector<std::string_view> known = split(kAreas), given = split(text);
      return std::all_of(given.begin(), given.end(), [&](std::string_view area) { return is_among(area, known); });
    }
    case OptionKind::Folder:
    case OptionKind::File:
      return true;
  }
  return false;
}

std::string allowed_values(const OptionRow& row) {
  const auto listed = [](std::string_view words) { return fmt::format("{}", fmt::join(split(words), ", ")); };
  switch (row.kind) {
    case OptionKind::Flag:
      return "1, true, on, 0, false, off";
    case OptionKind::Choice:
      return listed(row.allowed);
    case OptionKind::Count:
      return "a whole number of at least 1";
    case OptionKind::Areas:
      return "some of " + listed(kAreas) + ", separated by commas";
    case OptionKind::Folder:
      return "a folder";
    case OptionKind::File:
      return "a file";
  }
  return {};
}

bool is_set(std::string_view variable) {
  const char* const value = std::getenv(variable.data());
  return value != nullptr && *value != '\0';
}

// The variable which sets the option: the row's, else the set one of its old names.
std::string_view variable_of(const OptionRow& row) {
  if (is_set(row.variable)) return row.variable;
  for (const OldName& old : kOldNames)
    if (old.now == row.variable && is_set(old.variable)) return old.variable;
  return row.variable;
}

std::optional<std::string> given(const OptionRow& row) {
  const std::string_view variable = variable_of(row);
  return is_set(variable) ? std::optional<std::string>(std::getenv(variable.data())) : std::nullopt;
}

}  // namespace

std::string option(Option option) {
  const OptionRow& row = kOptionRows[static_cast<size_t>(option)];
  const std::optional<std::string> set = given(row);
  return set && is_allowed(row, *set) ? *set : row.value;
}

bool option_flag(Option o) { return is_among(option(o), kOn); }

int64_t option_int(Option o) { return whole_number(option(o)).value_or(0); }

std::vector<std::string> wrong_options() {
  std::vector<std::string> lines;
  for (const OptionRow& row : kOptionRows) {
    const std::optional<std::string> set = given(row);
    if (set && !is_allowed(row, *set))
      lines.push_back(fmt::format("{}='{}': expected {}", variable_of(row), *set, allowed_values(row)));
  }
  return lines;
}

std::vector<std::string> deprecated_options() {
  std::vector<std::string> lines;
  for (const OldName& old : kOldNames)
    if (is_set(old.variable)) lines.push_back(fmt::format("{} is deprecated: use {}", old.variable, old.now));
  return lines;
}

std::string cache_folder_problem() {
  const std::string folder = option(Option::CACHE_DIR);
  if (folder.empty() || option_flag(Option::NO_DISK_CACHE)) return {};
  std::string there = folder;
  while (!there.empty() && ::access(there.c_str(), F_OK) != 0) there = parent_folder(there);
  if (there.empty()) there = ".";
  if (is_folder(there) && ::access(there.c_str(), W_OK | X_OK) == 0) return {};
  return fmt::format("CRESSET_CACHE_DIR='{}': nothing can be written in {}; compiled code is not kept on disk", folder,
                     there);
}

}  // namespace cresset
