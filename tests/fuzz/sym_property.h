// One random case of each property of the symbolic engine. A failure is a text; empty means that the case held.
#pragma once

#include <cstdint>
#include <string>

namespace cresset::sym::testing {

// Canonical forms keep their value, are stable under rebuilding, and survive print and parse.
std::string check_canonical_form(uint64_t seed);
// Whatever ranges, guards and index bounds decide, simplify or bound agrees with brute force.
std::string check_facts(uint64_t seed);
// Index arithmetic of reshapes: flat indices over random extents, divided by their partial products and others.
std::string check_index_arithmetic(uint64_t seed);
// Minimized guards, compiled, accept exactly the sizes that all recorded guards accept.
std::string check_minimized_guards(uint64_t seed);

// Z3 refutes no step taken for random guards and expressions, nor that the minimized guards are the recorded ones.
std::string check_proofs(uint64_t seed);

}  // namespace cresset::sym::testing
