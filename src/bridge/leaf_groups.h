// Which roots of a backward pass lead to which leaves: a leaf that no root with a gradient leads to gets none, not
// zeros.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

#include "bridge/captured.h"

namespace cresset::bridge {

// Leaves by the roots that lead to them in autograd's record. Each root has a node; `leaves`: where the record begins.
// Empty where every root leads to every leaf.
std::vector<Backward::Group> leaf_groups(const std::vector<at::Tensor>& roots,
                                         const std::vector<torch::autograd::Edge>& leaves);

// The roots that others were computed from, by the record; without their gradients.
std::vector<Backward::Passed> passed_roots(const std::vector<at::Tensor>& roots,
                                           const std::vector<torch::autograd::Edge>& leaves);

// Nodes of the record that hold tensors, by what leads to them and where they lead. Groups: of `leaves`, or none.
std::vector<Backward::Holder> holders(const std::vector<at::Tensor>& roots,
                                      const std::vector<torch::autograd::Edge>& leaves,
                                      const std::vector<Backward::Group>& groups);

// Whether autograd has kept a tensor for this node. Only the classes' bindings tell: the front end's function answers.
inline bool (*holds_tensors)(torch::autograd::Node&) = [](torch::autograd::Node&) { return true; };

// Whether a custom function's backward is marked as one that has no derivative. Likewise.
inline bool (*is_differentiated_once)(torch::autograd::Node&) = [](torch::autograd::Node&) { return false; };

}  // namespace cresset::bridge
