// What a Python object consists of, for kinds of objects that a call may make, keep in its frames, and give out: taken
// apart into a form, which is the same at every call, and parts, which may not be; and put together again.
#pragma once

#include <string>
#include <vector>

#include "frontend/placed_numbers.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

struct Anatomy {
  enum class Kind : uint8_t {
    None,      // of no kind that is known here
    Object,    // form: (type, attribute names); parts: the attributes' values
    DictObject,  // of a Python subclass of dict; form: (type, attribute names, keys); parts: the items' values, then the
                 // attributes'
    ListObject,  // of a Python subclass of list; form: (type, attribute names); parts: items, then attributes' values
    Cell,      // parts: the contents, unless it is empty
    Method,    // form: the function; parts: its self
    BuiltinMethod,  // form: its name; parts: its self
    Function,  // form: (code, globals, qualified name, module); parts: defaults, keyword defaults, closure
    Set,       // form: (type); parts: the items
    Deque,     // form: (type, maxlen); parts: the items
    Mapping,   // OrderedDict, defaultdict; form: (type, default factory or None); parts: keys and values in turn
    Generator,  // suspended; form: (type, code, where it stands); parts: as of a frame (point.h)
    Iterator,  // by its __reduce__; form: (callable, has a state); parts: arguments, state
  };
  Kind kind = Kind::None;
  PyRef form;
  std::vector<PyRef> parts;
};

// Kinds that move on when they are used, and are made anew from where they stand.
inline bool moves_on(Anatomy::Kind kind) { return kind == Anatomy::Kind::Iterator || kind == Anatomy::Kind::Generator; }
inline bool has_attributes(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Object || kind == Anatomy::Kind::DictObject || kind == Anatomy::Kind::ListObject;
}
// Kinds whose parts stand in places of their own, where others can be put.
inline bool has_places(Anatomy::Kind kind) { return has_attributes(kind) || kind == Anatomy::Kind::Cell; }
// Kinds that make_empty() refuses.
inline bool is_made_whole(Anatomy::Kind kind) {
  return moves_on(kind) || kind == Anatomy::Kind::Method || kind == Anatomy::Kind::BuiltinMethod;
}

// An instance of a Python class whose whole state is its __dict__, and its items when it is a list or a dict. Not a
// module: those are what they are by identity.
bool is_data_object(PyObject* object);

// Whether a C function is the method of an instance.
bool has_own_self(PyObject* c_function);

// An iterator over a range, or what stands for it while its place is symbolic.
bool is_range_iterator(const Anatomy& anatomy);

// Kind::None for objects of other kinds: containers, tensors, objects that hide their state. Runs no code of the user's.
Anatomy take_apart(PyObject* object);

// Of part i, for people: an attribute's name, or a number.
std::string part_name(const Anatomy& anatomy, size_t i);

// Of part i, when the kind has places. object: what was taken apart.
PlaceOfItem place_of_part(PyObject* object, const Anatomy& anatomy, size_t i);

// An object of this form without its parts, which fill() gives it; nullptr when it cannot be made without them.
PyRef make_empty(const Anatomy& anatomy);
void fill(PyObject* made, const Anatomy& anatomy);
// For kinds that make_empty() refuses.
PyRef make_whole(const Anatomy& anatomy);

// Whether both have the same kind and form, and as many parts.
bool same_form(const Anatomy& a, const Anatomy& b);

}  // namespace cresset::frontend
