// Reductions with a single fold: sums, products, extremes, positions of extremes, any and all.
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using loop::Combine;

// The argument positions of an overload; -1: the argument is absent (all dimensions, no keepdim, no dtype).
struct Layout {
  int dim = -1, keepdim = -1, dtype = -1;
  bool empty_means_all = true;
};

const graph::Arg kAllDims = graph::None{};
const graph::Arg& dim_arg(const OpArgs& args, Layout at) {
  return at.dim < 0 ? kAllDims : args[static_cast<size_t>(at.dim)];
}
bool keepdim_arg(const OpArgs& args, Layout at) {
  return at.keepdim >= 0 && args.flag(static_cast<size_t>(at.keepdim));
}
std::vector<int64_t> dims_of(const graph::Graph& graph, const OpArgs& args, Layout at) {
  return reduced_dims(graph, dim_arg(args, at), args.tensor(0).rank(), at.empty_means_all);
}

// ---- sum and prod: integers and booleans widen to i64 unless a dtype is given

DType folded_dtype(const OpArgs& args, Layout at) {
  const DType self = args.tensor(0).dtype;
  if (at.dtype >= 0)
    if (const std::optional<DType> dtype = args.dtype(static_cast<size_t>(at.dtype))) return *dtype;
  return is_integral(self) ? DType::I64 : self;
}

template <Layout At>
Result<Types> fold_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const DType dtype = folded_dtype(args, At);
  if (!accepts(kReal, self.dtype)) return unsupported_dtype(self.dtype, "a reduction");
  if (!accepts(kNumeric, dtype)) return unsupported_dtype(dtype, "a reduction's result");
  CRESSET_TRY(const auto dims, reduced_dims(shapes, dim_arg(args, At), self.rank(), At.empty_means_all));
  return Types{reduced_type(shapes, self, dims, keepdim_arg(args, At), dtype)};
}

template <Layout At, Combine C>
Reduction fold_reduction(const graph::Graph& graph, const OpArgs& args, size_t) {
  return {C, dims_of(graph, args, At), keepdim_arg(args, At), accumulate_dtype(folded_dtype(args, At))};
}

template <Layout At>
loop::ScalarId fold_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = folded_dtype(args, At);
  return operand(context, args, 0, index, dtype).cast(accumulate_dtype(dtype)).id;
}

template <Layout At>
loop::ScalarId nan_as_zero_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const S x = operand(context, args, 0, index, args.tensor(0).dtype);
  const S number = is_float(x.dtype()) ? select(is_nan(x), x.number(0), x) : x;
  return number.cast(accumulate_dtype(folded_dtype(args, At))).id;
}

// ---- count_nonzero: a sum of truth values

template <Layout At>
Result<Types> count_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (!accepts(kReal, self.dtype)) return unsupported_dtype(self.dtype, "count_nonzero");
  CRESSET_TRY(const auto dims, reduced_dims(shapes, dim_arg(args, At), self.rank()));
  return Types{reduced_type(shapes, self, dims, false, DType::I64)};
}
template <Layout At>
Reduction count_reduction(const graph::Graph& graph, const OpArgs& args, size_t) {
  return {Combine::Sum, dims_of(graph, args, At), false, DType::I64};
}
loop::ScalarId count_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return operand(context, args, 0, index, DType::Bool).cast(DType::I64).id;
}

// ---- any and all: bool, but u8 for u8

template <Layout At>
Result<Types> truth_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (!accepts(kReal, self.dtype)) return unsupported_dtype(self.dtype, "any and all");
  CRESSET_TRY(const auto dims, reduced_dims(shapes, dim_arg(args, At), self.rank(), At.empty_means_all));
  const DType dtype = self.dtype == DType::U8 ? DType::U8 : DType::Bool;
  return Types{reduced_type(shapes, self, dims, keepdim_arg(args, At), dtype)};
}
template <Layout At, Combine C>
Reduction truth_reduction(const graph::Graph& graph, const OpArgs& args, size_t) {
  return {C, dims_of(graph, args, At), keepdim_arg(args, At), DType::Bool};
}
loop::ScalarId truth_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return operand(context, args, 0, index, DType::Bool).id;
}

// ---- extremes: ATen rejects extremes over no elements, since they have no value

template <Layout At, bool Position, bool OfSome = true>
Result<Types> extreme_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (!accepts(Position ? kNumeric : kReal, self.dtype)) return unsupported_dtype(self.dtype, "an extreme");
  CRESSET_TRY(const auto dims, reduced_dims(shapes, dim_arg(args, At), self.rank(), At.empty_means_all));
  if (OfSome && !require_elements(shapes, self, dims)) return shapes.invalid("an extreme over no elements");
  return Types{reduced_type(shapes, self, dims, keepdim_arg(args, At), Position ? DType::I64 : self.dtype)};
}

Combine truth_combine(Combine combine) { return combine == Combine::Max ? Combine::Any : Combine::All; }

template <Layout At, Combine C>
Reduction extreme_reduction(const graph::Graph& graph, const OpArgs& args, size_t) {
  const DType dtype = args.tensor(0).dtype;
  const Combine combine = dtype == DType::Bool ? truth_combine(C) : C;
  return {combine, dims_of(graph, args, At), keepdim_arg(args, At), compute_dtype(dtype)};
}
loop::ScalarId extreme_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return operand(context, args, 0, index, args.tensor(0).dtype).id;
}

constexpr Layout kSum{.dtype = 1};
constexpr Layout kSumDim{.dim = 1, .keepdim = 2, .dtype = 3};
constexpr Layout kWhole{};
constexpr Layout kDim{.dim = 1, .keepdim = 2};
constexpr Layout kDims{.dim = 1, .keepdim = 2, .empty_means_all = false};
constexpr Layout kCountDim{.dim = 1};

#define FOLD(text, at, combine, function)                                                          \
  OpDef {                                                                                          \
    .schema = "aten::" text " -> Tensor", .op_class = OpClass::Reduction, .shape = fold_shape<at>, \
    .element = function<at>, .reduction = fold_reduction<at, Combine::combine>                     \
  }
#define TRUTH(text, at, combine)                                                                    \
  OpDef {                                                                                           \
    .schema = "aten::" text " -> Tensor", .op_class = OpClass::Reduction, .shape = truth_shape<at>, \
    .element = truth_element, .reduction = truth_reduction<at, Combine::combine>                    \
  }
#define EXTREME(text, at, combine, position)                                                                    \
  OpDef {                                                                                                       \
    .schema = "aten::" text " -> Tensor", .op_class = OpClass::Reduction, .shape = extreme_shape<at, position>, \
    .element = extreme_element, .reduction = extreme_reduction<at, Combine::combine>, .steps = true             \
  }
#define COUNT(text, at)                                                                             \
  OpDef {                                                                                           \
    .schema = "aten::" text " -> Tensor", .op_class = OpClass::Reduction, .shape = count_shape<at>, \
    .element = count_element, .reduction = count_reduction<at>                                      \
  }

const OpDef kReduceOps[] = {
    FOLD("sum(Tensor self, *, ScalarType? dtype=None)", kSum, Sum, fold_element),
    FOLD("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)", kSumDim, Sum,
         fold_element),
    FOLD("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", kSumDim, Sum,
         nan_as_zero_element),
    FOLD("prod(Tensor self, *, ScalarType? dtype=None)", kSum, Prod, fold_element),
    FOLD("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None)", kSumDim, Prod,
         fold_element),
    COUNT("count_nonzero(Tensor self, int? dim=None)", kCountDim),
    COUNT("count_nonzero.dim_IntList(Tensor self, int[] dim)", kCountDim),
    TRUTH("any(Tensor self)", kWhole, Any),
    TRUTH("any.dim(Tensor self, int dim, bool keepdim=False)", kDim, Any),
    TRUTH("any.dims(Tensor self, int[]? dim=None, bool keepdim=False)", kDims, Any),
    TRUTH("all(Tensor self)", kWhole, All),
    TRUTH("all.dim(Tensor self, int dim, bool keepdim=False)", kDim, All),
    TRUTH("all.dims(Tensor self, int[]? dim=None, bool keepdim=False)", kDims, All),
    EXTREME("amax(Tensor self, int[1] dim=[], bool keepdim=False)", kDim, Max, false),
    EXTREME("amin(Tensor self, int[1] dim=[], bool keepdim=False)", kDim, Min, false),
    // amax for decompositions; over no elements it is -inf.
    {.schema = "prim::greatest(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
     .op_class = OpClass::Reduction,
     .shape = extreme_shape<kDim, false, false>,
     .element = extreme_element,
     .reduction = extreme_reduction<kDim, Combine::Max>},
    EXTREME("max(Tensor self)", kWhole, Max, false),
    EXTREME("min(Tensor self)", kWhole, Min, false),
    EXTREME("argmax(Tensor self, int? dim=None, bool keepdim=False)", kDim, ArgMax, true),
    EXTREME("argmin(Tensor self, int? dim=None, bool keepdim=False)", kDim, ArgMin, true),
};

}  // namespace

std::span<const OpDef> reduce_ops() { return kReduceOps; }

}  // namespace cresset::ops
