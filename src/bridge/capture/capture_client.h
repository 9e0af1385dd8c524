// The interface of a capture to the program whose operators it captures. A capture without a client is ended by nobody
// but its owner.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <vector>

#include "base/break_reason.h"

namespace torch::autograd {
struct Node;
}

namespace cresset::bridge {

class Capture;

// The default answers are those of a program without Python. A client may be asked after the capture is closed.
class CaptureClient {
 public:
  virtual ~CaptureClient() = default;
  // Sets the graph's current location to the running line of the program.
  virtual void locate(Capture&) {}
  // The symbolic number behind a wrapped number, if any. torch's Python binding keeps the number beside the tensor,
  // whose own contents are then meaningless.
  virtual std::optional<at::Scalar> symbolic_number(const at::Tensor&) { return std::nullopt; }
  // Whether the user's program may catch an exception of the current operator.
  virtual bool may_be_caught() { return false; }
  // Called first by a flush of an open capture, at most once, and only if Capture::ends_in_order(). Returns true when
  // it has ended the capture in order.
  virtual bool end_in_order(const BreakReason&) { return false; }
  // Called when the capture closes in any way: later operators are not captured.
  virtual void on_close() {}
  // Runs the autograd graph. The `python` nodes call Python functions; an action forbidden to them fails the subgraph.
  // If runs_python_autograd() is false, autograd functions of this kind run eagerly.
  virtual bool runs_python_autograd() const { return false; }
  virtual void run_record(const std::vector<torch::autograd::Node*>&, const std::function<void()>& run) { run(); }
};

}  // namespace cresset::bridge
