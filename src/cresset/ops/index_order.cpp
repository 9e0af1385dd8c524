// Sorting, selection by rank, running extremes, and searching in sorted tensors: called through ATen.
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using sym::ExprId;

Types with_indices(TensorType values) {
  Types out(2, std::move(values));
  out[1].dtype = DType::I64;
  return out;
}

template <size_t kDimArg>
Result<Types> sort_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY([[maybe_unused]] const int64_t dim, shapes.wrap_dim(args.integer(kDimArg), self.rank()));
  return with_indices(with_shape(self, self.sizes, shapes.like_strides(self)));
}

Result<Types> topk_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(2), self.rank()));
  const ExprId k = args.integer(1);
  const ExprId size = self.rank() == 0 ? shapes.pool().constant(1) : self.sizes[size_t(dim)];
  if (!shapes.require(shapes.pool().ge(k, shapes.pool().constant(0))) || !shapes.require(shapes.pool().le(k, size)))
    return shapes.invalid("k is out of range for the dimension");
  Sizes sizes = self.sizes;
  if (!sizes.empty()) sizes[size_t(dim)] = k;
  return with_indices(contiguous_like(shapes, self, std::move(sizes)));
}

// A single element along a dimension, with its value and its position: kthvalue, median, mode.
template <size_t kDimArg>
Result<Types> picked_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(kDimArg), self.rank()));
  Sizes sizes = self.sizes;
  if (!sizes.empty()) {
    if (!shapes.require(shapes.pool().ge(sizes[size_t(dim)], shapes.pool().constant(1))))
      return shapes.invalid("the dimension has no elements");
    if (args.flag(kDimArg + 1))
      sizes[size_t(dim)] = shapes.pool().constant(1);
    else
      sizes.erase(sizes.begin() + std::ptrdiff_t(dim));
  }
  return with_indices(contiguous_like(shapes, self, std::move(sizes)));
}

// (self, k, dim, keepdim): the k-th smallest, counted from 1.
Result<Types> kthvalue_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(2), self.rank()));
  sym::ExprPool& pool = shapes.pool();
  const sym::ExprId k = args.integer(1), count = self.rank() == 0 ? pool.constant(1) : self.sizes[size_t(dim)];
  if (!shapes.require(pool.ge(k, pool.constant(1))) || !shapes.require(pool.le(k, count)))
    return shapes.invalid("k is out of range for the dimension");
  return picked_shape<2>(shapes, args);
}

Result<Types> running_extreme_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY([[maybe_unused]] const int64_t dim, shapes.wrap_dim(args.integer(1), self.rank()));
  return with_indices(contiguous_like(shapes, self, self.sizes));
}

Result<Types> logcumsumexp_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY([[maybe_unused]] const int64_t dim, shapes.wrap_dim(args.integer(1), self.rank()));
  return one(contiguous_like(shapes, self, self.sizes));
}

// bucketize(self, boundaries, out_int32), searchsorted(sorted, self, out_int32)
template <size_t kSelfArg>
Result<Types> search_shape(ShapeContext& shapes, const OpArgs& args) {
  if (!args.is_tensor(0) || !args.is_tensor(1)) return shapes.unsupported("searching for a number");
  const TensorType& self = args.tensor(kSelfArg);
  return one(contiguous_like(shapes, self, self.sizes, args.flag(2) ? DType::I32 : DType::I64));
}

constexpr OpDef kIndexOrderOps[] = {
    {.schema = "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
     .op_class = kExtern,
     .shape = sort_shape<1>},
    {.schema = "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, "
               "Tensor indices)",
     .op_class = kExtern,
     .shape = sort_shape<2>},
    {.schema = "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
               "Tensor indices)",
     .op_class = kExtern,
     .shape = topk_shape},
    {.schema =
         "aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .op_class = kExtern,
     .shape = kthvalue_shape},
    {.schema = "aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .op_class = kExtern,
     .shape = picked_shape<1>},
    {.schema = "aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .op_class = kExtern,
     .shape = picked_shape<1>},
    {.schema = "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .op_class = kExtern,
     .shape = picked_shape<1>},
    {.schema = "aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
     .op_class = kExtern,
     .shape = running_extreme_shape},
    {.schema = "aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
     .op_class = kExtern,
     .shape = running_extreme_shape},
    {.schema = "aten::logcumsumexp(Tensor self, int dim) -> Tensor", .op_class = kExtern, .shape = logcumsumexp_shape},
    {.schema =
         "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
     .op_class = kExtern,
     .shape = search_shape<0>},
    {.schema = "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
               "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
     .op_class = kExtern,
     .shape = search_shape<1>,
     .traits = {.raises = Raises::Anything}},
};

}  // namespace

std::span<const OpDef> index_order_ops() { return kIndexOrderOps; }

}  // namespace cresset::ops
