#include "graph/source_text.h"

#include <charconv>
#include <fstream>
#include <mutex>
#include <optional>
#include <utility>

namespace cresset::graph::text {
namespace {

std::mutex reader_mutex;
SourceReader installed_reader;

std::string line_of_file(const std::string& file, int64_t line) {
  std::ifstream in(file);
  std::string text;
  for (int64_t at = 0; at < line; ++at)
    if (!std::getline(in, text)) return {};
  return text;
}

// "model.py:42 in forward" -> model.py, 42. File names may contain blanks and colons, function names no blanks.
std::optional<std::pair<std::string, int64_t>> place_of(std::string_view location) {
  location = location.substr(0, location.rfind(" in "));
  const size_t colon = location.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  int64_t line = 0;
  const char* const end = location.data() + location.size();
  const auto [rest, error] = std::from_chars(location.data() + colon + 1, end, line);
  if (error != std::errc{} || rest != end || line < 1) return std::nullopt;
  return std::pair(std::string(location.substr(0, colon)), line);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

void set_source_reader(SourceReader reader) {
  const std::scoped_lock lock(reader_mutex);
  installed_reader = std::move(reader);
}

std::string source_line(std::string_view location) {
  const auto place = place_of(location);
  if (!place) return {};
  SourceReader reader;
  {
    const std::scoped_lock lock(reader_mutex);
    reader = installed_reader;
  }
  std::string line = reader ? reader(place->first, place->second) : std::string();
  if (line.empty()) line = line_of_file(place->first, place->second);
  return std::string(trimmed(line));
}

}  // namespace cresset::graph::text
