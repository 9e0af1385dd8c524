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
#include "frontend/session/segment_client.h"
#include "frontend/session/subgraphs.h"

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
  uint64_t serial = 0;         // of the capture, at the beginning
  bridge::Capture::Done done;  // of the capture, at the beginning
  TorchState state;            // at the beginning: parts of the operation may run in other modes (repr of a tensor)
  bool in_transform = false;   // of torch.func
  std::vector<PyRef>
      unspecialized;         // symbolic numbers passed to C code which no guard has specialized (specializations.h)
  bool of_operator = false;  // the numbers are passed to a torch operator
  bool uses_up = false;      // a started operation has changed its arguments: an iterator, a list being sorted

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
    unspecialized.clear();
  }
};

// The operation in progress, and the way from the end of a segment inside of it to the next segment.
//
// Invariants: an operation begins only while a segment is open. After the segment has ended inside of an operation,
// exactly one of the functions below hands its result to the next segment.
class CurrentOperation {
 public:
  CurrentOperation(OpenSegment& segment, Subgraphs& subgraphs, SegmentMaker& maker)
      : segment_(segment), subgraphs_(subgraphs), maker_(maker) {}

  void begin() { tangent_levels_ = 0; }
  void start(CressetActivation* activation, Operation::Kind kind, int operation);
  void start_call(CressetActivation* activation, const CressetCall& call) {
    start(activation, Operation::Kind::Call, 0);
    in_progress_.call = call;
  }
  InProgress& in_progress() { return in_progress_; }
  const InProgress& in_progress() const { return in_progress_; }
  bool in_transform() const;  // of torch.func, or in a forward differentiation level
  void change_tangent_levels(int by) { tangent_levels_ += by; }
  // Whether the segment may end where a symbolic number had too many values.
  bool may_break_at_specialization() const;

  // The operation in progress returned `value`: if the segment ended there, the next segment continues with it.
  void go_on_with(CressetActivation* activation, PyRef& value);
  // CPython performed the operation, which raised the pending error.
  void after_failure(CressetActivation* activation);
  // The segment ended at the operation in progress, which may still run code of the program.
  void ends_here() { ended_in_ = in_progress_.activation; }
  // The segment ended in the call or before it.
  [[gnu::cold]] void after_end(CressetActivation* activation, const CressetCall& call, PyObject** result,
                               PyObject* exception);
  // The capture ended finally inside of C functions which still hold symbolic numbers. Their results become plain.
  void ends_inside_calls(const CressetActivation* innermost);
  // Whether a C function inside of which the capture ended has not yet returned to these frames.
  bool is_in_calls_at_the_end(const CressetActivation* innermost);
  // Whether the capture ended inside of a call of this activation. Returns true once per call.
  bool was_in_call_at_the_end(const CressetActivation* activation);

 private:
  struct CallAtTheEnd {
    const CressetActivation* activation;
    int instruction;
  };

  OpenSegment& segment_;
  Subgraphs& subgraphs_;
  SegmentMaker& maker_;
  InProgress in_progress_;
  const CressetActivation* ended_in_ = nullptr;
  std::vector<CallAtTheEnd> in_calls_at_the_end_;
  int tangent_levels_ = 0;  // entered by the segment
};

}  // namespace cresset::frontend
