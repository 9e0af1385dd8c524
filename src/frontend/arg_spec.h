// The shape of a call: containers, tensors, numbers and constants among the arguments. Built at capture, checked at
// every call; the check gathers the tensors and integers that the compiled code takes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/anatomy.h"
#include "frontend/placed_numbers.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

struct ArgSpec {
  enum class Kind : uint8_t {
    Tensor,    // a tensor of this type: torch.Tensor, Parameter, a class without attributes of its own
    Int,       // an int that is symbolic in the program
    Float,     // a float that is: a tensor of one f64 among the leaves. object: when set, it must be this one
    Text,      // a str that the program does not look at. object: when set, it must be this one
    Value,     // guarded by type and equality: int, float, bool, str, None, bytes
    Identity,  // guarded by identity: modules, types, functions, dtypes, enum members
    Tuple,     // exact tuple, or a named tuple of this type
    List,
    Dict,        // exact dict or OrderedDict: keys, in order
    Registered,  // a type known to torch.utils._pytree
    Anatomy,     // made by an earlier piece of the same call: an instance, a cell, a bound method, ... (anatomy.h)
    Opaque,      // only C code knows its state: of this type; not looked into. Made by an earlier piece, or an argument
                 // that is another one at each call. Much plain data that the piece did not look into. In state: a
                 // container that programs only hand on; `object`: when set, it must be this one
    Same,  // the very object that the container number `position` is; with a type: that the tuple of that number is
  };
  Kind kind = Kind::Value;
  PyRef object;  // Value: the value; Identity: the object; Tuple: the type; Dict: tuple of keys; Registered: context
  PyRef type;    // Tensor, Dict, Opaque: its type; Registered: the node type; Int: numpy.int64, when it is one
  std::vector<ArgSpec> children;
  Anatomy anatomy;  // without its parts, which are children
  uint32_t position = 0;
  int64_t length = -1;  // Opaque: how many items it has, when that is held to
  PyRef first;          // Int that is taken to vary before it has, Text: what it was when captured
  // Tuple, Value: where the program asked by `is` which one it has (Session::note_is): a number for each object that it
  // asked about, from 1 on; the one of no argument's that it is; a tuple of those that it is not.
  uint32_t asked = 0;
  PyRef is, is_not;
  // Tuple in frames: one whose number is `position`, since another stands for it (Symbols::tuples).
  bool numbered = false;
  bool looked = true;  // in state: whether the program looked into this container or object; Text: may look
  std::string path;    // "x", "kwargs['mask'][0]": for people
};

// What a call gives, in the order of the spec.
struct CallLeaves {
  c10::SmallVector<at::Tensor, 8> tensors;
  c10::SmallVector<int64_t, 4> ints;
  c10::SmallVector<uint32_t, 4> floats;       // which of the tensors are made from floats
  std::vector<PyRef> kept;                    // parts that were made to be looked at
  c10::SmallVector<PyObject*, 8> containers;  // borrowed: what may be written, in the order in which it was met
  c10::SmallVector<PyObject*, 4> tuples;      // borrowed: those with a number, in its order
  c10::SmallVector<PyObject*, 4> asked;       // borrowed: by ArgSpec::asked
  std::vector<PyRef> state;                   // what the sources in state hold (StateFacts::Input), in their order
  void clear() {
    asked.clear();
    tuples.clear();
    state.clear();
    tensors.clear();
    ints.clear();
    floats.clear();
    containers.clear();
    kept.clear();
  }
};

void add_float(CallLeaves& leaves, PyObject* number);

// Thrown when an argument cannot be guarded.
struct UnsupportedArgument {
  std::string path, type_name;
};

class SpecBuilder {
 public:
  // any_object: objects of types that are not known are guarded by identity.
  explicit SpecBuilder(const std::vector<std::string>* ints = nullptr, bool any_object = false)
      : symbolic_ints(ints), any_object_(any_object) {}
  // Of what live frames hold: objects that are the same at every call are guarded by identity, others by their parts.
  std::function<bool(PyObject*)> same_at_every_call;
  // Of a call's arguments: paths of objects that were others at other calls, which are guarded by their parts, those of
  // which only C code knows any by their types.
  const std::vector<std::string>* varying_objects = nullptr;
  // In state: paths of containers that are held to their types alone.
  const std::vector<std::string>* not_looked_into = nullptr;
  // Paths of lists that were of another length at each of many calls, which are held to their type; but for those that
  // a program looked into.
  const std::vector<std::string>*grown_lists = nullptr, *looked_into = nullptr;
  // symbolic_ints: paths of ints, floats and texts that are symbols (they varied between calls).
  const std::vector<std::string>* symbolic_ints = nullptr;
  const std::vector<std::string>* unlooked_texts = nullptr;  // Varying::texts
  bool every_int = false;                                    // not only those that varied
  bool every_container = false;  // also those that hold no symbols: deques, sets, defaultdicts
  ArgSpec build(PyObject* object, std::string path);
  // Of all that a piece is given: a tuple is the very one in all places, also where no symbol can be put.
  std::pair<ArgSpec, ArgSpec> build_both(PyObject* args, const char* path, PyObject* kwargs, const char* other_path);

 private:
  bool is_fixed_tuple(PyObject* object);
  void note_fixed_tuples(PyObject* slice);
  bool is_same_tuple(ArgSpec& spec, PyObject* object);
  void number_tuple(ArgSpec& spec, PyObject* object);
  void build_anatomy(ArgSpec& spec, PyObject* object, const Anatomy& anatomy);
  bool is_data(PyObject* object, const std::string& path) const;
  bool varies(const std::string& path) const;
  bool is_grown(const std::string& path) const;
  int enter(bool places, bool fixed);

  int fixed_depth_ = 0;   // inside of objects that no symbol can be put into, below the last one that has places
  int sealed_depth_ = 0;  // inside of objects that symbols are not looked for in
  int made_depth_ = 0;    // inside of those whose parts are made to be looked at
  bool is_symbolic(const std::string& path) const;
  bool any_object_;
  std::unordered_map<PyObject*, uint32_t> containers_, tuples_;
  std::unordered_set<PyObject*> fixed_tuples_;  // that were met where no symbol can be put
  std::vector<PyRef> kept_;                     // parts that were made to be looked at
};

// Whether it is of a kind that is held to its structure where it is another one at each call: a container, an object
// that carries data. And what it consists of.
bool is_structure(PyObject* object);
// A function, method or partial function that may be one of those that a piece of code makes at each call.
bool is_callable_by_parts(PyObject* object);
// A deque, a set, a frozen set, a defaultdict, a view of a dictionary: among the arguments they are what they are by
// identity, until they vary.
bool is_rarer_container(PyObject* object);
std::vector<PyRef> parts_of_structure(PyObject* object);

bool holds_symbol(const ArgSpec& spec);  // a symbolic number, or a text
// Whether there is a symbol in it, or what was met before, which may be an iterator or a tuple that another stands for.
bool may_be_replaced(const ArgSpec& spec);

// Of a list or a dictionary: whether it holds many constants, in tuples or not, and nothing else. A piece that did not
// look into such a one need not be held to what it holds (hand_on).
bool is_much_plain_data(const ArgSpec& spec);
void hand_on(ArgSpec& spec, bool keep_length);

// Floats that a decision looked at: later calls must give the same.
void pin_floats(ArgSpec& spec, const CallLeaves& leaves, uint64_t pinned, size_t& next);

void collect_constants(const ArgSpec& spec, std::vector<PyRef>& out);  // what is guarded by identity

// False when the object does not have this shape; `why`, when given, receives the reason. Never sets a Python error.
bool match(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why);

// The arguments with each symbolic int or float replaced by the next of `numbers`: in place where the program may
// write; all else is the caller's own objects.
struct Symbols {
  const std::vector<PyRef>& numbers;
  PlacedNumbers& placed;
  size_t next = 0;
  struct Wrapper {  // whose sizes are symbolic
    PyObject* object;
    PyRef sizes, strides;
  };
  std::vector<Wrapper> wrappers;
  std::vector<std::pair<const ArgSpec*, PyRef>> texts;  // what stands for each (texts.h)
  // Iterators that others stand for, wherever they are met again: a comprehension's lies in a variable and on the
  // stack.
  std::vector<std::pair<PyObject*, PyRef>> iterators;
  std::vector<PyRef> tuples;  // what stands for those with a number
};
PyRef with_symbols(const ArgSpec& spec, PyObject* object, Symbols& symbols);

// (leaf objects, context, type) of a torch.utils._pytree node; empty ref when the type is not registered.
struct RegisteredNode {
  PyRef children, context;
};
bool flatten_registered(PyObject* object, RegisteredNode& out);
PyRef unflatten_registered(PyObject* type, PyObject* children, PyObject* context);

int visit(const ArgSpec& spec, visitproc visit, void* arg);  // for the cycle collector

}  // namespace cresset::frontend
