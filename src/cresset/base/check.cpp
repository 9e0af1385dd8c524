#include "base/check.h"

#include <fmt/format.h>

namespace cresset {

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  throw InternalError(fmt::format("cresset internal error at {}:{}: {} ({})", file, line, message, condition));
}

}  // namespace cresset
