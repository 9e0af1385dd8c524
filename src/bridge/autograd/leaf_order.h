// The order in which a backward pass reaches the leaves. Hooks of the leaves and optimizers inside hooks observe it.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include <vector>

#include "bridge/capture/captured.h"

namespace cresset::bridge {

// Arranges a node's edges so that their ends run in the given order. Autograd's engine puts all ready nodes into a
// heap; leaves compare equal there and come out in a different order.
std::vector<size_t> as_edges(const std::vector<torch::autograd::Edge>& in_order);

// Does the same for the node of each group; the nodes themselves run from the last made to the first. `leaves` are in
// order.
void arrange(std::vector<Backward::Group>& groups, const std::vector<torch::autograd::Edge>& leaves);

}  // namespace cresset::bridge
