// Arrays of numpy that a piece made itself, of values that are the same at every call: numpy computes them while the
// piece is captured, with no break, and no later call computes them again. A tensor made of one is a constant of the
// program; one that lives on is made anew by each call (RecipeBuilder). Arrays that depend on what varies, or that were
// there before, are what foreign.h says.
#pragma once

#include <functional>
#include <unordered_map>

#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

class KnownArrays {
 public:
  bool any() const { return !roots_.empty(); }
  void clear() { roots_.clear(); }

  // Whether the object is one, or a view of one.
  bool knows(PyObject* object) const { return any() && root_of(object) != nullptr; }
  bool knows_any(const CressetCall& call) const;  // among arguments, or in containers among them
  // Whether the object is the same at every call: a constant, a known array, a tuple, list or slice of those. `varies`:
  // tells of objects that may look so and are not.
  using Varies = std::function<bool(PyObject*)>;
  bool is_same(PyObject* object, const Varies& varies) const;

  // Whether it is numpy's alone to compute, and does nothing else than that, save to known arrays: numpy.zeros((3, 2)),
  // array.sum(axis=0).
  bool computes(const CressetCall& call, const Varies& varies) const;
  bool makes_text(const CressetCall& call) const;  // of one, as numpy's options have it
  static bool is_operator(PyObject* callable);     // of the module of that name
  // torch.tensor, torch.as_tensor, torch.from_numpy, of known arrays.
  bool makes_tensor(const CressetCall& call, const Varies& varies) const;

  // What numpy computed. False: it holds an array that may be more than its values (of objects, of a subclass).
  bool add(PyObject* result);
  // Whether nothing but the call in progress, and what else is over once it is done, refers to the array or its memory:
  // a tensor may have a copy of it then.
  bool is_only_given(PyObject* array, const CressetActivation& activation) const;

  struct Parts {
    PyRef maker, of, constant;  // maker(constant), or maker(of, constant), where `of` is the array that it is a view of
  };
  // How each call makes one like it; no maker: it cannot.
  Parts take_apart(PyObject* array) const;

 private:
  bool are_same(const CressetCall& call, const Varies& varies) const;
  PyObject* root_of(PyObject* object) const;  // borrowed

  std::unordered_map<PyObject*, PyRef> roots_;  // what has memory of its own
};

}  // namespace cresset::frontend
