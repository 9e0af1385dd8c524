// What differed between calls of a function, or between arrivals at a point of it: at the next capture it is an input
// of the program, or guarded by its parts, where it was pinned before.
#pragma once

#include <string>
#include <vector>

#include "frontend/variant.h"

namespace cresset::frontend {

// Compares this call with the variants that did not fit. Variants that no later call can fit are dropped: how many.
// floats: they may become symbols, too. What is traced would see that those are none (isinstance): not there.
int64_t learn(Varying& varying, Variants& variants, const ArgSpec& args, const ArgSpec& kwargs, bool floats);

// Has it build what varied as learn() found it.
void tell_what_varies(const Varying& varying, SpecBuilder& builder);

// Makes inputs of what lies at the sources in state, where it is of a kind that can be one. builder: that of the call's
// arguments. numbers: whether symbols may be there.
void take_state(StateFacts& facts, const Varying& varying, SpecBuilder& builder, bool numbers);

// Sizes and what was computed of them: they vary with the call's tensors, before a second call shows it. `path`: of
// what `recipe` makes, as ArgSpec names it.
void expect_numbers(Varying& varying, const Recipe& recipe, const std::string& path);

// Likewise numbers that the operation between two pieces gave. kwargs: of the second one.
void expect_result(Varying& varying, PyObject* kwargs);

// Functions that eval() made at one place have codes of their own: none of the pieces that follow has another call.
bool is_other_code_each_time(const Variants& successors, PyObject* value);

}  // namespace cresset::frontend
