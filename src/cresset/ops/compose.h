// For decompositions: tensor arithmetic on graph values, and a wrapper which checks a decomposition against its shape
// rule.
#pragma once

#include <fmt/format.h>

#include "base/check.h"
#include "ops/op_def.h"

namespace cresset::ops {

using Values = std::vector<graph::ValueId>;

// Appends operators. The right operand of arithmetic is a value or a number.
class Compose {
 public:
  explicit Compose(graph::Graph& graph) : builder_(graph) {}
  using V = graph::ValueId;

  graph::Graph& graph() { return builder_.graph(); }
  sym::ExprPool& pool() { return graph().pool(); }
  const graph::TensorType& type(V v) { return graph().type(v); }

  V cast(V a, DType dtype) { return builder_.cast(a, dtype); }
  V add(V a, graph::Arg b) {
    const bool tensor = std::holds_alternative<V>(b);
    return builder_.call(tensor ? "aten::add.Tensor" : "aten::add.Scalar", {a, std::move(b), builder_.integer(1)});
  }
  V sub(V a, graph::Arg b) {
    const bool tensor = std::holds_alternative<V>(b);
    return builder_.call(tensor ? "aten::sub.Tensor" : "aten::sub.Scalar", {a, std::move(b), builder_.integer(1)});
  }
  V mul(V a, graph::Arg b) { return either("aten::mul.Tensor", "aten::mul.Scalar", a, std::move(b)); }
  V div(V a, graph::Arg b) { return either("aten::div.Tensor", "aten::div.Scalar", a, std::move(b)); }
  V eq(V a, graph::Arg b) { return either("aten::eq.Tensor", "aten::eq.Scalar", a, std::move(b)); }
  V ne(V a, graph::Arg b) { return either("aten::ne.Tensor", "aten::ne.Scalar", a, std::move(b)); }
  V pow(V a, double b) { return builder_.call("aten::pow.Tensor_Scalar", {a, b}); }
  V unary(std::string_view op, V a) { return builder_.call(op, {a}); }
  V where(V condition, graph::Arg a, graph::Arg b) {
    return builder_.call("aten::where.self", {condition, std::move(a), std::move(b)});
  }

  V sum(V a, const std::vector<int64_t>& dims, bool keepdim) {
    if (dims.empty()) return a;
    return builder_.call("aten::sum.dim_IntList", {a, builder_.integers(dims), keepdim, graph::None{}});
  }
  V fold(std::string_view op, V a, const std::vector<int64_t>& dims, bool keepdim) {  // amax, amin, prim::greatest
    return builder_.call(op, {a, builder_.integers(dims), keepdim});
  }
  V view(V a, std::vector<sym::ExprId> sizes) { return builder_.call("aten::view", {a, std::move(sizes)}); }
  V full(const graph::TensorType& type, graph::Arg value) {
    return builder_.call("aten::full",
                         {type.sizes, std::move(value), type.dtype, graph::None{}, type.device, graph::None{}});
  }
  V call(std::string_view op, std::vector<graph::Arg> args) { return builder_.call(op, std::move(args)); }
  Values call_multi(std::string_view op, std::vector<graph::Arg> args) {
    return builder_.call_multi(op, std::move(args));
  }
  graph::Arg integer(int64_t v) { return builder_.integer(v); }

 private:
  V either(std::string_view tensor, std::string_view scalar, V a, graph::Arg b) {
    const bool is_tensor = std::holds_alternative<V>(b);
    return builder_.call(is_tensor ? tensor : scalar, {a, std::move(b)});
  }

  GraphBuilder builder_;
};

// The dimensions of an image, signal or volume other than its channels.
inline std::vector<int64_t> all_but_channels(size_t rank) {
  std::vector<int64_t> dims{0};
  for (size_t d = 2; d < rank; ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

// A Composite's decompose member from its shape rule and its body. The new values get eager mode's strides of the
// operator's results, regardless of the strides of the body's last step.
template <Result<Types> (*Shape)(ShapeContext&, const OpArgs&), Result<Values> (*Body)(Compose&, const OpArgs&)>
Result<Values> composed(graph::Graph& graph, const OpArgs& args) {
  ShapeContext shapes(graph, "decomposition");
  CRESSET_TRY(const Types types, Shape(shapes, args));
  const size_t before = graph.value_count();
  Compose compose(graph);
  CRESSET_TRY(Values values, Body(compose, args));
  CRESSET_CHECK(values.size() == types.size(), "a decomposition gives every result");
  for (size_t i = 0; i < values.size(); ++i) {
    graph::TensorType& type = graph.value(values[i]).type;
    CRESSET_CHECK(type.dtype == types[i].dtype && type.rank() == types[i].rank(),
                  fmt::format("result {} of a decomposition has another type than its operator's", i));
    if (values[i].index < before) continue;
    type.sizes = types[i].sizes;
    type.strides = types[i].strides;
  }
  return values;
}

}  // namespace cresset::ops
