#include "frontend/session/provenance.h"

#include <opcode.h>

#include <algorithm>

#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/container_snapshot.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {

bool Provenance::is_looked_into(PyObject* object) const {
  const auto looked = [&](PyObject* o) {
    const ObjectRecord* const found = objects_.find(o);
    return found != nullptr && found->looked;
  };
  PyObject* const dict = instance_dict(object);
  return looked(object) || (dict != nullptr && looked(dict));
}

static bool writes_to(const std::vector<LoggedWrite>& writes, PyObject* object) {
  return std::any_of(writes.begin(), writes.end(),
                     [&](const LoggedWrite& write) { return write.owner.get() == object; });
}

// Whether the path lies strictly below the other path.
static bool leads_into(PyObject* path, PyObject* other) {
  const Py_ssize_t size = PyTuple_GET_SIZE(other);
  if (PyTuple_GET_SIZE(path) <= size) return false;
  const PyRef start = checked(PyTuple_GetSlice(path, 0, size));
  return same_constant(start.get(), other);
}

PyObject* Provenance::way_to(PyObject* object) {
  PyObject* const path = argument_path(object);
  for (const MayBeUnlooked& one : may_be_unlooked_)
    if (path != nullptr && one.path && leads_into(path, one.path.get())) objects_[one.object].looked = true;
  return path;
}

// list + [item] without inspecting the list: later calls repeat the concatenation. Empty for other operations.
PyRef Provenance::concatenated(const CressetOperator& op, const std::vector<LoggedWrite>& writes) {
  if (op.kind != CRESSET_OP_BINARY || op.operation != NB_ADD) return {};
  PyObject *const left = op.operands[0], *const right = op.operands[1];
  if (!PyList_CheckExact(left) || !PyList_CheckExact(right) || existed(right) || sums_.count(right) != 0) return {};
  const bool known = existed(left) && !writes_to(writes, left);
  if (!known && sums_.count(left) == 0) return {};
  PyRef sum = checked(PySequence_Concat(left, right));
  sums_.emplace(sum.get(), Sum{PyRef::borrow(left), checked(PySequence_Tuple(right)), sum});
  return sum;
}

bool Provenance::are_slots_known(PyObject* object) {
  return is_whole(object) && (!is_snapshot_container(object) || argument_path(object) != nullptr);
}

// Whether the call created the object. Also true if this cannot be determined.
bool Provenance::is_new(PyObject* object) const {
  return new_ == nullptr || !PyObject_IS_GC(object) || !PyObject_GC_IsTracked(object) || new_->holds(object);
}

PyObject* Provenance::ArgumentGenerator::get() const {
  if (!PyWeakref_CheckRefExact(reference.get())) return Py_REFCNT(reference.get()) > 1 ? reference.get() : nullptr;
  PyObject* object = PyWeakref_GetObject(reference.get());
  return object != Py_None ? object : nullptr;
}

bool Provenance::is_uninspected(PyObject* object) const {
  return is_foreign(object) || is_opaque(object) || is_growing_container(object);
}

PyObject* Provenance::argument_path(PyObject* object) const {
  const auto found = argument_paths_.find(object);
  return found != argument_paths_.end() ? found->second.get() : nullptr;
}

// Whether a container holds an opaque argument or an older closed object.
bool Provenance::holds_foreign(PyObject* container) const {
  return holds_any(container,
                   [&](PyObject* item) { return is_opaque(item) || (is_uninspected(item) && existed(item)); });
}

// Whether an older object has contents which no guard covers.
bool Provenance::is_uninspected_by_guards(PyObject* object) const {
  if (any_opaque() && is_opaque(object)) return true;  // includes bytes, which are not identified by address
  if (is_plain_tensor(object) || !existed(object)) return false;
  return is_uninspected(object) || (PyIter_Check(object) && !PyGen_CheckExact(object));
}

// A list that an earlier segment began to fill for a display or comprehension. It has no other holder, so each segment
// creates its own list.
void Provenance::make_own(PyObject* display) {
  if (!existed(display)) return;
  ObjectRecord& record = objects_[display];
  record.looked = true;
  if (is_growing_container(display))  // contents uninspected: serve no later call, and inspect them at the next capture
    return leave_growing(display);
  keep(std::move(record.kept));
  record.known = record.whole = false;
  record.made = true;
  argument_paths_.erase(display);
}

void Provenance::begin() {
  objects_.each([&](ObjectRecord& record) {
    if (record.known) keep(std::move(record.kept));  // prevents reuse of addresses
  });
  objects_.clear();
  for (auto* table : {&argument_paths_, &contents_before_}) {
    for (auto& [key, kept] : *table) keep(std::move(kept));
    table->clear();
  }
  may_be_unlooked_.clear();
  for (auto& [list, sum] : sums_) keep(std::move(sum.sum));
  sums_.clear();
  changed_unseen_.clear();
  generators_.clear();
  argument_tensors_.clear();
  opaque_.clear();
  arrays_.clear();
}

int Provenance::visit_held(visitproc visit, void* arg) const {
  for (const PyRef& kept : kept_) Py_VISIT(kept.get());
  int stopped = 0;
  objects_.each([&](const ObjectRecord& record) {
    if (record.kept && stopped == 0) stopped = visit(record.kept.get(), arg);
  });
  if (stopped != 0) return stopped;
  for (const auto& [container, contents] : contents_before_)
    if (const int r = Py_TYPE(contents.get())->tp_traverse(contents.get(), visit, arg)) return r;
  return 0;
}

void Provenance::let_go() {
  kept_.clear();
  if (new_ != nullptr) new_->let_go();
  changed_unseen_.clear();
  objects_.clear();
  argument_paths_.clear();
  contents_before_.clear();
  arrays_.clear();
  sums_.clear();
  generators_.clear();
}

PyObject* Provenance::contents_before(PyObject* container) const {
  const auto found = contents_before_.find(container);
  return found != contents_before_.end() ? found->second.get() : nullptr;
}

MayBeUnlooked* Provenance::plain_data(PyObject* object) {
  for (MayBeUnlooked& one : may_be_unlooked_)
    if (one.object == object && one.path) return &one;
  return nullptr;
}

void Provenance::add_changed_unseen(PyObject* object) {
  if (changed_unseen_.empty() || changed_unseen_.back().get() != object)
    changed_unseen_.push_back(PyRef::borrow(object));
}

PyRef Provenance::open_sum(PyObject* list) {
  const auto found = sums_.find(list);
  if (found == sums_.end()) return {};
  const Sum sum = std::move(found->second);
  sums_.erase(found);
  keep(sum.sum);
  return sum.list;
}

// A segment that inspected an opaque container requires this very object. A segment that did not inspect plain data
// accepts any.
void Provenance::note_looks(const std::vector<LoggedWrite>& writes) {
  for (const auto& [spec, object, path, measured] : std::exchange(may_be_unlooked_, {})) {
    const bool looked = is_looked_into(object);
    if (spec->kind == ArgSpec::Kind::Opaque) {
      if (looked && !is_foreign(object) && !PyGen_CheckExact(object))  // never inspected: foreign objects, generators
        spec->object = PyRef::borrow(object);
    } else if (!path) {
      spec->looked = looked;
    } else if (!looked && !writes_to(writes, object) && is_much_plain_data(*spec)) {
      hand_on(*spec, measured);
    }
  }
}

}  // namespace cresset::frontend
