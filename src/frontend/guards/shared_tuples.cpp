// Objects in several places of the inputs. For tuples with varying numbers, the same substitute replaces all
// occurrences.
#include <algorithm>

#include "frontend/guards/arg_spec.h"

namespace cresset::frontend {

// Slices, sets, iterators and dictionary keys keep the original tuple, with plain numbers. The segment then specializes
// these numbers for all occurrences of the tuple.
bool SpecBuilder::is_fixed_tuple(PyObject* object) {
  if (fixed_depth_ == 0) return fixed_tuples_.count(object) != 0;
  if (fixed_tuples_.insert(object).second) kept_.push_back(PyRef::borrow(object));
  return false;
}

void SpecBuilder::note_fixed_tuples(PyObject* object) {
  const auto* const slice = (const PySliceObject*)object;
  for (PyObject* part : {slice->start, slice->stop, slice->step})
    if (PyTuple_Check(part)) fixed_tuples_.insert(part);
}

// A tuple in two places stays a single object when it is replaced. It is numbered after its items: an occurrence inside
// of itself, through a list, has no substitute yet.
void SpecBuilder::number_tuple(ArgSpec& spec, PyObject* object) {
  if (fixed_depth_ != 0 || !may_be_replaced(spec)) return;
  const auto position = static_cast<uint32_t>(tuples_.size());
  spec.numbered = tuples_.emplace(object, position).second;
  spec.position = position;
  if (spec.numbered) kept_.push_back(PyRef::borrow(object));  // prevents reuse of its address
}

bool SpecBuilder::is_same_tuple(ArgSpec& spec, PyObject* object) {
  const auto found = fixed_depth_ == 0 ? tuples_.find(object) : tuples_.end();
  if (found == tuples_.end()) return false;
  spec.kind = ArgSpec::Kind::Same;
  spec.type = PyRef::borrow((PyObject*)Py_TYPE(object));
  spec.position = found->second;
  return true;
}

// Whether the container was met before. If so, the spec says that it is the same object.
bool SpecBuilder::is_repeated(ArgSpec& spec, PyObject* object) {
  if (containers_.emplace(object, containers_.size()).second) return false;
  spec.kind = ArgSpec::Kind::Same;
  spec.position = containers_.at(object);
  return true;
}

std::pair<ArgSpec, ArgSpec> SpecBuilder::build_both(PyObject* args, const char* path, PyObject* kwargs,
                                                    const char* other_path) {
  for (;;) {
    ArgSpec first = build(args, path);
    std::pair<ArgSpec, ArgSpec> both(std::move(first), build(kwargs, other_path));
    const auto is_fixed = [&](const auto& numbered) { return fixed_tuples_.count(numbered.first) != 0; };
    if (std::none_of(tuples_.begin(), tuples_.end(), is_fixed)) return both;
    containers_.clear();
    tuples_.clear();
  }
}

}  // namespace cresset::frontend
