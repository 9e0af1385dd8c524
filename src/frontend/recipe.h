// How to make a call's result again: the structure the function returned, with tensors and sizes to be filled in.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/capture.h"
#include "frontend/anatomy.h"
#include "frontend/known_arrays.h"
#include "frontend/py_ref.h"

namespace cresset::bridge {
class SymNode;
}

namespace cresset::frontend {

inline constexpr long kStateRoot = 2;  // the first step of paths (Recipe::Kind::Argument) into state

struct Recipe {
  enum class Kind : uint8_t {
    Tensor,        // captured output `position`
    TensorObject,  // likewise, as an instance of `type` with attributes: `object` has their names, the children their
                   // values
    Number,        // a size expression: value `position` of the entry's numbers; a `type` of numpy's, or an int
    Boolean,       // likewise, as a bool
    Float,         // the number in captured output `position`
    Quotient,      // number `position` by the one after it; Product: by the float `object`
    Product,
    Text,      // what an operation gives: `object` is (its kind, operation, positional, kwnames), the children operands
    Constant,  // this very object: holds nothing that varies
    Argument,  // a container among the arguments, or in state: `object` is the tuple of keys that lead to it from
               // (args, kwargs, what the sources in state held)
    Shared,    // made before, as object `position`: two names for one object stay one object
    Tuple,
    List,
    Sum,  // of two lists
    Dict,
    Registered,
    DictionaryOf,  // the __dict__ of the object that was made as object `position`
    Anatomy,       // an instance, a cell, a bound method, a function, an iterator that the call made (anatomy.h)
  };
  Kind kind = Kind::Constant;
  uint32_t position = 0;
  int32_t shared_slot = -1;  // containers and objects: where the made object is remembered
  PyRef object;              // Constant: it; Tuple: type; Dict: keys; Registered: context; Anatomy: form
  PyRef type;
  bool unlooked = false;  // a text that pieces should not look at (Varying::texts)
  Anatomy::Kind anatomy = Anatomy::Kind::None;
  int32_t reuse = -1;  // Anatomy: of this one of the piece's generators (Fate), which gets other contents
  std::vector<Recipe> children;
};

// What becomes of a generator or an exception among a piece's arguments: it is finished, or made to stand where it
// stands afterwards.
struct Fate {
  PyRef path;  // as of Recipe::Kind::Argument
  bool lives_on = false;
  Recipe recipe;
};

// Of an object that no recipe rebuilds, since what it is about would be held.
inline constexpr const char* kTellsDeath = "which tells when an object dies,";

// Whether a path of an argument goes by containers alone: not into objects, whose parts are taken apart to be seen.
bool leads_through_containers(PyObject* path);

// A result that no recipe can rebuild.
struct UnsupportedResult {
  std::string path, type_name;
  PyObject* address = nullptr;  // borrowed: an int that is one
};

class RecipeBuilder {
 public:
  explicit RecipeBuilder(bridge::Capture& capture) : capture_(capture) {}
  Recipe build(PyObject* object, const std::string& path);
  // Objects of the call's own that live on.
  bool makes(PyObject* object) const { return made_.count(object) != 0; }
  template <class F>
  void each_made(F&& tell) const {
    for (const auto& [object, slot] : made_) tell(object);
  }
  // Told by a session: which objects were there before the call. Those are constants; all others are made anew. Without
  // it, what holds nothing that varies is taken for a constant.
  std::function<bool(PyObject*)> existed;
  // Of a list: that it is the sum of one that nobody looked into, and of a tuple's items; empty for others.
  std::function<std::pair<PyRef, PyRef>(PyObject*)> sum_of;
  std::function<bool(PyObject*)> is_of_call;  // made by the call, or among its arguments: another one at each call
  std::function<PyObject*(PyObject*)> argument_path;  // nullptr when the object is no container among the arguments

  // Of a generator that lives on: its function. One that was never resumed read nothing of it.
  std::function<void(PyObject*)> holds_function;
  std::function<int32_t(PyObject*)> generator_number;  // which of the piece's generators it is; -1
  std::function<bool(PyObject*)> is_older;             // a tuple of constants that was there before the call
  std::function<bool(PyObject*)> is_opaque;            // handed on, whatever it is
  std::function<bool(PyObject*)> is_address;           // an int that is another one at each call
  const KnownArrays* arrays = nullptr;                 // that the piece made

  std::vector<PyRef> tracebacks;    // of exceptions that live on
  bool behind_break = false;        // what is built is held until the next piece ends: nothing may tell when it dies
  bool in_inference = false;        // tensors among them are of inference mode, though it is off
  bool outside_inference = false;   // and are not
  std::vector<at::Tensor> tensors;  // in the order of Recipe::position
  std::vector<sym::ExprId> numbers;
  uint32_t shared_slots = 0;

 private:
  Recipe build_number(PyObject* object, const std::string& path);
  Recipe build_text(PyObject* object, const std::string& path);
  Recipe float_recipe(bridge::SymNode& node);
  uint32_t position_of(bridge::TraceTensor* trace);
  bool contains_traced(PyObject* object, int depth);
  bool is_made_anew(PyObject* object) const;
  Recipe build_tensor(PyObject* object, const std::string& path);
  Recipe build_array(PyObject* array, const std::string& path);
  Recipe build_tensor_object(PyObject* object, bridge::TraceTensor* trace, PyObject* attributes,
                             const std::string& path);
  Recipe build_made(PyObject* object, const std::string& path);
  bool tells_when_it_dies(PyObject* object, const Anatomy& anatomy) const;
  Recipe build_anatomy(PyObject* object, const std::string& path);
  void no_address(PyObject* number, const std::string& path) const;  // throws UnsupportedResult
  void no_moving_key(PyObject* key, const std::string& path) const;  // likewise
  void children_of(Recipe& recipe, PyObject* tuple, const std::string& path);

  bridge::Capture& capture_;
  std::unordered_map<PyObject*, int32_t> made_;
  std::unordered_map<PyObject*, int32_t> dictionaries_;  // of instances that are made: of which one
  std::vector<PyRef> kept_;                              // parts of objects: some are made to be looked at
  std::unordered_set<int32_t> unfinished_;
  std::unordered_set<PyObject*> looked_into_;  // by contains_traced
  std::unordered_map<c10::TensorImpl*, uint32_t> tensor_positions_;
};

// What recipes are made with in one call.
struct Ingredients {
  std::vector<PyRef> tensors;  // [i]: the Python object of captured output i
  std::vector<int64_t> numbers;
  std::vector<PyRef> shared;                        // objects made so far, by slot
  std::vector<PyRef> generators;                    // among the arguments, by number
  std::vector<std::pair<PyRef, Anatomy>> refilled;  // generators and iterators, when all else is made
  PyObject *args = nullptr, *kwargs = nullptr;
  std::vector<PyRef> state;  // CallLeaves::state
};
PyRef make(const Recipe& recipe, Ingredients& with);
// Before anything is made; and when everything is.
void find_generators(const std::vector<Fate>& fates, Ingredients& with);
void settle_generators(const std::vector<Fate>& fates, Ingredients& with);

// The objects that it gives at every call, where they are not plain values.
void collect_constants(const Recipe& recipe, std::unordered_set<PyObject*>& out);

int visit(const Recipe& recipe, visitproc visit, void* arg);

}  // namespace cresset::frontend
