#include "bridge/device/cpu/row_reductions.h"

#include "bridge/device/cpu/multiversion.h"

namespace cresset::bridge {
namespace {

// The attribute applies to functions, not to function templates.
#define CRESSET_ROW_FOLD(fold, type)                                                                        \
  CRESSET_MULTIVERSION void fold##_##type(type* __restrict there, const type* __restrict next, int64_t n) { \
    for (int64_t i = 0; i < n; ++i) there[i] = folded<Fold::fold>(there[i], next[i]);                       \
  }
#define CRESSET_ROW_FOLDS(fold)   \
  CRESSET_ROW_FOLD(fold, float)   \
  CRESSET_ROW_FOLD(fold, double)  \
  CRESSET_ROW_FOLD(fold, int32_t) \
  CRESSET_ROW_FOLD(fold, int64_t)
CRESSET_ROW_FOLDS(Copy)
CRESSET_ROW_FOLDS(Add)
CRESSET_ROW_FOLDS(Multiply)
CRESSET_ROW_FOLDS(Greatest)
CRESSET_ROW_FOLDS(Least)

}  // namespace

#define CRESSET_ROW_FOLD_OF(fold, type)                                            \
  template <>                                                                      \
  void fold_row<Fold::fold, type>(type * there, const type* next, int64_t count) { \
    fold##_##type(there, next, count);                                             \
  }
#define CRESSET_ROW_FOLDS_OF(fold)   \
  CRESSET_ROW_FOLD_OF(fold, float)   \
  CRESSET_ROW_FOLD_OF(fold, double)  \
  CRESSET_ROW_FOLD_OF(fold, int32_t) \
  CRESSET_ROW_FOLD_OF(fold, int64_t)
CRESSET_ROW_FOLDS_OF(Copy)
CRESSET_ROW_FOLDS_OF(Add)
CRESSET_ROW_FOLDS_OF(Multiply)
CRESSET_ROW_FOLDS_OF(Greatest)
CRESSET_ROW_FOLDS_OF(Least)

}  // namespace cresset::bridge
