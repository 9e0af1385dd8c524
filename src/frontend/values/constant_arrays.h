// Constant arrays: numpy arrays which a segment created from values which are the same at every call. numpy computes
// them during capture, without a graph break, and no later call computes them again. A tensor made from a constant
// array is a constant of the program. An array which outlives the segment is created anew by each call
// (ReconstructionBuilder). Arrays which depend on varying values, or which existed before, are foreign objects
// (opaque_objects.h).
#pragma once

#include <functional>
#include <unordered_map>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

class ConstantArrays {
 public:
  bool any() const { return !roots_.empty(); }
  void clear() { roots_.clear(); }

  // Whether the object is a constant array or a view of a constant array.
  bool knows(PyObject* object) const { return any() && root_of(object) != nullptr; }
  bool knows_any(const CressetCall& call) const;  // among arguments, or in containers among them
  // Whether the object is the same at every call: a constant, a constant array, or a tuple, list or slice of these.
  // `varies` reports objects which only appear constant.
  using Varies = std::function<bool(PyObject*)>;
  bool is_same(PyObject* object, const Varies& varies) const;

  // Whether numpy alone computes the call, with no side effect outside of constant arrays: numpy.zeros((3, 2)),
  // array.sum(axis=0).
  bool computes(const CressetCall& call, const Varies& varies) const;
  bool makes_string(const CressetCall& call) const;  // a string of an array, according to numpy's print options
  static bool is_operator(PyObject* callable);       // of the module `operator`
  // torch.tensor, torch.as_tensor, torch.from_numpy, applied to constant arrays.
  bool makes_tensor(const CressetCall& call, const Varies& varies) const;

  // Adds an array which numpy computed. Returns false when its state exceeds its values: an object array, a subclass.
  bool add(PyObject* result);
  // Whether the array and its memory are referenced only by the call in progress and by temporaries. A tensor may then
  // take a copy of the array.
  bool is_only_given(PyObject* array, const CressetActivation& activation) const;

  struct Parts {
    PyRef maker, of, constant;  // maker(constant), or maker(of, constant) for a view of the array `of`
  };
  // The parts from which each call creates an equal array; without maker: no call can.
  Parts decompose(PyObject* array) const;

 private:
  bool are_same(const CressetCall& call, const Varies& varies) const;
  PyObject* root_of(PyObject* object) const;  // borrowed

  std::unordered_map<PyObject*, PyRef> roots_;  // arrays with memory of their own
};

}  // namespace cresset::frontend
