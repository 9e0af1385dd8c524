// The object layout (`ObjectLayout`) of a Python object, for the kinds of objects which a call may create, keep in its
// frames and return. The layout splits an object into a form, which is the same at every call, and parts, which may
// vary. The functions below decompose an object and build it again.
#pragma once

#include <string>
#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"
#include "frontend/values/object_layout_parts.h"

namespace cresset::frontend {

// Kinds whose state advances when the object is used; for an exception, when it is raised. Reconstruction creates a new
// object in the current state.
inline bool moves_on(ObjectLayout::Kind kind) {
  return kind == ObjectLayout::Kind::Iterator || kind == ObjectLayout::Kind::Generator ||
         kind == ObjectLayout::Kind::Exception;
}
// Whether the object is of an advancing kind and keeps its identity across the end of a graph segment; a `Fate` records
// its final state. Iterators qualify when their position can be set, or when they have no position apart from the
// iterators inside them.
bool has_fate(PyObject* object, const ObjectLayout& layout);
inline bool has_attributes(ObjectLayout::Kind kind) {
  return kind == ObjectLayout::Kind::Object || kind == ObjectLayout::Kind::DictObject ||
         kind == ObjectLayout::Kind::ListObject;
}
// Whether part i lies in a place of its own, where another object can be stored. Keys have no such place.
bool has_place(const ObjectLayout& layout, size_t i);
// Whether the object is an OrderedDict with instance attributes, as `state_dict()` returns.
bool has_more_than_items(PyObject* object);
// Kinds which `make_empty()` refuses.
inline bool is_made_whole(ObjectLayout::Kind kind) {
  return kind == ObjectLayout::Kind::Iterator || kind == ObjectLayout::Kind::Method ||
         kind == ObjectLayout::Kind::BuiltinMethod || kind == ObjectLayout::Kind::Exception ||
         kind == ObjectLayout::Kind::Traceback || kind == ObjectLayout::Kind::Value ||
         kind == ObjectLayout::Kind::Wrapper;
}
// Kinds for which `decompose()` creates some parts as new objects.
inline bool makes_parts(ObjectLayout::Kind kind) {
  return kind == ObjectLayout::Kind::Iterator || kind == ObjectLayout::Kind::Value ||
         kind == ObjectLayout::Kind::Wrapper;
}

// Whether the object is an instance of a Python class without hidden state. Its state consists of its `__dict__`, its
// slots, and its items for a list or a dict. Modules are excluded, since guards compare modules by identity.
bool is_data_object(PyObject* object);

// Whether the layout belongs to a range iterator, or to the iterator which replaces it while the position is symbolic.
bool is_range_iterator(const ObjectLayout& layout);
bool is_counter(const ObjectLayout& layout);  // itertools.count

// Returns Kind::None for all other kinds: containers, tensors, objects with hidden state. Runs no user code.
ObjectLayout decompose(PyObject* object);

// Generators whose frames are running now, with the layout which they will have as suspended generators after
// reconstruction. `decompose()` returns these layouts while a `SeeRunning` lives.
using RunningGenerators = std::vector<std::pair<PyRef, ObjectLayout>>;
class SeeRunning {
 public:
  explicit SeeRunning(const RunningGenerators& running);
  ~SeeRunning();
  SeeRunning(const SeeRunning&) = delete;

 private:
  const RunningGenerators* before_;
};
ObjectLayout layout_of_generator(PyObject* generator, const CressetFrameImage& image);

// The name of part i in messages: an attribute name or a number.
std::string part_name(const ObjectLayout& layout, size_t i);

// The place of part i, for kinds with places. object: the decomposed object.
PlaceOfItem place_of_part(PyObject* object, const ObjectLayout& layout, size_t i);

// An object of this form without its parts; `fill()` stores the parts. Returns nullptr when the object cannot be
// created without its parts. `fill()` also gives a suspended generator another position and other contents.
PyRef make_empty(const ObjectLayout& layout);
// `fill()` does the same for an iterator with a fate (`has_fate`).
void fill(PyObject* made, const ObjectLayout& layout);
// Builds objects of the kinds which `make_empty()` refuses.
PyRef make_whole(const ObjectLayout& layout);

// Whether both layouts have the same kind, the same form and the same number of parts.
bool same_form(const ObjectLayout& a, const ObjectLayout& b);

// ---- The kinds of objects which guards compare by identity or by structure

// Objects that programs compare by identity.
bool is_identity(PyObject* object);
bool is_named_tuple(PyObject* object);
// Includes tuple subclasses whose instances are built from the items alone.
bool is_any_tuple(PyObject* object);
bool is_other_container(PyObject* object);
bool is_dict(PyObject* object);
// Whether the object is guarded by structure when its identity differs between calls: a container, or an object with
// data. `parts_of_structure` (arg_spec.h) returns its parts.
bool is_structure(PyObject* object);

}  // namespace cresset::frontend
