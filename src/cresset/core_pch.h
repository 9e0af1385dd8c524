// The standard headers of the core, precompiled once: parsing them was half of what the core took to compile. No header
// of ours belongs here, so that no edit compiles this again. A build for the sanitizers does without it, and so shows
// where an include is missing.
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
