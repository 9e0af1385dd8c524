// The operation of the program at which, or inside of which, a graph segment may end.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bridge/capture/capture.h"
#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"
#include "frontend/frames/resume_point.h"
#include "frontend/guards/torch_modes.h"

namespace cresset::frontend {

// The operation kind of an operator where a segment may end; empty when no segment may end there.
std::optional<Operation::Kind> kind_of(CressetOperatorKind kind);

// The operation in progress, as the evaluator reported it. References are borrowed from the value stack.
struct InProgress {
  CressetActivation* activation = nullptr;  // nullptr: no operation
  int instruction = 0;
  Operation::Kind kind = Operation::Kind::Call;
  int operation = 0;
  CressetCall call{};  // a copy: the reported struct is gone when the call runs
  PyObject* operands[2] = {nullptr, nullptr};
  uint64_t serial = 0;          // of the capture, at the beginning
  bridge::Capture::Done done;   // of the capture, at the beginning
  TorchState state;             // at the beginning: parts of the operation may run in other modes (repr of a tensor)
  bool in_transform = false;    // of torch.func
  std::vector<PyRef> unpinned;  // symbolic numbers passed to C code which no guard has specialized (specializations.h)
  bool of_operator = false;     // the numbers are passed to a torch operator
  bool uses_up = false;         // a started operation has changed its arguments: an iterator, a list being sorted

  Operation kept() const;
  // Assigns the fields individually, because most calls of the program come here.
  void begin(CressetActivation* at, Operation::Kind what, int which) {
    end();
    activation = at;
    instruction = at->instruction;
    kind = what;
    operation = which;
    call = {};
    operands[0] = operands[1] = nullptr;
  }
  void end() {  // the remaining fields are not read afterwards
    activation = nullptr;
    in_transform = of_operator = uses_up = false;
    unpinned.clear();
  }
};

}  // namespace cresset::frontend
