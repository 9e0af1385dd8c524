// The smart pointer type of autograd nodes in this version of torch.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <utility>

namespace cresset::bridge {

using NodePtr = decltype(torch::autograd::Edge::function);

template <class T, class Pointer = NodePtr, class... Args>
Pointer make_node(Args&&... args) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>)
    return Pointer(new T(std::forward<Args>(args)...), [](auto* node) { deleteNode(node); });
  else
    return c10::make_intrusive<T>(std::forward<Args>(args)...);
}

}  // namespace cresset::bridge
