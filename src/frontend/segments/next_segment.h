#pragma once

#include <memory>

#include "frontend/cache_entries/cache_entry.h"
#include "frontend/cache_entries/compile_options.h"
#include "frontend/guards/torch_modes.h"

namespace cresset::frontend {

// The result of an operation as the kwargs of a graph segment.
PyRef outcome(PyObject* value, PyObject* exception);

// Whether the segment accepts these frames and the result of the operation before it.
bool begins_with(CacheEntry& segment, const TorchState& state, PyObject* frames, PyObject* kwargs);

// A cache entry for the code after a graph break, with guards on the frames (args) and the operation's result (kwargs).
// nullptr when these cannot be guarded, or when there are too many entries. numbers: numbers which varied become
// symbols, which only newly created frames can receive.
std::shared_ptr<CacheEntry> make_resume_entry(const CompileOptions& options, const Break& last, const TorchState& state,
                                              PyObject* frames, PyObject* kwargs, bool numbers);

}  // namespace cresset::frontend
