// The object layout (`Anatomy`) of a Python object, for the kinds of objects which a call may create, keep in its
// frames and return. The layout splits an object into a form, which is the same at every call, and parts, which may
// vary. The functions below decompose an object and build it again.
#pragma once

#include <string>
#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"
#include "frontend/values/placed_symbols.h"

namespace cresset::frontend {

struct Anatomy {
  enum class Kind : uint8_t {
    None,        // not a known kind
    Object,      // form: (type, attribute names and slot descriptors); parts: the attribute values
    DictObject,  // a Python subclass of dict; form: (type, attribute names, keys); parts: item values, then attribute
                 // values
    ListObject,  // a Python subclass of list; form: (type, attribute names); parts: items, then attribute values
    Cell,        // parts: the contents; no part for an empty cell
    Method,      // form: the function; parts: its self
    BuiltinMethod,  // bound_methods.h; form: its descriptor or its name; parts: its self
    Function,   // form: (code, globals, name, qualified name, module, documentation, attribute names); parts: defaults,
                // keyword defaults, closure, annotations, type parameters, attribute values
    Set,        // form: (type); parts: the items
    Deque,      // form: (type, maxlen); parts: the items
    Mapping,    // OrderedDict, defaultdict; form: (type, default factory or None); parts: keys and values alternating
    Generator,  // not running; form: (type, code, position in the code, or None for a finished generator); parts: the
                // parts of a frame (resume_point.h)
    Exception,  // form: (type, attribute names, whether the context is suppressed); parts: args, cause, context,
                // traceback, fields of the C type, attribute values
    Traceback,  // form: (position of each entry, globals of the entries)
    Iterator,   // decomposed by its `__reduce__`; form: (callable, has a state); parts: arguments, state
    Value,      // value_objects.h; form and parts as for Iterator
    Wrapper,  // wrapper_tensors.h; form: (type, attribute names, dtype, device, requires_grad); parts: sizes, strides,
              // storage offset, attribute values
  };
  Kind kind = Kind::None;
  PyRef form;
  std::vector<PyRef> parts;
};

inline PyObject* form_item(const Anatomy& anatomy, Py_ssize_t i) { return PyTuple_GET_ITEM(anatomy.form.get(), i); }

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

// Whether a C function is a method bound to an instance.
bool has_own_self(PyObject* c_function);

// Whether the layout belongs to a range iterator, or to the iterator which replaces it while the position is symbolic.
bool is_range_iterator(const Anatomy& anatomy);
bool is_counter(const Anatomy& anatomy);  // itertools.count
bool goes_over_dict(PyObject* iterator);  // over a dict or a view of a dict

// Returns Kind::None for all other kinds: containers, tensors, objects with hidden state. Runs no user code.
Anatomy take_apart(PyObject* object);

// Remembers, during its lifetime, the exception which was handled when this thread's call began. Exceptions raised by
// the call may have it as their context, which the layout replaces by a placeholder. Without an `OuterHandled`, the
// exception handled now is used.
class OuterHandled {
 public:
  OuterHandled();
  ~OuterHandled();
  OuterHandled(const OuterHandled&) = delete;

 private:
  PyRef handled_;
  PyObject* before_;
};

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

}  // namespace cresset::frontend
