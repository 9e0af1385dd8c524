// cresset's own Python exceptions.
#pragma once

#include <string>

namespace cresset::frontend {

// Sets the exception cresset.<type_name> with a message.
void set_error(const char* type_name, const std::string& message);

}  // namespace cresset::frontend
