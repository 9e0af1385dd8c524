#include "frontend/variants/dispatch_cache.h"

#include <algorithm>

#include "frontend/cpython/py_objects.h"
#include "frontend/variants/cache_entry.h"

namespace cresset::frontend {
namespace {

constexpr size_t kMostHints = 4096;
constexpr int kDepth = 3;  // includes the variables of frames

size_t mixed(size_t hash, size_t part) {
  hash = (hash ^ part) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

// A hash of a plain value, or the address of an object compared by identity.
size_t token(PyObject* object) {
  const bool plain = PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object);
  return plain ? mixed(static_cast<size_t>(PyObject_Hash(object)), reinterpret_cast<size_t>(Py_TYPE(object)))
               : reinterpret_cast<size_t>(object);
}

}  // namespace

class CallHints::Hash {
 public:
  explicit Hash(const std::unordered_set<size_t>& telling) : telling_(telling) {}

  void add(PyObject* object, int depth) {
    mix(reinterpret_cast<size_t>(Py_TYPE(object)));
    if (is_tensor(object)) return tensor(tensor_of(object));
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
    if (const size_t one = token(object); telling_.contains(one)) mix(one);
  }
  size_t value() const { return hash_; }

 private:
  void tensor(const at::Tensor& t) {
    mix(static_cast<size_t>(t.scalar_type()) * 64 + static_cast<size_t>(t.dim()));
    if (t.layout() != at::kStrided) return;
    for (const int64_t size : t.sizes()) mix(static_cast<size_t>(size));
  }
  void mix(size_t part) { hash_ = mixed(hash_, part); }

  const std::unordered_set<size_t>& telling_;
  size_t hash_ = 0;
};

const CallHints::Likely* CallHints::find(PyObject* args, PyObject* kwargs) const {
  Hash hash(telling_);
  hash.add(args, kDepth);
  hash.add(kwargs, kDepth);
  const auto known = variants_.find(hash.value());
  return known != variants_.end() ? &known->second : nullptr;
}

void CallHints::learn(const ArgSpec& spec) {
  const bool is_text = spec.kind == ArgSpec::Kind::Text && spec.object;
  if (spec.kind == ArgSpec::Kind::Value || spec.kind == ArgSpec::Kind::Identity || is_text)
    telling_.insert(token(spec.object.get()));
  if (spec.kind == ArgSpec::Kind::Dict)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(spec.object.get()); ++i)
      telling_.insert(token(PyTuple_GET_ITEM(spec.object.get(), i)));
  for (const ArgSpec& child : spec.children) learn(child);
}

void CallHints::put(PyObject* args, PyObject* kwargs, const std::shared_ptr<Variant>& variant) {
  if (variants_.size() >= kMostHints || telling_.size() >= kMostHints) clear();
  learn(variant->args);
  learn(variant->kwargs);
  Hash hash(telling_);
  hash.add(args, kDepth);
  hash.add(kwargs, kDepth);
  Likely& likely = variants_[hash.value()];
  std::erase_if(likely, [&](const std::weak_ptr<Variant>& v) { return v.expired() || v.lock() == variant; });
  likely.insert(likely.begin(), variant);
  if (likely.size() > kFew) likely.pop_back();
}

void CallHints::clear() {
  variants_.clear();
  telling_.clear();
}

}  // namespace cresset::frontend
