// Operators that read argument 0 at indices from tensors, computed by kernels: embedding, index_select, gather, index.
// A kernel reports an index out of range (runtime/index_reports.h); a device without reports has ATen run the operator.
#pragma once

#include "ops/op_def.h"

namespace cresset::ops {

struct IndexRead {
  graph::ValueId index;
  size_t dim;         // of argument 0
  bool from_the_end;  // negative indices count from the end
  size_t named = 0;   // the dimension in eager mode's error: index.Tensor counts those that have an index
};

// The indices of a node whose operator reads at indices (OpDef::index_fault); of other nodes none.
std::vector<IndexRead> index_reads(const graph::Graph& graph, const graph::Node& node);

// Whether a kernel computes the node, with reports of its indices. A program that writes to its inputs gets no reports:
// the error would come after the writes.
bool reads_in_kernels(const graph::Graph& graph, const graph::Node& node);

// Element rules (OpDef::element).
loop::ScalarId embedding_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index);
loop::ScalarId index_select_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index);
loop::ScalarId gather_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index);
loop::ScalarId index_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index);

}  // namespace cresset::ops
