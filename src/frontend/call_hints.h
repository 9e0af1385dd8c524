// How the right variant is found among many, without looking through them.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/py_ref.h"

namespace cresset::frontend {

struct ArgSpec;
struct Variant;

// Which variants served calls that looked alike. A hint: a variant is checked as any other is.
//
// Calls look alike by types, by dtypes and sizes of tensors, and by those plain values and identities that some variant
// is held to: objects that are made anew at each call, and numbers that are symbols, tell no variants apart.
class CallHints {
 public:
  static constexpr size_t kFew = 4;  // as many are looked through faster than hashed
  using Likely = std::vector<std::weak_ptr<Variant>>;
  const Likely* find(PyObject* args, PyObject* kwargs) const;  // at most kFew, the last that served first; or nullptr
  void put(PyObject* args, PyObject* kwargs, const std::shared_ptr<Variant>& variant);
  void clear();

 private:
  class Hash;
  void learn(const ArgSpec& spec);

  std::unordered_map<size_t, Likely> variants_;
  std::unordered_set<size_t> telling_;  // values and identities that variants are held to
};

}  // namespace cresset::frontend
