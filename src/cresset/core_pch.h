// The precompiled standard headers of the core. Parsing them took half of the core's compile time. No header of cresset
// belongs here, since every edit of it would recompile this file. Sanitizer builds do not use the file and thereby find
// missing includes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
