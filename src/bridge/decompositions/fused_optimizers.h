// torch's fused optimizer steps (`_fused_adam_`, `_fused_adamw_`, `_fused_sgd_`, `_fused_adagrad_`), tensor by tensor,
// as operators that kernels can fuse.
#pragma once

namespace torch {
class Library;
}

namespace cresset::bridge {

void add_fused_optimizers(torch::Library& library);

}  // namespace cresset::bridge
