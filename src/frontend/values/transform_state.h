// The state of torch.func's transforms.
#pragma once

namespace cresset::frontend {

// On this thread.
bool inside_transform();

}  // namespace cresset::frontend
