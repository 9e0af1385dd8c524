// How to make a call's result again: the structure the function returned, with tensors and sizes to be filled in.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/capture.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

struct Recipe {
  enum class Kind : uint8_t {
    Tensor,      // captured output `position`
    Number,      // a size expression: value `position` of the entry's numbers
    Boolean,     // likewise, as a bool
    Constant,    // this very object: holds nothing that varies
    Shared,      // made before, as object `position`: two names for one object stay one object
    Tuple, List, Dict, Registered,
    Object,      // a plain Python object made in the call: its type and its __dict__
  };
  Kind kind = Kind::Constant;
  uint32_t position = 0;
  int32_t shared_slot = -1;  // containers and objects: where the made object is remembered
  PyRef object;              // Constant: it; Tuple: type; Dict: keys; Registered: context; Object: attribute names
  PyRef type;
  std::vector<Recipe> children;
};

// A result that no recipe can rebuild.
struct UnsupportedResult {
  std::string path, type_name;
};

class RecipeBuilder {
 public:
  explicit RecipeBuilder(bridge::Capture& capture) : capture_(capture) {}
  Recipe build(PyObject* object, const std::string& path);

  std::vector<at::Tensor> tensors;            // in the order of Recipe::position
  std::vector<sym::ExprId> numbers;
  uint32_t shared_slots = 0;

 private:
  bool contains_traced(PyObject* object, int depth);
  Recipe build_object(PyObject* object, const std::string& path);
  void children_of(Recipe& recipe, PyObject* tuple, const std::string& path);

  bridge::Capture& capture_;
  std::unordered_map<PyObject*, int32_t> made_;
  std::unordered_map<c10::TensorImpl*, uint32_t> tensor_positions_;
};

// Makes the result. tensors[i] is the Python object of captured output i.
PyRef make(const Recipe& recipe, const std::vector<PyRef>& tensors, const std::vector<int64_t>& numbers,
           std::vector<PyRef>& shared);

int visit(const Recipe& recipe, visitproc visit, void* arg);

}  // namespace cresset::frontend
