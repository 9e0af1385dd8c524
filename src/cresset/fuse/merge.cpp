#include "fuse/plan.h"

namespace cresset::fuse {

void merge_units(const Build&, std::vector<Unit>&) {}

}  // namespace cresset::fuse
