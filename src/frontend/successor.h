#pragma once

#include <memory>

#include "frontend/compiled_function.h"

namespace cresset::frontend {

// What an operation gave, as a piece's kwargs.
PyRef outcome(PyObject* value, PyObject* exception);

// Whether the piece is for these frames, and what the operation before it gave.
bool begins_with(Variant& piece, const TorchState& state, PyObject* frames, PyObject* kwargs);

// A variant for what follows a break, with its guards on the frames (args) and the operation's result (kwargs). nullptr
// when these cannot be guarded, or there are too many. numbers: those that varied are symbols, which frames that are
// made anew can be given.
std::shared_ptr<Variant> make_successor(const CompileOptions& options, const Break& last, const TorchState& state,
                                        PyObject* frames, PyObject* kwargs, bool numbers);

}  // namespace cresset::frontend
