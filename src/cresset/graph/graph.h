// The captured tensor program: functional, in execution order, with symbolic sizes.
//
// Semantics. A Value is an immutable tensor. A node names an ATen operator (its qualified name with overload) or a
// primitive of cresset ("prim::..."), and holds its arguments in schema order. No node writes to an argument. Writes to
// inputs are listed in Graph::mutations and happen after everything else. The result of a view operator is a value like
// any other; the lowering decides about shared memory. TensorType::strides are the strides of eager mode; only graph
// outputs must honour them.
//
// Invariants (verify): every value is defined before use. Results and their types agree with the operator's shape rule
// if there is a rule. Value ids in arguments exist. rank(sizes) == rank(strides).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/device.h"
#include "base/dtype.h"
#include "base/ids.h"
#include "base/result.h"
#include "graph/op_name.h"
#include "sym/shape_env.h"

namespace cresset::graph {

using sym::ExprId;
using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;

using cresset::Device;
using cresset::DeviceKind;

struct TensorType {
  DType dtype = DType::F32;
  Device device;
  std::vector<ExprId> sizes;
  std::vector<ExprId> strides;  // in elements, as in eager mode

  size_t rank() const { return sizes.size(); }
};

// Argument kinds. Integers of any origin (sizes, dims, int scalars) are ExprIds in the graph's pool.
struct None {
  bool operator==(const None&) const = default;
};
using OptionalValue = std::optional<ValueId>;
enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
// ATen's Layout argument. Only the strided layout reaches a graph; other layouts end in a fallback.
struct StridedLayout {
  bool operator==(const StridedLayout&) const = default;
};
using Arg =
    std::variant<None, ValueId, std::vector<OptionalValue>, ExprId, std::vector<ExprId>, double, bool,
                 std::vector<double>, std::vector<bool>, std::string, DType, Device, MemoryFormat, StridedLayout>;

struct Node {
  OpId op;
  std::vector<Arg> args;         // schema order, defaults filled in
  std::vector<ValueId> results;  // a Tensor[] result contributes a value for each element
  uint32_t location = 0;         // index into Graph::locations
  bool through_aten = false;     // the operator's rules refused these arguments: the ATen operator is called
  bool caught = false;           // its error may be caught, so the node is executed even if its results are unused
};

struct Value {
  TensorType type;
  NodeId node;          // invalid: a graph input or constant
  uint32_t result = 0;  // position in the results of `node`, or in the inputs or constants
  enum class Kind : uint8_t { Input, Constant, Result } kind = Kind::Result;
  std::string name;  // for messages: "x", "layer.0.weight"; may be empty
};

struct Mutation {
  uint32_t input;  // position in Graph::inputs or, when is_constant, in Graph::constants
  bool is_constant = false;
  ValueId value;        // final contents; same sizes and dtype as the input
  bool unseen = false;  // autograd does not see the write; operators update running statistics in this way
};

class Graph {
 public:
  explicit Graph(std::shared_ptr<sym::ShapeEnv> env) : env_(std::move(env)) {}

  sym::ShapeEnv& env() const { return *env_; }
  sym::ExprPool& pool() const { return env_->pool(); }
  const std::shared_ptr<sym::ShapeEnv>& env_ptr() const { return env_; }

  ValueId add_input(TensorType type, std::string name);
  ValueId add_constant(TensorType type, std::string name);  // a tensor held by the compiled code: parameter, buffer
  NodeId add_node(OpId op, std::vector<Arg> args, std::vector<TensorType> results);
  uint32_t add_location(std::string location);  // deduplicates consecutive equal locations

  const Node& node(NodeId id) const { return nodes_[id.index]; }
  Node& node(NodeId id) { return nodes_[id.index]; }
  const Value& value(ValueId id) const { return values_[id.index]; }
  Value& value(ValueId id) { return values_[id.index]; }
  const TensorType& type(ValueId id) const { return values_[id.index].type; }
  size_t value_count() const { return values_.size(); }
  size_t node_count() const { return nodes_.size(); }  // including nodes no longer in `order`

  std::vector<NodeId> order;  // execution order; passes rewrite it freely
  std::vector<ValueId> inputs, constants, outputs;
  std::vector<Mutation> mutations;
  std::vector<std::string> locations{""};
  uint32_t current_location = 0;  // assigned to new nodes

  // Calls f(ValueId&) for every value in an argument list.
  template <class F>
  static void for_each_value(std::vector<Arg>& args, F&& f) {
    for (Arg& arg : args) {
      if (auto* v = std::get_if<ValueId>(&arg)) f(*v);
      if (auto* list = std::get_if<std::vector<OptionalValue>>(&arg))
        for (OptionalValue& v : *list)
          if (v) f(*v);
    }
  }
  template <class F>
  static void for_each_value(const std::vector<Arg>& args, F&& f) {
    for_each_value(const_cast<std::vector<Arg>&>(args), [&](ValueId& v) { f(static_cast<const ValueId&>(v)); });
  }

 private:
  std::shared_ptr<sym::ShapeEnv> env_;
  std::deque<Node> nodes_;  // deques: references stay valid while nodes are added
  std::deque<Value> values_;
};

// A call outside the nodes. It happens after the first `position` nodes of the order. Its results are inputs of the
// graph.
struct CallBetween {
  size_t position;
  OpId op;
  const std::vector<Arg>* args;
  std::vector<ValueId> made;
};

// Prints a graph; parse(print(g)) prints the same. Each node has a line, below the source line of the user's program:
//   # model.py:42 in forward
//   #   y = self.act(x)
//   %3: f32[s0, 64][64, 1] = aten::relu(%2*)
// An asterisk marks a value's last use. An exclamation mark follows an operator which is called through ATen regardless
// of its rules. Calls between nodes are printed as comments, which parse() ignores.
std::string print(const Graph& graph, std::span<const CallBetween> between = {});
Result<std::unique_ptr<Graph>> parse(std::string_view text);
// Returns an empty string when the invariants hold, else a description of the first violation.
std::string verify(const Graph& graph);

// ---- helpers for every layer
bool is_contiguous(sym::ShapeEnv& env, const TensorType& type);  // proved, without guards
std::vector<ExprId> contiguous_strides(sym::ExprPool& pool, const std::vector<ExprId>& sizes);
ExprId numel(sym::ExprPool& pool, const std::vector<ExprId>& sizes);

}  // namespace cresset::graph
