#include "base/result.h"

#include <fmt/format.h>

namespace cresset {

std::string_view to_string(FallbackReason reason) {
  switch (reason) {
#define CRESSET_FALLBACK_REASON(name, text) \
  case FallbackReason::name:                \
    return text;
#include "base/fallback_reasons.def"
#undef CRESSET_FALLBACK_REASON
  }
  return "unknown reason";
}

std::string describe(const Fallback& fallback) {
  std::string out = fmt::format("{}: {}", to_string(fallback.reason), fallback.attempted);
  if (!fallback.hint.empty()) out += fmt::format("; hint: {}", fallback.hint);
  return out;
}

}  // namespace cresset
