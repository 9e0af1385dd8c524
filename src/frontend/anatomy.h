// What a Python object consists of, for kinds of objects that a call may make, keep in its frames, and give out: taken
// apart into a form, which is the same at every call, and parts, which may not be; and put together again.
#pragma once

#include <string>
#include <vector>

#include "frontend/eval/hooks.h"
#include "frontend/placed_numbers.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

struct Anatomy {
  enum class Kind : uint8_t {
    None,        // of no kind that is known here
    Object,      // form: (type, attribute names, and descriptors of slots); parts: their values
    DictObject,  // of a Python subclass of dict; form: (type, attribute names, keys); parts: the items' values, then
                 // the attributes'
    ListObject,  // of a Python subclass of list; form: (type, attribute names); parts: items, then attributes' values
    Cell,        // parts: the contents, unless it is empty
    Method,      // form: the function; parts: its self
    BuiltinMethod,  // bound_methods.h; form: its descriptor, or its name; parts: its self
    Function,   // form: (code, globals, name, qualified name, module, documentation, attribute names); parts: defaults,
                // keyword defaults, closure, annotations, type parameters, attributes' values
    Set,        // form: (type); parts: the items
    Deque,      // form: (type, maxlen); parts: the items
    Mapping,    // OrderedDict, defaultdict; form: (type, default factory or None); parts: keys and values in turn
    Generator,  // not running; form: (type, code, where it stands, or None when it is finished); parts: as of a frame
                // (point.h)
    Exception,  // form: (type, attribute names, whether its context is suppressed); parts: args, cause, context,
                // traceback, what its C type keeps, attributes' values
    Traceback,  // form: (where each entry stands, the entries' globals)
    Iterator,   // by its __reduce__; form: (callable, has a state); parts: arguments, state
    Value,      // value_objects.h; likewise
    Wrapper,  // wrapper_tensors.h; form: (type, attribute names, dtype, device, requires_grad); parts: sizes, strides,
              // storage offset, attributes' values
  };
  Kind kind = Kind::None;
  PyRef form;
  std::vector<PyRef> parts;
};

inline PyObject* form_item(const Anatomy& anatomy, Py_ssize_t i) { return PyTuple_GET_ITEM(anatomy.form.get(), i); }

// Kinds that move on when they are used (an exception: when it is raised), and are made anew from where they stand.
inline bool moves_on(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Iterator || kind == Anatomy::Kind::Generator || kind == Anatomy::Kind::Exception;
}
// Those of them that stay the very object: a piece says what becomes of it (Fate). Iterators that can be set to a
// place, or have none but that of others.
bool has_fate(PyObject* object, const Anatomy& anatomy);
inline bool has_attributes(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Object || kind == Anatomy::Kind::DictObject || kind == Anatomy::Kind::ListObject;
}
// Whether part i stands in a place of its own, where another can be put. Keys do not.
bool has_place(const Anatomy& anatomy, size_t i);
// An OrderedDict that was given attributes, as state_dict() does.
bool has_more_than_items(PyObject* object);
// Kinds that make_empty() refuses.
inline bool is_made_whole(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Iterator || kind == Anatomy::Kind::Method || kind == Anatomy::Kind::BuiltinMethod ||
         kind == Anatomy::Kind::Exception || kind == Anatomy::Kind::Traceback || kind == Anatomy::Kind::Value ||
         kind == Anatomy::Kind::Wrapper;
}
// Kinds of which some parts are made to be looked at.
inline bool makes_parts(Anatomy::Kind kind) {
  return kind == Anatomy::Kind::Iterator || kind == Anatomy::Kind::Value || kind == Anatomy::Kind::Wrapper;
}

// An instance of a Python class whose whole state is its __dict__ and its slots, and its items when it is a list or a
// dict. Not a module: those are what they are by identity.
bool is_data_object(PyObject* object);

// Whether a C function is the method of an instance.
bool has_own_self(PyObject* c_function);

// An iterator over a range, or what stands for it while its place is symbolic.
bool is_range_iterator(const Anatomy& anatomy);
bool is_counter(const Anatomy& anatomy);  // itertools.count
bool goes_over_dict(PyObject* iterator);  // over one, or a view of one

// Kind::None for objects of other kinds: containers, tensors, objects that hide their state. Runs no code of the
// user's.
Anatomy take_apart(PyObject* object);

// What was handled when this thread's call began, for as long as the object lives: the exceptions that the call raises
// have it for their context. Without one, it is what is handled now.
class OuterHandled {
 public:
  OuterHandled();
  ~OuterHandled();
  OuterHandled(const OuterHandled&) = delete;

 private:
  PyRef handled_;
  PyObject* before_;
};

// Generators whose frames are among those that run, as they will be when they are made again: suspended. For as long as
// it is seen, that is what take_apart() says of them.
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

// Of part i, for people: an attribute's name, or a number.
std::string part_name(const Anatomy& anatomy, size_t i);

// Of part i, when the kind has places. object: what was taken apart.
PlaceOfItem place_of_part(PyObject* object, const Anatomy& anatomy, size_t i);

// An object of this form without its parts, which fill() gives it; nullptr when it cannot be made without them. fill()
// also gives a generator that is suspended another place and other contents.
PyRef make_empty(const Anatomy& anatomy);
// Likewise an iterator that has a fate.
void fill(PyObject* made, const Anatomy& anatomy);
// For kinds that make_empty() refuses.
PyRef make_whole(const Anatomy& anatomy);

// Whether both have the same kind and form, and as many parts.
bool same_form(const Anatomy& a, const Anatomy& b);

}  // namespace cresset::frontend
