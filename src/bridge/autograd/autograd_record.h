// Notes on the Python functions of the autograd graph (autograd_notes.h), taken while it runs for the capture.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bridge/capture/autograd_notes.h"
#include "graph/graph.h"

namespace torch::autograd {
struct Edge;
struct Node;
}  // namespace torch::autograd

namespace cresset::bridge {

class Capture;

// Maps an edge of the autograd graph to a value, once the graph was run.
using EndOf = std::function<std::optional<graph::ValueId>(const torch::autograd::Edge&)>;

// Notes the computations of Python functions at these nodes while the autograd graph runs for the capture.
class FunctionNotes {
 public:
  FunctionNotes(Capture& capture, const std::vector<torch::autograd::Node*>& python);
  ~FunctionNotes();
  FunctionNotes(const FunctionNotes&) = delete;

  struct Noted {
    RecordedFunction function;
    torch::autograd::Node* node;
    size_t begin = 0;  // position in the order
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
