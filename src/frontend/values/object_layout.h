// The object layout (`Anatomy`) of a Python object, for the kinds of objects which a call may create, keep in its
// frames and return. The layout splits an object into a form, which is the same at every call, and parts, which may
// vary. The functions below decompose an object and build it again.
#pragma once

#include <string>
#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"
#include "frontend/values/anatomy.h"

namespace cresset::frontend {

// Kinds whose state advances when the object is used; for an exception, when it is raised. Reconstruction creates a new
// object in the current state.
inline bool moves_on(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Iterator || kind == Anatomy::Kind::Generator || kind == Anatomy::Kind::Exception;
}
// Whether the object is of an advancing kind and keeps its identity across the end of a graph segment; a `Fate` records
// its final state. Iterators qualify when their position can be set, or when they have no position apart from the
// iterators inside them.
bool has_fate(PyObject* object, const Anatomy& anatomy);
inline bool has_attributes(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Object || kind == Anatomy::Kind::DictObject || kind == Anatomy::Kind::ListObject;
}
// Whether part i lies in a place of its own, where another object can be stored. Keys have no such place.
bool has_place(const Anatomy& anatomy, size_t i);
// Whether the object is an OrderedDict with instance attributes, as `state_dict()` returns.
bool has_more_than_items(PyObject* object);
// Kinds which `make_empty()` refuses.
inline bool is_made_whole(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Iterator || kind == Anatomy::Kind::Method || kind == Anatomy::Kind::BuiltinMethod ||
         kind == Anatomy::Kind::Exception || kind == Anatomy::Kind::Traceback || kind == Anatomy::Kind::Value ||
         kind == Anatomy::Kind::Wrapper;
}
// Kinds for which `take_apart()` creates some parts as new objects.
inline bool makes_parts(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Iterator || kind == Anatomy::Kind::Value || kind == Anatomy::Kind::Wrapper;
}

// Whether the object is an instance of a Python class without hidden state. Its state consists of its `__dict__`, its
// slots, and its items for a list or a dict. Modules are excluded, since guards compare modules by identity.
bool is_data_object(PyObject* object);

// Whether the layout belongs to a range iterator, or to the iterator which replaces it while the position is symbolic.
bool is_range_iterator(const Anatomy& anatomy);
bool is_counter(const Anatomy& anatomy);  // itertools.count

// Returns Kind::None for all other kinds: containers, tensors, objects with hidden state. Runs no user code.
Anatomy take_apart(PyObject* object);

// Generators whose frames are running now, with the layout which they will have as suspended generators after
// reconstruction. `take_apart()` returns these layouts while a `SeeRunning` lives.
using RunningGenerators = std::vector<std::pair<PyRef, Anatomy>>;
class SeeRunning {
 public:
  explicit SeeRunning(const RunningGenerators& running);
  ~SeeRunning();
  SeeRunning(const SeeRunning&) = delete;

 private:
  const RunningGenerators* before_;
};
Anatomy anatomy_of_generator(PyObject* generator, const CressetFrameImage& image);

// The name of part i in messages: an attribute name or a number.
std::string part_name(const Anatomy& anatomy, size_t i);

// The place of part i, for kinds with places. object: the decomposed object.
PlaceOfItem place_of_part(PyObject* object, const Anatomy& anatomy, size_t i);

// An object of this form without its parts; `fill()` stores the parts. Returns nullptr when the object cannot be
// created without its parts. `fill()` also gives a suspended generator another position and other contents.
PyRef make_empty(const Anatomy& anatomy);
// `fill()` does the same for an iterator with a fate (`has_fate`).
void fill(PyObject* made, const Anatomy& anatomy);
// Builds objects of the kinds which `make_empty()` refuses.
PyRef make_whole(const Anatomy& anatomy);

// Whether both layouts have the same kind, the same form and the same number of parts.
bool same_form(const Anatomy& a, const Anatomy& b);

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
