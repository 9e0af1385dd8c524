#include "frontend/call_hints.h"

#include "frontend/py_objects.h"
#include "frontend/variant.h"

namespace cresset::frontend {
namespace {

constexpr size_t kMostHints = 4096;

class CallHash {
 public:
  void add(PyObject* object, int depth) {
    mix(reinterpret_cast<size_t>(Py_TYPE(object)));
    if (is_tensor(object)) return tensor(tensor_of(object));
    if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object))
      return mix(static_cast<size_t>(PyObject_Hash(object)));
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
      mix(static_cast<size_t>(size));
      for (Py_ssize_t i = 0; depth > 0 && i < size; ++i) add(PySequence_Fast_GET_ITEM(object, i), depth - 1);
      return;
    }
    if (PyDict_CheckExact(object)) {
      PyObject *key, *value;
      Py_ssize_t position = 0;
      while (depth > 0 && PyDict_Next(object, &position, &key, &value)) {
        add(key, 0);
        add(value, depth - 1);
      }
      return;
    }
    mix(reinterpret_cast<size_t>(object));
  }
  size_t value() const { return hash_; }

 private:
  void tensor(const at::Tensor& t) {
    mix(static_cast<size_t>(t.scalar_type()) * 64 + static_cast<size_t>(t.dim()));
    if (t.layout() != at::kStrided) return;
    for (const int64_t size : t.sizes()) mix(static_cast<size_t>(size));
  }
  void mix(size_t part) { hash_ = (hash_ ^ part) * 0x9E3779B97F4A7C15ull, hash_ ^= hash_ >> 29; }
  size_t hash_ = 0;
};

}  // namespace

size_t CallHints::hash_of(PyObject* args, PyObject* kwargs) {
  CallHash hash;
  hash.add(args, 3);
  hash.add(kwargs, 3);
  return hash.value();
}

std::shared_ptr<Variant> CallHints::find(size_t hash) const {
  const auto known = variants_.find(hash);
  return known != variants_.end() ? known->second.lock() : nullptr;
}

void CallHints::put(size_t hash, const std::shared_ptr<Variant>& variant) {
  if (variants_.size() >= kMostHints) variants_.clear();
  variants_[hash] = variant;
}

}  // namespace cresset::frontend
