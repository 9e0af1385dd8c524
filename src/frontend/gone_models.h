// Variants of models, and of other objects that calls were given, which are gone. What a variant is held to by identity
// it keeps alive, lest another object come to lie at that address; one that nothing but compiled functions keeps no
// caller can pass any more: no later call has it, and its variants go, and it with them.
#pragma once

#include <cstdint>

namespace cresset::frontend {

class CompiledFunction;

// Compiled functions that live, under the GIL.
void add_live_function(CompiledFunction* function);
void remove_live_function(CompiledFunction* function);

// Drops them in all compiled functions; how many there were. Costs a walk over what all variants hold.
int64_t drop_of_gone_models();

// Likewise, when a variant was captured: once in a while, so that it costs little beside the captures.
void drop_of_gone_models_in_turn();

}  // namespace cresset::frontend
