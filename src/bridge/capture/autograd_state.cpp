#include "bridge/capture/autograd_state.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace cresset::bridge {

bool has_tangent(const at::Tensor& tensor) {
  return torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr && tensor._fw_grad(/*level=*/0).defined();
}

int open_regions_of_autocast() {
  const int inside = at::autocast::increment_nesting();
  at::autocast::decrement_nesting();
  return inside - 1;
}

bool is_python_function(const torch::autograd::Node& node) { return is_class(node, "8autograd6PyNode"); }

uint32_t version_of(const at::Tensor& t) {
  return t.is_inference() ? 0 : static_cast<uint32_t>(torch::autograd::impl::version_counter(t).current_version());
}

const void* gradient_node(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta != nullptr ? meta->grad_fn_.get() : nullptr;
}

void write_live(const at::Tensor& tensor, const at::Tensor& value, bool unseen) {
  const at::NoGradGuard no_grad;
  (unseen ? tensor.variable_data() : tensor).copy_(value);
}

const at::Tensor& tensor_at(const Backward::Place& place, c10::ArrayRef<at::Tensor> inputs,
                            const std::vector<at::Tensor>& constants, const std::vector<at::Tensor>& results) {
  if (place.home == OutputSpec::Kind::Input) return inputs[place.position];
  return (place.home == OutputSpec::Kind::Constant ? constants : results)[place.position];
}

std::vector<bool> which_are_given(const std::vector<at::Tensor>& tensors, size_t count) {
  std::vector<bool> given;
  for (size_t i = 0; i < count; ++i) given.push_back(tensors[i].defined());
  if (std::find(given.begin(), given.end(), false) == given.end()) given.clear();
  return given;
}

}  // namespace cresset::bridge
