// What the program may still change when a piece has ended.
#pragma once

#include <Python.h>

namespace cresset::frontend {

class RecipeBuilder;
class Session;

// Of a container, an instance or a cell that functions of autograd's record look at: whether what follows the piece may
// change it before the backward pass. recipes: of the piece's end.
bool lives_on(PyObject* object, const RecipeBuilder& recipes, const Session& session, bool at_break);

}  // namespace cresset::frontend
