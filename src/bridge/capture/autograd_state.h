// The state of autograd and autocast around a capture, and the tensors of backward passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <typeinfo>
#include <vector>

#include "bridge/capture/captured.h"

namespace torch::autograd {
struct Node;
}

namespace cresset::bridge {

// Compares by name, because libtorch_python does not export the classes.
template <class T>
bool is_class(const T& object, std::string_view mangled) {
  return std::string_view(typeid(object).name()).find(mangled) != std::string_view::npos;
}

int open_regions_of_autocast();  // of this thread
bool has_tangent(const at::Tensor& tensor);

// Whether the node belongs to a torch.autograd.Function or runs its backward.
bool is_python_function(const torch::autograd::Node& node);

// Number of writes to a tensor; 0 for tensors without a version counter.
uint32_t version_of(const at::Tensor& t);

// The node of which the tensor is a result; nullptr for leaves.
const void* gradient_node(const at::Tensor& tensor);

// The tensor at this place in a call with these tensors.
const at::Tensor& tensor_at(const Backward::Place& place, c10::ArrayRef<at::Tensor> inputs,
                            const std::vector<at::Tensor>& constants, const std::vector<at::Tensor>& results);

// Performs a write of a backward pass. unseen: autograd is not informed.
void write_live(const at::Tensor& tensor, const at::Tensor& value, bool unseen);

// Which of the first `count` tensors are defined. Empty when all are.
std::vector<bool> which_are_given(const std::vector<at::Tensor>& tensors, size_t count);

}  // namespace cresset::bridge
