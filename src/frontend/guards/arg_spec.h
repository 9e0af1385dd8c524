// The structure of a call: containers, tensors, numbers and constants among the arguments. The spec is built at capture
// and checked at every call. The check gathers the tensors and integers for the compiled code.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/placed_symbols.h"

namespace cresset::frontend {

struct ArgSpec {
  enum class Kind : uint8_t {
    Tensor,    // a tensor of this type: torch.Tensor, Parameter, a subclass without attributes of its own
    Int,       // an int which is symbolic in the program
    Float,     // a symbolic float: a tensor of one f64 among the leaves. object: when set, the required value
    String,    // a str which the program does not inspect. object: when set, the required value
    Value,     // guarded by type and equality: int, float, bool, str, None, bytes
    Identity,  // guarded by identity: modules, types, functions, dtypes, enum members
    Tuple,     // exact tuple, or a named tuple of this type
    List,
    Dict,          // exact dict or OrderedDict: keys, in order
    Registered,    // a type known to torch.utils._pytree
    ObjectLayout,  // an object of the same call from an earlier graph segment: instance, cell, bound method, ...
                   // (object_layout.h)
    Opaque,        // an object of this type which is not inspected: only C code knows its state, and an earlier segment
             // created it or each call passes another object. Also a large container of plain data which the segment
             // did not inspect. In state: a container which programs only pass on; `object`: when set, the required
             // object
    Same,  // the same object as the container number `position`; with a type: the same object as the tuple of this
           // number
  };
  Kind kind = Kind::Value;
  PyRef object;  // Value: the value; Identity: the object; Tuple: the type; Dict: tuple of keys; Registered: context
  PyRef type;    // Tensor, Dict, Opaque: its type; Registered: the node type; Int: numpy.int64 for numpy integers
  std::vector<ArgSpec> children;
  ObjectLayout layout;  // without its parts, which are the children
  uint32_t position = 0;
  int64_t length = -1;  // Opaque: the required number of items; negative: any
  PyRef first;          // the value at capture of a Text, and of an Int which became symbolic before it varied
  // Tuple, Value: set where the program compared the object with `is` (`ReadLog::note_is`). `asked` numbers the
  // compared objects from 1 on. `is` is the object outside the arguments which it must be; `is_not` is a tuple of the
  // objects which it must not be.
  uint32_t asked = 0;
  PyRef is, is_not;
  // Tuple in frames: a tuple with the number `position`, because a substitute takes its place (`Symbols::tuples`).
  bool numbered = false;
  bool looked = true;  // in state: whether the program inspected this container or object; Text: may inspect
  std::string path;    // "x", "kwargs['mask'][0]": for messages
};

// The leaves of a call, in the order of the spec.
struct CallLeaves {
  c10::SmallVector<at::Tensor, 8> tensors;
  c10::SmallVector<int64_t, 4> ints;
  c10::SmallVector<uint32_t, 4> floats;       // positions of the tensors made from floats
  std::vector<PyRef> kept;                    // parts which `decompose()` created
  c10::SmallVector<PyObject*, 8> containers;  // borrowed: containers which the program may write, in traversal order
  c10::SmallVector<PyObject*, 4> tuples;      // borrowed: numbered tuples, by number
  c10::SmallVector<PyObject*, 4> asked;       // borrowed: by ArgSpec::asked
  std::vector<PyRef> state;  // the values at the sources in state (StateGuards::Input), in the order of the sources
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
  // any_object: objects of unknown types are guarded by identity.
  explicit SpecBuilder(const std::vector<std::string>* ints = nullptr, bool any_object = false)
      : symbolic_ints(ints), any_object_(any_object) {}
  // For frame contents: whether the object is the same at every call. Such objects are guarded by identity, all other
  // objects by their parts.
  std::function<bool(PyObject*)> same_at_every_call;
  // For call arguments: paths of objects whose identity differed between calls. They are guarded by their parts;
  // objects whose state only C code knows are guarded by type.
  const std::vector<std::string>* varying_objects = nullptr;
  // For state: paths of containers which are guarded by type alone.
  const std::vector<std::string>* not_looked_into = nullptr;
  // Paths of lists whose length differed at each of many calls. They are guarded by type, except the lists which a
  // program inspected.
  const std::vector<std::string>*growing_lists = nullptr, *looked_into = nullptr;
  // symbolic_ints: paths of ints, floats and strings which are symbols, because they varied between calls.
  const std::vector<std::string>* symbolic_ints = nullptr;
  const std::vector<std::string>* uninspected_strings = nullptr;  // Varying::texts
  bool every_int = false;                                         // also ints which have not varied
  bool every_container = false;  // also containers without symbols: deques, sets, defaultdicts
  ArgSpec build(PyObject* object, std::string path);
  // Builds the specs of all inputs of a graph segment. A tuple is the same tuple in all places, including places where
  // no symbol can be stored.
  std::pair<ArgSpec, ArgSpec> build_both(PyObject* args, const char* path, PyObject* kwargs, const char* other_path);

 private:
  bool is_fixed_tuple(PyObject* object);
  void note_fixed_tuples(PyObject* slice);
  bool is_same_tuple(ArgSpec& spec, PyObject* object);
  void number_tuple(ArgSpec& spec, PyObject* object);
  void build_child(ArgSpec& spec, PyObject* item, const std::string& suffix);
  void build_items(ArgSpec& spec, PyObject* sequence);
  bool is_repeated(ArgSpec& spec, PyObject* object);
  bool build_opaque(ArgSpec& spec, PyObject* object);
  bool build_tensor_or_same(ArgSpec& spec, PyObject* object);
  bool build_value(ArgSpec& spec, PyObject* object);
  bool build_container(ArgSpec& spec, PyObject* object);
  bool build_by_parts(ArgSpec& spec, PyObject* object);
  bool build_identity(ArgSpec& spec, PyObject* object);
  void build_layout(ArgSpec& spec, PyObject* object, const ObjectLayout& layout);
  bool is_data(PyObject* object, const std::string& path) const;
  bool varies(const std::string& path) const;
  bool is_growing(const std::string& path) const;
  int enter(bool places, bool fixed);

  int fixed_depth_ = 0;   // nesting depth inside objects which cannot hold a symbol, below the last object with places
  int sealed_depth_ = 0;  // nesting depth inside objects which are not searched for symbols
  int made_depth_ = 0;    // nesting depth inside objects whose parts `decompose()` creates
  bool is_symbolic(const std::string& path) const;
  bool any_object_;
  std::unordered_map<PyObject*, uint32_t> containers_, tuples_;
  std::unordered_set<PyObject*> fixed_tuples_;  // tuples met where no symbol can be stored
  std::vector<PyRef> kept_;                     // parts which `decompose()` created
};

// A function, method or partial function which the same source code may create again at each call.
bool is_callable_by_parts(PyObject* object);
// A deque, set, frozen set, defaultdict or dictionary view. Among the arguments they are guarded by identity until they
// vary.
bool is_rarer_container(PyObject* object);
std::vector<PyRef> parts_of_structure(PyObject* object);

bool holds_symbol(const ArgSpec& spec);  // a symbolic number or a string
// Whether the spec contains a symbol, or a repeated object, which may be an iterator or a tuple with a substitute.
bool may_be_replaced(const ArgSpec& spec);

// Whether a list or a dictionary holds many constants, possibly in tuples, and nothing else. A graph segment which did
// not inspect the container needs no guard on its contents (`hand_on`).
bool is_much_plain_data(const ArgSpec& spec);
void hand_on(ArgSpec& spec, bool keep_length);

// Guards the values of floats which a decision inspected; later calls must pass equal values.
void specialize_floats(ArgSpec& spec, const CallLeaves& leaves, uint64_t specialized, size_t& next);

void collect_constants(const ArgSpec& spec, std::vector<PyRef>& out);  // objects guarded by identity

// Returns false when the object does not have this structure; `why`, when not null, receives the reason. Never sets a
// Python error.
bool match(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why);

// The arguments with each symbolic int or float replaced by the next entry of `numbers`. Objects which the program may
// write are changed in place; all other objects are the caller's.
struct Symbols {
  const std::vector<PyRef>& numbers;
  PlacedNumbers& placed;
  size_t next = 0;
  struct Wrapper {  // wrapper tensors with symbolic sizes
    PyObject* object;
    PyRef sizes, strides;
  };
  std::vector<Wrapper> wrappers;
  std::vector<std::pair<const ArgSpec*, PyRef>> texts;  // the substitute for each string (symbolic_strings.h)
  // Substitutes for iterators, reused at every occurrence: a comprehension's iterator lies in a variable and on the
  // stack.
  std::vector<std::pair<PyObject*, PyRef>> iterators;
  std::vector<PyRef> tuples;  // substitutes for the numbered tuples
};
PyRef with_symbols(const ArgSpec& spec, PyObject* object, Symbols& symbols);

// (leaf objects, context, type) of a torch.utils._pytree node; empty refs when the type is not registered.
struct RegisteredNode {
  PyRef children, context;
};
bool flatten_registered(PyObject* object, RegisteredNode& out);
PyRef unflatten_registered(PyObject* type, PyObject* children, PyObject* context);

int visit(const ArgSpec& spec, visitproc visit, void* arg);  // for the cycle collector

}  // namespace cresset::frontend
