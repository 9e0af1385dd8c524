#include "bridge/autograd/leaf_order.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <queue>

namespace cresset::bridge {
namespace {

using torch::autograd::Edge;

bool is_leaf(const Edge& edge) {
  return dynamic_cast<const torch::autograd::AccumulateGrad*>(edge.function.get()) != nullptr;
}

// The order in which a heap returns `leaves` equal tasks, pushed before `others`, which it returns after them.
std::vector<size_t> popped(size_t leaves, size_t others) {
  struct Task {
    size_t position;
    bool leaf;
    bool operator<(const Task& other) const { return !leaf && other.leaf; }
  };
  std::priority_queue<Task> ready;
  for (size_t i = 0; i < leaves + others; ++i) ready.push({i, i < leaves});
  std::vector<size_t> out;
  for (; out.size() < leaves; ready.pop()) out.push_back(ready.top().position);
  return out;
}

}  // namespace

std::vector<size_t> as_edges(const std::vector<Edge>& in_order) {
  std::vector<size_t> leaves, others;
  for (size_t i = 0; i < in_order.size(); ++i) (is_leaf(in_order[i]) ? leaves : others).push_back(i);
  std::vector<size_t> out(leaves.size());
  const std::vector<size_t> positions = popped(leaves.size(), others.size());
  for (size_t k = 0; k < leaves.size(); ++k) out[positions[k]] = leaves[k];
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

void arrange(std::vector<Backward::Group>& groups, const std::vector<Edge>& leaves) {
  std::stable_sort(groups.begin(), groups.end(), [](const Backward::Group& a, const Backward::Group& b) {
    return a.leaves.front() > b.leaves.front();
  });
  for (Backward::Group& group : groups) {
    std::vector<Edge> edges;
    for (const uint32_t leaf : group.leaves) edges.push_back(leaves[leaf]);
    std::vector<uint32_t> arranged;
    for (const size_t i : as_edges(edges)) arranged.push_back(group.leaves[i]);
    group.leaves = std::move(arranged);
  }
}

}  // namespace cresset::bridge
