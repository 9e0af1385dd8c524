// Element types and the properties used by every layer: size, category, promotion, and the type of arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cresset {

enum class DType : uint8_t {
#define CRESSET_DTYPE(name, text, bytes, category) name,
#include "base/dtypes.def"
#undef CRESSET_DTYPE
};

enum class DTypeCategory : uint8_t { Bool, Integer, Float, Complex };

std::string_view to_string(DType dtype);                  // "f32"
std::optional<DType> parse_dtype(std::string_view text);  // inverse of to_string
int64_t byte_size(DType dtype);
DTypeCategory category(DType dtype);
inline bool is_float(DType dtype) { return category(dtype) == DTypeCategory::Float; }
inline bool is_integral(DType dtype, bool include_bool = true) {
  const DTypeCategory c = category(dtype);
  return c == DTypeCategory::Integer || (include_bool && c == DTypeCategory::Bool);
}

// torch.promote_types for real dtypes (no complex).
DType promote(DType a, DType b);

// Returns the dtype in which a kernel holds and computes a value of this dtype: f32 for f16/bf16, otherwise the same.
DType compute_dtype(DType dtype);

// Returns the dtype in which ATen accumulates a sum on CPU: f32 for f16/bf16, i64 for integers and bool, otherwise the
// same.
DType accumulate_dtype(DType dtype);

}  // namespace cresset
