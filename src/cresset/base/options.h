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

// Flag: 1, true, on, 0, false, off. Choice: a listed number. Count: a whole number of at least 1. Areas: names of log
// areas, separated by commas; all, help. Folder, File: any path.
enum class OptionKind : uint8_t { Flag, Choice, Count, Areas, Folder, File };

// Returns the value of CRESSET_<name>. The default applies where the variable is unset, empty, or has a value which is
// not allowed.
std::string option(Option option);
bool option_flag(Option option);
int64_t option_int(Option option);  // for a Choice or a Count

// Returns a line for each variable whose value is not allowed: variable, value, allowed values. The entry points
// (import in Python, the first compile in C++) raise all of them together, because a misspelled setting must not be
// ignored silently.
std::vector<std::string> wrong_options();

// Returns a line for each variable which is set by its old name (old_options.def).
std::vector<std::string> deprecated_options();

// Returns the reason why the folder of CRESSET_CACHE_DIR is not writable. The string is empty when the folder is usable
// or none is set.
std::string cache_folder_problem();

}  // namespace cresset
