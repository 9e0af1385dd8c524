// Which bf16 and f16 values are rounded although a kernel holds them in f32.
#pragma once

#include <unordered_set>

#include "graph/graph.h"

namespace cresset::fuse {

using RoundedValues = std::unordered_set<graph::ValueId>;

// Those that decide something: what a comparison, a conversion to integers or a rounding to whole numbers reads, and
// all that leads there. Digits that eager rounded away would not make such a result nearer to the truth but another
// one: of two values that eager finds equal, one would be greater. Other values keep their digits up to where they are
// stored.
RoundedValues values_that_decide(const graph::Graph& graph);

}  // namespace cresset::fuse
