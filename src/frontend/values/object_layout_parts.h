// The parts of an object layout (object_layout.h): the form of an object, its parts, and the places where they lie.
#pragma once

#include <vector>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// key: a dict key, the index in a list or deque, the name of the args of a partial function or an exception. Also a
// class's own attribute name, a name in a threading.local, the descriptor of a slot or of a tensor's .grad. Empty: a
// cell. A .grad place holds only tensors.
struct PlaceOfItem {
  PyRef container, key;
};

struct ObjectLayout {
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
                // parts of a frame (frame_image.h)
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

inline PyObject* form_item(const ObjectLayout& layout, Py_ssize_t i) { return PyTuple_GET_ITEM(layout.form.get(), i); }

}  // namespace cresset::frontend
