// Whether what facts speak of was touched at all since they were found to hold. Hundreds of objects are asked at each
// call: what is compared lies in arrays of nothing else, in the order of addresses, and memory is what it takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "frontend/py_objects.h"

namespace cresset::frontend {

// Dictionaries. Each change of any dictionary gives it a version above all that were given before: when facts about
// several of them hold, they hold for as long as no version exceeds the greatest one seen then.
class DictWatch {
 public:
  // A dictionary's position is the one in this list. Nothing is known of what holds.
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
  // Positions, ascending, of those that may have changed.
  std::vector<uint32_t> changed() const {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < dicts_.size(); ++i)
      if (is_newer(dicts_[i])) out.push_back(positions_[i]);
    std::sort(out.begin(), out.end());
    return out;
  }
  // What is to hold of those that changed was found to hold.
  void all_hold() {
    for (PyObject* dict : dicts_) newest_ = std::max(newest_, dict_version(dict));
  }

 private:
  bool is_newer(PyObject* dict) const { return dict_version(dict) - 1 >= newest_; }  // of version 0: always

  std::vector<PyObject*> dicts_;  // by address
  std::vector<uint32_t> positions_;
  uint64_t newest_ = 0;
};

// Objects, held to their classes and to the dictionaries in which they keep their attributes.
struct HeldObject {
  PyObject* object;
  PyTypeObject* type;
  PyObject* const* place;  // of the dictionary
  PyObject* dict;
  bool unchanged() const { return Py_TYPE(object) == type && *place == dict; }
};

}  // namespace cresset::frontend
