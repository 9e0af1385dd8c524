// The knowledge of autograd about a captured program which its graph lacks, because the graph's operators are those
// below autograd. Double-backward passes need it (recorded_forward.h).
//
// The values of a graph do not show where their gradients flow. The operators behind x.data, behind a result of
// no_grad() mode, and behind a custom function's results would suggest a different history.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

// A result of an autograd node, identified by the node's sequence number and the result's position.
using Origin = std::pair<uint64_t, uint32_t>;

// nullopt: the tensor is a leaf or requires no gradient.
std::optional<Origin> origin_of(const at::Tensor& tensor);

// An operator as the program called it: a node of the graph, or the nodes of its decomposition.
struct RecordedCall {
  struct Given {
    graph::ValueId value;    // an argument
    graph::ValueId history;  // its gradient flows to the history of this value; invalid: nowhere
  };
  uint32_t begin = 0, end = 0;  // nodes of the graph
  bool recorded = true;         // gradients were recorded
  bool is_backward = false;     // called while the autograd graph ran
  std::vector<Given> given;
  const Given* find(graph::ValueId value) const;  // nullptr: no argument has this value
};

// A Python function in the autograd graph: its computation, as nodes of the backward subgraph.
struct RecordedFunction {
  enum class Kind : uint8_t { TensorHook, PreHook, PostHook, Node } kind;
  using Values = std::vector<std::optional<graph::ValueId>>;
  graph::ValueId of;   // a result of the node which owns the function
  Values given, made;  // gradients; a PostHook also receives the gradients of the node's results, after the first list
  std::vector<graph::NodeId> order;
  Values results, next;  // Node: its results, and the tensors to which the made gradients belong
  bool once = false;     // Node: marked once_differentiable
};

struct AutogradRecord {
  const RecordedCall* call_of(graph::NodeId node) const;  // nullptr: the node belongs to no call
  std::vector<RecordedCall> calls;                        // in order
  std::vector<RecordedFunction> functions;
  std::vector<graph::ValueId> roots;
  // By leaf: whether gradients pass through a write to a view. They depend on the tangents, whatever was written.
  std::vector<bool> behind_writes;
  bool complete = true;       // whether the whole computation of the autograd graph is known
  bool reads_copies = false;  // the backward subgraph reads values recomputed by a checkpoint
};

// Notes taken while a program is captured.
class AutogradNotes {
 public:
  void begin_call() { given_.clear(); }
  // Notes an argument of the current operator. is_memory: the value is a view's memory, without conjugation or
  // negation.
  void note(const at::Tensor& tensor, graph::ValueId value, bool is_memory = false);
  // The argument noted last is a view that the operator writes. Autograd connects the write to the history that its
  // base has then, behind the other writes of the same operator on a list.
  void note_written_view();
  // Ends the current operator, which made these nodes.
  void end_call(uint32_t begin, uint32_t end);
  bool any() const { return !calls_.empty(); }

  // Builds the record from the notes. `first_of_backward` is the first node of the backward subgraph.
  AutogradRecord record(const graph::Graph& graph, uint32_t first_of_backward) const;
  // The first value seen with this origin.
  std::optional<graph::ValueId> value(const Origin& origin) const;

 private:
  struct Given {
    graph::ValueId value;
    bool wanted;
    std::optional<Origin> origin;
    std::optional<Origin> written_at = std::nullopt;  // the number of autograd nodes when a view was written
  };
  struct Call {
    uint32_t begin, end;
    bool recorded;
    std::vector<Given> given;
  };
  std::vector<Given> given_;  // of the current operator
  std::vector<Call> calls_;
  std::map<Origin, graph::ValueId> first_;
};

}  // namespace cresset::bridge
