// How the right variant is found among many, without looking through them.
#pragma once

#include <memory>
#include <unordered_map>

#include "frontend/py_ref.h"

namespace cresset::frontend {

struct Variant;

// Which variant served calls that looked alike. A hint: the variant is checked as any other is.
class CallHints {
 public:
  static constexpr size_t kFew = 4;  // as many are looked through faster than hashed
  // Of what is cheap to read: types, plain values, identities, and the dtypes and sizes of tensors.
  static size_t hash_of(PyObject* args, PyObject* kwargs);
  std::shared_ptr<Variant> find(size_t hash) const;
  void put(size_t hash, const std::shared_ptr<Variant>& variant);
  void clear() { variants_.clear(); }

 private:
  std::unordered_map<size_t, std::weak_ptr<Variant>> variants_;
};

}  // namespace cresset::frontend
