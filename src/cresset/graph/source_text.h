// Lines of the user's program, shown above what they became.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cresset::graph::text {

using SourceReader = std::function<std::string(const std::string& file, int64_t line)>;

// Asked before files are read: an interpreter also knows programs that are in none (notebooks, texts that were
// compiled). It answers with an empty text for what it does not know. Called from any thread that prints a graph.
void set_source_reader(SourceReader reader);

// The line that a location ("model.py:42 in forward") names, without the blanks around it; empty when it cannot be had.
std::string source_line(std::string_view location);

}  // namespace cresset::graph::text
