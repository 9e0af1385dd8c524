#include "frontend/values/transform_state.h"

#include <ATen/functorch/DynamicLayer.h>

namespace cresset::frontend {

bool inside_transform() { return !at::functorch::getDynamicLayerStack().empty(); }

}  // namespace cresset::frontend
