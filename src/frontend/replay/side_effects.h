// Side effects on objects which existed before the call, as later calls replay them.
#pragma once

#include <vector>

#include "frontend/cpython/logged_write.h"
#include "frontend/replay/reconstruction.h"

namespace cresset::frontend {

struct ReplayedEffect {
  LoggedWrite::Kind kind;
  Reconstruction owner;
  PyRef key;
  std::vector<Reconstruction> values;
  PyRef kwnames;
  int operation = 0;
};

// Removes writes which a later write overwrites, with the values which they hold.
void drop_replaced(std::vector<LoggedWrite>& writes);

// Throws UnsupportedResult when a value cannot be reconstructed.
std::vector<ReplayedEffect> build_side_effects(ReconstructionBuilder& builder, const std::vector<LoggedWrite>& writes);

// Whether the owner of the effect is not among the arguments.
bool is_of_state(const ReplayedEffect& effect);

// Replaces symbolic numbers in the written values, in the containers which hold them, and in the objects of `unseen`.
// `unseen` lists objects which changed without a recorded write.
void take_symbols_out(const std::vector<LoggedWrite>& writes, const std::vector<PyRef>& unseen);

// Replays the side effects in order. No user code runs, except Python comparison and hash functions of the values.
void replay(const std::vector<ReplayedEffect>& side_effects, Ingredients& with);

int visit(const ReplayedEffect& effect, visitproc visit, void* arg);

// Whether the write sets a global of a torch module, for example the depth of transforms. torch's code restores the
// global when an exception passes.
bool is_counter_of_torch(const LoggedWrite& write);

// The value which an attribute write stored in its owner, read by C code alone. Returns nothing for an attribute which
// a Python descriptor stores. Empty, perhaps with an exception set: no value.
PyRef held_attribute(PyObject* owner, PyObject* name);
// Sets an attribute without calling a setter of the program.
void set_attribute(PyObject* owner, PyObject* name, PyObject* value);

}  // namespace cresset::frontend
