// Process options from the environment, declared once in options.def.
#pragma once

#include <cstdint>
#include <string>

namespace cresset {

enum class Option {
#define CRESSET_OPTION(name, value, meaning) name,
#include "base/options.def"
#undef CRESSET_OPTION
};

// The value of CRESSET_<name>, or its default.
std::string option(Option option);
bool option_flag(Option option);  // "1", "true", "on"
int64_t option_int(Option option);

}  // namespace cresset
