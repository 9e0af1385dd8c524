#include "bridge/device/cpu/row_reductions.h"

#include "bridge/device/cpu/multiversion.h"

namespace cresset::bridge {
namespace {

// The attribute applies to functions, not to function templates.
#define CRESSET_ROW_REDUCTION(fold, type)                                                                   \
  CRESSET_MULTIVERSION void fold##_##type(type* __restrict there, const type* __restrict next, int64_t n) { \
    for (int64_t i = 0; i < n; ++i) there[i] = folded<RowReduction::fold>(there[i], next[i]);               \
  }
#define CRESSET_ROW_REDUCTIONS(fold)   \
  CRESSET_ROW_REDUCTION(fold, float)   \
  CRESSET_ROW_REDUCTION(fold, double)  \
  CRESSET_ROW_REDUCTION(fold, int32_t) \
  CRESSET_ROW_REDUCTION(fold, int64_t)
CRESSET_ROW_REDUCTIONS(Copy)
CRESSET_ROW_REDUCTIONS(Add)
CRESSET_ROW_REDUCTIONS(Multiply)
CRESSET_ROW_REDUCTIONS(Greatest)
CRESSET_ROW_REDUCTIONS(Least)

}  // namespace

#define CRESSET_ROW_REDUCTION_OF(fold, type)                                                 \
  template <>                                                                                \
  void reduce_row<RowReduction::fold, type>(type * there, const type* next, int64_t count) { \
    fold##_##type(there, next, count);                                                       \
  }
#define CRESSET_ROW_REDUCTIONS_OF(fold)   \
  CRESSET_ROW_REDUCTION_OF(fold, float)   \
  CRESSET_ROW_REDUCTION_OF(fold, double)  \
  CRESSET_ROW_REDUCTION_OF(fold, int32_t) \
  CRESSET_ROW_REDUCTION_OF(fold, int64_t)
CRESSET_ROW_REDUCTIONS_OF(Copy)
CRESSET_ROW_REDUCTIONS_OF(Add)
CRESSET_ROW_REDUCTIONS_OF(Multiply)
CRESSET_ROW_REDUCTIONS_OF(Greatest)
CRESSET_ROW_REDUCTIONS_OF(Least)

}  // namespace cresset::bridge
