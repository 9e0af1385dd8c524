// What autograd knew while a program was captured, which the graph does not say: the graph's operators are those below
// autograd. Passes that are recorded themselves need it (recorded_forward.h).
//
// A graph's values alone do not tell where their gradients go: x.data, a result computed under no_grad(), and what a
// custom function computed have a history of another kind than the operators that made them would give.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace torch::autograd {
struct Edge;
struct Node;
}  // namespace torch::autograd

namespace cresset::bridge {

class Capture;

// A result of a node of the record, which its sequence number tells.
using Origin = std::pair<uint64_t, uint32_t>;

// nullopt: of a leaf, or of what wants no gradient.
std::optional<Origin> origin_of(const at::Tensor& tensor);

// An operator as the program called it: one node of the graph, or several that it was taken apart into.
struct RecordedCall {
  struct Given {
    graph::ValueId value;    // among its arguments
    graph::ValueId history;  // its gradient goes where that of this value goes; invalid: nowhere
  };
  uint32_t begin = 0, end = 0;  // nodes of the graph
  bool recorded = true;         // gradients were recorded
  bool is_backward = false;     // when the record was run
  std::vector<Given> given;
  const Given* find(graph::ValueId value) const;  // nullptr: it is none of the arguments
};

// A function of Python's in the record: what it computed of what it was given, as nodes of the backward part.
struct RecordedFunction {
  enum class Kind : uint8_t { TensorHook, PreHook, PostHook, Node } kind;
  using Values = std::vector<std::optional<graph::ValueId>>;
  graph::ValueId of;   // a result of the node that it belongs to
  Values given, made;  // gradients; a PostHook is given those of the node's results behind the others
  std::vector<graph::NodeId> order;
  Values results, next;  // Node: its results, and of what the made gradients are
  bool once = false;     // likewise: marked as one that must not be differentiated again
};

struct AutogradRecord {
  const RecordedCall* call_of(graph::NodeId node) const;  // nullptr: it is of none
  std::vector<RecordedCall> calls;                        // in order
  std::vector<RecordedFunction> functions;
  std::vector<graph::ValueId> roots;
  bool complete = true;       // whether all that the record does is known
  bool reads_copies = false;  // the backward part reads values that stand for others: what a checkpoint computed again
};

// Of autograd's record, once it was run.
using EndOf = std::function<std::optional<graph::ValueId>(const torch::autograd::Edge&)>;

// Taken while a program is captured.
class AutogradNotes {
 public:
  void begin_call() { given_.clear(); }
  // An argument of the operator at hand.
  void note(const at::Tensor& tensor, graph::ValueId value);
  // The operator made these nodes.
  void end_call(uint32_t begin, uint32_t end);
  bool any() const { return !calls_.empty(); }

  // What the nodes before and behind this one say.
  AutogradRecord record(const graph::Graph& graph, uint32_t first_of_backward) const;
  // The value that was first seen with this origin.
  std::optional<graph::ValueId> value(const Origin& origin) const;

 private:
  struct Given {
    graph::ValueId value;
    bool wanted;
    std::optional<Origin> origin;
  };
  struct Call {
    uint32_t begin, end;
    bool recorded;
    std::vector<Given> given;
  };
  std::vector<Given> given_;  // of the operator at hand
  std::vector<Call> calls_;
  std::map<Origin, graph::ValueId> first_;
};

// While the record is run for the capture: notes what functions of Python's at these nodes compute.
class FunctionNotes {
 public:
  FunctionNotes(Capture& capture, const std::vector<torch::autograd::Node*>& python);
  ~FunctionNotes();
  FunctionNotes(const FunctionNotes&) = delete;

  struct Noted {
    RecordedFunction function;
    torch::autograd::Node* node;
    size_t begin = 0;  // in the order
    bool done = false;
  };
  // end(edge): the value at a leaf or a root.
  void add_to(AutogradRecord& record, const AutogradNotes& notes, const EndOf& end) const;

 private:
  void add(torch::autograd::Node& node, RecordedFunction::Kind kind);

  Capture& capture_;
  std::vector<torch::autograd::Node*> nodes_;
  std::vector<std::unique_ptr<Noted>> noted_;
};

}  // namespace cresset::bridge
