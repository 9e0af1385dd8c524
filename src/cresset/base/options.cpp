#include "base/options.h"

#include <cstdlib>

namespace cresset {
namespace {

struct Given {
  const char* variable;
  const char* value;
};
constexpr Given kGiven[] = {
#define CRESSET_OPTION(name, value, meaning) {"CRESSET_" #name, value},
#include "base/options.def"
#undef CRESSET_OPTION
};

}  // namespace

std::string option(Option option) {
  const Given& row = kGiven[static_cast<size_t>(option)];
  const char* set = std::getenv(row.variable);
  return set != nullptr ? set : row.value;
}

bool option_flag(Option o) {
  const std::string text = option(o);
  return text == "1" || text == "true" || text == "on";
}

int64_t option_int(Option o) { return std::strtoll(option(o).c_str(), nullptr, 10); }

}  // namespace cresset
