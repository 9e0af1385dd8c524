#include "frontend/cache_entries/dispatch_cache.h"

#include <algorithm>

#include "frontend/cache_entries/cache_entry.h"
#include "frontend/cpython/py_objects.h"

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
  const auto known = cache_entries_.find(hash.value());
  return known != cache_entries_.end() ? &known->second : nullptr;
}

void CallHints::learn(const ArgSpec& spec) {
  const bool is_symbolic_string = spec.kind == ArgSpec::Kind::String && spec.object;
  if (spec.kind == ArgSpec::Kind::Value || spec.kind == ArgSpec::Kind::Identity || is_symbolic_string)
    telling_.insert(token(spec.object.get()));
  if (spec.kind == ArgSpec::Kind::Dict)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(spec.object.get()); ++i)
      telling_.insert(token(PyTuple_GET_ITEM(spec.object.get(), i)));
  for (const ArgSpec& child : spec.children) learn(child);
}

void CallHints::put(PyObject* args, PyObject* kwargs, const std::shared_ptr<CacheEntry>& entry) {
  if (cache_entries_.size() >= kMostHints || telling_.size() >= kMostHints) clear();
  learn(entry->args);
  learn(entry->kwargs);
  Hash hash(telling_);
  hash.add(args, kDepth);
  hash.add(kwargs, kDepth);
  Likely& likely = cache_entries_[hash.value()];
  std::erase_if(likely, [&](const std::weak_ptr<CacheEntry>& v) { return v.expired() || v.lock() == entry; });
  likely.insert(likely.begin(), entry);
  if (likely.size() > kFew) likely.pop_back();
}

void CallHints::clear() {
  cache_entries_.clear();
  telling_.clear();
}

}  // namespace cresset::frontend
