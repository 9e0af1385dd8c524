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

inline constexpr int kDTypes = 0
#define CRESSET_DTYPE(name, text, bytes, category) +1
#include "base/dtypes.def"
#undef CRESSET_DTYPE
    ;

// Float8: kernels load, convert and store these; they have no arithmetic, here nor in torch. Complex, Other: operators
// on such values go through ATen.
enum class DTypeCategory : uint8_t { Bool, Integer, Float, Float8, Complex, Other };

std::string_view to_string(DType dtype);                  // "f32"
std::optional<DType> parse_dtype(std::string_view text);  // inverse of to_string
int64_t byte_size(DType dtype);
DTypeCategory category(DType dtype);
inline bool is_float(DType dtype) { return category(dtype) == DTypeCategory::Float; }
inline bool is_integral(DType dtype, bool include_bool = true) {
  const DTypeCategory c = category(dtype);
  return c == DTypeCategory::Integer || (include_bool && c == DTypeCategory::Bool);
}

// Whether tensors of this dtype may have gradients.
inline bool is_differentiable(DType dtype) {
  const DTypeCategory c = category(dtype);
  return c == DTypeCategory::Float || c == DTypeCategory::Complex || c == DTypeCategory::Float8;
}

// torch.promote_types; not for Float8 and Other, which torch does not promote.
DType promote(DType a, DType b);

// Returns the dtype in which a kernel holds and computes a value of this dtype: f32 for f16/bf16 and 8-bit floats,
// otherwise the same.
DType compute_dtype(DType dtype);

// Returns the dtype in which ATen accumulates a sum on CPU: f32 for f16/bf16, i64 for integers and bool, otherwise the
// same.
DType accumulate_dtype(DType dtype);

}  // namespace cresset
