// Inspections of containers in state that differ at each call, and lists which grow without being inspected.
#include <opcode.h>

#include <algorithm>

#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/session/session.h"

namespace cresset::frontend {

bool Session::is_looked_into(PyObject* object) const {
  const auto looked = [&](PyObject* o) {
    const ObjectRecord* const found = objects_.find(o);
    return found != nullptr && found->looked;
  };
  PyObject* const dict = instance_dict(object);
  return looked(object) || (dict != nullptr && looked(dict));
}

static bool writes_to(const std::vector<Write>& writes, PyObject* object) {
  return std::any_of(writes.begin(), writes.end(), [&](const Write& write) { return write.owner.get() == object; });
}

// A segment that inspected an opaque container requires this very object. A segment that did not inspect plain data
// accepts any.
void Session::note_looks() {
  values_.clear();
  for (const auto& [spec, object, path, measured] : std::exchange(may_be_unlooked_, {})) {
    const bool looked = is_looked_into(object);
    if (spec->kind == ArgSpec::Kind::Opaque) {
      if (looked && !is_foreign(object) && !PyGen_CheckExact(object))  // never inspected: foreign objects, generators
        spec->object = PyRef::borrow(object);
    } else if (!path) {
      spec->looked = looked;
    } else if (!looked && !writes_to(writes_, object) && is_much_plain_data(*spec)) {
      hand_on(*spec, measured);
    }
  }
}

// Whether the path lies strictly below the other path.
static bool leads_into(PyObject* path, PyObject* other) {
  const Py_ssize_t size = PyTuple_GET_SIZE(other);
  if (PyTuple_GET_SIZE(path) <= size) return false;
  const PyRef start = checked(PyTuple_GetSlice(path, 0, size));
  return same_constant(start.get(), other);
}

PyObject* Session::way_to(PyObject* object) {
  PyObject* const path = argument_path(object);
  for (const MayBeUnlooked& one : may_be_unlooked_)
    if (path != nullptr && one.path && leads_into(path, one.path.get())) objects_[one.object].looked = true;
  return path;
}

// list + [item] without inspecting the list: later calls repeat the concatenation. Empty for other operations.
PyRef Session::concatenated(const CressetOperator& op) {
  if (op.kind != CRESSET_OP_BINARY || op.operation != NB_ADD) return {};
  PyObject *const left = op.operands[0], *const right = op.operands[1];
  if (!PyList_CheckExact(left) || !PyList_CheckExact(right) || existed(right) || sums_.count(right) != 0) return {};
  const bool known = existed(left) && !writes_to(writes_, left);
  if (!known && sums_.count(left) == 0) return {};
  PyRef sum = checked(PySequence_Concat(left, right));
  sums_.emplace(sum.get(), Sum{PyRef::borrow(left), checked(PySequence_Tuple(right)), sum});
  return sum;
}

// Turns the concatenation into an ordinary list because it is inspected. Its parts then count as inspected.
void Session::look_at_sum(PyObject* list) {
  const auto found = sums_.find(list);
  if (found == sums_.end()) return;
  const Sum sum = std::move(found->second);
  sums_.erase(found);
  kept_.push_back(sum.sum);
  read_whole(sum.list.get());
}

}  // namespace cresset::frontend
