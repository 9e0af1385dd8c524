// The leaves reachable from each root of a backward pass. A leaf reached from no root with a gradient gets no gradient,
// rather than zeros.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

#include "bridge/capture/captured.h"

namespace cresset::bridge {

// Groups leaves by the roots which lead to them in the autograd graph. Each root has a node; `leaves` are the edges at
// which the graph ends. Empty where every root leads to every leaf.
std::vector<Backward::Group> leaf_groups(const std::vector<at::Tensor>& roots,
                                         const std::vector<torch::autograd::Edge>& leaves);

// The intermediate outputs in the autograd graph, without their gradients.
std::vector<Backward::Intermediate> intermediate_outputs(const std::vector<at::Tensor>& roots,
                                                         const std::vector<torch::autograd::Edge>& leaves);

// Autograd nodes with saved tensors, by the roots before them and the groups behind them. `groups` of `leaves`, or
// empty.
std::vector<Backward::Holder> holders(const std::vector<at::Tensor>& roots,
                                      const std::vector<torch::autograd::Edge>& leaves,
                                      const std::vector<Backward::Group>& groups);

// By leaf: whether a node of a write to a view leads to it, with a gradient which depends on the roots' gradients.
std::vector<bool> behind_written_views(const std::vector<at::Tensor>& roots,
                                       const std::vector<torch::autograd::Edge>& leaves);

// Whether a live tensor of the capture, other than views, was computed from this view. The gradients of the call's
// results then do not pass the view, where a hook would see them.
bool is_read_by_others(const at::Tensor& view, const std::vector<at::Tensor>& live);

// Whether autograd has saved a tensor for this node. Only Python bindings of the classes tell, so the front end
// supplies the function.
inline bool (*holds_tensors)(torch::autograd::Node&) = [](torch::autograd::Node&) { return true; };

// Whether a custom function's backward is marked once_differentiable. The front end supplies the function.
inline bool (*is_differentiated_once)(torch::autograd::Node&) = [](torch::autograd::Node&) { return false; };

}  // namespace cresset::bridge
