// The graph of a capture: operators become nodes, with types by shape rules, and numbers become symbols.
//
// Invariants: a node is added after all checks of its operator, so an aborted operator leaves no node. Each symbol has
// a binding, which says where later calls find its value. An operator with data-dependent sizes ends a stage
// (DataDependentCall).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/capture/captured.h"
#include "graph/graph.h"
#include "ops/op_def.h"
#include "ops/shape_memo.h"

namespace cresset::bridge {

class Capture;
class DataDependentErrors;

// Aborts for a dtype without a representation in a graph.
DType dtype_or_abort(const at::Tensor& real);

class GraphRecorder {
 public:
  // The results of an operator. `absent`: bit mask by position of the results which are not among them.
  struct Results {
    std::vector<graph::ValueId> values;
    uint64_t absent = 0;
  };

  explicit GraphRecorder(Capture& capture);
  ~GraphRecorder();
  GraphRecorder(const GraphRecorder&) = delete;

  bool has_graph() const { return graph_ != nullptr; }  // false once the capture is finished
  graph::Graph& graph() const { return *graph_; }
  sym::ShapeEnv& env() const { return graph_->env(); }
  // Moves the graph, its symbols and its constants into the result of the capture.
  void finish(Captured& out);

  // ---- Operators

  // Appends a call. Types come from the operator's shape rule, else from the generic rule.
  Results record(graph::OpId op, std::vector<graph::Arg> args);
  std::vector<graph::ValueId> call(graph::OpId op, std::vector<graph::Arg> args) {
    return record(op, std::move(args)).values;
  }
  // Appends a node with known types, without checks of the operator.
  std::vector<graph::ValueId> append(graph::OpId op, std::vector<graph::Arg> args,
                                     std::vector<graph::TensorType> types);
  // Keeps unused operators which may raise: a later call may supply data for which eager mode raises.
  void keep_what_raises(const Backward* backward);
  size_t draws() const { return draws_; }  // also counts calls of foreign libraries' operators

  // ---- Inputs and constants

  std::vector<at::Tensor>& inputs() { return real_inputs_; }  // aliases for input proxies
  const std::vector<at::Tensor>& inputs() const { return real_inputs_; }
  std::vector<at::Tensor>& constants() { return constants_; }
  const std::vector<at::Tensor>& constants() const { return constants_; }
  // The real tensor of a constant.
  const at::Tensor& constant(const graph::Value& value) const { return constants_[value.result]; }
  graph::TensorType constant_geometry(const at::Tensor& real);

  // ---- Symbols and decisions

  std::vector<SymbolBinding>& symbols() { return symbols_; }  // bindings of sizes and other numbers
  const std::vector<SymbolBinding>& symbols() const { return symbols_; }
  void note_unbacked() { any_unbacked_ = true; }
  c10::SymInt add_int_argument(int64_t value, std::string name);
  // Returns how two floats compare in this call and guards the answer. nullopt: there are too many guards of this kind.
  std::optional<bool> decide(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right,
                             OfData of_data);
  // Returns the derived integer of floats and sizes. nullopt: the number is not whole, or there are too many.
  std::optional<sym::ExprId> derived_integer(const FloatExpr::Ref& made);
  FloatExpr::Ref input_scalar(graph::ValueId value) const;  // input_scalars.h; nullptr: the value is no input scalar
  // Records how arguments and input scalars produce the number in a float64 value with a single element.
  void note_number(graph::ValueId value, FloatExpr::Ref made_by) { numbers_[value.index] = std::move(made_by); }
  // Assumes the condition from now on; the program checks it at run time.
  void state(sym::ExprId condition, std::string message);
  // The source line at which a data-dependent symbol was made.
  std::string origin(sym::VarId var) const;

  // ---- Data

  std::vector<DataDependentCall>& data_calls() { return data_calls_; }
  // The elements of a tensor: expressions of sizes where possible; else unbacked symbols, if Capture::symbolic_numbers
  // is set. nullopt: the elements cannot be symbolic.
  std::optional<std::vector<sym::ExprId>> symbolic_elements(graph::ValueId value);
  // The earlier result of nonzero on this mask, if there is one.
  std::optional<graph::ValueId> nonzero_of(graph::ValueId mask) const;
  bool is_nonzero_of(graph::ValueId found, graph::ValueId mask) const { return nonzero_of(mask) == found; }
  // Reads the number in a single-element value by running the part of the graph before it on the real arguments. The
  // program is then guarded by this number.
  at::Scalar read_number(graph::ValueId value);
  bool reads_data() const { return !data_reads_.empty(); }

 private:
  // As call(), for operators with data-dependent result sizes: these sizes become unbacked symbols.
  std::vector<graph::ValueId> call_data_dependent(graph::OpId op, std::vector<graph::Arg> args);
  Result<ops::Types> shape_of(const ops::OpDef& def, ops::ShapeContext& context, const std::vector<graph::Arg>& args);
  void check_programs_device(graph::OpId op, const graph::Device& device);
  void check_programs_devices(graph::OpId op, const std::vector<graph::Arg>& args,
                              const std::vector<graph::TensorType>& results);
  // Aborts where eager mode raises because of dtypes; corrects the results' dtypes to eager mode's.
  void check_dtypes(graph::OpId op, const std::vector<graph::Arg>& args, std::vector<graph::TensorType>& types);
  // Aborts where eager mode raises because of data. Returns whether the program may catch such an error.
  bool check_data(graph::OpId op, const std::vector<graph::Arg>& args);
  ops::ShapeMemo::Entry result_types(graph::OpId op, const std::vector<graph::Arg>& args);
  void replace_masks(graph::OpId op, std::vector<graph::Arg>& args);
  void forget_example(graph::OpId& op, std::vector<graph::Arg>& args) const;
  void assume_sizes(const std::vector<graph::TensorType>& types);
  void check_mask(const graph::TensorType& self, size_t first, const graph::TensorType& mask);

  Capture& capture_;
  std::unique_ptr<graph::Graph> graph_;
  std::vector<at::Tensor> constants_;
  std::vector<at::Tensor> real_inputs_;
  std::vector<SymbolBinding> symbols_;
  std::unordered_map<sym::VarId, std::string> origins_;
  std::vector<DataRead> data_reads_;
  std::vector<FloatGuard> float_guards_;
  NumbersOfValues numbers_;
  std::vector<DerivedInteger> computed_;
  std::vector<DataDependentCall> data_calls_;
  std::vector<StatedFact> facts_;
  std::unique_ptr<DataDependentErrors> data_dependent_errors_;
  ops::ShapeMemo shapes_;
  std::optional<graph::Device> gpu_;  // of the graph's values; a program uses a single one
  bool any_unbacked_ = false;
  size_t draws_ = 0;
};

}  // namespace cresset::bridge
