#include "frontend/cache_entries/released_inputs.h"

namespace cresset::frontend {
namespace {

constexpr size_t kVariables = 2, kStack = 3;  // indices in frame contents

size_t count_tensors(const ArgSpec& spec) {
  size_t count = spec.kind == ArgSpec::Kind::Tensor || spec.kind == ArgSpec::Kind::Float ? 1 : 0;
  for (const ArgSpec& child : spec.children) count += count_tensors(child);
  return count;
}

void collect(const ArgSpec& variables, Py_ssize_t frame, size_t part, size_t leaf, const bridge::GuardedProgram& entry,
             std::vector<PlaceInFrames>& out) {
  for (size_t i = 0; i < variables.children.size(); ++i) {
    const ArgSpec& variable = variables.children[i];
    if (variable.kind == ArgSpec::Kind::Tensor && entry.lets_go_of(leaf))
      out.push_back({frame, static_cast<Py_ssize_t>(part), static_cast<Py_ssize_t>(i)});
    leaf += count_tensors(variable);
  }
}

}  // namespace

std::vector<PlaceInFrames> released_inputs(const CacheEntry& cache_entry) {
  std::vector<PlaceInFrames> out;
  if (cache_entry.program == nullptr) return out;
  size_t leaf = 0;
  for (size_t f = 0; f < cache_entry.args.children.size(); ++f) {
    const ArgSpec& frame = cache_entry.args.children[f];
    for (size_t part = 0; part < frame.children.size(); ++part) {
      const bool plain = frame.kind == ArgSpec::Kind::Tuple && frame.children[part].kind == ArgSpec::Kind::Tuple;
      if (plain && (part == kVariables || part == kStack))
        collect(frame.children[part], static_cast<Py_ssize_t>(f), part, leaf, *cache_entry.program, out);
      leaf += count_tensors(frame.children[part]);
    }
  }
  return out;
}

void take_out(const std::vector<PlaceInFrames>& released, PyObject* frames) {
  for (const PlaceInFrames& at : released) {
    PyObject* const variables = PyTuple_GET_ITEM(PyTuple_GET_ITEM(frames, at.frame), at.part);
    if (Py_REFCNT(variables) != 1) continue;
    PyObject* const tensor = PyTuple_GET_ITEM(variables, at.variable);
    PyTuple_SET_ITEM(variables, at.variable, Py_NewRef(Py_None));
    Py_DECREF(tensor);
  }
}

}  // namespace cresset::frontend
