// Reports about calls, for stats() and the log: why they were compiled again, why they ran eagerly.
#pragma once

#include <Python.h>

#include <string>

#include "frontend/cache_entries/cache_entry.h"

namespace cresset::frontend {

// The name of a function for messages; of a module's call: the class of the module.
std::string name_of(PyObject* function);

// The failed guard of a call for readers: "argument x: dtype Float -> Double" for "args[0]: expected dtype Float, got
// Double". `function` has the names of the parameters.
std::string readable_guard(PyObject* function, const std::string& failure);

void note_recompile(const std::string& line);
void record_break(CacheEntry& entry, const std::string& name);

// A call under a debugger, a profiler or coverage runs eagerly: noted once for each function, and a warning once in a
// process. Returns false with CaptureError set where the function must be captured whole.
bool note_watched(const std::string& name, bool fullgraph);

}  // namespace cresset::frontend
