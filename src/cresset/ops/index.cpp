// Reading at indices in tensors: embedding, index_select, gather, index, take. On a GPU kernels read and report an
// index out of range (index_reads.h). Elsewhere ATen runs these operators, and checks the indices.
#include "base/device_traits.h"
#include "ops/families.h"
#include "ops/index_reads.h"
#include "ops/rule_helpers.h"
#include "ops/view_groups.h"

namespace cresset::ops {
namespace {

using graph::OptionalValue;
using graph::TensorType;
using sym::ExprId;
using sym::ExprPool;

bool is_index(const TensorType& type) { return type.dtype == DType::I64 || type.dtype == DType::I32; }

Result<Types> embedding_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &weight = args.tensor(0), &indices = args.tensor(1);
  if (weight.rank() != 2) return shapes.invalid("the weight must be a matrix");
  if (!is_index(indices)) return shapes.invalid("the indices must be integers");
  Sizes sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return one(contiguous_like(shapes, weight, std::move(sizes)));
}

Result<Types> index_select_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &index = args.tensor(2);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), self.rank()));
  if (index.rank() > 1) return shapes.invalid("the index must be a vector");
  if (!is_index(index)) return shapes.invalid("the index must be integers");
  Sizes sizes = self.sizes;
  if (!sizes.empty()) sizes[size_t(dim)] = graph::numel(shapes.pool(), index.sizes);
  return one(contiguous_like(shapes, self, std::move(sizes)));
}

// A kernel reads the other dimensions at the index of the result. Eager mode raises for a larger index.
void fit_beside(ShapeContext& shapes, const TensorType& self, const TensorType& index, size_t dim) {
  for (size_t d = 0; d < std::min(self.rank(), index.rank()); ++d)
    if (d != dim) static_cast<void>(shapes.decide(shapes.pool().le(index.sizes[d], self.sizes[d])));
}

Result<Types> gather_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &index = args.tensor(2);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), self.rank()));
  const bool empty =
      shapes.proved(shapes.pool().eq(graph::numel(shapes.pool(), index.sizes), shapes.pool().constant(0)));
  if (!is_index(index) && !empty) return shapes.invalid("the index must be integers");
  if (std::max<size_t>(self.rank(), 1) != std::max<size_t>(index.rank(), 1))
    return shapes.invalid("the index has another number of dimensions");
  if (traits_of(self.device.kind).reports_indices && !empty) fit_beside(shapes, self, index, static_cast<size_t>(dim));
  return one(contiguous_like(shapes, self, index.sizes));
}

Result<Types> take_shape(ShapeContext& shapes, const OpArgs& args) {
  return one(contiguous_like(shapes, args.tensor(0), args.tensor(1).sizes));
}

// ---- index.Tensor(self, indices): a missing index keeps its whole dimension

// The position of the indexed dimensions in the result: at the first indexed dimension when they are adjacent, else in
// front.
struct Indexing {
  std::vector<size_t> dims;  // of self, indexed
  size_t front = 0;          // dimensions of the result before the indices' dimensions
  Sizes sizes;               // of the indices, broadcast
};

Result<Indexing> indexing_of(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const std::vector<OptionalValue>& indices = args.values(1);
  if (indices.size() > self.rank()) return shapes.invalid("there are more indices than dimensions");
  Indexing out;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    const TensorType& index = args.type(*indices[i]);
    if (index.dtype == DType::Bool || index.dtype == DType::U8)
      return Fallback{FallbackReason::DataDependent, "indexing with a mask", "use torch.where to keep the shape"};
    if (!is_index(index)) return shapes.invalid("the indices must be integers or masks");
    CRESSET_TRY(out.sizes, shapes.broadcast(out.sizes, index.sizes));
    out.dims.push_back(i);
  }
  if (out.dims.empty()) return shapes.unsupported("no index at all");
  const bool neighbours = out.dims.back() - out.dims.front() + 1 == out.dims.size();
  out.front = neighbours ? out.dims.front() : 0;
  return out;
}

// An operand as seen by the indexing loop: a stride of 0 along dimensions of the result which do not move it.
TensorType spread_index(ShapeContext& shapes, const TensorType& index, const Indexing& indexing, const Sizes& sizes) {
  TensorType out = with_shape(index, sizes, Sizes(sizes.size(), shapes.pool().constant(0)));
  const size_t end = indexing.front + indexing.sizes.size();
  for (size_t i = 0; i < index.rank(); ++i)
    if (!is_one(shapes.env(), index.sizes[i])) out.strides[end - index.rank() + i] = index.strides[i];
  return out;
}

Result<Types> index_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY(const Indexing indexing, indexing_of(shapes, args));
  Sizes sizes, strides;
  size_t next = 0;
  for (size_t dim = 0; dim < self.rank(); ++dim) {
    if (sizes.size() == indexing.front && next == 0) {
      sizes.insert(sizes.end(), indexing.sizes.begin(), indexing.sizes.end());
      strides.insert(strides.end(), indexing.sizes.size(), shapes.pool().constant(0));
    }
    if (next < indexing.dims.size() && indexing.dims[next] == dim) {
      ++next;
      continue;
    }
    sizes.push_back(self.sizes[dim]);
    strides.push_back(self.strides[dim]);
  }
  TensorType out = with_shape(self, sizes, {});
  const TensorType source = with_shape(self, sizes, strides);
  std::vector<TensorType> spread;
  for (const size_t dim : indexing.dims)
    spread.push_back(spread_index(shapes, args.type(*args.values(1)[dim]), indexing, sizes));
  std::vector<const TensorType*> operands{&source};
  for (const TensorType& type : spread) operands.push_back(&type);
  out.strides = shapes.pointwise_strides(sizes, operands);
  return one(std::move(out));
}

// The indexed elements, filled where the mask is false, which broadcasts with them.
Result<Types> masked_index_shape(ShapeContext& shapes, const OpArgs& args) {
  const std::vector<graph::Arg> indexing{args[0], args[2]};
  CRESSET_TRY(const Types indexed, index_shape(shapes, OpArgs(args.graph(), indexing)));
  CRESSET_TRY(Sizes sizes, shapes.broadcast(indexed[0].sizes, args.tensor(1).sizes));
  return one(contiguous_like(shapes, indexed[0], std::move(sizes)));
}

// ---- _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
// include_last_offset, padding_idx) -> (output, offset2bag, bag_size, max_indices)

// The CPU's kernels omit results which their derivatives do not read. Runs on zeros tell which.
Result<Types> embedding_bag_shape(ShapeContext& shapes, const OpArgs& args) {
  constexpr int64_t kMax = 2;  // the mode
  const TensorType &weight = args.tensor(0), &indices = args.tensor(1), &offsets = args.tensor(2);
  if (weight.device.kind == DeviceKind::Cpu) return shapes.unsupported("results that depend on the kernel");
  if (weight.rank() != 2 || indices.rank() != 1 || offsets.rank() != 1)
    return shapes.invalid("needs a matrix, and vectors of indices and offsets");
  if (!is_index(indices) || !is_index(offsets)) return shapes.invalid("the indices must be integers");
  ExprPool& pool = shapes.pool();
  ExprId bags = offsets.sizes[0];
  if (args.flag(7)) {  // the last offset begins no bag
    if (!shapes.require(pool.ge(bags, pool.constant(1)))) return shapes.invalid("there is no last offset");
    bags = shapes.env().simplify(pool.sub(bags, pool.constant(1)));
  }
  const DType integers = indices.dtype == offsets.dtype ? indices.dtype : DType::I64;
  const Sizes output{bags, weight.sizes[1]};
  const bool max = shapes.constant(args.integer(4)) == kMax;
  return Types{contiguous_like(shapes, weight, output), contiguous_like(shapes, weight, indices.sizes, integers),
               contiguous_like(shapes, weight, offsets.sizes, integers),
               contiguous_like(shapes, weight, max ? output : Sizes{pool.constant(0)}, integers)};
}

constexpr OpTraits kBags{.raises = Raises::Anything, .inference = Inference::RunsOften};

constexpr OpDef kIndexOps[] = {
    {.schema = "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
               "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
               "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     .op_class = kExtern,
     .shape = embedding_bag_shape,
     .traits = kBags},
    {.schema = "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
               "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
               "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     .op_class = kExtern,
     .shape = embedding_bag_shape,
     .traits = kBags},
    {.schema = "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "
               "bool sparse=False) -> Tensor",
     .op_class = kExtern,
     .shape = embedding_shape,
     .element = embedding_element,
     .index_fault = IndexFault::InSelf,
     .traits = {.raises = Raises::Rows}},
    {.schema = "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
     .op_class = kExtern,
     .shape = index_select_shape,
     .element = index_select_element,
     .index_fault = IndexFault::InSelf,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
     .op_class = kExtern,
     .shape = gather_shape,
     .element = gather_element,
     .index_fault = IndexFault::AtRuntime,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::take(Tensor self, Tensor index) -> Tensor",
     .op_class = kExtern,
     .shape = take_shape,
     .traits = {.raises = Raises::Elements}},
    {.schema = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     .op_class = kExtern,
     .shape = index_shape,
     .element = index_element,
     .index_fault = IndexFault::OfDimension,
     .traits = {.raises = Raises::List, .mixes_devices = true}},
    {.schema = "aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = masked_index_shape,
     .traits = {.checks = Checks::Nothing}},
    {.schema = "aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     .op_class = kExtern,
     .shape = index_shape,
     .traits = {.checks = Checks::Nothing, .mixes_devices = true}},
};

}  // namespace

std::span<const OpDef> index_ops() { return kIndexOps; }

}  // namespace cresset::ops
