#include "frontend/trace_rules/context_variables.h"

#include <unordered_map>

#include "frontend/cpython/py_objects.h"
#include "frontend/feedback/opaque_calls.h"

namespace cresset::frontend {
namespace {

struct SetBy {
  PyRef code, callable;
  int instruction;
};

// The last setting call of each variable on this thread. Few programs use more than a few variables.
std::unordered_map<PyObject*, SetBy>& table() {
  static thread_local auto& calls = *new std::unordered_map<PyObject*, SetBy>;  // not destroyed after Python
  return calls;
}

}  // namespace

void note_set(PyObject* variable, const CressetActivation& activation, const CressetCall& call) {
  constexpr size_t kMost = 100;
  if (table().size() >= kMost) table().clear();
  table()[variable] = {PyRef::borrow((PyObject*)activation.code), PyRef::borrow(call.callable), activation.instruction};
}

bool set_apart(PyObject* variable) {
  const auto found = table().find(variable);
  if (found == table().end()) return false;
  const SetBy by = std::move(found->second);
  table().erase(found);
  return leave_call_whole((PyCodeObject*)by.code.get(), by.instruction, by.callable.get());
}

}  // namespace cresset::frontend
