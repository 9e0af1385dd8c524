// Cache entries for dead models and other dead arguments. A cache entry keeps the objects in its identity guards alive,
// so that no address is reused. If only compiled functions still hold an object, no later call can pass it. Entries
// which guard the object are then dropped, and the object dies with them.
#pragma once

#include <cstdint>

namespace cresset::frontend {

class CompiledFunction;

// Registry of live compiled functions, under the GIL.
void add_live_function(CompiledFunction* function);
void remove_live_function(CompiledFunction* function);
void clear_live_functions();  // drops all of their cache entries, as cresset.reset() does

// Drops the entries of dead objects in all compiled functions and returns their number. The function walks all objects
// held by all entries.
int64_t drop_of_gone_models();

// Calls drop_of_gone_models() after some captures only, so that its cost stays small beside the captures.
void drop_of_gone_models_locked();

}  // namespace cresset::frontend
