// In which order a backward pass comes to the leaves: their hooks, and what optimizers do there, see it.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include <vector>

#include "bridge/captured.h"

namespace cresset::bridge {

// A node's edges, given in the order in which their ends are to run, arranged as the node must have them. Autograd's
// engine puts all that become ready into a heap, from which leaves, which are equal to it, come in another order.
std::vector<size_t> as_edges(const std::vector<torch::autograd::Edge>& in_order);

// Likewise for a node of each group; the nodes themselves run from the last one made to the first. `leaves` are in
// order.
void arrange(std::vector<Backward::Group>& groups, const std::vector<torch::autograd::Edge>& leaves);

}  // namespace cresset::bridge
