// Guards on state outside of the arguments: torch's modes, and the modules which the function can reach.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "bridge/aten/torch_modes.h"
#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// torch's modes, and those of Python's.
struct TorchState : bridge::TorchModes {
  uintptr_t modes = 0;  // the stacks of __torch_function__ and __torch_dispatch__ modes
  bool operator==(const TorchState&) const = default;

  static TorchState now();
  // Whether set() can make it out of the other one: modes that are no objects of Python's.
  bool reachable_from(const TorchState& other) const {
    return TorchModes::reachable_from(other) && modes == other.modes;
  }
};
std::string difference(const TorchState& expected, const TorchState& got);
// The objects behind TorchState::modes, as weak references where possible.
std::vector<PyRef> modes_now();
bool are_alive(const std::vector<PyRef>& modes);
// Whether Python functions receive the tensors which autograd saves on this thread
// (torch.autograd.graph.saved_tensors_hooks). These functions must see the tensors which eager mode saves.
bool packs_saved_tensors();
inline constexpr const char* kPacking =
    "called with torch.autograd.graph.saved_tensors_hooks on, whose functions are given what eager mode saves";

// Guards on all dictionaries of a set of module trees: attributes by identity, plain values by equality. A dictionary
// with an unchanged version costs a single compare.
class ModuleGuards {
 public:
  // names_only: collects names of parameters and buffers, valid while the modules hold them; nothing is guarded.
  explicit ModuleGuards(bool names_only = false) : names_only_(names_only) {}

  // Adds a module and its submodules.
  void add(PyObject* module);
  // Adds the modules which a function can reach through its closure, its globals and its bound self.
  void add_reachable(PyObject* callable);

  bool holds(std::string* why);
  // Whether the state is the same as when it was added, ignoring versions: false after a call which wrote attributes.
  bool unchanged(std::string* why) { return holds(why); }
  bool empty() const { return dicts_.empty(); }
  // "layer.0.weight" for each parameter and buffer, for printing.
  struct NamedTensor {
    std::string name;
    PyObject* tensor;
  };
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  int visit(visitproc visit, void* arg) const;

 private:
  struct DictGuard {
    PyRef dict;
    uint64_t version = 0;
    std::vector<std::pair<PyRef, PyRef>> items;
    std::string path;
  };
  void add_dict(PyObject* dict, const std::string& path);
  void add_module(PyObject* module, const std::string& path, int depth);
  static bool compare(DictGuard& guard, std::string* why);

  bool names_only_;
  std::unordered_set<PyObject*> modules_;  // their dictionaries
  std::vector<DictGuard> dicts_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace cresset::frontend
