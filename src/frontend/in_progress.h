// The operation of the program in whose place, or inside of which, a piece may end.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bridge/capture.h"
#include "frontend/eval/hooks.h"
#include "frontend/point.h"
#include "frontend/py_ref.h"
#include "frontend/state_guard.h"

namespace cresset::frontend {

// What kind of operation an operator is that a piece may end at; empty: it may not.
std::optional<Operation::Kind> kind_of(CressetOperatorKind kind);

// An operation in progress, which the evaluator has told of. Borrowed: what it needs is on the stack.
struct InProgress {
  CressetActivation* activation = nullptr;  // nullptr: none
  int instruction = 0;
  Operation::Kind kind = Operation::Kind::Call;
  int operation = 0;
  CressetCall call{};  // a copy: the one that was told is gone when the call runs
  PyObject* operands[2] = {nullptr, nullptr};
  uint64_t serial = 0;          // of the capture, when it began
  bridge::Capture::Done done;   // likewise
  TorchState state;             // likewise: what it consists of may be done in other modes (repr of a tensor)
  bool in_transform = false;    // of torch.func
  std::vector<PyRef> unpinned;  // numbers that C code is given, and no guard has made one value (pins.h)
  bool of_operator = false;     // they are given to torch
  bool uses_up = false;  // once it has begun, what it was given is not what it was: an iterator, a list being sorted

  Operation kept() const;
  // Written one by one: most calls of the program come here.
  void begin(CressetActivation* at, Operation::Kind what, int which) {
    end();
    activation = at;
    instruction = at->instruction;
    kind = what;
    operation = which;
    call = {};
    operands[0] = operands[1] = nullptr;
  }
  void end() {  // what else is said of it is not asked any more
    activation = nullptr;
    in_transform = of_operator = uses_up = false;
    unpinned.clear();
  }
};

}  // namespace cresset::frontend
