#include "ops/scan.h"

#include "base/device_traits.h"
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using loop::Combine;

// Arguments: self, dim, dtype.
DType result_dtype(const OpArgs& args) {
  const DType self = args.tensor(0).dtype;
  return args.dtype(2).value_or(is_integral(self) ? DType::I64 : self);
}

Result<Types> running_fold_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY([[maybe_unused]] const int64_t dim, shapes.wrap_dim(args.integer(1), self.rank()));
  return one(contiguous_like(shapes, self, self.sizes, result_dtype(args)));
}

template <Combine C>
Reduction running_fold(const graph::Graph&, const OpArgs& args, size_t) {
  const auto rank = static_cast<int64_t>(args.tensor(0).rank());
  const int64_t dim = args.constant(1);
  return {C, {dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim}, true, compute_dtype(result_dtype(args))};
}

loop::ScalarId running_fold_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return operand(context, args, 0, index, result_dtype(args)).id;
}

constexpr OpDef kScanOps[] = {
    {.schema = "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     .op_class = kExtern,
     .shape = running_fold_shape,
     .element = running_fold_element,
     .reduction = running_fold<Combine::Sum>},
    {.schema = "aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     .op_class = kExtern,
     .shape = running_fold_shape,
     .element = running_fold_element,
     .reduction = running_fold<Combine::Prod>},
};

}  // namespace

std::span<const OpDef> scan_ops() { return kScanOps; }

bool scans_in_kernels(const graph::Graph& graph, const graph::Node& node) {
  constexpr int64_t kFewRows = 32, kShortRow = 16384;
  const OpDef* def = find(node.op);
  if (def == nullptr || !is_scan(*def)) return false;
  const TensorType& type = graph.type(node.results[0]);
  if (!traits_of(type.device.kind).has_scans || compute_dtype(type.dtype) == DType::Bool) return false;
  const auto dim = static_cast<size_t>(def->reduction(graph, OpArgs(graph, node.args), 0).dims[0]);
  int64_t rows = 1, length = 1;
  for (size_t d = 0; d < type.rank(); ++d)
    (d == dim ? length : rows) *= graph.env().typical_or(type.sizes[d], kFewRows);
  return rows >= kFewRows || length <= kShortRow;
}

}  // namespace cresset::ops
