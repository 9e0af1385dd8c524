// Lines of the user's program, shown above the nodes captured from them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cresset::graph::text {

using SourceReader = std::function<std::string(const std::string& file, int64_t line)>;

// Sets a reader which is called before files are read. An interpreter also knows programs without a file (notebooks,
// compiled strings). The reader returns an empty string for an unknown line. Any thread which prints a graph may call
// it.
void set_source_reader(SourceReader reader);

// Returns the line of a location ("model.py:42 in forward") without surrounding blanks, or an empty string when it is
// not available.
std::string source_line(std::string_view location);

}  // namespace cresset::graph::text
