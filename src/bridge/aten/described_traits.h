// What torch's schema and tags say about an operator.
#pragma once

#include "ops/op_traits.h"

namespace cresset::bridge {

// Random numbers by the tag nondeterministic_seeded, and the argument which is the probability of dropout. Read once
// for an operator of torch.
ops::OpTraits described_traits(graph::OpId op);

}  // namespace cresset::bridge
