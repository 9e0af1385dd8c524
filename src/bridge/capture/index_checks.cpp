#include "bridge/capture/index_checks.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "bridge/aten/dtypes.h"
#include "ops/known_elements.h"

namespace cresset::bridge {
namespace {

using graph::ValueId;

// Tables of any number of rows, of which one element is in memory, on the device of the indices.
class Tables {
 public:
  Tables(graph::Graph& graph, std::vector<at::Tensor>& constants)
      : graph_(graph), constants_(constants), pool_(graph.pool()) {}

  // Reads rows by the indices: `index` counts negative ones from the end, `embedding` raises.
  void check(const IndexBound& bound) {
    const sym::ExprId one = pool_.constant(1), none = pool_.constant(0);
    const graph::Device device = graph_.type(bound.indices).device;
    const ValueId table = add("aten::expand", {element_on(device), std::vector{bound.size, one}, false},
                              type(device, {bound.size, one}, {none, one}));
    std::vector<sym::ExprId> sizes = graph_.type(bound.indices).sizes;
    sizes.push_back(one);
    const graph::TensorType rows = type(device, sizes, graph::contiguous_strides(pool_, sizes));
    if (bound.from_the_end)
      add("aten::index.Tensor", {table, std::vector<graph::OptionalValue>{bound.indices}}, rows);
    else
      add("aten::embedding", {table, bound.indices, pool_.constant(-1), false, false}, rows);
    graph_.node(graph_.order.back()).caught = true;
  }

 private:
  static graph::TensorType type(graph::Device device, std::vector<sym::ExprId> sizes,
                                std::vector<sym::ExprId> strides) {
    return {DType::F32, device, std::move(sizes), std::move(strides)};
  }
  ValueId element_on(graph::Device device) {
    for (const ValueId known : elements_)
      if (graph_.type(known).device == device) return known;
    const sym::ExprId one = pool_.constant(1);
    elements_.push_back(graph_.add_constant(type(device, {one, one}, {one, one}), ""));
    constants_.push_back(at::zeros({1, 1}, at::TensorOptions().dtype(at::kFloat).device(to_torch(device))));
    return elements_.back();
  }
  ValueId add(std::string_view op, std::vector<graph::Arg> args, graph::TensorType result) {
    std::vector<graph::TensorType> results;
    results.push_back(std::move(result));
    return graph_.node(graph_.add_node(graph::op_id(op), std::move(args), std::move(results))).results[0];
  }

  graph::Graph& graph_;
  std::vector<at::Tensor>& constants_;
  sym::ExprPool& pool_;
  std::vector<ValueId> elements_;  // one for each device
};

bool is_known_to_hold(const graph::Graph& graph, const IndexBound& bound) {
  sym::ExprPool& pool = graph.pool();
  const auto at_most = [&](sym::ExprId a, sym::ExprId b) {
    return graph.env().statically_known(pool.le(a, b)).value_or(false);
  };
  const sym::ExprId least = bound.from_the_end ? pool.neg(bound.size) : pool.constant(0);
  return ops::KnownElements(graph, at_most).all_between(bound.indices, least, pool.sub(bound.size, pool.constant(1)));
}

}  // namespace

bool is_column_of_mask(graph::Graph& graph, const std::vector<DataDependentCall>& calls, const IndexBound& bound) {
  static const graph::OpId select = graph::op_id("aten::select.int"), nonzero = graph::op_id("aten::nonzero");
  const graph::Value& indices = graph.value(bound.indices);
  if (indices.kind != graph::Value::Kind::Result || graph.node(indices.node).op != select) return false;
  const std::vector<graph::Arg>& args = graph.node(indices.node).args;
  const auto dim = std::get<sym::ExprId>(args[1]), column = std::get<sym::ExprId>(args[2]);
  if (!graph.pool().is_const(dim, 1) || !graph.pool().is_const(column)) return false;
  const graph::Value& positions = graph.value(std::get<ValueId>(args[0]));
  if (positions.kind != graph::Value::Kind::Input) return false;
  const auto call = std::find_if(calls.begin(), calls.end(), [&](const DataDependentCall& c) {
    return c.op == nonzero && c.made.size() == 1 && c.made[0] == positions.result;
  });
  if (call == calls.end()) return false;
  const auto& sizes = graph.type(std::get<ValueId>(call->args[0])).sizes;
  const auto d = static_cast<size_t>(graph.pool().const_value(column));
  return d < sizes.size() && graph.env().known_equal(sizes[d], bound.size);
}

void check_indices(graph::Graph& graph, std::vector<at::Tensor>& constants, std::vector<DataDependentCall>& calls,
                   const std::vector<UnusedCall>& unused) {
  if (std::all_of(unused.begin(), unused.end(), [](const UnusedCall& call) { return call.bounds.empty(); })) return;
  Tables tables(graph, constants);
  const std::vector<graph::NodeId> before = std::exchange(graph.order, {});
  std::vector<size_t> places;  // of the nodes before, and of the end
  auto next = unused.begin();
  for (size_t i = 0; i < before.size(); ++i) {
    places.push_back(graph.order.size());
    graph.order.push_back(before[i]);
    if (next == unused.end() || next->position != i) continue;
    graph.current_location = graph.node(before[i]).location;
    for (const IndexBound& bound : next->bounds)
      if (!is_known_to_hold(graph, bound)) tables.check(bound);
    ++next;
  }
  places.push_back(graph.order.size());
  for (DataDependentCall& call : calls) call.position = places[call.position];
}

}  // namespace cresset::bridge
