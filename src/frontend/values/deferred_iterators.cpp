#include "frontend/values/deferred_iterators.h"

#include <algorithm>
#include <string_view>

#include "frontend/cpython/containers.h"

namespace cresset::frontend {
namespace {

thread_local LateIterators* innermost = nullptr;

bool complains_of_changes(PyObject* iterator) {
  return std::string_view(Py_TYPE(iterator)->tp_name).ends_with("collections._deque_iterator") ||
         goes_over_dict(iterator);
}

// Both objects have the same C type, which holds only references and numbers.
void exchange_contents(PyObject* a, PyObject* b) {
  auto *const mine = reinterpret_cast<char*>(a), *const its = reinterpret_cast<char*>(b);
  std::swap_ranges(mine + sizeof(PyObject), mine + Py_TYPE(a)->tp_basicsize, its + sizeof(PyObject));
}

}  // namespace

LateIterators::LateIterators() : around_(std::exchange(innermost, this)) {}
LateIterators::~LateIterators() {
  if (innermost == this) innermost = around_;
}

void LateIterators::settle(PyRef (*make)(const ObjectLayout&)) {
  innermost = around_;
  for (const auto& [iterator, layout] : made_) {
    const PyRef now = make(layout);
    if (Py_TYPE(now.get()) == Py_TYPE(iterator.get())) exchange_contents(iterator.get(), now.get());
  }
  made_.clear();
}

void note_made_iterator(PyObject* made, const ObjectLayout& layout) {
  if (innermost != nullptr && complains_of_changes(made)) innermost->made_.emplace_back(PyRef::borrow(made), layout);
}

}  // namespace cresset::frontend
