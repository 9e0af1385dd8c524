// Reconstruction (`Reconstruction`) of a call's result: the structure which the function returned, with places for
// tensors and sizes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/capture/capture.h"
#include "frontend/cpython/py_ref.h"
#include "frontend/values/constant_arrays.h"
#include "frontend/values/object_layout.h"

namespace cresset::bridge {
class SymNode;
}

namespace cresset::frontend {

inline constexpr long kStateRoot = 2;  // first step of paths (Recipe::Kind::Argument) into state

struct Reconstruction {
  enum class Kind : uint8_t {
    Tensor,        // captured output `position`
    TensorObject,  // a captured output as an instance of `type` with attributes: names in `object`, values in the
                   // children
    Number,        // a size expression: value `position` of the entry's numbers; of a numpy `type`, or an int
    Boolean,       // a number as a bool
    Float,         // the number in captured output `position`
    Quotient,      // number `position` divided by the next number; Product: multiplied by the float `object`
    Product,
    String,  // the string result of an operation: `object` is (its kind, operation, positional, kwnames), the children
             // are the operands
    Constant,  // this very object, which holds nothing that varies
    Argument,  // a container among the arguments or in state: `object` is the tuple of keys which lead to it from
               // (args, kwargs, values at the sources in state)
    Shared,    // object `position`, created before: two references to the same object stay the same object
    Tuple,
    List,
    Sum,  // concatenation of two lists
    Dict,
    Registered,
    DictionaryOf,  // the __dict__ of the created object `position`
    ObjectLayout,  // an instance, cell, bound method, function or iterator of the call (object_layout.h)
  };
  Kind kind = Kind::Constant;
  uint32_t position = 0;
  int32_t shared_slot = -1;  // containers and objects: the slot which remembers the created object
  PyRef object;              // Constant: it; Tuple: type; Dict: keys; Registered: context; Anatomy: form
  PyRef type;
  bool unlooked = false;  // a string which segments should not inspect (Varying::texts)
  ObjectLayout::Kind layout = ObjectLayout::Kind::None;
  int32_t reuse = -1;  // Anatomy: number of the generator of the segment (Fate) which is refilled instead
  std::vector<Reconstruction> children;
};

// The final state of a generator or exception among the arguments of a segment: finished, or moved to a new position.
struct Fate {
  PyRef path;  // as in Recipe::Kind::Argument
  bool lives_on = false;
  Reconstruction reconstruction;
};

// Reason: an object observes the death of another object, so a reconstruction would keep that object alive.
inline constexpr const char* kTellsDeath = "which tells when an object dies,";

// Whether an argument path leads through containers only, and not into objects, whose parts `decompose()` creates.
bool leads_through_containers(PyObject* path);

// A result which no reconstruction can rebuild.
struct UnsupportedResult {
  std::string path, type_name;
  PyObject* address = nullptr;  // borrowed: an int which is an address
  BreakKind kind = BreakKind::NoReconstruction;
  bool in_frames = false;  // the path begins at the frames of a graph break
  // Whether running the surrounding call as a whole may help: for an address in the memo of copy.deepcopy(), and for a
  // C object inside of its own method. Other objects depend on the time of their death.
  bool helps_as_a_whole = true;
};

class ReconstructionBuilder {
 public:
  explicit ReconstructionBuilder(bridge::Capture& capture) : capture_(capture) {}
  Reconstruction build(PyObject* object, const std::string& path);
  // item(): the position in this tuple of the item whose reconstruction has begun last; -1: none.
  void number_items_of(PyObject* tuple) { numbered_ = tuple, item_ = -1; }
  Py_ssize_t item() const { return item_; }
  // The call's own objects which outlive the segment.
  bool makes(PyObject* object) const { return made_.count(object) != 0; }
  template <class F>
  void each_made(F&& tell) const {
    for (const auto& [object, slot] : made_) tell(object);
  }
  // Set by a session: whether an object existed before the call. Such objects are constants; all other objects are
  // created anew. Without this function, objects without varying contents count as constants.
  std::function<bool(PyObject*)> existed;
  // Whether a list is the concatenation of an uninspected list and the items of a tuple; empty for other lists.
  std::function<std::pair<PyRef, PyRef>(PyObject*)> sum_of;
  std::function<bool(PyObject*)> is_of_call;          // from the call or its arguments: a new object at each call
  std::function<PyObject*(PyObject*)> argument_path;  // nullptr for objects other than argument containers

  // Reports the function of a generator which outlives the segment. A generator which was never resumed has not read
  // the function yet.
  std::function<void(PyObject*)> holds_function;
  std::function<int32_t(PyObject*)> generator_number;  // number among the segment's generators; -1
  std::function<bool(PyObject*)> is_older;             // a tuple of constants which existed before the call
  std::function<bool(PyObject*)> is_opaque;            // passed on uninspected
  std::function<bool(PyObject*)> is_address;           // an int which is an address and differs at each call
  const ConstantArrays* arrays = nullptr;              // created by the segment

  std::vector<PyRef> tracebacks;    // of exceptions which outlive the segment
  bool behind_break = false;        // objects are held until the next segment ends: none may observe a death
  bool in_inference = false;        // inference mode was left, but tensors belong to it
  bool outside_inference = false;   // the opposite case: ordinary tensors
  std::vector<at::Tensor> tensors;  // in the order of Recipe::position
  std::vector<sym::ExprId> numbers;
  uint32_t shared_slots = 0;

 private:
  Reconstruction build_shared_text(PyObject* object, const std::string& path);
  std::optional<Reconstruction> build_scalar(PyObject* object);
  std::optional<Reconstruction> build_given(PyObject* object, const std::string& path);
  Reconstruction build_class(PyObject* object, const std::string& path);
  std::optional<Reconstruction> build_again(PyObject* object, const std::string& path) const;
  Reconstruction build_number(PyObject* object, const std::string& path);
  Reconstruction build_string(PyObject* object, const std::string& path);
  Reconstruction float_reconstruction(bridge::SymNode& node);
  uint32_t position_of(bridge::TraceTensor* trace);
  bool contains_traced(PyObject* object, int depth);
  bool is_made_anew(PyObject* object) const;
  Reconstruction build_tensor(PyObject* object, const std::string& path);
  Reconstruction build_array(PyObject* array, const std::string& path);
  Reconstruction build_tensor_object(PyObject* object, bridge::TraceTensor* trace, PyObject* attributes,
                                     const std::string& path);
  Reconstruction build_made(PyObject* object, const std::string& path);
  bool tells_when_it_dies(PyObject* object, const ObjectLayout& layout) const;
  Reconstruction build_layout(PyObject* object, const std::string& path);
  void no_address(PyObject* number, const std::string& path) const;  // throws UnsupportedResult
  void no_moving_key(PyObject* key, const std::string& path) const;  // throws UnsupportedResult
  void children_of(Reconstruction& reconstruction, PyObject* tuple, const std::string& path);

  bridge::Capture& capture_;
  const PyObject* numbered_ = nullptr;
  Py_ssize_t item_ = -1;
  std::unordered_map<PyObject*, int32_t> made_;
  std::unordered_map<PyObject*, int32_t> dictionaries_;  // of created instances: slot of the owner
  std::vector<PyRef> kept_;                              // parts which `decompose()` created
  std::unordered_set<int32_t> unfinished_;
  std::unordered_set<PyObject*> looked_into_;  // by contains_traced
  std::unordered_map<c10::TensorImpl*, uint32_t> tensor_positions_;
};

// The inputs of reconstructions in a single call.
struct Ingredients {
  std::vector<PyRef> tensors;  // [i]: the Python object of captured output i
  std::vector<int64_t> numbers;
  std::vector<PyRef> shared;                             // objects created so far, by slot
  std::vector<PyRef> generators;                         // among the arguments, by number
  std::vector<std::pair<PyRef, ObjectLayout>> refilled;  // generators and iterators, filled after all other objects
  PyObject *args = nullptr, *kwargs = nullptr;
  std::vector<PyRef> state;  // CallLeaves::state
};
PyRef make(const Reconstruction& reconstruction, Ingredients& with);
// Called before the first and after the last reconstruction.
void find_generators(const std::vector<Fate>& fates, Ingredients& with);
void settle_generators(const std::vector<Fate>& fates, Ingredients& with);

// The objects which the reconstruction returns at every call, without plain values.
void collect_constants(const Reconstruction& reconstruction, std::unordered_set<PyObject*>& out);

int visit(const Reconstruction& reconstruction, visitproc visit, void* arg);

}  // namespace cresset::frontend
