// The schema's information about an operator for capture, computed once.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

#include "graph/op_name.h"

namespace cresset::bridge {

enum class ArgType : uint8_t {
  Tensor,
  TensorList,
  OptionalTensorList,
  Int,
  IntList,
  Float,
  FloatList,
  Bool,
  BoolList,
  Scalar,
  String,
  DType,
  Layout,
  Device,
  MemoryFormat,
  Generator,
  Other,
};

struct OpEntry {
  enum class Class : uint8_t {
    Functional,   // results are new tensors
    View,         // results alias argument 0
    InPlace,      // writes argument 0 and returns it; has a functional counterpart
    InPlaceView,  // changes argument 0's metadata: t_, unsqueeze_, ...
    Out,          // writes trailing out arguments; has a functional counterpart
    Opaque,       // none of the above: ends the capture
  };
  c10::OperatorHandle handle;
  std::string name;  // "aten::add.Tensor"
  Class op_class;
  graph::OpId functional;                                // the operator appended to the graph
  std::optional<c10::OperatorHandle> functional_handle;  // its handle
  std::vector<ArgType> arg_types, return_types;          // return_types: of `functional`
  size_t out_arguments = 0;                              // Out: number of trailing arguments
  std::optional<size_t> sparse_argument;                 // the argument which requests sparse gradients
  bool made_of_others = false;                           // its kernel may call operators for which autocast casts
  bool foreign = false;  // works with objects or processes outside of any graph: see is_foreign()
};

std::string qualified_name(const c10::OperatorName& name);
ArgType arg_type(const c10::Argument& argument);
// The operator of this name, if it is registered.
std::optional<c10::OperatorHandle> find_operator(graph::OpId op);
OpEntry classify(const c10::OperatorHandle& handle);
// Whether the operator is outside of any graph: it takes or returns objects of C++ classes (a process group, a pending
// work item), or communicates with other processes by the name of a group. A schema does not describe these effects,
// and their order matters. The graph segment ends before the call, which receives real tensors.
bool is_foreign(const c10::FunctionSchema& schema);

}  // namespace cresset::bridge
