#include "frontend/session/argument_walk.h"

#include <tuple>

#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/replay/reconstruction.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

static PyRef extended(PyObject* path, PyObject* step) {
  const PyRef one = checked(PyTuple_Pack(1, step));
  return checked(PySequence_Concat(path, one.get()));
}

// parts: the contents from frame_contents(), whose tuples are not objects of the program.
void ArgumentWalk::add_frame(const ArgSpec& spec, PyObject* parts, const std::function<PyRef(size_t)>& path_of) {
  for (size_t i = 0; i < spec.children.size(); ++i) {
    const PyRef path = path_of(i);
    PyObject* part = PyTuple_GET_ITEM(parts, static_cast<Py_ssize_t>(i));
    const ArgSpec& of_part = spec.children[i];
    if (i != 2 && i != 3) {
      add_argument(of_part, part, path.get());
      continue;
    }
    for (size_t j = 0; j < of_part.children.size(); ++j)
      add_argument(of_part.children[j], PyTuple_GET_ITEM(part, static_cast<Py_ssize_t>(j)),
                   extended(path.get(), checked(PyLong_FromSize_t(j)).get()).get());
  }
}

void ArgumentWalk::add_frames(const ArgSpec& spec, PyObject* contents) {
  for (size_t i = 0; i < spec.children.size(); ++i) {
    const PyRef path = checked(Py_BuildValue("(in)", 0, static_cast<Py_ssize_t>(i)));
    PyObject* frame = PyTuple_GET_ITEM(contents, static_cast<Py_ssize_t>(i));
    if (spec.children[i].kind != ArgSpec::Kind::Tuple)
      add_argument(spec.children[i], frame, path.get());
    else
      add_frame(spec.children[i], frame,
                [&](size_t part) { return extended(path.get(), checked(PyLong_FromSize_t(part)).get()); });
  }
}

// A path step to part i of an object's layout.
static PyRef step_into_part(size_t i) {
  return checked(PySlice_New(nullptr, checked(PyLong_FromSize_t(i)).get(), nullptr));
}

// The path of plain data that a segment may pass on uninspected; empty for other arguments, and for state.
static PyRef way_to_plain_data(const ArgSpec& spec, PyObject* path, bool is_state) {
  return !is_state && is_much_plain_data(spec) && leads_through_containers(path) ? PyRef::borrow(path) : PyRef();
}

// An argument under its spec.
struct ArgumentWalk::Visit {
  const ArgSpec& spec;
  PyObject *object, *path;
  // An iterator from an earlier segment advances. It is recreated in its current position and never counts as an older
  // object, even if it is found in state.
  const ObjectLayout layout = spec.kind == ArgSpec::Kind::ObjectLayout ? decompose(object) : ObjectLayout{};
  const bool fate = moves_on(layout.kind) && has_fate(object, layout);
  bool is_iterator = false;
  bool holds = false;  // its contents: it is not an iterator or a tuple of an iterator's state

  bool is(ArgSpec::Kind kind) const { return spec.kind == kind; }
  bool is_state() const { return PyLong_AsLong(PyTuple_GET_ITEM(path, 0)) == kStateRoot; }
  bool is_own_value() const { return is(ArgSpec::Kind::Value) && is_numpy_scalar(object); }  // differs at each call
  bool is_opened() const {
    return is(ArgSpec::Kind::List) || is(ArgSpec::Kind::Dict) || is(ArgSpec::Kind::ObjectLayout) ||
           is(ArgSpec::Kind::Opaque);
  }
  bool is_object() const {
    return (is_opened() && !is(ArgSpec::Kind::Opaque)) || is(ArgSpec::Kind::Registered) ||
           (is(ArgSpec::Kind::Tuple) && !PyTuple_CheckExact(object));  // () is a singleton
  }
};

void ArgumentWalk::add_argument(const ArgSpec& spec, PyObject* object, PyObject* path) {
  if (spec.kind == ArgSpec::Kind::String) {
    provenance_.add_path(object, PyRef::borrow(path));
    identities_.note_text(spec);
    provenance_.keep(PyRef::borrow(object));
    return;
  }
  if (spec.kind == ArgSpec::Kind::Tensor) provenance_.add_tensor(object);
  identities_.note_value(spec, object);
  if (spec.kind == ArgSpec::Kind::Same && moves_on(decompose(object).kind)) return;  // added before
  if (spec.kind == ArgSpec::Kind::Same && spec.type) provenance_.add_path(object, PyRef::borrow(path));
  Visit visit{spec, object, path};
  // An iterator without a fate is not advanced if another object holds it, because a new object would replace it.
  visit.is_iterator = moves_on(visit.layout.kind) && (visit.fate || inside_ == 0);
  make_known(visit);
  leave_uninspected(visit);
  if (spec.children.empty() && !visit.is_object()) return;
  if (!visit.is_iterator) {
    provenance_.add_path(object, PyRef::borrow(path));
    provenance_.mark_whole(object);
  }
  // Tuples in an iterator's decomposed state come from `decompose()` and have no other holder.
  const bool is_reported = std::exchange(is_reported_, false) && PyTuple_CheckExact(object);
  if (visit.is_iterator && makes_parts(visit.layout.kind))
    for (const PyRef& part : visit.layout.parts) provenance_.keep(part);
  visit.holds = !visit.is_iterator && !is_reported;
  add_contents(visit);
}

void ArgumentWalk::make_known(const Visit& visit) {
  PyObject* const object = visit.object;
  const bool is_identity = visit.is(ArgSpec::Kind::Identity);
  if (visit.is_iterator) {
    provenance_.record(object).made = true;  // also holds for a later object at its address
  } else {
    is_identity ? reads_.learn(object) : reads_.learn_guarded(object);
  }
  if (is_identity) reads_.mark_seen(object, Py_Ellipsis);                  // identity is guarded
  if (is_constant_value(object)) provenance_.keep(PyRef::borrow(object));  // prevents reuse of its address
}

// Arguments which the segment must not inspect, or need not inspect.
void ArgumentWalk::leave_uninspected(const Visit& visit) {
  const auto& [spec, object, path] = std::tie(visit.spec, visit.object, visit.path);
  const bool is_opaque = visit.is(ArgSpec::Kind::Opaque), is_state = visit.is_state();
  const bool is_growing = is_opaque && PyList_CheckExact(object);
  if (is_growing && !is_state) close_argument(object);
  if (PyRef way = way_to_plain_data(spec, path, is_state); visit.is_opened() && (is_state || is_growing || way))
    provenance_.add_unlooked({const_cast<ArgSpec*>(&spec), object, std::move(way)});
  if (is_opaque && (can_be_opaque(object) || PyGen_CheckExact(object))) provenance_.add_opaque(object);
  if (is_opaque || visit.is_own_value()) provenance_.add_path(object, PyRef::borrow(path));
}

void ArgumentWalk::add_child(const Visit& visit, size_t i, PyObject* key, PyObject* value) {
  inside_ += visit.holds;
  is_reported_ = !visit.holds && PyTuple_CheckExact(value);
  add_argument(visit.spec.children[i], value, extended(visit.path, key).get());
  is_reported_ = false;
  inside_ -= visit.holds;
}

void ArgumentWalk::add_contents(const Visit& visit) {
  PyObject* const object = visit.object;
  if (visit.is(ArgSpec::Kind::Dict)) {
    PyObject *key, *value;
    EntriesInOrder entries(object);
    for (size_t i = 0; entries.next(&key, &value); ++i) add_child(visit, i, key, value);
  } else if (visit.is(ArgSpec::Kind::ObjectLayout)) {
    add_parts(visit);
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    for (size_t i = 0; i < visit.spec.children.size(); ++i)
      add_child(visit, i, checked(PyLong_FromSize_t(i)).get(),
                PySequence_Fast_GET_ITEM(object, static_cast<Py_ssize_t>(i)));
  }
}

// The contents of an object which is decomposed by its layout.
void ArgumentWalk::add_parts(const Visit& visit) {
  const auto& [spec, object, path] = std::tie(visit.spec, visit.object, visit.path);
  const std::vector<PyRef>& parts = visit.layout.parts;
  const bool attributes = has_attributes(spec.layout.kind) || spec.layout.kind == ObjectLayout::Kind::Wrapper;
  if (PyObject* dict = attributes ? instance_dict(object) : nullptr) {
    reads_.learn(dict);
    provenance_.mark_whole(dict);
    provenance_.add_path(dict, extended(path, checked(PySlice_New(nullptr, nullptr, nullptr)).get()));
  }
  const bool is_generator = visit.layout.kind == ObjectLayout::Kind::Generator;
  if (visit.fate)
    provenance_.add_generator(
        {is_generator ? checked(PyWeakref_NewRef(object, nullptr)) : PyRef::borrow(object), PyRef::borrow(path)});
  if (is_generator) {
    const auto outside = std::exchange(inside_, 0);  // its frame owns these objects, independent of its own holder
    if (!parts.empty())
      add_frame(spec, tuple_of(parts).get(), [&](size_t i) { return extended(visit.path, step_into_part(i).get()); });
    inside_ = outside;
    return;
  }
  for (size_t i = 0; i < spec.children.size() && i < parts.size(); ++i)  // count(symbol) also has a step
    add_child(visit, i, step_into_part(i).get(), parts[i].get());
  for (const PyRef& part : parts)  // C code may consume the rest without a hook
    if (moves_on(visit.layout.kind)) reads_.read_whole(part.get());
}

}  // namespace cresset::frontend
