// CRESSET_CHECK states an invariant of cresset itself. The check stays on in release builds. A failure is a bug in
// cresset, never the user's fault, and the message says so.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace cresset {

// Thrown by CRESSET_CHECK. The exception reaches the public boundary unchanged.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);

}  // namespace cresset

#define CRESSET_CHECK(condition, message)                                 \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::cresset::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
