// A fast test whether the objects of guards were touched since the guards last held. Hundreds of objects are tested at
// each call, so memory access dominates. The compared fields therefore lie in dense arrays, in the order of addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {

// Dictionaries. Each change of any dictionary assigns a version above all earlier versions. When the guards on several
// dictionaries hold, they hold as long as no version exceeds the maximum seen then.
class DictWatch {
 public:
  // The position of a dictionary is its index in this list. Initially no guard is known to hold.
  explicit DictWatch(const std::vector<PyObject*>& dicts = {}) : positions_(dicts.size()) {
    std::iota(positions_.begin(), positions_.end(), 0u);
    std::sort(positions_.begin(), positions_.end(), [&](uint32_t a, uint32_t b) { return dicts[a] < dicts[b]; });
    for (const uint32_t position : positions_) dicts_.push_back(dicts[position]);
  }
  size_t size() const { return dicts_.size(); }

  bool unchanged() const {
    for (PyObject* dict : dicts_)
      if (is_newer(dict)) return false;
    return true;
  }
  // Ascending positions of the dictionaries which may have changed.
  std::vector<uint32_t> changed() const {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < dicts_.size(); ++i)
      if (is_newer(dicts_[i])) out.push_back(positions_[i]);
    std::sort(out.begin(), out.end());
    return out;
  }
  // Records that the guards on the changed dictionaries hold.
  void all_hold() {
    for (PyObject* dict : dicts_) newest_ = std::max(newest_, dict_version(dict));
  }

 private:
  bool is_newer(PyObject* dict) const { return dict_version(dict) - 1 >= newest_; }  // always true for version 0

  std::vector<PyObject*> dicts_;  // by address
  std::vector<uint32_t> positions_;
  uint64_t newest_ = 0;
};

// Objects with guards on their classes and on their attribute dictionaries.
struct HeldObject {
  PyObject* object;
  PyTypeObject* type;
  PyObject* const* place;  // of the dictionary
  PyObject* dict;
  bool unchanged() const { return Py_TYPE(object) == type && *place == dict; }
};

}  // namespace cresset::frontend
