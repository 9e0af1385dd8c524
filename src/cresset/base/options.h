// Process options from the environment, declared once in options.def.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cresset {

enum class Option {
#define CRESSET_OPTION(name, value, kind, allowed, meaning) name,
#include "base/options.def"
#undef CRESSET_OPTION
};

// Flag: 1, true, on, 0, false, off. Choice: one of the listed numbers. Count: a whole number of at least 1. Areas:
// names of log areas, separated by commas. Folder: any path.
enum class OptionKind : uint8_t { Flag, Choice, Count, Areas, Folder };

// The value of CRESSET_<name>. The default where the variable is unset, empty, or set to a value that is not allowed.
std::string option(Option option);
bool option_flag(Option option);
int64_t option_int(Option option);  // of a Choice or a Count

// One line for each variable whose value is not allowed: variable, value, allowed values. The front doors (import in
// Python, the first compile in C++) raise them together: a misspelled setting must not pass in silence.
std::vector<std::string> wrong_options();

// Why nothing can be kept in the folder that CRESSET_CACHE_DIR names; empty where it can, or where no folder is named.
std::string cache_folder_problem();

}  // namespace cresset
