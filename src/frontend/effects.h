// Writes to objects that were there before the call, as later calls repeat them.
#pragma once

#include <vector>

#include "frontend/recipe.h"
#include "frontend/session.h"

namespace cresset::frontend {

struct Effect {
  Write::Kind kind;
  Recipe owner;
  PyRef key;
  std::vector<Recipe> values;
  PyRef kwnames;
  int operation = 0;
};

// Writes that have no effect are gone, with the values that they keep.
void drop_replaced(std::vector<Write>& writes);

// Throws UnsupportedResult when a value has no recipe.
std::vector<Effect> build_effects(RecipeBuilder& builder, const std::vector<Write>& writes);

// Whether its owner is none of the arguments.
bool is_of_state(const Effect& effect);

// The values that were written are plain numbers from now on, and what they were written into holds such: likewise
// `unseen`, which no write speaks of.
void take_symbols_out(const std::vector<Write>& writes, const std::vector<PyRef>& unseen);

// Repeats them in order. None runs Python code of the user's, unless a value's own comparison or hash is Python.
void replay(const std::vector<Effect>& effects, Ingredients& with);

int visit(const Effect& effect, visitproc visit, void* arg);

// A name of one of torch's modules, which its code has put back when an exception passed: how deep transforms are.
bool is_counter_of_torch(const Write& write);

// What a write of an attribute has left with its owner itself, asked for by C code alone: of one that a descriptor in
// Python keeps, nothing. Empty, perhaps with an exception: there is none.
PyRef held_attribute(PyObject* owner, PyObject* name);
// Likewise: no setter of the program's runs.
void set_attribute(PyObject* owner, PyObject* name, PyObject* value);

}  // namespace cresset::frontend
