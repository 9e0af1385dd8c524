#include "frontend/session/session.h"

#include "frontend/cache_entries/growing_containers.h"
#include "frontend/eval/hooks.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

void Session::begin(StateGuards& guards, bridge::Capture& capture) {
  segment_.begin(guards, capture);
  begin_own_nodes();
  provenance_.begin();
  addresses_.begin();
  identities_.begin();
  reads_.begin();
  writes_.begin();
  operation_.begin();
  symbols_placed_ = false;
  forget_arguments();
  if (hooks_ != nullptr) hooks_->tells_all = 0, hooks_->reported = next_segment();
}

void Session::note_looks() {
  identities_.begin();
  provenance_.note_looks(writes_.entries());
}

// The reason includes changes that must not outlive the segment.
const BreakReason& Session::refusal() {
  called_instead_ = {};  // it holds its tensor
  writes_.check_context_variables();
  return segment_.refusal();
}

int Session::visit_held(visitproc visit, void* arg) const {
  if (const int stopped = provenance_.visit_held(visit, arg)) return stopped;
  return writes_.visit_held(visit, arg);
}

void Session::let_go() {
  provenance_.let_go();
  writes_.let_go();
}

void Session::remove_symbols_of_frames() {
  replace_values(cresset_eval_current(), [&](PyObject* object) {
    PyRef plain = new_without_symbols(PyRef::borrow(object));
    if (plain.get() != object) provenance_.keep(PyRef::borrow(object));  // the operation in progress may still use it
    return plain;
  });
}

}  // namespace cresset::frontend
