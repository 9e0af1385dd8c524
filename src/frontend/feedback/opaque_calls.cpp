#include "frontend/feedback/opaque_calls.h"

#include <optional>
#include <string_view>

#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/eval/bytecode.h"
#include "frontend/feedback/eager_autograd_calls.h"
#include "frontend/feedback/feedback.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/values/transform_state.h"

namespace cresset::frontend {
namespace {

using Key = Feedback::PlaceOfCall;

Key key_of(PyCodeObject* code, int instruction, PyObject* callable) {
  return {(PyObject*)code, kind_of_callable(callable), instruction};
}

bool is_operator(int opcode) {
#ifdef BINARY_SUBSCR  // until CPython 3.13
  if (opcode == BINARY_SUBSCR) return true;
#endif
  return opcode == BINARY_OP || opcode == COMPARE_OP || opcode == CONTAINS_OP;
}

// The call or the operator in progress, or nullopt for another instruction. While a frame runs for the instruction, the
// activation's position is the last cache unit behind it.
std::optional<Key> in_progress(const CressetActivation& activation) {
  const PyRef code = checked(PyCode_GetCode(activation.code));
  const auto* units = (const unsigned char*)PyBytes_AS_STRING(code.get());
  int at = activation.instruction;
  while (at > 0 && units[2 * at] == CACHE) --at;
  if (at < 0) return std::nullopt;
  if (is_operator(units[2 * at])) return key_of(activation.code, at, nullptr);
  if (cresset_is_call(units[2 * at]) == 0 || activation.user == nullptr) return std::nullopt;
  return Key{(PyObject*)activation.code, static_cast<PyObject*>(activation.user), at};
}

// Whether the function is torch code which enters a level of a transform.
bool enters_transform(const CressetActivation& activation) {
  const std::string_view file = path_in_torch(activation.code->co_filename);
  return file == "_functorch/apis.py" || file == "_functorch/vmap.py" || file == "_functorch/eager_transforms.py";
}

bool is_library(const CressetActivation& activation) {
  return !path_in_torch(activation.code->co_filename).empty() || !path_in_cresset(activation.code->co_filename).empty();
}

// The outermost activation which cannot be rebuilt; nullptr when all can.
const CressetActivation* outermost_closed(const CressetActivation* innermost) {
  const CressetActivation* out = nullptr;
  const bool in_transform = inside_transform();
  for (const CressetActivation* a = innermost; a != nullptr; a = a->caller)
    if ((a->entered_from_c != 0 && a->caller != nullptr) || (in_transform && enters_transform(*a))) out = a;
  return out;
}

bool leave(const Key& key) {
  Feedback* const known = Feedback::current();
  if (known == nullptr || known->whole.size() >= threshold::kMostPlaces) return false;
  return known->whole.emplace(key, std::pair(PyRef::borrow(key.code), PyRef::borrow(key.kind))).second;
}

}  // namespace

bool leave_whole(const CressetActivation* innermost) {
  if (leave_checkpoint_around(innermost)) return true;
  const CressetActivation* const closed = outermost_closed(innermost);
  return closed != nullptr && leave_whole_at(closed->caller);
}

bool leave_whole_at(const CressetActivation* at) {
  while (at != nullptr && is_library(*at)) at = at->caller;
  // An instruction which hashes or compares a key is skipped; the call around it is left whole instead.
  std::optional<Key> key;
  for (; at != nullptr && !key; at = at->caller)
    if (!is_library(*at)) key = in_progress(*at);
  return key && leave(*key);
}

bool leave_call_whole(PyCodeObject* code, int instruction, PyObject* callable) {
  return leave(key_of(code, instruction, callable));
}

bool is_opaque_call(const CressetActivation& activation, PyObject* callable) {
  const Feedback* const known = Feedback::current();
  return known != nullptr && !known->whole.empty() &&
         known->whole.count(key_of(activation.code, activation.instruction, callable)) != 0;
}

static thread_local bool inference_apart = false;

void enter_inference_apart(bool apart) { inference_apart = apart; }

bool enters_inference_apart(PyObject* callable) {
  if (!inference_apart) return false;
  static PyObject* const region = private_attribute("torch._C", "_InferenceMode");
  return callable == region;
}

}  // namespace cresset::frontend
