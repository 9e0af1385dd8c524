#include "base/dtype.h"

#include <algorithm>

#include "base/check.h"

namespace cresset {
namespace {

struct Row {
  std::string_view text;
  int64_t bytes;
  DTypeCategory category;
};
constexpr Row kRows[] = {
#define CRESSET_DTYPE(name, text, bytes, category) {text, bytes, DTypeCategory::category},
#include "base/dtypes.def"
#undef CRESSET_DTYPE
};
const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

DType promote_same_category(DType a, DType b) {
  const bool half_mix = (a == DType::F16 && b == DType::BF16) || (a == DType::BF16 && b == DType::F16);
  if (half_mix) return DType::F32;
  const bool sign_mix = (a == DType::U8) != (b == DType::U8);
  if (category(a) == DTypeCategory::Integer && sign_mix) {
    const DType other = a == DType::U8 ? b : a;
    return other == DType::I8 ? DType::I16 : other;
  }
  return byte_size(a) >= byte_size(b) ? a : b;
}

}  // namespace

std::string_view to_string(DType dtype) { return row(dtype).text; }
int64_t byte_size(DType dtype) { return row(dtype).bytes; }
DTypeCategory category(DType dtype) { return row(dtype).category; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].text == text) return static_cast<DType>(i);
  return std::nullopt;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (category(a) == category(b)) return promote_same_category(a, b);
  const DType hi = category(a) > category(b) ? a : b;
  const DType lo = hi == a ? b : a;
  if (category(hi) != DTypeCategory::Complex) return hi;
  if (lo == DType::F64) return DType::C128;
  const bool wider = lo == DType::F32 || lo == DType::BF16;
  return hi == DType::C32 && wider ? DType::C64 : hi;
}

DType compute_dtype(DType dtype) {
  const bool narrow = dtype == DType::F16 || dtype == DType::BF16 || category(dtype) == DTypeCategory::Float8;
  return narrow ? DType::F32 : dtype;
}

DType accumulate_dtype(DType dtype) { return is_integral(dtype) ? DType::I64 : compute_dtype(dtype); }

}  // namespace cresset
