#include "bridge/autograd/leaf_groups.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "bridge/aten/autograd_history.h"

namespace cresset::bridge {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;

// The nodes of an autograd graph in topological order. Edges to leaves end there.
class Order {
 public:
  explicit Order(const std::vector<Edge>& leaves) {
    for (size_t i = 0; i < leaves.size(); ++i) ends_[leaves[i].function.get()].emplace_back(leaves[i].input_nr, i);
  }

  // The leaf at which the edge ends; -1 for any other edge.
  int64_t leaf_of(const Edge& edge) const {
    const auto found = ends_.find(edge.function.get());
    if (found == ends_.end()) return -1;
    for (const auto& [input, leaf] : found->second)
      if (input == edge.input_nr) return static_cast<int64_t>(leaf);
    return -1;
  }

  void add(Node* root) {
    if (!places_.try_emplace(root, 0).second) return;
    open_.emplace_back(root, 0);
    while (!open_.empty()) {
      auto& [node, next] = open_.back();
      if (next == node->next_edges().size()) {
        finished_.push_back(node);
        open_.pop_back();
        continue;
      }
      const Edge& edge = node->next_edge(next++);
      if (edge.is_valid() && leaf_of(edge) < 0 && places_.try_emplace(edge.function.get(), 0).second)
        open_.emplace_back(edge.function.get(), 0);
    }
  }

  // Called once all roots are added.
  const std::vector<Node*>& arrange() {
    std::reverse(finished_.begin(), finished_.end());
    for (size_t i = 0; i < finished_.size(); ++i) places_[finished_[i]] = i;
    return finished_;
  }
  const std::vector<Node*>& nodes() const { return finished_; }
  size_t place(Node* node) const { return places_.at(node); }

  // Calls visit(edge, leaf_of(edge)) for each edge of the node at this position.
  template <class Visit>
  void each_edge(size_t place, Visit&& visit) const {
    for (const Edge& edge : finished_[place]->next_edges())
      if (edge.is_valid()) visit(edge, leaf_of(edge));
  }

 private:
  std::unordered_map<const Node*, std::vector<std::pair<uint32_t, size_t>>> ends_;
  std::unordered_map<Node*, size_t> places_;
  std::vector<std::pair<Node*, size_t>> open_;
  std::vector<Node*> finished_;
};

void join(std::vector<bool>& into, const std::vector<bool>& from) {
  for (size_t i = 0; i < from.size(); ++i) into[i] = into[i] || from[i];
}

// For each node, in order: the roots which lead to it.
std::vector<std::vector<bool>> roots_of_nodes(Order& order, const std::vector<at::Tensor>& roots) {
  for (const at::Tensor& root : roots) order.add(root.grad_fn().get());
  const std::vector<Node*>& nodes = order.arrange();
  std::vector<std::vector<bool>> to_node(nodes.size(), std::vector<bool>(roots.size()));
  for (size_t i = 0; i < roots.size(); ++i) to_node[order.place(roots[i].grad_fn().get())][i] = true;
  for (size_t n = 0; n < nodes.size(); ++n)
    order.each_edge(n, [&](const Edge& edge, int64_t leaf) {
      if (leaf < 0) join(to_node[order.place(edge.function.get())], to_node[n]);
    });
  return to_node;
}

// Calls visit(edge, roots) for each edge, with the roots which lead to it.
template <class Visit>
void walk(Order& order, const std::vector<at::Tensor>& roots, Visit&& visit) {
  const std::vector<std::vector<bool>> to_node = roots_of_nodes(order, roots);
  for (size_t n = 0; n < to_node.size(); ++n)
    order.each_edge(n, [&](const Edge& edge, int64_t) { visit(edge, to_node[n]); });
}

}  // namespace

std::vector<Backward::Intermediate> intermediate_outputs(const std::vector<at::Tensor>& roots,
                                                         const std::vector<Edge>& leaves) {
  if (roots.size() < 2) return {};
  Order order(leaves);
  std::vector<std::vector<bool>> from(roots.size(), std::vector<bool>(roots.size()));
  walk(order, roots, [&](const Edge& edge, const std::vector<bool>& reached_from) {
    for (size_t i = 0; i < roots.size(); ++i)
      if (edge == torch::autograd::impl::gradient_edge(roots[i])) join(from[i], reached_from);
  });
  std::vector<Backward::Intermediate> out;
  for (size_t i = 0; i < roots.size(); ++i) {
    Backward::Intermediate intermediates{static_cast<uint32_t>(i), {}, {}};
    for (size_t k = 0; k < roots.size(); ++k)
      if (from[i][k] && k != i) intermediates.from.push_back(static_cast<uint32_t>(k));
    if (!intermediates.from.empty()) out.push_back(std::move(intermediates));
  }
  return out;
}

bool is_read_by_others(const at::Tensor& view, const std::vector<at::Tensor>& live) {
  if (!is_recorded_view(view) || !view.requires_grad()) return false;
  const Edge edge = torch::autograd::impl::gradient_edge(view);
  Order order({});
  for (const at::Tensor& t : live)
    if (t.requires_grad() && !is_recorded_view(t) && t.grad_fn()) order.add(t.grad_fn().get());
  bool found = false;
  const size_t count = order.arrange().size();
  for (size_t n = 0; n < count; ++n)
    order.each_edge(n, [&](const Edge& next, int64_t) { found = found || next == edge; });
  return found;
}

// Whether the node's gradient is made of nothing but sizes.
static bool gives_zeros(Node& node) {
  const std::string name = node.name();
  return name.starts_with("ZeroBackward") || name.starts_with("FillBackward");
}

std::vector<bool> behind_written_views(const std::vector<at::Tensor>& roots, const std::vector<Edge>& leaves) {
  Order order(leaves);
  for (const at::Tensor& root : roots) order.add(root.grad_fn().get());
  const std::vector<Node*>& nodes = order.arrange();
  std::vector<bool> reached(nodes.size()), behind(nodes.size()), out(leaves.size());
  for (const at::Tensor& root : roots) reached[order.place(root.grad_fn().get())] = true;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (!reached[n] || gives_zeros(*nodes[n])) continue;
    if (dynamic_cast<torch::autograd::CopySlices*>(nodes[n]) != nullptr) behind[n] = true;
    order.each_edge(n, [&](const Edge& edge, int64_t leaf) {
      if (leaf >= 0) {
        out[static_cast<size_t>(leaf)] = out[static_cast<size_t>(leaf)] || behind[n];
        return;
      }
      const size_t next = order.place(edge.function.get());
      reached[next] = true;
      behind[next] = behind[next] || behind[n];
    });
  }
  return out;
}

std::vector<Backward::Group> leaf_groups(const std::vector<at::Tensor>& roots, const std::vector<Edge>& leaves) {
  if (roots.size() < 2) return {};
  Order order(leaves);
  std::vector<std::vector<bool>> to_leaf(leaves.size(), std::vector<bool>(roots.size()));
  walk(order, roots, [&](const Edge& edge, const std::vector<bool>& reached_from) {
    if (const int64_t leaf = order.leaf_of(edge); leaf >= 0) join(to_leaf[static_cast<size_t>(leaf)], reached_from);
  });
  std::map<std::vector<bool>, Backward::Group> groups;
  for (size_t i = 0; i < leaves.size(); ++i) groups[to_leaf[i]].leaves.push_back(static_cast<uint32_t>(i));
  if (groups.size() == 1 && groups.begin()->first == std::vector<bool>(roots.size(), true)) return {};
  std::vector<Backward::Group> out;
  for (auto& [reached_from, group] : groups) {
    for (size_t i = 0; i < roots.size(); ++i)
      if (reached_from[i]) group.roots.push_back(static_cast<uint32_t>(i));
    out.push_back(std::move(group));
  }
  return out;
}

std::vector<Backward::Holder> holders(const std::vector<at::Tensor>& roots, const std::vector<Edge>& leaves,
                                      const std::vector<Backward::Group>& groups) {
  std::vector<size_t> group_of(leaves.size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (const uint32_t leaf : groups[g].leaves) group_of[leaf] = g;
  Order order(leaves);
  const std::vector<std::vector<bool>> from = roots_of_nodes(order, roots);
  const std::vector<Node*>& nodes = order.nodes();
  if (roots.size() == 1) {
    const bool any = std::any_of(nodes.begin(), nodes.end(), [](Node* node) { return holds_tensors(*node); });
    return any ? std::vector{Backward::Holder{{true}, {true}}} : std::vector<Backward::Holder>();
  }
  std::vector<std::vector<bool>> to(nodes.size(), std::vector<bool>(std::max<size_t>(groups.size(), 1)));
  for (size_t n = nodes.size(); n-- > 0;)
    order.each_edge(n, [&](const Edge& edge, int64_t leaf) {
      if (leaf >= 0)
        to[n][group_of[static_cast<size_t>(leaf)]] = true;
      else
        join(to[n], to[order.place(edge.function.get())]);
    });
  std::set<std::pair<std::vector<bool>, std::vector<bool>>> found;
  std::vector<Backward::Holder> out;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (found.contains({from[n], to[n]}) || !holds_tensors(*nodes[n])) continue;
    found.emplace(from[n], to[n]);
    out.push_back({from[n], to[n]});
  }
  return out;
}

}  // namespace cresset::bridge
