// Parts of a program which may run zero or several times in later calls (subgraphs of control flow, functions of the
// autograd graph). They are captured, so they must not have side effects on objects from outside.
//
// Invariants: parts nest, and end in the reverse order of their beginnings. A forbidden side effect makes the innermost
// part fail before it happens.
#pragma once

#include <unordered_set>
#include <vector>

#include "frontend/eval/hooks.h"
#include "frontend/feedback/autograd_trace_run.h"
#include "frontend/session/open_segment.h"
#include "frontend/session/provenance.h"
#include "frontend/trace_rules/c_function_effects.h"

namespace cresset::frontend {

class Subgraphs {
 public:
  Subgraphs(OpenSegment& segment, Provenance& provenance) : segment_(segment), provenance_(provenance) {}

  // Code from here to end_subgraph() may run zero or several times in later calls (control_flow.h). A side effect on an
  // older object makes the part fail before it happens. roots: the call's own objects which the part can reach.
  void begin_subgraph(PyObject* roots);
  void end_subgraph() { outer_.pop_back(); }
  bool is_inside() const { return !outer_.empty(); }
  [[gnu::cold]] void fail_subgraph(const char* what);                                   // BreakKind::SideEffect
  void no_effect_on(PyObject* object, const char* what, const char* method = nullptr);  // in a part: makes it fail
  void no_write_in_subgraph(const CressetWrite& write);
  void no_call_in_subgraph(const CCall& what, const CressetCall& call);

  // While the part is the autograd graph, the log of its functions; nullptr ends the log.
  void log_record(AutogradTraceRun* run) { record_run_ = run; }
  bool runs_record() const { return record_run_ != nullptr; }
  void enter_in_record(const CressetActivation& activation);
  void touch(PyObject* object) {
    if (record_run_ != nullptr) touch_in_record(object);
  }
  // The functions of the autograd graph must have restored the attributes which they changed.
  void check_changed_back(AutogradTraceRun& seen);

 private:
  bool is_outer(PyObject* object) const;
  bool may_be_changed_back(const CressetWrite& write);
  void touch_in_record(PyObject* object);

  OpenSegment& segment_;
  Provenance& provenance_;
  std::vector<std::unordered_set<PyObject*>> outer_;  // per part in progress
  AutogradTraceRun* record_run_ = nullptr;            // set while the part is the autograd graph
};

}  // namespace cresset::frontend
