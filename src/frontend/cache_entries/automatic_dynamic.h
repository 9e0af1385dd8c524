// Automatic dynamic inputs: values which differed between calls of a function, or between arrivals at a resume point.
// At the next capture such a value is an input of the program, or is guarded by its parts instead of by identity or
// value.
#pragma once

#include <string>
#include <vector>

#include "frontend/cache_entries/cache_entry.h"

namespace cresset::frontend {

// Compares this call with the cache entries which did not fit. Drops the entries which no later call can fit and
// returns their number. floats: whether floats may become symbols. In a traced call they may not, since the program
// could detect the symbol with isinstance.
int64_t learn(AutomaticDynamic& automatic_dynamic, CacheEntries& cache_entries, const ArgSpec& args,
              const ArgSpec& kwargs, bool floats);

// Configures the builder with the varying values which learn() found.
void tell_what_varies(const AutomaticDynamic& automatic_dynamic, SpecBuilder& builder);

// Makes the values at the sources in state inputs, where their kind permits. builder: the builder for the call's
// arguments. numbers: whether symbols may be stored there.
void take_state(StateGuards& guards, const AutomaticDynamic& automatic_dynamic, SpecBuilder& builder, bool numbers);

// Marks sizes and numbers computed from them as varying before a second call shows it, since they depend on the call's
// tensors. `path`: the ArgSpec path of the object which `reconstruction` creates.
void expect_numbers(AutomaticDynamic& automatic_dynamic, const Reconstruction& reconstruction, const std::string& path);

// The same for numbers from the operation between two segments. kwargs: of the second segment.
void expect_result(AutomaticDynamic& automatic_dynamic, PyObject* kwargs);

// Whether eval() creates functions with new code at the same place, so that no later call can use the following
// segments.
bool is_other_code_each_time(const CacheEntries& resume_entries, PyObject* value);

}  // namespace cresset::frontend
